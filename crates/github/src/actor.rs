//! Who may ask for work. The person behind the event is asked about, never the token that the run has.
//!
//! What an event says of an author's association with the repository is not believed: it is old, and says nothing of whoever
//! added a label. Only the service's answer about an account counts, and no answer is a no.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Account, Context, EventName};
use crate::trigger::{is_bot, is_one_of};

/// What an account may do in a repository.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Nothing.
    None,
    /// Look.
    Read,
    /// Sort issues.
    Triage,
    /// Push.
    Write,
    /// Push, and change some settings.
    Maintain,
    /// Everything.
    Admin,
}

/// What the service said of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What it may do.
    Is(Permission),
    /// No answer that means anything, and why.
    Unknown(String),
}

/// Answers by login in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(BTreeMap<String, Answer>);

/// Who is let in besides those who can write. `*` means everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Programs that may ask for work.
    pub allowed_bots: Vec<String>,
    /// Accounts without write access that may ask questions.
    pub allowed_non_write_users: Vec<String>,
    /// The account that the bot writes as.
    pub bot_login: String,
    /// Other accounts that are the bot's as well.
    pub also_own: Vec<String>,
}

/// What a run may do on behalf of whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "admission")]
pub enum Admission {
    /// Work.
    Write,
    /// Look and answer, and change nothing.
    Read,
    /// Nothing.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// An admission, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Admitted {
    /// The admission.
    pub admission: Admission,
    /// One line for each account that was looked at.
    pub because: Vec<String>,
    /// Rules that are wider than anybody should want, said loudly.
    pub warnings: Vec<String>,
}

impl Rules {
    /// Whether an account is the bot's.
    pub fn is_own(&self, login: &str) -> bool {
        is_one_of(login, &self.bot_login, &self.also_own)
    }
}

impl Permission {
    /// The permission that the service calls so.
    pub fn parse(name: &str) -> Option<Permission> {
        match name {
            "admin" => Some(Permission::Admin),
            "maintain" => Some(Permission::Maintain),
            "write" | "push" => Some(Permission::Write),
            "triage" => Some(Permission::Triage),
            "read" | "pull" => Some(Permission::Read),
            "none" => Some(Permission::None),
            _ => None,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Permission::None => "none",
            Permission::Read => "read",
            Permission::Triage => "triage",
            Permission::Write => "write",
            Permission::Maintain => "maintain",
            Permission::Admin => "admin",
        }
    }

    /// Whether it is enough to push.
    pub fn can_write(self) -> bool {
        self >= Permission::Write
    }
}

impl Answers {
    /// Keeps an answer.
    #[must_use]
    pub fn with(mut self, login: &str, answer: Answer) -> Answers {
        self.0.insert(login.to_ascii_lowercase(), answer);
        self
    }

    /// What was said of an account.
    pub fn of(&self, login: &str) -> Option<&Answer> {
        self.0.get(&login.to_ascii_lowercase())
    }

    /// The permission of an account, for people; `None` if nobody knows.
    pub fn permission_of(&self, login: &str) -> Option<Permission> {
        match self.of(login)? {
            Answer::Is(permission) => Some(*permission),
            Answer::Unknown(_) => None,
        }
    }
}

/// The accounts that the service has to be asked about before [`admit`] can say yes.
pub fn to_ask<'a>(context: &'a Context, rules: &Rules) -> Vec<&'a Account> {
    let needs_answer = |account: &&Account| {
        !is_own(account, rules) && (!account.is_bot() || is_named(&account.login, rules))
    };
    behind(context).into_iter().filter(needs_answer).collect()
}

/// Decides what a run may do. All accounts behind it must be entitled; the least entitled one decides.
pub fn admit(context: &Context, answers: &Answers, rules: &Rules) -> Admitted {
    let mut verdicts: Vec<Verdict> = Vec::new();
    if context.event == EventName::Schedule {
        verdicts.push(Verdict::write("a run by the clock counts as the owner's".to_owned()));
    }
    verdicts.extend(behind(context).into_iter().map(|account| verdict(account, answers, rules)));
    let reasons = verdicts.iter().map(|verdict| verdict.because.clone());
    let because: Vec<String> = reasons.collect();
    let warnings = verdicts.iter().filter_map(|verdict| verdict.warning.clone()).collect();
    let refused = verdicts.iter().find(|verdict| verdict.rights == Rights::Nothing);
    let admission = match refused {
        Some(verdict) => Admission::Refused { reason: verdict.because.clone() },
        None if verdicts.is_empty() => {
            Admission::Refused { reason: "nobody stands behind this run".to_owned() }
        }
        None if verdicts.iter().any(|verdict| verdict.rights == Rights::Read) => Admission::Read,
        None => Admission::Write,
    };
    Admitted { admission, because, warnings }
}

/// Whether somebody may have work done, whatever they do it by: an event or a label. It is the same answer for both.
pub fn may_have_work_done(account: &Account, answers: &Answers, rules: &Rules) -> bool {
    verdict(account, answers, rules).rights == Rights::Write
}

/// Whoever caused the event and whoever had it run again. The clock is nobody.
fn behind(context: &Context) -> Vec<&Account> {
    let actor = (context.event != EventName::Schedule).then_some(&context.actor);
    actor.into_iter().chain(&context.rerun_by).collect()
}

#[derive(PartialEq, Eq)]
enum Rights {
    Nothing,
    Read,
    Write,
}

struct Verdict {
    rights: Rights,
    because: String,
    warning: Option<String>,
}

impl Verdict {
    fn no(because: String) -> Verdict {
        Verdict { rights: Rights::Nothing, because, warning: None }
    }

    fn write(because: String) -> Verdict {
        Verdict { rights: Rights::Write, because, warning: None }
    }

    fn read(because: String, warning: Option<String>) -> Verdict {
        Verdict { rights: Rights::Read, because, warning }
    }
}

fn verdict(account: &Account, answers: &Answers, rules: &Rules) -> Verdict {
    let login = &account.login;
    if is_own(account, rules) {
        return Verdict::no(format!("{login} is the bot itself, which does not answer itself"));
    }
    if account.is_bot() {
        return of_bot(login, answers, rules);
    }
    match answers.of(login) {
        None => Verdict::no(format!("nobody said what {login} may do")),
        Some(Answer::Unknown(why)) => {
            Verdict::no(format!("it is not known what {login} may do: {why}"))
        }
        Some(Answer::Is(permission)) if permission.can_write() => {
            Verdict::write(format!("{login} has {} access", permission.as_str()))
        }
        Some(Answer::Is(permission)) => of_reader(login, *permission, rules),
    }
}

/// A program that is named may ask, and have work done if the service says that it can write; one of all programs may only
/// ask, because anybody may install one.
fn of_bot(login: &str, answers: &Answers, rules: &Rules) -> Verdict {
    if is_named(login, rules) {
        let list = "a bot on the list `github.allowed_bots`";
        return match answers.permission_of(login) {
            Some(permission) if permission.can_write() => {
                Verdict::write(format!("{login} is {list} and has {} access", permission.as_str()))
            }
            Some(_) | None => Verdict::read(
                format!("{login} is {list}, and nobody says that it can write: questions only"),
                None,
            ),
        };
    }
    if rules.allowed_bots.iter().any(|name| name == "*") {
        let because = format!("{login} is a bot, and all bots may ask questions");
        let warning = "`github.allowed_bots` has `*`: any program may call the agent";
        return Verdict::read(because, Some(warning.to_owned()));
    }
    Verdict::no(format!("{login} is a bot that is not on the list `github.allowed_bots`"))
}

fn is_named(login: &str, rules: &Rules) -> bool {
    rules.allowed_bots.iter().any(|name| name != "*" && is_bot(login, name))
}

fn of_reader(login: &str, permission: Permission, rules: &Rules) -> Verdict {
    let list = &rules.allowed_non_write_users;
    let permission = permission.as_str();
    let named = |name: &String| name.trim_start_matches('@').eq_ignore_ascii_case(login);
    if list.iter().any(named) {
        let because = format!(
            "{login} has {permission} access and is on the list `github.allowed_non_write_users`: questions only"
        );
        return Verdict::read(because, None);
    }
    if list.iter().any(|name| name == "*") {
        let because = format!("{login} has {permission} access, and everybody may ask questions");
        let warning = "`github.allowed_non_write_users` has `*`: anybody may call the agent";
        return Verdict::read(because, Some(warning.to_owned()));
    }
    Verdict::no(format!(
        "{login} has {permission} access; write access or a place on the list `github.allowed_non_write_users` is needed"
    ))
}

fn is_own(account: &Account, rules: &Rules) -> bool {
    rules.is_own(&account.login)
}
