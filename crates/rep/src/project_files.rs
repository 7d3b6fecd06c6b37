//! Files that `rep` itself writes into a project. A link of the project that leads out of it is not followed: the command
//! stops, and names the link and where it leads.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{Folder, Place, PlaceError};

use crate::cli::Ctx;
use crate::failure::Failure;

/// The maximum number of links to missing files that are followed to the file to make.
const DANGLING_LINKS_MAX: usize = 8;

/// Refuses a file named on the command line that [`write_output`] could not write, before the work that fills it.
///
/// # Errors
///
/// As [`place_to_write`].
pub(crate) fn check_output(ctx: &Ctx<'_>, path: &Utf8Path) -> Result<(), Failure> {
    place_to_write(ctx.config.places().project(), &ctx.env.here.join(path)).map(drop)
}

/// Writes a file that was named on the command line. The commands that write one have run programs of the project, which
/// may have left a link in its place.
///
/// # Errors
///
/// As [`place_to_write`], and when it cannot be written.
pub(crate) fn write_output(ctx: &Ctx<'_>, path: &Utf8Path, text: &[u8]) -> Result<(), Failure> {
    let place = place_to_write(ctx.config.places().project(), &ctx.env.here.join(path))?;
    place
        .write_atomic(text)
        .map_err(|error| Failure::cannot_run(format!("{path} cannot be written: {error}")))
}

/// Resolves the place of a file to write. One beneath the project stays beneath it; any other path is the user's own
/// choice, with the links that it has.
///
/// # Errors
///
/// When a link leads out of the project or to nothing.
pub(crate) fn place_to_write(project: &Utf8Path, path: &Utf8Path) -> Result<Place, Failure> {
    let (folder, mut relative) = split(project, path);
    let dir = Folder::open(&folder).map_err(|error| refused(&folder, path, error.into()))?;
    for _ in 0..DANGLING_LINKS_MAX {
        match dir.place(&relative) {
            Err(PlaceError::Dangling { link }) if link == relative => {
                // A link such as `AGENTS.md -> CLAUDE.md` stays, and the file that it names is made.
                let target = target_of(&folder, &link);
                relative =
                    target.ok_or_else(|| refused(&folder, path, PlaceError::Dangling { link }))?;
            }
            place => return place.map_err(|error| refused(&folder, path, error)),
        }
    }
    Err(refused(&folder, path, PlaceError::Dangling { link: relative }))
}

/// The path beneath the folder that a link names. It is only a proposal: whether it stays beneath is decided where it is
/// resolved.
fn target_of(folder: &Utf8Path, link: &Utf8Path) -> Option<Utf8PathBuf> {
    let target = folder.join(link).read_link_utf8().ok()?;
    match target.is_absolute() {
        true => target.strip_prefix(folder).ok().map(Utf8Path::to_owned),
        false => Some(link.parent()?.join(target)),
    }
}

/// The folder that a path must stay in, and the path beneath it.
fn split(project: &Utf8Path, path: &Utf8Path) -> (Utf8PathBuf, Utf8PathBuf) {
    if let Ok(relative) = path.strip_prefix(project)
        && !climbs(relative)
    {
        return (project.to_owned(), relative.to_owned());
    }
    let path = &path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    // The nearest folder that exists; those below it are made.
    let folder = path.ancestors().skip(1).find(|folder| *folder != "" && folder.is_dir());
    let folder = folder.unwrap_or(Utf8Path::new("."));
    (folder.to_owned(), path.strip_prefix(folder).unwrap_or(path).to_owned())
}

/// Whether a path leads above the folder that it starts from, as `a/../../b` does.
fn climbs(relative: &Utf8Path) -> bool {
    let mut depth = 0_i64;
    relative.components().any(|part| {
        depth += if part == Utf8Component::ParentDir { -1 } else { 1 };
        depth < 0
    })
}

fn refused(folder: &Utf8Path, path: &Utf8Path, error: PlaceError) -> Failure {
    match error {
        PlaceError::LinkLeaves { link, .. } => {
            let link = folder.join(link);
            let target = link.read_link_utf8().unwrap_or_else(|_| "elsewhere".into());
            let message = format!(
                "{path} was not written: {link} is a symbolic link to {target}, which is outside of {folder}"
            );
            Failure::cannot_run(message)
                .hint("Replace the link by a folder or file of its own, or name the path that it leads to.")
        }
        PlaceError::Dangling { link } => {
            let link = folder.join(link);
            Failure::cannot_run(format!(
                "{path} was not written: {link} is a symbolic link to nothing"
            ))
            .hint(format!("Remove it first: `rm {link}`."))
        }
        other => Failure::cannot_run(format!("{path} cannot be written: {other}")),
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
