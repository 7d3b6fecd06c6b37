//! Calls about issues; pull requests are issues as well.

use serde_json::{Value, json};

use super::api_json;
use super::reply::{GitHubCall, GitHubReply};
use super::state::{FakeComment, FakeGitHubState};

/// GitHub's limit on comments.
const COMMENT_CHARS_MAX: usize = 65_536;

pub(super) fn list_issues(state: &FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let wanted = ask.query.get("state").map_or("open", String::as_str);
    let labels: Vec<&str> =
        ask.query.get("labels").map(|labels| labels.split(',').collect()).unwrap_or_default();
    let mut found: Vec<_> =
        state.issues.iter().filter(|(_, issue)| matches_filter(issue, wanted, &labels)).collect();
    found.sort_by(|one, other| other.1.created_at.cmp(&one.1.created_at));
    if ask.query.get("direction").is_some_and(|direction| direction == "asc") {
        found.reverse();
    }
    let items =
        found.into_iter().map(|(number, issue)| api_json::issue_json(state, *number, issue));
    GitHubReply::page(ask, items.collect(), state.page_size)
}

/// Returns true if an issue has the wanted state and all labels.
fn matches_filter(issue: &super::state::FakeIssue, wanted: &str, labels: &[&str]) -> bool {
    let has_state = match wanted {
        "open" => !issue.closed,
        "closed" => issue.closed,
        _ => true,
    };
    let has = |label: &&str| issue.labels.iter().any(|there| there.eq_ignore_ascii_case(label));
    has_state && labels.iter().all(has)
}

pub(super) fn create_issue(state: &mut FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let Some(title) = ask.body_text("title").filter(|title| !title.is_empty()) else {
        return GitHubReply::validation_error("Issue", "title", "missing_field", None);
    };
    let number = state.issues.keys().next_back().map_or(1, |last| last + 1);
    let (created_at, author) = (state.next_time(), state.login.clone());
    let body = ask.body_text("body").unwrap_or_default();
    let issue = super::state::FakeIssue { title, body, author, created_at, ..Default::default() };
    state.issues.insert(number, issue);
    add_labels(state, ask, number);
    let issue = api_json::issue_json(state, number, &state.issues[&number]);
    GitHubReply::json(201, &issue)
}

pub(super) fn get_issue(state: &FakeGitHubState, number: u64) -> GitHubReply {
    GitHubReply::json(200, &api_json::issue_json(state, number, &state.issues[&number]))
}

pub(super) fn update_issue(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    let login = state.login.clone();
    if let Some(wanted) = ask.body_text("state") {
        let closed = wanted == "closed";
        let changed = state
            .issues
            .get_mut(&number)
            .is_some_and(|issue| std::mem::replace(&mut issue.closed, closed) != closed);
        if changed {
            let event = if closed { "closed" } else { "reopened" };
            state.record_event(number, event, &login, json!({}));
        }
    }
    if let Some(title) = ask.body_text("title") {
        state.rename_issue(number, &title, &login);
    }
    if let Some(body) = ask.body_text("body") {
        state.edit_issue(number, &body);
    }
    get_issue(state, number)
}

/// Answers the only GraphQL query that the client sends: the time of an issue's last edit.
pub(super) fn last_edited(state: &FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let number = ask.body["variables"]["number"].as_u64().unwrap_or_default();
    let is_asked = ask.body_text("query").is_some_and(|query| query.contains("lastEditedAt"));
    match state.issues.get(&number).filter(|_| is_asked) {
        Some(issue) => {
            let issue = json!({ "issue": { "lastEditedAt": issue.edited_at } });
            GitHubReply::json(200, &json!({ "data": { "repository": issue } }))
        }
        None => {
            let message = format!("Could not resolve to an Issue with the number of {number}.");
            let data = json!({ "repository": { "issue": null } });
            GitHubReply::json(200, &json!({ "data": data, "errors": [{ "message": message }] }))
        }
    }
}

pub(super) fn list_comments(
    state: &FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    let comments = state.issues[&number].comments.iter();
    let items = comments.map(|comment| api_json::comment_json(state, number, comment));
    GitHubReply::page(ask, items.collect(), state.page_size)
}

fn check_text(body: &str) -> Option<GitHubReply> {
    if body.trim().is_empty() {
        return Some(GitHubReply::validation_error("IssueComment", "body", "missing_field", None));
    }
    let long = "body is too long (maximum is 65536 characters)";
    (body.chars().count() > COMMENT_CHARS_MAX)
        .then(|| GitHubReply::validation_error("IssueComment", "body", "custom", Some(long)))
}

pub(super) fn create_comment(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    let body = ask.body_text("body").unwrap_or_default();
    if let Some(refusal) = check_text(&body) {
        return refusal;
    }
    let (id, now, author) = (state.next_id(), state.next_time(), state.login.clone());
    let comment = FakeComment { id, author, body, created_at: now.clone(), updated_at: now };
    if let Some(issue) = state.issues.get_mut(&number) {
        issue.comments.push(comment.clone());
    }
    GitHubReply::json(201, &api_json::comment_json(state, number, &comment))
}

pub(super) fn update_comment(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    id: Option<u64>,
) -> GitHubReply {
    let body = ask.body_text("body").unwrap_or_default();
    if let Some(refusal) = check_text(&body) {
        return refusal;
    }
    let now = state.next_time();
    let mut found = None;
    for (number, issue) in &mut state.issues {
        if let Some(comment) = issue.comments.iter_mut().find(|comment| Some(comment.id) == id) {
            comment.body.clone_from(&body);
            comment.updated_at.clone_from(&now);
            found = Some((*number, comment.clone()));
        }
    }
    match found {
        Some((number, comment)) => {
            GitHubReply::json(200, &api_json::comment_json(state, number, &comment))
        }
        None => GitHubReply::not_found(),
    }
}

pub(super) fn add_labels(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    let login = state.login.clone();
    let names: Vec<String> = ask.body["labels"]
        .as_array()
        .map(|labels| labels.iter().filter_map(|label| label.as_str()).map(str::to_owned).collect())
        .unwrap_or_default();
    for name in &names {
        state.add_label(number, name, &login);
    }
    list_labels(state, number)
}

fn list_labels(state: &FakeGitHubState, number: u64) -> GitHubReply {
    let labels = state.issues[&number].labels.iter().map(|name| json!({ "name": name }));
    GitHubReply::json(200, &json!(labels.collect::<Vec<Value>>()))
}

pub(super) fn remove_label(state: &mut FakeGitHubState, number: u64, label: &str) -> GitHubReply {
    let login = state.login.clone();
    let removed = state.issues.get_mut(&number).is_some_and(|issue| {
        let before = issue.labels.len();
        issue.labels.retain(|there| !there.eq_ignore_ascii_case(label));
        issue.labels.len() < before
    });
    if !removed {
        return GitHubReply::error(404, "Label does not exist");
    }
    state.record_event(number, "unlabeled", &login, json!({ "label": { "name": label } }));
    list_labels(state, number)
}

pub(super) fn list_events(
    state: &FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    GitHubReply::page(ask, state.issues[&number].events.clone(), state.page_size)
}
