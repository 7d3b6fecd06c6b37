//! Decides who may trigger work. The decision is about the account behind the event, never about
//! the token the run has.
//!
//! The `author_association` of an event is not trusted: it is out of date, and says nothing about
//! the account that added a label. Only the permission GitHub reports for an account counts, and a
//! failed lookup is a refusal.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Account, Context, EventName};
use crate::trigger::{is_bot, is_one_of};

/// The permission of an account in a repository.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// No access.
    None,
    /// May read.
    Read,
    /// May also manage issues.
    Triage,
    /// May also push.
    Write,
    /// May also change some settings.
    Maintain,
    /// May do everything.
    Admin,
}

/// The result of looking up an account's permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The permission GitHub reported.
    Is(Permission),
    /// The lookup failed, with the reason.
    Unknown(String),
}

/// The looked-up permissions, by login in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(BTreeMap<String, Answer>);

/// The accounts that are admitted besides those with write access. `*` admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Bots that may trigger work.
    pub allowed_bots: Vec<String>,
    /// Accounts without write access that may ask questions.
    pub allowed_non_write_users: Vec<String>,
    /// The account the bot writes as.
    pub bot_login: String,
    /// Other accounts that belong to the bot.
    pub also_own: Vec<String>,
}

/// The rights of a run, derived from the accounts that triggered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "admission")]
pub enum Admission {
    /// May change code.
    Write,
    /// May read and answer, but change nothing.
    Read,
    /// May do nothing.
    Refused {
        /// The reason, for people.
        reason: String,
    },
}

/// An admission, and the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Admitted {
    /// The admission.
    pub admission: Admission,
    /// One line for each account that was considered.
    pub because: Vec<String>,
    /// Warnings about rules that are wider than advisable.
    pub warnings: Vec<String>,
}

impl Rules {
    /// Returns true if an account belongs to the bot.
    pub fn is_own(&self, login: &str) -> bool {
        is_one_of(login, &self.bot_login, &self.also_own)
    }
}

impl Permission {
    /// Parses GitHub's name of a permission.
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

    /// Returns true if the account may push.
    pub fn can_write(self) -> bool {
        self >= Permission::Write
    }
}

impl Answers {
    /// Adds the result for an account.
    #[must_use]
    pub fn with(mut self, login: &str, answer: Answer) -> Answers {
        self.0.insert(login.to_ascii_lowercase(), answer);
        self
    }

    /// Returns the result for an account.
    pub fn of(&self, login: &str) -> Option<&Answer> {
        self.0.get(&login.to_ascii_lowercase())
    }

    /// Returns the permission of an account; `None` if it is not known.
    pub fn permission_of(&self, login: &str) -> Option<Permission> {
        match self.of(login)? {
            Answer::Is(permission) => Some(*permission),
            Answer::Unknown(_) => None,
        }
    }
}

/// Returns the accounts whose permission has to be looked up before [`admit`] can admit them.
pub fn to_ask<'a>(context: &'a Context, rules: &Rules) -> Vec<&'a Account> {
    let accounts = behind(context).into_iter();
    accounts.filter(|account| needs_lookup(account, rules)).collect()
}

fn needs_lookup(account: &Account, rules: &Rules) -> bool {
    !is_own(account, rules) && (!account.is_bot() || is_named(&account.login, rules))
}

/// Decides the rights of a run. All accounts behind it must be entitled; the one with the fewest
/// rights decides.
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

/// Returns true if an account may trigger work, by an event or by a label.
pub fn may_have_work_done(account: &Account, answers: &Answers, rules: &Rules) -> bool {
    verdict(account, answers, rules).rights == Rights::Write
}

/// Returns the account that caused the event and the one that re-ran the workflow. A schedule has
/// no account.
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

/// Decides the rights of a bot. A bot on the list may ask questions, and trigger work if it has
/// write access. A bot admitted by `*` may only ask, because anyone can install one.
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
