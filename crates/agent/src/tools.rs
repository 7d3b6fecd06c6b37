//! Tools, one a file.
