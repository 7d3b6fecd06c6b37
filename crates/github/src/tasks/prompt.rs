//! The prompt of a run as a task.

use super::{PRIORITY_DEFAULT, Source, Task, bounded, id_of};
use crate::limits::{TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX};

/// Converts a prompt to a task, with its first line as the title; `None` if it is empty.
pub fn task(prompt: &str) -> Option<Task> {
    let prompt = prompt.trim();
    let (title, body) = prompt.split_once('\n').unwrap_or((prompt, ""));
    (!prompt.is_empty()).then(|| Task {
        id: id_of(Source::Prompt, prompt),
        source: Source::Prompt,
        title: bounded(title.trim(), TASK_TITLE_CHARS_MAX),
        body: bounded(body.trim(), TASK_BODY_CHARS_MAX),
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
