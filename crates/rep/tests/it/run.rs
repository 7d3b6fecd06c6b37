//! `rep run`: a real binary and a scripted model.

use insta::assert_snapshot;
use repertoire_scripted::{ModelFault, ModelScript, ScriptedTurn};
use serde_json::{Value, json};

use crate::plan_crash::disk::Disk;
use crate::talking::{Model, begin, end, signal, tidy, with_input};
use crate::workspace::Workspace;

fn office() -> Workspace {
    let ws = Workspace::new();
    ws.skill_with(
        "home/.claude/skills/tenders",
        "name: tenders\ndescription: Rules for public tenders. Use when a tender is analysed.\n\
         triggers:\n  keywords: [danish tender]\n",
    );
    ws.write(
        "home/.claude/agents/analyst.md",
        "---\nname: analyst\ndescription: Analyses tenders.\ntools: [read, skill]\n---\nYou analyse.\n",
    );
    ws.write("project/notes.txt", "one\ntwo\n");
    ws
}

fn says(text: &str) -> ModelScript {
    ModelScript::new().turn(ScriptedTurn::text(text))
}

#[test]
fn the_answer_goes_to_standard_output_and_the_rest_does_not() {
    let mut ws = office();
    let _model = Model::start(&mut ws, says("It is compliant."));
    let ran = ws.rep("run -a analyst Analyze this Danish tender");
    assert_eq!(ran.stdout, "It is compliant.\n");
    assert_snapshot!(tidy(&ran), @r#"
    It is compliant.
    [stderr]
    + tenders                   0.99  trigger phrase "danish tender"; "tender" in name, description;…
    $0.0002 · 100 tokens in, 20 out · 1 turn · [TIME] · rep run --resume [ID]
    [exit 0]
    "#);
}

#[test]
fn tools_are_one_line_each() {
    let mut ws = office();
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("read", json!({"path": "notes.txt"})))
        .turn(ScriptedTurn::tool("read", json!({"path": "gone.txt"})))
        .turn(ScriptedTurn::text("Two lines."));
    let _model = Model::start(&mut ws, script);
    let ran = ws.rep("run --no-auto how long is notes.txt");
    assert_snapshot!(tidy(&ran), @"
    Two lines.
    [stderr]
    ⏺ read  notes.txt  ✓ [TIME]
    ⏺ read  gone.txt  ✗ [TIME]
      there is no `gone.txt`; `list` and `glob` show what there is
    $0.0006 · 300 tokens in, 60 out · 3 turns · [TIME] · rep run --resume [ID]
    [exit 0]
    ");
}

#[test]
fn events_are_lines_of_json_that_fit_the_published_schema() {
    let mut ws = office();
    let script = ModelScript::new()
        .turn(
            ScriptedTurn::thinking("hm")
                .and_text("Let me see.")
                .and_tool("read", json!({"path": "notes.txt"})),
        )
        .turn(ScriptedTurn::text("Two lines."));
    let _model = Model::start(&mut ws, script);
    let ran = ws.rep("run --json look at this danish tender");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let all = repertoire_cli::schema::all_schemas();
    let (_, schema) = all.into_iter().find(|(name, _)| *name == "event.json").unwrap();
    let validator = jsonschema::validator_for(schema.as_value()).unwrap();
    let mut kinds = Vec::new();
    for line in ran.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&event).map(|error| error.to_string()).collect();
        assert_eq!(wrong, Vec::<String>::new(), "{line}");
        kinds.push(event["type"].as_str().unwrap().to_owned());
    }
    kinds.dedup();
    assert_eq!(
        (kinds.first().unwrap().as_str(), kinds.last().unwrap().as_str()),
        ("run_started", "run_finished")
    );
    for kind in [
        "skills_selected",
        "skill_loaded",
        "model_call",
        "text",
        "answer",
        "tool_call",
        "tool_result",
    ] {
        assert!(kinds.iter().any(|one| one == kind), "{kind}: {kinds:?}");
    }
    assert!(!ran.stdout.contains("sk-test-secret"));
}

#[test]
fn a_dry_run_shows_the_prompt_and_needs_no_key() {
    let ws = office();
    let ran = ws.rep("run --dry-run -a analyst Analyze this Danish tender");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");
    for part in [
        "agent   analyst",
        "model   anthropic/claude-haiku-4-5",
        "+ tenders",
        "trigger phrase",
        "You analyse.",
        "AUTO-LOADED SKILL",
        "── user ──",
        "Analyze this Danish tender",
        "── tools ──",
        "Nothing was sent.",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran}");
    }
    assert!(!ws.path("data/journal.sqlite").exists() && !ws.path("data/runs").exists());

    let ran = ws.rep("run --dry-run --json -a analyst Analyze this Danish tender");
    let body: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(body["model"], "claude-haiku-4-5");
    assert!(body["messages"].to_string().contains("Analyze this Danish tender"));
}

#[test]
fn a_dry_run_is_what_is_sent() {
    let mut ws = office();
    let model = Model::start(&mut ws, says("Yes."));
    let dry = ws.raw("run --dry-run --json -a analyst this Danish tender");
    let dry: Value = serde_json::from_slice(&dry).unwrap();
    ws.rep("run -a analyst this Danish tender");
    let sent = &model.requests()[0].body;
    for part in ["model", "system", "messages", "tools", "max_tokens"] {
        assert_eq!(dry[part], sent[part], "{part}");
    }
}

#[test]
fn a_conversation_goes_on_with_what_was_said_and_with_its_skills() {
    let mut ws = office();
    let script = ModelScript::new()
        .turn(ScriptedTurn::text("First."))
        .turn(ScriptedTurn::text("Second."))
        .turn(ScriptedTurn::text("Third."));
    let model = Model::start(&mut ws, script);
    ws.rep("run -a analyst Analyze this Danish tender");
    let ran = ws.rep("run --resume last and the deadline of this Danish tender?");
    assert_eq!(ran.stdout, "Second.\n");
    assert!(!ran.stderr.contains("+ tenders"), "it is in the ledger: {ran}");
    ws.rep("run -a analyst another Danish tender");
    let requests = model.requests();
    let second = requests[1].body.to_string();
    assert!(second.contains("First.") && second.contains("and the deadline"), "{second}");
    assert!(second.contains("You analyse."), "the agent stays");
    assert_eq!(second.matches("AUTO-LOADED SKILL").count(), 1);
    let third = requests[2].body.to_string();
    assert!(!third.contains("First.") && third.contains("AUTO-LOADED SKILL"), "{third}");

    let list = ws.json("--json conversations", "conversations.json");
    let rows = list["conversations"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[1]["turns"].as_u64(), rows[1]["first"].as_str()),
        (Some(2), Some("Analyze this Danish tender"))
    );
    let uses: Value = serde_json::from_str(&ws.text("data/usage.json")).unwrap();
    assert_eq!(uses["skills"]["tenders"], 2);
}

#[test]
fn what_nobody_allowed_is_denied_with_what_to_do() {
    let mut ws = office();
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("bash", json!({"command": "touch made"})))
        .turn(ScriptedTurn::text("I may not."));
    let model = Model::start(&mut ws, script);
    let ran = ws.rep("run --no-auto make a file");
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("✗ not allowed") && ran.stderr.contains("--allow"), "{ran}");
    assert!(ran.stderr.contains("1 call not allowed"), "{ran}");
    assert!(!ws.path("project/made").exists());
    assert!(model.requests()[1].body.to_string().contains("Not allowed"));
}

#[test]
fn what_a_rule_allows_is_done() {
    let mut ws = office();
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("bash", json!({"command": "touch made"})))
        .turn(ScriptedTurn::text("Done."));
    let _model = Model::start(&mut ws, script);
    let ran = ws.rep_with(&["run", "--no-auto", "--allow", "bash(touch:*)", "make a file"]);
    assert!(ran.code == 0 && ran.stderr.contains("✓"), "{ran}");
    assert!(ws.path("project/made").exists());
}

#[test]
fn commands_run_in_the_sandbox_of_the_binary() {
    let mut ws = office();
    ws.set("REPERTOIRE_SANDBOX", "auto");
    ws.set("PATH", "/usr/bin:/bin");
    let outside = ws.path("outside");
    let command = format!("touch inside; touch {outside}");
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("bash", json!({ "command": command })))
        .turn(ScriptedTurn::text("Done."));
    let _model = Model::start(&mut ws, script);
    let enforced =
        ws.json("--json doctor", "doctor.json")["running"]["sandbox_is_enforced"] == true;
    let ran = ws.rep("run --no-auto --accept-edits make files");
    assert_eq!(ran.code, 0, "{ran}");
    // Without a sandbox nothing is started unasked.
    assert_eq!(ws.path("project/inside").exists(), enforced, "{ran}");
    assert!(!outside.exists(), "{ran}");
}

#[test]
fn somebody_elses_agent_does_the_work_with_the_same_skills() {
    let mut ws = office();
    ws.write(
        "project/transcript.yaml",
        "- thinking: hm\n- tool: shell\n  arguments: {command: ls}\n  result: notes.txt\n- text: It is compliant.\n",
    );
    ws.set("PATH", "/usr/bin:/bin");
    let ran = ws.rep("run --backend scripted:transcript.yaml this Danish tender");
    assert_eq!((ran.stdout.as_str(), ran.code), ("It is compliant.\n", 0), "{ran}");
    assert!(ran.stderr.contains("+ tenders") && ran.stderr.contains("⏺ shell"), "{ran}");
    let ran = ws.rep("run --no-auto --backend command:cat say this back");
    assert!(ran.stdout.contains("say this back"), "{ran}");
    assert_eq!(ws.rep("run --backend scripted hello").code, 2);
    let ran = ws.rep("run --backend codex hello");
    assert!(ran.code == 3 && ran.stderr.contains("codex"), "{ran}");
}

#[test]
fn without_a_key_it_says_what_would_help() {
    let mut ws = office();
    ws.write("bin/codex", "#!/bin/sh\n");
    std::process::Command::new("chmod").arg("+x").arg(ws.path("bin/codex")).status().unwrap();
    let bin = ws.path("bin").to_string();
    ws.set("PATH", &bin);
    assert_snapshot!(ws.rep("run hello"), @"
    [stderr]
    error: there is no key for anthropic/claude-haiku-4-5: ANTHROPIC_API_KEY is not set
    hint: A server of your own (Ollama, vLLM, llama.cpp): `-m compat/NAME`, with OPENAI_BASE_URL for its address.
    hint: An agent that is installed here: `--backend codex`.
    hint: `--dry-run` shows what would be sent, without a key.
    [exit 3]
    ");
    ws.set("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    assert!(
        ws.rep("run hello")
            .stderr
            .contains("For the server at http://127.0.0.1:9/v1: `-m compat/NAME`.")
    );
    assert_eq!(ws.rep("run -m openai/gpt-5 hello").code, 3);
}

#[test]
fn wrong_use_is_told_apart_from_what_cannot_run() {
    let mut ws = office();
    let _model = Model::start(&mut ws, says("Never."));
    for (line, code, message) in [
        ("run -a analist hi", 3, "Did you mean `analyst`?"),
        ("run -m gpt-5 hi", 2, "anthropic/NAME"),
        ("run --max-cost free hi", 2, "it is not a number"),
        ("run --timeout soon hi", 2, "write it as 90s, 10m or 1h"),
        ("run --resume 0123 hi", 3, "there is no conversation `0123`"),
        ("run --schema gone.json hi", 2, "cannot be read"),
        ("run --backend clade hi", 2, "there is no backend `clade`"),
        ("run --read-only --full-access hi", 2, "cannot be used with"),
        ("run", 2, "there is no task"),
    ] {
        let ran = ws.rep(line);
        assert_eq!(ran.code, code, "{line}: {ran}");
        assert!(ran.stderr.contains(message), "{line}: {ran}");
        assert_eq!(ran.stdout, "", "{line}");
    }
}

#[test]
fn a_run_that_fails_says_why_and_exits_with_no() {
    for (turn, flags, code, message) in [
        (
            ScriptedTurn::fail(ModelFault::status(400, "{\"error\":{\"message\":\"bad tools\"}}")),
            "",
            1,
            "bad tools",
        ),
        (
            ScriptedTurn::fail(ModelFault::status(
                401,
                "{\"error\":{\"message\":\"no such key\"}}",
            )),
            "",
            3,
            "no such key",
        ),
        (
            ScriptedTurn::tool("read", json!({"path": "notes.txt"})),
            "--max-turns 1",
            1,
            "limits.iterations",
        ),
    ] {
        let mut ws = office();
        let _model = Model::start(&mut ws, ModelScript::new().turn(turn).repeat_last());
        let ran = ws.rep(&format!("run --no-auto {flags} hi"));
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.stderr.contains(message), "{ran}");
        assert!(!ran.stderr.contains("sk-test-secret"), "{ran}");
    }
}

#[test]
fn the_task_may_be_piped_in_or_come_with_material() {
    let mut ws = office();
    let model =
        Model::start(&mut ws, ModelScript::new().turn(ScriptedTurn::text("Ok.")).repeat_last());
    with_input(&ws, &["run", "--no-auto", "-"], "from the pipe\n");
    with_input(&ws, &["run", "--no-auto"], "all of it\n");
    with_input(&ws, &["run", "--no-auto", "sum it up"], "a long log\n");
    let said: Vec<String> = model.requests().iter().map(|one| one.last_user_text()).collect();
    assert_eq!(said[..2], ["from the pipe", "all of it"]);
    assert_eq!(said[2], "sum it up\n\n<stdin>\na long log\n</stdin>");
}

#[test]
fn an_answer_can_be_held_to_a_schema() {
    let mut ws = office();
    ws.write("project/shape.json", r#"{"type": "object", "required": ["ok"]}"#);
    let script = ModelScript::new()
        .turn(ScriptedTurn::text("{}"))
        .turn(ScriptedTurn::text("{\"ok\": true}"));
    let model = Model::start(&mut ws, script);
    let ran = ws.rep("run --no-auto --schema shape.json is it fine?");
    assert_eq!((ran.stdout.as_str(), ran.code), ("{\"ok\": true}\n", 0), "{ran}");
    assert_eq!(model.requests().len(), 2);
    ws.write("project/shape.json", r#"{"type": 7}"#);
    assert!(ws.rep("run --schema shape.json x").stderr.contains("is not a JSON Schema"));
}

#[test]
fn a_conversation_in_use_is_refused() {
    let mut ws = office();
    let script =
        ModelScript::new().turn(ScriptedTurn::fail(ModelFault::StallBeforeHeaders)).repeat_last();
    let model = Model::start(&mut ws, script);
    let mut child = begin(&ws, &["run", "--no-auto", "wait"]);
    drop(child.stdin.take());
    model.wait_for(1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let ran = ws.rep("run --resume last hello");
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains(&format!("in use by another process ({})", child.id())), "{ran}");
    signal(&child, "KILL");
    end(child);
}

#[test]
fn ctrl_c_stops_the_run_and_keeps_the_conversation() {
    stopped_by("INT");
}

#[test]
fn a_terminal_that_is_closed_stops_the_run_as_well() {
    stopped_by("HUP");
}

fn stopped_by(name: &str) {
    let mut ws = office();
    let script = ModelScript::new()
        .turn(ScriptedTurn::fail(ModelFault::StallMidStream { after_events: 3 }))
        .repeat_last();
    let model = Model::start(&mut ws, script);
    let mut child = begin(&ws, &["run", "--no-auto", "a long story"]);
    drop(child.stdin.take());
    model.wait_for(1);
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal(&child, name);
    let ran = end(child);
    assert_eq!(ran.code, 130, "{ran}");
    let list = ws.json("--json conversations", "conversations.json");
    assert_eq!(list["conversations"][0]["at_work"], false);
    assert_eq!(list["conversations"][0]["first"], "a long story");
}

/// Changes the journal with another program.
fn tamper(ws: &Workspace, sql: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = format!("sqlite://{}", ws.path("data/journal.sqlite"));
        let mut db = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
        sqlx::query(sql).execute(&mut db).await.unwrap();
    });
}

#[test]
fn a_damaged_conversation_is_named_and_left() {
    let mut ws = office();
    let _model =
        Model::start(&mut ws, ModelScript::new().turn(ScriptedTurn::text("Ok.")).repeat_last());
    ws.rep("run --no-auto hello");
    tamper(&ws, "UPDATE event SET payload = '{' WHERE type = 'KIND_EVENT'");
    let ran = ws.rep("run --resume last hello");
    assert!(ran.code == 3 && ran.stderr.contains("is damaged"), "{ran}");
    // It is listed as damaged, and nothing is deleted that cannot be read.
    tamper(&ws, "UPDATE request SET body = '{}'");
    let ran = ws.rep("conversations");
    assert!(ran.code == 0 && ran.stdout.contains("is damaged"), "{ran}");
    let ran = ws.rep("conversations rm 0");
    assert!(ran.code == 3 && ran.stderr.contains("is damaged"), "{ran}");
    assert_eq!(ws.rep("run --no-auto hello").code, 0, "another conversation needs no damaged row");
}

#[test]
fn an_answer_is_shown_although_the_journal_is_of_a_later_version() {
    let mut ws = office();
    let _model =
        Model::start(&mut ws, ModelScript::new().turn(ScriptedTurn::text("Ok.")).repeat_last());
    ws.rep("run --no-auto hello");
    tamper(&ws, "INSERT INTO journal_version (version) VALUES (99)");
    let ran = ws.rep("run --no-auto hello");
    assert_eq!((ran.stdout.as_str(), ran.code), ("Ok.\n", 3), "{ran}");
    assert!(ran.stderr.contains("error: the conversation could not be saved: "), "{ran}");
    assert!(ran.stderr.contains("use a newer `rep`"), "{ran}");
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{ran}");
}

#[test]
fn an_answer_is_shown_although_the_disk_is_full() {
    let mut ws = office();
    let place = ws.path("small");
    let Some(disk) = Disk::at(&place) else { return };
    ws.set("REPERTOIRE_DATA_DIR", place.join("data").as_str());
    let _model =
        Model::start(&mut ws, ModelScript::new().turn(ScriptedTurn::text("Ok.")).repeat_last());
    ws.rep("run --no-auto hello");
    disk.fill();
    let ran = ws.rep("run --no-auto hello");
    assert_eq!((ran.stdout.as_str(), ran.code), ("Ok.\n", 3), "{ran}");
    assert!(ran.stderr.contains("error: the conversation could not be saved: "), "{ran}");
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{ran}");
    disk.empty();
    let ran = ws.rep("run --no-auto --resume last and on");
    assert_eq!((ran.stdout.as_str(), ran.code), ("Ok.\n", 0), "{ran}");
}

#[test]
fn a_rule_about_no_tool_is_told_and_one_that_forbids_stops_the_run() {
    let mut ws = office();
    let model = Model::start(&mut ws, says("Done."));
    let ran = ws.rep_with(&["run", "--deny", "raed(.env)", "hi"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("there is no tool `raed`"), "{ran}");
    assert!(ran.stderr.contains("Did you mean `read`?"), "{ran}");
    assert_eq!(model.requests().len(), 0);
    let ran = ws.rep_with(&["run", "--allow", "bsh(ls)", "--allow", "WebFetch", "hi"]);
    assert_eq!(ran.code, 0, "{ran}");
    let told = "! --allow bsh(ls): there is no tool `bsh`. Did you mean `bash`?";
    assert!(ran.stderr.contains(told) && !ran.stderr.contains("WebFetch"), "{ran}");
}

#[test]
fn the_last_conversation_is_the_last_of_this_project() {
    let mut ws = office();
    ws.write("other/a.txt", "a");
    let _model =
        Model::start(&mut ws, ModelScript::new().turn(ScriptedTurn::text("Ok.")).repeat_last());
    ws.rep("run --no-auto here");
    let other = ws.path("other").to_string();
    ws.rep_with(&["-C", &other, "run", "--no-auto", "there"]);
    let ran = ws.rep("run --no-auto --resume last and on");
    assert!(ran.code == 0 && !ran.stderr.contains("was begun in"), "{ran}");
    let list = ws.json("--json conversations", "conversations.json");
    let rows = list["conversations"].as_array().unwrap();
    let row = |at: usize| (rows[at]["first"].as_str(), rows[at]["turns"].as_u64());
    assert_eq!((row(0), row(1)), ((Some("here"), Some(2)), (Some("there"), Some(1))));
    assert!(rows[1]["folder"].as_str().unwrap().ends_with("/other"), "{list}");
    let ran = ws.rep(&format!("run --no-auto --resume {} on", rows[1]["id"].as_str().unwrap()));
    assert!(ran.stderr.contains("this conversation was begun in "), "{ran}");
    ws.write("third/a.txt", "a");
    let third = ws.path("third").to_string();
    let ran = ws.rep_with(&["-C", &third, "run", "--resume", "last", "on"]);
    assert!(ran.code == 3 && ran.stderr.contains("no conversation was begun in"), "{ran}");
}

#[test]
fn what_cannot_be_started_leaves_no_conversation() {
    let mut ws = office();
    ws.set("PATH", "/usr/bin:/bin");
    for (backend, message) in [
        ("scripted:gone.yaml", "there is no transcript "),
        ("command:no-such-program x", "`no-such-program` is not on PATH"),
        ("acp:./gone", "there is no program "),
    ] {
        let ran = ws.rep_with(&["run", "--backend", backend, "hi"]);
        assert!(ran.code == 3 && ran.stderr.contains(message), "{ran}");
    }
    assert!(!ws.path("data/journal.sqlite").exists() && !ws.path("data/runs").exists());
}

#[test]
fn a_limit_is_told_once_with_the_turns_that_were_taken() {
    let mut ws = office();
    let turn = ScriptedTurn::tool("read", json!({"path": "notes.txt"}));
    let _model = Model::start(&mut ws, ModelScript::new().turn(turn).repeat_last());
    let ran = ws.rep("run --no-auto --max-turns 2 hi");
    assert!(ran.stderr.contains(" · 2 turns · "), "{ran}");
    assert_eq!(ran.stderr.matches("without coming to an end").count(), 1, "{ran}");
    let ran = ws.rep("run --no-auto --max-cost 0.00001 hi");
    assert!(ran.stderr.contains("and $0.00001 is allowed"), "{ran}");
    ws.set("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let ran = ws.rep("run --no-auto -m compat/unknown --max-cost 1 hi");
    assert!(ran.code == 3 && ran.stderr.contains("price of compat/unknown is not known"), "{ran}");
    assert!(!ran.stderr.contains("with a higher limit"), "{ran}");
}

#[test]
fn what_is_piped_in_is_no_title() {
    let mut ws = office();
    let _model = Model::start(&mut ws, says("Ok."));
    with_input(&ws, &["run", "--no-auto", "sum it up"], "a long log\n");
    let list = ws.json("--json conversations", "conversations.json");
    assert_eq!(list["conversations"][0]["first"], "sum it up");
}
