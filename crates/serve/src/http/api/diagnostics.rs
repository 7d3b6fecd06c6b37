//! Diagnostics of skills, with the source lines they are about.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::catalog::Catalog;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::{Diagnostic, Severity, TextPosition, fs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing, run_blocking};
use crate::serve_state::ServeState;

/// The number of lines shown before and after a finding.
const LINES_AROUND: u32 = 2;
/// The maximum number of lines shown with a finding.
const LINES_MAX: usize = 24;
/// The maximum length of a line before it is cut.
const LINE_CHARS_MAX: usize = 400;

/// A finding, with the lines it is about.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiagnosticWithLines {
    /// The file; null if the finding is not about a file.
    path: Option<String>,
    /// The same path, with `~` for the home directory.
    path_short: Option<String>,
    /// The name of the skill in that file, if it could be loaded.
    skill: Option<String>,
    /// The diagnostic.
    #[serde(flatten)]
    diagnostic: DiagnosticJson,
    /// The end of the finding; absent if it is about the whole file.
    end: Option<FilePosition>,
    /// The lines around it.
    lines: Vec<SourceLineJson>,
}

/// A position in a file; both numbers start at 1.
#[derive(Debug, Serialize, JsonSchema)]
struct FilePosition {
    line: u32,
    column: u32,
}

/// A line of a file.
#[derive(Debug, Serialize, JsonSchema)]
struct SourceLineJson {
    /// The line number, starting at 1.
    number: u32,
    /// The text, cut if it is long.
    text: String,
    /// True if the finding is about this line.
    is_marked: bool,
}

/// A filter for findings.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct DiagnosticFilter {
    /// Only findings of this severity.
    severity: Option<Severity>,
    /// Only findings with this code, such as `RS020` or `yaml-syntax`.
    code: Option<String>,
    /// Only findings with this text in their message, file or code.
    q: Option<String>,
}

impl DiagnosticFilter {
    fn matches_diagnostic(&self, found: &Diagnostic) -> bool {
        let code = self.code.as_deref();
        let is_code = code
            .is_none_or(|code| found.code.id.eq_ignore_ascii_case(code) || found.code.name == code);
        let is_text = self.q.as_ref().is_none_or(|text| {
            let text = text.to_lowercase();
            let path = found.path.as_ref().map_or("", |path| path.as_str());
            [found.message.as_str(), path, found.code.id, found.code.name]
                .iter()
                .any(|place| place.to_lowercase().contains(&text))
        });
        self.severity.is_none_or(|severity| found.severity == severity) && is_code && is_text
    }
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.list("/api/v1/diagnostics", "skills", "List what is wrong with skills", list_diagnostics)
}

async fn list_diagnostics(
    call: ApiCall<Nothing, DiagnosticFilter>,
) -> ApiResult<ListPage<DiagnosticWithLines>> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let wanted: Vec<&Diagnostic> = catalog
            .diagnostics()
            .iter()
            .filter(|found| call.query.matches_diagnostic(found))
            .collect();
        let page = call.paging.cut_page(wanted.into_iter())?;
        Ok(ListPage {
            items: add_source_lines(&call.serve_state, &catalog, page.items),
            next: page.next,
            total: page.total,
        })
    })
    .await
}

/// Adds source lines to findings. Files that are not loaded skills are read, each once.
pub(super) fn add_source_lines<'c>(
    serve_state: &ServeState,
    catalog: &'c Catalog,
    findings: impl IntoIterator<Item = &'c Diagnostic>,
) -> Vec<DiagnosticWithLines> {
    let shadowed = catalog.shadowed().iter().map(|lost| &lost.entry);
    let loaded: BTreeMap<&Utf8Path, _> = catalog
        .entries()
        .iter()
        .chain(shadowed)
        .map(|entry| (entry.skill.origin.file.as_path(), entry))
        .collect();
    let bytes_max = serve_state.library().request().limits.text.file_bytes_max;
    let mut read: BTreeMap<Utf8PathBuf, Option<String>> = BTreeMap::new();
    let mut out = Vec::new();
    for diagnostic in findings {
        let path = diagnostic.path.as_deref();
        let entry = path.and_then(|path| loaded.get(path));
        let text = match (entry, path) {
            (Some(entry), _) => Some(entry.skill.text()),
            (None, Some(path)) if diagnostic.position.is_some() => read
                .entry(path.to_owned())
                .or_insert_with(|| fs::read_text(path, bytes_max).ok())
                .as_deref(),
            _ => None,
        };
        let end = end_position(diagnostic, text);
        out.push(DiagnosticWithLines {
            path: path.map(Utf8Path::to_string),
            path_short: path.map(|path| catalog.places().shorten_path(path)),
            skill: entry.map(|entry| entry.id.clone()),
            diagnostic: DiagnosticJson::from(diagnostic),
            lines: text
                .map_or_else(Vec::new, |text| surrounding_lines(diagnostic, end.as_ref(), text)),
            end,
        });
    }
    out
}

fn end_position(diagnostic: &Diagnostic, text: Option<&str>) -> Option<FilePosition> {
    let (span, text) = (diagnostic.span?, text?);
    let at = span.range().end;
    if !text.is_char_boundary(at) {
        return None;
    }
    let TextPosition { line, column } = TextPosition::of_offset(text, at);
    Some(FilePosition { line, column })
}

fn surrounding_lines(
    diagnostic: &Diagnostic,
    end: Option<&FilePosition>,
    text: &str,
) -> Vec<SourceLineJson> {
    let Some(start) = diagnostic.position.map(|position| position.line) else { return Vec::new() };
    let last =
        end.map_or(start, |place| if place.column > 1 { place.line } else { place.line - 1 });
    let last = last.max(start);
    let first_shown = start.saturating_sub(LINES_AROUND).max(1);
    let numbered = (1..).zip(text.lines());
    let shown = numbered
        .skip_while(|(number, _)| *number < first_shown)
        .take_while(|(number, _)| *number <= last.saturating_add(LINES_AROUND));
    let line = |(number, text): (u32, &str)| SourceLineJson {
        number,
        text: text.chars().take(LINE_CHARS_MAX).collect(),
        is_marked: (start..=last).contains(&number),
    };
    shown.take(LINES_MAX).map(line).collect()
}
