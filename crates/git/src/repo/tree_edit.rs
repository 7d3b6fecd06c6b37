//! Trees that combine files of two other trees, without a checkout.
//!
//! Paths are bytes here: a file whose name is not UTF-8 can be protected like any other, and must
//! not escape protection because its name cannot be decoded.

use repertoire_sandbox::process::ProcessInput;

use super::call::{GitCall, owned_pair};
use super::tree::mode_of;
use super::{GitClient, GitError, GitObjectId, TreeEntryMode, TreeId};

/// A file of a tree, with its exact path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    pub path: Vec<u8>,
    pub mode: TreeEntryMode,
    pub oid: GitObjectId,
}

/// A change to one path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEdit {
    Remove(Vec<u8>),
    Put(RawFile),
}

impl GitClient {
    /// Lists all files of a tree.
    pub async fn raw_files(&self, tree: &TreeId) -> Result<Vec<RawFile>, GitError> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree.0.as_str()];
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let entries =
            answer.stdout_bytes()?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let files: Option<Vec<_>> = entries.map(parse_raw_file).collect();
        files.ok_or_else(|| answer.unclear_error("an entry of an unknown form"))
    }

    /// Writes a tree with changes applied. Touches neither the index nor files.
    pub async fn edit_tree(&self, tree: &TreeId, grafts: &[TreeEdit]) -> Result<TreeId, GitError> {
        let git_dir = self.git_dir().await?;
        let io = |source| GitError::Io { path: git_dir.clone(), source };
        let keep =
            tempfile::Builder::new().prefix("repertoire-").tempdir_in(&git_dir).map_err(io)?;
        let index = keep.path().join("index");
        let environment = || vec![owned_pair("GIT_INDEX_FILE", &index.to_string_lossy())];
        let at_top = GitClient { dir: self.work_tree_root().await?, ..self.clone() };
        let read = ["read-tree", tree.0.as_str()];
        at_top
            .run_checked_call(GitCall { environment: environment(), ..GitCall::new(&read) })
            .await?;
        if !grafts.is_empty() {
            let stdin = ProcessInput::Text(
                grafts.iter().map(|graft| index_info_line(graft, tree)).collect(),
            );
            let update = ["update-index", "--index-info"];
            at_top
                .run_checked_call(GitCall {
                    environment: environment(),
                    stdin,
                    ..GitCall::new(&update)
                })
                .await?;
        }
        let write = ["write-tree"];
        at_top
            .run_checked_call(GitCall { environment: environment(), ..GitCall::new(&write) })
            .await?
            .parse_oid()
            .map(TreeId)
    }
}

/// Parses `100644 blob <oid>\tpath`.
fn parse_raw_file(entry: &[u8]) -> Option<RawFile> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
    let mode = mode_of(fields.next()?)?;
    let oid = GitObjectId::parse(fields.nth(1)?)?;
    Some(RawFile { path: entry[tab + 1..].to_vec(), mode, oid })
}

/// Formats an input line of `git update-index --index-info`.
fn index_info_line(graft: &TreeEdit, tree: &TreeId) -> String {
    match graft {
        TreeEdit::Remove(path) => {
            let none = "0".repeat(tree.0.as_str().len());
            format!("0 {none}\t{}\n", quote_path(path))
        }
        TreeEdit::Put(file) => {
            let mode = match file.mode {
                TreeEntryMode::File | TreeEntryMode::Absent => "100644",
                TreeEntryMode::Program => "100755",
                TreeEntryMode::Link => "120000",
                TreeEntryMode::Submodule => "160000",
            };
            format!("{mode} {}\t{}\n", file.oid, quote_path(&file.path))
        }
    }
}

/// Quotes a path the way git reads it; any byte can be represented.
fn quote_path(path: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in path {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}
