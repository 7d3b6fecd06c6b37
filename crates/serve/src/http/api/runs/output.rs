//! What agents said in a run, as far as it is kept: every step has a log, and the run a few files for people.

use std::io::{Read as _, Seek as _, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use http::{Method, StatusCode};
use repertoire_agent::event::{Event, EventKind};
use repertoire_text::fs::{self, ReadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Answer, Api, Call, Page, blocking};
use super::{RunPath, TAG, find};
use crate::http::problem::Problem;
use crate::plain::is_plain;

/// The end of a log that is read.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The text of one step that is shown; what is before it is left out.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// The text of one page of steps, unless one step alone has more.
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Files of a run that are looked at.
const FILES_MAX: usize = 10_000;
/// The largest file that is read for a person.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What an agent said in a step.
#[derive(Debug, Serialize, JsonSchema)]
struct Said {
    /// The step, from 1.
    step: u32,
    /// Its kind.
    kind: String,
    /// Both in words.
    title: String,
    /// What was said, with a line for every tool that was called.
    text: String,
    /// Whether the start was left out, or the log was full.
    cut: bool,
    /// How many tools were called.
    tool_calls: usize,
    /// When the last of it was said, in milliseconds since 1970.
    at_ms: Option<u64>,
}

/// Which steps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Which {
    /// Only this step.
    step: Option<u32>,
}

/// Which file.
#[derive(Debug, Deserialize, JsonSchema)]
struct WhichFile {
    /// Its name, as the run lists it.
    name: String,
}

/// A file that a run left behind.
#[derive(Debug, Serialize, JsonSchema)]
struct File {
    /// Its name.
    name: String,
    /// Its text.
    content: String,
}

pub(super) fn add(api: Api) -> Api {
    let ambiguous = "More than one run is called so.";
    api.list("/api/v1/runs/{id}/output", TAG, "What agents said, step by step", output)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .add(Method::GET, "/api/v1/runs/{id}/file", TAG, "A file that a run left behind", file)
        .refuses(StatusCode::CONFLICT, "The file is too large, or no text.")
}

async fn output(call: Call<RunPath, Which>) -> Answer<Page<Said>> {
    let run = find(&call.house, &call.path).await?;
    let folder = call.house.left_behind(&run.id);
    blocking(move || {
        let mut logs = logs(&folder);
        logs.retain(|log| call.query.step.is_none_or(|step| log.step == step));
        let start = call.paging.start()?;
        let page = call.paging.cut(logs.into_iter())?;
        let (read, count) = first_of(page.items.into_iter().map(Log::read));
        let next =
            if read.len() < count { Some((start + read.len()).to_string()) } else { page.next };
        Ok(Page { items: read, next, total: page.total })
    })
    .await
}

async fn file(call: Call<RunPath, WhichFile>) -> Answer<File> {
    let run = find(&call.house, &call.path).await?;
    let folder = call.house.left_behind(&run.id);
    blocking(move || {
        let name = call.query.name;
        let read = fs::read_text_beneath(&folder, Utf8Path::new(&name), FILE_BYTES_MAX);
        let content = read.map_err(|error| {
            let detail = format!("`{name}` cannot be read: {error}");
            match error {
                ReadError::TooLarge { .. } | ReadError::NotUtf8 { .. } => {
                    Problem::new(StatusCode::CONFLICT, detail)
                }
                _ => Problem::not_found(detail).hint("The run names its files."),
            }
        })?;
        if !is_plain(&content) {
            let detail = format!("`{name}` cannot be read: it is not text");
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        Ok(File { name, content })
    })
    .await
}

/// The first of what was said, up to the step with which it is too much for one page, and how many steps there were.
fn first_of(all: impl ExactSizeIterator<Item = Said>) -> (Vec<Said>, usize) {
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

/// The log of a step.
struct Log {
    step: u32,
    kind: String,
    path: Utf8PathBuf,
}

fn logs(folder: &Utf8Path) -> Vec<Log> {
    let Ok(entries) = fs::entries(folder) else { return Vec::new() };
    let log = |name: String| {
        let (step, kind) = name.strip_suffix(".jsonl")?.split_once('-')?;
        let (step, kind) = (step.parse().ok()?, kind.to_owned());
        Some(Log { step, kind, path: folder.join(name) })
    };
    let names = entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.name.into_string().ok());
    let mut logs: Vec<Log> = names.filter_map(log).collect();
    logs.sort_by(|a, b| (a.step, &a.kind).cmp(&(b.step, &b.kind)));
    logs
}

impl Log {
    fn read(self) -> Said {
        // A log that is gone has nothing to tell.
        let (lines, is_part) = end_of(&self.path).unwrap_or_default();
        let mut told = Told { is_cut: is_part, ..Told::default() };
        for line in lines.lines() {
            match serde_json::from_str::<Event>(line) {
                Ok(event) => told.hear(event),
                Err(_) => told.is_cut |= line.contains("\"type\":\"cut\""),
            }
        }
        told.settle();
        let (text, is_cut) = last_part(told.text);
        Said {
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

/// The end of a log, and whether there is more before it. A line of which only the end is there is passed over.
fn end_of(path: &Utf8Path) -> std::io::Result<(String, bool)> {
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

/// What was said so far.
#[derive(Default)]
struct Told {
    text: String,
    /// An answer as it comes, until it is there as a whole.
    coming: String,
    tool_calls: usize,
    at_ms: Option<u64>,
    is_cut: bool,
}

impl Told {
    fn hear(&mut self, event: Event) {
        self.at_ms = Some(event.at_ms);
        match event.kind {
            EventKind::Text { text } => self.coming.push_str(&text),
            EventKind::Answer { text, .. } => {
                self.coming = text;
                self.settle();
            }
            EventKind::ToolCall { tool, subject, .. } => {
                self.settle();
                self.tool_calls += 1;
                self.text.push_str(&format!("[{tool}] {subject}\n"));
            }
            _ => {}
        }
    }

    fn settle(&mut self) {
        let coming = std::mem::take(&mut self.coming);
        if !coming.trim().is_empty() {
            self.text.push_str(coming.trim_end());
            self.text.push_str("\n\n");
        }
    }
}

/// The end of a text, and whether something was left out.
fn last_part(text: String) -> (String, bool) {
    if text.len() <= TEXT_BYTES_MAX {
        return (text, false);
    }
    let start = text.ceil_char_boundary(text.len() - TEXT_BYTES_MAX);
    (text[start..].to_owned(), true)
}
