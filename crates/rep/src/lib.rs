//! The command line of Repertoire: arguments, terminal output and exit codes of `rep`.
//!
//! The rules are in the library crates; start with the package `repertoire`.

mod agent_flags;
mod async_runtime;
pub mod cli;
pub mod codes;
mod commands;
mod completion;
mod consent;
mod demo;
pub mod env;
pub mod failure;
mod foreground_run;
mod logging;
mod permission_question;
mod plan_flags;
mod project_files;
mod review_flags;
mod run_display;
mod runs_text;
pub mod schema;
mod service_setup;
mod telemetry;
pub mod ui;
