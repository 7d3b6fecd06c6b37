//! The dialects: the fields that each family of files knows, and how the dialect of a file is detected.
//!
//! A new dialect is a new list here and, if its fields mean something new, a reader in `load`.

use crate::skill::Dialect;

/// Fields of the Agent Skills specification.
pub const AGENT_SKILLS: &[&str] =
    &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// Fields that Claude Code adds for skills and agents.
pub const CLAUDE: &[&str] = &[
    "when_to_use",
    "arguments",
    "argument-hint",
    "disable-model-invocation",
    "user-invocable",
    "disallowed-tools",
    "disallowedTools",
    "model",
    "effort",
    "context",
    "agent",
    "background",
    "hooks",
    "paths",
    "shell",
    "tools",
    "skills",
    "color",
    "permissionMode",
];

/// Fields of the flat dialect and its sub-agents.
pub const FLAT: &[&str] = &[
    "type",
    "version",
    "author",
    "triggers",
    "required_tools",
    "disallowed_tools",
    "dependencies",
    "cacheable",
    "max_retries",
    "timeout_ms",
    "priority",
    "tags",
    "capabilities",
    "max_concurrent",
];

/// Fields of agents, which say how they run. They have no effect in a skill, so they are unknown there.
pub const AGENT: &[&str] = &[
    "behavior",
    "behaviour",
    "temperature",
    "top_p",
    "top-p",
    "thinking",
    "max_iterations",
    "max-iterations",
    "maxTurns",
    "max_turns",
    "response_format",
    "response-format",
    "json_schema",
    "response_schema",
    "response-schema",
];

/// Iterates over every field that some dialect knows.
pub fn known_fields() -> impl Iterator<Item = &'static str> {
    [AGENT_SKILLS, CLAUDE, FLAT, AGENT].into_iter().flatten().copied()
}

/// Iterates over every field that has an effect in a file of this dialect.
pub fn fields_of(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let of_agents = if dialect == Dialect::SubAgent { AGENT } else { &[] };
    [AGENT_SKILLS, CLAUDE, FLAT, of_agents].into_iter().flatten().copied()
}

/// Returns true if some dialect knows a field.
pub fn is_known_field(key: &str) -> bool {
    known_fields().any(|known| known == key)
}

/// Returns true if a file of this name makes its folder a skill.
pub fn is_skill_file(name: &str) -> bool {
    name == "SKILL.md" || name == "skill.md"
}

/// Detects the dialect of a file by its name, its folder and its fields.
pub fn detect_dialect<'a>(
    file_name: &str,
    folder: Option<&str>,
    fields: impl Iterator<Item = &'a str>,
    type_field: Option<&str>,
) -> Dialect {
    if is_skill_file(file_name) {
        let mut fields = fields;
        let claude = fields.any(|key| CLAUDE.contains(&key));
        return if claude { Dialect::Claude } else { Dialect::AgentSkills };
    }
    let in_agents = matches!(folder, Some("agents" | "subagents"));
    if type_field == Some("subagent") || (in_agents && type_field.is_none()) {
        return Dialect::SubAgent;
    }
    Dialect::Flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_agents_are_known_in_agents_and_nowhere_else() {
        for field in AGENT {
            assert!(is_known_field(field), "{field}");
            assert!(fields_of(Dialect::SubAgent).any(|known| known == *field), "{field}");
            for other in [Dialect::AgentSkills, Dialect::Claude, Dialect::Flat] {
                assert!(!fields_of(other).any(|known| known == *field), "{field} in {other:?}");
            }
        }
    }

    #[test]
    fn no_field_is_listed_twice() {
        let mut fields: Vec<&str> = known_fields().collect();
        let count = fields.len();
        fields.sort_unstable();
        fields.dedup();
        assert_eq!(fields.len(), count);
    }
}
