//! Typed access to frontmatter: each reader accepts one shape, reports anything else, and goes on.

use repertoire_text::yaml::{ScalarKind, Value, YamlEntry, YamlMapping, YamlNode, shorten_text};
use repertoire_text::{Diagnostic, DiagnosticCode, Severity, Source, Span};
use semver::{Version, VersionReq};

use crate::codes;
use crate::limits::{DEPENDENCIES_MAX, NAME_BYTES_MAX, VERSION_BYTES_MAX};
use crate::name;
use crate::skill::{SkillDependency, SkillTriggers};

/// Removes invisible characters from the text of a field. The skill keeps its source, where lint reports
/// them.
fn remove_invisible(text: &str) -> String {
    let (text, _) = repertoire_text::invisible::removed(text);
    text.trim_start_matches('\u{feff}').to_owned()
}

/// A mapping that is being read, and the list that findings are added to.
pub(super) struct FrontmatterFields<'a> {
    source: &'a Source,
    mapping: &'a YamlMapping,
    out: &'a mut Vec<Diagnostic>,
}

impl<'a> FrontmatterFields<'a> {
    pub(super) fn new(
        source: &'a Source,
        mapping: &'a YamlMapping,
        out: &'a mut Vec<Diagnostic>,
    ) -> Self {
        FrontmatterFields { source, mapping, out }
    }

    fn find_present(&self, key: &str) -> Option<&'a YamlEntry> {
        let entry = self.mapping.entries.iter().find(|entry| entry.key == key)?;
        (!entry.value.is_null()).then_some(entry)
    }

    fn report(&mut self, code: &'static DiagnosticCode, span: Span, message: String, help: String) {
        self.out.push(Diagnostic::new(code, message).at(self.source, span).help(help));
    }

    fn report_wrong_shape(&mut self, key: &str, node: &YamlNode, expected: &str) {
        let message = format!("`{key}` is {}, but should be {expected}", node.shape_name());
        self.report(&codes::FIELD_TYPE, node.span, message, format!("write `{key}` as {expected}"));
    }

    /// Reads text; numbers and booleans are taken as they are written.
    pub(super) fn read_text(&mut self, key: &str) -> Option<String> {
        let entry = self.find_present(key)?;
        match entry.value.as_str() {
            Some(text) => Some(remove_invisible(text)),
            // A description that is not text is reported as missing, which is more helpful.
            None if key == "description" => None,
            None => {
                self.report_wrong_shape(key, &entry.value, "text");
                None
            }
        }
    }

    /// Reads text, or a list that was meant as text: `argument-hint: [file]`.
    pub(super) fn read_loose_text(&mut self, key: &str) -> Option<String> {
        let entry = self.find_present(key)?;
        match &entry.value.value {
            Value::Scalar(scalar) => Some(remove_invisible(&scalar.text)),
            Value::Sequence(..) | Value::Mapping(_) => {
                Some(remove_invisible(entry.value.span.slice(self.source.text()).trim()))
            }
        }
    }

    /// Reads a list of texts; a single text is split at commas.
    pub(super) fn read_words(&mut self, key: &str) -> Vec<String> {
        let Some(entry) = self.find_present(key) else { return Vec::new() };
        match &entry.value.value {
            Value::Scalar(scalar) => split_list(&remove_invisible(&scalar.text)),
            Value::Sequence(items, _) => self.read_items(key, items),
            Value::Mapping(_) => {
                self.report_wrong_shape(key, &entry.value, "a list");
                Vec::new()
            }
        }
    }

    fn read_items(&mut self, key: &str, items: &[YamlNode]) -> Vec<String> {
        let mut out = Vec::with_capacity(items.len());
        let mut wrong = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) if !text.trim().is_empty() => out.push(remove_invisible(text.trim())),
                Some(_) => {}
                None => wrong.push(item),
            }
        }
        if let Some(first) = wrong.first() {
            let (shape, more) = (first.shape_name(), format_more(wrong.len()));
            let message = format!("`{key}[]` is {shape}, but should be text{more}");
            let help = format!("write `{key}[]` as text");
            self.report(&codes::FIELD_TYPE, first.span, message, help);
        }
        out
    }

    /// Reads tools: a list, or one text separated by spaces or commas (but not inside brackets).
    pub(super) fn read_tools(&mut self, key: &str) -> Vec<String> {
        let Some(entry) = self.find_present(key) else { return Vec::new() };
        match &entry.value.value {
            Value::Scalar(scalar) => split_tools(&scalar.text),
            _ => self.read_words(key),
        }
    }

    /// Reads a boolean in any of the spellings that Claude Code accepts.
    pub(super) fn read_flag(&mut self, key: &str) -> Option<bool> {
        let entry = self.find_present(key)?;
        let word = entry.value.as_str().map(str::to_ascii_lowercase);
        match word.as_deref() {
            Some("true" | "yes" | "on" | "1") => Some(true),
            Some("false" | "no" | "off" | "0") => Some(false),
            _ => {
                self.report_wrong_shape(key, &entry.value, "`true` or `false`");
                None
            }
        }
    }

    /// Reads a whole number that is not negative.
    pub(super) fn read_number<N: TryFrom<i64>>(&mut self, key: &str) -> Option<N> {
        let entry = self.find_present(key)?;
        let number = match &entry.value.value {
            Value::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Int(number) => Some(number),
                ScalarKind::Text(text) => text.trim().parse().ok(),
                _ => None,
            },
            _ => None,
        };
        let found = number.and_then(|number| N::try_from(number).ok());
        if found.is_none() {
            self.report_wrong_shape(key, &entry.value, "a whole number from 0");
        }
        found
    }

    /// Reads one of a few words.
    pub(super) fn read_choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let word = self.read_text(key)?;
        let found = choices.iter().find(|(name, _)| *name == word.to_ascii_lowercase());
        if found.is_none() {
            let span = self.find_present(key)?.value.span;
            let list: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
            let message =
                format!("`{key}` is `{}`, which is not a known value", shorten_text(&word));
            self.report(&codes::FIELD_VALUE, span, message, format!("use {}", list.join(" or ")));
        }
        found.map(|(_, value)| *value)
    }

    /// Reads a semantic version; `1.0` is completed to `1.0.0` for comparisons.
    pub(super) fn read_version(&mut self, key: &str) -> Option<Version> {
        let text = self.read_text(key)?;
        let text = text.trim().trim_start_matches('v');
        if text.len() > VERSION_BYTES_MAX {
            return None;
        }
        let dots = text.split(['-', '+']).next().unwrap_or("").matches('.').count();
        let completed = match dots {
            0 => format!("{text}.0.0"),
            1 => format!("{text}.0"),
            _ => text.to_owned(),
        };
        Version::parse(&completed).ok()
    }

    /// Reads a list of `name` or `name@requirement`.
    pub(super) fn read_dependencies(&mut self, key: &str) -> Vec<SkillDependency> {
        let Some(entry) = self.find_present(key) else { return Vec::new() };
        let mut words = self.read_words(key);
        let code = &codes::DEPENDENCY_FORMAT;
        if words.len() > DEPENDENCIES_MAX {
            let message = format!(
                "the skill has {} dependencies; those after {DEPENDENCIES_MAX}, the limit, are left out",
                words.len()
            );
            self.report(code, entry.key_span, message, "Depend on fewer skills.".to_owned());
            words.truncate(DEPENDENCIES_MAX);
        }
        let (packages, words): (Vec<String>, Vec<String>) =
            words.into_iter().partition(|word| is_package(word));
        if let Some(first) = packages.first() {
            let more = format_more(packages.len());
            let message = format!("`{}` is a package, not a skill{more}", shorten_text(first));
            let found = Diagnostic::new(code, message).at(self.source, entry.value.span);
            let help = "name packages under `compatibility`";
            self.out.push(found.help(help).severity(Severity::Info));
        }
        let mut wrong = Vec::new();
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            match parse_dependency(&word) {
                Some(dependency) => out.push(dependency),
                None => wrong.push(word),
            }
        }
        if let Some(first) = wrong.first() {
            let message = format!(
                "`{}` is not a dependency{}",
                shorten_text(first),
                format_more(wrong.len())
            );
            self.report(code, entry.value.span, message, code.remedy.to_owned());
        }
        out
    }

    /// Reads triggers: a list of event names, or a mapping of the kinds of triggers.
    pub(super) fn read_triggers(&mut self, key: &str) -> SkillTriggers {
        let Some(entry) = self.find_present(key) else { return SkillTriggers::default() };
        match &entry.value.value {
            Value::Scalar(scalar) => self.triggers_from_list(entry, split_list(&scalar.text)),
            Value::Sequence(items, _) => {
                let words = self.read_items(key, items);
                self.triggers_from_list(entry, words)
            }
            Value::Mapping(mapping) => {
                let mut inner =
                    FrontmatterFields { source: self.source, mapping, out: &mut *self.out };
                let confidence = inner.read_confidence();
                SkillTriggers {
                    keywords: inner.read_words("keywords"),
                    // A comma may be part of an expression, so a single text is one pattern.
                    patterns: inner.read_whole_words("patterns"),
                    events: inner.read_words("events"),
                    paths: inner.read_words("paths"),
                    not: inner.read_words("not"),
                    confidence,
                }
            }
        }
    }

    fn read_whole_words(&mut self, key: &str) -> Vec<String> {
        match self.find_present(key).map(|entry| &entry.value.value) {
            Some(Value::Scalar(scalar)) => vec![scalar.text.clone()],
            _ => self.read_words(key),
        }
    }

    fn triggers_from_list(&mut self, entry: &YamlEntry, words: Vec<String>) -> SkillTriggers {
        let (keywords, events): (Vec<String>, Vec<String>) =
            words.into_iter().partition(|word| word.contains(char::is_whitespace));
        if let Some(phrase) = keywords.first() {
            let phrase = shorten_text(phrase);
            let message = format!("`{phrase}` is not the name of an event; it is read as a phrase");
            let code = &codes::TRIGGER_PHRASES;
            self.report(code, entry.key_span, message, code.remedy.to_owned());
        }
        SkillTriggers { keywords, events, ..SkillTriggers::default() }
    }

    fn read_confidence(&mut self) -> Option<f64> {
        let entry = self.find_present("confidence")?;
        let number = entry.value.as_str().and_then(|text| text.trim().parse::<f64>().ok());
        let found = number.filter(|number| (0.0..=1.0).contains(number));
        if found.is_none() {
            self.report_wrong_shape("triggers.confidence", &entry.value, "a number from 0 to 1");
        }
        found
    }
}

/// Formats the number of further items with the same problem.
fn format_more(count: usize) -> String {
    if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() }
}

fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Splits a list of tools. Brackets hold spaces and commas together: `Bash(git log:*) Read,Grep` is three
/// tools.
fn split_tools(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut depth = 0_usize;
    let mut word = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c.is_whitespace() || c == ',') {
            out.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        } else {
            word.push(c);
        }
    }
    out.extend((!word.is_empty()).then_some(word));
    out
}

/// Returns true for a package such as `numpy>=1.2`, `pkg[extra]` or `name @ git+https://…`, which real skills
/// list in this field as well.
fn is_package(word: &str) -> bool {
    let name = word.split('@').next().unwrap_or(word);
    name.contains(['<', '>', '=', '~', '!', '[']) || word.contains("://")
}

fn parse_dependency(word: &str) -> Option<SkillDependency> {
    let (given, requirement) = match word.split_once('@') {
        Some((given, requirement)) => (given, Some(VersionReq::parse(requirement.trim()).ok()?)),
        None => (word, None),
    };
    if given.len() > NAME_BYTES_MAX {
        return None;
    }
    Some(SkillDependency { name: parse_dependency_name(given.trim())?, requirement })
}

/// Normalises the name of a skill, or `plugin:name`, the id of a plugin's skill.
fn parse_dependency_name(given: &str) -> Option<String> {
    let halves: Vec<String> = given.splitn(2, ':').map(name::normalise_name).collect();
    halves.iter().all(|half| !half.is_empty()).then(|| halves.join(":"))
}
