//! Whole runs against a scripted model server.

mod executing;
mod faults;
mod loops;
mod seeds;
mod udbud;
mod workspace;
