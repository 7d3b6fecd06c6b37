use super::*;
use crate::tools::testing::Bench;

fn args(text: &str) -> Value {
    json!({"args": text.split(' ').collect::<Vec<_>>()})
}

async fn repository() -> Bench {
    let bench = Bench::new();
    bench.ok(&GitTool, args("init -q -b main")).await;
    bench.file("a.txt", "one\n");
    bench.ok(&GitTool, args("add .")).await;
    commit(&bench, "First").await;
    bench
}

async fn commit(bench: &Bench, message: &str) {
    let mut run = bench.run();
    for who in ["AUTHOR", "COMMITTER"] {
        let environment = &mut run.workplace.environment;
        environment.push((format!("GIT_{who}_NAME"), "A".to_owned()));
        environment.push((format!("GIT_{who}_EMAIL"), "a@example.com".to_owned()));
    }
    let arguments = json!({"args": ["commit", "-q", "-m", message]});
    let output = crate::tools::testing::call(&GitTool, &run, arguments).await;
    assert!(!output.is_error, "{}", output.text);
}

#[tokio::test]
async fn a_repository_is_made_changed_and_looked_at() {
    let bench = repository().await;
    assert!(bench.ok(&GitTool, args("log --format=%s")).await.contains("First"));
    bench.file("a.txt", "two\n");
    assert_eq!(bench.ok(&GitTool, args("status --short")).await, " M a.txt");
    assert!(bench.ok(&GitTool, args("diff")).await.contains("-one\n+two"));
    bench.ok(&GitTool, args("switch -q -c topic")).await;
    assert_eq!(bench.ok(&GitTool, args("branch --show-current")).await, "topic");
    bench.ok(&GitTool, args("add a.txt")).await;
    commit(&bench, "../Second: it's $(not) a path").await;
    assert!(bench.ok(&GitTool, args("log -1 --format=%s")).await.contains("it's $(not) a path"));
    assert!(bench.ok(&GitTool, args("show HEAD:a.txt")).await.contains("two"));
    assert!(bench.ok(&GitTool, args("blame a.txt")).await.contains("two"));
    let said = bench.fails(&GitTool, args("show nothing")).await;
    assert!(said.contains("[exit code 128]"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn hooks_and_helpers_of_the_repository_do_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let bench = repository().await;
    let trap = bench.dir().join("trap.sh");
    repertoire_text::fs::write_atomic(&trap, b"#!/bin/sh\ntouch \"$(dirname \"$0\")/sprung\"\n")
        .unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&trap, executable.clone()).unwrap();
    let hook = bench.dir().join(".git/hooks/pre-commit");
    repertoire_text::fs::write_atomic(&hook, format!("#!/bin/sh\n{trap}\n").as_bytes()).unwrap();
    std::fs::set_permissions(&hook, executable).unwrap();
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {trap}\n\tpager = {trap}\n\teditor = {trap}\n\
         [diff]\n\texternal = {trap}\n[diff \"t\"]\n\ttextconv = {trap}\n[commit]\n\tgpgsign = true\n\
         [gpg]\n\tprogram = {trap}\n"
    );
    bench.file(".git/config", config);
    bench.file(".gitattributes", "*.txt diff=t\n");
    bench.file("a.txt", "two\n");
    bench.ok(&GitTool, args("status")).await;
    assert!(bench.ok(&GitTool, args("diff")).await.contains("+two"));
    bench.ok(&GitTool, args("add a.txt")).await;
    commit(&bench, "Second").await;
    bench.ok(&GitTool, args("log -p")).await;
    bench.ok(&GitTool, args("show HEAD")).await;
    bench.ok(&GitTool, args("blame a.txt")).await;
    bench.file("a.txt", "three\n");
    bench.ok(&GitTool, args("add a.txt")).await;
    for shown in ["reflog", "reflog show HEAD", "reflog -2", "stash list"] {
        bench.ok(&GitTool, args(shown)).await;
    }
    assert!(!bench.dir().join("sprung").exists());
}

#[tokio::test]
async fn a_folder_that_only_looks_like_a_repository_is_none() {
    let bench = Bench::new();
    bench.file("HEAD", "ref: refs/heads/main\n");
    bench.file("config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n");
    for folder in ["objects", "refs"] {
        std::fs::create_dir(bench.dir().join(folder)).unwrap();
    }
    let said = bench.fails(&GitTool, args("rev-parse --is-bare-repository")).await;
    assert!(said.contains("cannot use bare repository"), "{said}");
}

#[tokio::test]
async fn what_runs_programs_or_leaves_the_folder_is_refused() {
    let bench = repository().await;
    for refused in [
        "-c core.pager=x log",
        "-C / status",
        "--git-dir=/x status",
        "--exec-path=/x status",
        "config --global user.name x",
        "daemon",
        "diff --output=x",
        "diff --outp x",
        "diff --ext-diff",
        "log --textconv",
        "diff --no-index a.txt /etc/passwd",
        "diff /etc/passwd a.txt",
        "commit -F /etc/passwd",
        "commit -F/etc/passwd",
        "commit --file=/etc/passwd",
        "fetch --upload-pack=x origin",
        "fetch --upload-p x",
        "push --receive-pack=x",
        "push --exec=x",
        "clone -u x y",
        "clone -c core.sshCommand=x y",
        "clone --template=. y",
        "clone --recursive x y",
        "rebase -x true HEAD",
        "rebase --exec true",
        "worktree add ../elsewhere",
        "worktree add /tmp/elsewhere",
        "add ../x",
        // Letters behind a flag that takes a value elsewhere, and a `--` that is a value.
        "rebase -mx true HEAD",
        "rebase -nx true HEAD",
        "clone -nu x . y",
        "fetch -o -- --upload-pack=x .",
        "stash show -S -- --output=x",
        "clone file:///etc/x y",
        "",
    ] {
        bench.fails(&GitTool, args(refused)).await;
    }
    bench.fails(&GitTool, json!({"args": []})).await;
    bench.fails(&GitTool, json!({"args": ["log", "a\u{0}b"]})).await;
    let said = bench.fails(&GitTool, args("comit")).await;
    assert!(said.contains("did you mean `commit`?"), "{said}");
}

#[test]
fn access_follows_the_subcommand() {
    for (text, expected) in [
        ("status", ToolAccess::Read),
        ("log -5", ToolAccess::Read),
        ("branch", ToolAccess::Read),
        ("branch --list x*", ToolAccess::Read),
        ("branch -a", ToolAccess::Read),
        ("branch new", ToolAccess::Write),
        ("branch -D old", ToolAccess::Write),
        ("branch --list -D old", ToolAccess::Write),
        ("tag", ToolAccess::Read),
        ("tag v1", ToolAccess::Write),
        ("stash", ToolAccess::Write),
        ("stash list", ToolAccess::Read),
        ("reflog expire --all", ToolAccess::Write),
        ("commit -m x", ToolAccess::Write),
        ("worktree list", ToolAccess::Read),
        ("remote -v", ToolAccess::Read),
        ("remote add x y", ToolAccess::Network),
        ("push", ToolAccess::Network),
        ("unknown", ToolAccess::Network),
    ] {
        assert_eq!(GitTool.access(&args(text)), expected, "{text}");
    }
    assert_eq!(GitTool.access(&json!({"args": []})), ToolAccess::Execute);
}

#[test]
fn the_subject_is_the_command_as_it_would_be_typed() {
    let subject = GitTool.subject(&json!({"args": ["commit", "-m", "it's"]}));
    assert_eq!(subject, r"git commit -m 'it'\''s'");
}
