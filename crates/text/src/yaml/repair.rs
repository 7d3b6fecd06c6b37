//! Mends the mistakes that real frontmatter has. One skill in thirty in the wild is not YAML, nearly
//! always because a value in prose was not quoted; a few are indented with tabs or one level off.
//!
//! The repair is one pass over the lines and never adds or removes a line, so line numbers stay true.
//! It only touches lines that cannot be right by themselves, and only after the parser has refused the
//! text. What it did is returned line by line; nothing is mended silently.

use super::{Entry, Limits, Mapping, Node, Value, emit_scalar, parse};
use crate::codes;
use crate::diagnostic::Code;
use crate::source::Span;

/// One line that was read differently from how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The code of the diagnostic it becomes.
    pub code: &'static Code,
    /// The line in the file, without its line break.
    pub line: Span,
    /// The line as it was read.
    pub corrected: String,
}

/// A tree that could be read, and what had to be mended first.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The tree; spans are places in the file as it is, not as it was mended.
    pub node: Node,
    /// What was mended, in the order of the lines.
    pub repairs: Vec<Repair>,
}

/// Why a text could not be mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmended {
    /// No line is wrong in a way that is known.
    NothingToMend,
    /// The mended text is refused as well.
    Refused,
    /// More lines are wrong than are mended.
    TooMany {
        /// The limit in force.
        limit: usize,
    },
}

/// Tries to mend the YAML under `span`. `fields` are the names that belong at the left margin.
pub fn repair(
    text: &str,
    span: Span,
    limits: &Limits,
    fields: &[&str],
) -> Result<Repaired, Unmended> {
    let lines = lines_of(text, span);
    let limit = limits.repairs_max;
    let repairs = Mender::new(fields, &lines, limit).run();
    if repairs.is_empty() {
        return Err(Unmended::NothingToMend);
    }
    if repairs.len() > limit {
        return Err(Unmended::TooMany { limit });
    }
    let mended = splice(text, span, &repairs);
    let whole = Span::new(0, mended.len());
    let mut node = parse(&mended, whole, limits).map_err(|_| Unmended::Refused)?;
    let map = OffsetMap::new(text, span, &repairs);
    map.restore(&mut node);
    Ok(Repaired { node, repairs })
}

/// The lines as they would be mended, whether or not that is enough.
#[cfg(test)]
pub(super) fn corrections(text: &str, fields: &[&str]) -> Vec<String> {
    let lines = lines_of(text, Span::new(0, text.len()));
    let repairs = Mender::new(fields, &lines, lines.len()).run();
    repairs.into_iter().map(|repair| repair.corrected).collect()
}

/// A line of the file, split at its indentation.
struct Line<'a> {
    span: Span,
    indent: &'a str,
    content: &'a str,
}

impl Line<'_> {
    fn is_blank(&self) -> bool {
        self.content.is_empty()
    }

    fn is_comment(&self) -> bool {
        self.content.starts_with('#')
    }

    fn is_item(&self) -> bool {
        self.content == "-" || self.content.starts_with("- ")
    }
}

fn lines_of(text: &str, span: Span) -> Vec<Line<'_>> {
    let mut start = span.start as usize;
    span.slice(text)
        .split_inclusive('\n')
        .map(|raw| {
            let line = raw.trim_end_matches(['\n', '\r']);
            let content = line.trim_start_matches([' ', '\t']);
            let indent = &line[..line.len() - content.len()];
            let span = Span::new(start, start + line.len());
            start += raw.len();
            Line { span, indent, content: content.trim_end() }
        })
        .collect()
}

/// A `key: value` line, after any `- ` in front of it.
struct Field<'a> {
    before: &'a str,
    key: &'a str,
    value: &'a str,
}

fn field_of(content: &str) -> Option<Field<'_>> {
    let (before, rest) = split_dashes(content);
    let key_len = match rest.chars().next()? {
        '"' | '\'' => closing(rest)?,
        _ => rest.find(|c: char| !(c.is_alphanumeric() || "_-./$".contains(c)))?,
    };
    let (key, after) = rest.split_at(key_len);
    let value = after.strip_prefix(':')?;
    let separated = value.is_empty() || value.starts_with([' ', '\t']);
    (key_len > 0 && separated).then(|| Field { before, key, value: without_lone_comment(value) })
}

/// Splits the `- ` marks off the front of a line.
fn split_dashes(content: &str) -> (&str, &str) {
    let mut rest = content;
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    content.split_at(content.len() - rest.len())
}

/// The value, which is empty if there is only a comment where it would stand.
fn without_lone_comment(value: &str) -> &str {
    let value = value.trim();
    if value.starts_with('#') { "" } else { value }
}

/// What a line holds: a value, and what stands in front of it.
struct Part<'a> {
    kind: Kind,
    /// The text in front of the value: a key with its colon, or the marks of an item.
    head: &'a str,
    value: &'a str,
    /// Lines that are deeper than this column can belong to the value.
    column: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `key: value`.
    Field,
    /// `- key: value`.
    FieldOfItem,
    /// `- value`.
    Item,
    /// A value on a line of its own, or a further line of one.
    Bare,
}

impl<'a> Part<'a> {
    /// `above` is the column of the field or item that a value on a line of its own belongs to.
    fn of(line: &Line<'a>, above: usize) -> Self {
        let content = line.content;
        let margin = width(line.indent);
        if let Some(Field { before, key, value }) = field_of(content) {
            let kind = if before.is_empty() { Kind::Field } else { Kind::FieldOfItem };
            let head = &content[..before.len() + key.len() + 1];
            return Part { kind, head, value, column: margin + before.len() };
        }
        if !line.is_item() {
            return Part { kind: Kind::Bare, head: "", value: content, column: above };
        }
        let (dashes, rest) = match content.strip_suffix('-') {
            Some(before) if split_dashes(before).1.is_empty() => (content, ""),
            _ => split_dashes(content),
        };
        let head = dashes.trim_end();
        let value = without_lone_comment(rest);
        Part { kind: Kind::Item, head, value, column: margin + head.len() - 1 }
    }

    fn needs_quotes(&self) -> bool {
        self.kind != Kind::Bare && needs_quotes(self.value, self.kind == Kind::Item)
    }
}

/// What is known of the lines above the one that is read.
#[derive(Clone, Copy, Default)]
struct Above {
    /// The column of the last field or item.
    column: usize,
    /// Whether that was a field with a value of its own, so that nothing can stand below it.
    is_scalar: bool,
    /// The indentation of the list under the field at the left margin, once it has one.
    list: Option<usize>,
    /// Whether the field at the margin was moved there, so that its items must follow.
    relist: bool,
}

struct Mender<'a> {
    fields: &'a [&'a str],
    lines: &'a [Line<'a>],
    /// How many more bytes may be read to find the end of values that are never closed; without
    /// this, a file of nothing but opened brackets would be read once for each of them.
    vain_bytes: usize,
    repairs_max: usize,
    out: Vec<Repair>,
}

impl<'a> Mender<'a> {
    fn new(fields: &'a [&'a str], lines: &'a [Line<'a>], repairs_max: usize) -> Self {
        let bytes: usize = lines.iter().map(|line| line.content.len() + 1).sum();
        Mender { fields, lines, vain_bytes: bytes.saturating_mul(4), repairs_max, out: Vec::new() }
    }

    /// Mends line by line, and gives up after more repairs than allowed.
    fn run(mut self) -> Vec<Repair> {
        let mut at = 0;
        let mut above = Above::default();
        while at < self.lines.len() && !self.has_too_many() {
            let line = &self.lines[at];
            at = if line.is_blank() || line.is_comment() {
                at + 1
            } else {
                self.mend_line(at, &mut above)
            };
        }
        self.out
    }

    /// Whether more lines are wrong than are mended, so that nothing further need be worked out.
    fn has_too_many(&self) -> bool {
        self.out.len() > self.repairs_max
    }

    /// Mends the value that starts on line `at` and returns the number of the line after it.
    fn mend_line(&mut self, at: usize, above: &mut Above) -> usize {
        let line = &self.lines[at];
        let part = Part::of(line, above.column);
        let misplaced = self.is_misplaced(line, above);
        let relisted = line.is_item() && above.relist;
        let indent = match (misplaced, relisted, part.kind) {
            (true, ..) => String::new(),
            (_, true, _) => "  ".to_owned(),
            (.., Kind::Bare) => without_tabs(line.indent, part.column),
            _ => line.indent.replace('\t', "  "),
        };
        above.follow_list(line);
        if indent.is_empty() && !line.is_item() {
            (above.list, above.relist) = (None, misplaced);
        }
        above.column = if misplaced { 0 } else { part.column };
        above.is_scalar = part.kind == Kind::Field && !part.value.is_empty();
        self.mend_value(at, &part, &indent, misplaced || relisted)
    }

    /// A known field that stands deeper than the margin although nothing can contain it there.
    fn is_misplaced(&self, line: &Line<'_>, above: &Above) -> bool {
        let Some(field) = field_of(line.content) else { return false };
        let known = field.before.is_empty() && self.fields.contains(&field.key);
        let indent = width(line.indent);
        let below_scalar = above.is_scalar && above.column < indent;
        known && indent > 0 && (below_scalar || above.list == Some(indent))
    }

    fn mend_value(&mut self, at: usize, part: &Part<'_>, indent: &str, moved: bool) -> usize {
        let line = &self.lines[at];
        let code = if moved { &codes::REPAIRED_INDENT } else { &codes::REPAIRED_TAB };
        let whole = format!("{indent}{}", line.content);
        if part.kind != Kind::Bare && is_block_header(part.value) {
            self.emit(at, code, &whole);
            return self.skip_block_scalar(at, part);
        }
        let quote = part.needs_quotes();
        if !quote && part.value.starts_with(['"', '\'', '[', '{']) {
            self.emit(at, code, &whole);
            return self.skip_closed(at, part);
        }
        let end = self.plain_end(at, part);
        if quote || self.continuation_needs_quotes(at, end) {
            self.quote(at, end, &format!("{indent}{} ", part.head), part);
        } else {
            self.emit(at, code, &whole);
            for next in at + 1..end {
                if self.has_too_many() {
                    break;
                }
                self.indent_continuation(next, part.column);
            }
        }
        end
    }

    /// The line after the last line of a plain value: deeper lines, or unindented prose, belong to it.
    fn plain_end(&self, at: usize, part: &Part<'_>) -> usize {
        let mut end = at + 1;
        if part.value.is_empty() || part.kind == Kind::Bare {
            return end;
        }
        for (next, line) in self.lines.iter().enumerate().skip(end) {
            if line.is_blank() {
                continue;
            }
            // After a blank line only what cannot be a field by itself still belongs to the value.
            let apart = next > end;
            if !self.continues(line, part.column) || apart && field_of(line.content).is_some() {
                break;
            }
            if apart && line.indent.is_empty() {
                break;
            }
            end = next + 1;
        }
        end
    }

    fn continues(&self, line: &Line<'_>, column: usize) -> bool {
        let field = field_of(line.content);
        let known = field.as_ref().is_some_and(|f| self.fields.contains(&f.key));
        let deeper = width(line.indent) > column && !known;
        let spilled = line.indent.is_empty() && field.is_none() && column == 0 && !line.is_item();
        !line.is_comment() && (deeper || spilled)
    }

    fn continuation_needs_quotes(&self, at: usize, end: usize) -> bool {
        (at + 1..end).any(|next| {
            let content = self.lines[next].content;
            // Only the last line of a plain value can have a comment.
            let text = if next + 1 == end { split_comment(content).0 } else { content };
            has_field_mark(text)
        })
    }

    /// Puts a value of one or more lines into double quotes, but not the comment after it.
    fn quote(&mut self, at: usize, end: usize, head: &str, part: &Part<'_>) {
        let inner = |line: usize, text: &str| {
            let is_last = line + 1 == end;
            let (text, comment) = if is_last { split_comment(text) } else { (text, "") };
            let quoted = emit_scalar(text, super::Style::Double);
            let close = if is_last { "\"" } else { "" };
            format!("{}{close}{comment}", &quoted[1..quoted.len() - 1])
        };
        let first = format!("{head}\"{}", inner(at, part.value));
        self.emit(at, &codes::REPAIRED_VALUE, &first);
        for next in at + 1..end {
            if self.has_too_many() {
                break;
            }
            let line = &self.lines[next];
            if !line.is_blank() {
                let text = inner(next, line.content);
                let corrected = format!("{}{text}", continuation_indent(line, part.column));
                self.emit(next, &codes::REPAIRED_VALUE, &corrected);
            }
        }
    }

    fn indent_continuation(&mut self, at: usize, column: usize) {
        let line = &self.lines[at];
        if !line.is_blank() {
            let corrected = format!("{}{}", continuation_indent(line, column), line.content);
            self.emit(at, &codes::REPAIRED_INDENT, &corrected);
        }
    }

    /// Values in quotes or brackets are taken as they are, but for tabs in their indentation.
    fn skip_closed(&mut self, at: usize, part: &Part<'_>) -> usize {
        let end = self.closed_end(at, part).unwrap_or(at + 1);
        for next in at + 1..end {
            let line = &self.lines[next];
            if !line.is_blank() {
                let corrected = without_tabs(line.indent, part.column) + line.content;
                self.emit(next, &codes::REPAIRED_TAB, &corrected);
            }
        }
        end
    }

    /// The line after the one that closes the quote or bracket, unless that is not known for sure.
    fn closed_end(&mut self, at: usize, part: &Part<'_>) -> Option<usize> {
        if self.vain_bytes == 0 {
            return None;
        }
        let mut scan = Scan::new();
        if scan.feed(part.value).is_some() {
            return Some(at + 1);
        }
        let mut read = 0;
        for (next, line) in self.lines.iter().enumerate().skip(at + 1) {
            if !line.is_blank() && !self.can_be_inside(line, part.column, &scan) {
                break;
            }
            read += line.content.len() + 1;
            if let Some(end) = scan.feed(line.content) {
                // Text after the end means that the mark was an apostrophe, or prose.
                if !has_text_after(line.content, end) {
                    return Some(next + 1);
                }
                break;
            }
        }
        self.vain_bytes = self.vain_bytes.saturating_sub(read);
        None
    }

    /// Text in quotes must be deeper than its field; in brackets it need not be.
    fn can_be_inside(&self, line: &Line<'_>, column: usize, scan: &Scan) -> bool {
        let known = || field_of(line.content).is_some_and(|f| self.fields.contains(&f.key));
        width(line.indent) > column || scan.depth > 0 && !known()
    }

    /// Block scalars are taken as they are, but for tabs in their indentation.
    fn skip_block_scalar(&mut self, at: usize, part: &Part<'_>) -> usize {
        let mut own = explicit_indent(part.value).map(|digit| part.column + digit);
        let mut next = at + 1;
        while let Some(line) = self.lines.get(next) {
            if !line.is_blank() {
                if width(line.indent) <= part.column {
                    break;
                }
                let own = *own.get_or_insert_with(|| block_indent(line.indent, part.column));
                let (indent, text) = split_at_width(line.indent, own);
                let indent = indent.replace('\t', "  ");
                let corrected = format!("{indent}{text}{}", line.content);
                self.emit(next, &codes::REPAIRED_TAB, &corrected);
            }
            next += 1;
        }
        next
    }

    /// Records a correction, unless it leaves the line as it is.
    fn emit(&mut self, at: usize, code: &'static Code, corrected: &str) {
        let line = &self.lines[at];
        let unchanged =
            corrected.strip_prefix(line.indent).is_some_and(|content| content == line.content);
        if !unchanged {
            self.out.push(Repair { code, line: line.span, corrected: corrected.to_owned() });
        }
    }
}

impl Above {
    /// Notes where the list under the margin's field stands, and forgets it where it has ended.
    fn follow_list(&mut self, line: &Line<'_>) {
        let indent = width(line.indent);
        if !line.is_item() {
            self.list = self.list.filter(|list| *list <= indent);
        } else if self.list.is_none() && !self.relist && self.column < indent {
            // A list at its field's own column leaves room for more fields there.
            self.list = Some(indent);
        }
    }
}

fn width(indent: &str) -> usize {
    indent.chars().map(|c| if c == '\t' { 2 } else { 1 }).sum()
}

/// How many spaces an indentation has before any tab.
fn spaces(indent: &str) -> usize {
    indent.len() - indent.trim_start_matches(' ').len()
}

/// Replaces tabs, unless the spaces before them are deep enough: then they only separate.
fn without_tabs(indent: &str, column: usize) -> String {
    if spaces(indent) > column { indent.to_owned() } else { indent.replace('\t', "  ") }
}

fn continuation_indent(line: &Line<'_>, column: usize) -> String {
    if line.indent.is_empty() { "  ".to_owned() } else { without_tabs(line.indent, column) }
}

/// The width of a block scalar's indentation by its first line: tabs after enough spaces are text.
fn block_indent(indent: &str, column: usize) -> usize {
    let spaces = spaces(indent);
    if spaces > column { spaces } else { width(indent) }
}

/// Splits an indentation where it has reached a width.
fn split_at_width(indent: &str, wanted: usize) -> (&str, &str) {
    let mut reached = 0;
    let end = indent.find(|c| {
        let full = reached >= wanted;
        reached += if c == '\t' { 2 } else { 1 };
        full
    });
    indent.split_at(end.unwrap_or(indent.len()))
}

/// `|` or `>` with nothing but indicators and a comment after it.
fn is_block_header(value: &str) -> bool {
    let Some(rest) = value.strip_prefix(['|', '>']) else { return false };
    let rest = rest.trim_start_matches(|c: char| "+-".contains(c) || c.is_ascii_digit()).trim();
    rest.is_empty() || rest.starts_with('#')
}

/// The indentation that a block header asks for, as in `|2-`.
fn explicit_indent(header: &str) -> Option<usize> {
    let digit = header.chars().skip(1).take(2).find_map(|c| c.to_digit(10))?;
    usize::try_from(digit).ok()
}

/// `: ` or a final `:`, which ends a key wherever it stands in unquoted text.
fn has_field_mark(text: &str) -> bool {
    text.contains(": ") || text.contains(":\t") || text.ends_with(':')
}

/// Splits a value from the comment after it; the comment keeps the space in front of it.
fn split_comment(value: &str) -> (&str, &str) {
    let closed = if value.starts_with(['"', '\'', '[', '{']) { closing(value) } else { None };
    let from = closed.unwrap_or(0);
    let is_mark = |at: &usize| value[..*at].ends_with([' ', '\t']);
    let marks = value[from..].match_indices('#').map(|(at, _)| from + at);
    let end = marks.filter(|at| *at > 0).find(is_mark).unwrap_or(value.len());
    value.split_at(value[..end].trim_end().len())
}

/// Whether a value on one line cannot be YAML unless it is quoted.
fn needs_quotes(value: &str, is_item: bool) -> bool {
    let Some(first) = value.chars().next() else { return false };
    match first {
        '*' | '&' | '!' | '%' | '@' | '`' => true,
        '"' | '\'' | '[' | '{' => closing(value).is_some_and(|end| has_text_after(value, end)),
        '|' | '>' => !is_block_header(value),
        '-' | '?' if value[1..].starts_with(' ') => !is_item,
        ',' | ']' | '}' => true,
        // In a list, `- some words: value` is a mapping.
        _ if is_item => false,
        _ => has_field_mark(split_comment(value).0),
    }
}

fn has_text_after(value: &str, end: usize) -> bool {
    let rest = value[end..].trim_start();
    !rest.is_empty() && !rest.starts_with('#')
}

/// Offset after the mark that closes the quote or bracket a value opens with, if it is on its line.
fn closing(value: &str) -> Option<usize> {
    Scan::new().feed(value)
}

/// Reads a value in quotes or brackets, line by line, until it is closed.
struct Scan {
    /// How many brackets are open.
    depth: usize,
    /// The quote that is open.
    quote: Option<char>,
    /// Whether a quote here opens a text; elsewhere it is an apostrophe.
    fresh: bool,
}

impl Scan {
    fn new() -> Self {
        Scan { depth: 0, quote: None, fresh: true }
    }

    /// Reads one line, and returns the offset after the mark that closes the value.
    fn feed(&mut self, line: &str) -> Option<usize> {
        let mut chars = line.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map_or(' ', |(_, next)| *next);
            if c == '#' && self.quote.is_none() && before.is_whitespace() {
                return None;
            }
            let escapes = match self.quote {
                Some('"') => c == '\\',
                Some(quote) => c == quote && next == quote,
                None => false,
            };
            if escapes {
                chars.next();
            } else if self.step(c, before, next) {
                return Some(at + c.len_utf8());
            }
            before = c;
        }
        None
    }

    /// Takes one character, and says whether it closes the value.
    fn step(&mut self, c: char, before: char, next: char) -> bool {
        if let Some(quote) = self.quote {
            if c == quote {
                (self.quote, self.fresh) = (None, false);
            }
            return c == quote && self.depth == 0;
        }
        match c {
            '"' | '\'' if self.fresh => self.quote = Some(c),
            '[' | '{' => (self.depth, self.fresh) = (self.depth + 1, true),
            ']' | '}' => {
                (self.depth, self.fresh) = (self.depth.saturating_sub(1), false);
                return self.depth == 0;
            }
            ',' => self.fresh = true,
            // As in JSON, no space is needed after the colon of a quoted key.
            ':' => self.fresh = next.is_whitespace() || "\"'".contains(before),
            c => self.fresh = self.fresh && c.is_whitespace(),
        }
        false
    }
}

fn splice(text: &str, span: Span, repairs: &[Repair]) -> String {
    let mut out = String::with_capacity(span.len() + 16 * repairs.len());
    let mut done = span.start as usize;
    for repair in repairs {
        out.push_str(&text[done..repair.line.start as usize]);
        out.push_str(&repair.corrected);
        done = repair.line.end as usize;
    }
    out.push_str(&text[done..span.end as usize]);
    out
}

/// Translates places in the mended text back to places in the file.
struct OffsetMap<'a> {
    text: &'a str,
    base: usize,
    /// Start of each mended line in the mended text, its length there, and its span in the file.
    lines: Vec<(usize, usize, Span)>,
}

impl<'a> OffsetMap<'a> {
    fn new(text: &'a str, span: Span, repairs: &[Repair]) -> Self {
        let base = span.start as usize;
        let mut grown = 0_isize;
        let lines = repairs
            .iter()
            .map(|repair| {
                let start = (repair.line.start as usize - base).saturating_add_signed(grown);
                grown += repair.corrected.len() as isize - repair.line.len() as isize;
                (start, repair.corrected.len(), repair.line)
            })
            .collect();
        OffsetMap { text, base, lines }
    }

    fn original(&self, offset: usize) -> usize {
        let before = self.lines.partition_point(|(start, ..)| *start <= offset);
        let Some((start, len, line)) = before.checked_sub(1).map(|at| self.lines[at]) else {
            return self.base + offset;
        };
        let into = offset - start;
        if into >= len {
            return line.end as usize + (into - len);
        }
        // Columns inside a mended line shift by what was inserted; the line's end is the limit, and a
        // place inside a character counts as its start.
        self.text.floor_char_boundary(line.start as usize + into.min(line.len()))
    }

    fn restore(&self, node: &mut Node) {
        self.restore_span(&mut node.span);
        match &mut node.value {
            Value::Scalar(_) => {}
            Value::Sequence(items, _) => items.iter_mut().for_each(|item| self.restore(item)),
            Value::Mapping(Mapping { entries, .. }) => {
                for Entry { key_span, value, .. } in entries {
                    self.restore_span(key_span);
                    self.restore(value);
                }
            }
        }
    }

    fn restore_span(&self, span: &mut Span) {
        *span = Span::new(self.original(span.start as usize), self.original(span.end as usize));
    }
}
