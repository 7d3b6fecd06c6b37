//! Plans whose red checks are mended: by an agent the first time, by what was learnt the second time, and by what was learnt no
//! longer when it does not help. What counts is in the journal.

use repertoire_drive::checks::Check;
use repertoire_drive::plan::Improve;
use repertoire_journal::run::{Limits, RunStatus};
use repertoire_journal::{FailureFilter, Payload};

use crate::plan::{APPROVES, Bench};

const PLAN: &str = "# Two\n\n- [ ] Write alpha\n- [ ] Write beta\n";

/// Breaks the settings with every task. Told of it, mends them.
fn agent(beta: &str) -> String {
    format!(
        "\
- when: \"# Selected task\\n\\nWrite alpha\"
  unless: You review
  write: alpha.txt
  content: \"alpha\\n\"
- when: \"# Selected task\\n\\nWrite alpha\"
  unless: Notes from the last step
  write: settings.txt
  content: \"value = BAD\\n\"
- when: Notes from the last step
  unless: You review
  write: settings.txt
  content: \"value = GOOD\\n\"
- when: \"# Selected task\\n\\nWrite beta\"
  unless: Notes from the last step
  write: beta.txt
  content: \"{beta}\\n\"
- when: \"# Selected task\\n\\nWrite beta\"
  unless: Notes from the last step
  write: settings.txt
  content: \"value = BAD\\n\"
- when: \"# Selected task\\n\\nWrite beta\"
  unless: You review
  write: done.txt
  content: \"done\\n\"
{APPROVES}"
    )
}

async fn bench(beta: &str) -> Bench {
    let mut bench = Bench::new(PLAN, &agent(beta)).await;
    bench.repo.file("settings.txt", "value = GOOD\n");
    bench.repo.file("beta.txt", "nothing\n");
    bench.repo.commit("settings that are good");
    let check =
        "if grep -q BAD settings.txt beta.txt; then echo 'error: a setting is bad'; exit 1; fi";
    bench.request.checks = vec![Check::new("settings", check)];
    bench.request.review = false;
    bench.request.bounds.attempts_max = 3;
    bench.request.improve = Some(Improve { scope: "octo/repo".to_owned(), ..Improve::default() });
    bench
}

async fn kinds(bench: &Bench, id: &repertoire_journal::RunId, task: &str) -> Vec<String> {
    let steps = bench.journal.steps(id).await.unwrap();
    let about = |step: &repertoire_journal::Step| {
        step.task.as_ref().is_some_and(|found| found.label == task)
    };
    let word =
        |step: &repertoire_journal::Step| format!("{}:{:?}", step.kind, step.outcome.unwrap());
    steps.iter().filter(|step| about(step)).map(word).collect()
}

/// What was tried, in the order of the journal: the outcome, by whom it was learnt, and what was seen.
async fn tried(bench: &Bench, id: &repertoire_journal::RunId) -> Vec<String> {
    let events = bench.journal.events(id, 0, 0).await.unwrap();
    let tried = events.into_iter().filter_map(|event| match event.payload {
        Payload::FixTried { outcome, .. } => Some(format!("{outcome:?}")),
        _ => None,
    });
    tried.collect()
}

async fn confidence(bench: &Bench) -> f64 {
    let filter = FailureFilter { scope: "octo/repo".to_owned(), ..FailureFilter::default() };
    let failures = bench.journal.failures(&filter).await.unwrap().items;
    let fixes = bench.journal.fixes("octo/repo", &failures[0].signature).await.unwrap();
    fixes[0].confidence
}

#[tokio::test]
async fn a_failure_that_an_agent_mended_is_mended_by_what_was_learnt_when_it_comes_again() {
    let bench = bench("beta").await;
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    assert_eq!(
        kinds(&bench, &id, "Write alpha").await,
        [
            "implementation:Ok",
            "verification:Failed",
            "recovery:SentBack",
            "implementation:Ok",
            "verification:Ok"
        ],
        "the first time an agent has to do it"
    );
    assert_eq!(
        kinds(&bench, &id, "Write beta").await,
        ["implementation:Ok", "verification:Failed", "recovery:Ok", "verification:Ok"],
        "the second time nobody is asked"
    );
    assert_eq!(tried(&bench, &id).await, ["Worked", "Worked"]);
    assert!(confidence(&bench).await > 0.7, "{}", confidence(&bench).await);
    assert!(bench.journal.replay(&id).await.unwrap().differences.is_empty());
}

#[tokio::test]
async fn what_was_learnt_loses_confidence_when_it_does_not_help_and_leaves_nothing_behind() {
    let bench = bench("BAD beta").await;
    let id = bench.create(Limits::default()).await;
    bench.drive(&id).await;
    let beta = kinds(&bench, &id, "Write beta").await;
    assert_eq!(beta[..3], ["implementation:Ok", "verification:Failed", "recovery:SentBack"]);
    assert_eq!(tried(&bench, &id).await[..2], ["Worked", "Failed"]);
    let left = confidence(&bench).await;
    assert!(left < 0.5, "{left}: it was 0.65");
    let steps = bench.journal.steps(&id).await.unwrap();
    let recovery = steps.iter().rev().find(|step| step.kind == "recovery").unwrap();
    assert_eq!(recovery.head_before, recovery.head_after, "what did not help was taken back");
}
