//! Renders a review, one module per format. Each renderer is a pure function of the record.
//!
//! Titles, descriptions, paths and code come from models and files, and are untrusted. Each renderer neutralises them
//! for its format: it escapes control characters and markup, and truncates long texts visibly.

use camino::Utf8Path;
pub use repertoire_text::styles::Styles;

use super::change::Change;
use super::record::Review;

mod fix;
pub mod github;
pub mod html;
pub mod json;
pub mod limits;
pub mod markdown;
pub mod rdjson;
pub mod sarif;
mod schema;
mod spans;
pub mod text;
mod words;

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
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

impl Format {
    pub const ALL: [Format; 7] = [
        Format::Text,
        Format::Markdown,
        Format::Json,
        Format::Sarif,
        Format::Github,
        Format::Rdjson,
        Format::Html,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Json => "json",
            Format::Sarif => "sarif",
            Format::Github => "github",
            Format::Rdjson => "rdjson",
            Format::Html => "html",
        }
    }

    /// Parses a name, ignoring case. Accepts `md`, `htm` and `txt` as well.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        let known = Format::ALL.into_iter().find(|format| format.as_str() == word);
        known.or(match word.as_str() {
            "md" => Some(Format::Markdown),
            "htm" => Some(Format::Html),
            "txt" => Some(Format::Text),
            _ => None,
        })
    }

    /// Returns the format for a file extension.
    pub fn from_path(path: &Utf8Path) -> Option<Self> {
        Format::from_word(path.extension()?)
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The layout of the text format.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The line width, in columns.
    pub width: usize,
    pub styles: Styles,
}

impl Default for Look {
    fn default() -> Self {
        Look { width: 100, styles: Styles::plain() }
    }
}

/// Renders a review, ending in a line break. If `change` lacks a file, the page shows excerpts, and fixes are located
/// in these.
pub fn render(format: Format, review: &Review, change: &Change, look: &Look) -> String {
    match format {
        Format::Text => text::render(review, look),
        Format::Markdown => markdown::render(review),
        Format::Json => json::render(review),
        Format::Sarif => sarif::render(review, change),
        Format::Github => github::render(review),
        Format::Rdjson => rdjson::render(review, change),
        Format::Html => html::render(review, change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_known_by_its_word() {
        for format in Format::ALL {
            assert_eq!(Format::from_word(format.as_str()), Some(format));
        }
        assert_eq!(Format::from_word(" MD "), Some(Format::Markdown));
        assert_eq!(Format::from_word("yaml"), None);
        assert_eq!(Format::from_path("out/review.sarif".into()), Some(Format::Sarif));
        assert_eq!(Format::from_path("review".into()), None);
    }
}
