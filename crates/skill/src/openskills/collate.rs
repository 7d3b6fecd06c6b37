//! The sort order of names in a list: an approximation of `localeCompare` under the root locale.
//!
//! For ASCII it is exact: punctuation, then digits, then letters; case decides only between names that are
//! otherwise equal, lower case first. Accented letters sort next to their base letters, other symbols and
//! emoji before the digits, other scripts last. Within those groups the order follows code points; a closer
//! match would take ICU's tables.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// ASCII punctuation in the order of the root locale, which sorts before digits. Control characters are
/// ignored.
const PUNCTUATION: &str = "\t\n\u{b}\u{c}\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~";

/// The accents of European names in the order of the root locale: acute, grave, breve, circumflex, caron,
/// ring, diaeresis, double acute, tilde, dot, cedilla, ogonek, macron.
const ACCENTS: &str =
    "\u{301}\u{300}\u{306}\u{302}\u{30c}\u{30a}\u{308}\u{30b}\u{303}\u{307}\u{327}\u{328}\u{304}";

/// The key by which names are compared: letters first, then accents, then case.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameSortKey {
    letters: Vec<CollationWeight>,
    accents: Vec<CollationWeight>,
    capitals: Vec<bool>,
}

/// Ordered by variant first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CollationWeight {
    None,
    Listed(usize),
    Symbol(char),
    Dollar,
    Letter(char),
}

/// Computes the sort key of a name.
pub(super) fn sort_key(name: &str) -> NameSortKey {
    let mut key = NameSortKey::default();
    for c in name.nfd().filter(|c| !is_ignored(*c)) {
        if is_combining_mark(c) {
            key.accents.push(listed_weight(ACCENTS, c).unwrap_or(CollationWeight::Letter(c)));
            continue;
        }
        let small = c.to_lowercase().next().unwrap_or(c);
        key.letters.push(char_weight(small));
        key.accents.push(CollationWeight::None);
        key.capitals.push(small != c);
    }
    key
}

fn is_ignored(c: char) -> bool {
    c.is_control() && !matches!(c, '\t'..='\r' | '\u{85}')
}

fn char_weight(c: char) -> CollationWeight {
    match c {
        '$' => CollationWeight::Dollar,
        c if c.is_alphanumeric() => CollationWeight::Letter(c),
        c => listed_weight(PUNCTUATION, c).unwrap_or(CollationWeight::Symbol(c)),
    }
}

fn listed_weight(list: &str, c: char) -> Option<CollationWeight> {
    list.chars().position(|other| other == c).map(CollationWeight::Listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(in_order: &[&str]) {
        let mut sorted = in_order.to_vec();
        sorted.reverse();
        sorted.sort_by_key(|name| sort_key(name));
        assert_eq!(sorted, in_order);
    }

    #[test]
    fn names_sort_as_people_expect() {
        check(&["a", "A", "ab", "aB", "Ab", "AB", "b"]);
        check(&["pdf", "pdf tools", "pdf_tools", "pdf-tools", "pdf.tools", "pdf2", "pdfa"]);
        check(&["a1", "a10", "a2"]);
        check(&["aa", "AA", "ab"]);
        check(&["e", "é", "É", "è", "ea", "f", "z", "ж", "日"]);
        check(&["~", "🦀", "$", "1", "a"]);
    }

    #[test]
    fn names_that_differ_in_nothing_that_counts_are_equal() {
        assert_eq!(sort_key("caf\u{e9}"), sort_key("cafe\u{301}"));
        assert_eq!(sort_key("a\u{1}b"), sort_key("ab"));
    }
}
