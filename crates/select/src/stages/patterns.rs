//! Patterns: regular expressions of strangers over the task.
//!
//! They run in linear time, within limits, and only on what is read of a task. A pattern is compiled when a
//! task first has one of its fixed texts, so that thousands of them cost little; those without any are few,
//! and tried on every task.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::Ast;
use regex_syntax::ast::parse::Parser;
use regex_syntax::hir::translate::Translator;
use repertoire_skill::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};

use super::fold::fold;
use super::literals;
use super::phrases::automaton;
use crate::document::Document;
use crate::evidence::{Evidence, combine};
use crate::limits::{
    MATCHED_CHARS_MAX, PATTERN_CLASSES_MAX, PATTERN_DFA_BYTES_MAX, PATTERN_STEPS_MAX,
    PATTERNS_EVERYWHERE_MAX, PATTERNS_PER_SKILL_MAX, TASK_BYTES_MAX,
};
use crate::selection::Reason;
use crate::task::Task;

/// Somebody took the trouble to say exactly what the skill is for.
const STRENGTH: f32 = 0.9;

/// Patterns, and the texts that call for them.
#[derive(Debug)]
pub(crate) struct Patterns {
    patterns: Vec<Pattern>,
    /// Finds the fixed texts.
    texts: Option<AhoCorasick>,
    /// Places of the patterns that have a text, by its place in `texts`.
    called: Vec<Vec<usize>>,
    /// Places of the patterns without a fixed text.
    everywhere: Vec<usize>,
    problems: Vec<PatternProblem>,
}

/// A pattern with the skills that have it.
#[derive(Debug)]
struct Pattern {
    written: String,
    /// The skill, and the pattern's place in its list.
    owners: Vec<(usize, usize)>,
    /// How much of a text it may read.
    bytes_max: usize,
    /// `None` if it turns out too big.
    regex: OnceLock<Option<Regex>>,
}

/// A pattern that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternProblem {
    /// The skill's place in the catalog.
    pub(crate) skill: usize,
    pub(crate) pattern: String,
    pub(crate) message: String,
}

impl Patterns {
    pub(crate) fn new(documents: &[Document<'_>]) -> Patterns {
        let mut builder = Builder::default();
        for (skill, document) in documents.iter().enumerate() {
            for (place, written) in document.triggers.patterns.iter().enumerate() {
                if let Err(message) = builder.add(written, (skill, place)) {
                    let pattern = written.clone();
                    builder.problems.push(PatternProblem { skill, pattern, message });
                }
            }
        }
        builder.build()
    }

    /// The skills with a pattern that matches the task, in the order of the catalog. The reason is the first
    /// of a skill's patterns that matches; others add to its strength.
    pub(crate) fn find(&self, task: &Task) -> Vec<Evidence> {
        if self.patterns.is_empty() {
            return Vec::new();
        }
        let text = &task.text[..task.text.floor_char_boundary(TASK_BYTES_MAX)];
        let mut hits: Vec<(usize, usize, &str, &str)> = Vec::new();
        for at in self.candidates(text) {
            let pattern = &self.patterns[at];
            if let Some(matched) = pattern.matched(text) {
                let owners = pattern.owners.iter();
                hits.extend(
                    owners
                        .map(|(skill, place)| (*skill, *place, pattern.written.as_str(), matched)),
                );
            }
        }
        hits.sort_unstable();
        let evidence = hits.chunk_by(|a, b| a.0 == b.0).map(|hits| {
            let (skill, _, pattern, matched) = hits[0];
            Evidence {
                skill,
                strength: combine(hits.iter().map(|_| STRENGTH)),
                reason: Reason::Pattern { pattern: pattern.to_owned(), matched: cut(matched) },
            }
        });
        evidence.collect()
    }

    /// Patterns that are not used, and why.
    pub(crate) fn problems(&self) -> &[PatternProblem] {
        &self.problems
    }

    /// Places of the patterns that may match a text, in order.
    fn candidates(&self, text: &str) -> Vec<usize> {
        let mut candidates = self.everywhere.clone();
        if let Some(texts) = &self.texts {
            let mut is_found = vec![false; self.called.len()];
            for found in texts.find_overlapping_iter(&fold(text)) {
                let at = found.pattern().as_usize();
                if !std::mem::replace(&mut is_found[at], true) {
                    candidates.extend_from_slice(&self.called[at]);
                }
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

impl Pattern {
    fn matched<'t>(&self, text: &'t str) -> Option<&'t str> {
        let regex = self.regex.get_or_init(|| {
            RegexBuilder::new(&self.written)
                .case_insensitive(true)
                .size_limit(PATTERN_COMPILED_BYTES_MAX)
                .dfa_size_limit(PATTERN_DFA_BYTES_MAX)
                .build()
                .ok()
        });
        let text = &text[..text.floor_char_boundary(self.bytes_max)];
        regex.as_ref()?.find(text).map(|found| found.as_str())
    }
}

/// Collects patterns, each once.
#[derive(Default)]
struct Builder<'a> {
    patterns: Vec<Pattern>,
    known: HashMap<&'a str, usize>,
    texts: Vec<String>,
    places: HashMap<String, usize>,
    called: Vec<Vec<usize>>,
    everywhere: Vec<usize>,
    problems: Vec<PatternProblem>,
}

impl<'a> Builder<'a> {
    fn add(&mut self, written: &'a str, owner: (usize, usize)) -> Result<(), String> {
        if owner.1 >= PATTERNS_PER_SKILL_MAX {
            return Err(format!(
                "the skill has more than {PATTERNS_PER_SKILL_MAX} patterns, the limit"
            ));
        }
        if let Some(at) = self.known.get(written) {
            let owners = &mut self.patterns[*at].owners;
            if owners.last().is_none_or(|last| last.0 != owner.0) {
                owners.push(owner);
            }
            return Ok(());
        }
        let ast = read(written)?;
        let at = self.patterns.len();
        match literals::required(&ast) {
            Some(texts) => self.call(texts, at),
            None if self.everywhere.len() < PATTERNS_EVERYWHERE_MAX => self.everywhere.push(at),
            None => {
                return Err(format!(
                    "the pattern has no fixed text, and {PATTERNS_EVERYWHERE_MAX} such patterns, the \
                     limit, come before it"
                ));
            }
        }
        self.known.insert(written, at);
        let (written, owners) = (written.to_owned(), vec![owner]);
        let bytes_max = PATTERN_STEPS_MAX / literals::positions(&ast).max(1);
        self.patterns.push(Pattern { written, owners, bytes_max, regex: OnceLock::new() });
        Ok(())
    }

    fn call(&mut self, texts: Vec<String>, pattern: usize) {
        for text in texts {
            let place = *self.places.entry(text).or_insert_with_key(|text| {
                self.texts.push(text.clone());
                self.called.push(Vec::new());
                self.called.len() - 1
            });
            self.called[place].push(pattern);
        }
    }

    fn build(self) -> Patterns {
        let Builder { mut everywhere, mut patterns, called, problems, texts, .. } = self;
        let automaton = automaton(&texts);
        if automaton.is_none() {
            everywhere = (0..patterns.len()).collect();
        }
        patterns.shrink_to_fit();
        Patterns { patterns, texts: automaton, called, everywhere, problems }
    }
}

/// The syntax of a pattern that can be used.
fn read(pattern: &str) -> Result<Ast, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!(
            "the pattern has {} bytes; the limit is {PATTERN_BYTES_MAX}",
            pattern.len()
        ));
    }
    let classes = pattern.matches("\\p").count() + pattern.matches("\\P").count();
    if classes > PATTERN_CLASSES_MAX {
        return Err(format!(
            "the pattern has {classes} Unicode classes; the limit is {PATTERN_CLASSES_MAX}"
        ));
    }
    let wrong = |why: String| format!("the pattern does not compile: {why}");
    let ast = Parser::new().parse(pattern).map_err(|error| wrong(error.kind().to_string()))?;
    // Names of classes, and what `(?-u)` may not do, are not checked by the parser.
    if classes > 0 || has_flag_u(pattern) {
        let translated = Translator::new().translate(pattern, &ast);
        translated.map_err(|error| wrong(error.kind().to_string()))?;
    }
    if literals::chars_min(&ast) == 0 {
        return Err("the pattern matches everything, for it matches the empty text".to_owned());
    }
    Ok(ast)
}

/// Whether a pattern may switch Unicode off.
fn has_flag_u(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        rest.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-').any(|c| c == 'u')
    })
}

fn cut(matched: &str) -> String {
    match matched.char_indices().nth(MATCHED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &matched[..end]),
        None => matched.to_owned(),
    }
}

#[cfg(test)]
#[path = "patterns_tests.rs"]
mod tests;
