//! Finds the passages of a description that say what a skill is *not* for.
//!
//! "Do not use for spreadsheets" makes a skill look like one for spreadsheets to anything that counts words.
//! Such passages are removed before a description is indexed, and count against the skill instead.

use std::sync::OnceLock;

use regex::Regex;

/// The openings of such passages. A passage extends to the end of its sentence.
const OPENINGS: &[&str] = &[
    r"(do|does|should|must|shall|can|may) ?n[o']t (be )?(use[ds]?|invoke[ds]?|triggers?|triggered|apply|activate|load|handle|cover|replace|need)\b",
    r"don['’]t (use|invoke|trigger|apply|activate|load)\b",
    r"doesn['’]t (handle|cover|apply|replace|trigger)\b",
    r"(is |are )?not (for|intended|meant|suitable|needed|applicable|designed|to be used|when|if|use|used)\b",
    r"never (use|for|invoke|trigger)\b",
    r"avoid (using|for|when|if)\b",
    r"skip (this|it|if|when|for)\b",
    r"(anti-?triggers?|negative triggers?|exclusions?|excludes|out of scope|when not to use|not for):?",
    r"for [^.;:\n]{1,80}[,—–-] ?(please )?(use|see|prefer) [^.;\n]{1,60} instead",
    r"(use|prefer|see) [^.;,\n]{1,60} instead (for|when|if|of)\b",
];

fn opening_regex() -> &'static Regex {
    static OPENING: OnceLock<Regex> = OnceLock::new();
    OPENING.get_or_init(|| {
        let pattern = format!(r"(?i)\b(?:{})", OPENINGS.join("|"));
        Regex::new(&pattern).unwrap_or_else(|error| unreachable!("the table is fixed: {error}"))
    })
}

/// Returns true if a heading opens a section about what the skill is not for.
pub fn is_against(heading: &str) -> bool {
    static HEADING: OnceLock<Regex> = OnceLock::new();
    let pattern = r"(?i)\b(?:(?:when|what) not to|not (?:to )?(?:use|for|be used)|do(?:es)? ?n[o'’]t (?:use|trigger|cover|apply)|don['’]t use|out of scope|non-?goals?|anti-?triggers?|negative triggers?|not covered|skip (?:this|when|if))\b";
    let regex = HEADING.get_or_init(|| {
        Regex::new(pattern).unwrap_or_else(|error| unreachable!("the pattern is fixed: {error}"))
    });
    regex.is_match(heading)
}

/// A description split into the passages for and against the skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescriptionPassages<'a> {
    /// Passages that say what the skill is for, in order.
    pub pro: Vec<&'a str>,
    /// Passages that say what the skill is not for, in order.
    pub contra: Vec<&'a str>,
}

/// Splits a description into passages for and against the skill.
///
/// ```
/// use repertoire_select::passages::split_passages;
///
/// let passages = split_passages("Fills in forms. Do not use for spreadsheets; PDF only.");
/// assert_eq!(passages.pro, ["Fills in forms. ", "; PDF only."]);
/// assert_eq!(passages.contra, ["Do not use for spreadsheets"]);
/// ```
pub fn split_passages(description: &str) -> DescriptionPassages<'_> {
    let mut passages = DescriptionPassages::default();
    let mut at = 0;
    while let Some(found) = opening_regex().find_at(description, at) {
        let end = sentence_end(description, found.end());
        passages.pro.push(&description[at..found.start()]);
        passages.contra.push(&description[found.start()..end]);
        at = end;
    }
    passages.pro.push(&description[at..]);
    passages.pro.retain(|passage| !passage.trim().is_empty());
    passages
}

/// Returns the end of the sentence that continues at `from`. A full stop ends it only before white space, so
/// `v1.2` does not.
fn sentence_end(text: &str, from: usize) -> usize {
    let rest = &text[from..];
    let end = rest.char_indices().find(|(at, c)| ends_sentence(rest, *at, *c));
    end.map_or(text.len(), |(at, _)| from + at)
}

/// Returns true if the character `c` at position `at` ends a sentence.
fn ends_sentence(text: &str, at: usize, c: char) -> bool {
    match c {
        ';' | '\n' => true,
        '.' | '!' | '?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace),
        '。' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_skill_is_not_for_is_told_apart() {
        let cases = [
            (
                "Deploys apps. DO NOT USE FOR: listing resources (use az-list). USE FOR: rollout.",
                "DO NOT USE FOR: listing resources (use az-list)",
            ),
            ("Reviews code. Not for security audits.", "Not for security audits"),
            (
                "Writes tests. Don't use when there is no code v1.2 yet",
                "Don't use when there is no code v1.2 yet",
            ),
            (
                "Makes charts. For tables, use sheet-maker instead.",
                "For tables, use sheet-maker instead",
            ),
        ];
        for (description, contra) in cases {
            assert_eq!(split_passages(description).contra, [contra], "{description}");
        }
    }

    #[test]
    fn sections_about_what_a_skill_is_not_for_are_known_by_their_heading() {
        for against in ["## When NOT to use", "# Out of scope", "### Don't use this skill for"] {
            assert!(is_against(against), "{against}");
        }
        for plain in ["## When to use", "## Notes", "# Why tests do not pass"] {
            assert!(!is_against(plain), "{plain}");
        }
    }

    #[test]
    fn plain_descriptions_stay_whole() {
        for plain in [
            "Use for notes and not only for notes",
            "Cannot be reached? Finds out why.",
            "Use when a test does not pass",
            "",
        ] {
            assert!(
                split_passages(plain).contra.is_empty(),
                "{plain}: {:?}",
                split_passages(plain)
            );
        }
    }
}
