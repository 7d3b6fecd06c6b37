//! Scans a body once for code fences, links and lines. The scan looks only at the few bytes that matter,
//! since thousands of bodies are checked at once.

use std::sync::LazyLock;

use memchr::memmem;
use repertoire_text::Span;

use crate::skill::Skill;

/// The result of scanning a body.
pub(crate) struct BodyScan<'a> {
    /// The whole text of the file, so that spans are positions in the file.
    pub(crate) text: &'a str,
    /// The span of the body within the text.
    pub(crate) span: Span,
    /// The opening line of a fence that is never closed.
    pub(crate) open_fence: Option<Span>,
    /// The number of lines with a fence marker.
    pub(crate) fence_lines: usize,
    /// The fenced regions, in order.
    fences: Vec<Span>,
}

impl<'a> BodyScan<'a> {
    pub(crate) fn scan(skill: &'a Skill) -> Self {
        let text = skill.text();
        let mut body = BodyScan {
            text,
            span: skill.body,
            open_fence: None,
            fence_lines: 0,
            fences: Vec::new(),
        };
        body.find_fences();
        body
    }

    pub(crate) fn as_str(&self) -> &'a str {
        self.span.slice(self.text)
    }

    /// The number of lines, including a last one without a line break.
    pub(crate) fn count_lines(&self) -> usize {
        let body = self.as_str();
        memchr::memchr_iter(b'\n', body.as_bytes()).count() + usize::from(!body.ends_with('\n'))
    }

    /// Iterates over the targets of what looks like a Markdown link, with their spans. Links in code are
    /// included; callers check [`Body::is_code`] for the few that matter.
    pub(crate) fn find_links(&self) -> impl Iterator<Item = (&'a str, Span)> {
        let base = self.span.start as usize;
        let body = self.as_str();
        LINK.find_iter(body.as_bytes()).filter_map(move |at| {
            let start = at + 2;
            let rest = &body[start..];
            let line_end = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            let end = memchr::memchr(b')', &rest.as_bytes()[..line_end])?;
            Some((&rest[..end], Span::new(base + start, base + start + end)))
        })
    }

    /// Returns true if an offset is inside a fence, or inside a code span of its line.
    pub(crate) fn is_code(&self, offset: u32) -> bool {
        let after = self.fences.partition_point(|fence| fence.start <= offset);
        if after > 0 && offset < self.fences[after - 1].end {
            return true;
        }
        let before = &self.text.as_bytes()[..offset as usize];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        memchr::memchr_iter(b'`', &before[line_start..]).count() % 2 == 1
    }

    /// Finds fences by the rules of CommonMark: at least three backticks or tildes, closed by as many or
    /// more.
    fn find_fences(&mut self) {
        let base = self.span.start as usize;
        let body = self.as_str();
        let mut open: Option<(u8, usize, Span)> = None;
        let mut marks = FenceLines::new(body);
        while let Some(line) = marks.next_line() {
            let span = Span::new(base + line.start, base + line.end);
            self.fence_lines += 1;
            match open {
                None => open = Some((line.mark, line.count, span)),
                Some((mark, count, opening))
                    if line.mark == mark && line.count >= count && line.bare =>
                {
                    self.fences.push(Span { start: opening.start, end: span.end });
                    open = None;
                }
                Some(_) => {}
            }
        }
        if let Some((_, _, opening)) = open {
            self.fences.push(Span { start: opening.start, end: self.span.end });
            self.open_fence = Some(opening);
        }
    }
}

/// A line that starts with a fence marker.
struct FenceLine {
    mark: u8,
    count: usize,
    /// True if only white space follows the marker; only such a line closes a fence.
    bare: bool,
    start: usize,
    end: usize,
}

/// Created once, because creating a searcher costs more than searching most bodies.
static BACKTICKS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("```"));
static TILDES: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("~~~"));
static LINK: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("]("));

/// Iterates over lines with fence markers by jumping from marker to marker.
struct FenceLines<'a> {
    body: &'a str,
    backticks: memmem::FindIter<'a, 'static>,
    tildes: memmem::FindIter<'a, 'static>,
    next: [Option<usize>; 2],
    done: usize,
}

impl<'a> FenceLines<'a> {
    fn new(body: &'a str) -> Self {
        let mut backticks = BACKTICKS.find_iter(body.as_bytes());
        let mut tildes = TILDES.find_iter(body.as_bytes());
        let next = [backticks.next(), tildes.next()];
        FenceLines { body, backticks, tildes, next, done: 0 }
    }

    fn next_mark(&mut self) -> Option<usize> {
        let which = match self.next {
            [None, None] => return None,
            [Some(a), Some(b)] => usize::from(b < a),
            [None, Some(_)] => 1,
            [Some(_), None] => 0,
        };
        let found = self.next[which];
        self.next[which] = if which == 0 { self.backticks.next() } else { self.tildes.next() };
        found
    }

    fn next_line(&mut self) -> Option<FenceLine> {
        loop {
            let at = self.next_mark()?;
            if at < self.done {
                continue;
            }
            let bytes = self.body.as_bytes();
            let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |found| found + 1);
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            self.done = end;
            // Fences in lists and quotes are indented or prefixed; any other text before the marker rules a
            // fence out.
            let lead = &bytes[start..at];
            if !lead.iter().all(|byte| b" \t>-*+0123456789.)".contains(byte)) {
                continue;
            }
            let mark = bytes[at];
            let count = bytes[at..end].iter().take_while(|byte| **byte == mark).count();
            let rest = &bytes[at + count..end];
            // A backtick in the info string makes the line inline code, not a fence.
            if mark == b'`' && rest.contains(&b'`') {
                continue;
            }
            let bare = rest.iter().all(u8::is_ascii_whitespace);
            return Some(FenceLine { mark, count, bare, start, end });
        }
    }
}
