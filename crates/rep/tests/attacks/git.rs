//! The engine's own git on repositories that an attacker wrote.
//!
//! Every attack plants programs that write a file into `outside`, then lets `rep` look at the repository. git may run some of
//! them, filters for instance, but only where they reach nothing else.

use crate::scene::{Ran, Scene};
use crate::{Attack, Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    // Each alone, to find the one that breaks the guarantee about all of them.
    let alone: &[(&str, Attack)] = &[
        ("a clean filter of a repository reaches nothing outside", clean_filter),
        ("a process filter of a repository reaches nothing outside", process_filter),
        ("a filter that `.gitattributes` names reaches nothing outside", attributes_in_the_tree),
        ("text conversion of a repository reaches nothing outside", text_conversion),
        ("an external diff of a repository reaches nothing outside", external_diff),
        ("a file system monitor of a repository reaches nothing outside", file_system_monitor),
        ("hooks of a repository reach nothing outside", hooks),
        ("aliases of a repository reach nothing outside", aliases),
        (
            "configuration that a repository includes reaches nothing outside",
            included_configuration,
        ),
        ("configuration of a worktree reaches nothing outside", worktree_configuration),
        ("pagers of a repository reach nothing outside", pagers),
        ("editors and signing programs of a repository reach nothing outside", editors),
        ("credential helpers of a repository reach nothing outside", credential_helpers),
        ("a repository in the place of a submodule reaches nothing outside", submodule),
        ("a repository inside of a repository reaches nothing outside", nested_repository),
        ("a smudge filter reaches nothing outside in `rep plan run`", smudge_filter),
    ];
    let alone = alone.iter().map(|(holds, attack)| Guarantee {
        holds,
        tried: Tried::InFullForm,
        attack: *attack,
    });
    let together = [
        (
            "all programs of a repository at once reach nothing outside in a look at it",
            look_at_everything as fn(&Scene),
        ),
        ("the ssh command of a repository reaches nothing outside", ssh_command),
        ("`core.worktree` leads git nowhere else", other_work_tree),
        ("a repository passes off no other repository of the user as its own", borrowed_repository),
        ("a filter changes no hooks, protected files or submodules", filter_that_plants),
        ("all programs of a repository at once reach nothing outside in a whole run", everything),
        (
            "a command does not change hooks or configuration that the user's git follows into the work tree",
            followed_files,
        ),
        (
            "a command does not change configuration that is included in several steps, or hooks of any scope",
            files_followed_in_several_steps,
        ),
        (
            "a command does not change programs of the work tree that the user's git runs",
            followed_programs,
        ),
        (
            "a command does not change what the git of a nested repository follows",
            files_followed_by_nested_repositories,
        ),
    ];
    let together =
        together.map(|(holds, attack)| Guarantee { holds, tried: Tried::InEverySituation, attack });
    let merge = Guarantee {
        holds: "a merge driver reaches nothing outside in `rep runs merge`",
        tried: Tried::OnceInShortForm,
        attack: merge_driver,
    };
    let once = [
        ("a change is not hidden by a flag in the index", hidden_by_flags as fn(&Scene)),
        ("without a sandbox git runs no program of the repository", no_sandbox),
        (
            "the user's own filters still run, and a filter of the repository still works",
            own_filters,
        ),
    ];
    let once = once.map(|(holds, attack)| Guarantee { holds, tried: Tried::Once, attack });
    alone.chain(together).chain([merge]).chain(once).collect()
}

/// A command that leaves a file outside, and passes on its input.
fn payload(scene: &Scene, name: &str) -> String {
    format!("sh -c 'echo ran > {}; exec cat'", scene.path("outside").join(name))
}

fn configure(scene: &Scene, key: &str, value: &str) {
    scene.git("project", &["config", key, value]);
}

/// Gives all files an attribute, as an archive with its own `.git` would.
fn attribute(scene: &Scene, attribute: &str) {
    scene.write("project/.git/info/attributes", format!("* {attribute}\n"));
}

/// Lets `rep` look at the repository, after a change that makes git read files.
fn look(scene: &Scene) -> Vec<Ran> {
    scene.write("project/README.md", "# A project, changed\n");
    ["verify", "review --patterns-only"].map(|line| scene.rep(line)).into()
}

#[track_caller]
fn nothing_ran(scene: &Scene, ran: &[Ran]) {
    let left = std::fs::read_dir(scene.path("outside")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?} was written: {ran:#?}");
    for ran in ran {
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    }
}

fn clean_filter(scene: &Scene) {
    configure(scene, "filter.x.clean", &payload(scene, "clean"));
    attribute(scene, "filter=x");
    let ran = look(scene);
    nothing_ran(scene, &ran);
    assert_eq!(ran[1].code, 0, "{ran:?}");
}

/// A script of the work tree that the user's configuration runs as a filter, and that an agent has edited.
fn filter_that_plants(scene: &Scene) {
    std::fs::remove_dir_all(scene.path("project/.git/hooks")).unwrap();
    scene.write("project/.envrc", "mine\n");
    scene.write("project/.husky/pre-commit", "mine\n");
    scene.write("project/.git/modules/sub/hooks/pre-commit", "mine\n");
    let planted = [
        ".git/hooks/pre-commit",
        ".git/config.worktree",
        ".git/info/attributes",
        ".git/modules/sub/hooks/pre-commit",
        ".envrc",
        ".husky/pre-commit",
    ];
    let mut script = "#!/bin/sh\nmkdir -p .git/hooks\n".to_owned();
    for path in planted {
        script.push_str(&format!("echo evil > {path}\n"));
    }
    scene.write_program("project/tools/clean.sh", &format!("{script}exec cat\n"));
    scene.write("project/.gitattributes", "*.md filter=x\n");
    configure(scene, "filter.x.clean", "./tools/clean.sh");
    let ran = look(scene);
    assert_eq!(ran[1].code, 0, "{ran:?}");
    for path in planted {
        let found = scene.read(&format!("project/{path}")).unwrap_or_default();
        assert!(!found.contains("evil"), "{path}: {ran:#?}");
    }
}

/// The user's own configuration lets git follow files of the work tree.
fn followed_files(scene: &Scene) {
    scene.write_program("project/tools/hooks/pre-commit", "#!/bin/sh\n");
    scene.write("project/conf/gitconfig", "[user]\n\tname = me\n");
    scene.commit("Hooks");
    configure(scene, "core.hooksPath", "tools/hooks");
    configure(scene, "include.path", "../conf/gitconfig");
    let plant = "echo evil >> tools/hooks/pre-commit; echo evil > tools/hooks/post-commit; echo '[evil]' >> conf/gitconfig";
    let ran = scene.rep_command(&["verify", "--check", plant]).output().unwrap();
    for path in ["tools/hooks/pre-commit", "tools/hooks/post-commit", "conf/gitconfig"] {
        let found = scene.read(&format!("project/{path}")).unwrap_or_default();
        assert!(!found.contains("evil"), "{path}: {ran:?}");
    }
}

/// Lets a check append to files of the project, and expects that none keeps what was appended.
fn append_in_vain(scene: &Scene, paths: &[&str]) {
    let plant = format!(
        "for f in {}; do mkdir -p $(dirname $f); echo '#evil' >> $f; done; touch worked",
        paths.join(" ")
    );
    let ran = scene.rep_command(&["verify", "--check", &plant]).output().unwrap();
    assert!(scene.exists("project/worked"), "{ran:?}");
    for path in paths {
        let found = scene.read(&format!("project/{path}")).unwrap_or_default();
        assert!(!found.contains("evil"), "{path}: {ran:?}");
    }
    std::fs::remove_file(scene.path("project/worked")).unwrap();
}

fn files_followed_in_several_steps(scene: &Scene) {
    scene.write(
        "project/conf/git",
        "[include]\n\tpath = more\n[includeIf \"onbranch:]x\"]\n\tpath = other\n",
    );
    scene.write("project/conf/more", "[core]\n\thooksPath = tools/hooks\n");
    scene.write("project/conf/other", "");
    scene.write_program("project/tools/hooks/pre-commit", "#!/bin/sh\n");
    scene.write_program("project/of-user/pre-commit", "#!/bin/sh\n");
    scene.write_program("project/of-worktree/pre-commit", "#!/bin/sh\n");
    scene.write("project/real/git", "");
    std::os::unix::fs::symlink("real", scene.path("project/link")).unwrap();
    scene.write(
        "home/.gitconfig",
        "[core]\n\thooksPath = ~/../project/of-user\n[include]\n\tpath = ~/../project/link/git\n",
    );
    configure(scene, "include.path", "../conf/git");
    scene.write("project/.git/config.worktree", "[core]\n\thooksPath = of-worktree\n");
    append_in_vain(
        scene,
        &[
            "conf/more",
            "conf/other",
            "real/git",
            "tools/hooks/pre-commit",
            "tools/hooks/post-commit",
            "of-user/pre-commit",
            "of-worktree/pre-commit",
        ],
    );
    // The command of the user that would run it.
    let ran = scene
        .rep_command(&[
            "verify",
            "--check",
            &format!(
                "printf '[core]\\n\\tfsmonitor = touch {}; false\\n' >> conf/more",
                scene.path("outside/ran")
            ),
        ])
        .output()
        .unwrap();
    scene.git("project", &["status", "--short"]);
    assert!(!scene.exists("outside/ran"), "{ran:?}");
}

fn followed_programs(scene: &Scene) {
    for path in ["tools/clean.sh", "tools/monitor", "diff.py"] {
        scene.write_program(&format!("project/{path}"), "#!/bin/sh\ncat\n");
    }
    scene.write("home/.gitconfig", "[filter \"x\"]\n\tclean = \"./tools/clean.sh --quiet\"\n[diff \"x\"]\n\tcommand = python3 diff.py\n");
    configure(scene, "core.fsmonitor", "tools/monitor");
    configure(scene, "filter.y.smudge", "sh -c 'tools/missing.sh %f'");
    append_in_vain(scene, &["tools/clean.sh", "tools/monitor", "diff.py", "tools/missing.sh"]);
}

fn files_followed_by_nested_repositories(scene: &Scene) {
    scene.folder("project/lib");
    scene.git("project/lib", &["init", "--quiet"]);
    scene.write("project/lib/inc", "");
    scene.write_program("project/lib/th/pre-commit", "#!/bin/sh\n");
    scene.git("project/lib", &["config", "include.path", "../inc"]);
    scene.git("project/lib", &["config", "core.hooksPath", "th"]);
    append_in_vain(scene, &["lib/inc", "lib/th/pre-commit", "lib/th/post-commit"]);
}

fn hidden_by_flags(scene: &Scene) {
    scene.write("project/test.sh", "exit 1\n");
    scene.write("project/other.sh", "exit 1\n");
    scene.commit("A test");
    for (flag, path) in [("--skip-worktree", "test.sh"), ("--assume-unchanged", "other.sh")] {
        let hide = format!("git update-index {flag} {path}; echo exit 0 > {path}");
        let ran =
            crate::scene::ran(&scene.rep_command(&["verify", "--check", &hide]).output().unwrap());
        assert_ne!(ran.code, 0, "{ran:?}");
    }
    let ran = scene.rep("review --patterns-only");
    assert!(ran.stdout.contains("2 files"), "{ran:?}");
}

fn process_filter(scene: &Scene) {
    configure(scene, "filter.x.process", &payload(scene, "process"));
    attribute(scene, "filter=x");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn attributes_in_the_tree(scene: &Scene) {
    configure(scene, "filter.x.clean", &payload(scene, "attributes"));
    scene.write("project/.gitattributes", "*.md filter=x\n");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn text_conversion(scene: &Scene) {
    configure(scene, "diff.x.textconv", &payload(scene, "textconv"));
    attribute(scene, "diff=x");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn external_diff(scene: &Scene) {
    configure(scene, "diff.external", &payload(scene, "external"));
    configure(scene, "diff.x.command", &payload(scene, "command"));
    attribute(scene, "diff=x");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn file_system_monitor(scene: &Scene) {
    configure(scene, "core.fsmonitor", &payload(scene, "fsmonitor"));
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
];

fn plant_hooks(scene: &Scene, folder: &str) {
    for hook in HOOKS {
        let text = format!("#!/bin/sh\n{}\n", payload(scene, hook));
        scene.write_program(&format!("project/{folder}/{hook}"), &text);
    }
}

fn hooks(scene: &Scene) {
    plant_hooks(scene, ".git/hooks");
    plant_hooks(scene, "scripts");
    configure(scene, "core.hooksPath", "scripts");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn plant_aliases(scene: &Scene) {
    for alias in ["status", "diff", "add", "rev-parse", "diff-tree", "commit"] {
        configure(scene, &format!("alias.{alias}"), &format!("!{}", payload(scene, alias)));
    }
}

fn aliases(scene: &Scene) {
    plant_aliases(scene);
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn included_configuration(scene: &Scene) {
    let text = format!("[filter \"x\"]\n\tclean = \"{}\"\n", payload(scene, "included"));
    scene.write("project/.git/more", text);
    configure(scene, "include.path", "more");
    attribute(scene, "filter=x");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn worktree_configuration(scene: &Scene) {
    configure(scene, "extensions.worktreeConfig", "true");
    let text = format!("[filter \"x\"]\n\tclean = \"{}\"\n", payload(scene, "worktree"));
    scene.write("project/.git/config.worktree", text);
    attribute(scene, "filter=x");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

/// A partial clone fetches a missing object by itself, with the command that the repository names.
fn ssh_command(scene: &Scene) {
    let ssh = format!("sh -c 'echo ran > {}; exit 1'", scene.path("outside/ssh"));
    configure(scene, "core.sshCommand", &ssh);
    configure(scene, "core.repositoryFormatVersion", "1");
    configure(scene, "extensions.partialClone", "origin");
    configure(scene, "remote.origin.url", "ssh://127.0.0.1/nowhere");
    configure(scene, "remote.origin.promisor", "true");
    let blob = scene.git("project", &["rev-parse", "HEAD:README.md"]);
    let (folder, file) = blob.trim().split_at(2);
    std::fs::remove_file(scene.path(&format!("project/.git/objects/{folder}/{file}"))).unwrap();
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn plant_pagers(scene: &Scene) {
    for key in
        ["core.pager", "pager.status", "pager.diff", "pager.config", "interactive.diffFilter"]
    {
        configure(scene, key, &payload(scene, key));
    }
}

fn pagers(scene: &Scene) {
    plant_pagers(scene);
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn plant_editors(scene: &Scene) {
    for key in
        ["core.editor", "sequence.editor", "gpg.program", "gpg.openpgp.program", "gpg.ssh.program"]
    {
        configure(scene, key, &payload(scene, key));
    }
    for key in ["commit.gpgSign", "tag.gpgSign", "log.showSignature"] {
        configure(scene, key, "true");
    }
}

fn editors(scene: &Scene) {
    plant_editors(scene);
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn plant_credential_helpers(scene: &Scene) {
    let helper = format!("!{}", payload(scene, "helper"));
    configure(scene, "credential.helper", &helper);
    configure(scene, "credential.https://127.0.0.1.helper", &helper);
    configure(scene, "core.askPass", &payload(scene, "askpass"));
}

fn credential_helpers(scene: &Scene) {
    plant_credential_helpers(scene);
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

/// A repository with a filter, in a folder of the project.
fn plant_repository(scene: &Scene, folder: &str) {
    let inner = format!("project/{folder}");
    scene.write(&format!("{inner}/file.txt"), "one\n");
    scene.git(&inner, &["init", "--quiet", "--initial-branch=main"]);
    scene.git(&inner, &["add", "--all"]);
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    scene.git(&inner, &[&identity[..], &["commit", "--quiet", "--message", "inner"]].concat());
    scene.git(&inner, &["config", "filter.x.clean", &payload(scene, "nested-clean")]);
    scene.git(&inner, &["config", "core.fsmonitor", &payload(scene, "nested-fsmonitor")]);
    scene.write(&format!("{inner}/.git/info/attributes"), "* filter=x\n");
    scene.write(&format!("{inner}/file.txt"), "two\n");
}

/// A commit with a link to a repository that is not there is all that an attacker needs; the repository comes later.
fn plant_submodule(scene: &Scene) {
    plant_repository(scene, "sub");
    let commit = scene.git("project/sub", &["rev-parse", "HEAD"]);
    let entry = format!("160000,{},sub", commit.trim());
    scene.git("project", &["update-index", "--add", "--cacheinfo", &entry]);
    scene.git("project", &["commit", "--quiet", "--message", "A submodule"]);
}

fn submodule(scene: &Scene) {
    plant_submodule(scene);
    let ran = look(scene);
    nothing_ran(scene, &ran);
    assert_eq!(ran[1].code, 0, "{ran:?}");
}

fn nested_repository(scene: &Scene) {
    plant_repository(scene, "nested");
    let ran = look(scene);
    nothing_ran(scene, &ran);
}

fn other_work_tree(scene: &Scene) {
    configure(scene, "core.worktree", scene.path("outside").as_str());
    let ran = look(scene);
    nothing_ran(scene, &ran);
    assert!(ran[1].stdout.contains("in 1 file"), "{ran:?}");
}

/// An unpacked archive with a `.git` that leads into a private repository, and a file of the name of a secret one there.
fn borrowed_repository(scene: &Scene) {
    scene.folder("private");
    scene.git("private", &["init", "--quiet", "--initial-branch=main"]);
    scene.write("private/secret.txt", "TOP-SECRET-WORD\n");
    scene.git("private", &["add", "--all"]);
    let commit = ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "--quiet", "-m", "x"];
    scene.git("private", &commit);
    let target = scene.path("private/.git");
    scene.write("file/.git", format!("gitdir: {target}\n"));
    scene.write("common/.git/HEAD", "ref: refs/heads/main\n");
    scene.write("common/.git/commondir", format!("{target}\n"));
    for name in ["objects", "refs"] {
        scene.folder(&format!("common/.git/{name}"));
    }
    for folder in ["file", "common"] {
        scene.write(&format!("{folder}/secret.txt"), "nothing\n");
        let mut rep = scene.rep_command(&["review", "--dry-run"]);
        let ran = crate::scene::ran(&rep.current_dir(scene.path(folder)).output().unwrap());
        assert!(!format!("{ran:?}").contains("TOP-SECRET-WORD"), "{folder}: {ran:?}");
        assert!(ran.stderr.contains("another work tree"), "{folder}: {ran:?}");
    }
}

const AGENT: &str = "\
- when: \"# Selected task\\n\\nWrite alpha\"
  unless: You review
  write: alpha.txt
  content: \"alpha\\n\"
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: Done. <promise>COMPLETE</promise>
";

/// Does a plan with a scripted agent.
fn plan_run(scene: &Scene) -> Ran {
    scene.write("agent.yaml", AGENT);
    scene.rep("plan run --backend scripted:../agent.yaml")
}

fn commit_a_plan(scene: &Scene) {
    scene.write("project/PLAN.md", "# Letters\n\n- [ ] Write alpha\n");
    scene.commit("A plan");
}

fn smudge_filter(scene: &Scene) {
    commit_a_plan(scene);
    configure(scene, "filter.x.smudge", &payload(scene, "smudge"));
    attribute(scene, "filter=x");
    let ran = vec![plan_run(scene)];
    nothing_ran(scene, &ran);
    assert_eq!(ran[0].code, 0, "{ran:?}");
}

fn merge_driver(scene: &Scene) {
    scene.write("project/alpha.txt", "old\n");
    commit_a_plan(scene);
    let mut ran = vec![plan_run(scene)];
    assert_eq!(ran[0].code, 0, "{ran:?}");
    scene.write("project/alpha.txt", "new\n");
    scene.commit("Another change");
    configure(scene, "merge.x.driver", &payload(scene, "driver"));
    attribute(scene, "merge=x");
    ran.push(scene.rep("runs merge last"));
    nothing_ran(scene, &ran);
}

/// Every program that is looked for above, each with a name of its own, so that a file tells which one ran.
fn look_at_everything(scene: &Scene) {
    let files = ["tree", "process", "included", "worktree"];
    for file in files {
        scene.write(&format!("project/{file}.txt"), "one\n");
    }
    scene.commit("Files");
    plant_submodule(scene);
    plant_repository(scene, "nested");
    let tree = "tree.txt filter=tree\n";
    scene.write("project/.gitattributes", tree);
    let others = "*.md filter=x diff=x\nprocess.txt filter=process\nincluded.txt filter=included\nworktree.txt filter=worktree\n";
    scene.write("project/.git/info/attributes", others);
    let filter =
        |name: &str| format!("[filter \"{name}\"]\n\tclean = \"{}\"\n", payload(scene, name));
    scene.write("project/.git/more", filter("included"));
    scene.write("project/.git/config.worktree", filter("worktree"));
    for key in [
        "filter.x.clean",
        "filter.tree.clean",
        "filter.process.process",
        "diff.x.textconv",
        "diff.x.command",
        "diff.external",
    ] {
        configure(scene, key, &payload(scene, key));
    }
    configure(scene, "extensions.worktreeConfig", "true");
    plant_aliases(scene);
    plant_pagers(scene);
    plant_editors(scene);
    plant_credential_helpers(scene);
    plant_hooks(scene, ".git/hooks");
    plant_hooks(scene, "scripts");
    configure(scene, "core.hooksPath", "scripts");
    configure(scene, "include.path", "more");
    configure(scene, "core.fsmonitor", &payload(scene, "fsmonitor"));
    for file in files {
        scene.write(&format!("project/{file}.txt"), "two\n");
    }
    let ran = look(scene);
    nothing_ran(scene, &ran);
    assert_eq!(ran[1].code, 0, "{ran:?}");
}

fn everything(scene: &Scene) {
    commit_a_plan(scene);
    plant_submodule(scene);
    plant_hooks(scene, ".git/hooks");
    for key in
        ["filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.x.command", "diff.external"]
    {
        configure(scene, key, &payload(scene, key));
    }
    for key in ["core.fsmonitor", "core.pager", "core.editor", "core.askPass", "core.sshCommand"] {
        configure(scene, key, &payload(scene, key));
    }
    attribute(scene, "filter=x diff=x merge=x");
    configure(scene, "merge.x.driver", &payload(scene, "driver"));
    let mut ran = vec![plan_run(scene)];
    for line in
        ["runs diff last", "runs merge last", "runs prune", "verify", "review --patterns-only"]
    {
        ran.push(scene.rep(line));
    }
    nothing_ran(scene, &ran);
    assert_eq!(ran[0].code, 0, "{ran:#?}");
    assert!(ran[1].stdout.contains("+alpha"), "{ran:#?}");
    assert_eq!(ran[2].code, 0, "{ran:#?}");
}

fn no_sandbox(scene: &Scene) {
    plant_submodule(scene);
    for key in ["filter.x.clean", "filter.x.smudge", "filter.x.process", "core.fsmonitor"] {
        configure(scene, key, &payload(scene, key));
    }
    attribute(scene, "filter=x");
    scene.write("project/README.md", "# Changed\n");
    let ran: Vec<Ran> = ["verify", "review --patterns-only"]
        .map(|line| {
            let args: Vec<&str> = line.split_whitespace().collect();
            let mut rep = scene.rep_command(&args);
            crate::scene::ran(&rep.env("REPERTOIRE_SANDBOX", "off").output().unwrap())
        })
        .into();
    nothing_ran(scene, &ran);
    assert_eq!(ran[1].code, 0, "{ran:?}");
}

/// Filters are for users, too: what a clean filter makes of a file is what a review sees.
fn own_filters(scene: &Scene) {
    scene.write("home/.gitconfig", "[filter \"user\"]\n\tclean = sed s/local/global/\n");
    configure(scene, "filter.own.clean", "sed s/secret/hidden/");
    scene.write("project/.gitattributes", "*.md filter=own\n*.txt filter=user\n");
    scene.write("project/README.md", "# A secret\n");
    scene.write("project/a.txt", "local\n");
    commit_a_plan(scene);
    assert_eq!(scene.git("project", &["show", "HEAD:README.md"]), "# A hidden\n");
    let plan = "- when: \"# Selected task\"\n  unless: You review\n  write: README.md\n  content: \"# One more secret\\n\"\n";
    let agent = AGENT.split_once("- when: You").unwrap().1;
    scene.write("agent.yaml", format!("{plan}- when: You{agent}"));
    let ran = scene.rep("plan run --backend scripted:../agent.yaml");
    assert_eq!(ran.code, 0, "{ran:?}");
    let diff = scene.rep("runs diff last").stdout;
    assert!(diff.contains("+# One more hidden") && !diff.contains("a.txt"), "{diff}");
}
