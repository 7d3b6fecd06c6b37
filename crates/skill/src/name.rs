//! Names: how a name is made comparable, and how a wrong one finds its neighbour.

use unicode_normalization::UnicodeNormalization;

/// Longest name that the Agent Skills specification allows, in characters.
pub const NAME_CHARS_MAX: usize = 64;

/// The comparable form of a name: lower case, letters, digits and single hyphens.
///
/// Letters of any script are kept, as the specification allows them; everything else becomes a hyphen.
///
/// ```
/// use repertoire_skill::name::normalise;
/// assert_eq!(normalise("My Skill (v2)!"), "my-skill-v2");
/// assert_eq!(normalise("日本語"), "日本語");
/// ```
pub fn normalise(name: &str) -> String {
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
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The known name nearest to a wrong one, if it is near enough to be meant.
///
/// ```
/// use repertoire_skill::name::nearest;
/// assert_eq!(nearest("error-analyser", ["error-analyzer", "recovery"]), Some("error-analyzer"));
/// assert_eq!(nearest("zzz", ["error-analyzer"]), None);
/// ```
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = normalise(wrong);
    let allowed = (wrong.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| (distance(&wrong, &normalise(name), allowed), name))
        .filter(|(distance, name)| *distance <= allowed || is_part(&wrong, name))
        .min()
        .map(|(_, name)| name)
}

/// `security` for `reviewing-security`: one whole word of the name was given.
fn is_part(wrong: &str, name: &str) -> bool {
    wrong.len() >= 4 && name.split(['-', ':', '/']).any(|part| part == wrong)
}

/// Levenshtein distance with transpositions of neighbours counted as one, if it can be small enough.
fn distance(a: &str, b: &str, allowed: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > allowed {
        return usize::MAX;
    }
    let mut rows = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    for (at, cell) in rows[0].iter_mut().enumerate() {
        *cell = at;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best =
                (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_as_the_flat_dialect_says() {
        let check = |given: &str, expect: &str| assert_eq!(normalise(given), expect);
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
        assert_eq!(nearest("recovrey", known), Some("recovery"));
        assert_eq!(nearest("security", known), Some("reviewing-security"));
        assert_eq!(nearest("Auto_Merge", known), Some("auto-merge"));
        assert_eq!(nearest("kubernetes", known), None);
    }
}
