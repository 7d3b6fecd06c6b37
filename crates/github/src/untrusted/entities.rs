//! HTML entities that stand for invisible characters.

use std::sync::LazyLock;

use regex::Regex;

use repertoire_text::invisible::is_invisible;

use super::{HiddenKind, RemovalCounts, replace_all};

static ENTITY: LazyLock<Regex> = LazyLock::new(|| {
    // Browsers accept a number without a semicolon, and with any number of leading zeros.
    Regex::new(r"&(?:#[xX]0*([0-9a-fA-F]{1,6})|#0*([0-9]{1,7})|([A-Za-z]{2,24}));?")
        .expect("the pattern is written right")
});

/// The named entities of invisible characters.
const NAMES: &[&str] = &[
    "shy",
    "zwj",
    "zwnj",
    "lrm",
    "rlm",
    "af",
    "it",
    "ic",
    "ApplyFunction",
    "InvisibleTimes",
    "InvisibleComma",
    "NoBreak",
    "ZeroWidthSpace",
    "NegativeVeryThinSpace",
    "NegativeThinSpace",
    "NegativeMediumSpace",
    "NegativeThickSpace",
];

pub(super) fn without_invisible(text: &str, counts: &mut RemovalCounts) -> String {
    replace_all(text, &ENTITY, |found| {
        let number = |at: usize, radix: u32| {
            let digits = found.get(at)?.as_str();
            u32::from_str_radix(digits, radix).ok()
        };
        let code = number(1, 16).or_else(|| number(2, 10));
        let hidden = match (code, found.get(3)) {
            (Some(code), _) => {
                let is_layout = |c: char| matches!(c, '\n' | '\t');
                char::from_u32(code).is_some_and(|c| is_invisible(c) && !is_layout(c))
            }
            (None, Some(name)) => {
                // A named entity needs its semicolon, except for the oldest ones, such as `&shy`.
                let whole = found[0].ends_with(';') || name.as_str() == "shy";
                whole && NAMES.contains(&name.as_str())
            }
            (None, None) => false,
        };
        hidden.then(|| {
            counts.add(HiddenKind::Entity);
            String::new()
        })
    })
}
