//! Tasks that are in no file: somebody asked for them, and an answer may be all that they want.

use repertoire_checks::declared::CheckDefinition;
use repertoire_journal::run::{Limits, RunStatus};
use repertoire_plan::AdHocTask;

use crate::plan::{APPROVES, Bench};
use crate::repo::{git_in, read};

fn asked(title: &str, answer: bool) -> AdHocTask {
    let words = format!("Somebody wrote: {title}\n\n- [ ] a box in what they wrote");
    AdHocTask { title: title.to_owned(), words, topic: String::new(), answer }
}

async fn bench(agent: &str, title: &str, answer: bool) -> Bench {
    let mut bench = Bench::new("# Not this one\n\n- [ ] Something else\n", agent).await;
    bench.request.plan = Default::default();
    bench.request.asked = Some(asked(title, answer));
    bench
}

#[tokio::test]
async fn what_was_asked_for_is_done_reviewed_and_checked_without_a_plan_in_the_repository() {
    let agent = format!(
        "- when: \"# What was asked for\"\n  unless: You review\n  write: alpha.txt\n  content: \"alpha\\n\"\n{APPROVES}"
    );
    let mut bench = bench(&agent, "Write alpha\n- [ ] and more", true).await;
    bench.request.checks = vec![CheckDefinition::new("alpha", "test -f alpha.txt")];
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let dir = run.worktree.clone().unwrap().path;
    let changed = git_in(camino::Utf8Path::new(&dir), &["diff", "--name-only", "main", "HEAD"]);
    assert_eq!(changed.trim(), "alpha.txt", "no plan is committed");
    let steps = bench.journal.steps(&id).await.unwrap();
    let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["implementation", "verification", "review", "verification", "verification"]);
    let prompt = bench.repo.base.join(format!("data/runs/{id}/003-review.prompt.md"));
    let prompt = read(&prompt);
    assert!(prompt.contains("a box in what they wrote"), "a reviewer knows it all: {prompt}");
}

#[tokio::test]
async fn an_answer_is_enough_where_one_was_asked_for_and_red_checks_do_not_matter_to_it() {
    let mut bench = bench("- text: It is blue.\n", "What colour is it?", true).await;
    bench.request.checks = vec![CheckDefinition::new("red", "false")];
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let steps = bench.journal.steps(&id).await.unwrap();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].result["text"], "It is blue.");
}

#[tokio::test]
async fn words_are_no_work_where_a_change_was_asked_for() {
    let mut bench = bench("- text: It is done.\n", "Write alpha", false).await;
    bench.request.bounds.attempts_max = 1;
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting, "{run:?}");
}
