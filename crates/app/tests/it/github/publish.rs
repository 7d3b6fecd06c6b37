//! Branches that go out, with real repositories.

use camino::Utf8PathBuf;
use repertoire_git::repo::{GitClient, GitObjectId, GitRemote};
use repertoire_github::client::GitHubClient;
use repertoire_github::comment::NeutraliseRules;
use repertoire_github::publish::{
    BranchPublication, OpenedPull, PublishError, PullText, PushedBranch, open_pull, push_branch,
    remote_of,
};
use repertoire_scripted::github::{FakeGitHub, GitHubServer, TOKEN, encode_basic};

use super::client;
use crate::repo::{Repo, git_in};

/// A repository, a bare one that it goes to, and a fake GitHub that serves that one.
struct Place {
    repo: Repo,
    bare: Utf8PathBuf,
    server: GitHubServer,
    client: GitHubClient,
    git: GitClient,
    base: GitObjectId,
}

impl Place {
    async fn new() -> Place {
        let repo = Repo::new();
        let base = repo.engine().head_commit().await.unwrap();
        let bare = repo.base.join("remote.git");
        git_in(&repo.base, &["clone", "--quiet", "--bare", repo.dir.as_str(), bare.as_str()]);
        repo.git(&["remote", "add", "origin", bare.as_str()]);
        let server = FakeGitHub::new("octo", "repo").git_dir(bare.as_str()).start().await;
        let (client, git) = (client(&server), repo.engine());
        Place { repo, bare, server, client, git, base }
    }

    fn by_path(&self) -> GitRemote {
        GitRemote { url: self.bare.to_string(), header: None }
    }

    fn publication<'a>(
        &'a self,
        remote: &'a GitRemote,
        branch: &'a str,
        commit: &'a GitObjectId,
    ) -> BranchPublication<'a> {
        BranchPublication {
            git: &self.git,
            client: &self.client,
            remote,
            prefix: "bot/",
            branch,
            commit,
            base: "main",
            base_commit: &self.base,
        }
    }

    async fn push(&self, branch: &str, commit: &GitObjectId) -> Result<PushedBranch, PublishError> {
        push_branch(&self.publication(&self.by_path(), branch, commit)).await
    }

    fn tip(&self, branch: &str) -> String {
        git_in(&self.bare, &["--git-dir", ".", "rev-parse", &format!("refs/heads/{branch}")])
    }

    fn change(&self, path: &str) -> GitObjectId {
        self.repo.file(path, "changed\n");
        self.repo.commit(&format!("change {path}"))
    }
}

fn words() -> PullText<'static> {
    PullText {
        title: "Fix search,\n closes #31",
        ours: "For issue 31.",
        theirs: "cc @ada <!-- hidden -->",
        draft: true,
    }
}

#[tokio::test]
async fn a_branch_is_pushed_and_a_draft_opened_once() {
    let place = Place::new().await;
    let commit = place.change("src/lib.rs");
    let remote = place.by_path();
    let what = place.publication(&remote, "bot/31", &commit);
    assert!(!push_branch(&what).await.unwrap().was_there);
    assert!(push_branch(&what).await.unwrap().was_there);
    assert_eq!(place.tip("bot/31"), commit.as_str());
    let OpenedPull { number, is_new, draft, .. } =
        open_pull(&what, &words(), &NeutraliseRules::default()).await.unwrap();
    assert!(is_new && draft);
    let again = open_pull(&what, &words(), &NeutraliseRules::default()).await.unwrap();
    assert_eq!((again.number, again.is_new), (number, false));
    let state = place.server.state();
    let issue = &state.issues[&number];
    assert_eq!(issue.title, "Fix search, closes #\u{200b}31");
    assert!(issue.body.starts_with("For issue 31.\n\ncc @\u{200b}ada"), "{}", issue.body);
}

#[tokio::test]
async fn the_token_goes_over_http_in_a_header_and_nowhere_else() {
    let place = Place::new().await;
    let commit = place.change("src/lib.rs");
    let remote = remote_of(&place.server.url(), &place.client).unwrap();
    let before = place.repo.git(&["config", "--local", "--list"]);
    push_branch(&place.publication(&remote, "bot/31", &commit)).await.unwrap();
    assert_eq!(place.tip("bot/31"), commit.as_str());
    assert_eq!(place.repo.git(&["config", "--local", "--list"]), before);
    let calls = place.server.calls();
    let sent: Vec<_> = calls.iter().filter(|call| call.path.contains(".git/")).collect();
    assert!(sent.iter().any(|call| call.path.ends_with("/git-receive-pack")), "{sent:?}");
    let expect = format!("Basic {}", encode_basic(&format!("x-access-token:{TOKEN}")));
    for call in sent {
        assert_eq!(call.authorization.as_deref(), Some(expect.as_str()));
        assert!(!call.path.contains(TOKEN));
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_not_shown() {
    let place = Place::new().await;
    let commit = place.change("src/lib.rs");
    let mut remote = remote_of(&place.server.url(), &place.client).unwrap();
    let wrong = encode_basic("x-access-token:ghs_wrong_one");
    remote.header = Some(format!("Authorization: Basic {wrong}"));
    let error = push_branch(&place.publication(&remote, "bot/31", &commit)).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(&wrong) && !shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn what_an_agent_wrote_into_the_configuration_leads_nowhere() {
    let place = Place::new().await;
    let evil = place.repo.base.join("evil.git");
    git_in(&place.repo.base, &["init", "--quiet", "--bare", evil.as_str()]);
    let marker = place.repo.base.join("ran");
    crate::repo::script(
        &place.repo.dir.join(".git/hooks/pre-push"),
        &format!("#!/bin/sh\ntouch {marker}\n"),
    );
    place.repo.git(&["config", &format!("url.{evil}.insteadOf"), place.bare.as_str()]);
    let user = format!("[url \"{evil}\"]\n\tinsteadOf = {}\n", place.bare);
    crate::repo::write(&place.repo.base.join(".gitconfig"), &user);
    place.repo.git(&["config", "remote.origin.pushurl", evil.as_str()]);
    place.repo.git(&["config", "core.sshCommand", &format!("touch {marker}")]);
    let commit = place.change("src/lib.rs");
    place.push("bot/31", &commit).await.unwrap();
    assert_eq!(place.tip("bot/31"), commit.as_str());
    assert_eq!(git_in(&evil, &["for-each-ref"]), "");
    assert!(!marker.exists());
}

#[tokio::test]
async fn only_our_branches_are_pushed() {
    let place = Place::new().await;
    let commit = place.change("src/lib.rs");
    for branch in ["main", "feature/x", "bot/", "bot", "bot/../main", "bot/a b", "-bot/x", "Bot/31"]
    {
        assert!(place.push(branch, &commit).await.is_err(), "{branch}");
    }
    let remote = place.by_path();
    let nobodys = BranchPublication { prefix: "", ..place.publication(&remote, "main", &commit) };
    assert!(matches!(push_branch(&nobodys).await, Err(PublishError::NotOurs { .. })));
    let base =
        BranchPublication { base: "bot/31", ..place.publication(&remote, "bot/31", &commit) };
    assert!(matches!(push_branch(&base).await, Err(PublishError::Guarded { .. })));
    assert_eq!(place.tip("main"), place.base.as_str());
}

#[tokio::test]
async fn a_protected_branch_is_not_moved_though_it_has_our_prefix() {
    let place = Place::new().await;
    let first = place.change("a.rs");
    place.push("bot/keep", &first).await.unwrap();
    place.server.change_state(|state| {
        state.branches.entry("bot/keep".to_owned()).or_default().protection =
            Some(serde_json::json!({}));
    });
    let second = place.change("b.rs");
    let error = place.push("bot/keep", &second).await.unwrap_err();
    assert!(matches!(error, PublishError::Guarded { why: "protected", .. }), "{error}");
    assert_eq!(place.tip("bot/keep"), first.as_str());
}

#[tokio::test]
async fn a_branch_goes_forward_and_is_never_forced() {
    let place = Place::new().await;
    let first = place.change("a.rs");
    place.push("bot/31", &first).await.unwrap();
    let second = place.change("b.rs");
    place.push("bot/31", &second).await.unwrap();
    assert_eq!(place.tip("bot/31"), second.as_str());
    place.repo.git(&["reset", "--hard", "--quiet", place.base.as_str()]);
    let other = place.change("c.rs");
    let error = place.push("bot/31", &other).await.unwrap_err();
    assert!(matches!(error, PublishError::Taken { .. }), "{error}");
    assert_eq!(place.tip("bot/31"), second.as_str());
}

#[tokio::test]
async fn a_branch_that_touches_protected_paths_stays_here() {
    for path in
        [".github/workflows/ci.yml", "AGENTS.md", "web/.claude/settings.json", ".gitmodules"]
    {
        let place = Place::new().await;
        let commit = place.change(path);
        let error = place.push("bot/31", &commit).await.unwrap_err();
        let PublishError::Protected { paths, .. } = error else { panic!("{error}") };
        assert_eq!(paths, [path]);
        assert!(place.git.remote_tip(&place.by_path(), "bot/31").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn what_was_added_and_removed_again_was_there_all_the_same() {
    let place = Place::new().await;
    place.change(".github/workflows/ci.yml");
    place.repo.git(&["rm", "--quiet", ".github/workflows/ci.yml"]);
    place.repo.commit("as if nothing had been");
    let commit = place.change("src/lib.rs");
    assert!(matches!(place.push("bot/31", &commit).await, Err(PublishError::Protected { .. })));
}

#[tokio::test]
async fn a_file_that_is_renamed_out_of_the_way_is_seen() {
    let place = Place::new().await;
    place.repo.file("AGENTS.md", "rules\n");
    let base = place.repo.commit("rules");
    place.repo.git(&["mv", "AGENTS.md", "notes.md"]);
    let commit = place.repo.commit("move");
    let remote = place.by_path();
    let what =
        BranchPublication { base_commit: &base, ..place.publication(&remote, "bot/31", &commit) };
    assert!(matches!(push_branch(&what).await, Err(PublishError::Protected { .. })));
}

#[tokio::test]
async fn nothing_is_not_published() {
    let place = Place::new().await;
    let error = place.push("bot/31", &place.base).await.unwrap_err();
    assert!(matches!(error, PublishError::Nothing { .. }), "{error}");
}

#[tokio::test]
async fn a_checkout_without_history_is_pushed_from() {
    let place = Place::new().await;
    place.change("old.rs");
    place.repo.git(&["push", "--quiet", "origin", "HEAD:main"]);
    let url = format!("file://{}", place.bare);
    git_in(&place.repo.base, &["clone", "--quiet", "--depth=1", "--branch=main", &url, "shallow"]);
    let dir = place.repo.base.join("shallow");
    let git = place.git.in_dir(&dir);
    let base = git.head_commit().await.unwrap();
    crate::repo::write(&dir.join("new.rs"), "x\n");
    let commit = crate::repo::commit_in(&dir, "new");
    let remote = place.by_path();
    let what = BranchPublication {
        git: &git,
        base_commit: &base,
        ..place.publication(&remote, "bot/31", &commit)
    };
    push_branch(&what).await.unwrap();
    assert_eq!(place.tip("bot/31"), commit.as_str());
}
