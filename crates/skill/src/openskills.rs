//! OpenSkills 1.5.0, byte for byte.
