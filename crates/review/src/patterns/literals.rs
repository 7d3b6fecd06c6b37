//! Extracts required literals from regular expressions: every match contains at least one of them.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Minimum length of a literal. Shorter ones occur in most files.
const LETTERS_MIN: usize = 3;
/// Maximum number of alternative literals. More of them would select most files.
const TEXTS_MAX: usize = 64;

/// The long s and the Kelvin sign, which fold to `s` and `k` in case-insensitive matching. All patterns are tried on a
/// text that contains one of them.
pub(super) const ODD_LETTERS: [char; 2] = ['\u{17f}', '\u{212a}'];

/// Returns literals of which every match contains at least one, ignoring case; `None` if there are none selective
/// enough.
pub(super) fn required_literals(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(_) | HirKind::Class(_) => keep_selective(vec![literal_text(hir)?]),
        HirKind::Capture(capture) => required_literals(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required_literals(&repetition.sub),
        HirKind::Alternation(branches) => {
            let texts: Option<Vec<Vec<String>>> = branches.iter().map(required_literals).collect();
            keep_selective(texts?.concat())
        }
        HirKind::Concat(parts) => best_literals(parts),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// The number of characters with repetitions expanded, which bounds the work per character of the searched text.
pub(super) fn count_positions(hir: &Hir) -> usize {
    count_leaves(hir, &|hir| match hir.kind() {
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        _ => 0,
    })
}

/// The number of character ranges with repetitions expanded, which determines the compiled size.
pub(super) fn count_ranges(hir: &Hir) -> usize {
    count_leaves(hir, &|hir| match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
        _ => 0,
    })
}

fn count_leaves(hir: &Hir, leaf: &dyn Fn(&Hir) -> usize) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => leaf(hir),
        HirKind::Capture(capture) => count_leaves(&capture.sub, leaf),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1) as usize;
            count_leaves(&repetition.sub, leaf).saturating_mul(times)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(|part| count_leaves(part, leaf)).fold(0, usize::saturating_add)
        }
    }
}

/// The most selective literals of a concatenation: those of one part, or a run of adjacent characters.
fn best_literals(parts: &[Hir]) -> Option<Vec<String>> {
    let mut choices: Vec<Vec<String>> = Vec::new();
    let mut run = String::new();
    for part in parts {
        // Look-around assertions have no width, so they don't interrupt a run.
        if matches!(part.kind(), HirKind::Look(_)) {
            continue;
        }
        match literal_text(part) {
            Some(letters) => run.push_str(&letters),
            None => {
                choices.extend(keep_selective(vec![std::mem::take(&mut run)]));
                choices.extend(required_literals(part));
            }
        }
    }
    choices.extend(keep_selective(vec![run]));
    // Prefer longer literals up to 8 bytes, then fewer alternatives.
    choices.into_iter().max_by_key(|texts| {
        let shortest = texts.iter().map(String::len).min().unwrap_or_default();
        (shortest.min(8), std::cmp::Reverse(texts.len()))
    })
}

fn keep_selective(texts: Vec<String>) -> Option<Vec<String>> {
    let long = texts.iter().all(|text| text.len() >= LETTERS_MIN);
    (long && !texts.is_empty() && texts.len() <= TEXTS_MAX).then_some(texts)
}

/// The text of a literal, or a class that holds a single letter in both cases.
fn literal_text(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Literal(literal) => std::str::from_utf8(&literal.0).ok().map(str::to_owned),
        HirKind::Class(Class::Unicode(class)) => {
            let mut chars = class.iter().flat_map(|range| range.start()..=range.end());
            one_letter(&mut chars)
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut chars =
                class.iter().flat_map(|range| range.start()..=range.end()).map(char::from);
            one_letter(&mut chars)
        }
        HirKind::Capture(capture) => literal_text(&capture.sub),
        _ => None,
    }
}

fn one_letter(chars: &mut dyn Iterator<Item = char>) -> Option<String> {
    let first = fold_case(chars.next()?);
    // A letter has at most a few case variants, so a long class need not be enumerated.
    let same = first.is_ascii() && chars.take(4).all(|letter| fold_case(letter) == first);
    same.then(|| first.to_string())
}

fn fold_case(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: Option<&[&str]>) {
        let hir = regex_syntax::parse(pattern).unwrap();
        let found = required_literals(&hir);
        let found: Option<Vec<&str>> =
            found.as_ref().map(|texts| texts.iter().map(String::as_str).collect());
        assert_eq!(found.as_deref(), expected, "{pattern}");
    }

    #[test]
    fn the_most_telling_text_is_taken() {
        check(r"password\s*=", Some(&["password"]));
        check(r"(?i)password\s*=", Some(&["password"]));
        check(r"\b(eval|exec)\s*\(", Some(&["eval", "exec"]));
        check(r#"(api[_-]?key|secret)\s*[:=]\s*["'][^"']{8,}["']"#, Some(&["key", "secret"]));
        check(r"\.unwrap\(\)", Some(&[".unwrap()"]));
        check(r"(?:foo)+bar?", Some(&["foo"]));
    }

    #[test]
    fn repetitions_count_as_often_as_they_may_be() {
        for (pattern, count) in
            [("abc", 3), (r"\w+", 1), ("(a|bc){4}x?", 13), (r"(?:\w{1000}){1000}", 1_000_000)]
        {
            assert_eq!(count_positions(&regex_syntax::parse(pattern).unwrap()), count, "{pattern}");
        }
    }

    #[test]
    fn what_is_taken_for_small_compiles() {
        // The largest patterns within the limits: by character ranges, and by positions.
        let words = r"\w\d ".repeat(4);
        let text = format!("(?:{})", "ab[cd]".repeat(500));
        for pattern in [words, text] {
            let hir = regex_syntax::parse(&pattern).unwrap();
            assert!(
                count_ranges(&hir) <= super::super::SURELY_SMALL_RANGES,
                "{}",
                count_ranges(&hir)
            );
            let limit = crate::limits::REVIEW_PATTERN_COMPILED_BYTES_MAX;
            let built = regex::RegexBuilder::new(&pattern).size_limit(limit).build();
            assert!(built.is_ok(), "{} ranges", count_ranges(&hir));
        }
    }

    #[test]
    fn without_one_there_is_none() {
        for pattern in [r"\d+", r"a|foobar", r"(foo)?", r"[a-z]{3}", r"if", r"[^\x00-\x7f]"] {
            check(pattern, None);
        }
    }

    #[test]
    fn case_that_does_not_matter_may_be_odd() {
        let hir = regex_syntax::parse("(?i)task").unwrap();
        assert_eq!(required_literals(&hir).unwrap(), ["task"]);
        let regex = regex::Regex::new("(?i)task").unwrap();
        assert!(
            regex.is_match("ta\u{17f}\u{212a}"),
            "which is why such texts are searched for all"
        );
    }
}
