//! Extracts the frontmatter like skills-ref: between the first two `---`, wherever the second is.

use repertoire_text::yaml::{Value, YamlMapping};
use repertoire_text::{Limits, Span};

use super::strict_yaml;
use super::validate::{SpecFinding, SpecFindingKind};

const FENCE: &str = "---";

/// The fields of the frontmatter; every scalar is text, whatever it looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedFrontmatter {
    /// The fields in file order, with spans into the whole text.
    pub fields: YamlMapping,
}

/// Parses the frontmatter, or returns the error in skills-ref's wording.
pub fn parse_frontmatter(text: &str) -> Result<ParsedFrontmatter, SpecFinding> {
    let limits = Limits::default();
    let span = split_frontmatter(text)?;
    if span.len() > limits.frontmatter_bytes_max {
        let limit = limits.frontmatter_bytes_max;
        return Err(invalid_yaml(&format!("more than {limit} bytes, the limit")).at(span));
    }
    let node = strict_yaml::parse_strict_yaml(text, span, &limits.yaml)
        .map_err(|refusal| invalid_yaml(&refusal.message).at(Span::new(refusal.at, refusal.at)))?;
    match node.value {
        Value::Mapping(fields) => Ok(ParsedFrontmatter { fields }),
        Value::Scalar(_) | Value::Sequence(..) => {
            let message = "SKILL.md frontmatter must be a YAML mapping";
            Err(SpecFinding::new(SpecFindingKind::NotAMapping, message).at(span))
        }
    }
}

fn split_frontmatter(text: &str) -> Result<Span, SpecFinding> {
    let Some(rest) = text.strip_prefix(FENCE) else {
        let message = "SKILL.md must start with YAML frontmatter (---)";
        return Err(SpecFinding::new(SpecFindingKind::FrontmatterMissing, message));
    };
    let Some(len) = memchr::memmem::find(rest.as_bytes(), FENCE.as_bytes()) else {
        let message = "SKILL.md frontmatter not properly closed with ---";
        return Err(SpecFinding::new(SpecFindingKind::FrontmatterNotClosed, message));
    };
    Ok(Span::new(FENCE.len(), FENCE.len() + len))
}

fn invalid_yaml(reason: &str) -> SpecFinding {
    SpecFinding::new(SpecFindingKind::Yaml, format!("Invalid YAML in frontmatter: {reason}"))
}
