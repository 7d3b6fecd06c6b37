//! Commits that the engine makes, and the state of the files as a tree.

use std::path::Path;

use camino::Utf8PathBuf;
use repertoire_sandbox::process::Stdin;
use repertoire_text::fs::is_beneath;

use super::call::{Ask, pair};
use super::{Git, GitError, Oid, TreeId};

/// Who wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Their name.
    pub name: String,
    /// Their address.
    pub email: String,
}

/// Who commits, and under which name if the user has not set one.
const IDENTITY: [(&str, &str); 2] =
    [("user.name", "Repertoire"), ("user.email", "repertoire@localhost")];

impl Git {
    /// Commits everything that is not ignored; `None` if nothing differs.
    pub async fn commit_all(
        &self,
        message: &str,
        author: Option<&Author>,
    ) -> Result<Option<Oid>, GitError> {
        check_message(message)?;
        self.stage_all(Vec::new()).await?;
        if self.yes(&["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"]).await? {
            return Ok(None);
        }
        let author = author.map(|author| format!("--author={} <{}>", author.name, author.email));
        let mut args = COMMIT.to_vec();
        args.extend(author.as_deref());
        let settings = self.identity().await?;
        self.fine(Ask { settings, stdin: Stdin::Text(message.to_owned()), ..Ask::new(&args) })
            .await?;
        self.head().await.map(Some)
    }

    /// Commits these paths as they are on disk and nothing else, whatever is staged; `None` if they do not differ.
    pub async fn commit_paths(
        &self,
        paths: &[String],
        message: &str,
    ) -> Result<Option<Oid>, GitError> {
        check_message(message)?;
        if let Some(path) = paths.iter().find(|path| !is_beneath(path.as_str().into())) {
            return Err(GitError::BadPath { path: path.clone() });
        }
        if paths.is_empty() {
            return Ok(None);
        }
        let top = self.top().await?;
        let at_top = Git { dir: top, ..self.clone() };
        let list = Stdin::Text(paths.iter().map(|path| format!("{path}\0")).collect());
        let literal = || vec![pair("GIT_LITERAL_PATHSPECS", "1")];
        let add = ["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let ask = Ask { stdin: list.clone(), environment: literal(), ..Ask::new(&add) };
        at_top.fine(ask).await?;
        // The list takes up the input, so that the message has to be an argument.
        let message = format!("--message={message}");
        let mut args: Vec<&str> = COMMIT.iter().copied().filter(|arg| *arg != "--file=-").collect();
        args.extend(["--only", "--pathspec-from-file=-", "--pathspec-file-nul", &message]);
        let (settings, environment) = (self.identity().await?, literal());
        let before = self.find("HEAD").await?;
        let ask = Ask { settings, environment, stdin: list, ..Ask::new(&args) };
        let answer = at_top.ask(ask, &mut |_| repertoire_sandbox::process::Flow::Continue).await?;
        // Errors end with 128, but for a path that git does not know. A filter may write anything to the same stream.
        let is_unknown_path =
            answer.stderr().lines().any(|line| line.starts_with("error: pathspec "));
        match answer.code {
            0 => self.head().await.map(Some),
            1 if self.find("HEAD").await? == before && !is_unknown_path => Ok(None),
            _ => Err(answer.failed()),
        }
    }

    /// What is on disk now, untracked files included and ignored ones not, as a tree. The index is not touched.
    pub async fn tree_of_work(&self) -> Result<TreeId, GitError> {
        let (_keep, index) = self.index_copy().await?;
        let environment = vec![pair("GIT_INDEX_FILE", index.as_str())];
        self.stage_all(environment.clone()).await?;
        let answer = self.fine(Ask { environment, ..Ask::new(&["write-tree"]) }).await?;
        answer.oid().map(TreeId)
    }

    /// A copy of the index that is gone with the folder it is in. With what git knows of times and sizes, only what has
    /// changed is read. No file is hidden by a flag in it.
    pub(super) async fn index_copy(&self) -> Result<(tempfile::TempDir, Utf8PathBuf), GitError> {
        let (keep, index) = self.plain_index_copy().await?;
        self.clear_flags(&index).await?;
        Ok((keep, index))
    }

    /// A copy of the index as it is.
    pub(super) async fn plain_index_copy(
        &self,
    ) -> Result<(tempfile::TempDir, Utf8PathBuf), GitError> {
        let git_dir = self.git_dir().await?;
        let io = |source| GitError::Io { path: git_dir.clone(), source };
        let keep =
            tempfile::Builder::new().prefix("repertoire-").tempdir_in(&git_dir).map_err(io)?;
        let index = keep.path().join("index");
        copy_index(git_dir.join("index").as_std_path(), &index).map_err(io)?;
        Ok((keep, index.to_string_lossy().into_owned().into()))
    }

    /// The tree of a commit.
    pub async fn tree_of(&self, commit: &Oid) -> Result<TreeId, GitError> {
        let tree = format!("{commit}^{{tree}}");
        let args = ["rev-parse", "--verify", "--end-of-options", &tree];
        self.fine(Ask::new(&args)).await?.oid().map(TreeId)
    }

    /// A commit of a tree. No branch is moved, and no file is touched.
    pub async fn commit_tree(
        &self,
        tree: &TreeId,
        parents: &[&Oid],
        message: &str,
    ) -> Result<Oid, GitError> {
        check_message(message)?;
        let mut args = vec!["commit-tree", "--no-gpg-sign", "-F", "-"];
        for parent in parents {
            args.extend(["-p", parent.as_str()]);
        }
        args.push(tree.0.as_str());
        let settings = self.identity().await?;
        let stdin = Stdin::Text(message.to_owned());
        self.fine(Ask { settings, stdin, ..Ask::new(&args) }).await?.oid()
    }

    /// The settings that say who commits: the user's, or a name for an account without one.
    async fn identity(&self) -> Result<Vec<String>, GitError> {
        let place = self.place()?;
        // Somebody may have set a name since the last commit.
        let surroundings = self.configuration(&place).await?;
        let setting = |(key, otherwise): (&str, &str)| {
            let value = surroundings.value(key).unwrap_or(otherwise);
            format!("{key}={value}")
        };
        Ok(IDENTITY.map(setting).to_vec())
    }
}

const COMMIT: &[&str] =
    &["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-"];

/// Copies an index with its time: git takes a file that is as young as the index for one that may have changed since, and
/// looks into it. A missing index is as good as an empty one.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = match std::fs::metadata(from).and_then(|metadata| metadata.modified()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        modified => modified?,
    };
    // A pipe in its place would never end.
    if !std::fs::symlink_metadata(from)?.is_file() {
        return Err(std::io::Error::other("the index is not a regular file"));
    }
    std::fs::copy(from, to)?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}

fn check_message(message: &str) -> Result<(), GitError> {
    match message.trim().is_empty() {
        true => Err(GitError::NoMessage),
        false => Ok(()),
    }
}
