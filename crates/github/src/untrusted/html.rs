//! Hidden parts of HTML: comments, attributes, and elements that are styled to be invisible.

use std::sync::LazyLock;

use regex::Regex;

use super::markup::{MarkdownRanges, range_containing};
use super::{HiddenKind, RemovalCounts, addresses, replace_all, separate_words};

/// Matches comments and other constructs that no browser shows. An unclosed one extends to the end.
static COMMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(concat!(
        r"(?s)<!-->|<!--->|<!--.*?(?:-->|--!>|\z)",
        r"|<\?.*?(?:\?>|\z)|<!\[CDATA\[.*?(?:\]\]>|\z)|<![A-Za-z][^>]*(?:>|\z)",
        // Browsers treat these as comments as well.
        r"|<![^>]*>|</[^A-Za-z>][^>]*>",
    ))
});

/// Matches an opening tag with its attributes.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(r#"(?s)<([A-Za-z][A-Za-z0-9-]*)([\s/](?:"[^"]*"|'[^']*'|[^"'<>])*)>"#)
});

/// Matches a tag with an unclosed attribute value, which browsers drop entirely.
static OPEN_TAG: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r#"(?s)<[A-Za-z][A-Za-z0-9-]*\s(?:"[^"]*"|'[^']*'|[^"'<>])*=\s*(?:"[^"]*|'[^']*)\z"#,
    )
});

/// Matches a closing tag with more than its name.
static CLOSING: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"(?s)</([A-Za-z][A-Za-z0-9-]*)\s+[^\s>][^>]*(?:>|\z)"));

static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(r#"(?s)([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?"#)
});

/// Matches styles that hide an element.
static HIDES: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(concat!(
        r"(?i)display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*[:(]\s*(?:0?\.[0-2]|0|\.[0-2]|[0-9]%)",
        r"|font(?:-size)?\s*:\s*(?:[^;]*\s)?(?:[0-3](?:\.\d+)?(?:px|pt|%|\b)|0|0?\.\d)|line-height\s*:\s*0",
        r"|(?:max-)?(?:height|width)\s*:\s*[01]\b|text-indent\s*:\s*-|clip|scale|transform|z-index\s*:\s*-",
        r"|(?:margin|left|right|top|bottom|letter-spacing)[a-z-]*\s*:\s*-|position\s*:\s*(?:absolute|fixed)|filter\s*:",
        r"|mix-blend|content-visibility|mask|/\*|\\|&|color\s*:\s*(?:transparent|var\()",
    ))
});

/// Matches the text colour in a style. The colour of a background or border hides nothing.
static COLOUR: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(r"(?i)(?:^|[^-a-z])(?:color|-webkit-text-fill-color)\s*:([^;]*)")
});

/// Matches colours that are illegible on a white page.
static PALE: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(concat!(
        r"(?i)(?:^|[\s:])(?:white(?:smoke)?|snow|ivory|ghostwhite|floralwhite|azure|mintcream|seashell|transparent)\b",
        r"|#(?:[ef]{3,4}|(?:[ef][0-9a-f]){3}(?:[0-9a-f]{2})?|[0-9a-f]{6}[0-3][0-9a-f]|[0-9a-f]{3}[0-3])\b",
        r"|rgba?\(\s*(?:(?:2[2-5]\d|9\d%|100%)[\s,]+){2}(?:2[2-5]\d|9\d%|100%)",
        r"|(?:rgba|hsla)\([^)]*[,/]\s*0?(?:\.[0-2]\d*)?\s*\)|hsla?\([^)]*(?:9\d|100)%",
    ))
});

/// Matches illegible sizes.
static TINY: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"^\s*(?:[01](?:\.\d*)?(?:px|pt|%)?|-\d+)\s*$"));

/// Elements whose content is not text of the page.
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
    "rp",
    "audio",
    "video",
    "canvas",
    "dialog",
    "progress",
    "meter",
    "applet",
    "frameset",
    "optgroup",
    "option",
    "param",
    "map",
];

/// Void elements.
const EMPTY: &[&str] =
    &["br", "hr", "img", "input", "link", "meta", "source", "wbr", "area", "col"];

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

/// Matches links without text.
static UNSEEN: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"(?is)<a(?:\s[^<>]*)?>\s*</a>"));

/// Elements that make their text smaller, with the number of steps.
const SMALLER: &[(&str, usize)] = &[
    ("sub", 1),
    ("sup", 1),
    ("small", 1),
    ("code", 1),
    ("kbd", 1),
    ("samp", 1),
    ("tt", 1),
    ("h5", 1),
    ("h6", 1),
    ("rp", 1),
    // The text above a ruby is half as large as the text around it.
    ("rt", 2),
    ("rtc", 2),
];

/// The number of steps from which text is illegibly small.
const STEPS_MAX: usize = 4;

pub(super) fn without_comments(text: &str, counts: &mut RemovalCounts) -> String {
    replace_all(text, &COMMENT, |_| {
        counts.add(HiddenKind::Comment);
        Some(String::new())
    })
}

/// Removes hidden elements with their content. An unclosed one extends to the end.
pub(super) fn without_hidden_elements(text: &str, counts: &mut RemovalCounts) -> String {
    let text = &replace_all(text, &UNSEEN, |_| {
        counts.add(HiddenKind::Element);
        Some(String::new())
    });
    if !OPENING_OR_CLOSING.is_match(text) {
        return text.clone();
    }
    let ranges = MarkdownRanges::find_ranges(text);
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    let mut sizes = OpenSizes::default();
    for found in OPENING_OR_CLOSING.captures_iter(text) {
        let tag = found.get(0).expect("a match has a whole");
        if tag.start() < last || ranges.is_code(tag.start()) {
            continue;
        }
        let is_tag = range_containing(&ranges.html, tag.start()).is_some();
        if let Some(closed) = found.get(3) {
            if is_tag {
                sizes.close(&closed.as_str().to_ascii_lowercase());
            }
            continue;
        }
        let name = found[1].to_ascii_lowercase();
        let attributes = found.get(2).map_or("", |attributes| attributes.as_str());
        let is_tiny = is_tag && sizes.open(&name);
        if !is_tiny && !is_hidden(&name, attributes) {
            continue;
        }
        if is_tiny {
            sizes.close(&name);
        }
        counts.add(HiddenKind::Element);
        out.push_str(&text[last..tag.start()]);
        last = if EMPTY.contains(&name.as_str()) {
            tag.end()
        } else {
            end_of_element(text, tag.end(), &name, &ranges)
        };
        separate_words(&mut out, &text[last..]);
    }
    out.push_str(&text[last..]);
    out
}

/// The open elements that make their text smaller.
#[derive(Default)]
struct OpenSizes {
    open: Vec<(&'static str, usize)>,
    steps: usize,
}

impl OpenSizes {
    /// Opens an element, and returns true if it makes its text illegibly small.
    fn open(&mut self, name: &str) -> bool {
        let Some(smaller) = SMALLER.iter().find(|(known, _)| *known == name) else { return false };
        self.open.push(*smaller);
        self.steps += smaller.1;
        self.steps >= STEPS_MAX
    }

    /// Closes the innermost element of a name, if one is open.
    fn close(&mut self, name: &str) {
        if let Some(at) = self.open.iter().rposition(|(known, _)| *known == name) {
            self.steps -= self.open.remove(at).1;
        }
    }
}

/// Matches an opening tag, or the start of a closing one.
static OPENING_OR_CLOSING: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r#"(?s)<([A-Za-z][A-Za-z0-9-]*)([\s/](?:"[^"]*"|'[^']*'|[^"'<>])*)?>|</([A-Za-z][A-Za-z0-9-]*)"#,
    )
});

static ANY_TAG: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(r#"(?s)<([A-Za-z][A-Za-z0-9-]*)([\s/](?:"[^"]*"|'[^']*'|[^"'<>])*)?>"#)
});

static EDGE: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"<(/?)([A-Za-z][A-Za-z0-9-]*)"));

/// Returns the end of the element that starts before `from`. Closing tags in code and running text
/// are ignored.
fn end_of_element(text: &str, from: usize, name: &str, ranges: &MarkdownRanges) -> usize {
    let mut depth = 1usize;
    for edge in EDGE.captures_iter(&text[from..]) {
        let whole = edge.get(0).expect("a match has a whole");
        let is_tag = range_containing(&ranges.html, from + whole.start()).is_some();
        if !is_tag || !edge[2].eq_ignore_ascii_case(name) {
            continue;
        }
        depth = if edge[1].is_empty() { depth + 1 } else { depth - 1 };
        if depth == 0 {
            let end = from + whole.end();
            return text[end..].find('>').map_or(text.len(), |close| end + close + 1);
        }
    }
    text.len()
}

/// Removes the parts of HTML blocks that browsers hide. Markdown passes such a block on unchanged.
/// If the block leaves a comment or tag open, the rest of the text is removed: browsers hide it,
/// and nothing in it could close the tag, because Markdown escapes quotes and brackets there.
pub(super) fn without_hidden_in_blocks(text: &str, counts: &mut RemovalCounts) -> String {
    if !text.contains('<') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    for block in MarkdownRanges::find_ranges(text).html_blocks {
        let mut at = block.start;
        while let Some(start) = text[at..block.end].find('<').map(|start| at + start) {
            let Some(piece) = HtmlToken::parse_start(&text[start..block.end]) else {
                at = start + 1;
                continue;
            };
            let Some(length) = piece.length() else {
                counts.add(piece.hidden_kind());
                out.push_str(&text[last..start]);
                return out;
            };
            at = start + length;
            let tag = &text[start..at];
            if let HtmlToken::Tag { name, .. } = piece
                && tag.len() > name.len() + 2
                && !is_whole_tag(tag)
            {
                counts.add(HiddenKind::Attribute);
                out.push_str(&text[last..start]);
                out.push_str(&format!("<{name} …>"));
                last = at;
            }
        }
    }
    out.push_str(&text[last..]);
    out
}

/// Returns true if one of the tag patterns matches a whole tag.
fn is_whole_tag(tag: &str) -> bool {
    let is_whole =
        |pattern: &Regex| pattern.find(tag).is_some_and(|found| found.range() == (0..tag.len()));
    is_whole(&ANY_TAG) || is_whole(&ANY_CLOSING)
}

static COMMENT_END: LazyLock<Regex> = LazyLock::new(|| compile_regex("--!?>"));

static ANY_CLOSING: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"(?s)</[A-Za-z][^<>]*>"));

/// A token of HTML as browsers parse it, with its length if it is closed.
enum HtmlToken<'t> {
    Comment { length: Option<usize> },
    Tag { name: &'t str, length: Option<usize> },
}

impl<'t> HtmlToken<'t> {
    /// Parses the token at the start of a text, which must begin with `<`.
    fn parse_start(text: &'t str) -> Option<Self> {
        let behind = |end: &str| text.find(end).map(|at| at + end.len());
        if text.starts_with("<!--") {
            let short = ["<!-->", "<!--->"].into_iter().find(|short| text.starts_with(short));
            let closed = || COMMENT_END.find(text).map(|end| end.end());
            return Some(HtmlToken::Comment { length: short.map(str::len).or_else(closed) });
        }
        let after = text[1..].strip_prefix('/').unwrap_or(&text[1..]);
        let first = after.chars().next()?;
        if first.is_ascii_alphabetic() {
            let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '>');
            let name = &after[..after.find(is_end).unwrap_or(after.len())];
            let start = text.len() - after.len() + name.len();
            let length = length_of_attributes(&text[start..]).map(|length| start + length);
            return Some(HtmlToken::Tag { name, length });
        }
        let is_bogus = matches!(first, '!' | '?') || text.starts_with("</");
        is_bogus.then(|| HtmlToken::Comment { length: behind(">") })
    }

    fn length(&self) -> Option<usize> {
        match self {
            HtmlToken::Comment { length } | HtmlToken::Tag { length, .. } => *length,
        }
    }

    fn hidden_kind(&self) -> HiddenKind {
        match self {
            HtmlToken::Comment { .. } => HiddenKind::Comment,
            HtmlToken::Tag { .. } => HiddenKind::Attribute,
        }
    }
}

/// Returns the number of bytes up to the end of a tag, after its name. A quotation mark counts only
/// at the start of a value.
fn length_of_attributes(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_value = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '>' => return Some(at + 1),
            None if is_value && matches!(c, '"' | '\'') => quote = Some(c),
            None => {}
        }
        is_value = c == '=' || is_value && c.is_whitespace();
    }
    None
}

fn is_hidden(name: &str, attributes: &str) -> bool {
    if SILENT.contains(&name) {
        return true;
    }
    ATTRIBUTE.captures_iter(attributes).any(|found| match found[1].to_ascii_lowercase().as_str() {
        "hidden" | "inert" => true,
        "aria-hidden" => value_of(&found).eq_ignore_ascii_case("true"),
        "style" => {
            let style = value_of(&found);
            let colours = || COLOUR.captures_iter(style).any(|colour| PALE.is_match(&colour[1]));
            HIDES.is_match(style) || colours()
        }
        "color" | "text" => PALE.is_match(value_of(&found)),
        "size" | "width" | "height" => name != "img" && TINY.is_match(value_of(&found)),
        _ => false,
    })
}

fn value_of<'t>(found: &regex::Captures<'t>) -> &'t str {
    (2..=4).find_map(|at| found.get(at)).map_or("", |value| value.as_str())
}

/// Removes attributes from tags, except for short addresses, and leaves a mark. This also affects
/// text like `Box<dyn Error>`: the page does not show such a tag either, unless it is in code, and
/// recognising code is error-prone.
pub(super) fn without_attributes(text: &str, counts: &mut RemovalCounts) -> String {
    let text = replace_all(text, &OPEN_TAG, |_| {
        counts.add(HiddenKind::Attribute);
        Some(String::new())
    });
    let text = replace_all(&text, &CLOSING, |found| {
        counts.add(HiddenKind::Attribute);
        Some(format!("</{}>", &found[1]))
    });
    replace_all(&text, &TAG, |found| {
        let bare = bare_tag(&found[1], &found[2]);
        (bare != found[0]).then(|| {
            counts.add(HiddenKind::Attribute);
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
        let is_address = !value.is_empty() && value.chars().all(plain);
        if leads && is_address && addresses::shorten_address(value).is_none() {
            kept.push_str(&format!(" {attribute}=\"{value}\""));
        } else {
            more = " …";
        }
    }
    let end = if attributes.trim_end().ends_with('/') { " /" } else { "" };
    format!("<{name}{kept}{more}{end}>")
}
