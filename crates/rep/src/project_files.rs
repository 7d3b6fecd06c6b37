//! Files that `rep` itself writes into a project. A link of the project that leads out of it is not followed: the command
//! stops, and names the link and where it leads.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{Folder, Place, PlaceError};

use crate::cli::Ctx;
use crate::failure::Failure;

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
    let (folder, relative) = split(project, path);
    let place =
        Folder::open(&folder).map_err(PlaceError::from).and_then(|dir| dir.place(&relative));
    place.map_err(|error| refused(&folder, path, error))
}

/// The folder that a path must stay in, and the path beneath it.
fn split(project: &Utf8Path, path: &Utf8Path) -> (Utf8PathBuf, Utf8PathBuf) {
    if let Ok(relative) = path.strip_prefix(project) {
        return (project.to_owned(), relative.to_owned());
    }
    let path = &path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    // The nearest folder that exists; those below it are made.
    let folder = path.ancestors().skip(1).find(|folder| *folder != "" && folder.is_dir());
    let folder = folder.unwrap_or(Utf8Path::new("."));
    (folder.to_owned(), path.strip_prefix(folder).unwrap_or(path).to_owned())
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
}
