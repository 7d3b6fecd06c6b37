//! Whole conversations: a workflow from its start to its end, and the SDK's own client.

use repertoire_serve::mcp;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams, ResourceContents};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::wire::Wire;
use crate::serve_state::Field;

const WORKFLOW: &str = "\
parameters:
  topic: { required: true, description: What it is about. }
checks:
  looked: { description: Somebody has looked. }
  notes: { file: notes.md, description: The notes are there. }
steps:
  - id: work
    title: Work
    actions: ['About {{ topic }}.']
    output: What was done.
    next: review
  - id: review
    title: Review
    actions: [Look.]
    next: gate
  - id: gate
    title: Gate
    decide:
      gate:
        name: The review
        reviews: [review]
        checks: [looked, notes]
        schedule: [COULD, MUST]
        banner: Look afresh.
        stop: Do not go on.
        reverify: fresh
    next: { ok: end, fail: work }
";

#[tokio::test]
async fn an_agent_goes_through_a_workflow_without_a_command_line() {
    let field = Field::with_skills();
    field.write(
        "project/.agents/skills/tidy/SKILL.md",
        "---\nname: tidy\ndescription: Tidies up. Use when it is untidy.\n---\nTidy.\n",
    );
    field.write("project/.agents/skills/tidy/workflow.yaml", WORKFLOW);
    let mut wire = Wire::to(field.serve_state().await).await;
    let complaint = wire.complaint("workflow_start", json!({ "workflow": "tidy" })).await;
    assert!(complaint.contains("topic"), "{complaint}");
    let start = json!({ "workflow": "tidy", "parameters": { "topic": "the attic" } });
    let (text, at) = wire.call("workflow_start", start).await;
    assert!(text.contains("About the attic."), "{text}");
    let run = at["run"].as_str().unwrap().to_owned();
    let report = json!({ "run": run, "at": at["step"]["turn"], "output": "All done." });
    let (_, at) = wire.call("workflow_step", report.clone()).await;
    assert_eq!(at["step"]["id"], "review");
    // The same report twice counts once.
    let (_, again) = wire.call("workflow_step", report).await;
    assert_eq!(again["step"]["turn"], at["step"]["turn"]);
    let record = json!({
        "run": run,
        "items": [{ "id": "C1", "check": "It is tidy.", "severity": "MUST", "status": "PASS", "finding": "Seen." }],
        "checks": ["looked=PASS"],
    });
    wire.call("workflow_record", record).await;
    let (_, at) = wire.call("workflow_step", json!({ "run": run, "at": at["step"]["turn"] })).await;
    assert_eq!(at["step"]["id"], "gate", "{at}");
    // Checks that the engine knows are made when the gate is left, and nobody has to ask for them.
    field.write("project/notes.md", "Tidy.\n");
    let (_, at) = wire.call("workflow_step", json!({ "run": run, "at": at["step"]["turn"] })).await;
    assert_eq!(at["step"]["status"], "done", "{at}");
    let (_, at) = wire.call("workflow_step", json!({ "run": run })).await;
    assert_eq!(at["step"]["status"], "done", "a finished run says so");
}

#[tokio::test]
async fn the_client_of_the_sdk_understands_everything() {
    let field = Field::with_skills();
    let serve_state = field.serve_state().await;
    let (mine, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let server =
        tokio::spawn(mcp::serve_stdio(serve_state, None, input, output, CancellationToken::new()));
    let client = ().serve(mine).await.unwrap();
    assert!(client.list_all_tools().await.unwrap().iter().any(|tool| tool.name == "skill"));
    assert_eq!(client.list_all_prompts().await.unwrap().len(), 2);
    let resources = client.list_all_resources().await.unwrap();
    assert_eq!(resources[0].uri, "skill://invoices/SKILL.md");
    let read = ReadResourceRequestParams::new("skill://invoices/references/rules.md");
    let read = client.read_resource(read).await.unwrap();
    assert!(matches!(
        &read.contents[0],
        ResourceContents::TextResourceContents { text, .. } if text == "Amounts must agree.\n"
    ));
    let arguments = json!({ "name": "orders" }).as_object().cloned().unwrap();
    let call = CallToolRequestParams::new("skill").with_arguments(arguments);
    let result = client.call_tool(call).await.unwrap();
    assert_eq!(result.structured_content.unwrap()["name"], "orders");
    client.cancel().await.unwrap();
    server.await.unwrap().unwrap();
}
