//! Skills that are scripts: what they print, as the same step model. Nothing here starts a process.
