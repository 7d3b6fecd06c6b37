//! Trees and blobs: what is in them, how two of them differ, and a copy of one on disk.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::process::Stdin;

use super::call::{Ask, pair};
use super::{Git, GitError, Oid, TreeId};
use crate::limits::GIT_OUTPUT_BYTES_MAX;

/// The name of a file in git, which may be any bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The name; what is not UTF-8 is shown with replacement characters.
    pub path: Utf8PathBuf,
    /// Whether that is the name itself.
    pub exact: bool,
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A file.
    File,
    /// A file that can be run.
    Program,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Submodule,
    /// Nothing: it is not there.
    Absent,
}

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// Its name; the last one, if it is gone.
    pub name: Name,
    /// Its name before, if it was renamed.
    pub from: Option<Name>,
    /// What it was.
    pub old_mode: Mode,
    /// What it is.
    pub new_mode: Mode,
    /// What was in it.
    pub old_blob: Oid,
    /// What is in it.
    pub new_blob: Oid,
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub mode: Mode,
    /// What is in it.
    pub blob: Oid,
}

/// What an attribute says of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The path.
    pub path: Utf8PathBuf,
    /// The attribute.
    pub name: String,
    /// `set`, `unset`, or what it is set to.
    pub value: String,
}

/// Most paths of one call. A path has a few thousand bytes at most, and a call takes a few million.
pub const PATHS_PER_CALL: usize = 200;

/// Options of every diff that is parsed: nothing of the user's taste, and no program of theirs. Whether a file is text is
/// decided by looking into it, not by an attribute.
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

impl Git {
    /// The tree without a file.
    pub async fn empty_tree(&self) -> Result<TreeId, GitError> {
        let args = ["hash-object", "-t", "tree", "--stdin"];
        let stdin = Stdin::Text(String::new());
        self.fine(Ask { stdin, ..Ask::new(&args) }).await?.oid().map(TreeId)
    }

    /// The files that differ between two trees, in the order of their names.
    pub async fn tree_changes(
        &self,
        from: &TreeId,
        to: &TreeId,
    ) -> Result<Vec<TreeChange>, GitError> {
        let (from, to) = (from.0.as_str(), to.0.as_str());
        let args = ["diff-tree", "-r", "-M", "-z", "--raw", "--no-abbrev", from, to];
        let answer = self.fine(Ask::new(&args)).await?;
        let changes = parse_raw(answer.bytes()?);
        changes.ok_or_else(|| answer.unclear("an entry of an unknown form"))
    }

    /// How these files differ between two trees, as a diff without renames.
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
        let environment = vec![pair("GIT_LITERAL_PATHSPECS", "1")];
        let settings = vec!["diff.suppressBlankEmpty=false".to_owned()];
        // A path is relative to the folder it is asked from.
        let at_top = Git { dir: self.top().await?, ..self.clone() };
        let answer = at_top.fine(Ask { environment, settings, ..Ask::new(&args) }).await?;
        answer.bytes().map(<[u8]>::to_vec)
    }

    /// How two blobs differ, as a diff.
    pub async fn patch_of_blobs(&self, old: &Oid, new: &Oid) -> Result<Vec<u8>, GitError> {
        let mut args = vec!["diff"];
        args.extend(PATCH);
        args.extend([old.as_str(), new.as_str()]);
        let settings = vec!["diff.suppressBlankEmpty=false".to_owned()];
        let answer = self.fine(Ask { settings, ..Ask::new(&args) }).await?;
        answer.bytes().map(<[u8]>::to_vec)
    }

    /// All files of a tree.
    pub async fn tree_entries(&self, tree: &TreeId) -> Result<Vec<TreeEntry>, GitError> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree.0.as_str()];
        let answer = self.fine(Ask::new(&args)).await?;
        let entries = answer.bytes()?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let entries: Option<Vec<_>> = entries.map(parse_entry).collect();
        entries.ok_or_else(|| answer.unclear("an entry of an unknown form"))
    }

    /// The files at these paths of a tree, and those right in the folders whose paths end with a slash.
    pub async fn entries_at(
        &self,
        tree: &TreeId,
        paths: &[&Utf8Path],
    ) -> Result<Vec<TreeEntry>, GitError> {
        let mut found = Vec::new();
        for paths in paths.chunks(PATHS_PER_CALL) {
            let mut args = vec!["ls-tree", "-z", "--full-tree", tree.0.as_str()];
            args.extend(paths.iter().map(|path| path.as_str()));
            let answer = self.fine(Ask::new(&args)).await?;
            let entries = answer.bytes()?.split(|byte| *byte == 0);
            // Folders are no files.
            found.extend(entries.filter_map(parse_entry));
        }
        Ok(found)
    }

    /// How large objects are, in the order they were asked for: an object, or `commit:path`. `None` where there is no
    /// such file.
    pub async fn sizes(&self, objects: &[String]) -> Result<Vec<Option<(Oid, u64)>>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let args = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"];
        // A line break would make two questions of one.
        let question = |object: &String| match object.contains(['\n', '\r', '\0']) {
            true => "?\n".to_owned(),
            false => format!("{object}\n"),
        };
        let stdin = Stdin::Text(objects.iter().map(question).collect());
        let answer = self.fine(Ask { stdin, ..Ask::new(&args) }).await?;
        let text = answer.text()?;
        let sizes: Vec<_> = text.split('\n').map(parse_size).collect();
        match sizes.len() == objects.len() {
            true => Ok(sizes),
            false => Err(answer.unclear("another number of lines")),
        }
    }

    /// What is in these blobs, whose sizes are known. Blobs that are asked for twice are read once.
    pub async fn blobs(&self, wanted: &[(Oid, u64)]) -> Result<BTreeMap<Oid, Vec<u8>>, GitError> {
        let wanted: BTreeMap<&Oid, u64> = wanted.iter().map(|(oid, size)| (oid, *size)).collect();
        let mut found = BTreeMap::new();
        let mut batch: Vec<&Oid> = Vec::new();
        let mut bytes = 0;
        for (oid, size) in wanted {
            if bytes + size > GIT_OUTPUT_BYTES_MAX as u64 / 2 && !batch.is_empty() {
                self.batch(&batch, &mut found).await?;
                batch.clear();
                bytes = 0;
            }
            batch.push(oid);
            bytes += size;
        }
        self.batch(&batch, &mut found).await?;
        Ok(found)
    }

    async fn batch(
        &self,
        oids: &[&Oid],
        found: &mut BTreeMap<Oid, Vec<u8>>,
    ) -> Result<(), GitError> {
        if oids.is_empty() {
            return Ok(());
        }
        let stdin = Stdin::Text(oids.iter().map(|oid| format!("{oid}\n")).collect());
        let answer = self.fine(Ask { stdin, ..Ask::new(&["cat-file", "--batch"]) }).await?;
        let blobs = parse_batch(answer.bytes()?);
        found.extend(blobs.ok_or_else(|| answer.unclear("an object of an unknown form"))?);
        Ok(())
    }

    /// What is in the index now, as a tree. The index is not touched; one with conflicts has no tree.
    pub async fn tree_of_index(&self) -> Result<TreeId, GitError> {
        let (_keep, index) = self.index_copy().await?;
        let environment = vec![pair("GIT_INDEX_FILE", index.as_str())];
        self.fine(Ask { environment, ..Ask::new(&["write-tree"]) }).await?.oid().map(TreeId)
    }

    /// Writes the files of a tree into a folder. Symbolic links become files with the name of their target, so that
    /// none of them leads out of it, and large files that are kept elsewhere are not fetched.
    pub async fn export(&self, tree: &TreeId, into: &Utf8Path) -> Result<(), GitError> {
        let git_dir = self.git_dir().await?;
        let io = |source| GitError::Io { path: git_dir.clone(), source };
        let keep =
            tempfile::Builder::new().prefix("repertoire-").tempdir_in(&git_dir).map_err(io)?;
        let index = keep.path().join("index");
        let environment = vec![
            pair("GIT_INDEX_FILE", &index.to_string_lossy()),
            pair("GIT_LFS_SKIP_SMUDGE", "1"),
        ];
        let settings = vec!["core.symlinks=false".to_owned()];
        let at_top = Git { dir: self.top().await?, ..self.clone() };
        let prefix = format!("--prefix={into}/");
        let calls: [&[&str]; 2] =
            [&["read-tree", tree.0.as_str()], &["checkout-index", "--all", "--quiet", &prefix]];
        for args in calls {
            let (environment, settings) = (environment.clone(), settings.clone());
            let reach = vec![into.to_owned()];
            at_top.fine(Ask { environment, settings, reach, ..Ask::new(args) }).await?;
        }
        Ok(())
    }

    /// What attributes say of paths: those of a tree, or those on disk. What says nothing is left out.
    pub async fn attributes(
        &self,
        source: Option<&TreeId>,
        names: &[&str],
        paths: &[&Utf8Path],
    ) -> Result<Vec<Attribute>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let source = source.map(|tree| format!("--source={}", tree.0));
        let mut args = vec!["check-attr", "-z", "--stdin"];
        args.extend(source.as_deref());
        args.extend(names);
        let stdin = Stdin::Text(paths.iter().map(|path| format!("{path}\0")).collect());
        let at_top = Git { dir: self.top().await?, ..self.clone() };
        let answer = at_top.fine(Ask { stdin, ..Ask::new(&args) }).await?;
        let text = String::from_utf8_lossy(answer.bytes()?).into_owned();
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        let said = fields.chunks_exact(3).filter(|fields| fields[2] != "unspecified");
        let attribute = |fields: &[&str]| Attribute {
            path: fields[0].into(),
            name: fields[1].to_owned(),
            value: fields[2].to_owned(),
        };
        Ok(said.map(attribute).collect())
    }

    /// The names of all branches, those of other repositories as `origin/main`.
    pub async fn branches(&self) -> Result<Vec<String>, GitError> {
        let args = ["for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes"];
        let answer = self.fine(Ask::new(&args)).await?;
        let text = answer.text()?.into_owned();
        let name = |line: &str| {
            let name = line.strip_prefix("refs/heads/").or(line.strip_prefix("refs/remotes/"))?;
            (!name.ends_with("/HEAD")).then(|| name.to_owned())
        };
        Ok(text.lines().filter_map(name).collect())
    }

    /// What a commit builds on, the branch that it was made on first.
    pub async fn parents(&self, commit: &Oid) -> Result<Vec<Oid>, GitError> {
        let args = ["rev-list", "--parents", "--max-count=1", commit.as_str()];
        let answer = self.fine(Ask::new(&args)).await?;
        let text = answer.text()?;
        let oids: Option<Vec<Oid>> = text.split_whitespace().skip(1).map(Oid::parse).collect();
        oids.ok_or_else(|| answer.unclear(&text))
    }

    /// Whether the history ends somewhere because no more of it was fetched.
    pub async fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(self.line(&["rev-parse", "--is-shallow-repository"]).await? == "true")
    }

    /// Whether a commit seems to be the first one only because what it builds on was not fetched.
    pub async fn is_cut_off(&self, commit: &Oid) -> Result<bool, GitError> {
        if !self.is_shallow().await? || !self.parents(commit).await?.is_empty() {
            return Ok(false);
        }
        // The commit itself still names its parents.
        let answer = self.fine(Ask::new(&["cat-file", "commit", commit.as_str()])).await?;
        let text = answer.text()?;
        let mut head = text.lines().take_while(|line| !line.is_empty());
        Ok(head.any(|line| line.starts_with("parent ")))
    }
}

fn name_of(bytes: &[u8]) -> Name {
    let path = String::from_utf8_lossy(bytes);
    Name { exact: matches!(path, std::borrow::Cow::Borrowed(_)), path: path.into_owned().into() }
}

pub(super) fn mode_of(text: &str) -> Option<Mode> {
    match text {
        "100644" | "100664" => Some(Mode::File),
        "100755" => Some(Mode::Program),
        "120000" => Some(Mode::Link),
        "160000" => Some(Mode::Submodule),
        "000000" => Some(Mode::Absent),
        _ => None,
    }
}

/// `:100644 100644 <old> <new> M\0path\0`, and two paths for a file that was renamed.
fn parse_raw(bytes: &[u8]) -> Option<Vec<TreeChange>> {
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(head) = parts.next().filter(|head| !head.is_empty()) {
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let mut fields = head.split(' ');
        let (old_mode, new_mode) = (mode_of(fields.next()?)?, mode_of(fields.next()?)?);
        let (old_blob, new_blob) = (Oid::parse(fields.next()?)?, Oid::parse(fields.next()?)?);
        let first = name_of(parts.next()?);
        let (name, from) = match fields.next()?.starts_with(['R', 'C']) {
            true => (name_of(parts.next()?), Some(first)),
            false => (first, None),
        };
        changes.push(TreeChange { name, from, old_mode, new_mode, old_blob, new_blob });
    }
    Some(changes)
}

/// `100644 blob <oid>\tpath`.
fn parse_entry(entry: &[u8]) -> Option<TreeEntry> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
    let mode = mode_of(fields.next()?)?;
    let blob = Oid::parse(fields.nth(1)?)?;
    Some(TreeEntry { name: name_of(&entry[tab + 1..]), mode, blob })
}

/// `<oid> blob <size>`; anything else is no file.
fn parse_size(line: &str) -> Option<(Oid, u64)> {
    let mut fields = line.split(' ');
    let oid = Oid::parse(fields.next()?)?;
    let (kind, size) = (fields.next()?, fields.next()?);
    (kind == "blob" && fields.next().is_none()).then(|| Some((oid, size.parse().ok()?)))?
}

/// `<oid> blob <size>\n<bytes>\n`, one after the other.
fn parse_batch(mut bytes: &[u8]) -> Option<Vec<(Oid, Vec<u8>)>> {
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
