//! Matches regular expressions from untrusted skills against the task.
//!
//! They run in linear time, within limits, and only on the part of a task that is read. A pattern is compiled
//! when a task first contains one of its required literals, so that thousands of patterns cost little.
//! Patterns without a literal are limited in number, count as weak evidence and are tried on every task.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::Ast;
use regex_syntax::ast::parse::Parser;
use regex_syntax::hir::translate::Translator;
use repertoire_skill::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};

use super::case_folding::fold_case;
use super::literals;
use super::phrases::build_automaton;
use crate::document::SkillDocument;
use crate::evidence::StageEvidence;
use crate::limits::{
    MATCHED_CHARS_MAX, PATTERN_CLASSES_MAX, PATTERN_DFA_BYTES_MAX, PATTERN_STEPS_MAX,
    PATTERNS_EVERYWHERE_MAX, PATTERNS_EVERYWHERE_PER_SKILL_MAX, PATTERNS_PER_SKILL_MAX,
    TASK_BYTES_MAX, TASK_PATTERN_STEPS_MAX,
};
use crate::selection::SelectionReason;
use crate::task::Task;

/// A pattern with a literal states precisely what the skill is for.
const STRENGTH: f32 = 0.9;
/// The strength of a pattern without a literal, which may match nearly anything.
const WEAK: f32 = 0.4;
/// Meaningless texts: a pattern without a literal that matches one of them is rejected.
const PROBES: [&str; 4] =
    ["a", "hello world", "1", "please have a look at this and tell me what you think of it"];

/// The patterns of all skills, with an automaton that finds those that may match.
#[derive(Debug)]
pub(crate) struct PatternTriggers {
    patterns: Vec<TriggerPattern>,
    /// Finds the literals.
    texts: Option<AhoCorasick>,
    /// For each literal in `texts`, the indexes of the patterns that require it.
    called: Vec<Vec<usize>>,
    /// The indexes of the patterns without a literal.
    everywhere: Vec<usize>,
    /// Problems found when the patterns were added.
    problems: Vec<PatternProblem>,
    /// All problems, including patterns whose compiled size exceeds the limit.
    all_problems: OnceLock<Vec<PatternProblem>>,
}

/// A pattern with the skills that declare it.
#[derive(Debug)]
struct TriggerPattern {
    written: String,
    /// The index of the skill, and the position of the pattern in its list.
    owners: Vec<(usize, usize)>,
    /// The number of characters, with repetitions written out.
    size: usize,
    /// True if the pattern has no literal.
    is_weak: bool,
    /// True if the compiled size may exceed the limit.
    is_large: bool,
    /// `None` inside if the compiled size exceeds the limit.
    regex: OnceLock<Option<Regex>>,
}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternProblem {
    /// The index of the skill in the catalog.
    pub(crate) skill: usize,
    pub(crate) pattern: String,
    pub(crate) message: String,
}

impl PatternTriggers {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> PatternTriggers {
        let mut builder = PatternBuilder::default();
        for (skill, document) in documents.iter().enumerate() {
            for (place, written) in document.triggers.patterns.iter().enumerate() {
                if let Err(message) = builder.add_pattern(written, (skill, place)) {
                    let pattern = written.clone();
                    builder.problems.push(PatternProblem { skill, pattern, message });
                }
            }
        }
        builder.build()
    }

    /// Returns the skills with a pattern that matches the task, in catalog order, each with the first of its
    /// strongest patterns. Further patterns add nothing, because they may all say the same.
    pub(crate) fn find(&self, task: &Task) -> Vec<StageEvidence> {
        if self.patterns.is_empty() {
            return Vec::new();
        }
        let text = &task.text[..task.text.floor_char_boundary(TASK_BYTES_MAX)];
        let mut hits: Vec<(usize, bool, usize, &str, &str)> = Vec::new();
        let mut steps_left = TASK_PATTERN_STEPS_MAX;
        for at in self.find_candidates(text) {
            let pattern = &self.patterns[at];
            let Some(left) = steps_left.checked_sub(pattern.count_steps(text)) else { break };
            steps_left = left;
            if let Some(matched) = pattern.find_match(text) {
                let TriggerPattern { written, is_weak, owners, .. } = pattern;
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
            StageEvidence {
                skill,
                strength: if is_weak { WEAK } else { STRENGTH },
                reason: SelectionReason::Pattern {
                    pattern: pattern.to_owned(),
                    matched: shorten_match(matched),
                },
            }
        });
        evidence.collect()
    }

    /// The patterns that cannot be used. Large ones are compiled to find out.
    pub(crate) fn problems(&self) -> &[PatternProblem] {
        self.all_problems.get_or_init(|| {
            let mut problems = self.problems.clone();
            let large = self.patterns.iter().filter(|pattern| pattern.is_large);
            for pattern in large.filter(|pattern| pattern.compiled_regex().is_none()) {
                problems.extend(pattern.owners.iter().map(|(skill, _)| PatternProblem {
                    skill: *skill,
                    pattern: pattern.written.clone(),
                    message: too_big_message(),
                }));
            }
            problems
        })
    }

    /// Returns the indexes of the patterns that may match a text, smallest first.
    fn find_candidates(&self, text: &str) -> Vec<usize> {
        let mut candidates = self.everywhere.clone();
        if let Some(texts) = &self.texts {
            let mut is_found = vec![false; self.called.len()];
            for found in texts.find_overlapping_iter(&fold_case(text)) {
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

impl TriggerPattern {
    fn compiled_regex(&self) -> Option<&Regex> {
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

    /// Returns the part of a text that the pattern may read.
    fn readable_part<'t>(&self, text: &'t str) -> &'t str {
        &text[..text.floor_char_boundary(PATTERN_STEPS_MAX / self.size)]
    }

    /// Returns the maximum number of steps that matching a text takes.
    fn count_steps(&self, text: &str) -> usize {
        self.size.saturating_mul(self.readable_part(text).len())
    }

    fn find_match<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.compiled_regex()?.find(self.readable_part(text)).map(|found| found.as_str())
    }

    /// Rejects a pattern without a literal that matches meaningless text.
    fn check_specific(&self) -> Result<(), String> {
        let regex = self.compiled_regex().ok_or_else(too_big_message)?;
        match PROBES.iter().find(|probe| regex.is_match(probe)) {
            Some(probe) => Err(format!(
                "the pattern matches everything, for it has no fixed text and matches \"{probe}\""
            )),
            None => Ok(()),
        }
    }
}

/// Collects patterns without duplicates.
#[derive(Default)]
struct PatternBuilder<'a> {
    patterns: Vec<TriggerPattern>,
    known: HashMap<&'a str, usize>,
    texts: Vec<String>,
    places: HashMap<String, usize>,
    called: Vec<Vec<usize>>,
    everywhere: Vec<usize>,
    /// The last skill with patterns that have no literal, and the number of these.
    tried: (usize, usize),
    problems: Vec<PatternProblem>,
}

impl<'a> PatternBuilder<'a> {
    fn add_pattern(&mut self, written: &'a str, owner: (usize, usize)) -> Result<(), String> {
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
        let ast = parse_pattern(written)?;
        let at = self.patterns.len();
        let texts = literals::required_literals(&ast);
        let pattern = TriggerPattern {
            written: written.to_owned(),
            owners: vec![owner],
            size: literals::count_positions(&ast).max(1),
            is_weak: texts.is_none(),
            is_large: literals::compiled_bytes_max(&ast) > PATTERN_COMPILED_BYTES_MAX,
            regex: OnceLock::new(),
        };
        match texts {
            Some(texts) => self.add_literals(texts, at),
            None => {
                self.admit_everywhere(owner.0)?;
                pattern.check_specific()?;
                self.everywhere.push(at);
            }
        }
        self.known.insert(written, at);
        self.patterns.push(pattern);
        Ok(())
    }

    /// Checks whether a skill may have one more pattern without a literal. Patterns that are rejected later
    /// count as well, because each is compiled.
    fn admit_everywhere(&mut self, skill: usize) -> Result<(), String> {
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

    fn add_literals(&mut self, texts: Vec<String>, pattern: usize) {
        for text in texts {
            let place = *self.places.entry(text).or_insert_with_key(|text| {
                self.texts.push(text.clone());
                self.called.push(Vec::new());
                self.called.len() - 1
            });
            self.called[place].push(pattern);
        }
    }

    fn build(self) -> PatternTriggers {
        let PatternBuilder { mut everywhere, mut patterns, called, problems, texts, .. } = self;
        let automaton = build_automaton(&texts);
        if automaton.is_none() {
            everywhere = (0..patterns.len()).collect();
        }
        patterns.shrink_to_fit();
        let all_problems = OnceLock::new();
        PatternTriggers { patterns, texts: automaton, called, everywhere, problems, all_problems }
    }
}

fn too_big_message() -> String {
    format!(
        "the pattern takes more than {PATTERN_COMPILED_BYTES_MAX} bytes when compiled, the limit"
    )
}

/// Parses a pattern, and rejects those that exceed a limit or match the empty text.
fn parse_pattern(pattern: &str) -> Result<Ast, String> {
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
    let parsed = Parser::new().parse(pattern);
    let ast = parsed.map_err(|error| does_not_compile(&error.kind().to_string()))?;
    // The parser does not check class names, nor which classes `(?-u)` forbids.
    if classes > 0 || has_flag_u(pattern) {
        let translated = Translator::new().translate(pattern, &ast);
        translated.map_err(|error| does_not_compile(&error.kind().to_string()))?;
    }
    if literals::chars_min(&ast) == 0 {
        return Err("the pattern matches everything, for it matches the empty text".to_owned());
    }
    Ok(ast)
}

fn does_not_compile(why: &str) -> String {
    format!("the pattern does not compile: {why}")
}

/// Returns true if a pattern may switch Unicode off.
fn has_flag_u(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        rest.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-').any(|c| c == 'u')
    })
}

fn shorten_match(matched: &str) -> String {
    match matched.char_indices().nth(MATCHED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &matched[..end]),
        None => matched.to_owned(),
    }
}

#[cfg(test)]
#[path = "patterns_tests.rs"]
mod tests;
