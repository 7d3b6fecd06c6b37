//! Calls about pull requests.

use super::api_json;
use super::reply::{GitHubCall, GitHubReply};
use super::state::{FakeGitHubState, FakeIssue, FakePull, FakeReview, fake_sha};

pub(super) fn list_pulls(state: &FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let wanted = ask.query.get("state").map_or("open", String::as_str);
    let head = ask.query.get("head");
    let base = ask.query.get("base");
    let fits = |number: &u64, pull: &FakePull| {
        let closed = state.issues[number].closed;
        let owner = pull.fork.as_deref().and_then(|fork| fork.split('/').next());
        let label = format!("{}:{}", owner.unwrap_or(&state.owner), pull.head);
        let open = match wanted {
            "open" => !closed,
            "closed" => closed,
            _ => true,
        };
        open && head.is_none_or(|head| head.eq_ignore_ascii_case(&label))
            && base.is_none_or(|base| *base == pull.base)
    };
    let found = state.pulls.iter().filter(|(number, pull)| fits(number, pull));
    let items = found
        .map(|(number, pull)| api_json::pull_json(state, *number, &state.issues[number], pull));
    GitHubReply::page(ask, items.collect(), state.page_size)
}

pub(super) fn get_pull(state: &mut FakeGitHubState, number: u64) -> GitHubReply {
    let mut shape =
        api_json::pull_json(state, number, &state.issues[&number], &state.pulls[&number]);
    if let Some(pull) = state.pulls.get_mut(&number).filter(|pull| pull.unknown_times > 0) {
        pull.unknown_times -= 1;
        shape["mergeable"] = serde_json::Value::Null;
        shape["mergeable_state"] = "unknown".into();
    }
    let looks = state.pulls.get_mut(&number).and_then(|pull| pull.moves_after.as_mut());
    match looks {
        Some(0) => {
            state.pulls.entry(number).and_modify(|pull| pull.moves_after = None);
            state.push(number, "somebody", &fake_sha("somebody pushed"));
        }
        Some(left) => *left -= 1,
        None => {}
    }
    GitHubReply::json(200, &shape)
}

pub(super) fn create_pull(state: &mut FakeGitHubState, ask: &GitHubCall<'_>) -> GitHubReply {
    let (title, head, base) =
        (ask.body_text("title"), ask.body_text("head"), ask.body_text("base"));
    let (Some(title), Some(head), Some(base)) = (title, head, base) else {
        return GitHubReply::validation_error("PullRequest", "head", "missing_field", None);
    };
    let own = format!("{}:", state.owner);
    let head = head.strip_prefix(&own).unwrap_or(&head).to_owned();
    let Some(head_sha) = state.sha_of(&head) else {
        return GitHubReply::validation_error("PullRequest", "head", "invalid", None);
    };
    let Some(base_sha) = state.sha_of(&base) else {
        return GitHubReply::validation_error("PullRequest", "base", "invalid", None);
    };
    if head_sha == base_sha {
        let message = format!("No commits between {base} and {head}");
        return GitHubReply::validation_error("PullRequest", "head", "custom", Some(&message));
    }
    let open = state.pulls.iter().any(|(number, pull)| {
        pull.head == head && pull.base == base && !state.issues[number].closed
    });
    if open {
        let message = format!("A pull request already exists for {}:{head}.", state.owner);
        return GitHubReply::validation_error("PullRequest", "head", "custom", Some(&message));
    }
    let number = state.issues.keys().next_back().map_or(1, |last| last + 1);
    let (created_at, author) = (state.next_time(), state.login.clone());
    let body = ask.body_text("body").unwrap_or_default();
    let issue = FakeIssue { title, body, author, created_at, ..FakeIssue::default() };
    let pull = FakePull {
        head,
        head_sha,
        base,
        draft: ask.body["draft"] == true,
        mergeable: Some(true),
        mergeable_state: "clean".to_owned(),
        ..FakePull::default()
    };
    let after = pull.head_sha.clone();
    state.issues.insert(number, issue);
    state.pulls.insert(number, pull);
    state.push(number, &state.login.clone(), &after);
    GitHubReply::json(
        201,
        &api_json::pull_json(state, number, &state.issues[&number], &state.pulls[&number]),
    )
}

pub(super) fn create_review(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    let (id, submitted_at, author) = (state.next_id(), state.next_time(), state.login.clone());
    if author == state.issues[&number].author {
        return GitHubReply::error(422, "Can not approve your own pull request");
    }
    let decided = match ask.body_text("event").as_deref() {
        Some("APPROVE") => "APPROVED",
        Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
        _ => "COMMENTED",
    };
    let head = state.pulls[&number].head_sha.clone();
    let review = FakeReview {
        id,
        author,
        state: decided.to_owned(),
        commit: ask.body_text("commit_id").unwrap_or(head),
        body: ask.body_text("body").unwrap_or_default(),
        submitted_at,
    };
    let shape = api_json::review_json(&review);
    state.pulls.entry(number).and_modify(|pull| pull.reviews.push(review));
    GitHubReply::json(200, &shape)
}

pub(super) fn merge_pull(
    state: &mut FakeGitHubState,
    ask: &GitHubCall<'_>,
    number: u64,
) -> GitHubReply {
    let (pull, issue) = (&state.pulls[&number], &state.issues[&number]);
    if issue.closed || pull.draft || pull.merged_as.is_some() || pull.mergeable == Some(false) {
        return GitHubReply::error(405, "Pull Request is not mergeable");
    }
    if ask.body_text("sha").is_some_and(|sha| sha != pull.head_sha) {
        return GitHubReply::error(
            409,
            "Head branch was modified. Review and try the merge again.",
        );
    }
    let method = ask.body_text("merge_method").unwrap_or_else(|| "merge".to_owned());
    if !state.merge_methods.contains(&method) {
        let title = method[..1].to_uppercase() + &method[1..];
        return GitHubReply::error(
            405,
            &format!("{title} merges are not allowed on this repository."),
        );
    }
    if pull.mergeable_state == "blocked" {
        return GitHubReply::error(
            405,
            "At least 1 approving review is required by reviewers with write access.",
        );
    }
    let sha = fake_sha(&format!("merge of {number} at {}", pull.head_sha));
    let (base, login) = (pull.base.clone(), state.login.clone());
    state.pulls.entry(number).and_modify(|pull| pull.merged_as = Some(sha.clone()));
    state.issues.entry(number).and_modify(|issue| issue.closed = true);
    state.branches.entry(base).and_modify(|branch| branch.sha.clone_from(&sha));
    state.record_event(number, "merged", &login, serde_json::json!({ "commit_id": sha }));
    let message = "Pull Request successfully merged";
    GitHubReply::json(200, &serde_json::json!({ "sha": sha, "merged": true, "message": message }))
}
