//! Fences around data, whose end nobody can forge.

use std::sync::LazyLock;

use regex::Regex;

use super::{Clean, Counts, Hidden, clean, clean_code, quoted, replace_all};

/// Whose text it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What it is: `body`, `comment 7` and the like. Ours, not theirs.
    pub what: String,
    /// Who wrote it.
    pub author: String,
    /// What the author may do in the repository, as far as anybody asked.
    pub permission: Option<String>,
}

/// What looks like a line of a fence.
static FENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<<<+\s*(?:begin|end)\b").expect("the pattern is written right")
});

/// Makes text that looks like a fence look like text.
pub(super) fn without_fences(text: &str, counts: &mut Counts) -> String {
    replace_all(text, &FENCE, |found| {
        counts.add(Hidden::Fence);
        Some(found[0].replace('<', "("))
    })
}

/// A cleaned text between two lines that carry a word of this run. The word is not in the text: where it is, it goes.
pub fn fence(origin: &Origin, text: &str, nonce: &str) -> Clean {
    between(origin, clean(text), nonce)
}

/// The same for code, such as a diff: what is shown there stays.
pub fn fence_code(origin: &Origin, text: &str, nonce: &str) -> Clean {
    between(origin, clean_code(text), nonce)
}

fn between(origin: &Origin, clean: Clean, nonce: &str) -> Clean {
    let Clean { text, removed } = clean;
    let text = without_nonce(&text, nonce);
    let (what, author) = (&origin.what, quoted(&origin.author));
    let permission = permission(origin);
    let text = format!(
        "<<<BEGIN DATA {nonce}: {what}, written by {author} ({permission})>>>\n{text}\n<<<END DATA {nonce}>>>"
    );
    Clean { text, removed }
}

/// A thing of one line as data: quoted, with whose it is.
pub fn line_of(origin: &Origin, text: &str, nonce: &str) -> String {
    let text = quoted(&without_nonce(text, nonce));
    let (what, author) = (&origin.what, quoted(&origin.author));
    format!("{text} (data: {what}, written by {author}, {})", permission(origin))
}

fn permission(origin: &Origin) -> String {
    match &origin.permission {
        Some(permission) => format!("permission {permission}"),
        None => "permission not asked for".to_owned(),
    }
}

/// Whoever knows the word must not use it. Taking it out may put another together, so it is broken, not taken.
fn without_nonce(text: &str, nonce: &str) -> String {
    match nonce.is_empty() {
        true => text.to_owned(),
        false => replace_ignoring_case(text, nonce),
    }
}

fn replace_ignoring_case(text: &str, nonce: &str) -> String {
    let pattern = format!("(?i){}", regex::escape(nonce));
    match Regex::new(&pattern) {
        Ok(pattern) => pattern.replace_all(text, "[…]").into_owned(),
        // A word that no pattern can be made of is not one of ours.
        Err(_) => text.replace(nonce, "[…]"),
    }
}
