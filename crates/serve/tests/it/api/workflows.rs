//! Workflows, their runs and gates, and what people decide; plans.

use std::collections::BTreeMap;

use repertoire_flow::driver::operations::{
    GateReviewRecord, StepResultReport, WorkflowStartRequest,
};
use repertoire_flow::engine::{ItemRecord, StepReport};
use repertoire_flow::state::ItemStatus;
use repertoire_flow::workflow::ItemSeverity;
use repertoire_plan::limits::PLAN_BYTES_MAX;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::serve_state::{Field, Served, each};

const WORKFLOW: &str = "\
parameters: { subject: { required: true, description: What it is about } }
steps:
  - { id: draft, title: Draft, actions: ['Write about {{ subject }}.'], next: look }
  - { id: look, title: Look at it, actions: [Look at it.], next: gate }
  - id: gate
    title: Quality
    decide:
      gate: { name: Quality, reviews: [look], schedule: [MUST], banner: Look afresh., stop: Stop., reverify: fresh }
    next: { ok: end, fail: draft }
";

fn field() -> Field {
    let field = Field::with_skills();
    let text = "---\nname: writing\ndescription: Writes things. Use when something is to be written.\n---\nFollow the workflow.\n";
    field.write("project/.agents/skills/writing/SKILL.md", text);
    field.write("project/.agents/skills/writing/workflow.yaml", WORKFLOW);
    field
}

/// A run that has come to its gate, with one item that failed.
async fn at_the_gate(served: &Served) -> String {
    let operations = served.serve_state.workflow_operations().await.unwrap();
    let cancel = CancellationToken::new();
    let start = WorkflowStartRequest {
        workflow: "writing".into(),
        parameters: BTreeMap::from([("subject".into(), "cheese".into())]),
        id: Some("run-1".into()),
        parent: None,
    };
    if let Err(error) = operations.start(start, &cancel).await {
        panic!("{error}");
    }
    let done = || Some(StepResultReport::Done(StepReport::default()));
    assert!(operations.advance_run("run-1", Some(1), done(), &cancel).await.is_ok());
    let item = ItemRecord {
        id: "smell".into(),
        scope: Some("the draft".into()),
        check: Some("It smells of cheese".into()),
        severity: Some(ItemSeverity::Must),
        status: Some(ItemStatus::Fail),
        finding: Some("It smells of nothing".into()),
    };
    let record = GateReviewRecord { items: vec![item], ..GateReviewRecord::default() };
    let recorded = operations.record_review("run-1", record, &cancel, |_, _| {}).await;
    recorded.unwrap_or_else(|error| panic!("{error}"));
    "run-1".into()
}

#[tokio::test]
async fn workflows_are_listed_shown_and_drawn() {
    let served = field().serve().await;
    let page = served.get("/api/v1/workflows").await.ok();
    let found = &page["items"][0];
    assert_eq!((&found["name"], &found["steps"]), (&json!("writing"), &json!(3)), "{page}");
    assert_eq!((&found["can_run"], &found["gates"]), (&json!(true), &json!(1)), "{page}");
    let one = served.get("/api/v1/workflows/writing").await.ok();
    assert_eq!(one["workflow"]["steps"][0]["id"], "draft", "{one}");
    assert_eq!(one["diagnostics"], json!([]), "{one}");
    let drawn = served.get("/api/v1/workflows/writing/graph.svg").await;
    assert_eq!((drawn.status, drawn.kind.as_str()), (200, "image/svg+xml"));
    assert!(drawn.text.starts_with("<svg ") && !drawn.text.contains("class=\"lit\""));
    served.get("/api/v1/workflows/orders").await.refused(404);
    served.get("/api/v1/workflows/nobody/graph.svg").await.refused(404);
}

#[tokio::test]
async fn a_run_shows_its_step_and_what_its_gate_would_say() {
    let served = field().serve().await;
    let id = at_the_gate(&served).await;
    let page = served.get("/api/v1/workflow-runs?state=active&workflow=writing").await.ok();
    assert_eq!(each(&page, "run"), [id.as_str()]);
    let run = served.get("/api/v1/workflow-runs/run").await.ok();
    assert_eq!((&run["run"]["step"], &run["view"]["id"]), (&json!("look"), &json!("look")));
    let gate = &run["gate"];
    assert_eq!((&gate["verdict"], &gate["items"][0]["id"]), (&json!("fail"), &json!("smell")));
    let lit = served.get("/api/v1/workflows/writing/graph.svg?run=run-1").await;
    assert!(lit.text.contains("class=\"lit\""), "{}", lit.text);
    served.get("/api/v1/workflows/writing/graph.svg?run=none").await.refused(404);
    let other = served.get("/api/v1/workflows/orders/graph.svg?run=run-1").await.refused(409);
    assert!(other["detail"].as_str().unwrap().contains("one of `writing`"), "{other}");
    served.get("/api/v1/workflow-runs/none").await.refused(404);
    served.get("/api/v1/workflow-runs/..%2F..%2Fetc").await.refused(404);
}

#[tokio::test]
async fn a_person_decides_and_what_makes_no_sense_is_refused() {
    let served = field().serve().await;
    let id = at_the_gate(&served).await;
    let choice = format!("/api/v1/workflow-runs/{id}/choice");
    let early = served.post(&choice, &json!({ "choice": "continue" })).await;
    early.refused(409);
    let operations = served.serve_state.workflow_operations().await.unwrap();
    let cancel = CancellationToken::new();
    // Past the review the gate decides, and it may fail only once.
    for turn in 2..=3 {
        let said = Some(StepResultReport::Done(StepReport::default()));
        assert!(
            operations.advance_run(&id, Some(turn), said, &cancel).await.is_ok(),
            "turn {turn}"
        );
    }
    let run = served.get(&format!("/api/v1/workflow-runs/{id}")).await.ok();
    assert_eq!(run["run"]["state"], "waiting", "{run}");
    assert_eq!(run["choices"], json!(["continue", "must-only", "skip", "abort"]), "{run}");
    served.post(&choice, &json!({ "choice": "dance" })).await.refused(409);
    served.post(&choice, &json!({ "choose": "skip" })).await.refused(400);
    let answers = format!("/api/v1/workflow-runs/{id}/answers");
    served.post(&answers, &json!({ "answers": { "a": "b" } })).await.refused(409);
    let decided = json!({ "choice": "abort", "note": "no cheese" });
    let run = served.post(&choice, &decided).await.ok();
    assert_eq!(run["run"]["state"], "aborted", "{run}");
    assert_eq!(run["decisions"][0]["note"], "no cheese", "{run}");
}

#[tokio::test]
async fn plans_show_their_tasks_and_no_other_file_is_read() {
    let field = field();
    field.write("project/PLAN.md", "# Cheese\n\n- [x] Buy milk\n- [ ] Wait @nobody\n");
    field.write("project/specs/one/tasks.md", "# One\n\n- [ ] T001 Begin\n");
    field.write("secret.md", "- [ ] Hide\n");
    let served = field.serve().await;
    let page = served.get("/api/v1/plans").await.ok();
    assert_eq!(each(&page, "plan"), ["PLAN.md", "specs/one/tasks.md"], "{page}");
    assert_eq!(page["items"][0]["tasks"][1]["text"].as_str().unwrap()[..4], *"Wait", "{page}");
    assert!(!page["items"][0]["diagnostics"].as_array().unwrap().is_empty(), "{page}");
    let one = served.get("/api/v1/plans?path=specs/one/tasks.md").await.ok();
    assert_eq!(one["total"], 1);
    for wrong in ["../secret.md", "/etc/passwd", "none.md", "specs", ""] {
        served.get(&format!("/api/v1/plans?path={wrong}")).await.refused(404);
    }
}

#[tokio::test]
async fn a_plan_that_cannot_be_read_hides_no_other() {
    let field = field();
    field.write("project/PLAN.md", &"- [ ] Wait\n".repeat(PLAN_BYTES_MAX / 10));
    field.write("project/specs/one/tasks.md", "# One\n\n- [ ] T001 Begin\n");
    let served = field.serve().await;
    let page = served.get("/api/v1/plans").await.ok();
    assert_eq!(each(&page, "plan"), ["PLAN.md", "specs/one/tasks.md"], "{page}");
    let items = &page["items"];
    assert!(items[0]["broken"].is_string() && items[1]["broken"].is_null(), "{page}");
    assert_eq!((&items[0]["tasks"], &items[0]["errors"]), (&json!([]), &json!(0)));
    served.get("/api/v1/plans?path=PLAN.md").await.refused(409);
}

#[tokio::test]
async fn a_house_without_agents_says_that_it_makes_no_prompts() {
    let served = field().serve().await;
    served.post("/api/v1/prompt", &json!({ "task": "x" })).await.refused(409);
}
