//! Renders the state in GitHub's JSON format.

use serde_json::{Value, json};

use super::state::{
    FakeCheck, FakeComment, FakeGitHubState, FakeIssue, FakePull, FakePullFile, FakeReview,
    FakeReviewComment,
};

pub(super) fn user_json(login: &str) -> Value {
    let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
    let id: u64 = login.bytes().map(u64::from).sum();
    json!({ "login": login, "id": id, "type": kind, "site_admin": false })
}

fn label_json(name: &str) -> Value {
    json!({ "id": 1, "name": name, "color": "ededed", "default": false })
}

fn page_url(state: &FakeGitHubState, kind: &str, number: u64) -> String {
    format!("https://github.example/{}/{}/{kind}/{number}", state.owner, state.name)
}

pub(super) fn issue_json(state: &FakeGitHubState, number: u64, issue: &FakeIssue) -> Value {
    let mut out = json!({
        "id": number * 10,
        "node_id": format!("I_{number}"),
        "number": number,
        "title": issue.title,
        "body": if issue.body.is_empty() { Value::Null } else { json!(issue.body) },
        "state": if issue.closed { "closed" } else { "open" },
        "user": user_json(&issue.author),
        "labels": issue.labels.iter().map(|name| label_json(name)).collect::<Vec<_>>(),
        "assignee": issue.assignees.first().map(|login| user_json(login)),
        "assignees": issue.assignees.iter().map(|login| user_json(login)).collect::<Vec<_>>(),
        "comments": issue.comments.len(),
        "created_at": issue.created_at,
        "updated_at": issue.created_at,
        "html_url": page_url(state, "issues", number),
        "author_association": "NONE",
    });
    if state.pulls.contains_key(&number) {
        out["pull_request"] =
            json!({ "url": format!("https://api.github.example/pulls/{number}") });
    }
    out
}

pub(super) fn comment_json(state: &FakeGitHubState, number: u64, comment: &FakeComment) -> Value {
    json!({
        "id": comment.id,
        "body": comment.body,
        "user": user_json(&comment.author),
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "html_url": format!("{}#issuecomment-{}", page_url(state, "issues", number), comment.id),
        "author_association": "NONE",
    })
}

pub(super) fn pull_json(
    state: &FakeGitHubState,
    number: u64,
    issue: &FakeIssue,
    pull: &FakePull,
) -> Value {
    let ours = format!("{}/{}", state.owner, state.name);
    let head_repository = pull.fork.clone().unwrap_or_else(|| ours.clone());
    let head_owner = head_repository.split('/').next().unwrap_or_default().to_owned();
    let base_sha = state.sha_of(&pull.base).unwrap_or_else(|| super::state::fake_sha(&pull.base));
    json!({
        "id": number * 10,
        "node_id": format!("PR_{number}"),
        "number": number,
        "title": issue.title,
        "body": issue.body,
        "state": if issue.closed { "closed" } else { "open" },
        "draft": pull.draft,
        "merged": pull.merged_as.is_some(),
        "merge_commit_sha": pull.merged_as,
        "mergeable": pull.mergeable,
        "mergeable_state": pull.mergeable_state,
        "user": user_json(&issue.author),
        "labels": issue.labels.iter().map(|name| label_json(name)).collect::<Vec<_>>(),
        "assignees": issue.assignees.iter().map(|login| user_json(login)).collect::<Vec<_>>(),
        "head": {
            "label": format!("{head_owner}:{}", pull.head),
            "ref": pull.head, "sha": pull.head_sha,
            "repo": { "full_name": head_repository, "fork": pull.fork.is_some() },
            "user": user_json(&head_owner),
        },
        "base": {
            "label": format!("{}:{}", state.owner, pull.base),
            "ref": pull.base, "sha": base_sha, "repo": { "full_name": ours, "fork": false },
        },
        "changed_files": pull.files.len(),
        "additions": pull.files.iter().map(|file| file.additions).sum::<u64>(),
        "deletions": pull.files.iter().map(|file| file.deletions).sum::<u64>(),
        "created_at": issue.created_at,
        "html_url": page_url(state, "pull", number),
    })
}

pub(super) fn review_json(review: &FakeReview) -> Value {
    json!({
        "id": review.id, "user": user_json(&review.author), "state": review.state,
        "commit_id": review.commit, "submitted_at": review.submitted_at,
        "body": review.body, "author_association": "MEMBER",
    })
}

pub(super) fn review_comment_json(comment: &FakeReviewComment) -> Value {
    json!({
        "id": comment.id, "user": user_json(&comment.author), "body": comment.body,
        "path": comment.path, "line": comment.line, "created_at": comment.created_at,
    })
}

pub(super) fn file_json(file: &FakePullFile) -> Value {
    let mut out = json!({
        "sha": "0", "filename": file.path,
        "status": if file.before.is_some() { "renamed" } else { "modified" },
        "additions": file.additions, "deletions": file.deletions,
        "changes": file.additions + file.deletions,
    });
    if let Some(before) = &file.before {
        out["previous_filename"] = json!(before);
    }
    out
}

pub(super) fn check_json(id: usize, sha: &str, check: &FakeCheck) -> Value {
    json!({
        "id": id, "name": check.name, "head_sha": sha, "status": check.status,
        "conclusion": check.conclusion,
        "app": { "slug": check.app, "name": check.app },
        "started_at": "2026-01-01T00:00:00Z",
        "completed_at": check.conclusion.as_ref().map(|_| "2026-01-01T00:01:00Z"),
    })
}
