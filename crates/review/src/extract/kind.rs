//! Determines the role of a skill in a review, and the agent that it addresses: by the table of the documentation, then
//! by its `type`, then by its name.

use repertoire_skill::skill::{Skill, SkillKind};

use super::ReviewKind;
use super::sections::word_stems;

/// Subjects whose agent is not named after them.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("architecture-principles", "architecture-agent"),
    ("bug", "bug-detection-agent"),
    ("bugs", "bug-detection-agent"),
];

/// Returns the role of a skill, and the agent that it addresses.
pub(super) fn classify_skill(skill: &Skill) -> (ReviewKind, Option<String>) {
    let name = skill.name.as_str();
    let subject = name.strip_prefix("reviewing-");
    let known = match name {
        "reviewing-architecture-principles"
        | "reviewing-bugs"
        | "reviewing-compliance"
        | "reviewing-performance"
        | "reviewing-security"
        | "reviewing-technical-debt" => Some(ReviewKind::Review),
        "reviewing-documentation" => Some(ReviewKind::Command),
        _ => None,
    };
    let by_name = || subject.map_or(ReviewKind::Methodology, |_| ReviewKind::Review);
    let kind = known.or_else(|| declared_kind(&skill.kind)).unwrap_or_else(by_name);
    let agent = match kind {
        ReviewKind::Review => subject.or_else(|| other_subject(name)).map(agent_for_subject),
        ReviewKind::Methodology | ReviewKind::Command => None,
    };
    (kind, agent)
}

/// Returns true if the skill declares its role itself.
pub(super) fn is_declared(skill: &Skill) -> bool {
    declared_kind(&skill.kind).is_some()
}

fn declared_kind(kind: &SkillKind) -> Option<ReviewKind> {
    match kind.as_str() {
        "review" => Some(ReviewKind::Review),
        "methodology" => Some(ReviewKind::Methodology),
        "command" => Some(ReviewKind::Command),
        _ => None,
    }
}

/// The subject of a review skill with another naming scheme: `security-review`, `review-security`.
fn other_subject(name: &str) -> Option<&str> {
    let subject = name
        .strip_suffix("-review")
        .or_else(|| name.strip_suffix("-reviewer"))
        .or_else(|| name.strip_prefix("review-"))?;
    (!matches!(subject, "code" | "docs" | "pr")).then_some(subject)
}

fn agent_for_subject(subject: &str) -> String {
    let exception = EXCEPTIONS.iter().find(|(known, _)| *known == subject);
    exception.map_or_else(|| format!("{subject}-agent"), |(_, agent)| (*agent).to_owned())
}

/// The stems of a skill's subject, by its own name and by that of its agent. A title with all stems of either is about
/// it.
pub(super) fn subject_stems(skill: &Skill, agent: Option<&str>) -> Vec<Vec<String>> {
    let name = skill.name.strip_prefix("reviewing-").or_else(|| other_subject(&skill.name));
    let agent = agent.and_then(|agent| agent.strip_suffix("-agent"));
    [name, agent].into_iter().flatten().map(word_stems).collect()
}
