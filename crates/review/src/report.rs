//! Renders a review, one module per format. Each renderer is a pure function of the record.
//!
//! Titles, descriptions, paths and code come from models and files, and are untrusted. Each renderer neutralises them
//! for its format: it escapes control characters and markup, and truncates long texts visibly.

use camino::Utf8Path;
pub use repertoire_text::styles::Styles;

use super::change::ReviewChange;
use super::record::ReviewRecord;

mod fix;
pub mod github;
pub mod html;
pub mod json;
pub mod limits;
pub mod markdown;
mod phrases;
pub mod rdjson;
pub mod sarif;
mod schema;
mod spans;
pub mod text;

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportFormat {
    #[default]
    Text,
    /// For comments, summaries and files.
    Markdown,
    /// The record itself.
    Json,
    Sarif,
    /// Workflow commands, which GitHub Actions shows as annotations.
    Github,
    /// reviewdog's diagnostic format.
    Rdjson,
    /// A self-contained page with the diff.
    Html,
}

impl ReportFormat {
    pub const ALL: [ReportFormat; 7] = [
        ReportFormat::Text,
        ReportFormat::Markdown,
        ReportFormat::Json,
        ReportFormat::Sarif,
        ReportFormat::Github,
        ReportFormat::Rdjson,
        ReportFormat::Html,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            ReportFormat::Text => "text",
            ReportFormat::Markdown => "markdown",
            ReportFormat::Json => "json",
            ReportFormat::Sarif => "sarif",
            ReportFormat::Github => "github",
            ReportFormat::Rdjson => "rdjson",
            ReportFormat::Html => "html",
        }
    }

    /// Parses a name, ignoring case. Accepts `md`, `htm` and `txt` as well.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        let known = ReportFormat::ALL.into_iter().find(|format| format.as_str() == word);
        known.or(match word.as_str() {
            "md" => Some(ReportFormat::Markdown),
            "htm" => Some(ReportFormat::Html),
            "txt" => Some(ReportFormat::Text),
            _ => None,
        })
    }

    /// Returns the format for a file extension.
    pub fn from_path(path: &Utf8Path) -> Option<Self> {
        ReportFormat::from_word(path.extension()?)
    }
}

impl std::fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The layout of the text format.
#[derive(Clone, Copy, Debug)]
pub struct ReportTextLayout {
    /// The line width, in columns.
    pub width: usize,
    pub styles: Styles,
}

impl Default for ReportTextLayout {
    fn default() -> Self {
        ReportTextLayout { width: 100, styles: Styles::plain() }
    }
}

/// Renders a review, ending in a line break. If `change` lacks a file, the page shows excerpts, and fixes are located
/// in these.
pub fn render_review(
    format: ReportFormat,
    review: &ReviewRecord,
    change: &ReviewChange,
    look: &ReportTextLayout,
) -> String {
    match format {
        ReportFormat::Text => text::render_text(review, look),
        ReportFormat::Markdown => markdown::render_markdown(review),
        ReportFormat::Json => json::render_json(review),
        ReportFormat::Sarif => sarif::render_sarif(review, change),
        ReportFormat::Github => github::render_commands(review),
        ReportFormat::Rdjson => rdjson::render_rdjson(review, change),
        ReportFormat::Html => html::render_page(review, change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_known_by_its_word() {
        for format in ReportFormat::ALL {
            assert_eq!(ReportFormat::from_word(format.as_str()), Some(format));
        }
        assert_eq!(ReportFormat::from_word(" MD "), Some(ReportFormat::Markdown));
        assert_eq!(ReportFormat::from_word("yaml"), None);
        assert_eq!(ReportFormat::from_path("out/review.sarif".into()), Some(ReportFormat::Sarif));
        assert_eq!(ReportFormat::from_path("review".into()), None);
    }
}
