//! What HTML does not show: comments, attributes, elements that say that they are hidden.

use std::sync::LazyLock;

use regex::Regex;

use super::{Counts, Hidden, part, replace_all};

/// Comments and what else no browser shows. What is not closed goes on to the end.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?s)<!-->|<!--->|<!--.*?(?:-->|--!>|\z)",
        r"|<\?.*?(?:\?>|\z)|<!\[CDATA\[.*?(?:\]\]>|\z)|<![A-Za-z][^>]*(?:>|\z)",
        // Browsers make comments of these as well.
        r"|<![^>]*>|</[^A-Za-z>][^>]*>",
    ))
});

/// A tag that opens an element, with its attributes.
static TAG: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?s)<([A-Za-z][A-Za-z0-9-]*)([\s/](?:"[^"]*"|'[^']*'|[^"'<>])*)>"#));

/// A tag with a text that never ends: browsers drop all of it.
static OPEN_TAG: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?s)<[A-Za-z][A-Za-z0-9-]*\s(?:"[^"]*"|'[^']*'|[^"'<>])*=\s*(?:"[^"]*|'[^']*)\z"#)
});

/// A closing tag with more than its name.
static CLOSING: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?s)</([A-Za-z][A-Za-z0-9-]*)\s+[^\s>][^>]*(?:>|\z)"));

static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?s)([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?"#)
});

/// Attributes that hide an element, by name or by what is in them.
static HIDES: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0?\.?0",
        r"|font-size\s*:\s*0|(?:max-)?(?:height|width)\s*:\s*0|text-indent\s*:\s*-|clip",
        r"|color\s*:\s*(?:transparent|#fff|white)|position\s*:\s*absolute|left\s*:\s*-",
    ))
});

/// Elements whose content is no text of the page.
const SILENT: &[&str] = &[
    "script",
    "style",
    "template",
    "noscript",
    "textarea",
    "title",
    "iframe",
    "object",
    "noembed",
    "noframes",
    "xmp",
    "plaintext",
    "select",
    "datalist",
    "svg",
    "math",
    "head",
];

/// Elements that have no content.
const EMPTY: &[&str] =
    &["br", "hr", "img", "input", "link", "meta", "source", "wbr", "area", "col"];

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

pub(super) fn without_comments(text: &str, counts: &mut Counts) -> String {
    replace_all(text, &COMMENT, |_| {
        counts.add(Hidden::Comment);
        Some(String::new())
    })
}

/// Takes out elements that say that they are hidden, with everything in them; one that is not closed goes on to the end.
pub(super) fn without_hidden_elements(text: &str, counts: &mut Counts) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    for found in ANY_TAG.captures_iter(text) {
        let tag = found.get(0).expect("a match has a whole");
        let name = found[1].to_ascii_lowercase();
        let attributes = found.get(2).map_or("", |attributes| attributes.as_str());
        if tag.start() < last || !is_hidden(&name, attributes) {
            continue;
        }
        counts.add(Hidden::Element);
        out.push_str(&text[last..tag.start()]);
        last = match EMPTY.contains(&name.as_str()) {
            true => tag.end(),
            false => tag.end() + length_of_element(&text[tag.end()..], &name),
        };
        part(&mut out, &text[last..]);
    }
    out.push_str(&text[last..]);
    out
}

static ANY_TAG: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?s)<([A-Za-z][A-Za-z0-9-]*)([\s/](?:"[^"]*"|'[^']*'|[^"'<>])*)?>"#));

static EDGE: LazyLock<Regex> = LazyLock::new(|| regex(r"<(/?)([A-Za-z][A-Za-z0-9-]*)"));

/// The bytes up to the end of the element that has begun.
fn length_of_element(rest: &str, name: &str) -> usize {
    let mut depth = 1usize;
    for edge in EDGE.captures_iter(rest) {
        if !edge[2].eq_ignore_ascii_case(name) {
            continue;
        }
        depth = if edge[1].is_empty() { depth + 1 } else { depth - 1 };
        if depth == 0 {
            let from = edge.get(0).expect("a match has a whole").end();
            return rest[from..].find('>').map_or(rest.len(), |end| from + end + 1);
        }
    }
    rest.len()
}

fn is_hidden(name: &str, attributes: &str) -> bool {
    if SILENT.contains(&name) {
        return true;
    }
    ATTRIBUTE.captures_iter(attributes).any(|found| match found[1].to_ascii_lowercase().as_str() {
        "hidden" | "inert" => true,
        "aria-hidden" => value_of(&found).eq_ignore_ascii_case("true"),
        "style" => HIDES.is_match(value_of(&found)),
        _ => false,
    })
}

fn value_of<'t>(found: &regex::Captures<'t>) -> &'t str {
    (2..=4).find_map(|at| found.get(at)).map_or("", |value| value.as_str())
}

/// Leaves of every tag its name, where it leads, and a mark where there was more. `Box<dyn Error>` suffers with the rest: the
/// page does not show such a tag either, unless it stands in code, and what is code is easy to get wrong.
pub(super) fn without_attributes(text: &str, counts: &mut Counts) -> String {
    let text = replace_all(text, &OPEN_TAG, |_| {
        counts.add(Hidden::Attribute);
        Some(String::new())
    });
    let text = replace_all(&text, &CLOSING, |found| {
        counts.add(Hidden::Attribute);
        Some(format!("</{}>", &found[1]))
    });
    replace_all(&text, &TAG, |found| {
        let bare = bare_tag(&found[1], &found[2]);
        (bare != found[0]).then(|| {
            counts.add(Hidden::Attribute);
            bare
        })
    })
}

fn bare_tag(name: &str, attributes: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '<' | '>' | '`');
    let (mut kept, mut more) = (String::new(), "");
    for found in ATTRIBUTE.captures_iter(attributes) {
        let value = value_of(&found);
        let attribute = found[1].to_ascii_lowercase();
        let leads = matches!(attribute.as_str(), "href" | "src");
        match leads && !value.is_empty() && value.chars().all(plain) {
            true => kept.push_str(&format!(" {attribute}=\"{value}\"")),
            false => more = " …",
        }
    }
    let end = if attributes.trim_end().ends_with('/') { " /" } else { "" };
    format!("<{name}{kept}{more}{end}>")
}
