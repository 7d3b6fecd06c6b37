//! A finding about a user's file: a value that can be printed, sorted, counted and serialised.
//! What went wrong with an *operation* is an error instead and has its own enums.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{Position, Source, Span};

/// How bad a finding is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file breaks a rule that others rely on, or could not be used.
    Error,
    /// The file works, but somebody will be surprised.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The lower-case word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// A kind of finding. The id never changes its meaning; a retired id is never used again.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Stable id such as `RS020`.
    pub id: &'static str,
    /// Readable name such as `yaml-syntax`.
    pub name: &'static str,
    /// Severity unless a profile says otherwise.
    pub severity: Severity,
    /// One sentence for the table of codes.
    pub summary: &'static str,
    /// What to do about it, for the table of codes.
    pub remedy: &'static str,
}

/// Replaces one span of a file with other text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What to replace.
    pub span: Span,
    /// What to put there.
    pub text: String,
}

/// A correction that can be applied by machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What the correction does, in the imperative.
    pub title: String,
    /// Edits that do not overlap.
    pub edits: Vec<Edit>,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What kind of finding.
    pub code: &'static Code,
    /// How bad it is here.
    pub severity: Severity,
    /// What is wrong, in one sentence without a final full stop.
    pub message: String,
    /// The file it is about.
    pub path: Option<Utf8PathBuf>,
    /// Where in the file.
    pub span: Option<Span>,
    /// Where in the file, for people.
    pub position: Option<Position>,
    /// What to do next.
    pub help: Option<Cow<'static, str>>,
    /// A correction, if one is certain.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// A finding with the code's own severity and remedy.
    pub fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: code.severity,
            message: message.into(),
            path: None,
            span: None,
            position: None,
            help: None,
            fix: None,
        }
    }

    /// Names the file.
    #[must_use]
    pub fn in_file(mut self, path: &Utf8Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Points at a span of a source.
    #[must_use]
    pub fn at(mut self, source: &Source, span: Span) -> Self {
        self.path = Some(source.path().to_owned());
        self.position = Some(Position::of(source.text(), span.start as usize));
        self.span = Some(span);
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Attaches a correction.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// Overrides the severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The order in which findings about one catalog are shown.
    pub fn sort_key(&self) -> (Option<&str>, Option<Span>, &'static str, &str) {
        (self.path.as_ref().map(|path| path.as_str()), self.span, self.code.id, &self.message)
    }
}

/// Applies edits to a text. Edits that overlap an earlier one are left out, so that two fixes of the
/// same place never garble it; a second run finds what is left.
pub fn apply_edits<'a>(text: &str, edits: impl IntoIterator<Item = &'a Edit>) -> String {
    let mut edits: Vec<&Edit> = edits.into_iter().collect();
    edits.sort_by_key(|edit| edit.span);
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for edit in edits {
        let range = edit.span.range();
        let Some(kept) = text.get(done..range.start) else { continue };
        if text.get(range.clone()).is_none() {
            continue;
        }
        out.push_str(kept);
        out.push_str(&edit.text);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, text: &str) -> Edit {
        Edit { span: Span::new(start, end), text: text.into() }
    }

    #[test]
    fn edits_apply_in_order_of_place_whatever_their_order() {
        let edits = [edit(4, 5, "E"), edit(0, 1, "A")];
        assert_eq!(apply_edits("abcde", &edits), "AbcdE");
    }

    #[test]
    fn an_overlapping_edit_is_left_out() {
        let edits = [edit(0, 3, "x"), edit(2, 4, "y")];
        assert_eq!(apply_edits("abcde", &edits), "xde");
    }

    #[test]
    fn an_edit_outside_the_text_is_left_out() {
        assert_eq!(apply_edits("abc", &[edit(7, 9, "x")]), "abc");
    }
}
