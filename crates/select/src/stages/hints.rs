//! Finds skills that the task names, in its hints or in its text.
//!
//! In a text, `@name` names a skill, and so do a line `skills: one, two` and, at the very beginning, `/name`,
//! as typed to an agent. Code and mail addresses are ignored. An `@name` without a skill may be a decorator,
//! a person or a package, so it is reported only if it is one typo away from a skill. Names that can only be
//! meant as skills are always reported.

use std::collections::{HashMap, HashSet};

use repertoire_skill::name::{nearest_name, normalise_name};

use crate::document::SkillDocument;
use crate::evidence::StageEvidence;
use crate::expand::is_one_typo;
use crate::limits::{SUGGESTIONS_MAX, TASK_BYTES_MAX};
use crate::selection::{SelectionReason, UnresolvedHint};
use crate::task::Task;
use crate::tokenizer::{is_dense, is_mark};

/// A skill that the task names is certain.
const STRENGTH: f32 = 1.0;
/// Shorter names are one typo away from too many words.
const SLIP_LETTERS_MIN: usize = 5;

/// The names of skills, normalised for comparison.
#[derive(Debug, Default)]
pub(crate) struct NameHints {
    ids: Vec<String>,
    /// For each skill, true if it may be picked without being named.
    is_offered: Vec<bool>,
    by_id: HashMap<String, Vec<usize>>,
    /// Keyed by name without the plugin.
    by_name: HashMap<String, Vec<usize>>,
}

/// The result of looking up a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HintTarget {
    Skill(usize),
    /// The name is ambiguous; this is the first skill that has it.
    Several(usize),
    Nowhere,
}

/// How certain it is that a mention is meant as the name of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MentionForm {
    /// The mention can only be a name.
    Name,
    /// The mention may be something else if no skill has the name.
    Perhaps,
}

/// A name that is mentioned in the task.
#[derive(Debug)]
struct SkillMention<'a> {
    form: MentionForm,
    /// The name as it was written, with its `@` or `/`.
    written: &'a str,
    name: &'a str,
}

impl NameHints {
    pub(crate) fn new(documents: &[SkillDocument<'_>]) -> NameHints {
        let mut hints = NameHints::default();
        for (skill, document) in documents.iter().enumerate() {
            hints.by_id.entry(normalise_id(document.id)).or_default().push(skill);
            hints.by_name.entry(normalise_name(document.name)).or_default().push(skill);
            hints.ids.push(document.id.to_owned());
            hints.is_offered.push(document.is_offered);
        }
        hints
    }

    /// Returns the skills that the task names, in order of mention, and the names that no skill or several
    /// skills have. Names in the task's hints come first.
    pub(crate) fn find(&self, task: &Task) -> (Vec<StageEvidence>, Vec<UnresolvedHint>) {
        let mut mentions: Vec<SkillMention<'_>> = Vec::new();
        for hint in &task.hints {
            mentions.extend(parse_list(hint, |_| MentionForm::Name));
        }
        mentions.extend(parse_slash_command(&task.text));
        collect_mentions(
            &task.text[..task.text.floor_char_boundary(TASK_BYTES_MAX)],
            &mut mentions,
        );
        let mut answer = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        let mut reported = HashSet::new();
        // Possible typos, limited in number because each is compared with every skill.
        let mut slips = HashSet::new();
        for mention in &mentions {
            match self.resolve(mention.name) {
                HintTarget::Skill(skill) if seen.insert(skill) => {
                    let reason = SelectionReason::Hint { named: mention.written.to_owned() };
                    answer.0.push(StageEvidence { skill, strength: STRENGTH, reason });
                }
                HintTarget::Skill(_) => {}
                _ if answer.1.len() >= SUGGESTIONS_MAX => {}
                HintTarget::Nowhere if mention.form == MentionForm::Perhaps => {
                    let name = normalise_id(mention.name);
                    let may_slip = name.chars().count() >= SLIP_LETTERS_MIN
                        && slips.len() < SUGGESTIONS_MAX
                        && !reported.contains(&name)
                        && slips.insert(name.clone());
                    let id = if may_slip { self.find_typo(&name) } else { None };
                    let Some(id) = id else { continue };
                    reported.insert(name);
                    let (named, nearest) = (mention.written.to_owned(), Some(id.to_owned()));
                    answer.1.push(UnresolvedHint { named, nearest });
                }
                target if reported.insert(normalise_id(mention.name)) => {
                    let nearest = match target {
                        HintTarget::Several(first) => Some(self.ids[first].clone()),
                        _ => self.nearest_id(mention.name),
                    };
                    answer.1.push(UnresolvedHint { named: mention.written.to_owned(), nearest });
                }
                _ => {}
            }
        }
        answer
    }

    /// Looks up a name by id first, then without the plugin if it has none. Among several skills, the exact
    /// spelling decides.
    fn resolve(&self, name: &str) -> HintTarget {
        let bare = || self.by_name.get(&normalise_name(name)).filter(|_| !name.contains(':'));
        match self
            .by_id
            .get(&normalise_id(name))
            .or_else(bare)
            .map_or(&[] as &[usize], Vec::as_slice)
        {
            [] => HintTarget::Nowhere,
            [skill] => HintTarget::Skill(*skill),
            several => self.choose(name, several),
        }
    }

    fn choose(&self, name: &str, several: &[usize]) -> HintTarget {
        let exact: Vec<usize> =
            several.iter().copied().filter(|skill| self.ids[*skill] == name).collect();
        let offered: Vec<usize> =
            exact.iter().copied().filter(|skill| self.is_offered[*skill]).collect();
        // An agent may have the same name as a skill, which then takes precedence.
        match (offered.as_slice(), exact.as_slice()) {
            ([skill, ..], _) | ([], [skill, ..]) => HintTarget::Skill(*skill),
            ([], []) => HintTarget::Several(several[0]),
        }
    }

    /// Returns the first skill whose name, with or without the plugin, is one typo away.
    fn find_typo(&self, name: &str) -> Option<&str> {
        let all = self.by_id.iter().chain(&self.by_name);
        let near = all.filter(|(known, _)| {
            // One typo leaves the first or the last two letters intact.
            let (known, name) = (known.as_bytes(), name.as_bytes());
            known.get(..2) == name.get(..2)
                || known.ends_with(&name[name.len().saturating_sub(2)..])
        });
        let near = near.filter(|(known, _)| {
            known.chars().count() >= SLIP_LETTERS_MIN && is_one_typo(name, known)
        });
        near.filter_map(|(_, skills)| skills.first()).min().map(|skill| self.ids[*skill].as_str())
    }

    fn nearest_id(&self, name: &str) -> Option<String> {
        let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
        let of_another_plugin = self.by_name.get(&normalise_name(bare)).and_then(|all| all.first());
        match of_another_plugin {
            Some(skill) => Some(self.ids[*skill].clone()),
            None => nearest_name(name, self.ids.iter().map(String::as_str)).map(str::to_owned),
        }
    }
}

/// Normalises a name with or without a plugin for comparison.
fn normalise_id(name: &str) -> String {
    match name.split_once(':') {
        Some((plugin, skill)) => format!("{}:{}", normalise_name(plugin), normalise_name(skill)),
        None => normalise_name(name),
    }
}

/// Parses a comma-separated list of names.
fn parse_list<'a>(
    list: &'a str,
    form_of: impl Fn(&str) -> MentionForm + 'a,
) -> impl Iterator<Item = SkillMention<'a>> {
    list.split([',', '，', '、', '\n']).filter_map(move |item| {
        let written = item.trim_matches(is_list_markup).trim_end_matches('.');
        let name = written.trim_start_matches('@').trim();
        let is_name = name.chars().any(char::is_alphanumeric);
        is_name.then(|| SkillMention { form: form_of(name), written, name })
    })
}

fn is_list_markup(c: char) -> bool {
    c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '*' | '[' | ']')
}

/// Returns how certain an item of a `skills:` line is a name. Prose may begin like such a line as well; a single
/// word is certainly a name.
fn form_in_line(name: &str) -> MentionForm {
    if name.contains(char::is_whitespace) { MentionForm::Perhaps } else { MentionForm::Name }
}

/// Parses a slash command at the beginning of a text. A path parses as well, but finds no skill and is not
/// reported.
fn parse_slash_command(text: &str) -> Option<SkillMention<'_>> {
    let text = text.trim_start();
    let rest = text.strip_prefix('/')?;
    let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
    let is_command = !rest[end..].starts_with(['/', '\\', '(']);
    let name = rest[..end].trim_end_matches(['.', ':', '-', '_']);
    let written = &text[..1 + name.len()];
    (is_command && !name.is_empty()).then_some(SkillMention {
        form: MentionForm::Perhaps,
        written,
        name,
    })
}

/// Collects the names in a text, outside of code.
fn collect_mentions<'a>(text: &'a str, mentions: &mut Vec<SkillMention<'a>>) {
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let run = find_fence(line);
        match (fence, run) {
            (None, Some(_)) => fence = run,
            (Some(open), Some(close)) if close.starts_with(open) && is_closing(line) => {
                fence = None
            }
            (None, None) => {
                if let Some(list) = parse_skills_line(line) {
                    mentions.extend(parse_list(list, form_in_line));
                }
                collect_at_signs(line, mentions);
            }
            _ => {}
        }
    }
}

/// Returns the characters that open or close a fenced code block.
fn find_fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    let (run, rest) = line.split_at(length);
    (length >= 3 && !(sign == '`' && rest.contains('`'))).then_some(run)
}

fn is_closing(line: &str) -> bool {
    line.trim().trim_start_matches(['`', '~']).is_empty()
}

/// Returns the text after `skills:` at the beginning of a line.
fn parse_skills_line(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*>#".contains(c));
    let (word, list) = line.split_once(':')?;
    let is_it = ["skill", "skills"].iter().any(|known| word.eq_ignore_ascii_case(known));
    is_it.then_some(list)
}

/// Collects the names after each `@` of a line, outside of `` `code` ``.
fn collect_at_signs<'a>(line: &'a str, mentions: &mut Vec<SkillMention<'a>>) {
    let mut at = 0;
    while let Some(next) = line[at..].find(['`', '@']) {
        let start = at + next;
        if line[start..].starts_with('`') {
            at = end_of_code(line, start);
            continue;
        }
        at = start + 1;
        if line[..start].chars().next_back().is_some_and(continues_into_at) {
            continue;
        }
        let rest = &line[at..];
        let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        at += end;
        // Skip packages, paths, addresses and decorators.
        if line[at..].starts_with(['/', '@', '(', '\\']) {
            continue;
        }
        let name = rest[..end].trim_end_matches(['.', ':', '-', '_']);
        push_mention(line, start, name, mentions);
        // In scripts without spaces, text may follow the name directly.
        let dense = name.find(is_dense).filter(|dense| *dense > 0);
        if let Some(dense) = dense {
            push_mention(line, start, &name[..dense], mentions);
        }
    }
}

fn push_mention<'a>(
    line: &'a str,
    start: usize,
    name: &'a str,
    mentions: &mut Vec<SkillMention<'a>>,
) {
    if !name.is_empty() {
        let written = &line[start..start + 1 + name.len()];
        mentions.push(SkillMention { form: MentionForm::Perhaps, written, name });
    }
}

/// Returns the end of inline code, or the end of the backticks if they are not closed.
fn end_of_code(line: &str, start: usize) -> usize {
    let length = leading_backticks(&line[start..]);
    let mut at = start + length;
    while let Some(next) = line[at..].find('`') {
        let found = leading_backticks(&line[at + next..]);
        at += next + found;
        if found == length {
            return at;
        }
    }
    start + length
}

fn leading_backticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// Returns true if an `@` after this character is part of something longer, such as a mail address.
fn continues_into_at(before: char) -> bool {
    let is_letter = before.is_alphanumeric() && !is_dense(before);
    is_letter || matches!(before, '.' | '-' | '_' | '+' | '/' | '\\' | '@')
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c) || matches!(c, '-' | '_' | '.' | ':')
}

#[cfg(test)]
#[path = "hints_tests.rs"]
mod tests;
