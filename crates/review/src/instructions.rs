//! Generates `skill_instructions`, the part of each agent's prompt that comes from skills.
//!
//! A review skill addresses its primary agent, a methodology skill addresses all agents. Several skills are merged in
//! the order in which they were requested: lists are united without duplicates, and methodologies are concatenated.

use std::collections::BTreeMap;

use crate::extract::{ReviewKind, ReviewMethodology, ReviewSeverity, ReviewSkill};
use repertoire_text::yaml;
use serde::Serialize;

/// A skill that takes part in a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSkill {
    pub skill: ReviewSkill,
    /// True if its patterns may validate findings without a validator, and its false-positive rules apply.
    pub trusted: bool,
    /// True if the user requested it, so that they are warned if it has no effect.
    pub asked: bool,
}

/// The instructions that skills give to one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillInstructions {
    /// The names of the areas to look at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub focus_areas: Vec<String>,
    /// The same areas with their checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checklist: Vec<AreaChecklist>,
    /// The ids of patterns whose matches count as validated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auto_validate: Vec<String>,
    /// Descriptions of code that must not be flagged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub false_positive_rules: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methodology: Option<ReviewMethodology>,
}

/// The checks of one focus area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AreaChecklist {
    pub category: String,
    /// The usual severity of its findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<ReviewSeverity>,
    pub items: Vec<String>,
}

/// The instructions of all skills together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewInstructions {
    /// Instructions by agent name.
    pub agents: BTreeMap<String, SkillInstructions>,
    /// Rules that validators apply to all findings.
    pub false_positive_rules: Vec<String>,
    /// Warnings about requested skills that have no effect.
    pub warnings: Vec<String>,
}

/// Generates the instructions for the agents that take part. `skipped` are the agents that the user has disabled.
pub fn generate_instructions(
    skills: &[ResolvedSkill],
    agents: &[&str],
    skipped: &[String],
) -> ReviewInstructions {
    let empty = |name: &&str| ((*name).to_owned(), SkillInstructions::default());
    let mut told = ReviewInstructions {
        agents: agents.iter().map(empty).collect(),
        ..ReviewInstructions::default()
    };
    for ResolvedSkill { skill, asked, trusted } in skills {
        // An untrusted skill must not suppress findings.
        let rules = if *trusted { skill.false_positive_rules.as_slice() } else { &[] };
        extend_unique(&mut told.false_positive_rules, rules);
        match skill.kind {
            ReviewKind::Review => {
                let unheard = add_review_skill(&mut told, skill, rules, skipped);
                told.warnings.extend(unheard.filter(|_| *asked));
            }
            ReviewKind::Methodology => {
                for instructions in told.agents.values_mut() {
                    add_methodology(instructions, skill.methodology.as_ref());
                }
            }
            ReviewKind::Command if *asked => told.warnings.push(format!(
                "`{}` starts reviews of its own and tells agents nothing; its patterns and false-positive rules apply to all findings",
                skill.source
            )),
            ReviewKind::Command => {}
        }
    }
    told
}

/// Adds a review skill to the instructions of its primary agent. Returns a warning if that agent does not take part.
fn add_review_skill(
    told: &mut ReviewInstructions,
    skill: &ReviewSkill,
    rules: &[String],
    skipped: &[String],
) -> Option<String> {
    let name = skill.primary_agent.as_deref().unwrap_or_default();
    let Some(instructions) = told.agents.get_mut(name) else {
        let why = if skipped.iter().any(|agent| agent == name) {
            format!("speaks to {name}, which is left out (`skip_agents`)")
        } else {
            format!("speaks to {name}, which takes no part in this review")
        };
        return Some(format!("`{}` {why}", skill.source));
    };
    for area in &skill.focus_areas {
        push_new(&mut instructions.focus_areas, area.name.clone());
        let entry = AreaChecklist {
            category: area.name.clone(),
            severity: area.severity,
            items: area.checks.clone(),
        };
        push_new(&mut instructions.checklist, entry);
    }
    for pattern in &skill.auto_validated_patterns {
        push_new(&mut instructions.auto_validate, pattern.id.clone());
    }
    extend_unique(&mut instructions.false_positive_rules, rules);
    None
}

fn add_methodology(instructions: &mut SkillInstructions, methodology: Option<&ReviewMethodology>) {
    let Some(new) = methodology else { return };
    let all = instructions.methodology.get_or_insert_default();
    for (text, new) in [(&mut all.approach, &new.approach), (&mut all.mindset, &new.mindset)] {
        if !text.is_empty() && !new.is_empty() {
            text.push('\n');
        }
        text.push_str(new);
    }
    all.steps.extend(new.steps.iter().cloned());
    all.questions.extend(new.questions.iter().cloned());
}

fn extend_unique(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        push_new(list, item.clone());
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

impl SkillInstructions {
    /// Returns true if there are no instructions.
    pub fn is_empty(&self) -> bool {
        *self == SkillInstructions::default()
    }

    /// The `skill_instructions:` block of a prompt, as YAML. Returns `None` if there are no instructions.
    pub fn to_yaml(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let value = serde_json::json!({ "skill_instructions": self });
        Some(yaml::emit(&yaml::YamlNode::from_json(&value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{FocusArea, ReviewPattern};

    fn area(name: &str, severity: ReviewSeverity, checks: &[&str]) -> FocusArea {
        let checks = checks.iter().map(|check| (*check).to_owned()).collect();
        FocusArea { name: name.to_owned(), severity: Some(severity), checks }
    }

    fn skill(name: &str, kind: ReviewKind, agent: Option<&str>) -> ReviewSkill {
        ReviewSkill {
            name: name.to_owned(),
            source: name.to_owned(),
            kind,
            primary_agent: agent.map(str::to_owned),
            focus_areas: Vec::new(),
            auto_validated_patterns: Vec::new(),
            false_positive_rules: Vec::new(),
            priority_files: None,
            methodology: None,
        }
    }

    fn security() -> ResolvedSkill {
        let pattern = ReviewPattern {
            id: "sql_concat".to_owned(),
            pattern: None,
            description: "SQL".to_owned(),
            severity: None,
            files: Vec::new(),
            unusable: None,
        };
        let skill = ReviewSkill {
            focus_areas: vec![
                area(
                    "Injection Vulnerabilities",
                    ReviewSeverity::Critical,
                    &["SQL injection via string concatenation"],
                ),
                area(
                    "Authentication Weaknesses",
                    ReviewSeverity::Critical,
                    &["Hardcoded credentials"],
                ),
            ],
            auto_validated_patterns: vec![pattern],
            false_positive_rules: vec!["SQL in ORM query builders".to_owned()],
            ..skill("reviewing-security", ReviewKind::Review, Some("security-agent"))
        };
        ResolvedSkill { skill, trusted: true, asked: true }
    }

    fn method(name: &str, approach: &str, mindset: &str) -> ResolvedSkill {
        let methodology = ReviewMethodology {
            approach: approach.to_owned(),
            mindset: mindset.to_owned(),
            steps: vec![format!("{name}: look")],
            questions: vec![format!("{name}: why?")],
        };
        let skill = ReviewSkill {
            methodology: Some(methodology),
            ..skill(name, ReviewKind::Methodology, None)
        };
        ResolvedSkill { skill, trusted: true, asked: true }
    }

    #[test]
    fn a_review_skill_speaks_to_its_agent_and_a_methodology_to_all() {
        let skills = [security(), method("brainstorming", "Explore", "Doubt")];
        let told = generate_instructions(&skills, &["security-agent", "bug-detection-agent"], &[]);
        let yaml = told.agents["security-agent"].to_yaml().unwrap();
        assert_eq!(
            yaml,
            "\
skill_instructions:
  focus_areas:
    - Injection Vulnerabilities
    - Authentication Weaknesses
  checklist:
    - category: Injection Vulnerabilities
      severity: Critical
      items:
        - SQL injection via string concatenation
    - category: Authentication Weaknesses
      severity: Critical
      items:
        - Hardcoded credentials
  auto_validate:
    - sql_concat
  false_positive_rules:
    - SQL in ORM query builders
  methodology:
    approach: Explore
    mindset: Doubt
    steps:
      - \"brainstorming: look\"
    questions:
      - \"brainstorming: why?\"
"
        );
        let other = &told.agents["bug-detection-agent"];
        assert!(other.focus_areas.is_empty() && other.methodology.is_some());
        assert_eq!(told.false_positive_rules, ["SQL in ORM query builders"]);
    }

    #[test]
    fn of_several_methodologies_everything_is_kept_in_order() {
        let skills = [method("b", "First", "One"), method("a", "Second", "Two")];
        let told = generate_instructions(&skills, &["security-agent"], &[]);
        let methodology = told.agents["security-agent"].methodology.clone().unwrap();
        assert_eq!(methodology.approach, "First\nSecond");
        assert_eq!(methodology.mindset, "One\nTwo");
        assert_eq!(methodology.steps, ["b: look", "a: look"]);
        assert_eq!(methodology.questions, ["b: why?", "a: why?"]);
    }

    #[test]
    fn the_same_said_twice_is_said_once() {
        let told = generate_instructions(&[security(), security()], &["security-agent"], &[]);
        let once = generate_instructions(&[security()], &["security-agent"], &[]);
        assert_eq!(told, once);
    }

    #[test]
    fn without_skills_there_is_no_block() {
        let told = generate_instructions(&[], &["security-agent"], &[]);
        assert_eq!(told.agents["security-agent"].to_yaml(), None);
    }

    #[test]
    fn a_skill_whose_agent_takes_no_part_is_told() {
        let told = generate_instructions(&[security()], &["bug-detection-agent"], &[]);
        assert_eq!(
            told.warnings,
            ["`reviewing-security` speaks to security-agent, which takes no part in this review"]
        );
        let told = generate_instructions(&[security()], &[], &["security-agent".to_owned()]);
        assert!(told.warnings[0].contains("left out"), "{:?}", told.warnings);
    }
}
