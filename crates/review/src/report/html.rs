//! Renders a review as a self-contained page: the diff, with findings below their lines. The page loads nothing.
//!
//! Its content security policy allows one style and one script by their hashes, so that nothing a model wrote can run
//! even if it got through as markup. The page works without the script, which only adds keyboard shortcuts. Except for
//! its first line the page is well-formed XML, so that tests can check that no text broke out of its element.

use repertoire_text::html::{escape_visibly as esc, source_hash};

use super::phrases;
use crate::change::ReviewChange;
use crate::record::ReviewRecord;

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
pub fn render_page(review: &ReviewRecord, change: &ReviewChange) -> String {
    let files = file::file_views(review, change);
    let mut out = render_start(review);
    out.push_str(&head::render_header(review));
    out.push_str("<div class=\"page\">\n");
    out.push_str(&head::render_navigation(review, &files));
    out.push_str("<main id=\"main\">\n");
    out.push_str(&head::render_warnings(review));
    out.push_str(&head::render_overview(review));
    out.push_str(&tail::render_insights(review));
    out.push_str(&file::render_files(review, &files));
    out.push_str(&tail::render_tests(review));
    out.push_str(&tail::render_left_out(review));
    out.push_str(&calls::render_calls(review));
    out.push_str("</main>\n</div>\n");
    out.push_str(&tail::render_footer(review));
    out.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

fn render_start(review: &ReviewRecord) -> String {
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
        head::verdict_text(review),
        escape_name(&review.scope.words)
    )
}

/// Escapes a title, a path or a name, on one line.
fn escape_name(text: &str) -> String {
    esc(&phrases::to_one_line(text, super::limits::NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_hidden_characters_are_shown() {
        assert_eq!(esc("<a b='c'>&\u{202e}"), "&lt;a b=&#39;c&#39;&gt;&amp;⟨U+202E⟩");
    }
}
