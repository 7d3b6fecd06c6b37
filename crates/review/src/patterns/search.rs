//! How an expression is run over a change, so that one which looks far ahead for each match takes no more than it should.
//!
//! The library finds one match in linear time, and all of them in the square of it. So a match ends within a few lines, and
//! a line begins only a few.

use std::ops::{ControlFlow, Range};

use camino::Utf8Path;
use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::limits::{REVIEW_PATTERN_CHUNK_LINES, REVIEW_PATTERN_LINE_MATCHES_MAX, REVIEW_PATTERN_WINDOW_LINES};
use crate::change::{ChangedFile, Hunk, LineKind, LineRange};

/// Lines by which the window moves on where nothing matches: what is no longer than that is always in one.
const STEP_LINES: usize = REVIEW_PATTERN_WINDOW_LINES / 2;

/// Whether an expression may match a line break.
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

/// An expression that is run.
pub(super) struct Search<'a> {
    /// It.
    pub(super) regex: &'a Regex,
    /// Whether it may match a line break.
    pub(super) crosses: bool,
    /// Whether there is no time left.
    pub(super) is_over: &'a dyn Fn() -> bool,
}

/// The new side of all hunks of a file, in one text.
pub(super) struct FileText<'a> {
    pub(super) path: &'a Utf8Path,
    pub(super) whole: String,
    pub(super) hunks: Vec<HunkText>,
}

/// The new side of a hunk.
pub(super) struct HunkText {
    start: usize,
    end: usize,
    /// Where its lines begin, from its own start.
    starts: Vec<usize>,
    /// The numbers of its lines, and whether they came.
    lines: Vec<(u32, bool)>,
}

impl<'a> FileText<'a> {
    pub(super) fn of(file: &'a ChangedFile) -> Self {
        let mut text = FileText { path: &file.path, whole: String::new(), hunks: Vec::new() };
        for hunk in &file.hunks {
            text.add(hunk);
        }
        text
    }

    fn add(&mut self, hunk: &Hunk) {
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

    /// Tells of every match within these lines, as [`HunkText::each`].
    pub(super) fn each(
        &self,
        search: &Search<'_>,
        within: LineRange,
        found: &mut dyn FnMut(LineRange) -> ControlFlow<()>,
    ) {
        for hunk in &self.hunks {
            let text = &self.whole[hunk.start..hunk.end];
            if hunk.each(text, search, hunk.places(within), found).is_break() {
                return;
            }
        }
    }
}

impl HunkText {
    /// The places of lines by their numbers.
    fn places(&self, range: LineRange) -> Range<usize> {
        let first = self.lines.partition_point(|(number, _)| *number < range.first);
        let end = self.lines.partition_point(|(number, _)| *number <= range.last);
        first..end
    }

    fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Tells of the lines of every match that lies within some lines and has one that came, until it is told to stop.
    fn each(
        &self,
        text: &str,
        search: &Search<'_>,
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
            // A match that begins late in the window may be longer than what is left of it.
            if first >= line + step && end < places.end {
                (line, from, begun) = (first, begin_of(first), 0);
                continue;
            }
            // Blanks at its ends only say what a match stands between: they are no part of it.
            let matched = next.as_str();
            let start = next.start() + (matched.len() - matched.trim_start().len());
            let stop = start.max(next.start() + matched.trim_end().len());
            if let Some(range) = self.touched(start, stop) {
                found(range)?;
            }
            begun = if first == line { begun + 1 } else { 1 };
            // Where a match is always in one line, a second one there is the same place.
            let enough = !search.crosses || begun >= REVIEW_PATTERN_LINE_MATCHES_MAX;
            from = if enough { next.end().max(begin_of(first + 1)) } else { next.end() };
            let now = self.line_at(from);
            // Behind the last line there is no other.
            let now = if from >= text.len() { places.end } else { now };
            begun = if now == first { begun } else { 0 };
            line = now;
        }
        ControlFlow::Continue(())
    }

    /// The lines of a match, if one of them came.
    fn touched(&self, from: usize, to: usize) -> Option<LineRange> {
        // The break at the end of a match is the end of its last line.
        let (first, last) = (self.line_at(from), self.line_at(to.max(from + 1) - 1));
        let lines = self.lines.get(first..=last)?;
        let came = lines.iter().any(|(_, added)| *added);
        came.then(|| LineRange { first: lines[0].0, last: lines[lines.len() - 1].0 })
    }
}
