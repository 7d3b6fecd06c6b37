//! Reads values of a git configuration file, without git.

/// A setting of a git configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSetting {
    /// In lower case.
    pub section: String,
    /// As it is spelled.
    pub subsection: Option<String>,
    /// In lower case.
    pub key: String,
    /// `None` for a key without a value, which means `true`.
    pub value: Option<String>,
}

/// All settings of a git configuration file, in order. Included files are not read.
///
/// The grammar is git's. Git refuses a file with a line that it cannot read; here only the line is skipped.
pub fn config_settings(text: &str) -> Vec<ConfigSetting> {
    // Git reads a line break of Windows as a plain one, and skips a byte order mark.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut reader = ConfigReader { rest: &text };
    let mut settings = Vec::new();
    let (mut section, mut subsection) = (String::new(), None);
    while let Some(first) = reader.rest.chars().next() {
        match first {
            '#' | ';' => reader.skip_line(),
            '[' => match reader.read_header() {
                Some(header) => (section, subsection) = header,
                None => reader.skip_line(),
            },
            first if first.is_ascii_alphabetic() => match reader.read_setting() {
                Some((key, value)) => settings.push(ConfigSetting {
                    section: section.clone(),
                    subsection: subsection.clone(),
                    key,
                    value,
                }),
                None => reader.skip_line(),
            },
            first if first.is_whitespace() => reader.rest = &reader.rest[first.len_utf8()..],
            _ => reader.skip_line(),
        }
    }
    settings
}

/// The values of a key in a git configuration, in order. `section` and `key` are in lower case; sections with a quoted
/// subsection are included. Included files are not read.
///
/// ```
/// use repertoire_text::repository::configured_values;
///
/// let text = "[core]\n\thooksPath = .hooks # ours\n";
/// assert_eq!(configured_values(text, "core", "hookspath"), [".hooks"]);
/// ```
pub fn configured_values(text: &str, section: &str, key: &str) -> Vec<String> {
    let named = config_settings(text).into_iter();
    let named = named.filter(|setting| setting.section == section && setting.key == key);
    named.filter_map(|setting| setting.value).collect()
}

struct ConfigReader<'a> {
    rest: &'a str,
}

impl ConfigReader<'_> {
    fn skip_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }

    fn take_char(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\u{b}', '\u{c}']);
    }

    /// Reads `[section]`, `[section.subsection]` or `[section "subsection"]`.
    fn read_header(&mut self) -> Option<(String, Option<String>)> {
        self.take_char()?;
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'))?;
        let (name, rest) = self.rest.split_at(end);
        let name = name.to_ascii_lowercase();
        self.rest = rest;
        if let Some(rest) = self.rest.strip_prefix(']') {
            self.rest = rest;
            return Some(match name.split_once('.') {
                Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                None => (name, None),
            });
        }
        self.skip_blanks();
        self.rest = self.rest.strip_prefix('"')?;
        let mut subsection = String::new();
        loop {
            match self.take_char()? {
                '"' => break,
                '\n' => return None,
                '\\' => subsection.push(self.take_char().filter(|c| *c != '\n')?),
                c => subsection.push(c),
            }
        }
        self.rest = self.rest.strip_prefix(']')?;
        Some((name, Some(subsection)))
    }

    fn read_setting(&mut self) -> Option<(String, Option<String>)> {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let (key, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let key = key.to_ascii_lowercase();
        self.rest = rest;
        self.skip_blanks();
        if self.rest.is_empty() || self.rest.starts_with('\n') {
            return Some((key, None));
        }
        self.rest = self.rest.strip_prefix('=')?;
        Some((key, Some(self.read_value()?)))
    }

    /// Reads a value up to the end of its line, which a backslash continues.
    fn read_value(&mut self) -> Option<String> {
        let mut value = String::new();
        // Blanks at the end do not count unless they are quoted.
        let mut kept = 0;
        let mut is_quoted = false;
        self.skip_blanks();
        loop {
            match self.take_char() {
                None | Some('\n') if is_quoted => return None,
                None | Some('\n') => break,
                Some('"') => is_quoted = !is_quoted,
                Some('#' | ';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some('\\') => match self.take_char()? {
                    '\n' => continue,
                    't' => value.push('\t'),
                    'n' => value.push('\n'),
                    'b' => value.push('\u{8}'),
                    c @ ('\\' | '"') => value.push(c),
                    _ => return None,
                },
                Some(c) if c.is_ascii_whitespace() && !is_quoted => {
                    value.push(c);
                    continue;
                }
                Some(c) => value.push(c),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_git_writes_them() {
        let text = "[user]\n\tname = x\n[safe]\n\tdirectory = /a # why\n\tDirectory = \"/b c\"\n[Safe]\ndirectory=*\n[other]\ndirectory=/no\n";
        assert_eq!(configured_values(text, "safe", "directory"), ["/a", "/b c", "*"]);
    }

    #[test]
    fn sections_with_a_name_and_settings_behind_a_header_count() {
        let text =
            "[includeIf \"gitdir:~/x/\"]\n\tpath = a\n[includeIf.y] path = b\n[include]\npath=c\n";
        assert_eq!(configured_values(text, "includeif", "path"), ["a", "b"]);
        assert_eq!(configured_values(text, "include", "path"), ["c"]);
    }

    #[test]
    fn brackets_in_a_name_continued_lines_and_broken_lines_hide_nothing() {
        let text = "\u{feff}[includeIf \"gitdir:a]b\\\"\"]\r\n path = one\r\n[core \n] ?\n[Include]\n\
                    path = two\\\n/three ; why\n path = \"a # b \" c  \n path\n = x\n path = \\q\n path=last";
        let settings = config_settings(text);
        let values: Vec<_> = settings.iter().map(|setting| setting.value.as_deref()).collect();
        assert_eq!(values, [Some("one"), Some("two/three"), Some("a # b  c"), None, Some("last")]);
        assert_eq!(settings[0].subsection.as_deref(), Some("gitdir:a]b\""));
        assert!(settings[1..].iter().all(|setting| setting.section == "include"));
    }
}
