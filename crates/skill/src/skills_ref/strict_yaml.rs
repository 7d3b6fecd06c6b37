//! Parses YAML exactly like strictyaml 1.7.3, which skills-ref uses.
//!
//! strictyaml carries a copy of ruamel.yaml, whose scanner accepts some texts that YAML 1.2 rejects (`"a"#b`,
//! quoted lines at the margin, U+0085 as a line break) and rejects some that it accepts (tabs between
//! tokens). No check before or after a YAML 1.2 parser can mirror that, so this is a separate scanner that
//! makes the same decisions in the same places. It only serves [`super`]; everything else reads frontmatter
//! with [`repertoire_text::yaml`].
//!
//! Brackets, anchors, aliases, tags and directives are not implemented, because they are always rejected.

use repertoire_text::Span;
use repertoire_text::yaml::{Limits, YamlNode};

mod scalar;
mod scanner;
mod tree;

/// The reason why a text is not strict YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StrictYamlError {
    /// The message, in our own wording.
    pub(super) message: String,
    /// The byte offset in the given text.
    pub(super) at: usize,
}

impl StrictYamlError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        StrictYamlError { message: message.into(), at }
    }
}

/// Parses the YAML under `span` of `text`. Spans in the result are offsets into the whole text.
pub(super) fn parse_strict_yaml(
    text: &str,
    span: Span,
    limits: &Limits,
) -> Result<YamlNode, StrictYamlError> {
    let base = span.start as usize;
    let yaml = span.slice(text);
    let located = |refusal: StrictYamlError| StrictYamlError { at: base + refusal.at, ..refusal };
    refuse_unprintable(yaml).map_err(located)?;
    let mut tokens = scanner::scan_tokens(yaml).map_err(located)?;
    tree::build_tree(&mut tokens, base, limits).map_err(located)
}

/// Rejects control characters and noncharacters, which ruamel's reader does before anything else. (skills-ref
/// itself then crashes, because the error lacks an attribute that strictyaml expects.)
fn refuse_unprintable(yaml: &str) -> Result<(), StrictYamlError> {
    // The bytes that unprintable characters are or start with; most texts have none.
    let suspicious = |byte: u8| byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xef);
    if !yaml.bytes().any(|byte| suspicious(byte) && !matches!(byte, b'\t' | b'\n' | b'\r')) {
        return Ok(());
    }
    match yaml.char_indices().find(|(_, c)| !is_printable(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let code = u32::from(c);
            Err(StrictYamlError::new(at, format!("the character U+{code:04X} is not allowed")))
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}') || c > '\u{ffff}'
}

#[cfg(test)]
#[path = "strict_yaml/strict_yaml_tests.rs"]
mod tests;
