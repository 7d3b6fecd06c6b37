//! The settings of a mode under `metadata`, with types.

use repertoire_skill::skill::{Priority, Skill};
use repertoire_text::Diagnostic;
use repertoire_text::yaml::Node;

use super::{Execution, OpensPullRequest, RequiresBranch, Tracking, TrackingComment};
use crate::codes;
use crate::limits::{COMMENT_CHARS_MAX, DELAY_MS_MAX, TASKS_MAX};

/// Reads settings and collects diagnostics.
pub(super) struct Settings<'a> {
    skill: &'a Skill,
    pub(super) findings: Vec<Diagnostic>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(skill: &'a Skill) -> Settings<'a> {
        Settings { skill, findings: Vec::new() }
    }

    pub(super) fn tracking(&mut self) -> Tracking {
        let comment = [
            ("new", TrackingComment::New),
            ("sticky", TrackingComment::Sticky),
            ("none", TrackingComment::None),
            ("false", TrackingComment::None),
        ];
        let limit = self.number("comment_limit", 100, COMMENT_CHARS_MAX as u64);
        Tracking {
            comment: self.choice("tracking_comment", &comment).unwrap_or(TrackingComment::New),
            status_label: self.label("status_label"),
            comment_limit: limit.map_or(2_000, |limit| limit as usize),
        }
    }

    pub(super) fn execution(&mut self) -> Execution {
        let branch = [
            ("true", RequiresBranch::Always),
            ("when-changing", RequiresBranch::WhenChanging),
            ("false", RequiresBranch::Never),
        ];
        let pull = [
            ("on-request", OpensPullRequest::OnRequest),
            ("per-task", OpensPullRequest::PerTask),
            ("never", OpensPullRequest::Never),
            ("false", OpensPullRequest::Never),
        ];
        Execution {
            requires_branch: self
                .choice("requires_branch", &branch)
                .unwrap_or(RequiresBranch::WhenChanging),
            opens_pull_request: self
                .choice("opens_pull_request", &pull)
                .unwrap_or(OpensPullRequest::OnRequest),
            supports_retry: self.flag("supports_retry").unwrap_or(true),
            supports_continuous: self.flag("supports_continuous").unwrap_or(false),
            max_tasks: self.number("max_tasks", 1, TASKS_MAX as u64).map(|tasks| tasks as u32),
            delay_ms: self.number("delay_ms", 0, DELAY_MS_MAX),
            stop_on_first_failure: self.flag("stop_on_first_failure").unwrap_or(false),
            max_retries: self.skill.execution.max_retries,
        }
    }

    /// Returns the priority: a number, or one of three words.
    pub(super) fn priority(&mut self) -> u8 {
        let written = self.skill.frontmatter.get("priority").and_then(text_of);
        let number = written.as_deref().and_then(|text| text.parse::<u64>().ok());
        match (number, self.number("priority", 0, 100)) {
            (_, Some(number)) => number as u8,
            (Some(number), None) if number <= 100 => number as u8,
            (Some(number), None) => {
                self.wrong("priority", &number.to_string(), "`high`, `medium`, `low` or 0 to 100");
                word(Priority::Medium)
            }
            (None, None) => word(self.skill.execution.priority),
        }
    }

    /// Returns the name of the mode, if it is set.
    pub(super) fn name(&mut self) -> Option<String> {
        self.text("mode").filter(|name| !name.trim().is_empty())
    }

    fn node(&self, key: &str) -> Option<&'a Node> {
        self.skill.metadata()?.as_mapping()?.get(key).filter(|node| !node.is_null())
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let node = self.node(key)?;
        let text = text_of(node);
        if text.is_none() {
            self.wrong(key, node.shape(), "a text");
        }
        text
    }

    /// Returns a label that GitHub accepts: one line of limited length.
    fn label(&mut self, key: &str) -> Option<String> {
        let label = self.text(key)?.trim().to_owned();
        let fine = label.chars().count() <= 50 && !label.contains(char::is_control);
        match (label.is_empty() || label == "none", fine) {
            (true, _) => None,
            (false, true) => Some(label),
            (false, false) => {
                self.wrong(key, &label, "a label of at most 50 characters");
                None
            }
        }
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        self.choice(key, &[("true", true), ("false", false)])
    }

    fn number(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let text = self.text(key)?;
        let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(key, &text, &format!("a number from {least} to {most}"));
        }
        number
    }

    fn choice<T: Copy>(&mut self, key: &str, among: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = among.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        if found.is_none() {
            let words: Vec<String> = among.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.wrong(key, &text, &format!("one of {}", words.join(", ")));
        }
        found.map(|(_, value)| *value)
    }

    fn wrong(&mut self, key: &str, value: &str, expected: &str) {
        let value = repertoire_text::yaml::shorten(value);
        let message = format!("`{key}` of the mode is `{value}`");
        let found = Diagnostic::new(&codes::MODE_SETTING, message)
            .in_file(&self.skill.origin.file)
            .help(format!("write {expected}"));
        self.findings.push(found);
    }
}

fn text_of(node: &Node) -> Option<String> {
    node.as_str().map(str::to_owned)
}

fn word(priority: Priority) -> u8 {
    match priority {
        Priority::High => 80,
        Priority::Medium => 50,
        Priority::Low => 20,
    }
}
