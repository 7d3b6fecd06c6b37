//! The plan file in a worktree. Agents may put anything in its place, and the engine is not in their sandbox: what it reads
//! and writes there must be there, and not where a link leads.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_flow::limits::PLAN_BYTES_MAX;
use repertoire_text::fs;

/// The text of a plan; nothing if there is none that can be read.
pub fn read(dir: &Utf8Path, plan: &Utf8Path) -> Option<String> {
    let is_there = !has_link(dir, plan);
    is_there.then(|| fs::read_text_beneath(dir, plan, PLAN_BYTES_MAX as u64).ok()).flatten()
}

/// Writes a plan. Links on the way are removed: the way had none when the run began.
///
/// # Errors
///
/// When something else is in the way, or the file cannot be written.
pub fn write(dir: &Utf8Path, plan: &Utf8Path, text: &str) -> io::Result<()> {
    for part in way(dir, plan) {
        if is_link(&part) {
            std::fs::remove_file(&part)?;
        }
    }
    let file = dir.join(plan);
    fs::write_atomic(&file, text.as_bytes()).map_err(|error| {
        io::Error::new(error.kind(), format!("the plan {file} cannot be written: {error}"))
    })
}

/// The folders from the worktree to the plan, and the plan.
fn way(dir: &Utf8Path, plan: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    let mut at = dir.to_owned();
    plan.components().map(move |part| {
        at.push(part);
        at.clone()
    })
}

fn has_link(dir: &Utf8Path, plan: &Utf8Path) -> bool {
    way(dir, plan).any(|part| is_link(&part))
}

fn is_link(path: &Utf8Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

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
            assert_eq!(read(&dir, plan), None, "{plan}");
            write(&dir, plan, "- [ ] A\n").unwrap();
            assert_eq!(read(&dir, plan).as_deref(), Some("- [ ] A\n"), "{plan}");
            assert_eq!(fs::read_text(&secret, 100).unwrap(), "private\n", "{plan}");
        }
        let folder = dir.join("folder");
        std::fs::create_dir(&folder).unwrap();
        let error = write(&dir, Utf8Path::new("folder"), "x").unwrap_err();
        assert!(error.to_string().contains("the plan"), "{error}");
    }
}
