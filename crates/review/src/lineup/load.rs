//! Parses a line-up file. Every error has a line number and says what to do.

use crate::extract::ReviewSeverity;
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::name::nearest_name;
use repertoire_text::yaml::{self, YamlMapping, YamlNode};
use repertoire_text::{Span, TextPosition};

use super::limits::{
    AGENTS_MAX, ENTRIES_MAX, FILE_BYTES_MAX, NAME_CHARS_MAX, PAIRS_MAX, TEXT_CHARS_MAX,
};
use super::{
    AgentInput, CategoryPair, FindingDetail, LineupPhases, ModelTier, ReviewAgent, ReviewLineup,
    SkillQuestion, SynthesisRules, ValidationRules,
};
use crate::finding::Phase;
use crate::record::{ReviewDepth, ReviewSubject};

/// An error in a line-up file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct LineupError {
    pub file: Utf8PathBuf,
    /// The line number, from 1.
    pub line: u32,
    /// The problem, and what to do about it.
    pub message: String,
}

/// Limits on the YAML of a line-up. Nothing is repaired, so that a mistake is reported instead of guessed at.
const YAML: yaml::Limits = yaml::Limits { depth_max: 8, nodes_max: 20_000, repairs_max: 0 };

const SUBJECTS: &[(&str, ReviewSubject)] =
    &[("code", ReviewSubject::Code), ("docs", ReviewSubject::Docs)];
const TIERS: &[(&str, ModelTier)] = &[("strong", ModelTier::Strong), ("fast", ModelTier::Fast)];
const DEPTHS: &[(&str, ReviewDepth)] =
    &[("quick", ReviewDepth::Quick), ("deep", ReviewDepth::Deep)];
const RECEIVES: &[(&str, AgentInput)] =
    &[("related_tests", AgentInput::RelatedTests), ("rules", AgentInput::Rules)];
const PHASES: &[(&str, Phase)] = &[
    ("patterns", Phase::Patterns),
    ("thorough", Phase::Thorough),
    ("quick", Phase::Quick),
    ("gaps", Phase::Gaps),
    ("synthesis", Phase::Synthesis),
    ("validation", Phase::Validation),
];
const SEVERITIES: &[(&str, ReviewSeverity)] = &[
    ("Critical", ReviewSeverity::Critical),
    ("Major", ReviewSeverity::Major),
    ("Minor", ReviewSeverity::Minor),
    ("Suggestion", ReviewSeverity::Suggestion),
];

/// Parses a line-up. A file that extends another one needs only its `subject`; rules that only a complete line-up can
/// meet are left to [`check`](super::check_lineup).
pub fn load_lineup(text: &str, file: &Utf8Path) -> Result<ReviewLineup, LineupError> {
    let file = LineupFile { text, path: file };
    let whole = Span::new(0, text.len());
    if text.len() > FILE_BYTES_MAX {
        let message = format!(
            "the file has {} bytes, and {FILE_BYTES_MAX} is the limit; shorten the instructions",
            text.len()
        );
        return Err(file.error_at_span(Span::new(0, 0), message));
    }
    let node = yaml::parse(text, whole, &YAML).map_err(|error| {
        file.error_at_span(error.span, format!("{}; {}", error.message, error.code.remedy))
    })?;
    read_lineup(&file, &node)
}

/// The file being parsed, for error positions.
#[derive(Clone, Copy)]
struct LineupFile<'a> {
    text: &'a str,
    path: &'a Utf8Path,
}

impl LineupFile<'_> {
    fn error_at_span(&self, span: Span, message: impl Into<String>) -> LineupError {
        let line = TextPosition::of_offset(self.text, span.start as usize).line;
        LineupError { file: self.path.to_owned(), line, message: message.into() }
    }
}

fn read_lineup(file: &LineupFile<'_>, node: &YamlNode) -> Result<ReviewLineup, LineupError> {
    const KNOWN: &[&str] = &[
        "subject",
        "phases",
        "instructions",
        "gaps_instructions",
        "agents",
        "synthesis",
        "validation",
    ];
    let fields = LineupFields::new(file, node, "a line-up", KNOWN)?;
    let subject = fields.read_word("subject", SUBJECTS)?;
    let lineup = ReviewLineup {
        subject: subject.ok_or_else(|| fields.missing_error("subject", "`code` or `docs`"))?,
        phases: fields.read_part("phases", read_all_phases)?,
        instructions: fields.read_text("instructions")?,
        gaps_instructions: fields.read_text("gaps_instructions")?,
        agents: fields.read_each("agents", AGENTS_MAX, read_agent)?,
        synthesis: fields.read_part("synthesis", read_synthesis)?,
        validation: fields.read_part("validation", read_validation)?,
    };
    for (at, agent) in lineup.agents.iter().enumerate() {
        if lineup.agents[..at].iter().any(|other| other.name == agent.name) {
            let message = format!("`{}` is there twice; give one another name", agent.name);
            return Err(fields.error_in("agents", at, message));
        }
    }
    Ok(lineup)
}

fn read_all_phases(file: &LineupFile<'_>, node: &YamlNode) -> Result<LineupPhases, LineupError> {
    let fields = LineupFields::new(file, node, "`phases`", &["quick", "deep"])?;
    Ok(LineupPhases { quick: read_phases(&fields, "quick")?, deep: read_phases(&fields, "deep")? })
}

/// Reads a list of phases, which must be in the order in which they run.
fn read_phases(fields: &LineupFields<'_>, key: &str) -> Result<Vec<Phase>, LineupError> {
    let phases = fields.read_words(key, PHASES)?;
    if phases.is_sorted_by(|a, b| a < b) {
        return Ok(phases);
    }
    let order: Vec<&str> = PHASES.iter().map(|(word, _)| *word).collect();
    let message = format!("phases come once each, and in this order: {}", order.join(", "));
    Err(fields.error_at(key, message))
}

fn read_agent(file: &LineupFile<'_>, node: &YamlNode) -> Result<ReviewAgent, LineupError> {
    const KNOWN: &[&str] = &[
        "name",
        "category",
        "title",
        "instructions",
        "thorough",
        "gaps",
        "quick",
        "validator",
        "receives",
        "false_positives",
        "details",
    ];
    let fields = LineupFields::new(file, node, "an agent", KNOWN)?;
    let agent = ReviewAgent {
        name: fields.required_text("name", "such as `licence-agent`")?,
        category: fields
            .required_text("category", "the key of what it finds, such as `licences`")?,
        title: fields.required_text("title", "the name of its category, such as `Licences`")?,
        instructions: fields.required_text("instructions", "what it looks for")?,
        thorough: fields.read_word("thorough", TIERS)?,
        gaps: fields.read_word("gaps", TIERS)?,
        quick: fields.read_word("quick", TIERS)?,
        validator: fields
            .read_word("validator", TIERS)?
            .ok_or_else(|| fields.missing_error("validator", "`strong` or `fast`"))?,
        receives: fields.read_words("receives", RECEIVES)?,
        false_positives: fields.read_texts("false_positives")?,
        details: fields.read_each("details", ENTRIES_MAX, read_detail)?,
    };
    if !is_agent_name(&agent.name) {
        let message = format!(
            "`{}` is no name of an agent; use small letters, digits and hyphens, and `-agent` at the end",
            agent.name
        );
        return Err(fields.error_at("name", message));
    }
    if !is_key(&agent.category, '-') {
        let message = format!(
            "`{}` is no key of a category; use small letters, digits and hyphens",
            agent.category
        );
        return Err(fields.error_at("category", message));
    }
    if agent.thorough.or(agent.gaps).or(agent.quick).is_none() {
        let message = format!(
            "`{}` takes part in no phase; give it `thorough`, `gaps` or `quick` with `strong` or `fast`",
            agent.name
        );
        return Err(fields.error_at("name", message));
    }
    Ok(agent)
}

fn read_detail(file: &LineupFile<'_>, node: &YamlNode) -> Result<FindingDetail, LineupError> {
    let fields = LineupFields::new(file, node, "a detail", &["name", "ask"])?;
    let detail = FindingDetail {
        name: fields.required_text("name", "its key, such as `attack_vector`")?,
        ask: fields.required_text("ask", "what belongs there")?,
    };
    if !is_key(&detail.name, '_') {
        let message = format!(
            "`{}` is no key of a detail; use small letters, digits and underscores",
            detail.name
        );
        return Err(fields.error_at("name", message));
    }
    Ok(detail)
}

fn read_synthesis(file: &LineupFile<'_>, node: &YamlNode) -> Result<SynthesisRules, LineupError> {
    const KNOWN: &[&str] = &["agent", "quick", "deep", "instructions", "pairs", "skill_questions"];
    let fields = LineupFields::new(file, node, "`synthesis`", KNOWN)?;
    let synthesis = SynthesisRules {
        agent: fields.read_text("agent")?,
        quick: fields.read_word("quick", TIERS)?,
        deep: fields.read_word("deep", TIERS)?,
        instructions: fields.read_text("instructions")?,
        pairs: fields.read_each("pairs", PAIRS_MAX, read_pair)?,
        skill_questions: fields.read_each("skill_questions", ENTRIES_MAX, read_skill_question)?,
    };
    for (at, pair) in synthesis.pairs.iter().enumerate() {
        if synthesis.pairs[..at].iter().any(|other| other.has_categories(&pair.categories)) {
            let [a, b] = &pair.categories;
            let message = format!(
                "`{a}` and `{b}` are a pair already; put both depths and one question there"
            );
            return Err(fields.error_in("pairs", at, message));
        }
    }
    Ok(synthesis)
}

fn read_pair(file: &LineupFile<'_>, node: &YamlNode) -> Result<CategoryPair, LineupError> {
    let fields = LineupFields::new(file, node, "a pair", &["categories", "question", "depths"])?;
    let categories = match <[String; 2]>::try_from(fields.read_texts("categories")?) {
        Ok([a, b]) if a != b => [a, b],
        _ => {
            let message =
                "a pair is of two different categories; write `categories: [bugs, security]`";
            return Err(fields.error_at("categories", message));
        }
    };
    let question = fields.required_text("question", "what to ask of findings of both")?;
    let depths = fields.read_words("depths", DEPTHS)?;
    if depths.is_empty() {
        return Err(fields.missing_error("depths", "`[quick]`, `[deep]` or both"));
    }
    Ok(CategoryPair { categories, question, depths })
}

fn read_skill_question(
    file: &LineupFile<'_>,
    node: &YamlNode,
) -> Result<SkillQuestion, LineupError> {
    let fields = LineupFields::new(file, node, "a question of a skill", &["skill", "question"])?;
    Ok(SkillQuestion {
        skill: fields.required_text("skill", "the name of the skill")?,
        question: fields.required_text("question", "what is asked when it takes part")?,
    })
}

fn read_validation(file: &LineupFile<'_>, node: &YamlNode) -> Result<ValidationRules, LineupError> {
    const KNOWN: &[&str] = &["instructions", "insights", "quick_from", "false_positives"];
    let fields = LineupFields::new(file, node, "`validation`", KNOWN)?;
    Ok(ValidationRules {
        instructions: fields.read_text("instructions")?,
        insights: fields.read_word("insights", TIERS)?,
        quick_from: fields.read_word("quick_from", SEVERITIES)?,
        false_positives: fields.read_texts("false_positives")?,
    })
}

/// Returns true if the text is a valid agent name, such as `security-agent`.
pub(super) fn is_agent_name(name: &str) -> bool {
    name.strip_suffix("-agent").is_some_and(|own| is_key(own, '-'))
}

/// Returns true if the text consists of lower-case letters and digits, with `sign` only between them.
fn is_key(text: &str, sign: char) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == sign;
    text.chars().count() <= NAME_CHARS_MAX
        && text.chars().all(fits)
        && !text.is_empty()
        && !text.starts_with(sign)
        && !text.ends_with(sign)
}

/// A mapping whose fields are read by key. Unknown keys are rejected when it is created.
struct LineupFields<'a> {
    file: &'a LineupFile<'a>,
    mapping: &'a YamlMapping,
    span: Span,
    /// A description of the mapping for messages, such as "an agent".
    what: &'static str,
}

impl<'a> LineupFields<'a> {
    fn new(
        file: &'a LineupFile<'a>,
        node: &'a YamlNode,
        what: &'static str,
        known: &[&str],
    ) -> Result<Self, LineupError> {
        let Some(mapping) = node.as_mapping() else {
            let message = format!(
                "{what} is a mapping of fields, and this is {}; its fields are {}",
                node.shape_name(),
                known.join(", ")
            );
            return Err(file.error_at_span(node.span, message));
        };
        for entry in &mapping.entries {
            if !known.contains(&entry.key.as_str()) {
                let message = unknown_message(&entry.key, &format!("field of {what}"), known);
                return Err(file.error_at_span(entry.key_span, message));
            }
        }
        Ok(LineupFields { file, mapping, span: node.span, what })
    }

    /// Returns the value of a key; `None` if it is absent or null.
    fn get_node(&self, key: &str) -> Option<&'a YamlNode> {
        self.mapping.get(key).filter(|node| !node.is_null())
    }

    fn error_at(&self, key: &str, message: impl Into<String>) -> LineupError {
        let entry = self.mapping.entries.iter().find(|entry| entry.key == key);
        self.file.error_at_span(entry.map_or(self.span, |entry| entry.key_span), message)
    }

    /// An error at an entry of a list.
    fn error_in(&self, key: &str, at: usize, message: String) -> LineupError {
        let items = self.mapping.get(key).and_then(YamlNode::as_sequence).unwrap_or_default();
        self.file.error_at_span(items.get(at).map_or(self.span, |item| item.span), message)
    }

    fn missing_error(&self, key: &str, what: &str) -> LineupError {
        self.error_at(key, format!("{} needs `{key}`: {what}", self.what))
    }

    /// Reads a text that must not be empty.
    fn required_text(&self, key: &str, what: &str) -> Result<String, LineupError> {
        match self.read_text(key)? {
            text if text.is_empty() => Err(self.missing_error(key, what)),
            text => Ok(text),
        }
    }

    /// Reads a text; empty if the key is absent.
    fn read_text(&self, key: &str) -> Result<String, LineupError> {
        self.get_node(key).map_or(Ok(String::new()), |node| self.read_text_node(node, key))
    }

    fn read_text_node(&self, node: &YamlNode, key: &str) -> Result<String, LineupError> {
        let Some(text) = node.as_str() else {
            let message =
                format!("`{key}` is a text, and this is {}; write it after `|`", node.shape_name());
            return Err(self.file.error_at_span(node.span, message));
        };
        match text.chars().count() {
            count if count > TEXT_CHARS_MAX => {
                let message = format!(
                    "this text has {count} characters, and {TEXT_CHARS_MAX} is the limit; put what a reviewer needs only at times into a skill"
                );
                Err(self.file.error_at_span(node.span, message))
            }
            _ => Ok(text.trim().to_owned()),
        }
    }

    fn read_list(&self, key: &str, max: usize) -> Result<&'a [YamlNode], LineupError> {
        let Some(node) = self.get_node(key) else { return Ok(&[]) };
        let Some(items) = node.as_sequence() else {
            let message = format!(
                "`{key}` is a list, and this is {}; begin each entry with `- `",
                node.shape_name()
            );
            return Err(self.file.error_at_span(node.span, message));
        };
        match items.get(max) {
            Some(beyond) => {
                let message = format!(
                    "`{key}` has {} entries, and {max} is the limit; take some out",
                    items.len()
                );
                Err(self.file.error_at_span(beyond.span, message))
            }
            None => Ok(items),
        }
    }

    fn read_texts(&self, key: &str) -> Result<Vec<String>, LineupError> {
        self.read_list(key, ENTRIES_MAX)?
            .iter()
            .map(|node| self.read_text_node(node, key))
            .collect()
    }

    /// Reads a list of mappings.
    fn read_each<T>(
        &self,
        key: &str,
        max: usize,
        read: impl Fn(&LineupFile<'_>, &YamlNode) -> Result<T, LineupError>,
    ) -> Result<Vec<T>, LineupError> {
        self.read_list(key, max)?.iter().map(|node| read(self.file, node)).collect()
    }

    /// Reads a nested mapping; its default if the key is absent.
    fn read_part<T: Default>(
        &self,
        key: &str,
        read: impl Fn(&LineupFile<'_>, &YamlNode) -> Result<T, LineupError>,
    ) -> Result<T, LineupError> {
        self.get_node(key).map_or_else(|| Ok(T::default()), |node| read(self.file, node))
    }

    fn read_word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, LineupError> {
        self.get_node(key).map(|node| self.read_word_node(node, key, words)).transpose()
    }

    fn read_words<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Vec<T>, LineupError> {
        let items = self.read_list(key, ENTRIES_MAX)?;
        items.iter().map(|node| self.read_word_node(node, key, words)).collect()
    }

    fn read_word_node<T: Copy>(
        &self,
        node: &YamlNode,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<T, LineupError> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let Some(text) = node.as_str() else {
            let message = format!(
                "`{key}` is a word, and this is {}; use {}",
                node.shape_name(),
                known.join(", ")
            );
            return Err(self.file.error_at_span(node.span, message));
        };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())) {
            Some((_, value)) => Ok(*value),
            None => {
                let message = unknown_message(text, &format!("word for `{key}`"), &known);
                Err(self.file.error_at_span(node.span, message))
            }
        }
    }
}

fn unknown_message(given: &str, what: &str, known: &[&str]) -> String {
    let given = yaml::shorten_text(given);
    match nearest_name(&given, known.iter().copied()) {
        Some(near) => format!("`{given}` is no {what}; is `{near}` meant?"),
        None => format!("`{given}` is no {what}; known are {}", known.join(", ")),
    }
}
