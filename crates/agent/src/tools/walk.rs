//! Walking the work folder: sorted, without what git ignores, never through a link, and never without an end.

use camino::{Utf8Path, Utf8PathBuf};
use ignore::WalkBuilder;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{arguments, blocking};
use crate::beneath::{self, Place};
use crate::permission::PathRules;
use crate::run::Run;
use crate::spill;
use crate::tool::{Call, Output};
use crate::workplace::Workplace;

/// Most entries that one call looks at.
const ENTRIES_MAX: usize = 200_000;
/// How deep one call looks.
const DEPTH_MAX: usize = 64;

/// Where to walk, and what a walk needs to know of the run.
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

/// A call that searches: its arguments are read, the search holds up nobody, and what it finds is bounded.
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

/// What is shown of hidden and ignored entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// What a person would look at: not `.git`, nothing that git ignores.
    Usual,
    /// Everything but `.git`.
    Everything,
}

/// Something that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Met {
    /// Where it is.
    pub(super) path: Utf8PathBuf,
    /// Where it is beneath the start.
    pub(super) relative: Utf8PathBuf,
    /// What it is.
    pub(super) kind: Kind,
    /// Its size, if it is a file.
    pub(super) bytes: u64,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// Whether there was more than a walk looks at.
    pub(super) unfinished: bool,
    /// Entries that rules hide, or whose names are no text.
    pub(super) passed_over: usize,
}

/// What to do after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Stop,
}

/// Calls `visit` for everything beneath a place, or for the place itself if it is a file.
pub(super) fn walk(
    ground: &Ground,
    start: &Place,
    (show, depth): (Show, Option<usize>),
    mut visit: impl FnMut(&Met) -> Next,
) -> Walked {
    let from = start.path();
    let usual = show == Show::Usual;
    let walker = WalkBuilder::new(&from)
        .follow_links(false)
        .hidden(false)
        .parents(usual)
        .ignore(usual)
        .git_ignore(usual)
        .git_exclude(usual)
        .git_global(false)
        .require_git(false)
        .max_depth(Some(depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX)))
        .sort_by_file_name(std::cmp::Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut walked = Walked::default();
    for (seen, entry) in walker.enumerate() {
        if seen >= ENTRIES_MAX || ground.cancel.is_cancelled() {
            walked.unfinished = true;
            break;
        }
        // What cannot be read is passed over, as any search does.
        let Some(met) = entry.ok().and_then(|entry| met(&from, &entry)) else {
            walked.passed_over += 1;
            continue;
        };
        if met.relative == "" && met.kind == Kind::Folder {
            continue;
        }
        if ground.hidden.matches(&beneath::shown(&ground.workplace, &met.path), met.path.as_str()) {
            walked.passed_over += 1;
            continue;
        }
        if visit(&met) == Next::Stop {
            break;
        }
    }
    walked
}

fn met(from: &Utf8Path, entry: &ignore::DirEntry) -> Option<Met> {
    let path = Utf8Path::from_path(entry.path())?.to_owned();
    let relative = path.strip_prefix(from).unwrap_or(&path).to_owned();
    let kind = match entry.file_type() {
        Some(kind) if kind.is_file() => Kind::File,
        Some(kind) if kind.is_dir() => Kind::Folder,
        Some(kind) if kind.is_symlink() => Kind::Link,
        _ => Kind::Other,
    };
    let bytes = match kind {
        Kind::File => entry.metadata().map_or(0, |metadata| metadata.len()),
        _ => 0,
    };
    Some(Met { path, relative, kind, bytes })
}

/// Reads a file that was met, if it is text of a reasonable size and not secret.
pub(super) fn text_of(met: &Met, start: &Place, bytes_max: u64) -> Option<String> {
    if met.kind != Kind::File || met.bytes > bytes_max || beneath::is_secret(&met.path) {
        return None;
    }
    let relative = met.path.strip_prefix(&start.root).ok()?;
    let bytes = repertoire_text::fs::read_bytes_beneath(&start.root, relative, bytes_max).ok()?;
    if super::read::is_binary(&bytes) {
        return None;
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Words on what a walk did not see, with a line break before them.
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
