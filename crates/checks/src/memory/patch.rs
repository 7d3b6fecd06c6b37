//! A patch, as far as one has to know it to judge it: which files it touches, what it adds, and what it takes away.

/// What a patch does to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// The path afterwards; before, if it is gone.
    pub(crate) path: String,
    /// The path before, if that was another one.
    pub(crate) from: Option<String>,
    /// Whether it is gone.
    pub(crate) deleted: bool,
    /// Lines that came.
    pub(crate) added: Vec<String>,
    /// Lines that went.
    pub(crate) removed: Vec<String>,
    /// Lines around them that stay, and what git says of where they are.
    pub(crate) around: Vec<String>,
}

impl Touched {
    pub(crate) fn lines(&self) -> usize {
        self.added.len() + self.removed.len()
    }
}

/// The files of a patch as `git diff` writes it. What is not understood is left out, so an empty answer means that it is
/// no patch.
pub(crate) fn touched(patch: &str) -> Vec<Touched> {
    let mut files: Vec<Touched> = Vec::new();
    // How many lines the hunk still has: in it, a line that looks like a heading is text.
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
            files.push(Touched { path: after_b(rest), ..Touched::default() });
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            (old_left, new_left) = spans(hunk).unwrap_or((0, 0));
            let place = hunk.split_once("@@ ").map(|(_, place)| place.to_owned());
            files.last_mut().into_iter().for_each(|file| file.around.extend(place.clone()));
        } else if let Some(file) = files.last_mut() {
            follow_heading(file, line);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            // A plain diff has no other heading.
            files.push(Touched { path: bare(path), ..Touched::default() });
        }
    }
    files
}

fn follow_heading(file: &mut Touched, line: &str) {
    if line.starts_with("deleted file mode") {
        file.deleted = true;
    } else if let Some(path) = line.strip_prefix("rename from ") {
        file.from = Some(path.to_owned());
    } else if let Some(path) = line.strip_prefix("rename to ") {
        path.clone_into(&mut file.path);
    } else if let Some(path) = line.strip_prefix("+++ ")
        && bare(path) != "/dev/null"
    {
        file.path = bare(path);
    } else if let Some(path) = line.strip_prefix("--- ")
        && bare(path) != "/dev/null"
        && file.from.is_none()
        && bare(path) != file.path
    {
        file.from = Some(bare(path));
    }
}

/// `a/src/x.rs b/src/x.rs`: the second half.
fn after_b(rest: &str) -> String {
    let half = rest.find(" b/").map_or(rest, |at| &rest[at + 1..]);
    bare(half)
}

fn bare(path: &str) -> String {
    let path = path.split('\t').next().unwrap_or(path).trim_matches('"');
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    path.to_owned()
}

/// `-1,3 +1,4 @@`: how many lines there are before and after.
fn spans(hunk: &str) -> Option<(u64, u64)> {
    let mut parts = hunk.split(' ');
    let count = |part: &str, sign| -> Option<u64> {
        let range = part.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
    };
    Some((count(parts.next()?, '-')?, count(parts.next()?, '+')?))
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
        let files = touched(patch);
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/x.rs", "new", "gone.rs"]);
        assert_eq!(
            (files[0].added.as_slice(), files[0].removed.as_slice()),
            (["++ b/evil".to_owned()].as_slice(), ["-- a/evil".to_owned()].as_slice())
        );
        assert_eq!(files[0].around, ["mod tests {", " one", " two"]);
        assert_eq!(files[1].from.as_deref(), Some("old"));
        assert!(files[2].deleted && files[2].lines() == 1);
        assert_eq!(touched("words\nand more words"), []);
    }
}
