//! Fingerprints of findings, which stay the same when lines move, code is reformatted or an agent words the finding
//! differently.
//!
//! The fingerprint of a finding covers the path, the first category, the text of the most significant cited line
//! without whitespace, and the number of equal lines before it. Titles, patterns and line numbers are not part of it.
//! The fingerprint of a line covers its text and that number only.

use std::fmt::Write as _;

use crate::extract::ReviewSeverity;
use camino::Utf8Path;
use sha2::{Digest, Sha256};

use self::index::without_whitespace;
use super::baseline::ReviewBaseline;
use super::change::{LineKind, LineRange, ReviewedFile};

mod index;

pub use self::index::{FileIndex, IndexedFiles};

/// The parts of a finding that identify it.
#[derive(Clone, Copy, Debug)]
pub struct FindingIdentity<'a> {
    pub file: &'a FileIndex<'a>,
    pub lines: LineRange,
    /// The categories. The first one leads, and is part of the fingerprint.
    pub categories: &'a [String],
    /// The id of the pattern that proves it.
    pub pattern: Option<&'a str>,
    pub severity: ReviewSeverity,
}

/// The fingerprints of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingFingerprints {
    /// The fingerprint of the whole finding.
    pub fingerprint: String,
    /// The fingerprints of its significant lines.
    pub line_prints: Vec<String>,
}

/// The fingerprints by which a [`ReviewBaseline`] recognises a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFindingQuery {
    /// The fingerprint of the whole finding.
    pub fingerprint: String,
    /// The fingerprint of its most significant line, if that line was added and is significant.
    pub speaking: Option<String>,
    /// The fingerprints of all added, significant lines.
    pub came: Vec<String>,
}

/// Maximum number of lines of a finding that get a fingerprint.
const LINE_PRINTS_MAX: usize = 50;
/// Minimum number of letters and digits in a significant line. Excludes `}` and `})`.
const LETTERS_MIN: usize = 3;
/// Length of a fingerprint, in hexadecimal digits.
const PRINT_CHARS: usize = 32;

/// Computes the fingerprints of a finding.
pub fn compute_fingerprints(about: &FindingIdentity<'_>) -> FindingFingerprints {
    let lines = cited_lines(about);
    let telling = lines.iter().filter(|line| line.is_significant()).take(LINE_PRINTS_MAX);
    FindingFingerprints {
        fingerprint: finding_fingerprint(about, about.file.path(), &lines),
        line_prints: telling.map(CitedLine::line_fingerprint).collect(),
    }
}

/// Returns true if a finding was reported before with at least this severity, under the file's current or old path.
pub fn is_known_finding(baseline: &ReviewBaseline, about: &FindingIdentity<'_>) -> bool {
    if baseline.is_empty() {
        return false;
    }
    let file = about.file.file();
    let mut paths = [Some(&file.path), file.old_path.as_ref()].into_iter().flatten();
    let lines = cited_lines(about);
    let came = || lines.iter().filter(|line| line.added && line.is_significant());
    let speaking = most_significant_line(&lines).filter(|line| line.added && line.is_significant());
    paths.any(|path| {
        let sought = KnownFindingQuery {
            fingerprint: finding_fingerprint(about, path, &lines),
            speaking: speaking.map(CitedLine::line_fingerprint),
            came: came().map(CitedLine::line_fingerprint).collect(),
        };
        baseline.is_known(path, about.categories, about.severity, &sought)
    })
}

/// A digest of the changed lines of a file. Stays the same if the change moves within the file.
pub fn change_digest(file: &ReviewedFile) -> String {
    let mut hash = Sha256::new();
    hash.update(file.path.as_str());
    for line in file.hunks.iter().flat_map(|hunk| &hunk.lines) {
        let sign = match line.kind {
            LineKind::Added => "\n+",
            LineKind::Removed => "\n-",
            LineKind::Context => continue,
        };
        hash.update(sign);
        hash.update(&line.text);
    }
    hex_digest(hash)
}

fn finding_fingerprint(
    about: &FindingIdentity<'_>,
    path: &Utf8Path,
    lines: &[CitedLine],
) -> String {
    // The pattern is left out: the finding is the same whether or not an agent names the pattern.
    let key = about.categories.first().map(String::as_str).unwrap_or_default();
    let (text, count) =
        most_significant_line(lines).map_or(("", 0), |line| (line.text.as_str(), line.count));
    hash_parts(&["finding", path.as_str(), key, text, &count.to_string()])
}

/// The most significant cited line. Added lines are preferred to context lines, and significant lines to others.
fn most_significant_line(lines: &[CitedLine]) -> Option<&CitedLine> {
    let came = || lines.iter().filter(|line| line.added);
    let telling = came().find(|line| line.is_significant()).or_else(|| came().next());
    telling.or_else(|| lines.iter().find(|line| line.is_significant())).or(lines.first())
}

/// A line that a finding cites.
struct CitedLine {
    /// The text without whitespace.
    text: String,
    /// The number of lines before it with the same text.
    count: u32,
    /// True if the change added the line.
    added: bool,
}

impl CitedLine {
    fn is_significant(&self) -> bool {
        self.text.chars().filter(|c| c.is_alphanumeric()).count() >= LETTERS_MIN
    }

    fn line_fingerprint(&self) -> String {
        hash_parts(&["line", &self.text, &self.count.to_string()])
    }
}

fn cited_lines(about: &FindingIdentity<'_>) -> Vec<CitedLine> {
    let (file, range) = (about.file, about.lines);
    let first = (range.first.max(1) - 1) as usize;
    let last = (range.last as usize).min(file.line_count());
    let cited = |at: usize| CitedLine {
        text: without_whitespace(file.line_at(at).unwrap_or_default()),
        count: file.equal_lines_before(at),
        added: file.is_added_line(u32::try_from(at + 1).unwrap_or(u32::MAX)),
    };
    (first..last).map(cited).collect()
}

fn hash_parts(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length prefix keeps `["ab", "c"]` and `["a", "bc"]` apart.
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex_digest(hash)
}

fn hex_digest(hash: Sha256) -> String {
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(PRINT_CHARS);
    text
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::change::{FilePromptTier, FileStatus};
    use repertoire_git::diff;

    pub(crate) fn whole(path: &str, text: &str) -> ReviewedFile {
        ReviewedFile {
            path: path.into(),
            old_path: None,
            status: FileStatus::Added,
            hunks: diff::whole_file_hunks(text),
            text: text.to_owned(),
            language: None,
            tier: FilePromptTier::Full,
        }
    }

    /// A critical finding about these lines.
    pub(crate) fn about<'a>(
        file: &'a FileIndex<'a>,
        (first, last): (u32, u32),
        categories: &'a [String],
        pattern: Option<&'a str>,
    ) -> FindingIdentity<'a> {
        let lines = LineRange { first, last };
        FindingIdentity { file, lines, categories, pattern, severity: ReviewSeverity::Critical }
    }

    fn of(text: &str, first: u32, last: u32) -> FindingFingerprints {
        let file = whole("a.rs", text);
        let (index, categories) = (FileIndex::new(&file), ["bugs".to_owned()]);
        compute_fingerprints(&about(&index, (first, last), &categories, None))
    }

    #[test]
    fn a_print_survives_moved_lines_spaces_and_other_ranges() {
        let before = of("one();\nfn a() {\n  call(x, y);\n}\n", 3, 3);
        assert_eq!(of("two();\nthree();\n\tcall( x,y );\n", 3, 3), before);
        assert_eq!(of("{\n  call(x, y);\n}\n", 1, 3).fingerprint, before.fingerprint);
        assert_ne!(of("call(x, z);\n", 1, 1).fingerprint, before.fingerprint);
        let wider = of("one();\nfn a() {\n  call(x, y);\n}\n", 2, 4);
        assert_ne!(wider.fingerprint, before.fingerprint, "another line speaks for it");
        assert!(wider.line_prints.contains(&before.line_prints[0]), "but one is shared");
    }

    #[test]
    fn equal_lines_have_prints_of_their_own() {
        let text = "free(p);\nuse(p);\nfree(p);\n";
        assert_ne!(of(text, 1, 1), of(text, 3, 3));
        assert_ne!(of(text, 1, 1).line_prints, of(text, 3, 3).line_prints);
    }

    #[test]
    fn a_line_that_came_speaks_before_one_that_was_there() {
        let mut file = whole("a.rs", "old_line();\nnew_line();\n");
        file.hunks[0].lines[0].kind = LineKind::Context;
        let (index, categories) = (FileIndex::new(&file), ["bugs".to_owned()]);
        let about = |first, last| about(&index, (first, last), &categories, None);
        assert_eq!(
            compute_fingerprints(&about(1, 2)).fingerprint,
            compute_fingerprints(&about(2, 2)).fingerprint
        );
        assert_ne!(
            compute_fingerprints(&about(1, 1)).fingerprint,
            compute_fingerprints(&about(2, 2)).fingerprint
        );
    }

    #[test]
    fn the_category_and_the_path_count_and_the_pattern_does_not() {
        let file = whole("a.rs", "call();\n");
        let other = whole("b.rs", "call();\n");
        let (bugs, style) = (["bugs".to_owned()], ["style".to_owned()]);
        let print = |file, categories, pattern| {
            compute_fingerprints(&about(&FileIndex::new(file), (1, 1), categories, pattern))
                .fingerprint
        };
        let one = print(&file, &bugs, None);
        assert_ne!(one, print(&other, &bugs, None));
        assert_ne!(one, print(&file, &style, None));
        assert_eq!(one, print(&file, &bugs, Some("p")), "whoever names a pattern, it is the same");
    }

    #[test]
    fn lines_that_are_not_there_have_a_print_and_do_no_harm() {
        for (first, last) in [(0, 0), (5, 9), (3, 1), (1, u32::MAX)] {
            assert_eq!(of("a\nb\n", first, last).fingerprint.len(), PRINT_CHARS);
        }
        assert_eq!(of("", 1, 1).line_prints, Vec::<String>::new());
    }

    #[test]
    fn a_digest_stands_for_what_changed_and_not_for_where() {
        let file = whole("a.rs", "one\ntwo\n");
        let mut moved = file.clone();
        for line in &mut moved.hunks[0].lines {
            line.new = line.new.map(|number| number + 10);
        }
        assert_eq!(change_digest(&file), change_digest(&moved));
        assert_ne!(change_digest(&file), change_digest(&whole("a.rs", "one\n2\n")));
        assert_ne!(change_digest(&file), change_digest(&whole("b.rs", "one\ntwo\n")));
    }

    #[test]
    fn a_hundred_findings_in_a_large_file_cost_little() {
        let text: String =
            (0..5_000).map(|at| format!("{at} {}\n", "call(x, y); ".repeat(15))).collect();
        assert!(text.len() > 900_000);
        let file = whole("a.rs", &text);
        let (index, categories) = (FileIndex::new(&file), ["bugs".to_owned()]);
        let start = std::time::Instant::now();
        let record = r#"{"findings": [{"file": "a.rs", "fingerprint": "another"}]}"#;
        let baseline = ReviewBaseline::parse("review.json".into(), record).unwrap();
        for at in 0..100 {
            let about = about(&index, (4_801 + at, 4_802 + at), &categories, None);
            assert_eq!(compute_fingerprints(&about).line_prints.len(), 2);
            assert!(!is_known_finding(&baseline, &about));
            assert!(crate::suppress::find_comment(&about).is_none());
        }
        let took = start.elapsed();
        assert!(
            took < std::time::Duration::from_secs(5),
            "{took:?}, and some 0.2 s on a quiet machine"
        );
    }

    proptest! {
        #[test]
        fn what_happens_elsewhere_does_not_matter(
            before in proptest::collection::vec("[a-c]{0,3}", 0..20),
            after in proptest::collection::vec("[a-c]{0,3}", 0..20),
            indent in "[ \t]{0,4}",
        ) {
            let line = "target(line);";
            let alone = of(&format!("{line}\n"), 1, 1);
            let mut text: Vec<String> = before.clone();
            text.push(format!("{indent}{line}"));
            text.extend(after);
            let at = u32::try_from(before.len() + 1).unwrap();
            prop_assert_eq!(of(&text.join("\n"), at, at), alone);
        }
    }
}
