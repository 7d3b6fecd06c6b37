//! Spans of real commands at a collector of OpenTelemetry.

use repertoire_scripted::{ModelScript, ScriptedTurn, TraceCollector};
use serde_json::{Value, json};

use crate::talking::Model;
use crate::workspace::Workspace;

const ENDPOINT: &str = "REPERTOIRE_TELEMETRY_OTLP_ENDPOINT";

fn office() -> (Workspace, Model) {
    let mut ws = Workspace::new();
    ws.write("project/notes.txt", "PRIVATE NOTES\n");
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("read", json!({"path": "notes.txt"})))
        .turn(ScriptedTurn::text("ONE LINE."));
    let model = Model::start(&mut ws, script);
    (ws, model)
}

/// The chain of names from the root to a span.
fn path_of(spans: &[Value], span: &Value) -> String {
    let name = span["name"].as_str().unwrap().to_owned();
    let parent = span.get("parentSpanId");
    match spans.iter().find(|other| Some(&other["spanId"]) == parent) {
        Some(parent) => format!("{} > {name}", path_of(spans, parent)),
        None => {
            assert_eq!(parent, None, "the parent of {name} was not sent");
            name
        }
    }
}

#[test]
fn a_run_its_turns_its_model_calls_and_its_tools_are_one_tree() {
    let collector = TraceCollector::start();
    let (mut ws, _model) = office();
    ws.set(ENDPOINT, &collector.url());
    let ran = ws.rep("run --no-auto HOW LONG is notes.txt");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ONE LINE.\n"), "{}", ran.stderr);
    let spans = collector.spans();
    let mut paths: Vec<String> = spans.iter().map(|span| path_of(&spans, span)).collect();
    paths.sort();
    paths.retain(|path| path.starts_with("agent_run"));
    assert_eq!(
        paths,
        [
            "agent_run",
            "agent_run > agent_turn",
            "agent_run > agent_turn",
            "agent_run > agent_turn > model_call",
            "agent_run > agent_turn > model_call",
            "agent_run > agent_turn > select",
            "agent_run > agent_turn > tool_call",
        ]
    );
    let tool = spans.iter().find(|span| span["name"] == "tool_call").unwrap();
    assert_eq!(tool["attributes"][0]["value"]["stringValue"], "read");
    let bodies = format!("{:?}", collector.bodies());
    for secret in ["HOW LONG", "ONE LINE", "PRIVATE", "notes.txt", "sk-test-secret"] {
        assert!(!bodies.contains(secret), "{secret}: {bodies}");
    }
}

#[test]
fn the_standard_variables_name_the_collector_and_the_service() {
    let collector = TraceCollector::start();
    let (mut ws, _model) = office();
    ws.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url());
    ws.set("OTEL_SERVICE_NAME", "desk");
    assert_eq!(ws.rep("run --no-auto how long is notes.txt").code, 0);
    let resource = &collector.bodies()[0]["resourceSpans"][0]["resource"];
    assert_eq!(resource["attributes"][0]["value"]["stringValue"], "desk");
}

#[test]
fn a_collector_that_hangs_changes_neither_the_answer_nor_the_exit_code() {
    let collector = TraceCollector::start_silent();
    let (mut ws, _model) = office();
    ws.set(ENDPOINT, &collector.url());
    let ran = ws.rep("run --no-auto how long is notes.txt");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ONE LINE.\n"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("the last traces are lost").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_collector_that_is_down_is_mentioned_once() {
    let (mut ws, _model) = office();
    // Port 9 (discard) has no listener.
    ws.set(ENDPOINT, "http://127.0.0.1:9");
    let ran = ws.rep("run --no-auto how long is notes.txt");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ONE LINE.\n"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("traces are not collected").count(), 1, "{}", ran.stderr);
}

#[test]
fn an_endpoint_that_is_no_address_is_wrong_use() {
    let (mut ws, _model) = office();
    ws.set(ENDPOINT, "collector:4318");
    let ran = ws.rep("run --no-auto how long is notes.txt");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("`telemetry.otlp_endpoint`"), "{}", ran.stderr);
}
