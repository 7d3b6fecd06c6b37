//! The few cases where JavaScript strings and regexes differ from Rust's: white space, line ends, lengths in
//! UTF-16 units, `String.replace` templates and `path.join`.

use camino::Utf8PathBuf;

/// Returns true for what `\s` and `trim` treat as white space. Unlike in Rust, U+FEFF counts and U+0085 does
/// not.
pub(super) fn is_whitespace(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Returns true for what ends a line for `^`, `$` and `.`.
pub(super) fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Pads with spaces to a width in UTF-16 units.
pub(super) fn pad_end(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.encode_utf16().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Appends the replacement that `replace` puts in place of `matched`: in a template, `$$`, `$&`, `` $` `` and
/// `$'` stand for a dollar, the match, and the text before and after it. `$1` is literal, because there are
/// no groups.
pub(super) fn expand_template(
    template: &str,
    before: &str,
    matched: &str,
    after: &str,
    out: &mut String,
) {
    let mut rest = template;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let inserted = match rest.as_bytes().get(dollar + 1) {
            Some(b'$') => Some("$"),
            Some(b'&') => Some(matched),
            Some(b'`') => Some(before),
            Some(b'\'') => Some(after),
            _ => None,
        };
        out.push_str(inserted.unwrap_or("$"));
        rest = &rest[dollar + if inserted.is_some() { 2 } else { 1 }..];
    }
    out.push_str(rest);
}

/// Implements `path.join`: joins with slashes, then resolves `.`, `..` and empty parts without reading the
/// disk. A trailing slash is kept.
pub(super) fn path_join(parts: &[&str]) -> Utf8PathBuf {
    let joined =
        parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("/");
    let absolute = joined.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => drop(kept.pop()),
            ".." if absolute => {}
            part => kept.push(part),
        }
    }
    let root = if absolute { "/" } else { "" };
    let end = if joined.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    let path = format!("{root}{}{end}", kept.join("/"));
    Utf8PathBuf::from(if path.is_empty() { ".".to_owned() } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_expand_as_in_javascript() {
        #[track_caller]
        fn check(template: &str, expect: &str) {
            let mut out = String::new();
            expand_template(template, "<", "M", ">", &mut out);
            assert_eq!(out, expect);
        }
        check("a", "a");
        check("$& $$ $` $' $1 $<n> $", "M $ < > $1 $<n> $");
        check("$$& $é", "$& $é");
    }

    #[test]
    fn paths_join_as_in_node() {
        #[track_caller]
        fn check(parts: &[&str], expect: &str) {
            assert_eq!(path_join(parts), expect);
        }
        check(&["/p", ".agent/skills", "a", "SKILL.md"], "/p/.agent/skills/a/SKILL.md");
        check(&["/p/s", "../../x"], "/x");
        check(&["/p/s", "../../../x"], "/x");
        check(&["/p/s", "/abs//b/"], "/p/s/abs/b/");
        check(&["/p/s", "."], "/p/s");
        check(&["/", ".agent/skills"], "/.agent/skills");
        check(&["", "a"], "a");
        check(&["a", "../../b"], "../b");
        check(&["a", ".."], ".");
    }

    #[test]
    fn white_space_and_widths_are_javascripts() {
        assert!(is_whitespace('\u{feff}') && is_whitespace('\u{a0}') && is_whitespace('\u{2028}'));
        assert!(!is_whitespace('\u{85}') && !is_whitespace('\u{200b}'));
        assert_eq!(pad_end("🦀", 4), "🦀  ");
        assert_eq!(pad_end("longer", 4), "longer");
    }
}
