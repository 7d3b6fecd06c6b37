//! Resolves protected symbolic links of the base, whose targets the pull request may have changed.

use std::collections::BTreeMap;

use super::{display_path, is_guarded};
use crate::limits::{LINK_BYTES_MAX, LINK_STEPS_MAX};
use repertoire_git::repo::{GitClient, GitError, GitObjectId, RawFile, TreeEntryMode};

/// Returns the protected files of the base. A link to an unprotected target is replaced by its
/// target; one that leads nowhere, or out of the repository, is left out.
pub(super) async fn resolve_links(
    git: &GitClient,
    files: Vec<RawFile>,
) -> Result<Vec<RawFile>, GitError> {
    let targets = read_targets(git, &files).await?;
    let all: BTreeMap<Vec<u8>, RawFile> =
        files.iter().map(|file| (file.path.clone(), file.clone())).collect();
    let mut settled = Vec::new();
    for file in files.into_iter().filter(|file| is_guarded(&file.path)) {
        match file.mode {
            TreeEntryMode::Link => settled.extend(link_replacement(&file, &all, &targets)),
            _ => settled.push(file),
        }
    }
    Ok(settled)
}

/// Returns the targets of the links in a tree.
async fn read_targets(
    git: &GitClient,
    files: &[RawFile],
) -> Result<BTreeMap<GitObjectId, String>, GitError> {
    let links: Vec<&GitObjectId> = files
        .iter()
        .filter(|file| file.mode == TreeEntryMode::Link)
        .map(|file| &file.oid)
        .collect();
    let names: Vec<String> = links.iter().map(|oid| oid.to_string()).collect();
    let sizes = git.object_sizes(&names).await?.into_iter().flatten();
    let wanted: Vec<(GitObjectId, u64)> =
        sizes.filter(|(_, size)| *size <= LINK_BYTES_MAX).collect();
    let blobs = git.read_blobs(&wanted).await?;
    let text = |(oid, bytes): (GitObjectId, Vec<u8>)| Some((oid, String::from_utf8(bytes).ok()?));
    Ok(blobs.into_iter().filter_map(text).collect())
}

/// Returns the files that replace a link.
fn link_replacement(
    link: &RawFile,
    all: &BTreeMap<Vec<u8>, RawFile>,
    targets: &BTreeMap<GitObjectId, String>,
) -> Vec<RawFile> {
    let Some(end) = final_target(link, all, targets) else { return Vec::new() };
    if is_guarded(end.as_bytes()) && leads_directly(link, &end, targets) {
        return vec![link.clone()];
    }
    let moved = |file: &RawFile, path: Vec<u8>| RawFile { path, ..file.clone() };
    if let Some(file) = all.get(end.as_bytes()) {
        return vec![moved(file, link.path.clone())];
    }
    let folder = format!("{end}/").into_bytes();
    let inside = all.range(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder));
    // Links inside a linked folder would have to be resolved as well. There is no honest use for
    // that, so they are left out.
    let plain = inside.filter(|(_, file)| file.mode != TreeEntryMode::Link);
    plain
        .map(|(path, file)| {
            let rest = &path[folder.len()..];
            moved(file, [link.path.as_slice(), b"/", rest].concat())
        })
        .collect()
}

/// Returns the path after following all links; `None` if it does not exist.
fn final_target(
    link: &RawFile,
    all: &BTreeMap<Vec<u8>, RawFile>,
    targets: &BTreeMap<GitObjectId, String>,
) -> Option<String> {
    let mut path = join_target(&display_path(&link.path), targets.get(&link.oid)?)?;
    for _ in 0..LINK_STEPS_MAX {
        let Some((at, through)) = first_link(&path, all) else { break };
        let rest = path[at.len()..].trim_start_matches('/').to_owned();
        let target = join_target(&at, targets.get(&through.oid)?)?;
        path = if rest.is_empty() { target } else { format!("{target}/{rest}") };
    }
    if first_link(&path, all).is_some() {
        return None;
    }
    let folder = format!("{path}/").into_bytes();
    let is_folder =
        all.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder));
    (all.contains_key(path.as_bytes()) || is_folder).then_some(path)
}

/// Returns the first component of a path that is a link.
fn first_link<'a>(
    path: &str,
    all: &'a BTreeMap<Vec<u8>, RawFile>,
) -> Option<(String, &'a RawFile)> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.filter_map(|end| {
        let part = &path[..end];
        let file = all.get(part.as_bytes()).filter(|file| file.mode == TreeEntryMode::Link)?;
        Some((part.to_owned(), file))
    })
    .next()
}

/// Returns true if the link names its final target directly, without another link in between.
fn leads_directly(link: &RawFile, end: &str, targets: &BTreeMap<GitObjectId, String>) -> bool {
    let target =
        targets.get(&link.oid).and_then(|target| join_target(&display_path(&link.path), target));
    target.as_deref() == Some(end)
}

/// Returns a target as a path in the repository; `None` if it leads out of it.
fn join_target(link: &str, target: &str) -> Option<String> {
    if target.starts_with('/') || target.contains('\\') {
        return None;
    }
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}
