//! Patterns: regular expressions of strangers over the task.
//!
//! They run in linear time, within limits, and only on what is read of a task. A pattern is compiled when a
//! task first has one of its fixed texts, so that thousands of them cost little; those without any are few,
//! weak, and tried on every task.

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
use crate::evidence::Evidence;
use crate::limits::{
    MATCHED_CHARS_MAX, PATTERN_CLASSES_MAX, PATTERN_DFA_BYTES_MAX, PATTERN_STEPS_MAX,
    PATTERNS_EVERYWHERE_MAX, PATTERNS_EVERYWHERE_PER_SKILL_MAX, PATTERNS_PER_SKILL_MAX,
    TASK_BYTES_MAX, TASK_PATTERN_STEPS_MAX,
};
use crate::selection::Reason;
use crate::task::Task;

/// Somebody took the trouble to say exactly what the skill is for.
const STRENGTH: f32 = 0.9;
/// A pattern without a fixed text may match anything.
const WEAK: f32 = 0.4;
/// Texts that say nothing: a pattern without a fixed text that matches one of them is about nothing.
const PROBES: [&str; 4] =
    ["a", "hello world", "1", "please have a look at this and tell me what you think of it"];

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
    /// Those that were found at once.
    problems: Vec<PatternProblem>,
    /// These, and patterns that turn out too big.
    all_problems: OnceLock<Vec<PatternProblem>>,
}

/// A pattern with the skills that have it.
#[derive(Debug)]
struct Pattern {
    written: String,
    /// The skill, and the pattern's place in its list.
    owners: Vec<(usize, usize)>,
    /// Its characters, repetitions written out.
    size: usize,
    /// Whether it has no fixed text.
    is_weak: bool,
    /// Whether it may turn out too big.
    is_large: bool,
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

    /// The skills with a pattern that matches the task, in the order of the catalog, each by the first of its
    /// strongest patterns that match. Others add nothing: they may all say the same.
    pub(crate) fn find(&self, task: &Task) -> Vec<Evidence> {
        if self.patterns.is_empty() {
            return Vec::new();
        }
        let text = &task.text[..task.text.floor_char_boundary(TASK_BYTES_MAX)];
        let mut hits: Vec<(usize, bool, usize, &str, &str)> = Vec::new();
        let mut steps_left = TASK_PATTERN_STEPS_MAX;
        for at in self.candidates(text) {
            let pattern = &self.patterns[at];
            let Some(left) = steps_left.checked_sub(pattern.steps(text)) else { break };
            steps_left = left;
            if let Some(matched) = pattern.matched(text) {
                let Pattern { written, is_weak, owners, .. } = pattern;
                hits.extend(
                    owners
                        .iter()
                        .map(|(skill, place)| (*skill, *is_weak, *place, &written[..], matched)),
                );
            }
        }
        hits.sort_unstable();
        let evidence = hits.chunk_by(|a, b| a.0 == b.0).map(|hits| {
            let (skill, is_weak, _, pattern, matched) = hits[0];
            Evidence {
                skill,
                strength: if is_weak { WEAK } else { STRENGTH },
                reason: Reason::Pattern { pattern: pattern.to_owned(), matched: cut(matched) },
            }
        });
        evidence.collect()
    }

    /// Patterns that are not used, and why. Large ones are compiled for it.
    pub(crate) fn problems(&self) -> &[PatternProblem] {
        self.all_problems.get_or_init(|| {
            let mut problems = self.problems.clone();
            let large = self.patterns.iter().filter(|pattern| pattern.is_large);
            for pattern in large.filter(|pattern| pattern.regex().is_none()) {
                problems.extend(pattern.owners.iter().map(|(skill, _)| PatternProblem {
                    skill: *skill,
                    pattern: pattern.written.clone(),
                    message: too_big(),
                }));
            }
            problems
        })
    }

    /// Places of the patterns that may match a text, small ones first.
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
        candidates.sort_unstable_by_key(|at| (self.patterns[*at].size, *at));
        candidates.dedup();
        candidates
    }
}

impl Pattern {
    fn regex(&self) -> Option<&Regex> {
        let regex = self.regex.get_or_init(|| {
            RegexBuilder::new(&self.written)
                .case_insensitive(true)
                .size_limit(PATTERN_COMPILED_BYTES_MAX)
                .dfa_size_limit(PATTERN_DFA_BYTES_MAX)
                .build()
                .ok()
        });
        regex.as_ref()
    }

    /// What it may read of a text.
    fn read<'t>(&self, text: &'t str) -> &'t str {
        &text[..text.floor_char_boundary(PATTERN_STEPS_MAX / self.size)]
    }

    /// How much work a text is, at most.
    fn steps(&self, text: &str) -> usize {
        self.size.saturating_mul(self.read(text).len())
    }

    fn matched<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex()?.find(self.read(text)).map(|found| found.as_str())
    }

    /// A pattern without a fixed text must at least be about something.
    fn probe(&self) -> Result<(), String> {
        let regex = self.regex().ok_or_else(too_big)?;
        match PROBES.iter().find(|probe| regex.is_match(probe)) {
            Some(probe) => Err(format!(
                "the pattern matches everything, for it has no fixed text and matches \"{probe}\""
            )),
            None => Ok(()),
        }
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
    /// The last skill that had patterns without a fixed text, and how many.
    tried: (usize, usize),
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
        let texts = literals::required(&ast);
        let pattern = Pattern {
            written: written.to_owned(),
            owners: vec![owner],
            size: literals::positions(&ast).max(1),
            is_weak: texts.is_none(),
            is_large: literals::compiled_bytes_max(&ast) > PATTERN_COMPILED_BYTES_MAX,
            regex: OnceLock::new(),
        };
        match texts {
            Some(texts) => self.call(texts, at),
            None => {
                self.admit(owner.0)?;
                pattern.probe()?;
                self.everywhere.push(at);
            }
        }
        self.known.insert(written, at);
        self.patterns.push(pattern);
        Ok(())
    }

    /// Whether a skill may have one more pattern without a fixed text. Those that are refused later count too,
    /// for each is compiled.
    fn admit(&mut self, skill: usize) -> Result<(), String> {
        if self.everywhere.len() >= PATTERNS_EVERYWHERE_MAX {
            return Err(format!(
                "the pattern has no fixed text, and {PATTERNS_EVERYWHERE_MAX} such patterns, the \
                 limit, come before it"
            ));
        }
        if self.tried.0 != skill {
            self.tried = (skill, 0);
        }
        if self.tried.1 >= PATTERNS_EVERYWHERE_PER_SKILL_MAX {
            return Err(format!(
                "the pattern has no fixed text, and {PATTERNS_EVERYWHERE_PER_SKILL_MAX} such patterns \
                 of the skill, the limit, come before it"
            ));
        }
        self.tried.1 += 1;
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
        let all_problems = OnceLock::new();
        Patterns { patterns, texts: automaton, called, everywhere, problems, all_problems }
    }
}

fn too_big() -> String {
    format!(
        "the pattern takes more than {PATTERN_COMPILED_BYTES_MAX} bytes when compiled, the limit"
    )
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
