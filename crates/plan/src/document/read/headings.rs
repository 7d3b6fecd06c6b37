//! Reads headings and metadata lines.

use repertoire_text::source::Span;

use super::PlanReader;
use crate::document::inline::{PlanParagraph, is_skill_name, parse_heading_text};
use crate::document::metadata::{MetadataLine, parse_metadata_line};
use crate::document::{BlockerTarget, PlanSection, TaskBlocker};
use crate::limits::{PLAN_BLOCKERS_MAX, PLAN_HINTS_MAX, PLAN_SECTIONS_MAX};

impl PlanReader<'_> {
    /// Reads a line that may hold metadata of its task or section.
    pub(super) fn read_metadata(&mut self, at: usize, content: usize) {
        let line = self.lines[at];
        let body = &line.text[content..];
        let Some(key) = parse_metadata_line(body) else { return };
        let from = line.start + content;
        let span = |range: &std::ops::Range<usize>| Span::new(from + range.start, from + range.end);
        let owner = self.items.last().and_then(|item| item.owner);
        let section = self.sections.len().checked_sub(1);
        match key {
            MetadataLine::Blocked(refs) => {
                self.blockers += refs.len();
                if self.blockers > PLAN_BLOCKERS_MAX {
                    let why = format!("the plan has more than {PLAN_BLOCKERS_MAX} blockers");
                    return self.exceed_limit(why, Span::new(from, line.end_offset()));
                }
                let blockers = refs.into_iter().map(|(text, range)| TaskBlocker {
                    text,
                    on: BlockerTarget::Nothing,
                    at: span(&range),
                });
                match (owner, section) {
                    (Some(task), _) => self.tasks[task].blocked_by.extend(blockers),
                    (None, Some(section)) => self.sections[section].blocked_by.extend(blockers),
                    (None, None) => {}
                }
            }
            MetadataLine::Skills(names) => {
                let names = names.into_iter().filter(|(name, _)| is_skill_name(name));
                let names = names.take(PLAN_HINTS_MAX).map(|(name, range)| (name, span(&range)));
                match (owner, section) {
                    (Some(task), _) => {
                        let skills = &mut self.tasks[task].skills;
                        skills.extend(names);
                        skills.truncate(PLAN_HINTS_MAX);
                    }
                    (None, Some(section)) => {
                        let section = &mut self.sections[section];
                        section.at.extend(names);
                        section.at.truncate(PLAN_HINTS_MAX);
                        section.hints = section.at.iter().map(|(name, _)| name.clone()).collect();
                    }
                    (None, None) => {}
                }
            }
            MetadataLine::Priority(priority) => match (owner, section) {
                (Some(task), _) => self.tasks[task].priority = Some(priority),
                (None, Some(section)) => self.sections[section].priority = Some(priority),
                (None, None) => {}
            },
            MetadataLine::Spec(range) => {
                if let Some(task) = owner
                    && self.tasks[task].specs.len() < PLAN_HINTS_MAX
                {
                    let text = body[range.clone()].to_owned();
                    self.tasks[task].specs.push((text, span(&range)));
                }
            }
        }
    }

    /// Handles a heading: closes every list and begins a section.
    pub(super) fn read_heading(&mut self, level: u8, at: usize, range: std::ops::Range<usize>) {
        self.items.clear();
        self.open_text = None;
        let line = self.lines[at];
        if self.sections.len() >= PLAN_SECTIONS_MAX {
            let why = format!("the plan has more than {PLAN_SECTIONS_MAX} headings");
            return self.exceed_limit(why, Span::new(line.start, line.end_offset()));
        }
        let mut paragraph = PlanParagraph::default();
        paragraph.push_line(line.start + range.start, &line.text[range]);
        let said = parse_heading_text(&paragraph.text);
        self.blockers += said.blockers.len();
        // Walk up from the previous section: at most six steps, since each has a lower level.
        let above = |at: &usize| self.sections[*at].parent;
        let parent = std::iter::successors(self.sections.len().checked_sub(1), above)
            .find(|at| self.sections[*at].level < level);
        let title = said.text;
        if level == 1 && self.title.is_none() {
            self.title = Some(title.clone());
        }
        let ignored = level > 1 && is_for_people(&title)
            || parent.is_some_and(|parent| self.sections[parent].ignored);
        let blocked_by = said.blockers.into_iter().map(|(text, range)| TaskBlocker {
            text,
            on: BlockerTarget::Nothing,
            at: paragraph.file_span(&range),
        });
        self.sections.push(PlanSection {
            level,
            phase: parse_phase(&title),
            title,
            parent,
            priority: said.priority,
            blocked_by: blocked_by.collect(),
            hints: Vec::new(),
            ignored,
            ignored_boxes: 0,
            line: at + 1,
            at: Vec::new(),
        });
    }
}

/// Returns true if boxes below this title are for people, or explain the marks.
fn is_for_people(title: &str) -> bool {
    let title = title.to_lowercase();
    let words = title.trim_start_matches(|c: char| !c.is_alphabetic());
    title.contains("verification")
        || title.contains("checklist")
        || words.starts_with("manual qa")
        || title.split(|c: char| !c.is_alphanumeric()).any(|word| word == "legend")
}

/// The number in `Phase 2: …`.
fn parse_phase(title: &str) -> Option<u32> {
    let lower = title.to_lowercase();
    let at = lower
        .find("phase ")
        .filter(|at| lower[..*at].chars().next_back().is_none_or(|c| !c.is_alphanumeric()))?;
    let digits: String =
        lower[at + 6..].trim_start().chars().take_while(char::is_ascii_digit).take(6).collect();
    digits.parse().ok()
}
