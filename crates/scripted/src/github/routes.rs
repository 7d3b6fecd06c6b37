//! Routing of calls: only those that the client makes.

use serde_json::{Value, json};

use super::reply::{GitHubCall, GitHubReply};
use super::state::FakeGitHubState;
use super::{api_json, issues, pulls, repo};

/// Answers an authorised call.
pub(super) fn answer_call(state: &mut FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let parts: Vec<&str> = ask.parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["user"] if ask.method == "GET" => current_user(state),
        ["graphql"] if ask.method == "POST" => issues::last_edited(state, ask),
        ["repos", owner, name, rest @ ..] => {
            let ours =
                owner.eq_ignore_ascii_case(&state.owner) && name.eq_ignore_ascii_case(&state.name);
            if ours { route_repo(state, ask, rest) } else { GitHubReply::not_found() }
        }
        _ => GitHubReply::not_found(),
    }
}

fn current_user(state: &FakeGitHubState) -> GitHubReply {
    if state.token_of_person {
        GitHubReply::json(200, &api_json::user_json(&state.login))
    } else {
        GitHubReply::error(403, "Resource not accessible by integration")
    }
}

fn parse_number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn route_repo(state: &mut FakeGitHubState, ask: &GitHubCall<'_>, rest: &[&str]) -> GitHubReply {
    match (ask.method, rest) {
        ("GET", []) => repo::get_repo(state),
        ("GET", ["collaborators", login, "permission"]) => repo::get_permission(state, login),
        ("POST", ["labels"]) => repo::create_label(state, ask),
        ("GET", ["branches", branch]) => repo::get_branch(state, branch),
        ("GET", ["branches", branch, "protection"]) => repo::get_protection(state, branch),
        ("GET", ["rules", "branches", branch]) => repo::list_rules(state, ask, branch),
        ("GET", ["activity"]) => repo::list_activity(state, ask),
        ("DELETE", ["git", "refs", "heads", branch @ ..]) => {
            repo::delete_branch(state, &branch.join("/"))
        }
        ("GET", ["commits", sha, "check-runs"]) => repo::list_checks(state, ask, sha),
        ("GET", ["commits", sha, "status"]) => repo::list_statuses(state, ask, sha),
        ("GET", ["issues"]) => issues::list_issues(state, ask),
        ("POST", ["issues"]) => issues::create_issue(state, ask),
        ("PATCH", ["issues", "comments", id]) => {
            issues::update_comment(state, ask, parse_number(id))
        }
        ("GET", ["pulls"]) => pulls::list_pulls(state, ask),
        ("POST", ["pulls"]) => pulls::create_pull(state, ask),
        (_, [kind @ ("issues" | "pulls"), at, rest @ ..]) => match parse_number(at) {
            Some(at) if state.issues.contains_key(&at) => match *kind {
                "issues" => route_issue(state, ask, at, rest),
                _ if state.pulls.contains_key(&at) => route_pull(state, ask, at, rest),
                _ => GitHubReply::not_found(),
            },
            _ => GitHubReply::not_found(),
        },
        _ => GitHubReply::not_found(),
    }
}

fn route_issue(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
    rest: &[&str],
) -> GitHubReply {
    match (ask.method, rest) {
        ("GET", []) => issues::get_issue(state, number),
        ("PATCH", []) => issues::update_issue(state, ask, number),
        ("GET", ["comments"]) => issues::list_comments(state, ask, number),
        ("POST", ["comments"]) => issues::create_comment(state, ask, number),
        ("POST", ["labels"]) => issues::add_labels(state, ask, number),
        ("DELETE", ["labels", label]) => issues::remove_label(state, number, label),
        // As on GitHub, this removes all labels.
        ("DELETE", ["labels"]) => {
            state.issues.entry(number).and_modify(|issue| issue.labels.clear());
            GitHubReply::no_content()
        }
        ("GET", ["timeline" | "events"]) => issues::list_events(state, ask, number),
        _ => GitHubReply::not_found(),
    }
}

fn route_pull(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
    rest: &[&str],
) -> GitHubReply {
    let list =
        |state: &FakeGitHubState, items: Vec<Value>| GitHubReply::page(ask, items, state.page_size);
    match (ask.method, rest) {
        ("GET", []) if ask.accept.contains("diff") => {
            GitHubReply::text(state.pulls[&number].diff.clone())
        }
        ("GET", []) => pulls::get_pull(state, number),
        ("PATCH", []) => issues::update_issue(state, ask, number),
        ("PUT", ["merge"]) => pulls::merge_pull(state, ask, number),
        ("GET", ["files"]) => {
            list(state, state.pulls[&number].files.iter().map(api_json::file_json).collect())
        }
        ("GET", ["reviews"]) => {
            list(state, state.pulls[&number].reviews.iter().map(api_json::review_json).collect())
        }
        ("POST", ["reviews"]) => pulls::create_review(state, ask, number),
        ("GET", ["comments"]) => {
            let comments = state.pulls[&number].review_comments.iter();
            list(state, comments.map(api_json::review_comment_json).collect())
        }
        _ => GitHubReply::not_found(),
    }
}

/// Returns true if a call needs no token.
pub(super) fn is_public(ask: &GitHubCall<'_>) -> bool {
    let asks_for_rights = ask.parts.iter().any(|part| part == "collaborators");
    ask.method == "GET" && !asks_for_rights && ask.parts.first().is_some_and(|part| part == "repos")
}

/// The reply to a body that is not JSON.
pub(super) fn not_json() -> GitHubReply {
    GitHubReply::json(400, &json!({ "message": "Problems parsing JSON", "status": "400" }))
}
