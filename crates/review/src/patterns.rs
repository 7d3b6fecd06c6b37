//! Searches a change for the patterns of skills, without a model, and verifies agents' claims that a pattern matches.
//!
//! Regular expressions of untrusted skills run in linear time and within limits. A pattern is compiled only when a file
//! contains one of its literals, so that hundreds of patterns cost little. Patterns without a literal run on every
//! file.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::extract::{ReviewPattern, ReviewSeverity, ReviewSkill};
use aho_corasick::AhoCorasick;
use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobSet;
use rayon::prelude::*;
use regex::{Regex, RegexBuilder};

use self::search::{FileText, PatternSearch};
use super::change::{LineRange, ReviewChange, ReviewedFile};
use super::content::compile_globs;
use crate::limits::{
    REVIEW_CLAIM_LINES_MAX, REVIEW_HITS_PER_FILE_MAX, REVIEW_PATTERN_BYTES_MAX,
    REVIEW_PATTERN_COMPILED_BYTES_MAX, REVIEW_PATTERN_DFA_BYTES_MAX, REVIEW_PATTERN_POSITIONS_MAX,
    REVIEW_PATTERNS_EVERYWHERE_MAX, REVIEW_PATTERNS_MAX,
};

mod false_positives;
mod literals;
mod search;

pub use self::false_positives::{find_rule_about, find_rule_naming_file};

/// A skill whose patterns are searched for.
#[derive(Clone, Copy, Debug)]
pub struct PatternSource<'a> {
    pub skill: &'a ReviewSkill,
    /// The category of its findings.
    pub category: &'a str,
    /// True if its matches count as validated.
    pub trusted: bool,
}

/// The compiled patterns of a review.
#[derive(Debug)]
pub struct PatternSet {
    patterns: Vec<CompiledPattern>,
    /// The ids of patterns that cannot be run, with the reasons.
    unusable: Vec<(String, String)>,
    /// Searches for the literals of all patterns at once; `None` if it could not be built.
    texts: Option<AhoCorasick>,
    /// Indexes of the patterns that have a literal, by the index of the literal in `texts`.
    called: Vec<Vec<usize>>,
    /// Indexes of the patterns without a literal.
    everywhere: Vec<usize>,
}

#[derive(Debug)]
struct CompiledPattern {
    id: String,
    skill: String,
    category: String,
    severity: ReviewSeverity,
    description: String,
    trusted: bool,
    written: String,
    /// True if the pattern can match a line break.
    crosses: bool,
    /// The files that it applies to; all files if `None`.
    files: Option<GlobSet>,
    /// Compiled on first use; `None` if it exceeds the size limit.
    regex: OnceLock<Option<Regex>>,
}

/// A place where a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternHit {
    /// The id of the pattern.
    pub pattern: String,
    /// The name of the skill that defines it.
    pub skill: String,
    pub category: String,
    pub severity: ReviewSeverity,
    /// The description of the pattern.
    pub description: String,
    pub file: Utf8PathBuf,
    pub lines: LineRange,
    /// True if the skill of the pattern is trusted.
    pub trusted: bool,
    /// A lower bound for the number of further matches in the file that are not listed. Set on the last hit only.
    pub more: usize,
}

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternScan {
    /// The hits, sorted by file, lines and pattern.
    pub hits: Vec<PatternHit>,
    /// True if the scan was stopped early, so that hits may be missing.
    pub cut: bool,
}

/// Returns true once the scan should stop.
pub type ScanStopCheck<'a> = &'a (dyn Fn() -> bool + Sync);

/// The result of checking an agent's claim that a pattern matches the lines of its finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternClaim {
    Holds {
        /// True if the skill of the pattern is trusted.
        trusted: bool,
        /// The severity that the pattern declares.
        severity: ReviewSeverity,
        /// The category of the pattern's findings.
        category: String,
        /// The matched lines.
        lines: LineRange,
    },
    NoSuchPattern,
    /// The pattern has no regular expression, or one that cannot be run.
    NotUsable,
    /// The pattern does not match within these lines, or matches no added line, or only across too many lines.
    DoesNotMatch,
    /// The pattern does not apply to this file.
    WrongFile,
}

impl PatternClaim {
    /// The result as text for a report.
    pub fn reason(&self) -> &'static str {
        match self {
            PatternClaim::Holds { .. } => "the pattern matches",
            PatternClaim::NoSuchPattern => "no skill of this review has such a pattern",
            PatternClaim::NotUsable => "the pattern has no expression that can be run",
            PatternClaim::DoesNotMatch => "the pattern does not match what came in these lines",
            PatternClaim::WrongFile => "the pattern is not for this file",
        }
    }
}

impl PatternSet {
    /// Collects the patterns of skills. Patterns that cannot be run are listed in [`PatternSet::unusable()`].
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
                match set.add_pattern(source, pattern) {
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
        set.index_literals(texts);
        set
    }

    /// Adds a pattern. Returns its literals (`None` if it has none), or the reason why it cannot be run.
    fn add_pattern(
        &mut self,
        source: &PatternSource<'_>,
        pattern: &ReviewPattern,
    ) -> Result<Option<Vec<String>>, String> {
        if let Some(why) = &pattern.unusable {
            return Err(why.clone());
        }
        let written = pattern.pattern.as_deref().ok_or("it has no regular expression")?;
        if self.patterns.len() == REVIEW_PATTERNS_MAX {
            return Err(format!("{REVIEW_PATTERNS_MAX} patterns, the limit, come before it"));
        }
        let hir = parse_expression(written)?;
        let required = literals::required_literals(&hir);
        if required.is_none() && self.everywhere.len() == REVIEW_PATTERNS_EVERYWHERE_MAX {
            return Err(format!(
                "it has no fixed text, and {REVIEW_PATTERNS_EVERYWHERE_MAX} such patterns, the limit, come before it"
            ));
        }
        let (files, wrong) = compile_globs(&pattern.files);
        if let Some(wrong) = wrong.first() {
            return Err(format!("`{wrong}` is not a glob"));
        }
        let compiled = CompiledPattern {
            id: pattern.id.clone(),
            skill: source.skill.name.clone(),
            category: source.category.to_owned(),
            severity: pattern.severity.unwrap_or(ReviewSeverity::Major),
            description: pattern.description.clone(),
            trusted: source.trusted,
            written: written.to_owned(),
            crosses: search::crosses_lines(&hir),
            files: (!pattern.files.is_empty()).then_some(files),
            regex: OnceLock::new(),
        };
        // Most patterns are certain to compile, so compile them lazily. Compile large ones now, to report those that
        // fail instead of silently never matching.
        if literals::count_ranges(&hir) > SURELY_SMALL_RANGES && compiled.compiled_regex().is_none()
        {
            return Err(too_big_message());
        }
        self.patterns.push(compiled);
        Ok(required)
    }

    fn index_literals(&mut self, mut texts: Vec<(String, usize)>) {
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
            // Without the automaton, try every pattern on every file.
            Err(_) => self.everywhere = (0..self.patterns.len()).collect(),
        }
    }

    /// The number of patterns that can be run.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Returns true if no pattern can be run.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The categories of the patterns, without duplicates, in the order of the skills.
    pub fn categories(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for pattern in &self.patterns {
            if !out.contains(&pattern.category) {
                out.push(pattern.category.clone());
            }
        }
        out
    }

    /// The ids of patterns that cannot be run, with the reasons.
    pub fn unusable(&self) -> &[(String, String)] {
        &self.unusable
    }

    /// Finds the matches of trusted skills' patterns that contain an added line. A match may extend to context lines,
    /// but not beyond its hunk nor over more than
    /// [`REVIEW_PATTERN_WINDOW_LINES`](crate::limits::REVIEW_PATTERN_WINDOW_LINES) lines.
    pub fn scan_change(
        &self,
        change: &ReviewChange,
        is_over: Option<ScanStopCheck<'_>>,
    ) -> PatternScan {
        let cut = AtomicBool::new(false);
        let is_over = || {
            let over = cut.load(Ordering::Relaxed) || is_over.is_some_and(|is_over| is_over());
            cut.fetch_or(over, Ordering::Relaxed) || over
        };
        let texts: Vec<FileText<'_>> = change.files.par_iter().map(FileText::from_file).collect();
        let tasks: Vec<(&FileText<'_>, usize)> = texts
            .par_iter()
            .flat_map_iter(|text| {
                self.candidate_patterns(text).into_iter().map(move |at| (text, at))
            })
            .collect();
        let mut hits: Vec<(usize, PatternHit)> = tasks
            .par_iter()
            .flat_map_iter(|(text, at)| {
                let hits = self.patterns[*at].find_hits(text, &is_over);
                hits.into_iter().map(move |hit| (*at, hit))
            })
            .collect();
        hits.sort_by(|(at, a), (other, b)| (&a.file, a.lines, at).cmp(&(&b.file, b.lines, other)));
        let hits = hits.into_iter().map(|(_, hit)| hit).collect();
        PatternScan { hits, cut: cut.into_inner() }
    }

    /// The indexes of the patterns that may match a file.
    fn candidate_patterns(&self, text: &FileText<'_>) -> Vec<usize> {
        let mut may = vec![false; self.patterns.len()];
        for at in &self.everywhere {
            may[*at] = true;
        }
        match &self.texts {
            // These fold to ASCII letters in a case-insensitive regex, but not in the automaton.
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
        // Matches of untrusted patterns prove nothing, so don't spend time on them.
        let is_for = |at: &usize| {
            let pattern = &self.patterns[*at];
            may[*at] && pattern.trusted && pattern.applies_to(text.path)
        };
        (0..self.patterns.len()).filter(is_for).collect()
    }

    /// Checks the claim that a pattern matches within these lines of a file. The match must be short and contain an
    /// added line.
    pub fn check_claim(&self, id: &str, file: &ReviewedFile, range: LineRange) -> PatternClaim {
        let named: Vec<&CompiledPattern> =
            self.patterns.iter().filter(|known| known.id == id).collect();
        if named.is_empty() {
            return if self.unusable.iter().any(|(known, _)| known == id) {
                PatternClaim::NotUsable
            } else {
                PatternClaim::NoSuchPattern
            };
        }
        let text = FileText::from_file(file);
        let mut claim = PatternClaim::WrongFile;
        for pattern in named {
            if !pattern.applies_to(&file.path) {
                continue;
            }
            let Some(regex) = pattern.compiled_regex() else { return PatternClaim::NotUsable };
            match (pattern.first_match_in(regex, &text, range), &claim) {
                // If several skills have a pattern of this id, a trusted one takes precedence.
                (Some(_), PatternClaim::Holds { trusted: true, .. }) => {}
                (Some(lines), _) => claim = pattern.proven_claim(lines),
                (None, PatternClaim::WrongFile) => claim = PatternClaim::DoesNotMatch,
                (None, _) => {}
            }
        }
        claim
    }
}

/// With at most this many character ranges and [`REVIEW_PATTERN_POSITIONS_MAX`] positions, a pattern always compiles
/// within the size limit. For comparison, `\w` has 800 ranges.
const SURELY_SMALL_RANGES: usize = 4_000;

const EVERYWHERE: LineRange = LineRange { first: 0, last: u32::MAX };

/// Parses an expression and checks its limits.
fn parse_expression(written: &str) -> Result<regex_syntax::hir::Hir, String> {
    if written.len() > REVIEW_PATTERN_BYTES_MAX {
        return Err(format!("it is longer than {REVIEW_PATTERN_BYTES_MAX} bytes, the limit"));
    }
    let mut parser = regex_syntax::ParserBuilder::new().multi_line(true).build();
    let hir = parser.parse(written).map_err(|error| last_line(&error.to_string()))?;
    if hir.properties().minimum_len().is_none_or(|least| least == 0) {
        return Err("it matches the empty text".to_owned());
    }
    if literals::count_positions(&hir) > REVIEW_PATTERN_POSITIONS_MAX {
        return Err(format!(
            "with its repetitions written out it has more than {REVIEW_PATTERN_POSITIONS_MAX} characters, the limit"
        ));
    }
    Ok(hir)
}

fn too_big_message() -> String {
    format!("it takes more than {REVIEW_PATTERN_COMPILED_BYTES_MAX} bytes when compiled, the limit")
}

/// The last line of the regex crate's message. The lines before it draw the expression.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ").to_owned()
}

impl CompiledPattern {
    fn compiled_regex(&self) -> Option<&Regex> {
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

    fn applies_to(&self, path: &Utf8Path) -> bool {
        self.files.as_ref().is_none_or(|files| files.is_match(path))
    }

    fn proven_claim(&self, lines: LineRange) -> PatternClaim {
        let CompiledPattern { trusted, severity, .. } = *self;
        PatternClaim::Holds { trusted, severity, category: self.category.clone(), lines }
    }

    /// Returns the first match within these lines that is short enough to prove a claim.
    fn first_match_in(
        &self,
        regex: &Regex,
        text: &FileText<'_>,
        within: LineRange,
    ) -> Option<LineRange> {
        let search = PatternSearch { regex, crosses: self.crosses, is_over: &|| false };
        let mut first = None;
        text.for_each_match(&search, within, &mut |lines| {
            if lines.last - lines.first >= REVIEW_CLAIM_LINES_MAX {
                return ControlFlow::Continue(());
            }
            first = Some(lines);
            ControlFlow::Break(())
        });
        first
    }

    fn find_hits(&self, text: &FileText<'_>, is_over: &dyn Fn() -> bool) -> Vec<PatternHit> {
        if is_over() {
            return Vec::new();
        }
        let Some(regex) = self.compiled_regex() else { return Vec::new() };
        let (mut ranges, mut more): (Vec<LineRange>, usize) = (Vec::new(), 0);
        let search = PatternSearch { regex, crosses: self.crosses, is_over };
        text.for_each_match(&search, EVERYWHERE, &mut |range| {
            // Several matches on the same lines are one hit.
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
        let hit = |(at, lines): (usize, LineRange)| PatternHit {
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
