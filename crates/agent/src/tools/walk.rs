//! Walks the work folder: sorted, without entries that git ignores, without following links, and bounded. Each folder
//! is opened from the handle of its parent, so that nothing outside is listed or read, even if folders are renamed
//! meanwhile.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{EntryKind, FolderHandle};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{arguments, run_blocking};
use crate::permission::PathRules;
use crate::run::AgentRun;
use crate::spill;
use crate::tool::{ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath::{self, ReadablePath};
use repertoire_sandbox::workplace::RunWorkplace;

mod ignore_rules;

use self::ignore_rules::IgnoreRules;

/// The maximum number of entries that one call visits.
const ENTRIES_MAX: usize = 200_000;
/// The maximum depth of a walk.
const DEPTH_MAX: usize = 64;

/// The inputs of a walk that come from the run.
#[derive(Clone, Debug)]
pub(super) struct WalkContext {
    pub(super) workplace: RunWorkplace,
    pub(super) hidden: PathRules,
    pub(super) cancel: CancellationToken,
}

impl WalkContext {
    pub(super) fn for_run(run: &AgentRun) -> Self {
        WalkContext {
            workplace: run.workplace.clone(),
            hidden: run.state.hidden.clone(),
            cancel: run.cancel.clone(),
        }
    }
}

/// Handles a search call: parses its arguments, runs the search on a blocking thread, and bounds its output.
pub(super) async fn run_search<T: DeserializeOwned + Send + 'static>(
    call: ToolInvocation<'_>,
    search: fn(&WalkContext, &T) -> Result<String, String>,
) -> ToolOutput {
    let wanted: T = match arguments(&call) {
        Ok(wanted) => wanted,
        Err(output) => return output,
    };
    let (ground, id) = (WalkContext::for_run(call.run), call.id.to_owned());
    run_blocking(move || match search(&ground, &wanted) {
        Ok(text) => spill::bound_text(&text, &ground.workplace, &id),
        Err(message) => ToolOutput::error(message),
    })
    .await
}

/// The treatment of hidden and ignored entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkFilter {
    /// Skip `.git` and everything that git ignores.
    Usual,
    /// Skip only `.git`.
    Everything,
}

/// An entry met on a walk.
#[derive(Debug)]
pub(super) struct WalkEntry<'a> {
    /// The whole path.
    pub(super) path: Utf8PathBuf,
    /// The path relative to the start; empty for the start itself.
    pub(super) relative: Utf8PathBuf,
    pub(super) kind: WalkEntryKind,
    opened_from: OpenedFrom<'a>,
}

/// The handle from which an entry is opened.
#[derive(Clone, Copy, Debug)]
enum OpenedFrom<'a> {
    /// The entry's parent folder.
    Folder(&'a FolderHandle),
    /// The start of the walk, which is itself a file.
    Start(&'a ReadablePath),
}

impl WalkEntry<'_> {
    /// The size in bytes, or 0 if the entry is not a file.
    pub(super) fn bytes(&self) -> u64 {
        match (self.kind, self.opened_from) {
            (WalkEntryKind::File, OpenedFrom::Folder(folder)) => {
                folder.child_bytes(self.path.file_name().unwrap_or_default()).unwrap_or(0)
            }
            (WalkEntryKind::File, OpenedFrom::Start(start)) => start.bytes(),
            _ => 0,
        }
    }

    /// The text, if this is a text file of at most `bytes_max` bytes and not secret.
    pub(super) fn read_text(&self, bytes_max: u64) -> Option<String> {
        if self.kind != WalkEntryKind::File || beneath::is_secret(&self.path) {
            return None;
        }
        let bytes = match self.opened_from {
            OpenedFrom::Folder(folder) => {
                folder.open_child_file(self.path.file_name()?).ok()?.read_bytes(bytes_max).ok()?
            }
            OpenedFrom::Start(start) => start.read_bytes(bytes_max).ok()?,
        };
        if super::read::is_binary(&bytes) {
            return None;
        }
        Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkEntryKind {
    File,
    Folder,
    Link,
    Other,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalkSummary {
    /// True if the walk stopped early, because of the entry limit or a cancellation.
    pub(super) unfinished: bool,
    /// The number of entries that are unreadable, hidden by rules, or without a UTF-8 name.
    pub(super) passed_over: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkFlow {
    Continue,
    Stop,
}

/// Calls `visit` for everything beneath `start`, or for `start` itself if it is a file.
pub(super) fn walk_entries(
    ground: &WalkContext,
    start: &ReadablePath,
    (show, depth): (WalkFilter, Option<usize>),
    mut visit: impl FnMut(&WalkEntry<'_>) -> WalkFlow,
) -> WalkSummary {
    let mut walker = FolderWalker {
        ground,
        depth_max: depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX),
        seen: 0,
        walked: WalkSummary::default(),
        ignored: None,
        visit: &mut visit,
    };
    let path = start.path();
    match start.folder() {
        Ok(folder) => {
            walker.ignored = (show == WalkFilter::Usual).then(|| IgnoreRules::from_parents(&path));
            walker.visit_folder(&folder, Utf8Path::new(""), 1);
        }
        Err(_) => {
            let opened_from = OpenedFrom::Start(start);
            let (relative, kind) = (Utf8PathBuf::new(), WalkEntryKind::File);
            walker.report_entry(&WalkEntry { path, relative, kind, opened_from });
        }
    }
    walker.walked
}

/// A walk in progress.
struct FolderWalker<'a> {
    ground: &'a WalkContext,
    depth_max: usize,
    seen: usize,
    walked: WalkSummary,
    /// Git's ignore rules; `None` if they do not apply.
    ignored: Option<IgnoreRules>,
    visit: &'a mut dyn FnMut(&WalkEntry<'_>) -> WalkFlow,
}

impl FolderWalker<'_> {
    /// Visits the entries of a folder, `depth` levels beneath the start.
    fn visit_folder(
        &mut self,
        folder: &FolderHandle,
        relative: &Utf8Path,
        depth: usize,
    ) -> WalkFlow {
        let Ok(entries) = sorted_entries(folder) else {
            // Skip unreadable entries, as other search tools do.
            self.walked.passed_over += 1;
            return WalkFlow::Continue;
        };
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        if let Some(ignored) = &mut self.ignored {
            ignored.enter(folder, &has);
        }
        let next = entries
            .iter()
            .map(|(name, kind)| self.visit_entry(folder, relative, (name, *kind), depth))
            .find(|next| *next == WalkFlow::Stop)
            .unwrap_or(WalkFlow::Continue);
        if let Some(ignored) = &mut self.ignored {
            ignored.leave();
        }
        next
    }

    fn visit_entry(
        &mut self,
        folder: &FolderHandle,
        relative: &Utf8Path,
        (name, kind): (&std::ffi::OsStr, WalkEntryKind),
        depth: usize,
    ) -> WalkFlow {
        if name == ".git" {
            return WalkFlow::Continue;
        }
        let Some(name) = name.to_str() else {
            self.walked.passed_over += 1;
            return WalkFlow::Continue;
        };
        let path = folder.path().join(name);
        let is_folder = kind == WalkEntryKind::Folder;
        if self.ignored.as_ref().is_some_and(|ignored| ignored.is_ignored(&path, is_folder)) {
            return WalkFlow::Continue;
        }
        let relative = relative.join(name);
        let met = WalkEntry {
            path,
            relative: relative.clone(),
            kind,
            opened_from: OpenedFrom::Folder(folder),
        };
        if self.report_entry(&met) == WalkFlow::Stop {
            return WalkFlow::Stop;
        }
        if !is_folder || depth >= self.depth_max {
            return WalkFlow::Continue;
        }
        match folder.open_child(name) {
            Ok(inner) => self.visit_folder(&inner, &relative, depth + 1),
            Err(_) => {
                self.walked.passed_over += 1;
                WalkFlow::Continue
            }
        }
    }

    fn report_entry(&mut self, met: &WalkEntry<'_>) -> WalkFlow {
        if self.seen >= ENTRIES_MAX || self.ground.cancel.is_cancelled() {
            self.walked.unfinished = true;
            return WalkFlow::Stop;
        }
        self.seen += 1;
        let shown = beneath::display_path(&self.ground.workplace, &met.path);
        if self.ground.hidden.matches(&shown, met.path.as_str()) {
            self.walked.passed_over += 1;
            return WalkFlow::Continue;
        }
        (self.visit)(met)
    }
}

/// The entries of a folder, sorted by name; at most one more than a walk visits.
fn sorted_entries(
    folder: &FolderHandle,
) -> std::io::Result<Vec<(std::ffi::OsString, WalkEntryKind)>> {
    let mut entries = Vec::new();
    for entry in folder.entries()?.take(ENTRIES_MAX + 1) {
        let entry = entry?;
        let kind = match entry.kind {
            EntryKind::File => WalkEntryKind::File,
            EntryKind::Folder => WalkEntryKind::Folder,
            EntryKind::Link => WalkEntryKind::Link,
            EntryKind::Other => WalkEntryKind::Other,
        };
        entries.push((entry.name, kind));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(entries)
}

/// Describes what a walk skipped, with a line break before each note.
pub(super) fn describe_skipped(walked: WalkSummary) -> String {
    let mut out = String::new();
    if walked.unfinished {
        out.push_str(&format!(
            "\n[the search ended after {ENTRIES_MAX} entries or was stopped; name a folder to see more]"
        ));
    }
    if walked.passed_over > 0 {
        out.push_str(&format!(
            "\n[{} entries cannot be read or are kept from you by rules]",
            walked.passed_over
        ));
    }
    out
}
