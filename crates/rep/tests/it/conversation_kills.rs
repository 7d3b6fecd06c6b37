//! `kill -9` in the middle of a conversation, on both stores: everything that was acknowledged is there, and the
//! conversation goes on.
//!
//! `REPERTOIRE_LONG=1` kills 150 times instead of a few; `REPERTOIRE_SEED` repeats the choices of a run that failed.

use std::time::{Duration, Instant};

use repertoire_scripted::{ModelFault, ModelScript, ScriptedTurn};
use serde_json::json;

use crate::plan_crash::field::{Dice, is_long};
use crate::server::Server;
use crate::talking::{Model, begin, end, signal};
use crate::workspace::Workspace;

fn office(server: Option<&Server>) -> Workspace {
    let mut ws = Workspace::new();
    ws.skill_with(
        "home/.claude/skills/tenders",
        "name: tenders\ndescription: Rules for public tenders. Use when a tender is analysed.\n\
         triggers:\n  keywords: [danish tender]\n",
    );
    ws.write("project/notes.txt", "one\ntwo\n");
    if let Some(server) = server {
        ws.set("REPERTOIRE_DATABASE_URL", &server.url("postgres"));
    }
    ws
}

fn read_notes() -> ScriptedTurn {
    ScriptedTurn::tool("read", json!({"path": "notes.txt"}))
}

fn is_taken_up_after_a_kill(server: Option<&Server>) {
    let mut ws = office(server);
    let script = ModelScript::new()
        .turn(ScriptedTurn::text("Noted."))
        .turn(read_notes())
        .turn(ScriptedTurn::fail(ModelFault::StallBeforeHeaders))
        .turn(ScriptedTurn::text("Again."));
    let model = Model::start(&mut ws, script);
    ws.rep("run a Danish tender, number seven");
    let mut child = begin(&ws, &["run", "--resume", "last", "read the notes"]);
    drop(child.stdin.take());
    model.wait_for(3);
    // The events are written by a task of its own while the model thinks.
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "KILL");
    assert_eq!(end(child).code, -1);

    let listed = ws.rep("conversations");
    assert!(listed.stdout.contains("at work or interrupted"), "{listed}");
    let ran = ws.rep("run --resume last go on");
    assert_eq!((ran.stdout.as_str(), ran.code), ("Again.\n", 0), "{ran}");
    assert!(ran.stderr.contains("was interrupted"), "{ran}");
    let asked = model.requests().last().unwrap().body.to_string();
    for said in ["number seven", "Noted.", "read the notes", "tool_result", "go on"] {
        assert!(asked.contains(said), "{said}: {asked}");
    }
    assert_eq!(asked.matches("AUTO-LOADED SKILL").count(), 1, "{asked}");
}

#[expect(clippy::print_stderr, reason = "the seed repeats a run that failed")]
fn loses_nothing_that_was_acknowledged(server: Option<&Server>, name: &str) {
    let (mut dice, seed) = Dice::new();
    eprintln!("{name}: REPERTOIRE_SEED={seed}");
    let rounds = if is_long() { 150 } else { 12 };
    let mut ws = office(server);
    let mut script = ModelScript::new();
    for _ in 0..2 * rounds + 10 {
        script = script.turn(read_notes()).turn(ScriptedTurn::text("Ok."));
    }
    let model = Model::start(&mut ws, script);
    let begun = Instant::now();
    assert_eq!(ws.rep("run --no-auto prompt <0>").code, 0);
    let life_ms = u64::try_from(begun.elapsed().as_millis()).unwrap();
    let mut acknowledged = vec![0];
    let mut killed = 0;
    for round in 1..=rounds {
        let prompt = format!("prompt <{round}>");
        let mut child = begin(&ws, &["run", "--no-auto", "--resume", "last", &prompt]);
        drop(child.stdin.take());
        std::thread::sleep(Duration::from_millis(dice.below(life_ms * 3 / 2)));
        // It may have ended by then.
        let _ = child.kill();
        let ran = end(child);
        match ran.code {
            0 => acknowledged.push(round),
            -1 => killed += 1,
            _ => panic!("{ran}"),
        }
    }
    let ran = ws.rep("run --no-auto --resume last the end");
    assert_eq!(ran.code, 0, "{ran}");
    let asked = model.requests().last().unwrap().body.to_string();
    for round in &acknowledged {
        assert!(
            asked.contains(&format!("prompt <{round}>")),
            "{round} of {acknowledged:?}: {asked}"
        );
    }
    let replayed = ws.rep("runs replay last");
    assert!(replayed.code == 0 && !replayed.stdout.contains("not equal"), "{replayed}");
    eprintln!("{name}: {killed} of {rounds} killed");
}

#[test]
fn a_killed_run_is_taken_up_with_everything_that_was_said() {
    is_taken_up_after_a_kill(None);
}

#[test]
fn a_killed_run_is_taken_up_with_everything_that_was_said_with_postgres() {
    let Some(server) = Server::start(&["fsync=off"]) else { return };
    is_taken_up_after_a_kill(Some(&server));
}

#[test]
fn killed_conversations_lose_nothing_that_was_acknowledged() {
    loses_nothing_that_was_acknowledged(None, "sqlite");
}

#[test]
fn killed_conversations_lose_nothing_that_was_acknowledged_with_postgres() {
    let Some(server) = Server::start(&["fsync=off"]) else { return };
    loses_nothing_that_was_acknowledged(Some(&server), "postgres");
}
