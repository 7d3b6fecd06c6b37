//! Renders a review as workflow commands, which GitHub Actions shows as annotations beside the lines.
//!
//! GitHub shows at most ten annotations of each level per step, and silently drops the rest. So the worst findings come
//! first, and a final notice says how many are missing.

use crate::extract::ReviewSeverity;

use super::limits::{GITHUB_EACH_MAX, GITHUB_MESSAGE_CHARS_MAX, NAME_CHARS_MAX};
use super::{phrases, text};
use crate::finding::FindingFix;
use crate::record::{ReportedFinding, ReviewInsight, ReviewRecord};

/// The level of an annotation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnnotationLevel {
    Error,
    Warning,
    Notice,
}

impl AnnotationLevel {
    fn from_severity(severity: ReviewSeverity) -> Self {
        match severity {
            ReviewSeverity::Critical | ReviewSeverity::Major => AnnotationLevel::Error,
            ReviewSeverity::Minor => AnnotationLevel::Warning,
            ReviewSeverity::Suggestion => AnnotationLevel::Notice,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            AnnotationLevel::Error => "error",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Notice => "notice",
        }
    }
}

/// Renders one annotation per line. A clean review has a single notice.
pub fn render_commands(review: &ReviewRecord) -> String {
    let mut sheet = AnnotationList::default();
    if let Some(text) = unresolved_skills_text(review) {
        sheet.add_command(
            AnnotationLevel::Warning,
            &[("title", "Skills were skipped".to_owned())],
            &text,
        );
    }
    let warnings = phrases::all_warnings(review);
    if !warnings.is_empty() {
        sheet.add_command(
            AnnotationLevel::Warning,
            &[("title", "Review".to_owned())],
            &warnings.join("\n"),
        );
    }
    for severity in ReviewSeverity::ALL {
        for finding in review.findings.iter().filter(|finding| finding.severity == severity) {
            sheet.add_command(
                AnnotationLevel::from_severity(severity),
                &finding_properties(finding),
                &annotation_message(finding),
            );
        }
        for insight in review.insights.iter().filter(|insight| insight.severity == severity) {
            sheet.add_command(
                AnnotationLevel::from_severity(severity),
                &insight_properties(insight),
                &insight.insight,
            );
        }
    }
    sheet.finish(review)
}

/// The commands so far, with a count for each level.
#[derive(Default)]
struct AnnotationList {
    out: String,
    shown: [usize; 3],
    unshown: usize,
}

impl AnnotationList {
    /// Adds a command, unless GitHub would drop it. One notice is reserved for the summary.
    fn add_command(&mut self, kind: AnnotationLevel, properties: &[(&str, String)], message: &str) {
        let room = GITHUB_EACH_MAX - usize::from(kind == AnnotationLevel::Notice);
        if self.shown[kind as usize] >= room {
            self.unshown += 1;
            return;
        }
        self.shown[kind as usize] += 1;
        self.out.push_str(&format_command(kind, properties, message));
    }

    fn finish(mut self, review: &ReviewRecord) -> String {
        let mut said = if review.is_clean() {
            text::clean_summary(review)
        } else {
            text::summary_line(review)
        };
        if self.unshown > 0 {
            let more = phrases::format_count(self.unshown, "annotation");
            said.push_str(&format!(" GitHub has no room for {more} more of this step."));
        }
        let title = [("title", "Review".to_owned())];
        self.out.push_str(&format_command(AnnotationLevel::Notice, &title, &said));
        self.out
    }
}

fn unresolved_skills_text(review: &ReviewRecord) -> Option<String> {
    let named = review.unresolved_skills.iter().map(|skill| {
        let source = phrases::to_one_line(&skill.source, NAME_CHARS_MAX);
        format!("{source}: {}", phrases::to_one_line(&skill.reason, NAME_CHARS_MAX))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join("\n"))
}

fn finding_properties(finding: &ReportedFinding) -> Vec<(&'static str, String)> {
    let badge = finding.agents_badge().map(|badge| format!(" [{badge}]")).unwrap_or_default();
    vec![
        ("file", finding.file.to_string()),
        ("line", finding.lines.first.max(1).to_string()),
        ("endLine", finding.lines.last.max(1).to_string()),
        ("title", format!("{}: {}{badge}", finding.severity, short_title(&finding.title))),
    ]
}

fn insight_properties(insight: &ReviewInsight) -> Vec<(&'static str, String)> {
    vec![
        ("file", insight.file.to_string()),
        ("line", insight.line.max(1).to_string()),
        ("title", format!("{}: {}", insight.severity, short_title(&insight.title))),
    ]
}

fn short_title(title: &str) -> String {
    phrases::to_one_line(title, NAME_CHARS_MAX)
}

fn annotation_message(finding: &ReportedFinding) -> String {
    let mut parts = vec![finding.description.trim().to_owned()];
    if !finding.failure_scenario.trim().is_empty() {
        parts.push(format!("What goes wrong: {}", finding.failure_scenario.trim()));
    }
    parts.extend(finding.also.iter().map(super::sarif::describe_related));
    match &finding.fix {
        Some(FindingFix::Diff(diff)) => parts.push(format!("Fix:\n{diff}")),
        Some(FindingFix::Prompt(prompt)) => parts.push(format!("Fix: {prompt}")),
        None => {}
    }
    let believed = phrases::describe_validation(&finding.validation);
    parts.push(format!("{} ({}); {believed}", finding.agents.join(", "), finding.rule_id()));
    parts.join("\n\n")
}

/// Formats a workflow command on one line.
fn format_command(kind: AnnotationLevel, properties: &[(&str, String)], message: &str) -> String {
    let properties: Vec<String> = properties
        .iter()
        .map(|(name, value)| format!("{name}={}", escape_property(&phrases::visible(value))))
        .collect();
    let message = phrases::clip_text(&phrases::visible(message), GITHUB_MESSAGE_CHARS_MAX);
    format!("::{} {}::{}\n", kind.as_str(), properties.join(","), escape_data(&message))
}

fn escape_data(text: &str) -> String {
    // The runner also recognises `##[command]`, an older syntax, anywhere in a line.
    let text = text.replace("##[", "#\\u{23}[");
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_github_is_escaped() {
        let properties = [("file", "a,b:c%.rs".to_owned()), ("title", "x\n::y".to_owned())];
        assert_eq!(
            format_command(AnnotationLevel::Error, &properties, "100% a:b, c\r\n::error::d"),
            "::error file=a%2Cb%3Ac%25.rs,title=x%0A%3A%3Ay::100%25 a:b, c%0A::error::d\n"
        );
    }
}
