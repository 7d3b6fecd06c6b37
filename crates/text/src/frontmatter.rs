//! Finds the frontmatter of a Markdown file: the lines between a first line `---` and the next line that is only `---`.
//! A `---` inside a value or with other text on its line does not close it.

use memchr::memmem;

use crate::source::Span;

/// The byte order mark that some editors write.
pub const BOM: &str = "\u{feff}";

/// The spans of a file's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontmatterParts {
    /// The YAML between the two `---` lines, with its final line break.
    pub yaml: Span,
    /// Everything after the closing line.
    pub body: Span,
}

/// The reason why a file has no usable frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// The first line is not `---`.
    #[error("the file does not start with a `---` line")]
    Missing,
    /// There is no closing line.
    #[error("the frontmatter is never closed with a `---` line")]
    NotClosed,
    /// The closing line comes after more bytes than allowed.
    #[error("the frontmatter has more than {limit} bytes")]
    TooLarge { limit: usize },
}

/// Splits a text into frontmatter and body.
///
/// ```
/// use repertoire_text::frontmatter::split;
/// let text = "---\nrule: a --- b\n---\nHello\n";
/// let parts = split(text, 1024).unwrap();
/// assert_eq!(parts.yaml.slice(text), "rule: a --- b\n");
/// assert_eq!(parts.body.slice(text), "Hello\n");
/// ```
pub fn split(text: &str, bytes_max: usize) -> Result<FrontmatterParts, FrontmatterError> {
    let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let yaml_start = fence_line_end(&text[start..]).ok_or(FrontmatterError::Missing)? + start;
    let rest = &text[yaml_start..];
    let Some((yaml_len, body_start)) = closing_line(rest, bytes_max) else {
        let over = rest.len() > bytes_max;
        return Err(if over {
            FrontmatterError::TooLarge { limit: bytes_max }
        } else {
            FrontmatterError::NotClosed
        });
    };
    Ok(FrontmatterParts {
        yaml: Span::new(yaml_start, yaml_start + yaml_len),
        body: Span::new(yaml_start + body_start, text.len()),
    })
}

/// The maximum length of a `---` line with its trailing blanks. Longer lines are text.
const FENCE_BYTES_MAX: usize = 1024;

/// The length of a `---` line with its line break, if the text starts with one.
fn fence_line_end(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("---")?.as_bytes();
    let near = &rest[..rest.len().min(FENCE_BYTES_MAX)];
    let line_len = match memchr::memchr(b'\n', near) {
        Some(at) => at,
        None if near.len() == rest.len() => near.len(),
        None => return None,
    };
    let blank = near[..line_len].iter().all(|byte| b" \t\r".contains(byte));
    blank.then(|| (3 + line_len + 1).min(text.len()))
}

/// The offsets of the closing line's start, at most `bytes_max`, and of the text after it.
fn closing_line(text: &str, bytes_max: usize) -> Option<(usize, usize)> {
    if let Some(end) = fence_line_end(text) {
        return Some((0, end));
    }
    // Three more bytes, so that the closing line may start right at the limit.
    let near = &text.as_bytes()[..text.len().min(bytes_max.saturating_add(3))];
    memmem::find_iter(near, b"\n---").find_map(|at| {
        let line_start = at + 1;
        fence_line_end(&text[line_start..]).map(|len| (line_start, line_start + len))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<(&str, &str), FrontmatterError>) {
        let found = split(text, 64).map(|parts| (parts.yaml.slice(text), parts.body.slice(text)));
        assert_eq!(found, expect);
    }

    #[test]
    fn the_parts_are_found_whatever_the_line_ends() {
        check("---\na: 1\n---\nbody", Ok(("a: 1\n", "body")));
        check("---\r\na: 1\r\n---\r\nbody\r\n", Ok(("a: 1\r\n", "body\r\n")));
        check("--- \t\na: 1\n---  \nbody", Ok(("a: 1\n", "body")));
        check("---\na: 1\n---", Ok(("a: 1\n", "")));
        check("---\n---\n", Ok(("", "")));
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        check("\u{feff}---\na: 1\n---\nx", Ok(("a: 1\n", "x")));
    }

    #[test]
    fn dashes_inside_values_and_longer_rules_close_nothing() {
        check("---\na: x --- y\n---- \nb: 2\n---\nz", Ok(("a: x --- y\n---- \nb: 2\n", "z")));
        check("---\na: |\n  ---\n---\nz", Ok(("a: |\n  ---\n", "z")));
    }

    #[test]
    fn missing_unclosed_and_oversized_frontmatter_are_told_apart() {
        check("# Title\n", Err(FrontmatterError::Missing));
        check("", Err(FrontmatterError::Missing));
        check("---", Err(FrontmatterError::NotClosed));
        check("--- not a fence\n", Err(FrontmatterError::Missing));
        check("---\na: 1\n", Err(FrontmatterError::NotClosed));
        let long = format!("---\na: {}\n---\n", "x".repeat(80));
        check(&long, Err(FrontmatterError::TooLarge { limit: 64 }));
        let exactly = format!("---\na: {}\n---\n", "x".repeat(60));
        check(&exactly, Ok((&exactly[4..68], "")));
    }

    #[test]
    fn a_line_of_blanks_without_an_end_is_no_fence() {
        let blanks = " ".repeat(4000);
        check(&format!("---{blanks}\na: 1\n---\n"), Err(FrontmatterError::Missing));
        check(&format!("---\na: 1\n---{blanks}"), Err(FrontmatterError::TooLarge { limit: 64 }));
    }
}
