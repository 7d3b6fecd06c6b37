//! Publishes the branch of a finished run on GitHub: pushes it and opens a pull request.
//!
//! A branch is not pushed if any of its commits touches a protected path, or if its name lacks the
//! configured prefix. Nothing is ever force-pushed. The token is only in the environment of the
//! process that pushes.

use crate::client::{ClientError, GitHubClient, NewPull, name};
use crate::comment::{NeutraliseRules, neutralise_text, truncate_markdown};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use repertoire_model::ApiSecret;
use repertoire_text::layout::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{PULL_BODY_CHARS_MAX, PULL_TITLE_CHARS_MAX};
use repertoire_checks::protected_files::is_protected;
use repertoire_git::repo::{GitClient, GitError, GitObjectId, GitRemote};

/// The branch to publish, and its destination.
#[derive(Debug)]
pub struct BranchPublication<'a> {
    /// The local repository with the commits.
    pub git: &'a GitClient,
    pub client: &'a GitHubClient,
    /// The remote repository: see [`remote_of`].
    pub remote: &'a GitRemote,
    /// The prefix of the bot's branches.
    pub prefix: &'a str,
    pub branch: &'a str,
    /// The commit of the branch.
    pub commit: &'a GitObjectId,
    /// The base branch.
    pub base: &'a str,
    /// The commit of the base branch on which the work started.
    pub base_commit: &'a GitObjectId,
}

/// The text of a pull request. It is neutralised before it is sent.
#[derive(Clone, Debug)]
pub struct PullText<'a> {
    pub title: &'a str,
    /// Our own lines, sent unchanged: the issue it belongs to, and how it was checked.
    pub ours: &'a str,
    /// The text of the agent.
    pub theirs: &'a str,
    pub draft: bool,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushedBranch {
    /// The name of the branch.
    pub branch: String,
    /// The current commit of the branch.
    pub commit: String,
    /// True if the branch was already at this commit.
    pub was_there: bool,
}

/// An open pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenedPull {
    /// The number of the pull request.
    pub number: u64,
    /// The URL of its page.
    pub url: String,
    /// True if it was opened just now.
    pub is_new: bool,
    /// True if it is a draft.
    pub draft: bool,
}

/// The reason a branch was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The name lacks the prefix of the bot's branches.
    #[error("the branch `{branch}` is not pushed: only those that begin with `{prefix}` are ours")]
    NotOurs { branch: String, prefix: String },
    /// The branch is the base, the default or a protected branch.
    #[error("the branch `{branch}` is not pushed: it is {why}")]
    Guarded { branch: String, why: &'static str },
    /// The branch changes protected paths.
    #[error(
        "the branch `{branch}` is not pushed: it changes {}, which only people change; look at it, and push it yourself",
        list_paths(paths)
    )]
    Protected {
        branch: String,
        /// The protected paths that it changes.
        paths: Vec<String>,
    },
    /// The branch has no commits of its own.
    #[error("the branch `{branch}` has no commit that `{base}` does not have")]
    Nothing { branch: String, base: String },
    /// The remote branch has commits of another author.
    #[error(
        "the branch `{branch}` is at {tip} on the remote, which is no ancestor of {commit}; somebody else pushed to it, and \
         nothing is forced"
    )]
    Taken {
        branch: String,
        /// The commit of the remote branch.
        tip: String,
        /// The commit that was to be pushed.
        commit: String,
    },
    /// The URL is not allowed as a push destination.
    #[error("`{url}` is not an address that is pushed to: https, or a path on this machine")]
    BadRemote { url: String },
    #[error(transparent)]
    Service(#[from] ClientError),
    #[error(transparent)]
    Git(#[from] GitError),
}

fn list_paths(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(3);
    let mut out =
        paths.iter().take(3).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        out.push_str(&format!(" and {more} more"));
    }
    out
}

/// Returns the remote of a repository on a server (in Actions `GITHUB_SERVER_URL`), with the
/// authentication header.
pub fn remote_of(server_url: &str, client: &GitHubClient) -> Result<GitRemote, PublishError> {
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
    Ok(GitRemote { url, header: client.token().map(authorization_header) })
}

/// Returns a token as git sends it: with a fixed user name, and the token as the password.
pub fn encode_token(token: &ApiSecret) -> ApiSecret {
    let text = format!("x-access-token:{}", token.reveal().trim());
    ApiSecret::new(BASE64_STANDARD.encode(text))
}

fn authorization_header(token: &ApiSecret) -> String {
    format!("Authorization: Basic {}", encode_token(token).reveal())
}

/// Pushes the branch, if that is allowed.
pub async fn push_branch(what: &BranchPublication<'_>) -> Result<PushedBranch, PublishError> {
    check_name(what)?;
    check_content(what).await?;
    check_guards(what).await?;
    let (branch, commit) = (what.branch.to_owned(), what.commit.to_string());
    let scrub = |error| scrub_error(error, what);
    let tip = what.git.remote_tip(what.remote, what.branch).await.map_err(scrub)?;
    if tip.as_ref() == Some(what.commit) {
        return Ok(PushedBranch { branch, commit, was_there: true });
    }
    if let Some(tip) = &tip {
        // A remote commit that does not exist locally cannot be an ancestor.
        let here = what.git.find_commit(tip.as_str()).await?.is_some();
        if !here || !what.git.is_ancestor(tip, what.commit).await? {
            return Err(PublishError::Taken { branch, tip: tip.short().to_owned(), commit });
        }
    }
    what.git.push(what.remote, what.commit, what.branch).await.map_err(scrub)?;
    Ok(PushedBranch { branch, commit, was_there: false })
}

/// Opens a pull request for a pushed branch, or returns the one that is open.
pub async fn open_pull(
    what: &BranchPublication<'_>,
    words: &PullText<'_>,
    rules: &NeutraliseRules<'_>,
) -> Result<OpenedPull, PublishError> {
    check_name(what)?;
    let title = neutralise_text(words.title, rules);
    let title = one_line(&title);
    let title = cut_line(&title);
    let theirs = neutralise_text(words.theirs.trim(), rules);
    let room = PULL_BODY_CHARS_MAX.saturating_sub(words.ours.chars().count() + 2);
    let body = format!("{}\n\n{}", words.ours.trim(), truncate_markdown(&theirs, room));
    let new = NewPull {
        title: &title,
        body: body.trim(),
        head: what.branch,
        base: what.base,
        draft: words.draft,
    };
    let (pull, is_new) = what.client.create_pull(&new).await?;
    Ok(OpenedPull { number: pull.number, url: pull.html_url, is_new, draft: pull.draft })
}

fn cut_line(title: &str) -> String {
    if title.chars().count() > PULL_TITLE_CHARS_MAX {
        title.chars().take(PULL_TITLE_CHARS_MAX - 1).chain(['…']).collect()
    } else if title.is_empty() {
        "Work of an agent".to_owned()
    } else {
        title.to_owned()
    }
}

fn check_name(what: &BranchPublication<'_>) -> Result<(), PublishError> {
    name::check_branch(what.branch)?;
    let within = what.branch.strip_prefix(what.prefix).is_some_and(|rest| !rest.is_empty());
    if what.prefix.is_empty() || !within {
        let (branch, prefix) = (what.branch.to_owned(), what.prefix.to_owned());
        return Err(PublishError::NotOurs { branch, prefix });
    }
    refuse_guarded(what, what.branch.eq_ignore_ascii_case(what.base), "the base branch")
}

fn refuse_guarded(
    what: &BranchPublication<'_>,
    holds: bool,
    why: &'static str,
) -> Result<(), PublishError> {
    if holds {
        return Err(PublishError::Guarded { branch: what.branch.to_owned(), why });
    }
    Ok(())
}

/// Checks every commit for protected paths. A commit that adds a file and one that removes it leave
/// no difference in the end, but both are pushed.
async fn check_content(what: &BranchPublication<'_>) -> Result<(), PublishError> {
    let range = format!("{}..{}", what.base_commit, what.commit);
    let commits = what.git.ok(&["rev-list", "--count", &range]).await?;
    if commits.trim_ascii() == b"0" {
        let (branch, base) = (what.branch.to_owned(), what.base.to_owned());
        return Err(PublishError::Nothing { branch, base });
    }
    // `-m` compares a merge with each of its parents.
    let args = ["log", "-m", "--no-renames", "--name-only", "-z", "--format=", &range, "--"];
    let mut touched = split_names(&what.git.ok(&args).await?);
    touched.retain(|path| is_protected(path));
    touched.sort();
    touched.dedup();
    if !touched.is_empty() {
        return Err(PublishError::Protected { branch: what.branch.to_owned(), paths: touched });
    }
    Ok(())
}

fn split_names(bytes: &[u8]) -> Vec<String> {
    let names = bytes.split(|byte| *byte == 0 || *byte == b'\n').filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Asks GitHub whether the branch must not be moved. A branch that does not exist is not guarded.
async fn check_guards(what: &BranchPublication<'_>) -> Result<(), PublishError> {
    let info = what.client.get_repository().await?;
    refuse_guarded(what, info.default_branch == what.branch, "the default branch")?;
    match what.client.get_branch(what.branch).await {
        Ok(branch) => refuse_guarded(what, branch.protected, "protected"),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes the token from the output of git in an error.
fn scrub_error(error: GitError, what: &BranchPublication<'_>) -> PublishError {
    let GitError::Failed { command, dir, code, said } = error else { return error.into() };
    let token = what.client.token();
    let secrets: Vec<ApiSecret> =
        token.cloned().into_iter().chain(token.map(encode_token)).collect();
    let said = secrets.iter().fold(said, |said, secret| secret.scrub(&said));
    GitError::Failed { command, dir, code, said }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientSettings;

    fn client() -> GitHubClient {
        let token = Some(ApiSecret::new("ghs_secret_token"));
        GitHubClient::new(ClientSettings::new("http://127.0.0.1:9", token, "octo", "repo")).unwrap()
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
