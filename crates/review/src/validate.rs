//! Second opinions: which findings need one, in which batches, and what follows from the answer.

use std::collections::BTreeMap;

use crate::extract::Severity;
use serde_json::{Value, json};

use super::admit::words;
use super::finding::Finding;
use super::lineup::{Lineup, ModelTier};
use super::record::{Depth, Validation};
use crate::limits::{REVIEW_BATCH_FINDINGS_MAX, REVIEW_TEXT_CHARS_MAX};

/// Findings of one file, for one kind of model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The file; for insights, which are about several, their own word.
    pub about: String,
    /// The kind of model.
    pub tier: ModelTier,
    /// What is asked about, by id.
    pub ids: Vec<String>,
}

impl Batch {
    /// What it is called in the record.
    pub fn name(&self) -> String {
        format!("validator ({}, {})", self.about, self.tier.as_str())
    }
}

/// Whether a finding of this severity is looked at a second time.
pub fn is_due(severity: Severity, depth: Depth, lineup: &Lineup) -> bool {
    match (depth, lineup.validation.quick_from) {
        (Depth::Quick, Some(from)) => severity >= from,
        _ => true,
    }
}

/// The batches: by file, then by the kind of model that the category asks for.
pub fn batches<'a>(findings: impl IntoIterator<Item = &'a Finding>, lineup: &Lineup) -> Vec<Batch> {
    let tier_of = |finding: &Finding| {
        let agent = lineup.agents.iter().find(|agent| agent.category == finding.category);
        agent.map_or(ModelTier::Strong, |agent| agent.validator)
    };
    let mut groups: BTreeMap<(String, ModelTier), Vec<String>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.file.to_string(), tier_of(finding));
        groups.entry(key).or_default().push(finding.id.clone());
    }
    let split = |((about, tier), ids): ((String, ModelTier), Vec<String>)| {
        let chunks: Vec<Vec<String>> =
            ids.chunks(REVIEW_BATCH_FINDINGS_MAX).map(<[String]>::to_vec).collect();
        chunks.into_iter().map(move |ids| Batch { about: about.clone(), tier, ids })
    };
    groups.into_iter().flat_map(split).collect()
}

/// The JSON Schema of an answer. Ids are any text: one that does not exist must not cost the others their verdict.
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

/// What a validator said of one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is right.
    Valid(String),
    /// It is wrong.
    Invalid(String),
    /// It is right, and less bad.
    Downgrade(Severity, String),
}

/// The verdicts of an answer, by id. Those that make no sense are not among them; of several, the last word that keeps the
/// finding does not count against one that drops it.
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

/// What becomes of a finding: its severity and why it is believed, or why it is not.
pub fn settle(
    severity: Severity,
    verdict: Option<&Verdict>,
) -> Result<(Severity, Validation), String> {
    match verdict {
        Some(Verdict::Valid(reason)) => {
            Ok((severity, Validation::Valid { reason: reason.clone() }))
        }
        Some(Verdict::Invalid(reason)) => Err(reason.clone()),
        // A validator makes nothing worse.
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
