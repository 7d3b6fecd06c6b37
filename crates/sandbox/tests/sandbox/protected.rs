//! Protected paths stay as they are, whether they are mounted read-only or put back.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::confinement::{
    NetworkAccess, ProtectedPathGuard, ProtectedPathOutcome, Sandbox,
};
use repertoire_sandbox::workplace::RunWorkplace;

use crate::kinds;
use crate::place::{CANARY, Place, ended, put, said, text};

const ATTEMPTS: &[&str] = &[
    "echo x > .git/hooks/pre-commit",
    "echo x > .git/hooks/new",
    "rm -rf .git/hooks",
    "mv .git/hooks .git/old && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
    "mv .git .git2; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "mv .git .git2; ln -s .git2 .git; echo x > .git/hooks/pre-commit",
    "mv .git .git2; ln -s $OUT .git",
    "echo x > .git/config",
    "echo x > c && mv c .git/config",
    "ln .git/config c; echo x > c",
    "chmod 777 .git/config",
    "chmod 777 .git/hooks/pre-commit",
    "echo x >> AGENTS.md",
    "rm AGENTS.md; ln -s $OUT/victim AGENTS.md",
    "rm AGENTS.md; mkdir AGENTS.md",
    "echo x > .claude/settings.json; echo x > .claude/new; rm -rf .claude",
    "mv .claude gone",
    "rm -rf skills; mkdir -p skills/a; echo x > skills/a/SKILL.md",
    "mv skills/a skills/b",
    "echo x > CLAUDE.md",
    "mkdir -p .cursor/rules; echo x > .cursor/rules/x",
    "ln -s / .gemini",
    "mkdir -p .github/skills/x; echo x > .github/skills/x/SKILL.md",
    "mkfifo .mcp.json",
    "echo x > nest/AGENTS.md; echo x > nest/.git/config; echo x > nest/.git/hooks/pre-commit; chmod 777 nest/AGENTS.md",
    "rm -rf nest; mkdir -p nest/.git; echo x > nest/.git/config; echo x > nest/AGENTS.md",
    "mv nest nest2; mkdir nest; echo x > nest/AGENTS.md",
    "mkdir -p a/b/.claude a/.husky; echo x > a/b/.claude/x; echo x > a/.husky/x; echo x > .envrc; echo x > a/CLAUDE.md",
    "mkdir -p a/.git/hooks; echo x > a/.git/hooks/pre-commit; echo '[core]' > a/.git/config",
    "mkdir -p a/.git; printf '[core]\\nfsmonitor = x\\n' > a/.git/config; ln -s ../.git2 nest/sub",
    "mkdir -p .git/modules/x; echo x > .git/modules/x/config; mkdir .git/info; echo x > .git/info/attributes",
];

/// Every protected path, with what it is.
fn protected_tree(place: &Place) -> BTreeMap<Utf8PathBuf, String> {
    let mut tree = BTreeMap::new();
    for path in place.workplace(&Sandbox::None).protected {
        note(&path, &mut tree);
    }
    let work = place.root.join("work");
    for path in ["nest/AGENTS.md", "nest/.git", "a/.git", "a/CLAUDE.md", "a/.husky", "a/b/.claude"]
    {
        note(&work.join(path), &mut tree);
    }
    note_kind(&place.root.join("work/.git"), &mut tree);
    tree
}

fn note_kind(path: &Utf8Path, tree: &mut BTreeMap<Utf8PathBuf, String>) {
    let kind =
        std::fs::symlink_metadata(path).map(|metadata| format!("{:?}", metadata.file_type()));
    tree.insert(path.to_owned(), kind.unwrap_or_default());
}

fn note(path: &Utf8Path, tree: &mut BTreeMap<Utf8PathBuf, String>) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    if metadata.is_dir() {
        tree.insert(path.to_owned(), "folder".to_owned());
        for entry in path.read_dir_utf8().expect("readable").flatten() {
            note(entry.path(), tree);
        }
    } else if metadata.is_file() {
        let mode = metadata.permissions().mode();
        tree.insert(path.to_owned(), format!("{mode:o} {}", text(path)));
    } else {
        tree.insert(path.to_owned(), "something else".to_owned());
    }
}

#[tokio::test]
async fn protected_paths_stay_as_they_are() {
    let mut all = vec![Sandbox::None];
    all.extend(kinds());
    for sandbox in all {
        for script in ATTEMPTS {
            let place = Place::new();
            let before = protected_tree(&place);
            let guard = ProtectedPathGuard::for_workplace(&place.workplace(&sandbox));
            let script = format!("echo STARTED; {script}");
            let ended = place.run(&sandbox, NetworkAccess::Off, &script).await;
            let changes = guard.restore_paths();
            let what = format!("{}: `{script}`: {changes:?} {}", sandbox.describe(), said(&ended));
            assert!(said(&ended).contains("STARTED"), "{what}");
            assert_eq!(protected_tree(&place), before, "{what}");
            let failed = changes
                .iter()
                .any(|change| matches!(change.outcome, ProtectedPathOutcome::Failed(_)));
            assert!(!failed, "{what}");
            if sandbox.is_enforced() {
                assert_eq!(text(&place.root.join("outside/victim")), CANARY, "{what}");
            }
            if sandbox.protects_paths() {
                let only_new = changes
                    .iter()
                    .all(|change| matches!(change.outcome, ProtectedPathOutcome::MovedTo(_)));
                assert!(only_new, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn what_nobody_touched_is_not_reported() {
    let mut all = vec![Sandbox::None];
    all.extend(kinds());
    for sandbox in all {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace(&sandbox));
        place.run(&sandbox, NetworkAccess::Off, "echo x > ordinary; mkdir .git/objects").await;
        assert_eq!(guard.restore_paths(), [], "{}", sandbox.describe());
    }
}

#[tokio::test]
async fn a_worktree_keeps_its_pointer_and_a_link_its_target() {
    let mut all = vec![Sandbox::None];
    all.extend(kinds());
    for sandbox in all {
        let place = Place::new();
        let work = place.root.join("work");
        std::fs::remove_dir_all(work.join(".git")).expect("was there");
        put(&work.join(".git"), "gitdir: elsewhere\n");
        put(&work.join("docs/agents.md"), CANARY);
        std::os::unix::fs::symlink("docs/agents.md", work.join("CLAUDE.md")).expect("linked");
        let guard = ProtectedPathGuard::for_workplace(&place.workplace(&sandbox));
        let script = "echo x > .git; rm CLAUDE.md; echo x > CLAUDE.md";
        place.run(&sandbox, NetworkAccess::Off, script).await;
        let changes = guard.restore_paths();
        let what = format!("{}: {changes:?}", sandbox.describe());
        assert_eq!(
            std::fs::read_link(work.join("CLAUDE.md")).ok(),
            Some("docs/agents.md".into()),
            "{what}"
        );
        assert_eq!(text(&work.join(".git")), "gitdir: elsewhere\n", "{what}");
    }
}

#[tokio::test]
async fn a_work_folder_behind_a_link_is_protected_under_both_names() {
    for sandbox in kinds() {
        let place = Place::new();
        let before = protected_tree(&place);
        let link = place.root.join("link");
        std::os::unix::fs::symlink(place.root.join("work"), &link).expect("linked");
        let mut workplace = RunWorkplace::new(&link, place.root.join("spill"), sandbox.clone());
        workplace.readable = repertoire_sandbox::workplace::ReadableFolders::default();
        let guard = ProtectedPathGuard::for_workplace(&workplace);
        let script = format!(
            "echo STARTED; cd {link}; echo x > .git/config; mv .git g; cd {}; echo x > .git/config; mv .git g",
            place.root.join("work")
        );
        let mut spawn = place.spawn(&script);
        spawn.dir = link;
        let ended = ended(&sandbox.confine(spawn, &workplace, NetworkAccess::Off)).await;
        let changes = guard.restore_paths();
        let what = format!("{}: {changes:?} {}", sandbox.describe(), said(&ended));
        assert!(said(&ended).contains("STARTED"), "{what}");
        assert_eq!(protected_tree(&place), before, "{what}");
        assert!(changes.is_empty() || !sandbox.protects_paths(), "{what}");
    }
}

#[test]
fn what_was_made_in_a_protected_place_is_moved_aside() {
    let place = Place::new();
    let guard = ProtectedPathGuard::for_workplace(&place.workplace(&Sandbox::None));
    put(&place.root.join("work/GEMINI.md"), "new");
    put(&place.root.join("work/.claude/new"), "new");
    put(&place.root.join("work/.claude/settings.json"), "other");
    let changes = guard.restore_paths();
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, [".claude/new", ".claude/settings.json", "GEMINI.md"]);
    let ProtectedPathOutcome::MovedTo(to) = &changes[2].outcome else { panic!("{changes:?}") };
    assert_eq!(text(to), "new");
    assert_eq!(changes[1].outcome, ProtectedPathOutcome::Restored);
}

/// What a program leaves where its own folders were must not lead the next one out, nor us.
#[tokio::test]
async fn a_link_in_place_of_the_private_folders_leads_nowhere() {
    for sandbox in kinds() {
        let mut place = Place::new();
        let swap = "(cd $TMPDIR/.. && for f in tmp home aside; do mv $f old-$f; ln -s $OUT $f; done); echo x > .mcp.json";
        let guard = ProtectedPathGuard::for_workplace(&place.workplace(&sandbox));
        place.run(&sandbox, NetworkAccess::Off, swap).await;
        let changes = guard.restore_paths();
        let what = format!("{}: {changes:?}", sandbox.describe());
        assert!(!place.root.join("work/.mcp.json").exists(), "{what}");
        let script = "echo x > /tmp/new; echo x > $TMPDIR/newer; cat /tmp/secret $TMPDIR/secret";
        let out = said(&place.run(&sandbox, NetworkAccess::Off, script).await);
        assert!(!out.contains(CANARY), "{what}: {out}");
        assert_eq!(place.damage(), Vec::<String>::new(), "{what}: {out}");
    }
}

#[tokio::test]
async fn a_new_repository_that_runs_nothing_stays() {
    let mut all = vec![Sandbox::None];
    all.extend(kinds());
    for sandbox in all {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace(&sandbox));
        let script = "mkdir -p a/.git/hooks; echo x > a/.git/hooks/pre-commit.sample
            printf '[core]\\n\\tbare = false\\n[user]\\n\\tname = A\\n' > a/.git/config";
        place.run(&sandbox, NetworkAccess::Off, script).await;
        assert_eq!(guard.restore_paths(), [], "{}", sandbox.describe());
        assert!(place.root.join("work/a/.git/config").exists(), "{}", sandbox.describe());
    }
}

#[tokio::test]
async fn a_socket_of_an_ended_server_is_removed_and_one_of_another_process_stays() {
    for sandbox in kinds() {
        let place = Place::new();
        let guard = ProtectedPathGuard::for_workplace(&place.workplace(&sandbox));
        let script = "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && bind(S,pack_sockaddr_un(\"left\")) && listen(S,1)'";
        place.run(&sandbox, NetworkAccess::Off, script).await;
        assert_eq!(guard.restore_paths(), [], "{}", sandbox.describe());
        assert!(!place.root.join("work/left").exists(), "{}", sandbox.describe());
        assert!(place.root.join("work/sub/socket").exists(), "{}", sandbox.describe());
    }
}

/// The user's other worktrees take their configuration from where this file says.
#[tokio::test]
async fn pointers_of_linked_worktrees_are_read_only_where_there_are_mounts() {
    for sandbox in kinds().into_iter().filter(Sandbox::protects_paths) {
        let place = Place::new();
        let pointer = place.root.join("work/.git/worktrees/other/commondir");
        put(&pointer, "../..\n");
        let script = "echo ../../../evil > .git/worktrees/other/commondir
            mv .git/worktrees/other .git/worktrees/gone; echo x > .git/worktrees/other/index";
        place.run(&sandbox, NetworkAccess::Off, script).await;
        assert_eq!(text(&pointer), "../..\n", "{}", sandbox.describe());
        assert!(place.root.join("work/.git/worktrees/other/index").exists());
    }
}
