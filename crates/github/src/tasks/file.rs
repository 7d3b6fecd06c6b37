//! Tasks in a Markdown file: unticked checkboxes.
//!
//! The format is `- [ ] [P2] Say what is wrong #docs`, with indented lines that belong to it. Code
//! blocks and comments are ignored. Ticking changes one character and keeps every other byte.

use std::ops::Range;

use super::{PRIORITY_DEFAULT, QueuedTask, TaskSource, content_id, parse_priority, truncate_text};
use crate::limits::{TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX, TASKS_MAX};

/// Returns the open tasks of a file.
pub fn open_tasks(text: &str) -> Vec<QueuedTask> {
    find_checkboxes(text)
        .into_iter()
        .filter(|found| !found.ticked)
        .take(TASKS_MAX)
        .map(TaskCheckbox::into_task)
        .collect()
}

/// Returns the file with a task ticked; `None` if it has no such open task. Duplicates are one
/// task, and are ticked together.
pub fn tick_task(text: &str, id: &str) -> Option<String> {
    let boxes = find_checkboxes(text);
    let meant: Vec<_> = boxes.iter().filter(|found| !found.ticked && found.id == id).collect();
    if meant.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for found in meant {
        out.push_str(&text[from..found.mark.start]);
        out.push('x');
        from = found.mark.end;
    }
    out.push_str(&text[from..]);
    Some(out)
}

/// A checkbox.
struct TaskCheckbox {
    id: String,
    ticked: bool,
    /// The character between the brackets.
    mark: Range<usize>,
    position: u64,
    priority: u8,
    title: String,
    body: String,
    labels: Vec<String>,
}

impl TaskCheckbox {
    fn into_task(self) -> QueuedTask {
        QueuedTask {
            id: self.id,
            source: TaskSource::File,
            title: truncate_text(&self.title, TASK_TITLE_CHARS_MAX),
            body: truncate_text(&self.body, TASK_BODY_CHARS_MAX),
            priority: self.priority,
            labels: self.labels,
            created: None,
            position: self.position,
        }
    }
}

fn find_checkboxes(text: &str) -> Vec<TaskCheckbox> {
    let lines = visible_lines(text);
    let mut out: Vec<TaskCheckbox> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(head) = parse_checkbox(line) else { continue };
        let mut body = Vec::new();
        for below in &lines[at + 1..] {
            let blank = below.text.trim().is_empty();
            if !blank
                && (below.shown && parse_checkbox(below).is_some() || below.indent() <= head.indent)
            {
                break;
            }
            body.push(below.text);
        }
        let (priority, title) = priority_and_title(head.rest);
        let body = dedent_lines(&body);
        let position = out.len() as u64 + 1;
        out.push(TaskCheckbox {
            id: content_id(TaskSource::File, &format!("{title}\n{body}")),
            ticked: head.ticked,
            mark: head.mark,
            position,
            priority,
            labels: find_labels(&title),
            title: without_labels(&title).to_owned(),
            body,
        });
    }
    out.retain(|found| !found.title.is_empty());
    out
}

/// A line; `shown` is false in code blocks and comments.
struct TaskFileLine<'a> {
    start: usize,
    text: &'a str,
    shown: bool,
}

impl TaskFileLine<'_> {
    fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start_matches([' ', '\t']).len()
    }
}

fn visible_lines(text: &str) -> Vec<TaskFileLine<'_>> {
    let (mut out, mut start) = (Vec::new(), 0);
    let (mut fence, mut comment): (Option<String>, bool) = (None, false);
    for piece in text.split_inclusive('\n') {
        let line = piece.trim_end_matches(['\n', '\r']);
        let body = line.trim_start_matches('\u{feff}').trim();
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run: String = body.chars().take_while(|c| Some(*c) == mark).collect();
        let mut shown = false;
        match &fence {
            Some(open) if run == body && run.starts_with(open.as_str()) => fence = None,
            Some(_) => {}
            None if comment => comment = !body.contains("-->"),
            None if run.len() >= 3 => fence = Some(run),
            None => {
                shown = true;
                let opened = body.rfind("<!--");
                comment = opened.is_some_and(|at| !body[at..].contains("-->"));
            }
        }
        out.push(TaskFileLine { start, text: line, shown });
        start += piece.len();
    }
    out
}

struct CheckboxHead<'a> {
    indent: usize,
    ticked: bool,
    mark: Range<usize>,
    rest: &'a str,
}

/// Parses `- [ ] text`.
fn parse_checkbox<'a>(line: &TaskFileLine<'a>) -> Option<CheckboxHead<'a>> {
    if !line.shown {
        return None;
    }
    let indent = line.indent();
    let body = &line.text[indent..];
    let after = body.strip_prefix(['-', '*'])?;
    let inner = after.trim_start_matches([' ', '\t']);
    let blanks = after.len() - inner.len();
    let rest = inner.strip_prefix('[').filter(|_| blanks > 0)?;
    let ticked = match rest.as_bytes().first()? {
        b' ' => false,
        b'x' | b'X' => true,
        _ => return None,
    };
    let rest = rest[1..].strip_prefix(']')?;
    let fits = rest.is_empty() || rest.starts_with([' ', '\t']);
    let at = line.start + indent + 1 + blanks + 1;
    fits.then(|| CheckboxHead { indent, ticked, mark: at..at + 1, rest: rest.trim() })
}

fn priority_and_title(rest: &str) -> (u8, String) {
    let found = rest.strip_prefix("[P").or_else(|| rest.strip_prefix("[p"));
    let found = found.and_then(|rest| rest.split_once(']'));
    let found = found.and_then(|(digits, rest)| Some((parse_priority(digits)?, rest)));
    match found {
        Some((priority, rest)) => (priority, repertoire_text::layout::one_line(rest)),
        None => (PRIORITY_DEFAULT, repertoire_text::layout::one_line(rest)),
    }
}

/// Returns the labels in a title: `#docs`, but not `#12`, which is an issue, and nothing within
/// code.
fn find_labels(title: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (at, part) in title.split('`').enumerate() {
        for tag in part.split_whitespace().filter(|_| at % 2 == 0).filter_map(parse_label) {
            if !out.iter().any(|there| there == tag) {
                out.push(tag.to_owned());
            }
        }
    }
    out
}

/// Returns the label that a word stands for, if it is one.
fn parse_label(word: &str) -> Option<&str> {
    let tag = word.strip_prefix('#')?;
    let tag = tag.trim_end_matches([',', '.', ';', ':', '!', '?', ')']);
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | ':');
    let starts = tag.chars().next().is_some_and(char::is_alphabetic);
    (starts && tag.chars().all(fine)).then_some(tag)
}

/// Removes the labels at the end of a title. Labels within the sentence stay, and so does a title
/// that consists only of labels.
fn without_labels(title: &str) -> &str {
    let mut rest = title;
    while let Some((before, last)) = rest.rsplit_once(' ') {
        let in_code = before.matches('`').count() % 2 == 1;
        if in_code || parse_label(last).is_none() {
            break;
        }
        rest = before;
    }
    rest
}

fn dedent_lines(lines: &[&str]) -> String {
    let blanks = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(&blanks).min();
    let cut =
        |line: &&str| line.get(common.unwrap_or(0)..).unwrap_or_default().trim_end().to_owned();
    lines.iter().map(cut).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = "# Tasks\n\n- [ ] [P2] Fix search #search #12\n  It finds nothing.\n\n  ```\n  - [ ] not this\n  ```\n\
        - [x] Done already\n* [ ] Write docs `#code` #docs.\n  - [ ] A part\n- [ ] [P11] Odd priority\n- [-] Given up\n\
        <!--\n- [ ] Hidden\n-->\n- [ ]Not a box\n-[ ] Nor this\n";

    #[test]
    fn boxes_are_read_with_priority_labels_and_what_belongs_to_them() {
        let found = open_tasks(LIST);
        let shown: Vec<_> = found
            .iter()
            .map(|task| (task.priority, task.title.as_str(), task.labels.join(",")))
            .collect();
        assert_eq!(
            shown,
            [
                (2, "Fix search #search #12", "search".to_owned()),
                (5, "Write docs `#code`", "docs".to_owned()),
                (5, "A part", String::new()),
                (5, "[P11] Odd priority", String::new()),
            ]
        );
        assert_eq!(found[0].body, "It finds nothing.\n\n```\n- [ ] not this\n```");
        assert!(found.iter().all(|task| task.id.starts_with("file-") && task.id.len() == 13));
    }

    #[test]
    fn labels_at_the_end_are_not_part_of_the_title() {
        for (title, plain) in [
            ("Fix search #bug #ui", "Fix search"),
            ("Fix #search results", "Fix #search results"),
            ("Fix what #12 says #bug, #12", "Fix what #12 says #bug, #12"),
            ("Say `a #b` and #c!", "Say `a #b` and"),
            ("Keep `x #y", "Keep `x #y"),
            ("#bug", "#bug"),
            ("#bug #ui", "#bug"),
        ] {
            assert_eq!(open_tasks(&format!("- [ ] {title}\n"))[0].title, plain);
        }
    }

    #[test]
    fn a_name_stays_when_the_list_is_edited() {
        let id = |text: &str, title: &str| {
            open_tasks(text).into_iter().find(|task| task.title == title).map(|task| task.id)
        };
        let before = id(LIST, "Write docs `#code`").unwrap();
        let moved = format!("- [ ] New one\n\n{}", LIST.replace("* [ ] Write", "- [ ] [P1] Write"));
        assert_eq!(id(&moved, "Write docs `#code`"), Some(before.clone()));
        let edited = LIST.replace("Write docs", "Write all docs");
        assert_ne!(id(&edited, "Write all docs `#code`"), Some(before));
    }

    #[test]
    fn ticking_changes_one_character() {
        let text = LIST.replace('\n', "\r\n");
        let id = &open_tasks(&text)[1].id;
        let ticked = tick_task(&text, id).unwrap();
        assert_eq!(ticked, text.replace("* [ ] Write", "* [x] Write"));
        assert_eq!(tick_task(&ticked, id), None, "it is done");
        assert_eq!(tick_task(&text, "file-00000000"), None);
    }

    #[test]
    fn twins_are_ticked_together() {
        let text = "- [ ] Same\n- [ ] Other\n- [ ]   Same\n";
        let id = &open_tasks(text)[0].id;
        assert_eq!(tick_task(text, id).unwrap(), "- [x] Same\n- [ ] Other\n- [x]   Same\n");
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_ticking_keeps_its_length(text in "(?s)([-*] \\[[ x]\\] [a-c#P`<!>\u{e4}\n -]{0,12}\r?\n?){0,8}") {
            for task in open_tasks(&text) {
                let ticked = tick_task(&text, &task.id).unwrap();
                prop_assert_eq!(ticked.len(), text.len());
                prop_assert!(open_tasks(&ticked).iter().all(|left| left.id != task.id));
                prop_assert!(open_tasks(&ticked).len() < open_tasks(&text).len());
            }
        }
    }
}
