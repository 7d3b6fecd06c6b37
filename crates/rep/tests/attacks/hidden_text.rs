//! Text that hides.

use crate::Guarantee;

pub(crate) fn guarantees() -> Vec<Guarantee> {
    Vec::new()
}
