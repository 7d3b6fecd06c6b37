//! Lookups before a run: the branches of a pull request, permissions, and the discussion.

use crate::actor::{
    AccountPermission, ActorRules, KnownPermissions, PermissionLookup, accounts_to_look_up,
};
use crate::client::types::{GitHubUser, PullRequest};
use crate::client::{ClientError, GitHubClient};
use crate::event::{GitHubAccount, GitHubEventContext, PullBranches};

use crate::limits::{THREAD_AUTHORS_MAX, THREAD_COMMENTS_MAX};
use crate::template::ThreadRemark;

/// Completes an event with data it does not contain: the branches of its pull request, and the
/// default branch.
///
/// # Errors
///
/// If a lookup fails.
pub async fn complete_event(
    client: &GitHubClient,
    context: &GitHubEventContext,
) -> Result<GitHubEventContext, ClientError> {
    let mut context = context.clone();
    if let Some(entity) =
        context.entity.as_mut().filter(|entity| entity.is_pull && entity.pull.is_none())
    {
        entity.pull = Some(pull_branches(&client.get_pull(entity.number).await?));
    }
    if context.repository.default_branch.is_none() {
        context.repository.default_branch = Some(client.get_repository().await?.default_branch);
    }
    Ok(context)
}

fn pull_branches(pull: &PullRequest) -> PullBranches {
    PullBranches {
        head_ref: pull.head.name.clone(),
        head_sha: pull.head.sha.clone(),
        head_repository: pull.head.repo.as_ref().map(|repo| repo.full_name.clone()),
        base_ref: pull.base.name.clone(),
        base_sha: pull.base.sha.clone(),
        draft: pull.draft,
    }
}

/// Looks up the permissions of the accounts behind an event. A failed lookup grants nothing.
pub(super) async fn look_up_permissions(
    client: &GitHubClient,
    context: &GitHubEventContext,
    rules: &ActorRules,
) -> KnownPermissions {
    let mut answers = KnownPermissions::default();
    for account in accounts_to_look_up(context, rules) {
        answers = answers.with(&account.login, look_up_permission(client, account).await);
    }
    answers
}

async fn look_up_permission(client: &GitHubClient, account: &GitHubAccount) -> PermissionLookup {
    match client.get_permission(&account.login).await {
        Ok(found) => {
            // The role is more precise, but an organisation can give its custom roles any name: the
            // lower of the two counts.
            let role = found.role_name.as_deref().and_then(AccountPermission::parse);
            AccountPermission::parse(&found.permission).map_or_else(
                || {
                    PermissionLookup::Unknown(format!(
                        "an unknown permission `{}`",
                        found.permission
                    ))
                },
                |plain| PermissionLookup::Is(lower_permission(plain, role)),
            )
        }
        // GitHub returns 404 for accounts that are not collaborators of a public repository.
        Err(error) if error.is_not_found() => PermissionLookup::Is(AccountPermission::None),
        Err(error) => PermissionLookup::Unknown(error.to_string()),
    }
}

/// Combines GitHub's two values. The older one, `permission`, has neither `maintain` nor `triage`.
fn lower_permission(
    plain: AccountPermission,
    role: Option<AccountPermission>,
) -> AccountPermission {
    let Some(role) = role else { return plain };
    let in_older_words = match role {
        AccountPermission::Maintain => AccountPermission::Write,
        AccountPermission::Triage => AccountPermission::Read,
        other => other,
    };
    if in_older_words == plain { role } else { plain.min(in_older_words) }
}

/// Returns the discussion on an issue or pull request as of the event, oldest first, without the
/// bot's own comments. Permissions are looked up for a limited number of authors.
pub(super) async fn fetch_thread(
    client: &GitHubClient,
    context: &GitHubEventContext,
    answers: KnownPermissions,
    is_own: &(dyn Fn(&str) -> bool + Sync),
) -> Result<(Vec<ThreadRemark>, KnownPermissions), ClientError> {
    let Some(entity) = &context.entity else { return Ok((Vec::new(), answers)) };
    let said = context.said.as_ref().and_then(|said| said.comment);
    let is_later = |time: &str| context.at.as_deref().is_some_and(|at| time > at);
    let mut late = 0;
    let mut remarks: Vec<(String, ThreadRemark)> = Vec::new();
    for comment in client.list_comments(entity.number).await?.items {
        let author = login_or_ghost(comment.user);
        if is_own(&author) || said == Some(comment.id) {
            continue;
        }
        // The actor has not seen this version. An attacker could have edited it after the call.
        if is_later(&comment.updated_at) || is_later(&comment.created_at) {
            late += 1;
            continue;
        }
        let (what, text) = (format!("comment {}", comment.id), comment.body.unwrap_or_default());
        remarks.push((comment.created_at, ThreadRemark { what, author, text }));
    }
    if entity.is_pull {
        for review in client.list_reviews(entity.number).await?.items {
            let (author, text) = (login_or_ghost(review.user), review.body.unwrap_or_default());
            if text.trim().is_empty() || is_own(&author) || said == Some(review.id) {
                continue;
            }
            let time = review.submitted_at.unwrap_or_default();
            if is_later(&time) {
                late += 1;
                continue;
            }
            let what = format!("review {} ({})", review.id, review.state.to_lowercase());
            remarks.push((time, ThreadRemark { what, author, text }));
        }
    }
    remarks.sort_by(|a, b| a.0.cmp(&b.0));
    let from = remarks.len().saturating_sub(THREAD_COMMENTS_MAX);
    let remarks: Vec<ThreadRemark> =
        remarks.into_iter().skip(from).map(|(_, remark)| remark).collect();
    let answers = look_up_authors(client, &remarks, answers).await;
    Ok((remarks.into_iter().chain(late_remarks_note(late)).collect(), answers))
}

/// Returns a note about remarks that were left out.
fn late_remarks_note(late: usize) -> Option<ThreadRemark> {
    (late > 0).then(|| ThreadRemark {
        what: format!("{late} later remarks"),
        author: "the engine".to_owned(),
        text: "(left out: they were written or changed after the call)".to_owned(),
    })
}

async fn look_up_authors(
    client: &GitHubClient,
    remarks: &[ThreadRemark],
    mut answers: KnownPermissions,
) -> KnownPermissions {
    let mut asked = 0;
    for remark in remarks.iter().rev() {
        if answers.lookup_of(&remark.author).is_some() || asked == THREAD_AUTHORS_MAX {
            continue;
        }
        asked += 1;
        if let Ok(found) = client.get_permission(&remark.author).await
            && let Some(permission) = AccountPermission::parse(&found.permission)
        {
            answers = answers.with(&remark.author, PermissionLookup::Is(permission));
        }
    }
    answers
}

/// GitHub's name for deleted accounts.
const GHOST: &str = "ghost";

fn login_or_ghost(user: Option<GitHubUser>) -> String {
    user.map_or_else(|| GHOST.to_owned(), |user| user.login)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_an_organisation_named_write_gives_no_more_than_the_service_says() {
        use AccountPermission::{Admin, Maintain, Read, Triage, Write};
        for (plain, role, expected) in [
            (Read, Some(Write), Read),
            (Read, Some(Admin), Read),
            (Write, Some(Read), Read),
            (Write, Some(Maintain), Maintain),
            (Read, Some(Triage), Triage),
            (Admin, Some(Admin), Admin),
            (Write, None, Write),
        ] {
            assert_eq!(lower_permission(plain, role), expected, "{plain:?} {role:?}");
        }
    }
}
