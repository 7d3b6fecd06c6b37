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
    let repairs = Mender { fields, lines: &lines, out: Vec::new() }.run(limit);
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
    let mut rest = content;
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    let key_len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))?;
    let (key, after) = rest.split_at(key_len);
    let value = after.strip_prefix(':')?;
    let separated = value.is_empty() || value.starts_with([' ', '\t']);
    let before = &content[..content.len() - rest.len()];
    (key_len > 0 && separated).then(|| Field { before, key, value: value.trim() })
}

struct Mender<'a> {
    fields: &'a [&'a str],
    lines: &'a [Line<'a>],
    out: Vec<Repair>,
}

impl Mender<'_> {
    /// Mends line by line, and gives up after more repairs than allowed.
    fn run(mut self, repairs_max: usize) -> Vec<Repair> {
        let mut at = 0;
        // The indentation of the list under the field at the left margin, once it has one.
        let mut list_indent = None;
        let mut scalar_above = false;
        let mut relist = false;
        while at < self.lines.len() && self.out.len() <= repairs_max {
            let line = &self.lines[at];
            if line.is_blank() || line.is_comment() {
                at += 1;
                continue;
            }
            let misplaced = self.is_misplaced(line, list_indent, scalar_above);
            if line.is_item() && relist {
                self.emit(at, &codes::REPAIRED_INDENT, &format!("  {}", line.content));
                at += 1;
                continue;
            }
            if line.is_item() && list_indent.is_none() {
                list_indent = Some(width(line.indent));
            }
            let indent = if misplaced { String::new() } else { line.indent.replace('\t', "  ") };
            if indent.is_empty() && !line.is_item() {
                (list_indent, relist) = (None, misplaced);
            }
            let next = self.mend_value(at, &indent, misplaced);
            scalar_above =
                field_of(line.content).is_some_and(|f| !f.value.is_empty() && f.before.is_empty());
            at = next;
        }
        self.out
    }

    /// A known field that stands deeper than the margin although nothing can contain it there.
    fn is_misplaced(&self, line: &Line<'_>, list: Option<usize>, scalar_above: bool) -> bool {
        let Some(field) = field_of(line.content) else { return false };
        let known = field.before.is_empty() && self.fields.contains(&field.key);
        let indent = width(line.indent);
        known && indent > 0 && (scalar_above || list == Some(indent))
    }

    /// Mends the value that starts on line `at` and returns the number of the line after it.
    fn mend_value(&mut self, at: usize, indent: &str, misplaced: bool) -> usize {
        let line = &self.lines[at];
        let moved = if misplaced { &codes::REPAIRED_INDENT } else { &codes::REPAIRED_TAB };
        let (head, value, is_item) = match field_of(line.content) {
            Some(field) => {
                let key_end = field.before.len() + field.key.len() + 1;
                (&line.content[..key_end], field.value, false)
            }
            None if line.is_item() => ("-", line.content[1..].trim(), true),
            None => {
                self.emit(at, moved, &format!("{indent}{}", line.content));
                return at + 1;
            }
        };
        if is_block_header(value) {
            self.emit(at, moved, &format!("{indent}{}", line.content));
            return self.skip_block_scalar(at);
        }
        let end = self.value_end(at, value);
        if needs_quotes(value, is_item) || self.continuation_needs_quotes(at, end, value) {
            self.quote(at, end, &format!("{indent}{head} "), value);
        } else {
            self.emit(at, moved, &format!("{indent}{}", line.content));
            for next in at + 1..end {
                self.indent_continuation(next);
            }
        }
        end
    }

    /// The line after the last line of a plain value: deeper lines, or unindented prose, belong to it.
    fn value_end(&self, at: usize, value: &str) -> usize {
        if value.is_empty()
            || value.starts_with(['"', '\'', '[', '{']) && !needs_quotes(value, false)
        {
            return at + 1;
        }
        let depth = width(self.lines[at].indent);
        let belongs = |line: &Line<'_>| {
            let field = field_of(line.content);
            let known = field.as_ref().is_some_and(|f| self.fields.contains(&f.key));
            let deeper = width(line.indent) > depth && !known;
            let spilled = line.indent.is_empty() && field.is_none() && depth == 0;
            !line.is_blank() && !line.is_comment() && !line.is_item() && (deeper || spilled)
        };
        let rest = &self.lines[at + 1..];
        at + 1 + rest.iter().take_while(|line| belongs(line)).count()
    }

    fn continuation_needs_quotes(&self, at: usize, end: usize, value: &str) -> bool {
        !value.starts_with(['"', '\'', '[', '{'])
            && self.lines[at + 1..end].iter().any(|line| has_field_mark(line.content))
    }

    /// Puts a value of one or more lines into double quotes.
    fn quote(&mut self, at: usize, end: usize, head: &str, value: &str) {
        let inner = |text: &str| {
            let quoted = emit_scalar(text, super::Style::Double);
            quoted[1..quoted.len() - 1].to_owned()
        };
        let close = |line: usize| if line + 1 == end { "\"" } else { "" };
        let first = format!("{head}\"{}{}", inner(value), close(at));
        self.emit(at, &codes::REPAIRED_VALUE, &first);
        for line in at + 1..end {
            let text = inner(self.lines[line].content);
            let corrected = format!("{}{text}{}", self.continuation_indent(line), close(line));
            self.emit(line, &codes::REPAIRED_VALUE, &corrected);
        }
    }

    fn continuation_indent(&self, line: usize) -> String {
        let indent = self.lines[line].indent.replace('\t', "  ");
        if indent.is_empty() { "  ".to_owned() } else { indent }
    }

    fn indent_continuation(&mut self, line: usize) {
        let corrected = format!("{}{}", self.continuation_indent(line), self.lines[line].content);
        self.emit(line, &codes::REPAIRED_INDENT, &corrected);
    }

    /// Block scalars are taken as they are, but for tabs in their indentation.
    fn skip_block_scalar(&mut self, at: usize) -> usize {
        let depth = width(self.lines[at].indent);
        let mut next = at + 1;
        while let Some(line) = self.lines.get(next) {
            if !line.is_blank() && width(line.indent) <= depth {
                break;
            }
            if !line.is_blank() {
                let indent = line.indent.replace('\t', "  ");
                self.emit(next, &codes::REPAIRED_TAB, &format!("{indent}{}", line.content));
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

fn width(indent: &str) -> usize {
    indent.chars().map(|c| if c == '\t' { 2 } else { 1 }).sum()
}

/// `|` or `>` with nothing but indicators and a comment after it.
fn is_block_header(value: &str) -> bool {
    let Some(rest) = value.strip_prefix(['|', '>']) else { return false };
    let rest = rest.trim_start_matches(|c: char| "+-".contains(c) || c.is_ascii_digit()).trim();
    rest.is_empty() || rest.starts_with('#')
}

/// `: ` or a final `:`, which ends a key wherever it stands in unquoted text.
fn has_field_mark(text: &str) -> bool {
    text.contains(": ") || text.contains(":\t") || text.ends_with(':')
}

/// Whether a value on one line cannot be YAML unless it is quoted.
fn needs_quotes(value: &str, is_item: bool) -> bool {
    let Some(first) = value.chars().next() else { return false };
    match first {
        '*' | '&' | '!' | '%' | '@' | '`' => true,
        '"' | '\'' => quoted_end(value).is_some_and(|end| has_text_after(value, end)),
        '[' | '{' => bracket_end(value).is_some_and(|end| has_text_after(value, end)),
        '|' | '>' => !is_block_header(value),
        '-' | '?' if value[1..].starts_with(' ') => !is_item,
        ',' | ']' | '}' => true,
        // In a list, `- key: value` is a mapping; a second mark is what cannot be.
        _ if is_item => value.matches(": ").count() > 1 && field_of(value).is_some(),
        _ => has_field_mark(value.split(" #").next().unwrap_or(value)),
    }
}

fn has_text_after(value: &str, end: usize) -> bool {
    let rest = value[end..].trim_start();
    !rest.is_empty() && !rest.starts_with('#')
}

/// Offset after the closing quote, if the value's opening quote is closed on its line.
fn quoted_end(value: &str) -> Option<usize> {
    let quote = value.chars().next()?;
    let mut chars = value.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') {
                chars.next();
                continue;
            }
            return Some(at + 1);
        }
    }
    None
}

/// Offset after the bracket that closes the first one, if it is closed on its line.
fn bracket_end(value: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < value.len() {
        let rest = &value[at..];
        let c = rest.chars().next()?;
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            '"' | '\'' => {
                at += quoted_end(rest)?;
                continue;
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    None
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
