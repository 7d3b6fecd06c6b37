//! A single attempt: back up, apply, inspect, verify, decide, and roll back if it did not help.

use std::collections::BTreeSet;
use std::time::Instant;

use repertoire_journal::{FixOutcome, Remedy};
use repertoire_sandbox::confinement::Network;
use repertoire_sandbox::process::Flow;

use super::inspect::{self, Seen};
use super::{
    Action, Attempt, Backup, RecoverError, RecoverEvent, RecoverRequest, Red, Strategy, first_line,
    has_failed,
};
use crate::declared::{Check, CheckStatus, Verdict, all_critical_passed, run_checks};
use crate::limits::RECOVER_SAID_BYTES_MAX;
use crate::signature::new_ones;
use crate::verify::brought;
use repertoire_git::repo::DiffOf;
use repertoire_sandbox::program::{self, Program};

/// Performs an attempt. Returns the new results of the checks if the change is kept.
pub(super) async fn perform(
    request: &RecoverRequest<'_>,
    before: &Red,
    action: &Action,
) -> Result<(Attempt, Option<Red>), RecoverError> {
    let begun = Instant::now();
    let backup = Backup::take(request.git).await?;
    let tried = try_out(request, before, action, &backup).await;
    let (outcome, reason, changed, after) = match tried {
        Ok(Judged { decision: Decision::Worked, changed, after }) => (
            FixOutcome::Worked,
            "the failure is gone, and nothing new came".to_owned(),
            changed,
            after,
        ),
        Ok(Judged { decision: Decision::Failed(why), changed, .. }) => {
            backup.restore(request.git).await?;
            (FixOutcome::Failed, why, changed, None)
        }
        Ok(Judged { decision: Decision::Unknown(why), changed, .. }) => {
            backup.restore(request.git).await?;
            (FixOutcome::Unknown, why, changed, None)
        }
        Err(error) => {
            backup.restore(request.git).await?;
            return Err(error);
        }
    };
    let attempt = Attempt {
        signature: action.signature.clone(),
        class: action.class,
        strategy: action.strategy,
        fix: Some(action.fix.clone()),
        backup: Some(backup.commit.to_string()),
        changed,
        outcome,
        reason,
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok((attempt, after))
}

enum Decision {
    Worked,
    Failed(String),
    Unknown(String),
}

struct Judged {
    decision: Decision,
    changed: Vec<String>,
    after: Option<Red>,
}

impl Judged {
    fn failed(why: impl Into<String>, changed: Vec<String>) -> Self {
        Judged { decision: Decision::Failed(why.into()), changed, after: None }
    }
}

async fn try_out(
    request: &RecoverRequest<'_>,
    before: &Red,
    action: &Action,
    backup: &Backup,
) -> Result<Judged, RecoverError> {
    let git = request.git;
    let change = git.diff(&DiffOf::Work { from: request.base.clone() }, 0).await?;
    let changed_before: BTreeSet<String> = change.files.into_iter().map(|file| file.path).collect();
    match apply(request, action).await? {
        Applied::Done => {}
        Applied::Failed(why) => return Ok(Judged::failed(why, Vec::new())),
        Applied::Unfit(why) => {
            return Ok(Judged {
                decision: Decision::Unknown(why),
                changed: Vec::new(),
                after: None,
            });
        }
    }
    if request.cancel.is_cancelled() {
        let decision = Decision::Unknown("it was stopped".to_owned());
        return Ok(Judged { decision, changed: Vec::new(), after: None });
    }
    if !backup.is_checked_out(git).await? {
        return Ok(Judged::failed("it moved what is checked out", Vec::new()));
    }
    let now = git.tree_of_work().await?;
    let seen = Seen::of(git, backup.tree(), &now).await?;
    let changed = seen.files();
    if seen.is_empty() && action.strategy == Strategy::LinterFix {
        return Ok(Judged::failed("it changed nothing", changed));
    }
    if let Some(why) = inspect::refuse(&seen, action, &changed_before, request.checks) {
        return Ok(Judged::failed(why, changed));
    }
    let after = verify(request, before, Some(&action.signature)).await?;
    if !backup.is_checked_out(git).await? {
        return Ok(Judged::failed("a check moved what is checked out", changed));
    }
    let (decision, after) = match after {
        Looked::Cut => {
            (Decision::Unknown("the checks could not be run to their end".to_owned()), None)
        }
        Looked::Hangs(check) => {
            (Decision::Failed(format!("the check `{check}` does not come to an end now")), None)
        }
        Looked::At(after) => (decide(before, &after, &action.signature), Some(after)),
    };
    Ok(Judged { decision, changed, after })
}

enum Applied {
    Done,
    Failed(String),
    /// The fix is for other files. This does not count against it.
    Unfit(String),
}

/// Applies a fix.
async fn apply(request: &RecoverRequest<'_>, action: &Action) -> Result<Applied, RecoverError> {
    match &action.fix.remedy {
        Remedy::Advice(_) => Ok(Applied::Unfit("advice is not applied".to_owned())),
        Remedy::Command(words) => Ok(run(request, action, words).await),
        Remedy::Patch(text) => {
            if let Err(why) = request.git.patch_fits(text).await? {
                let why = format!("the patch does not fit: {}", first_line(&why));
                return Ok(Applied::Unfit(why));
            }
            let applied = request.git.apply_patch(text).await?;
            Ok(applied.map_or_else(Applied::Failed, |()| Applied::Done))
        }
    }
}

async fn run(request: &RecoverRequest<'_>, action: &Action, words: &[String]) -> Applied {
    let [program, args @ ..] = words else {
        return Applied::Failed("there is no program in it".to_owned());
    };
    // A linter is already installed, so it needs no network.
    let may_reach = request.rules.network && action.strategy != Strategy::LinterFix;
    let program = Program {
        program: program.clone(),
        args: [args, &action.files].concat(),
        environment: Vec::new(),
        timeout: request.rules.timeout,
        network: if may_reach { Network::On } else { Network::Off },
        kept_bytes_max: RECOVER_SAID_BYTES_MAX,
    };
    let mut quiet = |_: &[u8]| Flow::Continue;
    let ran = program::run(program, request.workplace, request.cancel, &mut quiet).await;
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return Applied::Failed(error.to_string()),
    };
    if let Some(change) = ran.changes.first() {
        return Applied::Failed(format!("it touched the protected path `{}`", change.path));
    }
    let said = String::from_utf8_lossy(&ran.ended.stderr.bytes);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match (ran.ended.stopped, ran.ended.code) {
        (Some(_), _) if request.cancel.is_cancelled() => Applied::Done,
        (Some(_), _) => Applied::Failed("it took too long".to_owned()),
        (None, Some(0)) => Applied::Done,
        // Linters exit with 1 if they could fix some but not all findings.
        (None, Some(1)) if action.strategy == Strategy::LinterFix => Applied::Done,
        (None, Some(code)) => Applied::Failed(format!("exit code {code}: {}", first_line(last))),
        (None, None) => Applied::Failed("it was ended by a signal".to_owned()),
    }
}

/// The result of running the checks again.
pub(super) enum Looked {
    At(Red),
    /// A check that reports the failure timed out, which it did not before.
    Hangs(String),
    /// The run was cancelled, or another check timed out, so nothing is known.
    Cut,
}

/// Runs the checks again: the failed ones first, and all of them if the failure is gone.
pub(super) async fn verify(
    request: &RecoverRequest<'_>,
    before: &Red,
    target: Option<&str>,
) -> Result<Looked, RecoverError> {
    let red: BTreeSet<&str> = before
        .verdict
        .results
        .iter()
        .filter(|result| has_failed(result))
        .map(|result| result.name.as_str())
        .collect();
    let first: Vec<Check> = request
        .checks
        .iter()
        .filter(|check| red.contains(check.name.as_str()))
        .map(|check| Check { depends_on: Vec::new(), ..check.clone() })
        .collect();
    if !first.is_empty() && first.len() < request.checks.len() {
        let verdict = check(request, &first).await?;
        if let Some(cut) = cut_short(&verdict, before, target, request) {
            return Ok(cut);
        }
        let after = Red::of(together(&before.verdict, verdict), request.analyse);
        let is_still_there = match target {
            Some(signature) => before.is_still_there(&after, signature),
            None => {
                after.verdict.results.iter().any(|result| result.critical && has_failed(result))
            }
        };
        if is_still_there {
            return Ok(Looked::At(after));
        }
    }
    let verdict = check(request, request.checks).await?;
    let cut = cut_short(&verdict, before, target, request);
    Ok(cut.unwrap_or_else(|| Looked::At(Red::of(verdict, request.analyse))))
}

/// The new results of some checks, with the previous results of the others.
fn together(before: &Verdict, now: Verdict) -> Verdict {
    let mut results = before.results.clone();
    for result in now.results {
        if let Some(old) = results.iter_mut().find(|old| old.name == result.name) {
            *old = result;
        }
    }
    Verdict { green: all_critical_passed(&results), results }
}

/// Runs checks and forwards their events.
async fn check(request: &RecoverRequest<'_>, checks: &[Check]) -> Result<Verdict, RecoverError> {
    let on_event = |event| (request.on_event)(RecoverEvent::Check(event));
    let parallel = request.rules.parallel;
    Ok(run_checks(checks, request.workplace, request.cancel, &on_event, parallel).await?)
}

/// The result if a check was cancelled or timed out for the first time. That proves nothing, unless
/// the fix was for an error of this check.
fn cut_short(
    verdict: &Verdict,
    before: &Red,
    target: Option<&str>,
    request: &RecoverRequest<'_>,
) -> Option<Looked> {
    if request.cancel.is_cancelled() {
        return Some(Looked::Cut);
    }
    let slow = verdict.results.iter().find(|result| {
        result.status == CheckStatus::TimedOut
            && status_in(before, &result.name) != Some(&CheckStatus::TimedOut)
    })?;
    let reports_target = before
        .found
        .iter()
        .any(|found| Some(found.signature.as_str()) == target && found.check == slow.name);
    Some(if reports_target { Looked::Hangs(slow.name.clone()) } else { Looked::Cut })
}

/// Decides if a fix worked. Errors of a check that was not run before do not count as new, since
/// they may have been there already.
fn decide(before: &Red, after: &Red, target: &str) -> Decision {
    if has_cut_output(after) || has_cut_output(before) && !after.verdict.green {
        let why = "some of what the checks said is missing, so nobody knows what is gone";
        return Decision::Unknown(why.to_owned());
    }
    if before.is_still_there(after, target) {
        return Decision::Failed("the failure is still there".to_owned());
    }
    let new = new_ones(&before.fingerprints(), &after.fingerprints());
    let was_run =
        |name: &str| !matches!(status_in(before, name), None | Some(CheckStatus::Skipped(_)));
    if let Some(new) = new.iter().find(|new| was_run(&new.check)) {
        let signature = new.signature.to_string();
        let found = after.found.iter().find(|found| {
            (&found.check, &found.signature, &found.error.test, &found.error.file)
                == (&new.check, &signature, &new.test, &new.file)
        });
        let message = found.map(|found| first_line(&found.error.message)).unwrap_or_default();
        return Decision::Failed(format!("something new came, in `{}`: {message}", new.check));
    }
    let broken = after.verdict.results.iter().find(|result| {
        result.critical
            && has_failed(result)
            && status_in(before, &result.name) == Some(&CheckStatus::Passed)
    });
    if let Some(result) = broken {
        return Decision::Failed(format!("the check `{}` passed before", result.name));
    }
    let skipped = after.verdict.results.iter().find(|result| {
        matches!(result.status, CheckStatus::Skipped(_))
            && status_in(before, &result.name) == Some(&CheckStatus::Passed)
    });
    if let Some(result) = skipped {
        return Decision::Failed(format!("the check `{}` was not run any more", result.name));
    }
    // A change that makes the checks pass by weakening them is not a fix.
    match brought(&before.verdict.results, &after.verdict.results).first() {
        Some(odd) => {
            Decision::Failed(format!("the checks are green for an odd reason: {}", odd.message))
        }
        None => Decision::Worked,
    }
}

fn status_in<'a>(red: &'a Red, check: &str) -> Option<&'a CheckStatus> {
    let result = red.verdict.results.iter().find(|result| result.name == check);
    result.map(|result| &result.status)
}

/// Returns true if the output of a failed critical check is incomplete.
fn has_cut_output(red: &Red) -> bool {
    red.verdict.results.iter().any(|one| one.critical && has_failed(one) && one.is_cut())
}
