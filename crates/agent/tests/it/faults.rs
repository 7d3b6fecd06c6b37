//! What goes wrong between us and the model, one line of the table a test: each ends in bounded time with a clear result.

use std::time::{Duration, Instant};

use repertoire_agent::{AgentRunStatus, EventKind, RunOptions, RunReport};
use repertoire_model::client::CallTimeouts;
use repertoire_scripted::{ModelFault, ModelScript, ScriptedTurn};
use serde_json::json;

use crate::workspace::{Workspace, config};

const BOUND: Duration = Duration::from_secs(5);

async fn run(script: ModelScript) -> (Workspace, RunReport) {
    let workspace = Workspace::new(script).await;
    let mut config = config();
    config.timeouts = CallTimeouts { connect_ms: 500, idle_ms: 150, absolute_ms: 2_000 };
    let system = workspace.builder().config(config).build().unwrap();
    let begun = Instant::now();
    let report = system.run("default", "Do it", RunOptions::default()).await;
    assert!(begun.elapsed() < BOUND, "it took {:?}", begun.elapsed());
    (workspace, report)
}

fn retries(workspace: &Workspace) -> Vec<u64> {
    let waited = |kind| match kind {
        EventKind::Retry { after_ms, .. } => Some(after_ms),
        _ => None,
    };
    workspace.kinds().into_iter().filter_map(waited).collect()
}

fn error(report: &RunReport) -> String {
    report.error.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn too_many_requests_waits_as_long_as_it_is_asked_to() {
    let busy = ModelFault::status_with(
        429,
        &[("retry-after", "1")],
        r#"{"error":{"message":"slow down"}}"#,
    );
    let script = ModelScript::new().turn(ScriptedTurn::fail(busy)).turn(ScriptedTurn::text("Now."));
    let (workspace, report) = run(script).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "Now."));
    let waits = retries(&workspace);
    assert!(waits.len() == 1 && (1_000..1_500).contains(&waits[0]), "{waits:?}");
}

#[tokio::test]
async fn a_server_that_fails_is_asked_again_and_then_given_up() {
    let down = || ScriptedTurn::fail(ModelFault::status(500, r#"{"error":{"message":"boom"}}"#));
    let (_, report) =
        run(ModelScript::new().turn(down()).turn(down()).turn(ScriptedTurn::text("Up."))).await;
    assert_eq!(report.status, AgentRunStatus::Done);
    let (workspace, report) = run(ModelScript::new().turn(down()).repeat_last()).await;
    assert_eq!(report.status, AgentRunStatus::Failed);
    assert_eq!(error(&report), "anthropic failed (HTTP 500): boom");
    assert_eq!(workspace.requests().len(), 3);
}

#[tokio::test]
async fn a_request_that_is_refused_is_not_made_again() {
    for (status, word) in [(400, "refused"), (401, "key"), (404, "refused")] {
        let fault = ModelFault::status(status, r#"{"error":{"message":"no"}}"#);
        let (workspace, report) =
            run(ModelScript::new().turn(ScriptedTurn::fail(fault)).repeat_last()).await;
        assert_eq!(
            (report.status, workspace.requests().len()),
            (AgentRunStatus::Failed, 1),
            "{status}"
        );
        assert!(error(&report).contains(word), "{}", error(&report));
    }
}

#[tokio::test]
async fn a_stall_before_the_answer_begins_is_noticed() {
    let script = ModelScript::new()
        .turn(ScriptedTurn::fail(ModelFault::StallBeforeHeaders))
        .turn(ScriptedTurn::text("Awake."));
    let (workspace, report) = run(script).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "Awake."));
    assert_eq!(retries(&workspace).len(), 1);
}

#[tokio::test]
async fn a_stall_in_the_middle_of_the_answer_is_noticed() {
    let stalled =
        ScriptedTurn::text("Half a sen").with_fault(ModelFault::StallMidStream { after_events: 3 });
    let script = ModelScript::new().turn(stalled).turn(ScriptedTurn::text("A whole sentence."));
    let (_, report) = run(script).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "A whole sentence."));
}

#[tokio::test]
async fn a_call_that_breaks_off_is_not_carried_out() {
    let cut = ScriptedTurn::tool("bash", json!({"command": "touch proof"}))
        .with_fault(ModelFault::CutMidToolCall);
    let (workspace, report) =
        run(ModelScript::new().turn(cut).turn(ScriptedTurn::text("Again."))).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "Again."));
    assert!(!workspace.here.join("work/proof").exists());
    let called = |kind: &EventKind| matches!(kind, EventKind::ToolCall { .. });
    assert!(!workspace.kinds().iter().any(called));
}

#[tokio::test]
async fn malformed_arguments_go_back_to_the_model() {
    let broken = ScriptedTurn::tool("read", json!({"path": "a.txt"}))
        .with_fault(ModelFault::MalformedArguments);
    let (workspace, report) =
        run(ModelScript::new().turn(broken).turn(ScriptedTurn::text("I see."))).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "I see."));
    let answer = workspace.requests()[1].body["messages"][2].to_string();
    assert!(answer.contains("not valid JSON") && answer.contains("is_error"), "{answer}");
}

#[tokio::test]
async fn arguments_that_do_not_fit_and_tools_that_are_not_there_go_back_to_the_model() {
    let script = ModelScript::new()
        .turn(
            ScriptedTurn::tool("raed", json!({"path": "a.txt"}))
                .and_tool("read", json!({"path": 7})),
        )
        .turn(ScriptedTurn::text("I see."));
    let (workspace, report) = run(script).await;
    assert_eq!(report.status, AgentRunStatus::Done);
    let answer = workspace.requests()[1].body["messages"][2].to_string();
    assert!(answer.contains("Did you mean `read`?"), "{answer}");
    assert!(answer.contains("The arguments do not fit"), "{answer}");
}

#[tokio::test]
async fn an_error_in_the_stream_and_garbage_do_not_end_the_run() {
    for fault in [ModelFault::ErrorInStream, ModelFault::CutMidText, ModelFault::GarbageEvent] {
        let broken = ScriptedTurn::text("A text of some length").with_fault(fault.clone());
        let (_, report) =
            run(ModelScript::new().turn(broken).turn(ScriptedTurn::text("Fine."))).await;
        assert_eq!(report.status, AgentRunStatus::Done, "{fault:?}: {}", error(&report));
    }
}

#[tokio::test]
async fn nobody_there_is_told_as_such() {
    let workspace = Workspace::new(ModelScript::new()).await;
    let nobody = repertoire_model::ModelEndpoint {
        base_url: "http://127.0.0.1:9".to_owned(),
        key: Some(repertoire_model::ApiSecret::new("key-under-test")),
    };
    let endpoints = repertoire_model::ModelEndpoints::default()
        .with(repertoire_model::ModelService::Anthropic, nobody);
    let system = workspace.builder().config(config()).endpoints(endpoints).build().unwrap();
    let report = system.run("default", "Do it", RunOptions::default()).await;
    assert_eq!(report.status, AgentRunStatus::Failed);
    assert!(
        error(&report).contains("no connection to anthropic at http://127.0.0.1:9"),
        "{}",
        error(&report)
    );
}

#[tokio::test]
async fn a_used_up_allowance_is_waited_for_and_costs_no_attempt() {
    let limited = || {
        ScriptedTurn::respond(|_| {
            let now_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
            let reset = (now_s + 1).to_string();
            let headers = [("anthropic-ratelimit-unified-reset", reset.as_str())];
            let body = r#"{"error":{"type":"rate_limit_error","message":"usage limit reached"}}"#;
            ScriptedTurn::fail(ModelFault::status_with(429, &headers, body))
        })
    };
    let mut script = ModelScript::new();
    for _ in 0..3 {
        script = script.turn(limited());
    }
    let (workspace, report) = run(script.turn(ScriptedTurn::text("Full."))).await;
    assert_eq!(
        (report.status, report.text.as_str()),
        (AgentRunStatus::Done, "Full."),
        "{report:?}"
    );
    let paused = |kind: &EventKind| matches!(kind, EventKind::Paused { .. });
    assert!(workspace.kinds().iter().any(paused));
}

#[tokio::test]
async fn an_allowance_that_is_filled_too_late_leaves_a_run_that_can_be_resumed() {
    let body = r#"{"error":{"type":"rate_limit_error","message":"usage limit reached"}}"#;
    let headers = [("anthropic-ratelimit-unified-reset", "4000000000")];
    let limit = ScriptedTurn::fail(ModelFault::status_with(429, &headers, body));
    let workspace =
        Workspace::new(ModelScript::new().turn(limit).turn(ScriptedTurn::text("Resumed."))).await;
    let system = workspace.system();
    let options = || crate::workspace::in_conversation("c");
    let report = system.run("default", "Do it", options()).await;
    assert_eq!(report.status, AgentRunStatus::Paused, "{report:?}");
    let report = system.run("default", "Go on", options()).await;
    assert_eq!((report.status, report.text.as_str()), (AgentRunStatus::Done, "Resumed."));
    let said = workspace.requests()[1].body["messages"].to_string();
    assert!(said.contains("Do it") && said.contains("Go on"), "{said}");
}

#[tokio::test]
async fn a_secret_is_in_no_event_and_no_error() {
    let echo = ModelFault::status(400, r#"{"error":{"message":"bad key key-under-test"}}"#);
    let (workspace, report) =
        run(ModelScript::new().turn(ScriptedTurn::fail(echo)).repeat_last()).await;
    let told = serde_json::to_string(&workspace.kinds()).unwrap() + &format!("{report:?}");
    assert!(!told.contains("key-under-test"), "{told}");
}
