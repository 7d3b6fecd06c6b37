//! A minimal parser for patches, to judge them: which files they touch, which lines they add and
//! remove.

/// The change of a patch to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchedFile {
    /// The new path; for a deleted file, the old one.
    pub(crate) path: String,
    /// The old path, if it differs.
    pub(crate) from: Option<String>,
    pub(crate) deleted: bool,
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// Context lines, and the function names in hunk headers.
    pub(crate) around: Vec<String>,
}

impl PatchedFile {
    pub(crate) fn changed_lines(&self) -> usize {
        self.added.len() + self.removed.len()
    }
}

/// The files of a patch in the format of `git diff`. Lines that are not understood are ignored, so
/// an empty result means that the text is not a patch.
pub(crate) fn parse_patch(patch: &str) -> Vec<PatchedFile> {
    let mut files: Vec<PatchedFile> = Vec::new();
    // The remaining lines of the current hunk. Within a hunk, a line that looks like a header is
    // content.
    let (mut old_left, mut new_left) = (0_u64, 0_u64);
    for line in patch.lines() {
        if old_left + new_left > 0 {
            let Some(file) = files.last_mut() else { continue };
            match line.as_bytes().first() {
                Some(b'+') => {
                    new_left = new_left.saturating_sub(1);
                    file.added.push(line[1..].to_owned());
                }
                Some(b'-') => {
                    old_left = old_left.saturating_sub(1);
                    file.removed.push(line[1..].to_owned());
                }
                Some(b'\\') => {}
                _ => {
                    old_left = old_left.saturating_sub(1);
                    new_left = new_left.saturating_sub(1);
                    file.around.push(line.to_owned());
                }
            }
            continue;
        }
        if let Some(rest) = line.strip_prefix("diff --git ") {
            files.push(PatchedFile { path: new_path(rest), ..PatchedFile::default() });
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            (old_left, new_left) = parse_hunk_ranges(hunk).unwrap_or((0, 0));
            let place = hunk.split_once("@@ ").map(|(_, place)| place.to_owned());
            files.last_mut().into_iter().for_each(|file| file.around.extend(place.clone()));
        } else if let Some(file) = files.last_mut() {
            apply_header(file, line);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            // A plain diff has no `diff --git` line.
            files.push(PatchedFile { path: strip_path_prefix(path), ..PatchedFile::default() });
        }
    }
    files
}

fn apply_header(file: &mut PatchedFile, line: &str) {
    if line.starts_with("deleted file mode") {
        file.deleted = true;
    } else if let Some(path) = line.strip_prefix("rename from ") {
        file.from = Some(path.to_owned());
    } else if let Some(path) = line.strip_prefix("rename to ") {
        path.clone_into(&mut file.path);
    } else if let Some(path) = line.strip_prefix("+++ ")
        && strip_path_prefix(path) != "/dev/null"
    {
        file.path = strip_path_prefix(path);
    } else if let Some(path) = line.strip_prefix("--- ")
        && strip_path_prefix(path) != "/dev/null"
        && file.from.is_none()
        && strip_path_prefix(path) != file.path
    {
        file.from = Some(strip_path_prefix(path));
    }
}

/// The second path of `a/src/x.rs b/src/x.rs`.
fn new_path(rest: &str) -> String {
    let half = rest.find(" b/").map_or(rest, |at| &rest[at + 1..]);
    strip_path_prefix(half)
}

fn strip_path_prefix(path: &str) -> String {
    let path = path.split('\t').next().unwrap_or(path).trim_matches('"');
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    path.to_owned()
}

/// Parses the numbers of old and new lines in `-1,3 +1,4 @@`.
fn parse_hunk_ranges(hunk: &str) -> Option<(u64, u64)> {
    let mut parts = hunk.split(' ');
    Some((line_count(parts.next()?, '-')?, line_count(parts.next()?, '+')?))
}

/// The number of lines of a range such as `-1,3`; 1 if the range has no number.
fn line_count(range: &str, sign: char) -> Option<u64> {
    let range = range.strip_prefix(sign)?;
    range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_lines_are_told_apart_from_what_looks_like_them() {
        let patch = "diff --git a/src/x.rs b/src/x.rs\nindex 1..2 100644\n--- a/src/x.rs\n+++ b/src/x.rs\n\
            @@ -1,3 +1,3 @@ mod tests {\n one\n--- a/evil\n+++ b/evil\n two\n\
            diff --git a/old b/new\nrename from old\nrename to new\n\
            diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let files = parse_patch(patch);
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/x.rs", "new", "gone.rs"]);
        assert_eq!(
            (files[0].added.as_slice(), files[0].removed.as_slice()),
            (["++ b/evil".to_owned()].as_slice(), ["-- a/evil".to_owned()].as_slice())
        );
        assert_eq!(files[0].around, ["mod tests {", " one", " two"]);
        assert_eq!(files[1].from.as_deref(), Some("old"));
        assert!(files[2].deleted && files[2].changed_lines() == 1);
        assert_eq!(parse_patch("words\nand more words"), []);
    }
}
