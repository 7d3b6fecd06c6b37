//! The environment of the process with its terminals, read once and passed on.

use std::io::IsTerminal;
use std::ops::Deref;
use std::path::PathBuf;

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
    /// The reason why the path of this program is unknown.
    pub program_problem: Option<String>,
}

impl CliEnvironment {
    /// Reads the environment of this process.
    pub fn of_process() -> Result<Self, CliFailure> {
        let mut process = AppEnvironment::of_process()?;
        // This very program, not the one on `PATH`, which may be another version. That one still
        // sets up the sandbox if the path of this one is unknown.
        let mut program_problem = None;
        match read_program_path(std::env::current_exe()) {
            Ok(path) => process.rep_program = Some(path),
            Err(reason) => {
                let instead = match &process.rep_program {
                    Some(path) => format!("{path} is used for the sandbox"),
                    None => "there is no sandbox".to_owned(),
                };
                program_problem =
                    Some(format!("the path of this program is unknown ({reason}), so {instead}"));
            }
        }
        let columns = process.vars.get("COLUMNS").and_then(|text| text.parse().ok());
        let is_terminal = std::io::stdout().is_terminal();
        let measured = || terminal_columns().filter(|_| is_terminal);
        Ok(CliEnvironment {
            process,
            is_terminal,
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            columns: columns.or_else(measured).unwrap_or(100),
            program_problem,
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

/// Returns the path of a program, or the reason why it is unknown.
fn read_program_path(exe: std::io::Result<PathBuf>) -> Result<String, String> {
    let path = exe.map_err(|error| error.to_string())?;
    path.into_os_string()
        .into_string()
        .map_err(|path| format!("{} is not UTF-8", path.to_string_lossy()))
}

fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_program_whose_path_is_unknown_says_why() {
        assert_eq!(read_program_path(Ok("/usr/bin/rep".into())), Ok("/usr/bin/rep".to_owned()));
        let gone = std::io::Error::other("no /proc here");
        assert_eq!(read_program_path(Err(gone)), Err("no /proc here".to_owned()));
        let odd = std::ffi::OsString::from_vec(b"/opt/\xff/rep".to_vec());
        let reason = read_program_path(Ok(odd.into())).unwrap_err();
        assert!(reason.ends_with("rep is not UTF-8"), "{reason}");
    }
}
