//! Fixed texts of regular expressions: one of them is in everything that matches.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Shorter ones are everywhere.
const LETTERS_MIN: usize = 3;
/// More of them say little.
const TEXTS_MAX: usize = 64;

/// Letters that count as `s` and `k` where upper and lower case do not matter. A text with one of them is searched for
/// everything.
pub(super) const ODD_LETTERS: [char; 2] = ['\u{17f}', '\u{212a}'];

/// Texts of which one, in any case, is in everything that an expression matches; `None` if there are none that say much.
pub(super) fn required(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(_) | HirKind::Class(_) => telling(vec![letters(hir)?]),
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Alternation(branches) => {
            let texts: Option<Vec<Vec<String>>> = branches.iter().map(required).collect();
            telling(texts?.concat())
        }
        HirKind::Concat(parts) => best_of(parts),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// How many characters an expression has with its repetitions written out: how much work a letter of a text may be.
pub(super) fn positions(hir: &Hir) -> usize {
    counted(hir, &|hir| match hir.kind() {
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        _ => 0,
    })
}

/// How many ranges of letters it has, likewise: how large it is when it is compiled.
pub(super) fn ranges(hir: &Hir) -> usize {
    counted(hir, &|hir| match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
        _ => 0,
    })
}

fn counted(hir: &Hir, leaf: &dyn Fn(&Hir) -> usize) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => leaf(hir),
        HirKind::Capture(capture) => counted(&capture.sub, leaf),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1) as usize;
            counted(&repetition.sub, leaf).saturating_mul(times)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(|part| counted(part, leaf)).fold(0, usize::saturating_add)
        }
    }
}

/// The most telling texts of parts that follow each other: of one part, or of neighbours that are letters.
fn best_of(parts: &[Hir]) -> Option<Vec<String>> {
    let mut choices: Vec<Vec<String>> = Vec::new();
    let mut run = String::new();
    for part in parts {
        // What looks around does not stand between letters.
        if matches!(part.kind(), HirKind::Look(_)) {
            continue;
        }
        match letters(part) {
            Some(letters) => run.push_str(&letters),
            None => {
                choices.extend(telling(vec![std::mem::take(&mut run)]));
                choices.extend(required(part));
            }
        }
    }
    choices.extend(telling(vec![run]));
    choices.into_iter().max_by_key(|texts| {
        let shortest = texts.iter().map(String::len).min().unwrap_or_default();
        (shortest.min(8), std::cmp::Reverse(texts.len()))
    })
}

fn telling(texts: Vec<String>) -> Option<Vec<String>> {
    let long = texts.iter().all(|text| text.len() >= LETTERS_MIN);
    (long && !texts.is_empty() && texts.len() <= TEXTS_MAX).then_some(texts)
}

/// A fixed text, or one letter in both cases.
fn letters(hir: &Hir) -> Option<String> {
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
        HirKind::Capture(capture) => letters(&capture.sub),
        _ => None,
    }
}

fn one_letter(chars: &mut dyn Iterator<Item = char>) -> Option<String> {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    let first = fold(chars.next()?);
    let same = first.is_ascii() && chars.take(4).all(|letter| fold(letter) == first);
    same.then(|| first.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: Option<&[&str]>) {
        let hir = regex_syntax::parse(pattern).unwrap();
        let found = required(&hir);
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
            assert_eq!(positions(&regex_syntax::parse(pattern).unwrap()), count, "{pattern}");
        }
    }

    #[test]
    fn what_is_taken_for_small_compiles() {
        // The largest that may be: as many letters of all kinds, or as many characters, as are allowed.
        let words = r"\w\d ".repeat(4);
        let text = format!("(?:{})", "ab[cd]".repeat(500));
        for pattern in [words, text] {
            let hir = regex_syntax::parse(&pattern).unwrap();
            assert!(ranges(&hir) <= super::super::SURELY_SMALL_RANGES, "{}", ranges(&hir));
            let limit = crate::limits::REVIEW_PATTERN_COMPILED_BYTES_MAX;
            let built = regex::RegexBuilder::new(&pattern).size_limit(limit).build();
            assert!(built.is_ok(), "{} ranges", ranges(&hir));
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
        assert_eq!(required(&hir).unwrap(), ["task"]);
        let regex = regex::Regex::new("(?i)task").unwrap();
        assert!(
            regex.is_match("ta\u{17f}\u{212a}"),
            "which is why such texts are searched for all"
        );
    }
}
