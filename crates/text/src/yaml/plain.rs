//! A short cut for the frontmatter that most skills have: a few lines of `key: text`. Reading those needs
//! no grammar, and is several times faster than the parser. Anything else, however slightly different, is
//! left to the parser; a property test holds the two to the same result.

use super::{Entry, Flow, Limits, Mapping, Node, Scalar, Style, Value};
use crate::source::Span;

/// The mapping, if every line is `key: text` and nothing in it could mean more than itself.
pub(super) fn parse_plain(yaml: &str, base: usize, limits: &Limits) -> Option<Node> {
    let mut entries: Vec<Entry> = Vec::with_capacity(8);
    let mut start = 0;
    while start < yaml.len() {
        let length = memchr::memchr(b'\n', &yaml.as_bytes()[start..])?;
        let entry = line(&yaml[start..start + length], base + start)?;
        if entries.iter().any(|known| known.key == entry.key) {
            return None;
        }
        entries.push(entry);
        start += length + 1;
    }
    let too_many = 1 + 2 * entries.len() > limits.nodes_max || limits.depth_max == 0;
    if entries.is_empty() || too_many {
        return None;
    }
    let span = Span::new(base, base + yaml.len());
    Some(Node { span, value: Value::Mapping(Mapping { entries, flow: Flow::Block }) })
}

fn line(text: &str, base: usize) -> Option<Entry> {
    let bytes = text.as_bytes();
    let key_len = bytes.iter().position(|byte| !is_key_byte(*byte))?;
    let plain_key = key_len > 0 && bytes[0].is_ascii_alphabetic();
    if !plain_key || bytes.get(key_len..key_len + 2) != Some(b": ") {
        return None;
    }
    let rest = &text[key_len + 2..];
    let value = rest.trim_matches(' ');
    let value_start = key_len + 2 + (rest.len() - rest.trim_start_matches(' ').len());
    let scalar = scalar(value)?;
    let span = Span::new(base + value_start, base + value_start + value.len());
    Some(Entry {
        key: text[..key_len].to_owned(),
        key_span: Span::new(base, base + key_len),
        value: Node { span, value: Value::Scalar(scalar) },
    })
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn scalar(value: &str) -> Option<Scalar> {
    let bytes = value.as_bytes();
    let (text, style) = match bytes.first()? {
        byte if byte.is_ascii_alphanumeric() => (value, Style::Plain),
        b'"' if bytes.len() > 1 => (value[1..].strip_suffix('"')?, Style::Double),
        _ => return None,
    };
    let means_itself = match style {
        Style::Plain => is_plain_text(bytes),
        _ => !text.bytes().any(|byte| byte == b'"' || byte == b'\\' || is_odd(byte)),
    };
    means_itself.then(|| Scalar { text: text.to_owned(), style })
}

/// No mark of a key or a comment, and no byte that the grammar may take for more than text.
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

/// Control characters, and the first bytes of characters that are line breaks or byte order marks
/// somewhere: U+0085 and U+00A0, U+2028 and U+2029, U+FEFF.
fn is_odd(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xef)
}
