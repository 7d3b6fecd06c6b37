//! The prompt of a run as a task.

use super::{PRIORITY_DEFAULT, QueuedTask, TaskSource, content_id, truncate_text};
use crate::limits::{TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX};

/// Converts a prompt to a task, with its first line as the title; `None` if it is empty.
pub fn task(prompt: &str) -> Option<QueuedTask> {
    let prompt = prompt.trim();
    let (title, body) = prompt.split_once('\n').unwrap_or((prompt, ""));
    (!prompt.is_empty()).then(|| QueuedTask {
        id: content_id(TaskSource::Prompt, prompt),
        source: TaskSource::Prompt,
        title: truncate_text(title.trim(), TASK_TITLE_CHARS_MAX),
        body: truncate_text(body.trim(), TASK_BODY_CHARS_MAX),
        priority: PRIORITY_DEFAULT,
        labels: Vec::new(),
        created: None,
        position: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_title() {
        let task = task("\n Fix search \n\nIt finds nothing.\n").unwrap();
        assert_eq!((task.title.as_str(), task.body.as_str()), ("Fix search", "It finds nothing."));
        assert_eq!(super::task(" \n"), None);
    }

    #[test]
    fn the_same_prompt_has_the_same_name() {
        assert_eq!(task("a  b").unwrap().id, task("a b\n").unwrap().id);
        assert_ne!(task("a b").unwrap().id, task("a c").unwrap().id);
    }
}
