//! The validation phase: which findings need a validator, how they are batched, and how a verdict changes them.

use std::collections::BTreeMap;

use crate::extract::ReviewSeverity;
use serde_json::{Value, json};

use super::admit::read_text_field;
use super::finding::ReviewFinding;
use super::lineup::{ModelTier, ReviewLineup};
use super::record::{FindingValidation, ReviewDepth};
use crate::limits::{REVIEW_BATCH_FINDINGS_MAX, REVIEW_TEXT_CHARS_MAX};

/// Findings of one file, for one model tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationBatch {
    /// The path of the file, or `insights`.
    pub about: String,
    pub tier: ModelTier,
    /// The ids of the findings or insights.
    pub ids: Vec<String>,
}

impl ValidationBatch {
    /// The name in the record.
    pub fn name(&self) -> String {
        format!("validator ({}, {})", self.about, self.tier.as_str())
    }
}

/// Returns true if findings of this severity need a validator.
pub fn is_due(severity: ReviewSeverity, depth: ReviewDepth, lineup: &ReviewLineup) -> bool {
    match (depth, lineup.validation.quick_from) {
        (ReviewDepth::Quick, Some(from)) => severity >= from,
        _ => true,
    }
}

/// Groups findings by file and by the model tier of their category.
pub fn batch_findings<'a>(
    findings: impl IntoIterator<Item = &'a ReviewFinding>,
    lineup: &ReviewLineup,
) -> Vec<ValidationBatch> {
    let mut groups: BTreeMap<(String, ModelTier), Vec<String>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.file.to_string(), validator_tier(finding, lineup));
        groups.entry(key).or_default().push(finding.id.clone());
    }
    groups.into_iter().flat_map(|((about, tier), ids)| split_group(&about, tier, &ids)).collect()
}

fn split_group(about: &str, tier: ModelTier, ids: &[String]) -> Vec<ValidationBatch> {
    let chunks = ids.chunks(REVIEW_BATCH_FINDINGS_MAX);
    chunks.map(|ids| ValidationBatch { about: about.to_owned(), tier, ids: ids.to_vec() }).collect()
}

fn validator_tier(finding: &ReviewFinding, lineup: &ReviewLineup) -> ModelTier {
    lineup.agent_of_category(&finding.category).map_or(ModelTier::Strong, |agent| agent.validator)
}

/// The JSON Schema of an answer. Ids are plain strings, so that one unknown id does not invalidate the other verdicts.
pub fn verdicts_schema() -> Value {
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
pub enum ValidatorVerdict {
    Valid(String),
    Invalid(String),
    /// The finding is right, but its severity is too high.
    Downgrade(ReviewSeverity, String),
}

/// Reads the verdicts of an answer, by id. Malformed verdicts and unknown ids are ignored. If there are several
/// verdicts on a finding, `INVALID` wins, or else the last one. Returns `None` if the answer has no list of verdicts.
pub fn read_verdicts(answer: &Value, ids: &[String]) -> Option<BTreeMap<String, ValidatorVerdict>> {
    let said = answer.get("verdicts")?.as_array()?;
    let mut out: BTreeMap<String, ValidatorVerdict> = BTreeMap::new();
    for raw in said {
        let id = read_text_field(raw, "id", 50);
        let Some(verdict) = parse_verdict(raw).filter(|_| ids.contains(&id)) else { continue };
        let is_dropped = matches!(out.get(&id), Some(ValidatorVerdict::Invalid(_)));
        if !is_dropped {
            out.insert(id, verdict);
        }
    }
    Some(out)
}

fn parse_verdict(raw: &Value) -> Option<ValidatorVerdict> {
    let reason = read_text_field(raw, "reason", REVIEW_TEXT_CHARS_MAX);
    match raw.get("verdict")?.as_str()?.to_ascii_uppercase().as_str() {
        "VALID" => Some(ValidatorVerdict::Valid(reason)),
        "INVALID" => Some(ValidatorVerdict::Invalid(reason)),
        "DOWNGRADE" => {
            let severity = raw.get("severity").and_then(Value::as_str)?;
            Some(ValidatorVerdict::Downgrade(ReviewSeverity::from_word(severity)?, reason))
        }
        _ => None,
    }
}

/// Applies a verdict. Returns the resulting severity and validation, or the reason why the finding is rejected.
pub fn apply_verdict(
    severity: ReviewSeverity,
    verdict: Option<&ValidatorVerdict>,
) -> Result<(ReviewSeverity, FindingValidation), String> {
    match verdict {
        Some(ValidatorVerdict::Valid(reason)) => {
            Ok((severity, FindingValidation::Valid { reason: reason.clone() }))
        }
        Some(ValidatorVerdict::Invalid(reason)) => Err(reason.clone()),
        // A validator cannot raise the severity.
        Some(ValidatorVerdict::Downgrade(to, reason)) if *to < severity => {
            Ok((*to, FindingValidation::Downgraded { from: severity, reason: reason.clone() }))
        }
        Some(ValidatorVerdict::Downgrade(_, reason)) => {
            Ok((severity, FindingValidation::Valid { reason: reason.clone() }))
        }
        None => {
            let reason = "no validator has said anything about it".to_owned();
            Ok((severity, FindingValidation::Unverified { reason }))
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
        let verdicts = read_verdicts(&answer, &ids).unwrap();
        assert_eq!(verdicts.len(), 3);
        let settled = |id: &str| apply_verdict(ReviewSeverity::Major, verdicts.get(id));
        assert_eq!(
            settled("F1"),
            Ok((ReviewSeverity::Major, FindingValidation::Valid { reason: "yes".into() }))
        );
        let less =
            FindingValidation::Downgraded { from: ReviewSeverity::Major, reason: "rare".into() };
        assert_eq!(settled("F2"), Ok((ReviewSeverity::Minor, less)));
        assert_eq!(settled("F3"), Err("the caller checks it".to_owned()));
        assert!(matches!(
            settled("F4"),
            Ok((ReviewSeverity::Major, FindingValidation::Unverified { .. }))
        ));
    }

    #[test]
    fn a_downgrade_to_something_worse_is_none() {
        let up = ValidatorVerdict::Downgrade(ReviewSeverity::Critical, "worse".into());
        let settled = apply_verdict(ReviewSeverity::Minor, Some(&up)).unwrap();
        assert_eq!(
            settled,
            (ReviewSeverity::Minor, FindingValidation::Valid { reason: "worse".into() })
        );
    }

    #[test]
    fn a_quick_review_asks_about_the_bad_ones_only() {
        let mut lineup = ReviewLineup::default();
        lineup.validation.quick_from = Some(ReviewSeverity::Major);
        assert!(is_due(ReviewSeverity::Major, ReviewDepth::Quick, &lineup));
        assert!(!is_due(ReviewSeverity::Minor, ReviewDepth::Quick, &lineup));
        assert!(is_due(ReviewSeverity::Minor, ReviewDepth::Deep, &lineup));
    }
}
