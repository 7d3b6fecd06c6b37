//! git, against real repositories.

use repertoire_git::repo::{
    ChangeKind, CommitAuthor, DiffTarget, GitClient, GitError, GitFileChange, MergeTreeResult,
    Progress,
};
use repertoire_sandbox::confinement::Sandbox;

use crate::repo::{Repo, environment, script, write};

#[tokio::test]
async fn a_repository_says_where_it_is_and_what_is_checked_out() {
    let repo = Repo::new();
    std::fs::create_dir(repo.dir.join("sub")).unwrap();
    let git = GitClient::new(repo.dir.join("sub"), environment(&repo.base), Sandbox::None);
    assert_eq!(git.work_tree_root().await.unwrap(), repo.dir);
    assert_eq!(git.common_dir().await.unwrap(), repo.dir.join(".git"));
    assert_eq!(git.current_branch().await.unwrap().as_deref(), Some("main"));
    let head = git.head_commit().await.unwrap();
    assert_eq!(head.as_str(), repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(git.resolve("main").await.unwrap(), head);
    repo.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(git.current_branch().await.unwrap(), None);
}

#[tokio::test]
async fn without_a_commit_a_repository_or_a_revision_the_error_says_what_to_do() {
    let repo = Repo::unborn();
    let git = repo.engine();
    let error = git.head_commit().await.unwrap_err();
    assert!(error.to_string().contains("commit something first"), "{error}");
    assert_eq!(git.current_branch().await.unwrap().as_deref(), Some("main"));

    let outside = GitClient::new(&repo.base, environment(&repo.base), Sandbox::None);
    let error = outside.work_tree_root().await.unwrap_err();
    assert!(matches!(error, GitError::NotARepository { .. }), "{error}");

    for revision in ["no-such", "--help", "-n", "a b", "", "HEAD:a.txt", "@{u}"] {
        let error = git.resolve(revision).await.unwrap_err();
        assert!(
            matches!(error, GitError::NoSuchRevision { .. } | GitError::Failed { .. }),
            "{revision}: {error}"
        );
    }
    let lost =
        GitClient::new(&repo.dir, vec![("PATH".to_owned(), repo.base.to_string())], Sandbox::None);
    let error = lost.head_commit().await.unwrap_err().to_string();
    assert!(error.contains("install git 2.41"), "{error}");
}

#[tokio::test]
async fn an_old_git_is_refused_once_and_clearly() {
    let repo = Repo::new();
    let count = repo.base.join("count");
    let fake = format!("#!/bin/sh\necho x >> {count}\necho git version 2.20.1\n");
    script(&repo.base.join("bin/git"), &fake);
    let path = format!("{}:/usr/bin:/bin", repo.base.join("bin"));
    let git = GitClient::new(&repo.dir, vec![("PATH".to_owned(), path)], Sandbox::None);
    let error = git.head_commit().await.unwrap_err().to_string();
    assert_eq!(error, "git is too old: this is `git version 2.20.1`, and 2.41 or later is needed");
}

#[tokio::test]
async fn a_status_is_exact_about_hostile_names() {
    let repo = Repo::new();
    repo.file("gone.txt", "x\n");
    repo.file("old name.txt", "a long enough text to be found again\n");
    repo.commit("second");
    std::fs::remove_file(repo.dir.join("gone.txt")).unwrap();
    repo.git(&["mv", "old name.txt", "new\tname.txt"]);
    repo.file("a.txt", "two\n");
    let hostile = ["--all", "-rf", "line\nbreak", "quo\"te'", "ünï", " lead", ":(top)x", "back\\s"];
    for name in hostile {
        repo.file(name, "x\n");
    }
    repo.file("ignored/x", "x\n");
    let git = repo.engine();
    let mut status = git.status().await.unwrap();
    status.sort_by(|a, b| a.path.cmp(&b.path));
    let mut expected: Vec<GitFileChange> = hostile
        .iter()
        .map(|name| GitFileChange { path: (*name).into(), from: None, kind: ChangeKind::Untracked })
        .collect();
    let change = |path: &str, kind| GitFileChange { path: path.to_owned(), from: None, kind };
    expected.push(change("a.txt", ChangeKind::Modified));
    expected.push(change("gone.txt", ChangeKind::Deleted));
    let renamed = change("new\tname.txt", ChangeKind::Renamed);
    expected.push(GitFileChange { from: Some("old name.txt".to_owned()), ..renamed });
    expected.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(status, expected);
    assert!(!git.is_clean().await.unwrap());

    assert!(git.commit_all("all of them", None).await.unwrap().is_some());
    assert!(git.is_clean().await.unwrap());
    let listed = repo.git(&["ls-files", "-z"]);
    assert!(hostile.iter().all(|name| listed.split('\0').any(|file| file == *name)), "{listed}");
}

#[tokio::test]
async fn a_commit_needs_no_user_and_takes_an_author() {
    let repo = Repo::new();
    let git = repo.engine();
    assert_eq!(git.commit_all("nothing", None).await.unwrap(), None);
    repo.file("b.txt", "b\n");
    let oid = git.commit_all("# not a comment\n\nbody", None).await.unwrap().unwrap();
    assert_eq!(oid, git.head_commit().await.unwrap());
    let shown = repo.git(&["log", "-1", "--format=%an <%ae> %cn <%ce> %s"]);
    let nobody = "Repertoire <repertoire@localhost>";
    assert_eq!(shown, format!("{nobody} {nobody} # not a comment"));

    repo.git(&["config", "user.name", "Ann"]);
    repo.git(&["config", "user.email", "ann@example.com"]);
    repo.file("b.txt", "c\n");
    let author = CommitAuthor { name: "An Agent".into(), email: "agent@example.com".into() };
    git.commit_all("third", Some(&author)).await.unwrap().unwrap();
    let shown = repo.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>"]);
    assert_eq!(shown, "An Agent <agent@example.com> Ann <ann@example.com>");
    assert!(matches!(git.commit_all(" \n", None).await, Err(GitError::NoMessage)));
}

#[tokio::test]
async fn a_commit_of_paths_takes_those_alone() {
    let repo = Repo::new();
    let git = repo.engine();
    for name in ["-n", "line\nbreak", "*", "star", "staged"] {
        repo.file(name, "x\n");
    }
    std::fs::remove_file(repo.dir.join("a.txt")).unwrap();
    repo.git(&["add", "--", "staged"]);
    let paths = ["-n", "line\nbreak", "*", "a.txt"].map(str::to_owned);
    git.commit_paths(&paths, "some").await.unwrap().unwrap();
    let shown = repo.git(&["show", "--format=", "--name-status", "-z", "HEAD"]);
    let mut names: Vec<&str> = shown.split_terminator('\0').collect();
    names.sort_unstable();
    assert_eq!(names, ["*", "-n", "A", "A", "A", "D", "a.txt", "line\nbreak"]);
    let left: Vec<_> = git.status().await.unwrap().into_iter().map(|change| change.path).collect();
    assert_eq!(left, ["staged", "star"]);
    assert_eq!(git.commit_paths(&["*".to_owned()], "again").await.unwrap(), None);
    for path in ["../x", "/etc/passwd", ""] {
        let error = git.commit_paths(&[path.to_owned()], "no").await.unwrap_err();
        assert!(matches!(error, GitError::BadPath { .. }), "{error}");
    }
    let error = git.commit_paths(&["no-such".to_owned()], "no").await.unwrap_err();
    assert!(error.to_string().contains("no-such"), "{error}");
}

#[tokio::test]
async fn the_tree_of_the_work_sees_untracked_files_and_touches_nothing() {
    let repo = Repo::new();
    let git = repo.engine();
    let head = git.head_commit().await.unwrap();
    let committed = git.tree_of(&head).await.unwrap();
    assert_eq!(git.tree_of_work().await.unwrap(), committed);
    repo.file("ignored/x", "x\n");
    assert_eq!(git.tree_of_work().await.unwrap(), committed);
    repo.file("new.txt", "x\n");
    let with = git.tree_of_work().await.unwrap();
    assert_ne!(with, committed);
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "");
    let left = std::fs::read_dir(repo.dir.join(".git")).unwrap();
    assert!(left.flatten().all(|e| !e.file_name().to_string_lossy().starts_with("repertoire-")));
    std::fs::remove_file(repo.dir.join("new.txt")).unwrap();
    assert_eq!(git.tree_of_work().await.unwrap(), committed);
}

#[tokio::test]
async fn a_diff_counts_all_and_shows_what_fits() {
    let repo = Repo::new();
    repo.file("moved.txt", "one\ntwo\nthree\nfour\n");
    let base = repo.commit("second");
    repo.git(&["mv", "--", "moved.txt", "-there"]);
    repo.file("a.txt", "two\n");
    repo.file("bytes", "\0\u{1}");
    repo.file("new.txt", &"line\n".repeat(1000));
    let git = repo.engine();
    let diff = git.diff(&DiffTarget::Work { from: base.clone() }, 1 << 20).await.unwrap();
    assert!(diff.text.contains("-one\n+two\n") && diff.text.contains("rename to -there"));
    assert_eq!((diff.insertions, diff.deletions, diff.cut), (1001, 1, false));
    let renamed = diff.files.iter().find(|file| file.path == "-there").unwrap();
    assert_eq!(renamed.from.as_deref(), Some("moved.txt"));
    assert_eq!(diff.files.iter().find(|f| f.path == "bytes").unwrap().insertions, None);

    let short = git.diff(&DiffTarget::Work { from: base.clone() }, 500).await.unwrap();
    assert!(short.cut && short.text.len() <= 500 && short.text.ends_with('\n'));
    assert_eq!((short.files.len(), short.insertions), (4, 1001));

    let to = git.commit_all("third", None).await.unwrap().unwrap();
    let same = git.diff(&DiffTarget::Commits { from: base, to }, 1 << 20).await.unwrap();
    assert_eq!(same, diff);
}

#[tokio::test]
async fn the_same_change_has_the_same_fingerprint() {
    let repo = Repo::new();
    let git = repo.engine();
    let lines = |first: &str, last: &str| format!("{first}{}{last}", "same\n".repeat(20));
    repo.file("a.txt", &lines("", "end\n"));
    let base = repo.commit("second");
    assert_eq!(git.diff_fingerprint(&base).await.unwrap(), None);
    repo.file("a.txt", &lines("", "changed\n"));
    let print = git.diff_fingerprint(&base).await.unwrap().unwrap();
    assert_eq!(git.diff_fingerprint(&base).await.unwrap().as_ref(), Some(&print));
    repo.file("a.txt", &lines("", "otherwise\n"));
    assert_ne!(git.diff_fingerprint(&base).await.unwrap().as_ref(), Some(&print));

    // A line above has come in the meantime.
    repo.file("a.txt", &lines("new\n", "end\n"));
    let later = repo.commit("third");
    repo.file("a.txt", &lines("new\n", "changed\n"));
    assert_eq!(git.diff_fingerprint(&later).await.unwrap(), Some(print));

    repo.git(&["checkout", "--quiet", "--", "."]);
    repo.file("bytes", "\0one");
    let one = git.diff_fingerprint(&later).await.unwrap();
    repo.file("bytes", "\0two");
    assert_ne!(git.diff_fingerprint(&later).await.unwrap(), one);
}

#[tokio::test]
async fn a_log_is_read_exactly() {
    let repo = Repo::new();
    let git = repo.engine();
    let base = git.head_commit().await.unwrap();
    assert_eq!(git.commits_between(&base, &base).await.unwrap(), []);
    let second = repo.commit("second: `x`\n\nbody\n\nmore\u{1}");
    let third = repo.commit("third");
    let log = git.commits_between(&base, &third).await.unwrap();
    let subjects: Vec<_> = log.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["third", "second: `x`"]);
    assert_eq!((&log[0].parents, &log[1].oid), (&vec![second.clone()], &second));
    assert_eq!(log[1].body, "body\n\nmore\u{1}");
    assert_eq!((log[0].author.as_str(), log[0].email.as_str()), ("Test", "test@example.com"));
    assert!(log[0].time_s > 1_000_000_000);
}

#[tokio::test]
async fn branches_and_ancestors_are_told() {
    let repo = Repo::new();
    let git = repo.engine();
    let base = git.head_commit().await.unwrap();
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    let side = repo.commit("side");
    repo.git(&["checkout", "--quiet", "main"]);
    let main = repo.commit("main");
    assert!(git.branch_exists("side").await.unwrap());
    assert!(!git.branch_exists("sid").await.unwrap() && !git.branch_exists("--").await.unwrap());
    assert!(git.is_ancestor(&base, &side).await.unwrap());
    assert!(!git.is_ancestor(&side, &main).await.unwrap());
    assert_eq!(git.merge_base(&side, &main).await.unwrap(), Some(base.clone()));
    git.delete_branch("side").await.unwrap();
    assert!(!git.branch_exists("side").await.unwrap());
    let error = git.delete_branch("main").await.unwrap_err();
    assert!(matches!(error, GitError::Failed { .. }), "{error}");

    git.set_branch("made", &side, None, "test").await.unwrap();
    assert!(git.set_branch("made", &main, None, "test").await.is_err());
    assert!(git.set_branch("made", &main, Some(&base), "test").await.is_err());
    git.set_branch("made", &main, Some(&side), "test").await.unwrap();
    assert_eq!(git.branch_tip("made").await.unwrap(), Some(main));
    assert!(git.check_branch_name("rep/fine-1").await.is_ok());
    for name in ["-x", "a..b", "", "a b", "a.lock", "a\nb"] {
        assert!(git.check_branch_name(name).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_hard_reset_brings_back_files_and_leaves_untracked_ones() {
    let repo = Repo::new();
    let git = repo.engine();
    let base = git.head_commit().await.unwrap();
    repo.file("a.txt", "two\n");
    repo.commit("second");
    repo.file("new.txt", "x\n");
    git.reset_hard(&base).await.unwrap();
    assert_eq!(git.head_commit().await.unwrap(), base);
    assert!(repo.dir.join("new.txt").exists());
    assert_eq!(crate::repo::read(&repo.dir.join("a.txt")), "one\n");
}

#[tokio::test]
async fn a_merge_without_a_checkout_names_conflicts() {
    let repo = Repo::new();
    let git = repo.engine();
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    repo.file("a.txt", "side\n");
    repo.file("line\nbreak", "x\n");
    let side = repo.commit("side");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.file("b.txt", "b\n");
    let main = repo.commit("main");
    let MergeTreeResult::Tree(tree) = git.merge_tree(&main, &side).await.unwrap() else { panic!() };
    let listed = repo.git(&["ls-tree", "-z", "--name-only", tree.0.as_str()]);
    assert!(listed.contains("b.txt") && listed.contains("line\nbreak"));
    repo.file("a.txt", "main\n");
    repo.file("line\nbreak", "y\n");
    let main = repo.commit("main again");
    let merged = git.merge_tree(&main, &side).await.unwrap();
    assert_eq!(merged, MergeTreeResult::Conflict(vec!["a.txt".into(), "line\nbreak".into()]));
    assert!(git.is_clean().await.unwrap());
}

#[tokio::test]
async fn what_a_checkout_is_in_the_middle_of_is_told_and_left() {
    let repo = Repo::new();
    let git = repo.engine();
    assert_eq!(git.current_operation().await.unwrap(), None);
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    repo.file("a.txt", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.file("a.txt", "main\n");
    let main = repo.commit("main");
    for (args, progress) in [
        (["merge", "side"], Progress::Merge),
        (["rebase", "side"], Progress::Rebase),
        (["cherry-pick", "side"], Progress::CherryPick),
        (["bisect", "start"], Progress::Bisect),
    ] {
        crate::repo::try_git_in(&repo.dir, &args);
        assert_eq!(git.current_operation().await.unwrap(), Some(progress));
        git.abort_operation(progress).await.unwrap();
        assert_eq!(git.current_operation().await.unwrap(), None);
        assert_eq!(
            (git.head_commit().await.unwrap(), git.is_clean().await.unwrap()),
            (main.clone(), true)
        );
    }
}

#[tokio::test]
async fn a_lock_is_told_as_a_lock() {
    let repo = Repo::new();
    write(&repo.dir.join(".git/index.lock"), "");
    repo.file("b.txt", "b\n");
    let error = repo.engine().commit_all("x", None).await.unwrap_err();
    assert!(matches!(error, GitError::Locked { .. }), "{error}");
    write(&repo.dir.join(".git/config.lock"), "");
    let git = repo.engine();
    let (set, ()) = tokio::join!(git.set_config_value("branch.x.word", "a b"), async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        std::fs::remove_file(repo.dir.join(".git/config.lock")).unwrap();
    });
    set.unwrap();
    assert_eq!(git.config_value("branch.x.word").await.unwrap().as_deref(), Some("a b"));
    // Looking needs no lock.
    assert_eq!(repo.engine().status().await.unwrap().len(), 1);
}

/// What an agent could write into the configuration that it shares with us runs nothing.
#[tokio::test]
async fn configuration_of_the_repository_runs_no_programs() {
    let repo = Repo::new();
    let ran = repo.base.join("ran");
    let evil = repo.base.join("evil");
    script(&evil, &format!("#!/bin/sh\necho \"$0 $*\" >> {ran}\ncat\n"));
    for hook in
        ["pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction"]
    {
        let text = format!("#!/bin/sh\necho hook {hook} >> {ran}\nexit 1\n");
        script(&repo.dir.join(".git/hooks").join(hook), &text);
    }
    for key in [
        "core.fsmonitor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "core.editor",
        "core.pager",
        "pager.log",
        "pager.status",
        "gpg.program",
        "core.sshCommand",
        "credential.helper",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
    ] {
        repo.git(&["config", key, evil.as_str()]);
    }
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo.git(&["config", "log.showSignature", "true"]);
    repo.file(".gitattributes", "* diff=evil filter=evil\n");
    let git = repo.engine();
    let base = git.head_commit().await.unwrap();
    repo.file("a.txt", "two\n");
    git.status().await.unwrap();
    git.tree_of_work().await.unwrap();
    git.diff(&DiffTarget::Work { from: base.clone() }, 1000).await.unwrap();
    let oid = git.commit_all("checkpoint", None).await.unwrap().unwrap();
    git.commits_between(&base, &oid).await.unwrap();
    git.set_branch("made", &base, None, "test").await.unwrap();
    git.reset_hard(&base).await.unwrap();
    assert!(!ran.exists(), "{}", crate::repo::read(&ran));
    // And nobody has to guess that they did not run.
    assert_eq!(git.hooks_left_out().await.unwrap(), ["pre-commit", "commit-msg", "post-commit"]);
    // The test can fail: a user's git does run them.
    crate::repo::try_git_in(&repo.dir, &["diff"]);
    assert!(ran.exists());
}

/// Without a sandbox: the user's own filters run, those of the repository do not, and a required one stops git.
#[tokio::test]
async fn without_a_sandbox_only_filters_of_the_user_run() {
    let repo = Repo::new();
    write(&repo.base.join(".gitconfig"), "[filter \"own\"]\n\tclean = sed s/secret/hidden/\n");
    repo.git(&["config", "filter.own.clean", "sed s/secret/stolen/"]);
    repo.git(&["config", "filter.theirs.clean", "sed s/secret/stolen/"]);
    repo.file(".gitattributes", "*.own filter=own\n*.theirs filter=theirs\n");
    repo.file("a.own", "secret\n");
    repo.file("a.theirs", "secret\n");
    let git = repo.engine();
    git.commit_all("filtered", None).await.unwrap().unwrap();
    assert_eq!(repo.git(&["cat-file", "blob", "HEAD:a.own"]), "hidden");
    assert_eq!(repo.git(&["cat-file", "blob", "HEAD:a.theirs"]), "secret");
    repo.git(&["config", "filter.theirs.required", "true"]);
    repo.file("b.theirs", "secret\n");
    let refused = repo.engine().commit_all("more", None).await.unwrap_err().to_string();
    assert!(refused.contains("theirs"), "{refused}");
}

#[tokio::test]
async fn a_submodule_is_committed_by_its_commit_and_never_looked_into() {
    let repo = Repo::new();
    let ran = repo.base.join("ran");
    let inner = repo.dir.join("sub");
    std::fs::create_dir(&inner).unwrap();
    crate::repo::git_in(&inner, &["init", "--quiet", "--initial-branch=main"]);
    write(&inner.join("a"), "1\n");
    let first = crate::repo::commit_in(&inner, "first");
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{first},sub")]);
    repo.git(&["commit", "--quiet", "--message", "A submodule"]);
    let filter = format!("sh -c 'echo ran > {ran}; cat'");
    crate::repo::git_in(&inner, &["config", "filter.x.clean", &filter]);
    write(&inner.join(".git/info/attributes"), "* filter=x\n");
    write(&inner.join("a"), "2\n");
    let git = repo.engine();
    assert!(git.is_clean().await.unwrap());
    assert_eq!(git.commit_all("nothing", None).await.unwrap(), None);
    assert!(!ran.exists());
    let second = crate::repo::commit_in(&inner, "second");
    std::fs::remove_file(&ran).unwrap();
    assert_eq!(git.status().await.unwrap().len(), 1);
    git.commit_all("moved", None).await.unwrap().unwrap();
    assert!(repo.git(&["ls-tree", "HEAD", "sub"]).contains(second.as_str()));
    assert!(!ran.exists());
}
