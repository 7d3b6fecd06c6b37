//! Agent definitions: Markdown with frontmatter, parsed into a value.
//!
//! The files are agents of the catalog, so they are discovered, linted and reloaded like skills;
//! this module parses the fields that matter for running them.

use repertoire_model::{ModelName, ResponseFormat, SamplingParams, ThinkingMode};
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::skill::{ContentDigest, Skill};
use repertoire_skill::trust::TrustLevel;
use repertoire_text::invisible;
use repertoire_text::yaml::{ScalarKind, Value, YamlNode};

use crate::limits::{ITERATIONS_MAX, THINKING_TOKENS_MAX, THINKING_TOKENS_MIN};

/// The agent to run if none is requested.
pub const DEFAULT_AGENT: &str = "default";

/// The token budget for thinking if the definition only enables it.
const THINKING_TOKENS: u32 = 8_000;

/// Presets for sampling: name, temperature, top-p.
pub const BEHAVIOURS: &[(&str, f64, f64)] = &[
    ("deterministic", 0.1, 0.5),
    ("precise", 0.2, 0.6),
    ("balanced", 0.5, 0.85),
    ("creative", 0.7, 0.95),
    ("exploratory", 0.9, 0.98),
];

/// Aliases for models, as used in Claude Code's agents.
const MODEL_WORDS: &[(&str, &str)] = &[
    ("haiku", "anthropic/claude-haiku-4-5"),
    ("sonnet", "anthropic/claude-sonnet-4-5"),
    ("opus", "anthropic/claude-opus-4-5"),
];

#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    pub name: String,
    pub description: String,
    pub prompt: String,
    /// The model; the configured default if absent.
    pub model: Option<ModelName>,
    pub tools: ToolFilter,
    pub sampling: SamplingParams,
    pub thinking: ThinkingMode,
    /// The maximum number of turns of a run.
    pub max_iterations: Option<u32>,
    /// Skills to load regardless of the task.
    pub skills: Vec<String>,
    pub format: ResponseFormat,
    /// The user's trust in the definition's file.
    pub trust: TrustLevel,
    /// The digest of the file; `None` for built-in definitions.
    pub digest: Option<ContentDigest>,
    /// The maximum number of concurrent runs.
    pub max_concurrent: Option<u32>,
}

/// The tools that an agent may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Names and patterns such as `file-*`; `None` for all tools.
    pub allowed: Option<Vec<String>>,
    /// Names and patterns to exclude, even if they are allowed.
    pub disallowed: Vec<String>,
}

impl ToolFilter {
    /// Returns true if a tool may be used. Names are normalised as in permissions, so `Read` equals
    /// `read`.
    pub fn has(&self, tool: &str) -> bool {
        let hit = |pattern: &String| pattern_matches_tool(pattern, tool);
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(hit))
            && !self.disallowed.iter().any(hit)
    }
}

/// Returns true if a list entry matches a tool: `*`, `prefix*`, or a name in any agent's spelling.
/// A part in parentheses after the name is ignored here; permissions evaluate it.
pub(crate) fn pattern_matches_tool(pattern: &str, tool: &str) -> bool {
    let pattern = pattern.split_once('(').map_or(pattern, |(name, _)| name).trim();
    let server_tool = crate::permission::mcp_name(&pattern.to_ascii_lowercase());
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => tool.to_lowercase().starts_with(&prefix.to_lowercase()),
        None => crate::permission::tool_name(pattern).eq_ignore_ascii_case(tool),
    };
    fits(pattern) || server_tool.is_some_and(|pattern| fits(&pattern))
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("agent `{agent}`: {message}")]
pub struct DefinitionError {
    pub agent: String,
    /// The problem and how to fix it.
    pub message: String,
}

impl Default for AgentDefinition {
    /// The built-in agent.
    fn default() -> Self {
        AgentDefinition {
            name: DEFAULT_AGENT.to_owned(),
            description: "Works in the project with every tool there is.".to_owned(),
            prompt: include_str!("../data/default.md").trim_end().to_owned(),
            model: None,
            tools: ToolFilter::default(),
            sampling: SamplingParams::default(),
            thinking: ThinkingMode::Off,
            max_iterations: None,
            skills: Vec::new(),
            format: ResponseFormat::Text,
            trust: TrustLevel::Trusted,
            digest: None,
            max_concurrent: None,
        }
    }
}

impl AgentDefinition {
    /// Parses an agent of the catalog.
    ///
    /// # Errors
    ///
    /// Returns an error if a field has an invalid or unsupported value.
    pub fn from_entry(entry: &CatalogEntry) -> Result<Self, DefinitionError> {
        let skill = &*entry.skill;
        let fields = AgentFrontmatter { skill };
        let sampling = fields.parse_sampling()?;
        let thinking = fields.parse_thinking()?;
        if thinking != ThinkingMode::Off && sampling != SamplingParams::default() {
            return Err(fields.error(
                "`thinking` goes with no temperature, top_p or behaviour: take one of them out",
            ));
        }
        let listed = skill.frontmatter.get("tools").or(skill.frontmatter.get("allowed-tools"));
        let tools = ToolFilter {
            allowed: listed
                .filter(|node| !node.is_null())
                .map(|_| skill.spec.allowed_tools.clone()),
            disallowed: skill.execution.disallowed_tools.clone(),
        };
        Ok(AgentDefinition {
            name: entry.id.clone(),
            description: skill.description.clone(),
            prompt: invisible::removed(skill.body().trim_end()).0.into_owned(),
            model: fields.parse_model()?,
            tools,
            sampling,
            thinking,
            max_iterations: fields.parse_max_iterations()?,
            skills: fields.parse_list("skills"),
            format: fields.parse_format()?,
            trust: entry.trust,
            digest: Some(skill.digest()),
            max_concurrent: skill.execution.max_concurrent,
        })
    }
}

/// The frontmatter of an agent.
struct AgentFrontmatter<'a> {
    skill: &'a Skill,
}

impl AgentFrontmatter<'_> {
    fn error(&self, message: impl Into<String>) -> DefinitionError {
        DefinitionError { agent: self.skill.name.clone(), message: message.into() }
    }

    fn node(&self, keys: &[&str]) -> Option<&YamlNode> {
        let found = keys.iter().find_map(|key| self.skill.frontmatter.get(key));
        found.filter(|node| !node.is_null())
    }

    fn parse_number(&self, keys: &[&str]) -> Result<Option<f64>, DefinitionError> {
        let Some(node) = self.node(keys) else { return Ok(None) };
        match scalar_kind(node) {
            Some(ScalarKind::Int(number)) => Ok(Some(number as f64)),
            Some(ScalarKind::Float(number)) => Ok(Some(number)),
            _ => Err(self.error(format!("`{}` must be a number", keys[0]))),
        }
    }

    fn parse_list(&self, key: &str) -> Vec<String> {
        match self.node(&[key]).map(|node| &node.value) {
            Some(Value::Scalar(scalar)) => {
                let words = scalar.text.split(',').map(|word| word.trim().to_owned());
                words.filter(|word| !word.is_empty()).collect()
            }
            Some(Value::Sequence(nodes, _)) => {
                nodes.iter().filter_map(YamlNode::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    fn parse_model(&self) -> Result<Option<ModelName>, DefinitionError> {
        let Some(word) = self.node(&["model"]).and_then(YamlNode::as_str) else { return Ok(None) };
        if word == "inherit" {
            return Ok(None);
        }
        let short = MODEL_WORDS.iter().find(|(short, _)| *short == word);
        let name = short.map_or(word, |(_, name)| name);
        name.parse().map(Some).map_err(|error| self.error(format!("{error}")))
    }

    fn parse_sampling(&self) -> Result<SamplingParams, DefinitionError> {
        let mut sampling = SamplingParams::default();
        if let Some(node) = self.node(&["behavior", "behaviour"]) {
            let word = node.as_str().unwrap_or_default();
            let preset = BEHAVIOURS.iter().find(|(name, ..)| *name == word).ok_or_else(|| {
                let names: Vec<&str> = BEHAVIOURS.iter().map(|(name, ..)| *name).collect();
                self.error(format!(
                    "there is no behaviour `{word}`; there are {}",
                    names.join(", ")
                ))
            })?;
            sampling = SamplingParams { temperature: Some(preset.1), top_p: Some(preset.2) };
        }
        if let Some(temperature) = self.parse_number(&["temperature"])? {
            self.check_range("temperature", temperature, 0.0, 2.0)?;
            sampling.temperature = Some(temperature);
        }
        if let Some(top_p) = self.parse_number(&["top_p", "top-p"])? {
            self.check_range("top_p", top_p, 0.0, 1.0)?;
            sampling.top_p = Some(top_p);
        }
        Ok(sampling)
    }

    fn check_range(
        &self,
        key: &str,
        value: f64,
        low: f64,
        high: f64,
    ) -> Result<(), DefinitionError> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.error(format!("`{key}` must be from {low} to {high}, and is {value}")))
    }

    fn parse_thinking(&self) -> Result<ThinkingMode, DefinitionError> {
        let Some(node) = self.node(&["thinking"]) else { return Ok(ThinkingMode::Off) };
        let tokens = match &node.value {
            Value::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Bool(true) => i64::from(THINKING_TOKENS),
                ScalarKind::Bool(false) | ScalarKind::Null => return Ok(ThinkingMode::Off),
                ScalarKind::Int(tokens) => tokens,
                _ => return Err(self.error("`thinking` must be true, false or a number of tokens")),
            },
            Value::Mapping(mapping) => {
                let enabled = mapping.get("enabled").and_then(scalar_kind);
                if enabled == Some(ScalarKind::Bool(false)) {
                    return Ok(ThinkingMode::Off);
                }
                let budget = ["budget", "budget_tokens"].iter().find_map(|key| mapping.get(key));
                match budget.map(scalar_kind) {
                    None => i64::from(THINKING_TOKENS),
                    Some(Some(ScalarKind::Int(tokens))) => tokens,
                    Some(_) => {
                        return Err(self.error("`thinking.budget` must be a number of tokens"));
                    }
                }
            }
            Value::Sequence(..) => {
                return Err(self.error("`thinking` must be true, false or a number of tokens"));
            }
        };
        let range = THINKING_TOKENS_MIN..=THINKING_TOKENS_MAX;
        let fits = u32::try_from(tokens).ok().filter(|tokens| range.contains(tokens));
        fits.map(ThinkingMode::Budget).ok_or_else(|| {
            self.error(format!(
                "`thinking` must be from {THINKING_TOKENS_MIN} to {THINKING_TOKENS_MAX} tokens, and is {tokens}"
            ))
        })
    }

    fn parse_max_iterations(&self) -> Result<Option<u32>, DefinitionError> {
        let keys = ["max_iterations", "max-iterations", "maxTurns", "max_turns"];
        let Some(number) = self.parse_number(&keys)? else { return Ok(None) };
        if number.fract() != 0.0 || !(1.0..=f64::from(ITERATIONS_MAX)).contains(&number) {
            return Err(self.error(format!(
                "`max_iterations` must be a whole number from 1 to {ITERATIONS_MAX}"
            )));
        }
        Ok(Some(number as u32))
    }

    fn parse_format(&self) -> Result<ResponseFormat, DefinitionError> {
        let word = self.node(&["response_format", "response-format"]).and_then(YamlNode::as_str);
        let keys = ["json_schema", "response_schema", "response-schema"];
        let schema = self.node(&keys).map(YamlNode::to_json);
        match (word, schema) {
            (None | Some("json_schema"), Some(schema)) => {
                jsonschema::validator_for(&schema).map_err(|error| {
                    self.error(format!("the schema of the answer is not a JSON Schema: {error}"))
                })?;
                Ok(ResponseFormat::Schema { name: schema_name(&self.skill.name), schema })
            }
            (Some("json_schema"), None) => {
                Err(self.error("`response_format: json_schema` needs a `json_schema`"))
            }
            (Some("json"), _) => Ok(ResponseFormat::Json),
            (None | Some("text"), _) => Ok(ResponseFormat::Text),
            (Some(other), _) => Err(self.error(format!(
                "there is no response format `{other}`; there are text, json and json_schema"
            ))),
        }
    }
}

fn scalar_kind(node: &YamlNode) -> Option<ScalarKind<'_>> {
    match &node.value {
        Value::Scalar(scalar) => Some(scalar.kind()),
        _ => None,
    }
}

/// Replaces characters that providers reject in schema names. They allow letters, digits, `_` and
/// `-`.
fn schema_name(agent: &str) -> String {
    agent.chars().map(name_char).take(64).collect()
}

fn name_char(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repertoire_skill::load::load_skill;
    use repertoire_skill::skill::SkillOrigin;
    use repertoire_text::Source;
    use std::sync::Arc;

    fn read(frontmatter: &str) -> Result<AgentDefinition, String> {
        let text = format!("---\nname: a\ndescription: An agent.\n{frontmatter}---\nDo it.\n");
        let loaded = load_skill(
            Source::new("agents/a.md", text.as_str()),
            SkillOrigin::from_file("agents/a.md"),
            &repertoire_text::Limits::default(),
        );
        let skill = Arc::new(loaded.skill.expect("the fixture is a valid agent"));
        let entry = CatalogEntry { id: "a".to_owned(), skill, trust: TrustLevel::Trusted };
        AgentDefinition::from_entry(&entry).map_err(|error| error.message)
    }

    #[test]
    fn an_agent_with_nothing_but_a_name_may_use_every_tool() {
        let agent = read("").unwrap();
        assert!(agent.tools.has("bash") && agent.tools.has("skill"));
        assert_eq!(
            (agent.sampling, agent.thinking),
            (SamplingParams::default(), ThinkingMode::Off)
        );
        assert_eq!(agent.prompt, "Do it.");
    }

    #[test]
    fn tools_are_names_in_any_spelling_or_end_in_a_star() {
        let agent = read("tools: [Read, git*, mcp_*]\ndisallowed_tools: [github]\n").unwrap();
        for tool in ["read", "git", "mcp_files_list"] {
            assert!(agent.tools.has(tool), "{tool}");
        }
        for tool in ["github", "write", "readme"] {
            assert!(!agent.tools.has(tool), "{tool}");
        }
        assert!(read("tools: '*'\n").unwrap().tools.has("anything"));
        assert!(!read("tools: []\n").unwrap().tools.has("read"));
    }

    #[test]
    fn a_behaviour_is_a_preset_that_figures_override() {
        let agent = read("behavior: precise\ntemperature: 0.3\n").unwrap();
        let expected = SamplingParams { temperature: Some(0.3), top_p: Some(0.6) };
        assert_eq!(agent.sampling, expected);
    }

    #[test]
    fn a_schema_makes_the_answer_structured() {
        let agent = read("json_schema: {type: object, required: [ok]}\n").unwrap();
        assert!(matches!(agent.format, ResponseFormat::Schema { .. }));
    }

    #[test]
    fn fields_that_cannot_be_done_are_told_with_what_would_be_right() {
        for (field, message) in [
            ("behavior: wild\n", "there are deterministic, precise"),
            ("temperature: 3\n", "from 0 to 2"),
            ("temperature: warm\n", "must be a number"),
            ("thinking: true\ntemperature: 0.2\n", "take one of them out"),
            ("thinking: 5\n", "from 512 to 200000"),
            ("model: gpt\n", "anthropic/NAME, openai/NAME or compat/NAME"),
            ("max_iterations: 0\n", "whole number from 1"),
            ("response_format: xml\n", "text, json and json_schema"),
            ("json_schema: {type: 7}\n", "not a JSON Schema"),
        ] {
            let error = read(field).unwrap_err();
            assert!(error.contains(message), "{field}: {error}");
        }
    }
}
