//! Splits a shell command into the commands that it runs. This is not a shell: it understands plain commands, quotes,
//! operators and substitutions, and reports everything else as not understood. Such input is never allowed by a
//! pattern, while rules that deny look at all of its pieces.

use std::iter::Peekable;
use std::str::Chars;

/// The maximum length of a command that is analysed.
const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// The maximum nesting of substitutions.
const DEPTH_MAX: usize = 8;

/// The commands in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Commands {
    simple: Vec<Simple>,
    /// True if everything was understood.
    understood: bool,
    /// True if the text is too long to be analysed. Every rule that denies commands then matches.
    too_long: bool,
}

/// A command without operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    words: Vec<Word>,
    /// True if the command reads from or writes to a file.
    redirected: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Word {
    text: String,
    /// True if the shell expands the word: it contains a variable, a pattern or a home folder.
    changes: bool,
    quoted: bool,
}

impl Commands {
    /// Returns true if there is a command, everything is understood, and all commands fit.
    pub(super) fn all_plain(&self, fits: &dyn Fn(&Simple) -> bool) -> bool {
        self.understood
            && !self.simple.is_empty()
            && self.simple.iter().all(|simple| simple.is_plain() && fits(simple))
    }

    /// The words of all commands.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.simple.iter().flat_map(|simple| &simple.words).map(|word| word.text.as_str())
    }

    /// Returns true if any command fits, including those started by another command: `sudo rm`, `sh -c 'rm'`.
    pub(super) fn any_hidden(&self, fits: &dyn Fn(&Simple) -> bool) -> bool {
        self.any_hidden_at(fits, 0)
    }

    fn any_hidden_at(&self, fits: &dyn Fn(&Simple) -> bool, depth: usize) -> bool {
        self.too_long
            || self.simple.iter().any(|simple| {
                simple.any_started(fits)
                    || depth < DEPTH_MAX
                        && simple.starts_others()
                        && simple
                            .words
                            .iter()
                            .filter(|word| word.text.contains(is_syntax))
                            .any(|word| split(&word.text).any_hidden_at(fits, depth + 1))
            })
    }
}

/// The maximum number of words of a command that starts others, since each word may begin another command.
const STARTED_WORDS_MAX: usize = 1_000;

/// Returns true if a character separates words or commands, or starts a substitution.
fn is_syntax(c: char) -> bool {
    c.is_whitespace() || ";&|<>()`$".contains(c)
}

/// Options of git, before its subcommand, that take the next word as their value.
const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--config-env",
    "--attr-source",
    "--super-prefix",
];

/// Programs and keywords that run the words after them.
const STARTERS: &[&str] = &[
    "sudo", "doas", "env", "command", "builtin", "exec", "eval", "nohup", "nice", "ionice", "time",
    "timeout", "xargs", "setsid", "stdbuf", "sh", "bash", "zsh", "dash", "ash", "ksh", "fish",
    "busybox", "find", "parallel", "watch", "strace", "unshare", "chroot", "su", "source", ".",
    "trap", "if", "then", "else", "elif", "while", "until", "do", "for", "case", "select",
    "function", "!", "{", "(", "coproc", "npx", "python", "python3", "perl", "ruby", "node",
];
/// Keywords that begin something other than a plain command.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "for", "case", "esac",
    "select", "function", "!", "{", "}", "[[", "coproc", "time", "in",
];

impl Simple {
    /// Returns true if this is a plain command: no leading assignment, no keyword, no redirection.
    fn is_plain(&self) -> bool {
        let Some(first) = self.words.first() else { return false };
        !self.redirected
            && !first.changes
            && !(is_assignment(&first.text))
            && (first.quoted || !KEYWORDS.contains(&first.text.as_str()))
    }

    /// Returns true if the command begins with these words.
    pub(super) fn begins_with(&self, words: &[String]) -> bool {
        !words.is_empty()
            && self.words.len() >= words.len()
            && words
                .iter()
                .zip(&self.words)
                .all(|(wanted, word)| !word.changes && word.text == *wanted)
    }

    /// Returns true if the command matches a pattern with `*`.
    pub(super) fn is_like(&self, pattern: &str) -> bool {
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let text = words.join(" ");
        let literal = !pattern.contains('*');
        if literal && self.words.iter().any(|word| word.changes) {
            return false;
        }
        is_like(&text, pattern)
            || pattern.strip_suffix(" *").is_some_and(|start| is_like(&text, start))
    }

    /// Returns true if the command fits as it is, without leading assignments, by the base name of its program, or as a
    /// command that it may start.
    fn any_started(&self, fits: &dyn Fn(&Simple) -> bool) -> bool {
        let start = self.words.iter().take_while(|word| is_assignment(&word.text)).count();
        let starts_others = self.starts_others();
        if starts_others && self.words.len() > STARTED_WORDS_MAX {
            return true;
        }
        let ends = if starts_others { self.words.len() } else { (start + 1).min(self.words.len()) };
        let from = |at: usize| {
            let mut words = self.words[at..].to_vec();
            if let Some(first) = words.first_mut() {
                let name = first.text.rsplit('/').next().unwrap_or("").to_owned();
                *first = Word { text: name, ..Word::default() };
            }
            Simple { words, redirected: self.redirected }
        };
        let fits_so_far = |simple: &Simple| {
            fits(simple) || simple.without_git_options().is_some_and(|simple| fits(&simple))
        };
        fits(self) || (start..ends).any(|at| fits_so_far(&from(at)))
    }

    /// Drops git's global options: `git -C x push` becomes `git push`. Returns `None` if there are none.
    fn without_git_options(&self) -> Option<Simple> {
        let (program, rest) = self.words.split_first()?;
        let mut skipped = 0;
        while let Some(word) = rest.get(skipped).filter(|word| word.text.starts_with('-')) {
            skipped += if GIT_VALUES.contains(&word.text.as_str()) { 2 } else { 1 };
        }
        if program.text != "git" || skipped == 0 {
            return None;
        }
        let rest = rest.get(skipped..).unwrap_or_default();
        let words = std::iter::once(program).chain(rest).cloned().collect();
        Some(Simple { words, redirected: self.redirected })
    }

    fn starts_others(&self) -> bool {
        let program = self.words.iter().find(|word| !is_assignment(&word.text));
        program.is_some_and(|word| {
            let name = word.text.rsplit('/').next().unwrap_or("");
            word.changes || STARTERS.contains(&name)
        })
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns true if a text matches a pattern in which `*` stands for any characters. Linear in the text for every star.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Splits a command line into its commands.
pub(super) fn split(text: &str) -> Commands {
    if text.len() > COMMAND_BYTES_MAX {
        return Commands { too_long: true, ..Commands::default() };
    }
    let mut reader = Reader { chars: text.chars().peekable(), out: Vec::new() };
    match reader.list(0, None) {
        Ok(()) => Commands { simple: reader.out, understood: true, too_long: false },
        Err(Unclear) => Commands { simple: crude(text), understood: false, too_long: false },
    }
}

/// Lists everything that might be a command in a text that was not understood.
fn crude(text: &str) -> Vec<Simple> {
    let pieces = text.split(|c: char| ";&|\n\r()`{}<>$\"'".contains(c));
    let mut found: Vec<Simple> = pieces.map(crude_command).collect();
    // Quotes within a word hide it from the split above, so repeat it without quotes.
    let bare: String = text.chars().filter(|c| !"\"'\\".contains(*c)).collect();
    found.extend(bare.split(|c: char| ";&|\n\r()`{}<>$".contains(c)).map(crude_command));
    found.retain(|simple| !simple.words.is_empty());
    found
}

fn crude_command(piece: &str) -> Simple {
    let words = piece.split_whitespace();
    let words = words.map(|word| Word { text: word.replace('\\', ""), ..Word::default() });
    Simple { words: words.collect(), redirected: false }
}

/// Syntax that this reader does not understand.
struct Unclear;

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    out: Vec<Simple>,
}

impl Reader<'_> {
    /// Reads commands until the end, or until `close`.
    fn list(&mut self, depth: usize, close: Option<char>) -> Result<(), Unclear> {
        if depth > DEPTH_MAX {
            return Err(Unclear);
        }
        let mut simple = Simple::default();
        loop {
            match self.chars.peek().copied() {
                None if close.is_none() => return self.end(simple),
                None => return Err(Unclear),
                Some(c) if Some(c) == close => {
                    self.chars.next();
                    return self.end(simple);
                }
                Some(' ' | '\t') => {
                    self.chars.next();
                }
                Some(';' | '&' | '|' | '\n') => {
                    self.operator()?;
                    self.end(std::mem::take(&mut simple))?;
                }
                Some('<' | '>') => simple.redirected |= self.redirection(depth)?,
                Some('(' | ')' | '#' | '\r' | '\0') => return Err(Unclear),
                Some(_) => {
                    let word = self.word(depth, close)?;
                    let descriptor = !word.quoted && word.text.chars().all(|c| c.is_ascii_digit());
                    let redirects = matches!(self.chars.peek(), Some('<' | '>'));
                    if !(descriptor && redirects && !word.text.is_empty()) {
                        simple.words.push(word);
                    }
                }
            }
        }
    }

    fn end(&mut self, simple: Simple) -> Result<(), Unclear> {
        if simple.words.is_empty() && simple.redirected {
            return Err(Unclear);
        }
        if !simple.words.is_empty() {
            self.out.push(simple);
        }
        Ok(())
    }

    fn operator(&mut self) -> Result<(), Unclear> {
        let first = self.chars.next();
        match (first, self.chars.peek()) {
            (Some('&'), Some('>')) => return Err(Unclear),
            (Some(a), Some(b)) if a == *b && a != '\n' => {
                self.chars.next();
            }
            (Some('|'), Some('&')) => {
                self.chars.next();
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a redirection such as `> file` or `2>&1`. Returns true if it uses a file other than `/dev/null`.
    fn redirection(&mut self, depth: usize) -> Result<bool, Unclear> {
        let first = self.chars.next();
        let second = self.chars.peek().copied();
        match (first, second) {
            // Here-documents and process substitution are not supported.
            (Some('<'), Some('<')) | (_, Some('(')) => return Err(Unclear),
            (_, Some('>' | '|' | '&')) => {
                self.chars.next();
            }
            _ => {}
        }
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let target = self.word(depth, None)?;
        let descriptor = second == Some('&')
            && (target.text == "-" || target.text.chars().all(|c| c.is_ascii_digit()));
        let harmless = !target.changes
            && !target.text.is_empty()
            && (descriptor || target.text == "/dev/null");
        Ok(!harmless)
    }

    fn word(&mut self, depth: usize, close: Option<char>) -> Result<Word, Unclear> {
        let mut word = Word::default();
        while let Some(c) = self.chars.peek().copied() {
            if " \t\n;&|<>".contains(c) || Some(c) == close {
                break;
            }
            self.chars.next();
            match c {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word, depth)?,
                '\\' => match self.chars.next() {
                    None => return Err(Unclear),
                    Some('\n') => {}
                    Some(c) => {
                        word.quoted = true;
                        word.text.push(c);
                    }
                },
                '$' => self.dollar(&mut word, depth)?,
                '`' => self.backticks(&mut word, depth)?,
                '(' | ')' | '\r' | '\0' => return Err(Unclear),
                // A comment, after a line continuation.
                '#' if word == Word::default() => return Err(Unclear),
                '*' | '?' | '[' | '{' | '~' => {
                    word.changes = true;
                    word.text.push(c);
                }
                c => word.text.push(c),
            }
        }
        // A brace on its own is a keyword.
        if word.text == "{" && !word.quoted {
            return Err(Unclear);
        }
        Ok(word)
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Unclear> {
        word.quoted = true;
        loop {
            match self.chars.next() {
                None => return Err(Unclear),
                Some('\'') => return Ok(()),
                Some(c) => word.text.push(c),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word, depth: usize) -> Result<(), Unclear> {
        word.quoted = true;
        loop {
            match self.chars.next() {
                None => return Err(Unclear),
                Some('"') => return Ok(()),
                Some('$') => self.dollar(word, depth)?,
                Some('`') => self.backticks(word, depth)?,
                Some('\\') => match self.chars.next() {
                    None => return Err(Unclear),
                    Some('\n') => {}
                    Some(c @ ('"' | '\\' | '$' | '`')) => word.text.push(c),
                    Some(c) => word.text.extend(['\\', c]),
                },
                Some(c) => word.text.push(c),
            }
        }
    }

    /// Reads the text after `$`: a variable, or commands in brackets. Arithmetic and `${…}` are rejected, because they
    /// can run commands in many ways.
    fn dollar(&mut self, word: &mut Word, depth: usize) -> Result<(), Unclear> {
        word.changes = true;
        word.text.push('$');
        match self.chars.peek().copied() {
            Some('(') => {
                self.chars.next();
                if self.chars.peek() == Some(&'(') {
                    return Err(Unclear);
                }
                self.list(depth + 1, Some(')'))
            }
            // After a line continuation, any of these could follow.
            Some('{' | '[' | '\'' | '"' | '\\') => Err(Unclear),
            _ => Ok(()),
        }
    }

    fn backticks(&mut self, word: &mut Word, depth: usize) -> Result<(), Unclear> {
        word.changes = true;
        let mut inner = String::new();
        loop {
            match self.chars.next() {
                None | Some('\\') => return Err(Unclear),
                Some('`') => break,
                Some(c) => inner.push(c),
            }
        }
        let mut reader = Reader { chars: inner.chars().peekable(), out: Vec::new() };
        reader.list(depth + 1, None)?;
        self.out.append(&mut reader.out);
        Ok(())
    }
}
