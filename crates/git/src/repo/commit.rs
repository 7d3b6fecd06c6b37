//! Commits made by the engine, and the current files as a tree.

use std::path::Path;

use camino::Utf8PathBuf;
use repertoire_sandbox::process::ProcessInput;
use repertoire_text::fs::is_beneath;

use super::call::{GitCall, owned_pair};
use super::{GitClient, GitError, GitObjectId, TreeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitAuthor {
    pub name: String,
    pub email: String,
}

/// The committer if the user has not configured one.
const IDENTITY: [(&str, &str); 2] =
    [("user.name", "Repertoire"), ("user.email", "repertoire@localhost")];

impl GitClient {
    /// Commits all files that are not ignored; `None` if nothing has changed.
    pub async fn commit_all(
        &self,
        message: &str,
        author: Option<&CommitAuthor>,
    ) -> Result<Option<GitObjectId>, GitError> {
        check_message(message)?;
        self.stage_all(Vec::new()).await?;
        if self
            .run_for_bool(&["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"])
            .await?
        {
            return Ok(None);
        }
        let author = author.map(|author| format!("--author={} <{}>", author.name, author.email));
        let mut args = COMMIT.to_vec();
        args.extend(author.as_deref());
        let settings = self.identity_settings().await?;
        self.run_checked_call(GitCall {
            settings,
            stdin: ProcessInput::Text(message.to_owned()),
            ..GitCall::new(&args)
        })
        .await?;
        self.head_commit().await.map(Some)
    }

    /// Commits these paths as they are on disk, and nothing else, whatever is staged; `None` if
    /// they have not changed.
    pub async fn commit_paths(
        &self,
        paths: &[String],
        message: &str,
    ) -> Result<Option<GitObjectId>, GitError> {
        check_message(message)?;
        if let Some(path) = paths.iter().find(|path| !is_beneath(path.as_str().into())) {
            return Err(GitError::BadPath { path: path.clone() });
        }
        if paths.is_empty() {
            return Ok(None);
        }
        let top = self.work_tree_root().await?;
        let at_top = GitClient { dir: top, ..self.clone() };
        let list = ProcessInput::Text(paths.iter().map(|path| format!("{path}\0")).collect());
        let literal = || vec![owned_pair("GIT_LITERAL_PATHSPECS", "1")];
        let add = ["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let ask = GitCall { stdin: list.clone(), environment: literal(), ..GitCall::new(&add) };
        at_top.run_checked_call(ask).await?;
        // Standard input holds the paths, so the message has to be an argument.
        let message = format!("--message={message}");
        let mut args: Vec<&str> = COMMIT.iter().copied().filter(|arg| *arg != "--file=-").collect();
        args.extend(["--only", "--pathspec-from-file=-", "--pathspec-file-nul", &message]);
        let (settings, environment) = (self.identity_settings().await?, literal());
        let before = self.find_commit("HEAD").await?;
        let ask = GitCall { settings, environment, stdin: list, ..GitCall::new(&args) };
        let answer = at_top
            .run_call(ask, &mut |_| repertoire_sandbox::process::OutputFlow::Continue)
            .await?;
        // Git exits with 1 both if there is nothing to commit and for an unknown path, and with 128
        // for other errors. A filter may write anything to standard error, so look at the start of
        // each line.
        let is_unknown_path =
            answer.stderr_text().lines().any(|line| line.starts_with("error: pathspec "));
        match answer.code {
            0 => self.head_commit().await.map(Some),
            1 if self.find_commit("HEAD").await? == before && !is_unknown_path => Ok(None),
            _ => Err(answer.failure_error()),
        }
    }

    /// Writes the current files as a tree, including untracked and excluding ignored files. The
    /// index is not touched.
    pub async fn tree_of_work(&self) -> Result<TreeId, GitError> {
        let (_keep, index) = self.index_copy().await?;
        let environment = vec![owned_pair("GIT_INDEX_FILE", index.as_str())];
        self.stage_all(environment.clone()).await?;
        let answer =
            self.run_checked_call(GitCall { environment, ..GitCall::new(&["write-tree"]) }).await?;
        answer.parse_oid().map(TreeId)
    }

    /// A copy of the index in a temporary folder. Since it contains git's cached times and sizes,
    /// only changed files are read again. No flag hides a file in it.
    pub(super) async fn index_copy(&self) -> Result<(tempfile::TempDir, Utf8PathBuf), GitError> {
        let (keep, index) = self.plain_index_copy().await?;
        self.clear_flags(&index).await?;
        Ok((keep, index))
    }

    /// An unmodified copy of the index.
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
    pub async fn tree_of(&self, commit: &GitObjectId) -> Result<TreeId, GitError> {
        let tree = format!("{commit}^{{tree}}");
        let args = ["rev-parse", "--verify", "--end-of-options", &tree];
        self.run_checked_call(GitCall::new(&args)).await?.parse_oid().map(TreeId)
    }

    /// Creates a commit of a tree. Moves no branch and touches no file.
    pub async fn commit_tree(
        &self,
        tree: &TreeId,
        parents: &[&GitObjectId],
        message: &str,
    ) -> Result<GitObjectId, GitError> {
        check_message(message)?;
        let mut args = vec!["commit-tree", "--no-gpg-sign", "-F", "-"];
        for parent in parents {
            args.extend(["-p", parent.as_str()]);
        }
        args.push(tree.0.as_str());
        let settings = self.identity_settings().await?;
        let stdin = ProcessInput::Text(message.to_owned());
        self.run_checked_call(GitCall { settings, stdin, ..GitCall::new(&args) }).await?.parse_oid()
    }

    /// The settings for the committer's name: the user's, or defaults if there are none.
    async fn identity_settings(&self) -> Result<Vec<String>, GitError> {
        let place = self.repository_dirs()?;
        // Not from the cache: the user may have set a name since the last commit.
        let surroundings = self.read_config(&place).await?;
        let setting = |(key, otherwise): (&str, &str)| {
            let value = surroundings.effective_value(key).unwrap_or(otherwise);
            format!("{key}={value}")
        };
        Ok(IDENTITY.map(setting).to_vec())
    }
}

const COMMIT: &[&str] =
    &["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-"];

/// Copies an index with its modification time: git rereads every file that is as new as the index,
/// since it may have changed within the same clock tick. A missing index counts as empty.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = match std::fs::metadata(from).and_then(|metadata| metadata.modified()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        modified => modified?,
    };
    // Reading a named pipe would block for ever.
    if !std::fs::symlink_metadata(from)?.is_file() {
        return Err(std::io::Error::other("the index is not a regular file"));
    }
    std::fs::copy(from, to)?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}

fn check_message(message: &str) -> Result<(), GitError> {
    if message.trim().is_empty() { Err(GitError::NoMessage) } else { Ok(()) }
}
