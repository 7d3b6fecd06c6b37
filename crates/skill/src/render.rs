//! Renders skills as text and JSON for agents, prompts and programs. Each renderer is one file, and a pure
//! function over records. No renderer reads a file, and none lets the text of a skill break out of its
//! wrapper.

use repertoire_text::html::{EscapedQuotes, escape_markup};
use repertoire_text::layout::one_line;
use std::borrow::Cow;

use crate::catalog::CatalogEntry;
use crate::trust::TrustLevel;

pub mod catalog;
pub mod json;
pub mod list;
pub mod message;
pub mod skill_content;
pub mod tool_result;

/// Escapes text for XML elements and for attributes in double quotes. Single quotes stay, because models read the text.
pub fn escape_xml(text: &str) -> Cow<'_, str> {
    escape_markup(text, EscapedQuotes::Double)
}

/// Returns the description of a skill for a model, on one line. An untrusted skill is labelled with its
/// scope.
pub fn describe_skill(entry: &CatalogEntry) -> String {
    let description = one_line(&entry.skill.description);
    match untrusted_label(entry) {
        Some(label) => format!("[{label}] {description}"),
        None => description,
    }
}

fn untrusted_label(entry: &CatalogEntry) -> Option<String> {
    let scope = entry.skill.origin.scope.as_str();
    match entry.trust {
        TrustLevel::Trusted => None,
        TrustLevel::Untrusted => Some(format!("untrusted {scope} skill")),
        TrustLevel::Changed => Some(format!("{scope} skill, changed since it was trusted")),
    }
}

/// Escapes every opening and closing tag of the given names, in any case and with any white space, and leaves
/// everything else alone. A body then cannot close the element around it, nor open one that looks like it.
pub fn neutralise_tags<'t>(text: &'t str, tags: &[&str]) -> Cow<'t, str> {
    let mut out = String::new();
    let mut done = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        if tags.iter().any(|tag| starts_tag(&text[at + 1..], tag)) {
            out.push_str(&text[done..at]);
            out.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

fn starts_tag(after: &str, tag: &str) -> bool {
    // No tag parser skips more white space than this.
    const SPACES_MAX: usize = 64;
    let skipped: usize =
        after.chars().take(SPACES_MAX).take_while(is_skippable).map(char::len_utf8).sum();
    let rest = &after.as_bytes()[skipped..];
    rest.len() >= tag.len() && rest[..tag.len()].eq_ignore_ascii_case(tag.as_bytes())
}

fn is_skippable(c: &char) -> bool {
    c.is_whitespace() || c.is_control() || *c == '/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_a_wrapper_are_neutralised_in_every_spelling() {
        let check = |text: &str, expect: &str| assert_eq!(neutralise_tags(text, &["wrap"]), expect);
        check("a </wrap> b", "a &lt;/wrap> b");
        check("< / WRAP\n>", "&lt; / WRAP\n>");
        check("<wrap name=\"x\">", "&lt;wrap name=\"x\">");
        check("</other> a < b </wra", "</other> a < b </wra");
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape_xml("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
