//! The rules of a SARIF report: patterns and categories.

use crate::extract::ReviewSeverity;
use serde_json::{Value, json};

use super::{clean_text, severity_level, suppressed_and_known};
use crate::record::{LeftOutFinding, ReviewRecord};
use crate::report::phrases;

/// The rules of all results, in the order in which they first occur.
pub(super) struct SarifRules {
    rules: Vec<SarifRule>,
}

struct SarifRule {
    id: String,
    title: String,
    pattern: Option<String>,
    worst: ReviewSeverity,
    is_security: bool,
}

impl SarifRules {
    pub(super) fn from_review(review: &ReviewRecord) -> Self {
        let mut rules = SarifRules { rules: Vec::new() };
        for finding in &review.findings {
            let category = finding.categories.first().map_or("review", String::as_str);
            rules.add_rule(SarifRule {
                id: clean_text(&finding.rule_id()),
                title: clean_text(phrases::category_title(review, category)),
                pattern: finding.pattern.as_deref().map(clean_text),
                worst: finding.severity,
                is_security: category == "security",
            });
        }
        for left_out in suppressed_and_known(review) {
            let id = rule_id_of_left_out(review, left_out);
            rules.add_rule(SarifRule {
                title: clean_text(phrases::category_title(
                    review,
                    id.split('/').next().unwrap_or(&id),
                )),
                pattern: id.split_once('/').map(|(_, pattern)| pattern.to_owned()),
                worst: left_out.severity.unwrap_or(ReviewSeverity::Suggestion),
                is_security: id == "security" || id.starts_with("security/"),
                id,
            });
        }
        rules
    }

    fn add_rule(&mut self, rule: SarifRule) {
        match self.rules.iter_mut().find(|known| known.id == rule.id) {
            Some(known) => known.worst = known.worst.max(rule.worst),
            None => self.rules.push(rule),
        }
    }

    pub(super) fn index_of(&self, id: &str) -> usize {
        self.rules
            .iter()
            .position(|rule| rule.id == id)
            .expect("rules are made of the same results")
    }

    pub(super) fn to_value(&self) -> Value {
        self.rules.iter().map(SarifRule::to_value).collect()
    }
}

impl SarifRule {
    fn to_value(&self) -> Value {
        let short = match &self.pattern {
            Some(pattern) => {
                format!("{}: {}", self.title, phrases::label_from_key(pattern).to_lowercase())
            }
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
            "defaultConfiguration": { "level": severity_level(self.worst) },
            "properties": properties,
        })
    }
}

/// The `security-severity` score. Code scanning maps 9 and above to critical, 7 to high, 4 to medium.
pub(super) fn security_severity(severity: ReviewSeverity) -> &'static str {
    match severity {
        ReviewSeverity::Critical => "9.5",
        ReviewSeverity::Major => "8.0",
        ReviewSeverity::Minor => "5.0",
        ReviewSeverity::Suggestion => "2.0",
    }
}

/// The rule id of a left-out finding. Older records have none; there, the agent's name gives the category.
pub(super) fn rule_id_of_left_out(review: &ReviewRecord, left_out: &LeftOutFinding) -> String {
    if let Some(rule) = &left_out.rule {
        return clean_text(rule);
    }
    let category = left_out.agent.strip_suffix("-agent").unwrap_or(&left_out.agent);
    let known = review.categories.iter().find(|known| known.key == category);
    known.map_or_else(|| "review".to_owned(), |known| known.key.clone())
}
