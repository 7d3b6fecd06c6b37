//! Applies what helped before, if it is trusted far enough.

use repertoire_journal::Fix;

use super::Found;
use crate::memory::{Advice, FixState, Offer, refuse_automatic};

/// The most trusted fix of this very failure that is trusted so far. What may never be applied without asking is not, however
/// far it is trusted.
pub(super) fn choose(found: &Found, advice: &Advice, state: FixState) -> Option<Fix> {
    let fits = |offer: &&Offer| {
        offer.signature == found.signature
            && offer.state == state
            && offer.similarity.is_none()
            && refuse_automatic(&offer.fix.fix).is_none()
    };
    advice.offers.iter().find(fits).map(|offer| offer.fix.fix.clone())
}
