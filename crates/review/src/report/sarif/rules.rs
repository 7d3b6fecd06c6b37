//! The rules of a SARIF report: patterns and categories.

use crate::extract::Severity;
use serde_json::{Value, json};

use super::{level, text, told_of};
use crate::record::{LeftOut, Review};
use crate::report::words;

/// The rules of all results, in the order in which they first occur.
pub(super) struct Rules {
    rules: Vec<Rule>,
}

struct Rule {
    id: String,
    title: String,
    pattern: Option<String>,
    worst: Severity,
    is_security: bool,
}

impl Rules {
    pub(super) fn of(review: &Review) -> Self {
        let mut rules = Rules { rules: Vec::new() };
        for finding in &review.findings {
            let category = finding.categories.first().map_or("review", String::as_str);
            rules.add(Rule {
                id: text(&finding.rule()),
                title: text(words::category(review, category)),
                pattern: finding.pattern.as_deref().map(text),
                worst: finding.severity,
                is_security: category == "security",
            });
        }
        for left_out in told_of(review) {
            let id = of_left_out(review, left_out);
            rules.add(Rule {
                title: text(words::category(review, id.split('/').next().unwrap_or(&id))),
                pattern: id.split_once('/').map(|(_, pattern)| pattern.to_owned()),
                worst: left_out.severity.unwrap_or(Severity::Suggestion),
                is_security: id == "security" || id.starts_with("security/"),
                id,
            });
        }
        rules
    }

    fn add(&mut self, rule: Rule) {
        match self.rules.iter_mut().find(|known| known.id == rule.id) {
            Some(known) => known.worst = known.worst.max(rule.worst),
            None => self.rules.push(rule),
        }
    }

    pub(super) fn index(&self, id: &str) -> usize {
        self.rules
            .iter()
            .position(|rule| rule.id == id)
            .expect("rules are made of the same results")
    }

    pub(super) fn to_value(&self) -> Value {
        self.rules.iter().map(Rule::to_value).collect()
    }
}

impl Rule {
    fn to_value(&self) -> Value {
        let short = match &self.pattern {
            Some(pattern) => format!("{}: {}", self.title, words::label(pattern).to_lowercase()),
            None => format!("{}: found by review", self.title),
        };
        let mut tags = vec!["review"];
        let mut properties = json!({});
        if self.is_security {
            tags.push("security");
            properties["security-severity"] = security_severity(self.worst).into();
        }
        properties["tags"] = json!(tags);
        json!({
            "id": self.id,
            "shortDescription": { "text": short },
            "defaultConfiguration": { "level": level(self.worst) },
            "properties": properties,
        })
    }
}

/// The `security-severity` score. Code scanning maps 9 and above to critical, 7 to high, 4 to medium.
pub(super) fn security_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::Major => "8.0",
        Severity::Minor => "5.0",
        Severity::Suggestion => "2.0",
    }
}

/// The rule id of a left-out finding. Older records have none; there, the agent's name gives the category.
pub(super) fn of_left_out(review: &Review, left_out: &LeftOut) -> String {
    if let Some(rule) = &left_out.rule {
        return text(rule);
    }
    let category = left_out.agent.strip_suffix("-agent").unwrap_or(&left_out.agent);
    let known = review.categories.iter().find(|known| known.key == category);
    known.map_or_else(|| "review".to_owned(), |known| known.key.clone())
}
