//! `rep runs dead-letters`, on a journal that was filled through its own interface.

use std::sync::Arc;

use repertoire_journal::letter::{LetterPriority, LetterSource};
use repertoire_journal::{
    ClaimRules, Journal, NewLetter, NewRun, Payload, QueueWorker, RunId, RunStatus, Target,
};
use repertoire_text::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::workspace::Workspace;

const RUN: &str = "0199e5b2-0000-7000-8000-0000000000a1";

fn workspace() -> Workspace {
    let mut ws = Workspace::new();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws.set("USER", "ada");
    ws.set("TZ", "UTC");
    ws
}

fn event() -> serde_json::Value {
    json!({ "action": "opened", "issue": { "number": 7 } })
}

fn letter(source: LetterSource, title: &str, priority: LetterPriority) -> NewLetter {
    NewLetter {
        scope: "github.com/somebody/something".into(),
        source,
        title: title.into(),
        priority,
        class: "permanent".into(),
        reason: "the actor may not write".into(),
        question: "May octocat write here?".into(),
        run: None,
        data: match source {
            LetterSource::Event => {
                json!({ "event": event(), "event_name": "issues", "push": true })
            }
            LetterSource::Task => json!({ "task": { "id": "file-9ac1e02b", "title": title } }),
            LetterSource::Run => json!({}),
        },
        by: "rep github run".into(),
    }
}

fn with<T>(ws: &Workspace, work: impl AsyncFnOnce(Journal) -> T) -> T {
    let target = Target::File(ws.path("data/journal.sqlite"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(|| SystemClock.now_ms());
        let journal = Journal::open(&target, clock).await.unwrap();
        let out = work(journal.clone()).await;
        journal.close().await;
        out
    })
}

/// Buries it, and gives the end of its id.
fn buried(ws: &Workspace, new: NewLetter) -> String {
    with(ws, async |journal| journal.bury(new).await.unwrap().short().to_owned())
}

#[test]
fn an_empty_queue_is_good_news_and_makes_no_file() {
    let ws = workspace();
    let ran = ws.rep("runs dead-letters");
    assert_eq!(ran.stdout, "There are no dead letters: nothing waits for you.\n");
    assert_eq!(
        ws.json("dlq --json", "dlq.json"),
        json!({ "letters": [], "damaged": [], "next": null })
    );
    assert_eq!(ws.rep("runs dead-letters show abcd").code, 1);
    assert!(!ws.path("data/journal.sqlite").exists());
}

#[test]
fn the_most_urgent_is_listed_first_and_shown_with_its_question() {
    let ws = workspace();
    let low = buried(&ws, letter(LetterSource::Task, "write the docs", LetterPriority::Low));
    let high = buried(&ws, letter(LetterSource::Event, "issue 7", LetterPriority::High));
    buried(&ws, letter(LetterSource::Event, "issue 7", LetterPriority::High));
    let listed = ws.rep("runs dead-letters").stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[1].starts_with(&high) && lines[2].starts_with(&low), "{listed}");
    assert!(lines[1].contains("issue 7 (2 times): the actor may not write"), "{listed}");
    let shown = ws.rep(&format!("runs dead-letters show {high}")).stdout;
    for part in [
        "high, queued, event in github.com/somebody/something, came 2 times",
        "Why:      the actor may not write (permanent)",
        "Question: May octocat write here?",
        "rep github run: the same came again",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    ws.json(&format!("dlq show {high} --json"), "dlq-show.json");
    let here = ws.rep("runs dead-letters --here").stdout;
    assert!(here.starts_with("No dead letter is like that."), "{here}");
    let unknown = ws.rep("runs dead-letters show ffffffff");
    assert!(
        unknown.code == 1 && unknown.stderr.contains("rep runs dead-letters list --all"),
        "{unknown}"
    );
}

#[test]
fn an_event_is_written_to_a_file_and_only_one_person_tries_it() {
    let ws = workspace();
    let id = buried(&ws, letter(LetterSource::Event, "issue 7", LetterPriority::High));
    let done = ws.json(&format!("dlq retry {id} --json"), "dlq-retry.json");
    let file = done["file"].as_str().unwrap();
    let command = format!("rep github run --event {file} --event-name issues --letter {id}");
    assert!(done["command"].as_str().unwrap().ends_with(&command), "{done}");
    let name = file.rsplit('/').next().unwrap();
    let written: serde_json::Value =
        serde_json::from_str(&ws.text(&format!("data/letters/{name}"))).unwrap();
    assert_eq!(written, event(), "as GitHub tells it, and nothing around it");
    let again = ws.rep(&format!("runs dead-letters retry {id}"));
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("somebody is trying it again already (last, by ada"), "{again}");
    let forced = ws.rep(&format!("runs dead-letters retry {id} --again --output event.json"));
    assert_eq!(forced.code, 0, "{forced}");
    assert!(ws.path("project/event.json").exists());
    let ended = ws.rep_with(&["dlq", "resolve", &id, "--reason", "done by hand"]);
    assert_eq!(ended.stdout, format!("{id} is resolved: issue 7\n"));
    assert_eq!(ws.rep(&format!("runs dead-letters drop {id}")).code, 1);
    assert!(ws.rep("runs dead-letters").stdout.starts_with("There are no dead letters"));
    let all = ws.json("dlq export --all", "dlq.json");
    assert_eq!(
        (&all["letters"][0]["status"], &all["letters"][0]["attempts"]),
        (&"resolved".into(), &2.into())
    );
}

#[test]
fn a_task_is_left_to_the_next_run_and_what_was_dropped_can_be_put_back() {
    let ws = workspace();
    let id = buried(&ws, letter(LetterSource::Task, "write the docs", LetterPriority::Low));
    let done = ws.json(&format!("dlq retry {id} --json"), "dlq-retry.json");
    assert_eq!((&done["letter"]["status"], &done["file"]), (&"retrying".into(), &json!(null)));
    assert_eq!(ws.rep(&format!("runs dead-letters drop {id}")).code, 0);
    let refused = ws.rep(&format!("runs dead-letters retry {id}"));
    assert!(refused.code == 1 && refused.stderr.contains("put it back"), "{refused}");
    assert!(
        ws.rep(&format!("runs dead-letters show {id}"))
            .stdout
            .contains(&format!("rep runs dead-letters requeue {id}"))
    );
    let back = ws.rep(&format!("runs dead-letters requeue {id}"));
    assert_eq!(back.stdout, format!("{id} is queued: write the docs\n"));
    let again = ws.rep(&format!("runs dead-letters retry {id}"));
    assert!(again.stdout.contains("works through tasks picks it again"), "{again}");
}

#[test]
fn a_letter_that_holds_no_event_says_so_and_stays_in_the_queue() {
    let ws = workspace();
    let new = letter(LetterSource::Event, "issue 7", LetterPriority::High);
    let id = buried(&ws, NewLetter { data: json!({ "event": "text" }), ..new });
    let refused = ws.rep(&format!("runs dead-letters retry {id}"));
    assert!(refused.code == 1 && refused.stderr.contains("does not hold an event"), "{refused}");
    let letter = ws.json(&format!("dlq show {id} --json"), "dlq-show.json");
    assert_eq!(letter["status"], "queued");
}

/// A run that failed, with the letter that speaks of it.
fn failed_run(ws: &Workspace) -> String {
    with(ws, async |journal| {
        let new = NewRun {
            id: RunId::known(RUN),
            kind: "plan".into(),
            name: "r".into(),
            workspace: "/r".into(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: serde_json::Value::Null,
        };
        journal.create(new).await.unwrap();
        let worker = QueueWorker {
            name: "w".into(),
            labels: Default::default(),
            kinds: ["plan".to_owned()].into(),
            lease: std::time::Duration::from_secs(60),
        };
        let lease = journal.claim(&worker, &ClaimRules::default()).await.unwrap().unwrap().lease;
        let failed = Payload::RunFailed { reason: "checks:red".into() };
        journal.append(&lease, vec![failed]).await.unwrap();
        let new = letter(LetterSource::Run, "plan r", LetterPriority::Medium);
        let new = NewLetter { run: Some(RunId::known(RUN)), ..new };
        journal.bury(new).await.unwrap().short().to_owned()
    })
}

#[test]
fn a_run_goes_back_to_the_queue_and_one_that_cannot_leaves_the_letter_where_it_was() {
    let ws = workspace();
    let id = failed_run(&ws);
    let done = ws.rep(&format!("runs dead-letters retry {id}"));
    assert_eq!(done.code, 0, "{done}");
    assert!(
        done.stdout.contains("The run is back in the queue.\nrep runs resume 000000a1 --here"),
        "{done}"
    );
    let status = with(&ws, async |journal| journal.find_run(RUN).await.unwrap().status);
    assert_eq!(status, RunStatus::Queued);
    // It is in the queue already, so it cannot be put there again.
    let again = ws.rep(&format!("runs dead-letters retry {id} --again"));
    assert_eq!(again.code, 1, "{again}");
    let letter = ws.json(&format!("dlq show {id} --json"), "dlq-show.json");
    assert_eq!(letter["status"], "queued");
}
