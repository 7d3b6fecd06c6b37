//! Repairs the common mistakes of real frontmatter. One public skill in thirty is not valid YAML, nearly always because
//! a prose value was not quoted; a few are indented with tabs or one level off.
//!
//! The repair is one pass over the lines and never adds or removes a line, so line numbers stay correct. It changes
//! only lines that cannot be correct by themselves, and only after the parser has refused the text. All changes are
//! returned line by line; nothing is repaired silently.

use super::{Limits, Value, YamlEntry, YamlMapping, YamlNode, emit_scalar, parse};
use crate::codes;
use crate::diagnostic::DiagnosticCode;
use crate::source::Span;

/// A line that was read differently from how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlRepair {
    /// The code of the resulting diagnostic.
    pub code: &'static DiagnosticCode,
    /// The line in the file, without its line break.
    pub line: Span,
    /// The line as it was read.
    pub corrected: String,
}

/// A parsed tree, and the repairs that were needed.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairedYaml {
    /// The tree. Spans refer to the original file, not the repaired text.
    pub node: YamlNode,
    /// The repairs, in the order of the lines.
    pub repairs: Vec<YamlRepair>,
}

/// The reason why a text could not be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairFailure {
    /// No line has a known mistake.
    NothingToMend,
    /// The parser refuses the repaired text as well.
    Refused,
    /// More lines are wrong than the limit allows.
    TooMany { limit: usize },
}

/// Tries to repair the YAML under `span`. `fields` are the names that belong at the left margin.
pub fn repair_text(
    text: &str,
    span: Span,
    limits: &Limits,
    fields: &[&str],
) -> Result<RepairedYaml, RepairFailure> {
    let lines = lines_of(text, span);
    let limit = limits.repairs_max;
    let repairs = YamlRepairer::new(fields, &lines, limit).run();
    if repairs.is_empty() {
        return Err(RepairFailure::NothingToMend);
    }
    if repairs.len() > limit {
        return Err(RepairFailure::TooMany { limit });
    }
    let mended = apply_repairs(text, span, &repairs);
    let whole = Span::new(0, mended.len());
    let mut node = parse(&mended, whole, limits).map_err(|_| RepairFailure::Refused)?;
    let map = OffsetMap::new(text, span, &repairs);
    map.restore_node(&mut node);
    Ok(RepairedYaml { node, repairs })
}

/// The repaired lines, whether or not the result is valid.
#[cfg(test)]
pub(super) fn corrections(text: &str, fields: &[&str]) -> Vec<String> {
    let lines = lines_of(text, Span::new(0, text.len()));
    let repairs = YamlRepairer::new(fields, &lines, lines.len()).run();
    repairs.into_iter().map(|repair| repair.corrected).collect()
}

/// A line of the file, split at its indentation.
struct YamlLine<'a> {
    span: Span,
    indent: &'a str,
    content: &'a str,
}

impl YamlLine<'_> {
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

fn lines_of(text: &str, span: Span) -> Vec<YamlLine<'_>> {
    let mut start = span.start as usize;
    span.slice(text)
        .split_inclusive('\n')
        .map(|raw| {
            let line = raw.trim_end_matches(['\n', '\r']);
            let content = line.trim_start_matches([' ', '\t']);
            let indent = &line[..line.len() - content.len()];
            let span = Span::new(start, start + line.len());
            start += raw.len();
            YamlLine { span, indent, content: content.trim_end() }
        })
        .collect()
}

/// A `key: value` line, after any `- ` in front of it.
struct YamlField<'a> {
    before: &'a str,
    key: &'a str,
    value: &'a str,
}

fn field_of(content: &str) -> Option<YamlField<'_>> {
    let (before, rest) = split_dashes(content);
    let key_len = match rest.chars().next()? {
        '"' | '\'' => find_closing(rest)?,
        _ => rest.find(|c: char| !(c.is_alphanumeric() || "_-./$".contains(c)))?,
    };
    let (key, after) = rest.split_at(key_len);
    let value = after.strip_prefix(':')?;
    let separated = value.is_empty() || value.starts_with([' ', '\t']);
    (key_len > 0 && separated).then(|| YamlField {
        before,
        key,
        value: without_lone_comment(value),
    })
}

/// Splits the `- ` markers off the front of a line.
fn split_dashes(content: &str) -> (&str, &str) {
    let mut rest = content;
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    content.split_at(content.len() - rest.len())
}

/// The value; empty if there is only a comment in its place.
fn without_lone_comment(value: &str) -> &str {
    let value = value.trim();
    if value.starts_with('#') { "" } else { value }
}

/// The parts of a line: a value, and the text in front of it.
struct LineParts<'a> {
    kind: YamlLineKind,
    /// The text in front of the value: a key with its colon, or the markers of an item.
    head: &'a str,
    value: &'a str,
    /// Lines indented deeper than this column can belong to the value.
    column: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum YamlLineKind {
    /// `key: value`.
    Field,
    /// `- key: value`.
    FieldOfItem,
    /// `- value`.
    Item,
    /// A value on its own line, or a continuation line.
    Bare,
}

impl<'a> LineParts<'a> {
    /// `above` is the column of the field or item to which a value on its own line belongs.
    fn parse_line(line: &YamlLine<'a>, above: usize) -> Self {
        let content = line.content;
        let margin = indent_width(line.indent);
        if let Some(YamlField { before, key, value }) = field_of(content) {
            let kind =
                if before.is_empty() { YamlLineKind::Field } else { YamlLineKind::FieldOfItem };
            let head = &content[..before.len() + key.len() + 1];
            return LineParts { kind, head, value, column: margin + before.len() };
        }
        if !line.is_item() {
            return LineParts { kind: YamlLineKind::Bare, head: "", value: content, column: above };
        }
        let (dashes, rest) = match content.strip_suffix('-') {
            Some(before) if split_dashes(before).1.is_empty() => (content, ""),
            _ => split_dashes(content),
        };
        let head = dashes.trim_end();
        let value = without_lone_comment(rest);
        LineParts { kind: YamlLineKind::Item, head, value, column: margin + head.len() - 1 }
    }

    fn needs_quotes(&self) -> bool {
        self.kind != YamlLineKind::Bare && needs_quotes(self.value, self.kind == YamlLineKind::Item)
    }
}

/// The context from the lines above.
#[derive(Clone, Copy, Default)]
struct LineContext {
    /// The column of the last field or item.
    column: usize,
    /// True if that was a field with a value on its line, so that nothing can be nested below it.
    is_scalar: bool,
    /// The indentation of the list under the field at the left margin, once it has one.
    list: Option<usize>,
    /// True if the field at the margin was moved there, so that its items must be moved as well.
    relist: bool,
}

struct YamlRepairer<'a> {
    fields: &'a [&'a str],
    lines: &'a [YamlLine<'a>],
    /// The remaining budget of bytes to scan for the ends of values that are never closed. Without it, a file of
    /// nothing but opening brackets would take quadratic time.
    vain_bytes: usize,
    repairs_max: usize,
    out: Vec<YamlRepair>,
}

impl<'a> YamlRepairer<'a> {
    fn new(fields: &'a [&'a str], lines: &'a [YamlLine<'a>], repairs_max: usize) -> Self {
        let bytes: usize = lines.iter().map(|line| line.content.len() + 1).sum();
        YamlRepairer {
            fields,
            lines,
            vain_bytes: bytes.saturating_mul(4),
            repairs_max,
            out: Vec::new(),
        }
    }

    /// Repairs line by line, and gives up after more repairs than allowed.
    fn run(mut self) -> Vec<YamlRepair> {
        let mut at = 0;
        let mut above = LineContext::default();
        while at < self.lines.len() && !self.has_too_many() {
            let line = &self.lines[at];
            at = if line.is_blank() || line.is_comment() {
                at + 1
            } else {
                self.repair_line(at, &mut above)
            };
        }
        self.out
    }

    /// Returns true if there are more repairs than allowed, so that no further work is needed.
    fn has_too_many(&self) -> bool {
        self.out.len() > self.repairs_max
    }

    /// Repairs the value that starts on line `at`, and returns the number of the line after it.
    fn repair_line(&mut self, at: usize, above: &mut LineContext) -> usize {
        let line = &self.lines[at];
        let part = LineParts::parse_line(line, above.column);
        let misplaced = self.is_misplaced(line, above);
        let relisted = line.is_item() && above.relist;
        let indent = match (misplaced, relisted, part.kind) {
            (true, ..) => String::new(),
            (_, true, _) => "  ".to_owned(),
            (.., YamlLineKind::Bare) => without_tabs(line.indent, part.column),
            _ => line.indent.replace('\t', "  "),
        };
        above.follow_list(line);
        if indent.is_empty() && !line.is_item() {
            (above.list, above.relist) = (None, misplaced);
        }
        above.column = if misplaced { 0 } else { part.column };
        above.is_scalar = part.kind == YamlLineKind::Field && !part.value.is_empty();
        self.repair_value(at, &part, &indent, misplaced || relisted)
    }

    /// Returns true for a known field that is indented although nothing can contain it there.
    fn is_misplaced(&self, line: &YamlLine<'_>, above: &LineContext) -> bool {
        let Some(field) = field_of(line.content) else { return false };
        let known = field.before.is_empty() && self.fields.contains(&field.key);
        let indent = indent_width(line.indent);
        let below_scalar = above.is_scalar && above.column < indent;
        known && indent > 0 && (below_scalar || above.list == Some(indent))
    }

    fn repair_value(
        &mut self,
        at: usize,
        part: &LineParts<'_>,
        indent: &str,
        moved: bool,
    ) -> usize {
        let line = &self.lines[at];
        let code = if moved { &codes::REPAIRED_INDENT } else { &codes::REPAIRED_TAB };
        let whole = format!("{indent}{}", line.content);
        if part.kind != YamlLineKind::Bare && is_block_header(part.value) {
            self.push_repair(at, code, &whole);
            return self.skip_block_scalar(at, part);
        }
        let quote = part.needs_quotes();
        if !quote && part.value.starts_with(['"', '\'', '[', '{']) {
            self.push_repair(at, code, &whole);
            return self.skip_closed(at, part);
        }
        let end = self.plain_end(at, part);
        if quote || self.continuation_needs_quotes(at, end) {
            self.quote_value(at, end, &format!("{indent}{} ", part.head), part);
        } else {
            self.push_repair(at, code, &whole);
            for next in at + 1..end {
                if self.has_too_many() {
                    break;
                }
                self.indent_continuation(next, part.column);
            }
        }
        end
    }

    /// The line after the last line of a plain value. Deeper lines and unindented prose belong to it.
    fn plain_end(&self, at: usize, part: &LineParts<'_>) -> usize {
        let mut end = at + 1;
        if part.value.is_empty() || part.kind == YamlLineKind::Bare {
            return end;
        }
        for (next, line) in self.lines.iter().enumerate().skip(end) {
            if line.is_blank() {
                continue;
            }
            // After a blank line, only lines that cannot be a field by themselves still belong to the value.
            let apart = next > end;
            if !self.continues_value(line, part.column) || apart && field_of(line.content).is_some()
            {
                break;
            }
            if apart && line.indent.is_empty() {
                break;
            }
            end = next + 1;
        }
        end
    }

    fn continues_value(&self, line: &YamlLine<'_>, column: usize) -> bool {
        let field = field_of(line.content);
        let known = field.as_ref().is_some_and(|f| self.fields.contains(&f.key));
        let deeper = indent_width(line.indent) > column && !known;
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

    /// Puts a value of one or more lines into double quotes, excluding the comment after it.
    fn quote_value(&mut self, at: usize, end: usize, head: &str, part: &LineParts<'_>) {
        let inner = |line: usize, text: &str| {
            let is_last = line + 1 == end;
            let (text, comment) = if is_last { split_comment(text) } else { (text, "") };
            let quoted = emit_scalar(text, super::YamlStyle::Double);
            let close = if is_last { "\"" } else { "" };
            format!("{}{close}{comment}", &quoted[1..quoted.len() - 1])
        };
        let first = format!("{head}\"{}", inner(at, part.value));
        self.push_repair(at, &codes::REPAIRED_VALUE, &first);
        for next in at + 1..end {
            if self.has_too_many() {
                break;
            }
            let line = &self.lines[next];
            if !line.is_blank() {
                let text = inner(next, line.content);
                let corrected = format!("{}{text}", continuation_indent(line, part.column));
                self.push_repair(next, &codes::REPAIRED_VALUE, &corrected);
            }
        }
    }

    fn indent_continuation(&mut self, at: usize, column: usize) {
        let line = &self.lines[at];
        if !line.is_blank() {
            let corrected = format!("{}{}", continuation_indent(line, column), line.content);
            self.push_repair(at, &codes::REPAIRED_INDENT, &corrected);
        }
    }

    /// Keeps values in quotes or brackets as they are, except for tabs in their indentation.
    fn skip_closed(&mut self, at: usize, part: &LineParts<'_>) -> usize {
        let end = self.closed_end(at, part).unwrap_or(at + 1);
        for next in at + 1..end {
            let line = &self.lines[next];
            if !line.is_blank() {
                let corrected = without_tabs(line.indent, part.column) + line.content;
                self.push_repair(next, &codes::REPAIRED_TAB, &corrected);
            }
        }
        end
    }

    /// The line after the one that closes the quote or bracket, if that is certain.
    fn closed_end(&mut self, at: usize, part: &LineParts<'_>) -> Option<usize> {
        if self.vain_bytes == 0 {
            return None;
        }
        let mut scan = DelimiterScanner::new();
        if scan.scan_line(part.value).is_some() {
            return Some(at + 1);
        }
        let mut read = 0;
        for (next, line) in self.lines.iter().enumerate().skip(at + 1) {
            if !line.is_blank() && !self.can_be_inside(line, part.column, &scan) {
                break;
            }
            read += line.content.len() + 1;
            if let Some(end) = scan.scan_line(line.content) {
                // Text after the end means that the quote was an apostrophe, or the bracket prose.
                if !has_text_after(line.content, end) {
                    return Some(next + 1);
                }
                break;
            }
        }
        self.vain_bytes = self.vain_bytes.saturating_sub(read);
        None
    }

    /// Returns true if a line can be part of the value. Text in quotes must be deeper than its field; in brackets it
    /// need not be.
    fn can_be_inside(&self, line: &YamlLine<'_>, column: usize, scan: &DelimiterScanner) -> bool {
        let known = || field_of(line.content).is_some_and(|f| self.fields.contains(&f.key));
        indent_width(line.indent) > column || scan.depth > 0 && !known()
    }

    /// Keeps block scalars as they are, except for tabs in their indentation.
    fn skip_block_scalar(&mut self, at: usize, part: &LineParts<'_>) -> usize {
        let mut own = explicit_indent(part.value).map(|digit| part.column + digit);
        let mut next = at + 1;
        while let Some(line) = self.lines.get(next) {
            if !line.is_blank() {
                if indent_width(line.indent) <= part.column {
                    break;
                }
                let own = *own.get_or_insert_with(|| block_indent(line.indent, part.column));
                let (indent, text) = split_at_width(line.indent, own);
                let indent = indent.replace('\t', "  ");
                let corrected = format!("{indent}{text}{}", line.content);
                self.push_repair(next, &codes::REPAIRED_TAB, &corrected);
            }
            next += 1;
        }
        next
    }

    /// Records a correction, unless it leaves the line as it is.
    fn push_repair(&mut self, at: usize, code: &'static DiagnosticCode, corrected: &str) {
        let line = &self.lines[at];
        let unchanged =
            corrected.strip_prefix(line.indent).is_some_and(|content| content == line.content);
        if !unchanged {
            self.out.push(YamlRepair { code, line: line.span, corrected: corrected.to_owned() });
        }
    }
}

impl LineContext {
    /// Tracks the indentation of the list under the field at the margin, until the list ends.
    fn follow_list(&mut self, line: &YamlLine<'_>) {
        let indent = indent_width(line.indent);
        if !line.is_item() {
            self.list = self.list.filter(|list| *list <= indent);
        } else if self.list.is_none() && !self.relist && self.column < indent {
            // A list at its field's own column leaves room for more fields there.
            self.list = Some(indent);
        }
    }
}

fn indent_width(indent: &str) -> usize {
    indent.chars().map(|c| if c == '\t' { 2 } else { 1 }).sum()
}

/// The number of spaces before the first tab.
fn leading_spaces(indent: &str) -> usize {
    indent.len() - indent.trim_start_matches(' ').len()
}

/// Replaces tabs, unless the spaces before them are deep enough: then tabs are only separators.
fn without_tabs(indent: &str, column: usize) -> String {
    if leading_spaces(indent) > column { indent.to_owned() } else { indent.replace('\t', "  ") }
}

fn continuation_indent(line: &YamlLine<'_>, column: usize) -> String {
    if line.indent.is_empty() { "  ".to_owned() } else { without_tabs(line.indent, column) }
}

/// The indentation of a block scalar, determined by its first line. Tabs after enough spaces are text.
fn block_indent(indent: &str, column: usize) -> usize {
    let spaces = leading_spaces(indent);
    if spaces > column { spaces } else { indent_width(indent) }
}

/// Splits an indentation at a width.
fn split_at_width(indent: &str, wanted: usize) -> (&str, &str) {
    let mut reached = 0;
    let end = indent.find(|c| {
        let full = reached >= wanted;
        reached += if c == '\t' { 2 } else { 1 };
        full
    });
    indent.split_at(end.unwrap_or(indent.len()))
}

/// Returns true for `|` or `>` followed only by indicators and a comment.
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

/// Returns true if the text contains `: ` or ends with `:`, which ends a key anywhere in unquoted text.
fn has_field_mark(text: &str) -> bool {
    text.contains(": ") || text.contains(":\t") || text.ends_with(':')
}

/// Splits a value from the comment after it. The comment keeps the space in front of it.
fn split_comment(value: &str) -> (&str, &str) {
    let closed = if value.starts_with(['"', '\'', '[', '{']) { find_closing(value) } else { None };
    let from = closed.unwrap_or(0);
    let is_mark = |at: &usize| value[..*at].ends_with([' ', '\t']);
    let marks = value[from..].match_indices('#').map(|(at, _)| from + at);
    let end = marks.filter(|at| *at > 0).find(is_mark).unwrap_or(value.len());
    value.split_at(value[..end].trim_end().len())
}

/// Returns true if a single-line value is not valid YAML unless it is quoted.
fn needs_quotes(value: &str, is_item: bool) -> bool {
    let Some(first) = value.chars().next() else { return false };
    match first {
        '*' | '&' | '!' | '%' | '@' | '`' => true,
        '"' | '\'' | '[' | '{' => find_closing(value).is_some_and(|end| has_text_after(value, end)),
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

/// The offset after the character that closes the value's opening quote or bracket, if it is on the same line.
fn find_closing(value: &str) -> Option<usize> {
    DelimiterScanner::new().scan_line(value)
}

/// Scans a value in quotes or brackets, line by line, until it is closed.
struct DelimiterScanner {
    /// The number of open brackets.
    depth: usize,
    /// The open quote.
    quote: Option<char>,
    /// True if a quote here opens a string; elsewhere it is an apostrophe.
    fresh: bool,
}

impl DelimiterScanner {
    fn new() -> Self {
        DelimiterScanner { depth: 0, quote: None, fresh: true }
    }

    /// Scans one line, and returns the offset after the character that closes the value.
    fn scan_line(&mut self, line: &str) -> Option<usize> {
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
            } else if self.scan_char(c, before, next) {
                return Some(at + c.len_utf8());
            }
            before = c;
        }
        None
    }

    /// Processes one character. Returns true if it closes the value.
    fn scan_char(&mut self, c: char, before: char, next: char) -> bool {
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

fn apply_repairs(text: &str, span: Span, repairs: &[YamlRepair]) -> String {
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

/// Translates positions in the repaired text to positions in the file.
struct OffsetMap<'a> {
    text: &'a str,
    base: usize,
    /// For each repaired line: its start and length in the repaired text, and its span in the file.
    lines: Vec<(usize, usize, Span)>,
}

impl<'a> OffsetMap<'a> {
    fn new(text: &'a str, span: Span, repairs: &[YamlRepair]) -> Self {
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

    fn original_offset(&self, offset: usize) -> usize {
        let before = self.lines.partition_point(|(start, ..)| *start <= offset);
        let Some((start, len, line)) = before.checked_sub(1).map(|at| self.lines[at]) else {
            return self.base + offset;
        };
        let into = offset - start;
        if into >= len {
            return line.end as usize + (into - len);
        }
        // Columns inside a repaired line shift by the inserted text. Clamp them to the end of the line, and to the
        // start of a character.
        self.text.floor_char_boundary(line.start as usize + into.min(line.len()))
    }

    fn restore_node(&self, node: &mut YamlNode) {
        self.restore_span(&mut node.span);
        match &mut node.value {
            Value::Scalar(_) => {}
            Value::Sequence(items, _) => items.iter_mut().for_each(|item| self.restore_node(item)),
            Value::Mapping(YamlMapping { entries, .. }) => {
                for YamlEntry { key_span, value, .. } in entries {
                    self.restore_span(key_span);
                    self.restore_node(value);
                }
            }
        }
    }

    fn restore_span(&self, span: &mut Span) {
        *span = Span::new(
            self.original_offset(span.start as usize),
            self.original_offset(span.end as usize),
        );
    }
}
