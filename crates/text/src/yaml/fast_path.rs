//! A fast path for the frontmatter of most skills: a few lines of `key: text`, some with a list or a mapping of such
//! lines below them. Reading these needs no grammar, and is several times faster than the parser. Anything else,
//! however slightly different, is left to the parser; a property test ensures that both return the same result.

use super::{Limits, Value, YamlEntry, YamlFlow, YamlMapping, YamlNode, YamlScalar, YamlStyle};
use crate::source::Span;

/// Longer keys are left to the grammar, which has its own limit for them.
const KEY_BYTES_MAX: usize = 64;

/// Longer mappings are left to the grammar: here every key is compared with all previous ones.
const ENTRIES_MAX: usize = 32;

/// Parses the mapping, if every line is of the simple kind and no text has a special meaning.
pub(super) fn parse_plain(yaml: &str, base: usize, limits: &Limits) -> Option<YamlNode> {
    let mut lines = PlainLines { yaml, base, at: 0, nodes: 1 };
    let entries = lines.read_entries()?;
    let too_much = lines.nodes > limits.nodes_max || limits.depth_max < 2;
    if entries.is_empty() || too_much || lines.at < yaml.len() {
        return None;
    }
    Some(mapping_node(entries, Span::new(base, base + yaml.len())))
}

fn mapping_node(entries: Vec<YamlEntry>, span: Span) -> YamlNode {
    YamlNode { span, value: Value::Mapping(YamlMapping { entries, flow: YamlFlow::Block }) }
}

/// The lines that remain to be read.
struct PlainLines<'a> {
    yaml: &'a str,
    base: usize,
    at: usize,
    nodes: usize,
}

impl<'a> PlainLines<'a> {
    /// The next line without its line break, if it is complete.
    fn peek(&self) -> Option<&'a str> {
        let rest = &self.yaml[self.at..];
        memchr::memchr(b'\n', rest.as_bytes()).map(|end| &rest[..end])
    }

    fn read_entries(&mut self) -> Option<Vec<YamlEntry>> {
        let mut entries: Vec<YamlEntry> = Vec::with_capacity(8);
        while let Some(line) = self.peek() {
            let place = self.base + self.at;
            let key_len = key_len(line)?;
            if entries.len() == ENTRIES_MAX
                || entries.iter().any(|known| known.key == line[..key_len])
            {
                return None;
            }
            self.at += line.len() + 1;
            self.nodes += 2;
            let value = match &line[key_len + 1..] {
                "" => self.read_block()?,
                text => parse_value(text.strip_prefix(' ')?, place + key_len + 2)?,
            };
            let key_span = Span::new(place, place + key_len);
            entries.push(YamlEntry { key: line[..key_len].to_owned(), key_span, value });
        }
        Some(entries)
    }

    /// Reads a list or a mapping whose lines are all indented by two blanks.
    fn read_block(&mut self) -> Option<YamlNode> {
        let start = self.base + self.at + 2;
        let first = strip_indent(self.peek()?)?;
        let is_list = first.starts_with("- ");
        let mut items = Vec::new();
        let mut entries: Vec<YamlEntry> = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.starts_with(' ')) {
            let place = self.base + self.at + 2;
            let content = strip_indent(line)?;
            self.at += line.len() + 1;
            self.nodes += 2;
            if is_list {
                items.push(parse_value(content.strip_prefix("- ")?, place + 2)?);
                continue;
            }
            let key_len = key_len(content)?;
            let text = content[key_len + 1..].strip_prefix(' ')?;
            if entries.len() == ENTRIES_MAX
                || entries.iter().any(|known| known.key == content[..key_len])
            {
                return None;
            }
            let key_span = Span::new(place, place + key_len);
            let value = parse_value(text, place + key_len + 2)?;
            entries.push(YamlEntry { key: content[..key_len].to_owned(), key_span, value });
        }
        let span = Span::new(start, self.base + self.at);
        Some(if is_list {
            YamlNode { span, value: Value::Sequence(items, YamlFlow::Block) }
        } else {
            mapping_node(entries, span)
        })
    }
}

/// The text of a line that is indented by exactly two blanks.
fn strip_indent(line: &str) -> Option<&str> {
    line.strip_prefix("  ").filter(|content| !content.is_empty() && !content.starts_with(' '))
}

/// The length of a plain word before a colon.
fn key_len(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let length =
        bytes.iter().position(|byte| !is_key_byte(*byte)).filter(|at| *at <= KEY_BYTES_MAX)?;
    let plain = length > 0 && bytes[0].is_ascii_alphabetic() && bytes[length] == b':';
    plain.then_some(length)
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn parse_value(text: &str, start: usize) -> Option<YamlNode> {
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let text = text.trim_matches(' ');
    let scalar = parse_scalar(text)?;
    let span = Span::new(start + blanks, start + blanks + text.len());
    Some(YamlNode { span, value: Value::Scalar(scalar) })
}

fn parse_scalar(value: &str) -> Option<YamlScalar> {
    let bytes = value.as_bytes();
    let quoted = |quote: char| value[1..].strip_suffix(quote);
    let (text, style) = match bytes.first()? {
        byte if byte.is_ascii_alphanumeric() => (value, YamlStyle::Plain),
        b'"' if bytes.len() > 1 => (quoted('"')?, YamlStyle::Double),
        b'\'' if bytes.len() > 1 => (quoted('\'')?, YamlStyle::Single),
        _ => return None,
    };
    let means_itself = match style {
        YamlStyle::Plain => is_plain_text(bytes),
        YamlStyle::Single => !text.bytes().any(|byte| byte == b'\'' || is_odd(byte)),
        _ => !text.bytes().any(|byte| matches!(byte, b'"' | b'\\') || is_odd(byte)),
    };
    means_itself.then(|| YamlScalar { text: text.to_owned(), style })
}

/// Returns true if the text has no marker of a key or a comment, and no byte that the grammar may interpret.
fn is_plain_text(bytes: &[u8]) -> bool {
    let mut before = b' ';
    for &byte in bytes {
        let mark = (byte == b' ' && before == b':') || (byte == b'#' && before == b' ');
        if mark || is_odd(byte) {
            return false;
        }
        before = byte;
    }
    before != b':'
}

/// Returns true for control characters, and for the first bytes of characters that some readers treat as line breaks or
/// byte order marks: U+0085 and U+00A0, U+FEFF.
fn is_odd(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xef)
}
