//! Plans whose red checks are mended: by an agent the first time, by what was learnt the second time, and by what was learnt no
//! longer when it does not help. What counts is in the journal.

use repertoire_checks::declared::CheckDefinition;
use repertoire_journal::letter::LetterSource;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::run::{Limits, RunStatus};
use repertoire_journal::{
    Command, DeadLetter, FailureFilter, FailureFix, FixRemedy, KnownFix, LetterFilter,
    LetterStatus, MemoryLesson, Payload,
};
use repertoire_plan::RecoverySettings;

use crate::plan::{APPROVES, Bench};
use crate::repo::write;

const PLAN: &str = "# Two\n\n- [ ] Write alpha\n- [ ] Write beta\n";

/// Breaks the settings with every task. Told of it, mends them.
fn agent(beta: &str) -> String {
    format!(
        "\
{APPROVES}- when: \"# Selected task\\n\\nWrite alpha\"
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
"
    )
}

async fn bench(beta: &str) -> Bench {
    bench_of(PLAN, &agent(beta)).await
}

async fn bench_of(plan: &str, agent: &str) -> Bench {
    let mut bench = Bench::new(plan, agent).await;
    bench.repo.file("settings.txt", "value = GOOD\n");
    bench.repo.file("beta.txt", "nothing\n");
    bench.repo.commit("settings that are good");
    let check =
        "if grep -q BAD settings.txt beta.txt; then echo 'error: a setting is bad'; exit 1; fi";
    bench.request.checks = vec![CheckDefinition::new("settings", check)];
    bench.request.review = false;
    bench.request.bounds.attempts_max = 3;
    bench.request.improve =
        Some(RecoverySettings { scope: "octo/repo".to_owned(), ..RecoverySettings::default() });
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

/// What is known to help against the only failure.
async fn known(bench: &Bench) -> Vec<KnownFix> {
    let filter = FailureFilter { scope: "octo/repo".to_owned(), ..FailureFilter::default() };
    let failures = bench.journal.list_failures(&filter).await.unwrap().items;
    bench.journal.list_fixes("octo/repo", &failures[0].signature).await.unwrap()
}

async fn confidence(bench: &Bench) -> f64 {
    known(bench).await[0].confidence
}

const ALPHA: &str = "# One\n\n- [ ] Write alpha\n";

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
    assert!(bench.journal.replay_run(&id).await.unwrap().differences.is_empty());
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

#[tokio::test]
async fn one_success_is_learnt_once_and_only_when_the_review_has_approved_it() {
    let mut bench = bench_of(ALPHA, &agent("beta")).await;
    bench.request.review = true;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    assert_eq!(tried(&bench, &run.id).await, ["Worked"]);
    let fixes = known(&bench).await;
    assert_eq!((fixes.len(), fixes[0].worked), (1, 1));
    assert_eq!((fixes[0].confidence * 100.0).round() as u32, 65);
    let patch = fixes[0].fix.remedy.to_text();
    assert!(patch.contains("settings.txt") && !patch.contains("PLAN.md"), "{patch}");
    // The last checks of the task, after the review, are what it was learnt from.
    let payloads = bench.payloads(&run).await;
    let at = |wanted: &dyn Fn(&Payload) -> bool| payloads.iter().position(wanted).unwrap();
    let learnt = at(&|payload| matches!(payload, Payload::FixTried { .. }));
    let reviewed =
        at(&|payload| matches!(payload, Payload::StepStarted { kind, .. } if kind == "review"));
    assert!(reviewed < learnt, "{reviewed} {learnt}");
}

#[tokio::test]
async fn a_change_that_a_reviewer_sends_back_teaches_nothing() {
    let agent = "\
- when: You review
  unless: rework.txt
  finish: {structured: {verdict: send_back, summary: Not so., findings: [], learning: null}}
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- write: alpha.txt
  content: \"alpha\\n\"
- unless: Notes from the last step
  write: settings.txt
  content: \"value = BAD\\n\"
- when: Notes from the last step
  write: settings.txt
  content: \"value = GOOD\\n\"
- when: Not so.
  write: rework.txt
  content: \"rework\\n\"
- text: Done.
";
    let mut bench = bench_of(ALPHA, agent).await;
    bench.request.review = true;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let steps = bench.steps(&run).await;
    assert!(steps.contains(&"review Write alpha sent back".to_owned()), "{steps:?}");
    assert_eq!(tried(&bench, &run.id).await, [""; 0]);
}

#[tokio::test]
async fn a_change_too_large_to_remember_is_no_obstacle() {
    let long = format!("value = GOOD{}\\n", "x".repeat(40_000));
    let agent = agent("beta").replace("value = GOOD\\n", &long);
    let bench = bench_of(ALPHA, &agent).await;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    assert_eq!(tried(&bench, &run.id).await, [""; 0]);
}

#[tokio::test]
async fn a_memory_that_takes_nothing_is_no_obstacle() {
    let mut bench = bench_of(ALPHA, &agent("beta")).await;
    bench.request.improve =
        Some(RecoverySettings { scope: "x".repeat(5_000), ..RecoverySettings::default() });
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let payloads = bench.payloads(&run).await;
    let is_note = |payload: &Payload| matches!(payload, Payload::Note { name, .. } if name == "not_remembered");
    assert!(payloads.iter().any(is_note));
}

async fn letters(bench: &Bench) -> Vec<DeadLetter> {
    bench.journal.list_letters(&LetterFilter::default()).await.unwrap().items
}

#[tokio::test]
async fn a_run_that_is_given_up_is_a_dead_letter_until_it_is_done_after_all() {
    let breaks = "- write: settings.txt\n  content: \"value = BAD\\n\"\n- text: Done.\n";
    let mut bench = bench_of(ALPHA, breaks).await;
    bench.request.bounds.attempts_max = 1;
    let improve = RecoverySettings {
        scope: "octo/repo".to_owned(),
        letters: true,
        ..RecoverySettings::default()
    };
    bench.request.improve = Some(improve);
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Waiting, "{run:?}");
    let found = letters(&bench).await;
    let [letter] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((letter.source, letter.run.as_ref()), (LetterSource::Run, Some(&run.id)));
    assert_eq!((letter.class.as_str(), letter.scope.as_str()), ("substantive", "octo/repo"));
    assert_eq!(letter.question, "What should be done differently about \"Write alpha\"?");
    assert!(letter.reason.contains("is failed (an agent worked on it once)"), "{}", letter.reason);
    // The same run that is given up again is the same letter.
    let retry = Command::Retry { by: "ada".into(), tasks: Vec::new() };
    bench.journal.order(&run.id, retry.clone()).await.unwrap();
    assert_eq!(bench.drive(&run.id).await.status, RunStatus::Waiting);
    let found = letters(&bench).await;
    assert_eq!((found.len(), found[0].times), (1, 2));
    // Now the agent knows how, and somebody tries the letter again.
    let mends = "- write: settings.txt\n  content: \"value = FINE\\n\"\n- text: Done.\n";
    write(&bench.repo.base.join("agent.yaml"), mends);
    let id = &found[0].id;
    bench.journal.set_letter_status(id, LetterStatus::Retrying, "ada", "").await.unwrap();
    bench.journal.order(&run.id, retry).await.unwrap();
    assert_eq!(bench.drive(&run.id).await.status, RunStatus::Completed);
    let found = letters(&bench).await;
    assert_eq!((found.len(), found[0].status), (1, LetterStatus::Resolved));
}

#[tokio::test]
async fn what_was_verified_is_remembered_although_somebody_cancels_the_run_just_then() {
    let agent = "\
- write: settings.txt
  content: \"value = BAD\\n\"
- write: beta.txt
  content: \"WRONG\\n\"
- text: Done.
";
    let mut bench = bench_of(ALPHA, agent).await;
    bench.repo.file(".gitignore", ".probe\n");
    bench.repo.commit("what is ignored");
    // The second takes for ever once what it complains of is gone.
    let slow = "if grep -q WRONG beta.txt; then echo 'error: beta is wrong'; exit 1; fi; \
        if grep -q MENDED beta.txt; then touch .probe; sleep 60; fi";
    bench.request.checks.push(CheckDefinition::new("beta", slow));
    bench.request.bounds.attempts_max = 1;
    assert_eq!(bench.run().await.status, RunStatus::Waiting);
    let scope = "octo/repo".to_owned();
    let filter = FailureFilter { scope: scope.clone(), ..FailureFilter::default() };
    for failure in bench.journal.list_failures(&filter).await.unwrap().items {
        let (path, old, new) = match failure.example.contains("beta") {
            true => ("beta.txt", "WRONG", "MENDED"),
            false => ("settings.txt", "value = BAD", "value = GOOD"),
        };
        let patch = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
        );
        let remedy = FixRemedy::Patch(patch);
        let fix = FailureFix { remedy, preconditions: Vec::new(), origin: FixOrigin::Taught };
        let lesson = MemoryLesson { failure, fixes: vec![KnownFix::new(fix, 1)] };
        bench.journal.store_lessons(&scope, vec![lesson]).await.unwrap();
    }
    let id = bench.create(Limits::default()).await;
    let cancel = async {
        let is_there = |run: &repertoire_journal::Run| {
            let worktree = run.worktree.as_ref().map(|worktree| worktree.path.clone());
            worktree.is_some_and(|path| std::path::Path::new(&path).join(".probe").exists())
        };
        while !is_there(&bench.journal.run(&id).await.unwrap().unwrap()) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        bench.journal.order(&id, Command::Cancel { by: "ada".into() }).await.unwrap();
    };
    let (run, ()) = tokio::join!(bench.drive(&id), cancel);
    assert_eq!(run.status, RunStatus::Cancelled, "{run:?}");
    assert_eq!(tried(&bench, &id).await, ["Worked", "Unknown"]);
    let subjects = bench.subjects(&run);
    assert!(subjects.contains(&"Mend the checks: learned_fix".to_owned()), "{subjects:?}");
}
