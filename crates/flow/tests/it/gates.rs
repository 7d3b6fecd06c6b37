//! Gates: computed from what was recorded, softened by iteration, never by a word.

use repertoire_flow::check_command::render_check_command;
use repertoire_flow::engine::{EngineInput, ItemRecord, PersonChoice, is_proven, outdated_checks};
use repertoire_flow::state::{CheckProof, GateReview, ItemStatus, WorkFingerprint};
use repertoire_flow::step::{StepAddressing, build_view};
use repertoire_flow::template::TemplateScope;
use repertoire_flow::workflow::{Gate, ItemSeverity};

use crate::support::{
    Run, about, check, choose, error, item, judge, ran, record, sets, stored_earlier,
};

use ItemSeverity::{Could, Must, Should};
use ItemStatus::{Fail, Pass, Todo};

fn gate(more: &str) -> String {
    format!(
        "
checks:
  tests: {{ command: make test, description: The tests }}
  word: {{ description: Somebody looked }}
steps:
  - {{ id: work, title: Work, actions: [Work], next: review }}
  - {{ id: review, title: Review, actions: [Review], next: gate }}
  - id: gate
    title: Gate
    decide:
      gate: {{ name: Quality, reviews: [review], banner: b, stop: s, {more} }}
    next: {{ ok: ship, fail: work }}
  - {{ id: ship, title: Ship, actions: [Ship], next: end }}
"
    )
}

fn fresh() -> Run {
    Run::of(&gate("reverify: fresh"))
}

/// Goes from the work to the gate, with these records.
#[track_caller]
fn reviewed(run: &mut Run, items: Vec<ItemRecord>) -> &mut Run {
    run.done().says(&record(items)).done()
}

#[test]
fn a_gate_without_items_is_open() {
    let mut run = fresh();
    run.done().done();
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: nothing was recorded"
    );
    assert_eq!(
        run.refuses(&EngineInput::leave_with("ok")),
        "gate `gate` is open: nothing was recorded"
    );
}

#[test]
fn an_item_without_a_verdict_blocks_whatever_its_severity() {
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Pass), item("b", Could, Todo)]);
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: no verdict yet on `b`"
    );
    run.says(&record(vec![judge("b", Pass)])).done();
    assert_eq!(run.at(), "ship");
}

#[test]
fn a_word_does_not_pass_a_gate() {
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Fail)]);
    assert_eq!(
        run.refuses(&EngineInput::leave_with("ok")),
        "the outcome of step `gate` is computed, and is `fail`, not `ok`"
    );
    run.done();
    assert_eq!((run.at().as_str(), run.state.reviews["gate"].iteration), ("work", 2));
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Pass)]);
    assert_eq!(
        run.refuses(&EngineInput::leave_with("fail")),
        "the outcome of step `gate` is computed, and is `ok`, not `fail`"
    );
}

#[test]
fn a_gate_asked_twice_counts_one_iteration() {
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Fail)]);
    let leave = about(3, EngineInput::leave_step());
    run.says(&leave).says(&leave).says(&leave);
    assert_eq!((run.state.reviews["gate"].iteration, run.state.turn), (2, 4));
}

/// Fails an item of this severity in every iteration, and gives the iteration in which the gate is passed, or none.
fn passed_in(severity: ItemSeverity) -> Option<u32> {
    let mut run = fresh();
    run.done().says(&record(vec![item("a", severity, Fail)])).done();
    loop {
        run.done();
        match run.at().as_str() {
            "ship" => return Some(run.state.reviews["gate"].iteration),
            "work" => {
                run.done().says(&record(vec![judge("a", Fail)])).done();
            }
            _ => return None,
        }
    }
}

#[test]
fn what_blocks_gets_less_with_iterations() {
    assert_eq!(passed_in(Could), Some(4));
    assert_eq!(passed_in(Should), Some(5));
    assert_eq!(passed_in(Must), None);
}

#[test]
fn at_the_limit_a_person_decides() {
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Fail), item("b", Should, Fail)]);
    for iteration in 2..=5 {
        run.done();
        assert_eq!(run.state.reviews["gate"].iteration, iteration);
        reviewed(&mut run, vec![judge("a", Fail), judge("b", Fail)]);
    }
    let leave = about(run.state.turn, EngineInput::leave_step());
    run.says(&leave);
    let waiting = run.at();
    assert_eq!(waiting, "gate: gate `gate` has failed as often as it may (a)");
    // The same report again, and nothing else.
    run.says(&leave);
    assert_eq!(run.at(), waiting);
    assert!(run.refuses(&record(vec![judge("a", Pass)])).starts_with("the run waits"));
    assert_eq!(run.refuses(&choose(PersonChoice::MustOnly)), "this cannot be accepted: `a`");
    assert_eq!(
        run.refuses(&choose(PersonChoice::Take("ok".into()))),
        "`take:ok` is no choice here; possible: continue, must-only, skip, abort"
    );
    // Once more, and it stops again.
    run.chooses(PersonChoice::Continue);
    assert_eq!((run.at().as_str(), run.state.reviews["gate"].iteration), ("work", 6));
    reviewed(&mut run, vec![judge("a", Fail), judge("b", Fail)]).done();
    assert_eq!(run.at(), waiting);
    run.chooses(PersonChoice::Skip);
    assert_eq!(run.at(), "ship");
    let last = run.state.decisions.last().expect("it was decided");
    assert_eq!(last.accepted, ["a", "b"]);
    assert_eq!((last.choice.as_str(), last.note.as_str()), ("skip", "so it is"));
    assert_eq!(run.state.reviews["gate"].rounds.len(), 6);
}

#[test]
fn a_person_can_end_it_at_the_limit_or_let_the_lesser_pass() {
    let yaml = gate("reverify: fresh, schedule: [COULD]");
    let mut run = Run::of(&yaml);
    reviewed(&mut run, vec![item("a", Should, Fail), item("b", Must, Pass)]).done();
    assert_eq!(run.at(), "gate: gate `gate` has failed as often as it may (a)");
    let stopped = run.state.clone();
    run.chooses(PersonChoice::Abort);
    assert_eq!(run.at(), "aborted");
    run.state = stopped;
    run.chooses(PersonChoice::MustOnly);
    assert_eq!(
        (run.at().as_str(), &run.state.decisions[0].accepted[..]),
        ("ship", &["a".to_owned()][..])
    );
}

#[test]
fn what_failed_stands_until_the_next_iteration() {
    let mut run = fresh();
    run.done().says(&record(vec![item("a", Must, Fail)]));
    let stands = "item `a` has failed in this iteration; it can pass in the next, after the repair";
    assert_eq!(run.refuses(&record(vec![judge("a", Pass)])), stands);
    assert_eq!(run.refuses(&record(vec![judge("a", Todo)])), stands);
    run.done();
    assert_eq!(run.refuses(&record(vec![judge("a", Pass)])), stands);
    run.done().done().says(&record(vec![judge("a", Pass)])).done().done();
    assert_eq!(run.at(), "ship");
}

#[test]
fn an_item_keeps_its_meaning_and_its_severity_only_rises() {
    let mut run = fresh();
    run.done().says(&record(vec![item("a", Should, Todo)]));
    assert_eq!(
        run.refuses(&record(vec![item("a", Could, Pass)])),
        "item `a` is SHOULD, and does not become COULD"
    );
    let other = ItemRecord { check: Some("another".into()), ..judge("a", Pass) };
    assert_eq!(
        run.refuses(&record(vec![other])),
        "item `a` is recorded already, with another check; record a new one instead"
    );
    run.says(&record(vec![item("a", Must, Pass)]));
    assert_eq!(run.state.reviews["gate"].items[0].severity, Must);
}

#[test]
fn a_failure_needs_a_finding_of_its_own() {
    let mut run = fresh();
    let silent = |id: &str| ItemRecord { finding: None, ..judge(id, Fail) };
    run.done();
    let praised = ItemRecord { finding: Some("looks fine".into()), ..item("a", Must, Pass) };
    run.says(&record(vec![praised]));
    assert_eq!(run.refuses(&record(vec![silent("a")])), "item `a` fails: give the finding");
}

#[test]
fn records_are_all_or_nothing() {
    let mut run = fresh();
    run.done();
    let before = run.state.clone();
    let bad = ItemRecord { id: "b".into(), ..ItemRecord::default() };
    assert!(run.refuses(&record(vec![item("a", Must, Pass), bad])).contains("`b`"));
    assert_eq!(run.state, before);
    for id in ["", "a b", "a\n## step", "../x", &"x".repeat(65)] {
        assert!(!run.refuses(&record(vec![item(id, Must, Pass)])).is_empty());
    }
}

#[test]
fn items_are_recorded_during_a_review_and_at_its_gate() {
    let mut run = fresh();
    assert_eq!(
        run.refuses(&record(vec![item("a", Must, Pass)])),
        "nothing is recorded during step `work`; reviews are `review`"
    );
    run.done().done().says(&record(vec![item("a", Must, Pass)])).done();
    assert!(run.refuses(&record(vec![judge("a", Fail)])).starts_with("nothing is recorded"));
}

#[test]
fn a_fresh_review_opens_everything_and_shows_no_findings() {
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Fail), item("b", Must, Pass)]).done();
    let review = &run.state.reviews["gate"];
    assert!(review.items.iter().all(|item| item.status == Todo && item.finding.is_empty()));
    assert_eq!(review.rounds[0].items[0].finding, "it does not");
    run.done().done();
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: no verdict yet on `a`, `b`"
    );
}

#[test]
fn a_targeted_review_opens_what_failed() {
    let mut run = Run::of(&gate("reverify: targeted"));
    reviewed(&mut run, vec![item("a", Must, Fail), item("b", Must, Pass)]).done();
    run.done().done();
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: no verdict yet on `a`"
    );
}

#[test]
fn a_check_with_a_command_counts_only_when_it_was_run() {
    let mut run = Run::of(&gate("reverify: fresh, checks: [tests]"));
    reviewed(&mut run, vec![item("a", Must, Pass)]);
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: no verdict yet of check `tests`"
    );
    let claimed = "check `tests` has a command (`make test`): only a run of it counts";
    assert_eq!(run.refuses(&check("tests", Pass, CheckProof::Claim)), claimed);
    assert_eq!(run.refuses(&check("tests", Pass, ran("true", 0))), claimed);
    assert_eq!(
        run.refuses(&check("tests", Pass, ran("make test", 2))),
        "check `tests` is not PASS: its command has ended with code 2"
    );
    let killed = CheckProof::Run { command: "make test".into(), exit_code: None, work: None };
    assert_eq!(
        run.refuses(&check("tests", Pass, killed)),
        "check `tests` is not PASS: its command has ended with a signal"
    );
    assert_eq!(
        run.refuses(&check("word", Pass, CheckProof::Claim)),
        "gate `gate` has no check `word`; it has `tests`"
    );
    run.says(&check("tests", Pass, ran("make test", 0))).done();
    assert_eq!(run.at(), "ship");
}

#[test]
fn a_check_without_a_command_is_claimed_and_a_claimed_failure_stands() {
    let mut run = Run::of(&gate("reverify: fresh, checks: [word]"));
    reviewed(&mut run, vec![item("a", Must, Pass)]);
    run.says(&check("word", Fail, CheckProof::Claim));
    assert!(
        run.refuses(&check("word", Pass, CheckProof::Claim))
            .contains("has failed in this iteration")
    );
    run.done();
    assert_eq!(run.at(), "work");
}

#[test]
fn a_red_check_is_never_softened_and_cannot_be_skipped() {
    let mut run = Run::of(&gate("reverify: targeted, checks: [tests]"));
    run.done().says(&record(vec![item("a", Could, Pass)]));
    for iteration in 1..=5 {
        assert_eq!(run.state.reviews["gate"].iteration, iteration);
        run.says(&check("tests", Fail, ran("make test", 1))).done().done();
        if iteration < 5 {
            // What passed before the repair says nothing about what comes after it.
            assert!(run.state.reviews["gate"].checks.is_empty());
            run.done();
        }
    }
    assert_eq!(run.at(), "gate: gate `gate` has failed as often as it may (tests)");
    for choice in [PersonChoice::Skip, PersonChoice::MustOnly] {
        assert_eq!(run.refuses(&choose(choice)), "this cannot be accepted: `tests`");
    }
    run.chooses(PersonChoice::Continue);
    assert_eq!(run.at(), "work");
}

#[test]
fn a_gate_that_is_come_to_again_after_a_pass_is_as_strict_as_the_first_time() {
    let yaml = gate("reverify: targeted, schedule: [COULD, MUST]").replace(
        "actions: [Ship], next: end",
        "actions: [Ship], loop: { max: 2 }, next: { more: work, ok: end }",
    );
    let mut run = Run::of(&yaml);
    reviewed(&mut run, vec![item("a", Could, Fail)]).done();
    reviewed(&mut run, vec![judge("a", Fail)]).done();
    assert_eq!((run.at().as_str(), run.state.reviews["gate"].iteration), ("ship", 2));
    run.leaves("more").done();
    let review = &run.state.reviews["gate"];
    assert_eq!((review.iteration, review.items[0].status), (1, Todo));
    run.says(&record(vec![judge("a", Fail)])).done().done();
    assert_eq!(run.at(), "work");
}

#[test]
fn an_error_at_a_gate_is_no_way_round_it() {
    let mut run = fresh();
    run.done().done().says(&crate::support::error("cannot"));
    assert_eq!(
        run.refuses(&choose(PersonChoice::Take("ok".into()))),
        "`take:ok` is no choice here; possible: continue, abort"
    );
    run.chooses(PersonChoice::Continue);
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: nothing was recorded"
    );
}

#[test]
fn a_review_has_a_limit_of_items_and_of_text() {
    let mut run = fresh();
    run.done();
    let many = (0..501).map(|at| item(&format!("i{at}"), Could, Pass)).collect();
    assert_eq!(run.refuses(&record(many)), "a review has at most 500 items");
    let long =
        |id: &str, bytes| ItemRecord { finding: Some("x".repeat(bytes)), ..item(id, Could, Pass) };
    assert!(run.refuses(&record(vec![long("a", 9000)])).contains("longer than 8192 bytes"));
    let much = (0..200).map(|at| long(&format!("i{at}"), 8000)).collect();
    assert!(run.refuses(&record(much)).contains("bytes together"));
}

#[test]
fn a_verdict_does_not_outlive_the_command_that_it_was_come_by() {
    let yaml = gate("reverify: fresh, checks: [tests]")
        .replace("command: make test", "command: '{{ test }}'")
        .replace("checks:\n", "parameters: { test: {} }\nchecks:\n")
        .replace("actions: [Review]", "actions: [Review], sets: [test]");
    // What passed was `true`; what is to pass is `make test`.
    // The checker no longer accepts such a workflow, but stored runs go on with theirs.
    let mut run = Run::through(stored_earlier(&yaml), &[("test", "true")]);
    run.done().says(&record(vec![item("a", Must, Pass)]));
    run.says(&check("tests", Pass, ran("true", 0))).says(&sets(&[("test", "make test")]));
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: no verdict yet of check `tests`"
    );
    // What was claimed while there was nothing to run does not count either.
    let mut run = Run::through(stored_earlier(&yaml), &[("test", "")]);
    run.done().says(&record(vec![item("a", Must, Pass)]));
    run.says(&check("tests", Pass, CheckProof::Claim)).says(&sets(&[("test", "make test")]));
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "gate `gate` is open: no verdict yet of check `tests`"
    );
    // The same command again takes nothing away.
    let mut run = Run::through(stored_earlier(&yaml), &[("test", "make test")]);
    run.done().says(&record(vec![item("a", Must, Pass)]));
    run.says(&check("tests", Pass, ran("make test", 0))).says(&sets(&[("test", "make test ")]));
    run.done();
    assert_eq!(run.at(), "ship");
}

#[test]
fn who_tries_a_repair_again_is_told_again_what_failed() {
    let mut run = fresh();
    reviewed(&mut run, vec![item("a", Must, Fail)]).done();
    assert_eq!(run.at(), "work");
    let found = |run: &Run| {
        let seen =
            build_view(&run.flow, &run.state, &StepAddressing::Run).expect("it can be shown");
        seen.findings.map(|findings| findings.items.len())
    };
    assert_eq!(found(&run), Some(1));
    run.says(&error("no disk")).chooses(PersonChoice::Continue);
    assert_eq!(found(&run), Some(1));
    run.done().done();
    assert_eq!(found(&run), None);
}

/// The gate of a run and its review.
fn reviewed_gate(run: &Run) -> (&Gate, &GateReview) {
    let gate = run.flow.find_step(&"gate".into()).and_then(|step| step.decide.as_gate());
    (gate.expect("it is a gate"), &run.state.reviews["gate"])
}

#[test]
fn a_green_check_is_outdated_once_the_work_is_another() {
    let mut run = Run::of(&gate("reverify: fresh, checks: [tests]"));
    reviewed(&mut run, vec![item("a", Must, Pass)]);
    let work = Some(WorkFingerprint::new("before"));
    let proof = CheckProof::Run { command: "make test".into(), exit_code: Some(0), work };
    run.says(&check("tests", Pass, proof));
    let (gate, review) = reviewed_gate(&run);
    let outdated = |now: Option<&str>| {
        let now = now.map(WorkFingerprint::new);
        outdated_checks(run.flow.workflow(), gate, review, now.as_ref())
    };
    assert!(outdated(Some("before")).is_empty());
    assert_eq!(outdated(Some("after")), ["tests"]);
    assert_eq!(outdated(None), ["tests"]);
    assert!(is_proven(run.flow.workflow(), gate, review));
}

#[test]
fn a_check_that_does_not_say_what_work_it_has_seen_is_outdated() {
    let mut run = Run::of(&gate("reverify: fresh, checks: [tests]"));
    reviewed(&mut run, vec![item("a", Must, Pass)]);
    run.says(&check("tests", Pass, ran("make test", 0)));
    let (gate, review) = reviewed_gate(&run);
    let now = WorkFingerprint::new("now");
    assert_eq!(outdated_checks(run.flow.workflow(), gate, review, Some(&now)), ["tests"]);
}

#[test]
fn a_check_whose_command_the_worker_decides_is_no_proof() {
    let yaml = gate("reverify: fresh, checks: [tests]")
        .replace("command: make test", "command: 'test -e nothing-{{ test }}'")
        .replace("checks:\n", "parameters: { test: {} }\nchecks:\n")
        .replace("actions: [Review]", "actions: [Review], sets: [test]");
    let mut run = Run::through(stored_earlier(&yaml), &[("test", "x; true")]);
    run.done().says(&record(vec![item("a", Must, Pass)]));
    run.says(&check("tests", Pass, ran("test -e nothing-'x; true'", 0)));
    let (gate, review) = reviewed_gate(&run);
    assert!(!is_proven(run.flow.workflow(), gate, review));
    // Events of earlier versions have the command without quotes, and still lead to the same state.
    run.says(&check("tests", Pass, ran("test -e nothing-x; true", 0)));
}

#[test]
fn a_value_is_a_word_of_the_command_and_only_the_starter_gives_a_whole_command() {
    let command_of = |command: &str, sets: &str, value: &str| {
        let yaml = gate("reverify: fresh, checks: [tests]")
            .replace("command: make test", &format!("command: {command:?}"))
            .replace("checks:\n", "parameters: { test: {} }\nchecks:\n")
            .replace("actions: [Review]", &format!("actions: [Review]{sets}"));
        let run = Run::through(stored_earlier(&yaml), &[("test", value)]);
        let workflow = run.flow.workflow();
        render_check_command(workflow, &workflow.checks["tests"], &TemplateScope::new(&run.state))
            .map_err(|error| error.message)
    };
    let by_starter = |command, value| command_of(command, "", value);
    assert_eq!(by_starter("{{ test }}", "make a && make b").unwrap(), "make a && make b");
    assert_eq!(by_starter("{{ test }}", " ").unwrap(), "");
    assert_eq!(by_starter("{% if test %}{{ test }}{% endif %}", "make a b").unwrap(), "make a b");
    assert_eq!(by_starter("make {{ test }}", "x; true").unwrap(), "make 'x; true'");
    assert_eq!(by_starter("make \"{{ test }}\"", "$(x)").unwrap(), "make \"\\$(x)\"");
    assert!(by_starter("echo `{{ test }}`", "x").unwrap_err().contains("after a backtick"));
    assert_eq!(command_of("{{ test }}", ", sets: [test]", "x; true").unwrap(), "'x; true'");
}
