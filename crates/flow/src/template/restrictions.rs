//! Restricts templates to values of the scope that are compared, tested, counted and looped over. Constructs that
//! build text out of text (`~`, `*`, concatenation, list and mapping literals, calls) could use any amount of memory,
//! because neither fuel nor the output limit accounts for it, so they are refused before rendering. Very long tags are
//! refused too, because the parser is recursive.

use super::TemplateError;
use crate::limits::{STATEMENTS_MAX, TAG_WORDS_MAX};

/// The allowed statements.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// The available filters.
pub(super) const FILTERS: [&str; 3] = ["default", "join", "length"];
/// The available tests.
pub(super) const TESTS: [&str; 2] = ["defined", "none"];
/// Keywords after which a bracket starts a value instead of an index or a call.
const WORDS: [&str; 9] = ["in", "if", "elif", "else", "and", "or", "not", "is", "for"];

/// Refuses a text whose tags contain forbidden constructs.
pub(super) fn check_text(text: &str) -> Result<(), TemplateError> {
    let mut at = 0;
    let mut statements = 0;
    while let Some(found) = text[at..].find(['{']).map(|found| at + found) {
        let rest = &text[found..];
        let at_line = |message: String| {
            let line = text[..found].matches('\n').count() + 1;
            TemplateError { message, line: Some(line) }
        };
        at = match rest.get(..2) {
            Some("{#") => rest.find("#}").map_or(text.len(), |end| found + end + 2),
            Some("{{") => found + 2 + check_tag(&rest[2..], "}}").map_err(at_line)?,
            Some("{%") => {
                statements += 1;
                if statements > STATEMENTS_MAX {
                    return Err(at_line(format!("a text has at most {STATEMENTS_MAX} statements")));
                }
                check_statement(&rest[2..]).map_err(at_line)?;
                found + 2 + check_tag(&rest[2..], "%}").map_err(at_line)?
            }
            _ => found + 1,
        };
    }
    Ok(())
}

/// Refuses a condition that contains forbidden constructs.
pub(super) fn check_expression(text: &str) -> Result<(), TemplateError> {
    check_tag(text, "").map(|_| ()).map_err(|message| TemplateError { message, line: None })
}

/// Allows only conditions and loops: no definitions, includes or calls.
fn check_statement(rest: &str) -> Result<(), String> {
    let rest = rest.trim_start_matches(['-', '+']).trim_start();
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    if STATEMENTS.contains(&word.as_str()) {
        Ok(())
    } else {
        Err(format!("`{word}` is no statement of templates here; there are `if` and `for`"))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum TemplateToken<'a> {
    Word(&'a str),
    Number,
    Text,
    Sign(char),
}

/// Checks a tag and returns its length, including the end delimiter.
fn check_tag(text: &str, end: &str) -> Result<usize, String> {
    let mut last: Option<TemplateToken<'_>> = None;
    let mut named = FilterNameCheck::default();
    let mut calls: Vec<bool> = Vec::new();
    let mut in_seen = false;
    let mut sum = false;
    let mut words = 0;
    let mut at = 0;
    while at < text.len() {
        if !end.is_empty() && text[at..].starts_with(end) {
            return Ok(at + end.len());
        }
        let Some((mut token, length)) = first_token(&text[at..]) else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        words += 1;
        if words > TAG_WORDS_MAX {
            return Err(format!(
                "a tag or a condition has at most {TAG_WORDS_MAX} words and signs"
            ));
        }
        if token == TemplateToken::Number && last == Some(TemplateToken::Sign('.')) {
            // The index of an entry. The entry itself need not be a number.
            token = TemplateToken::Word("");
        }
        let is_value = matches!(last, Some(TemplateToken::Word(word)) if !WORDS.contains(&word))
            || matches!(last, Some(TemplateToken::Sign(']' | ')')));
        let names = named.check_token(token)?;
        if token == TemplateToken::Sign('(') && is_value && !names {
            return Err("templates call nothing".into());
        }
        if std::mem::take(&mut sum) && token != TemplateToken::Number {
            return Err(
                "`+` adds a number that is written out; texts stand beside each other".into()
            );
        }
        match token {
            TemplateToken::Sign('~' | '*') => {
                return Err(
                    "`~` and `*` are not for templates here; texts stand beside each other".into(),
                );
            }
            TemplateToken::Sign('+') => {
                sum = !matches!(last, Some(TemplateToken::Number)) && last.is_some()
            }
            TemplateToken::Sign('{') => return Err("templates make no mappings".into()),
            TemplateToken::Sign('[') if !is_value => {
                let Some(length) = constant_list_length(&text[at..]) else {
                    return Err(
                        "a list in a template has only texts and numbers that are written out"
                            .into(),
                    );
                };
                last = Some(TemplateToken::Sign(']'));
                at += length;
                continue;
            }
            TemplateToken::Sign('(') => calls.push(is_value),
            TemplateToken::Sign(')') => {
                calls.pop();
            }
            TemplateToken::Sign(',')
                if calls.last() == Some(&false) || (calls.is_empty() && in_seen) =>
            {
                return Err("templates make no lists".into());
            }
            TemplateToken::Word("recursive") => return Err("loops call nothing".into()),
            TemplateToken::Word("in") => in_seen = true,
            TemplateToken::Word(_)
            | TemplateToken::Number
            | TemplateToken::Text
            | TemplateToken::Sign(_) => {}
        }
        last = Some(token);
        at += length;
    }
    Ok(text.len())
}

/// Checks the names of filters and tests: the parser accepts any name, and an unknown one would only fail at render
/// time.
#[derive(Default)]
struct FilterNameCheck<'a> {
    last: [Option<TemplateToken<'a>>; 2],
    is_name: bool,
}

impl<'a> FilterNameCheck<'a> {
    /// Returns true if the token before this one is the name of a filter or a test, which may have arguments.
    fn check_token(&mut self, token: TemplateToken<'a>) -> Result<bool, String> {
        let was_name = std::mem::take(&mut self.is_name);
        let known: Option<(&str, &[&str])> = match self.last {
            [_, Some(TemplateToken::Sign('|'))] => Some(("filter", &FILTERS)),
            [before, Some(TemplateToken::Word("is"))]
                if before != Some(TemplateToken::Sign('.')) =>
            {
                Some(("test", &TESTS))
            }
            [Some(TemplateToken::Word("is")), Some(TemplateToken::Word("not"))] => {
                Some(("test", &TESTS))
            }
            _ => None,
        };
        if let (Some((what, known)), TemplateToken::Word(word)) = (known, token)
            && word != "not"
        {
            if !known.contains(&word) {
                return Err(format!("there is no {what} `{word}`; there are {}", known.join(", ")));
            }
            self.is_name = true;
        }
        self.last = [self.last[1], Some(token)];
        Ok(was_name)
    }
}

/// The length of a list of constants such as `["quick", "full"]` at the start of the text.
fn constant_list_length(text: &str) -> Option<usize> {
    let mut at = 1;
    while at < text.len() {
        match first_token(&text[at..]) {
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            Some((TemplateToken::Sign(']'), length)) => return Some(at + length),
            Some((
                TemplateToken::Text | TemplateToken::Number | TemplateToken::Sign(',' | '-' | '.'),
                length,
            )) => at += length,
            Some(_) => return None,
        }
    }
    None
}

/// The first token of a text and its length; `None` for whitespace.
fn first_token(text: &str) -> Option<(TemplateToken<'_>, usize)> {
    let first = text.chars().next()?;
    let run = |belongs: fn(char) -> bool| text.find(|c| !belongs(c)).unwrap_or(text.len());
    match first {
        _ if first.is_whitespace() => None,
        '"' | '\'' => {
            let mut escaped = false;
            let end = text.char_indices().skip(1).find(|(_, c)| {
                let is_end = *c == first && !escaped;
                escaped = *c == '\\' && !escaped;
                is_end
            });
            Some((TemplateToken::Text, end.map_or(text.len(), |(at, c)| at + c.len_utf8())))
        }
        _ if first.is_ascii_digit() => {
            Some((TemplateToken::Number, run(|c| c.is_ascii_alphanumeric() || c == '_')))
        }
        _ if first.is_alphabetic() || first == '_' => {
            let length = run(|c| c.is_alphanumeric() || c == '_');
            Some((TemplateToken::Word(&text[..length]), length))
        }
        _ => Some((TemplateToken::Sign(first), first.len_utf8())),
    }
}
