//! The strategy that applies fixes from memory, if they are trusted enough.

use repertoire_journal::Fix;

use super::Found;
use crate::memory::{Advice, FixState, refuse_automatic};

/// The most trusted fix of exactly this failure in the given state. Never returns a fix that must
/// not be applied automatically.
pub(super) fn choose(found: &Found, advice: &Advice, state: FixState) -> Option<Fix> {
    let offer = advice.offers.iter().find(|offer| {
        offer.signature == found.signature
            && offer.state == state
            && offer.similarity.is_none()
            && refuse_automatic(&offer.fix.fix).is_none()
    });
    offer.map(|offer| offer.fix.fix.clone())
}
