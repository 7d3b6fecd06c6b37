//! The eleven conditions of auto-merge, in order. The first one that does not hold decides.

use std::collections::{BTreeMap, BTreeSet};

use super::sensitive::is_sensitive;
use super::{
    AutoMerge, BaseFacts, Check, Condition, Decision, Fact, Facts, Prospect, PullFacts, Refusal,
    ReviewFacts, Verdict, Verification, Witness, short,
};

/// Decides about a pull request. Also returns the conditions that were checked.
pub fn decide(facts: &Facts, settings: &AutoMerge) -> (Decision, Vec<Condition>) {
    let mut seen = Vec::new();
    for (at, check) in CONDITIONS.iter().enumerate() {
        let n = at as u8 + 1;
        match check(facts, settings) {
            Ok(()) => seen.push(Condition { n, ok: true }),
            Err(no) => {
                seen.push(Condition { n, ok: false });
                let No { reason, next, prospect } = no;
                let refusal = Refusal { condition: n, reason, next: next.to_owned(), prospect };
                return (Decision::Refuse(refusal), seen);
            }
        }
    }
    match &facts.pull {
        Fact::Known(pull) => (Decision::Merge { head: pull.head_sha.clone() }, seen),
        Fact::Unknown(why) => {
            let (reason, next) =
                (format!("the pull request is not known: {why}"), ASK_AGAIN.to_owned());
            let prospect = Prospect::Never;
            (Decision::Refuse(Refusal { condition: 2, reason, next, prospect }), seen)
        }
    }
}

/// Returns true if it makes sense to wait for pending facts. It does not if people have to act as
/// well, since their action causes an event that starts everything again.
pub(super) fn is_worth_waiting(facts: &Facts, settings: &AutoMerge) -> bool {
    let of_people: [Rule; 3] = [approvals, content, stop_signs];
    of_people.iter().all(|rule| match rule(facts, settings) {
        Ok(()) => true,
        Err(no) => no.prospect.is_waited_for(),
    })
}

type Rule = fn(&Facts, &AutoMerge) -> Result<(), No>;

const CONDITIONS: [Rule; 11] = [
    switched_on,
    identity,
    target,
    head_pinned,
    verified,
    required_checks,
    no_red_elsewhere,
    approvals,
    mergeable,
    content,
    stop_signs,
];

const ASK_AGAIN: &str = "find out why it cannot be asked, and start the run again";

/// A condition that does not hold.
struct No {
    reason: String,
    next: &'static str,
    prospect: Prospect,
}

fn no(reason: impl Into<String>, next: &'static str) -> Result<(), No> {
    Err(No { reason: reason.into(), next, prospect: Prospect::Never })
}

fn soon(reason: impl Into<String>, next: &'static str) -> Result<(), No> {
    Err(No { reason: reason.into(), next, prospect: Prospect::Soon })
}

fn perhaps(reason: impl Into<String>, next: &'static str) -> Result<(), No> {
    Err(No { reason: reason.into(), next, prospect: Prospect::Perhaps })
}

fn later(reason: impl Into<String>, next: &'static str) -> Result<(), No> {
    Err(No { reason: reason.into(), next, prospect: Prospect::Later })
}

impl<T> Fact<T> {
    /// Returns the value; an unknown fact is a refusal.
    fn known(&self, what: &str) -> Result<&T, No> {
        match self {
            Fact::Known(value) => Ok(value),
            Fact::Unknown(why) => {
                let reason = format!("{what} is not known: {why}");
                Err(No { reason, next: ASK_AGAIN, prospect: Prospect::Never })
            }
        }
    }
}

fn pull(facts: &Facts) -> Result<&PullFacts, No> {
    facts.pull.known("the pull request")
}

fn base(facts: &Facts) -> Result<&BaseFacts, No> {
    facts.base.known("the base branch")
}

/// Condition 1: auto-merge is enabled, and the merge was requested.
fn switched_on(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    if !settings.enabled {
        return no(
            "automatic merging is off",
            "the repository's owner switches it on in the configuration of the base branch",
        );
    }
    if !*facts.request.asked.known("who asked for the merge")? {
        return no("nobody who may has asked for it", "somebody with write access asks for it");
    }
    match facts.halted.known("whether merging is halted")? {
        Some(issue) => later(
            format!("an earlier merge went wrong, and issue {issue} is open"),
            "a person looks into it, and closes the issue",
        ),
        None => Ok(()),
    }
}

/// Condition 2: the pull request is the bot's own, open and ready.
fn identity(facts: &Facts, _: &AutoMerge) -> Result<(), No> {
    let pull = pull(facts)?;
    let person = "a person merges it, or closes it";
    if pull.merged {
        return no("it is merged already", "nothing");
    }
    if !pull.open {
        return no("it is closed", "nothing, or a person opens it again");
    }
    if pull.draft {
        return later("it is a draft", "a person marks it as ready");
    }
    if !pull.same_repository {
        return no("its branch is in another repository", person);
    }
    if !pull.author.eq_ignore_ascii_case(&facts.request.own_login) {
        return no(format!("it was opened by {}, not by this bot", pull.author), person);
    }
    if !pull.head.starts_with(&facts.request.branch_prefix)
        || facts.request.branch_prefix.is_empty()
    {
        return no(format!("its branch `{}` is not one of ours", pull.head), person);
    }
    if *facts.request.made_by_us.known("the run that opened it")? {
        Ok(())
    } else {
        no("no run of ours is known to have opened it", person)
    }
}

/// Condition 3: the base branch may be merged into.
fn target(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    let (pull, base) = (pull(facts)?, base(facts)?);
    let name = &pull.base;
    let next = "name the branch in `base_branches`, or merge by hand";
    if settings.base_branches.iter().any(|listed| listed == name) {
        return Ok(());
    }
    if !settings.base_branches.is_empty() || !base.is_default {
        return no(format!("`{name}` is not a branch that may be merged into"), next);
    }
    if base.protected {
        return no(format!("`{name}` is protected, and not named in `base_branches`"), next);
    }
    let release = name.split(['/', '-', '_', '.']).any(|part| {
        matches!(
            part.to_lowercase().as_str(),
            "release" | "releases" | "stable" | "production" | "prod"
        )
    });
    if release {
        let reason = format!("`{name}` looks like a release, and is not named in `base_branches`");
        return no(reason, next);
    }
    Ok(())
}

/// Condition 4: the head is still the commit that was decided on.
fn head_pinned(facts: &Facts, _: &AutoMerge) -> Result<(), No> {
    let head = &pull(facts)?.head_sha;
    if crate::client::name::sha(head).is_err() {
        return no("the head is not the full name of a commit", ASK_AGAIN);
    }
    match &facts.pinned {
        Some(pinned) if pinned != head => no(
            format!("the head moved from {} to {}", short(pinned), short(head)),
            "the run starts again with the new head",
        ),
        _ => Ok(()),
    }
}

/// Condition 5: all declared checks passed on the head. Without a journal, GitHub's checks replace
/// them, if only the bot moved the branch.
fn verified(facts: &Facts, _: &AutoMerge) -> Result<(), No> {
    let head = &pull(facts)?.head_sha;
    match &facts.request.witness {
        Witness::Journal(found) => declared_checks(found, head),
        Witness::Service => only_ours(facts),
        Witness::Nobody(why) => {
            no(format!("the verdict of the declared checks is not known: {why}"), ASK_AGAIN)
        }
    }
}

fn declared_checks(found: &Verification, head: &str) -> Result<(), No> {
    let next = "the declared checks are run in full on the head";
    match found.verdict {
        Verdict::Passed => {}
        Verdict::Failed => {
            return no("the declared checks failed", "somebody mends what they found");
        }
        Verdict::Inconclusive => return no("the declared checks were inconclusive", next),
    }
    if !found.full {
        return no("only some of the declared checks were run", next);
    }
    let (checked, now) = (short(&found.commit), short(head));
    if found.commit == head {
        return Ok(());
    }
    no(format!("the declared checks were run on {checked}, and the head is {now}"), next)
}

/// Refuses a branch that others have pushed to. They are authors, and their own approval could be
/// the only one.
fn only_ours(facts: &Facts) -> Result<(), No> {
    let movers = facts.movers.known("who moved its branch")?;
    let other = movers.iter().find(|login| !login.eq_ignore_ascii_case(&facts.request.own_login));
    let next = "a person merges it, or closes it";
    match other {
        Some(login) => no(format!("{login} has moved its branch, and not only this bot"), next),
        None if movers.is_empty() => no("nobody is known to have pushed its branch", next),
        None => Ok(()),
    }
}

/// The combined state of the checks with one name.
enum Standing {
    Success,
    Pending,
    Missing,
    Other(String),
}

/// Returns the checks with a name, from the app they must come from.
fn named_so<'a>(
    name: &'a str,
    checks: &'a [Check],
    settings: &'a AutoMerge,
) -> impl Iterator<Item = &'a Check> {
    let app = settings.check_apps.get(name);
    checks.iter().filter(move |check| {
        check.name == name && app.is_none_or(|app| check.app.as_ref() == Some(app))
    })
}

fn standing(name: &str, checks: &[Check], settings: &AutoMerge) -> Standing {
    let skippable = settings.skippable_checks.iter().any(|listed| listed == name);
    let mut standing = Standing::Missing;
    // Several check runs may have the same name; all of them must succeed.
    for check in named_so(name, checks, settings) {
        match check.conclusion.as_deref() {
            None => standing = Standing::Pending,
            Some("success") if !matches!(standing, Standing::Pending) => {
                standing = Standing::Success
            }
            Some("success") => {}
            Some("neutral" | "skipped") if skippable => {
                if matches!(standing, Standing::Missing) {
                    standing = Standing::Success;
                }
            }
            Some(other) => return Standing::Other(other.to_owned()),
        }
    }
    standing
}

/// Condition 6: every required check succeeded.
fn required_checks(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    let (pull, base) = (pull(facts)?, base(facts)?);
    if settings.required_checks.is_empty() {
        return no(
            "no required check is configured",
            "the repository's owner names them in `required_checks`",
        );
    }
    let checks = facts.checks.known("what the checks say")?;
    let head = short(&pull.head_sha);
    let names: BTreeSet<&String> =
        settings.required_checks.iter().chain(&base.required_checks).collect();
    let (mut pending, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match standing(name, checks, settings) {
            Standing::Success => {}
            Standing::Pending => pending.push(name.as_str()),
            Standing::Missing => missing.push(name.as_str()),
            Standing::Other(conclusion) => {
                let reason = format!("required check `{name}` ended with `{conclusion}` on {head}");
                return no(reason, "somebody mends what it found, or runs it again");
            }
        }
    }
    if !missing.is_empty() {
        let present: BTreeSet<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        let present: Vec<&str> = present.into_iter().collect();
        let present = if present.is_empty() { "none".to_owned() } else { listed(&present) };
        let (what, be) = named(&missing);
        let reason = format!(
            "required {what} {} {be} missing on {head}; present: {present}",
            listed(&missing)
        );
        return perhaps(
            reason,
            "rename the required check in the configuration, or restore the workflow job",
        );
    }
    if !pending.is_empty() {
        let (what, be) = named(&pending);
        let reason = format!("required {what} {} {be} pending on {head}", listed(&pending));
        return soon(reason, "wait for it, and ask again");
    }
    if facts.request.witness == Witness::Service {
        return some_ran(checks, settings, head);
    }
    Ok(())
}

fn named(names: &[&str]) -> (&'static str, &'static str) {
    if names.len() == 1 { ("check", "is") } else { ("checks", "are") }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns true if a check failed and is not optional.
pub(super) fn is_red(check: &Check, settings: &AutoMerge) -> bool {
    let conclusion = check.conclusion.as_deref().unwrap_or_default();
    let bad = ["failure", "error", "timed_out", "cancelled", "action_required", "startup_failure"];
    bad.contains(&conclusion) && !settings.optional_checks.contains(&check.name)
}

/// Condition 7: no other check failed.
fn no_red_elsewhere(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    let checks = facts.checks.known("what the checks say")?;
    match checks.iter().find(|check| is_red(check, settings)) {
        Some(check) => {
            let conclusion = check.conclusion.as_deref().unwrap_or_default();
            let reason = format!("check `{}` ended with `{conclusion}`", check.name);
            no(reason, "somebody mends it, or names it in `optional_checks`")
        }
        None => Ok(()),
    }
}

/// Requires that at least one check really ran: skipped checks prove nothing.
fn some_ran(checks: &[Check], settings: &AutoMerge, head: &str) -> Result<(), No> {
    let succeeded = |check: &Check| check.conclusion.as_deref() == Some("success");
    let ran = |name: &String| named_so(name, checks, settings).any(succeeded);
    if settings.required_checks.iter().any(ran) {
        return Ok(());
    }
    no(
        format!("every required check was skipped on {head}, and no other run of checks is known"),
        "somebody has one of them run",
    )
}

/// Condition 8: there are enough approvals, and no changes are requested.
fn approvals(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    let (pull, base) = (pull(facts)?, base(facts)?);
    let reviews = facts.reviews.known("what the reviews say")?;
    let mut latest: BTreeMap<String, &ReviewFacts> = BTreeMap::new();
    // A mere comment does not revoke an earlier decision.
    for review in reviews.iter().filter(|review| DECISIONS.contains(&review.state.as_str())) {
        latest.insert(review.login.to_lowercase(), review);
    }
    if let Some(against) = latest.values().find(|review| review.state == "CHANGES_REQUESTED") {
        let reason = format!("{} requested changes", against.login);
        return later(reason, "somebody makes the changes, and they review again");
    }
    let needed = settings.required_approvals.max(base.required_approvals) as usize;
    if needed > 0 {
        let count = counted(latest.into_values(), pull, facts)?;
        if count < needed {
            let head = short(&pull.head_sha);
            let reason = format!(
                "{count} of {needed} approvals of {head} by people with write access who neither wrote it nor asked for it"
            );
            return later(reason, "somebody else with write access reviews it");
        }
    }
    if base.resolves_conversations && pull.mergeable_state.as_deref() != Some("clean") {
        let reason = "conversations have to be resolved, and are not known to be";
        return later(reason, "somebody resolves them");
    }
    Ok(())
}

/// Counts the valid approvals of the head. An approval of an older commit does not cover later
/// changes, and one by an account that asked for the work counts as the author's own.
fn counted<'a>(
    latest: impl Iterator<Item = &'a ReviewFacts>,
    pull: &PullFacts,
    facts: &Facts,
) -> Result<usize, No> {
    let request = &facts.request;
    let asked_by = request.asked_by.known("who asked for it")?;
    let authors: Vec<&String> = asked_by.iter().chain([&request.own_login, &pull.author]).collect();
    let counts = |review: &&ReviewFacts| {
        review.state == "APPROVED"
            && review.can_write == Fact::Known(true)
            && !review.is_bot
            && review.commit.as_deref() == Some(pull.head_sha.as_str())
            && !authors.iter().any(|author| review.login.eq_ignore_ascii_case(author))
    };
    Ok(latest.filter(counts).count())
}

const DECISIONS: [&str; 3] = ["APPROVED", "CHANGES_REQUESTED", "DISMISSED"];

/// Condition 9: GitHub considers it mergeable.
fn mergeable(facts: &Facts, _: &AutoMerge) -> Result<(), No> {
    let pull = pull(facts)?;
    let state = pull.mergeable_state.as_deref().unwrap_or("unknown");
    match (pull.mergeable, state) {
        (Some(false), _) | (_, "dirty") => {
            no("it conflicts with the base branch", "somebody resolves the conflicts")
        }
        (_, "behind") => later(
            "its branch is behind the base branch, and has to be up to date",
            "somebody brings it up to date, and the checks run again",
        ),
        (_, "blocked") => later(
            "the protection of the base branch blocks it",
            "a person looks at what is missing",
        ),
        (_, "draft") => later("it is a draft", "a person marks it as ready"),
        (None, _) | (_, "unknown") => {
            soon("the service does not know yet whether it can be merged", "ask again later")
        }
        (Some(true), "clean" | "has_hooks" | "unstable") => Ok(()),
        (Some(true), other) => no(
            format!("the service says `{other}`, which is not understood"),
            "a person looks at it",
        ),
    }
}

/// Condition 10: the change needs no decision by a person.
fn content(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    let pull = pull(facts)?;
    let paths = facts.paths.known("what it changes")?;
    let next = "a person looks at the change, and decides";
    if let Some(path) = paths.iter().find(|path| is_sensitive(path)) {
        return no(format!("it changes `{path}`, about which a person decides"), next);
    }
    if paths.is_empty() {
        return no("it changes nothing", "a person closes it");
    }
    if paths.len() as u64 > settings.changed_files_max {
        let (count, most) = (paths.len(), settings.changed_files_max);
        return no(format!("it changes {count} files, and {most} is the most"), next);
    }
    if pull.changed_lines > settings.changed_lines_max {
        let (count, most) = (pull.changed_lines, settings.changed_lines_max);
        return no(format!("it changes {count} lines, and {most} is the most"), next);
    }
    Ok(())
}

/// Condition 11: nothing stops the merge: no label, no freeze, no open question.
fn stop_signs(facts: &Facts, settings: &AutoMerge) -> Result<(), No> {
    let pull = pull(facts)?;
    let stops =
        |label: &&String| settings.stop_labels.iter().any(|stop| stop.eq_ignore_ascii_case(label));
    if let Some(label) = pull.labels.iter().find(stops) {
        return later(format!("it has the label `{label}`"), "whoever set the label takes it off");
    }
    if settings.frozen {
        return later(
            "nothing is merged for the time being",
            "the repository's owner ends the freeze",
        );
    }
    if *facts.request.open_question.known("whether a question is open")? {
        return later("a question to a person is open", "somebody answers it");
    }
    Ok(())
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
