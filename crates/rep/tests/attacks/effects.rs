//! Limits on what an agent may do, on every backend.

use crate::Guarantee;

pub(crate) fn guarantees() -> Vec<Guarantee> {
    Vec::new()
}
