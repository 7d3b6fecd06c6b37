//! The validation phase: which findings need a validator, how they are batched, and how a verdict changes them.

use std::collections::BTreeMap;

use crate::extract::Severity;
use serde_json::{Value, json};

use super::admit::words;
use super::finding::Finding;
use super::lineup::{Lineup, ModelTier};
use super::record::{Depth, Validation};
use crate::limits::{REVIEW_BATCH_FINDINGS_MAX, REVIEW_TEXT_CHARS_MAX};

/// Findings of one file, for one model tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The path of the file, or `insights`.
    pub about: String,
    pub tier: ModelTier,
    /// The ids of the findings or insights.
    pub ids: Vec<String>,
}

impl Batch {
    /// The name in the record.
    pub fn name(&self) -> String {
        format!("validator ({}, {})", self.about, self.tier.as_str())
    }
}

/// Returns true if findings of this severity need a validator.
pub fn is_due(severity: Severity, depth: Depth, lineup: &Lineup) -> bool {
    match (depth, lineup.validation.quick_from) {
        (Depth::Quick, Some(from)) => severity >= from,
        _ => true,
    }
}

/// Groups findings by file and by the model tier of their category.
pub fn batches<'a>(findings: impl IntoIterator<Item = &'a Finding>, lineup: &Lineup) -> Vec<Batch> {
    let mut groups: BTreeMap<(String, ModelTier), Vec<String>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.file.to_string(), validator_tier(finding, lineup));
        groups.entry(key).or_default().push(finding.id.clone());
    }
    groups.into_iter().flat_map(|((about, tier), ids)| split_group(&about, tier, &ids)).collect()
}

fn split_group(about: &str, tier: ModelTier, ids: &[String]) -> Vec<Batch> {
    let chunks = ids.chunks(REVIEW_BATCH_FINDINGS_MAX);
    chunks.map(|ids| Batch { about: about.to_owned(), tier, ids: ids.to_vec() }).collect()
}

fn validator_tier(finding: &Finding, lineup: &Lineup) -> ModelTier {
    lineup.of_category(&finding.category).map_or(ModelTier::Strong, |agent| agent.validator)
}

/// The JSON Schema of an answer. Ids are plain strings, so that one unknown id does not invalidate the other verdicts.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "verdicts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "string" },
                        "verdict": { "type": "string", "enum": ["VALID", "INVALID", "DOWNGRADE"] },
                        "severity": {
                            "type": ["string", "null"],
                            "enum": ["Major", "Minor", "Suggestion", null],
                            "description": "The severity that is right, for DOWNGRADE",
                        },
                        "reason": { "type": "string" },
                    },
                    "required": ["id", "verdict", "severity", "reason"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["verdicts"],
        "additionalProperties": false,
    })
}

/// A validator's verdict on one finding, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid(String),
    Invalid(String),
    /// The finding is right, but its severity is too high.
    Downgrade(Severity, String),
}

/// Reads the verdicts of an answer, by id. Malformed verdicts and unknown ids are ignored. If there are several
/// verdicts on a finding, `INVALID` wins, or else the last one. Returns `None` if the answer has no list of verdicts.
pub fn read(answer: &Value, ids: &[String]) -> Option<BTreeMap<String, Verdict>> {
    let said = answer.get("verdicts")?.as_array()?;
    let mut out: BTreeMap<String, Verdict> = BTreeMap::new();
    for raw in said {
        let id = words(raw, "id", 50);
        let Some(verdict) = one(raw).filter(|_| ids.contains(&id)) else { continue };
        let is_dropped = matches!(out.get(&id), Some(Verdict::Invalid(_)));
        if !is_dropped {
            out.insert(id, verdict);
        }
    }
    Some(out)
}

fn one(raw: &Value) -> Option<Verdict> {
    let reason = words(raw, "reason", REVIEW_TEXT_CHARS_MAX);
    match raw.get("verdict")?.as_str()?.to_ascii_uppercase().as_str() {
        "VALID" => Some(Verdict::Valid(reason)),
        "INVALID" => Some(Verdict::Invalid(reason)),
        "DOWNGRADE" => {
            let severity = raw.get("severity").and_then(Value::as_str)?;
            Some(Verdict::Downgrade(Severity::from_word(severity)?, reason))
        }
        _ => None,
    }
}

/// Applies a verdict. Returns the resulting severity and validation, or the reason why the finding is rejected.
pub fn settle(
    severity: Severity,
    verdict: Option<&Verdict>,
) -> Result<(Severity, Validation), String> {
    match verdict {
        Some(Verdict::Valid(reason)) => {
            Ok((severity, Validation::Valid { reason: reason.clone() }))
        }
        Some(Verdict::Invalid(reason)) => Err(reason.clone()),
        // A validator cannot raise the severity.
        Some(Verdict::Downgrade(to, reason)) if *to < severity => {
            Ok((*to, Validation::Downgraded { from: severity, reason: reason.clone() }))
        }
        Some(Verdict::Downgrade(_, reason)) => {
            Ok((severity, Validation::Valid { reason: reason.clone() }))
        }
        None => {
            let reason = "no validator has said anything about it".to_owned();
            Ok((severity, Validation::Unverified { reason }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_validator_says_is_done_and_nothing_more() {
        let ids = vec!["F1".to_owned(), "F2".to_owned(), "F3".to_owned()];
        let answer = json!({ "verdicts": [
            { "id": "F1", "verdict": "valid", "reason": "yes" },
            { "id": "F2", "verdict": "DOWNGRADE", "severity": "Minor", "reason": "rare" },
            { "id": "F9", "verdict": "INVALID", "reason": "not asked" },
            { "id": "F3", "verdict": "INVALID", "reason": "the caller checks it" },
            { "id": "F3", "verdict": "VALID", "reason": "well" },
            "nonsense",
        ]});
        let verdicts = read(&answer, &ids).unwrap();
        assert_eq!(verdicts.len(), 3);
        let settled = |id: &str| settle(Severity::Major, verdicts.get(id));
        assert_eq!(
            settled("F1"),
            Ok((Severity::Major, Validation::Valid { reason: "yes".into() }))
        );
        let less = Validation::Downgraded { from: Severity::Major, reason: "rare".into() };
        assert_eq!(settled("F2"), Ok((Severity::Minor, less)));
        assert_eq!(settled("F3"), Err("the caller checks it".to_owned()));
        assert!(matches!(settled("F4"), Ok((Severity::Major, Validation::Unverified { .. }))));
    }

    #[test]
    fn a_downgrade_to_something_worse_is_none() {
        let up = Verdict::Downgrade(Severity::Critical, "worse".into());
        let settled = settle(Severity::Minor, Some(&up)).unwrap();
        assert_eq!(settled, (Severity::Minor, Validation::Valid { reason: "worse".into() }));
    }

    #[test]
    fn a_quick_review_asks_about_the_bad_ones_only() {
        let mut lineup = Lineup::default();
        lineup.validation.quick_from = Some(Severity::Major);
        assert!(is_due(Severity::Major, Depth::Quick, &lineup));
        assert!(!is_due(Severity::Minor, Depth::Quick, &lineup));
        assert!(is_due(Severity::Minor, Depth::Deep, &lineup));
    }
}
