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
        r"(?m)^([ \t>*+\-.)0-9]*)\[((?:[^\[\]\n]|\n[ \t]*[^\s\[\]])*)\]:[ \t]*(?:\n[ \t]*)?",
        r#"(<[^<>\n]*>|[^\s]+)([ \t]*(?:\n[ \t]*)?(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$)?([^\n]*)$"#,
    ))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

/// `[](address)`, a link that is not shown. A picture without text has a mark before it.
static EMPTY_LINK: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(^|[^!\]\\])\[[ \t]*\]\((?:<[^<>\n]*>|[^()\n]*)\)"));

/// `](address)`, with an address that has words in it.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\]\(\s*<?([^\s()<>]+)>?\s*\)"));

/// `![text]` without an address of its own.
static BARE_PICTURE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"!\[([^\[\]\n]*[^\s\[\]][^\[\]\n]*)\]"));

pub(super) fn without_hidden_text(text: &str, counts: &mut Counts) -> String {
    let defined = defined_names(text);
    let text = replace_all(text, &REFERENCE, |found| reference(found, counts));
    let text = replace_all(&text, &PICTURE, |found| {
        counts.add(Hidden::PictureText);
        Some(format!("![]{}", &found[2]))
    });
    let text = replace_all(&text, &BARE_PICTURE, |found| {
        defined.contains(&found[1].to_lowercase()).then(|| {
            counts.add(Hidden::PictureText);
            "![]".to_owned()
        })
    });
    let text = replace_all(&text, &TITLE, |found| {
        counts.add(Hidden::LinkTitle);
        Some(format!("]({})", &found[1]))
    });
    let text = replace_all(&text, &EMPTY_LINK, |found| {
        counts.add(Hidden::LinkAddress);
        Some(format!("{} ", &found[1]))
    });
    replace_all(&text, &ADDRESS, |found| {
        let short = without_words(&found[1])?;
        counts.add(Hidden::LinkAddress);
        Some(format!("]({short})"))
    })
}

/// The names that have an address.
fn defined_names(text: &str) -> std::collections::BTreeSet<String> {
    REFERENCE.captures_iter(text).map(|found| found[2].to_lowercase()).collect()
}

/// The longest address of a link that stays.
const ADDRESS_CHARS_MAX: usize = 200;

/// An address cut where it begins to carry text: encoded blanks, or more than anybody reads. `None` if it is fine.
pub(super) fn without_words(address: &str) -> Option<String> {
    let lower = address.to_ascii_lowercase();
    let encoded =
        ["%20", "%0a", "%0d", "%09", "%c2%a0", "+"].iter().filter_map(|blank| lower.find(blank));
    let start = lower.find("://").map_or(0, |at| at + 3);
    let long = address.char_indices().nth(ADDRESS_CHARS_MAX).map(|(at, _)| at);
    let cut = encoded.filter(|at| *at >= start).chain(long).min()?;
    let kept = &address[..cut];
    // A word that is cut in its middle would be left alone.
    let end = kept[start..].rfind(['/', '?', '#', '=', '&']).map_or(cut, |at| start + at + 1);
    Some(format!("{}…", &address[..end]))
}

/// A reference keeps its address, if it is one; its title goes.
fn reference(found: &regex::Captures<'_>, counts: &mut Counts) -> Option<String> {
    let (name, address) = (&found[2], &found[3]);
    let plain = name.len() <= 40 && !name.trim().contains(char::is_whitespace);
    let leads = address.contains("://") || address.starts_with(['/', '.']);
    let has_words = without_words(address).is_some();
    if !plain || !leads || has_words || !found[5].trim().is_empty() || address.contains(' ') {
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
