//! Converts HTML to plain text, roughly as a reader would see it. Never fails, and takes linear time.

/// Elements whose content is not shown.
const UNSEEN: &[&str] = &["script", "style", "noscript", "template", "svg", "head", "iframe"];
/// Elements that begin a line.
const LINES: &[&str] = &[
    "p",
    "div",
    "br",
    "tr",
    "table",
    "ul",
    "ol",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "nav",
    "aside",
    "blockquote",
    "pre",
    "hr",
    "dt",
    "dd",
    "form",
    "figure",
    "figcaption",
    "option",
];

/// Converts a page to text.
pub(super) fn to_text(html: &str) -> String {
    let mut page = PageText::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.push_text(&rest[..at]);
        rest = page.process_tag(&rest[at..]);
    }
    page.push_text(rest);
    tidy_lines(&page.out)
}

#[derive(Default)]
struct PageText {
    out: String,
    /// True within `<pre>`, where white space is kept.
    preformatted: bool,
    title: bool,
}

impl PageText {
    fn push_text(&mut self, text: &str) {
        if self.title {
            return;
        }
        let text = decode_entities(text);
        if self.preformatted {
            self.out.push_str(&text);
            return;
        }
        for word in text.split_inclusive(char::is_whitespace) {
            let trimmed = word.trim();
            self.out.push_str(trimmed);
            let spaced = self.out.ends_with([' ', '\n']) || self.out.is_empty();
            if trimmed.len() < word.len() && !spaced {
                self.out.push(' ');
            }
        }
    }

    /// Processes a tag or comment that begins with `<`, and returns the rest after it.
    fn process_tag<'a>(&mut self, html: &'a str) -> &'a str {
        if let Some(comment) = html.strip_prefix("<!--") {
            return comment.find("-->").map_or("", |end| &comment[end + 3..]);
        }
        let Some(inner) =
            html[1..].strip_prefix(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c))
        else {
            self.push_text("<");
            return &html[1..];
        };
        let end = end_of_tag(inner);
        let whole = &html[1..html.len() - inner.len() + end];
        let rest = inner.get(end + 1..).unwrap_or("");
        let closes = whole.starts_with('/');
        let name = whole.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next();
        let name = name.unwrap_or("").to_ascii_lowercase();
        if !closes && UNSEEN.contains(&name.as_str()) && !whole.ends_with('/') {
            return after_close(rest, &name);
        }
        self.handle_tag(&name, closes);
        rest
    }

    fn handle_tag(&mut self, name: &str, closes: bool) {
        match name {
            "pre" => self.preformatted = !closes,
            "title" => self.title = !closes,
            _ => {}
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !closes => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.out.push_str(&format!("\n\n{} ", "#".repeat(level)));
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.out.push_str("\n\n"),
            "p" => self.out.push_str("\n\n"),
            "li" if !closes => self.out.push_str("\n- "),
            "td" | "th" if !closes => self.out.push_str(" | "),
            name if LINES.contains(&name) => self.out.push('\n'),
            _ => {}
        }
    }
}

/// The end of a tag. A `>` in quotes does not end it.
fn end_of_tag(inner: &str) -> usize {
    let mut quote = None;
    for (at, byte) in inner.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // An unclosed quote must not swallow the page.
    inner.find('>').unwrap_or(inner.len())
}

/// The rest after the closing tag `</name>`; empty if there is none.
fn after_close<'a>(html: &'a str, name: &str) -> &'a str {
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        let after = &rest[at + 2..];
        let is_it = after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is_it {
            return after.find('>').map_or("", |end| &after[end + 1..]);
        }
        rest = after;
    }
    ""
}

fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = after.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| decode_entity(&after[..end]).map(|c| (c, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &after[end + 1..];
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn decode_entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "rarr" => '→',
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

/// Removes trailing white space, and all but one of consecutive empty lines.
fn tidy_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 1;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.trim().is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_what_a_reader_sees() {
        let html = "<!doctype html><html><head><title>T</title><style>p{}</style></head><body>\
            <h1>The   title</h1><p>One &amp; <b>two</b>\n three.</p><!-- <p>no</p> -->\
            <ul><li>a</li><li>b &#x2192; c</li></ul><script>if (a < b) { '</p>' }</script>\
            <pre>x\n  y</pre><table><tr><td>1</td><td>2</td></tr></table><a title=\"a > b\">end</a></body></html>";
        insta::assert_snapshot!(to_text(html), @r"
        # The title

        One & two three.

        - a
        - b → c

        x
          y

         | 1 | 2

        end
        ");
    }

    #[test]
    fn what_is_broken_still_ends() {
        for html in [
            "<",
            "<p",
            "a < b",
            "<a href='",
            "<script>",
            "<!--",
            "&",
            "&#x110000;",
            "&amp",
            "</",
            "<é>",
            "é&é;é",
        ] {
            to_text(html);
        }
        assert_eq!(to_text("a < b &bogus; c"), "a < b &bogus; c");
        assert_eq!(to_text("<a title='x>text"), "text");
        let deep = "<div>".repeat(200_000) + &"<".repeat(100_000) + &"&".repeat(100_000);
        to_text(&deep);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(html in "[<>/!&;#a-e\"' -é]{0,200}") {
            to_text(&html);
        }
    }
}
