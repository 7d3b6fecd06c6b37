//! The command line of Repertoire: arguments, terminal output and exit codes of `rep`.
//!
//! The rules are in the library crates; start with the package `repertoire`.

mod attending;
pub mod cli;
pub mod codes;
mod commands;
pub mod config;
mod consent;
pub mod demo;
pub mod env;
pub mod failure;
mod live;
mod planning;
mod project_files;
mod question;
mod reviewing;
mod rules;
mod running;
mod runs_text;
pub mod schema;
mod selecting;
mod serving;
mod tracing;
pub mod ui;
