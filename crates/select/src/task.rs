//! The task for which skills are selected.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

/// A task. Everything but the text is optional.
///
/// ```
/// use repertoire_select::Task;
///
/// let task = Task { paths: vec!["src/main.rs".into()], ..Task::new("Review @security this change") };
/// assert!(task.hints.is_empty(), "hints in the text are found by the hints stage");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// The request of the user, the plan or the event.
    pub text: String,
    /// Skills that the caller asks for by name.
    pub hints: Vec<String>,
    /// Paths that the task touches, relative to the project.
    pub paths: Vec<Utf8PathBuf>,
    /// The event that started the task.
    pub event: Option<String>,
    /// The agent that runs the task.
    pub agent: Option<String>,
    /// Earlier messages, oldest first.
    pub conversation: Vec<String>,
    /// The number of earlier uses of each skill.
    pub usage: BTreeMap<String, u32>,
}

impl Task {
    /// Creates a task from a text alone.
    pub fn new(text: impl Into<String>) -> Self {
        Task { text: text.into(), ..Task::default() }
    }
}
