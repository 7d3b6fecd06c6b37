//! Renders a review as a self-contained page: the diff, with findings below their lines. The page loads nothing.
//!
//! Its content security policy allows one style and one script by their hashes, so that nothing a model wrote can run
//! even if it got through as markup. The page works without the script, which only adds keyboard shortcuts. Except for
//! its first line the page is well-formed XML, so that tests can check that no text broke out of its element.
//!
//! The modules collect the values of the templates beside them, which escape every value.

use minijinja::{Value, context};
use repertoire_text::html::{page_environment, source_hash};

use super::limits::NAME_CHARS_MAX;
use super::phrases;
use crate::change::ReviewChange;
use crate::extract::ReviewSeverity;
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

const TEMPLATES: &[(&str, &str)] = &[
    ("calls.html", include_str!("html/calls.html")),
    ("card.html", include_str!("html/card.html")),
    ("file.html", include_str!("html/file.html")),
    ("header.html", include_str!("html/header.html")),
    ("insights.html", include_str!("html/insights.html")),
    ("left_out.html", include_str!("html/left_out.html")),
    ("macros.html", include_str!("html/macros.html")),
    ("navigation.html", include_str!("html/navigation.html")),
    ("overview.html", include_str!("html/overview.html")),
    ("page.html", include_str!("html/page.html")),
    ("tests.html", include_str!("html/tests.html")),
];

/// Renders the page.
pub fn render_page(review: &ReviewRecord, change: &ReviewChange) -> String {
    let values = context! {
        style => STYLE,
        style_hash => source_hash(STYLE),
        script => SCRIPT,
        script_hash => source_hash(SCRIPT),
        id => short_name(&review.id),
        header => head::header_values(review),
        warnings => head::warning_values(review),
        findings => head::finding_values(review),
        heat_map => head::heat_map_values(review),
        categories => head::category_names(review),
        files => file::file_values(review, &file::file_views(review, change)),
        insights => tail::insight_values(review),
        tests => tail::test_values(review),
        left_out => tail::left_out_values(review),
        calls => calls::calls_values(review),
    };
    let env = page_environment(TEMPLATES);
    let page = env.get_template("page.html").and_then(|template| template.render(values));
    page.expect("every name of the templates has a value")
}

/// A title, a path or a name, on one line.
fn short_name(text: &str) -> String {
    phrases::to_one_line(text, NAME_CHARS_MAX)
}

/// The CSS class of a severity.
fn severity_class(severity: ReviewSeverity) -> &'static str {
    match severity {
        ReviewSeverity::Critical => "critical",
        ReviewSeverity::Major => "major",
        ReviewSeverity::Minor => "minor",
        ReviewSeverity::Suggestion => "suggestion",
    }
}

fn severity_values(severity: ReviewSeverity) -> Value {
    context! { class => severity_class(severity), name => severity.to_string() }
}
