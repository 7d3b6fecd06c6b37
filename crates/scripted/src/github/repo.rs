//! Calls about the repository as a whole: permissions, labels, branches, checks.

use serde_json::{Value, json};

use super::api_json;
use super::reply::{GitHubCall, GitHubReply};
use super::state::FakeGitHubState;

pub(super) fn get_repo(state: &FakeGitHubState) -> GitHubReply {
    let allows = |method: &str| state.merge_methods.contains(method);
    let body = json!({
        "name": state.name, "full_name": format!("{}/{}", state.owner, state.name),
        "default_branch": state.default_branch, "private": false, "archived": false,
        "allow_merge_commit": allows("merge"), "allow_squash_merge": allows("squash"),
        "allow_rebase_merge": allows("rebase"),
    });
    GitHubReply::json(200, &body)
}

/// The permission of a user. The older `permission` field has only four values; `role_name` has the
/// role.
pub(super) fn get_permission(state: &FakeGitHubState, login: &str) -> GitHubReply {
    let Some(role) = state.role_of(login) else {
        return GitHubReply::error(404, &format!("{login} is not a user"));
    };
    let permission = match role {
        "admin" => "admin",
        "maintain" | "write" => "write",
        "triage" | "read" => "read",
        "none" => "none",
        // Custom roles of an organisation are based on one of the others.
        _ => "read",
    };
    let user = api_json::user_json(login);
    GitHubReply::json(200, &json!({ "permission": permission, "role_name": role, "user": user }))
}

pub(super) fn create_label(state: &mut FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let Some(name) = ask.body_text("name").filter(|name| !name.is_empty()) else {
        return GitHubReply::validation_error("Label", "name", "missing_field", None);
    };
    if state.labels.iter().any(|there| there.eq_ignore_ascii_case(&name)) {
        return GitHubReply::validation_error("Label", "name", "already_exists", None);
    }
    state.labels.insert(name.clone());
    GitHubReply::json(201, &json!({ "name": name, "color": "ededed" }))
}

pub(super) fn get_branch(state: &FakeGitHubState, name: &str) -> GitHubReply {
    let Some(sha) = state.sha_of(name) else {
        return GitHubReply::error(404, "Branch not found");
    };
    let protection = state.branches.get(name).and_then(|branch| branch.protection.as_ref());
    let checks = protection.map(|protection| &protection["required_status_checks"]["contexts"]);
    let contexts = checks.filter(|checks| checks.is_array()).cloned().unwrap_or(json!([]));
    let body = json!({
        "name": name, "commit": { "sha": sha }, "protected": protection.is_some(),
        "protection": {
            "enabled": protection.is_some(),
            "required_status_checks": { "enforcement_level": "everyone", "contexts": contexts },
        },
    });
    GitHubReply::json(200, &body)
}

pub(super) fn get_protection(state: &FakeGitHubState, name: &str) -> GitHubReply {
    let Some(branch) = state.branches.get(name) else {
        return GitHubReply::error(404, "Branch not found");
    };
    if branch.protection_hidden {
        let mut reply = GitHubReply::error(403, "Resource not accessible by integration");
        let needs = "administration=read".to_owned();
        reply.headers.push(("x-accepted-github-permissions".to_owned(), needs));
        return reply;
    }
    match &branch.protection {
        Some(protection) => GitHubReply::json(200, protection),
        None => GitHubReply::error(404, "Branch not protected"),
    }
}

pub(super) fn list_rules(
    state: &FakeGitHubState,
    ask: &GitHubCall<'_>,
    branch: &str,
) -> GitHubReply {
    GitHubReply::page(ask, state.rules.get(branch).cloned().unwrap_or_default(), state.page_size)
}

pub(super) fn list_activity(state: &FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let wanted = ask.query.get("ref").map(String::as_str);
    let shown = state.moves.iter().rev().map(|moved| {
        json!({
            "ref": format!("refs/heads/{}", moved.branch), "after": moved.after,
            "activity_type": "push", "actor": api_json::user_json(&moved.by),
        })
    });
    let items = shown.filter(|moved| wanted.is_none_or(|name| moved["ref"] == name));
    GitHubReply::page(ask, items.collect(), state.page_size)
}

pub(super) fn delete_branch(state: &mut FakeGitHubState, branch: &str) -> GitHubReply {
    if state.sha_of(branch).is_none() {
        return GitHubReply::error(422, "Reference does not exist");
    }
    let protected = state.branches.get(branch).is_some_and(|branch| branch.protection.is_some());
    if protected {
        return GitHubReply::error(422, "Cannot delete a protected branch");
    }
    state.branches.remove(branch);
    if let Some(dir) = &state.git_dir {
        super::git::delete_branch(dir, branch);
    }
    GitHubReply::no_content()
}

pub(super) fn list_checks(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    sha: &str,
) -> GitHubReply {
    let size = state.page_size;
    let checks = state.checks.get_mut(sha).map(Vec::as_mut_slice).unwrap_or_default();
    for check in checks.iter_mut() {
        match check.completes_after {
            Some(0) => {
                check.status = "completed".to_owned();
                check.conclusion = Some("success".to_owned());
                check.completes_after = None;
            }
            Some(left) => check.completes_after = Some(left - 1),
            None => {}
        }
    }
    let shown =
        checks.iter().enumerate().map(|(at, check)| api_json::check_json(at + 1, sha, check));
    let items: Vec<Value> = shown.collect();
    GitHubReply::page_in(
        ask,
        items,
        size,
        |page, all| json!({ "total_count": all, "check_runs": page }),
    )
}

pub(super) fn list_statuses(
    state: &FakeGitHubState,
    ask: &GitHubCall<'_>,
    sha: &str,
) -> GitHubReply {
    let statuses = state.statuses.get(sha).map(Vec::as_slice).unwrap_or_default();
    let items = statuses.iter().map(
        |status| json!({ "context": status.context, "state": status.state, "description": null }),
    );
    let items: Vec<Value> = items.collect();
    let within =
        |page, all| json!({ "state": "pending", "sha": sha, "total_count": all, "statuses": page });
    GitHubReply::page_in(ask, items, state.page_size, within)
}
