//! Routing of calls: only those that the client makes.

use serde_json::{Value, json};

use super::reply::{Ask, Reply};
use super::state::State;
use super::{issues, pulls, repo, shapes};

/// Answers an authorised call.
pub(super) fn answer(state: &mut State, ask: &Ask<'_>) -> Reply {
    let parts: Vec<&str> = ask.parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["user"] if ask.method == "GET" => who_am_i(state),
        ["graphql"] if ask.method == "POST" => issues::last_edited(state, ask),
        ["repos", owner, name, rest @ ..] => {
            let ours =
                owner.eq_ignore_ascii_case(&state.owner) && name.eq_ignore_ascii_case(&state.name);
            if ours { within(state, ask, rest) } else { Reply::not_found() }
        }
        _ => Reply::not_found(),
    }
}

fn who_am_i(state: &State) -> Reply {
    if state.token_of_person {
        Reply::json(200, &shapes::user(&state.login))
    } else {
        Reply::refusal(403, "Resource not accessible by integration")
    }
}

fn parse_number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn within(state: &mut State, ask: &Ask<'_>, rest: &[&str]) -> Reply {
    match (ask.method, rest) {
        ("GET", []) => repo::get(state),
        ("GET", ["collaborators", login, "permission"]) => repo::permission(state, login),
        ("POST", ["labels"]) => repo::create_label(state, ask),
        ("GET", ["branches", branch]) => repo::branch(state, branch),
        ("GET", ["branches", branch, "protection"]) => repo::protection(state, branch),
        ("GET", ["rules", "branches", branch]) => repo::rules(state, ask, branch),
        ("GET", ["activity"]) => repo::activity(state, ask),
        ("DELETE", ["git", "refs", "heads", branch @ ..]) => {
            repo::delete_branch(state, &branch.join("/"))
        }
        ("GET", ["commits", sha, "check-runs"]) => repo::checks(state, ask, sha),
        ("GET", ["commits", sha, "status"]) => repo::statuses(state, ask, sha),
        ("GET", ["issues"]) => issues::list(state, ask),
        ("POST", ["issues"]) => issues::create(state, ask),
        ("PATCH", ["issues", "comments", id]) => {
            issues::update_comment(state, ask, parse_number(id))
        }
        ("GET", ["pulls"]) => pulls::list(state, ask),
        ("POST", ["pulls"]) => pulls::create(state, ask),
        (_, [kind @ ("issues" | "pulls"), at, rest @ ..]) => match parse_number(at) {
            Some(at) if state.issues.contains_key(&at) => match *kind {
                "issues" => of_issue(state, ask, at, rest),
                _ if state.pulls.contains_key(&at) => of_pull(state, ask, at, rest),
                _ => Reply::not_found(),
            },
            _ => Reply::not_found(),
        },
        _ => Reply::not_found(),
    }
}

fn of_issue(state: &mut State, ask: &Ask<'_>, number: u64, rest: &[&str]) -> Reply {
    match (ask.method, rest) {
        ("GET", []) => issues::get(state, number),
        ("PATCH", []) => issues::update(state, ask, number),
        ("GET", ["comments"]) => issues::comments(state, ask, number),
        ("POST", ["comments"]) => issues::create_comment(state, ask, number),
        ("POST", ["labels"]) => issues::add_labels(state, ask, number),
        ("DELETE", ["labels", label]) => issues::remove_label(state, number, label),
        // As on GitHub, this removes all labels.
        ("DELETE", ["labels"]) => {
            state.issues.entry(number).and_modify(|issue| issue.labels.clear());
            Reply::nothing()
        }
        ("GET", ["timeline" | "events"]) => issues::events(state, ask, number),
        _ => Reply::not_found(),
    }
}

fn of_pull(state: &mut State, ask: &Ask<'_>, number: u64, rest: &[&str]) -> Reply {
    let list = |state: &State, items: Vec<Value>| Reply::page(ask, items, state.page_size);
    match (ask.method, rest) {
        ("GET", []) if ask.accept.contains("diff") => {
            Reply::text(state.pulls[&number].diff.clone())
        }
        ("GET", []) => pulls::get(state, number),
        ("PATCH", []) => issues::update(state, ask, number),
        ("PUT", ["merge"]) => pulls::merge(state, ask, number),
        ("GET", ["files"]) => {
            list(state, state.pulls[&number].files.iter().map(shapes::file).collect())
        }
        ("GET", ["reviews"]) => {
            list(state, state.pulls[&number].reviews.iter().map(shapes::review).collect())
        }
        ("POST", ["reviews"]) => pulls::create_review(state, ask, number),
        ("GET", ["comments"]) => {
            let comments = state.pulls[&number].review_comments.iter();
            list(state, comments.map(shapes::review_comment).collect())
        }
        _ => Reply::not_found(),
    }
}

/// Returns true if a call needs no token.
pub(super) fn is_public(ask: &Ask<'_>) -> bool {
    let asks_for_rights = ask.parts.iter().any(|part| part == "collaborators");
    ask.method == "GET" && !asks_for_rights && ask.parts.first().is_some_and(|part| part == "repos")
}

/// The reply to a body that is not JSON.
pub(super) fn not_json() -> Reply {
    Reply::json(400, &json!({ "message": "Problems parsing JSON", "status": "400" }))
}
