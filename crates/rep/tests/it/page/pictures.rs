//! Pictures of every view, for people to look at and for the documentation.
