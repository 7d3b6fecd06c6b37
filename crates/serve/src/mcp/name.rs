//! The names under which skills are served. The extension allows `a` to `z`, digits and single
//! hyphens, at most 64 characters; skills with other names are served under the nearest valid one.

use repertoire_skill::name::NAME_CHARS_MAX;
use repertoire_skill::skill::ContentDigest;
use unicode_normalization::UnicodeNormalization as _;

/// Returns true if a skill may be served under this name.
pub(super) fn is_allowed(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(is_name_byte)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// The nearest valid name: derived from the name itself, from `next_best`, or, if neither has a
/// usable character, from a digest.
pub(super) fn correct_name(name: &str, next_best: &str) -> String {
    [name, next_best].into_iter().map(plain_name).find(|name| !name.is_empty()).unwrap_or_else(
        || {
            let digest =
                ContentDigest::hash_bytes(format!("{name}\n{next_best}").as_bytes()).to_string();
            format!("skill-{}", &digest["sha256:".len()..][..8])
        },
    )
}

/// Appends a number to a name that is already taken.
pub(super) fn number_name(name: &str, number: usize) -> String {
    let ending = format!("-{number}");
    let room = NAME_CHARS_MAX - ending.len();
    let start = name[..name.len().min(room)].trim_end_matches('-');
    format!("{start}{ending}")
}

fn plain_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.nfkd().flat_map(char::to_lowercase) {
        if out.len() == NAME_CHARS_MAX {
            break;
        }
        match c {
            'a'..='z' | '0'..='9' => out.push(c),
            // NFKD splits an `ö` into `o` and its dots, which are dropped.
            '\u{300}'..='\u{36f}' => {}
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    out.truncate(out.trim_end_matches('-').len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_corrected_name_is_allowed_and_an_allowed_one_stays() {
        let check = |name: &str, next_best: &str, expect: &str| {
            assert_eq!(correct_name(name, next_best), expect);
            assert!(is_allowed(expect), "{expect}");
        };
        check("pdf", "", "pdf");
        check("My Skill (v2)!", "", "my-skill-v2");
        check("--a__b--", "", "a-b");
        check("Größe", "", "gro-e");
        check("Café", "", "cafe");
        check("日本語", "japanese", "japanese");
        check("日本語", "語", "skill-d1576de9");
        check(&"x".repeat(200), "", &"x".repeat(64));
        check("../../etc/passwd", "", "etc-passwd");
        check("a\u{0}b\nc", "", "a-b-c");
    }

    #[test]
    fn a_numbered_name_stays_within_the_limit() {
        assert_eq!(number_name("pdf", 2), "pdf-2");
        let long = number_name(&"x".repeat(64), 10);
        assert!(is_allowed(&long) && long.ends_with("-10"), "{long}");
        assert_eq!(
            number_name(&format!("{}-y", "x".repeat(61)), 2),
            format!("{}-2", "x".repeat(61))
        );
    }
}
