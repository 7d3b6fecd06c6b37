//! Trees that combine files of two other trees, without a checkout.
//!
//! Paths are bytes here: a file whose name is not UTF-8 can be protected like any other, and must
//! not escape protection because its name cannot be decoded.

use repertoire_sandbox::process::Stdin;

use super::call::{Ask, pair};
use super::tree::mode_of;
use super::{Git, GitError, Mode, Oid, TreeId};

/// A file of a tree, with its exact path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    pub path: Vec<u8>,
    pub mode: Mode,
    pub oid: Oid,
}

/// A change to one path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Graft {
    Remove(Vec<u8>),
    Put(RawFile),
}

impl Git {
    /// Lists all files of a tree.
    pub async fn raw_files(&self, tree: &TreeId) -> Result<Vec<RawFile>, GitError> {
        let args = ["ls-tree", "-r", "-z", "--full-tree", tree.0.as_str()];
        let answer = self.fine(Ask::new(&args)).await?;
        let entries = answer.bytes()?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let files: Option<Vec<_>> = entries.map(parse).collect();
        files.ok_or_else(|| answer.unclear("an entry of an unknown form"))
    }

    /// Writes a tree with changes applied. Touches neither the index nor files.
    pub async fn grafted(&self, tree: &TreeId, grafts: &[Graft]) -> Result<TreeId, GitError> {
        let git_dir = self.git_dir().await?;
        let io = |source| GitError::Io { path: git_dir.clone(), source };
        let keep =
            tempfile::Builder::new().prefix("repertoire-").tempdir_in(&git_dir).map_err(io)?;
        let index = keep.path().join("index");
        let environment = || vec![pair("GIT_INDEX_FILE", &index.to_string_lossy())];
        let at_top = Git { dir: self.top().await?, ..self.clone() };
        let read = ["read-tree", tree.0.as_str()];
        at_top.fine(Ask { environment: environment(), ..Ask::new(&read) }).await?;
        if !grafts.is_empty() {
            let stdin = Stdin::Text(grafts.iter().map(|graft| line(graft, tree)).collect());
            let update = ["update-index", "--index-info"];
            at_top.fine(Ask { environment: environment(), stdin, ..Ask::new(&update) }).await?;
        }
        let write = ["write-tree"];
        at_top.fine(Ask { environment: environment(), ..Ask::new(&write) }).await?.oid().map(TreeId)
    }
}

/// Parses `100644 blob <oid>\tpath`.
fn parse(entry: &[u8]) -> Option<RawFile> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
    let mode = mode_of(fields.next()?)?;
    let oid = Oid::parse(fields.nth(1)?)?;
    Some(RawFile { path: entry[tab + 1..].to_vec(), mode, oid })
}

/// Formats an input line of `git update-index --index-info`.
fn line(graft: &Graft, tree: &TreeId) -> String {
    match graft {
        Graft::Remove(path) => {
            let none = "0".repeat(tree.0.as_str().len());
            format!("0 {none}\t{}\n", spelt(path))
        }
        Graft::Put(file) => {
            let mode = match file.mode {
                Mode::File | Mode::Absent => "100644",
                Mode::Program => "100755",
                Mode::Link => "120000",
                Mode::Submodule => "160000",
            };
            format!("{mode} {}\t{}\n", file.oid, spelt(&file.path))
        }
    }
}

/// Quotes a path the way git reads it; any byte can be represented.
fn spelt(path: &[u8]) -> String {
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
