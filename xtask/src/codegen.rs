//! Writes generated files, or checks that they are up to date. Each generator decides what its file contains.

use anyhow::{Context as _, Result, bail};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs;

use crate::{check, cli, configuration, diagnostics, events, profiles, schemas};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A generated file, by its path in the repository.
pub(crate) struct GeneratedFile {
    pub(crate) path: Utf8PathBuf,
    pub(crate) text: String,
}

/// All generated files.
fn generate_all() -> Result<Vec<GeneratedFile>> {
    let pages = [
        ("docs/reference/cli.md", cli::render_page()),
        ("docs/reference/configuration.md", configuration::render_page()),
        ("docs/reference/diagnostics.md", diagnostics::render_page()),
        ("docs/reference/events.md", events::render_page()),
        ("docs/reference/profiles.md", profiles::render_page()),
        ("docs/reference/schemas.md", schemas::render_page()),
    ];
    let pages = pages.map(|(path, text)| GeneratedFile { path: path.into(), text });
    Ok(pages.into_iter().chain(schemas::generate_schemas()?).collect())
}

/// Writes the files that are out of date.
pub(crate) fn write_files() -> Result<String> {
    let stale = find_stale()?;
    for file in &stale {
        let path = repository_root().join(&file.path);
        fs::write_atomic(&path, file.text.as_bytes()).with_context(|| format!("writing {path}"))?;
    }
    let leftovers = find_leftovers()?;
    for path in &leftovers {
        std::fs::remove_file(repository_root().join(path))
            .with_context(|| format!("removing {path}"))?;
    }
    if stale.is_empty() && leftovers.is_empty() {
        return Ok("generated files are up to date".to_owned());
    }
    let written = stale.iter().map(|file| format!("wrote {}", file.path));
    let removed = leftovers.iter().map(|path| format!("removed {path}"));
    Ok(written.chain(removed).collect::<Vec<_>>().join("\n"))
}

/// Reports what is out of date, in generated files and in handwritten pages.
pub(crate) fn check_files() -> Result<String> {
    let stale = find_stale()?.into_iter().map(|file| file.path).chain(find_leftovers()?);
    let stale: Vec<String> = stale.map(|path| format!("`{path}`")).collect();
    if !stale.is_empty() {
        bail!("{} out of date: run cargo xtask codegen", stale.join(", "));
    }
    check::check_pages()?;
    Ok("generated files are up to date".to_owned())
}

fn find_stale() -> Result<Vec<GeneratedFile>> {
    let mut files = generate_all()?;
    files.retain(|file| read_file(&file.path).ok().as_ref() != Some(&file.text));
    Ok(files)
}

/// Schemas of commands that no longer exist.
fn find_leftovers() -> Result<Vec<Utf8PathBuf>> {
    let known: Vec<Utf8PathBuf> = generate_all()?.into_iter().map(|file| file.path).collect();
    let Ok(entries) = repository_root().join(schemas::FOLDER).read_dir_utf8() else {
        return Ok(Vec::new());
    };
    let mut out = Vec::new();
    for entry in entries {
        let path = Utf8Path::new(schemas::FOLDER).join(entry?.file_name());
        if !known.contains(&path) {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// Reads a file of the repository.
pub(crate) fn read_file(path: &Utf8Path) -> Result<String> {
    fs::read_text(&repository_root().join(path), FILE_BYTES_MAX)
        .with_context(|| format!("reading {path}"))
}

pub(crate) fn repository_root() -> &'static Utf8Path {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Utf8Path::new("."))
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_up_to_date() {
        if let Err(error) = super::check_files() {
            panic!("{error:#}");
        }
    }
}
