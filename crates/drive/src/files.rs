//! Private folders.

use camino::Utf8Path;

/// Creates a folder that only the user can read, and its missing parents.
pub(crate) fn make_private_dir(dir: &Utf8Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
