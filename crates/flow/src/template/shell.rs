//! Puts values into a shell command, so that each is one word, whatever it contains.
//!
//! How a value is escaped depends on where it stands: outside of quotes, in single quotes or in double quotes. In places
//! whose rules are not this simple (a comment, backticks, a here-document, arithmetic), a value is refused instead of
//! escaped by guess.

/// Marks the begin of a value in a rendered command.
pub(super) const VALUE_BEGIN: char = '\u{1}';
/// Marks the end of a value.
pub(super) const VALUE_END: char = '\u{2}';

/// The quotes that a character stands in.
#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// Returns the value if a rendered command with marked values consists of one value.
pub(super) fn only_value(marked: &str) -> Option<&str> {
    let inner = marked.trim().strip_prefix(VALUE_BEGIN)?.strip_suffix(VALUE_END)?;
    (!inner.contains([VALUE_BEGIN, VALUE_END])).then_some(inner)
}

/// Escapes the marked values of a rendered command.
///
/// # Errors
///
/// If a value stands where it cannot be escaped.
pub(super) fn quote_values(marked: &str) -> Result<String, String> {
    let mut quoted = String::with_capacity(marked.len());
    let mut place = ShellPlace::new();
    let mut rest = marked;
    while let Some(char) = rest.chars().next() {
        rest = if char == VALUE_BEGIN {
            let (value, after) = rest[char.len_utf8()..]
                .split_once(VALUE_END)
                .ok_or("a value of the command has no end")?;
            place.push_value(&mut quoted, value)?;
            after
        } else {
            place.pass(rest, char);
            quoted.push(char);
            &rest[char.len_utf8()..]
        };
    }
    Ok(quoted)
}

/// The place in a command that was read so far.
struct ShellPlace {
    quotes: Quotes,
    /// The open brackets outside of quotes, since the command or the innermost `"$(` began.
    brackets: usize,
    /// The open brackets around each `"$(` that is open.
    outer: Vec<usize>,
    in_comment: bool,
    /// True if the next character has no meaning, because a `\` is before it.
    is_escaped: bool,
    /// The construct that began before and whose rules for quotes are not followed here.
    unclear: Option<&'static str>,
    /// The character before; `None` at the start. An escaped line break is none.
    last: Option<char>,
    /// The character before the `\` that was read last.
    before_escape: Option<char>,
}

impl ShellPlace {
    fn new() -> Self {
        ShellPlace {
            quotes: Quotes::None,
            brackets: 0,
            outer: Vec::new(),
            in_comment: false,
            is_escaped: false,
            unclear: None,
            last: None,
            before_escape: None,
        }
    }

    fn push_value(&mut self, quoted: &mut String, value: &str) -> Result<(), String> {
        let place = match self.unclear {
            _ if self.in_comment => Some("in a comment".to_owned()),
            Some(construct) => Some(format!("after {construct}")),
            None if self.is_escaped => Some("directly after `\\`".to_owned()),
            None if self.last == Some('$') && self.quotes != Quotes::Single => {
                Some("directly after `$`".to_owned())
            }
            None => None,
        };
        if let Some(place) = place {
            return Err(format!(
                "a value cannot stand {place} in a command, because it cannot be quoted there; make it a word of its own"
            ));
        }
        match self.quotes {
            Quotes::None => {
                quoted.push('\'');
                quoted.push_str(&value.replace('\'', r"'\''"));
                quoted.push('\'');
            }
            Quotes::Single => quoted.push_str(&value.replace('\'', r"'\''")),
            Quotes::Double => {
                for char in value.chars() {
                    if matches!(char, '\\' | '"' | '$' | '`') {
                        quoted.push('\\');
                    }
                    quoted.push(char);
                }
            }
        }
        self.last = Some(VALUE_END);
        Ok(())
    }

    /// Reads one character; `rest` begins with it.
    fn pass(&mut self, rest: &str, char: char) {
        let last = self.last.replace(char);
        if self.in_comment {
            self.in_comment = char != '\n';
            return;
        }
        if std::mem::take(&mut self.is_escaped) {
            // The shell removes an escaped line break, so that a word can still begin.
            self.last = if char == '\n' { self.before_escape } else { Some(VALUE_END) };
            return;
        }
        self.unclear = self.unclear.or(unclear_construct(rest, self.quotes, last));
        match (self.quotes, char) {
            (Quotes::None | Quotes::Double, '\\') => {
                self.is_escaped = true;
                self.before_escape = last;
            }
            (Quotes::None, '\'') => self.quotes = Quotes::Single,
            (Quotes::None, '"') => self.quotes = Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => self.quotes = Quotes::None,
            (Quotes::None, '#') => self.in_comment = last.is_none_or(ends_word),
            (Quotes::None, '(') => self.brackets += 1,
            (Quotes::None, ')') if self.brackets > 0 => self.brackets -= 1,
            (Quotes::None, ')') => {
                if let Some(brackets) = self.outer.pop() {
                    (self.brackets, self.quotes) = (brackets, Quotes::Double);
                }
            }
            (Quotes::Double, '(') if last == Some('$') => {
                self.outer.push(std::mem::take(&mut self.brackets));
                self.quotes = Quotes::None;
            }
            _ => {}
        }
    }
}

/// Returns true if a `#` after this character begins a comment.
fn ends_word(last: char) -> bool {
    last.is_whitespace() || ";&|()".contains(last)
}

/// The name of a construct that begins here and has rules of its own for quotes.
fn unclear_construct(rest: &str, quotes: Quotes, last: Option<char>) -> Option<&'static str> {
    let begins = |text: &str| rest.starts_with(text);
    match quotes {
        Quotes::Single => None,
        _ if begins("`") => Some("a backtick"),
        _ if begins("$((") || begins("$[") => Some("arithmetic"),
        // The brackets of its patterns have no partner.
        Quotes::Double if begins("$(") && has_case(rest) => Some("`$(` with `case`"),
        Quotes::Double if begins("$$") => Some("`$$`"),
        Quotes::Double if begins("${") && !is_plain_expansion(rest) => Some("`${` in quotes"),
        Quotes::None if begins("$'") => Some("`$'`"),
        Quotes::None if begins("((") => Some("arithmetic"),
        // Operators such as `-gt` evaluate their words as arithmetic, quoted or not.
        Quotes::None if begins("[[") => Some("`[[`"),
        Quotes::None if begins("let ") && last.is_none_or(ends_word) => Some("`let`"),
        Quotes::None if begins("<<") && !begins("<<<") && last != Some('<') => Some("`<<`"),
        Quotes::None | Quotes::Double => None,
    }
}

/// Returns true if the word `case` is in a text, other than in a value.
fn has_case(text: &str) -> bool {
    let outside = text.split(VALUE_BEGIN).enumerate().map(|(number, part)| match number {
        0 => part,
        _ => part.split_once(VALUE_END).map_or("", |(_, after)| after),
    });
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    outside.flat_map(|part| part.split(|c| !is_word(c))).any(|word| word == "case")
}

/// Returns true for `${NAME}`.
fn is_plain_expansion(rest: &str) -> bool {
    let name = rest[2..].split_once('}').map(|(name, _)| name);
    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Values that do something if a shell reads them as anything but a word.
    const HOSTILE: &[&str] = &[
        "x; true",
        "x' ; echo planted '",
        "x\" ; echo planted \"",
        "$(echo planted)",
        "`echo planted`",
        "a\necho planted",
        "back\\",
        "*",
        "~",
        "-x y",
        "",
        "#",
        "it's \"$HOME\"",
        ") echo planted (",
    ];

    /// Checks that a shell sees each value as it is, with `@` for the value, beside `expected`.
    #[track_caller]
    fn check(command: &str, expected: &str) {
        for value in HOSTILE {
            let marked = command.replace('@', &format!("{VALUE_BEGIN}{value}{VALUE_END}"));
            let quoted = quote_values(&marked).unwrap();
            let mut bash = Command::new("bash");
            let ran = bash.args(["--norc", "--noprofile", "-c", &quoted]).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert_eq!(said, expected.replace('@', value), "{quoted}");
        }
    }

    #[test]
    fn a_value_is_one_word_wherever_it_stands() {
        check("printf '<%s>' @ b", "<@><b>");
        check("printf '<%s>' a-@-b", "<a-@-b>");
        check("printf '<%s>' \"a @ b\" c", "<a @ b><c>");
        check("printf '<%s>' 'a @ b' c", "<a @ b><c>");
        check("printf '<%s>' \\' @", "<'><@>");
        check("printf '<%s>' \"\\\"@\\\"\"", "<\"@\">");
        check(
            "(printf '<%s>' @); printf '<%s>' $(echo c) \"$(printf '%s' @)x\" @",
            "<@><c><@x><@>",
        );
        check("printf '<%s>' \"$(printf '(%s)' \"@\")\" # a comment\nprintf '<%s>' @", "<(@)><@>");
        check("X=y; printf '<%s>' \"${X}@\" a#@", "<y@><a#@>");
        check("cat <<< @ | tr -d '\\n' > /dev/null; printf '<%s>' @", "<@>");
    }

    #[test]
    fn a_value_is_refused_where_quotes_mean_something_else() {
        for command in [
            "true # @",
            "echo `echo @`",
            "cat <<EOF\n@\nEOF",
            "echo $((@))",
            "((@))",
            "echo $@",
            "echo \"$@\"",
            "echo \\@",
            "echo \"\\@\"",
            "echo $'@'",
            "echo \"${X:-@}\"",
            "echo \"$(case x in x) echo @;; esac)\"",
            "echo a \\\n# @",
            "[[ @ -gt 3 ]]",
            "let @",
        ] {
            let marked = command.replace('@', &format!("{VALUE_BEGIN}x{VALUE_END}"));
            assert!(quote_values(&marked).is_err(), "{command}");
        }
    }

    #[test]
    fn a_value_with_the_word_case_is_no_case() {
        let marked = format!("test -f \"$(basename {VALUE_BEGIN}x case y{VALUE_END})\"");
        assert!(quote_values(&marked).is_ok());
        assert!(!has_case("testcase lowercase") && has_case("x; case y"));
    }

    #[test]
    fn a_command_that_is_one_value_is_told_from_others() {
        let value = |text: &str| format!("{VALUE_BEGIN}{text}{VALUE_END}");
        assert_eq!(only_value(&format!(" {}\n", value("make test"))), Some("make test"));
        assert_eq!(only_value(&format!("{} {}", value("make"), value("test"))), None);
        assert_eq!(only_value(&format!("make {}", value("test"))), None);
    }
}
