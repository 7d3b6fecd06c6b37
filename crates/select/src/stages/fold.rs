//! One spelling for all cases of a letter.
//!
//! Letters that a regular expression takes for one another without regard to case fold to the same text, so
//! that a text which matches a pattern contains the pattern's fixed parts once both are folded. More letters
//! than those may fall together (`ß` and `ss`).

/// A text without difference of case.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, &mut folded);
    }
    folded
}

/// Appends a letter without its case.
pub(crate) fn fold_char(c: char, folded: &mut String) {
    if c.is_ascii() {
        folded.push(c.to_ascii_lowercase());
    } else if c.is_alphabetic() || c.is_lowercase() || c.is_uppercase() {
        // Up and down again: `ſ` is small already, yet belongs to `S`.
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
        assert_eq!(fold("Plan"), "plan");
        assert_eq!(fold("ÆBLEGRØD ΟΔΟΣ"), fold("æblegrød οδος"));
        assert_eq!(fold("STRASSE"), fold("straße"));
    }

    #[test]
    fn letters_that_a_pattern_takes_for_one_another_fold_to_the_same_text() {
        let folded = |c: char| fold(c.encode_utf8(&mut [0; 4]));
        for c in (char::MIN..=char::MAX).filter(|c| !c.is_ascii() && *c < '\u{20000}') {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            class.try_case_fold_simple().unwrap();
            for same in class.iter().flat_map(|range| range.start()..=range.end()) {
                assert_eq!(folded(same), folded(c), "{same:?} {c:?}");
            }
        }
    }
}
