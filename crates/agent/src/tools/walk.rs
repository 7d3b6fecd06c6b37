//! Walks the work folder: sorted, without entries that git ignores, without following links, and bounded. Each folder
//! is opened from the handle of its parent, so that nothing outside is listed or read, even if folders are renamed
//! meanwhile.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{EntryKind, Folder};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{arguments, blocking};
use crate::permission::PathRules;
use crate::run::Run;
use crate::spill;
use crate::tool::{Call, Output};
use repertoire_sandbox::beneath::{self, Place};
use repertoire_sandbox::workplace::Workplace;

mod ignored;

use self::ignored::Ignored;

/// The maximum number of entries that one call visits.
const ENTRIES_MAX: usize = 200_000;
/// The maximum depth of a walk.
const DEPTH_MAX: usize = 64;

/// The inputs of a walk that come from the run.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) workplace: Workplace,
    pub(super) hidden: PathRules,
    pub(super) cancel: CancellationToken,
}

impl Ground {
    pub(super) fn of(run: &Run) -> Self {
        Ground {
            workplace: run.workplace.clone(),
            hidden: run.state.hidden.clone(),
            cancel: run.cancel.clone(),
        }
    }
}

/// Handles a search call: parses its arguments, runs the search on a blocking thread, and bounds its output.
pub(super) async fn searched<T: DeserializeOwned + Send + 'static>(
    call: Call<'_>,
    search: fn(&Ground, &T) -> Result<String, String>,
) -> Output {
    let wanted: T = match arguments(&call) {
        Ok(wanted) => wanted,
        Err(output) => return output,
    };
    let (ground, id) = (Ground::of(call.run), call.id.to_owned());
    blocking(move || match search(&ground, &wanted) {
        Ok(text) => spill::bounded_text(&text, &ground.workplace, &id),
        Err(message) => Output::error(message),
    })
    .await
}

/// The treatment of hidden and ignored entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// Skip `.git` and everything that git ignores.
    Usual,
    /// Skip only `.git`.
    Everything,
}

/// An entry met on a walk.
#[derive(Debug)]
pub(super) struct Met<'a> {
    /// The whole path.
    pub(super) path: Utf8PathBuf,
    /// The path relative to the start; empty for the start itself.
    pub(super) relative: Utf8PathBuf,
    pub(super) kind: Kind,
    opened_from: OpenedFrom<'a>,
}

/// The handle from which an entry is opened.
#[derive(Clone, Copy, Debug)]
enum OpenedFrom<'a> {
    /// The entry's parent folder.
    Folder(&'a Folder),
    /// The start of the walk, which is itself a file.
    Start(&'a Place),
}

impl Met<'_> {
    /// The size in bytes, or 0 if the entry is not a file.
    pub(super) fn bytes(&self) -> u64 {
        match (self.kind, self.opened_from) {
            (Kind::File, OpenedFrom::Folder(folder)) => {
                folder.child_bytes(self.path.file_name().unwrap_or_default()).unwrap_or(0)
            }
            (Kind::File, OpenedFrom::Start(start)) => start.bytes(),
            _ => 0,
        }
    }

    /// The text, if this is a text file of at most `bytes_max` bytes and not secret.
    pub(super) fn text(&self, bytes_max: u64) -> Option<String> {
        if self.kind != Kind::File || beneath::is_secret(&self.path) {
            return None;
        }
        let bytes = match self.opened_from {
            OpenedFrom::Folder(folder) => {
                folder.child_file(self.path.file_name()?).ok()?.read_bytes(bytes_max).ok()?
            }
            OpenedFrom::Start(start) => start.read(bytes_max).ok()?,
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
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// True if the walk stopped early, because of the entry limit or a cancellation.
    pub(super) unfinished: bool,
    /// The number of entries that are unreadable, hidden by rules, or without a UTF-8 name.
    pub(super) passed_over: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Stop,
}

/// Calls `visit` for everything beneath `start`, or for `start` itself if it is a file.
pub(super) fn walk(
    ground: &Ground,
    start: &Place,
    (show, depth): (Show, Option<usize>),
    mut visit: impl FnMut(&Met<'_>) -> Next,
) -> Walked {
    let mut walker = Walker {
        ground,
        depth_max: depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX),
        seen: 0,
        walked: Walked::default(),
        ignored: None,
        visit: &mut visit,
    };
    let path = start.path();
    match start.folder() {
        Ok(folder) => {
            walker.ignored = (show == Show::Usual).then(|| Ignored::above(&path));
            walker.folder(&folder, Utf8Path::new(""), 1);
        }
        Err(_) => {
            let opened_from = OpenedFrom::Start(start);
            let (relative, kind) = (Utf8PathBuf::new(), Kind::File);
            walker.meet(&Met { path, relative, kind, opened_from });
        }
    }
    walker.walked
}

/// A walk in progress.
struct Walker<'a> {
    ground: &'a Ground,
    depth_max: usize,
    seen: usize,
    walked: Walked,
    /// Git's ignore rules; `None` if they do not apply.
    ignored: Option<Ignored>,
    visit: &'a mut dyn FnMut(&Met<'_>) -> Next,
}

impl Walker<'_> {
    /// Visits the entries of a folder, `depth` levels beneath the start.
    fn folder(&mut self, folder: &Folder, relative: &Utf8Path, depth: usize) -> Next {
        let Ok(entries) = sorted(folder) else {
            // Skip unreadable entries, as other search tools do.
            self.walked.passed_over += 1;
            return Next::Continue;
        };
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        if let Some(ignored) = &mut self.ignored {
            ignored.enter(folder, &has);
        }
        let next = entries
            .iter()
            .map(|(name, kind)| self.entry(folder, relative, (name, *kind), depth))
            .find(|next| *next == Next::Stop)
            .unwrap_or(Next::Continue);
        if let Some(ignored) = &mut self.ignored {
            ignored.leave();
        }
        next
    }

    fn entry(
        &mut self,
        folder: &Folder,
        relative: &Utf8Path,
        (name, kind): (&std::ffi::OsStr, Kind),
        depth: usize,
    ) -> Next {
        if name == ".git" {
            return Next::Continue;
        }
        let Some(name) = name.to_str() else {
            self.walked.passed_over += 1;
            return Next::Continue;
        };
        let path = folder.path().join(name);
        let is_folder = kind == Kind::Folder;
        if self.ignored.as_ref().is_some_and(|ignored| ignored.has(&path, is_folder)) {
            return Next::Continue;
        }
        let relative = relative.join(name);
        let met =
            Met { path, relative: relative.clone(), kind, opened_from: OpenedFrom::Folder(folder) };
        if self.meet(&met) == Next::Stop {
            return Next::Stop;
        }
        if !is_folder || depth >= self.depth_max {
            return Next::Continue;
        }
        match folder.child(name) {
            Ok(inner) => self.folder(&inner, &relative, depth + 1),
            Err(_) => {
                self.walked.passed_over += 1;
                Next::Continue
            }
        }
    }

    fn meet(&mut self, met: &Met<'_>) -> Next {
        if self.seen >= ENTRIES_MAX || self.ground.cancel.is_cancelled() {
            self.walked.unfinished = true;
            return Next::Stop;
        }
        self.seen += 1;
        let shown = beneath::shown(&self.ground.workplace, &met.path);
        if self.ground.hidden.matches(&shown, met.path.as_str()) {
            self.walked.passed_over += 1;
            return Next::Continue;
        }
        (self.visit)(met)
    }
}

/// The entries of a folder, sorted by name; at most one more than a walk visits.
fn sorted(folder: &Folder) -> std::io::Result<Vec<(std::ffi::OsString, Kind)>> {
    let mut entries = Vec::new();
    for entry in folder.entries()?.take(ENTRIES_MAX + 1) {
        let entry = entry?;
        let kind = match entry.kind {
            EntryKind::File => Kind::File,
            EntryKind::Folder => Kind::Folder,
            EntryKind::Link => Kind::Link,
            EntryKind::Other => Kind::Other,
        };
        entries.push((entry.name, kind));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(entries)
}

/// Describes what a walk skipped, with a line break before each note.
pub(super) fn remarks(walked: Walked) -> String {
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
