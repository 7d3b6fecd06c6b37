//! Whole runs against a scripted model server.

mod commands;
mod executing;
mod faults;
mod loops;
mod permissions;
mod seeds;
mod udbud;
mod workspace;
