//! The changes of a patch to each file, for the policy on fixes.

use repertoire_git::diff::{self, FilePatch, LineKind};

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

impl From<FilePatch> for PatchedFile {
    fn from(file: FilePatch) -> Self {
        let lines_of = |kind| file.lines_of(kind).map(str::to_owned).collect::<Vec<_>>();
        let sections = file.hunks.iter().map(|hunk| hunk.section.clone());
        PatchedFile {
            path: file.path().to_owned(),
            from: file.renamed_from().map(str::to_owned),
            deleted: file.new.is_none(),
            added: lines_of(LineKind::Added),
            removed: lines_of(LineKind::Removed),
            around: sections
                .filter(|section| !section.is_empty())
                .chain(lines_of(LineKind::Context))
                .collect(),
        }
    }
}

/// The files of a patch. An empty result means that the text is not a patch.
pub(crate) fn parse_patch(patch: &str) -> Vec<PatchedFile> {
    diff::parse_patch(patch).into_iter().map(PatchedFile::from).collect()
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
        assert_eq!(files[0].around, ["mod tests {", "one", "two"]);
        assert_eq!(files[1].from.as_deref(), Some("old"));
        assert!(files[2].deleted && files[2].changed_lines() == 1);
        assert_eq!(parse_patch("words\nand more words"), []);
    }
}
