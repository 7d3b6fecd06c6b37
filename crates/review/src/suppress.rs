//! Suppression of findings by comments in the code. The ignore file is in `file`.
//!
//! A comment is `rep:ignore`, `rep:ignore[security]` or `rep:ignore[hardcoded_password] -- read from a vault`, at the
//! end of the line or alone on the line above. `rep:ignore-file` in the first lines of a file applies to the whole
//! file. Comments that the change itself adds count as well, and are reported in a warning. An older comment does not
//! apply to a line that the change has added below it.

use super::change::{FileStatus, LineKind, LineRange, ReviewChange, ReviewedFile};
use super::fingerprints::{FileIndex, FindingIdentity};
use crate::limits::{NAMES_SHOWN, REVIEW_SUPPRESSION_HEAD_LINES, REVIEW_SUPPRESSION_LINES_MAX};

mod ignore_file;

pub use self::ignore_file::{IgnoreEntry, IgnoreError, IgnoreFile};

/// The suppression of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingSuppression {
    /// The place of the suppression: `src/a.rs:12`, or an entry of the ignore file.
    pub by: String,
    /// The reason, if one is given.
    pub reason: Option<String>,
}

impl std::fmt::Display for FindingSuppression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "suppressed by {} ({reason})", self.by),
            None => write!(f, "suppressed by {}", self.by),
        }
    }
}

const MARK: &str = "rep:ignore";
/// Maximum number of marks per line that are considered.
const MARKS_MAX: usize = 8;

/// Comment signs that are recognised after whitespace or at the start of a line.
const COMMENTS: &[&str] = &["//", "/*", "#", "--", "<!--", "{-", "(*"];
/// Comment signs that are recognised only at the start of a line.
const COMMENTS_AT_START: &[&str] = &["*", ";", "%", "'", "REM "];

/// A suppression comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SuppressionComment {
    scope: CommentScope,
    /// Categories and patterns; if empty, the comment applies to all findings.
    keys: Vec<String>,
    reason: Option<String>,
    /// True if nothing but the comment is on the line.
    alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommentScope {
    Line,
    File,
}

/// Returns the comment that suppresses a finding.
pub fn find_comment(about: &FindingIdentity<'_>) -> Option<FindingSuppression> {
    let file = about.file;
    let comment_at = |at: usize| parse_comment(file.line_at(at)?);
    let head = 0..REVIEW_SUPPRESSION_HEAD_LINES;
    let whole = head.filter_map(|at| Some((at, comment_at(at)?)));
    let whole = whole.filter(|(_, comment)| comment.scope == CommentScope::File);
    let beside = comment_lines(about.lines).filter_map(|at| {
        let comment = comment_at(at)?;
        let is_above = at + 1 < about.lines.first as usize;
        // A comment alone on its line applies to the line below, unless only that line was added by the change.
        let was_there = || is_added_at(file, at) || !is_added_at(file, at + 1);
        let counts = comment.scope == CommentScope::Line
            && if comment.alone { was_there() } else { !is_above };
        counts.then_some((at, comment))
    });
    let mut found = whole.chain(beside).filter(|(_, comment)| comment.applies_to(about));
    found.next().map(|(at, comment)| FindingSuppression {
        by: format!("a comment at {}:{}", about.file.path(), at + 1),
        reason: comment.reason,
    })
}

fn is_added_at(file: &FileIndex<'_>, at: usize) -> bool {
    u32::try_from(at + 1).is_ok_and(|line| file.is_added_line(line))
}

/// The indexes of the lines that may hold a comment: the line above, and the lines of a short finding.
fn comment_lines(range: LineRange) -> impl Iterator<Item = usize> {
    let first = range.first.max(1) as usize;
    let short = range.last.saturating_sub(range.first) < REVIEW_SUPPRESSION_LINES_MAX;
    let last = if short { range.last as usize } else { first };
    (first.saturating_sub(2)..last.max(first)).filter(move |at| *at + 2 >= first)
}

/// Returns a warning about suppressions that the change adds.
pub fn added_suppressions_warning(change: &ReviewChange) -> Option<String> {
    let new = change.files.iter().filter(|file| file.status != FileStatus::Whole);
    let places: Vec<String> = new.flat_map(added_suppressions).collect();
    let shown = places.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = match places.len().saturating_sub(NAMES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match places.len() {
        0 => None,
        1 => Some(format!("1 suppression was added by this change: {shown}")),
        count => Some(format!("{count} suppressions were added by this change: {shown}{more}")),
    }
}

fn added_suppressions(file: &ReviewedFile) -> impl Iterator<Item = String> {
    let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
    let added = lines.filter(|line| line.kind == LineKind::Added);
    let comments = added.filter(|line| parse_comment(&line.text).is_some());
    comments.filter_map(|line| Some(format!("{}:{}", file.path, line.new?)))
}

impl SuppressionComment {
    fn applies_to(&self, about: &FindingIdentity<'_>) -> bool {
        let named = |key: &String| {
            let category = about.categories.iter().any(|one| one.eq_ignore_ascii_case(key));
            category || about.pattern.is_some_and(|pattern| pattern.eq_ignore_ascii_case(key))
        };
        self.keys.is_empty() || self.keys.iter().any(named)
    }
}

/// Parses the suppression comment of a line.
fn parse_comment(line: &str) -> Option<SuppressionComment> {
    let marks = find_marks(line);
    marks.into_iter().find_map(|(begin, at)| parse_comment_at(line, begin, at))
}

/// Parses the comment that starts at `begin` and has its mark at `at`.
fn parse_comment_at(line: &str, begin: usize, at: usize) -> Option<SuppressionComment> {
    let rest = &line[at + MARK.len()..];
    let (scope, rest) = match rest.strip_prefix("-file") {
        Some(rest) => (CommentScope::File, rest),
        None => (CommentScope::Line, rest),
    };
    let (keys, rest) = match rest.strip_prefix('[') {
        Some(list) => {
            let (list, rest) = list.split_once(']')?;
            let keys = list.split(',').map(str::trim).filter(|key| !key.is_empty());
            let keys: Vec<String> = keys.map(str::to_owned).collect();
            // `rep:ignore[]` is not valid.
            (!keys.is_empty()).then_some((keys, rest))?
        }
        None => match parse_bare_key(rest) {
            Some((key, rest)) => (vec![key.to_owned()], rest),
            None => (Vec::new(), rest),
        },
    };
    if rest.starts_with(|c: char| {
        c.is_alphanumeric() || c == '-' && !rest.starts_with("--") || c == '_'
    }) {
        return None;
    }
    let alone = line[..begin].trim().is_empty();
    Some(SuppressionComment { scope, keys, reason: parse_reason(rest), alone })
}

/// Parses a key without brackets: a single word, followed by nothing but a reason. It must not suppress everything.
fn parse_bare_key(rest: &str) -> Option<(&str, &str)> {
    let word = rest.strip_prefix([' ', '\t'])?.trim_start();
    let in_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let end = word.find(|c| !in_key(c)).unwrap_or(word.len());
    let (key, rest) = word.split_at(end);
    let is_last = without_comment_end(rest).is_empty() || parse_reason(rest).is_some();
    (key.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_last).then_some((key, rest))
}

/// Finds the marks of a line that are in a comment and not in quotes. Returns the offsets of each comment and mark.
fn find_marks(line: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if !line.contains(MARK) {
        return found;
    }
    let indent = line.len() - line.trim_start().len();
    let at_start = COMMENTS_AT_START.iter().any(|sign| line[indent..].starts_with(sign));
    let mut begin = at_start.then_some(indent);
    // An apostrophe without a second one does not open a quote.
    let last_apostrophe = line.rfind('\'').unwrap_or_default();
    let (mut open, mut escaped, mut before) = (None, false, ' ');
    for (at, letter) in line.char_indices() {
        let here = &line[at..];
        let begins = || COMMENTS.iter().any(|sign| here.starts_with(sign));
        if begin.is_none() && open.is_none() && before.is_whitespace() && begins() {
            begin = Some(at);
        }
        if let (Some(begin), None) = (begin, open)
            && here.starts_with(MARK)
            && found.len() < MARKS_MAX
        {
            found.push((begin, at));
        }
        match (open, letter) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(quote), _) if quote == letter => open = None,
            (None, '"' | '`') => open = Some(letter),
            (None, '\'') if at < last_apostrophe => open = Some(letter),
            _ => {}
        }
        before = letter;
    }
    found
}

fn parse_reason(rest: &str) -> Option<String> {
    let rest = rest.trim_start();
    let reason = rest.strip_prefix("--").filter(|rest| !rest.starts_with('>'));
    let reason = reason.or_else(|| rest.strip_prefix(':'))?;
    let reason = without_comment_end(reason);
    (!reason.is_empty()).then(|| reason.to_owned())
}

/// Removes the end sign of a comment.
fn without_comment_end(text: &str) -> &str {
    let mut text = text.trim();
    for end in ["*/", "-->", "-}", "*)"] {
        text = text.strip_suffix(end).unwrap_or(text).trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprints::tests::{about, whole};

    fn found(text: &str, first: u32, last: u32, category: &str) -> Option<String> {
        found_in(&whole("a.rs", text), first, last, category)
    }

    fn found_in(file: &ReviewedFile, first: u32, last: u32, category: &str) -> Option<String> {
        let (index, categories) = (FileIndex::new(file), [category.to_owned()]);
        find_comment(&about(&index, (first, last), &categories, Some("eval")))
            .map(|found| found.to_string())
    }

    #[test]
    fn a_comment_counts_on_the_line_and_alone_above_it() {
        let text = "a(); // rep:ignore\nb();\n// rep:ignore\nc();\nd();\n";
        let ignored: Vec<u32> =
            (1..=5).filter(|line| found(text, *line, *line, "bugs").is_some()).collect();
        assert_eq!(ignored, [1, 3, 4]);
        assert!(found(text, 4, 5, "bugs").is_some());
        assert_eq!(found("x = \"rep:ignore\"\n", 1, 1, "bugs"), None, "no comment");
        let long = format!("{}// rep:ignore\n", "line();\n".repeat(11));
        assert_eq!(found(&long, 1, 12, "bugs"), None, "too far away to be about it");
    }

    #[test]
    fn keys_are_categories_and_patterns_and_reasons_are_told() {
        let text = "a(); # rep:ignore[Security, eval] -- read from a vault\n";
        let said = "suppressed by a comment at a.rs:1 (read from a vault)";
        assert_eq!(found(text, 1, 1, "security").as_deref(), Some(said));
        assert_eq!(found(text, 1, 1, "bugs").as_deref(), Some(said), "by its pattern");
        assert_eq!(found("a(); # rep:ignore[style]\n", 1, 1, "bugs"), None);
        for (line, reason) in [
            ("/* rep:ignore: it is fine */", Some("it is fine")),
            ("<!-- rep:ignore -->", None),
            ("<!-- rep:ignore -- because -->", Some("because")),
            ("-- rep:ignore", None),
            ("% rep:ignore -- in LaTeX", Some("in LaTeX")),
        ] {
            assert_eq!(parse_comment(line).unwrap().reason.as_deref(), reason, "{line}");
        }
        for line in ["// rep:ignored", "// rep:ignore[]", "// rep:ignore[a", "// rep:ignore-me"] {
            assert_eq!(parse_comment(line), None, "{line}");
        }
    }

    #[test]
    fn a_word_behind_it_is_a_key() {
        let keys = |line: &str| parse_comment(line).unwrap().keys;
        for line in [
            "// rep:ignore eval",
            "/* rep:ignore eval */",
            "<!-- rep:ignore eval -->",
            "# rep:ignore  eval -- it is a calculator",
        ] {
            assert_eq!(keys(line), ["eval"], "{line}");
        }
        assert_eq!(keys("# rep:ignore-file hard-coded_1"), ["hard-coded_1"]);
        for line in ["# rep:ignore", "# rep:ignore -- it is fine", "<!-- rep:ignore -->"] {
            assert!(keys(line).is_empty(), "{line}");
        }
        let said = parse_comment("# rep:ignore eval -- it is a calculator").unwrap();
        assert_eq!(said.reason.as_deref(), Some("it is a calculator"));
        assert_eq!(found("a(); # rep:ignore style\n", 1, 1, "bugs"), None);
        assert!(found("a(); # rep:ignore eval\n", 1, 1, "bugs").is_some());
    }

    #[test]
    fn a_text_in_quotes_is_no_comment() {
        for line in [
            r#"password = "hunter2#rep:ignore""#,
            r#"password = "hunter2 # rep:ignore""#,
            r#"password = 'hunter2 # rep:ignore'"#,
            r#"password = `hunter2 // rep:ignore`"#,
            r#"password = "a\" # rep:ignore""#,
            r#"password = n --1 or "hunter2 rep:ignore""#,
            r#"password = """hunter2 rep:ignore""""#,
            r#"password = """hunter2 # rep:ignore""""#,
            "see http://example.com rep:ignore",
        ] {
            assert_eq!(parse_comment(line), None, "{line}");
        }
        for line in [
            r#"password = "hunter2" # rep:ignore"#,
            r#"f("rep:ignore") # rep:ignore"#,
            r#"password = "a\\" // rep:ignore"#,
            "fn a() -> &'static str { // rep:ignore",
            "' rep:ignore",
        ] {
            assert!(parse_comment(line).is_some(), "{line}");
        }
    }

    #[test]
    fn long_lines_take_little_time() {
        let start = std::time::Instant::now();
        for part in [" #rep:ignore[", " '# rep:ignored", "\" #rep:ignore-x"] {
            assert_eq!(parse_comment(&part.repeat(20_000)), None, "{part}");
        }
        let took = start.elapsed();
        assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    }

    #[test]
    fn an_old_comment_is_not_about_a_line_that_was_put_under_it() {
        let mut file = whole("a.rs", "// rep:ignore\nnew();\nold();\n");
        let at = |file: &ReviewedFile, first, last| found_in(file, first, last, "bugs").is_some();
        assert!(at(&file, 2, 2), "both came");
        file.hunks[0].lines[0].kind = LineKind::Context;
        assert!(!at(&file, 2, 2), "the comment was there, the line was not");
        assert!(!at(&file, 1, 2), "nor if the comment is within");
        file.hunks[0].lines[1].kind = LineKind::Context;
        assert!(at(&file, 2, 3), "both were there");
    }

    #[test]
    fn a_comment_at_the_top_is_about_the_whole_file() {
        let text = "// Made by hand.\n// rep:ignore-file[bugs]\nfn a() {}\nfn b() {}\n";
        assert!(found(text, 4, 4, "bugs").is_some());
        assert_eq!(found(text, 4, 4, "style"), None);
        let late = format!("{}// rep:ignore-file\nx();\n", "line();\n".repeat(10));
        assert_eq!(found(&late, 1, 1, "bugs"), None);
        assert_eq!(found(&late, 12, 12, "bugs"), None);
    }

    #[test]
    fn odd_ranges_do_no_harm() {
        for (first, last) in [(0, 0), (1, 0), (9, 3), (0, u32::MAX), (u32::MAX, u32::MAX)] {
            assert_eq!(found("a\nb\n", first, last, "bugs"), None);
        }
    }

    #[test]
    fn suppressions_that_the_change_brings_are_told() {
        let new = whole("b.rs", "a(); // rep:ignore\n// rep:ignore-file\n");
        let mut old = whole("c.rs", "a(); // rep:ignore\n");
        old.status = FileStatus::Whole;
        let change = ReviewChange { files: vec![new, old], skipped: Vec::new() };
        assert_eq!(
            added_suppressions_warning(&change).as_deref(),
            Some("2 suppressions were added by this change: b.rs:1, b.rs:2")
        );
        assert_eq!(added_suppressions_warning(&ReviewChange::default()), None);
    }
}
