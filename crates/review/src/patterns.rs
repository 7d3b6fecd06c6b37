//! Patterns of skills over a change: the lane that needs no model, and the proof of what agents claim.
//!
//! Expressions of strangers run in linear time and within limits. A pattern is compiled when a file first has one of its
//! fixed texts, so that hundreds of them cost little; those without any are run on every file.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use aho_corasick::AhoCorasick;
use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobSet;
use rayon::prelude::*;
use regex::{Regex, RegexBuilder};
use crate::extract::{Pattern, ReviewSkill, Severity};

use self::search::{FileText, Search};
use super::change::{Change, ChangedFile, LineRange};
use super::content::globs;
use crate::limits::{REVIEW_CLAIM_LINES_MAX, REVIEW_HITS_PER_FILE_MAX, REVIEW_PATTERN_BYTES_MAX, REVIEW_PATTERN_COMPILED_BYTES_MAX, REVIEW_PATTERN_DFA_BYTES_MAX, REVIEW_PATTERN_POSITIONS_MAX, REVIEW_PATTERNS_EVERYWHERE_MAX, REVIEW_PATTERNS_MAX};

mod false_positives;
mod literals;
mod search;

pub use self::false_positives::{names_file, rule_hit};

/// A skill whose patterns are used.
#[derive(Clone, Copy, Debug)]
pub struct PatternSource<'a> {
    /// The skill.
    pub skill: &'a ReviewSkill,
    /// The category that its findings are of.
    pub category: &'a str,
    /// Whether its patterns are believed.
    pub trusted: bool,
}

/// Patterns that can be run.
#[derive(Debug)]
pub struct PatternSet {
    patterns: Vec<Compiled>,
    /// Patterns that cannot be run, and why.
    unusable: Vec<(String, String)>,
    /// Finds the fixed texts.
    texts: Option<AhoCorasick>,
    /// The patterns that have a text, by its place in `texts`.
    called: Vec<Vec<usize>>,
    /// Patterns without a fixed text.
    everywhere: Vec<usize>,
}

#[derive(Debug)]
struct Compiled {
    id: String,
    skill: String,
    category: String,
    severity: Severity,
    description: String,
    trusted: bool,
    written: String,
    /// Whether it may match a line break.
    crosses: bool,
    /// The files that it is for; all if absent.
    files: Option<GlobSet>,
    /// `None` if it turns out too big.
    regex: OnceLock<Option<Regex>>,
}

/// A place where a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The pattern.
    pub pattern: String,
    /// The skill that has it.
    pub skill: String,
    /// The category of its findings.
    pub category: String,
    /// How bad it is.
    pub severity: Severity,
    /// What the pattern finds.
    pub description: String,
    /// Where.
    pub file: Utf8PathBuf,
    /// The lines.
    pub lines: LineRange,
    /// Whether the pattern is believed.
    pub trusted: bool,
    /// How many more places the file has at least that are not listed; said with the last one.
    pub more: usize,
}

/// What a scan has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The places, in the order of files, lines and patterns.
    pub hits: Vec<Hit>,
    /// Whether it was stopped before its end, so that there may be more.
    pub cut: bool,
}

/// Says whether there is no time left.
pub type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

/// What becomes of the claim that lines are an instance of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It matches there.
    Holds {
        /// Whether the pattern is believed.
        trusted: bool,
        /// How bad it is by the pattern's own word.
        severity: Severity,
        /// The category of what it finds.
        category: String,
        /// The lines that match.
        lines: LineRange,
    },
    /// No skill has such a pattern.
    NoSuchPattern,
    /// It has no expression, or one that cannot be run.
    NotUsable,
    /// It does not match these lines, or none of them that came, or only many at once.
    DoesNotMatch,
    /// It is not for this file.
    WrongFile,
}

impl Claim {
    /// It, in words.
    pub fn reason(&self) -> &'static str {
        match self {
            Claim::Holds { .. } => "the pattern matches",
            Claim::NoSuchPattern => "no skill of this review has such a pattern",
            Claim::NotUsable => "the pattern has no expression that can be run",
            Claim::DoesNotMatch => "the pattern does not match what came in these lines",
            Claim::WrongFile => "the pattern is not for this file",
        }
    }
}

impl PatternSet {
    /// The patterns of skills. Those that cannot be run are known by name.
    pub fn new(sources: &[PatternSource<'_>]) -> PatternSet {
        let mut set = PatternSet {
            patterns: Vec::new(),
            unusable: Vec::new(),
            texts: None,
            called: Vec::new(),
            everywhere: Vec::new(),
        };
        let mut texts: Vec<(String, usize)> = Vec::new();
        for source in sources {
            for pattern in &source.skill.auto_validated_patterns {
                match set.add(source, pattern) {
                    Ok(required) => {
                        let at = set.patterns.len() - 1;
                        match required {
                            Some(required) => {
                                texts.extend(required.into_iter().map(|text| (text, at)));
                            }
                            None => set.everywhere.push(at),
                        }
                    }
                    Err(why) => set.unusable.push((pattern.id.clone(), why)),
                }
            }
        }
        set.find_by(texts);
        set
    }

    /// Adds a pattern; its fixed texts, or why it cannot be run.
    fn add(
        &mut self,
        source: &PatternSource<'_>,
        pattern: &Pattern,
    ) -> Result<Option<Vec<String>>, String> {
        if let Some(why) = &pattern.unusable {
            return Err(why.clone());
        }
        let written = pattern.pattern.as_deref().ok_or("it has no regular expression")?;
        if self.patterns.len() == REVIEW_PATTERNS_MAX {
            return Err(format!("{REVIEW_PATTERNS_MAX} patterns, the limit, come before it"));
        }
        let hir = parsed(written)?;
        let required = literals::required(&hir);
        if required.is_none() && self.everywhere.len() == REVIEW_PATTERNS_EVERYWHERE_MAX {
            return Err(format!(
                "it has no fixed text, and {REVIEW_PATTERNS_EVERYWHERE_MAX} such patterns, the limit, come before it"
            ));
        }
        let (files, wrong) = globs(&pattern.files);
        if let Some(wrong) = wrong.first() {
            return Err(format!("`{wrong}` is not a glob"));
        }
        let compiled = Compiled {
            id: pattern.id.clone(),
            skill: source.skill.name.clone(),
            category: source.category.to_owned(),
            severity: pattern.severity.unwrap_or(Severity::Major),
            description: pattern.description.clone(),
            trusted: source.trusted,
            written: written.to_owned(),
            crosses: search::crosses_lines(&hir),
            files: (!pattern.files.is_empty()).then_some(files),
            regex: OnceLock::new(),
        };
        // Most compile for certain, and need not be tried; of the others nobody shall believe that they ran.
        if literals::ranges(&hir) > SURELY_SMALL_RANGES && compiled.regex().is_none() {
            return Err(too_big());
        }
        self.patterns.push(compiled);
        Ok(required)
    }

    fn find_by(&mut self, mut texts: Vec<(String, usize)>) {
        texts.sort();
        let mut words: Vec<String> = Vec::new();
        for (text, pattern) in texts {
            if words.last() != Some(&text) {
                words.push(text);
                self.called.push(Vec::new());
            }
            if let Some(called) = self.called.last_mut() {
                called.push(pattern);
            }
        }
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&words);
        match automaton {
            Ok(automaton) => self.texts = Some(automaton),
            // Without it every pattern is tried.
            Err(_) => self.everywhere = (0..self.patterns.len()).collect(),
        }
    }

    /// How many patterns can be run.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The categories of what they find, each once, in the order of the skills.
    pub fn categories(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for pattern in &self.patterns {
            if !out.contains(&pattern.category) {
                out.push(pattern.category.clone());
            }
        }
        out
    }

    /// Patterns that cannot be run, and why.
    pub fn unusable(&self) -> &[(String, String)] {
        &self.unusable
    }

    /// Where patterns of trusted skills match lines that came. A match may begin or end beside them, but not outside of the
    /// hunk, nor further than [`REVIEW_PATTERN_WINDOW_LINES`](crate::limits::REVIEW_PATTERN_WINDOW_LINES).
    pub fn scan(&self, change: &Change, is_over: Option<IsOver<'_>>) -> Scan {
        let cut = AtomicBool::new(false);
        let is_over = || {
            let over = cut.load(Ordering::Relaxed) || is_over.is_some_and(|is_over| is_over());
            cut.fetch_or(over, Ordering::Relaxed) || over
        };
        let texts: Vec<FileText<'_>> = change.files.par_iter().map(FileText::of).collect();
        let tasks: Vec<(&FileText<'_>, usize)> = texts
            .par_iter()
            .flat_map_iter(|text| self.candidates(text).into_iter().map(move |at| (text, at)))
            .collect();
        let mut hits: Vec<(usize, Hit)> = tasks
            .par_iter()
            .flat_map_iter(|(text, at)| {
                let hits = self.patterns[*at].hits(text, &is_over);
                hits.into_iter().map(move |hit| (*at, hit))
            })
            .collect();
        hits.sort_by(|(at, a), (other, b)| (&a.file, a.lines, at).cmp(&(&b.file, b.lines, other)));
        let hits = hits.into_iter().map(|(_, hit)| hit).collect();
        Scan { hits, cut: cut.into_inner() }
    }

    /// The patterns that may match a file.
    fn candidates(&self, text: &FileText<'_>) -> Vec<usize> {
        let mut may = vec![false; self.patterns.len()];
        for at in &self.everywhere {
            may[*at] = true;
        }
        match &self.texts {
            // Letters that are the same as others only for who does not mind upper and lower case.
            _ if text.whole.contains(literals::ODD_LETTERS) => may.fill(true),
            Some(texts) => {
                for found in texts.find_overlapping_iter(&text.whole) {
                    for at in &self.called[found.pattern().as_usize()] {
                        may[*at] = true;
                    }
                }
            }
            None => {}
        }
        // What strangers write proves nothing, so that nobody waits for it.
        let is_for = |at: &usize| {
            let pattern = &self.patterns[*at];
            may[*at] && pattern.trusted && pattern.is_for(text.path)
        };
        (0..self.patterns.len()).filter(is_for).collect()
    }

    /// Whether a pattern matches within exactly these lines of a file, few of them, and one that came.
    pub fn matches(&self, id: &str, file: &ChangedFile, range: LineRange) -> Claim {
        let named: Vec<&Compiled> = self.patterns.iter().filter(|known| known.id == id).collect();
        if named.is_empty() {
            return match self.unusable.iter().any(|(known, _)| known == id) {
                true => Claim::NotUsable,
                false => Claim::NoSuchPattern,
            };
        }
        let text = FileText::of(file);
        let mut claim = Claim::WrongFile;
        for pattern in named {
            if !pattern.is_for(&file.path) {
                continue;
            }
            let Some(regex) = pattern.regex() else { return Claim::NotUsable };
            match (pattern.first_in(regex, &text, range), &claim) {
                // Of several skills, one that is trusted.
                (Some(_), Claim::Holds { trusted: true, .. }) => {}
                (Some(lines), _) => claim = pattern.holds(lines),
                (None, Claim::WrongFile) => claim = Claim::DoesNotMatch,
                (None, _) => {}
            }
        }
        claim
    }
}

/// With so many ranges of letters and [`REVIEW_PATTERN_POSITIONS_MAX`] characters a pattern is within the limit when it is
/// compiled. `\w` has 800 of them.
const SURELY_SMALL_RANGES: usize = 4_000;

/// All lines.
const EVERYWHERE: LineRange = LineRange { first: 0, last: u32::MAX };

/// An expression that may be run.
fn parsed(written: &str) -> Result<regex_syntax::hir::Hir, String> {
    if written.len() > REVIEW_PATTERN_BYTES_MAX {
        return Err(format!("it is longer than {REVIEW_PATTERN_BYTES_MAX} bytes, the limit"));
    }
    let mut parser = regex_syntax::ParserBuilder::new().multi_line(true).build();
    let hir = parser.parse(written).map_err(|error| last_line(&error.to_string()))?;
    if hir.properties().minimum_len().is_none_or(|least| least == 0) {
        return Err("it matches the empty text".to_owned());
    }
    if literals::positions(&hir) > REVIEW_PATTERN_POSITIONS_MAX {
        return Err(format!(
            "with its repetitions written out it has more than {REVIEW_PATTERN_POSITIONS_MAX} characters, the limit"
        ));
    }
    Ok(hir)
}

fn too_big() -> String {
    format!("it takes more than {REVIEW_PATTERN_COMPILED_BYTES_MAX} bytes when compiled, the limit")
}

/// The last line of the library's message says what is wrong; the ones before draw it.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ").to_owned()
}

impl Compiled {
    fn regex(&self) -> Option<&Regex> {
        let regex = self.regex.get_or_init(|| {
            RegexBuilder::new(&self.written)
                .multi_line(true)
                .size_limit(REVIEW_PATTERN_COMPILED_BYTES_MAX)
                .dfa_size_limit(REVIEW_PATTERN_DFA_BYTES_MAX)
                .build()
                .ok()
        });
        regex.as_ref()
    }

    fn is_for(&self, path: &Utf8Path) -> bool {
        self.files.as_ref().is_none_or(|files| files.is_match(path))
    }

    fn holds(&self, lines: LineRange) -> Claim {
        let Compiled { trusted, severity, .. } = *self;
        Claim::Holds { trusted, severity, category: self.category.clone(), lines }
    }

    /// The first match within lines that proves something.
    fn first_in(&self, regex: &Regex, text: &FileText<'_>, within: LineRange) -> Option<LineRange> {
        let search = Search { regex, crosses: self.crosses, is_over: &|| false };
        let mut first = None;
        text.each(&search, within, &mut |lines| {
            if lines.last - lines.first >= REVIEW_CLAIM_LINES_MAX {
                return ControlFlow::Continue(());
            }
            first = Some(lines);
            ControlFlow::Break(())
        });
        first
    }

    fn hits(&self, text: &FileText<'_>, is_over: &dyn Fn() -> bool) -> Vec<Hit> {
        if is_over() {
            return Vec::new();
        }
        let Some(regex) = self.regex() else { return Vec::new() };
        let (mut ranges, mut more): (Vec<LineRange>, usize) = (Vec::new(), 0);
        let search = Search { regex, crosses: self.crosses, is_over };
        text.each(&search, EVERYWHERE, &mut |range| {
            // Two matches on the same lines are one place.
            if ranges.last() == Some(&range) {
                return ControlFlow::Continue(());
            }
            if ranges.len() == REVIEW_HITS_PER_FILE_MAX {
                more = 1;
                return ControlFlow::Break(());
            }
            ranges.push(range);
            ControlFlow::Continue(())
        });
        let last = ranges.len().saturating_sub(1);
        let hit = |(at, lines): (usize, LineRange)| Hit {
            pattern: self.id.clone(),
            skill: self.skill.clone(),
            category: self.category.clone(),
            severity: self.severity,
            description: self.description.clone(),
            file: text.path.to_owned(),
            lines,
            trusted: self.trusted,
            more: if at == last { more } else { 0 },
        };
        ranges.into_iter().enumerate().map(hit).collect()
    }
}

#[cfg(test)]
mod tests;
