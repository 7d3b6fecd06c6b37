//! The strategy that applies fixes from memory, if they are trusted enough.

use repertoire_journal::FailureFix;

use super::CheckFailure;
use crate::memory::{FixAdvice, FixState, refuse_automatic};

/// The most trusted fix of exactly this failure in the given state. Never returns a fix that must
/// not be applied automatically.
pub(super) fn choose_learned_fix(
    found: &CheckFailure,
    advice: &FixAdvice,
    state: FixState,
) -> Option<FailureFix> {
    let offer = advice.offers.iter().find(|offer| {
        offer.signature == found.signature
            && offer.state == state
            && offer.similarity.is_none()
            && refuse_automatic(&offer.fix.fix).is_none()
    });
    offer.map(|offer| offer.fix.fix.clone())
}
