//! Names: normalisation for comparison, and suggestions for misspelled ones.

use unicode_normalization::UnicodeNormalization;

/// The maximum length of a name by the Agent Skills specification, in characters.
pub const NAME_CHARS_MAX: usize = 64;

/// Normalises a name for comparison: lower-case letters, digits and single hyphens.
///
/// Letters of any script are kept, as the specification allows them; everything else becomes a hyphen.
///
/// ```
/// use repertoire_skill::name::normalise_name;
/// assert_eq!(normalise_name("My Skill (v2)!"), "my-skill-v2");
/// assert_eq!(normalise_name("日本語"), "日本語");
/// ```
pub fn normalise_name(name: &str) -> String {
    if is_normal(name) {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    for c in name.nfkc().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.truncate(out.trim_end_matches('-').len());
    out
}

fn is_normal(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Returns the known name nearest to a wrong one, if it is near enough to be meant.
///
/// ```
/// use repertoire_skill::name::nearest_name;
/// assert_eq!(nearest_name("error-analyser", ["error-analyzer", "recovery"]), Some("error-analyzer"));
/// assert_eq!(nearest_name("zzz", ["error-analyzer"]), None);
/// ```
pub fn nearest_name<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = normalise_name(wrong);
    let wrong: Vec<char> = wrong.chars().collect();
    let allowed = (wrong.len() / 3).clamp(1, 4);
    let rank = |name: &str| {
        // Fast path: of thousands of names, most are ruled out by their length alone.
        let far = name.is_ascii() && name.len().abs_diff(wrong.len()) > allowed + 2;
        let near = if far { None } else { edit_distance(&wrong, &normal_chars(name), allowed) };
        near.or_else(|| is_word_of(&wrong, name).then_some(allowed + 1))
    };
    known
        .into_iter()
        .filter_map(|name| rank(name).map(|near| (near, name)))
        .min()
        .map(|(_, name)| name)
}

fn normal_chars(name: &str) -> Vec<char> {
    if is_normal(name) { name.chars().collect() } else { normalise_name(name).chars().collect() }
}

/// Returns true if one whole word of the name was given, such as `security` for `reviewing-security`.
fn is_word_of(wrong: &[char], name: &str) -> bool {
    wrong.len() >= 4
        && name.split(['-', ':', '/']).any(|part| part.chars().eq(wrong.iter().copied()))
}

/// Returns the edit distance of two names, counting a transposition as one edit; `None` if it exceeds `most`.
/// Names of very different length are ruled out without computing it.
fn edit_distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    // Two names within `most` edits share all but `most` of their letters, in any order.
    let shared = a.iter().filter(|c| b.contains(c)).count();
    if a.len().abs_diff(b.len()) > most || shared + most < a.len() {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
        if row.iter().min().is_some_and(|best| *best > most) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_as_the_flat_dialect_says() {
        let check = |given: &str, expect: &str| assert_eq!(normalise_name(given), expect);
        check("error-analyzer", "error-analyzer");
        check("Error Analyzer", "error-analyzer");
        check("--a__b--", "a-b");
        check("UPPER.case", "upper-case");
        check("ﬁle", "file");
        check("!!!", "");
    }

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let known = ["recovery", "reviewing-security", "auto-merge"];
        assert_eq!(nearest_name("recovrey", known), Some("recovery"));
        assert_eq!(nearest_name("security", known), Some("reviewing-security"));
        assert_eq!(nearest_name("Auto_Merge", known), Some("auto-merge"));
        assert_eq!(nearest_name("kubernetes", known), None);
    }
}
