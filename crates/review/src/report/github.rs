//! Renders a review as workflow commands, which GitHub Actions shows as annotations beside the lines.
//!
//! GitHub shows at most ten annotations of each level per step, and silently drops the rest. So the worst findings come
//! first, and a final notice says how many are missing.

use crate::extract::Severity;

use super::limits::{GITHUB_EACH_MAX, GITHUB_MESSAGE_CHARS_MAX, NAME_CHARS_MAX};
use super::{text, words};
use crate::finding::Fix;
use crate::record::{Insight, Reported, Review};

/// The level of an annotation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Error,
    Warning,
    Notice,
}

impl Kind {
    fn of(severity: Severity) -> Self {
        match severity {
            Severity::Critical | Severity::Major => Kind::Error,
            Severity::Minor => Kind::Warning,
            Severity::Suggestion => Kind::Notice,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::Warning => "warning",
            Kind::Notice => "notice",
        }
    }
}

/// Renders one annotation per line. A clean review has a single notice.
pub fn render(review: &Review) -> String {
    let mut sheet = Sheet::default();
    if let Some(text) = skills(review) {
        sheet.add(Kind::Warning, &[("title", "Skills were skipped".to_owned())], &text);
    }
    let warnings = words::warnings(review);
    if !warnings.is_empty() {
        sheet.add(Kind::Warning, &[("title", "Review".to_owned())], &warnings.join("\n"));
    }
    for severity in Severity::ALL {
        for finding in review.findings.iter().filter(|finding| finding.severity == severity) {
            sheet.add(Kind::of(severity), &place_of(finding), &message(finding));
        }
        for insight in review.insights.iter().filter(|insight| insight.severity == severity) {
            sheet.add(Kind::of(severity), &place_of_insight(insight), &insight.insight);
        }
    }
    sheet.finish(review)
}

/// The commands so far, with a count for each level.
#[derive(Default)]
struct Sheet {
    out: String,
    shown: [usize; 3],
    unshown: usize,
}

impl Sheet {
    /// Adds a command, unless GitHub would drop it. One notice is reserved for the summary.
    fn add(&mut self, kind: Kind, properties: &[(&str, String)], message: &str) {
        let room = GITHUB_EACH_MAX - usize::from(kind == Kind::Notice);
        if self.shown[kind as usize] >= room {
            self.unshown += 1;
            return;
        }
        self.shown[kind as usize] += 1;
        self.out.push_str(&command(kind, properties, message));
    }

    fn finish(mut self, review: &Review) -> String {
        let mut said = if review.is_clean() { text::clean(review) } else { text::summary(review) };
        if self.unshown > 0 {
            let more = words::count(self.unshown, "annotation");
            said.push_str(&format!(" GitHub has no room for {more} more of this step."));
        }
        let title = [("title", "Review".to_owned())];
        self.out.push_str(&command(Kind::Notice, &title, &said));
        self.out
    }
}

fn skills(review: &Review) -> Option<String> {
    let named = review.unresolved_skills.iter().map(|skill| {
        let source = words::one_line(&skill.source, NAME_CHARS_MAX);
        format!("{source}: {}", words::one_line(&skill.reason, NAME_CHARS_MAX))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join("\n"))
}

fn place_of(finding: &Reported) -> Vec<(&'static str, String)> {
    let badge = finding.badge().map(|badge| format!(" [{badge}]")).unwrap_or_default();
    vec![
        ("file", finding.file.to_string()),
        ("line", finding.lines.first.max(1).to_string()),
        ("endLine", finding.lines.last.max(1).to_string()),
        ("title", format!("{}: {}{badge}", finding.severity, short(&finding.title))),
    ]
}

fn place_of_insight(insight: &Insight) -> Vec<(&'static str, String)> {
    vec![
        ("file", insight.file.to_string()),
        ("line", insight.line.max(1).to_string()),
        ("title", format!("{}: {}", insight.severity, short(&insight.title))),
    ]
}

fn short(title: &str) -> String {
    words::one_line(title, NAME_CHARS_MAX)
}

fn message(finding: &Reported) -> String {
    let mut parts = vec![finding.description.trim().to_owned()];
    if !finding.failure_scenario.trim().is_empty() {
        parts.push(format!("What goes wrong: {}", finding.failure_scenario.trim()));
    }
    parts.extend(finding.also.iter().map(super::sarif::also));
    match &finding.fix {
        Some(Fix::Diff(diff)) => parts.push(format!("Fix:\n{diff}")),
        Some(Fix::Prompt(prompt)) => parts.push(format!("Fix: {prompt}")),
        None => {}
    }
    let believed = words::believed(&finding.validation);
    parts.push(format!("{} ({}); {believed}", finding.agents.join(", "), finding.rule()));
    parts.join("\n\n")
}

/// Formats a workflow command on one line.
fn command(kind: Kind, properties: &[(&str, String)], message: &str) -> String {
    let properties: Vec<String> = properties
        .iter()
        .map(|(name, value)| format!("{name}={}", escape_property(&words::visible(value))))
        .collect();
    let message = words::clip(&words::visible(message), GITHUB_MESSAGE_CHARS_MAX);
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
            command(Kind::Error, &properties, "100% a:b, c\r\n::error::d"),
            "::error file=a%2Cb%3Ac%25.rs,title=x%0A%3A%3Ay::100%25 a:b, c%0A::error::d\n"
        );
    }
}
