//! What a run on GitHub came to, in words: for the comment, the step summary and the terminal.

use super::{Conclusion, Outcome, TaskOutcome};

/// The result in a line, for people.
pub fn headline(outcome: &Outcome) -> String {
    let what = match outcome.conclusion {
        Conclusion::Done => "Done",
        Conclusion::Answered => "Answered",
        Conclusion::Waiting => "Waiting for a person",
        Conclusion::Failed => "Failed",
        Conclusion::Skipped => "Nothing to do",
        Conclusion::Refused => "Refused",
    };
    format!("{what}: {}", outcome.reason.trim_end_matches('.'))
}

/// What we say in the tracking comment in the end; what the agent said comes besides.
pub fn comment(outcome: &Outcome, run_url: Option<&str>) -> String {
    let mut parts = Vec::new();
    if outcome.conclusion != Conclusion::Answered {
        parts.push(format!("**{}.**", headline(outcome)));
    }
    parts.extend(facts(outcome));
    parts.extend(outcome.notes.iter().map(|note| format!("Note: {note}")));
    parts.extend(run_url.map(|url| format!("[What was done]({url})")));
    parts.join("\n\n")
}

/// What the step summary says.
pub fn summary(outcome: &Outcome) -> String {
    let mode = outcome.mode.as_deref().unwrap_or("none");
    let mut out = format!("## {}\n\nMode: {mode}\n", headline(outcome));
    if let Some(facts) = facts(outcome) {
        out.push_str(&format!("\n{facts}\n"));
    }
    if !outcome.tasks.is_empty() {
        out.push_str("\n| task | result | why | branch |\n|---|---|---|---|\n");
        outcome.tasks.iter().for_each(|task| out.push_str(&row(task)));
    }
    for note in &outcome.notes {
        out.push_str(&format!("\n- {note}"));
    }
    out
}

fn row(task: &TaskOutcome) -> String {
    let cell = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.replace('\\', "\\\\").replace('|', "\\|")
    };
    let (title, why) = (cell(&task.title), cell(&task.reason));
    let branch = task.branch.as_deref().map(|name| format!("`{name}`")).unwrap_or_default();
    format!("| {title} | {} | {why} | {branch} |\n", task.conclusion.as_str())
}

fn facts(outcome: &Outcome) -> Option<String> {
    let mut lines = Vec::new();
    if let Some(branch) = &outcome.branch {
        lines.push(match outcome.pushed {
            true => format!("Branch: `{branch}`"),
            false => format!("Branch: `{branch}` (not pushed: that is not configured)"),
        });
    }
    lines.extend(outcome.pull_request.map(|number| format!("Pull request: #{number}")));
    lines.extend(outcome.checks.as_ref().map(|checks| format!("Checks: {checks}")));
    lines.extend(outcome.merge.as_ref().map(|merge| format!("Merge: {merge}")));
    (!lines.is_empty()).then(|| lines.join("  \n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(conclusion: Conclusion) -> Outcome {
        Outcome {
            branch: Some("rep/issue-7".to_owned()),
            ..Outcome::new(conclusion, "it went so.")
        }
    }

    #[test]
    fn a_result_says_what_became_of_it_and_an_answer_speaks_for_itself() {
        let answered = Outcome { branch: None, ..outcome(Conclusion::Answered) };
        assert_eq!(comment(&answered, None), "");
        let said = comment(&outcome(Conclusion::Failed), Some("https://example.test/1"));
        assert!(said.starts_with("**Failed: it went so.**\n\nBranch: `rep/issue-7`"), "{said}");
        assert!(
            said.contains("not pushed") && said.ends_with("(https://example.test/1)"),
            "{said}"
        );
    }

    #[test]
    fn a_title_stays_in_its_cell() {
        let task = TaskOutcome {
            id: "issue-1".to_owned(),
            title: "a | b\n| c |".to_owned(),
            conclusion: Conclusion::Failed,
            reason: "x".to_owned(),
            branch: None,
            pull_request: None,
        };
        assert_eq!(row(&task), "| a \\| b \\| c \\| | failed | x |  |\n");
    }
}
