//! The learnings of a workspace: notes that runs add to a file, that users may edit, and that later
//! prompts contain.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::skill::ContentDigest;
use repertoire_text::fs;
use repertoire_text::layout::one_line;

use crate::limits::{LEARNING_CHARS_MAX, LEARNINGS_BYTES_MAX};

#[derive(Clone, Debug)]
pub struct LearningsFile {
    path: Utf8PathBuf,
}

const HEAD: &str = "# Learnings\n\nNotes that later prompts in this workspace are shown. Change or remove them as you like.\n\n";

impl LearningsFile {
    /// The learnings of a workspace, in a file beneath `folder`.
    pub fn new(folder: &Utf8Path, workspace: &str) -> Self {
        let digest = ContentDigest::hash_bytes(workspace.as_bytes()).to_string();
        let short = digest.trim_start_matches("sha256:").get(..16).unwrap_or_default().to_owned();
        LearningsFile { path: folder.join(short).join("LEARNINGS.md") }
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Reads the notes, oldest first. Empty if the file cannot be read, since notes are optional.
    pub fn read(&self) -> Vec<String> {
        let text = fs::read_text(&self.path, LEARNINGS_BYTES_MAX).unwrap_or_default();
        let notes = text.lines().filter_map(|line| line.strip_prefix("- "));
        notes.map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned).collect()
    }

    /// Adds notes that are not in the file yet. A file that exists but cannot be read is left
    /// alone.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn add(&self, notes: &[String]) -> std::io::Result<()> {
        let known = self.read();
        let mut text = match fs::read_text(&self.path, LEARNINGS_BYTES_MAX) {
            Ok(text) => text,
            Err(fs::ReadError::NotFound) => HEAD.to_owned(),
            Err(_) => return Ok(()),
        };
        let mut is_new = false;
        for note in notes {
            let line = one_line(note);
            let line: String = line.chars().take(LEARNING_CHARS_MAX).collect();
            if !known.contains(&line) {
                text.push_str(&format!("- {line}\n"));
                is_new = true;
            }
        }
        if is_new && (text.len() as u64) < LEARNINGS_BYTES_MAX {
            fs::write_atomic(&self.path, text.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_once_and_on_one_line() {
        let keep = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(keep.path()).unwrap();
        let learnings = LearningsFile::new(folder, "/repo");
        assert_eq!(learnings.read(), Vec::<String>::new());
        learnings.add(&["use the\nother port".into(), "b".into()]).unwrap();
        learnings.add(&["b".into(), "c".into()]).unwrap();
        assert_eq!(learnings.read(), ["use the other port", "b", "c"]);
        assert_eq!(LearningsFile::new(folder, "/other").read(), Vec::<String>::new());
    }

    #[test]
    fn a_note_is_short_and_a_file_that_cannot_be_read_is_left_alone() {
        let keep = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(keep.path()).unwrap();
        let learnings = LearningsFile::new(folder, "/repo");
        learnings.add(&["x".repeat(100_000)]).unwrap();
        assert_eq!(learnings.read()[0].len(), LEARNING_CHARS_MAX);
        let theirs = vec![b'y'; LEARNINGS_BYTES_MAX as usize + 1];
        fs::write_atomic(learnings.path(), &theirs).unwrap();
        learnings.add(&["b".into()]).unwrap();
        let bytes = std::fs::metadata(learnings.path()).unwrap().len();
        assert_eq!(bytes, LEARNINGS_BYTES_MAX + 1);
    }
}
