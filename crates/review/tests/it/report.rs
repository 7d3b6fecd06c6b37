//! Reports of reviews in which not every call was made.

use repertoire_review::change::ReviewChange;
use repertoire_review::record::ReviewRecord;
use repertoire_review::report::{ReportFormat, ReportTextLayout, render_review};
use serde_json::{Value, json};

fn call(agent: &str, outcome: &str) -> Value {
    json!({
        "phase": "quick", "agent": agent, "tier": "fast", "outcome": outcome, "answered": 0,
        "admitted": 0, "duration_ms": 0, "input_tokens": 0, "output_tokens": 0,
    })
}

#[test]
fn a_call_that_was_not_made_is_nowhere_counted_as_made() {
    let calls = [call("a", "completed"), call("b", "unasked"), call("c", "skipped")];
    let finding = json!({
        "id": "f1", "fingerprint": "p1", "title": "A bug", "file": "a.py",
        "lines": { "first": 1, "last": 1 }, "categories": ["bugs"], "severity": "Major",
        "description": "It fails.", "failure_scenario": "An empty list.", "confidence": 0.9,
        "agents": ["a"], "validation": { "verdict": "pattern" }, "members": [], "excerpt": [],
    });
    let review: ReviewRecord = serde_json::from_value(json!({
        "version": 1, "id": "x", "subject": "code", "depth": "quick",
        "scope": { "words": "uncommitted changes" }, "started_ms": 5, "duration_ms": 7, "files": [],
        "categories": [], "findings": [finding], "calls": calls, "planned": [{ "phase": "quick", "calls": 3 }],
    }))
    .unwrap();
    let change = ReviewChange { files: Vec::new(), skipped: Vec::new() };
    let render = |format| render_review(format, &review, &change, &ReportTextLayout::default());
    let markdown = render(ReportFormat::Markdown);
    assert!(markdown.contains("3 planned, 1 made, 1 failed."), "{markdown}");
    assert!(markdown.contains("| quick | 3 | 1 | 0 | 1 |"), "{markdown}");
    assert!(markdown.contains("| quick | b | fast | – | – | – | not asked | – |"), "{markdown}");
    let html = render(ReportFormat::Html);
    assert!(html.contains("3 planned, 1 made"), "{html}");
    assert!(html.contains("<td>quick</td><td>3</td><td>1</td><td>0</td><td>1</td>"), "{html}");
}
