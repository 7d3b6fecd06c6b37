//! Reads the texts of files and their differences, within limits.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{ReadError, read_bytes_beneath};

use super::candidates::{CandidateSource, ReviewCandidate, missed_file, skipped_file};
use super::paths::ScopePathFilter;
use super::resolve::ComparedStates;
use super::{GatherLimits, ScopeError, messages, skip};
use crate::change::{DiffHunk, FilePromptTier, ReviewedFile, SkippedFile};
use crate::content;
use crate::limits::{REVIEW_FILE_BYTES_MAX, REVIEW_FILE_LINES_MAX, REVIEW_PATCH_BYTES_MAX};
use repertoire_git::diff;
use repertoire_git::repo::{GitClient, GitObjectId, PATHS_PER_CALL};

/// Removes candidates that `.gitattributes` marks as generated or vendored, as of before the change.
pub(super) async fn leave_out_generated(
    git: &GitClient,
    ends: &ComparedStates,
    filter: &ScopePathFilter,
    candidates: &mut Vec<ReviewCandidate>,
) -> Result<Vec<SkippedFile>, ScopeError> {
    let paths: Vec<&Utf8Path> = candidates.iter().map(|file| file.path.as_path()).collect();
    let said = git.read_attributes(Some(&ends.from), skip::ATTRIBUTES, &paths).await?;
    let mut why: BTreeMap<Utf8PathBuf, String> = BTreeMap::new();
    for attribute in said {
        if let Some(reason) = skip::skip_reason_by_attribute(&attribute.name, &attribute.value) {
            why.entry(attribute.path).or_insert(reason);
        }
    }
    why.retain(|path, _| !filter.names_file(path));
    candidates.retain(|file| !why.contains_key(&file.path));
    Ok(why.into_iter().map(|(path, reason)| skipped_file(&path, reason)).collect())
}

/// Reads the candidates and their differences. Candidates that cannot be reviewed are added to `left`.
pub(super) async fn read_candidates(
    git: &GitClient,
    top: &Utf8Path,
    ends: &ComparedStates,
    candidates: Vec<ReviewCandidate>,
    limits: &GatherLimits,
    left: &mut Vec<SkippedFile>,
    warnings: &mut Vec<String>,
) -> Result<Vec<ReviewedFile>, ScopeError> {
    let sizes = read_sizes(git, top, &candidates).await?;
    let chosen = choose_candidates(candidates, &sizes, limits, left);
    let wanted: Vec<(GitObjectId, u64)> =
        chosen.iter().filter_map(|file| blob_with_size(file, &sizes)).collect();
    let blobs = git.read_blobs(&wanted).await?;
    let mut texts: Vec<(ReviewCandidate, DecodedText)> = Vec::new();
    for candidate in chosen {
        let bytes = match &candidate.source {
            CandidateSource::Blob(new) | CandidateSource::Blobs { new, .. } => {
                blobs.get(new).cloned()
            }
            CandidateSource::Disk => read_from_disk(top, &candidate.path),
        };
        let unread = || missed_file(&candidate.path, "cannot be read");
        match bytes.ok_or_else(unread).and_then(|bytes| DecodedText::decode(&candidate.path, bytes))
        {
            Ok(text) => texts.push((candidate, text)),
            Err(reason) => left.push(reason),
        }
    }
    let odd = texts.iter().filter(|(_, text)| !text.exact).map(|(file, _)| file.path.as_path());
    warnings.extend(messages::not_utf8_warning(odd));
    let patches = FilePatches::read_all(git, ends, &texts, &sizes).await?;
    let mut files = Vec::new();
    for (file, text) in texts {
        match patches.to_changed_file(file, text.text) {
            Ok(file) => files.push(file),
            Err(reason) => left.push(reason),
        }
    }
    Ok(files)
}

/// Reads a whole file on disk. The flag is true if all of its bytes are valid UTF-8.
pub(super) fn read_whole_file(
    top: &Utf8Path,
    file: ReviewCandidate,
) -> Result<(ReviewedFile, bool), SkippedFile> {
    let bytes = read_bytes_beneath(top, &file.path, REVIEW_FILE_BYTES_MAX);
    let text = match bytes {
        Ok(bytes) => DecodedText::decode(&file.path, bytes)?,
        Err(ReadError::TooLarge { bytes, .. }) => {
            return Err(missed_file(&file.path, too_large_reason(bytes)));
        }
        Err(error) => return Err(missed_file(&file.path, error.to_string())),
    };
    let hunks = diff::whole_file_hunks(&text.text);
    Ok((changed_file(file, text.text, hunks)?, text.exact))
}

fn read_from_disk(top: &Utf8Path, path: &Utf8Path) -> Option<Vec<u8>> {
    read_bytes_beneath(top, path, REVIEW_FILE_BYTES_MAX).ok()
}

/// The sizes of blobs by object id, and of files on disk by path.
type FileSizes = BTreeMap<String, u64>;

async fn read_sizes(
    git: &GitClient,
    top: &Utf8Path,
    files: &[ReviewCandidate],
) -> Result<FileSizes, ScopeError> {
    let mut objects = Vec::new();
    let mut sizes = FileSizes::new();
    for file in files {
        match &file.source {
            CandidateSource::Blob(new) => objects.push(new.to_string()),
            CandidateSource::Blobs { old, new } => {
                objects.extend([old.to_string(), new.to_string()])
            }
            CandidateSource::Disk => {
                let size = top.join(&file.path).metadata().map_or(0, |metadata| metadata.len());
                sizes.insert(file.path.to_string(), size);
            }
        }
    }
    objects.sort_unstable();
    objects.dedup();
    let found = git.object_sizes(&objects).await?.into_iter().flatten();
    sizes.extend(found.map(|(oid, size)| (oid.to_string(), size)));
    Ok(sizes)
}

fn size_now(file: &ReviewCandidate, sizes: &FileSizes) -> u64 {
    let name = match &file.source {
        CandidateSource::Blob(new) | CandidateSource::Blobs { new, .. } => new.as_str(),
        CandidateSource::Disk => file.path.as_str(),
    };
    sizes.get(name).copied().unwrap_or_default()
}

fn size_before(file: &ReviewCandidate, sizes: &FileSizes) -> u64 {
    match &file.source {
        CandidateSource::Blobs { old, .. } => sizes.get(old.as_str()).copied().unwrap_or_default(),
        CandidateSource::Blob(_) | CandidateSource::Disk => 0,
    }
}

fn blob_with_size(file: &ReviewCandidate, sizes: &FileSizes) -> Option<(GitObjectId, u64)> {
    match &file.source {
        CandidateSource::Blob(new) | CandidateSource::Blobs { new, .. } => {
            Some((new.clone(), *sizes.get(new.as_str())?))
        }
        CandidateSource::Disk => None,
    }
}

fn too_large_reason(bytes: u64) -> String {
    format!(
        "{} bytes ({} at most)",
        skip::group_digits(bytes),
        skip::group_digits(REVIEW_FILE_BYTES_MAX)
    )
}

/// Selects files up to the limits: priority files first, then smaller ones.
fn choose_candidates(
    mut files: Vec<ReviewCandidate>,
    sizes: &FileSizes,
    limits: &GatherLimits,
    left: &mut Vec<SkippedFile>,
) -> Vec<ReviewCandidate> {
    let (first, _) = content::compile_globs(&limits.priority_files);
    files.sort_by_cached_key(|file| {
        (!first.is_match(&file.path), size_now(file, sizes), file.path.clone())
    });
    let mut chosen = Vec::new();
    let mut bytes = 0;
    for file in files {
        let (now, before) = (size_now(&file, sizes), size_before(&file, sizes));
        let reason = if now > REVIEW_FILE_BYTES_MAX {
            Some(too_large_reason(now))
        } else if before > REVIEW_FILE_BYTES_MAX {
            Some(format!("it had {}", too_large_reason(before)))
        } else if chosen.len() == limits.files_max {
            Some(format!("beyond the first {} files", skip::group_digits(limits.files_max as u64)))
        } else if bytes + now > limits.bytes_max {
            Some(format!("beyond {} bytes in all", skip::group_digits(limits.bytes_max)))
        } else {
            None
        };
        match reason {
            Some(reason) => left.push(missed_file(&file.path, reason)),
            None => {
                bytes += now;
                chosen.push(file);
            }
        }
    }
    chosen
}

struct DecodedText {
    text: String,
    /// True if all bytes are valid UTF-8.
    exact: bool,
}

impl DecodedText {
    /// Decodes the content of a file. Returns the reason for skipping an empty or binary file.
    fn decode(path: &Utf8Path, bytes: Vec<u8>) -> Result<DecodedText, SkippedFile> {
        match bytes {
            bytes if bytes.is_empty() => Err(skipped_file(path, "empty")),
            bytes if bytes.contains(&0) => Err(skipped_file(path, "binary")),
            // Decode invalid UTF-8 lossily: a stray byte in a comment must not hide a file from the review.
            bytes => match String::from_utf8(bytes) {
                Ok(text) => Ok(DecodedText { text, exact: true }),
                Err(error) => {
                    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    Ok(DecodedText { text, exact: false })
                }
            },
        }
    }
}

/// Creates a changed file. Fails if it has too many changed lines.
fn changed_file(
    file: ReviewCandidate,
    text: String,
    hunks: Vec<DiffHunk>,
) -> Result<ReviewedFile, SkippedFile> {
    let lines: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
    if lines > REVIEW_FILE_LINES_MAX {
        let what = match &file.source {
            CandidateSource::Blobs { .. } => "lines that changed or are next to such",
            CandidateSource::Blob(_) | CandidateSource::Disk => "lines",
        };
        let (lines, max) = (lines as u64, REVIEW_FILE_LINES_MAX as u64);
        let reason =
            format!("{} {what} ({} at most)", skip::group_digits(lines), skip::group_digits(max));
        return Err(missed_file(&file.path, reason));
    }
    Ok(ReviewedFile {
        language: content::language_of(&file.path).map(str::to_owned),
        path: file.path,
        old_path: file.old_path,
        status: file.status,
        hunks,
        text,
        tier: FilePromptTier::Full,
    })
}

/// The hunks of files that have an old and a new version, by path.
struct FilePatches(BTreeMap<Utf8PathBuf, Vec<DiffHunk>>);

impl FilePatches {
    async fn read_all(
        git: &GitClient,
        ends: &ComparedStates,
        files: &[(ReviewCandidate, DecodedText)],
        sizes: &FileSizes,
    ) -> Result<FilePatches, ScopeError> {
        let mut patches = FilePatches(BTreeMap::new());
        let mut together: Vec<&Utf8Path> = Vec::new();
        let mut bytes = 0;
        for (file, _) in files {
            let CandidateSource::Blobs { old, new } = &file.source else { continue };
            // Compare renamed files by blob: in a diff of several paths, git might pair them differently.
            if file.old_path.is_some() {
                let patch = git.patch_of_blobs(old, new).await?;
                let found = parse_patch(&patch, &file.path)?;
                let hunks = found.into_iter().flat_map(|found| found.hunks).collect();
                patches.0.insert(file.path.clone(), hunks);
                continue;
            }
            // Compare other files in batches, to save calls of git.
            let size = size_now(file, sizes) + size_before(file, sizes);
            let full = bytes + size > REVIEW_PATCH_BYTES_MAX || together.len() == PATHS_PER_CALL;
            if full && !together.is_empty() {
                patches.add_patches(git, ends, &together).await?;
                together.clear();
                bytes = 0;
            }
            together.push(&file.path);
            bytes += size;
        }
        patches.add_patches(git, ends, &together).await?;
        Ok(patches)
    }

    async fn add_patches(
        &mut self,
        git: &GitClient,
        ends: &ComparedStates,
        paths: &[&Utf8Path],
    ) -> Result<(), ScopeError> {
        let Some(first) = paths.first() else { return Ok(()) };
        let patch = git.patch_of(&ends.from, &ends.to, paths).await?;
        for found in parse_patch(&patch, first)? {
            if let Some(path) = found.new {
                self.0.insert(path.into(), found.hunks);
            }
        }
        Ok(())
    }

    fn to_changed_file(
        &self,
        file: ReviewCandidate,
        text: String,
    ) -> Result<ReviewedFile, SkippedFile> {
        let hunks = match &file.source {
            CandidateSource::Blobs { .. } => self.0.get(&file.path).cloned().unwrap_or_default(),
            CandidateSource::Blob(_) | CandidateSource::Disk => diff::whole_file_hunks(&text),
        };
        // The blobs differ, so a missing hunk means that git does not show the difference, as for a binary file.
        if hunks.is_empty() {
            return Err(missed_file(&file.path, "git does not show what has changed in it"));
        }
        changed_file(file, text, hunks)
    }
}

fn parse_patch(patch: &[u8], path: &Utf8Path) -> Result<Vec<diff::FilePatch>, ScopeError> {
    diff::parse_diff(patch).map_err(|source| ScopeError::Diff { path: path.to_owned(), source })
}
