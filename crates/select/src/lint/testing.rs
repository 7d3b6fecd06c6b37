//! Builds skills and formats findings for the tests of the rules.

use std::sync::Arc;

use repertoire_skill::load::load_skill;
use repertoire_skill::skill::{Skill, SkillOrigin};
use repertoire_text::{Limits, Source};

use super::check_offered_skills;
use crate::model::SelectionModel;

pub(super) fn make_skill(name: &str, description: &str) -> Arc<Skill> {
    skill_in("s", name, description, "")
}

/// A skill in `FOLDER/NAME/SKILL.md`, with more frontmatter lines.
pub(super) fn skill_in(folder: &str, name: &str, description: &str, fields: &str) -> Arc<Skill> {
    let text = format!("---\nname: {name}\ndescription: |\n  {description}\n{fields}---\nDo it.\n");
    let path = format!("{folder}/{name}/SKILL.md");
    let loaded = load_skill(
        Source::new(path.as_str(), text),
        SkillOrigin::from_file(path),
        &Limits::default(),
    );
    Arc::new(loaded.skill.expect("the fixture must load"))
}

/// `FOLDER/NAME: severity[code] message` for every finding.
pub(super) fn format_findings(skills: &[Arc<Skill>]) -> Vec<String> {
    let show = |found: &repertoire_text::Diagnostic| {
        let path = found.path.as_deref().and_then(|path| path.parent()).unwrap();
        format!("{path}: {}[{}] {}", found.severity.as_str(), found.code.id, found.message)
    };
    check_offered_skills(skills, &SelectionModel::embedded()).iter().map(show).collect()
}
