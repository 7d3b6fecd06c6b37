//! Communication with remote repositories: push, fetch and listing branches.
//!
//! An agent that worked in the repository may have changed its configuration: the URL of `origin`,
//! URL rewriting, the program that asks for a password. So these calls run in an empty temporary
//! repository that borrows only the objects, with a URL given by the caller. They are the only ones
//! that run outside the sandbox and with network, and no file of the agent's repository can make
//! them run a program. The token is in the environment of that one process, never in its arguments,
//! in the URL, or in a file.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::call::{CallConfinement, GitCall, owned_pair};
use super::confinement::RepositoryAccess;
use super::repository_dirs::RepositoryDirs;
use super::{GitClient, GitError, GitObjectId};
use crate::limits::GIT_SHALLOW_BYTES_MAX;

#[derive(Clone)]
pub struct GitRemote {
    /// A URL or a path.
    pub url: String,
    /// An HTTP header, such as an authorization, that is sent to this URL only.
    pub header: Option<String>,
}

impl std::fmt::Debug for GitRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Settings of every call to a remote.
const SETTINGS: &[&str] = &[
    // A redirect would send our header to another host.
    "http.followRedirects=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "transfer.credentialsInUrl=die",
];

impl GitClient {
    /// The commit of a remote branch; `None` if there is no such branch.
    pub async fn remote_tip(
        &self,
        remote: &GitRemote,
        branch: &str,
    ) -> Result<Option<GitObjectId>, GitError> {
        self.check_branch_name(branch).await?;
        let name = format!("refs/heads/{branch}");
        let place = BorrowingRepository::create_from(self).await?;
        let args = ["ls-remote", "--quiet", "--", &remote.url, &name];
        let answer = place.git.run_checked_call(place.remote_call(&args, remote)).await?;
        let text = answer.stdout_text()?;
        find_ref(&text, &name)
            .map(|oid| GitObjectId::parse(oid).ok_or_else(|| answer.unclear_error(oid)))
            .transpose()
    }

    /// The branches of a remote repository whose names start with `prefix`.
    pub async fn remote_branches(
        &self,
        remote: &GitRemote,
        prefix: &str,
    ) -> Result<Vec<String>, GitError> {
        let pattern = format!("refs/heads/{prefix}*");
        let place = BorrowingRepository::create_from(self).await?;
        let args = ["ls-remote", "--quiet", "--", &remote.url, &pattern];
        let answer = place.git.run_checked_call(place.remote_call(&args, remote)).await?;
        let text = answer.stdout_text()?;
        let names = text.lines().filter_map(|line| line.split_once('\t'));
        let names = names.filter_map(|(_, name)| name.strip_prefix("refs/heads/"));
        Ok(names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect())
    }

    /// Fetches the commit of a remote ref and returns its name. Changes no local ref.
    pub async fn fetch(&self, remote: &GitRemote, name: &str) -> Result<GitObjectId, GitError> {
        let place = BorrowingRepository::create_from(self).await?;
        let args = ["ls-remote", "--quiet", "--", &remote.url, name];
        let answer = place.git.run_checked_call(place.remote_call(&args, remote)).await?;
        let text = answer.stdout_text()?;
        let oid = find_ref(&text, name)
            .and_then(GitObjectId::parse)
            .ok_or_else(|| answer.unclear_error(&text))?;
        let spec = format!("{name}:{name}");
        let args =
            ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", &remote.url, &spec];
        place.git.run_checked_call(place.remote_call(&args, remote)).await?;
        // The objects are in the temporary repository. Copy them before it is deleted.
        let dir = place.dir.as_str();
        let args = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", dir, name];
        // The repository's configuration could rewrite the path to a URL.
        let environment = vec![owned_pair("GIT_ALLOW_PROTOCOL", "file")];
        let reach = vec![place.dir.clone()];
        let confinement = CallConfinement::Repository(RepositoryAccess::Write);
        self.run_checked_call(GitCall { environment, reach, confinement, ..GitCall::new(&args) })
            .await?;
        Ok(oid)
    }

    /// Creates or fast-forwards a branch of a remote repository. Never forces.
    pub async fn push(
        &self,
        remote: &GitRemote,
        commit: &GitObjectId,
        branch: &str,
    ) -> Result<(), GitError> {
        self.check_branch_name(branch).await?;
        let spec = format!("{commit}:refs/heads/{branch}");
        let place = BorrowingRepository::create_from(self).await?;
        let args = ["push", "--porcelain", "--no-verify", "--no-signed", "--", &remote.url, &spec];
        place.git.run_checked_call(place.remote_call(&args, remote)).await.map(drop)
    }
}

/// Finds a ref in the output of `ls-remote`, whose patterns also match longer names with the same
/// ending.
fn find_ref<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.find_map(|(oid, found)| (found == name).then_some(oid))
}

/// A temporary repository that borrows the objects of another one, and nothing else.
struct BorrowingRepository {
    git: GitClient,
    dir: Utf8PathBuf,
    /// Deleted when this is dropped.
    _keep: tempfile::TempDir,
}

impl BorrowingRepository {
    async fn create_from(git: &GitClient) -> Result<Self, GitError> {
        let common = git.common_dir().await?;
        let format = git.run_for_line(&["rev-parse", "--show-object-format"]).await?;
        let keep = tempfile::tempdir().map_err(io_error(Utf8Path::new("a temporary folder")))?;
        let dir = Utf8PathBuf::from_path_buf(keep.path().to_owned())
            .map_err(|path| GitError::BadPath { path: path.display().to_string() })?;
        let bare = RepositoryDirs { top: None, git_dir: dir.clone(), common_dir: dir.clone() };
        let outside = GitClient { place: Some(Arc::new(bare)), ..git.in_dir(&dir) };
        let format = format!("--object-format={format}");
        let args = ["init", "--bare", "--quiet", "--template=", &format, "."];
        let confinement = CallConfinement::None;
        outside
            .run_checked_call(GitCall {
                environment: hermetic_environment(),
                confinement,
                ..GitCall::new(&args)
            })
            .await?;
        let alternates = dir.join("objects/info/alternates");
        let objects = format!("{}\n", common.join("objects"));
        let written = repertoire_text::fs::write_atomic(&alternates, objects.as_bytes());
        written.map_err(io_error(&alternates))?;
        // A shallow clone lists where its history ends. Without that list, git would look for the
        // missing parents.
        let shallow = common.join("shallow");
        if let Some(text) = shallow_commits(&shallow) {
            let written = repertoire_text::fs::write_atomic(&dir.join("shallow"), text.as_bytes());
            written.map_err(io_error(&shallow))?;
        }
        Ok(BorrowingRepository { git: outside, dir, _keep: keep })
    }

    fn remote_call<'a>(&self, args: &'a [&'a str], remote: &GitRemote) -> GitCall<'a> {
        let mut environment = hermetic_environment();
        environment.push(owned_pair("GIT_DIR", self.dir.as_str()));
        if let Some(header) = &remote.header {
            environment.push(owned_pair("GIT_CONFIG_COUNT", "1"));
            let key = format!("http.{}.extraHeader", remote.url);
            environment.push(owned_pair("GIT_CONFIG_KEY_0", &key));
            environment.push(owned_pair("GIT_CONFIG_VALUE_0", header));
        }
        let settings = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
        GitCall { environment, settings, confinement: CallConfinement::None, ..GitCall::new(args) }
    }
}

fn io_error(path: &Utf8Path) -> impl FnOnce(std::io::Error) -> GitError {
    let path = path.to_owned();
    move |source| GitError::Io { path, source }
}

/// Reads the commit names in a `shallow` file, and ignores any other content.
fn shallow_commits(path: &Utf8Path) -> Option<String> {
    let text = repertoire_text::fs::read_text(path, GIT_SHALLOW_BYTES_MAX).ok()?;
    let commits = text.lines().filter(|line| GitObjectId::parse(line).is_some());
    Some(commits.map(|line| format!("{line}\n")).collect())
}

/// Disables the user's configuration as well, since it could rewrite the URL.
fn hermetic_environment() -> Vec<(String, String)> {
    vec![owned_pair("GIT_CONFIG_GLOBAL", "/dev/null")]
}
