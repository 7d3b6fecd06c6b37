//! Scans the five kinds of scalars like ruamel's scanner.

use repertoire_text::yaml::YamlStyle;

use super::StrictYamlError;
use super::scanner::YamlScanner;

/// How the line breaks at the end of a block scalar are handled.
#[derive(Clone, Copy, PartialEq)]
enum ChompingMode {
    Clip,
    Strip,
    Keep,
}

impl YamlScanner<'_> {
    /// Scans a plain scalar, and returns its end. A tab ends it, as does a `#` after a space or a break.
    pub(super) fn plain_scalar(&mut self) -> (String, usize) {
        let indent = self.indent + 1;
        let mut text = String::new();
        let mut end = self.pos;
        loop {
            let line_end = self.plain_line_end();
            if line_end == self.pos {
                return (text, end);
            }
            self.allow_simple_key = false;
            text.push_str(&self.text[self.pos..line_end]);
            self.pos = line_end;
            end = line_end;
            let length = text.len();
            let line = self.line_start;
            let goes_on = self.plain_breaks(&mut text);
            let outdented = self.line_start != line && self.column() < indent;
            if !goes_on || outdented || self.plain_line_end() == self.pos {
                text.truncate(length);
                return (text, end);
            }
        }
    }

    /// Returns the end of the last word of a plain scalar on this line.
    fn plain_line_end(&self) -> usize {
        let mut end = self.pos;
        loop {
            let mut word = end;
            while self.byte_at(word) == b' ' {
                word += 1;
            }
            let word_end = self.plain_word_end(word);
            if word_end == word || self.byte_at(word) == b'#' {
                return end;
            }
            end = word_end;
        }
    }

    fn plain_word_end(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            match self.byte_at(at) {
                0 | b' ' | b'\t' | b'\n' | b'\r' => return at,
                b':' if self.is_blank_or_end(at + 1) => return at,
                0xc2 | 0xe2 if self.break_len(at) > 0 => return at,
                _ => at += 1,
            }
        }
    }

    /// Skips the line breaks after a word and adds what they fold to. Returns false if there are none, or if
    /// `...` ends the document.
    fn plain_breaks(&mut self, text: &mut String) -> bool {
        while self.peek(0) == b' ' {
            self.pos += 1;
        }
        let Some(first_break) = self.skip_break() else { return false };
        self.allow_simple_key = true;
        if self.at_document_end() {
            return false;
        }
        let mut breaks = String::new();
        loop {
            if self.peek(0) == b' ' {
                self.pos += 1;
                continue;
            }
            let Some(next_break) = self.skip_break() else { break };
            breaks.push_str(next_break);
            if self.at_document_end() {
                return false;
            }
        }
        push_folded(text, first_break, &breaks);
        true
    }

    /// Scans a quoted scalar. Its lines may start at any column; only `...` at the margin is rejected.
    pub(super) fn quoted_scalar(&mut self, style: YamlStyle) -> Result<String, StrictYamlError> {
        let quote = self.peek(0);
        self.pos += 1;
        let mut text = String::new();
        loop {
            self.quoted_word(style, &mut text)?;
            if self.peek(0) == quote {
                self.pos += 1;
                return Ok(text);
            }
            self.quoted_spaces(&mut text)?;
        }
    }

    fn quoted_word(&mut self, style: YamlStyle, text: &mut String) -> Result<(), StrictYamlError> {
        loop {
            let start = self.pos;
            self.pos = self.quoted_chunk_end();
            text.push_str(&self.text[start..self.pos]);
            match (self.peek(0), style) {
                (b'\'', YamlStyle::Single) if self.peek(1) == b'\'' => {
                    text.push('\'');
                    self.pos += 2;
                }
                (byte @ b'\'', YamlStyle::Double) | (byte @ (b'"' | b'\\'), YamlStyle::Single) => {
                    text.push(char::from(byte));
                    self.pos += 1;
                }
                (b'\\', YamlStyle::Double) => self.scan_escape(text)?,
                _ => return Ok(()),
            }
        }
    }

    fn quoted_chunk_end(&self) -> usize {
        let mut at = self.pos;
        loop {
            match self.byte_at(at) {
                0 | b' ' | b'\t' | b'\n' | b'\r' | b'\'' | b'"' | b'\\' => return at,
                0xc2 | 0xe2 if self.break_len(at) > 0 => return at,
                _ => at += 1,
            }
        }
    }

    fn quoted_spaces(&mut self, text: &mut String) -> Result<(), StrictYamlError> {
        let start = self.pos;
        while matches!(self.peek(0), b' ' | b'\t') {
            self.pos += 1;
        }
        if self.peek(0) == 0 {
            return Err(self.refuse("a quoted value is never closed"));
        }
        match self.skip_break() {
            None => text.push_str(&self.text[start..self.pos]),
            Some(first_break) => {
                let breaks = self.quoted_breaks()?;
                push_folded(text, first_break, &breaks);
            }
        }
        Ok(())
    }

    fn quoted_breaks(&mut self) -> Result<String, StrictYamlError> {
        let mut breaks = String::new();
        loop {
            if self.at_document_end() {
                return Err(self.refuse("`...` stands inside a quoted value"));
            }
            while matches!(self.peek(0), b' ' | b'\t') {
                self.pos += 1;
            }
            match self.skip_break() {
                Some(next_break) => breaks.push_str(next_break),
                None => return Ok(breaks),
            }
        }
    }

    fn scan_escape(&mut self, text: &mut String) -> Result<(), StrictYamlError> {
        self.pos += 1;
        let digits = match self.peek(0) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            byte => {
                if let Some(c) = short_escape(byte) {
                    self.pos += 1;
                    text.push(c);
                } else if self.skip_break().is_some() {
                    text.push_str(&self.quoted_breaks()?);
                } else {
                    return Err(self.refuse("unknown escape in a double-quoted value"));
                }
                return Ok(());
            }
        };
        self.pos += 1;
        let code = self.hex_digits(digits)?;
        text.push(self.decode_escape(code)?);
        Ok(())
    }

    fn hex_digits(&mut self, digits: usize) -> Result<u32, StrictYamlError> {
        let code = self
            .text
            .get(self.pos..self.pos + digits)
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let Some(code) = code else {
            return Err(self.refuse("an escape in a double-quoted value lacks digits"));
        };
        self.pos += digits;
        Ok(code)
    }

    /// Decodes the code of an escape. Python keeps surrogates separate; here a pair becomes the character
    /// that it encodes, and a lone one the replacement character.
    fn decode_escape(&mut self, code: u32) -> Result<char, StrictYamlError> {
        if !(0xd800..0xe000).contains(&code) {
            return char::from_u32(code)
                .ok_or_else(|| self.refuse("an escape names no Unicode character"));
        }
        let low = self.text.get(self.pos..self.pos + 6).and_then(|next| next.strip_prefix("\\u"));
        let low = low.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match low {
            Some(low @ 0xdc00..0xe000) if code < 0xdc00 => {
                self.pos += 6;
                let joined = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            _ => Ok(char::REPLACEMENT_CHARACTER),
        }
    }

    /// Scans a block scalar, `|` or `>`, and returns its end.
    pub(super) fn block_scalar(
        &mut self,
        style: YamlStyle,
    ) -> Result<(String, usize), StrictYamlError> {
        self.pos += 1;
        let (chomping, increment) = self.block_indicators()?;
        self.block_header_end()?;
        // At the top level the text may start at the margin, and then `...` ends it.
        let at_top = self.indent < 0 && increment.is_none();
        let mut breaks = String::new();
        let indent = match increment {
            Some(increment) => (self.indent + 1).max(1) + increment - 1,
            None => self.block_indentation(&mut breaks).max(self.indent + 1),
        };
        if increment.is_some() {
            self.block_breaks(indent, &mut breaks);
        }
        let mut text = String::new();
        let mut line_break = "";
        let mut end = self.pos;
        while self.peek(0) != 0 && self.column() == indent {
            text.push_str(&breaks);
            let starts_with_space = matches!(self.peek(0), b' ' | b'\t');
            let line_end = self.line_end(self.pos);
            text.push_str(&self.text[self.pos..line_end]);
            self.pos = line_end;
            end = line_end;
            line_break = self.skip_break().unwrap_or("");
            breaks.clear();
            self.block_breaks(indent, &mut breaks);
            let ends = self.peek(0) == 0 || self.column() != indent;
            if ends || (at_top && self.column() == 0 && self.at_document_end()) {
                break;
            }
            let next_starts_with_space = matches!(self.peek(0), b' ' | b'\t');
            let folds = style == YamlStyle::Folded
                && line_break == "\n"
                && !starts_with_space
                && !next_starts_with_space;
            match (folds, breaks.is_empty()) {
                (true, true) => text.push(' '),
                (true, false) => {}
                (false, _) => text.push_str(line_break),
            }
        }
        if chomping != ChompingMode::Strip {
            text.push_str(line_break);
        }
        if chomping == ChompingMode::Keep {
            text.push_str(&breaks);
        }
        Ok((text, end))
    }

    fn block_indicators(&mut self) -> Result<(ChompingMode, Option<i64>), StrictYamlError> {
        let mut chomping = self.block_chomping();
        let increment = match self.peek(0) {
            b'0' => return Err(self.refuse("the indentation of a block value cannot be 0")),
            digit @ b'1'..=b'9' => {
                self.pos += 1;
                Some(i64::from(digit - b'0'))
            }
            _ => None,
        };
        if chomping.is_none() && increment.is_some() {
            chomping = self.block_chomping();
        }
        match self.peek(0) {
            b'\t' => Err(self.refuse("a tab follows `|` or `>`")),
            _ if self.is_blank_or_end(self.pos) => {
                Ok((chomping.unwrap_or(ChompingMode::Clip), increment))
            }
            _ => Err(self.refuse("text follows `|` or `>` on the same line")),
        }
    }

    fn block_chomping(&mut self) -> Option<ChompingMode> {
        let chomping = match self.peek(0) {
            b'+' => ChompingMode::Keep,
            b'-' => ChompingMode::Strip,
            _ => return None,
        };
        self.pos += 1;
        Some(chomping)
    }

    fn block_header_end(&mut self) -> Result<(), StrictYamlError> {
        while self.peek(0) == b' ' {
            self.pos += 1;
        }
        if self.peek(0) == b'#' {
            self.pos = self.line_end(self.pos);
        }
        if self.peek(0) != 0 && self.skip_break().is_none() {
            return Err(self.refuse("text follows `|` or `>` on the same line"));
        }
        Ok(())
    }

    /// Skips the empty lines before the text. The widest of them counts for the indentation, even if it is
    /// wider than the text.
    fn block_indentation(&mut self, breaks: &mut String) -> i64 {
        let mut widest = 0;
        loop {
            if self.peek(0) == b' ' {
                self.pos += 1;
                continue;
            }
            widest = widest.max(self.spaces_before());
            match self.skip_break() {
                Some(next_break) => breaks.push_str(next_break),
                None => return widest,
            }
        }
    }

    /// Returns the column if it follows a space, or 0 for a line without indentation.
    fn spaces_before(&mut self) -> i64 {
        let after_space = self.pos > self.line_start && self.bytes[self.pos - 1] == b' ';
        if after_space { self.column() } else { 0 }
    }

    fn block_breaks(&mut self, indent: i64, breaks: &mut String) {
        loop {
            let mut column = self.column();
            while column < indent && self.peek(0) == b' ' {
                self.pos += 1;
                column += 1;
            }
            match self.skip_break() {
                Some(next_break) => breaks.push_str(next_break),
                None => return,
            }
        }
    }
}

/// Folds line breaks: a single one between words becomes a space; of several, the first is dropped.
fn push_folded(text: &mut String, first_break: &str, breaks: &str) {
    if first_break != "\n" {
        text.push_str(first_break);
    } else if breaks.is_empty() {
        text.push(' ');
    }
    text.push_str(breaks);
}

fn short_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b'0' => '\0',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\u{b}',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'e' => '\u{1b}',
        b' ' => ' ',
        b'"' => '"',
        b'/' => '/',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
