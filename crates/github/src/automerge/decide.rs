//! The eleven conditions of auto-merge, in order. The first one that does not hold decides.

use std::collections::{BTreeMap, BTreeSet};

use super::sensitive::is_sensitive;
use super::{
    AutoMerge, BaseFacts, CheckVerification, ConditionResult, DeclaredCheckVerdict, HeadCheck,
    MergeDecision, MergeEvidence, MergeFact, MergeFacts, MergeRefusal, PullFacts, RefusalProspect,
    ReviewFacts, short_sha,
};

/// Decides about a pull request. Also returns the conditions that were checked.
pub fn decide_merge(
    facts: &MergeFacts,
    settings: &AutoMerge,
) -> (MergeDecision, Vec<ConditionResult>) {
    let mut seen = Vec::new();
    for (at, check) in CONDITIONS.iter().enumerate() {
        let n = at as u8 + 1;
        match check(facts, settings) {
            Ok(()) => seen.push(ConditionResult { n, ok: true }),
            Err(no) => {
                seen.push(ConditionResult { n, ok: false });
                let FailedCondition { reason, next, prospect } = no;
                let refusal =
                    MergeRefusal { condition: n, reason, next: next.to_owned(), prospect };
                return (MergeDecision::Refuse(refusal), seen);
            }
        }
    }
    match &facts.pull {
        MergeFact::Known(pull) => (MergeDecision::Merge { head: pull.head_sha.clone() }, seen),
        MergeFact::Unknown(why) => {
            let (reason, next) =
                (format!("the pull request is not known: {why}"), ASK_AGAIN.to_owned());
            let prospect = RefusalProspect::Never;
            (MergeDecision::Refuse(MergeRefusal { condition: 2, reason, next, prospect }), seen)
        }
    }
}

/// Returns true if it makes sense to wait for pending facts. It does not if people have to act as
/// well, since their action causes an event that starts everything again.
pub(super) fn is_worth_waiting(facts: &MergeFacts, settings: &AutoMerge) -> bool {
    let of_people: [MergeCondition; 3] = [check_approvals, check_content, check_stop_signs];
    of_people.iter().all(|rule| match rule(facts, settings) {
        Ok(()) => true,
        Err(no) => no.prospect.is_waited_for(),
    })
}

type MergeCondition = fn(&MergeFacts, &AutoMerge) -> Result<(), FailedCondition>;

const CONDITIONS: [MergeCondition; 11] = [
    check_enabled,
    check_identity,
    check_target,
    check_pinned_head,
    check_verification,
    check_required,
    check_others,
    check_approvals,
    check_mergeable,
    check_content,
    check_stop_signs,
];

const ASK_AGAIN: &str = "find out why it cannot be asked, and start the run again";

/// A condition that does not hold.
struct FailedCondition {
    reason: String,
    next: &'static str,
    prospect: RefusalProspect,
}

fn refuse_never(reason: impl Into<String>, next: &'static str) -> Result<(), FailedCondition> {
    Err(FailedCondition { reason: reason.into(), next, prospect: RefusalProspect::Never })
}

fn refuse_soon(reason: impl Into<String>, next: &'static str) -> Result<(), FailedCondition> {
    Err(FailedCondition { reason: reason.into(), next, prospect: RefusalProspect::Soon })
}

fn refuse_perhaps(reason: impl Into<String>, next: &'static str) -> Result<(), FailedCondition> {
    Err(FailedCondition { reason: reason.into(), next, prospect: RefusalProspect::Perhaps })
}

fn refuse_later(reason: impl Into<String>, next: &'static str) -> Result<(), FailedCondition> {
    Err(FailedCondition { reason: reason.into(), next, prospect: RefusalProspect::Later })
}

impl<T> MergeFact<T> {
    /// Returns the value; an unknown fact is a refusal.
    fn require_known(&self, what: &str) -> Result<&T, FailedCondition> {
        match self {
            MergeFact::Known(value) => Ok(value),
            MergeFact::Unknown(why) => {
                let reason = format!("{what} is not known: {why}");
                Err(FailedCondition { reason, next: ASK_AGAIN, prospect: RefusalProspect::Never })
            }
        }
    }
}

fn require_pull(facts: &MergeFacts) -> Result<&PullFacts, FailedCondition> {
    facts.pull.require_known("the pull request")
}

fn require_base(facts: &MergeFacts) -> Result<&BaseFacts, FailedCondition> {
    facts.base.require_known("the base branch")
}

/// Condition 1: auto-merge is enabled, and the merge was requested.
fn check_enabled(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    if !settings.enabled {
        return refuse_never(
            "automatic merging is off",
            "the repository's owner switches it on in the configuration of the base branch",
        );
    }
    if !*facts.request.asked.require_known("who asked for the merge")? {
        return refuse_never(
            "nobody who may has asked for it",
            "somebody with write access asks for it",
        );
    }
    match facts.halted.require_known("whether merging is halted")? {
        Some(issue) => refuse_later(
            format!("an earlier merge went wrong, and issue {issue} is open"),
            "a person looks into it, and closes the issue",
        ),
        None => Ok(()),
    }
}

/// Condition 2: the pull request is the bot's own, open and ready.
fn check_identity(facts: &MergeFacts, _: &AutoMerge) -> Result<(), FailedCondition> {
    let pull = require_pull(facts)?;
    let person = "a person merges it, or closes it";
    if pull.merged {
        return refuse_never("it is merged already", "nothing");
    }
    if !pull.open {
        return refuse_never("it is closed", "nothing, or a person opens it again");
    }
    if pull.draft {
        return refuse_later("it is a draft", "a person marks it as ready");
    }
    if !pull.same_repository {
        return refuse_never("its branch is in another repository", person);
    }
    if !pull.author.eq_ignore_ascii_case(&facts.request.own_login) {
        return refuse_never(format!("it was opened by {}, not by this bot", pull.author), person);
    }
    if !pull.head.starts_with(&facts.request.branch_prefix)
        || facts.request.branch_prefix.is_empty()
    {
        return refuse_never(format!("its branch `{}` is not one of ours", pull.head), person);
    }
    if *facts.request.made_by_us.require_known("the run that opened it")? {
        Ok(())
    } else {
        refuse_never("no run of ours is known to have opened it", person)
    }
}

/// Condition 3: the base branch may be merged into.
fn check_target(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    let (pull, base) = (require_pull(facts)?, require_base(facts)?);
    let name = &pull.base;
    let next = "name the branch in `base_branches`, or merge by hand";
    if settings.base_branches.iter().any(|listed| listed == name) {
        return Ok(());
    }
    if !settings.base_branches.is_empty() || !base.is_default {
        return refuse_never(format!("`{name}` is not a branch that may be merged into"), next);
    }
    if base.protected {
        return refuse_never(
            format!("`{name}` is protected, and not named in `base_branches`"),
            next,
        );
    }
    let release = name.split(['/', '-', '_', '.']).any(|part| {
        matches!(
            part.to_lowercase().as_str(),
            "release" | "releases" | "stable" | "production" | "prod"
        )
    });
    if release {
        let reason = format!("`{name}` looks like a release, and is not named in `base_branches`");
        return refuse_never(reason, next);
    }
    Ok(())
}

/// Condition 4: the head is still the commit that was decided on.
fn check_pinned_head(facts: &MergeFacts, _: &AutoMerge) -> Result<(), FailedCondition> {
    let head = &require_pull(facts)?.head_sha;
    if crate::client::name::check_sha(head).is_err() {
        return refuse_never("the head is not the full name of a commit", ASK_AGAIN);
    }
    match &facts.pinned {
        Some(pinned) if pinned != head => refuse_never(
            format!("the head moved from {} to {}", short_sha(pinned), short_sha(head)),
            "the run starts again with the new head",
        ),
        _ => Ok(()),
    }
}

/// Condition 5: all declared checks passed on the head. Without a journal, GitHub's checks replace
/// them, if only the bot moved the branch.
fn check_verification(facts: &MergeFacts, _: &AutoMerge) -> Result<(), FailedCondition> {
    let head = &require_pull(facts)?.head_sha;
    match &facts.request.witness {
        MergeEvidence::Journal(found) => check_declared(found, head),
        MergeEvidence::Service => check_movers(facts),
        MergeEvidence::Nobody(why) => refuse_never(
            format!("the verdict of the declared checks is not known: {why}"),
            ASK_AGAIN,
        ),
    }
}

fn check_declared(found: &CheckVerification, head: &str) -> Result<(), FailedCondition> {
    let next = "the declared checks are run in full on the head";
    match found.verdict {
        DeclaredCheckVerdict::Passed => {}
        DeclaredCheckVerdict::Failed => {
            return refuse_never("the declared checks failed", "somebody mends what they found");
        }
        DeclaredCheckVerdict::Inconclusive => {
            return refuse_never("the declared checks were inconclusive", next);
        }
    }
    if !found.full {
        return refuse_never("only some of the declared checks were run", next);
    }
    let (checked, now) = (short_sha(&found.commit), short_sha(head));
    if found.commit == head {
        return Ok(());
    }
    refuse_never(format!("the declared checks were run on {checked}, and the head is {now}"), next)
}

/// Refuses a branch that others have pushed to. They are authors, and their own approval could be
/// the only one.
fn check_movers(facts: &MergeFacts) -> Result<(), FailedCondition> {
    let movers = facts.movers.require_known("who moved its branch")?;
    let other = movers.iter().find(|login| !login.eq_ignore_ascii_case(&facts.request.own_login));
    let next = "a person merges it, or closes it";
    match other {
        Some(login) => {
            refuse_never(format!("{login} has moved its branch, and not only this bot"), next)
        }
        None if movers.is_empty() => {
            refuse_never("nobody is known to have pushed its branch", next)
        }
        None => Ok(()),
    }
}

/// The combined state of the checks with one name.
enum NamedCheckState {
    Success,
    Pending,
    Missing,
    Other(String),
}

/// Returns the checks with a name, from the app they must come from.
fn checks_named<'a>(
    name: &'a str,
    checks: &'a [HeadCheck],
    settings: &'a AutoMerge,
) -> impl Iterator<Item = &'a HeadCheck> {
    let app = settings.check_apps.get(name);
    checks.iter().filter(move |check| {
        check.name == name && app.is_none_or(|app| check.app.as_ref() == Some(app))
    })
}

fn named_check_state(name: &str, checks: &[HeadCheck], settings: &AutoMerge) -> NamedCheckState {
    let skippable = settings.skippable_checks.iter().any(|listed| listed == name);
    let mut standing = NamedCheckState::Missing;
    // Several check runs may have the same name; all of them must succeed.
    for check in checks_named(name, checks, settings) {
        match check.conclusion.as_deref() {
            None => standing = NamedCheckState::Pending,
            Some("success") if !matches!(standing, NamedCheckState::Pending) => {
                standing = NamedCheckState::Success
            }
            Some("success") => {}
            Some("neutral" | "skipped") if skippable => {
                if matches!(standing, NamedCheckState::Missing) {
                    standing = NamedCheckState::Success;
                }
            }
            Some(other) => return NamedCheckState::Other(other.to_owned()),
        }
    }
    standing
}

/// Condition 6: every required check succeeded.
fn check_required(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    let (pull, base) = (require_pull(facts)?, require_base(facts)?);
    if settings.required_checks.is_empty() {
        return refuse_never(
            "no required check is configured",
            "the repository's owner names them in `required_checks`",
        );
    }
    let checks = facts.checks.require_known("what the checks say")?;
    let head = short_sha(&pull.head_sha);
    let names: BTreeSet<&String> =
        settings.required_checks.iter().chain(&base.required_checks).collect();
    let (mut pending, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match named_check_state(name, checks, settings) {
            NamedCheckState::Success => {}
            NamedCheckState::Pending => pending.push(name.as_str()),
            NamedCheckState::Missing => missing.push(name.as_str()),
            NamedCheckState::Other(conclusion) => {
                let reason = format!("required check `{name}` ended with `{conclusion}` on {head}");
                return refuse_never(reason, "somebody mends what it found, or runs it again");
            }
        }
    }
    if !missing.is_empty() {
        let present: BTreeSet<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        let present: Vec<&str> = present.into_iter().collect();
        let present = if present.is_empty() { "none".to_owned() } else { list_names(&present) };
        let (what, be) = check_grammar(&missing);
        let reason = format!(
            "required {what} {} {be} missing on {head}; present: {present}",
            list_names(&missing)
        );
        return refuse_perhaps(
            reason,
            "rename the required check in the configuration, or restore the workflow job",
        );
    }
    if !pending.is_empty() {
        let (what, be) = check_grammar(&pending);
        let reason = format!("required {what} {} {be} pending on {head}", list_names(&pending));
        return refuse_soon(reason, "wait for it, and ask again");
    }
    if facts.request.witness == MergeEvidence::Service {
        return check_some_ran(checks, settings, head);
    }
    Ok(())
}

fn check_grammar(names: &[&str]) -> (&'static str, &'static str) {
    if names.len() == 1 { ("check", "is") } else { ("checks", "are") }
}

fn list_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns true if a check failed and is not optional.
pub(super) fn is_red(check: &HeadCheck, settings: &AutoMerge) -> bool {
    let conclusion = check.conclusion.as_deref().unwrap_or_default();
    let bad = ["failure", "error", "timed_out", "cancelled", "action_required", "startup_failure"];
    bad.contains(&conclusion) && !settings.optional_checks.contains(&check.name)
}

/// Condition 7: no other check failed.
fn check_others(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    let checks = facts.checks.require_known("what the checks say")?;
    match checks.iter().find(|check| is_red(check, settings)) {
        Some(check) => {
            let conclusion = check.conclusion.as_deref().unwrap_or_default();
            let reason = format!("check `{}` ended with `{conclusion}`", check.name);
            refuse_never(reason, "somebody mends it, or names it in `optional_checks`")
        }
        None => Ok(()),
    }
}

/// Requires that at least one check really ran: skipped checks prove nothing.
fn check_some_ran(
    checks: &[HeadCheck],
    settings: &AutoMerge,
    head: &str,
) -> Result<(), FailedCondition> {
    let succeeded = |check: &HeadCheck| check.conclusion.as_deref() == Some("success");
    let ran = |name: &String| checks_named(name, checks, settings).any(succeeded);
    if settings.required_checks.iter().any(ran) {
        return Ok(());
    }
    refuse_never(
        format!("every required check was skipped on {head}, and no other run of checks is known"),
        "somebody has one of them run",
    )
}

/// Condition 8: there are enough approvals, and no changes are requested.
fn check_approvals(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    let (pull, base) = (require_pull(facts)?, require_base(facts)?);
    let reviews = facts.reviews.require_known("what the reviews say")?;
    let mut latest: BTreeMap<String, &ReviewFacts> = BTreeMap::new();
    // A mere comment does not revoke an earlier decision.
    for review in reviews.iter().filter(|review| DECISIONS.contains(&review.state.as_str())) {
        latest.insert(review.login.to_lowercase(), review);
    }
    if let Some(against) = latest.values().find(|review| review.state == "CHANGES_REQUESTED") {
        let reason = format!("{} requested changes", against.login);
        return refuse_later(reason, "somebody makes the changes, and they review again");
    }
    let needed = settings.required_approvals.max(base.required_approvals) as usize;
    if needed > 0 {
        let count = count_approvals(latest.into_values(), pull, facts)?;
        if count < needed {
            let head = short_sha(&pull.head_sha);
            let reason = format!(
                "{count} of {needed} approvals of {head} by people with write access who neither wrote it nor asked for it"
            );
            return refuse_later(reason, "somebody else with write access reviews it");
        }
    }
    if base.resolves_conversations && pull.mergeable_state.as_deref() != Some("clean") {
        let reason = "conversations have to be resolved, and are not known to be";
        return refuse_later(reason, "somebody resolves them");
    }
    Ok(())
}

/// Counts the valid approvals of the head. An approval of an older commit does not cover later
/// changes, and one by an account that asked for the work counts as the author's own.
fn count_approvals<'a>(
    latest: impl Iterator<Item = &'a ReviewFacts>,
    pull: &PullFacts,
    facts: &MergeFacts,
) -> Result<usize, FailedCondition> {
    let request = &facts.request;
    let asked_by = request.asked_by.require_known("who asked for it")?;
    let authors: Vec<&String> = asked_by.iter().chain([&request.own_login, &pull.author]).collect();
    let counts = |review: &&ReviewFacts| {
        review.state == "APPROVED"
            && review.can_write == MergeFact::Known(true)
            && !review.is_bot
            && review.commit.as_deref() == Some(pull.head_sha.as_str())
            && !authors.iter().any(|author| review.login.eq_ignore_ascii_case(author))
    };
    Ok(latest.filter(counts).count())
}

const DECISIONS: [&str; 3] = ["APPROVED", "CHANGES_REQUESTED", "DISMISSED"];

/// Condition 9: GitHub considers it mergeable.
fn check_mergeable(facts: &MergeFacts, _: &AutoMerge) -> Result<(), FailedCondition> {
    let pull = require_pull(facts)?;
    let state = pull.mergeable_state.as_deref().unwrap_or("unknown");
    match (pull.mergeable, state) {
        (Some(false), _) | (_, "dirty") => {
            refuse_never("it conflicts with the base branch", "somebody resolves the conflicts")
        }
        (_, "behind") => refuse_later(
            "its branch is behind the base branch, and has to be up to date",
            "somebody brings it up to date, and the checks run again",
        ),
        (_, "blocked") => refuse_later(
            "the protection of the base branch blocks it",
            "a person looks at what is missing",
        ),
        (_, "draft") => refuse_later("it is a draft", "a person marks it as ready"),
        (None, _) | (_, "unknown") => {
            refuse_soon("the service does not know yet whether it can be merged", "ask again later")
        }
        (Some(true), "clean" | "has_hooks" | "unstable") => Ok(()),
        (Some(true), other) => refuse_never(
            format!("the service says `{other}`, which is not understood"),
            "a person looks at it",
        ),
    }
}

/// Condition 10: the change needs no decision by a person.
fn check_content(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    let pull = require_pull(facts)?;
    let paths = facts.paths.require_known("what it changes")?;
    let next = "a person looks at the change, and decides";
    if let Some(path) = paths.iter().find(|path| is_sensitive(path)) {
        return refuse_never(format!("it changes `{path}`, about which a person decides"), next);
    }
    if paths.is_empty() {
        return refuse_never("it changes nothing", "a person closes it");
    }
    if paths.len() as u64 > settings.changed_files_max {
        let (count, most) = (paths.len(), settings.changed_files_max);
        return refuse_never(format!("it changes {count} files, and {most} is the most"), next);
    }
    if pull.changed_lines > settings.changed_lines_max {
        let (count, most) = (pull.changed_lines, settings.changed_lines_max);
        return refuse_never(format!("it changes {count} lines, and {most} is the most"), next);
    }
    Ok(())
}

/// Condition 11: nothing stops the merge: no label, no freeze, no open question.
fn check_stop_signs(facts: &MergeFacts, settings: &AutoMerge) -> Result<(), FailedCondition> {
    let pull = require_pull(facts)?;
    let stops =
        |label: &&String| settings.stop_labels.iter().any(|stop| stop.eq_ignore_ascii_case(label));
    if let Some(label) = pull.labels.iter().find(stops) {
        return refuse_later(
            format!("it has the label `{label}`"),
            "whoever set the label takes it off",
        );
    }
    if settings.frozen {
        return refuse_later(
            "nothing is merged for the time being",
            "the repository's owner ends the freeze",
        );
    }
    if *facts.request.open_question.require_known("whether a question is open")? {
        return refuse_later("a question to a person is open", "somebody answers it");
    }
    Ok(())
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
