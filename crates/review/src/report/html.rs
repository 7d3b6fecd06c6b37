//! Renders a review as a self-contained page: the diff, with findings below their lines. The page loads nothing.
//!
//! Its content security policy allows one style and one script by their hashes, so that nothing a model wrote can run
//! even if it got through as markup. The page works without the script, which only adds keyboard shortcuts. Except for
//! its first line the page is well-formed XML, so that tests can check that no text broke out of its element.

use repertoire_text::html::{escape_visibly as esc, source_hash};

use super::words;
use crate::change::Change;
use crate::record::Review;

mod calls;
mod card;
mod diff;
mod file;
mod head;
mod prose;
mod tail;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// Renders the page.
pub fn render(review: &Review, change: &Change) -> String {
    let files = file::views(review, change);
    let mut out = start(review);
    out.push_str(&head::header(review));
    out.push_str("<div class=\"page\">\n");
    out.push_str(&head::navigation(review, &files));
    out.push_str("<main id=\"main\">\n");
    out.push_str(&head::warnings(review));
    out.push_str(&head::overview(review));
    out.push_str(&tail::insights(review));
    out.push_str(&file::sections(review, &files));
    out.push_str(&tail::tests(review));
    out.push_str(&tail::left_out(review));
    out.push_str(&calls::section(review));
    out.push_str("</main>\n</div>\n");
    out.push_str(&tail::footer(review));
    out.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

fn start(review: &Review) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(STYLE),
        source_hash(SCRIPT)
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"referrer\" content=\"no-referrer\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{} · {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the review</a>\n",
        head::verdict(review),
        name(&review.scope.words)
    )
}

/// Escapes a title, a path or a name, on one line.
fn name(text: &str) -> String {
    esc(&words::one_line(text, super::limits::NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_hidden_characters_are_shown() {
        assert_eq!(esc("<a b='c'>&\u{202e}"), "&lt;a b=&#39;c&#39;&gt;&amp;⟨U+202E⟩");
    }
}
