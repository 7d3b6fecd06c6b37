//! Worktrees of runs, against real repositories.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_checks::declared::CheckDefinition;
use repertoire_git::repo::{GitClient, Progress};
use repertoire_git::worktree::{
    BranchDelivery, BranchDeliveryResult, CheckoutRequirement, PreparedWorktree, RunWorktrees,
    WorktreeError, WorktreeKeepReason, WorktreeOwner, WorktreePreparation, WorktreeRemovalMode,
    WorktreeRequest,
};
use repertoire_plan::worktree_setup::{SetupError, WorktreeSetup, set_up_worktree};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::process::FolderOccupant;
use tokio_util::sync::CancellationToken;

use crate::repo::{Repo, commit_in, git_in, read, script, try_git_in, write};

const RUN: &str = "0199e5b2-0000-7000-8000-0000000000a1";

fn owner(token: u64) -> WorktreeOwner {
    WorktreeOwner { worker: format!("worker-{token}"), token }
}

fn worktrees(repo: &Repo) -> RunWorktrees {
    RunWorktrees::new(repo.engine(), repo.base.join("data/worktrees"))
}

async fn prepared(repo: &Repo, token: u64) -> PreparedWorktree {
    worktrees(repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "Add a parser", owner(token)))
        .await
        .unwrap()
}

#[track_caller]
fn repaired(worktree: &PreparedWorktree, note: &str) {
    let WorktreePreparation::Repaired(notes) = &worktree.how else { panic!("{:?}", worktree.how) };
    assert!(notes.iter().any(|found| found.contains(note)), "{notes:?}");
}

#[tokio::test]
async fn a_worktree_is_made_and_adopted() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    assert_eq!(made.how, WorktreePreparation::Created);
    assert_eq!(made.branch, "rep/add-a-parser-000000a1");
    assert_eq!(
        (made.base_branch.as_str(), &made.base_oid),
        ("main", &repo.engine().head_commit().await.unwrap())
    );
    assert!(made.dir.starts_with(repo.base.join("data/worktrees")));
    assert_eq!(read(&made.dir.join("a.txt")), "one\n");
    assert_eq!(made.git.current_branch().await.unwrap().as_ref(), Some(&made.branch));
    assert!(!made.set_up);

    // Work that is not committed stays through being taken up.
    write(&made.dir.join("a.txt"), "half done\n");
    let again = prepared(&repo, 1).await;
    assert_eq!(
        (again.how, &again.dir, &again.git_dir),
        (WorktreePreparation::Adopted, &made.dir, &made.git_dir)
    );
    assert_eq!(read(&made.dir.join("a.txt")), "half done\n");
    let later = prepared(&repo, 2).await;
    assert_eq!(later.how, WorktreePreparation::Adopted);

    let listed = worktrees(&repo).list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].run.as_str(), listed[0].worker.as_str(), listed[0].token),
        (RUN, "worker-2", 2)
    );
    // git's own clearing up leaves it alone.
    std::fs::rename(&made.dir, repo.base.join("away")).unwrap();
    repo.git(&["worktree", "prune", "--expire=now"]);
    assert!(made.git_dir.exists());
}

#[tokio::test]
async fn a_worker_whose_lease_is_gone_is_refused() {
    let repo = Repo::new();
    let first = prepared(&repo, 7).await;
    prepared(&repo, 8).await;
    let error = worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(7)))
        .await
        .unwrap_err();
    assert!(matches!(error, WorktreeError::Fenced { theirs: 8, ours: 7, .. }), "{error}");
    let error = worktrees(&repo).deliver_branch(&first, &BranchDelivery::Keep).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Fenced { .. }), "{error}");
    let twin = WorktreeOwner { worker: "another".into(), token: 8 };
    let error =
        worktrees(&repo).prepare_worktree(&WorktreeRequest::new(RUN, "x", twin)).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Fenced { .. }), "{error}");

    write(&first.git_dir.join("repertoire-owner.json"), "{");
    let error = worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(9)))
        .await
        .unwrap_err();
    assert!(matches!(error, WorktreeError::BadOwner { .. }), "{error}");
    // That is nobody else's trouble.
    worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new("another", "x", owner(1)))
        .await
        .unwrap();
}

#[tokio::test]
async fn two_workers_at_once_get_one_worktree() {
    let repo = Repo::new();
    let (one, other) = (worktrees(&repo), worktrees(&repo));
    let wanted = WorktreeRequest::new(RUN, "x", owner(1));
    let (one, other) = tokio::join!(one.prepare_worktree(&wanted), other.prepare_worktree(&wanted));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.dir, other.dir);
    assert!([&one.how, &other.how].contains(&&WorktreePreparation::Created));
    assert!([&one.how, &other.how].contains(&&WorktreePreparation::Adopted));
}

#[tokio::test]
async fn a_new_worktree_needs_a_clean_checkout_or_leave() {
    let repo = Repo::new();
    repo.file("new.txt", "x\n");
    let all = worktrees(&repo);
    let wanted = WorktreeRequest::new(RUN, "x", owner(1));
    let error = all.prepare_worktree(&wanted).await.unwrap_err();
    assert!(
        matches!(&error, WorktreeError::Dirty { files, .. } if files == &["new.txt"]),
        "{error}"
    );
    let wanted = WorktreeRequest { checkout: CheckoutRequirement::Any, ..wanted };
    assert_eq!(all.prepare_worktree(&wanted).await.unwrap().how, WorktreePreparation::Created);

    // Worktrees may live in the checkout itself.
    std::fs::remove_file(repo.dir.join("new.txt")).unwrap();
    let inside = RunWorktrees::new(repo.engine(), repo.dir.join("trees"));
    inside.prepare_worktree(&WorktreeRequest::new("run-1", "x", owner(1))).await.unwrap();
    inside.prepare_worktree(&WorktreeRequest::new("run-2", "x", owner(1))).await.unwrap();
}

#[tokio::test]
async fn a_new_worktree_needs_a_base_and_no_merge_in_progress() {
    let repo = Repo::unborn();
    let error = worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(1)))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("commit something first"), "{error}");

    let repo = Repo::new();
    let all = worktrees(&repo);
    let wanted = |base: &str| WorktreeRequest {
        base: Some(base.into()),
        ..WorktreeRequest::new(RUN, "x", owner(1))
    };
    let error = all.prepare_worktree(&wanted("no-such")).await.unwrap_err();
    assert!(matches!(error, WorktreeError::NoSuchBranch { .. }), "{error}");
    repo.git(&["branch", "rep/x-000000a1"]);
    let error = all.prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(1))).await.unwrap_err();
    assert!(matches!(error, WorktreeError::BranchTaken { .. }), "{error}");

    conflict(&repo);
    try_git_in(&repo.dir, &["merge", "side"]);
    let error = all.prepare_worktree(&WorktreeRequest::new(RUN, "y", owner(1))).await.unwrap_err();
    assert!(
        matches!(error, WorktreeError::InTheMiddle { progress: Progress::Merge, .. }),
        "{error}"
    );
    repo.git(&["merge", "--abort"]);
    repo.git(&["checkout", "--quiet", "--detach"]);
    let error = all.prepare_worktree(&WorktreeRequest::new(RUN, "y", owner(1))).await.unwrap_err();
    assert!(matches!(error, WorktreeError::NoBranch { .. }), "{error}");
    let made = all.prepare_worktree(&wanted("side")).await;
    assert!(matches!(made, Err(WorktreeError::BranchTaken { .. })));
    let wanted =
        WorktreeRequest { base: Some("side".into()), ..WorktreeRequest::new(RUN, "y", owner(1)) };
    let made = all.prepare_worktree(&wanted).await.unwrap();
    assert_eq!(read(&made.dir.join("a.txt")), "side\n");
}

/// A branch `side` that conflicts with `main`.
fn conflict(repo: &Repo) {
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    repo.file("a.txt", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.file("a.txt", "main\n");
    repo.commit("main");
}

#[tokio::test]
async fn a_missing_folder_is_made_again_from_the_branch() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    write(&made.dir.join("b.txt"), "b\n");
    let tip = made.git.commit_all("work", None).await.unwrap().unwrap();
    std::fs::remove_dir_all(&made.dir).unwrap();
    repo.file("later.txt", "x\n");
    repo.commit("main goes on");
    let again = prepared(&repo, 2).await;
    repaired(&again, "was gone and is made again from its branch");
    assert_eq!((&again.dir, &again.base_oid), (&made.dir, &made.base_oid));
    assert_eq!(again.git.head_commit().await.unwrap(), tip);

    // Neither folder nor registration.
    std::fs::remove_dir_all(&made.dir).unwrap();
    std::fs::remove_dir_all(&again.git_dir).unwrap();
    let again = prepared(&repo, 3).await;
    repaired(&again, "made again from its branch");
    assert_eq!((again.git.head_commit().await.unwrap(), &again.base_oid), (tip, &made.base_oid));
}

#[tokio::test]
async fn a_stale_folder_is_moved_aside() {
    let repo = Repo::new();
    let dir = repo.base.join("data/worktrees/add-a-parser-000000a1");
    write(&dir.join("precious"), "x\n");
    let made = prepared(&repo, 1).await;
    repaired(&made, "was moved to");
    assert_eq!(made.dir, dir);
    assert_eq!(read(&Utf8PathBuf::from(format!("{dir}.aside-1")).join("precious")), "x\n");
}

#[tokio::test]
async fn a_broken_link_is_repaired_and_what_replaced_it_is_kept() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    let link = made.dir.join(".git");
    for text in [None, Some("gitdir: /no/such/place\n"), Some("nonsense")] {
        std::fs::remove_file(&link).unwrap();
        if let Some(text) = text {
            write(&link, text);
        }
        let again = prepared(&repo, 1).await;
        repaired(&again, "link of the worktree");
        git_in(&again.dir, &["status"]);
        assert_eq!(prepared(&repo, 1).await.how, WorktreePreparation::Adopted);
    }
    // An agent that makes a repository of its own does not get the engine to believe it.
    std::fs::remove_file(&link).unwrap();
    git_in(&made.dir, &["init", "--quiet"]);
    assert_eq!(made.git.common_dir().await.unwrap(), repo.dir.join(".git"));
    repaired(&prepared(&repo, 1).await, "what was in its place is in");
    assert!(link.is_file());
    assert!(made.git_dir.join("repertoire-found.aside-1/HEAD").exists());
}

#[tokio::test]
async fn locks_of_dead_processes_go_and_those_of_living_ones_stay() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    let lock = made.git_dir.join("index.lock");
    write(&lock, "");
    write(&made.git_dir.join("HEAD.lock"), "");
    repaired(&prepared(&repo, 1).await, "index.lock of a process that is gone");
    assert!(!lock.exists() && !made.git_dir.join("HEAD.lock").exists());

    let mut holder = std::process::Command::new("bash")
        .args(["-c", "exec 9>\"$1\"; echo; exec sleep 60", "x", lock.as_str()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(&mut holder.stdout.take().unwrap(), &mut [0]).unwrap();
    let error = worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(1)))
        .await
        .unwrap_err();
    assert!(
        matches!(error, WorktreeError::AtWork { process, .. } if process == holder.id()),
        "{error}"
    );
    holder.kill().unwrap();
    holder.wait().unwrap();
    repaired(&prepared(&repo, 1).await, "index.lock");
}

#[tokio::test]
async fn a_worktree_is_not_taken_over_while_other_processes_work_in_it() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    // A process that no process of this test is the parent of.
    let mut shell = std::process::Command::new("bash")
        .args(["-c", "setsid bash -c '(cd \"$0\" && echo $BASHPID && exec sleep 60) &' \"$0\""])
        .arg(&made.dir)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut { output }, &mut line).unwrap();
    shell.wait().unwrap();
    let process: u32 = line.trim().parse().unwrap();
    let error = worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(2)))
        .await
        .unwrap_err();
    let is_meant = |one: &FolderOccupant| one.process == process;
    assert!(
        matches!(&error, WorktreeError::Occupied { processes, .. } if processes.iter().all(is_meant)),
        "{error}"
    );
    assert!(error.to_string().contains(&format!("{process} (`sleep`)")), "{error}");
    std::process::Command::new("kill").arg(process.to_string()).status().unwrap();
    assert_eq!(prepared(&repo, 2).await.how, WorktreePreparation::Adopted);
}

#[tokio::test]
async fn a_rebase_in_progress_is_aborted_and_what_it_had_is_rescued() {
    let repo = Repo::new();
    conflict(&repo);
    let made = prepared(&repo, 1).await;
    write(&made.dir.join("a.txt"), "run\n");
    let tip = made.git.commit_all("work", None).await.unwrap().unwrap();
    for args in [["rebase", "side"], ["merge", "side"], ["cherry-pick", "side"]] {
        try_git_in(&made.dir, &args);
        write(&made.dir.join("a.txt"), &format!("{} resolved\n", args[0]));
        write(&made.dir.join("untracked"), "x\n");
        let again = prepared(&repo, 1).await;
        repaired(&again, "was in progress and is aborted");
        assert_eq!(again.git.current_operation().await.unwrap(), None);
        assert_eq!(again.git.head_commit().await.unwrap(), tip);
        assert_eq!(again.git.current_branch().await.unwrap().as_ref(), Some(&again.branch));
        assert!(made.dir.join("untracked").exists());
    }
    let rescued = |n| repo.git(&["show", &format!("rep/rescue/add-a-parser-000000a1-{n}:a.txt")]);
    assert_eq!(
        [1, 2, 3].map(rescued),
        ["rebase resolved", "merge resolved", "cherry-pick resolved"]
    );
}

#[tokio::test]
async fn a_bisection_is_left_though_changes_are_in_its_way() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    for n in 0..4 {
        write(&made.dir.join("a.txt"), &format!("{n}\n"));
        commit_in(&made.dir, "work");
    }
    let tip = made.git.head_commit().await.unwrap();
    git_in(&made.dir, &["bisect", "start", "HEAD", "HEAD~4"]);
    write(&made.dir.join("a.txt"), "looking\n");
    let again = prepared(&repo, 1).await;
    repaired(&again, "a bisection was in progress");
    assert_eq!(
        (again.git.head_commit().await.unwrap(), again.git.is_clean().await.unwrap()),
        (tip, true)
    );
    assert_eq!(repo.git(&["show", "rep/rescue/add-a-parser-000000a1-1:a.txt"]), "looking");
}

/// Many keep a bare repository, with all branches in worktrees.
#[tokio::test]
async fn the_repository_itself_may_be_bare() {
    let repo = Repo::new();
    let (bare, main) = (repo.base.join("bare.git"), repo.base.join("main"));
    repo.git(&["clone", "--quiet", "--bare", ".", bare.as_str()]);
    git_in(&bare, &["worktree", "add", "--quiet", main.as_str(), "main"]);
    let engine = GitClient::new(&main, crate::repo::environment(&repo.base), Sandbox::None);
    let all = RunWorktrees::new(engine, repo.base.join("data"));
    let made = all.prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(1))).await.unwrap();
    write(&made.dir.join("b.txt"), "b\n");
    made.git.commit_all("work", None).await.unwrap().unwrap();
    all.deliver_branch(&made, &BranchDelivery::Merge { into: "main".into() }).await.unwrap();
    assert_eq!(read(&main.join("b.txt")), "b\n");
    assert_eq!(all.prune(&|_| false).await.unwrap().removed.len(), 1);
}

#[tokio::test]
async fn a_detached_head_is_attached_again_without_touching_files() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    git_in(&made.dir, &["checkout", "--quiet", "--detach"]);
    write(&made.dir.join("a.txt"), "half done\n");
    let again = prepared(&repo, 1).await;
    repaired(&again, "was not checked out and is again");
    assert_eq!(read(&made.dir.join("a.txt")), "half done\n");
    assert_eq!(again.git.current_branch().await.unwrap().as_ref(), Some(&again.branch));

    // Commits that build on the branch belong to it.
    git_in(&made.dir, &["checkout", "--quiet", "-b", "agent-likes-branches"]);
    let ahead = commit_in(&made.dir, "ahead");
    let again = prepared(&repo, 1).await;
    repaired(&again, "were taken into it");
    assert_eq!(again.git.branch_tip(&again.branch).await.unwrap(), Some(ahead));

    // Those that do not are rescued, with what is not committed.
    git_in(&made.dir, &["checkout", "--quiet", "--detach", "main"]);
    write(&made.dir.join("c.txt"), "c\n");
    commit_in(&made.dir, "beside");
    write(&made.dir.join("c.txt"), "more\n");
    let again = prepared(&repo, 1).await;
    repaired(&again, "rep/rescue/add-a-parser-000000a1-1");
    let log = repo.git(&["log", "--format=%s", "rep/rescue/add-a-parser-000000a1-1"]);
    assert_eq!(log, "Rescued: work that was not committed\nbeside\nfirst");
    assert_eq!(again.git.current_branch().await.unwrap().as_ref(), Some(&again.branch));
    assert!(again.git.is_clean().await.unwrap());
}

#[tokio::test]
async fn a_deleted_branch_and_a_lost_index_come_back() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    write(&made.dir.join("b.txt"), "b\n");
    let tip = made.git.commit_all("work", None).await.unwrap().unwrap();
    repo.git(&["update-ref", "-d", &format!("refs/heads/{}", made.branch)]);
    let again = prepared(&repo, 1).await;
    repaired(&again, "was gone and is made again at");
    assert_eq!(again.git.head_commit().await.unwrap(), tip);

    write(&made.dir.join("b.txt"), "changed\n");
    std::fs::remove_file(made.git_dir.join("index")).unwrap();
    repaired(&prepared(&repo, 1).await, "the index was missing");
    let changed: Vec<_> = made.git.status().await.unwrap().into_iter().map(|c| c.path).collect();
    assert_eq!(changed, ["b.txt"]);

    repo.git(&["checkout", "--quiet", "--detach"]);
    git_in(&made.dir, &["checkout", "--quiet", "--detach"]);
    repo.git(&["checkout", "--quiet", &made.branch]);
    let error = worktrees(&repo)
        .prepare_worktree(&WorktreeRequest::new(RUN, "x", owner(1)))
        .await
        .unwrap_err();
    assert!(matches!(error, WorktreeError::BranchElsewhere { .. }), "{error}");
}

/// A worker that was killed between `git worktree add` and writing down whose it is.
#[tokio::test]
async fn a_worktree_that_was_cut_short_is_finished() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    std::fs::remove_file(made.git_dir.join("repertoire-owner.json")).unwrap();
    std::fs::remove_file(made.git_dir.join("index")).unwrap();
    std::fs::remove_file(made.dir.join("a.txt")).unwrap();
    let again = prepared(&repo, 1).await;
    repaired(&again, "the index was missing");
    assert_eq!(read(&made.dir.join("a.txt")), "one\n");
    assert!(again.git.is_clean().await.unwrap());
    assert_eq!((again.base_branch.as_str(), &again.base_oid), ("main", &made.base_oid));
    assert_eq!(prepared(&repo, 1).await.how, WorktreePreparation::Adopted);

    // Earlier still, and with the configuration locked.
    std::fs::remove_file(made.git_dir.join("repertoire-owner.json")).unwrap();
    std::fs::remove_file(made.git_dir.join("HEAD")).unwrap();
    repo.git(&["config", "--unset", &format!("branch.{}.repertoireBase", made.branch)]);
    write(&repo.dir.join(".git/config.lock"), "");
    let again = prepared(&repo, 1).await;
    repaired(&again, "made again from its branch");
    assert!(again.git.is_clean().await.unwrap() && again.base_branch == "main");
}

#[tokio::test]
async fn hooks_of_the_repository_do_not_run_for_the_engine() {
    let repo = Repo::new();
    let ran = repo.base.join("ran");
    for hook in ["post-checkout", "pre-commit", "post-merge", "pre-merge-commit", "post-rewrite"] {
        script(
            &repo.dir.join(".git/hooks").join(hook),
            &format!("#!/bin/sh\necho {hook} >> {ran}\nexit 1\n"),
        );
    }
    let made = prepared(&repo, 1).await;
    write(&made.dir.join("b.txt"), "b\n");
    made.git.commit_all("work", None).await.unwrap();
    worktrees(&repo)
        .deliver_branch(&made, &BranchDelivery::Merge { into: "main".into() })
        .await
        .unwrap();
    assert!(!ran.exists(), "{}", read(&ran));
}

#[tokio::test]
async fn what_a_run_left_is_delivered_without_taking_it_up() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    assert!(all.of_run(RUN).await.unwrap().is_none());
    let made = prepared(&repo, 3).await;
    write(&made.dir.join("b.txt"), "two\n");
    made.git.commit_all("work", None).await.unwrap().unwrap();
    let left = all.of_run(RUN).await.unwrap().unwrap();
    assert_eq!((&left.dir, &left.git_dir, &left.owner), (&made.dir, &made.git_dir, &made.owner));
    let finished =
        all.deliver_branch(&left, &BranchDelivery::Merge { into: "main".into() }).await.unwrap();
    assert!(matches!(finished, BranchDeliveryResult::Merged { .. }), "{finished:?}");
    assert_eq!(read(&repo.dir.join("b.txt")), "two\n");
    assert_eq!(all.list().await.unwrap()[0].token, 3);
}

#[tokio::test]
async fn only_what_is_clean_merged_and_not_in_use_is_pruned() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    let mut made = Vec::new();
    for run in ["empty", "merged", "used", "dirty", "ahead", "missing", "middle", "squashed"] {
        made.push(all.prepare_worktree(&WorktreeRequest::new(run, "x", owner(1))).await.unwrap());
    }
    let [_, merged, _, dirty, ahead, missing, middle, squashed] = made.as_slice() else { panic!() };
    for worktree in [merged, ahead, missing, squashed] {
        write(&worktree.dir.join(&worktree.run), "x\n");
        worktree.git.commit_all("work", None).await.unwrap().unwrap();
    }
    all.deliver_branch(merged, &BranchDelivery::Merge { into: "main".into() }).await.unwrap();
    let squash = BranchDelivery::Squash { into: "main".into(), message: "all of it".into() };
    all.deliver_branch(squashed, &squash).await.unwrap();
    write(&dirty.dir.join("a.txt"), "half\n");
    write(&merged.dir.join("ignored/x"), "x\n");
    git_in(&middle.dir, &["bisect", "start"]);
    std::fs::remove_dir_all(&missing.dir).unwrap();
    // One of another installation, which we know nothing of; and one of the user's own.
    let other = RunWorktrees::new(repo.engine(), repo.base.join("other"));
    let others =
        other.prepare_worktree(&WorktreeRequest::new("others", "x", owner(1))).await.unwrap();
    repo.git(&["worktree", "add", "--quiet", "-b", "mine", repo.base.join("mine").as_str()]);

    let looked = all.preview_prune(&|run| run == "used").await.unwrap();
    assert!(merged.dir.is_dir(), "looking removes nothing");
    let pruned = all.prune(&|run| run == "used").await.unwrap();
    assert_eq!(looked, pruned);
    let mut removed: Vec<_> = pruned.removed.iter().map(|one| one.run.as_str()).collect();
    removed.sort_unstable();
    assert_eq!(removed, ["empty", "merged", "squashed"]);
    let why = |run: &str| &pruned.kept.iter().find(|kept| kept.run == run).unwrap().why;
    assert_eq!(*why("used"), WorktreeKeepReason::InUse);
    assert_eq!(*why("dirty"), WorktreeKeepReason::Uncommitted { files: 1 });
    assert_eq!(*why("ahead"), WorktreeKeepReason::Unmerged { commits: 1, base: "main".into() });
    assert_eq!(*why("missing"), WorktreeKeepReason::Unmerged { commits: 1, base: "main".into() });
    assert!(matches!(why("middle"), WorktreeKeepReason::InTheMiddle { .. }));
    assert_eq!(pruned.kept.len(), 5);
    assert!(others.dir.exists());
    assert!(!merged.dir.exists() && dirty.dir.exists() && repo.base.join("mine/a.txt").exists());
    assert!(!repo.engine().branch_exists(&merged.branch).await.unwrap());
    assert!(repo.engine().branch_exists(&ahead.branch).await.unwrap());
}

#[tokio::test]
async fn a_worktree_is_removed_if_that_is_safe_or_anyway() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    let made = prepared(&repo, 1).await;
    write(&made.dir.join("b.txt"), "b\n");
    let tip = made.git.commit_all("work", None).await.unwrap();
    write(&made.dir.join("b.txt"), "c\n");
    let error = all.remove(RUN, WorktreeRemovalMode::IfSafe).await.unwrap_err();
    assert!(error.to_string().contains("1 files have changes"), "{error}");
    std::fs::remove_file(made.dir.join(".git")).unwrap();
    let removed = all.remove(RUN, WorktreeRemovalMode::Always).await.unwrap();
    assert_eq!(removed.tip, tip);
    assert!(!made.dir.exists() && !made.git_dir.exists());
    assert!(!repo.engine().branch_exists(&made.branch).await.unwrap());
    let error = all.remove(RUN, WorktreeRemovalMode::Always).await.unwrap_err();
    assert!(matches!(error, WorktreeError::NoSuchRun { .. }), "{error}");
    assert_eq!(prepared(&repo, 1).await.how, WorktreePreparation::Created);
}

async fn with_work(repo: &Repo) -> PreparedWorktree {
    let made = prepared(repo, 1).await;
    write(&made.dir.join("b.txt"), "b\n");
    made.git.commit_all("work", None).await.unwrap().unwrap();
    write(&made.dir.join("b.txt"), "b\nc\n");
    made.git.commit_all("more work", None).await.unwrap().unwrap();
    made
}

#[tokio::test]
async fn a_merge_goes_into_the_checkout_of_its_branch() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    let made = with_work(&repo).await;
    let merge = BranchDelivery::Merge { into: "main".into() };
    write(&made.dir.join("b.txt"), "d\n");
    let error = all.deliver_branch(&made, &merge).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Uncommitted { .. }), "{error}");
    git_in(&made.dir, &["checkout", "--quiet", "--", "."]);

    repo.file("a.txt", "changed\n");
    let error = all.deliver_branch(&made, &merge).await.unwrap_err();
    assert!(matches!(error, WorktreeError::IntoDirty { .. }), "{error}");
    repo.commit("main goes on");
    repo.file("scratch", "untracked\n");
    let finished = all.deliver_branch(&made, &merge).await.unwrap();
    let head = repo.engine().head_commit().await.unwrap();
    assert_eq!(finished, BranchDeliveryResult::Merged { into: "main".into(), oid: head });
    assert_eq!(read(&repo.dir.join("b.txt")), "b\nc\n");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s"]),
        format!("Merge branch '{}' into main", made.branch)
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? scratch");
    let again = all.deliver_branch(&made, &merge).await.unwrap();
    assert_eq!(again, BranchDeliveryResult::AlreadyMerged { into: "main".into() });
}

#[tokio::test]
async fn a_merge_needs_no_checkout_of_its_branch() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    let made = with_work(&repo).await;
    repo.file("other.txt", "x\n");
    repo.commit("main goes on");
    repo.git(&["checkout", "--quiet", "-b", "elsewhere"]);
    repo.file("a.txt", "dirty\n");
    let squash =
        BranchDelivery::Squash { into: "main".into(), message: "Parse\n\n# all of it".into() };
    let BranchDeliveryResult::Merged { oid, .. } =
        all.deliver_branch(&made, &squash).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(repo.engine().branch_tip("main").await.unwrap(), Some(oid));
    assert_eq!(repo.git(&["log", "--format=%s", "main"]), "Parse\nmain goes on\nfirst");
    assert_eq!(repo.git(&["show", "main:b.txt"]), "b\nc");
    assert_eq!(read(&repo.dir.join("a.txt")), "dirty\n");

    // Also when the branch has moved on, and changed what was merged.
    repo.git(&["stash", "--quiet"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.file("b.txt", "other\n");
    repo.commit("main goes on again");
    let again = all.deliver_branch(&made, &squash).await.unwrap();
    assert_eq!(again, BranchDeliveryResult::AlreadyMerged { into: "main".into() });
}

#[tokio::test]
async fn a_conflict_names_its_files_and_changes_nothing() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    let made = prepared(&repo, 1).await;
    write(&made.dir.join("a.txt"), "run\n");
    made.git.commit_all("work", None).await.unwrap().unwrap();
    repo.file("a.txt", "main\n");
    let main = repo.commit("main");
    for ending in [
        BranchDelivery::Merge { into: "main".into() },
        BranchDelivery::Squash { into: "main".into(), message: "m".into() },
    ] {
        let error = all.deliver_branch(&made, &ending).await.unwrap_err();
        let WorktreeError::Conflict { files, .. } = &error else { panic!("{error}") };
        assert_eq!(files, &["a.txt"]);
        assert_eq!(repo.engine().head_commit().await.unwrap(), main);
        assert!(repo.engine().is_clean().await.unwrap());
        assert_eq!(repo.engine().current_operation().await.unwrap(), None);
    }
    // A branch that a rebase will come back to is left alone.
    conflict_on_topic(&repo);
    let error = all
        .deliver_branch(&made, &BranchDelivery::Merge { into: "topic".into() })
        .await
        .unwrap_err();
    assert!(
        matches!(error, WorktreeError::InTheMiddle { progress: Progress::Rebase, .. }),
        "{error}"
    );
}

/// The checkout is rebasing `topic`.
fn conflict_on_topic(repo: &Repo) {
    repo.git(&["checkout", "--quiet", "-b", "topic", "main~1"]);
    repo.file("z.txt", "z\n");
    repo.commit("topic");
    repo.git(&["checkout", "--quiet", "-b", "upstream", "main~1"]);
    repo.file("z.txt", "y\n");
    repo.commit("upstream");
    repo.git(&["checkout", "--quiet", "topic"]);
    try_git_in(&repo.dir, &["rebase", "upstream"]);
}

#[tokio::test]
async fn the_other_endings_keep_the_work() {
    let repo = Repo::new();
    let all = worktrees(&repo);
    let made = prepared(&repo, 1).await;
    let merge = BranchDelivery::Merge { into: "main".into() };
    assert_eq!(all.deliver_branch(&made, &merge).await.unwrap(), BranchDeliveryResult::Nothing);
    let made = with_work(&repo).await;
    git_in(&made.dir, &["checkout", "--quiet", "--detach"]);
    let error = all.deliver_branch(&made, &merge).await.unwrap_err();
    assert!(matches!(error, WorktreeError::Elsewhere { .. }), "{error}");
    let made = prepared(&repo, 1).await;
    let kept = all.deliver_branch(&made, &BranchDelivery::Keep).await.unwrap();
    assert_eq!(kept, BranchDeliveryResult::Kept { branch: made.branch.clone() });
    let named = BranchDelivery::Branch { name: "feature/parser".into() };
    for _ in 0..2 {
        let oid = made.git.head_commit().await.unwrap();
        let finished = all.deliver_branch(&made, &named).await.unwrap();
        assert_eq!(finished, BranchDeliveryResult::Branched { name: "feature/parser".into(), oid });
    }
    let error = all
        .deliver_branch(&made, &BranchDelivery::Branch { name: "main".into() })
        .await
        .unwrap_err();
    assert!(matches!(error, WorktreeError::BranchTaken { .. }), "{error}");
    assert!(
        all.deliver_branch(&made, &BranchDelivery::Branch { name: "-x".into() }).await.is_err()
    );
    let error = all
        .deliver_branch(&made, &BranchDelivery::Merge { into: "no-such".into() })
        .await
        .unwrap_err();
    assert!(matches!(error, WorktreeError::NoSuchBranch { .. }), "{error}");
    // The work has another name now, so the worktree may go.
    let pruned = all.prune(&|_| false).await.unwrap();
    assert_eq!((pruned.removed.len(), pruned.kept.len()), (1, 0));
    assert_eq!(repo.git(&["show", "feature/parser:b.txt"]), "b\nc");
}

#[tokio::test]
async fn a_new_worktree_gets_ignored_files_and_its_command_once() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let repo = Repo::new();
    write(&repo.dir.join(".env"), "SECRET=1\n");
    std::fs::set_permissions(repo.dir.join(".env"), std::fs::Permissions::from_mode(0o600))
        .unwrap();
    repo.file("ignored/deep/x.json", "{}\n");
    repo.file("ignored/deep/y.txt", "no\n");
    symlink("/etc/hostname", repo.dir.join("ignored/out.json")).unwrap();
    let all = worktrees(&repo);
    let mut made = prepared(&repo, 1).await;
    repo.file("loose.json", "{}\n");
    let patterns = [".env", "**/*.json", "a.txt", "no-such"];
    let mut setup = WorktreeSetup { copy: patterns.map(str::to_owned).to_vec(), check: None };
    let workplace = crate::checks::workplace(&made.dir, &repo.base);
    let stop = CancellationToken::new();
    setup.check =
        Some(CheckDefinition::new("setup", "cat .env; echo x >> ignored/count; [ -e ignored/go ]"));

    let first = set_up_worktree(&all, &mut made, &setup, &workplace, &stop, &|_| {}).await.unwrap();
    assert_eq!(first.copied.files, [".env", "ignored/deep/x.json"]);
    let left: Vec<_> = first.copied.left.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(left, ["ignored/out.json", "loose.json"]);
    assert!(first.copied.left[1].why.contains("git does not ignore it"));
    let verdict = first.verdict.unwrap();
    assert!(!verdict.green && verdict.results[0].output == "SECRET=1" && !made.set_up);
    let mode = std::fs::metadata(made.dir.join(".env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(made.git.is_clean().await.unwrap());

    // It failed, so it is done again, without overwriting what is there.
    write(&made.dir.join(".env"), "SECRET=2\n");
    write(&made.dir.join("ignored/go"), "");
    let mut made = prepared(&repo, 1).await;
    let again = set_up_worktree(&all, &mut made, &setup, &workplace, &stop, &|_| {}).await.unwrap();
    assert!(again.verdict.unwrap().green && made.set_up);
    assert_eq!(read(&made.dir.join(".env")), "SECRET=2\n");
    let mut made = prepared(&repo, 1).await;
    assert!(made.set_up && made.how == WorktreePreparation::Adopted);
    set_up_worktree(&all, &mut made, &setup, &workplace, &stop, &|_| {}).await.unwrap();
    assert_eq!(read(&made.dir.join("ignored/count")), "x\nx\n");

    made.set_up = false;
    for pattern in ["../x", "/etc/*", ""] {
        let setup = WorktreeSetup { copy: vec![pattern.to_owned()], check: None };
        let error =
            set_up_worktree(&all, &mut made, &setup, &workplace, &stop, &|_| {}).await.unwrap_err();
        assert!(matches!(error, SetupError::Worktree(WorktreeError::BadPattern { .. })), "{error}");
    }
}

/// A branch and a lock are all that is left of a worker that was killed early.
#[tokio::test]
async fn a_branch_without_a_worktree_and_with_a_lock_is_taken_up() {
    let repo = Repo::new();
    let made = prepared(&repo, 1).await;
    std::fs::remove_dir_all(&made.dir).unwrap();
    std::fs::remove_dir_all(&made.git_dir).unwrap();
    write(&repo.dir.join(format!(".git/refs/heads/{}.lock", made.branch)), "");
    repaired(&prepared(&repo, 1).await, "of a process that is gone was removed");
}

/// The end of a runtime kills git in the middle of what it does, as the end of a worker may.
#[test]
fn a_worker_may_end_at_any_moment() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let repo = Repo::new();
    for n in 0..300 {
        repo.file(&format!("many/{n}.txt"), &format!("{n}\n").repeat(50));
    }
    repo.commit("many files");
    let all = worktrees(&repo);
    let squash = BranchDelivery::Squash { into: "main".into(), message: "all of it".into() };
    let mut cut_short = 0;
    for ms in (1..100).step_by(7) {
        let run = format!("run-{ms}");
        let wanted = WorktreeRequest::new(&run, "x", owner(1));
        let time = Duration::from_millis(ms);
        let first = runtime()
            .block_on(async { tokio::time::timeout(time, all.prepare_worktree(&wanted)).await });
        cut_short += usize::from(first.is_err());
        runtime().block_on(async {
            let made = all.prepare_worktree(&wanted).await.unwrap();
            assert_eq!(made.git.current_branch().await.unwrap().as_ref(), Some(&made.branch));
            assert_eq!(made.git.status().await.unwrap(), [], "{ms}: {:?}", made.how);
            assert_eq!(made.base_branch, "main");
            write(&made.dir.join(&run), "x\n");
            made.git.commit_all("work", None).await.unwrap().unwrap();
            // Whoever stops waiting does not stop it.
            let first = tokio::time::timeout(time, all.deliver_branch(&made, &squash)).await;
            cut_short += usize::from(first.is_err());
            all.deliver_branch(&made, &squash).await.unwrap();
        });
        assert_eq!(repo.git(&["log", "--format=%s", "main", "--", &run]), "all of it", "{ms}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
    }
    assert!(cut_short > 5, "{cut_short}");
}
