//! Derives task ids from their content. Ticking or moving a task, or adding others, does not change its id.

use std::collections::BTreeMap;

use repertoire_skill::skill::ContentDigest;

use super::TaskId;

/// The number of hexadecimal digits of the digest in an id.
const DIGITS: usize = 8;

/// The ids of tasks with these labels and texts: the label if it is unique, else a digest of the text. Tasks with
/// equal texts are numbered in file order.
pub(super) fn assign_ids<'a>(
    tasks: impl Iterator<Item = (Option<&'a str>, &'a str)> + Clone,
) -> Vec<TaskId> {
    let mut labels: BTreeMap<String, usize> = BTreeMap::new();
    for (label, _) in tasks.clone() {
        if let Some(label) = label {
            *labels.entry(label_id(label)).or_default() += 1;
        }
    }
    let mut twins: BTreeMap<String, usize> = BTreeMap::new();
    let mut id = |label: Option<&str>, text: &str| {
        let label = label.map(label_id).filter(|label| labels.get(label) == Some(&1));
        if let Some(label) = label {
            return TaskId(label);
        }
        let digest = text_digest(text);
        let count = twins.entry(digest.clone()).or_default();
        *count += 1;
        TaskId(if *count == 1 { digest } else { format!("{digest}-{count}") })
    };
    tasks.map(|(label, text)| id(label, text)).collect()
}

/// Turns a label into a single word: `Task 3` becomes `task-3`.
fn label_id(label: &str) -> String {
    if label.contains(char::is_whitespace) {
        label.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase()
    } else {
        label.to_owned()
    }
}

fn text_digest(text: &str) -> String {
    let digest = ContentDigest::hash_bytes(text.as_bytes()).to_string();
    let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
    hex[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_a_task_if_it_is_the_only_one() {
        let tasks =
            [(Some("T001"), "a"), (Some("1.1"), "b"), (Some("1.1"), "c"), (Some("Task 3"), "d")];
        let found: Vec<String> =
            assign_ids(tasks.into_iter()).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["T001", "3e23e816", "2e7d2c03", "task-3"]);
    }

    #[test]
    fn twins_are_counted_in_file_order() {
        let tasks = [(None, "a"), (None, "b"), (None, "a"), (None, "a")];
        let found: Vec<String> =
            assign_ids(tasks.into_iter()).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["ca978112", "3e23e816", "ca978112-2", "ca978112-3"]);
    }
}
