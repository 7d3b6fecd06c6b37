//! Whole runs against a scripted model server.

mod faults;
mod loops;
mod seeds;
mod workspace;
