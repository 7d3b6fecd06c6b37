//! Parses a line-up file. Every error has a line number and says what to do.

use crate::extract::Severity;
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::name::nearest;
use repertoire_text::yaml::{self, Mapping, Node};
use repertoire_text::{Position, Span};

use super::limits::{
    AGENTS_MAX, ENTRIES_MAX, FILE_BYTES_MAX, NAME_CHARS_MAX, PAIRS_MAX, TEXT_CHARS_MAX,
};
use super::{
    Agent, Detail, Lineup, ModelTier, Pair, Phases, Receives, SkillQuestion, Synthesis,
    ValidationRules,
};
use crate::finding::Phase;
use crate::record::{Depth, Subject};

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

const SUBJECTS: &[(&str, Subject)] = &[("code", Subject::Code), ("docs", Subject::Docs)];
const TIERS: &[(&str, ModelTier)] = &[("strong", ModelTier::Strong), ("fast", ModelTier::Fast)];
const DEPTHS: &[(&str, Depth)] = &[("quick", Depth::Quick), ("deep", Depth::Deep)];
const RECEIVES: &[(&str, Receives)] =
    &[("related_tests", Receives::RelatedTests), ("rules", Receives::Rules)];
const PHASES: &[(&str, Phase)] = &[
    ("patterns", Phase::Patterns),
    ("thorough", Phase::Thorough),
    ("quick", Phase::Quick),
    ("gaps", Phase::Gaps),
    ("synthesis", Phase::Synthesis),
    ("validation", Phase::Validation),
];
const SEVERITIES: &[(&str, Severity)] = &[
    ("Critical", Severity::Critical),
    ("Major", Severity::Major),
    ("Minor", Severity::Minor),
    ("Suggestion", Severity::Suggestion),
];

/// Parses a line-up. A file that extends another one needs only its `subject`; rules that only a complete line-up can
/// meet are left to [`check`](super::check).
pub fn load(text: &str, file: &Utf8Path) -> Result<Lineup, LineupError> {
    let file = File { text, path: file };
    let whole = Span::new(0, text.len());
    if text.len() > FILE_BYTES_MAX {
        let message = format!(
            "the file has {} bytes, and {FILE_BYTES_MAX} is the limit; shorten the instructions",
            text.len()
        );
        return Err(file.error(Span::new(0, 0), message));
    }
    let node = yaml::parse(text, whole, &YAML).map_err(|error| {
        file.error(error.span, format!("{}; {}", error.message, error.code.remedy))
    })?;
    lineup(&file, &node)
}

/// The file being parsed, for error positions.
#[derive(Clone, Copy)]
struct File<'a> {
    text: &'a str,
    path: &'a Utf8Path,
}

impl File<'_> {
    fn error(&self, span: Span, message: impl Into<String>) -> LineupError {
        let line = Position::of(self.text, span.start as usize).line;
        LineupError { file: self.path.to_owned(), line, message: message.into() }
    }
}

fn lineup(file: &File<'_>, node: &Node) -> Result<Lineup, LineupError> {
    const KNOWN: &[&str] = &[
        "subject",
        "phases",
        "instructions",
        "gaps_instructions",
        "agents",
        "synthesis",
        "validation",
    ];
    let fields = Fields::new(file, node, "a line-up", KNOWN)?;
    let subject = fields.word("subject", SUBJECTS)?;
    let lineup = Lineup {
        subject: subject.ok_or_else(|| fields.missing("subject", "`code` or `docs`"))?,
        phases: fields.part("phases", phases)?,
        instructions: fields.text("instructions")?,
        gaps_instructions: fields.text("gaps_instructions")?,
        agents: fields.each("agents", AGENTS_MAX, agent)?,
        synthesis: fields.part("synthesis", synthesis)?,
        validation: fields.part("validation", validation)?,
    };
    for (at, agent) in lineup.agents.iter().enumerate() {
        if lineup.agents[..at].iter().any(|other| other.name == agent.name) {
            let message = format!("`{}` is there twice; give one another name", agent.name);
            return Err(fields.error_in("agents", at, message));
        }
    }
    Ok(lineup)
}

fn phases(file: &File<'_>, node: &Node) -> Result<Phases, LineupError> {
    let fields = Fields::new(file, node, "`phases`", &["quick", "deep"])?;
    Ok(Phases { quick: read_phases(&fields, "quick")?, deep: read_phases(&fields, "deep")? })
}

/// Reads a list of phases, which must be in the order in which they run.
fn read_phases(fields: &Fields<'_>, key: &str) -> Result<Vec<Phase>, LineupError> {
    let phases = fields.words(key, PHASES)?;
    if phases.is_sorted_by(|a, b| a < b) {
        return Ok(phases);
    }
    let order: Vec<&str> = PHASES.iter().map(|(word, _)| *word).collect();
    let message = format!("phases come once each, and in this order: {}", order.join(", "));
    Err(fields.error_at(key, message))
}

fn agent(file: &File<'_>, node: &Node) -> Result<Agent, LineupError> {
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
    let fields = Fields::new(file, node, "an agent", KNOWN)?;
    let agent = Agent {
        name: fields.required("name", "such as `licence-agent`")?,
        category: fields.required("category", "the key of what it finds, such as `licences`")?,
        title: fields.required("title", "the name of its category, such as `Licences`")?,
        instructions: fields.required("instructions", "what it looks for")?,
        thorough: fields.word("thorough", TIERS)?,
        gaps: fields.word("gaps", TIERS)?,
        quick: fields.word("quick", TIERS)?,
        validator: fields
            .word("validator", TIERS)?
            .ok_or_else(|| fields.missing("validator", "`strong` or `fast`"))?,
        receives: fields.words("receives", RECEIVES)?,
        false_positives: fields.texts("false_positives")?,
        details: fields.each("details", ENTRIES_MAX, detail)?,
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

fn detail(file: &File<'_>, node: &Node) -> Result<Detail, LineupError> {
    let fields = Fields::new(file, node, "a detail", &["name", "ask"])?;
    let detail = Detail {
        name: fields.required("name", "its key, such as `attack_vector`")?,
        ask: fields.required("ask", "what belongs there")?,
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

fn synthesis(file: &File<'_>, node: &Node) -> Result<Synthesis, LineupError> {
    const KNOWN: &[&str] = &["agent", "quick", "deep", "instructions", "pairs", "skill_questions"];
    let fields = Fields::new(file, node, "`synthesis`", KNOWN)?;
    let synthesis = Synthesis {
        agent: fields.text("agent")?,
        quick: fields.word("quick", TIERS)?,
        deep: fields.word("deep", TIERS)?,
        instructions: fields.text("instructions")?,
        pairs: fields.each("pairs", PAIRS_MAX, pair)?,
        skill_questions: fields.each("skill_questions", ENTRIES_MAX, skill_question)?,
    };
    for (at, pair) in synthesis.pairs.iter().enumerate() {
        if synthesis.pairs[..at].iter().any(|other| other.is_about(&pair.categories)) {
            let [a, b] = &pair.categories;
            let message = format!(
                "`{a}` and `{b}` are a pair already; put both depths and one question there"
            );
            return Err(fields.error_in("pairs", at, message));
        }
    }
    Ok(synthesis)
}

fn pair(file: &File<'_>, node: &Node) -> Result<Pair, LineupError> {
    let fields = Fields::new(file, node, "a pair", &["categories", "question", "depths"])?;
    let categories = match <[String; 2]>::try_from(fields.texts("categories")?) {
        Ok([a, b]) if a != b => [a, b],
        _ => {
            let message =
                "a pair is of two different categories; write `categories: [bugs, security]`";
            return Err(fields.error_at("categories", message));
        }
    };
    let question = fields.required("question", "what to ask of findings of both")?;
    let depths = fields.words("depths", DEPTHS)?;
    if depths.is_empty() {
        return Err(fields.missing("depths", "`[quick]`, `[deep]` or both"));
    }
    Ok(Pair { categories, question, depths })
}

fn skill_question(file: &File<'_>, node: &Node) -> Result<SkillQuestion, LineupError> {
    let fields = Fields::new(file, node, "a question of a skill", &["skill", "question"])?;
    Ok(SkillQuestion {
        skill: fields.required("skill", "the name of the skill")?,
        question: fields.required("question", "what is asked when it takes part")?,
    })
}

fn validation(file: &File<'_>, node: &Node) -> Result<ValidationRules, LineupError> {
    const KNOWN: &[&str] = &["instructions", "insights", "quick_from", "false_positives"];
    let fields = Fields::new(file, node, "`validation`", KNOWN)?;
    Ok(ValidationRules {
        instructions: fields.text("instructions")?,
        insights: fields.word("insights", TIERS)?,
        quick_from: fields.word("quick_from", SEVERITIES)?,
        false_positives: fields.texts("false_positives")?,
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
struct Fields<'a> {
    file: &'a File<'a>,
    mapping: &'a Mapping,
    span: Span,
    /// A description of the mapping for messages, such as "an agent".
    what: &'static str,
}

impl<'a> Fields<'a> {
    fn new(
        file: &'a File<'a>,
        node: &'a Node,
        what: &'static str,
        known: &[&str],
    ) -> Result<Self, LineupError> {
        let Some(mapping) = node.as_mapping() else {
            let message = format!(
                "{what} is a mapping of fields, and this is {}; its fields are {}",
                node.shape(),
                known.join(", ")
            );
            return Err(file.error(node.span, message));
        };
        for entry in &mapping.entries {
            if !known.contains(&entry.key.as_str()) {
                let message = unknown(&entry.key, &format!("field of {what}"), known);
                return Err(file.error(entry.key_span, message));
            }
        }
        Ok(Fields { file, mapping, span: node.span, what })
    }

    /// Returns the value of a key; `None` if it is absent or null.
    fn node(&self, key: &str) -> Option<&'a Node> {
        self.mapping.get(key).filter(|node| !node.is_null())
    }

    fn error_at(&self, key: &str, message: impl Into<String>) -> LineupError {
        let entry = self.mapping.entries.iter().find(|entry| entry.key == key);
        self.file.error(entry.map_or(self.span, |entry| entry.key_span), message)
    }

    /// An error at an entry of a list.
    fn error_in(&self, key: &str, at: usize, message: String) -> LineupError {
        let items = self.mapping.get(key).and_then(Node::as_sequence).unwrap_or_default();
        self.file.error(items.get(at).map_or(self.span, |item| item.span), message)
    }

    fn missing(&self, key: &str, what: &str) -> LineupError {
        self.error_at(key, format!("{} needs `{key}`: {what}", self.what))
    }

    /// Reads a text that must not be empty.
    fn required(&self, key: &str, what: &str) -> Result<String, LineupError> {
        match self.text(key)? {
            text if text.is_empty() => Err(self.missing(key, what)),
            text => Ok(text),
        }
    }

    /// Reads a text; empty if the key is absent.
    fn text(&self, key: &str) -> Result<String, LineupError> {
        self.node(key).map_or(Ok(String::new()), |node| self.text_of(node, key))
    }

    fn text_of(&self, node: &Node, key: &str) -> Result<String, LineupError> {
        let Some(text) = node.as_str() else {
            let message =
                format!("`{key}` is a text, and this is {}; write it after `|`", node.shape());
            return Err(self.file.error(node.span, message));
        };
        match text.chars().count() {
            count if count > TEXT_CHARS_MAX => {
                let message = format!(
                    "this text has {count} characters, and {TEXT_CHARS_MAX} is the limit; put what a reviewer needs only at times into a skill"
                );
                Err(self.file.error(node.span, message))
            }
            _ => Ok(text.trim().to_owned()),
        }
    }

    fn list(&self, key: &str, max: usize) -> Result<&'a [Node], LineupError> {
        let Some(node) = self.node(key) else { return Ok(&[]) };
        let Some(items) = node.as_sequence() else {
            let message = format!(
                "`{key}` is a list, and this is {}; begin each entry with `- `",
                node.shape()
            );
            return Err(self.file.error(node.span, message));
        };
        match items.get(max) {
            Some(beyond) => {
                let message = format!(
                    "`{key}` has {} entries, and {max} is the limit; take some out",
                    items.len()
                );
                Err(self.file.error(beyond.span, message))
            }
            None => Ok(items),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, LineupError> {
        self.list(key, ENTRIES_MAX)?.iter().map(|node| self.text_of(node, key)).collect()
    }

    /// Reads a list of mappings.
    fn each<T>(
        &self,
        key: &str,
        max: usize,
        read: impl Fn(&File<'_>, &Node) -> Result<T, LineupError>,
    ) -> Result<Vec<T>, LineupError> {
        self.list(key, max)?.iter().map(|node| read(self.file, node)).collect()
    }

    /// Reads a nested mapping; its default if the key is absent.
    fn part<T: Default>(
        &self,
        key: &str,
        read: impl Fn(&File<'_>, &Node) -> Result<T, LineupError>,
    ) -> Result<T, LineupError> {
        self.node(key).map_or_else(|| Ok(T::default()), |node| read(self.file, node))
    }

    fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, LineupError> {
        self.node(key).map(|node| self.word_of(node, key, words)).transpose()
    }

    fn words<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Vec<T>, LineupError> {
        let items = self.list(key, ENTRIES_MAX)?;
        items.iter().map(|node| self.word_of(node, key, words)).collect()
    }

    fn word_of<T: Copy>(
        &self,
        node: &Node,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<T, LineupError> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let Some(text) = node.as_str() else {
            let message = format!(
                "`{key}` is a word, and this is {}; use {}",
                node.shape(),
                known.join(", ")
            );
            return Err(self.file.error(node.span, message));
        };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())) {
            Some((_, value)) => Ok(*value),
            None => {
                let message = unknown(text, &format!("word for `{key}`"), &known);
                Err(self.file.error(node.span, message))
            }
        }
    }
}

fn unknown(given: &str, what: &str, known: &[&str]) -> String {
    let given = yaml::shorten(given);
    match nearest(&given, known.iter().copied()) {
        Some(near) => format!("`{given}` is no {what}; is `{near}` meant?"),
        None => format!("`{given}` is no {what}; known are {}", known.join(", ")),
    }
}
