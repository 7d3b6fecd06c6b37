//! The file tools, and files that `rep` itself writes.

use crate::Guarantee;

pub(crate) fn guarantees() -> Vec<Guarantee> {
    Vec::new()
}
