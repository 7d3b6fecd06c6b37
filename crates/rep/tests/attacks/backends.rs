//! External agent CLIs after `rep` is gone.

use crate::Guarantee;

pub(crate) fn guarantees() -> Vec<Guarantee> {
    Vec::new()
}
