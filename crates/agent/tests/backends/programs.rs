//! Any command, transcripts, and agents of the Agent Client Protocol.

use super::*;
use repertoire_agent::event::AgentRunStatus;
use serde_json::json;

#[tokio::test]
async fn a_command_reads_the_prompt_and_prints_the_answer() {
    let folder = Folder::new();
    let shell = chosen(
        BackendKind::Command,
        "sh",
        &["-c", "tr a-z A-Z; echo $REPERTOIRE_SYSTEM $REPERTOIRE_FREEDOM"],
    );
    let job = BackendJob { system: "brief".to_owned(), ..job(&folder.path) };
    let (finished, _) = run(shell.as_ref(), &job).await;
    assert_eq!(
        (finished.status, finished.text.as_str()),
        (AgentRunStatus::Done, "DO ITbrief workspace")
    );
}

#[tokio::test]
async fn a_command_may_have_the_prompt_among_its_arguments() {
    let folder = Folder::new();
    let echo = chosen(BackendKind::Command, "printf", &["%s|", "--x={prompt}", "y"]);
    let (finished, _) = run(echo.as_ref(), &job(&folder.path)).await;
    assert_eq!(finished.text, "--x=do it|y|");
    let long = BackendJob { prompt: "x".repeat(200_000), ..job(&folder.path) };
    let (finished, _) = run(echo.as_ref(), &long).await;
    assert!(finished.error.expect("an error").contains("too many for a command line"));
}

#[tokio::test]
async fn a_command_that_was_asked_for_json_is_held_to_it() {
    let folder = Folder::new();
    let schema = json!({"type": "object", "required": ["ok"]});
    let job = BackendJob { schema: Some(schema), ..job(&folder.path) };
    let (finished, _) =
        run(chosen(BackendKind::Command, "echo", &["{\"ok\": 1}"]).as_ref(), &job).await;
    assert_eq!(
        (finished.status, finished.structured),
        (AgentRunStatus::Done, Some(json!({"ok": 1})))
    );
    let (finished, _) = run(chosen(BackendKind::Command, "echo", &["{}"]).as_ref(), &job).await;
    assert_eq!(finished.status, AgentRunStatus::Failed);
    assert!(finished.error.expect("an error").contains("\"ok\" is a required property"));
}

#[tokio::test]
async fn a_command_that_fails_says_how() {
    let folder = Folder::new();
    let shell = chosen(BackendKind::Command, "sh", &["-c", "echo half; echo broken >&2; exit 3"]);
    let (finished, _) = run(shell.as_ref(), &job(&folder.path)).await;
    assert_eq!((finished.status, finished.text.as_str()), (AgentRunStatus::Failed, "half"));
    let error = finished.error.expect("an error");
    assert!(error.contains("code 3") && error.contains("broken"), "{error}");
}

const STEPS: &str = r#"
- thinking: Let me look.
- tool: bash
  arguments: {command: ls -l}
  result: a.txt
- wait_ms: 1
- text: "There is one file. "
- when: something else
  text: Not said.
- when: do
  text: It is a.txt.
- finish: {session: s1, cost_usd: 0.25, usage: {input_tokens: 3, output_tokens: 4, cache_read_tokens: 0, cache_write_tokens: 0}}
"#;

#[tokio::test]
async fn steps_are_replayed() {
    let folder = Folder::new();
    let file = folder.file("demo.yaml", STEPS);
    let (finished, events) =
        run(chosen(BackendKind::Scripted, file.as_str(), &[]).as_ref(), &job(&folder.path)).await;
    assert_eq!(finished.text, "There is one file. It is a.txt.");
    assert_eq!((finished.status, finished.session.as_deref()), (AgentRunStatus::Done, Some("s1")));
    assert_eq!(
        (finished.cost_usd, finished.usage.total(), finished.iterations),
        (Some(0.25), 7, 2)
    );
    let calls = |kind: &&EventKind| matches!(kind, EventKind::ToolCall { subject, .. } if subject == "ls -l");
    assert_eq!((events.len(), events.iter().filter(calls).count()), (5, 1));
}

#[tokio::test]
async fn the_events_of_a_run_are_a_transcript() {
    let folder = Folder::new();
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&lines);
    let keep = move |event: &AgentEvent| {
        let line = serde_json::to_string(event).expect("JSON");
        sink.lock().expect("a text").push_str(&format!("{line}\n"));
    };
    let events = EventEmitter::new("r", "a", Arc::new(SystemClock), Arc::new(keep));
    let file = folder.file("demo.yaml", STEPS);
    let first =
        chosen(BackendKind::Scripted, file.as_str(), &[]).run(&job(&folder.path), &events).await;
    let BackendResult { status, text, usage, iterations, session, cost_usd, .. } = first.clone();
    events.emit(EventKind::RunFinished {
        status,
        text,
        structured: None,
        error: None,
        usage,
        cost_usd,
        iterations,
        duration_ms: 5,
        denials: Vec::new(),
        session,
    });
    let recorded = lines.lock().expect("a text").clone() + "{\"type\": \"of the future\"}\n";
    let file = folder.file("run.jsonl", &recorded);
    let (again, told) =
        run(chosen(BackendKind::Scripted, file.as_str(), &[]).as_ref(), &job(&folder.path)).await;
    assert_eq!(again, first);
    assert!(matches!(&told[0], EventKind::Warning { message } if message.starts_with("1 lines")));
}

#[tokio::test]
async fn a_transcript_that_is_none_says_what_is_wrong_and_where() {
    let folder = Folder::new();
    for (content, expected) in [
        ("- txet: hi\n", "step 1: unknown field `txet`"),
        ("- text: hi\n- {}\n", "step 2: none of `text`"),
        ("text: hi\n", "a list of steps is expected"),
        ("- text: [\n", "line "),
    ] {
        let file = folder.file("bad.yaml", content);
        let (finished, _) =
            run(chosen(BackendKind::Scripted, file.as_str(), &[]).as_ref(), &job(&folder.path))
                .await;
        let error = finished.error.expect("an error");
        assert!(error.contains(expected), "{error}");
    }
    let (finished, _) =
        run(chosen(BackendKind::Scripted, "/nowhere/x.yaml", &[]).as_ref(), &job(&folder.path))
            .await;
    assert!(finished.error.expect("an error").contains("there is no such file"));
}

#[tokio::test]
async fn a_waiting_transcript_can_be_stopped() {
    let folder = Folder::new();
    let file = folder.file("wait.yaml", "- text: hi\n- wait_ms: 3600000\n");
    let job = job(&folder.path);
    job.cancel.cancel();
    let (finished, _) = run(chosen(BackendKind::Scripted, file.as_str(), &[]).as_ref(), &job).await;
    assert_eq!((finished.status, finished.text.as_str()), (AgentRunStatus::Cancelled, "hi"));
}

/// An agent that asks for permission to edit a file at `$1`, and tells what it was answered.
const AGENT: &str = r#"
read init; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'
read open
echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"old"}}}}'
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"a1"}}'
read prompt
up() { echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"a1\",\"update\":$1}}"; }
echo not json
up '{"sessionUpdate":"plan","entries":[{"content":"one","priority":"high","status":"in_progress"}]}'
up '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}'
up '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit","kind":"edit","status":"pending","rawInput":{"path":"x.txt"}}'
echo '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"a1","toolCall":{"toolCallId":"t1","title":"Edit x","kind":"edit","locations":[{"path":"'"$1"'"}]},"options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}'
read answer
up '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"edited"}}]}'
echo '{"jsonrpc":"2.0","id":"f1","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}'
read refused
case "$answer" in *'"yes"'*) a=allowed;; *'"no"'*) a=refused;; *) a=other;; esac
case "$refused" in *-32601*) f=unknown;; *) f=served;; esac
case "$open" in *session/load*) o=loaded;; *) o=new;; esac
up '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$a $f"' "}}'
up '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$o"'"}}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
exec cat >/dev/null
"#;

async fn agent(
    path: &str,
    change: impl FnOnce(&mut BackendJob),
) -> (BackendResult, Vec<EventKind>) {
    let folder = Folder::new();
    let program = folder.script("agent", AGENT);
    let mut job = job(&folder.path);
    change(&mut job);
    let path = path.replace("$DIR", folder.path.as_str());
    run(chosen(BackendKind::Acp, &program, &[&path]).as_ref(), &job).await
}

#[tokio::test]
async fn an_agent_of_the_protocol_works_within_its_freedom() {
    let (finished, events) = agent("$DIR/x.txt", |_| {}).await;
    assert_eq!(
        (finished.status, finished.text.as_str()),
        (AgentRunStatus::Done, "allowed unknown new"),
        "{finished:?}"
    );
    assert_eq!((finished.session.as_deref(), finished.denials.len()), (Some("a1"), 0));
    let todo = |kind: &EventKind| matches!(kind, EventKind::Todos { items } if items.len() == 1);
    let result = |kind: &EventKind| matches!(kind, EventKind::ToolResult { tool, summary, .. } if tool == "edit" && summary == "edited");
    let garbage = |kind: &EventKind| matches!(kind, EventKind::Warning { message } if message.starts_with("1 lines"));
    assert!(
        events.iter().any(todo) && events.iter().any(result) && events.iter().any(garbage),
        "{events:?}"
    );
}

#[tokio::test]
async fn an_agent_of_the_protocol_is_refused_what_is_outside() {
    for (path, freedom, text, denials) in [
        ("/etc/x", AgentFreedom::Workspace, "refused unknown new", 1),
        ("$DIR/../x", AgentFreedom::Workspace, "refused unknown new", 1),
        ("$DIR/x", AgentFreedom::ReadOnly, "refused unknown new", 1),
        ("/etc/x", AgentFreedom::Full, "allowed unknown new", 0),
    ] {
        let (finished, _) = agent(path, |job| job.freedom = freedom).await;
        assert_eq!(
            (finished.text.as_str(), finished.denials.len()),
            (text, denials),
            "{path} {freedom:?}"
        );
    }
}

#[tokio::test]
async fn an_old_session_of_the_protocol_is_gone_on_with_and_its_history_is_no_news() {
    let (finished, events) = agent("$DIR/x", |job| job.session = Some("a1".to_owned())).await;
    assert_eq!(finished.text, "allowed unknown loaded");
    assert!(!events.iter().any(|kind| matches!(kind, EventKind::Text { text } if text == "old")));
}

#[tokio::test]
async fn an_agent_of_the_protocol_that_does_not_speak_it_ends_in_time() {
    let folder = Folder::new();
    let silent = folder.script("silent", "exec cat >/dev/null");
    let job = BackendJob { idle: Duration::from_secs(1), ..job(&folder.path) };
    let (finished, _) = run(chosen(BackendKind::Acp, &silent, &[]).as_ref(), &job).await;
    assert_eq!(finished.status, AgentRunStatus::Failed);
    let old = folder
        .script("old", r#"read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":9}}'"#);
    let (finished, _) = run(chosen(BackendKind::Acp, &old, &[]).as_ref(), &job).await;
    assert!(finished.error.expect("an error").contains("version 9"));
    let login = r#"read x; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Authentication required"}}'"#;
    let login = folder.script("login", login);
    let (finished, _) = run(chosen(BackendKind::Acp, &login, &[]).as_ref(), &job).await;
    assert!(finished.error.expect("an error").contains("asks for a login"));
}
