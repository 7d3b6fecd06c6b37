//! Decides whether an event triggers work: the list of triggers, and which of them match.
//!
//! A match says only that the bot was called. Whether the caller has the right to is decided in
//! [`crate::actor`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comment;
use crate::event::{EventName, GitHubEventContext};
use crate::untrusted::quote_line;

mod mention;

pub use mention::{BotMention, parse_mention};

/// The kinds of triggers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EventTrigger {
    /// The workflow was started by hand or through the API, with a prompt.
    WorkflowDispatch,
    /// An issue was opened.
    IssueOpened,
    /// The task label was added to an issue.
    IssueLabeled,
    /// A comment was written on an issue or pull request.
    IssueCommented,
    /// A pull request was opened, or marked as ready for review.
    PrOpened,
    /// The task label was added to a pull request.
    PrLabeled,
    /// A pull request was reviewed.
    PrReviewed,
    /// A prompt was given, whatever the event is.
    ExplicitPrompt,
    /// The bot was called by its phrase.
    Mention,
    /// The bot's label was added.
    Label,
    /// The bot's account was assigned.
    Assignee,
    /// Continuous operation is on, and the run was started by a schedule or by hand.
    Continuous,
    /// A mode was requested by name on the command line.
    Manual,
}

/// The settings of triggers: those of the project, read from the base branch, and how the run was
/// started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerSettings {
    /// The phrase that calls the bot.
    pub phrase: String,
    /// The label that calls the bot.
    pub label: Option<String>,
    /// The account whose assignment calls the bot.
    pub assignee: Option<String>,
    /// The label of tasks.
    pub task_label: String,
    /// The account the bot writes as.
    pub bot_login: String,
    /// Other accounts that belong to the bot.
    pub also_own: Vec<String>,
    /// True if continuous operation is on.
    pub continuous: bool,
    /// The prompt the run was given.
    pub prompt: Option<String>,
    /// True if a mode was requested by name.
    pub manual: bool,
}

impl Default for TriggerSettings {
    fn default() -> Self {
        TriggerSettings {
            phrase: "@repertoire".to_owned(),
            label: None,
            assignee: None,
            task_label: "agent-task".to_owned(),
            bot_login: "github-actions[bot]".to_owned(),
            also_own: Vec::new(),
            continuous: false,
            prompt: None,
            manual: false,
        }
    }
}

/// A trigger that matches an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriggerMatch {
    /// The trigger.
    pub trigger: EventTrigger,
    /// The reason it matches, for people. Names chosen by users are quoted.
    pub reason: String,
    /// The confidence that the bot was meant, in percent.
    pub confidence: u8,
}

impl EventTrigger {
    /// All triggers, in the order in which they are checked.
    pub const ALL: [EventTrigger; 13] = [
        EventTrigger::Manual,
        EventTrigger::Continuous,
        EventTrigger::WorkflowDispatch,
        EventTrigger::ExplicitPrompt,
        EventTrigger::Mention,
        EventTrigger::Label,
        EventTrigger::Assignee,
        EventTrigger::IssueLabeled,
        EventTrigger::PrLabeled,
        EventTrigger::IssueOpened,
        EventTrigger::PrOpened,
        EventTrigger::PrReviewed,
        EventTrigger::IssueCommented,
    ];

    /// Parses the name of a trigger. `continuous_mode` and `manual_trigger` are older names of two
    /// of them.
    pub fn parse(name: &str) -> Option<EventTrigger> {
        match name {
            "continuous_mode" => Some(EventTrigger::Continuous),
            "manual_trigger" => Some(EventTrigger::Manual),
            _ => EventTrigger::ALL.into_iter().find(|trigger| trigger.as_str() == name),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            EventTrigger::WorkflowDispatch => "workflow_dispatch",
            EventTrigger::IssueOpened => "issue_opened",
            EventTrigger::IssueLabeled => "issue_labeled",
            EventTrigger::IssueCommented => "issue_commented",
            EventTrigger::PrOpened => "pr_opened",
            EventTrigger::PrLabeled => "pr_labeled",
            EventTrigger::PrReviewed => "pr_reviewed",
            EventTrigger::ExplicitPrompt => "explicit_prompt",
            EventTrigger::Mention => "mention",
            EventTrigger::Label => "label",
            EventTrigger::Assignee => "assignee",
            EventTrigger::Continuous => "continuous",
            EventTrigger::Manual => "manual",
        }
    }
}

/// Returns the matching triggers, in the order of [`EventTrigger::ALL`]. A text that begins like the
/// bot's own comments matches nothing, regardless of its author: the bot must not trigger itself,
/// even if its login is not configured.
pub fn match_triggers(
    context: &GitHubEventContext,
    settings: &TriggerSettings,
) -> Vec<TriggerMatch> {
    if context.said.as_ref().is_some_and(|said| comment::begins_like_own(&said.text)) {
        return Vec::new();
    }
    let matches = EventTrigger::ALL.into_iter().filter_map(|trigger| {
        let (reason, confidence) = match_trigger(trigger, context, settings)?;
        Some(TriggerMatch { trigger, reason, confidence })
    });
    matches.collect()
}

/// Returns the prompt of the run: given by its caller, or as the workflow input `prompt`.
pub fn find_prompt<'a>(
    context: &'a GitHubEventContext,
    settings: &'a TriggerSettings,
) -> Option<&'a str> {
    let input = context.inputs.get("prompt").map(String::as_str);
    let given = settings.prompt.as_deref();
    [given, input].into_iter().flatten().map(str::trim).find(|prompt| !prompt.is_empty())
}

/// Returns the mention in the text of the event. The bot's own text never counts, nor does a
/// mention that was there before an edit, since that one was answered already.
pub fn find_mention(
    context: &GitHubEventContext,
    settings: &TriggerSettings,
) -> Option<BotMention> {
    let said = context.said.as_ref()?;
    let own = |login: &str| is_own_login(login, &settings.bot_login, &settings.also_own);
    if own(&said.author.login) || own(&context.actor.login) || comment::begins_like_own(&said.text)
    {
        return None;
    }
    let before = said.before.as_deref().unwrap_or_default();
    match parse_mention(before, &settings.phrase) {
        Some(_) => None,
        None => parse_mention(&said.text, &settings.phrase),
    }
}

/// Returns true if a login is the bot's, with or without the `[bot]` suffix of GitHub apps.
pub fn is_bot(login: &str, bot_login: &str) -> bool {
    let bot = plain_login(bot_login);
    !bot.is_empty() && plain_login(login) == bot
}

/// Returns a login in lower case and without the `[bot]` suffix.
fn plain_login(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_suffix("[bot]").map(str::to_owned).unwrap_or(name)
}

/// Returns true if a login is one of the bot's.
pub(crate) fn is_own_login(login: &str, bot_login: &str, also_own: &[String]) -> bool {
    is_bot(login, bot_login) || also_own.iter().any(|own| is_bot(login, own))
}

/// Returns the reason and the confidence if a trigger matches.
fn match_trigger(
    trigger: EventTrigger,
    context: &GitHubEventContext,
    settings: &TriggerSettings,
) -> Option<(String, u8)> {
    match trigger {
        EventTrigger::Manual => {
            settings.manual.then(|| ("a mode was asked for by name".to_owned(), 100))
        }
        EventTrigger::Continuous => match_continuous(context, settings),
        EventTrigger::WorkflowDispatch => {
            let started = context.event == EventName::WorkflowDispatch;
            (started && find_prompt(context, settings).is_some())
                .then(|| ("the workflow was started with a prompt".to_owned(), 100))
        }
        EventTrigger::ExplicitPrompt => {
            find_prompt(context, settings).map(|_| ("a prompt was given".to_owned(), 100))
        }
        EventTrigger::Mention => match_mention(context, settings),
        EventTrigger::Label => match_bot_label(context, settings),
        EventTrigger::Assignee => match_assignee(context, settings),
        EventTrigger::IssueLabeled => {
            match_task_label(context, settings, "issue", is_issue(context))
        }
        EventTrigger::PrLabeled => {
            match_task_label(context, settings, "pull request", is_pull(context))
        }
        EventTrigger::IssueOpened => (is_issue(context) && context.is_action("opened"))
            .then(|| (format!("{} was opened", describe_entity(context)), 70)),
        EventTrigger::PrOpened => match_pull_opened(context),
        EventTrigger::PrReviewed => (context.event == EventName::PullRequestReview
            && context.is_action("submitted"))
        .then(|| (format!("{} was reviewed", describe_entity(context)), 70)),
        EventTrigger::IssueCommented => (context.event == EventName::IssueComment
            && context.is_action("created"))
        .then(|| (format!("somebody wrote below {}", describe_entity(context)), 50)),
    }
}

fn match_continuous(
    context: &GitHubEventContext,
    settings: &TriggerSettings,
) -> Option<(String, u8)> {
    let started = match context.event {
        EventName::Schedule => "by the clock",
        EventName::WorkflowDispatch => "by hand",
        EventName::RepositoryDispatch => "by a dispatch",
        _ => return None,
    };
    let reason = format!("continuous operation is on, and the run was started {started}");
    settings.continuous.then_some((reason, 100))
}

fn match_mention(context: &GitHubEventContext, settings: &TriggerSettings) -> Option<(String, u8)> {
    let call = find_mention(context, settings)?;
    let phrase = quote_line(&settings.phrase);
    let reason = format!("the text that this event brought has the phrase {phrase}");
    Some((reason, if call.leads { 100 } else { 90 }))
}

fn match_bot_label(
    context: &GitHubEventContext,
    settings: &TriggerSettings,
) -> Option<(String, u8)> {
    let wanted = settings.label.as_deref().filter(|label| !label.is_empty())?;
    let same = |label: &str| same_label(label, wanted);
    if context.is_action("labeled") && context.label.as_deref().is_some_and(same) {
        return Some((format!("the label {} was added", quote_line(wanted)), 95));
    }
    let opened = (is_issue(context) || is_pull(context)) && context.is_action("opened");
    let has = context.entity.as_ref().is_some_and(|entity| entity.labels.iter().any(|l| same(l)));
    (opened && has).then(|| {
        (
            format!(
                "{} was opened with the label {}",
                describe_entity(context),
                quote_line(wanted)
            ),
            95,
        )
    })
}

fn match_assignee(
    context: &GitHubEventContext,
    settings: &TriggerSettings,
) -> Option<(String, u8)> {
    let wanted = settings.assignee.as_deref().filter(|login| !login.is_empty())?;
    let wanted = wanted.trim_start_matches('@');
    let assignee = context.assignee.as_ref().filter(|account| account.has_login(wanted))?;
    context
        .is_action("assigned")
        .then(|| (format!("{} was assigned to {}", describe_entity(context), assignee.login), 95))
}

fn match_task_label(
    context: &GitHubEventContext,
    settings: &TriggerSettings,
    what: &str,
    is_such: bool,
) -> Option<(String, u8)> {
    let label = context.label.as_deref()?;
    let fits = is_such && context.is_action("labeled") && same_label(label, &settings.task_label);
    fits.then(|| (format!("the {what} got the label {} of tasks", quote_line(label)), 95))
}

fn match_pull_opened(context: &GitHubEventContext) -> Option<(String, u8)> {
    let what = match context.action.as_deref() {
        Some("opened") => "was opened",
        Some("ready_for_review") => "is ready for review",
        _ => return None,
    };
    is_pull(context).then(|| (format!("{} {what}", describe_entity(context)), 70))
}

/// Compares labels without regard to case, as GitHub does.
fn same_label(label: &str, wanted: &str) -> bool {
    !wanted.is_empty() && label.trim().to_lowercase() == wanted.trim().to_lowercase()
}

fn is_issue(context: &GitHubEventContext) -> bool {
    context.event == EventName::Issues
}

fn is_pull(context: &GitHubEventContext) -> bool {
    matches!(context.event, EventName::PullRequest | EventName::PullRequestTarget)
}

fn describe_entity(context: &GitHubEventContext) -> String {
    match &context.entity {
        Some(entity) if entity.is_pull => format!("pull request {}", entity.number),
        Some(entity) => format!("issue {}", entity.number),
        None => "nothing in particular".to_owned(),
    }
}
