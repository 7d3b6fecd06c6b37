//! Runs, as the journal has them, and what they are told.

use repertoire_journal::Payload;
use repertoire_journal::event::{TaskRef, TaskSeen};
use serde_json::json;

use crate::serve_state::{Field, NOW_MS, Served, Work, each};

/// A daemon with three runs: one completed, one failed, one under way with a plan and two steps.
async fn served() -> (Served, Work) {
    let served = Field::with_skills().serve().await;
    let journal = served.serve_state.journal().await.unwrap().clone();
    let project = served.field.project();
    let done = Work::begin(&journal, "old", project.as_str()).await;
    done.add([Payload::RunCompleted { summary: "it is".into(), head: None }]).await;
    let bad = Work::begin(&journal, "bad", "/elsewhere").await;
    bad.add([Payload::RunFailed { reason: "check:tests".into() }]).await;
    let work = Work::begin(&journal, "tidy up", project.as_str()).await;
    let task = |id: &str, mark: &str| TaskSeen {
        task: TaskRef { id: id.into(), label: format!("Do {id}") },
        mark: mark.into(),
    };
    let tasks = vec![task("a", "implemented"), task("b", "open")];
    work.add([Payload::PlanRead { digest: "d".into(), tasks }]).await;
    work.step(1, 250_000).await;
    work.step(2, 500_000).await;
    (served, work)
}

#[tokio::test]
async fn runs_are_listed_filtered_and_paged() {
    let (served, _) = served().await;
    let page = served.get("/api/v1/runs").await.ok();
    assert_eq!(each(&page, "name"), ["tidy up", "bad", "old"]);
    assert_eq!(page["items"][0]["tasks"], json!({ "done": 1, "all": 2 }));
    let page = served.get("/api/v1/runs?status=failed").await.ok();
    assert_eq!(each(&page, "name"), ["bad"]);
    let page = served.get("/api/v1/runs?here=true&kind=plan").await.ok();
    assert_eq!(each(&page, "name"), ["tidy up", "old"]);
    let page = served.get("/api/v1/runs?limit=2").await.ok();
    let next = page["next"].as_str().unwrap();
    let page = served.get(&format!("/api/v1/runs?limit=2&cursor={next}")).await.ok();
    assert_eq!((each(&page, "name"), page.get("next")), (vec!["old"], None));
}

#[tokio::test]
async fn one_run_is_told_with_its_plan_steps_and_events() {
    let (served, work) = served().await;
    let short = work.run.short();
    let run = served.get(&format!("/api/v1/runs/{short}")).await.ok();
    assert_eq!(
        (&run["run"]["name"], &run["tasks"][1]["mark"]),
        (&json!("tidy up"), &json!("open"))
    );
    let steps = served.get("/api/v1/runs/last/steps?limit=1").await.ok();
    assert_eq!((&steps["items"][0]["number"], &steps["next"]), (&json!(1), &json!("1")));
    let events = served.get("/api/v1/runs/last/events?limit=3").await.ok();
    assert_eq!(each(&events, "type"), ["RUN_CREATED", "LEASE_TAKEN", "RUN_STARTED"]);
    assert_eq!(events["next"], "3");
    let events = served.get("/api/v1/runs/last/events?cursor=3").await.ok();
    assert_eq!(events["items"][0]["seq"], 4);
    assert!(events.get("next").is_none());
    let plan = served.get("/api/v1/runs/last/plan").await.ok();
    assert_eq!(plan["done"], json!({ "done": 1, "all": 2 }));
    served.get("/api/v1/runs/nobody").await.refused(404);
    served.get("/api/v1/runs/%00/steps").await.refused(404);
}

#[tokio::test]
async fn what_agents_said_is_read_from_the_logs_of_the_steps() {
    let (served, work) = served().await;
    let said = |seq: u64, kind: serde_json::Value| {
        let mut event =
            json!({ "v": 1, "seq": seq, "at_ms": 5, "run": "r", "agent": "default", "depth": 0 });
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        format!("{event}\n")
    };
    let usage = json!({ "input": 0, "output": 0 });
    let answer = json!({ "type": "answer", "text": "All done.", "stop": "end", "usage": usage });
    let log = [
        said(1, json!({ "type": "text", "text": "I lo" })),
        said(
            2,
            json!({ "type": "tool_call", "id": "1", "tool": "read", "subject": "a.txt", "arguments": {} }),
        ),
        "half a line {\n".to_owned(),
        said(3, answer),
    ];
    let folder = format!("data/runs/{}", work.run);
    served.field.write(&format!("{folder}/001-implementation.jsonl"), &log.concat());
    served.field.write(&format!("{folder}/002-review.jsonl"), "");
    let page = served.get("/api/v1/runs/last/output").await.ok();
    assert_eq!(each(&page, "title"), ["Step 1: implementation", "Step 2: review"]);
    let text = page["items"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("I lo\n\n[read] a.txt\n"), "{text}");
    let page = served.get("/api/v1/runs/last/output?step=2").await.ok();
    assert_eq!((page["total"].as_u64(), &page["items"][0]["text"]), (Some(1), &json!("")));
    let file = served.get("/api/v1/runs/last/file?name=002-review.jsonl").await.ok();
    assert_eq!(file["content"], "");
    for wrong in ["../../journal.db", "/etc/passwd", "nothing"] {
        served.get(&format!("/api/v1/runs/last/file?name={wrong}")).await.refused(404);
    }
}

#[tokio::test]
async fn runs_are_told_what_to_do_and_refuse_with_a_reason() {
    let (served, _) = served().await;
    let empty = json!({});
    let run = served.post("/api/v1/runs/last/pause", &empty).await.ok();
    assert_eq!(run["wish"], "pause");
    let problem = served.post("/api/v1/runs/last/pause", &empty).await.refused(409);
    assert!(problem["detail"].as_str().unwrap().contains("already asked to pause"), "{problem}");
    let steer = json!({ "note": "use the old parser" });
    served.post("/api/v1/runs/last/steer", &steer).await.ok();
    let plan = served.get("/api/v1/runs/last/plan").await.ok();
    assert_eq!(plan["steering"], json!(["use the old parser"]));
    for blank in ["", " ", "\u{a0}\n", "\u{1c}"] {
        served.post("/api/v1/runs/last/steer", &json!({ "note": blank })).await.refused(400);
    }
    served.post("/api/v1/runs/last/steer", &json!({ "note": "…и?" })).await.ok();
    let events = served.get("/api/v1/runs/last/events?limit=500").await;
    assert!(events.text.contains("\"by\":\"ada over HTTP\""), "{}", events.text);
    served.post("/api/v1/runs/bad/retry", &json!({ "tasks": ["x"] })).await.refused(409);
    let run = served.post("/api/v1/runs/bad/resume", &json!({ "max_cost_usd": 2.5 })).await.ok();
    assert_eq!((&run["status"], &run["limits"]["cost_usd"]), (&json!("queued"), &json!(2.5)));
    served.post("/api/v1/runs/old/cancel", &empty).await.refused(409);
    served.post("/api/v1/runs/old/merge", &empty).await.refused(409);
    served.post("/api/v1/runs/nobody/cancel", &empty).await.refused(404);
    let problem = served.get("/api/v1/runs/old/diff").await.refused(409);
    assert!(problem["detail"].as_str().unwrap().contains("changed nothing yet"), "{problem}");
    let limited = served.post("/api/v1/runs/last/resume", &json!({ "max_tokens": 1 })).await;
    assert!(limited.refused(409)["detail"].as_str().unwrap().contains("used its tokens"));
}

#[tokio::test]
async fn costs_are_told_by_the_time_in_which_steps_ended() {
    let (served, _) = served().await;
    let costs = served.get("/api/v1/costs").await.ok();
    assert_eq!((&costs["bucket"], &costs["total"]), (&json!("day"), &json!(0.75)));
    let point = &costs["points"][0];
    assert_eq!((&point["steps"], &point["tokens"]), (&json!(2), &json!(20)));
    assert_eq!(point["label"], "11-14", "{point} at {NOW_MS}");
    let costs = served.get("/api/v1/costs?bucket=hour&points=1").await.ok();
    assert_eq!((costs["points"].as_array().unwrap().len(), &costs["total"]), (1, &json!(0.75)));
    served.get("/api/v1/costs?points=0").await.refused(400);
}
