//! The file tools, and files that `rep` itself writes.

mod races;

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::{Duration, Instant};

use repertoire_scripted::{ModelScript, ScriptedTurn};
use serde_json::json;

use self::races::Model;
use crate::scene::{Scene, is_full, ran};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    vec![
        Guarantee {
            holds: "`write` and `edit` put nothing outside while a folder is swapped for a link",
            tried: Tried::OnceInShortForm,
            attack: races::write_and_edit_while_a_folder_is_swapped,
        },
        Guarantee {
            holds: "`list`, `glob`, `grep` and `read` show nothing from outside while a folder is swapped for a link",
            tried: Tried::Once,
            attack: races::searches_while_a_folder_is_swapped,
        },
        Guarantee {
            holds: "`write` and `edit` do not reach protected files through a link or another spelling",
            tried: Tried::Once,
            attack: protected_files_through_links,
        },
        Guarantee {
            holds: "the folder of a loaded skill cannot be swapped for a link to secrets",
            tried: Tried::InEverySituation,
            attack: a_skill_folder_that_is_swapped,
        },
        Guarantee {
            holds: "a killed write leaves no temporary file that the next write does not remove",
            tried: Tried::Once,
            attack: a_write_that_is_killed,
        },
        Guarantee {
            holds: "`rep new` does not follow a linked folder out of the project",
            tried: Tried::Once,
            attack: new_through_a_linked_folder,
        },
        Guarantee {
            holds: "`rep setup --scope project` does not follow a linked folder out of the project",
            tried: Tried::Once,
            attack: setup_through_a_linked_folder,
        },
        Guarantee {
            holds: "`rep sync` does not follow a link out of the project",
            tried: Tried::Once,
            attack: sync_through_a_link,
        },
        Guarantee {
            holds: "a report is not written through a link that a check has left in its place",
            tried: Tried::InEverySituation,
            attack: a_report_over_a_link,
        },
        Guarantee {
            holds: "`rep lint DIR` does not follow linked folders out of the project",
            tried: Tried::Once,
            attack: lint_of_linked_folders,
        },
        Guarantee {
            holds: "`rep lint` of 1.9 MB of newlines takes less than 150 MB of memory",
            tried: Tried::Once,
            attack: lint_of_newlines,
        },
        Guarantee {
            holds: "the time for `skills_dirs` grows no faster than the number of folders",
            tried: Tried::Once,
            attack: many_skills_dirs,
        },
        Guarantee {
            holds: "`rep match -` does not cut its input silently",
            tried: Tried::Once,
            attack: a_long_task_on_standard_input,
        },
    ]
}

fn protected_files_through_links(scene: &Scene) {
    scene.write("project/.claude/settings.json", "{}\n");
    scene.write("project/AGENTS.md", "Rules.\n");
    for (target, link) in [(".git", "vcs"), (".claude", "notes"), ("AGENTS.md", "readme.txt")] {
        symlink(target, scene.path("project").join(link)).unwrap();
    }
    let paths =
        ["vcs/hooks/pre-commit", "notes/settings.json", "readme.txt", ".GIT/hooks/x", "agents.MD"];
    let mut script = ModelScript::new();
    for path in paths {
        script =
            script.turn(ScriptedTurn::tool("write", json!({"path": path, "content": "chosen"})));
        let edit = json!({"path": path, "old": "Rules", "new": "chosen"});
        script = script.turn(ScriptedTurn::tool("edit", edit));
    }
    let model = Model::start(script.turn(ScriptedTurn::text("Done.")));
    let ran = model.run(scene, &["run", "--accept-edits", "Change the rules"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(scene.read("project/AGENTS.md").unwrap(), "Rules.\n");
    assert_eq!(scene.read("project/.claude/settings.json").unwrap(), "{}\n");
    for path in [".git/hooks/pre-commit", ".GIT", "agents.MD"] {
        assert!(!scene.exists(&format!("project/{path}")), "{path}");
    }
}

/// The folder of the skill is a link into a folder that commands can write to.
fn a_skill_folder_that_is_swapped(scene: &Scene) {
    let skill =
        "---\nname: notes\ndescription: Takes notes. Use it to take notes.\n---\nTake notes.\n";
    scene.write("project/tools/notes/SKILL.md", skill);
    scene.folder("project/.claude/skills");
    symlink("../../tools/notes", scene.path("project/.claude/skills/notes")).unwrap();
    scene.commit("A skill");
    scene.write("home/.ssh/id_test", "TOP SECRET\n");
    let secret = scene.path("home/.ssh");
    let swap = format!("mv tools old; mkdir tools; ln -s {secret} tools/notes; ls tools");
    let look = format!("cat {secret}/id_test; cat .claude/skills/notes/id_test");
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("skill", json!({"name": "notes"})))
        .turn(ScriptedTurn::tool("bash", json!({"command": swap})))
        .turn(ScriptedTurn::tool("bash", json!({"command": look})))
        .turn(ScriptedTurn::tool("read", json!({"path": ".claude/skills/notes/id_test"})))
        .turn(ScriptedTurn::tool("read", json!({"path": secret.join("id_test")})))
        .turn(ScriptedTurn::text("Done."));
    let model = Model::start(script);
    let ran = model.run(scene, &["run", "--full-access", "Take notes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(model.requests() >= 6, "{ran:?}");
    assert!(!model.sent().contains("TOP SECRET"), "{}", model.sent());
}

/// Temporary files in the project.
fn temporary_files(scene: &Scene) -> Vec<String> {
    let entries = std::fs::read_dir(scene.path("project")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".rep-")).collect()
}

fn a_write_that_is_killed(scene: &Scene) {
    let content = "x".repeat(300_000);
    let call = || ScriptedTurn::tool("write", json!({"path": "big.txt", "content": content}));
    let rounds = if is_full() { 5_u32 } else { 3 };
    for round in 0..rounds {
        let model = Model::start(ModelScript::new().turn(call()).turn(ScriptedTurn::text("Done.")));
        let mut command = model.command(scene, &["run", "--accept-edits", "Write it"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Killed when a temporary file is seen; in every other round also a little after the answer of the model, for
        // writes that show none.
        let mut asked = None;
        while child.try_wait().unwrap().is_none() {
            if asked.is_none() {
                if model.requests() == 0 {
                    // Nothing is written before the model has answered.
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                asked = Some(Instant::now());
            }
            let late = Duration::from_millis(20) * round;
            let is_late = round % 2 == 0 && asked.is_some_and(|at| at.elapsed() > late);
            if is_late || !temporary_files(scene).is_empty() {
                child.kill().unwrap();
                child.wait().unwrap();
                break;
            }
        }
    }
    let model = Model::start(ModelScript::new().turn(call()).turn(ScriptedTurn::text("Done.")));
    let ran = model.run(scene, &["run", "--accept-edits", "Write it"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(scene.read("project/big.txt").unwrap().len(), content.len());
    assert_eq!(temporary_files(scene), Vec::<String>::new());
}

/// Asserts that a command refused to write through a link, and named the link and its target.
#[track_caller]
fn refuses(scene: &Scene, line: &str, link: &str) {
    let ran = scene.rep(line);
    assert_eq!(ran.code, 3, "{ran:?}");
    let says = ran.stderr.contains(link) && ran.stderr.contains("outside");
    assert!(says && ran.stderr.contains("is a symbolic link to"), "{}", ran.stderr);
    let left = std::fs::read_dir(scene.path("outside")).unwrap().count();
    assert_eq!(left, 0, "something was written outside");
}

fn new_through_a_linked_folder(scene: &Scene) {
    symlink(scene.path("outside"), scene.path("project/.agents")).unwrap();
    symlink("../outside", scene.path("project/.claude")).unwrap();
    refuses(scene, "new chosen", ".agents");
    refuses(scene, "new chosen --workflow", ".agents");
    refuses(scene, "new chosen --agent", ".claude");
}

fn setup_through_a_linked_folder(scene: &Scene) {
    symlink(scene.path("outside"), scene.path("project/.cursor")).unwrap();
    refuses(scene, "setup cursor --scope project", ".cursor");
}

fn sync_through_a_link(scene: &Scene) {
    scene.write(
        "project/.agents/skills/own/SKILL.md",
        "---\nname: own\ndescription: Does it. Use when needed.\n---\nDo it.\n",
    );
    symlink("../outside/AGENTS.md", scene.path("project/AGENTS.md")).unwrap();
    refuses(scene, "sync", "AGENTS.md");
}

fn a_report_over_a_link(scene: &Scene) {
    scene.write("outside/precious", "precious\n");
    let link = "ln -s ../outside/precious report.txt";
    let args = ["verify", "--check", link, "-o", "report.txt"];
    let ran = ran(&scene.rep_command(&args).output().unwrap());
    let precious = scene.read("outside/precious").unwrap();
    assert_eq!(precious, "precious\n", "{ran:?}");
    assert!(scene.path("project/report.txt").is_symlink(), "the check made no link: {ran:?}");
    assert!(ran.code == 3 && ran.stdout.contains("check-1"), "the verdict is printed: {ran:?}");
    // A link that is there already is refused before the checks run.
    symlink("../outside", scene.path("project/reports")).unwrap();
    let refused = scene.rep("verify --check touch-ran -o reports/x.json");
    assert!(refused.stderr.contains("was not written"), "{refused:?}");
    assert!(refused.code == 3 && !refused.stderr.contains("check-1"), "nothing ran: {refused:?}");
    assert!(!scene.exists("outside/x.json"));
}

fn lint_of_linked_folders(scene: &Scene) {
    let text = "---\nname: Secret Name\ndescription: x\n---\nprivate words\n";
    scene.write("outside/secret/SKILL.md", text);
    scene.folder("project/skills");
    symlink("../../outside/secret", scene.path("project/skills/linked")).unwrap();
    let ran = scene.rep("lint skills");
    assert!(!ran.stdout.contains("Secret") && !ran.stderr.contains("Secret"), "{ran:?}");
    assert!(ran.stdout.contains("linked"), "the link is not mentioned: {ran:?}");
    let ran = scene.rep("lint --fix --json .");
    assert!(!ran.stdout.contains("Secret"), "{ran:?}");
    assert_eq!(scene.read("outside/secret/SKILL.md").unwrap(), text);
}

fn lint_of_newlines(scene: &Scene) {
    let text =
        format!("---\nname: x\ndescription: Does x. Use when x.\n---\n{}", "\n".repeat(1_900_000));
    scene.write("project/skills/x/SKILL.md", text);
    let mut command = scene.rep_command(&["lint", "skills"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most_kb = 0;
    while child.try_wait().unwrap().is_none() {
        most_kb = most_kb.max(peak_memory_kb(child.id()).unwrap_or(0));
    }
    assert!(most_kb > 0 && most_kb < 150_000, "{most_kb} KB");
}

/// The most memory that a process has had at a time.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel, which is small")]
fn peak_memory_kb(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn many_skills_dirs(scene: &Scene) {
    let mut times = Vec::new();
    for count in [3_000, 12_000] {
        for number in 0..count {
            let folder = scene.path(&format!("project/d{number}"));
            if !folder.exists() {
                std::fs::create_dir(folder).unwrap();
            }
        }
        let names: Vec<String> = (0..count).map(|number| format!("'d{number}'")).collect();
        scene.write("project/repertoire.toml", format!("skills_dirs = [{}]\n", names.join(",")));
        let start = Instant::now();
        let ran = scene.rep("list --json");
        times.push(start.elapsed());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    // Four times as many folders: about 4 times the time if it is linear, 16 if it is quadratic.
    assert!(times[1] < times[0] * 8, "{times:?}");
}

fn a_long_task_on_standard_input(scene: &Scene) {
    let mut command = scene.rep_command(&["match", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let text = "write a report ".repeat(100_000);
    // A command that has read enough closes its end.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let ran = ran(&child.wait_with_output().unwrap());
    let says = ran.stderr.contains("1048576 bytes");
    assert!(says && ran.code == 2, "{ran:?}");
}
