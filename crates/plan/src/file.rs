//! Reading and writing the plan file in a worktree. An agent may replace it by anything, and the
//! engine runs outside the agent's sandbox, so symbolic links are never followed.

use std::io;

use crate::limits::PLAN_BYTES_MAX;
use camino::Utf8Path;
use repertoire_text::fs::{FileLocation, FolderHandle, LocationError};

/// Reads a plan; `None` if it is missing or cannot be read.
pub fn read_plan(dir: &Utf8Path, plan: &Utf8Path) -> Option<String> {
    let place = FolderHandle::open(dir).ok()?.resolve_without_links(plan).ok()?;
    place.read_text(PLAN_BYTES_MAX as u64).ok()
}

/// Writes a plan. Removes symbolic links in its path: there were none when the run started.
///
/// # Errors
///
/// Fails if something else is in the way, or the file cannot be written.
pub fn write(dir: &Utf8Path, plan: &Utf8Path, text: &str) -> io::Result<()> {
    let written = FolderHandle::open(dir).map_err(LocationError::from).and_then(|folder| {
        let place = place_without_links(&folder, plan)?;
        Ok(place.write_atomic(text.as_bytes())?)
    });
    written.map_err(|error| {
        let (file, error) = (dir.join(plan), io::Error::from(error));
        io::Error::new(error.kind(), format!("the plan {file} cannot be written: {error}"))
    })
}

/// Resolves the location of a plan, and removes symbolic links in its path.
fn place_without_links(
    folder: &FolderHandle,
    plan: &Utf8Path,
) -> Result<FileLocation, LocationError> {
    // An agent's program may create a new link each time, so give up after a limit.
    for _ in 0..LINKS_REMOVED_MAX {
        match folder.resolve_without_links(plan) {
            Err(LocationError::Link { link }) => folder.remove_file(&link)?,
            resolved => return resolved,
        }
    }
    folder.resolve_without_links(plan)
}

/// Maximum number of links that are removed in the path of a plan.
const LINKS_REMOVED_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use repertoire_text::fs;

    use super::*;

    #[test]
    fn a_plan_is_written_where_it_belongs_and_not_where_a_link_leads() {
        let keep = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let (dir, outside) = (base.join("worktree"), base.join("outside"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        let secret = outside.join("PLAN.md");
        fs::write_atomic(&secret, b"private\n").unwrap();
        for (link, to, plan) in
            [("PLAN.md", &secret, "PLAN.md"), ("docs", &outside, "docs/PLAN.md")]
        {
            symlink(to, dir.join(link)).unwrap();
            let plan = Utf8Path::new(plan);
            assert_eq!(read_plan(&dir, plan), None, "{plan}");
            write(&dir, plan, "- [ ] A\n").unwrap();
            assert_eq!(read_plan(&dir, plan).as_deref(), Some("- [ ] A\n"), "{plan}");
            assert_eq!(fs::read_text(&secret, 100).unwrap(), "private\n", "{plan}");
        }
        let folder = dir.join("folder");
        std::fs::create_dir(&folder).unwrap();
        let error = write(&dir, Utf8Path::new("folder"), "x").unwrap_err();
        assert!(error.to_string().contains("the plan"), "{error}");
    }
}
