//! YAML exactly as strictyaml 1.7.3 reads it, which is what skills-ref asks.
//!
//! strictyaml carries a copy of ruamel.yaml, whose scanner accepts some texts that YAML 1.2 refuses
//! (`"a"#b`, quoted lines at the margin, U+0085 as a line break) and refuses some that it accepts (tabs
//! between tokens). No check before or after a YAML 1.2 parser can mirror that, so this is a scanner of
//! our own with the same decisions at the same places. It serves only the verdicts of [`super`]:
//! everything else reads frontmatter with [`repertoire_text::yaml`].
//!
//! Left out, because they always end in a refusal: brackets, anchors, aliases, tags and directives.

use repertoire_text::Span;
use repertoire_text::yaml::{Limits, Node};

mod scalar;
mod scanner;
mod tree;

/// Why a text is not strict YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What is wrong, in our words.
    pub(super) message: String,
    /// Offset in the text that was given.
    pub(super) at: usize,
}

impl Refusal {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Refusal { message: message.into(), at }
    }
}

/// Reads the YAML under `span` of `text`; spans in the result are offsets into the whole text.
pub(super) fn load(text: &str, span: Span, limits: &Limits) -> Result<Node, Refusal> {
    let base = span.start as usize;
    let yaml = span.slice(text);
    let located = |refusal: Refusal| Refusal { at: base + refusal.at, ..refusal };
    refuse_unprintable(yaml).map_err(located)?;
    let mut tokens = scanner::scan(yaml).map_err(located)?;
    tree::build(&mut tokens, base, limits).map_err(located)
}

/// ruamel's reader refuses control characters and noncharacters before it looks at anything else.
/// (skills-ref itself then crashes, because the error lacks what strictyaml expects of it.)
fn refuse_unprintable(yaml: &str) -> Result<(), Refusal> {
    let suspicious = |byte: u8| byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xef);
    if !yaml.bytes().any(|byte| suspicious(byte) && !matches!(byte, b'\t' | b'\n' | b'\r')) {
        return Ok(());
    }
    let printable = |c: char| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}')
            || c > '\u{ffff}'
    };
    match yaml.char_indices().find(|(_, c)| !printable(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let code = u32::from(c);
            Err(Refusal::new(at, format!("the character U+{code:04X} is not allowed")))
        }
    }
}

#[cfg(test)]
#[path = "strict_yaml/strict_yaml_tests.rs"]
mod tests;
