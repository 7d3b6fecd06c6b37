//! Limits on untrusted files. The defaults accept every real skill that we know of: among 14,000 public ones, the
//! largest frontmatter has 9,649 bytes and the largest file 1.1 MB.

use crate::yaml;

/// Limits on one text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a file that is read.
    pub file_bytes_max: u64,
    /// The maximum size of a frontmatter that is parsed.
    pub frontmatter_bytes_max: usize,
    /// Limits on the YAML inside.
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
