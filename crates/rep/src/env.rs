//! The process's surroundings, read once and passed on: nothing else asks the environment.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use camino::Utf8PathBuf;

use crate::failure::Failure;

/// Where and how `rep` was started.
#[derive(Clone, Debug)]
pub struct Env {
    /// The working directory.
    pub here: Utf8PathBuf,
    /// Whether that is another folder than the process stands in, so that paths have to be joined.
    pub moved: bool,
    /// Environment variables that are UTF-8.
    pub vars: BTreeMap<String, String>,
    /// Whether standard output is a terminal.
    pub is_terminal: bool,
    /// Width of the terminal in columns.
    pub columns: usize,
}

impl Env {
    /// The surroundings of this process.
    pub fn of_process() -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::cannot_run(format!("the working directory is gone: {error}"))
        })?;
        let here = Utf8PathBuf::from_path_buf(here).map_err(|path| {
            Failure::cannot_run(format!("the working directory is not UTF-8: {}", path.display()))
        })?;
        let vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let columns = vars.get("COLUMNS").and_then(|text| text.parse().ok());
        let is_terminal = std::io::stdout().is_terminal();
        let measured = || terminal_columns().filter(|_| is_terminal);
        let columns = columns.or_else(measured).unwrap_or(100);
        Ok(Env { here, moved: false, vars, is_terminal, columns })
    }

    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The user's home; without one, a folder that does not exist.
    pub fn home(&self) -> Utf8PathBuf {
        let home = self.var("HOME").or_else(|| self.var("USERPROFILE"));
        home.map_or_else(|| Utf8PathBuf::from("/nonexistent"), Utf8PathBuf::from)
    }

    /// Where the user's configuration lives.
    pub fn config_dir(&self) -> Utf8PathBuf {
        let base = self.var("XDG_CONFIG_HOME").map(Utf8PathBuf::from);
        base.unwrap_or_else(|| self.home().join(".config")).join("repertoire")
    }

    /// Where data lives that can be made again.
    pub fn data_dir(&self) -> Utf8PathBuf {
        if let Some(dir) = self.var("REPERTOIRE_DATA_DIR") {
            return dir.into();
        }
        let base = self.var("XDG_DATA_HOME").map(Utf8PathBuf::from);
        base.unwrap_or_else(|| self.home().join(".local/share")).join("repertoire")
    }

    /// Where things are kept that only save time.
    pub fn cache_dir(&self) -> Utf8PathBuf {
        let base = self.var("XDG_CACHE_HOME").map(Utf8PathBuf::from);
        // One that depends on where the user stands is to be ignored, by the rules of these folders.
        let base = base.filter(|base| base.is_absolute());
        base.unwrap_or_else(|| self.home().join(".cache")).join("repertoire")
    }
}

fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}
