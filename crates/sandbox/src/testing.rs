//! A folder to try things in.

use camino::Utf8PathBuf;

use crate::confinement::Sandbox;
use crate::workplace::RunWorkplace;

/// A work folder, and a folder for output beside it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Bench { folder }
    }

    pub(crate) fn dir(&self) -> Utf8PathBuf {
        self.outside().join("work")
    }

    /// The folder above the work folder.
    pub(crate) fn outside(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().to_owned()).unwrap()
    }

    pub(crate) fn workplace(&self) -> RunWorkplace {
        RunWorkplace::new(self.dir(), self.outside().join("spilled"), Sandbox::default())
    }

    pub(crate) fn file(&self, path: &str, contents: impl AsRef<[u8]>) {
        repertoire_text::fs::write_atomic(&self.dir().join(path), contents.as_ref()).unwrap();
    }
}
