//! Validates names that become part of URLs. They come from events and users, so names that could
//! lead to another URL are refused.

use repertoire_text::invisible;

use super::error::ClientError;
use super::limits::{BRANCH_BYTES_MAX, LABEL_CHARS_MAX, LOGIN_BYTES_MAX, REPOSITORY_BYTES_MAX};

/// Validates a login, such as `ada`, `dependabot[bot]` or `ada_company`.
pub fn login(name: &str) -> Result<&str, ClientError> {
    let plain = name.strip_suffix("[bot]").unwrap_or(name);
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let long = name.len() > LOGIN_BYTES_MAX;
    if !plain.is_empty() && !long && plain.bytes().all(fine) {
        return Ok(name);
    }
    Err(bad_name("an account", name))
}

/// Validates the name of a repository, without its owner.
pub fn repository(name: &str) -> Result<&str, ClientError> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let only_dots = name.bytes().all(|byte| byte == b'.');
    if !only_dots && name.len() <= REPOSITORY_BYTES_MAX && name.bytes().all(fine) {
        return Ok(name);
    }
    Err(bad_name("a repository", name))
}

/// Validates the name of a branch, by git's rules.
pub fn check_branch(name: &str) -> Result<&str, ClientError> {
    let is_valid = !name.starts_with('-')
        && name != "@"
        && name.len() <= BRANCH_BYTES_MAX
        && !name.contains("..")
        && !name.contains("@{")
        && name.chars().all(is_branch_char)
        && name.split('/').all(is_branch_component);
    if is_valid {
        return Ok(name);
    }
    Err(bad_name("a branch", name))
}

fn is_branch_char(c: char) -> bool {
    !c.is_control() && !c.is_whitespace() && !"~^:?*[\\".contains(c) && !invisible::is_invisible(c)
}

fn is_branch_component(part: &str) -> bool {
    !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.ends_with(".lock")
}

/// Validates the name of a label. `..` in a URL would lead to the list of labels, and removing that
/// removes all of them.
pub fn label(name: &str) -> Result<&str, ClientError> {
    let long = name.chars().count() > LABEL_CHARS_MAX;
    let odd = name.trim() != name || name.is_empty() || matches!(name, "." | "..");
    let hidden = name.contains(['\n', '\t', '\u{feff}']) || !invisible::is_clean(name);
    if long || odd || hidden || name.contains(',') {
        return Err(bad_name("a label", name));
    }
    Ok(name)
}

/// Validates the full hash of a commit.
pub fn check_sha(name: &str) -> Result<&str, ClientError> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if matches!(name.len(), 40 | 64) && name.bytes().all(hex) {
        return Ok(name);
    }
    Err(bad_name("a commit", name))
}

fn bad_name(what: &'static str, name: &str) -> ClientError {
    let name = repertoire_text::terminal::printable_line(name).chars().take(100).collect();
    ClientError::BadName { what, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = for<'a> fn(&'a str) -> Result<&'a str, ClientError>;

    #[track_caller]
    fn check(of: Check, fine: &[&str], wrong: &[&str]) {
        for name in fine {
            assert!(of(name).is_ok(), "{name}");
        }
        for name in wrong {
            assert!(of(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn accounts_have_githubs_alphabet() {
        let wrong = ["", "..", "a/b", "a b", "[bot]", "ada%2e", "ada\n", "ad\u{200b}a", "a?b", "ä"];
        check(login, &["ada", "a-b", "ada_corp", "dependabot[bot]"], &wrong);
        assert!(login(&"a".repeat(101)).is_err());
    }

    #[test]
    fn repositories_cannot_lead_elsewhere() {
        check(repository, &["repo", ".github", "a.b_c-d"], &["", ".", "..", "../x", "a/b", "a#b"]);
    }

    #[test]
    fn branches_are_what_git_takes() {
        let fine = ["main", "bot/issue-3", "feature/ä", "a#b", "v1.0"];
        let wrong = [
            "",
            "-f",
            "../x",
            "a..b",
            "a//b",
            "/a",
            "a/",
            ".a",
            "a/.b",
            "a.lock",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "@",
            "a@{1}",
            "a\u{7f}",
            "a\u{202e}b",
            "a.",
        ];
        check(check_branch, &fine, &wrong);
    }

    #[test]
    fn no_label_stands_for_all_of_them() {
        let fine = ["bug", "agent:working", "good first issue", "a/b", "priority-1", "💥"];
        check(label, &fine, &["", ".", "..", " a", "a,b", "a\nb", "a\u{200b}b"]);
        assert!(label(&"x".repeat(51)).is_err());
    }

    #[test]
    fn commits_are_named_in_full() {
        check(
            check_sha,
            &[&"a1".repeat(20), &"0f".repeat(32)],
            &["", "abc", &"A1".repeat(20), "main"],
        );
    }
}
