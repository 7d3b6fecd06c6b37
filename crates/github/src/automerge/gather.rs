//! Gathers the facts for auto-merge from GitHub. A failed lookup is an unknown fact.

use std::collections::BTreeMap;

use crate::client::types::{
    BranchProtection, BranchRule, GitHubBranch, GitHubUser, PullRequest, PullReview,
};
use crate::client::{ClientError, GitHubClient, PagedList};

use super::{
    AutoMergeRequest, BaseFacts, HeadCheck, MergeEvidence, MergeFact, MergeFacts, PullFacts,
    ReviewFacts,
};

/// Fetches all facts that a decision is based on. `pinned` is the commit of an earlier decision.
pub async fn gather_facts(
    client: &GitHubClient,
    request: &AutoMergeRequest,
    pinned: Option<&str>,
) -> MergeFacts {
    let mut facts =
        MergeFacts { pinned: pinned.map(str::to_owned), ..MergeFacts::all_unknown(request) };
    let halted = super::watch::find_halt_issue(client, &request.own_login).await;
    facts.halted = fact_from_result(halted.map_err(|error| error.to_string()));
    let pull = match client.get_pull(request.number).await {
        Ok(pull) => pull,
        Err(error) => {
            facts.pull = MergeFact::Unknown(error.to_string());
            return facts;
        }
    };
    facts.base = fact_from_result(fetch_base(client, &pull.base.name).await);
    facts.checks = fact_from_result(fetch_checks(client, &pull.head.sha).await);
    facts.reviews = fact_from_result(fetch_reviews(client, request.number).await);
    facts.paths = fact_from_result(fetch_paths(client, request.number).await);
    if request.witness == MergeEvidence::Service {
        facts.movers = fact_from_result(fetch_movers(client, &pull.head.name).await);
    }
    facts.pull = MergeFact::Known(pull_facts(client, pull));
    facts
}

const NOT_ASKED: &str = "it was not asked for";

fn fact_from_result<T>(asked: Result<T, String>) -> MergeFact<T> {
    match asked {
        Ok(value) => MergeFact::Known(value),
        Err(why) => MergeFact::Unknown(why),
    }
}

fn pull_facts(client: &GitHubClient, pull: PullRequest) -> PullFacts {
    let ours = client.full_name();
    let is_ours =
        pull.head.repo.as_ref().is_some_and(|it| it.full_name.eq_ignore_ascii_case(&ours));
    PullFacts {
        open: pull.state == "open",
        merged: pull.merged,
        draft: pull.draft,
        same_repository: is_ours,
        author: pull.user.map(|user| user.login).unwrap_or_default(),
        head: pull.head.name,
        head_sha: pull.head.sha,
        base: pull.base.name,
        labels: pull.labels,
        mergeable: pull.mergeable,
        mergeable_state: pull.mergeable_state,
        changed_lines: pull.additions.saturating_add(pull.deletions),
    }
}

/// Returns the items of a complete list. No decision is based on an incomplete one.
fn require_complete<T>(
    listed: Result<PagedList<T>, ClientError>,
    what: &str,
) -> Result<Vec<T>, String> {
    let listed = listed.map_err(|error| error.to_string())?;
    if listed.whole {
        Ok(listed.items)
    } else {
        Err(format!("there are more {what} than are read"))
    }
}

async fn fetch_base(client: &GitHubClient, name: &str) -> Result<BaseFacts, String> {
    let info = client.get_repository().await.map_err(|error| error.to_string())?;
    let branch = client.get_branch(name).await.map_err(|error| error.to_string())?;
    let rules = require_complete(client.list_branch_rules(name).await, "rules")?;
    let protection = if branch.protected {
        // Most tokens may not read the protection. Then conversations are assumed to need a resolution; GitHub itself
        // enforces the other rules.
        match client.get_protection(name).await {
            Ok(protection) => Some(protection),
            Err(ClientError::Forbidden { .. }) => None,
            Err(error) => return Err(error.to_string()),
        }
    } else {
        Some(None)
    };
    Ok(base_facts(info.default_branch == name, &branch, &rules, protection.as_ref()))
}

/// Combines the facts about the base branch. `protection` is `None` if it could not be read, and
/// `Some(None)` if there is none.
fn base_facts(
    is_default: bool,
    branch: &GitHubBranch,
    rules: &[BranchRule],
    protection: Option<&Option<BranchProtection>>,
) -> BaseFacts {
    let hidden = protection.is_none();
    let protection = protection.and_then(Option::as_ref);
    let full = protection.and_then(|it| it.required_status_checks.as_ref());
    let summary = branch.protection.as_ref().and_then(|it| it.required_status_checks.as_ref());
    let by_rules = rules.iter().filter_map(|rule| rule.parameters.as_ref());
    let mut required_checks: Vec<String> =
        full.into_iter().chain(summary).flat_map(|it| it.contexts.clone()).collect();
    required_checks.extend(
        by_rules
            .clone()
            .flat_map(|it| it.required_status_checks.iter().map(|check| check.context.clone())),
    );
    required_checks.sort();
    required_checks.dedup();
    let reviews = protection.and_then(|it| it.required_pull_request_reviews.as_ref());
    let resolution = protection.and_then(|it| it.required_conversation_resolution.as_ref());
    let count = reviews.map_or(0, |it| it.required_approving_review_count);
    BaseFacts {
        is_default,
        protected: branch.protected || !rules.is_empty(),
        required_checks,
        required_approvals: by_rules
            .clone()
            .map(|it| it.required_approving_review_count)
            .fold(count, u32::max),
        resolves_conversations: hidden
            || resolution.is_some_and(|it| it.enabled)
            || by_rules.clone().any(|it| it.required_review_thread_resolution),
    }
}

pub(super) async fn fetch_checks(
    client: &GitHubClient,
    sha: &str,
) -> Result<Vec<HeadCheck>, String> {
    let runs = require_complete(client.list_check_runs(sha).await, "checks")?;
    let statuses = require_complete(client.list_statuses(sha).await, "statuses")?;
    let mut out = Vec::new();
    for run in runs {
        if run.head_sha != sha {
            return Err(format!("check `{}` is about another commit", run.name));
        }
        let done = run.status == "completed";
        out.push(HeadCheck {
            name: run.name,
            app: run.app.and_then(|app| app.slug),
            // A completed run without a conclusion must not count as a success or as pending.
            conclusion: done.then(|| run.conclusion.unwrap_or_else(|| "none".to_owned())),
        });
    }
    for status in statuses {
        let conclusion = (status.state != "pending").then_some(status.state);
        out.push(HeadCheck { name: status.context, app: None, conclusion });
    }
    Ok(out)
}

async fn fetch_reviews(client: &GitHubClient, number: u64) -> Result<Vec<ReviewFacts>, String> {
    let reviews = require_complete(client.list_reviews(number).await, "reviews")?;
    let mut rights: BTreeMap<String, MergeFact<bool>> = BTreeMap::new();
    let mut out = Vec::new();
    for review in reviews {
        let PullReview { user: Some(user), state, commit_id, .. } = review else { continue };
        // Look up only accounts whose review could count.
        if state == "APPROVED" && !rights.contains_key(&user.login) {
            let right = match client.get_permission(&user.login).await {
                Ok(permission) => MergeFact::Known(permission.can_write()),
                Err(ClientError::NotFound { .. }) => MergeFact::Known(false),
                Err(error) => MergeFact::Unknown(error.to_string()),
            };
            rights.insert(user.login.clone(), right);
        }
        let can_write = rights.get(&user.login).cloned();
        out.push(ReviewFacts {
            is_bot: user.is_bot(),
            can_write: can_write.unwrap_or_else(|| MergeFact::Unknown(NOT_ASKED.to_owned())),
            login: user.login,
            state,
            commit: commit_id,
        });
    }
    Ok(out)
}

/// Returns the accounts that moved a branch. A deleted account counts as another one.
async fn fetch_movers(client: &GitHubClient, branch: &str) -> Result<Vec<String>, String> {
    let moves = require_complete(client.list_branch_activity(branch).await, "moves of the branch")?;
    let login =
        |actor: Option<GitHubUser>| actor.map_or_else(|| GHOST.to_owned(), |user| user.login);
    Ok(moves.into_iter().map(|moved| login(moved.actor)).collect())
}

/// GitHub's name for deleted accounts.
const GHOST: &str = "ghost";

async fn fetch_paths(client: &GitHubClient, number: u64) -> Result<Vec<String>, String> {
    let files = require_complete(client.list_pull_files(number).await, "files")?;
    let both = files.into_iter().flat_map(|file| [Some(file.filename), file.previous_filename]);
    Ok(both.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn branch(protected: bool) -> GitHubBranch {
        let contexts = if protected { json!(["from-summary"]) } else { json!([]) };
        serde_json::from_value(json!({
            "name": "main", "commit": { "sha": "a" }, "protected": protected,
            "protection": { "required_status_checks": { "contexts": contexts } },
        }))
        .unwrap()
    }

    #[test]
    fn a_protection_that_cannot_be_read_is_taken_for_the_strictest() {
        let facts = base_facts(true, &branch(true), &[], None);
        assert_eq!(facts.required_checks, ["from-summary"]);
        assert!(facts.protected && facts.resolves_conversations);
    }

    #[test]
    fn a_branch_without_protection_demands_nothing() {
        let facts = base_facts(false, &branch(false), &[], Some(&None));
        assert!(!facts.protected && !facts.resolves_conversations);
        assert!(facts.required_checks.is_empty());
    }

    #[test]
    fn rules_and_protection_are_added_up() {
        let rules: Vec<BranchRule> = serde_json::from_value(json!([
            { "type": "deletion" },
            { "type": "required_status_checks",
              "parameters": { "required_status_checks": [{ "context": "from-rule" }] } },
            { "type": "pull_request",
              "parameters": { "required_approving_review_count": 3, "required_review_thread_resolution": true } },
        ]))
        .unwrap();
        let protection: BranchProtection = serde_json::from_value(json!({
            "required_status_checks": { "contexts": ["from-protection"] },
            "required_pull_request_reviews": { "dismiss_stale_reviews": true, "required_approving_review_count": 2 },
        }))
        .unwrap();
        let facts = base_facts(true, &branch(true), &rules, Some(&Some(protection)));
        assert_eq!(facts.required_checks, ["from-protection", "from-rule", "from-summary"]);
        assert_eq!(facts.required_approvals, 3);
        assert!(facts.resolves_conversations);
    }
}
