//! Whole runs against a scripted model server.

mod seeds;
mod udbud;
mod workspace;
