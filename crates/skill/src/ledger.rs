//! The ledger: the activations of one conversation, so that no skill is inserted twice and none is lost by
//! compaction, resume or a crash.
//!
//! Each conversation has its own ledger. The ledger does not read the clock: the caller passes the time.

use serde::{Deserialize, Serialize};

use crate::activate::{Activation, Listing, References, Request, Room, activate, fit_of};
use crate::catalog::Entry;
use crate::limits::{
    LEDGER_SKILLS_MAX, LEDGER_TTL_MS, REATTACH_TOKENS_EACH, REATTACH_TOKENS_TOTAL,
};
use crate::skill::Digest;

mod disk;

pub use disk::LedgerError;

/// The activations of one conversation, least recently used first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "disk::LedgerDisk", try_from = "disk::LedgerDisk")]
pub struct Ledger {
    ttl_ms: u64,
    skills_max: usize,
    hits: u64,
    misses: u64,
    held: Vec<Held>,
}

/// An activation with its times.
#[derive(Clone, Debug)]
pub struct Held {
    /// The activation, without its diagnostics, which have been reported.
    pub activation: Activation,
    /// The time at which it was inserted into the conversation.
    pub activated_ms: u64,
    /// The time at which it was last requested.
    pub used_ms: u64,
}

/// The effect of recording an activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The skill is new, or its last activation has expired: insert it into the conversation.
    Activated,
    /// The skill is already in the conversation: insert nothing.
    AlreadyActive,
    /// The same skill with more content than before: resources or references that were not requested then, or
    /// a longer body.
    Extended,
    /// The file, the arguments or the trust changed: insert the skill in place of the old one.
    Changed {
        /// The digest of the file that was active.
        previous: Digest,
    },
}

/// The effect of recording an activation, and the skills that were evicted for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub outcome: Outcome,
    /// Skills that were removed because the ledger was full.
    pub evicted: Vec<String>,
}

/// The maximum size of the skills that are restored after compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReattachBudget {
    /// The maximum number of tokens of one body.
    pub tokens_each: usize,
    /// The maximum number of tokens of all bodies.
    pub tokens_total: usize,
}

impl Default for ReattachBudget {
    fn default() -> Self {
        ReattachBudget { tokens_each: REATTACH_TOKENS_EACH, tokens_total: REATTACH_TOKENS_TOTAL }
    }
}

/// The skills to restore after compaction.
#[derive(Clone, Debug, Default)]
pub struct Reattached {
    /// Activations, most recently used first, cut if necessary.
    pub activations: Vec<Activation>,
    /// Skills that did not fit.
    pub left_out: Vec<String>,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::new(LEDGER_TTL_MS, LEDGER_SKILLS_MAX)
    }
}

impl Ledger {
    /// Creates a ledger whose activations expire after `ttl_ms`, and that keeps at most `skills_max` of them.
    pub fn new(ttl_ms: u64, skills_max: usize) -> Self {
        Ledger { ttl_ms, skills_max: skills_max.max(1), hits: 0, misses: 0, held: Vec::new() }
    }

    /// Activates a skill, unless the conversation already contains what the request asks for. Counts a hit or
    /// a miss; a hit does no further work.
    pub fn activate(
        &mut self,
        entry: &Entry,
        request: &Request<'_>,
        now_ms: u64,
    ) -> (Activation, Recorded) {
        if let Some(at) = self.fresh(entry, request, now_ms) {
            self.hits += 1;
            let held = self.touch(at, now_ms);
            let recorded = Recorded { outcome: Outcome::AlreadyActive, evicted: Vec::new() };
            return (held.activation.clone(), recorded);
        }
        self.misses += 1;
        let activation = activate(entry, request);
        let recorded = self.record(activation.clone(), now_ms);
        (activation, recorded)
    }

    /// Records an activation that was made elsewhere, without counting it as a hit or a miss.
    pub fn record(&mut self, activation: Activation, now_ms: u64) -> Recorded {
        let mut new = Held {
            activation: Activation { diagnostics: Vec::new(), ..activation },
            activated_ms: now_ms,
            used_ms: now_ms,
        };
        let at = self.held.iter().position(|held| held.activation.id == new.activation.id);
        let Some(at) = at else {
            self.held.push(new);
            return Recorded { outcome: Outcome::Activated, evicted: self.evict() };
        };
        let old = self.held.remove(at);
        let outcome = outcome(&old, &new, self.is_expired(&old, now_ms));
        if matches!(outcome, Outcome::AlreadyActive | Outcome::Extended) {
            new = merge(old, new);
        }
        self.held.push(new);
        Recorded { outcome, evicted: Vec::new() }
    }

    /// Returns the activation of a skill if it has not expired. Counts neither a hit nor a miss.
    pub fn get(&self, id: &str, now_ms: u64) -> Option<&Held> {
        let held = self.held.iter().find(|held| held.activation.id == id)?;
        (!self.is_expired(held, now_ms)).then_some(held)
    }

    /// All activations, least recently used first. Expired ones are included, because the conversation may
    /// still rely on them.
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// Removes one skill. Returns true if it was present.
    pub fn clear(&mut self, id: &str) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.activation.id != id);
        self.held.len() < before
    }

    /// Removes all skills. The counters stay.
    pub fn clear_all(&mut self) {
        self.held.clear();
    }

    /// The number of requests for a skill that was present.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// The number of requests for a skill that had to be activated.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Returns the skills to restore after compaction: the most recently used first, each cut to its start.
    pub fn reattach(&self, budget: &ReattachBudget) -> Reattached {
        let each = Room::new(None, Some(budget.tokens_each));
        let mut total = Room::new(None, Some(budget.tokens_total));
        let mut out = Reattached::default();
        for held in self.held.iter().rev() {
            let activation = &held.activation;
            let file = &activation.origin.file;
            let body = activation.body.clone();
            let chars = activation.cut.map_or_else(|| body.chars().count(), |cut| cut.total_chars);
            let (body, cut) = fit_of(body, chars, each.and(total), file);
            if !total.holds(&body) || cut.is_some_and(|cut| cut.kept_chars == 0) {
                out.left_out.push(activation.id.clone());
                continue;
            }
            total = total.minus(&body);
            let cut = cut.or(activation.cut);
            out.activations.push(Activation { body, cut, ..activation.clone() });
        }
        out
    }

    fn fresh(&self, entry: &Entry, request: &Request<'_>, now_ms: u64) -> Option<usize> {
        let room = request.budget.body().and(request.budget.total()).limit();
        let satisfies = |held: &Held| {
            let found = &held.activation;
            found.id == entry.id
                && !self.is_expired(held, now_ms)
                && found.trust == entry.trust
                && found.arguments == request.arguments
                && found.digest == entry.skill.digest()
                && (found.resources.is_some() || request.listing == Listing::Skipped)
                && (found.references.is_some() || request.references == References::OnDemand)
                && found.cut.is_none_or(|cut| cut.limit >= room)
        };
        self.held.iter().position(satisfies)
    }

    fn touch(&mut self, at: usize, now_ms: u64) -> &Held {
        let mut held = self.held.remove(at);
        held.used_ms = now_ms;
        self.held.push(held);
        &self.held[self.held.len() - 1]
    }

    /// Saturates, so that a clock that was set back does not expire anything.
    fn is_expired(&self, held: &Held, now_ms: u64) -> bool {
        now_ms.saturating_sub(held.activated_ms) > self.ttl_ms
    }

    fn evict(&mut self) -> Vec<String> {
        let over = self.held.len().saturating_sub(self.skills_max);
        self.held.drain(..over).map(|held| held.activation.id).collect()
    }
}

fn outcome(old: &Held, new: &Held, expired: bool) -> Outcome {
    let (old, new) = (&old.activation, &new.activation);
    if old.digest != new.digest || old.arguments != new.arguments || old.trust != new.trust {
        return Outcome::Changed { previous: old.digest };
    }
    if expired {
        return Outcome::Activated;
    }
    let lists_more = old.resources.is_none() && new.resources.is_some();
    if lists_more || kept(new) > kept(old) {
        return Outcome::Extended;
    }
    Outcome::AlreadyActive
}

/// Orders activations by how much of the body they hold: first by references, then by the length of the cut.
fn kept(activation: &Activation) -> (bool, usize) {
    (activation.references.is_some(), activation.cut.map_or(usize::MAX, |cut| cut.kept_chars))
}

/// Merges two activations of the same file into the fuller one, so that a smaller request never loses
/// anything.
fn merge(old: Held, new: Held) -> Held {
    let (activated_ms, used_ms) = (old.activated_ms, new.used_ms);
    let resources = new.activation.resources.clone().or_else(|| old.activation.resources.clone());
    let fuller = if kept(&new.activation) > kept(&old.activation) { new } else { old };
    Held { activation: Activation { resources, ..fuller.activation }, activated_ms, used_ms }
}

#[cfg(test)]
#[path = "ledger/ledger_tests.rs"]
mod tests;
