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
pub(super) struct ShellCommands {
    simple: Vec<SimpleCommand>,
    /// True if everything was understood.
    understood: bool,
    /// True if the text is too long to be analysed. Every rule that denies commands then matches.
    too_long: bool,
}

/// A command without operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    words: Vec<ShellWord>,
    /// True if the command reads from or writes to a file.
    redirected: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShellWord {
    text: String,
    /// True if the shell expands the word: it contains a variable, a pattern or a home folder.
    changes: bool,
    quoted: bool,
}

impl ShellCommands {
    /// Returns true if there is a command, everything is understood, and all commands fit.
    pub(super) fn all_plain(&self, fits: &dyn Fn(&SimpleCommand) -> bool) -> bool {
        self.understood
            && !self.simple.is_empty()
            && self.simple.iter().all(|simple| simple.is_plain() && fits(simple))
    }

    /// The words of all commands.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.simple.iter().flat_map(|simple| &simple.words).map(|word| word.text.as_str())
    }

    /// Returns true if any command fits, including those started by another command: `sudo rm`, `sh -c 'rm'`.
    pub(super) fn any_hidden(&self, fits: &dyn Fn(&SimpleCommand) -> bool) -> bool {
        self.any_hidden_at(fits, 0)
    }

    fn any_hidden_at(&self, fits: &dyn Fn(&SimpleCommand) -> bool, depth: usize) -> bool {
        self.too_long
            || self.simple.iter().any(|simple| {
                simple.any_started(fits)
                    || depth < DEPTH_MAX
                        && simple.starts_others()
                        && simple
                            .words
                            .iter()
                            .filter(|word| word.text.contains(is_syntax))
                            .any(|word| split_commands(&word.text).any_hidden_at(fits, depth + 1))
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

impl SimpleCommand {
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
    fn any_started(&self, fits: &dyn Fn(&SimpleCommand) -> bool) -> bool {
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
                *first = ShellWord { text: name, ..ShellWord::default() };
            }
            SimpleCommand { words, redirected: self.redirected }
        };
        let fits_so_far = |simple: &SimpleCommand| {
            fits(simple) || simple.without_git_options().is_some_and(|simple| fits(&simple))
        };
        fits(self) || (start..ends).any(|at| fits_so_far(&from(at)))
    }

    /// Drops git's global options: `git -C x push` becomes `git push`. Returns `None` if there are none.
    fn without_git_options(&self) -> Option<SimpleCommand> {
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
        Some(SimpleCommand { words, redirected: self.redirected })
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
pub(super) fn split_commands(text: &str) -> ShellCommands {
    if text.len() > COMMAND_BYTES_MAX {
        return ShellCommands { too_long: true, ..ShellCommands::default() };
    }
    let mut reader = ShellReader { chars: text.chars().peekable(), out: Vec::new() };
    match reader.read_list(0, None) {
        Ok(()) => ShellCommands { simple: reader.out, understood: true, too_long: false },
        Err(UnsupportedSyntax) => {
            ShellCommands { simple: guess_commands(text), understood: false, too_long: false }
        }
    }
}

/// Lists everything that might be a command in a text that was not understood.
fn guess_commands(text: &str) -> Vec<SimpleCommand> {
    let pieces = text.split(|c: char| ";&|\n\r()`{}<>$\"'".contains(c));
    let mut found: Vec<SimpleCommand> = pieces.map(crude_command).collect();
    // Quotes within a word hide it from the split above, so repeat it without quotes.
    let bare: String = text.chars().filter(|c| !"\"'\\".contains(*c)).collect();
    found.extend(bare.split(|c: char| ";&|\n\r()`{}<>$".contains(c)).map(crude_command));
    found.retain(|simple| !simple.words.is_empty());
    found
}

fn crude_command(piece: &str) -> SimpleCommand {
    let words = piece.split_whitespace();
    let words =
        words.map(|word| ShellWord { text: word.replace('\\', ""), ..ShellWord::default() });
    SimpleCommand { words: words.collect(), redirected: false }
}

/// Syntax that this reader does not understand.
struct UnsupportedSyntax;

struct ShellReader<'a> {
    chars: Peekable<Chars<'a>>,
    out: Vec<SimpleCommand>,
}

impl ShellReader<'_> {
    /// Reads commands until the end, or until `close`.
    fn read_list(&mut self, depth: usize, close: Option<char>) -> Result<(), UnsupportedSyntax> {
        if depth > DEPTH_MAX {
            return Err(UnsupportedSyntax);
        }
        let mut simple = SimpleCommand::default();
        loop {
            match self.chars.peek().copied() {
                None if close.is_none() => return self.end_command(simple),
                None => return Err(UnsupportedSyntax),
                Some(c) if Some(c) == close => {
                    self.chars.next();
                    return self.end_command(simple);
                }
                Some(' ' | '\t') => {
                    self.chars.next();
                }
                Some(';' | '&' | '|' | '\n') => {
                    self.read_operator()?;
                    self.end_command(std::mem::take(&mut simple))?;
                }
                Some('<' | '>') => simple.redirected |= self.read_redirection(depth)?,
                Some('(' | ')' | '#' | '\r' | '\0') => return Err(UnsupportedSyntax),
                Some(_) => {
                    let word = self.read_word(depth, close)?;
                    let descriptor = !word.quoted && word.text.chars().all(|c| c.is_ascii_digit());
                    let redirects = matches!(self.chars.peek(), Some('<' | '>'));
                    if !(descriptor && redirects && !word.text.is_empty()) {
                        simple.words.push(word);
                    }
                }
            }
        }
    }

    fn end_command(&mut self, simple: SimpleCommand) -> Result<(), UnsupportedSyntax> {
        if simple.words.is_empty() && simple.redirected {
            return Err(UnsupportedSyntax);
        }
        if !simple.words.is_empty() {
            self.out.push(simple);
        }
        Ok(())
    }

    fn read_operator(&mut self) -> Result<(), UnsupportedSyntax> {
        let first = self.chars.next();
        match (first, self.chars.peek()) {
            (Some('&'), Some('>')) => return Err(UnsupportedSyntax),
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
    fn read_redirection(&mut self, depth: usize) -> Result<bool, UnsupportedSyntax> {
        let first = self.chars.next();
        let second = self.chars.peek().copied();
        match (first, second) {
            // Here-documents and process substitution are not supported.
            (Some('<'), Some('<')) | (_, Some('(')) => return Err(UnsupportedSyntax),
            (_, Some('>' | '|' | '&')) => {
                self.chars.next();
            }
            _ => {}
        }
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let target = self.read_word(depth, None)?;
        let descriptor = second == Some('&')
            && (target.text == "-" || target.text.chars().all(|c| c.is_ascii_digit()));
        let harmless = !target.changes
            && !target.text.is_empty()
            && (descriptor || target.text == "/dev/null");
        Ok(!harmless)
    }

    fn read_word(
        &mut self,
        depth: usize,
        close: Option<char>,
    ) -> Result<ShellWord, UnsupportedSyntax> {
        let mut word = ShellWord::default();
        while let Some(c) = self.chars.peek().copied() {
            if " \t\n;&|<>".contains(c) || Some(c) == close {
                break;
            }
            self.chars.next();
            match c {
                '\'' => self.read_single_quoted(&mut word)?,
                '"' => self.read_double_quoted(&mut word, depth)?,
                '\\' => match self.chars.next() {
                    None => return Err(UnsupportedSyntax),
                    Some('\n') => {}
                    Some(c) => {
                        word.quoted = true;
                        word.text.push(c);
                    }
                },
                '$' => self.read_dollar(&mut word, depth)?,
                '`' => self.read_backticks(&mut word, depth)?,
                '(' | ')' | '\r' | '\0' => return Err(UnsupportedSyntax),
                // A comment, after a line continuation.
                '#' if word == ShellWord::default() => return Err(UnsupportedSyntax),
                '*' | '?' | '[' | '{' | '~' => {
                    word.changes = true;
                    word.text.push(c);
                }
                c => word.text.push(c),
            }
        }
        // A brace on its own is a keyword.
        if word.text == "{" && !word.quoted {
            return Err(UnsupportedSyntax);
        }
        Ok(word)
    }

    fn read_single_quoted(&mut self, word: &mut ShellWord) -> Result<(), UnsupportedSyntax> {
        word.quoted = true;
        loop {
            match self.chars.next() {
                None => return Err(UnsupportedSyntax),
                Some('\'') => return Ok(()),
                Some(c) => word.text.push(c),
            }
        }
    }

    fn read_double_quoted(
        &mut self,
        word: &mut ShellWord,
        depth: usize,
    ) -> Result<(), UnsupportedSyntax> {
        word.quoted = true;
        loop {
            match self.chars.next() {
                None => return Err(UnsupportedSyntax),
                Some('"') => return Ok(()),
                Some('$') => self.read_dollar(word, depth)?,
                Some('`') => self.read_backticks(word, depth)?,
                Some('\\') => match self.chars.next() {
                    None => return Err(UnsupportedSyntax),
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
    fn read_dollar(&mut self, word: &mut ShellWord, depth: usize) -> Result<(), UnsupportedSyntax> {
        word.changes = true;
        word.text.push('$');
        match self.chars.peek().copied() {
            Some('(') => {
                self.chars.next();
                if self.chars.peek() == Some(&'(') {
                    return Err(UnsupportedSyntax);
                }
                self.read_list(depth + 1, Some(')'))
            }
            // After a line continuation, any of these could follow.
            Some('{' | '[' | '\'' | '"' | '\\') => Err(UnsupportedSyntax),
            _ => Ok(()),
        }
    }

    fn read_backticks(
        &mut self,
        word: &mut ShellWord,
        depth: usize,
    ) -> Result<(), UnsupportedSyntax> {
        word.changes = true;
        let mut inner = String::new();
        loop {
            match self.chars.next() {
                None | Some('\\') => return Err(UnsupportedSyntax),
                Some('`') => break,
                Some(c) => inner.push(c),
            }
        }
        let mut reader = ShellReader { chars: inner.chars().peekable(), out: Vec::new() };
        reader.read_list(depth + 1, None)?;
        self.out.append(&mut reader.out);
        Ok(())
    }
}
