//! Hints: skills that somebody named, in the task's hints or in its text.
//!
//! In a text, `@name` names a skill, and so do a line `skills: one, two` and, at its very beginning, `/name`, as
//! people type it to an agent. Code is not read, nor are mail addresses. An `@` that leads nowhere may be a
//! decorator, a person or a package, so nothing is said of it, unless it is a slip of the finger away from a
//! skill; a name that was meant as one and leads nowhere is reported.

use std::collections::{HashMap, HashSet};

use repertoire_skill::name::{nearest, normalise};

use crate::document::Document;
use crate::evidence::Evidence;
use crate::expand::is_one_slip;
use crate::limits::{SUGGESTIONS_MAX, TASK_BYTES_MAX};
use crate::selection::{Reason, Unresolved};
use crate::task::Task;
use crate::words::{is_dense, is_mark};

/// Who names a skill wants it.
const STRENGTH: f32 = 1.0;
/// Shorter names are one letter away from too many words.
const SLIP_LETTERS_MIN: usize = 5;

/// Names of skills, in the spelling in which names are compared.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    ids: Vec<String>,
    /// Which skills are offered without being named.
    is_offered: Vec<bool>,
    by_id: HashMap<String, Vec<usize>>,
    /// Without the plugin.
    by_name: HashMap<String, Vec<usize>>,
}

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Skill(usize),
    /// To several, of which this is the first.
    Several(usize),
    Nowhere,
}

/// How a skill was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As a name that is nothing else.
    Name,
    /// In words that may be something else, if they lead nowhere.
    Perhaps,
}

/// A name, and how it stands in the task.
#[derive(Debug)]
struct Mention<'a> {
    form: Form,
    /// As it was written.
    written: &'a str,
    name: &'a str,
}

impl Hints {
    pub(crate) fn new(documents: &[Document<'_>]) -> Hints {
        let mut hints = Hints::default();
        for (skill, document) in documents.iter().enumerate() {
            hints.by_id.entry(key(document.id)).or_default().push(skill);
            hints.by_name.entry(normalise(document.name)).or_default().push(skill);
            hints.ids.push(document.id.to_owned());
            hints.is_offered.push(document.is_offered);
        }
        hints
    }

    /// The skills that the task names, in the order in which it does, and names that lead nowhere or to
    /// several skills. Names in the task's hints come first.
    pub(crate) fn find(&self, task: &Task) -> (Vec<Evidence>, Vec<Unresolved>) {
        let mut mentions: Vec<Mention<'_>> = Vec::new();
        for hint in &task.hints {
            mentions.extend(listed(hint, |_| Form::Name));
        }
        mentions.extend(slash(&task.text));
        mentions_in(&task.text[..task.text.floor_char_boundary(TASK_BYTES_MAX)], &mut mentions);
        let mut answer = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        let mut reported = HashSet::new();
        // Names that may be slips: each costs a look at every skill.
        let mut slips = HashSet::new();
        for mention in &mentions {
            match self.resolve(mention.name) {
                Target::Skill(skill) if seen.insert(skill) => {
                    let reason = Reason::Hint { named: mention.written.to_owned() };
                    answer.0.push(Evidence { skill, strength: STRENGTH, reason });
                }
                Target::Skill(_) => {}
                _ if answer.1.len() >= SUGGESTIONS_MAX => {}
                Target::Nowhere if mention.form == Form::Perhaps => {
                    let name = key(mention.name);
                    let may_slip = name.chars().count() >= SLIP_LETTERS_MIN
                        && slips.len() < SUGGESTIONS_MAX
                        && !reported.contains(&name)
                        && slips.insert(name.clone());
                    let id = if may_slip { self.slipped(&name) } else { None };
                    let Some(id) = id else { continue };
                    reported.insert(name);
                    let (named, nearest) = (mention.written.to_owned(), Some(id.to_owned()));
                    answer.1.push(Unresolved { named, nearest });
                }
                target if reported.insert(key(mention.name)) => {
                    let nearest = match target {
                        Target::Several(first) => Some(self.ids[first].clone()),
                        _ => self.nearest(mention.name),
                    };
                    answer.1.push(Unresolved { named: mention.written.to_owned(), nearest });
                }
                _ => {}
            }
        }
        answer
    }

    /// The exact name decides; then the name in any spelling; then a plugin's skill of that name, if only one
    /// plugin has it.
    fn resolve(&self, name: &str) -> Target {
        let bare = || self.by_name.get(&normalise(name)).filter(|_| !name.contains(':'));
        match self.by_id.get(&key(name)).or_else(bare).map_or(&[] as &[usize], Vec::as_slice) {
            [] => Target::Nowhere,
            [skill] => Target::Skill(*skill),
            several => self.choose(name, several),
        }
    }

    fn choose(&self, name: &str, several: &[usize]) -> Target {
        let exact: Vec<usize> =
            several.iter().copied().filter(|skill| self.ids[*skill] == name).collect();
        let offered: Vec<usize> =
            exact.iter().copied().filter(|skill| self.is_offered[*skill]).collect();
        // An agent may have the name of a skill; the skill goes before it.
        match (offered.as_slice(), exact.as_slice()) {
            ([skill, ..], _) | ([], [skill, ..]) => Target::Skill(*skill),
            ([], []) => Target::Several(several[0]),
        }
    }

    /// The first skill whose name, with or without the plugin, is one slip away from a name.
    fn slipped(&self, name: &str) -> Option<&str> {
        let all = self.by_id.iter().chain(&self.by_name);
        let near = all.filter(|(known, _)| {
            // One slip spares the beginning or the end.
            let (known, name) = (known.as_bytes(), name.as_bytes());
            known.get(..2) == name.get(..2)
                || known.ends_with(&name[name.len().saturating_sub(2)..])
        });
        let near = near.filter(|(known, _)| {
            known.chars().count() >= SLIP_LETTERS_MIN && is_one_slip(name, known)
        });
        near.filter_map(|(_, skills)| skills.first()).min().map(|skill| self.ids[*skill].as_str())
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
        let of_another_plugin = self.by_name.get(&normalise(bare)).and_then(|all| all.first());
        match of_another_plugin {
            Some(skill) => Some(self.ids[*skill].clone()),
            None => nearest(name, self.ids.iter().map(String::as_str)).map(str::to_owned),
        }
    }
}

/// A name with or without a plugin, in the spelling in which names are compared.
fn key(name: &str) -> String {
    match name.split_once(':') {
        Some((plugin, skill)) => format!("{}:{}", normalise(plugin), normalise(skill)),
        None => normalise(name),
    }
}

/// The names of a list with commas.
fn listed<'a>(
    list: &'a str,
    form_of: impl Fn(&str) -> Form + 'a,
) -> impl Iterator<Item = Mention<'a>> {
    list.split([',', '，', '、', '\n']).filter_map(move |item| {
        let around = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '*' | '[' | ']');
        let written = item.trim_matches(around).trim_end_matches('.');
        let name = written.trim_start_matches('@').trim();
        let is_name = name.chars().any(char::is_alphanumeric);
        is_name.then(|| Mention { form: form_of(name), written, name })
    })
}

/// A command with a slash that a text begins with. A path leads nowhere, so nothing is said of it.
fn slash(text: &str) -> Option<Mention<'_>> {
    let text = text.trim_start();
    let rest = text.strip_prefix('/')?;
    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
    let is_command = !rest[end..].starts_with(['/', '\\', '(']);
    let name = rest[..end].trim_end_matches(['.', ':', '-', '_']);
    let written = &text[..1 + name.len()];
    (is_command && !name.is_empty()).then_some(Mention { form: Form::Perhaps, written, name })
}

/// Adds the names that stand in a text outside code.
fn mentions_in<'a>(text: &'a str, mentions: &mut Vec<Mention<'a>>) {
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let run = fence_of(line);
        match (fence, run) {
            (None, Some(_)) => fence = run,
            (Some(open), Some(close)) if close.starts_with(open) && is_closing(line) => {
                fence = None
            }
            (None, None) => {
                if let Some(list) = skills_line(line) {
                    // A line of prose may begin like this; a single word is meant as a name.
                    let form = |name: &str| {
                        if name.contains(char::is_whitespace) { Form::Perhaps } else { Form::Name }
                    };
                    mentions.extend(listed(list, form));
                }
                at_signs(line, mentions);
            }
            _ => {}
        }
    }
}

/// The signs that open or close a block of code.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    let (run, rest) = line.split_at(length);
    (length >= 3 && !(sign == '`' && rest.contains('`'))).then_some(run)
}

fn is_closing(line: &str) -> bool {
    line.trim().trim_start_matches(['`', '~']).is_empty()
}

/// What follows `skills:` at the beginning of a line.
fn skills_line(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*>#".contains(c));
    let (word, list) = line.split_once(':')?;
    let is_it = ["skill", "skills"].iter().any(|known| word.eq_ignore_ascii_case(known));
    is_it.then_some(list)
}

/// Adds what follows each `@` of a line, outside of `` `code` ``.
fn at_signs<'a>(line: &'a str, mentions: &mut Vec<Mention<'a>>) {
    let mut at = 0;
    while let Some(next) = line[at..].find(['`', '@']) {
        let start = at + next;
        if line[start..].starts_with('`') {
            at = after_code(line, start);
            continue;
        }
        at = start + 1;
        if line[..start].chars().next_back().is_some_and(goes_on_into_at) {
            continue;
        }
        let rest = &line[at..];
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        at += end;
        // A package, a path, an address or a decorator.
        if line[at..].starts_with(['/', '@', '(', '\\']) {
            continue;
        }
        let name = rest[..end].trim_end_matches(['.', ':', '-', '_']);
        mention(line, start, name, mentions);
        // In a script without blanks, text goes on right after the name.
        let dense = name.find(is_dense).filter(|dense| *dense > 0);
        if let Some(dense) = dense {
            mention(line, start, &name[..dense], mentions);
        }
    }
}

fn mention<'a>(line: &'a str, start: usize, name: &'a str, mentions: &mut Vec<Mention<'a>>) {
    if !name.is_empty() {
        let written = &line[start..start + 1 + name.len()];
        mentions.push(Mention { form: Form::Perhaps, written, name });
    }
}

/// Where code ends that begins with a backtick, or where the backticks end that begin none.
fn after_code(line: &str, start: usize) -> usize {
    let run = |from: usize| line[from..].len() - line[from..].trim_start_matches('`').len();
    let length = run(start);
    let mut at = start + length;
    while let Some(next) = line[at..].find('`') {
        let found = run(at + next);
        at += next + found;
        if found == length {
            return at;
        }
    }
    start + length
}

/// Whether an `@` after this character is part of something longer, such as a mail address.
fn goes_on_into_at(before: char) -> bool {
    let is_letter = before.is_alphanumeric() && !is_dense(before);
    is_letter || matches!(before, '.' | '-' | '_' | '+' | '/' | '\\' | '@')
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c) || matches!(c, '-' | '_' | '.' | ':')
}

#[cfg(test)]
#[path = "hints_tests.rs"]
mod tests;
