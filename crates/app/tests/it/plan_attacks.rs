//! Agents that do what they should not, people who change things in between, and workers that die at the wrong moment. What a
//! run is worth is that none of it makes it complete when it is not, or loses what was done.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_checks::declared::CheckDefinition;
use repertoire_journal::run::{Limits, Run, RunId, RunStatus};
use repertoire_journal::{ClaimRules, Command, Payload, QueueWorker};
use repertoire_plan::learnings::LearningsFile;
use repertoire_plan::{PlanDeliveryMode, PlanPromptPreview};
use tokio_util::sync::CancellationToken;

use crate::plan::{APPROVES, Bench, honest};
use crate::repo::{git_in, read, write};

const TWO: &str = "# P\n\n- [ ] Write alpha\n- [ ] Write beta\n";

/// An agent that runs these lines for a task; `$task` is its text. As a reviewer it approves.
async fn shell(plan: &str, lines: &str) -> Bench {
    let bench = Bench::new(plan, "").await;
    let script = format!(
        "prompt=$(cat)\n\
         if [[ $prompt == *'You review'* ]]; then\n\
         echo '{{\"verdict\": \"approve\", \"summary\": \"Good.\", \"findings\": [], \"learning\": null}}'; exit\n\
         fi\n\
         task=${{prompt##*'# Selected task'}}; task=$(sed -n 3p <<<\"$task\"); name=${{task##* }}\n\
         git config --global user.name A; git config --global user.email a@b.c\n\
         {lines}\n"
    );
    write(&bench.repo.base.join("agent.sh"), &script);
    bench
}

fn worktree(run: &Run) -> Utf8PathBuf {
    Utf8PathBuf::from(&run.worktree.as_ref().unwrap().path)
}

fn prompt(bench: &Bench, run: &Run, name: &str) -> String {
    read(&bench.runner.places.runs.join(run.id.as_str()).join(format!("{name}.prompt.md")))
}

async fn resume(bench: &Bench, id: &RunId) -> Run {
    let order = Command::Resume { by: "me".into(), limits: None };
    bench.journal.order(id, order).await.unwrap();
    bench.drive(id).await
}

/// What was mended in the worktree after agents were there.
async fn mended(bench: &Bench, run: &Run) -> String {
    let notes = bench.payloads(run).await.into_iter().filter_map(|payload| match payload {
        Payload::Note { name, data } if name == "worktree_put_right" => Some(data.to_string()),
        _ => None,
    });
    notes.collect()
}

/// Drives a run until a step is under way, and then is gone, as a worker that is killed; its lease has run out.
async fn cut_short(bench: &Bench, id: &RunId) {
    let short = QueueWorker { lease: Duration::from_secs(3), ..bench.who() };
    let claimed =
        bench.journal.claim_run(id, &short, &ClaimRules::default()).await.unwrap().unwrap();
    let never = CancellationToken::new();
    tokio::select! {
        _ = bench.runner.drive_run(claimed, &never) => panic!("it should have been cut short"),
        () = bench.under_way(id) => {}
    }
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    bench.journal.requeue_expired().await.unwrap();
}

#[tokio::test]
async fn a_plan_that_became_a_link_does_not_lead_the_engine_out_of_the_worktree() {
    let bench = shell(
        "# P\n\n- [ ] Write alpha\n",
        "echo a > alpha.txt; rm PLAN.md; ln -s \"$HOME/private\" PLAN.md",
    )
    .await;
    let private = bench.repo.base.join("private");
    write(&private, "mine\n");
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(read(&private), "mine\n");
    assert_eq!(bench.plan_of(&run), "# P\n\n- [R] Write alpha\n");
    assert_eq!(git_in(&worktree(&run), &["ls-files", "-s", "PLAN.md"])[..6], *"100644");
}

#[tokio::test]
async fn an_agent_that_switches_branches_works_on_the_branch_of_the_run_all_the_same() {
    let lines =
        "git checkout -q -b \"mine-$name\"; echo a > $name.txt; git add .; git commit -qm own";
    let bench = shell(TWO, lines).await;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let branch = &run.worktree.as_ref().unwrap().branch;
    let files = bench.repo.git(&["ls-tree", "--name-only", branch]);
    assert!(files.contains("alpha.txt") && files.contains("beta.txt"), "{files}");
    assert!(mended(&bench, &run).await.contains("was not checked out and is again"));
}

#[tokio::test]
async fn history_that_an_agent_rewrites_is_not_lost_and_the_reviewer_sees_what_it_did() {
    let lines = "if [ $name = beta ]; then git reset -q --hard main; fi; echo $name > $name.txt";
    let bench = shell(TWO, lines).await;
    let run = bench.run().await;
    assert_eq!(bench.subjects(&run), ["Write alpha", "Write beta"]);
    assert!(mended(&bench, &run).await.contains("was rewritten"));
    let review = prompt(&bench, &run, "007-review");
    assert!(review.contains("deleted file mode") && review.contains("a/alpha.txt"), "{review}");
    assert!(!review.contains("Attempt 2"), "{review}");
    // The plan stands although it was reset with the rest.
    assert_eq!(bench.plan_of(&run), TWO.replace("[ ]", "[R]"));
}

#[tokio::test]
async fn an_agent_that_removes_the_link_to_git_or_leaves_a_lock_stops_nothing() {
    let lines = "echo a > $name.txt; touch \"$(git rev-parse --git-dir)/index.lock\"; rm .git";
    let mut bench = shell(TWO, lines).await;
    bench.request.checks = vec![CheckDefinition::new("git", "git status")];
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let mended = mended(&bench, &run).await;
    assert!(mended.contains("link of the worktree") && mended.contains("index.lock"), "{mended}");
}

#[tokio::test]
async fn an_agent_that_removes_its_worktree_deletes_no_file_from_the_branch() {
    let lines =
        "[ -e $HOME/gone ] || { touch $HOME/gone; rm -rf \"$PWD\"; exit; }; echo a > $name.txt";
    let bench = shell(TWO, lines).await;
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting);
    assert!(run.reason.as_deref().unwrap().contains("is gone"), "{:?}", run.reason);
    let run = resume(&bench, &id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(bench.subjects(&run), ["Write alpha", "Write beta"]);
    assert!(worktree(&run).join("a.txt").exists());
}

#[tokio::test]
async fn a_repository_that_an_agent_makes_within_the_worktree_is_committed_with_its_files() {
    let lines = "mkdir $name; cd $name; git init -q; echo a > a.txt; [ $name = beta ] && exit; git add .; git commit -qm x";
    let bench = shell(TWO, lines).await;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let branch = &run.worktree.as_ref().unwrap().branch;
    let files = bench.repo.git(&["ls-tree", "-r", "--name-only", branch]);
    assert!(files.contains("alpha/a.txt") && files.contains("beta/a.txt"), "{files}");
}

#[tokio::test]
async fn a_plan_whose_folder_is_deleted_comes_back_with_its_line_endings() {
    let mut bench = shell("# P\n", "rm -r docs; echo a > $name.txt").await;
    let plan = "# P\r\n\r\n- [ ] Write alpha\r\n- [ ] Write beta\r\n";
    bench.repo.file("docs/plans/PLAN.md", plan);
    bench.repo.commit("another plan");
    bench.request.plan = "docs/plans/PLAN.md".into();
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let left = read(&worktree(&run).join("docs/plans/PLAN.md"));
    assert_eq!(left, plan.replace("[ ]", "[R]"));
    assert_eq!(git_in(&worktree(&run), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_plan_that_git_ignores_is_worked_on_and_not_committed() {
    let mut bench = Bench::new("# P\n", &honest()).await;
    bench.repo.file("ignored/PLAN.md", TWO);
    bench.request.plan = "ignored/PLAN.md".into();
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(read(&worktree(&run).join("ignored/PLAN.md")), TWO.replace("[ ]", "[R]"));
    assert_eq!(bench.subjects(&run), ["Write alpha", "Write beta"]);
    assert_eq!(git_in(&worktree(&run), &["ls-files", "ignored"]), "");
}

#[tokio::test]
async fn an_agent_that_never_stops_adding_tasks_comes_to_an_end() {
    let lines =
        "echo a > $name.txt; for i in $(seq 600); do echo \"- [R] Write $name$i\"; done >> PLAN.md";
    let mut bench = shell("# P\n\n- [ ] Write a\n", lines).await;
    bench.request.review = false;
    bench.request.bounds.iterations_max = 3;
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Failed, "{:?}", run.reason);
    assert_eq!(run.reason.as_deref(), Some("iteration_limit_reached:3"));
    let plan = bench.plan_of(&run);
    assert_eq!((plan.matches("[x]").count(), plan.matches("[R]").count()), (3, 0));
}

#[tokio::test]
async fn what_an_agent_did_to_the_plan_before_its_worker_died_does_not_make_the_run_complete() {
    let slow = format!("- when: 'Write alpha'\n  unless: You review\n  wait_ms: 800\n{}", honest());
    let bench = Bench::new(TWO, &slow).await;
    let id = bench.create(Limits::default()).await;
    cut_short(&bench, &id).await;
    let run = bench.journal.run(&id).await.unwrap().unwrap();
    // It ticks off its task, removes the other one, adds one that it calls done, and commits that.
    let dir = worktree(&run);
    write(&dir.join("PLAN.md"), "# P\n\n- [R] Write alpha\n- [R] Write gamma\n");
    git_in(&dir, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "done"]);
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(bench.plan_of(&run), TWO.replace("[ ]", "[R]"));
    let subjects = bench.subjects(&run);
    assert!(
        subjects.ends_with(&["Write alpha".to_owned(), "Write beta".to_owned()]),
        "{subjects:?}"
    );
}

#[tokio::test]
async fn a_person_changes_the_plan_of_a_run_that_waits_and_it_goes_on_by_that() {
    let plan = "# P\n\n- [~] Write alpha\n- [ ] Write beta\n- [~] Write gamma\n";
    let bench = Bench::new(plan, &honest()).await;
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    let file = worktree(&run).join("PLAN.md");
    let changed = read(&file).replace("[~] Write alpha", "[ ] Write alpha");
    let changed = changed.replace("- [~] Write gamma\n", "- [ ] Write delta\n");
    write(&file, &changed);
    let run = resume(&bench, &id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(bench.plan_of(&run), changed.replace("[ ]", "[R]"));
    assert_eq!(bench.subjects(&run), ["Write beta", "Write alpha", "Write delta"]);
}

#[tokio::test]
async fn work_that_changed_after_the_final_checks_is_checked_again_before_it_counts() {
    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n", &honest()).await;
    bench.request.ending = PlanDeliveryMode::Merge;
    bench.request.final_checks = vec![CheckDefinition::new("final", "grep -q alpha alpha.txt")];
    bench.request.allow_dirty = true;
    bench.repo.file("a.txt", "in the way\n");
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert!(run.reason.as_deref().unwrap().starts_with("merge_failed"), "{:?}", run.reason);
    // Somebody puts things right, and breaks something.
    bench.repo.git(&["checkout", "-q", "a.txt"]);
    write(&worktree(&run).join("alpha.txt"), "broken\n");
    git_in(
        &worktree(&run),
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "oops"],
    );
    let run = resume(&bench, &id).await;
    let steps = bench.steps(&run).await;
    assert_eq!(steps[4..6], ["verification -", "verification - failed"]);
    assert_eq!(steps[6], "implementation Make the final checks pass failed");
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    assert!(!bench.repo.dir.join("alpha.txt").exists());
}

#[tokio::test]
async fn a_word_that_is_said_while_a_step_is_at_work_reaches_the_next_prompt() {
    let slow = format!("- when: 'Write alpha'\n  unless: You review\n  wait_ms: 700\n{}", honest());
    let bench = Bench::new("# P\n\n- [ ] Write alpha\n", &slow).await;
    let id = bench.create(Limits::default()).await;
    let steer = async {
        bench.under_way(&id).await;
        let order = Command::Steer { by: "me".into(), note: "Mind the spelling.".into() };
        bench.journal.order(&id, order).await.unwrap();
    };
    let (run, ()) = tokio::join!(bench.drive(&id), steer);
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    let first = prompt(&bench, &run, "001-implementation");
    let second = prompt(&bench, &run, "003-review");
    assert!(!first.contains("Mind the spelling."));
    assert!(second.contains("# From the person who watches this run\n\n- Mind the spelling."));
}

#[tokio::test]
async fn a_worker_that_stops_while_the_worktree_is_made_ready_gives_the_run_back() {
    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n", &honest()).await;
    bench.request.setup = Some("test -f ../../slow && exit; touch ../../slow; sleep 20".to_owned());
    let id = bench.create(Limits::default()).await;
    let claimed = bench.journal.claim_run(&id, &bench.who(), &ClaimRules::default()).await.unwrap();
    let shutdown = CancellationToken::new();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        shutdown.cancel();
    };
    let (run, ()) = tokio::join!(bench.runner.drive_run(claimed.unwrap(), &shutdown), stop);
    let run = run.unwrap();
    assert_eq!(run.status, RunStatus::Queued, "{:?}", run.reason);
}

#[tokio::test]
async fn what_is_paid_for_is_checked_and_completed_although_the_budget_is_used_up() {
    let agent = format!(
        "- unless: You review\n  write: alpha.txt\n  content: alpha\n- unless: You review\n  finish: {{text: Done., cost_usd: 0.6, usage: {{input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0}}}}\n{APPROVES}"
    );
    let mut bench = Bench::new("# P\n\n- [ ] Write alpha\n", &agent).await;
    bench.request.review = false;
    let id = bench.create(Limits { cost_usd: Some(0.5), ..Limits::default() }).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
}

#[tokio::test]
async fn a_limit_in_money_that_cannot_be_kept_is_told_and_a_person_may_go_on() {
    let agent = honest().replace(
        "text: Done. <promise>COMPLETE</promise>",
        "finish: {text: Done., usage: {input_tokens: 10, output_tokens: 5, cache_read_tokens: 0, cache_write_tokens: 0}}",
    );
    let bench = Bench::new("# P\n\n- [ ] Write alpha\n", &agent).await;
    let id = bench.create(Limits { cost_usd: Some(5.0), ..Limits::default() }).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting);
    assert!(run.reason.as_deref().unwrap().contains("no known price"), "{:?}", run.reason);
    let run = resume(&bench, &id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
}

#[tokio::test]
async fn a_task_that_is_tried_again_after_others_has_to_be_worked_on() {
    // It does nothing for alpha, ever.
    let lines = "if [ $name = beta ]; then echo b > beta.txt; fi";
    let mut bench = shell(TWO, lines).await;
    bench.request.review = false;
    bench.request.bounds.attempts_max = 1;
    let id = bench.create(Limits::default()).await;
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    assert_eq!(bench.plan_of(&run).matches("[x] Write beta").count(), 1);
    let order = Command::Retry { by: "me".into(), tasks: Vec::new() };
    bench.journal.order(&id, order).await.unwrap();
    let run = bench.drive(&id).await;
    assert_eq!(run.status, RunStatus::Waiting, "{:?}", run.reason);
    assert!(bench.plan_of(&run).contains("[!] Write alpha"), "{}", bench.plan_of(&run));
}

#[tokio::test]
async fn a_check_does_not_get_the_key_that_an_agent_needs() {
    let mut bench = shell("# P\n\n- [ ] Write alpha\n", "echo \"$MODEL_KEY\" > key.txt").await;
    bench.request.checks =
        vec![CheckDefinition::new("key", "test -z \"$MODEL_KEY\" -a -s key.txt")];
    bench.request.setup = Some("test -z \"$MODEL_KEY\"".to_owned());
    let run = bench.run().await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.reason);
    assert_eq!(read(&worktree(&run).join("key.txt")), "k\n");
}

#[tokio::test]
async fn the_preview_is_to_the_byte_what_the_first_step_is_told() {
    for (plan, name) in [
        ("# P\n\n- [ ] Write alpha @spelling\n  - see §2\n", "001-implementation"),
        ("# P\n\n- [x] Write alpha\n- [ ] Write beta\n", "001-review"),
    ] {
        let mut bench = Bench::new(plan, &honest()).await;
        bench.repo.file("LEARNINGS.md", "- one\n");
        bench.repo.file("SPEC.md", "# Spec\n");
        bench.repo.commit("more");
        bench.request.specs = vec!["SPEC.md".into()];
        bench.request.checks = vec![CheckDefinition::new("there", "test -f a.txt")];
        let workspace: &Utf8Path = &bench.repo.dir;
        let learnings = LearningsFile::new(&bench.runner.places.learnings, workspace.as_str());
        learnings.add(&["Mind the h.".to_owned()]).unwrap();
        let agent_setup =
            bench.runner.agent_provider.agent_setup(workspace, &bench.request).unwrap();
        let preview = PlanPromptPreview::build(
            workspace,
            &agent_setup,
            &bench.request,
            None,
            None,
            &learnings,
        )
        .await
        .unwrap();
        let run = bench.run().await;
        assert_eq!(preview.text, prompt(&bench, &run, name));
    }
}
