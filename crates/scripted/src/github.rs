//! A fake GitHub for tests: an HTTP server with one repository that supports the calls Repertoire
//! makes, and faults.
//!
//! ```
//! use repertoire_scripted::github::FakeGitHub;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let github = FakeGitHub::new("octo", "repo")
//!     .collaborator("ada", "write")
//!     .issue(31, "Search is empty", "It finds nothing.", "stranger")
//!     .label_by(31, "agent-task", "ada")
//!     .start()
//!     .await;
//! assert!(github.url().starts_with("http://127.0.0.1:"));
//! assert_eq!(github.labels(31), ["agent-task"]);
//! assert!(github.calls().is_empty());
//! # });
//! ```

use serde_json::{Value, json};

mod api_json;
mod fault;
mod git;
mod issues;
mod pulls;
mod reply;
mod repo;
mod routes;
mod server;
mod state;

pub use fault::{GitHubFault, GitHubFaultKind};
pub use server::{GitHubServer, RecordedCall};
pub use state::{
    FakeBranch, FakeCheck, FakeComment, FakeCommitStatus, FakeGitHubState, FakeIssue, FakePull,
    FakePullFile, FakePush, FakeReview, FakeReviewComment, TOKEN, fake_sha,
};

/// The builder of a fake GitHub server.
#[derive(Clone, Debug, Default)]
pub struct FakeGitHub {
    state: FakeGitHubState,
}

impl FakeGitHub {
    /// Creates a repository that is empty except for its default branch, `main`.
    pub fn new(owner: &str, name: &str) -> Self {
        let state = FakeGitHubState {
            owner: owner.to_owned(),
            name: name.to_owned(),
            ..FakeGitHubState::default()
        };
        FakeGitHub { state }.branch("main")
    }

    /// Continues from a saved state.
    pub fn from_state(state: FakeGitHubState) -> Self {
        FakeGitHub { state }
    }

    /// Starts the server on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot listen on 127.0.0.1.
    pub async fn start(self) -> GitHubServer {
        let started = GitHubServer::start_on(0, self.state, None).await;
        started.expect("a free port on 127.0.0.1")
    }

    /// Changes any other part of the state.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut FakeGitHubState)) -> Self {
        change(&mut self.state);
        self
    }

    /// Sets the accepted token, instead of [`TOKEN`].
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.with(|state| state.token = token.to_owned())
    }

    /// Makes the token a personal one of this user.
    #[must_use]
    pub fn token_of(self, login: &str) -> Self {
        self.with(|state| {
            state.login = login.to_owned();
            state.token_of_person = true;
        })
    }

    /// Sets the maximum number of items per page.
    #[must_use]
    pub fn page_size(self, size: usize) -> Self {
        self.with(|state| state.page_size = size)
    }

    /// Adds a user with a role: `admin`, `maintain`, `write`, `triage`, `read` or `none`.
    #[must_use]
    pub fn collaborator(self, login: &str, role: &str) -> Self {
        self.with(|state| {
            state.collaborators.insert(login.to_owned(), role.to_owned());
        })
    }

    /// Adds a user with read access.
    #[must_use]
    pub fn user(self, login: &str) -> Self {
        self.with(|state| {
            state.users.insert(login.to_owned());
        })
    }

    /// Adds an open issue.
    #[must_use]
    pub fn issue(self, number: u64, title: &str, body: &str, author: &str) -> Self {
        self.with(|state| {
            let issue = FakeIssue {
                title: title.to_owned(),
                body: body.to_owned(),
                author: author.to_owned(),
                created_at: state.next_time(),
                ..FakeIssue::default()
            };
            state.issues.insert(number, issue);
        })
    }

    #[must_use]
    pub fn closed(self, number: u64) -> Self {
        self.with(|state| {
            state.issues.entry(number).and_modify(|issue| issue.closed = true);
        })
    }

    /// Adds a label on behalf of the repository's owner.
    #[must_use]
    pub fn label(self, number: u64, label: &str) -> Self {
        let owner = self.state.owner.clone();
        self.label_by(number, label, &owner)
    }

    /// Adds a label on behalf of a user.
    #[must_use]
    pub fn label_by(self, number: u64, label: &str, actor: &str) -> Self {
        self.with(|state| state.add_label(number, label, actor))
    }

    /// Edits the body of an issue, now.
    #[must_use]
    pub fn edit(self, number: u64, body: &str) -> Self {
        self.with(|state| state.edit_issue(number, body))
    }

    /// Changes the title of an issue, now.
    #[must_use]
    pub fn rename(self, number: u64, title: &str, actor: &str) -> Self {
        self.with(|state| state.rename_issue(number, title, actor))
    }

    #[must_use]
    pub fn assign(self, number: u64, login: &str) -> Self {
        self.with(|state| {
            state.issues.entry(number).and_modify(|issue| issue.assignees.push(login.to_owned()));
        })
    }

    #[must_use]
    pub fn comment(self, number: u64, author: &str, body: &str) -> Self {
        self.with(|state| {
            let (id, now) = (state.next_id(), state.next_time());
            let comment = FakeComment {
                id,
                author: author.to_owned(),
                body: body.to_owned(),
                created_at: now.clone(),
                updated_at: now,
            };
            state.issues.entry(number).and_modify(|issue| issue.comments.push(comment));
        })
    }

    /// Adds a branch, at a commit derived from its name.
    #[must_use]
    pub fn branch(self, name: &str) -> Self {
        self.with(|state| {
            let branch = FakeBranch { sha: fake_sha(name), ..FakeBranch::default() };
            state.branches.insert(name.to_owned(), branch);
        })
    }

    /// Protects a branch; `protection` is the API's response.
    #[must_use]
    pub fn protect(self, name: &str, protection: Value) -> Self {
        self.with(|state| {
            state.branches.entry(name.to_owned()).or_default().protection = Some(protection);
        })
    }

    /// Adds a rule of a ruleset.
    #[must_use]
    pub fn rule(self, branch: &str, kind: &str, parameters: Value) -> Self {
        let rule = json!({ "type": kind, "parameters": parameters });
        self.with(|state| state.rules.entry(branch.to_owned()).or_default().push(rule))
    }

    /// Adds an open, mergeable pull request into the default branch, and its head branch.
    #[must_use]
    pub fn pull(self, number: u64, head: &str, author: &str) -> Self {
        let base = self.state.default_branch.clone();
        self.issue(number, "A change", "What it does.", author).branch(head).with(|state| {
            let pull = FakePull {
                head: head.to_owned(),
                head_sha: fake_sha(head),
                base,
                mergeable: Some(true),
                mergeable_state: "clean".to_owned(),
                ..FakePull::default()
            };
            state.pulls.insert(number, pull);
            state.push(number, author, &fake_sha(head));
        })
    }

    /// Changes any other part of a pull request.
    #[must_use]
    pub fn pull_with(self, number: u64, change: impl FnOnce(&mut FakePull)) -> Self {
        self.with(|state| change(state.pulls.entry(number).or_default()))
    }

    /// Adds a changed file to a pull request.
    #[must_use]
    pub fn file(self, number: u64, path: &str) -> Self {
        let file = FakePullFile { path: path.to_owned(), before: None, additions: 3, deletions: 1 };
        self.pull_with(number, |pull| pull.files.push(file))
    }

    /// Adds a review of a pull request's current head: `APPROVED`, `CHANGES_REQUESTED` or
    /// `COMMENTED`.
    #[must_use]
    pub fn review(self, number: u64, author: &str, decided: &str) -> Self {
        self.with(|state| {
            let (id, submitted_at) = (state.next_id(), state.next_time());
            let pull = state.pulls.entry(number).or_default();
            pull.reviews.push(FakeReview {
                id,
                author: author.to_owned(),
                state: decided.to_owned(),
                commit: pull.head_sha.clone(),
                body: String::new(),
                submitted_at,
            });
        })
    }

    /// Adds a completed check to a pull request's head.
    #[must_use]
    pub fn check(self, number: u64, name: &str, conclusion: &str) -> Self {
        let conclusion = Some(conclusion.to_owned());
        self.check_run(number, name, "completed", conclusion, None)
    }

    /// Adds a check that succeeds after it was queried a number of times.
    #[must_use]
    pub fn pending_check(self, number: u64, name: &str, completes_after: usize) -> Self {
        self.check_run(number, name, "in_progress", None, Some(completes_after))
    }

    /// Adds a check that never completes.
    #[must_use]
    pub fn stuck_check(self, number: u64, name: &str) -> Self {
        self.check_run(number, name, "queued", None, None)
    }

    fn check_run(
        self,
        number: u64,
        name: &str,
        status: &str,
        conclusion: Option<String>,
        completes_after: Option<usize>,
    ) -> Self {
        let check = FakeCheck {
            name: name.to_owned(),
            status: status.to_owned(),
            conclusion,
            app: "github-actions".to_owned(),
            completes_after,
        };
        self.with(|state| {
            let sha = state.pulls.entry(number).or_default().head_sha.clone();
            state.checks.entry(sha).or_default().push(check);
        })
    }

    /// Adds a commit status to a pull request's head: `success`, `failure`, `error` or `pending`.
    #[must_use]
    pub fn status(self, number: u64, context: &str, decided: &str) -> Self {
        let status = FakeCommitStatus { context: context.to_owned(), state: decided.to_owned() };
        self.with(|state| {
            let sha = state.pulls.entry(number).or_default().head_sha.clone();
            state.statuses.entry(sha).or_default().push(status);
        })
    }

    #[must_use]
    pub fn fault(self, fault: GitHubFault) -> Self {
        self.with(|state| state.faults.push(fault))
    }

    /// Uses a bare repository on disk: its branches are those of the fake, and git can push to it
    /// over HTTP.
    #[must_use]
    pub fn git_dir(self, dir: &str) -> Self {
        self.with(|state| state.git_dir = Some(dir.to_owned()))
    }
}

/// Encodes text in Base64, for `Basic` authorisation.
pub fn encode_basic(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            if digit <= chunk.len() {
                out.push(char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}
