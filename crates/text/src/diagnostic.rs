//! Diagnostics: findings about a user's file, as values that can be printed, sorted, counted and serialised. A failed
//! *operation* is an error instead, and has its own enums.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{Source, Span, TextPosition};

/// The severity of a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file breaks a rule that others rely on, or could not be used.
    Error,
    /// The file works, but probably not as its author expects.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The lower-case name used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// A kind of finding. The meaning of an id never changes, and a retired id is never reused.
#[derive(Debug, PartialEq, Eq)]
pub struct DiagnosticCode {
    /// Stable id such as `RS020`.
    pub id: &'static str,
    /// Readable name such as `yaml-syntax`.
    pub name: &'static str,
    /// The severity, unless a profile overrides it.
    pub severity: Severity,
    /// One sentence for the table of codes.
    pub summary: &'static str,
    /// Advice on how to resolve it, for the table of codes.
    pub remedy: &'static str,
}

/// A replacement of one span of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanEdit {
    pub span: Span,
    pub text: String,
}

/// A correction that can be applied automatically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagnosticFix {
    /// A description of the correction, in the imperative.
    pub title: String,
    /// Edits that do not overlap.
    pub edits: Vec<SpanEdit>,
}

/// A finding about a file.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    pub code: &'static DiagnosticCode,
    /// The severity in this case; by default that of the code.
    pub severity: Severity,
    /// A description of the problem, in one sentence without a final full stop.
    pub message: String,
    pub path: Option<Utf8PathBuf>,
    pub span: Option<Span>,
    /// The start of the span as line and column.
    pub position: Option<TextPosition>,
    /// Advice on what to do next.
    pub help: Option<Cow<'static, str>>,
    /// A correction, if one is certain.
    pub fix: Option<DiagnosticFix>,
}

impl Diagnostic {
    /// A finding with the code's own severity.
    pub fn new(code: &'static DiagnosticCode, message: impl Into<String>) -> Self {
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

    /// Sets the file.
    #[must_use]
    pub fn in_file(mut self, path: &Utf8Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Sets the file, span and position.
    #[must_use]
    pub fn at(mut self, source: &Source, span: Span) -> Self {
        self.path = Some(source.path().to_owned());
        self.position = Some(TextPosition::of_offset(source.text(), span.start as usize));
        self.span = Some(span);
        self
    }

    /// Sets the advice on what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Attaches a correction.
    #[must_use]
    pub fn fix(mut self, fix: DiagnosticFix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// Overrides the severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The key by which the findings about a catalog are sorted.
    pub fn sort_key(&self) -> (Option<&str>, Option<Span>, &'static str, &str) {
        (self.path.as_ref().map(|path| path.as_str()), self.span, self.code.id, &self.message)
    }
}

/// Applies edits to a text. Edits that overlap an earlier one are left out, so that two fixes of the same place never
/// garble it; a second run applies the rest.
pub fn apply_edits<'a>(text: &str, edits: impl IntoIterator<Item = &'a SpanEdit>) -> String {
    let mut edits: Vec<&SpanEdit> = edits.into_iter().collect();
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

    fn edit(start: usize, end: usize, text: &str) -> SpanEdit {
        SpanEdit { span: Span::new(start, end), text: text.into() }
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
