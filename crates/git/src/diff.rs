//! Parses git's unified diffs into hunks.
//!
//! The parser counts lines by the hunk header, so a line of a file that looks like diff syntax is never taken for it.

use serde::{Deserialize, Serialize};

/// A changed part of a file, with its context lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffHunk {
    /// The first line on the old side.
    pub old_start: u32,
    /// The first line on the new side.
    pub new_start: u32,
    /// The text after the second `@@` of the hunk header, usually the enclosing function.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
    pub lines: Vec<HunkLine>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkLine {
    pub kind: LineKind,
    /// The line number on the old side; `None` for an added line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<u32>,
    /// The line number on the new side; `None` for a removed line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<u32>,
    /// The text without the line break.
    pub text: String,
}

/// The kind of a line in a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    Context,
    Added,
    Removed,
}

/// The part of a diff that belongs to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// The old path, without `a/`; `None` if the file is new.
    pub old: Option<String>,
    /// The new path, without `b/`; `None` if the file was deleted.
    pub new: Option<String>,
    pub hunks: Vec<DiffHunk>,
    /// True if git treats the file as binary.
    pub binary: bool,
}

impl FilePatch {
    /// The new path, or the old one of a deleted file.
    pub fn path(&self) -> &str {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// The old path, if it differs from the new one.
    pub fn renamed_from(&self) -> Option<&str> {
        self.old.as_deref().filter(|old| self.new.as_deref().is_some_and(|new| new != *old))
    }

    /// The texts of the lines of one kind.
    pub fn lines_of(&self, kind: LineKind) -> impl Iterator<Item = &str> {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(move |line| line.kind == kind).map(|line| line.text.as_str())
    }
}

/// A syntax error in a diff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the diff is not understood: {said}")]
pub struct DiffParseError {
    /// The line number in the diff, from 1.
    pub line: usize,
    pub said: String,
}

/// Parses a diff that git has made, of any number of files, with the prefixes `a/` and `b/`. Combined diffs of merges
/// are rejected.
///
/// # Errors
///
/// If the text is not a diff, or is incomplete.
pub fn parse_diff(bytes: &[u8]) -> Result<Vec<FilePatch>, DiffParseError> {
    let mut reader = DiffReader::new(bytes);
    while let Some(line) = reader.next_line() {
        if line.starts_with(b"diff --cc ") || line.starts_with(b"@@@") {
            return Err(reader.error_here("it is of a diff with two parents"));
        }
        let is_header = line.starts_with(b"diff --git ");
        if !is_header && reader.files.is_empty() {
            return Err(reader.error_here("it comes before the first file"));
        }
        reader.apply_line(line)?;
    }
    Ok(reader.files)
}

/// Parses a patch that others have written, as `git apply` reads it: text around the patch is skipped, and a plain diff
/// without `diff --git` lines will do. A hunk that is incomplete has the lines that are there. Without any file, the
/// text is not a patch.
pub fn parse_patch(text: &str) -> Vec<FilePatch> {
    let mut reader = DiffReader::new(text.as_bytes());
    while let Some(line) = reader.next_line() {
        if line.starts_with(b"--- ") || line.starts_with(b"+++ ") {
            reader.begin_plain_file(line);
        }
        // The lines of a hunk that cannot be read further are skipped like other text.
        let _ = reader.apply_line(line);
    }
    reader.files
}

/// Represents a whole text as one hunk of added lines. Returns no hunk if the text is empty.
pub fn whole_file_hunks(text: &str) -> Vec<DiffHunk> {
    let lines: Vec<HunkLine> = text.lines().enumerate().map(added_line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![DiffHunk { old_start: 0, new_start: 1, section: String::new(), lines }]
}

fn added_line((at, text): (usize, &str)) -> HunkLine {
    HunkLine {
        kind: LineKind::Added,
        old: None,
        new: Some(to_line_number(at + 1)),
        text: text.to_owned(),
    }
}

/// Applies hunks to the lines of the old side. Returns `None` if they do not match.
pub fn apply_hunks<'a>(old: &[&'a str], hunks: &'a [DiffHunk]) -> Option<Vec<&'a str>> {
    let mut new: Vec<&str> = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        for line in &hunk.lines {
            let before = line.old.map(|old| old as usize - 1);
            if let Some(before) = before {
                new.extend(old.get(at..before)?);
                (*old.get(before)? == line.text).then_some(())?;
                at = before + 1;
            } else if let Some(after) = line.new {
                // Copy the unchanged lines between two hunks.
                let missing = (after as usize - 1).checked_sub(new.len())?;
                new.extend(old.get(at..at + missing)?);
                at += missing;
            }
            if line.kind != LineKind::Removed {
                (line.new? as usize == new.len() + 1).then_some(())?;
                new.push(&line.text);
            }
        }
    }
    new.extend(old.get(at..)?);
    Some(new)
}

struct DiffReader<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
    files: Vec<FilePatch>,
}

impl<'a> DiffReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        DiffReader { lines: split_lines(bytes), at: 0, files: Vec::new() }
    }

    /// Interprets a line outside of hunks, and the whole hunk if the line is the header of one.
    fn apply_line(&mut self, line: &[u8]) -> Result<(), DiffParseError> {
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            self.files.push(file_of_header(names));
            return Ok(());
        }
        if line.starts_with(b"@@ ") {
            return self.parse_hunk(line);
        }
        let Some(file) = self.files.last_mut() else { return Ok(()) };
        if let Some(path) = line.strip_prefix(b"--- ") {
            file.old = parse_path(path, b"a/");
        } else if let Some(path) = line.strip_prefix(b"+++ ") {
            file.new = parse_path(path, b"b/");
        } else if let Some(path) = line.strip_prefix(b"rename from ") {
            file.old = parse_path(path, b"");
        } else if let Some(path) = line.strip_prefix(b"rename to ") {
            file.new = parse_path(path, b"");
        } else if line.starts_with(b"new file mode") {
            file.old = None;
        } else if line.starts_with(b"deleted file mode") {
            file.new = None;
        } else if line.starts_with(b"Binary files ") || line.starts_with(b"GIT binary patch") {
            file.binary = true;
        }
        Ok(())
    }

    /// Begins a file of a plain diff, unless the line belongs to the file that has begun.
    fn begin_plain_file(&mut self, line: &[u8]) {
        let belongs = self.files.last().is_some_and(|file| file.hunks.is_empty());
        let is_second = line.starts_with(b"+++ ") && !self.files.is_empty();
        if !belongs && !is_second {
            self.files.push(FilePatch::default());
        }
    }

    fn next_line(&mut self) -> Option<&'a [u8]> {
        let line = self.lines.get(self.at)?;
        self.at += 1;
        Some(line)
    }

    fn error_here(&self, said: &str) -> DiffParseError {
        DiffParseError { line: self.at, said: said.to_owned() }
    }

    /// Parses the body of a hunk whose header was read last.
    fn parse_hunk(&mut self, heading: &[u8]) -> Result<(), DiffParseError> {
        let mut lines = Vec::new();
        let parsed = self.parse_hunk_lines(heading, &mut lines);
        let start = parse_hunk_header(heading);
        if let (Some(file), Some(((old_start, _), (new_start, _), section))) =
            (self.files.last_mut(), start)
        {
            file.hunks.push(DiffHunk { old_start, new_start, section, lines });
        }
        parsed
    }

    fn parse_hunk_lines(
        &mut self,
        heading: &[u8],
        lines: &mut Vec<HunkLine>,
    ) -> Result<(), DiffParseError> {
        let Some(heading) = parse_hunk_header(heading) else {
            return Err(self.error_here("it should be the heading of a hunk"));
        };
        let ((old_start, mut old_left), (new_start, mut new_left), _) = heading;
        // For an empty side, git writes the number of the line before it. That number is never assigned to a line.
        let (mut old, mut new) = (old_start, new_start);
        while old_left > 0 || new_left > 0 {
            let Some(line) = self.next_line() else {
                return Err(self.error_here("the hunk is shorter than its heading says"));
            };
            // `\ No newline at end of file` is not counted by the header.
            if line.starts_with(b"\\") {
                continue;
            }
            let (kind, text) = match line.split_first() {
                Some((b'+', text)) => (LineKind::Added, text),
                Some((b'-', text)) => (LineKind::Removed, text),
                Some((b' ', text)) => (LineKind::Context, text),
                None => (LineKind::Context, line),
                _ => return Err(self.error_here("it should begin with a sign or a space")),
            };
            let (in_old, in_new) = (kind != LineKind::Added, kind != LineKind::Removed);
            if (in_old && old_left == 0) || (in_new && new_left == 0) {
                return Err(self.error_here("the hunk is longer than its heading says"));
            }
            old_left -= u32::from(in_old);
            new_left -= u32::from(in_new);
            lines.push(HunkLine {
                kind,
                old: in_old.then_some(old),
                new: in_new.then_some(new),
                text: self.without_break(text),
            });
            old += u32::from(in_old);
            new += u32::from(in_new);
        }
        Ok(())
    }

    /// The text of a line without a carriage return. The carriage return is kept on a last line that has no line feed,
    /// since it is then not part of a line break.
    fn without_break(&self, text: &[u8]) -> String {
        let ends_open = self.lines.get(self.at).is_some_and(|next| next.starts_with(b"\\"));
        let text = match text.strip_suffix(b"\r") {
            Some(text) if !ends_open => text,
            _ => text,
        };
        String::from_utf8_lossy(text).into_owned()
    }
}

fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// The first line and the number of lines of one side of a hunk.
type HunkSide = (u32, u32);

/// Parses a hunk header: `@@ -1,2 +3 @@ section`.
fn parse_hunk_header(line: &[u8]) -> Option<(HunkSide, HunkSide, String)> {
    let line = String::from_utf8_lossy(line);
    let rest = line.strip_prefix("@@ -")?;
    let (sides, section) = rest.split_once(" @@")?;
    let (old, new) = sides.split_once(" +")?;
    Some((parse_hunk_side(old)?, parse_hunk_side(new)?, section.trim().to_owned()))
}

fn parse_hunk_side(text: &str) -> Option<HunkSide> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// Parses the path of a `--- a/path` line. git quotes paths with special characters, and ends a path with spaces in a
/// tab.
fn parse_path(text: &[u8], prefix: &[u8]) -> Option<String> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let quoted = text.first() == Some(&b'"');
    let bytes = if quoted {
        unquote_path(text)?
    } else {
        text.strip_suffix(b"\t").unwrap_or(text).to_vec()
    };
    if !quoted && bytes == b"/dev/null" {
        return None;
    }
    let path = String::from_utf8_lossy(&bytes);
    let prefix = String::from_utf8_lossy(prefix);
    // `git apply` removes the first folder, whatever its name is.
    let path = match path.strip_prefix(&*prefix) {
        Some(path) => path,
        None => path.split_once('/').map_or(&*path, |(_, rest)| rest),
    };
    Some(path.to_owned())
}

/// The file of a `diff --git a/path b/path` line. Other lines correct its paths, except where only the mode changes.
fn file_of_header(names: &[u8]) -> FilePatch {
    let names = String::from_utf8_lossy(names);
    // Both names are the same unless other lines correct them, so the second one begins in the middle.
    let middle = names.len() / 2;
    let begin = match names.as_bytes().get(middle) {
        Some(b' ') => Some(middle),
        _ => names.find(" b/").or_else(|| names.find(" \"b/")),
    };
    let second = begin.map_or(&*names, |at| &names[at + 1..]);
    let path = parse_path(second.as_bytes(), b"b/");
    FilePatch { old: path.clone(), new: path, ..FilePatch::default() }
}

/// Decodes a path in git's C-style quotes.
fn unquote_path(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.strip_suffix(b"\t").unwrap_or(text);
    let inner = inner.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut bytes = Vec::new();
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            digit @ b'0'..=b'3' => {
                (digit - b'0') * 64 + octal_digit(rest.next()?)? * 8 + octal_digit(rest.next()?)?
            }
            other => other,
        });
    }
    Some(bytes)
}

fn octal_digit(byte: u8) -> Option<u8> {
    (b'0'..=b'7').contains(&byte).then(|| byte - b'0')
}

fn to_line_number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> FilePatch {
        let files = parse_diff(text.as_bytes()).unwrap();
        assert_eq!(files.len(), 1, "{files:?}");
        files.into_iter().next().unwrap()
    }

    #[test]
    fn a_hunk_has_the_numbers_of_both_sides() {
        let file = one("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n\
             @@ -3,3 +3,4 @@ fn main() {\n three\n-four\n+4\n+4.5\n five\n");
        assert_eq!((file.old.as_deref(), file.new.as_deref()), (Some("x"), Some("x")));
        let hunk = &file.hunks[0];
        assert_eq!(hunk.section, "fn main() {");
        let numbers: Vec<_> = hunk.lines.iter().map(|line| (line.old, line.new)).collect();
        assert_eq!(
            numbers,
            [
                (Some(3), Some(3)),
                (Some(4), None),
                (None, Some(4)),
                (None, Some(5)),
                (Some(5), Some(6))
            ]
        );
    }

    #[test]
    fn lines_that_look_like_a_diff_are_lines() {
        let file = one("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n\
             --- a/evil\n+++ b/evil\n diff --git a/evil b/evil\n");
        let texts: Vec<&str> = file.hunks[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["-- a/evil", "++ b/evil", "diff --git a/evil b/evil"]);
        assert_eq!(file.new.as_deref(), Some("x"));
    }

    #[test]
    fn breaks_of_two_kinds_and_none_at_the_end_are_understood() {
        let file = one(
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n\\ No newline at end of file\n\
             +three\n\\ No newline at end of file\n",
        );
        let texts: Vec<&str> = file.hunks[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["one", "two\r", "three"]);
    }

    #[test]
    fn odd_names_are_unquoted() {
        for (said, name) in [
            ("b/with space\t", "with space"),
            ("\"b/tab\\there\"", "tab\there"),
            ("\"b/quo\\\"te\\\\\"", "quo\"te\\"),
            ("\"b/\\303\\274\"", "ü"),
            ("b/ünï", "ünï"),
        ] {
            assert_eq!(parse_path(said.as_bytes(), b"b/").as_deref(), Some(name), "{said}");
        }
        assert_eq!(parse_path(b"/dev/null", b"b/"), None);
        assert_eq!(parse_path(b"other/.git/config", b"b/").as_deref(), Some(".git/config"));
    }

    #[test]
    fn what_is_cut_or_not_a_diff_is_an_error_with_its_line() {
        let head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n";
        for (text, line) in [
            ("hello\n".to_owned(), 1),
            (format!("{head}@@ -1,2 +1,2 @@\n a\n"), 5),
            (format!("{head}@@ -x +1 @@\n"), 4),
            (format!("{head}@@ -1 +1 @@\n a\n b\n@@@ -1 -1 +1 @@@\n"), 7),
            (format!("{head}@@ -1,2 +1 @@\n+a\n+b\n"), 6),
        ] {
            assert_eq!(parse_diff(text.as_bytes()).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn a_new_file_a_gone_one_and_one_that_is_no_text_are_told_apart() {
        let text = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\
                    diff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                    diff --git a/p b/p\nBinary files a/p and b/p differ\n";
        let files = parse_diff(text.as_bytes()).unwrap();
        assert_eq!((files[0].old.as_deref(), files[0].new.as_deref()), (None, Some("n")));
        assert_eq!((files[1].old.as_deref(), files[1].new.as_deref()), (Some("g"), None));
        assert!(files[2].binary);
        assert_eq!(files.iter().map(FilePatch::path).collect::<Vec<_>>(), ["n", "g", "p"]);
        assert_eq!(files[0].hunks[0].lines[0].new, Some(1));
        assert_eq!(files[1].hunks[0].lines[0].old, Some(1));
    }

    #[test]
    fn a_patch_is_found_among_words_and_may_be_plain() {
        let text = "Here it is:\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/z\n@@ -1,2 +1,2 @@\n-a\n+c\n";
        let files = parse_patch(text);
        assert_eq!(files.iter().map(FilePatch::path).collect::<Vec<_>>(), ["x", "z"]);
        assert_eq!(files[1].renamed_from(), Some("y"));
        assert_eq!(files[1].lines_of(LineKind::Added).collect::<Vec<_>>(), ["c"], "it is cut");
        assert_eq!(parse_patch("words\nand more words"), []);
    }

    #[test]
    fn a_file_that_is_only_renamed_or_gets_another_mode_has_its_paths() {
        let text = "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n\
                    diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
        let files = parse_diff(text.as_bytes()).unwrap();
        assert_eq!((files[0].path(), files[0].renamed_from()), ("new", Some("old")));
        assert_eq!((files[1].path(), files[1].renamed_from()), ("run", None));
    }
}
