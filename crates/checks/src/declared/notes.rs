//! Reports on failed checks, for the agent or person that has to fix them.

use super::{CheckRunResult, CheckRunVerdict, CheckStatus};
use crate::limits::{
    CHECK_NOTES_BYTES_MAX, CHECK_NOTES_COMMAND_CHARS_MAX, CHECK_NOTES_EACH_BYTES_MIN,
};

/// Describes the failed checks in Markdown: command, exit, lines that look like errors, and the end
/// of the output. Empty if no check failed or was skipped.
pub fn failure_notes(verdict: &CheckRunVerdict) -> String {
    let mut failed: Vec<&CheckRunResult> =
        verdict.results.iter().filter(|result| has_failed(result)).collect();
    // Critical checks first; otherwise in the order of their declaration.
    failed.sort_by_key(|result| !result.critical);
    let skipped = verdict.results.iter().filter_map(|result| match &result.status {
        CheckStatus::Skipped(why) => Some(format!("- `{}` was not run: {why}\n", result.name)),
        _ => None,
    });
    let skipped: String = skipped.collect();
    if failed.is_empty() && skipped.is_empty() {
        return String::new();
    }
    let mut text = format!("{} of {} checks failed.\n", failed.len(), verdict.results.len());
    let share = CHECK_NOTES_BYTES_MAX / failed.len().max(1);
    let share = share.max(CHECK_NOTES_EACH_BYTES_MIN);
    for (at, result) in failed.iter().enumerate() {
        if text.len() + CHECK_NOTES_EACH_BYTES_MIN > CHECK_NOTES_BYTES_MAX {
            text.push_str(&format!(
                "\n{} more failed; they are left out here.\n",
                failed.len() - at
            ));
            break;
        }
        text.push_str(&failure_section(result, share));
    }
    if !skipped.is_empty() {
        text.push_str(&format!("\n{skipped}"));
    }
    text
}

/// Describes a failed `plan.setup`: a line with the exit code and the last line of output, then the
/// output.
pub fn describe_setup_failure(verdict: &CheckRunVerdict) -> String {
    let Some(result) = verdict.results.iter().find(|result| has_failed(result)) else {
        return "`plan.setup` was not run to its end".to_owned();
    };
    let output = result.output.trim();
    let last = output.lines().last().map(str::trim);
    let last = last.map_or_else(String::new, |line| {
        format!(": {}", keep_start(line, CHECK_NOTES_COMMAND_CHARS_MAX))
    });
    let head = format!("`plan.setup` failed ({}){last}", how_it_ended(result));
    if output.lines().count() < 2 {
        return head;
    }
    format!("{head}\n\n{}", keep_end(output, CHECK_NOTES_BYTES_MAX))
}

fn how_it_ended(result: &CheckRunResult) -> String {
    match (&result.status, result.exit_code) {
        (CheckStatus::TimedOut, _) => "stopped, because it took too long".to_owned(),
        _ if result.exceeded.is_some() => result.exceeded.clone().unwrap_or_default(),
        (_, Some(code)) => format!("exit code {code}"),
        (_, None) => "no exit code".to_owned(),
    }
}

fn has_failed(result: &CheckRunResult) -> bool {
    matches!(result.status, CheckStatus::Failed | CheckStatus::TimedOut)
}

fn failure_section(result: &CheckRunResult, share: usize) -> String {
    let how = how_it_ended(result);
    let attempts = match result.attempts {
        0 | 1 => String::new(),
        many => format!(", {many} attempts"),
    };
    let need = if result.critical { "" } else { ", need not pass" };
    let command = keep_start(&result.command, CHECK_NOTES_COMMAND_CHARS_MAX);
    let mut text = format!(
        "\n### `{}`: {how}{attempts}{need}\n\n{}",
        result.name,
        fence_block("sh", &command)
    );
    // The end usually has a summary, while the errors may come long before it.
    let tail = keep_end(&result.output, share / 2);
    let mut room = share / 4;
    let mut lines = Vec::new();
    for line in result.telling.iter().filter(|line| !tail.contains(line.as_str())) {
        if line.len() > room {
            break;
        }
        room -= line.len();
        lines.push(line.as_str());
    }
    if !lines.is_empty() {
        text.push_str(&format!("\nFrom its output:\n\n{}", fence_block("text", &lines.join("\n"))));
    }
    if tail.is_empty() {
        text.push_str("\nIt said nothing.\n");
    } else {
        text.push_str(&format!("\nThe end of its output:\n\n{}", fence_block("text", &tail)));
    }
    text
}

/// A fenced code block whose fence is longer than any in the text, so that the text cannot end it.
pub fn fence_block(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

fn keep_start(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{} […]", &text[..at]),
        None => text.to_owned(),
    }
}

/// The last lines that fit into `bytes_max`.
fn keep_end(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let at = (text.len() - bytes_max..=text.len()).find(|at| text.is_char_boundary(*at));
    let tail = &text[at.unwrap_or(text.len())..];
    let whole = tail.split_once('\n').map_or(tail, |(_, rest)| rest);
    format!("[…]\n{whole}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::CheckDefinition;
    use crate::declared::run::skipped_result;

    fn failed(name: &str, output: &str, telling: &[&str]) -> CheckRunResult {
        CheckRunResult {
            status: CheckStatus::Failed,
            exit_code: Some(101),
            attempts: 2,
            output: output.to_owned(),
            telling: telling.iter().map(|line| (*line).to_owned()).collect(),
            ..skipped_result(&CheckDefinition::new(name, "cargo test"), "")
        }
    }

    #[test]
    fn a_failed_setup_is_one_line_and_its_output_below() {
        let told = |output: &str| {
            describe_setup_failure(&CheckRunVerdict {
                results: vec![failed("setup", output, &[])],
                green: false,
            })
        };
        assert_eq!(told(""), "`plan.setup` failed (exit code 101)");
        assert_eq!(told("no npm\n"), "`plan.setup` failed (exit code 101): no npm");
        assert_eq!(told("one\n two\n"), "`plan.setup` failed (exit code 101): two\n\none\n two");
    }

    #[test]
    fn failures_are_told_with_command_exit_and_end() {
        let passed = CheckRunResult { status: CheckStatus::Passed, ..failed("fmt", "fine", &[]) };
        let not_run = skipped_result(&CheckDefinition::new("docs", "x"), "`test` did not pass");
        let results = vec![passed, failed("test", "one\nboom", &["error[E1]: no"]), not_run];
        let text = failure_notes(&CheckRunVerdict { results, green: false });
        assert_eq!(
            text,
            "1 of 3 checks failed.\n\n### `test`: exit code 101, 2 attempts\n\n```sh\ncargo test\n```\n\n\
             From its output:\n\n```text\nerror[E1]: no\n```\n\nThe end of its output:\n\n```text\none\nboom\n```\n\n\
             - `docs` was not run: `test` did not pass\n"
        );
    }

    #[test]
    fn nothing_failed_means_nothing_to_say() {
        let passed = CheckRunResult { status: CheckStatus::Passed, ..failed("fmt", "fine", &[]) };
        assert_eq!(failure_notes(&CheckRunVerdict { results: vec![passed], green: true }), "");
    }

    #[test]
    fn notes_are_bounded_and_cannot_be_ended_by_output() {
        let long = format!("{}\n````\nlast line", "ünï line\n".repeat(10_000));
        let results: Vec<_> =
            (0..50).map(|n| failed(&format!("c{n}"), &long, &["FAILED early"])).collect();
        let text = failure_notes(&CheckRunVerdict { results, green: false });
        assert!(text.len() <= CHECK_NOTES_BYTES_MAX + 4096, "{}", text.len());
        assert!(text.contains("`````text\n[…]\n") && text.contains("last line\n`````\n"));
        assert!(
            text.contains("more failed; they are left out here") && text.contains("FAILED early")
        );
    }
}
