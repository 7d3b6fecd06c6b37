//! The ledger: the activations of one conversation, so that no skill is inserted twice and none is lost by
//! compaction, resume or a crash.
//!
//! Each conversation has its own ledger. The ledger does not read the clock: the caller passes the time.

use serde::{Deserialize, Serialize};

use crate::activate::{
    Activation, ActivationRequest, ReferenceMode, ResourceListingMode, TextBudget, activate_skill,
    fit_partial_text,
};
use crate::catalog::CatalogEntry;
use crate::limits::{
    LEDGER_SKILLS_MAX, LEDGER_TTL_MS, REATTACH_TOKENS_EACH, REATTACH_TOKENS_TOTAL,
};
use crate::skill::ContentDigest;

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
    held: Vec<LedgerEntry>,
}

/// An activation with its times.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    /// The activation, without its diagnostics, which have been reported.
    pub activation: Activation,
    /// The time at which it was inserted into the conversation.
    pub activated_ms: u64,
    /// The time at which it was last requested.
    pub used_ms: u64,
}

/// The effect of recording an activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerRecordOutcome {
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
        previous: ContentDigest,
    },
}

/// The effect of recording an activation, and the skills that were evicted for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRecordResult {
    pub outcome: LedgerRecordOutcome,
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
pub struct ReattachedSkills {
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
        entry: &CatalogEntry,
        request: &ActivationRequest<'_>,
        now_ms: u64,
    ) -> (Activation, LedgerRecordResult) {
        if let Some(at) = self.find_fresh(entry, request, now_ms) {
            self.hits += 1;
            let held = self.touch_entry(at, now_ms);
            let recorded = LedgerRecordResult {
                outcome: LedgerRecordOutcome::AlreadyActive,
                evicted: Vec::new(),
            };
            return (held.activation.clone(), recorded);
        }
        self.misses += 1;
        let activation = activate_skill(entry, request);
        let recorded = self.record(activation.clone(), now_ms);
        (activation, recorded)
    }

    /// Records an activation that was made elsewhere, without counting it as a hit or a miss.
    pub fn record(&mut self, activation: Activation, now_ms: u64) -> LedgerRecordResult {
        let mut new = LedgerEntry {
            activation: Activation { diagnostics: Vec::new(), ..activation },
            activated_ms: now_ms,
            used_ms: now_ms,
        };
        let at = self.held.iter().position(|held| held.activation.id == new.activation.id);
        let Some(at) = at else {
            self.held.push(new);
            return LedgerRecordResult {
                outcome: LedgerRecordOutcome::Activated,
                evicted: self.evict_oldest(),
            };
        };
        let old = self.held.remove(at);
        let outcome = record_outcome(&old, &new, self.is_expired(&old, now_ms));
        if matches!(outcome, LedgerRecordOutcome::AlreadyActive | LedgerRecordOutcome::Extended) {
            new = merge_entries(old, new);
        }
        self.held.push(new);
        LedgerRecordResult { outcome, evicted: Vec::new() }
    }

    /// Returns the activation of a skill if it has not expired. Counts neither a hit nor a miss.
    pub fn get(&self, id: &str, now_ms: u64) -> Option<&LedgerEntry> {
        let held = self.held.iter().find(|held| held.activation.id == id)?;
        (!self.is_expired(held, now_ms)).then_some(held)
    }

    /// All activations, least recently used first. Expired ones are included, because the conversation may
    /// still rely on them.
    pub fn held(&self) -> &[LedgerEntry] {
        &self.held
    }

    /// Removes one skill. Returns true if it was present.
    pub fn remove_skill(&mut self, id: &str) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.activation.id != id);
        self.held.len() < before
    }

    /// Removes all skills. The counters stay.
    pub fn remove_all(&mut self) {
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
    pub fn reattach(&self, budget: &ReattachBudget) -> ReattachedSkills {
        let each = TextBudget::new(None, Some(budget.tokens_each));
        let mut total = TextBudget::new(None, Some(budget.tokens_total));
        let mut out = ReattachedSkills::default();
        for held in self.held.iter().rev() {
            let activation = &held.activation;
            let file = &activation.origin.file;
            let body = activation.body.clone();
            let chars = activation.cut.map_or_else(|| body.chars().count(), |cut| cut.total_chars);
            let (body, cut) = fit_partial_text(body, chars, each.tighten_by(total), file);
            if !total.can_hold(&body) || cut.is_some_and(|cut| cut.kept_chars == 0) {
                out.left_out.push(activation.id.clone());
                continue;
            }
            total = total.subtract_text(&body);
            let cut = cut.or(activation.cut);
            out.activations.push(Activation { body, cut, ..activation.clone() });
        }
        out
    }

    fn find_fresh(
        &self,
        entry: &CatalogEntry,
        request: &ActivationRequest<'_>,
        now_ms: u64,
    ) -> Option<usize> {
        let room = request.budget.body_room().tighten_by(request.budget.total_room()).char_limit();
        let satisfies = |held: &LedgerEntry| {
            let found = &held.activation;
            found.id == entry.id
                && !self.is_expired(held, now_ms)
                && found.trust == entry.trust
                && found.arguments == request.arguments
                && found.digest == entry.skill.digest()
                && (found.resources.is_some() || request.listing == ResourceListingMode::Skipped)
                && (found.references.is_some() || request.references == ReferenceMode::OnDemand)
                && found.cut.is_none_or(|cut| cut.limit >= room)
        };
        self.held.iter().position(satisfies)
    }

    fn touch_entry(&mut self, at: usize, now_ms: u64) -> &LedgerEntry {
        let mut held = self.held.remove(at);
        held.used_ms = now_ms;
        self.held.push(held);
        &self.held[self.held.len() - 1]
    }

    /// Saturates, so that a clock that was set back does not expire anything.
    fn is_expired(&self, held: &LedgerEntry, now_ms: u64) -> bool {
        now_ms.saturating_sub(held.activated_ms) > self.ttl_ms
    }

    fn evict_oldest(&mut self) -> Vec<String> {
        let over = self.held.len().saturating_sub(self.skills_max);
        self.held.drain(..over).map(|held| held.activation.id).collect()
    }
}

fn record_outcome(old: &LedgerEntry, new: &LedgerEntry, expired: bool) -> LedgerRecordOutcome {
    let (old, new) = (&old.activation, &new.activation);
    if old.digest != new.digest || old.arguments != new.arguments || old.trust != new.trust {
        return LedgerRecordOutcome::Changed { previous: old.digest };
    }
    if expired {
        return LedgerRecordOutcome::Activated;
    }
    let lists_more = old.resources.is_none() && new.resources.is_some();
    if lists_more || kept_amount(new) > kept_amount(old) {
        return LedgerRecordOutcome::Extended;
    }
    LedgerRecordOutcome::AlreadyActive
}

/// Orders activations by how much of the body they hold: first by references, then by the length of the cut.
fn kept_amount(activation: &Activation) -> (bool, usize) {
    (activation.references.is_some(), activation.cut.map_or(usize::MAX, |cut| cut.kept_chars))
}

/// Merges two activations of the same file into the fuller one, so that a smaller request never loses
/// anything.
fn merge_entries(old: LedgerEntry, new: LedgerEntry) -> LedgerEntry {
    let (activated_ms, used_ms) = (old.activated_ms, new.used_ms);
    let resources = new.activation.resources.clone().or_else(|| old.activation.resources.clone());
    let fuller =
        if kept_amount(&new.activation) > kept_amount(&old.activation) { new } else { old };
    LedgerEntry { activation: Activation { resources, ..fuller.activation }, activated_ms, used_ms }
}

#[cfg(test)]
#[path = "ledger/ledger_tests.rs"]
mod tests;
