//! Reads values of a git configuration file, without git.

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
    let mut is_inside = false;
    let mut values = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut setting = line;
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split(']').next().unwrap_or_default();
            let name = name.split([' ', '\t', '"', '.']).next().unwrap_or_default();
            is_inside = name.eq_ignore_ascii_case(section);
            // A setting may follow the header on the same line.
            setting = header.split_once(']').map_or("", |(_, rest)| rest);
        }
        let Some((name, value)) = setting.split_once('=') else { continue };
        if is_inside && name.trim().eq_ignore_ascii_case(key) {
            values.push(unquote_value(value));
        }
    }
    values
}

/// Removes quotation marks and a comment from a value.
fn unquote_value(value: &str) -> String {
    let mut out = String::new();
    let mut is_quoted = false;
    let mut chars = value.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => out.extend(chars.next()),
            '#' | ';' if !is_quoted => break,
            c => out.push(c),
        }
    }
    out.trim_end().to_owned()
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
}
