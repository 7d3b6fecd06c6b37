//! What is to be done, as far as it matters for choosing skills.

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
    /// What the user, the plan or the event says.
    pub text: String,
    /// Skills that were asked for by name.
    pub hints: Vec<String>,
    /// Paths that the task touches, relative to the project.
    pub paths: Vec<Utf8PathBuf>,
    /// The event that started it.
    pub event: Option<String>,
    /// The agent that will do the work.
    pub agent: Option<String>,
    /// What was said before, oldest first.
    pub conversation: Vec<String>,
    /// How often each skill was used before.
    pub usage: BTreeMap<String, u32>,
}

impl Task {
    /// A task that is nothing but a text.
    pub fn new(text: impl Into<String>) -> Self {
        Task { text: text.into(), ..Task::default() }
    }
}
