//! Folders that are the user's alone.

use camino::Utf8Path;

/// A folder that nobody else looks into, with those above it that are missing.
pub(crate) fn make_private_dir(dir: &Utf8Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
