//! Gates of workflows.

use crate::Guarantee;

pub(crate) fn guarantees() -> Vec<Guarantee> {
    Vec::new()
}
