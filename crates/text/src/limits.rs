//! Caps on what is read from files by strangers. The defaults refuse no real skill that we know of:
//! in 14,000 public ones the largest frontmatter has 9,649 bytes and the largest file 1.1 MB.

use crate::yaml;

/// Caps on one text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest file that is read at all.
    pub file_bytes_max: u64,
    /// Largest frontmatter that is parsed.
    pub frontmatter_bytes_max: usize,
    /// Caps on the YAML inside.
    pub yaml: yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes_max: 2 * 1024 * 1024,
            frontmatter_bytes_max: 64 * 1024,
            yaml: yaml::Limits::default(),
        }
    }
}
