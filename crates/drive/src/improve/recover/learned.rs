//! Applies what helped before, if it is trusted far enough.

use repertoire_journal::Fix;

use super::Found;
use crate::improve::memory::{Advice, FixState};

/// The most trusted fix of this very failure.
pub(super) fn choose(found: &Found, advice: &Advice) -> Option<Fix> {
    let fits = |offer: &&crate::improve::memory::Offer| {
        offer.signature == found.signature
            && offer.state == FixState::Automatic
            && offer.similarity.is_none()
    };
    advice.offers.iter().find(fits).map(|offer| offer.fix.fix.clone())
}
