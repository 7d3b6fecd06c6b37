//! Numbers of tests, parsed from the output of test runners.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use repertoire_text::invisible::without_terminal_control as clean;

/// Numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// Tests that ran.
    pub run: u64,
    /// Tests that ran and failed.
    pub failed: u64,
    /// Tests that were skipped.
    pub skipped: u64,
}

/// Adds up the totals of all test runners in an output; `None` if there are none.
pub fn count_tests(output: &str) -> Option<TestCounts> {
    let text = clean(output);
    let found: Vec<TestCounts> = text.lines().filter_map(parse_summary_line).collect();
    let none_ran = text.lines().any(|line| NONE.is_match(line));
    match (found.as_slice(), none_ran) {
        ([], false) => count_go_tests(&text),
        (found, _) => Some(found.iter().fold(TestCounts::default(), |all, one| TestCounts {
            run: all.run.saturating_add(one.run),
            failed: all.failed.saturating_add(one.failed),
            skipped: all.skipped.saturating_add(one.skipped),
        })),
    }
}

static NONE: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"^(?:=+ )?no tests ran in |^No tests? (?:files )?found, exiting")
});

/// Parses the summary line of `cargo test`, pytest, Jest or Vitest.
fn parse_summary_line(line: &str) -> Option<TestCounts> {
    static CARGO: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^test result: (?:ok|FAILED)\. (.*)$"));
    static PYTEST: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s(?: \(.*\))?(?: =+)?$")
    });
    static JEST: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"^Tests: +(.*\d+ total)$"));
    static VITEST: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^ +Tests  (\d.*) \(\d+\)$"));
    let known = [&*CARGO, &*PYTEST, &*JEST, &*VITEST];
    let words = known.iter().find_map(|known| known.captures(line))?;
    Some(parse_counts(words.get(1)?.as_str()))
}

/// Parses `3 passed; 1 failed`, with any separator.
fn parse_counts(text: &str) -> TestCounts {
    static COUNT: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"(\d+) ([a-z]+)"));
    let mut counts = TestCounts::default();
    for count in COUNT.captures_iter(text) {
        let number: u64 = count[1].parse().unwrap_or(u64::MAX);
        match &count[2] {
            "passed" | "xfailed" | "xpassed" => counts.run = counts.run.saturating_add(number),
            "failed" | "error" | "errors" => {
                counts.run = counts.run.saturating_add(number);
                counts.failed = counts.failed.saturating_add(number);
            }
            "ignored" | "skipped" | "todo" | "deselected" => {
                counts.skipped = counts.skipped.saturating_add(number);
            }
            _ => {}
        }
    }
    counts
}

/// Counts Go's tests. Go prints no totals; only with `-v` does each test have its own line.
fn count_go_tests(text: &str) -> Option<TestCounts> {
    if !text.lines().any(|line| line.starts_with("=== RUN ")) {
        return None;
    }
    let count =
        |mark: &str| text.lines().filter(|line| line.trim_start().starts_with(mark)).count() as u64;
    let (failed, passed) = (count("--- FAIL: "), count("--- PASS: "));
    Some(TestCounts { run: failed + passed, failed, skipped: count("--- SKIP: ") })
}

fn compile_pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are fixed, and used by tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expected: Option<(u64, u64, u64)>) {
        let told = count_tests(output).map(|counts| (counts.run, counts.failed, counts.skipped));
        assert_eq!(told, expected, "{output}");
    }

    #[test]
    fn each_runner_counts_in_its_own_words() {
        let cargo = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
                     test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        check(cargo, Some((8, 4, 1)));
        check(
            "====== 8 failed, 2 passed, 1 skipped, 1 xfailed, 1 error in 0.08s ======",
            Some((12, 9, 1)),
        );
        check("2 passed in 0.01s", Some((2, 0, 0)));
        check("============ no tests ran in 0.00s ============", Some((0, 0, 0)));
        check("Tests:       5 failed, 1 skipped, 2 passed, 8 total", Some((7, 5, 1)));
        check(
            "\u{1b}[2m      Tests \u{1b}[22m 5 failed | 2 passed | 1 skipped (8)",
            Some((7, 5, 1)),
        );
        check("No tests found, exiting with code 0", Some((0, 0, 0)));
        check(
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)\n",
            Some((1, 0, 1)),
        );
        check("ok  \texample.com/a\t0.1s\n", None);
        check("all 12 tests are fine in 3s", None);
        check("", None);
    }
}
