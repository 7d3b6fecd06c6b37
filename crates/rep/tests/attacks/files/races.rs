//! Tools at work while a folder is replaced by a link to the outside and back, thousands of times a second.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use repertoire_scripted::{ModelScript, ScriptedServer, ScriptedToolUse, ScriptedTurn};
use serde_json::json;

use crate::scene::{Ran, Scene, is_full, ran};

/// A model that answers from a script, on this machine.
pub(super) struct Model {
    runtime: tokio::runtime::Runtime,
    server: ScriptedServer,
}

impl Model {
    pub(super) fn start(script: ModelScript) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(ScriptedServer::start(script));
        Model { runtime, server }
    }

    /// `rep`, which asks this model.
    pub(super) fn command(&self, scene: &Scene, args: &[&str]) -> Command {
        let mut command = scene.rep_command(args);
        command.env("ANTHROPIC_BASE_URL", self.server.url());
        command.env("ANTHROPIC_API_KEY", "sk-test-secret");
        command
    }

    pub(super) fn run(&self, scene: &Scene, args: &[&str]) -> Ran {
        ran(&self.command(scene, args).output().unwrap())
    }

    /// How often the model was asked.
    pub(super) fn requests(&self) -> usize {
        let _here = self.runtime.enter();
        self.server.requests().len()
    }

    /// Everything that the model was sent.
    pub(super) fn sent(&self) -> String {
        let _here = self.runtime.enter();
        self.server.requests().iter().map(|request| request.body.to_string()).collect()
    }
}

/// How many turns the model takes while the folder is swapped.
fn turns() -> usize {
    if is_full() { 12 } else { 4 }
}

/// Runs `rep` with a script while `project/swapped` is a folder and a link to `outside` by turns.
fn while_a_folder_is_swapped(scene: &Scene, model: &Model) -> Ran {
    let (swapped, link) = (scene.path("project/swapped"), scene.path("project/link"));
    symlink(scene.path("outside"), &link).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (here, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
            while !is_over.load(Ordering::Relaxed) {
                let (a, b) = (swapped.as_std_path(), link.as_std_path());
                rustix::fs::renameat_with(here, a, here, b, exchange).unwrap();
            }
        });
        let args = ["run", "--accept-edits", "--max-turns", "40", "Do it"];
        let ran = model.run(scene, &args);
        is_over.store(true, Ordering::Relaxed);
        ran
    })
}

pub(super) fn write_and_edit_while_a_folder_is_swapped(scene: &Scene) {
    scene.write("project/swapped/edited.txt", "before\n");
    scene.write("outside/edited.txt", "before\n");
    let mut script = ModelScript::new();
    for turn in 0..turns() {
        let write = |number: usize| {
            let path = format!("swapped/chosen-{turn}-{number}.txt");
            ScriptedToolUse::new("write", json!({"path": path, "content": "chosen"}))
        };
        let mut calls: Vec<ScriptedToolUse> = (0..40).map(write).collect();
        let edit = json!({"path": "swapped/edited.txt", "old": "before", "new": "before"});
        calls.extend((0..20).map(|_| ScriptedToolUse::new("edit", edit.clone())));
        script = script.turn(ScriptedTurn::tools(calls));
    }
    let model = Model::start(script.turn(ScriptedTurn::text("Done.")));
    let inode = || {
        std::os::unix::fs::MetadataExt::ino(&scene.path("outside/edited.txt").metadata().unwrap())
    };
    let before = inode();
    let ran = while_a_folder_is_swapped(scene, &model);
    assert_eq!(ran.code, 0, "{ran:?}");
    let outside = std::fs::read_dir(scene.path("outside")).unwrap().count();
    assert_eq!(outside, 1, "{} chosen files were written outside", outside - 1);
    assert_eq!(inode(), before, "the file outside was replaced");
}

pub(super) fn searches_while_a_folder_is_swapped(scene: &Scene) {
    scene.write("project/swapped/inside.txt", "needle inside\n");
    scene.write("outside/private-name.txt", "needle private-words\n");
    let mut script = ModelScript::new();
    for _ in 0..turns() {
        let mut calls = Vec::new();
        for _ in 0..12 {
            calls.push(ScriptedToolUse::new("list", json!({"path": ".", "depth": 3})));
            calls.push(ScriptedToolUse::new("glob", json!({"pattern": "**/*.txt"})));
            calls.push(ScriptedToolUse::new("grep", json!({"pattern": "needle"})));
            calls.push(ScriptedToolUse::new("search", json!({"query": "needle"})));
            calls.push(ScriptedToolUse::new("read", json!({"path": "swapped/private-name.txt"})));
        }
        script = script.turn(ScriptedTurn::tools(calls));
    }
    let model = Model::start(script.turn(ScriptedTurn::text("Done.")));
    let ran = while_a_folder_is_swapped(scene, &model);
    assert_eq!(ran.code, 0, "{ran:?}");
    // The model itself named the file when it asked for it; the words in it and the listing come from outside.
    let sent = model.sent();
    assert!(!sent.contains("private-words"), "the text of a file outside was read");
    let listed =
        sent.matches("private-name.txt  ").count() + sent.matches("private-name.txt\\n").count();
    assert_eq!(listed, 0, "a file outside was listed");
}
