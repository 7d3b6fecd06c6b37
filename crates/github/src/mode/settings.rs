//! The settings of a mode under `metadata`, with types.

use repertoire_skill::skill::{Skill, SkillPriority};
use repertoire_text::Diagnostic;
use repertoire_text::yaml::YamlNode;

use super::{ModeExecution, ModeTracking, OpensPullRequest, RequiresBranch, TrackingComment};
use crate::codes;
use crate::limits::{COMMENT_CHARS_MAX, DELAY_MS_MAX, TASKS_MAX};

/// Reads settings and collects diagnostics.
pub(super) struct ModeSettings<'a> {
    skill: &'a Skill,
    pub(super) findings: Vec<Diagnostic>,
}

impl<'a> ModeSettings<'a> {
    pub(super) fn for_skill(skill: &'a Skill) -> ModeSettings<'a> {
        ModeSettings { skill, findings: Vec::new() }
    }

    pub(super) fn read_tracking(&mut self) -> ModeTracking {
        let comment = [
            ("new", TrackingComment::New),
            ("sticky", TrackingComment::Sticky),
            ("none", TrackingComment::None),
            ("false", TrackingComment::None),
        ];
        let limit = self.read_number("comment_limit", 100, COMMENT_CHARS_MAX as u64);
        ModeTracking {
            comment: self.read_choice("tracking_comment", &comment).unwrap_or(TrackingComment::New),
            status_label: self.read_label("status_label"),
            comment_limit: limit.map_or(2_000, |limit| limit as usize),
        }
    }

    pub(super) fn read_execution(&mut self) -> ModeExecution {
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
        ModeExecution {
            requires_branch: self
                .read_choice("requires_branch", &branch)
                .unwrap_or(RequiresBranch::WhenChanging),
            opens_pull_request: self
                .read_choice("opens_pull_request", &pull)
                .unwrap_or(OpensPullRequest::OnRequest),
            supports_retry: self.read_flag("supports_retry").unwrap_or(true),
            supports_continuous: self.read_flag("supports_continuous").unwrap_or(false),
            max_tasks: self.read_number("max_tasks", 1, TASKS_MAX as u64).map(|tasks| tasks as u32),
            delay_ms: self.read_number("delay_ms", 0, DELAY_MS_MAX),
            stop_on_first_failure: self.read_flag("stop_on_first_failure").unwrap_or(false),
            max_retries: self.skill.execution.max_retries,
        }
    }

    /// Returns the priority: a number, or one of three words.
    pub(super) fn read_priority(&mut self) -> u8 {
        let written = self.skill.frontmatter.get("priority").and_then(node_text);
        let number = written.as_deref().and_then(|text| text.parse::<u64>().ok());
        match (number, self.read_number("priority", 0, 100)) {
            (_, Some(number)) => number as u8,
            (Some(number), None) if number <= 100 => number as u8,
            (Some(number), None) => {
                self.report_invalid(
                    "priority",
                    &number.to_string(),
                    "`high`, `medium`, `low` or 0 to 100",
                );
                priority_number(SkillPriority::Medium)
            }
            (None, None) => priority_number(self.skill.execution.priority),
        }
    }

    /// Returns the name of the mode, if it is set.
    pub(super) fn name(&mut self) -> Option<String> {
        self.read_text("mode").filter(|name| !name.trim().is_empty())
    }

    fn node(&self, key: &str) -> Option<&'a YamlNode> {
        self.skill.metadata()?.as_mapping()?.get(key).filter(|node| !node.is_null())
    }

    fn read_text(&mut self, key: &str) -> Option<String> {
        let node = self.node(key)?;
        let text = node_text(node);
        if text.is_none() {
            self.report_invalid(key, node.shape_name(), "a text");
        }
        text
    }

    /// Returns a label that GitHub accepts: one line of limited length.
    fn read_label(&mut self, key: &str) -> Option<String> {
        let label = self.read_text(key)?.trim().to_owned();
        let fine = label.chars().count() <= 50 && !label.contains(char::is_control);
        match (label.is_empty() || label == "none", fine) {
            (true, _) => None,
            (false, true) => Some(label),
            (false, false) => {
                self.report_invalid(key, &label, "a label of at most 50 characters");
                None
            }
        }
    }

    fn read_flag(&mut self, key: &str) -> Option<bool> {
        self.read_choice(key, &[("true", true), ("false", false)])
    }

    fn read_number(&mut self, key: &str, least: u64, most: u64) -> Option<u64> {
        let text = self.read_text(key)?;
        let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.report_invalid(key, &text, &format!("a number from {least} to {most}"));
        }
        number
    }

    fn read_choice<T: Copy>(&mut self, key: &str, among: &[(&str, T)]) -> Option<T> {
        let text = self.read_text(key)?;
        let found = among.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        if found.is_none() {
            let words: Vec<String> = among.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.report_invalid(key, &text, &format!("one of {}", words.join(", ")));
        }
        found.map(|(_, value)| *value)
    }

    fn report_invalid(&mut self, key: &str, value: &str, expected: &str) {
        let value = repertoire_text::yaml::shorten_text(value);
        let message = format!("`{key}` of the mode is `{value}`");
        let found = Diagnostic::new(&codes::MODE_SETTING, message)
            .in_file(&self.skill.origin.file)
            .help(format!("write {expected}"));
        self.findings.push(found);
    }
}

fn node_text(node: &YamlNode) -> Option<String> {
    node.as_str().map(str::to_owned)
}

fn priority_number(priority: SkillPriority) -> u8 {
    match priority {
        SkillPriority::High => 80,
        SkillPriority::Medium => 50,
        SkillPriority::Low => 20,
    }
}
