//! Fences around untrusted data, with an end that cannot be forged.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    HiddenKind, RemovalCounts, SanitisedText, quote_line, replace_all, sanitise_code, sanitise_text,
};

/// The origin of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOrigin {
    /// The kind of text: `body`, `comment 7` and the like. Chosen by us, not by the author.
    pub what: String,
    pub author: String,
    /// The author's permission in the repository, if it was looked up.
    pub permission: Option<String>,
}

/// Matches text that looks like a line of a fence.
static FENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<<<+\s*(?:begin|end)\b").expect("the pattern is written right")
});

/// Breaks text that looks like a fence.
pub(super) fn without_fences(text: &str, counts: &mut RemovalCounts) -> String {
    replace_all(text, &FENCE, |found| {
        counts.add(HiddenKind::Fence);
        Some(found[0].replace('<', "("))
    })
}

/// Sanitises a text and puts it between two lines that carry the nonce of this run. The nonce is
/// broken if it occurs in the text.
pub fn fence_text(origin: &TextOrigin, text: &str, nonce: &str) -> SanitisedText {
    put_in_fence(origin, sanitise_text(text), nonce)
}

/// Like [`fence_text`] for code, such as a diff, in which comments and attributes are visible and stay.
pub fn fence_code(origin: &TextOrigin, text: &str, nonce: &str) -> SanitisedText {
    put_in_fence(origin, sanitise_code(text), nonce)
}

fn put_in_fence(origin: &TextOrigin, clean: SanitisedText, nonce: &str) -> SanitisedText {
    let SanitisedText { text, removed } = clean;
    let text = without_nonce(&text, nonce);
    let (what, author) = (&origin.what, quote_line(&origin.author));
    let permission = describe_permission(origin);
    let text = format!(
        "<<<BEGIN DATA {nonce}: {what}, written by {author} ({permission})>>>\n{text}\n<<<END DATA {nonce}>>>"
    );
    SanitisedText { text, removed }
}

/// Returns text of one line as data: quoted, with its origin.
pub fn quote_line_of(origin: &TextOrigin, text: &str, nonce: &str) -> String {
    let text = quote_line(&without_nonce(text, nonce));
    let (what, author) = (&origin.what, quote_line(&origin.author));
    format!("{text} (data: {what}, written by {author}, {})", describe_permission(origin))
}

fn describe_permission(origin: &TextOrigin) -> String {
    match &origin.permission {
        Some(permission) => format!("permission {permission}"),
        None => "permission not asked for".to_owned(),
    }
}

/// Replaces the nonce in a text by a placeholder. Removing it could join two parts into another
/// nonce.
fn without_nonce(text: &str, nonce: &str) -> String {
    if nonce.is_empty() { text.to_owned() } else { replace_ignoring_case(text, nonce) }
}

fn replace_ignoring_case(text: &str, nonce: &str) -> String {
    let pattern = format!("(?i){}", regex::escape(nonce));
    match Regex::new(&pattern) {
        Ok(pattern) => pattern.replace_all(text, "[…]").into_owned(),
        // Unreachable for escaped text of a sane length, but fall back to an exact match.
        Err(_) => text.replace(nonce, "[…]"),
    }
}
