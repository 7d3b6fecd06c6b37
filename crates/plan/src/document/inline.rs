//! Parses the text of a task or heading and separates the metadata from what is to be done.

use std::ops::Range;

use repertoire_text::source::Span;

use super::TaskPriority;
use super::labels::parse_label;
use super::metadata::{find_blocker_refs, parse_label_refs, split_refs};
use super::opaque::{OpaqueKind, OpaqueParts};
use super::specs::find_spec_refs;

/// A text of several lines of the file, joined.
#[derive(Debug, Default)]
pub(super) struct PlanParagraph {
    /// The lines without their indentation, joined by line breaks.
    pub(super) text: String,
    /// The start of each line: the offset in `text`, and in the file.
    starts: Vec<(usize, usize)>,
}

impl PlanParagraph {
    /// Adds a line that starts at this byte of the file.
    pub(super) fn push_line(&mut self, at: usize, line: &str) {
        if !self.starts.is_empty() {
            self.text.push('\n');
        }
        let blanks = line.len() - line.trim_start().len();
        self.starts.push((self.text.len(), at + blanks));
        self.text.push_str(line.trim());
    }

    /// Maps a range of the text to a span of the file.
    pub(super) fn file_span(&self, range: &Range<usize>) -> Span {
        let map = |at: usize| {
            let next = self.starts.partition_point(|(start, _)| *start <= at);
            let (start, file) = self.starts[..next].last().copied().unwrap_or_default();
            file + at - start
        };
        Span::new(
            map(range.start),
            map(range.end.saturating_sub(1).max(range.start)) + usize::from(!range.is_empty()),
        )
    }
}

/// The parsed text of a task or heading.
#[derive(Debug, Default)]
pub(super) struct InlineText {
    pub(super) label: Option<String>,
    /// The text without metadata.
    pub(super) text: String,
    /// The same without hints; the id is derived from it.
    pub(super) normal: String,
    pub(super) priority: Option<TaskPriority>,
    pub(super) parallel: bool,
    pub(super) story: Option<String>,
    pub(super) blockers: Vec<(String, Range<usize>)>,
    pub(super) hints: Vec<(String, Range<usize>)>,
    pub(super) coded_hints: Vec<Range<usize>>,
    pub(super) refs: Vec<(String, Option<Range<usize>>)>,
}

/// Parses the text of a task.
pub(super) fn parse_task_text(text: &str) -> InlineText {
    let mut scan = InlineScanner::new(text);
    scan.scan_head();
    scan.scan_asides();
    scan.scan_hints();
    scan.cut_notes();
    scan.out.refs = find_spec_refs(text, &scan.opaque);
    scan.finish()
}

/// Parses the text of a heading.
pub(super) fn parse_heading_text(text: &str) -> InlineText {
    let mut scan = InlineScanner::new(text);
    scan.scan_asides();
    scan.finish()
}

/// The words that begin a note at the end of a task.
const NOTES: [&str; 7] = ["note", "failed", "done", "blocked", "skipped", "reviewed", "waiting"];

struct InlineScanner<'a> {
    text: &'a str,
    /// The text in lower case, with the same byte offsets.
    lower: String,
    opaque: OpaqueParts,
    /// Ranges that are not part of the task's own text.
    cuts: Vec<Range<usize>>,
    /// Ranges in brackets, including the brackets.
    groups: Vec<Range<usize>>,
    out: InlineText,
}

impl<'a> InlineScanner<'a> {
    fn new(text: &'a str) -> Self {
        let opaque = OpaqueParts::find_parts(text);
        let comments = opaque.parts.iter().filter(|(_, kind)| *kind == OpaqueKind::Comment);
        let cuts = comments.map(|(range, _)| range.clone()).collect();
        let groups = bracket_groups(text, &opaque);
        let lower = text.to_ascii_lowercase();
        InlineScanner { text, lower, opaque, cuts, groups, out: InlineText::default() }
    }

    /// Parses label, tags and priority at the start.
    fn scan_head(&mut self) {
        let mut at = 0;
        loop {
            let rest = &self.text[at..];
            let blanks = rest.len() - rest.trim_start().len();
            at += blanks;
            let rest = &self.text[at..];
            let used = match (&self.out.label, parse_label(rest)) {
                (None, Some(found)) => {
                    self.out.label = Some(found.label);
                    // A label within bold text keeps the bold markers.
                    self.cuts.push(at + found.from..at + found.to);
                    at += found.to;
                    if found.from > 0 {
                        break;
                    }
                    continue;
                }
                _ => self.scan_tag(rest),
            };
            if used == 0 {
                break;
            }
            self.cuts.push(at..at + used);
            at += used;
        }
    }

    /// Parses `[P]`, `[US1]` or a bare priority at the start. Returns its length in bytes.
    fn scan_tag(&mut self, rest: &str) -> usize {
        if let Some(inner) = rest.strip_prefix('[')
            && let Some(end) = inner.bytes().take(8).position(|byte| byte == b']')
            && !inner[end + 1..].starts_with('(')
        {
            let tag = &inner[..end];
            if tag == "P" {
                self.out.parallel = true;
                return end + 2;
            }
            if let Some(number) = tag.strip_prefix("US")
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
            {
                self.out.story = Some(tag.to_owned());
                return end + 2;
            }
        }
        let stars = if rest.starts_with("**") { 2 } else { 0 };
        let Some(priority) = rest.get(stars..stars + 2).filter(|word| is_p(word)) else { return 0 };
        let mut after = &rest[stars + 2..];
        if stars > 0 {
            let colon = after.starts_with(":**");
            let Some(bare) = after.strip_prefix(if colon { ":**" } else { "**" }) else { return 0 };
            after = bare;
        }
        let separated = after.trim_start_matches([':', ' ', '\n', '-', '–', '—']);
        if separated.len() == after.len() && !after.is_empty() {
            return 0;
        }
        self.out.priority = TaskPriority::from_word(priority);
        rest.len() - separated.len()
    }

    /// Parses priorities and blockers in brackets or after a keyword, anywhere in the text.
    fn scan_asides(&mut self) {
        for group in self.groups.clone() {
            let inner = group.start + 1..group.end - 1;
            let trimmed = self.lower[inner.clone()].trim();
            let start = trimmed.as_ptr() as usize - self.lower.as_ptr() as usize;
            if let Some(priority) = parse_priority(trimmed) {
                self.out.priority = self.out.priority.or(Some(priority));
                self.cuts.push(group);
            } else if let Some((refs, _)) = find_blocker_refs(trimmed) {
                let from = start + refs;
                self.out.blockers.extend(split_refs(&self.text[from..inner.end], from));
                self.cuts.push(group);
            }
        }
        let mut at = 0;
        while let Some(found) = self.lower[at..].find(['b', 'd', 'p', '!']) {
            let start = at + found;
            at = match self.scan_keyword(start) {
                Some(end) => {
                    let from = self.text[..start]
                        .trim_end_matches([' ', '\n', ',', ';', '-', '–', '—', '|'])
                        .len();
                    self.cuts.push(from..end);
                    end
                }
                None => start + 1,
            };
        }
    }

    /// Parses a keyword at this offset, outside of brackets and code. Returns the end of its value.
    fn scan_keyword(&mut self, at: usize) -> Option<usize> {
        let lower = &self.lower[at..];
        let candidate =
            ["blocked", "depend", "priority", "!"].iter().any(|key| lower.starts_with(key));
        let before = self.text[..at].chars().next_back();
        if !candidate || before.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_') {
            return None;
        }
        if self.opaque.kind_at(at).is_some() || self.is_grouped(at) {
            return None;
        }
        if let Some(rest) = lower.strip_prefix("priority:").or_else(|| lower.strip_prefix('!')) {
            let word = rest.trim_start_matches(' ');
            let length = word.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let is_sign = lower.starts_with('!');
            let known = TaskPriority::from_word(&word[..length])
                .filter(|_| !is_sign || word.len() == rest.len())?;
            self.out.priority = self.out.priority.or(Some(known));
            return Some(self.text.len() - word.len() + length);
        }
        let (refs, has_colon) = find_blocker_refs(lower)?;
        let from = at + refs;
        let rest = &self.text[from..];
        let (found, used) = if has_colon {
            let end = list_end(rest);
            (split_refs(&rest[..end], from), end)
        } else {
            parse_label_refs(rest, from)
        };
        if !has_colon && found.is_empty() {
            return None;
        }
        self.out.blockers.extend(found);
        Some(from + used)
    }

    fn is_grouped(&self, at: usize) -> bool {
        let next = self.groups.partition_point(|group| group.start <= at);
        self.groups[..next].last().is_some_and(|group| group.contains(&at))
    }

    /// Cuts off notes at the end: `(note: …)`, or `— failed: …`.
    fn cut_notes(&mut self) {
        for dash in ["— ", "– ", "-- ", " - "] {
            for (at, _) in self.lower.match_indices(dash) {
                if is_note(&self.lower[at + dash.len()..]) && self.opaque.kind_at(at).is_none() {
                    self.cuts.push(at..self.text.len());
                    break;
                }
            }
        }
        // Ignore ranges that are already cut, and hints, between a note and the end.
        let hints = self.out.hints.iter().map(|(_, range)| range.clone());
        let passed: Vec<Range<usize>> = self.cuts.iter().cloned().chain(hints).collect();
        let mut passed = merge_ranges(&passed);
        let mut end = self.text.trim_end().len();
        for group in self.groups.iter().rev() {
            while let Some(cut) = passed.pop_if(|cut| cut.end >= end) {
                end = end.min(self.text[..cut.start].trim_end().len());
            }
            if group.start >= end {
                continue;
            }
            if group.end < end || !is_note(&self.lower[group.start + 1..group.end - 1]) {
                break;
            }
            self.cuts.push(group.clone());
            end = self.text[..group.start].trim_end().len();
        }
    }

    /// Finds hints such as `@skill-name`, but not mail addresses, packages or files.
    fn scan_hints(&mut self) {
        for (at, _) in self.text.match_indices('@') {
            let before = self.text[..at].chars().next_back();
            if !before.is_none_or(|c| c.is_whitespace() || "([{,;:\"'`—–*_".contains(c)) {
                continue;
            }
            let rest = &self.text[at + 1..];
            let length = rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
                .count();
            let (name, after) = (&rest[..length], &rest[length..]);
            let name = name.trim_end_matches('_');
            let mut following = after.chars();
            let goes_on = match (following.next(), following.next()) {
                (Some('/' | '@' | '\\'), _) => true,
                (Some('.' | ':'), Some(next)) => next.is_alphanumeric(),
                (Some(next), _) => next.is_alphanumeric(),
                (None, _) => false,
            };
            if goes_on || !is_skill_name(name) {
                continue;
            }
            let range = at..at + 1 + name.len();
            match self.opaque.kind_at(at) {
                None => self.out.hints.push((name.to_owned(), range)),
                Some(OpaqueKind::Code) => {
                    // Report a hint in backticks only if it is the entire code span.
                    let alone = before == Some('`') && after.starts_with('`');
                    if alone {
                        self.out.coded_hints.push(range);
                    }
                }
                Some(OpaqueKind::Link | OpaqueKind::Angle | OpaqueKind::Comment) => {}
            }
        }
    }

    fn finish(mut self) -> InlineText {
        let cuts = merge_ranges(&self.cuts);
        self.out.text = remove_ranges(self.text, &cuts);
        let is_cut = |at: usize| {
            let next = cuts.partition_point(|cut| cut.start <= at);
            cuts[..next].last().is_some_and(|cut| cut.contains(&at))
        };
        // A skill named in a note is only mentioned, not requested.
        self.out.hints.retain(|(_, range)| !is_cut(range.start));
        let hints = self.out.hints.iter().map(|(_, range)| range.clone());
        let all: Vec<Range<usize>> = self.cuts.iter().cloned().chain(hints).collect();
        self.out.normal = remove_ranges(self.text, &merge_ranges(&all));
        self.out.blockers.sort_by_key(|(_, range)| range.start);
        self.out
    }
}

fn is_note(text: &str) -> bool {
    let text = text.trim_start();
    NOTES.iter().any(|key| text.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))
}

/// Returns true if a skill can have this name.
pub(super) fn is_skill_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn is_p(word: &str) -> bool {
    matches!(word, "P0" | "P1" | "P2" | "P3")
}

/// Parses `p1`, `priority: high`, `high priority`.
fn parse_priority(inner: &str) -> Option<TaskPriority> {
    let is_p = |word: &str| matches!(word, "p0" | "p1" | "p2" | "p3");
    let word = match inner {
        inner if is_p(inner) => inner,
        inner => inner
            .strip_prefix("priority:")
            .or_else(|| inner.strip_prefix("priority "))
            .or_else(|| inner.strip_suffix(" priority"))?
            .trim(),
    };
    TaskPriority::from_word(word)
}

/// Finds ranges in round or square brackets: the innermost ones, without links.
fn bracket_groups(text: &str, opaque: &OpaqueParts) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut open: Option<(usize, u8)> = None;
    let mut parts = opaque.parts.iter().peekable();
    for (at, byte) in text.bytes().enumerate() {
        while parts.peek().is_some_and(|(range, _)| range.end <= at) {
            parts.next();
        }
        if parts.peek().is_some_and(|(range, _)| range.contains(&at)) {
            continue;
        }
        match byte {
            b'(' | b'[' => open = Some((at, byte)),
            b')' | b']' => {
                let wanted = if byte == b')' { b'(' } else { b'[' };
                if let Some((start, _)) = open.take().filter(|(_, sign)| *sign == wanted) {
                    out.push(start..at + 1);
                }
            }
            _ => {}
        }
    }
    out
}

/// The end of a list of references after a colon.
fn list_end(text: &str) -> usize {
    let stops = |at: &usize| {
        let rest = &text.as_bytes()[*at..];
        matches!(rest[0], b';' | b'(' | b'[' | b'|' | b'\n')
            || [&b" @"[..], b" - ", b". "].iter().any(|stop| rest.starts_with(stop))
            || rest.starts_with(" — ".as_bytes())
    };
    (0..text.len()).find(stops).unwrap_or(text.len())
}

/// Sorts ranges and merges those that overlap or touch.
fn merge_ranges(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// Removes ranges from a text and collapses whitespace.
fn remove_ranges(text: &str, cuts: &[Range<usize>]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        kept.push_str(&text[at..cut.start]);
        kept.push(' ');
        at = cut.end;
    }
    kept.push_str(&text[at..]);
    let mut out = String::with_capacity(kept.len());
    for word in kept.split_whitespace() {
        let closes = matches!(word, "." | "," | ";" | ":" | "!" | "?");
        if !out.is_empty() && !closes {
            out.push(' ');
        }
        out.push_str(word);
    }
    let unbold = out.strip_prefix("** ").map(|rest| format!("**{rest}"));
    let out = unbold.unwrap_or(out);
    if cuts.is_empty() {
        out
    } else {
        out.trim_end_matches([' ', ',', ';', '-', '–', '—']).to_owned()
    }
}
