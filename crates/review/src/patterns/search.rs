//! Runs a regular expression over a change in bounded time.
//!
//! The regex crate finds one match in linear time, but finding all matches can take quadratic time. So each search is
//! limited to a window of a few lines, and the number of matches that start in one line is limited.

use std::ops::{ControlFlow, Range};

use camino::Utf8Path;
use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::change::{DiffHunk, LineKind, LineRange, ReviewedFile};
use crate::limits::{
    REVIEW_PATTERN_CHUNK_LINES, REVIEW_PATTERN_LINE_MATCHES_MAX, REVIEW_PATTERN_WINDOW_LINES,
};

/// The number of lines by which the window advances if nothing matches. A match of at most this many lines always fits
/// into one window.
const STEP_LINES: usize = REVIEW_PATTERN_WINDOW_LINES / 2;

/// Returns true if the expression can match a line break.
pub(super) fn crosses_lines(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().any(|range| (range.start()..=range.end()).contains(&'\n'))
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().any(|range| (range.start()..=range.end()).contains(&b'\n'))
        }
        HirKind::Repetition(repetition) => crosses_lines(&repetition.sub),
        HirKind::Capture(capture) => crosses_lines(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(crosses_lines),
    }
}

/// An expression to search for.
pub(super) struct PatternSearch<'a> {
    pub(super) regex: &'a Regex,
    /// True if the expression can match a line break.
    pub(super) crosses: bool,
    /// Returns true once the search should stop.
    pub(super) is_over: &'a dyn Fn() -> bool,
}

/// The new side of all hunks of a file, as one text.
pub(super) struct FileText<'a> {
    pub(super) path: &'a Utf8Path,
    pub(super) whole: String,
    pub(super) hunks: Vec<HunkText>,
}

/// The new side of a hunk.
pub(super) struct HunkText {
    start: usize,
    end: usize,
    /// The offsets of its lines, relative to `start`.
    starts: Vec<usize>,
    /// The number of each line, and whether it was added.
    lines: Vec<(u32, bool)>,
}

impl<'a> FileText<'a> {
    pub(super) fn from_file(file: &'a ReviewedFile) -> Self {
        let mut text = FileText { path: &file.path, whole: String::new(), hunks: Vec::new() };
        for hunk in &file.hunks {
            text.add_hunk(hunk);
        }
        text
    }

    fn add_hunk(&mut self, hunk: &DiffHunk) {
        let start = self.whole.len();
        let (mut starts, mut lines) = (Vec::new(), Vec::new());
        for line in &hunk.lines {
            let Some(number) = line.new else { continue };
            starts.push(self.whole.len() - start);
            lines.push((number, line.kind == LineKind::Added));
            self.whole.push_str(&line.text);
            self.whole.push('\n');
        }
        self.hunks.push(HunkText { start, end: self.whole.len(), starts, lines });
    }

    /// Calls `found` for every match within these lines, as [`HunkText::each`].
    pub(super) fn for_each_match(
        &self,
        search: &PatternSearch<'_>,
        within: LineRange,
        found: &mut dyn FnMut(LineRange) -> ControlFlow<()>,
    ) {
        for hunk in &self.hunks {
            let text = &self.whole[hunk.start..hunk.end];
            if hunk.for_each_match(text, search, hunk.line_indexes(within), found).is_break() {
                return;
            }
        }
    }
}

impl HunkText {
    /// Converts line numbers to indexes in `lines`.
    fn line_indexes(&self, range: LineRange) -> Range<usize> {
        let first = self.lines.partition_point(|(number, _)| *number < range.first);
        let end = self.lines.partition_point(|(number, _)| *number <= range.last);
        first..end
    }

    fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Calls `found` with the lines of every match that lies within `places` and contains an added line, until `found`
    /// breaks.
    fn for_each_match(
        &self,
        text: &str,
        search: &PatternSearch<'_>,
        places: Range<usize>,
        found: &mut dyn FnMut(LineRange) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let begin_of = |line: usize| self.starts.get(line).copied().unwrap_or(text.len());
        let reach =
            if search.crosses { REVIEW_PATTERN_WINDOW_LINES } else { REVIEW_PATTERN_CHUNK_LINES };
        let step = if search.crosses { STEP_LINES } else { reach };
        let (mut line, mut from) = (places.start, begin_of(places.start));
        let mut begun = 0;
        while line < places.end {
            if (search.is_over)() {
                return ControlFlow::Break(());
            }
            let end = places.end.min(line + reach);
            let Some(next) = search.regex.find_at(&text[..begin_of(end)], from) else {
                (line, begun) = (if end == places.end { end } else { line + step }, 0);
                from = begin_of(line);
                continue;
            };
            let first = self.line_at(next.start());
            // The match starts late in the window, and may have been cut off by its end: search again from its first
            // line.
            if first >= line + step && end < places.end {
                (line, from, begun) = (first, begin_of(first), 0);
                continue;
            }
            // Leading and trailing whitespace is usually a delimiter in the expression, so don't count its lines as
            // matched.
            let matched = next.as_str();
            let start = next.start() + (matched.len() - matched.trim_start().len());
            let stop = start.max(next.start() + matched.trim_end().len());
            if let Some(range) = self.matched_lines(start, stop) {
                found(range)?;
            }
            begun = if first == line { begun + 1 } else { 1 };
            // If matches never cross lines, a second match in this line would report the same place.
            let enough = !search.crosses || begun >= REVIEW_PATTERN_LINE_MATCHES_MAX;
            from = if enough { next.end().max(begin_of(first + 1)) } else { next.end() };
            let now = self.line_at(from);
            // Past the end of the text there is no further line.
            let now = if from >= text.len() { places.end } else { now };
            begun = if now == first { begun } else { 0 };
            line = now;
        }
        ControlFlow::Continue(())
    }

    /// The lines of a match, if one of them was added.
    fn matched_lines(&self, from: usize, to: usize) -> Option<LineRange> {
        // A line break at the end of the match belongs to its last line.
        let (first, last) = (self.line_at(from), self.line_at(to.max(from + 1) - 1));
        let lines = self.lines.get(first..=last)?;
        let came = lines.iter().any(|(_, added)| *added);
        came.then(|| LineRange { first: lines[0].0, last: lines[lines.len() - 1].0 })
    }
}
