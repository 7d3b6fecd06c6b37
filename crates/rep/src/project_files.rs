//! Writes files into a project. A link in the project that leads out of it is not followed: the
//! command fails, and names the link and its target.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{FileLocation, FolderHandle, LocationError};

use crate::cli::CliContext;
use crate::failure::CliFailure;

/// Maximum number of dangling links that are followed to the file to create.
const DANGLING_LINKS_MAX: usize = 8;

/// Checks that [`write_output`] could write a file, before the work that produces it.
///
/// # Errors
///
/// Like [`place_to_write`].
pub(crate) fn check_output(ctx: &CliContext<'_>, path: &Utf8Path) -> Result<(), CliFailure> {
    place_to_write(ctx.config.places().project_dir(), &ctx.env.here.join(path)).map(drop)
}

/// Writes a file named on the command line. The link check is repeated, since the command may have
/// run programs of the project that put a link in its place.
///
/// # Errors
///
/// Like [`place_to_write`], or if the file cannot be written.
pub(crate) fn write_output(
    ctx: &CliContext<'_>,
    path: &Utf8Path,
    text: &[u8],
) -> Result<(), CliFailure> {
    let place = place_to_write(ctx.config.places().project_dir(), &ctx.env.here.join(path))?;
    place
        .write_atomic(text)
        .map_err(|error| CliFailure::cannot_run(format!("{path} cannot be written: {error}")))
}

/// Resolves the path of a file to write. A path in the project must stay in it; any other path is
/// the user's own choice, including its links.
///
/// # Errors
///
/// Fails if a link leads out of the project or to nothing.
pub(crate) fn place_to_write(
    project: &Utf8Path,
    path: &Utf8Path,
) -> Result<FileLocation, CliFailure> {
    let (folder, mut relative) = split_path(project, path);
    let dir =
        FolderHandle::open(&folder).map_err(|error| write_refused(&folder, path, error.into()))?;
    for _ in 0..DANGLING_LINKS_MAX {
        match dir.place(&relative) {
            Err(LocationError::Dangling { link }) if link == relative => {
                // Keep a link such as `AGENTS.md -> CLAUDE.md`, and create the file that it names.
                let target = target_of(&folder, &link);
                relative = target.ok_or_else(|| {
                    write_refused(&folder, path, LocationError::Dangling { link })
                })?;
            }
            place => return place.map_err(|error| write_refused(&folder, path, error)),
        }
    }
    Err(write_refused(&folder, path, LocationError::Dangling { link: relative }))
}

/// Returns the target of a link relative to the folder. The caller resolves it again, which checks
/// that it stays in the folder.
fn target_of(folder: &Utf8Path, link: &Utf8Path) -> Option<Utf8PathBuf> {
    let target = folder.join(link).read_link_utf8().ok()?;
    if target.is_absolute() {
        target.strip_prefix(folder).ok().map(Utf8Path::to_owned)
    } else {
        Some(link.parent()?.join(target))
    }
}

/// Splits a path into the folder that it must stay in and the path relative to that.
fn split_path(project: &Utf8Path, path: &Utf8Path) -> (Utf8PathBuf, Utf8PathBuf) {
    if let Ok(relative) = path.strip_prefix(project)
        && !leads_above(relative)
    {
        return (project.to_owned(), relative.to_owned());
    }
    let path = &path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    // The innermost folder that exists; the others are created.
    let folder = path.ancestors().skip(1).find(|folder| *folder != "" && folder.is_dir());
    let folder = folder.unwrap_or(Utf8Path::new("."));
    (folder.to_owned(), path.strip_prefix(folder).unwrap_or(path).to_owned())
}

/// Returns true if a path leads above its starting folder, as `a/../../b` does.
fn leads_above(relative: &Utf8Path) -> bool {
    let mut depth = 0_i64;
    relative.components().any(|part| {
        depth += if part == Utf8Component::ParentDir { -1 } else { 1 };
        depth < 0
    })
}

fn write_refused(folder: &Utf8Path, path: &Utf8Path, error: LocationError) -> CliFailure {
    match error {
        LocationError::LinkLeaves { link, .. } => {
            let link = folder.join(link);
            let target = link.read_link_utf8().unwrap_or_else(|_| "elsewhere".into());
            let message = format!(
                "{path} was not written: {link} is a symbolic link to {target}, which is outside of {folder}"
            );
            CliFailure::cannot_run(message)
                .hint("Replace the link by a folder or file of its own, or name the path that it leads to.")
        }
        LocationError::Dangling { link } => {
            let link = folder.join(link);
            CliFailure::cannot_run(format!(
                "{path} was not written: {link} is a symbolic link to nothing"
            ))
            .hint(format!("Remove it first: `rm {link}`."))
        }
        other => CliFailure::cannot_run(format!("{path} cannot be written: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_out_of_the_project_is_named_with_its_target() {
        let keep = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(base.join("elsewhere")).unwrap();
        symlink(base.join("elsewhere"), project.join(".claude")).unwrap();
        let path = project.join(".claude/skills/new/SKILL.md");
        let failure = place_to_write(&project, &path).unwrap_err();
        let said = failure.message;
        assert!(
            said.contains(&format!("{project}/.claude is a symbolic link to {base}/elsewhere")),
            "{said}"
        );
        let own = base.join("elsewhere/AGENTS.md");
        assert_eq!(place_to_write(&project, &own).unwrap().relative(), "AGENTS.md");
    }

    #[test]
    fn a_path_may_climb_out_of_the_project_but_a_dangling_link_may_not() {
        let keep = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(&project).unwrap();
        let typed = project.join("../out/report.md");
        assert_eq!(place_to_write(&project, &typed).unwrap().relative(), "out/report.md");
        symlink("CLAUDE.md", project.join("AGENTS.md")).unwrap();
        let place = place_to_write(&project, &project.join("AGENTS.md")).unwrap();
        assert_eq!(place.relative(), "CLAUDE.md");
        for (name, target) in [("a.md", "../outside.md"), ("b.md", "b.md")] {
            symlink(target, project.join(name)).unwrap();
            place_to_write(&project, &project.join(name)).unwrap_err();
        }
    }
}
