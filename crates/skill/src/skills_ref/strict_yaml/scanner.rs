//! Scans text into tokens like ruamel's `RoundTripScanner`. The whole text is scanned at once: every error
//! leads to the same finding, so it does not matter that ruamel would encounter some of them later.

use repertoire_text::yaml::YamlStyle;

use super::StrictYamlError;

/// The maximum length of a key without `?`, in characters.
const SIMPLE_KEY_CHARS_MAX: usize = 1024;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// A token and its range.
#[derive(Debug)]
pub(super) struct YamlToken {
    pub(super) kind: YamlTokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The tokens of block style.
#[derive(Debug, PartialEq)]
pub(super) enum YamlTokenKind {
    SequenceStart,
    MappingStart { column: i64 },
    BlockEnd,
    Entry,
    Key,
    Value,
    Scalar { text: String, style: YamlStyle },
    DocumentEnd,
    StreamEnd,
}

/// Scans a text into tokens; the last one is always [`TokenKind::StreamEnd`].
pub(super) fn scan_tokens(yaml: &str) -> Result<Vec<YamlToken>, StrictYamlError> {
    let mut scanner = YamlScanner {
        text: yaml,
        bytes: yaml.as_bytes(),
        pos: 0,
        line_start: 0,
        counted: ColumnCount { pos: 0, column: 0 },
        indent: -1,
        indents: Vec::new(),
        allow_simple_key: true,
        simple_key: None,
        tokens: Vec::with_capacity(32),
    };
    while scanner.fetch_token()? != FetchResult::End {}
    Ok(scanner.tokens)
}

pub(super) struct YamlScanner<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) pos: usize,
    /// The start of the current line, which also identifies the line.
    pub(super) line_start: usize,
    counted: ColumnCount,
    /// The column of the innermost collection, or -1.
    pub(super) indent: i64,
    indents: Vec<i64>,
    /// True if a key, or a collection on indented lines, may start here.
    pub(super) allow_simple_key: bool,
    simple_key: Option<SimpleKey>,
    tokens: Vec<YamlToken>,
}

/// The position up to which the columns of the current line were counted, so that no line is counted twice.
struct ColumnCount {
    pos: usize,
    column: i64,
}

/// A scalar that is a key if `:` follows.
struct SimpleKey {
    token: usize,
    required: bool,
    pos: usize,
    line_start: usize,
    column: i64,
}

#[derive(PartialEq)]
enum FetchResult {
    Token,
    End,
}

impl YamlScanner<'_> {
    fn fetch_token(&mut self) -> Result<FetchResult, StrictYamlError> {
        self.skip_to_token();
        self.drop_stale_key()?;
        let column = self.column();
        self.unwind_indent(column);
        match self.peek(0) {
            0 => {
                self.end_document()?;
                self.push_token(YamlTokenKind::StreamEnd, 0);
                return Ok(FetchResult::End);
            }
            b'%' if column == 0 => return Err(self.refuse("directives are not allowed")),
            b'.' if column == 0 && self.at_document_end() => {
                self.end_document()?;
                self.push_token(YamlTokenKind::DocumentEnd, 3);
            }
            b'-' if self.is_blank_or_end(self.pos + 1) => self.fetch_entry(column)?,
            b'?' if self.is_blank_or_end(self.pos + 1) => self.fetch_key(column)?,
            b':' if self.is_blank_or_end(self.pos + 1) => self.fetch_value(column)?,
            byte @ (b'|' | b'>') => self.fetch_block_scalar(byte)?,
            quote @ (b'\'' | b'"') => self.fetch_quoted(quote)?,
            b'[' | b']' | b'{' | b'}' | b',' => {
                return Err(self.refuse("flow style (`[...]`, `{...}`, `,`) is not allowed"));
            }
            b'&' | b'*' | b'!' => {
                return Err(self.refuse("anchors, aliases and tags are not allowed"));
            }
            b'\t' => return Err(self.refuse("a tab cannot stand between values")),
            b'%' | b'@' | b'`' => return Err(self.refuse("a value cannot start like this")),
            _ => self.fetch_plain()?,
        }
        Ok(FetchResult::Token)
    }

    /// Skips spaces, comments and line breaks. A `#` here starts a comment even without a space before it,
    /// and after an empty line tabs count as spaces.
    fn skip_to_token(&mut self) {
        if self.pos == 0 && self.bytes.starts_with(BOM) {
            self.pos = BOM.len();
        }
        loop {
            while self.peek(0) == b' ' {
                self.pos += 1;
            }
            if self.peek(0) == b'#' {
                self.pos = self.line_end(self.pos);
                while self.skip_break().is_some() {}
                self.allow_simple_key = true;
            } else if self.skip_break().is_some() {
                self.allow_simple_key = true;
                if matches!(self.peek(0), b'\n' | b'\r') {
                    while self.skip_break().is_some() || self.skip_space_or_tab() {}
                }
            } else {
                return;
            }
        }
    }

    fn skip_space_or_tab(&mut self) -> bool {
        let found = matches!(self.peek(0), b' ' | b'\t');
        self.pos += usize::from(found);
        found
    }

    fn fetch_entry(&mut self, column: i64) -> Result<(), StrictYamlError> {
        if !self.allow_simple_key {
            return Err(self.refuse("a list item cannot start here"));
        }
        if self.add_indent(column) {
            self.push_token(YamlTokenKind::SequenceStart, 0);
        }
        self.remove_key()?;
        self.push_token(YamlTokenKind::Entry, 1);
        Ok(())
    }

    fn fetch_key(&mut self, column: i64) -> Result<(), StrictYamlError> {
        if !self.allow_simple_key {
            return Err(self.refuse("a key cannot start here"));
        }
        if self.add_indent(column) {
            self.push_token(YamlTokenKind::MappingStart { column }, 0);
        }
        self.remove_key()?;
        self.push_token(YamlTokenKind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self, column: i64) -> Result<(), StrictYamlError> {
        if let Some(key) = self.simple_key.take() {
            let at = |kind| YamlToken { kind, start: key.pos, end: key.pos };
            self.tokens.insert(key.token, at(YamlTokenKind::Key));
            if self.add_indent(key.column) {
                let column = key.column;
                self.tokens.insert(key.token, at(YamlTokenKind::MappingStart { column }));
            }
            self.allow_simple_key = false;
        } else {
            if !self.allow_simple_key {
                return Err(self.refuse("a `: ` inside an unquoted value starts a new field here"));
            }
            if self.add_indent(column) {
                self.push_token(YamlTokenKind::MappingStart { column }, 0);
            }
        }
        self.push_token(YamlTokenKind::Value, 1);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, indicator: u8) -> Result<(), StrictYamlError> {
        self.allow_simple_key = true;
        self.remove_key()?;
        let start = self.pos;
        let style = if indicator == b'|' { YamlStyle::Literal } else { YamlStyle::Folded };
        let (text, end) = self.block_scalar(style)?;
        self.push_scalar(text, style, start, end);
        Ok(())
    }

    fn fetch_quoted(&mut self, quote: u8) -> Result<(), StrictYamlError> {
        self.save_key()?;
        self.allow_simple_key = false;
        let start = self.pos;
        let style = if quote == b'"' { YamlStyle::Double } else { YamlStyle::Single };
        let text = self.quoted_scalar(style)?;
        self.push_scalar(text, style, start, self.pos);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Result<(), StrictYamlError> {
        self.save_key()?;
        self.allow_simple_key = false;
        let start = self.pos;
        let (text, end) = self.plain_scalar();
        self.push_scalar(text, YamlStyle::Plain, start, end);
        Ok(())
    }

    fn end_document(&mut self) -> Result<(), StrictYamlError> {
        self.unwind_indent(-1);
        self.remove_key()?;
        self.allow_simple_key = false;
        Ok(())
    }

    /// Records that the scalar starting here may be a key. At the column of a mapping it must be one.
    fn save_key(&mut self) -> Result<(), StrictYamlError> {
        if !self.allow_simple_key {
            return Ok(());
        }
        self.remove_key()?;
        let column = self.column();
        self.simple_key = Some(SimpleKey {
            token: self.tokens.len(),
            required: self.indent == column,
            pos: self.pos,
            line_start: self.line_start,
            column,
        });
        Ok(())
    }

    /// Drops a possible key that does not end on its line and within 1024 characters.
    fn drop_stale_key(&mut self) -> Result<(), StrictYamlError> {
        let Some(key) = &self.simple_key else { return Ok(()) };
        let bytes = self.pos - key.pos;
        let stale = key.line_start != self.line_start
            || bytes > SIMPLE_KEY_CHARS_MAX
                && self.text[key.pos..self.pos].chars().count() > SIMPLE_KEY_CHARS_MAX;
        if stale { self.remove_key() } else { Ok(()) }
    }

    fn remove_key(&mut self) -> Result<(), StrictYamlError> {
        match self.simple_key.take() {
            Some(key) if key.required => {
                let message = "this line is neither a `field: value` nor part of the value above";
                Err(StrictYamlError::new(key.pos, message))
            }
            _ => Ok(()),
        }
    }

    fn unwind_indent(&mut self, column: i64) {
        while self.indent > column {
            self.indent = self.indents.pop().unwrap_or(-1);
            self.push_token(YamlTokenKind::BlockEnd, 0);
        }
    }

    fn add_indent(&mut self, column: i64) -> bool {
        let deeper = self.indent < column;
        if deeper {
            self.indents.push(self.indent);
            self.indent = column;
        }
        deeper
    }

    fn push_token(&mut self, kind: YamlTokenKind, len: usize) {
        let start = self.pos;
        self.pos += len;
        self.tokens.push(YamlToken { kind, start, end: self.pos });
    }

    fn push_scalar(&mut self, text: String, style: YamlStyle, start: usize, end: usize) {
        self.tokens.push(YamlToken { kind: YamlTokenKind::Scalar { text, style }, start, end });
    }

    pub(super) fn refuse(&self, message: &str) -> StrictYamlError {
        StrictYamlError::new(self.pos, message)
    }

    /// Returns the byte `ahead` of the current position, or 0 at the end. The text itself contains no NUL,
    /// which was rejected before.
    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.byte_at(self.pos + ahead)
    }

    pub(super) fn byte_at(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Returns the number of characters since the start of the line, without byte order marks.
    pub(super) fn column(&mut self) -> i64 {
        let uncounted = &self.bytes[self.counted.pos..self.pos];
        let chars = uncounted.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        let has_bom = uncounted.contains(&BOM[0]);
        let boms = if has_bom { memchr::memmem::find_iter(uncounted, BOM).count() } else { 0 };
        self.counted.pos = self.pos;
        self.counted.column += i64::try_from(chars - boms).unwrap_or(0);
        self.counted.column
    }

    /// Returns the length of the line break at a position, or 0 if there is none. U+0085, U+2028 and U+2029
    /// are breaks.
    pub(super) fn break_len(&self, at: usize) -> usize {
        match self.byte_at(at) {
            b'\n' => 1,
            b'\r' => 1 + usize::from(self.byte_at(at + 1) == b'\n'),
            0xc2 if self.byte_at(at + 1) == 0x85 => 2,
            0xe2 if self.byte_at(at + 1) == 0x80 && matches!(self.byte_at(at + 2), 0xa8 | 0xa9) => {
                3
            }
            _ => 0,
        }
    }

    /// Skips one line break, and returns what it becomes inside a value.
    pub(super) fn skip_break(&mut self) -> Option<&'static str> {
        let first = self.peek(0);
        let len = self.break_len(self.pos);
        if len == 0 {
            return None;
        }
        let last = self.byte_at(self.pos + len - 1);
        self.pos += len;
        if matches!(first, b'\n' | b'\r') {
            self.line_start = self.pos;
            self.counted = ColumnCount { pos: self.pos, column: 0 };
        }
        Some(match (first, last) {
            (0xe2, 0xa8) => "\u{2028}",
            (0xe2, _) => "\u{2029}",
            _ => "\n",
        })
    }

    /// Returns the end of the line that contains `from`: a break or the end of the text.
    pub(super) fn line_end(&self, from: usize) -> usize {
        let mut at = from;
        while self.byte_at(at) != 0 && self.break_len(at) == 0 {
            at += 1;
        }
        at
    }

    /// Returns true at a space, a tab, a line break or the end.
    pub(super) fn is_blank_or_end(&self, at: usize) -> bool {
        matches!(self.byte_at(at), 0 | b' ' | b'\t') || self.break_len(at) > 0
    }

    /// Returns true if `...` stands here alone.
    pub(super) fn at_document_end(&self) -> bool {
        self.bytes[self.pos..].starts_with(b"...") && self.is_blank_or_end(self.pos + 3)
    }
}
