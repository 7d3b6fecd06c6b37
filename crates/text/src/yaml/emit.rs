//! Writes a tree as block-style YAML that this crate, and any other YAML reader, reads back the same.

use super::{ScalarKind, Value, YamlEntry, YamlNode, YamlScalar, YamlStyle};

/// Writes a mapping, list or scalar, ending in a line break.
///
/// ```
/// use repertoire_text::yaml::{emit, parse, Limits};
/// use repertoire_text::Span;
/// let text = "a: 'x: y'\nb:\n  - 1\n";
/// let node = parse(text, Span::new(0, text.len()), &Limits::default()).unwrap();
/// assert_eq!(emit(&node), "a: \"x: y\"\nb:\n  - 1\n");
/// ```
pub fn emit(node: &YamlNode) -> String {
    let mut out = String::new();
    write_node(&mut out, node, 0, EmitPosition::Line);
    out
}

/// The writer's position: at the start of a line, after `key:`, or after `- `.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmitPosition {
    Line,
    AfterKey,
    AfterDash,
}

fn write_node(out: &mut String, node: &YamlNode, indent: usize, place: EmitPosition) {
    match &node.value {
        Value::Scalar(scalar) => {
            if place == EmitPosition::AfterKey {
                out.push(' ');
            }
            write_scalar(out, scalar, indent);
            out.push('\n');
        }
        Value::Sequence(items, _) if items.is_empty() => write_empty(out, "[]", place),
        Value::Mapping(mapping) if mapping.entries.is_empty() => write_empty(out, "{}", place),
        Value::Sequence(items, _) => {
            start_block(out, place);
            for (at, item) in items.iter().enumerate() {
                write_indent(out, indent, at == 0 && place == EmitPosition::AfterDash);
                out.push_str("- ");
                write_node(out, item, indent + 2, EmitPosition::AfterDash);
            }
        }
        Value::Mapping(mapping) => {
            start_block(out, place);
            for (at, entry) in mapping.entries.iter().enumerate() {
                write_indent(out, indent, at == 0 && place == EmitPosition::AfterDash);
                write_entry(out, entry, indent);
            }
        }
    }
}

/// The maximum length of a key before a `:` on the same line; YAML allows 1,024 characters.
const KEY_BYTES_MAX: usize = 1000;

fn write_entry(out: &mut String, YamlEntry { key, value, .. }: &YamlEntry, indent: usize) {
    let key = emit_scalar(key, YamlStyle::Plain);
    if key.len() > KEY_BYTES_MAX {
        out.push_str("? ");
    }
    out.push_str(&key);
    if key.len() > KEY_BYTES_MAX {
        out.push('\n');
        write_indent(out, indent, false);
    }
    out.push(':');
    if value.is_null() && value.as_str() == Some("") {
        out.push('\n');
        return;
    }
    write_node(out, value, indent + 2, EmitPosition::AfterKey);
}

fn write_empty(out: &mut String, brackets: &str, place: EmitPosition) {
    if place == EmitPosition::AfterKey {
        out.push(' ');
    }
    out.push_str(brackets);
    out.push('\n');
}

fn start_block(out: &mut String, place: EmitPosition) {
    if place == EmitPosition::AfterKey {
        out.push('\n');
    }
}

fn write_indent(out: &mut String, indent: usize, inline: bool) {
    if !inline {
        out.extend(std::iter::repeat_n(' ', indent));
    }
}

fn write_scalar(out: &mut String, scalar: &YamlScalar, indent: usize) {
    if !matches!(scalar.kind(), ScalarKind::Text(_)) {
        out.push_str(&scalar.text);
        return;
    }
    let block = matches!(scalar.style, YamlStyle::Literal | YamlStyle::Folded);
    if block && is_block_safe(&scalar.text) {
        write_literal(out, &scalar.text, indent);
        return;
    }
    out.push_str(&emit_scalar(&scalar.text, scalar.style));
}

/// Returns true if a literal block preserves the text: its lines need no escapes, and its first line sets the
/// indentation.
fn is_block_safe(text: &str) -> bool {
    let first = text.chars().next();
    text.contains('\n')
        && first.is_some_and(|c| !c.is_whitespace())
        && text.chars().all(|c| c == '\n' || !is_escaped(c))
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    let chomp = match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    out.push_str(chomp);
    // Inside a mapping, the parser requires at least one column more than the key; at the top level, any indentation.
    let indent = indent.max(2);
    let keep = if chomp == "|+" { &text[..text.len() - 1] } else { body };
    for line in keep.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
    }
}

/// Writes one scalar on one line, in double quotes unless it is safe without.
pub fn emit_scalar(text: &str, style: YamlStyle) -> String {
    if style == YamlStyle::Plain && is_plain_safe(text) {
        return text.to_owned();
    }
    let reads_as_text = matches!(
        YamlScalar { text: text.to_owned(), style: YamlStyle::Plain }.kind(),
        ScalarKind::Text(_)
    );
    if matches!(style, YamlStyle::Literal | YamlStyle::Folded)
        && reads_as_text
        && is_plain_safe(text)
    {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_escaped(c) => out.push_str(&escape_char(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

fn escape_char(c: char) -> String {
    match u32::from(c) {
        code @ 0..=0xff => format!("\\x{code:02x}"),
        code @ 0..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// Returns true if a text is read back unchanged without quotes, in any position.
fn is_plain_safe(text: &str) -> bool {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return false };
    let starts_well = first.is_alphanumeric() || "_/.(<$+~^".contains(first);
    let ends_well = !text.ends_with([' ', ':']);
    starts_well
        && ends_well
        && !text.starts_with("...")
        && text != "<<"
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains([',', '[', ']', '{', '}'])
        && !text.chars().any(|c| is_escaped(c) || (c.is_whitespace() && c != ' '))
}
