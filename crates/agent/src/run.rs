//! What a run carries from turn to turn, and what tools see of it.

use crate::event::Events;
use crate::workplace::Workplace;
use tokio_util::sync::CancellationToken;

/// A run in progress, as tools see it.
#[derive(Debug)]
pub struct Run {
    /// Where it works.
    pub workplace: Workplace,
    /// Whom it tells what happens.
    pub events: Events,
    /// Ends it.
    pub cancel: CancellationToken,
    /// What tools keep from call to call.
    pub state: crate::tools::State,
}
