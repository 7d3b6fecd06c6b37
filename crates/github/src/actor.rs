//! Decides who may trigger work. The decision is about the account behind the event, never about
//! the token the run has.
//!
//! The `author_association` of an event is not trusted: it is out of date, and says nothing about
//! the account that added a label. Only the permission GitHub reports for an account counts, and a
//! failed lookup is a refusal.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{EventName, GitHubAccount, GitHubEventContext};
use crate::trigger::{is_bot, is_own_login};

/// The permission of an account in a repository.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AccountPermission {
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
pub enum PermissionLookup {
    /// The permission GitHub reported.
    Is(AccountPermission),
    /// The lookup failed, with the reason.
    Unknown(String),
}

/// The looked-up permissions, by login in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPermissions(BTreeMap<String, PermissionLookup>);

/// The accounts that are admitted besides those with write access. `*` admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActorRules {
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
pub enum RunAdmission {
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
pub struct AdmissionDecision {
    /// The admission.
    pub admission: RunAdmission,
    /// One line for each account that was considered.
    pub because: Vec<String>,
    /// Warnings about rules that are wider than advisable.
    pub warnings: Vec<String>,
}

impl ActorRules {
    /// Returns true if an account belongs to the bot.
    pub fn is_own(&self, login: &str) -> bool {
        is_own_login(login, &self.bot_login, &self.also_own)
    }
}

impl AccountPermission {
    /// Parses GitHub's name of a permission.
    pub fn parse(name: &str) -> Option<AccountPermission> {
        match name {
            "admin" => Some(AccountPermission::Admin),
            "maintain" => Some(AccountPermission::Maintain),
            "write" | "push" => Some(AccountPermission::Write),
            "triage" => Some(AccountPermission::Triage),
            "read" | "pull" => Some(AccountPermission::Read),
            "none" => Some(AccountPermission::None),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            AccountPermission::None => "none",
            AccountPermission::Read => "read",
            AccountPermission::Triage => "triage",
            AccountPermission::Write => "write",
            AccountPermission::Maintain => "maintain",
            AccountPermission::Admin => "admin",
        }
    }

    /// Returns true if the account may push.
    pub fn can_write(self) -> bool {
        self >= AccountPermission::Write
    }
}

impl KnownPermissions {
    /// Adds the result for an account.
    #[must_use]
    pub fn with(mut self, login: &str, answer: PermissionLookup) -> KnownPermissions {
        self.0.insert(login.to_ascii_lowercase(), answer);
        self
    }

    /// Returns the result for an account.
    pub fn lookup_of(&self, login: &str) -> Option<&PermissionLookup> {
        self.0.get(&login.to_ascii_lowercase())
    }

    /// Returns the permission of an account; `None` if it is not known.
    pub fn permission_of(&self, login: &str) -> Option<AccountPermission> {
        match self.lookup_of(login)? {
            PermissionLookup::Is(permission) => Some(*permission),
            PermissionLookup::Unknown(_) => None,
        }
    }
}

/// Returns the accounts whose permission has to be looked up before [`decide_admission`] can decide_admission them.
pub fn accounts_to_look_up<'a>(
    context: &'a GitHubEventContext,
    rules: &ActorRules,
) -> Vec<&'a GitHubAccount> {
    let accounts = accounts_behind(context).into_iter();
    accounts.filter(|account| needs_lookup(account, rules)).collect()
}

fn needs_lookup(account: &GitHubAccount, rules: &ActorRules) -> bool {
    !is_own(account, rules) && (!account.is_bot() || is_listed_bot(&account.login, rules))
}

/// Decides the rights of a run. All accounts behind it must be entitled; the one with the fewest
/// rights decides.
pub fn decide_admission(
    context: &GitHubEventContext,
    answers: &KnownPermissions,
    rules: &ActorRules,
) -> AdmissionDecision {
    let mut verdicts: Vec<ActorVerdict> = Vec::new();
    if context.event == EventName::Schedule {
        verdicts.push(ActorVerdict::writer("a run by the clock counts as the owner's".to_owned()));
    }
    verdicts.extend(
        accounts_behind(context).into_iter().map(|account| judge_account(account, answers, rules)),
    );
    let reasons = verdicts.iter().map(|verdict| verdict.because.clone());
    let because: Vec<String> = reasons.collect();
    let warnings = verdicts.iter().filter_map(|verdict| verdict.warning.clone()).collect();
    let refused = verdicts.iter().find(|verdict| verdict.rights == ActorRights::Nothing);
    let admission = match refused {
        Some(verdict) => RunAdmission::Refused { reason: verdict.because.clone() },
        None if verdicts.is_empty() => {
            RunAdmission::Refused { reason: "nobody stands behind this run".to_owned() }
        }
        None if verdicts.iter().any(|verdict| verdict.rights == ActorRights::Read) => {
            RunAdmission::Read
        }
        None => RunAdmission::Write,
    };
    AdmissionDecision { admission, because, warnings }
}

/// Returns true if an account may trigger work, by an event or by a label.
pub fn may_trigger_work(
    account: &GitHubAccount,
    answers: &KnownPermissions,
    rules: &ActorRules,
) -> bool {
    judge_account(account, answers, rules).rights == ActorRights::Write
}

/// Returns the account that caused the event and the one that re-ran the workflow. A schedule has
/// no account.
fn accounts_behind(context: &GitHubEventContext) -> Vec<&GitHubAccount> {
    let actor = (context.event != EventName::Schedule).then_some(&context.actor);
    actor.into_iter().chain(&context.rerun_by).collect()
}

#[derive(PartialEq, Eq)]
enum ActorRights {
    Nothing,
    Read,
    Write,
}

struct ActorVerdict {
    rights: ActorRights,
    because: String,
    warning: Option<String>,
}

impl ActorVerdict {
    fn refused(because: String) -> ActorVerdict {
        ActorVerdict { rights: ActorRights::Nothing, because, warning: None }
    }

    fn writer(because: String) -> ActorVerdict {
        ActorVerdict { rights: ActorRights::Write, because, warning: None }
    }

    fn reader(because: String, warning: Option<String>) -> ActorVerdict {
        ActorVerdict { rights: ActorRights::Read, because, warning }
    }
}

fn judge_account(
    account: &GitHubAccount,
    answers: &KnownPermissions,
    rules: &ActorRules,
) -> ActorVerdict {
    let login = &account.login;
    if is_own(account, rules) {
        return ActorVerdict::refused(format!(
            "{login} is the bot itself, which does not answer itself"
        ));
    }
    if account.is_bot() {
        return judge_bot(login, answers, rules);
    }
    match answers.lookup_of(login) {
        None => ActorVerdict::refused(format!("nobody said what {login} may do")),
        Some(PermissionLookup::Unknown(why)) => {
            ActorVerdict::refused(format!("it is not known what {login} may do: {why}"))
        }
        Some(PermissionLookup::Is(permission)) if permission.can_write() => {
            ActorVerdict::writer(format!("{login} has {} access", permission.as_str()))
        }
        Some(PermissionLookup::Is(permission)) => judge_reader(login, *permission, rules),
    }
}

/// Decides the rights of a bot. A bot on the list may ask questions, and trigger work if it has
/// write access. A bot admitted by `*` may only ask, because anyone can install one.
fn judge_bot(login: &str, answers: &KnownPermissions, rules: &ActorRules) -> ActorVerdict {
    if is_listed_bot(login, rules) {
        let list = "a bot on the list `github.allowed_bots`";
        return match answers.permission_of(login) {
            Some(permission) if permission.can_write() => ActorVerdict::writer(format!(
                "{login} is {list} and has {} access",
                permission.as_str()
            )),
            Some(_) | None => ActorVerdict::reader(
                format!("{login} is {list}, and nobody says that it can write: questions only"),
                None,
            ),
        };
    }
    if rules.allowed_bots.iter().any(|name| name == "*") {
        let because = format!("{login} is a bot, and all bots may ask questions");
        let warning = "`github.allowed_bots` has `*`: any program may call the agent";
        return ActorVerdict::reader(because, Some(warning.to_owned()));
    }
    ActorVerdict::refused(format!("{login} is a bot that is not on the list `github.allowed_bots`"))
}

fn is_listed_bot(login: &str, rules: &ActorRules) -> bool {
    rules.allowed_bots.iter().any(|name| name != "*" && is_bot(login, name))
}

fn judge_reader(login: &str, permission: AccountPermission, rules: &ActorRules) -> ActorVerdict {
    let list = &rules.allowed_non_write_users;
    let permission = permission.as_str();
    let named = |name: &String| name.trim_start_matches('@').eq_ignore_ascii_case(login);
    if list.iter().any(named) {
        let because = format!(
            "{login} has {permission} access and is on the list `github.allowed_non_write_users`: questions only"
        );
        return ActorVerdict::reader(because, None);
    }
    if list.iter().any(|name| name == "*") {
        let because = format!("{login} has {permission} access, and everybody may ask questions");
        let warning = "`github.allowed_non_write_users` has `*`: anybody may call the agent";
        return ActorVerdict::reader(because, Some(warning.to_owned()));
    }
    ActorVerdict::refused(format!(
        "{login} has {permission} access; write access or a place on the list `github.allowed_non_write_users` is needed"
    ))
}

fn is_own(account: &GitHubAccount, rules: &ActorRules) -> bool {
    rules.is_own(&account.login)
}
