//! A single attempt: back up, apply, inspect, verify, decide, and roll back if it did not help.

use std::collections::BTreeSet;
use std::time::Instant;

use repertoire_journal::{FixOutcome, FixRemedy};
use repertoire_sandbox::confinement::NetworkAccess;
use repertoire_sandbox::process::OutputFlow;

use super::inspect::{self, AttemptChange};
use super::{
    FailedChecks, RecoverAction, RecoverAttempt, RecoverError, RecoverEvent, RecoverRequest,
    RecoverStrategy, WorkBackup, first_line, has_failed,
};
use crate::declared::{
    CheckDefinition, CheckRunVerdict, CheckStatus, all_critical_passed, run_checks,
};
use crate::limits::RECOVER_SAID_BYTES_MAX;
use crate::signature::new_fingerprints;
use crate::verify::new_suspicions;
use repertoire_git::repo::DiffTarget;
use repertoire_sandbox::program::{self, EngineProgram};

/// Performs an attempt. Returns the new results of the checks if the change is kept.
pub(super) async fn perform_attempt(
    request: &RecoverRequest<'_>,
    before: &FailedChecks,
    action: &RecoverAction,
) -> Result<(RecoverAttempt, Option<FailedChecks>), RecoverError> {
    let begun = Instant::now();
    let backup = WorkBackup::take(request.git).await?;
    let tried = try_out(request, before, action, &backup).await;
    let (outcome, reason, changed, after) = match tried {
        Ok(AttemptJudgement { decision: FixDecision::Worked, changed, after }) => (
            FixOutcome::Worked,
            "the failure is gone, and nothing new came".to_owned(),
            changed,
            after,
        ),
        Ok(AttemptJudgement { decision: FixDecision::Failed(why), changed, .. }) => {
            backup.restore(request.git).await?;
            (FixOutcome::Failed, why, changed, None)
        }
        Ok(AttemptJudgement { decision: FixDecision::Unknown(why), changed, .. }) => {
            backup.restore(request.git).await?;
            (FixOutcome::Unknown, why, changed, None)
        }
        Err(error) => {
            backup.restore(request.git).await?;
            return Err(error);
        }
    };
    let attempt = RecoverAttempt {
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

enum FixDecision {
    Worked,
    Failed(String),
    Unknown(String),
}

struct AttemptJudgement {
    decision: FixDecision,
    changed: Vec<String>,
    after: Option<FailedChecks>,
}

impl AttemptJudgement {
    fn failed(why: impl Into<String>, changed: Vec<String>) -> Self {
        AttemptJudgement { decision: FixDecision::Failed(why.into()), changed, after: None }
    }
}

async fn try_out(
    request: &RecoverRequest<'_>,
    before: &FailedChecks,
    action: &RecoverAction,
    backup: &WorkBackup,
) -> Result<AttemptJudgement, RecoverError> {
    let git = request.git;
    let change = git.diff(&DiffTarget::Work { from: request.base.clone() }, 0).await?;
    let changed_before: BTreeSet<String> = change.files.into_iter().map(|file| file.path).collect();
    match apply_fix(request, action).await? {
        FixApplication::Done => {}
        FixApplication::Failed(why) => return Ok(AttemptJudgement::failed(why, Vec::new())),
        FixApplication::Unfit(why) => {
            return Ok(AttemptJudgement {
                decision: FixDecision::Unknown(why),
                changed: Vec::new(),
                after: None,
            });
        }
    }
    if request.cancel.is_cancelled() {
        let decision = FixDecision::Unknown("it was stopped".to_owned());
        return Ok(AttemptJudgement { decision, changed: Vec::new(), after: None });
    }
    if !backup.is_checked_out(git).await? {
        return Ok(AttemptJudgement::failed("it moved what is checked out", Vec::new()));
    }
    let now = git.tree_of_work().await?;
    let seen = AttemptChange::between_trees(git, backup.tree(), &now).await?;
    let changed = seen.changed_files();
    if seen.is_empty() && action.strategy == RecoverStrategy::LinterFix {
        return Ok(AttemptJudgement::failed("it changed nothing", changed));
    }
    if let Some(why) = inspect::refuse_change(&seen, action, &changed_before, request.checks) {
        return Ok(AttemptJudgement::failed(why, changed));
    }
    let after = rerun_checks(request, before, Some(&action.signature)).await?;
    if !backup.is_checked_out(git).await? {
        return Ok(AttemptJudgement::failed("a check moved what is checked out", changed));
    }
    let (decision, after) = match after {
        CheckRerunResult::Cut => {
            (FixDecision::Unknown("the checks could not be run to their end".to_owned()), None)
        }
        CheckRerunResult::Hangs(check) => {
            (FixDecision::Failed(format!("the check `{check}` does not come to an end now")), None)
        }
        CheckRerunResult::At(after) => {
            (decide_outcome(before, &after, &action.signature), Some(after))
        }
    };
    Ok(AttemptJudgement { decision, changed, after })
}

enum FixApplication {
    Done,
    Failed(String),
    /// The fix is for other files. This does not count against it.
    Unfit(String),
}

/// Applies a fix.
async fn apply_fix(
    request: &RecoverRequest<'_>,
    action: &RecoverAction,
) -> Result<FixApplication, RecoverError> {
    match &action.fix.remedy {
        FixRemedy::Advice(_) => Ok(FixApplication::Unfit("advice is not applied".to_owned())),
        FixRemedy::Command(words) => Ok(run_fix_command(request, action, words).await),
        FixRemedy::Patch(text) => {
            if let Err(why) = request.git.patch_fits(text).await? {
                let why = format!("the patch does not fit: {}", first_line(&why));
                return Ok(FixApplication::Unfit(why));
            }
            let applied = request.git.apply_patch(text).await?;
            Ok(applied.map_or_else(FixApplication::Failed, |()| FixApplication::Done))
        }
    }
}

async fn run_fix_command(
    request: &RecoverRequest<'_>,
    action: &RecoverAction,
    words: &[String],
) -> FixApplication {
    let [program, args @ ..] = words else {
        return FixApplication::Failed("there is no program in it".to_owned());
    };
    // A linter is already installed, so it needs no network.
    let may_reach = request.rules.network && action.strategy != RecoverStrategy::LinterFix;
    let program = EngineProgram {
        program: program.clone(),
        args: [args, &action.files].concat(),
        environment: Vec::new(),
        timeout: request.rules.timeout,
        network: if may_reach { NetworkAccess::On } else { NetworkAccess::Off },
        kept_bytes_max: RECOVER_SAID_BYTES_MAX,
    };
    let mut quiet = |_: &[u8]| OutputFlow::Continue;
    let ran = program::run(program, request.workplace, request.cancel, &mut quiet).await;
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return FixApplication::Failed(error.to_string()),
    };
    if let Some(change) = ran.changes.first() {
        return FixApplication::Failed(format!("it touched the protected path `{}`", change.path));
    }
    let said = String::from_utf8_lossy(&ran.ended.stderr.bytes);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match (ran.ended.stopped, ran.ended.code) {
        (Some(_), _) if request.cancel.is_cancelled() => FixApplication::Done,
        (Some(_), _) => FixApplication::Failed("it took too long".to_owned()),
        (None, Some(0)) => FixApplication::Done,
        // Linters exit with 1 if they could fix some but not all findings.
        (None, Some(1)) if action.strategy == RecoverStrategy::LinterFix => FixApplication::Done,
        (None, Some(code)) => {
            FixApplication::Failed(format!("exit code {code}: {}", first_line(last)))
        }
        (None, None) => FixApplication::Failed("it was ended by a signal".to_owned()),
    }
}

/// The result of running the checks again.
pub(super) enum CheckRerunResult {
    At(FailedChecks),
    /// A check that reports the failure timed out, which it did not before.
    Hangs(String),
    /// The run was cancelled, or another check timed out, so nothing is known.
    Cut,
}

/// Runs the checks again: the failed ones first, and all of them if the failure is gone.
pub(super) async fn rerun_checks(
    request: &RecoverRequest<'_>,
    before: &FailedChecks,
    target: Option<&str>,
) -> Result<CheckRerunResult, RecoverError> {
    let red: BTreeSet<&str> = before
        .verdict
        .results
        .iter()
        .filter(|result| has_failed(result))
        .map(|result| result.name.as_str())
        .collect();
    let first: Vec<CheckDefinition> = request
        .checks
        .iter()
        .filter(|check| red.contains(check.name.as_str()))
        .map(|check| CheckDefinition { depends_on: Vec::new(), ..check.clone() })
        .collect();
    if !first.is_empty() && first.len() < request.checks.len() {
        let verdict = run_forwarding_events(request, &first).await?;
        if let Some(cut) = cut_short(&verdict, before, target, request) {
            return Ok(cut);
        }
        let after =
            FailedChecks::from_verdict(merge_verdicts(&before.verdict, verdict), request.analyse);
        let is_still_there = match target {
            Some(signature) => before.is_still_there(&after, signature),
            None => {
                after.verdict.results.iter().any(|result| result.critical && has_failed(result))
            }
        };
        if is_still_there {
            return Ok(CheckRerunResult::At(after));
        }
    }
    let verdict = run_forwarding_events(request, request.checks).await?;
    let cut = cut_short(&verdict, before, target, request);
    Ok(cut.unwrap_or_else(|| {
        CheckRerunResult::At(FailedChecks::from_verdict(verdict, request.analyse))
    }))
}

/// The new results of some checks, with the previous results of the others.
fn merge_verdicts(before: &CheckRunVerdict, now: CheckRunVerdict) -> CheckRunVerdict {
    let mut results = before.results.clone();
    for result in now.results {
        if let Some(old) = results.iter_mut().find(|old| old.name == result.name) {
            *old = result;
        }
    }
    CheckRunVerdict { green: all_critical_passed(&results), results }
}

/// Runs checks and forwards their events.
async fn run_forwarding_events(
    request: &RecoverRequest<'_>,
    checks: &[CheckDefinition],
) -> Result<CheckRunVerdict, RecoverError> {
    let on_event = |event| (request.on_event)(RecoverEvent::Check(event));
    let parallel = request.rules.parallel;
    Ok(run_checks(checks, request.workplace, request.cancel, &on_event, parallel).await?)
}

/// The result if a check was cancelled or timed out for the first time. That proves nothing, unless
/// the fix was for an error of this check.
fn cut_short(
    verdict: &CheckRunVerdict,
    before: &FailedChecks,
    target: Option<&str>,
    request: &RecoverRequest<'_>,
) -> Option<CheckRerunResult> {
    if request.cancel.is_cancelled() {
        return Some(CheckRerunResult::Cut);
    }
    let slow = verdict.results.iter().find(|result| {
        result.status == CheckStatus::TimedOut
            && status_in(before, &result.name) != Some(&CheckStatus::TimedOut)
    })?;
    let reports_target = before
        .found
        .iter()
        .any(|found| Some(found.signature.as_str()) == target && found.check == slow.name);
    Some(if reports_target {
        CheckRerunResult::Hangs(slow.name.clone())
    } else {
        CheckRerunResult::Cut
    })
}

/// Decides if a fix worked. Errors of a check that was not run before do not count as new, since
/// they may have been there already.
fn decide_outcome(before: &FailedChecks, after: &FailedChecks, target: &str) -> FixDecision {
    if has_cut_output(after) || has_cut_output(before) && !after.verdict.green {
        let why = "some of what the checks said is missing, so nobody knows what is gone";
        return FixDecision::Unknown(why.to_owned());
    }
    if before.is_still_there(after, target) {
        return FixDecision::Failed("the failure is still there".to_owned());
    }
    let new = new_fingerprints(&before.count_fingerprints(), &after.count_fingerprints());
    let was_run =
        |name: &str| !matches!(status_in(before, name), None | Some(CheckStatus::Skipped(_)));
    if let Some(new) = new.iter().find(|new| was_run(&new.check)) {
        let signature = new.signature.to_string();
        let found = after.found.iter().find(|found| {
            (&found.check, &found.signature, &found.error.test, &found.error.file)
                == (&new.check, &signature, &new.test, &new.file)
        });
        let message = found.map(|found| first_line(&found.error.message)).unwrap_or_default();
        return FixDecision::Failed(format!("something new came, in `{}`: {message}", new.check));
    }
    let broken = after.verdict.results.iter().find(|result| {
        result.critical
            && has_failed(result)
            && status_in(before, &result.name) == Some(&CheckStatus::Passed)
    });
    if let Some(result) = broken {
        return FixDecision::Failed(format!("the check `{}` passed before", result.name));
    }
    let skipped = after.verdict.results.iter().find(|result| {
        matches!(result.status, CheckStatus::Skipped(_))
            && status_in(before, &result.name) == Some(&CheckStatus::Passed)
    });
    if let Some(result) = skipped {
        return FixDecision::Failed(format!("the check `{}` was not run any more", result.name));
    }
    // A change that makes the checks pass by weakening them is not a fix.
    match new_suspicions(&before.verdict.results, &after.verdict.results).first() {
        Some(odd) => {
            FixDecision::Failed(format!("the checks are green for an odd reason: {}", odd.message))
        }
        None => FixDecision::Worked,
    }
}

fn status_in<'a>(red: &'a FailedChecks, check: &str) -> Option<&'a CheckStatus> {
    let result = red.verdict.results.iter().find(|result| result.name == check);
    result.map(|result| &result.status)
}

/// Returns true if the output of a failed critical check is incomplete.
fn has_cut_output(red: &FailedChecks) -> bool {
    red.verdict.results.iter().any(|one| one.critical && has_failed(one) && one.is_cut())
}
