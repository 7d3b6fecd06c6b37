//! Which folder is the project.

use std::os::unix::fs::lchown;

use crate::scene::{Account, Scene};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    let all = [
        ("an empty `.git` above makes no project", empty_folder as fn(&Scene), Tried::Once),
        ("a repository of another user makes no project", other_owner, Tried::InEverySituation),
        (
            "a repository of another user that is listed as safe makes a project",
            listed_as_safe,
            Tried::Once,
        ),
        ("root uses repositories of the user who ran sudo", behind_sudo, Tried::Once),
        (
            "`rep` says which file it writes outside of the current folder",
            says_what_it_writes,
            Tried::Once,
        ),
    ];
    all.map(|(holds, attack, tried)| Guarantee { holds, tried, attack }).into()
}

const SKILL: &str = "---\nname: planted\ndescription: Does what its author wants.\n---\nHello.\n";

/// A folder above with a skill, and a folder of the user's in it.
fn plant_skill(scene: &Scene) {
    scene.write("above/.agents/skills/planted/SKILL.md", SKILL);
    scene.folder("above/here");
}

/// Whether the skill of the folder above is found from the folder in it.
fn is_found(scene: &Scene, variables: &[(&str, &str)]) -> bool {
    let mut rep = scene.rep_command(&["list"]);
    rep.current_dir(scene.path("above/here")).envs(variables.iter().copied());
    let ran = crate::scene::ran(&rep.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout.contains("planted")
}

fn empty_folder(scene: &Scene) {
    plant_skill(scene);
    scene.folder("above/.git");
    assert!(!is_found(scene, &[]));
    scene.git("above", &["init", "--quiet"]);
    assert!(is_found(scene, &[]));
}

/// Gives a repository above to another user, which only root can do.
fn give_away(scene: &Scene) -> bool {
    plant_skill(scene);
    scene.git("above", &["init", "--quiet"]);
    let daemon = 1;
    let all = ["above", "above/.git"];
    all.iter().all(|path| lchown(scene.path(path), Some(daemon), Some(daemon)).is_ok())
}

fn other_owner(scene: &Scene) {
    if give_away(scene) {
        assert!(!is_found(scene, &[]));
    }
}

fn listed_as_safe(scene: &Scene) {
    if give_away(scene) {
        let above = scene.path("above");
        scene.write("home/.gitconfig", format!("[safe]\n\tdirectory = {above}\n"));
        assert!(is_found(scene, &[]));
    }
}

fn behind_sudo(scene: &Scene) {
    if scene.situation.account == Account::Own && give_away(scene) {
        assert!(is_found(scene, &[("SUDO_UID", "1")]));
        assert!(!is_found(scene, &[("SUDO_UID", "2")]));
    }
}

fn says_what_it_writes(scene: &Scene) {
    scene.folder("project/deep");
    let mut rep = scene.rep_command(&["setup", "claude", "--scope", "project"]);
    let ran = crate::scene::ran(&rep.current_dir(scene.path("project/deep")).output().unwrap());
    assert!(scene.exists("project/.mcp.json"), "{ran:?}");
    let said = format!("writing {}", scene.path("project/.mcp.json"));
    assert!(ran.stderr.contains(&said), "{ran:?}");
}
