//! `edit`: replaces exact text in a file. Applies either all edits of a call or none.

use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_text::fs::ReadError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::write::WRITE_BYTES_MAX;
use super::{ResolvedPathRules, arguments, object_schema, path_subject, run_blocking};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;
use repertoire_sandbox::workplace::RunWorkplace;

mod nearest_match;

/// The maximum number of edits in one call.
const EDITS_MAX: usize = 100;
/// The maximum number of lines of the returned diff.
const DIFF_LINES_MAX: usize = 80;
/// The time limit for a minimal diff; after that, the diff may be longer than necessary.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
pub struct EditTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    #[serde(default)]
    old: Option<String>,
    #[serde(default)]
    new: Option<String>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    edits: Vec<TextReplacement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextReplacement {
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

impl Tool for EditTool {
    fn name(&self) -> &str {
        "edit"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        let old = "The exact text to replace, white space included, without line numbers. It must be in the file \
                   exactly once, unless `all` is true: add lines around it until it is.";
        ToolSpec {
            name: "edit".to_owned(),
            description: format!(
                "Replace exact text in a file: give `old` and `new`, or several in `edits` (at most {EDITS_MAX}, applied \
                 in order, all or none). Read the file first. Line endings are kept. Answers with the difference."
            ),
            parameters: object_schema(
                &["path"],
                json!({
                    "path": {"type": "string", "description": "The file, relative to the work folder."},
                    "old": {"type": "string", "description": old},
                    "new": {"type": "string", "description": "What to put in its place; empty to delete."},
                    "all": {"type": "boolean", "description": "Replace every occurrence."},
                    "edits": {
                        "type": "array",
                        "maxItems": EDITS_MAX,
                        "description": "Several edits, instead of `old` and `new`.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "old": {"type": "string", "description": "The exact text to replace."},
                                "new": {"type": "string", "description": "What to put in its place."},
                                "all": {"type": "boolean", "description": "Replace every occurrence."},
                            },
                            "required": ["old", "new"],
                            "additionalProperties": false,
                        },
                    },
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::Write
    }

    fn subject(&self, arguments: &Value) -> String {
        path_subject(arguments)
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let wanted: EditArguments = match arguments(&call) {
                Ok(wanted) => wanted,
                Err(output) => return output,
            };
            let workplace = call.run.workplace.clone();
            let rules = ResolvedPathRules::for_run(call.run, "edit", ToolAccess::Write);
            run_blocking(move || match edit_file(&workplace, &rules, wanted) {
                Ok(said) => ToolOutput::ok(said),
                Err(message) => ToolOutput::error(message),
            })
            .await
        })
    }
}

fn edit_file(
    workplace: &RunWorkplace,
    rules: &ResolvedPathRules,
    wanted: EditArguments,
) -> Result<String, String> {
    let path = wanted.path.clone();
    let edits = edits_of(wanted)?;
    let target = beneath::resolve_writable(workplace, &path).map_err(|error| error.to_string())?;
    rules.check_location(&path, target.relative().as_str())?;
    let before = target.read_text(WRITE_BYTES_MAX as u64).map_err(|error| match error {
        ReadError::NotFound => format!("there is no `{path}`; use `write` to make it"),
        other => format!("`{path}` cannot be edited: {other}"),
    })?;
    let mut after = before.clone();
    for (number, one) in (1..).zip(&edits) {
        after = apply_edit(&after, one).map_err(|message| match edits.len() {
            1 => format!("`{path}` is unchanged: {message}"),
            count => format!("`{path}` is unchanged: edit {number} of {count}: {message}"),
        })?;
    }
    if after.len() > WRITE_BYTES_MAX {
        return Err(format!("`{path}` is unchanged: it would have {} bytes", after.len()));
    }
    target
        .write_atomic(after.as_bytes())
        .map_err(|error| format!("`{path}` was not written: {error}"))?;
    Ok(render_difference(&path, &before, &after))
}

fn edits_of(wanted: EditArguments) -> Result<Vec<TextReplacement>, String> {
    let edits = match (wanted.old, wanted.new, wanted.edits) {
        (Some(old), Some(new), edits) if edits.is_empty() => {
            vec![TextReplacement { old, new, all: wanted.all }]
        }
        (None, None, edits) if !edits.is_empty() => edits,
        _ => return Err("give either `old` and `new`, or `edits`".to_owned()),
    };
    match edits.len() {
        count if count > EDITS_MAX => {
            Err(format!("{count} edits; at most {EDITS_MAX} in one call"))
        }
        _ => Ok(edits),
    }
}

fn apply_edit(text: &str, edit: &TextReplacement) -> Result<String, String> {
    if edit.old.is_empty() {
        return Err("`old` is empty; use `write` to make a file".to_owned());
    }
    if edit.old == edit.new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let (old, new) = in_line_endings_of(text, &edit.old, &edit.new);
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.as_slice() {
        [] => Err(nearest_match::explain_mismatch(text, &edit.old)),
        [_] => Ok(text.replacen(&old, &new, 1)),
        _ if edit.all => {
            // Check the size before replacing: many occurrences of a short text may become very long.
            let grown = new.len().saturating_sub(old.len()).saturating_mul(places.len());
            if text.len() + grown > WRITE_BYTES_MAX {
                return Err(format!("the file would have more than {WRITE_BYTES_MAX} bytes"));
            }
            Ok(text.replace(&old, &new))
        }
        many => {
            let lines: Vec<String> =
                many.iter().take(5).map(|at| line_of(text, *at).to_string()).collect();
            let more = if many.len() > 5 { ", …" } else { "" };
            Err(format!(
                "`old` is there {} times (lines {}{more}); add lines around it, or set `all`",
                many.len(),
                lines.join(", "),
            ))
        }
    }
}

/// Converts an edit to the line endings of the file: models write `\n` even if the file uses `\r\n`.
fn in_line_endings_of(text: &str, old: &str, new: &str) -> (String, String) {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let all_crlf = text.contains("\r\n") && lines.all(|line| line.ends_with("\r\n"));
    if all_crlf { (with_crlf(old), with_crlf(new)) } else { (old.to_owned(), new.to_owned()) }
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The line number of a byte offset, starting at 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn render_difference(path: &str, before: &str, after: &str) -> String {
    let diff = similar::TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    let unified = diff.unified_diff().context_radius(2).to_string();
    let total = unified.lines().count();
    let shown: Vec<&str> = unified.lines().take(DIFF_LINES_MAX).collect();
    let rest = match total.saturating_sub(DIFF_LINES_MAX) {
        0 => String::new(),
        more => format!("\n[… {more} more lines]"),
    };
    crate::spill::strip_controls(&format!("edited `{path}`\n{}{rest}", shown.join("\n")))
}

#[cfg(test)]
#[path = "edit/edit_tests.rs"]
mod tests;
