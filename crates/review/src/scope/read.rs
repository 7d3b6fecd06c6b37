//! Reads the texts of files and their differences, within limits.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{ReadError, read_bytes_beneath};

use super::paths::Filter;
use super::pick::{Candidate, Source, missed, skipped};
use super::resolve::Ends;
use super::{GatherLimits, ScopeError, say, skip};
use crate::change::{ChangedFile, Hunk, Skipped, Tier};
use crate::limits::{REVIEW_FILE_BYTES_MAX, REVIEW_FILE_LINES_MAX, REVIEW_PATCH_BYTES_MAX};
use crate::{content, diff};
use repertoire_git::repo::{Git, Oid, PATHS_PER_CALL};

/// Removes candidates that `.gitattributes` marks as generated or vendored, as of before the change.
pub(super) async fn leave_out_generated(
    git: &Git,
    ends: &Ends,
    filter: &Filter,
    candidates: &mut Vec<Candidate>,
) -> Result<Vec<Skipped>, ScopeError> {
    let paths: Vec<&Utf8Path> = candidates.iter().map(|file| file.path.as_path()).collect();
    let said = git.attributes(Some(&ends.from), skip::ATTRIBUTES, &paths).await?;
    let mut why: BTreeMap<Utf8PathBuf, String> = BTreeMap::new();
    for attribute in said {
        if let Some(reason) = skip::by_attribute(&attribute.name, &attribute.value) {
            why.entry(attribute.path).or_insert(reason);
        }
    }
    why.retain(|path, _| !filter.names(path));
    candidates.retain(|file| !why.contains_key(&file.path));
    Ok(why.into_iter().map(|(path, reason)| skipped(&path, reason)).collect())
}

/// Reads the candidates and their differences. Candidates that cannot be reviewed are added to `left`.
pub(super) async fn read(
    git: &Git,
    top: &Utf8Path,
    ends: &Ends,
    candidates: Vec<Candidate>,
    limits: &GatherLimits,
    left: &mut Vec<Skipped>,
    warnings: &mut Vec<String>,
) -> Result<Vec<ChangedFile>, ScopeError> {
    let sizes = sizes(git, top, &candidates).await?;
    let chosen = choose(candidates, &sizes, limits, left);
    let wanted: Vec<(Oid, u64)> = chosen.iter().filter_map(|file| blob(file, &sizes)).collect();
    let blobs = git.blobs(&wanted).await?;
    let mut texts: Vec<(Candidate, Text)> = Vec::new();
    for candidate in chosen {
        let bytes = match &candidate.source {
            Source::Blob(new) | Source::Blobs { new, .. } => blobs.get(new).cloned(),
            Source::Disk => from_disk(top, &candidate.path),
        };
        let unread = || missed(&candidate.path, "cannot be read");
        match bytes.ok_or_else(unread).and_then(|bytes| Text::of(&candidate.path, bytes)) {
            Ok(text) => texts.push((candidate, text)),
            Err(reason) => left.push(reason),
        }
    }
    let odd = texts.iter().filter(|(_, text)| !text.exact).map(|(file, _)| file.path.as_path());
    warnings.extend(say::not_utf8(odd));
    let patches = Patches::read(git, ends, &texts, &sizes).await?;
    let mut files = Vec::new();
    for (file, text) in texts {
        match patches.file(file, text.text) {
            Ok(file) => files.push(file),
            Err(reason) => left.push(reason),
        }
    }
    Ok(files)
}

/// Reads a whole file on disk. The flag is true if all of its bytes are valid UTF-8.
pub(super) fn whole_file(top: &Utf8Path, file: Candidate) -> Result<(ChangedFile, bool), Skipped> {
    let bytes = read_bytes_beneath(top, &file.path, REVIEW_FILE_BYTES_MAX);
    let text = match bytes {
        Ok(bytes) => Text::of(&file.path, bytes)?,
        Err(ReadError::TooLarge { bytes, .. }) => {
            return Err(missed(&file.path, too_large(bytes)));
        }
        Err(error) => return Err(missed(&file.path, error.to_string())),
    };
    let hunks = diff::whole(&text.text);
    Ok((changed_file(file, text.text, hunks)?, text.exact))
}

fn from_disk(top: &Utf8Path, path: &Utf8Path) -> Option<Vec<u8>> {
    read_bytes_beneath(top, path, REVIEW_FILE_BYTES_MAX).ok()
}

/// The sizes of blobs by object id, and of files on disk by path.
type Sizes = BTreeMap<String, u64>;

async fn sizes(git: &Git, top: &Utf8Path, files: &[Candidate]) -> Result<Sizes, ScopeError> {
    let mut objects = Vec::new();
    let mut sizes = Sizes::new();
    for file in files {
        match &file.source {
            Source::Blob(new) => objects.push(new.to_string()),
            Source::Blobs { old, new } => objects.extend([old.to_string(), new.to_string()]),
            Source::Disk => {
                let size = top.join(&file.path).metadata().map_or(0, |metadata| metadata.len());
                sizes.insert(file.path.to_string(), size);
            }
        }
    }
    objects.sort_unstable();
    objects.dedup();
    let found = git.sizes(&objects).await?.into_iter().flatten();
    sizes.extend(found.map(|(oid, size)| (oid.to_string(), size)));
    Ok(sizes)
}

fn size_now(file: &Candidate, sizes: &Sizes) -> u64 {
    let name = match &file.source {
        Source::Blob(new) | Source::Blobs { new, .. } => new.as_str(),
        Source::Disk => file.path.as_str(),
    };
    sizes.get(name).copied().unwrap_or_default()
}

fn size_before(file: &Candidate, sizes: &Sizes) -> u64 {
    match &file.source {
        Source::Blobs { old, .. } => sizes.get(old.as_str()).copied().unwrap_or_default(),
        Source::Blob(_) | Source::Disk => 0,
    }
}

fn blob(file: &Candidate, sizes: &Sizes) -> Option<(Oid, u64)> {
    match &file.source {
        Source::Blob(new) | Source::Blobs { new, .. } => {
            Some((new.clone(), *sizes.get(new.as_str())?))
        }
        Source::Disk => None,
    }
}

fn too_large(bytes: u64) -> String {
    format!("{} bytes ({} at most)", skip::grouped(bytes), skip::grouped(REVIEW_FILE_BYTES_MAX))
}

/// Selects files up to the limits: priority files first, then smaller ones.
fn choose(
    mut files: Vec<Candidate>,
    sizes: &Sizes,
    limits: &GatherLimits,
    left: &mut Vec<Skipped>,
) -> Vec<Candidate> {
    let (first, _) = content::globs(&limits.priority_files);
    files.sort_by_cached_key(|file| {
        (!first.is_match(&file.path), size_now(file, sizes), file.path.clone())
    });
    let mut chosen = Vec::new();
    let mut bytes = 0;
    for file in files {
        let (now, before) = (size_now(&file, sizes), size_before(&file, sizes));
        let reason = if now > REVIEW_FILE_BYTES_MAX {
            Some(too_large(now))
        } else if before > REVIEW_FILE_BYTES_MAX {
            Some(format!("it had {}", too_large(before)))
        } else if chosen.len() == limits.files_max {
            Some(format!("beyond the first {} files", skip::grouped(limits.files_max as u64)))
        } else if bytes + now > limits.bytes_max {
            Some(format!("beyond {} bytes in all", skip::grouped(limits.bytes_max)))
        } else {
            None
        };
        match reason {
            Some(reason) => left.push(missed(&file.path, reason)),
            None => {
                bytes += now;
                chosen.push(file);
            }
        }
    }
    chosen
}

struct Text {
    text: String,
    /// True if all bytes are valid UTF-8.
    exact: bool,
}

impl Text {
    /// Decodes the content of a file. Returns the reason for skipping an empty or binary file.
    fn of(path: &Utf8Path, bytes: Vec<u8>) -> Result<Text, Skipped> {
        match bytes {
            bytes if bytes.is_empty() => Err(skipped(path, "empty")),
            bytes if bytes.contains(&0) => Err(skipped(path, "binary")),
            // Decode invalid UTF-8 lossily: a stray byte in a comment must not hide a file from the review.
            bytes => match String::from_utf8(bytes) {
                Ok(text) => Ok(Text { text, exact: true }),
                Err(error) => {
                    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    Ok(Text { text, exact: false })
                }
            },
        }
    }
}

/// Creates a changed file. Fails if it has too many changed lines.
fn changed_file(file: Candidate, text: String, hunks: Vec<Hunk>) -> Result<ChangedFile, Skipped> {
    let lines: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
    if lines > REVIEW_FILE_LINES_MAX {
        let what = match &file.source {
            Source::Blobs { .. } => "lines that changed or are next to such",
            Source::Blob(_) | Source::Disk => "lines",
        };
        let (lines, max) = (lines as u64, REVIEW_FILE_LINES_MAX as u64);
        let reason = format!("{} {what} ({} at most)", skip::grouped(lines), skip::grouped(max));
        return Err(missed(&file.path, reason));
    }
    Ok(ChangedFile {
        language: content::language_of(&file.path).map(str::to_owned),
        path: file.path,
        old_path: file.old_path,
        status: file.status,
        hunks,
        text,
        tier: Tier::Full,
    })
}

/// The hunks of files that have an old and a new version, by path.
struct Patches(BTreeMap<Utf8PathBuf, Vec<Hunk>>);

impl Patches {
    async fn read(
        git: &Git,
        ends: &Ends,
        files: &[(Candidate, Text)],
        sizes: &Sizes,
    ) -> Result<Patches, ScopeError> {
        let mut patches = Patches(BTreeMap::new());
        let mut together: Vec<&Utf8Path> = Vec::new();
        let mut bytes = 0;
        for (file, _) in files {
            let Source::Blobs { old, new } = &file.source else { continue };
            // Compare renamed files by blob: in a diff of several paths, git might pair them differently.
            if file.old_path.is_some() {
                let patch = git.patch_of_blobs(old, new).await?;
                let found = parse(&patch, &file.path)?;
                let hunks = found.into_iter().flat_map(|found| found.hunks).collect();
                patches.0.insert(file.path.clone(), hunks);
                continue;
            }
            // Compare other files in batches, to save calls of git.
            let size = size_now(file, sizes) + size_before(file, sizes);
            let full = bytes + size > REVIEW_PATCH_BYTES_MAX || together.len() == PATHS_PER_CALL;
            if full && !together.is_empty() {
                patches.take(git, ends, &together).await?;
                together.clear();
                bytes = 0;
            }
            together.push(&file.path);
            bytes += size;
        }
        patches.take(git, ends, &together).await?;
        Ok(patches)
    }

    async fn take(
        &mut self,
        git: &Git,
        ends: &Ends,
        paths: &[&Utf8Path],
    ) -> Result<(), ScopeError> {
        let Some(first) = paths.first() else { return Ok(()) };
        let patch = git.patch_of(&ends.from, &ends.to, paths).await?;
        for found in parse(&patch, first)? {
            if let Some(path) = found.new {
                self.0.insert(path.into(), found.hunks);
            }
        }
        Ok(())
    }

    fn file(&self, file: Candidate, text: String) -> Result<ChangedFile, Skipped> {
        let hunks = match &file.source {
            Source::Blobs { .. } => self.0.get(&file.path).cloned().unwrap_or_default(),
            Source::Blob(_) | Source::Disk => diff::whole(&text),
        };
        // The blobs differ, so a missing hunk means that git does not show the difference, as for a binary file.
        if hunks.is_empty() {
            return Err(missed(&file.path, "git does not show what has changed in it"));
        }
        changed_file(file, text, hunks)
    }
}

fn parse(patch: &[u8], path: &Utf8Path) -> Result<Vec<diff::FilePatch>, ScopeError> {
    diff::parse(patch).map_err(|source| ScopeError::Diff { path: path.to_owned(), source })
}
