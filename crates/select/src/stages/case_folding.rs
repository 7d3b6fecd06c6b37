//! Case folding that is compatible with case-insensitive regular expressions.
//!
//! Letters that a case-insensitive regular expression treats as equal fold to the same text. So if a text
//! matches a pattern, the folded text contains the folded literals of the pattern. The folding may also merge
//! other letters (`ß` and `ss`), which only costs false positives.

/// Folds the case of a text.
pub(crate) fn fold_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, &mut folded);
    }
    folded
}

/// Appends the folded form of a character.
pub(crate) fn fold_char(c: char, folded: &mut String) {
    if c.is_ascii() {
        folded.push(c.to_ascii_lowercase());
    } else if c.is_alphabetic() || c.is_lowercase() || c.is_uppercase() {
        // Convert to upper case and back: `ſ` is lower case already, but folds with `S`.
        let upper = c.to_lowercase().flat_map(char::to_uppercase);
        folded.extend(upper.flat_map(char::to_lowercase));
    } else {
        folded.push(c);
    }
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    use super::*;

    #[test]
    fn case_makes_no_difference_in_any_script() {
        assert_eq!(fold_case("Plan"), "plan");
        assert_eq!(fold_case("ÆBLEGRØD ΟΔΟΣ"), fold_case("æblegrød οδος"));
        assert_eq!(fold_case("STRASSE"), fold_case("straße"));
    }

    #[test]
    fn letters_that_a_pattern_takes_for_one_another_fold_to_the_same_text() {
        let folded = |c: char| fold_case(c.encode_utf8(&mut [0; 4]));
        for c in (char::MIN..=char::MAX).filter(|c| !c.is_ascii() && *c < '\u{20000}') {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            class.try_case_fold_simple().unwrap();
            for same in class.iter().flat_map(|range| range.start()..=range.end()) {
                assert_eq!(folded(same), folded(c), "{same:?} {c:?}");
            }
        }
    }
}
