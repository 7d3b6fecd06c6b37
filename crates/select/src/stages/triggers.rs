//! All stages that work by what skills declare: hints, events, paths, phrases, patterns, and what speaks
//! against them.

use crate::document::Document;
use crate::evidence::Evidence;
use crate::selection::Unresolved;
use crate::settings::Stages;
use crate::task::Task;

/// The declarations of a catalog, compiled.
#[derive(Debug)]
pub(crate) struct Triggers {}

/// What declarations say about a task.
#[derive(Debug, Default)]
pub(crate) struct Fired {
    /// What speaks for skills.
    pub(crate) pro: Vec<Evidence>,
    /// What speaks against them.
    pub(crate) contra: Vec<Evidence>,
    /// Names that lead nowhere.
    pub(crate) unresolved: Vec<Unresolved>,
}

impl Triggers {
    pub(crate) fn new(_documents: &[Document<'_>]) -> Self {
        Triggers {}
    }

    pub(crate) fn find(&self, _task: &Task, _stages: Stages) -> Fired {
        Fired::default()
    }
}
