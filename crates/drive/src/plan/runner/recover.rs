//! Mends what checks found without asking an agent.

use repertoire_journal::event::TaskRef;

use super::{DriveError, Session};
use crate::plan::state::After;

impl Session<'_> {
    pub(super) async fn recover(
        &mut self,
        _task: Option<TaskRef>,
        _after: After,
    ) -> Result<(), DriveError> {
        Err(DriveError::Stopped("not yet".into()))
    }
}
