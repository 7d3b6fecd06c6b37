//! Whatever agents answer: nothing panics, and what is reported has a place, a reason and lines of its own.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use repertoire_review::pipeline::ReviewPlan;
use repertoire_review::questions::{Answer, Question};
use repertoire_review::record::{ReviewDepth, ReviewRecord};
use serde_json::{Value, json};

use super::{FILE, Room, answer, failed, plan, repo, review};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A value that is right, wrong, or of no use at all.
fn or_garbage(right: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![
        12 => right,
        1 => Just(Value::Null),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => "\\PC{0,12}".prop_map(|text| json!(text)),
        1 => Just(json!([])),
    ]
    .boxed()
}

fn line() -> BoxedStrategy<Value> {
    or_garbage(
        prop_oneof![8 => 1u32..90, 1 => Just(0), 1 => Just(u32::MAX)].prop_map(|line| json!(line)),
    )
}

fn file() -> BoxedStrategy<Value> {
    or_garbage(
        prop_oneof![
            8 => Just(FILE), 1 => Just("./src/a.py"), 1 => Just("src/b.py"), 1 => Just("../a.py")
        ]
        .prop_map(|path| json!(path)),
    )
}

fn severity() -> BoxedStrategy<Value> {
    let words = ["Critical", "Major", "Minor", "Suggestion", "major", "Blocker"];
    or_garbage(proptest::sample::select(words.to_vec()).prop_map(|word| json!(word)))
}

fn words() -> BoxedStrategy<Value> {
    or_garbage(prop_oneof!["[a-c ]{0,30}", "\\PC{0,40}"].prop_map(|text| json!(text)))
}

fn finding() -> impl Strategy<Value = Value> {
    let fix = proptest::sample::select(["diff", "prompt", "none"].as_slice());
    (words(), file(), line(), line(), severity(), words(), words(), words(), fix).prop_map(
        |(title, file, first, last, severity, description, scenario, other, fix)| {
            json!({
                "title": title, "file": file, "line_start": first, "line_end": last, "severity": severity,
                "description": description, "failure_scenario": scenario, "confidence": first,
                "fix_type": fix, "fix": other, "pattern": other, "function": other, "details": other,
            })
        },
    )
}

fn ids(letter: &'static str) -> impl Strategy<Value = Value> {
    (0u32..30).prop_map(move |number| json!(format!("{letter}{number}")))
}

fn insight() -> impl Strategy<Value = Value> {
    let related = proptest::collection::vec(or_garbage(ids("F")), 0..4);
    (words(), words(), severity(), related).prop_map(|(title, insight, severity, related)| {
        json!({ "title": title, "insight": insight, "severity": severity, "related_findings": related })
    })
}

fn verdict() -> impl Strategy<Value = Value> {
    let words = ["VALID", "INVALID", "DOWNGRADE", "valid", "MAYBE"];
    let word = proptest::sample::select(words.to_vec()).prop_map(|word| json!(word));
    let id = prop_oneof![5 => ids("F"), 1 => ids("I")];
    (or_garbage(id), or_garbage(word), severity()).prop_map(|(id, verdict, severity)| {
        json!({ "id": id, "verdict": verdict, "severity": severity, "reason": "because" })
    })
}

/// What all those who are asked for the same answer, one after the other.
fn answers(
    key: &'static str,
    item: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Vec<Option<Value>>> {
    let tests = proptest::collection::vec(
        (words(), or_garbage((0u32..9).prop_map(|at| json!(at))))
            .prop_map(|(test, at)| json!({ "test": test, "file": test, "finding": at })),
        0..3,
    );
    let whole = (proptest::collection::vec(or_garbage(item), 0..9), tests)
        .prop_map(move |(items, tests)| json!({ key: items, "tests": tests }));
    proptest::collection::vec(proptest::option::weighted(0.9, or_garbage(whole)), 16)
}

fn at(all: &[Option<Value>], label: &str) -> Answer {
    let place = label.bytes().map(usize::from).sum::<usize>() % all.len();
    match &all[place] {
        Some(value) => answer(value.clone()),
        None => failed("nobody is there"),
    }
}

fn check(plan: &ReviewPlan, review: &ReviewRecord) -> Result<(), TestCaseError> {
    for (place, one) in review.findings.iter().enumerate() {
        let file = plan.gathered.change.find_file(&one.file);
        let file = file.ok_or_else(|| TestCaseError::fail(format!("{} is elsewhere", one.file)))?;
        prop_assert!(one.lines.first >= 1 && one.lines.last <= file.line_count(), "{one:?}");
        prop_assert!(file.touches_range(one.lines), "{one:?}");
        prop_assert!(one.failure_scenario.chars().filter(|c| c.is_alphanumeric()).count() >= 10);
        prop_assert!(!one.title.is_empty() && !one.members.is_empty() && !one.excerpt.is_empty());
        prop_assert!((0.0..=1.0).contains(&one.confidence));
        for other in &review.findings[place + 1..] {
            let is_apart = other.file != one.file || !other.lines.overlaps(one.lines);
            prop_assert!(is_apart, "{one:?} and {other:?}");
        }
    }
    for insight in &review.insights {
        let is_reported = |id: &String| review.findings.iter().any(|one| one.id == *id);
        prop_assert!(!insight.related.is_empty() && insight.related.iter().all(is_reported));
    }
    for test in &review.test_recommendations {
        let catches = test.catches.as_ref();
        prop_assert!(review.findings.iter().any(|one| Some(&one.id) == catches));
    }
    // Everything that an agent said is somewhere.
    let said: u32 = review.calls.iter().map(|call| call.answered - call.admitted).sum();
    prop_assert!(review.left_out.len() >= said as usize);
    let read: ReviewRecord = serde_json::from_value(serde_json::to_value(review).unwrap()).unwrap();
    prop_assert_eq!(&read.findings, &review.findings);
    Ok(())
}

#[test]
fn whatever_they_answer_what_is_reported_has_a_place_and_a_reason() {
    let (repo, runtime) = (repo(), runtime());
    let quick = runtime.block_on(plan(&repo, ReviewDepth::Quick));
    let deep = runtime.block_on(plan(&repo, ReviewDepth::Deep));
    let said = (
        answers("findings", finding()),
        answers("insights", insight()),
        answers("verdicts", verdict()),
        any::<bool>(),
    );
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let reported = Cell::new(0);
    let outcome = TestRunner::new(config).run(&said, |(found, insights, verdicts, is_deep)| {
        let plan = if is_deep { &deep } else { &quick };
        let room = Room::new(move |label, question: &Question| match question.schema.0 {
            "findings" => at(&found, label),
            "insights" => at(&insights, label),
            _ => at(&verdicts, label),
        });
        let review = runtime.block_on(review(plan, &room));
        reported.set(reported.get() + review.findings.len());
        check(plan, &review)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(reported.get() > 0, "something was reported at all");
}
