//! The course of a recovery: what is tried, in which order, and when it ends.

use repertoire_journal::{FixOutcome, Payload, Remedy};

use super::attempt::Looked;
use super::{
    Action, Attempt, Backoff, Class, Facts, Found, RecoverError, RecoverEvent, RecoverRequest,
    RecoverRules, Recovered, Red, State, Strategy, attempt, install, is_limit, learned, linter,
    wait_for_limit,
};
use crate::error::ParsedError;
use crate::limits::{RECOVER_DEFERRAL_MAX, RECOVER_WITHOUT_EFFECT_MAX};
use crate::memory::{Advice, FixState, Tried, Withheld};

pub(super) struct Session<'a> {
    pub(super) request: &'a RecoverRequest<'a>,
    pub(super) red: Red,
    pub(super) payloads: Vec<Payload>,
    pub(super) tried: Tried,
    pub(super) attempts: Vec<Attempt>,
    pub(super) waits: u32,
}

impl Session<'_> {
    pub(super) async fn run(mut self) -> Result<Recovered, RecoverError> {
        loop {
            if self.red.verdict.green {
                return self.end(State::Green).await;
            }
            if self.request.cancel.is_cancelled() {
                return self.end(State::Red { reason: "it was stopped".to_owned() }).await;
            }
            if let Some(reason) = permanent(&self.red) {
                return self.end(State::Permanent { reason }).await;
            }
            if let Some(found) = self.transient() {
                match self.wait(found).await? {
                    Some(state) => return self.end(state).await,
                    None => continue,
                }
            }
            // Waits do not count as attempts.
            let made = self.attempts.iter().filter(|attempt| attempt.fix.is_some()).count();
            let total = u32::try_from(made).unwrap_or(u32::MAX);
            if total >= self.request.rules.attempts_total_max {
                let reason = format!("{total} attempts were made, and more are not allowed");
                return self.end(State::Red { reason }).await;
            }
            match self.next().await? {
                Some(action) => self.attempt(action).await?,
                None => {
                    let reason = "nothing is known that helps without asking".to_owned();
                    return self.end(State::Red { reason }).await;
                }
            }
        }
    }

    /// A failure that may pass by itself, if waiting is allowed and attempts are left.
    fn transient(&self) -> Option<Found> {
        let found = self.red.found.iter().find(|found| found.class == Class::Transient)?;
        let is_left = self.waits + 1 < Backoff::CHECKS.attempts;
        let strategy = self.way(found);
        (is_left && self.request.rules.strategies.contains(&strategy)).then(|| found.clone())
    }

    fn way(&self, found: &Found) -> Strategy {
        let is_limited = is_limit(&found.error.message) || is_limit(&self.red.output());
        if is_limited { Strategy::WaitForLimit } else { Strategy::Backoff }
    }

    /// Waits and runs the checks again. Returns the final state if the recovery ends here.
    async fn wait(&mut self, found: Found) -> Result<Option<State>, RecoverError> {
        self.waits += 1;
        let request = self.request;
        let strategy = self.way(&found);
        let begun_ms = (request.clock)();
        let length = match strategy {
            Strategy::WaitForLimit => {
                let said = format!("{}\n{}", found.error.message, self.red.output());
                wait_for_limit(&said, begun_ms)
            }
            _ => {
                let wait = Backoff::CHECKS.wait(self.waits, request.jitter);
                wait.unwrap_or_default()
            }
        };
        let reason = found.error.message.clone();
        if length > RECOVER_DEFERRAL_MAX {
            let hours = length.as_secs() / 3_600;
            let reason = format!("it asks to be left alone for {hours} h: {reason}");
            return Ok(Some(State::Permanent { reason }));
        }
        if length > request.rules.wait_max {
            let wait_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
            let until_ms = begun_ms.saturating_add(wait_ms);
            return Ok(Some(State::Deferred { until_ms, reason }));
        }
        (request.on_event)(RecoverEvent::Waiting { length, why: reason });
        tokio::select! {
            () = tokio::time::sleep(length) => {}
            () = request.cancel.cancelled() => return Ok(None),
        }
        let after = match attempt::verify(request, &self.red, None).await? {
            Looked::At(after) => Some(after),
            Looked::Hangs(_) | Looked::Cut => None,
        };
        let is_gone = after.as_ref().is_some_and(|after| !after.has(&found.signature));
        let outcome = match (&after, is_gone) {
            (None, _) => FixOutcome::Unknown,
            (_, true) => FixOutcome::Worked,
            (_, false) => FixOutcome::Failed,
        };
        let seconds = length.as_secs_f64();
        let attempt = Attempt {
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
    async fn next(&self) -> Result<Option<Action>, RecoverError> {
        let request = self.request;
        let errors: Vec<ParsedError> =
            self.red.found.iter().map(|found| found.error.clone()).collect();
        let dir = &request.workplace.dir;
        let advice = request.memory.look_up(&errors, dir, &self.tried, (request.clock)()).await?;
        let advice = self.fitting(advice).await?;
        let facts = Facts::of(request).await?;
        let open: Vec<&Found> =
            self.red.found.iter().filter(|found| self.may_try(&found.signature)).collect();
        Ok(choose(&open, &facts, &advice, request.rules, &self.tried))
    }

    /// Withholds patches that do not apply. They were made for other files, so this does not count
    /// against them.
    async fn fitting(&self, mut advice: Advice) -> Result<Advice, RecoverError> {
        for offer in std::mem::take(&mut advice.offers) {
            let fits = match &offer.fix.fix.remedy {
                Remedy::Patch(text) => self.request.git.patch_fits(text).await?,
                Remedy::Command(_) | Remedy::Advice(_) => Ok(()),
            };
            match fits {
                Ok(()) => advice.offers.push(offer),
                Err(why) => advice.withheld.push(Withheld {
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

    async fn attempt(&mut self, action: Action) -> Result<(), RecoverError> {
        let request = self.request;
        (request.on_event)(RecoverEvent::Trying {
            signature: action.signature.clone(),
            strategy: action.strategy,
            what: format!(
                "{}: {}",
                action.fix.remedy.kind(),
                super::first_line(&action.fix.remedy.text())
            ),
        });
        let (attempt, after) = attempt::perform(request, &self.red, &action).await?;
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

    async fn end(self, state: State) -> Result<Recovered, RecoverError> {
        let Session { request, red, payloads, tried, attempts, .. } = self;
        let errors: Vec<ParsedError> = red.found.iter().map(|found| found.error.clone()).collect();
        let now_ms = (request.clock)();
        let mut advice =
            request.memory.look_up(&errors, &request.workplace.dir, &tried, now_ms).await?;
        // Fixes that were not applied become suggestions for the agent that continues.
        for offer in &mut advice.offers {
            offer.state = FixState::Suggested;
        }
        Ok(Recovered { attempts, state, payloads, advice, verdict: red.verdict, tried })
    }
}

/// The reason why only a person can help, if so.
fn permanent(red: &Red) -> Option<String> {
    let found = super::classify::only_for_a_person(&red.found)?;
    Some(format!("`{}`: {}", found.check, super::first_line(&found.error.message)))
}

/// The strategies for fixes, in order. Fixes that are only suggested come last. Trying them is
/// safe, since every attempt has a backup and is verified, and it is the only way for them to
/// become trusted.
const WAYS: &[(Strategy, FixState)] = &[
    (Strategy::InstallDependency, FixState::Automatic),
    (Strategy::LinterFix, FixState::Automatic),
    (Strategy::LearnedFix, FixState::Automatic),
    (Strategy::LearnedFix, FixState::Suggested),
];

/// Chooses the next action. Pure: the same facts give the same result.
pub(crate) fn choose(
    open: &[&Found],
    facts: &Facts,
    advice: &Advice,
    rules: &RecoverRules,
    tried: &Tried,
) -> Option<Action> {
    for (strategy, state) in WAYS.iter().filter(|(way, _)| rules.strategies.contains(way)) {
        for found in open {
            let none = Vec::new();
            let (chosen, class) = match strategy {
                // Installing without network would only fail.
                Strategy::InstallDependency if !rules.network => (None, found.class),
                Strategy::InstallDependency => {
                    (install::choose(found, facts).map(|fix| (fix, none)), Class::Mechanical)
                }
                Strategy::LinterFix => (linter::choose(found, facts), Class::Mechanical),
                _ => {
                    let fix = learned::choose(found, advice, *state);
                    (fix.map(|fix| (fix, none)), Class::Known)
                }
            };
            let Some((fix, files)) = chosen else { continue };
            let (signature, id) = (found.signature.clone(), fix.id());
            if is_withheld(advice, &signature, &id) || tried.contains(&(signature.clone(), id)) {
                continue;
            }
            return Some(Action { signature, class, strategy: *strategy, fix, files });
        }
    }
    None
}

fn is_withheld(advice: &Advice, signature: &str, id: &str) -> bool {
    advice.withheld.iter().any(|held| held.signature == signature && held.id == id)
}
