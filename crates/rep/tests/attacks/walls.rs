//! Programs in the sandbox: what they can read, change and reach.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use repertoire_scripted::{ModelScript, RecordedRequest, ScriptedServer, ScriptedTurn};
use serde_json::json;

use crate::scene::{Ran, Scene, UserNamespaces, ran};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    let everywhere = |holds, attack| Guarantee { holds, tried: Tried::InEverySituation, attack };
    vec![
        everywhere(
            "a check's variables load no code into a process outside the sandbox",
            variables_load_no_code_outside,
        ),
        everywhere("a check's variables do not widen what it can read", variables_widen_nothing),
        everywhere(
            "protected paths hold at every depth, whether they existed or not",
            protected_paths_hold_at_every_depth,
        ),
        everywhere(
            "a command changes no protected path unnoticed, however many there are",
            many_protected_files_switch_nothing_off,
        ),
        everywhere(
            "with more protected folders than are mounted, the rest is compared",
            many_protected_folders_switch_nothing_off,
        ),
        Guarantee {
            holds: "a folder with too many protected files to compare is read-only, or no command starts",
            tried: Tried::InFullForm,
            attack: too_many_protected_files,
        },
        everywhere(
            "a changed file that cannot be put back is not lost",
            changed_files_are_not_lost,
        ),
        everywhere(
            "a new nested repository stays if git runs nothing for it, and is moved aside otherwise",
            new_nested_repositories,
        ),
        everywhere(
            "a command keeps nothing that another one, which ran at the same time, planted",
            parallel_commands_share_one_picture,
        ),
        everywhere(
            "a folder that cannot be listed, or whose name is not text, hides no repository",
            hidden_folders_are_searched,
        ),
        Guarantee {
            holds: "more protected paths than a search finds are moved aside, all of them",
            tried: Tried::Once,
            attack: many_protected_paths_are_moved,
        },
        everywhere(
            "a repository in a folder without one stays if git runs nothing for it",
            new_repository_of_the_work_folder,
        ),
        everywhere(
            "a bare repository runs nothing that a command planted, whether it existed or not",
            bare_repositories_run_nothing_planted,
        ),
        everywhere(
            "a linked worktree reads no configuration that a command planted",
            linked_worktrees_keep_their_pointers,
        ),
        everywhere("no setuid or setgid file is left behind", no_setuid_file_is_left),
        everywhere("git works in a shared repository", git_works_in_a_shared_repository),
        everywhere(
            "a command without user namespaces reads nothing of the supervisor's in /proc",
            the_supervisor_is_closed,
        ),
        everywhere(
            "commands run where the cache cannot be written to",
            commands_run_without_a_cache,
        ),
        everywhere(
            "a Unix socket in the work folder is not reachable",
            sockets_of_the_work_folder_are_closed,
        ),
        everywhere(
            "no second view of the file system shows what the sandbox covers or protects",
            there_is_no_second_view,
        ),
        everywhere(
            "a command cannot replace the private folders of the next one",
            private_folders_cannot_be_replaced,
        ),
        everywhere(
            "a command cannot change the limits of another process",
            limits_of_other_processes_are_closed,
        ),
        everywhere(
            "a command cannot change how another process is scheduled",
            schedules_of_other_processes_are_closed,
        ),
        everywhere(
            "a command reads nothing in /etc that ordinary users cannot read",
            secrets_of_the_system_are_closed,
        ),
        everywhere(
            "`sandbox = \"require\"` refuses a sandbox that lacks a guarantee, and names it",
            require_names_what_is_missing,
        ),
        Guarantee {
            holds: "the model's key is in no command's environment, with `--backend api` either",
            tried: Tried::Once,
            attack: keys_stay_out_of_commands,
        },
    ]
}

/// Lets an agent run commands in the sandbox, one after another.
fn commands(scene: &Scene, scripts: &[&str]) -> Ran {
    commands_with(scene, scripts, &[], &[])
}

fn commands_with(
    scene: &Scene,
    scripts: &[&str],
    flags: &[&str],
    variables: &[(&str, &str)],
) -> Ran {
    let mut script = ModelScript::new();
    for text in scripts {
        script = script.turn(ScriptedTurn::tool("bash", json!({ "command": text })));
    }
    run_script(scene, script.turn(ScriptedTurn::text("Done.")), flags, variables)
}

fn run_script(
    scene: &Scene,
    script: ModelScript,
    flags: &[&str],
    variables: &[(&str, &str)],
) -> Ran {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let server = runtime.block_on(ScriptedServer::start(script));
    let mut args = vec!["run", "--no-auto", "--accept-edits"];
    args.extend(flags);
    args.push("work");
    let mut command = scene.rep_command(&args);
    command.env("ANTHROPIC_BASE_URL", server.url()).env("ANTHROPIC_API_KEY", "sk-test-secret");
    command.env("OUT", scene.path("outside")).envs(variables.iter().copied());
    ran(&command.output().unwrap())
}

fn variables_load_no_code_outside(scene: &Scene) {
    let marker = scene.path("outside/loaded");
    scene.write(
        "evil.c",
        format!(
            "#include <fcntl.h>\n__attribute__((constructor)) void run(void) {{ open(\"{marker}\", O_CREAT | O_WRONLY, 0644); }}\n"
        ),
    );
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(scene.path("project/evil.so"))
        .arg(scene.path("evil.c"));
    assert!(cc.status().unwrap().success(), "the library is not compiled");
    scene.write(
        "project/repertoire.toml",
        "[plan.checks.a]\ncommand = \"true\"\nenv = { LD_PRELOAD = \"./evil.so\" }\n",
    );
    let ran = scene.rep("verify");
    assert!(!scene.exists("outside/loaded"), "the library was loaded: {ran:?}");
}

fn variables_widen_nothing(scene: &Scene) {
    scene.write("home/.ssh/id", "a private key\n");
    for name in ["PATH", "HOME", "RUSTUP_HOME", "JAVA_HOME"] {
        let folder = scene.path("home/.ssh");
        scene.write(
            "project/repertoire.toml",
            format!(
                "[plan.checks.a]\ncommand = \"/bin/cat {folder}/id > leaked\"\nenv = {{ {name} = \"{folder}\" }}\n"
            ),
        );
        let ran = scene.rep("verify");
        let leaked = scene.read("project/leaked").unwrap_or_default();
        assert_eq!(leaked, "", "{name}: {ran:?}");
    }
}

fn protected_paths_hold_at_every_depth(scene: &Scene) {
    scene.write("project/nest/AGENTS.md", "mine\n");
    scene.write("project/nest/.claude/settings.json", "{}\n");
    scene.folder("project/lib");
    scene.git("project/lib", &["init", "--quiet"]);
    scene.git("project/lib", &["config", "user.name", "Attacked"]);
    let config = scene.read("project/lib/.git/config");
    let ran = commands(
        scene,
        &[
            "echo evil > nest/AGENTS.md; echo evil > nest/.claude/settings.json; echo evil >> lib/.git/config
             mkdir -p lib/.git/hooks; echo evil > lib/.git/hooks/pre-commit",
            "mv nest nest2; mkdir nest; echo evil > nest/AGENTS.md; mv lib lib2",
            "mkdir -p a/b/.claude a/.husky .husky; echo evil > a/b/.claude/settings.json; echo evil > a/b/CLAUDE.md
             echo evil > .envrc; echo evil > a/.envrc; echo evil > .husky/pre-commit; echo evil > a/.husky/pre-commit
             echo evil > a/.mcp.json; touch a/ordinary",
        ],
    );
    let text = |path: &str| scene.read(path).unwrap_or_default();
    assert_eq!(text("project/nest/AGENTS.md"), "mine\n", "{ran:?}");
    assert_eq!(text("project/nest/.claude/settings.json"), "{}\n", "{ran:?}");
    assert_eq!(scene.read("project/lib/.git/config"), config, "{ran:?}");
    for path in [
        "lib/.git/hooks/pre-commit",
        ".envrc",
        ".husky",
        "a/.envrc",
        "a/.husky",
        "a/.mcp.json",
        "a/b/CLAUDE.md",
        "a/b/.claude",
    ] {
        assert!(!scene.exists(&format!("project/{path}")), "{path}: {ran:?}");
    }
    assert!(scene.exists("project/a/ordinary"), "ordinary work goes on: {ran:?}");
}

/// Many files of an agent's folder, before and behind more important protected paths.
fn plant_many(scene: &Scene, folder: &str, count: usize) {
    for number in 0..count {
        scene.write(&format!("project/{folder}/f{number}"), "mine\n");
    }
}

fn many_protected_files_switch_nothing_off(scene: &Scene) {
    plant_many(scene, ".claude", 4_200);
    scene.write("project/.claude/z/settings.json", "{}\n");
    scene.write("project/.claude/z/kept", "mine\n");
    scene.write("project/b/.claude/settings.json", "{}\n");
    scene.folder("project/lib");
    scene.git("project/lib", &["init", "--quiet"]);
    let config = scene.read("project/lib/.git/config");
    let ran = commands(
        scene,
        &["mkdir -p lib/.git/hooks; echo evil > lib/.git/hooks/pre-commit; echo '[evil]' >> lib/.git/config
           for f in b/.claude/settings.json .claude/z/settings.json .claude/z/new .claude/f999; do echo evil >> $f; done
           touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert_eq!(scene.read("project/lib/.git/config"), config, "{ran:?}");
    for path in ["b/.claude/settings.json", ".claude/z/settings.json"] {
        assert_eq!(
            scene.read(&format!("project/{path}")).as_deref(),
            Some("{}\n"),
            "{path}: {ran:?}"
        );
    }
    for path in ["lib/.git/hooks/pre-commit", ".claude/z/new", ".claude/f999"] {
        let left = scene.read(&format!("project/{path}")).unwrap_or_default();
        assert!(!left.contains("evil"), "{path}: {ran:?}");
    }
    assert_eq!(scene.read("project/.claude/z/kept").as_deref(), Some("mine\n"), "{ran:?}");
    if scene.situation.namespaces == UserNamespaces::Denied {
        assert!(ran.stderr.contains(".claude/f999"), "it is reported: {ran:?}");
    }
}

fn many_protected_folders_switch_nothing_off(scene: &Scene) {
    for number in 0..520 {
        scene.write(&format!("project/n{number}/AGENTS.md"), "mine\n");
    }
    plant_many(scene, "x/y/.claude", 4_200);
    scene.write("project/x/y/z/.claude/settings.json", "{}\n");
    scene.folder("project/x/y/z/w/lib");
    scene.git("project/x/y/z/w/lib", &["init", "--quiet"]);
    let ran = commands(
        scene,
        &["echo evil >> x/y/z/.claude/settings.json; mkdir -p x/y/z/w/lib/.git/hooks
           echo evil >> x/y/z/w/lib/.git/hooks/pre-commit; for n in n*; do echo evil >> $n/AGENTS.md; done
           for f in x/y/.claude/*; do echo evil >> $f; done; touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    let text = |path: &str| scene.read(&format!("project/{path}")).unwrap_or_default();
    assert_eq!(text("x/y/z/.claude/settings.json"), "{}\n", "{ran:?}");
    assert!(!scene.exists("project/x/y/z/w/lib/.git/hooks/pre-commit"), "{ran:?}");
    for number in 0..520 {
        assert_eq!(text(&format!("n{number}/AGENTS.md")), "mine\n", "{ran:?}");
    }
    for number in 0..4_200 {
        assert!(!text(&format!("x/y/.claude/f{number}")).contains("evil"), "{ran:?}");
    }
}

fn too_many_protected_files(scene: &Scene) {
    plant_many(scene, "x/.claude", 66_000);
    for number in 0..520 {
        scene.write(&format!("project/a/n{number}/.claude/settings.json"), "{}\n");
    }
    let attempt = "echo evil >> x/.claude/f7; echo evil >> x/.claude/new; touch worked";
    let ran = commands(scene, &[attempt]);
    assert_eq!(scene.read("project/x/.claude/f7").as_deref(), Some("mine\n"), "{ran:?}");
    assert!(!scene.exists("project/x/.claude/new"), "{ran:?}");
    if scene.situation.namespaces == UserNamespaces::Allowed {
        assert!(scene.exists("project/worked"), "{ran:?}");
        return;
    }
    assert!(!scene.exists("project/worked"), "{ran:?}");
    assert!(ran.stderr.contains("x/.claude"), "it is said why: {ran:?}");
    let verified = scene.rep_command(&["verify", "--check", "touch worked"]).output().unwrap();
    let verified = crate::scene::ran(&verified);
    assert!(verified.code != 0 && !scene.exists("project/worked"), "{verified:?}");
    assert!(format!("{verified:?}").contains("x/.claude"), "{verified:?}");
}

fn changed_files_are_not_lost(scene: &Scene) {
    // More small hooks than contents are kept, all of the same rank.
    plant_many(scene, "lib/.git/hooks", 4_200);
    scene.write("project/lib/.git/config", format!("[user]\n\tname = Mine{}\n", " ".repeat(400)));
    let ran = commands(scene, &["echo '[evil]' >> lib/.git/config; touch worked"]);
    assert!(scene.exists("project/worked"), "{ran:?}");
    let left = scene.read("project/lib/.git/config").unwrap_or_default();
    assert!(!left.contains("evil"), "{ran:?}");
    if left.is_empty() {
        let (_, command) = ran.stderr.split_once("put it back: `mv '").expect(&ran.stderr);
        let aside = command.split('\'').next().unwrap();
        let moved = std::fs::metadata(aside).expect(&ran.stderr);
        assert!(moved.len() > 400, "{ran:?}");
        assert!(ran.stderr.contains("has no configuration"), "{ran:?}");
    }
}

fn new_nested_repositories(scene: &Scene) {
    let ran = commands(
        scene,
        &["for r in plain monitor hook file; do git init -q $r; done
           git -C plain config user.name A; git -C monitor config core.fsmonitor evil
           mkdir -p hook/.git/hooks; echo evil > hook/.git/hooks/pre-commit
           mv file/.git file/inner; echo 'gitdir: inner' > file/.git"],
    );
    assert!(scene.exists("project/plain/.git/HEAD"), "{ran:?}");
    for path in ["monitor/.git", "hook/.git", "file/.git"] {
        assert!(!scene.exists(&format!("project/{path}")), "{path}: {ran:?}");
    }
}

fn parallel_commands_share_one_picture(scene: &Scene) {
    let config = scene.read("project/.git/config");
    // The first agent plants again and again until the second one has started another command, and ends before that.
    let plant = "evil=$(cat .git/config; printf '[core]\\n\\tfsmonitor = evil\\n'); mkdir nest; touch planted
        for i in $(seq 500); do [ -e second ] && break; sleep 0.01
        ln -s notes.md AGENTS.md; echo evil > nest/CLAUDE.md
        grep -q evil .git/config || echo \"$evil\" > .git/config; done 2> errors";
    let wait = "for i in $(seq 500); do [ -e planted ] && break; sleep 0.02; done";
    let second = "touch second; sleep 2";
    let answer = move |request: &RecordedRequest| {
        let first = request.body["messages"][0].to_string();
        let bash = |command: &str| ScriptedTurn::tool("bash", json!({ "command": command }));
        let delegate = |task: &str| json!({ "agent": "general-purpose", "task": task });
        match (first.contains("Plant it."), first.contains("Wait for it."), request.tool_results())
        {
            (true, _, 0) => bash(plant),
            (_, true, 0) => bash(wait),
            (_, true, 1) => {
                // The end of the command before has removed what was planted; it is there again soon.
                std::thread::sleep(std::time::Duration::from_millis(700));
                bash(second)
            }
            (false, false, 0) => ScriptedTurn::tool("delegate", delegate("Plant it."))
                .and_tool("delegate", delegate("Wait for it.")),
            _ => ScriptedTurn::text("Done."),
        }
    };
    let script = ModelScript::new().turn(ScriptedTurn::respond(answer)).repeat_last();
    let ran = run_script(scene, script, &["--agent", "general-purpose"], &[]);
    assert!(scene.exists("project/planted") && scene.exists("project/second"), "{ran:?}");
    assert_eq!(scene.read("project/.git/config"), config, "{ran:?}");
    assert!(!scene.exists("project/AGENTS.md"), "{ran:?}");
    assert!(!scene.exists("project/nest/CLAUDE.md"), "{ran:?}");
}

fn hidden_folders_are_searched(scene: &Scene) {
    let marker = scene.path("outside/ran");
    let repository = |folder: &str| {
        format!(
            "git init -q {folder} && cd {folder} && git config user.name A && git config user.email a@b \\
             && git commit -q --allow-empty -m x && head=$(git rev-parse HEAD) \\
             && printf '[core]\\n\\tfsmonitor = touch {marker}; false\\n' >> .git/config && cd .. \\
             && git update-index --add --cacheinfo 160000,$head,{folder}; echo evil > {folder}/AGENTS.md\n"
        )
    };
    let hidden = repository("hidden") + "chmod 111 hidden; touch worked";
    let odd = repository("$'\\xff'");
    let ran = commands(scene, &[&hidden, &odd]);
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert!(!scene.exists("project/hidden/.git"), "{ran:?}");
    assert!(!scene.exists("project/hidden/AGENTS.md"), "{ran:?}");
    scene.git("project", &["status", "--short"]);
    assert!(!scene.exists("outside/ran"), "the user's git ran it: {ran:?}");
}

fn many_protected_paths_are_moved(scene: &Scene) {
    let ran = commands(
        scene,
        &["mkdir -p $(seq -f many/%g 5000); for d in many/*; do echo evil > $d/AGENTS.md; done"],
    );
    let folders: Vec<_> = scene.path("project/many").read_dir_utf8().unwrap().flatten().collect();
    assert_eq!(folders.len(), 5000, "{ran:?}");
    let left = folders.iter().filter(|folder| folder.path().join("AGENTS.md").exists()).count();
    assert_eq!(left, 0, "{ran:?}");
}

fn new_repository_of_the_work_folder(scene: &Scene) {
    std::fs::remove_dir_all(scene.path("project/.git")).unwrap();
    let ran = commands(scene, &["git init -q .", "git add README.md && touch worked"]);
    assert!(scene.exists("project/.git/HEAD") && scene.exists("project/worked"), "{ran:?}");
    std::fs::remove_dir_all(scene.path("project/.git")).unwrap();
    let ran = commands(scene, &["git init -q . && git config core.fsmonitor evil"]);
    assert!(!scene.exists("project/.git"), "{ran:?}");
}

fn bare_repositories_run_nothing_planted(scene: &Scene) {
    scene.git("project", &["init", "--quiet", "--bare", "there.git"]);
    let config = scene.read("project/there.git/config");
    let ran = commands(
        scene,
        &["for r in plain changed hooked; do git init -q --bare $r.git; done
           printf '[core]\\n\\tfsmonitor = evil\\n' >> changed.git/config
           printf '[core]\\n\\tfsmonitor = evil\\n' >> there.git/config
           for r in hooked there; do mkdir -p $r.git/hooks; echo evil > $r.git/hooks/post-update; done
           mkdir pointer; cp plain.git/HEAD pointer; echo ../changed.git > pointer/commondir; touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert!(scene.exists("project/plain.git/HEAD"), "ordinary work goes on: {ran:?}");
    assert_eq!(scene.read("project/there.git/config"), config, "{ran:?}");
    let changed = scene.read("project/changed.git/config").unwrap_or_default();
    assert!(!changed.contains("evil"), "{ran:?}");
    for path in ["hooked.git/hooks/post-update", "there.git/hooks/post-update", "pointer/commondir"]
    {
        assert!(!scene.exists(&format!("project/{path}")), "{path}: {ran:?}");
    }
}

fn linked_worktrees_keep_their_pointers(scene: &Scene) {
    let marker = scene.path("outside/ran");
    let linked = scene.path("outside/linked");
    scene.git("project", &["worktree", "add", "--quiet", "--detach", linked.as_str()]);
    let pointer = scene.read("project/.git/worktrees/linked/commondir");
    let plant = format!(
        "git init -q elsewhere; mv elsewhere/.git parts
         printf '[core]\\n\\tfsmonitor = touch {marker}; false\\n' >> parts/config
         printf '[core]\\n\\tfsmonitor = touch {marker}; false\\n' > .git/worktrees/linked/config.worktree
         git config extensions.worktreeConfig true; echo ../../../parts > .git/worktrees/linked/commondir
         touch worked"
    );
    let ran = commands(scene, &[&plant]);
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert_eq!(scene.read("project/.git/worktrees/linked/commondir"), pointer, "{ran:?}");
    assert!(!scene.exists("project/.git/worktrees/linked/config.worktree"), "{ran:?}");
    scene.git("outside/linked", &["status", "--short"]);
    assert!(!scene.exists("outside/ran"), "the user's git ran it: {ran:?}");
}

fn no_setuid_file_is_left(scene: &Scene) {
    let ran = commands(
        scene,
        &["cp /bin/true a; cp /bin/true b; cp /bin/true c
           chmod 4755 a; chmod 2755 b; chmod u+s,g+s c; install -m 6755 /bin/true d
           perl -e 'use Fcntl; sysopen(F, \"e\", O_CREAT|O_WRONLY, 04755); chmod(06755, \"f\") if open(G, \">\", \"f\")'
           mkdir g; chmod 2777 g; touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        let metadata = std::fs::symlink_metadata(scene.path(&format!("project/{name}")));
        let mode = metadata.map_or(0, |metadata| metadata.permissions().mode());
        assert_eq!(mode & 0o6000, 0, "{name} has mode {mode:o}: {ran:?}");
    }
}

fn git_works_in_a_shared_repository(scene: &Scene) {
    scene.git("project", &["config", "core.sharedRepository", "group"]);
    let ran = commands(scene, &["umask 022; echo x > new.txt; git add new.txt && touch added"]);
    assert!(scene.exists("project/added"), "{ran:?}");
}

fn the_supervisor_is_closed(scene: &Scene) {
    if scene.situation.namespaces == UserNamespaces::Allowed {
        return;
    }
    let ran = commands(
        scene,
        &[
            "for name in cmdline limits mountinfo net/tcp environ; do cat /proc/$PPID/$name; done > seen; true",
        ],
    );
    assert_eq!(scene.read("project/seen").as_deref(), Some(""), "{ran:?}");
}

fn commands_run_without_a_cache(scene: &Scene) {
    scene.write("home/file", "");
    scene.folder("temporary");
    let mut command = scene.rep_command(&["verify", "--check", "test -d $TMPDIR"]);
    command.env("XDG_CACHE_HOME", scene.path("home/file")).env("TMPDIR", scene.path("temporary"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn sockets_of_the_work_folder_are_closed(scene: &Scene) {
    scene.folder("project/run");
    let path = scene.path("project/run/server.sock");
    let _server = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let ran = commands(
        scene,
        &["perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack_sockaddr_un(\"run/server.sock\")) && open(F,\">\",\"connected\")'
           touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert!(!scene.exists("project/connected"), "{ran:?}");
}

fn there_is_no_second_view(scene: &Scene) {
    let config = scene.read("project/.git/config");
    let ran = commands(
        scene,
        &["root=${TMPDIR%/tmp}/root; echo evil >> \"$root$PWD/.git/config\"
           grep -q : \"$root/etc/shadow\" && touch shadow; touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert_eq!(scene.read("project/.git/config"), config, "{ran:?}");
    assert!(!scene.exists("project/shadow"), "{ran:?}");
}

fn private_folders_cannot_be_replaced(scene: &Scene) {
    let ran = commands(
        scene,
        &["mv \"$TMPDIR\" \"$TMPDIR.old\" && ln -s \"$OUT\" \"$TMPDIR\" && touch replaced
           mv \"$HOME\" \"$HOME.old\" && touch replaced; touch worked"],
    );
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert!(!scene.exists("project/replaced"), "{ran:?}");
}

fn limits_of_other_processes_are_closed(scene: &Scene) {
    let mut bystander = scene.plain_command("sleep");
    let mut bystander = bystander.arg("60").stdout(Stdio::null()).spawn().unwrap();
    let script =
        format!("prlimit --pid {} --nofile=7:7 && touch limited; touch worked", bystander.id());
    let ran = commands(scene, &[&script]);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert!(!scene.exists("project/limited"), "{ran:?}");
}

/// The scheduling of a process: policy, priority and processors, and its priority for disks.
fn schedule_of(scene: &Scene, id: u32) -> String {
    let id = id.to_string();
    let outputs =
        [["chrt", "-p", &id], ["taskset", "-p", &id], ["ionice", "-p", &id]].map(|line| {
            let output = scene.plain_command(line[0]).args(&line[1..]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        });
    let output = scene.plain_command("ps").args(["-o", "ni=", "-p", &id]).output().unwrap();
    format!("{outputs:?} {}", String::from_utf8_lossy(&output.stdout))
}

fn schedules_of_other_processes_are_closed(scene: &Scene) {
    let mut bystander = scene.plain_command("sleep");
    let mut bystander = bystander.arg("60").stdout(Stdio::null()).spawn().unwrap();
    let before = schedule_of(scene, bystander.id());
    let program = format!(
        "import ctypes, os, threading\npid = {}\nlibc = ctypes.CDLL(None)\n\
         def attempt(call, *args):\n\
         \x20   try: call(*args)\n\
         \x20   except OSError: pass\n\
         attempt(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))\n\
         attempt(os.sched_setaffinity, pid, {{0}})\n\
         attempt(os.setpriority, os.PRIO_PROCESS, pid, 15)\n\
         attempt(os.setpriority, os.PRIO_PGRP, os.getpgid(pid) if os.path.exists(f'/proc/{{pid}}') else pid, 15)\n\
         attempt(os.setpriority, os.PRIO_USER, os.getuid(), 15)\n\
         libc.syscall(251 if os.uname().machine == 'x86_64' else 30, 1, pid, 3 << 13)\n\
         os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0))\n\
         os.sched_setaffinity(0, os.sched_getaffinity(0))\nos.setpriority(os.PRIO_PROCESS, 0, 19)\n\
         open('worked', 'w')\n",
        bystander.id()
    );
    scene.write("project/attack.py", program);
    let ran = commands(scene, &["python3 attack.py"]);
    let after = schedule_of(scene, bystander.id());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert_eq!(after, before, "{ran:?}");
}

fn secrets_of_the_system_are_closed(scene: &Scene) {
    let find = "find /etc -type f ! -perm -004";
    let script = format!(
        "{find} -exec cat {{}} + > seen; {find} -exec sh -c 'for f; do : < $f && echo $f; done' sh {{}} + > opened
         : < /etc/security/opasswd && stat -L -c %F /etc/security/opasswd > kind; touch worked"
    );
    let ran = commands(scene, &[&script]);
    assert!(scene.exists("project/worked"), "{ran:?}");
    assert_eq!(scene.read("project/seen").as_deref(), Some(""), "{ran:?}");
    assert_eq!(scene.read("project/opened").as_deref(), Some(""), "{ran:?}");
    let kind = scene.read("project/kind").unwrap_or_default();
    assert!(!kind.contains("regular"), "{kind} {ran:?}");
}

fn require_names_what_is_missing(scene: &Scene) {
    let require = [("REPERTOIRE_SANDBOX", "require")];
    let ran = commands_with(scene, &["touch worked"], &[], &require);
    if scene.situation.namespaces == UserNamespaces::Allowed {
        assert!(ran.code == 0 && scene.exists("project/worked"), "{ran:?}");
        return;
    }
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("protected-paths-read-only"), "{ran:?}");
    assert!(!scene.exists("project/worked"), "{ran:?}");
    scene.write(
        "home/.config/repertoire/repertoire.toml",
        "sandbox_requires = [\"files-confined\", \"network-off\"]\n",
    );
    let ran = commands_with(scene, &["touch worked"], &[], &require);
    assert!(ran.code == 0 && scene.exists("project/worked"), "{ran:?}");
}

fn keys_stay_out_of_commands(scene: &Scene) {
    for flags in [&[][..], &["--backend", "api"]] {
        let ran = commands_with(scene, &["env > seen; touch worked"], flags, &[]);
        assert!(scene.exists("project/worked"), "{ran:?}");
        let seen = scene.read("project/seen").unwrap_or_default();
        assert!(!seen.contains("sk-test-secret"), "{flags:?}: {seen}");
    }
}
