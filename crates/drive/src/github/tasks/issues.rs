//! Issues that wait for the agent, and what is said there when a task has ended.
//!
//! Anybody may open an issue, and whoever may triage can label it. It is picked only if the label was added by somebody who
//! may write to the repository, or who is on one of the lists.

use std::collections::BTreeMap;

use repertoire_github::client::types::{Issue, User};
use repertoire_github::client::{Client, ClientError};
use repertoire_github::comment::{self, Harmless, Marker, cut, harmless};

use super::{PRIORITY_DEFAULT, PassedOver, Source, Task, bounded, priority_of};
use crate::limits::{COMMENT_CHARS_MAX, TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX, TASKS_MAX};

/// Which issues are tasks.
#[derive(Clone, Debug)]
pub struct IssueRules {
    /// The label that makes an issue a task.
    pub task_label: String,
    /// The label of those that failed.
    pub failed_label: String,
    /// Who we are: an issue that is assigned to us is not assigned to a person.
    pub own_login: String,
    /// Programs that may add the label.
    pub allowed_bots: Vec<String>,
    /// People who may add the label though they may not write.
    pub allowed_users: Vec<String>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It failed, and is not picked again until a person takes the label off.
    Failed,
    /// A person has to answer a question.
    Waiting,
}

/// What is said below an issue about the end of its task.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// How it ended.
    pub outcome: Outcome,
    /// What tells this run from all others.
    pub run: &'a str,
    /// Words of ours.
    pub ours: &'a str,
    /// Words of the agent; they are made harmless.
    pub theirs: &'a str,
    /// Most characters.
    pub chars_max: usize,
}

/// The issues that may be picked, and those that may not.
pub async fn tasks(
    client: &Client,
    rules: &IssueRules,
) -> Result<(Vec<Task>, Vec<PassedOver>), ClientError> {
    let found = client.issues_labelled(&rules.task_label).await?;
    let (mut tasks, mut passed) = (Vec::new(), Vec::new());
    let mut entitled = Entitled { client, rules, known: BTreeMap::new() };
    for issue in found.items.into_iter().filter(|issue| !issue.is_pull()) {
        let id = format!("issue-{}", issue.number);
        let refusal = match refusal(&issue, rules) {
            Some(why) => Some(why),
            None if tasks.len() >= TASKS_MAX => Some("comes after too many others".to_owned()),
            None => entitled.refusal(&issue).await?,
        };
        match refusal {
            Some(why) => passed.push(PassedOver::new(id, why)),
            None => tasks.push(task(id, issue)),
        }
    }
    Ok((tasks, passed))
}

/// What the issue itself says against it.
fn refusal(issue: &Issue, rules: &IssueRules) -> Option<String> {
    if issue.state != "open" {
        return Some("is closed".to_owned());
    }
    // Asked for by the label, but a filter that is not understood is passed over.
    if !issue.has_label(&rules.task_label) {
        return Some(format!("has no label `{}`", rules.task_label));
    }
    if issue.has_label(&rules.failed_label) {
        let label = &rules.failed_label;
        return Some(format!("has the label `{label}`; take it off to have it tried again"));
    }
    let person = issue.assignees.iter().find(|user| !user.is_bot() && !user.is(&rules.own_login));
    person.map(|user| format!("is assigned to {}", user.login))
}

/// Who may make an issue a task; each account is asked about once.
struct Entitled<'a> {
    client: &'a Client,
    rules: &'a IssueRules,
    known: BTreeMap<String, Option<String>>,
}

impl Entitled<'_> {
    async fn refusal(&mut self, issue: &Issue) -> Result<Option<String>, ClientError> {
        let label = &self.rules.task_label;
        let Some(user) = self.client.who_labelled(issue.number, label).await? else {
            return Ok(Some(format!("does not say who added the label `{label}`")));
        };
        let login = user.login.to_lowercase();
        if let Some(known) = self.known.get(&login) {
            return Ok(known.clone());
        }
        let refusal = match self.may(&user).await? {
            true => None,
            false => Some(format!("got its label from {}, who may not write here", user.login)),
        };
        self.known.insert(login, refusal.clone());
        Ok(refusal)
    }

    async fn may(&self, user: &User) -> Result<bool, ClientError> {
        let on = |list: &[String]| list.iter().any(|login| user.is(login));
        if user.is_bot() {
            return Ok(on(&self.rules.allowed_bots));
        }
        if on(&self.rules.allowed_users) {
            return Ok(true);
        }
        match self.client.permission(&user.login).await {
            Ok(permission) => Ok(permission.can_write()),
            // The account is gone, or has a name that is none.
            Err(ClientError::NotFound { .. } | ClientError::BadName { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn task(id: String, issue: Issue) -> Task {
    let numbers = issue.labels.iter().filter_map(|label| {
        let (name, digits) = label.split_at_checked("priority-".len())?;
        priority_of(digits).filter(|_| name.eq_ignore_ascii_case("priority-"))
    });
    Task {
        id,
        source: Source::Issue,
        // Of several the most urgent holds.
        priority: numbers.min().unwrap_or(PRIORITY_DEFAULT),
        title: bounded(issue.title.trim(), TASK_TITLE_CHARS_MAX),
        body: bounded(issue.body.unwrap_or_default().trim(), TASK_BODY_CHARS_MAX),
        labels: issue.labels,
        created: Some(issue.created_at),
        position: issue.number,
    }
}

/// Says below an issue how its task ended: one comment for each run, however often this is called. A task that failed is
/// labelled before anything else, so that it is not picked again even if the comment cannot be written.
pub async fn report(
    client: &Client,
    number: u64,
    rules: &IssueRules,
    report: &Report<'_>,
    harmless_rules: &Harmless<'_>,
) -> Result<(), ClientError> {
    if report.outcome == Outcome::Failed {
        client.add_label(number, &rules.failed_label).await?;
    }
    let marker = Marker::new(&format!("task:{}", report.run));
    let theirs = harmless(report.theirs.trim(), harmless_rules);
    let said = [report.ours.trim(), &theirs].join("\n\n");
    let answer = cut(said.trim(), report.chars_max);
    let body = comment::new_body(&marker, &answer, COMMENT_CHARS_MAX);
    let there = client.comments(number).await?;
    match comment::find(&there.items, &rules.own_login, &marker) {
        Some(ours) if ours.body.as_deref() == Some(body.as_str()) => Ok(()),
        Some(ours) => client.update_comment(ours.id, &body).await.map(drop),
        None => {
            let login = &rules.own_login;
            client.create_comment(number, &body, login, &marker.text()).await.map(drop)
        }
    }
}
