//! A branch that is sent to a remote repository.
//!
//! An agent that worked in the repository may have written to its configuration: where `origin` is, what is put in the place
//! of which address, which program is asked for a password. A push therefore runs in an empty repository of its own, in a
//! private folder, which borrows the objects and nothing else, and the address is given by the caller. These are the only
//! calls that run outside the sandbox with the network, and no file of the agent's repository names a program to them. The
//! token is in the environment of that one process, never in its arguments, in the address, or in a file.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::call::{Ask, Confinement, pair};
use super::place::Place;
use super::walls::Access;
use super::{Git, GitError, Oid};
use crate::limits::GIT_SHALLOW_BYTES_MAX;

/// Where to push, and with what.
#[derive(Clone)]
pub struct Remote {
    /// The address, or a path.
    pub url: String,
    /// A header that is sent to that address only.
    pub header: Option<String>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Settings of every call to a remote.
const SETTINGS: &[&str] = &[
    // A header of ours is not taken along to another place.
    "http.followRedirects=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "transfer.credentialsInUrl=die",
];

impl Git {
    /// The commit that a branch of a remote repository is at; `None` if there is no such branch.
    pub async fn remote_tip(&self, remote: &Remote, branch: &str) -> Result<Option<Oid>, GitError> {
        self.check_branch_name(branch).await?;
        let name = format!("refs/heads/{branch}");
        let place = Borrowed::of(self).await?;
        let args = ["ls-remote", "--quiet", "--", &remote.url, &name];
        let answer = place.git.fine(place.ask(&args, remote)).await?;
        let text = answer.text()?;
        line_of(&text, &name)
            .map(|oid| Oid::parse(oid).ok_or_else(|| answer.unclear(oid)))
            .transpose()
    }

    /// The branches of a remote repository that begin with something.
    pub async fn remote_branches(
        &self,
        remote: &Remote,
        prefix: &str,
    ) -> Result<Vec<String>, GitError> {
        let pattern = format!("refs/heads/{prefix}*");
        let place = Borrowed::of(self).await?;
        let args = ["ls-remote", "--quiet", "--", &remote.url, &pattern];
        let answer = place.git.fine(place.ask(&args, remote)).await?;
        let text = answer.text()?;
        let names = text.lines().filter_map(|line| line.split_once('\t'));
        let names = names.filter_map(|(_, name)| name.strip_prefix("refs/heads/"));
        Ok(names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect())
    }

    /// Brings the commit that a name of a remote repository stands for, and says which it is. No name here changes.
    pub async fn fetch(&self, remote: &Remote, name: &str) -> Result<Oid, GitError> {
        let place = Borrowed::of(self).await?;
        let args = ["ls-remote", "--quiet", "--", &remote.url, name];
        let answer = place.git.fine(place.ask(&args, remote)).await?;
        let text = answer.text()?;
        let oid = line_of(&text, name).and_then(Oid::parse).ok_or_else(|| answer.unclear(&text))?;
        let spec = format!("{name}:{name}");
        let args =
            ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", &remote.url, &spec];
        place.git.fine(place.ask(&args, remote)).await?;
        // The objects are in the borrowed repository; they are handed over before it goes.
        let dir = place.dir.as_str();
        let args = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", dir, name];
        // The repository's configuration could put another address in the place of the folder.
        let environment = vec![pair("GIT_ALLOW_PROTOCOL", "file")];
        let reach = vec![place.dir.clone()];
        let confinement = Confinement::Repository(Access::Write);
        self.fine(Ask { environment, reach, confinement, ..Ask::new(&args) }).await?;
        Ok(oid)
    }

    /// Makes a branch of a remote repository, or moves it forward. It is never forced: what is there has to be an ancestor.
    pub async fn push(&self, remote: &Remote, commit: &Oid, branch: &str) -> Result<(), GitError> {
        self.check_branch_name(branch).await?;
        let spec = format!("{commit}:refs/heads/{branch}");
        let place = Borrowed::of(self).await?;
        let args = ["push", "--porcelain", "--no-verify", "--no-signed", "--", &remote.url, &spec];
        place.git.fine(place.ask(&args, remote)).await.map(drop)
    }
}

/// What `ls-remote` says of a name. Its patterns also match names that end in them.
fn line_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.find_map(|(oid, found)| (found == name).then_some(oid))
}

/// A repository that has another one's objects, and nothing else of it.
struct Borrowed {
    git: Git,
    dir: Utf8PathBuf,
    /// Deleted when this is dropped.
    _keep: tempfile::TempDir,
}

impl Borrowed {
    async fn of(git: &Git) -> Result<Self, GitError> {
        let common = git.common_dir().await?;
        let format = git.line(&["rev-parse", "--show-object-format"]).await?;
        let io = |path: &Utf8Path| {
            let path = path.to_owned();
            move |source| GitError::Io { path, source }
        };
        let keep = tempfile::tempdir().map_err(io(Utf8Path::new("a temporary folder")))?;
        let dir = Utf8PathBuf::from_path_buf(keep.path().to_owned())
            .map_err(|path| GitError::BadPath { path: path.display().to_string() })?;
        let bare = Place { top: None, git_dir: dir.clone(), common_dir: dir.clone() };
        let outside = Git { place: Some(Arc::new(bare)), ..git.in_dir(&dir) };
        let format = format!("--object-format={format}");
        let args = ["init", "--bare", "--quiet", "--template=", &format, "."];
        let confinement = Confinement::None;
        outside.fine(Ask { environment: hermetic(), confinement, ..Ask::new(&args) }).await?;
        let alternates = dir.join("objects/info/alternates");
        let objects = format!("{}\n", common.join("objects"));
        let written = repertoire_text::fs::write_atomic(&alternates, objects.as_bytes());
        written.map_err(io(&alternates))?;
        // A checkout without history says where it ends, or git would look for what came before.
        let shallow = common.join("shallow");
        if let Some(text) = shallow_commits(&shallow) {
            let written = repertoire_text::fs::write_atomic(&dir.join("shallow"), text.as_bytes());
            written.map_err(io(&shallow))?;
        }
        Ok(Borrowed { git: outside, dir, _keep: keep })
    }

    fn ask<'a>(&self, args: &'a [&'a str], remote: &Remote) -> Ask<'a> {
        let mut environment = hermetic();
        environment.push(pair("GIT_DIR", self.dir.as_str()));
        if let Some(header) = &remote.header {
            environment.push(pair("GIT_CONFIG_COUNT", "1"));
            let key = format!("http.{}.extraHeader", remote.url);
            environment.push(pair("GIT_CONFIG_KEY_0", &key));
            environment.push(pair("GIT_CONFIG_VALUE_0", header));
        }
        let settings = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
        Ask { environment, settings, confinement: Confinement::None, ..Ask::new(args) }
    }
}

/// The names of commits in a `shallow` file, and nothing else that somebody has put in its place.
fn shallow_commits(path: &Utf8Path) -> Option<String> {
    let text = repertoire_text::fs::read_text(path, GIT_SHALLOW_BYTES_MAX).ok()?;
    let commits = text.lines().filter(|line| Oid::parse(line).is_some());
    Some(commits.map(|line| format!("{line}\n")).collect())
}

/// No configuration of the user's either: it could put another address in the place of the one that is meant.
fn hermetic() -> Vec<(String, String)> {
    vec![pair("GIT_CONFIG_GLOBAL", "/dev/null")]
}
