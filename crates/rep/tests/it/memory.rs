//! `rep verify memory`, on a journal that was filled by the command itself and through its own interface.

use std::sync::Arc;

use repertoire_journal::memory::{FailureKnowledge, FixOrigin, MemoryObservation};
use repertoire_journal::{
    FailureFix, FixOutcome, FixRemedy, Journal, KnownFix, MemoryLesson, Target,
};
use repertoire_text::clock::{Clock as _, SystemClock};

use crate::workspace::Workspace;

const LINK: &str = "9f2c41d07ab3e655";
const LINT: &str = "00aa11bb22cc33dd";

fn workspace() -> Workspace {
    let mut ws = Workspace::new();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws.set("USER", "ada");
    ws.write(
        "project/.git/config",
        "[remote \"origin\"]\n\turl = git@github.com:somebody/something.git\n",
    );
    ws
}

/// With a failure that was seen three times and mended twice, and one that nobody could mend.
fn filled() -> Workspace {
    let ws = workspace();
    let now_ms = SystemClock.now_ms();
    let remedy = FixRemedy::Command(["cargo", "update", "-p", "serde"].map(str::to_owned).to_vec());
    let preconditions = vec!["exists Cargo.lock".to_owned()];
    let fix = FailureFix { remedy, preconditions, origin: FixOrigin::Learnt };
    let mut known = FailureKnowledge::default();
    for (category, tool, example) in [("build", "cargo", "linking with `cc` failed")].repeat(3) {
        let (category, tool) = (category.to_owned(), tool.to_owned());
        let (code, example) = (Some("E0463".to_owned()), example.to_owned());
        let seen = MemoryObservation::Seen { category, code, tool, example };
        known.apply("", LINK, &seen, now_ms - 7_200_000);
    }
    for _ in 0..2 {
        let (outcome, reason) = (FixOutcome::Worked, "the checks are green".to_owned());
        let tried = MemoryObservation::Tried { fix: fix.clone(), outcome, reason, run: None };
        known.apply("", LINK, &tried, now_ms - 7_200_000);
    }
    let fixes: Vec<KnownFix> = known.fixes.into_values().collect();
    let link = MemoryLesson { failure: known.failure.unwrap(), fixes };
    let mut lint = link.clone();
    lint.fixes.clear();
    lint.failure.signature = LINT.into();
    lint.failure.category = "lint".into();
    (lint.failure.code, lint.failure.example, lint.failure.seen) = (None, "unused `x`".into(), 1);
    let target = Target::File(ws.path("data/journal.sqlite"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let journal = Journal::open(&target, Arc::new(move || now_ms)).await.unwrap();
        let scope = "github.com/somebody/something";
        journal.store_lessons(scope, vec![link, lint]).await.unwrap();
        journal.close().await;
    });
    ws
}

#[test]
fn an_empty_memory_says_how_it_is_filled_and_makes_no_file() {
    let ws = workspace();
    let ran = ws.rep("verify memory");
    insta::assert_snapshot!(ran, @r"
    Nothing is remembered of github.com/somebody/something yet. `rep plan run --self-improve` remembers
    what fails and what helps; `rep verify memory teach` says it by hand.
    [exit 0]
    ");
    assert_eq!(ws.json("memory --json", "memory.json")["failures"], serde_json::json!([]));
    assert_eq!(ws.json("memory export", "memory-export.json")["version"], 1);
    assert_eq!(ws.rep("verify memory show 9f2c").code, 1);
    assert!(!ws.path("data/journal.sqlite").exists());
}

#[test]
fn failures_are_listed_with_how_far_the_best_fix_is_trusted() {
    let ws = filled();
    insta::assert_snapshot!(ws.rep("verify memory"), @"
    signature         seen  last  fix             failure
    9f2c41d07ab3e655  3x    2h    automatic 0.76  E0463: linking with `cc` failed
    00aa11bb22cc33dd  1x    2h    none            unused `x`
    [exit 0]
    ");
    let json = ws.json("memory list --category lint --json", "memory.json");
    assert_eq!(json["failures"][0]["failure"]["signature"], LINT);
    assert_eq!(json["failures"].as_array().unwrap().len(), 1);
    let none = ws.rep("verify memory list --category git").stdout;
    assert_eq!(none, "No failure is like that. `rep verify memory` lists all.\n");
    let other = ws.rep("verify memory --scope github.com/else/where").stdout;
    assert!(other.contains("is known of github.com/somebody/something; see --scope"), "{other}");
    let more = ws.rep("verify memory --limit 1").stdout;
    assert!(more.contains("--after 1 goes on"), "{more}");
}

#[test]
fn a_failure_is_shown_with_its_fixes() {
    let ws = filled();
    let shown = ws.rep("verify memory show 9F2c").stdout;
    for part in [
        "9f2c41d07ab3e655  build E0463\nlinking with `cc` failed\n",
        "3 times in github.com/somebody/something, by cargo; last ",
        "automatic 0.76  command",
        "it worked 2 of 2 times\n    cargo update -p serde\n    only if: exists Cargo.lock\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let json = ws.json("memory show 9f2c --json", "memory-show.json");
    assert_eq!(json["fixes"][0]["state"], "automatic");
    let none = ws.rep("verify memory show 00aa").stdout;
    assert!(none.contains("No fix is known. `rep verify memory teach 00aa11bb22cc33dd` says one."));
    let unknown = ws.rep("verify memory show ffff");
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("`rep verify memory` lists those that were"), "{unknown}");
}

#[test]
fn what_a_person_teaches_is_tried_once_and_what_does_harm_is_refused() {
    let ws = workspace();
    let taught = ws
        .rep("verify memory teach 9f2c41d07ab3e655 --if-exists Cargo.lock --command cargo fetch --locked");
    assert_eq!(taught.code, 0, "{taught}");
    let json = ws.json("memory show 9f2c --json", "memory-show.json");
    let fix = &json["fixes"][0]["fix"]["fix"];
    assert_eq!(fix["remedy"]["content"], serde_json::json!(["cargo", "fetch", "--locked"]));
    assert_eq!(
        (&fix["origin"], &json["fixes"][0]["state"]),
        (&"taught".into(), &"automatic".into())
    );
    let words = ["memory", "teach", LINK, "--advice", "Ask Grace.", "--json"];
    assert_eq!(ws.rep_with(&words).code, 0);
    ws.write("project/p.diff", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n");
    assert_eq!(ws.rep("verify memory teach 9f2c41d07ab3e655 --patch p.diff").code, 0);
    assert_eq!(ws.json("memory --json", "memory.json")["failures"][0]["fixes"], 3);
    for (line, code, said) in [
        ("memory teach 9f2c41d07ab3e655 --command rm -r target", 1, "`rm` may do anything"),
        ("memory teach 9f2c41d07ab3e655 --command git push --force", 1, "of git, only"),
        ("memory teach 9f2c41d07ab3e655 --advice ghp_abcdefghijklmnop1234", 1, "a secret"),
        ("memory teach nonsense --advice x", 2, "is no signature"),
        ("memory teach 9f2c41d07ab3e655", 2, "required"),
        ("memory teach 9f2c41d07ab3e655 --patch none.diff", 1, "none.diff"),
    ] {
        let ran = ws.rep(line);
        assert_eq!(ran.code, code, "{line}: {ran}");
        assert!(ran.stderr.contains(said), "{line}: {ran}");
    }
}

#[test]
fn a_memory_is_carried_to_another_machine() {
    let ws = filled();
    let exported = ws.rep("verify memory export").stdout;
    let there = workspace();
    there.write("project/memory.json", &exported);
    let taken = there.json("memory import memory.json --json", "memory-import.json");
    assert_eq!((&taken["failures"], &taken["fixes"]), (&2.into(), &1.into()));
    let suggested = there.json("memory --json", "memory.json");
    assert_eq!(suggested["failures"][0]["best"], "suggested");
    let trusted = there.rep("verify memory import memory.json --trust");
    assert_eq!(trusted.stdout, "Took 2 failures and 1 fix.\n", "{trusted}");
    assert_eq!(there.json("memory --json", "memory.json")["failures"][0]["best"], "automatic");
    there.write("project/odd.json", "{\"version\": 7}");
    let odd = there.rep("verify memory import odd.json");
    assert!(odd.code == 1 && odd.stderr.contains("has version 7"), "{odd}");
}

#[test]
fn a_failure_is_forgotten() {
    let ws = filled();
    assert_eq!(ws.rep("verify memory forget").code, 2);
    let gone = ws.rep("verify memory forget 9f2c");
    assert_eq!(gone.stdout, "Forgot 1 failure of github.com/somebody/something.\n");
    assert_eq!(ws.rep("verify memory show 9f2c").code, 1);
    assert_eq!(ws.json("memory forget --all --json", "memory-forget.json")["failures"], 1);
}
