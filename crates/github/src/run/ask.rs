//! Lookups before a run: the branches of a pull request, permissions, and the discussion.

use crate::actor::{Answer, Answers, Permission, Rules, to_ask};
use crate::client::types::{PullRequest, User};
use crate::client::{Client, ClientError};
use crate::event::{Account, Context, Pull};

use crate::limits::{THREAD_AUTHORS_MAX, THREAD_COMMENTS_MAX};
use crate::template::Remark;

/// Completes an event with data it does not contain: the branches of its pull request, and the
/// default branch.
///
/// # Errors
///
/// If a lookup fails.
pub async fn complete(client: &Client, context: &Context) -> Result<Context, ClientError> {
    let mut context = context.clone();
    if let Some(entity) =
        context.entity.as_mut().filter(|entity| entity.is_pull && entity.pull.is_none())
    {
        entity.pull = Some(branches(&client.pull(entity.number).await?));
    }
    if context.repository.default_branch.is_none() {
        context.repository.default_branch = Some(client.repository_info().await?.default_branch);
    }
    Ok(context)
}

fn branches(pull: &PullRequest) -> Pull {
    Pull {
        head_ref: pull.head.name.clone(),
        head_sha: pull.head.sha.clone(),
        head_repository: pull.head.repo.as_ref().map(|repo| repo.full_name.clone()),
        base_ref: pull.base.name.clone(),
        base_sha: pull.base.sha.clone(),
        draft: pull.draft,
    }
}

/// Looks up the permissions of the accounts behind an event. A failed lookup grants nothing.
pub(super) async fn permissions(client: &Client, context: &Context, rules: &Rules) -> Answers {
    let mut answers = Answers::default();
    for account in to_ask(context, rules) {
        answers = answers.with(&account.login, permission(client, account).await);
    }
    answers
}

async fn permission(client: &Client, account: &Account) -> Answer {
    match client.permission(&account.login).await {
        Ok(found) => {
            // The role is more precise, but an organisation can give its custom roles any name: the
            // lower of the two counts.
            let role = found.role_name.as_deref().and_then(Permission::parse);
            Permission::parse(&found.permission).map_or_else(
                || Answer::Unknown(format!("an unknown permission `{}`", found.permission)),
                |plain| Answer::Is(lower(plain, role)),
            )
        }
        // GitHub returns 404 for accounts that are not collaborators of a public repository.
        Err(error) if error.is_not_found() => Answer::Is(Permission::None),
        Err(error) => Answer::Unknown(error.to_string()),
    }
}

/// Combines GitHub's two values. The older one, `permission`, has neither `maintain` nor `triage`.
fn lower(plain: Permission, role: Option<Permission>) -> Permission {
    let Some(role) = role else { return plain };
    let in_older_words = match role {
        Permission::Maintain => Permission::Write,
        Permission::Triage => Permission::Read,
        other => other,
    };
    if in_older_words == plain { role } else { plain.min(in_older_words) }
}

/// Returns the discussion on an issue or pull request as of the event, oldest first, without the
/// bot's own comments. Permissions are looked up for a limited number of authors.
pub(super) async fn thread(
    client: &Client,
    context: &Context,
    answers: Answers,
    is_own: &(dyn Fn(&str) -> bool + Sync),
) -> Result<(Vec<Remark>, Answers), ClientError> {
    let Some(entity) = &context.entity else { return Ok((Vec::new(), answers)) };
    let said = context.said.as_ref().and_then(|said| said.comment);
    let is_later = |time: &str| context.at.as_deref().is_some_and(|at| time > at);
    let mut late = 0;
    let mut remarks: Vec<(String, Remark)> = Vec::new();
    for comment in client.comments(entity.number).await?.items {
        let author = login(comment.user);
        if is_own(&author) || said == Some(comment.id) {
            continue;
        }
        // The actor has not seen this version. An attacker could have edited it after the call.
        if is_later(&comment.updated_at) || is_later(&comment.created_at) {
            late += 1;
            continue;
        }
        let (what, text) = (format!("comment {}", comment.id), comment.body.unwrap_or_default());
        remarks.push((comment.created_at, Remark { what, author, text }));
    }
    if entity.is_pull {
        for review in client.reviews(entity.number).await?.items {
            let (author, text) = (login(review.user), review.body.unwrap_or_default());
            if text.trim().is_empty() || is_own(&author) || said == Some(review.id) {
                continue;
            }
            let time = review.submitted_at.unwrap_or_default();
            if is_later(&time) {
                late += 1;
                continue;
            }
            let what = format!("review {} ({})", review.id, review.state.to_lowercase());
            remarks.push((time, Remark { what, author, text }));
        }
    }
    remarks.sort_by(|a, b| a.0.cmp(&b.0));
    let from = remarks.len().saturating_sub(THREAD_COMMENTS_MAX);
    let remarks: Vec<Remark> = remarks.into_iter().skip(from).map(|(_, remark)| remark).collect();
    let answers = authors(client, &remarks, answers).await;
    Ok((remarks.into_iter().chain(left_out(late)).collect(), answers))
}

/// Returns a note about remarks that were left out.
fn left_out(late: usize) -> Option<Remark> {
    (late > 0).then(|| Remark {
        what: format!("{late} later remarks"),
        author: "the engine".to_owned(),
        text: "(left out: they were written or changed after the call)".to_owned(),
    })
}

async fn authors(client: &Client, remarks: &[Remark], mut answers: Answers) -> Answers {
    let mut asked = 0;
    for remark in remarks.iter().rev() {
        if answers.of(&remark.author).is_some() || asked == THREAD_AUTHORS_MAX {
            continue;
        }
        asked += 1;
        if let Ok(found) = client.permission(&remark.author).await
            && let Some(permission) = Permission::parse(&found.permission)
        {
            answers = answers.with(&remark.author, Answer::Is(permission));
        }
    }
    answers
}

/// GitHub's name for deleted accounts.
const GHOST: &str = "ghost";

fn login(user: Option<User>) -> String {
    user.map_or_else(|| GHOST.to_owned(), |user| user.login)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_an_organisation_named_write_gives_no_more_than_the_service_says() {
        use Permission::{Admin, Maintain, Read, Triage, Write};
        for (plain, role, expected) in [
            (Read, Some(Write), Read),
            (Read, Some(Admin), Read),
            (Write, Some(Read), Read),
            (Write, Some(Maintain), Maintain),
            (Read, Some(Triage), Triage),
            (Admin, Some(Admin), Admin),
            (Write, None, Write),
        ] {
            assert_eq!(lower(plain, role), expected, "{plain:?} {role:?}");
        }
    }
}
