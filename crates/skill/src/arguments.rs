//! Fills arguments and known variables into a body, by the rules of Claude Code.
//!
//! `$ARGUMENTS` is the whole text as given; `$ARGUMENTS[N]` counts from 0; `$name` is an argument that the
//! skill's `arguments` field names; `${CLAUDE_…}` is a known variable. `$N` is short for `$ARGUMENTS[N]` in a
//! body that uses `$0` or `$ARGUMENTS[0]`. In any other body numbers count from 1, as in a shell. `\$1` stays
//! `$1`.
//!
//! It is a single pass: values are never scanned for placeholders. Nothing is run and the environment is not
//! read; an unknown variable stays as written.

use std::borrow::Cow;
use std::ops::Range;

use camino::Utf8Path;

use crate::limits::{ARGUMENT_BYTES_MAX, ARGUMENT_NAMES_MAX};

/// The values of placeholders.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaceholderValues<'a> {
    /// The text that was given after the skill's name.
    pub arguments: &'a str,
    /// The names that the skill gives to its arguments, in order.
    pub names: &'a [String],
    /// The value of `${CLAUDE_SKILL_DIR}`.
    pub skill_dir: Option<&'a Utf8Path>,
    /// The value of `${CLAUDE_PROJECT_DIR}`.
    pub project_dir: Option<&'a Utf8Path>,
    /// The value of `${CLAUDE_SESSION_ID}`.
    pub session_id: Option<&'a str>,
    /// The value of `${CLAUDE_PLUGIN_ROOT}`.
    pub plugin_root: Option<&'a Utf8Path>,
}

/// A named argument that was not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingArgument {
    pub name: String,
    /// The byte range of its first placeholder in the body.
    pub at: Range<usize>,
}

/// A body with its placeholders filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubstitutedBody {
    pub text: String,
    /// Named arguments that were not given and became empty.
    pub missing: Vec<MissingArgument>,
    /// True if placeholders were left as they are because the text would have grown too much.
    pub limited: bool,
}

/// Fills values into a body.
///
/// Arguments that no placeholder took are appended as `ARGUMENTS: …`, so that none is lost.
///
/// ```
/// use repertoire_skill::arguments::{PlaceholderValues, substitute_arguments};
/// let values = PlaceholderValues { arguments: "42 'two words'", ..PlaceholderValues::default() };
/// assert_eq!(substitute_arguments("Fix $1: $2.", &values).text, "Fix 42: two words.");
/// assert_eq!(substitute_arguments("Fix it.", &values).text, "Fix it.\n\nARGUMENTS: 42 'two words'");
/// ```
pub fn substitute_arguments(body: &str, values: &PlaceholderValues<'_>) -> SubstitutedBody {
    let mut filler = PlaceholderFiller::new(body, values);
    let text = filler.fill_part(body, 0);
    filler.finish(text)
}

/// Splits arguments like a shell: at white space, with quotes and backslashes. If a quote is not closed, the
/// text is split at white space alone.
pub fn split_arguments(text: &str) -> Vec<String> {
    split_quoted(text)
        .unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

fn split_quoted(text: &str) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            out.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            '"' => read_double_quoted(&mut chars, word)?,
            '\\' => word.push(chars.next().unwrap_or('\\')),
            c => word.push(c),
        }
    }
    out.extend(word);
    Some(out)
}

fn read_double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentPlaceholder<'a> {
    /// `$ARGUMENTS`
    All,
    /// `$ARGUMENTS[N]`
    Index(usize),
    /// `$N`
    Number(usize),
    /// `$name`, as the index of the name.
    Name(usize),
    /// `${CLAUDE_…}`
    Variable(&'a str),
}

/// Fills the parts of a body one by one, so that commands can be handled separately from text.
pub(crate) struct PlaceholderFiller<'a> {
    values: PlaceholderValues<'a>,
    words: Vec<String>,
    first_number: usize,
    taken: Vec<bool>,
    missing: Vec<MissingArgument>,
    added_bytes: usize,
    limited: bool,
}

impl<'a> PlaceholderFiller<'a> {
    pub(crate) fn new(body: &str, values: &PlaceholderValues<'a>) -> Self {
        let names = &values.names[..values.names.len().min(ARGUMENT_NAMES_MAX)];
        let values = PlaceholderValues { names, ..*values };
        let words = split_arguments(values.arguments);
        let from_zero = find_placeholders(body, names).any(|(_, found)| {
            matches!(found, ArgumentPlaceholder::Number(0) | ArgumentPlaceholder::Index(0))
        });
        PlaceholderFiller {
            values,
            taken: vec![false; words.len()],
            words,
            first_number: usize::from(!from_zero),
            missing: Vec::new(),
            added_bytes: 0,
            limited: false,
        }
    }

    /// Fills in a part of the body that starts at its byte `base`.
    pub(crate) fn fill_part(&mut self, text: &str, base: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (at, found) in find_placeholders_and_escapes(text, self.values.names) {
            out.push_str(&text[done..at.start]);
            done = at.end;
            let place = base + at.start..base + at.end;
            match found.and_then(|found| self.resolve_value(found, place)) {
                Some(value) => out.push_str(&value),
                // An escape loses its backslash; a placeholder without a value stays.
                None => out.push_str(text[at.clone()].trim_start_matches('\\')),
            }
        }
        out.push_str(&text[done..]);
        out
    }

    /// Appends the arguments if a placeholder did not use all of them.
    pub(crate) fn finish(self, mut text: String) -> SubstitutedBody {
        let given = self.values.arguments.trim();
        if !self.taken.iter().all(|taken| *taken) {
            let end = text.trim_end().len();
            text.truncate(end);
            let gap = if text.is_empty() { "" } else { "\n\n" };
            text.push_str(&format!("{gap}ARGUMENTS: {given}"));
        }
        SubstitutedBody { text, missing: self.missing, limited: self.limited }
    }

    fn resolve_value(
        &mut self,
        found: ArgumentPlaceholder<'_>,
        at: Range<usize>,
    ) -> Option<Cow<'static, str>> {
        let value = match found {
            ArgumentPlaceholder::All => {
                self.taken.fill(true);
                self.values.arguments.to_owned()
            }
            ArgumentPlaceholder::Index(index) => self.take_word(index)?,
            ArgumentPlaceholder::Number(number) => {
                self.take_word(number.checked_sub(self.first_number)?)?
            }
            ArgumentPlaceholder::Name(index) => match self.take_word(index) {
                Some(word) => word,
                None => {
                    self.report_missing(index, at);
                    return Some(Cow::Borrowed(""));
                }
            },
            ArgumentPlaceholder::Variable(name) => self.resolve_variable(name)?,
        };
        if self.added_bytes + value.len() > ARGUMENT_BYTES_MAX {
            self.limited = true;
            return None;
        }
        self.added_bytes += value.len();
        Some(Cow::Owned(value))
    }

    fn take_word(&mut self, index: usize) -> Option<String> {
        let word = self.words.get(index)?.clone();
        self.taken[index] = true;
        Some(word)
    }

    fn report_missing(&mut self, index: usize, at: Range<usize>) {
        let name = &self.values.names[index];
        if !self.missing.iter().any(|missing| missing.name == *name) {
            self.missing.push(MissingArgument { name: name.clone(), at });
        }
    }

    fn resolve_variable(&self, name: &str) -> Option<String> {
        let values = &self.values;
        match name {
            "CLAUDE_SKILL_DIR" => values.skill_dir.map(Utf8Path::to_string),
            "CLAUDE_PROJECT_DIR" => values.project_dir.map(Utf8Path::to_string),
            "CLAUDE_SESSION_ID" => values.session_id.map(str::to_owned),
            "CLAUDE_PLUGIN_ROOT" => values.plugin_root.map(Utf8Path::to_string),
            _ => None,
        }
    }
}

/// Returns true if a text contains a placeholder for an argument.
pub(crate) fn takes_arguments(text: &str, names: &[String]) -> bool {
    find_placeholders(text, names)
        .any(|(_, found)| !matches!(found, ArgumentPlaceholder::Variable(_)))
}

fn find_placeholders<'t>(
    text: &'t str,
    names: &'t [String],
) -> impl Iterator<Item = (Range<usize>, ArgumentPlaceholder<'t>)> {
    find_placeholders_and_escapes(text, names).filter_map(|(at, found)| Some((at, found?)))
}

/// Iterates over placeholders with their ranges. An escaped one is `None`, and its range includes the
/// backslash.
fn find_placeholders_and_escapes<'t>(
    text: &'t str,
    names: &'t [String],
) -> impl Iterator<Item = (Range<usize>, Option<ArgumentPlaceholder<'t>>)> {
    let mut done = 0;
    memchr::memchr_iter(b'$', text.as_bytes()).filter_map(move |at| {
        if at < done {
            return None;
        }
        let (found, len) = parse_placeholder(&text[at..], names)?;
        let before = &text.as_bytes()[done..at];
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        done = at + len;
        if backslashes % 2 == 1 {
            return Some((at - 1..done, None));
        }
        Some((at..done, Some(found)))
    })
}

/// Parses the placeholder at the start of a text that begins with `$`, and returns its length.
fn parse_placeholder<'t>(
    text: &'t str,
    names: &[String],
) -> Option<(ArgumentPlaceholder<'t>, usize)> {
    let rest = text.strip_prefix('$')?;
    if let Some(after) = rest.strip_prefix("ARGUMENTS") {
        return Some(parse_index(after).unwrap_or((ArgumentPlaceholder::All, "$ARGUMENTS".len())));
    }
    if let Some(after) = rest.strip_prefix('{') {
        let end = after.bytes().take_while(|b| b.is_ascii_uppercase() || *b == b'_').count();
        let known = after[end..].starts_with('}') && after.starts_with("CLAUDE_");
        return known.then(|| (ArgumentPlaceholder::Variable(&after[..end]), end + 3));
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let number = rest[..digits].parse().ok().filter(|_| ends_word(&rest[digits..]))?;
        return Some((ArgumentPlaceholder::Number(number), digits + 1));
    }
    let fits = |name: &&String| {
        rest.strip_prefix(name.as_str())
            .is_some_and(|after| !name.is_empty() && ends_word(after) && !after.starts_with('['))
    };
    let name = names.iter().filter(fits).max_by_key(|name| name.len())?;
    let place = names.iter().position(|other| other == name)?;
    Some((ArgumentPlaceholder::Name(place), name.len() + 1))
}

fn parse_index<'t>(after: &str) -> Option<(ArgumentPlaceholder<'t>, usize)> {
    let rest = after.strip_prefix('[')?;
    let end = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..end].parse().ok().filter(|_| rest[end..].starts_with(']'))?;
    Some((ArgumentPlaceholder::Index(number), "$ARGUMENTS[]".len() + end))
}

fn ends_word(after: &str) -> bool {
    !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
#[path = "arguments/arguments_tests.rs"]
mod tests;
