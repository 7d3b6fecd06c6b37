//! The synthesis phase: insights from findings of two categories together.

use crate::extract::ReviewSeverity;
use camino::Utf8PathBuf;
use serde_json::{Value, json};

use super::admit::read_text_field;
use super::finding::{Phase, ReviewFinding};
use super::instructions::ResolvedSkill;
use super::lineup::{CategoryPair, ReviewLineup};
use super::record::{LeftOutFinding, LeftOutReason};
use crate::limits::{REVIEW_ANSWER_FINDINGS_MAX, REVIEW_TEXT_CHARS_MAX, REVIEW_TITLE_CHARS_MAX};

/// An insight that an agent proposed, before validation.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedInsight {
    /// The id within the review: `I1`.
    pub id: String,
    pub title: String,
    /// The keys of the two categories.
    pub categories: [String; 2],
    /// The explanation of how the findings act together.
    pub insight: String,
    pub severity: ReviewSeverity,
    /// The file of the worst related finding.
    pub file: Utf8PathBuf,
    /// The first line of the worst related finding.
    pub line: u32,
    /// The ids of the findings that it is based on.
    pub related: Vec<String>,
}

/// The questions for a pair, including those that skills add.
pub fn questions(
    lineup: &ReviewLineup,
    pair: &CategoryPair,
    skills: &[ResolvedSkill],
) -> Vec<String> {
    let added = lineup.synthesis.skill_questions.iter();
    let added = added.filter(|added| {
        category_of_skill(lineup, skills, &added.skill)
            .is_some_and(|category| pair.categories.contains(category))
    });
    [pair.question.clone()].into_iter().chain(added.map(|added| added.question.clone())).collect()
}

/// The category of a skill's primary agent.
fn category_of_skill<'a>(
    lineup: &'a ReviewLineup,
    skills: &[ResolvedSkill],
    name: &str,
) -> Option<&'a String> {
    let skill = skills.iter().find(|resolved| resolved.skill.name == name)?;
    let agent = skill.skill.primary_agent.as_deref()?;
    lineup.find_agent(agent).map(|agent| &agent.category)
}

/// The JSON Schema of an answer. Finding ids are plain strings, so that one unknown id does not invalidate the answer.
pub fn insights_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "insights": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": { "type": "string" },
                        "insight": { "type": "string", "description": "What the findings mean together that none says alone" },
                        "severity": { "type": "string", "enum": ["Critical", "Major", "Minor", "Suggestion"] },
                        "related_findings": { "type": "array", "items": { "type": "string" } },
                    },
                    "required": ["title", "insight", "severity", "related_findings"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["insights"],
        "additionalProperties": false,
    })
}

/// Reads an answer. An insight must name existing findings, at least one of each category. `next` is the number for the
/// id of the first accepted insight. Returns `None` if the answer has no list of insights.
pub fn admit_insights(
    answer: &Value,
    pair: &CategoryPair,
    findings: &[&ReviewFinding],
    agent: &str,
    next: usize,
) -> Option<(Vec<ProposedInsight>, Vec<LeftOutFinding>)> {
    let said = answer.get("insights")?.as_array()?;
    let (mut thoughts, mut left_out) = (Vec::new(), Vec::new());
    for raw in said.iter().take(REVIEW_ANSWER_FINDINGS_MAX) {
        match parse_insight(raw, pair, findings) {
            Ok(thought) => {
                let id = format!("I{}", next + thoughts.len());
                thoughts.push(ProposedInsight { id, ..thought });
            }
            Err(reason) => left_out.push(LeftOutFinding {
                title: read_text_field(raw, "title", REVIEW_TITLE_CHARS_MAX),
                file: String::new(),
                lines: None,
                severity: None,
                agent: agent.to_owned(),
                phase: Phase::Synthesis,
                fingerprint: None,
                rule: None,
                why: LeftOutReason::Unfounded,
                reason,
            }),
        }
    }
    Some((thoughts, left_out))
}

fn parse_insight(
    raw: &Value,
    pair: &CategoryPair,
    findings: &[&ReviewFinding],
) -> Result<ProposedInsight, String> {
    let title = read_text_field(raw, "title", REVIEW_TITLE_CHARS_MAX);
    let insight = read_text_field(raw, "insight", REVIEW_TEXT_CHARS_MAX);
    if title.is_empty() || insight.is_empty() {
        return Err("it has no title, or says nothing".to_owned());
    }
    let named = raw.get("related_findings").and_then(Value::as_array).into_iter().flatten();
    let mut related: Vec<&ReviewFinding> = Vec::new();
    for name in named.filter_map(Value::as_str) {
        let Some(finding) = findings.iter().find(|finding| finding.id == name) else {
            return Err(format!("there is no finding `{name}` in these categories"));
        };
        if !related.iter().any(|known| known.id == finding.id) {
            related.push(finding);
        }
    }
    for category in &pair.categories {
        if !related.iter().any(|finding| finding.category == *category) {
            return Err(format!("it names no finding of `{category}`"));
        }
    }
    let severity = raw.get("severity").and_then(Value::as_str).and_then(ReviewSeverity::from_word);
    let worst = related.iter().max_by_key(|finding| finding.severity);
    let worst = worst.ok_or_else(|| "it names no findings".to_owned())?;
    Ok(ProposedInsight {
        id: String::new(),
        title,
        categories: pair.categories.clone(),
        insight,
        severity: severity.unwrap_or(worst.severity),
        file: worst.file.clone(),
        line: worst.lines.first,
        related: related.iter().map(|finding| finding.id.clone()).collect(),
    })
}
