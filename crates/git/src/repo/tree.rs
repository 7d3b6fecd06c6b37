//! Trees and blobs: reading and comparing them, and writing a tree to disk.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::ProcessInput;

use super::call::{GitCall, owned_pair};
use super::{GitClient, GitError, GitObjectId, TreeId};
use crate::limits::GIT_OUTPUT_BYTES_MAX;

/// A path in git, which may contain any bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreePath {
    /// The path, with replacement characters for bytes that are not UTF-8.
    pub path: Utf8PathBuf,
    /// True if `path` is exact, without replacement characters.
    pub exact: bool,
}

/// The type of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEntryMode {
    File,
    /// An executable file.
    Program,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Submodule,
    /// No entry, on one side of a comparison.
    Absent,
}

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// For a deleted file, the old name.
    pub name: TreePath,
    /// The previous name, if the file was renamed.
    pub from: Option<TreePath>,
    pub old_mode: TreeEntryMode,
    pub new_mode: TreeEntryMode,
    pub old_blob: GitObjectId,
    pub new_blob: GitObjectId,
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub name: TreePath,
    pub mode: TreeEntryMode,
    pub blob: GitObjectId,
}

/// The value of a git attribute for a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitAttribute {
    pub path: Utf8PathBuf,
    pub name: String,
    /// `set`, `unset`, or the assigned value.
    pub value: String,
}

/// Maximum number of paths per call. A path has at most a few thousand bytes, and a command line
/// can have about two million.
pub const PATHS_PER_CALL: usize = 200;

/// Options of every diff that is parsed: none of the user's preferences, and no external programs.
/// `--text`, since we detect binary files ourselves instead of trusting an attribute.
const PATCH: &[&str] = &[
    "--patch",
    "--text",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--unified=3",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--full-index",
    "--ws-error-highlight=none",
];

impl GitClient {
    /// The tree without files.
    pub async fn empty_tree(&self) -> Result<TreeId, GitError> {
        let args = ["hash-object", "-t", "tree", "--stdin"];
        let stdin = ProcessInput::Text(String::new());
        self.run_checked_call(GitCall { stdin, ..GitCall::new(&args) })
            .await?
            .parse_oid()
            .map(TreeId)
    }

    /// The files that differ between two trees, sorted by name.
    pub async fn tree_changes(
        &self,
        from: &TreeId,
        to: &TreeId,
    ) -> Result<Vec<TreeChange>, GitError> {
        let (from, to) = (from.0.as_str(), to.0.as_str());
        let args = ["diff-tree", "-r", "-M", "-z", "--raw", "--no-abbrev", from, to];
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let changes = parse_raw(answer.stdout_bytes()?);
        changes.ok_or_else(|| answer.unclear_error("an entry of an unknown form"))
    }

    /// The diff of these files between two trees, without rename detection.
    pub async fn patch_of(
        &self,
        from: &TreeId,
        to: &TreeId,
        paths: &[&Utf8Path],
    ) -> Result<Vec<u8>, GitError> {
        let mut args = vec!["diff-tree", "-r", "--no-renames"];
        args.extend(PATCH);
        args.extend([from.0.as_str(), to.0.as_str(), "--"]);
        args.extend(paths.iter().map(|path| path.as_str()));
        let environment = vec![owned_pair("GIT_LITERAL_PATHSPECS", "1")];
        let settings = vec!["diff.suppressBlankEmpty=false".to_owned()];
        // Pathspecs are relative to the working directory.
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let answer = at_top
            .run_checked_call(GitCall { environment, settings, ..GitCall::new(&args) })
            .await?;
        answer.stdout_bytes().map(<[u8]>::to_vec)
    }

    /// The diff of two blobs.
    pub async fn patch_of_blobs(
        &self,
        old: &GitObjectId,
        new: &GitObjectId,
    ) -> Result<Vec<u8>, GitError> {
        let mut args = vec!["diff"];
        args.extend(PATCH);
        args.extend([old.as_str(), new.as_str()]);
        let settings = vec!["diff.suppressBlankEmpty=false".to_owned()];
        let answer = self.run_checked_call(GitCall { settings, ..GitCall::new(&args) }).await?;
        answer.stdout_bytes().map(<[u8]>::to_vec)
    }

    /// Lists all files of a tree.
    pub async fn tree_entries(&self, tree: &TreeId) -> Result<Vec<TreeEntry>, GitError> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree.0.as_str()];
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let entries =
            answer.stdout_bytes()?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let entries: Option<Vec<_>> = entries.map(parse_entry).collect();
        entries.ok_or_else(|| answer.unclear_error("an entry of an unknown form"))
    }

    /// The files at these paths of a tree, and the direct children of folders whose paths end with
    /// a slash.
    pub async fn entries_at(
        &self,
        tree: &TreeId,
        paths: &[&Utf8Path],
    ) -> Result<Vec<TreeEntry>, GitError> {
        let mut found = Vec::new();
        for paths in paths.chunks(PATHS_PER_CALL) {
            let mut args = vec!["ls-tree", "-z", "--full-tree", tree.0.as_str()];
            args.extend(paths.iter().map(|path| path.as_str()));
            let answer = self.run_checked_call(GitCall::new(&args)).await?;
            let entries = answer.stdout_bytes()?.split(|byte| *byte == 0);
            // Subfolders do not parse as entries, and are skipped.
            found.extend(entries.filter_map(parse_entry));
        }
        Ok(found)
    }

    /// The names and sizes of objects, in the order of `objects`. An object is a name or
    /// `commit:path`; the result is `None` where there is no such file.
    pub async fn object_sizes(
        &self,
        objects: &[String],
    ) -> Result<Vec<Option<(GitObjectId, u64)>>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let args = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"];
        let stdin =
            ProcessInput::Text(objects.iter().map(String::as_str).map(size_request).collect());
        let answer = self.run_checked_call(GitCall { stdin, ..GitCall::new(&args) }).await?;
        let text = answer.stdout_text()?;
        let sizes: Vec<_> = text.split('\n').map(parse_size).collect();
        if sizes.len() == objects.len() {
            Ok(sizes)
        } else {
            Err(answer.unclear_error("another number of lines"))
        }
    }

    /// Reads blobs, given their sizes, which determine the batches. Duplicates are read once.
    pub async fn read_blobs(
        &self,
        wanted: &[(GitObjectId, u64)],
    ) -> Result<BTreeMap<GitObjectId, Vec<u8>>, GitError> {
        let wanted: BTreeMap<&GitObjectId, u64> =
            wanted.iter().map(|(oid, size)| (oid, *size)).collect();
        let mut found = BTreeMap::new();
        let mut batch: Vec<&GitObjectId> = Vec::new();
        let mut bytes = 0;
        for (oid, size) in wanted {
            if bytes + size > GIT_OUTPUT_BYTES_MAX as u64 / 2 && !batch.is_empty() {
                self.read_blob_batch(&batch, &mut found).await?;
                batch.clear();
                bytes = 0;
            }
            batch.push(oid);
            bytes += size;
        }
        self.read_blob_batch(&batch, &mut found).await?;
        Ok(found)
    }

    async fn read_blob_batch(
        &self,
        oids: &[&GitObjectId],
        found: &mut BTreeMap<GitObjectId, Vec<u8>>,
    ) -> Result<(), GitError> {
        if oids.is_empty() {
            return Ok(());
        }
        let stdin = ProcessInput::Text(oids.iter().map(|oid| format!("{oid}\n")).collect());
        let answer = self
            .run_checked_call(GitCall { stdin, ..GitCall::new(&["cat-file", "--batch"]) })
            .await?;
        let blobs = parse_batch(answer.stdout_bytes()?);
        found.extend(blobs.ok_or_else(|| answer.unclear_error("an object of an unknown form"))?);
        Ok(())
    }

    /// Writes the content of the index as a tree. The index is not touched. Fails if it has
    /// conflicts.
    pub async fn tree_of_index(&self) -> Result<TreeId, GitError> {
        let (_keep, index) = self.index_copy().await?;
        let environment = vec![owned_pair("GIT_INDEX_FILE", index.as_str())];
        self.run_checked_call(GitCall { environment, ..GitCall::new(&["write-tree"]) })
            .await?
            .parse_oid()
            .map(TreeId)
    }

    /// Writes the files of a tree into a folder. Symbolic links become files that contain their
    /// target, so that none leads out of the folder. Git LFS content is not downloaded.
    pub async fn export_tree(&self, tree: &TreeId, into: &Utf8Path) -> Result<(), GitError> {
        let git_dir = self.git_dir().await?;
        let io = |source| GitError::Io { path: git_dir.clone(), source };
        let keep =
            tempfile::Builder::new().prefix("repertoire-").tempdir_in(&git_dir).map_err(io)?;
        let index = keep.path().join("index");
        let environment = vec![
            owned_pair("GIT_INDEX_FILE", &index.to_string_lossy()),
            owned_pair("GIT_LFS_SKIP_SMUDGE", "1"),
        ];
        let settings = vec!["core.symlinks=false".to_owned()];
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let prefix = format!("--prefix={into}/");
        let calls: [&[&str]; 2] =
            [&["read-tree", tree.0.as_str()], &["checkout-index", "--all", "--quiet", &prefix]];
        for args in calls {
            let (environment, settings) = (environment.clone(), settings.clone());
            let reach = vec![into.to_owned()];
            at_top
                .run_checked_call(GitCall { environment, settings, reach, ..GitCall::new(args) })
                .await?;
        }
        Ok(())
    }

    /// The attributes of paths, from a tree or from disk. Unspecified attributes are left out.
    pub async fn read_attributes(
        &self,
        source: Option<&TreeId>,
        names: &[&str],
        paths: &[&Utf8Path],
    ) -> Result<Vec<GitAttribute>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let source = source.map(|tree| format!("--source={}", tree.0));
        let mut args = vec!["check-attr", "-z", "--stdin"];
        args.extend(source.as_deref());
        args.extend(names);
        let stdin = ProcessInput::Text(paths.iter().map(|path| format!("{path}\0")).collect());
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let answer = at_top.run_checked_call(GitCall { stdin, ..GitCall::new(&args) }).await?;
        let text = String::from_utf8_lossy(answer.stdout_bytes()?).into_owned();
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        let said = fields.chunks_exact(3).filter(|fields| fields[2] != "unspecified");
        Ok(said.map(parse_attribute).collect())
    }

    /// The names of all branches; remote-tracking ones as `origin/main`.
    pub async fn list_branches(&self) -> Result<Vec<String>, GitError> {
        let args = ["for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes"];
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let text = answer.stdout_text()?.into_owned();
        Ok(text.lines().filter_map(parse_branch).collect())
    }

    /// The parents of a commit, in their order.
    pub async fn parent_commits(&self, commit: &GitObjectId) -> Result<Vec<GitObjectId>, GitError> {
        let args = ["rev-list", "--parents", "--max-count=1", commit.as_str()];
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let text = answer.stdout_text()?;
        let oids: Option<Vec<GitObjectId>> =
            text.split_whitespace().skip(1).map(GitObjectId::parse).collect();
        oids.ok_or_else(|| answer.unclear_error(&text))
    }

    /// Returns true if the repository is a shallow clone.
    pub async fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(self.run_for_line(&["rev-parse", "--is-shallow-repository"]).await? == "true")
    }

    /// Returns true if a commit has parents that were not fetched.
    pub async fn is_cut_off(&self, commit: &GitObjectId) -> Result<bool, GitError> {
        if !self.is_shallow().await? || !self.parent_commits(commit).await?.is_empty() {
            return Ok(false);
        }
        // The commit object still names its parents.
        let answer =
            self.run_checked_call(GitCall::new(&["cat-file", "commit", commit.as_str()])).await?;
        let text = answer.stdout_text()?;
        let mut head = text.lines().take_while(|line| !line.is_empty());
        Ok(head.any(|line| line.starts_with("parent ")))
    }
}

/// An input line of `git cat-file --batch-check`. A line break in a name would make two requests of
/// one, so such a name becomes one that does not exist.
fn size_request(object: &str) -> String {
    if object.contains(['\n', '\r', '\0']) { "?\n".to_owned() } else { format!("{object}\n") }
}

fn parse_attribute(fields: &[&str]) -> GitAttribute {
    GitAttribute { path: fields[0].into(), name: fields[1].to_owned(), value: fields[2].to_owned() }
}

/// Shortens a full ref name; `None` for the symbolic `HEAD` of a remote.
fn parse_branch(line: &str) -> Option<String> {
    let name = line.strip_prefix("refs/heads/").or(line.strip_prefix("refs/remotes/"))?;
    (!name.ends_with("/HEAD")).then(|| name.to_owned())
}

fn name_of(bytes: &[u8]) -> TreePath {
    let path = String::from_utf8_lossy(bytes);
    TreePath {
        exact: matches!(path, std::borrow::Cow::Borrowed(_)),
        path: path.into_owned().into(),
    }
}

pub(super) fn mode_of(text: &str) -> Option<TreeEntryMode> {
    match text {
        "100644" | "100664" => Some(TreeEntryMode::File),
        "100755" => Some(TreeEntryMode::Program),
        "120000" => Some(TreeEntryMode::Link),
        "160000" => Some(TreeEntryMode::Submodule),
        "000000" => Some(TreeEntryMode::Absent),
        _ => None,
    }
}

/// Parses `:100644 100644 <old> <new> M\0path\0`, with two paths for a renamed file.
fn parse_raw(bytes: &[u8]) -> Option<Vec<TreeChange>> {
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(head) = parts.next().filter(|head| !head.is_empty()) {
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let mut fields = head.split(' ');
        let (old_mode, new_mode) = (mode_of(fields.next()?)?, mode_of(fields.next()?)?);
        let (old_blob, new_blob) =
            (GitObjectId::parse(fields.next()?)?, GitObjectId::parse(fields.next()?)?);
        let first = name_of(parts.next()?);
        let (name, from) = if fields.next()?.starts_with(['R', 'C']) {
            (name_of(parts.next()?), Some(first))
        } else {
            (first, None)
        };
        changes.push(TreeChange { name, from, old_mode, new_mode, old_blob, new_blob });
    }
    Some(changes)
}

/// Parses `100644 blob <oid>\tpath`.
fn parse_entry(entry: &[u8]) -> Option<TreeEntry> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
    let mode = mode_of(fields.next()?)?;
    let blob = GitObjectId::parse(fields.nth(1)?)?;
    Some(TreeEntry { name: name_of(&entry[tab + 1..]), mode, blob })
}

/// Parses `<oid> blob <size>`; `None` for anything else.
fn parse_size(line: &str) -> Option<(GitObjectId, u64)> {
    let mut fields = line.split(' ');
    let oid = GitObjectId::parse(fields.next()?)?;
    let (kind, size) = (fields.next()?, fields.next()?);
    (kind == "blob" && fields.next().is_none()).then(|| Some((oid, size.parse().ok()?)))?
}

/// Parses a sequence of `<oid> blob <size>\n<bytes>\n`.
fn parse_batch(mut bytes: &[u8]) -> Option<Vec<(GitObjectId, Vec<u8>)>> {
    let mut blobs = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (oid, size) = parse_size(std::str::from_utf8(&bytes[..end]).ok()?)?;
        let size = usize::try_from(size).ok()?;
        let rest = bytes.get(end + 1..)?;
        blobs.push((oid, rest.get(..size)?.to_vec()));
        bytes = rest.get(size + 1..)?;
    }
    Some(blobs)
}
