//! The output of agents in a run, as far as it is stored: every step has a log, and the run a few files for people.

use std::io::{Read as _, Seek as _, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use http::{Method, StatusCode};
use repertoire_agent::event::{AgentEvent, EventKind};
use repertoire_text::fs::{self, ReadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{ApiBuilder, ApiCall, ApiResult, ListPage, run_blocking};
use super::{RunIdPath, TAG, find_run};
use crate::http::problem::HttpProblem;
use crate::plain_text::is_plain;

/// The maximum number of bytes read from the end of a log.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The maximum length of the text of one step; earlier text is left out.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// The maximum length of the text on one page of steps, unless a single step exceeds it.
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The maximum number of files of a run that are considered.
const FILES_MAX: usize = 10_000;
/// The maximum size of a file that is returned.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The output of an agent in a step.
#[derive(Debug, Serialize, JsonSchema)]
struct StepOutputJson {
    /// The number of the step, starting at 1.
    step: u32,
    /// The kind of the step.
    kind: String,
    /// The number and kind as a text.
    title: String,
    /// The output, with a line for every tool call.
    text: String,
    /// True if the start was left out, or the log was full.
    cut: bool,
    /// The number of tool calls.
    tool_calls: usize,
    /// The time of the last output, in milliseconds since 1970.
    at_ms: Option<u64>,
}

/// A filter for steps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct StepOutputFilter {
    /// Only this step.
    step: Option<u32>,
}

/// The requested file.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunFileQuery {
    /// The name, as listed by the run.
    name: String,
}

/// A file that a run left behind.
#[derive(Debug, Serialize, JsonSchema)]
struct RunFileJson {
    /// The name of the file.
    name: String,
    /// The content of the file.
    content: String,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let ambiguous = "More than one run is called so.";
    api.list("/api/v1/runs/{id}/output", TAG, "What agents said, step by step", list_output)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .add(
            Method::GET,
            "/api/v1/runs/{id}/file",
            TAG,
            "A file that a run left behind",
            show_run_file,
        )
        .refuses(StatusCode::CONFLICT, "The file is too large, or no text.")
}

async fn list_output(
    call: ApiCall<RunIdPath, StepOutputFilter>,
) -> ApiResult<ListPage<StepOutputJson>> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let folder = call.serve_state.run_output_dir(&run.id);
    run_blocking(move || {
        let mut logs = find_logs(&folder);
        logs.retain(|log| call.query.step.is_none_or(|step| log.step == step));
        let start = call.paging.start()?;
        let page = call.paging.cut_page(logs.into_iter())?;
        let (read, count) = take_within_page(page.items.into_iter().map(StepLogFile::read_output));
        let next =
            if read.len() < count { Some((start + read.len()).to_string()) } else { page.next };
        Ok(ListPage { items: read, next, total: page.total })
    })
    .await
}

async fn show_run_file(call: ApiCall<RunIdPath, RunFileQuery>) -> ApiResult<RunFileJson> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let folder = call.serve_state.run_output_dir(&run.id);
    run_blocking(move || {
        let name = call.query.name;
        let read = fs::read_text_beneath(&folder, Utf8Path::new(&name), FILE_BYTES_MAX);
        let content = read.map_err(|error| {
            let detail = format!("`{name}` cannot be read: {error}");
            match error {
                ReadError::TooLarge { .. } | ReadError::NotUtf8 { .. } => {
                    HttpProblem::new(StatusCode::CONFLICT, detail)
                }
                _ => HttpProblem::not_found(detail).hint("The run names its files."),
            }
        })?;
        if !is_plain(&content) {
            let detail = format!("`{name}` cannot be read: it is not text");
            return Err(HttpProblem::new(StatusCode::CONFLICT, detail));
        }
        Ok(RunFileJson { name, content })
    })
    .await
}

/// Takes outputs up to and including the one that exceeds the limit of a page. Also returns the total number of steps.
fn take_within_page(
    all: impl ExactSizeIterator<Item = StepOutputJson>,
) -> (Vec<StepOutputJson>, usize) {
    let (count, mut first, mut bytes) = (all.len(), Vec::new(), 0);
    for said in all {
        bytes += said.text.len();
        first.push(said);
        if bytes > PAGE_BYTES_MAX {
            break;
        }
    }
    (first, count)
}

/// The log file of a step.
struct StepLogFile {
    step: u32,
    kind: String,
    path: Utf8PathBuf,
}

fn find_logs(folder: &Utf8Path) -> Vec<StepLogFile> {
    let Ok(entries) = fs::list_entries(folder) else { return Vec::new() };
    let names = entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.name.into_string().ok());
    let mut logs: Vec<StepLogFile> = names.filter_map(|name| step_log(folder, name)).collect();
    logs.sort_by(|a, b| (a.step, &a.kind).cmp(&(b.step, &b.kind)));
    logs
}

fn step_log(folder: &Utf8Path, name: String) -> Option<StepLogFile> {
    let (step, kind) = name.strip_suffix(".jsonl")?.split_once('-')?;
    let (step, kind) = (step.parse().ok()?, kind.to_owned());
    Some(StepLogFile { step, kind, path: folder.join(name) })
}

impl StepLogFile {
    fn read_output(self) -> StepOutputJson {
        // A log that no longer exists counts as empty.
        let (lines, is_part) = read_log_end(&self.path).unwrap_or_default();
        let mut told = OutputCollector { is_cut: is_part, ..OutputCollector::default() };
        for line in lines.lines() {
            match serde_json::from_str::<AgentEvent>(line) {
                Ok(event) => told.add_event(event),
                Err(_) => told.is_cut |= line.contains("\"type\":\"cut\""),
            }
        }
        told.finish_answer();
        let (text, is_cut) = keep_text_end(told.text);
        StepOutputJson {
            title: format!("Step {}: {}", self.step, self.kind),
            step: self.step,
            kind: self.kind,
            text,
            cut: is_cut || told.is_cut,
            tool_calls: told.tool_calls,
            at_ms: told.at_ms,
        }
    }
}

/// Reads the end of a log. Also returns true if there is more before it. A line that is cut at the start is skipped.
fn read_log_end(path: &Utf8Path) -> std::io::Result<(String, bool)> {
    let mut file = std::fs::File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(LOG_BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match start {
        0 => (text.into_owned(), false),
        _ => (text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned()), true),
    })
}

/// The output collected so far.
#[derive(Default)]
struct OutputCollector {
    text: String,
    /// A streamed answer that is not complete yet.
    coming: String,
    tool_calls: usize,
    at_ms: Option<u64>,
    is_cut: bool,
}

impl OutputCollector {
    fn add_event(&mut self, event: AgentEvent) {
        self.at_ms = Some(event.at_ms);
        match event.kind {
            EventKind::Text { text } => self.coming.push_str(&text),
            EventKind::Answer { text, .. } => {
                self.coming = text;
                self.finish_answer();
            }
            EventKind::ToolCall { tool, subject, .. } => {
                self.finish_answer();
                self.tool_calls += 1;
                self.text.push_str(&format!("[{tool}] {subject}\n"));
            }
            _ => {}
        }
    }

    fn finish_answer(&mut self) {
        let coming = std::mem::take(&mut self.coming);
        if !coming.trim().is_empty() {
            self.text.push_str(coming.trim_end());
            self.text.push_str("\n\n");
        }
    }
}

/// The end of a text, and true if something was left out.
fn keep_text_end(text: String) -> (String, bool) {
    if text.len() <= TEXT_BYTES_MAX {
        return (text, false);
    }
    let start = text.ceil_char_boundary(text.len() - TEXT_BYTES_MAX);
    (text[start..].to_owned(), true)
}
