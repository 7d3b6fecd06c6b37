//! The course of a recovery: what is tried, in which order, and when it ends.

use repertoire_journal::{FixOutcome, FixRemedy, Payload};

use super::attempt::CheckRerunResult;
use super::{
    CheckFailure, FailedChecks, FailureClass, ProjectFacts, RecoverAction, RecoverAttempt,
    RecoverError, RecoverEvent, RecoverRequest, RecoverResult, RecoverRules, RecoverState,
    RecoverStrategy, RetryBackoff, attempt, install, is_limit, learned_fix, linter, wait_for_limit,
};
use crate::error::ParsedError;
use crate::limits::{RECOVER_DEFERRAL_MAX, RECOVER_WITHOUT_EFFECT_MAX};
use crate::memory::{FixAdvice, FixState, TriedFixes, WithheldFix};

pub(super) struct RecoverSession<'a> {
    pub(super) request: &'a RecoverRequest<'a>,
    pub(super) red: FailedChecks,
    pub(super) payloads: Vec<Payload>,
    pub(super) tried: TriedFixes,
    pub(super) attempts: Vec<RecoverAttempt>,
    pub(super) waits: u32,
}

impl RecoverSession<'_> {
    pub(super) async fn run(mut self) -> Result<RecoverResult, RecoverError> {
        loop {
            if self.red.verdict.green {
                return self.finish(RecoverState::Green).await;
            }
            if self.request.cancel.is_cancelled() {
                return self
                    .finish(RecoverState::Red { reason: "it was stopped".to_owned() })
                    .await;
            }
            if let Some(reason) = permanent_reason(&self.red) {
                return self.finish(RecoverState::Permanent { reason }).await;
            }
            if let Some(found) = self.find_transient() {
                match self.wait_and_recheck(found).await? {
                    Some(state) => return self.finish(state).await,
                    None => continue,
                }
            }
            // Waits do not count as attempts.
            let made = self.attempts.iter().filter(|attempt| attempt.fix.is_some()).count();
            let total = u32::try_from(made).unwrap_or(u32::MAX);
            if total >= self.request.rules.attempts_total_max {
                let reason = format!("{total} attempts were made, and more are not allowed");
                return self.finish(RecoverState::Red { reason }).await;
            }
            match self.next_action().await? {
                Some(action) => self.try_action(action).await?,
                None => {
                    let reason = "nothing is known that helps without asking".to_owned();
                    return self.finish(RecoverState::Red { reason }).await;
                }
            }
        }
    }

    /// A failure that may pass by itself, if waiting is allowed and attempts are left.
    fn find_transient(&self) -> Option<CheckFailure> {
        let found = self.red.found.iter().find(|found| found.class == FailureClass::Transient)?;
        let is_left = self.waits + 1 < RetryBackoff::CHECKS.attempts;
        let strategy = self.wait_strategy(found);
        (is_left && self.request.rules.strategies.contains(&strategy)).then(|| found.clone())
    }

    fn wait_strategy(&self, found: &CheckFailure) -> RecoverStrategy {
        let is_limited = is_limit(&found.error.message) || is_limit(&self.red.failed_output());
        if is_limited { RecoverStrategy::WaitForLimit } else { RecoverStrategy::Backoff }
    }

    /// Waits and runs the checks again. Returns the final state if the recovery ends here.
    async fn wait_and_recheck(
        &mut self,
        found: CheckFailure,
    ) -> Result<Option<RecoverState>, RecoverError> {
        self.waits += 1;
        let request = self.request;
        let strategy = self.wait_strategy(&found);
        let begun_ms = (request.clock)();
        let length = match strategy {
            RecoverStrategy::WaitForLimit => {
                let said = format!("{}\n{}", found.error.message, self.red.failed_output());
                wait_for_limit(&said, begun_ms)
            }
            _ => {
                let wait = RetryBackoff::CHECKS.wait_after(self.waits, request.jitter);
                wait.unwrap_or_default()
            }
        };
        let reason = found.error.message.clone();
        if length > RECOVER_DEFERRAL_MAX {
            let hours = length.as_secs() / 3_600;
            let reason = format!("it asks to be left alone for {hours} h: {reason}");
            return Ok(Some(RecoverState::Permanent { reason }));
        }
        if length > request.rules.wait_max {
            let wait_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
            let until_ms = begun_ms.saturating_add(wait_ms);
            return Ok(Some(RecoverState::Deferred { until_ms, reason }));
        }
        (request.on_event)(RecoverEvent::Waiting { length, why: reason });
        tokio::select! {
            () = tokio::time::sleep(length) => {}
            () = request.cancel.cancelled() => return Ok(None),
        }
        let after = match attempt::rerun_checks(request, &self.red, None).await? {
            CheckRerunResult::At(after) => Some(after),
            CheckRerunResult::Hangs(_) | CheckRerunResult::Cut => None,
        };
        let is_gone = after.as_ref().is_some_and(|after| !after.has_failure(&found.signature));
        let outcome = match (&after, is_gone) {
            (None, _) => FixOutcome::Unknown,
            (_, true) => FixOutcome::Worked,
            (_, false) => FixOutcome::Failed,
        };
        let seconds = length.as_secs_f64();
        let attempt = RecoverAttempt {
            signature: found.signature,
            class: found.class,
            strategy,
            fix: None,
            backup: None,
            changed: Vec::new(),
            outcome,
            reason: format!("after {seconds:.1} s"),
            seconds,
        };
        (request.on_event)(RecoverEvent::Tried(attempt.clone()));
        self.attempts.push(attempt);
        if let Some(after) = after {
            self.red = after;
        }
        Ok(None)
    }

    /// The next action: ordered by strategy, then by error.
    async fn next_action(&self) -> Result<Option<RecoverAction>, RecoverError> {
        let request = self.request;
        let errors: Vec<ParsedError> =
            self.red.found.iter().map(|found| found.error.clone()).collect();
        let dir = &request.workplace.dir;
        let advice = request.memory.look_up(&errors, dir, &self.tried, (request.clock)()).await?;
        let advice = self.withhold_unfitting(advice).await?;
        let facts = ProjectFacts::collect_for(request).await?;
        let open: Vec<&CheckFailure> =
            self.red.found.iter().filter(|found| self.may_try(&found.signature)).collect();
        Ok(choose_action(&open, &facts, &advice, request.rules, &self.tried))
    }

    /// Withholds patches that do not apply. They were made for other files, so this does not count
    /// against them.
    async fn withhold_unfitting(&self, mut advice: FixAdvice) -> Result<FixAdvice, RecoverError> {
        for offer in std::mem::take(&mut advice.offers) {
            let fits = match &offer.fix.fix.remedy {
                FixRemedy::Patch(text) => self.request.git.patch_fits(text).await?,
                FixRemedy::Command(_) | FixRemedy::Advice(_) => Ok(()),
            };
            match fits {
                Ok(()) => advice.offers.push(offer),
                Err(why) => advice.withheld.push(WithheldFix {
                    signature: offer.signature,
                    id: offer.fix.id,
                    state: offer.state,
                    confidence: offer.fix.confidence,
                    reason: format!("it does not apply here: {}", super::first_line(&why)),
                }),
            }
        }
        Ok(advice)
    }

    fn may_try(&self, signature: &str) -> bool {
        let mine = self
            .attempts
            .iter()
            .filter(|attempt| attempt.signature == signature && attempt.fix.is_some());
        let failed = mine.clone().filter(|attempt| attempt.outcome == FixOutcome::Failed).count();
        let all = u32::try_from(mine.count()).unwrap_or(u32::MAX);
        // After two fixes without effect, the cause is probably a different one.
        all < self.request.rules.attempts_max && failed < RECOVER_WITHOUT_EFFECT_MAX as usize
    }

    async fn try_action(&mut self, action: RecoverAction) -> Result<(), RecoverError> {
        let request = self.request;
        (request.on_event)(RecoverEvent::Trying {
            signature: action.signature.clone(),
            strategy: action.strategy,
            what: format!(
                "{}: {}",
                action.fix.remedy.kind(),
                super::first_line(&action.fix.remedy.to_text())
            ),
        });
        let (attempt, after) = attempt::perform_attempt(request, &self.red, &action).await?;
        // Trying the same fix twice is pointless, but one that worked may be needed again if the
        // failure returns.
        if attempt.outcome != FixOutcome::Worked {
            self.tried.insert((action.signature.clone(), action.fix.id()));
        }
        // Record it only now: the checks have run, and a failed attempt is rolled back.
        self.payloads.push(Payload::FixTried {
            scope: request.memory.scope().to_owned(),
            signature: action.signature,
            fix: action.fix,
            outcome: attempt.outcome,
            reason: attempt.reason.clone(),
        });
        (request.on_event)(RecoverEvent::Tried(attempt.clone()));
        self.attempts.push(attempt);
        if let Some(after) = after {
            self.red = after;
        }
        Ok(())
    }

    async fn finish(self, state: RecoverState) -> Result<RecoverResult, RecoverError> {
        let RecoverSession { request, red, payloads, tried, attempts, .. } = self;
        let errors: Vec<ParsedError> = red.found.iter().map(|found| found.error.clone()).collect();
        let now_ms = (request.clock)();
        let mut advice =
            request.memory.look_up(&errors, &request.workplace.dir, &tried, now_ms).await?;
        // Fixes that were not applied become suggestions for the agent that continues.
        for offer in &mut advice.offers {
            offer.state = FixState::Suggested;
        }
        Ok(RecoverResult { attempts, state, payloads, advice, verdict: red.verdict, tried })
    }
}

/// The reason why only a person can help, if so.
fn permanent_reason(red: &FailedChecks) -> Option<String> {
    let found = super::classify::first_if_all_permanent(&red.found)?;
    Some(format!("`{}`: {}", found.check, super::first_line(&found.error.message)))
}

/// The strategies for fixes, in order. Fixes that are only suggested come last. Trying them is
/// safe, since every attempt has a backup and is verified, and it is the only way for them to
/// become trusted.
const WAYS: &[(RecoverStrategy, FixState)] = &[
    (RecoverStrategy::InstallDependency, FixState::Automatic),
    (RecoverStrategy::LinterFix, FixState::Automatic),
    (RecoverStrategy::LearnedFix, FixState::Automatic),
    (RecoverStrategy::LearnedFix, FixState::Suggested),
];

/// Chooses the next action. Pure: the same facts give the same result.
pub(crate) fn choose_action(
    open: &[&CheckFailure],
    facts: &ProjectFacts,
    advice: &FixAdvice,
    rules: &RecoverRules,
    tried: &TriedFixes,
) -> Option<RecoverAction> {
    for (strategy, state) in WAYS.iter().filter(|(way, _)| rules.strategies.contains(way)) {
        for found in open {
            let none = Vec::new();
            let (chosen, class) = match strategy {
                // Installing without network would only fail.
                RecoverStrategy::InstallDependency if !rules.network => (None, found.class),
                RecoverStrategy::InstallDependency => (
                    install::choose_install(found, facts).map(|fix| (fix, none)),
                    FailureClass::Mechanical,
                ),
                RecoverStrategy::LinterFix => {
                    (linter::choose_linter_fix(found, facts), FailureClass::Mechanical)
                }
                _ => {
                    let fix = learned_fix::choose_learned_fix(found, advice, *state);
                    (fix.map(|fix| (fix, none)), FailureClass::Known)
                }
            };
            let Some((fix, files)) = chosen else { continue };
            let (signature, id) = (found.signature.clone(), fix.id());
            if is_withheld(advice, &signature, &id) || tried.contains(&(signature.clone(), id)) {
                continue;
            }
            return Some(RecoverAction { signature, class, strategy: *strategy, fix, files });
        }
    }
    None
}

fn is_withheld(advice: &FixAdvice, signature: &str, id: &str) -> bool {
    advice.withheld.iter().any(|held| held.signature == signature && held.id == id)
}
