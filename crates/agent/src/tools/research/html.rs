//! Converts HTML to plain text, roughly as a reader would see it. Never fails, and takes linear time.
//!
//! The crate `html5gum` splits the page into tags and text as the standard demands. A tree is not needed for that, and
//! a page can make building one expensive: `html2text` had not converted 100,000 nested `<div>` after 30 s, and adds 14
//! crates where `html5gum` adds itself.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Elements whose content is not shown.
const UNSEEN: &[&str] = &["script", "style", "noscript", "template", "svg", "title", "iframe"];
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
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        page.process_event(event);
        None
    });
    // The text of a script is not markup.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(html, emitter).for_each(drop);
    tidy_lines(&page.out)
}

#[derive(Default)]
struct PageText {
    out: String,
    /// The element of the start tag that is being read.
    tag: String,
    /// The element whose content is skipped, and the number of such elements that are open.
    hidden: Option<(String, usize)>,
    /// True within `<pre>`, where white space is kept.
    preformatted: bool,
}

impl PageText {
    fn process_event(&mut self, event: CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.push_str(&String::from_utf8_lossy(name));
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let name = std::mem::take(&mut self.tag);
                self.open_element(&name, self_closing);
                self.tag = name;
            }
            CallbackEvent::EndTag { name } => self.close_element(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } if self.hidden.is_none() => {
                self.push_text(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
    }

    fn open_element(&mut self, name: &str, self_closing: bool) {
        // Only elements of SVG can close themselves: `<script/>` is an open script.
        let is_whole = self_closing && name == "svg";
        match &mut self.hidden {
            Some((hidden, open)) if hidden == name && !is_whole => *open += 1,
            Some(_) => {}
            None if is_whole => {}
            None if UNSEEN.contains(&name) => self.hidden = Some((name.to_owned(), 1)),
            None => self.handle_tag(name, false),
        }
    }

    fn close_element(&mut self, name: &str) {
        match &mut self.hidden {
            None => self.handle_tag(name, true),
            Some((hidden, open)) if hidden == name => {
                *open -= 1;
                if *open == 0 {
                    self.hidden = None;
                }
            }
            Some(_) => {}
        }
    }

    fn push_text(&mut self, text: &str) {
        if self.preformatted {
            self.out.push_str(&text.replace('\u{a0}', " "));
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

    fn handle_tag(&mut self, name: &str, closes: bool) {
        if name == "pre" {
            self.preformatted = !closes;
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
        assert_eq!(to_text("one <a title='x>text"), "one");
        let deep = "<div>".repeat(200_000) + &"<".repeat(100_000) + &"&".repeat(100_000);
        to_text(&deep);
    }

    #[test]
    fn scripts_styles_and_drawings_are_dropped_wherever_they_end() {
        for (html, expect) in [
            ("<head><title>T<b></title><body>shown", "shown"),
            ("<svg><title>no</title><svg/>no<svg>no</svg>no</svg>shown", "shown"),
            ("<template><template>no</template>no</template>shown", "shown"),
            ("<script>'<!--' </p></SCRIPT >shown<style>no", "shown"),
            ("<script src=x />no</script>shown<svg/>shown", "shownshown"),
            ("<p hidden>&lt;b&gt; &eacute;&nbsp;x&ampy", "<b> é x&y"),
        ] {
            assert_eq!(to_text(html), expect, "{html}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(html in "[<>/!&;#a-e\"' -é]{0,200}") {
            to_text(&html);
        }
    }
}
