//! The branch of a finished run, on GitHub: pushed, and a pull request opened for it.
//!
//! Nothing goes out that touches a protected path in any of its commits, nothing goes to a branch without the configured
//! prefix, and no branch is ever forced. The token is in the environment of the one process that pushes.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use crate::client::{Client, ClientError, NewPull, name};
use crate::comment::{Harmless, cut, harmless};
use repertoire_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use repertoire_checks::protected_files::is_protected;
use repertoire_git::repo::{Git, GitError, Oid, Remote};
use crate::limits::{PULL_BODY_CHARS_MAX, PULL_TITLE_CHARS_MAX};

/// What is to be published, and where.
#[derive(Debug)]
pub struct Publication<'a> {
    /// The repository with the commits.
    pub git: &'a Git,
    /// The service.
    pub client: &'a Client,
    /// Where git finds the repository: see [`remote_of`].
    pub remote: &'a Remote,
    /// What the names of our branches begin with.
    pub prefix: &'a str,
    /// The branch.
    pub branch: &'a str,
    /// Its commit.
    pub commit: &'a Oid,
    /// The branch that it shall go into.
    pub base: &'a str,
    /// The commit of that branch that the work began on.
    pub base_commit: &'a Oid,
}

/// A pull request, in words. They are made harmless before they are sent.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    /// What it does.
    pub title: &'a str,
    /// Lines of ours, sent as they are: what it belongs to, and how it was checked.
    pub ours: &'a str,
    /// What the agent says.
    pub theirs: &'a str,
    /// Whether it is opened as a draft.
    pub draft: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pushed {
    /// The branch.
    pub branch: String,
    /// The commit that it is at now.
    pub commit: String,
    /// Whether it was there already.
    pub was_there: bool,
}

/// A pull request that is open now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    /// Its number.
    pub number: u64,
    /// Where people see it.
    pub url: String,
    /// Whether it was opened just now.
    pub is_new: bool,
    /// Whether it is a draft.
    pub draft: bool,
}

/// Why a branch was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The name does not begin as ours do.
    #[error("the branch `{branch}` is not pushed: only those that begin with `{prefix}` are ours")]
    NotOurs {
        /// The branch.
        branch: String,
        /// The prefix.
        prefix: String,
    },
    /// It is one that others begin on.
    #[error("the branch `{branch}` is not pushed: it is {why}")]
    Guarded {
        /// The branch.
        branch: String,
        /// Why it is not ours to move.
        why: &'static str,
    },
    /// The change touches what agents do not change.
    #[error(
        "the branch `{branch}` is not pushed: it changes {}, which only people change; look at it, and push it yourself",
        shown(paths)
    )]
    Protected {
        /// The branch.
        branch: String,
        /// What it changes.
        paths: Vec<String>,
    },
    /// There is nothing to publish.
    #[error("the branch `{branch}` has no commit that `{base}` does not have")]
    Nothing {
        /// The branch.
        branch: String,
        /// The base branch.
        base: String,
    },
    /// The remote branch has commits of somebody else.
    #[error(
        "the branch `{branch}` is at {tip} on the remote, which is no ancestor of {commit}; somebody else pushed to it, and \
         nothing is forced"
    )]
    Taken {
        /// The branch.
        branch: String,
        /// Where it is.
        tip: String,
        /// Where it should have gone.
        commit: String,
    },
    /// Not an address that is pushed to.
    #[error("`{url}` is not an address that is pushed to: https, or a path on this machine")]
    BadRemote {
        /// The address.
        url: String,
    },
    /// The service said no.
    #[error(transparent)]
    Service(#[from] ClientError),
    /// git said no.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn shown(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(3);
    let mut out =
        paths.iter().take(3).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        out.push_str(&format!(" and {more} more"));
    }
    out
}

/// Where git finds a repository of a service (what Actions calls `GITHUB_SERVER_URL`), and what lets us in.
pub fn remote_of(server_url: &str, client: &Client) -> Result<Remote, PublishError> {
    let server = server_url.trim().trim_end_matches('/');
    let host = server.split_once("://").map(|(_, host)| host).unwrap_or_default();
    let local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        host == *name || host.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
    });
    let fine = server.starts_with("https://") || (server.starts_with("http://") && local);
    if !fine || host.is_empty() || host.contains(['@', '?', '#', ' ', '\\']) {
        let url = server.rsplit_once('@').map_or(server, |(_, rest)| rest).to_owned();
        return Err(PublishError::BadRemote { url });
    }
    let url = format!("{server}/{}.git", client.full_name());
    Ok(Remote { url, header: client.token().map(header) })
}

/// A token as git sends it to the service: a name that says nothing, and the token as the password.
pub fn as_sent(token: &Secret) -> Secret {
    let text = format!("x-access-token:{}", token.reveal().trim());
    Secret::new(BASE64_STANDARD.encode(text))
}

fn header(token: &Secret) -> String {
    format!("Authorization: Basic {}", as_sent(token).reveal())
}

/// Pushes the branch, if it may be.
pub async fn push(what: &Publication<'_>) -> Result<Pushed, PublishError> {
    check_name(what)?;
    check_content(what).await?;
    check_guards(what).await?;
    let (branch, commit) = (what.branch.to_owned(), what.commit.to_string());
    let scrub = |error| scrubbed(error, what);
    let tip = what.git.remote_tip(what.remote, what.branch).await.map_err(scrub)?;
    if tip.as_ref() == Some(what.commit) {
        return Ok(Pushed { branch, commit, was_there: true });
    }
    if let Some(tip) = &tip {
        // A commit that is not here at all is nobody's ancestor.
        let here = what.git.find(tip.as_str()).await?.is_some();
        if !here || !what.git.is_ancestor(tip, what.commit).await? {
            return Err(PublishError::Taken { branch, tip: tip.short().to_owned(), commit });
        }
    }
    what.git.push(what.remote, what.commit, what.branch).await.map_err(scrub)?;
    Ok(Pushed { branch, commit, was_there: false })
}

/// Opens a pull request for a branch that was pushed, or finds the one that is open.
pub async fn open(
    what: &Publication<'_>,
    words: &Words<'_>,
    rules: &Harmless<'_>,
) -> Result<Opened, PublishError> {
    check_name(what)?;
    let title = harmless(words.title, rules);
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = cut_line(&title);
    let theirs = harmless(words.theirs.trim(), rules);
    let room = PULL_BODY_CHARS_MAX.saturating_sub(words.ours.chars().count() + 2);
    let body = format!("{}\n\n{}", words.ours.trim(), cut(&theirs, room));
    let new = NewPull {
        title: &title,
        body: body.trim(),
        head: what.branch,
        base: what.base,
        draft: words.draft,
    };
    let (pull, is_new) = what.client.create_pull(&new).await?;
    Ok(Opened { number: pull.number, url: pull.html_url, is_new, draft: pull.draft })
}

fn cut_line(title: &str) -> String {
    match title.chars().count() > PULL_TITLE_CHARS_MAX {
        true => title.chars().take(PULL_TITLE_CHARS_MAX - 1).chain(['…']).collect(),
        false if title.is_empty() => "Work of an agent".to_owned(),
        false => title.to_owned(),
    }
}

fn check_name(what: &Publication<'_>) -> Result<(), PublishError> {
    name::branch(what.branch)?;
    let within = what.branch.strip_prefix(what.prefix).is_some_and(|rest| !rest.is_empty());
    if what.prefix.is_empty() || !within {
        let (branch, prefix) = (what.branch.to_owned(), what.prefix.to_owned());
        return Err(PublishError::NotOurs { branch, prefix });
    }
    guarded(what, what.branch.eq_ignore_ascii_case(what.base), "the base branch")
}

fn guarded(what: &Publication<'_>, holds: bool, why: &'static str) -> Result<(), PublishError> {
    match holds {
        true => Err(PublishError::Guarded { branch: what.branch.to_owned(), why }),
        false => Ok(()),
    }
}

/// Looks at every commit: one that adds a file and one that takes it away again leave no difference, but were both pushed.
async fn check_content(what: &Publication<'_>) -> Result<(), PublishError> {
    let range = format!("{}..{}", what.base_commit, what.commit);
    let commits = what.git.ok(&["rev-list", "--count", &range]).await?;
    if commits.trim_ascii() == b"0" {
        let (branch, base) = (what.branch.to_owned(), what.base.to_owned());
        return Err(PublishError::Nothing { branch, base });
    }
    // A merge is compared with each of its parents, wherever it stands.
    let args = ["log", "-m", "--no-renames", "--name-only", "-z", "--format=", &range, "--"];
    let mut touched = names(&what.git.ok(&args).await?);
    touched.retain(|path| is_protected(path));
    touched.sort();
    touched.dedup();
    match touched.is_empty() {
        true => Ok(()),
        false => Err(PublishError::Protected { branch: what.branch.to_owned(), paths: touched }),
    }
}

fn names(bytes: &[u8]) -> Vec<String> {
    let names = bytes.split(|byte| *byte == 0 || *byte == b'\n').filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Asks the service whether the branch is one that must not be moved. What it does not know is not guarded.
async fn check_guards(what: &Publication<'_>) -> Result<(), PublishError> {
    let info = what.client.repository_info().await?;
    guarded(what, info.default_branch == what.branch, "the default branch")?;
    match what.client.branch(what.branch).await {
        Ok(branch) => guarded(what, branch.protected, "protected"),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// git's words, without what lets us in.
fn scrubbed(error: GitError, what: &Publication<'_>) -> PublishError {
    let GitError::Failed { command, dir, code, said } = error else { return error.into() };
    let token = what.client.token();
    let secrets: Vec<Secret> = token.cloned().into_iter().chain(token.map(as_sent)).collect();
    let said = secrets.iter().fold(said, |said, secret| secret.scrub(&said));
    GitError::Failed { command, dir, code, said }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Settings;

    fn client() -> Client {
        let token = Some(Secret::new("ghs_secret_token"));
        Client::new(Settings::new("http://127.0.0.1:9", token, "octo", "repo")).unwrap()
    }

    #[test]
    fn the_address_has_no_secret_and_the_header_has() {
        let remote = remote_of("https://github.example/", &client()).unwrap();
        assert_eq!(remote.url, "https://github.example/octo/repo.git");
        let header = remote.header.clone().unwrap();
        assert_eq!(header, "Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldF90b2tlbg==");
        assert!(!format!("{remote:?}").contains("eC1h"));
    }

    #[test]
    fn only_https_or_this_machine_is_pushed_to() {
        for url in ["http://127.0.0.1:80", "http://localhost", "https://h"] {
            assert!(remote_of(url, &client()).is_ok(), "{url}");
        }
        for url in [
            "http://github.com",
            "http://127.0.0.1.evil.example",
            "https://",
            "ext::sh -c x",
            "",
            "https://user:pw@h",
            "git@github.com",
            "file:///etc",
        ] {
            assert!(remote_of(url, &client()).is_err(), "{url}");
        }
    }

    #[test]
    fn a_title_is_one_line_of_some_length() {
        assert_eq!(cut_line(""), "Work of an agent");
        assert_eq!(cut_line(&"x".repeat(500)).chars().count(), PULL_TITLE_CHARS_MAX);
    }
}
