//! What Markdown does not show: texts of pictures, titles of links, and references that lead nowhere.

use std::sync::LazyLock;

use regex::Regex;

use super::{Counts, Hidden, replace_all};

/// `![text](` and `![text][`: the text is shown only where the picture is not.
static PICTURE: LazyLock<Regex> = LazyLock::new(|| {
    // One level of brackets inside, as in a picture that is a link.
    regex(r"(?s)!\[((?:[^\[\]]|\[[^\[\]]*\])*[^\s\[\]](?:[^\[\]]|\[[^\[\]]*\])*)\](\(|\[)")
});

/// `](address "title")`, with the three ways to write a title.
static TITLE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r#"(?s)\]\(\s*(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)\s+"#,
        r#"(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\))\s*\)"#,
    ))
});

/// `[name]: address "title"`, which is not shown at all.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?m)^([ \t>*+-]*)\[([^\[\]\n]*)\]:[ \t]*(?:\n[ \t]*)?",
        r#"(<[^<>\n]*>|[^\s]+)([ \t]*(?:\n[ \t]*)?(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$)?([^\n]*)$"#,
    ))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

pub(super) fn without_hidden_text(text: &str, counts: &mut Counts) -> String {
    let text = replace_all(text, &REFERENCE, |found| reference(found, counts));
    let text = replace_all(&text, &PICTURE, |found| {
        counts.add(Hidden::PictureText);
        Some(format!("![]{}", &found[2]))
    });
    replace_all(&text, &TITLE, |found| {
        counts.add(Hidden::LinkTitle);
        Some(format!("]({})", &found[1]))
    })
}

/// A reference keeps its address, if it is one; its title goes.
fn reference(found: &regex::Captures<'_>, counts: &mut Counts) -> Option<String> {
    let (name, address) = (&found[2], &found[3]);
    let plain = name.len() <= 40 && !name.trim().contains(char::is_whitespace);
    let leads = address.contains("://") || address.starts_with(['/', '.']);
    if !plain || !leads || !found[5].trim().is_empty() || address.contains(' ') {
        // A note, `[^1]: text`, is shown; so is what only looks like a reference.
        if name.starts_with('^') || !is_reference(found) {
            return None;
        }
        counts.add(Hidden::Reference);
        return Some(String::new());
    }
    found.get(4).map(|_| {
        counts.add(Hidden::LinkTitle);
        format!("{}[{name}]: {address}", &found[1])
    })
}

/// Text behind the address makes a paragraph of it.
fn is_reference(found: &regex::Captures<'_>) -> bool {
    found[5].trim().is_empty()
}
