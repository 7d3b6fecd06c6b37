//! The environment of the process with its terminals, read once and passed on.

use std::io::IsTerminal;
use std::ops::Deref;

use camino::Utf8PathBuf;
use repertoire::env::AppEnvironment;

use crate::failure::CliFailure;

/// The environment and the terminals that `rep` was started with.
#[derive(Clone, Debug)]
pub struct CliEnvironment {
    /// The working folder and the variables.
    pub process: AppEnvironment,
    /// True if standard output is a terminal.
    pub is_terminal: bool,
    /// True if standard input is a terminal, so that a user can be asked.
    pub stdin_is_terminal: bool,
    /// True if standard error is a terminal.
    pub stderr_is_terminal: bool,
    pub columns: usize,
}

impl CliEnvironment {
    /// Reads the environment of this process.
    pub fn of_process() -> Result<Self, CliFailure> {
        let mut process = AppEnvironment::of_process()?;
        // This very program, not the one on `PATH`, which may be another version.
        let exe = std::env::current_exe().ok();
        process.rep_program = exe.and_then(|path| path.into_os_string().into_string().ok());
        let columns = process.vars.get("COLUMNS").and_then(|text| text.parse().ok());
        let is_terminal = std::io::stdout().is_terminal();
        let measured = || terminal_columns().filter(|_| is_terminal);
        Ok(CliEnvironment {
            process,
            is_terminal,
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            columns: columns.or_else(measured).unwrap_or(100),
        })
    }

    /// Returns the same environment in another working folder.
    #[must_use]
    pub fn in_folder(&self, here: impl Into<Utf8PathBuf>) -> Self {
        CliEnvironment { process: self.process.in_folder(here), ..self.clone() }
    }
}

impl Deref for CliEnvironment {
    type Target = AppEnvironment;

    fn deref(&self) -> &AppEnvironment {
        &self.process
    }
}

fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}
