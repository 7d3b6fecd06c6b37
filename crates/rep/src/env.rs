//! The process's surroundings, read once and passed on: nothing else asks the environment.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_sandbox::confinement::{Probed, scrubbed};
use repertoire_model::{Endpoint, Endpoints, Secret};
use repertoire_text::secrets::is_secret_variable;

use crate::failure::Failure;

pub(crate) mod handed_over;

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
    /// Whether standard input is a terminal: a person who can be asked.
    pub stdin_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// Width of the terminal in columns.
    pub columns: usize,
}

/// Where Ollama listens, which is what most people mean by a server of their own.
const COMPAT_URL: &str = "http://127.0.0.1:11434/v1";
/// The hidden command that puts up the walls of the sandbox.
pub const SANDBOX_WORD: &str = "__sandbox";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// How the variables begin that other agents need for themselves.
const AGENTS_OWN: &[&str] = &[
    "ANTHROPIC_",
    "CLAUDE_",
    "OPENAI_",
    "CODEX_",
    "OPENCODE_",
    "GEMINI_",
    "GOOGLE_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_",
];

impl Env {
    /// The surroundings of this process.
    pub fn of_process() -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::cannot_run(format!("the working directory is gone: {error}"))
        })?;
        let here = Utf8PathBuf::from_path_buf(here).map_err(|path| {
            Failure::cannot_run(format!("the working directory is not UTF-8: {}", path.display()))
        })?;
        let mut vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        handed_over::take(&mut vars);
        let columns = vars.get("COLUMNS").and_then(|text| text.parse().ok());
        let is_terminal = std::io::stdout().is_terminal();
        let measured = || terminal_columns().filter(|_| is_terminal);
        let columns = columns.or_else(measured).unwrap_or(100);
        let stdin_is_terminal = std::io::stdin().is_terminal();
        let stderr_is_terminal = std::io::stderr().is_terminal();
        let moved = false;
        Ok(Env { here, moved, vars, is_terminal, stdin_is_terminal, stderr_is_terminal, columns })
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
        // A relative one would make the project that the user stands in the owner of the lock.
        let base = base.filter(|base| base.is_absolute());
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

    /// A variable that must never be told.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.var(name).map(|value| Secret::new(value.trim()))
    }

    /// Every variable whose name says that it must never be told, and whose value is long enough to be recognised.
    pub fn secrets(&self) -> Vec<Secret> {
        let is_secret = |name: &str, value: &str| {
            // A variable such as `SSH_AUTH_SOCK` names a file, which is no secret.
            let is_path = value.starts_with('/') && value.matches('/').count() > 1;
            is_secret_variable(name)
                && value.trim().len() >= 8
                && (!is_path || value.contains(['+', '=']))
        };
        let all = self.vars.iter().filter(|(name, value)| is_secret(name, value));
        all.map(|(_, value)| Secret::new(value.trim())).collect()
    }

    /// Where models are, and the keys to them.
    pub fn endpoints(&self) -> Endpoints {
        let endpoint = |url: Option<&str>, default: &str, key: Option<&str>| Endpoint {
            base_url: url.unwrap_or(default).trim_end_matches('/').to_owned(),
            key: key.map(|key| Secret::new(key.trim())),
        };
        let anthropic = self.var("ANTHROPIC_API_KEY");
        let openai = self.var("OPENAI_API_KEY");
        let openai_url = self.var("OPENAI_BASE_URL");
        Endpoints {
            anthropic: anthropic
                .map(|key| endpoint(self.var("ANTHROPIC_BASE_URL"), ANTHROPIC_URL, Some(key))),
            openai: openai.map(|key| endpoint(openai_url, OPENAI_URL, Some(key))),
            // A key goes nowhere but to the address that it was set for.
            compat: Some(endpoint(openai_url, COMPAT_URL, openai.filter(|_| openai_url.is_some()))),
        }
    }

    /// What programs that agents start see of the environment: what they need to work, and no secrets. Somebody else's
    /// agent gets its own keys as well.
    pub fn tool_environment(&self, for_agent: bool) -> Vec<(String, String)> {
        let mut out = scrubbed(self.vars.clone());
        let is_own = |name: &str| AGENTS_OWN.iter().any(|prefix| name.starts_with(prefix));
        let own = self.vars.iter().filter(|(name, _)| for_agent && is_own(name));
        out.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        out
    }

    /// The program and its first argument that put up the walls of the sandbox; nothing if the program is gone.
    pub fn sandbox_helper() -> Vec<String> {
        let exe =
            std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
        exe.into_iter().chain([SANDBOX_WORD.to_owned()]).collect()
    }

    /// The sandbox of this machine. It is looked for once, when the first program starts.
    pub fn sandbox() -> Probed {
        static SANDBOX: OnceLock<Probed> = OnceLock::new();
        SANDBOX.get_or_init(|| Probed::later(Env::sandbox_helper())).clone()
    }

    /// Where a program is, by the folders of `PATH`.
    pub fn program(&self, name: &str) -> Option<Utf8PathBuf> {
        let folders = self.var("PATH")?.split(':').filter(|folder| !folder.is_empty());
        folders.map(|folder| Utf8Path::new(folder).join(name)).find(|path| is_program(path))
    }

    /// Where conversations and what is remembered of them are kept.
    pub fn conversations_dir(&self) -> Utf8PathBuf {
        self.data_dir().join("conversations")
    }

    /// Where things are kept that only save time.
    pub fn cache_dir(&self) -> Utf8PathBuf {
        let base = self.var("XDG_CACHE_HOME").map(Utf8PathBuf::from);
        // One that depends on where the user stands is to be ignored, by the rules of these folders.
        let base = base.filter(|base| base.is_absolute());
        base.unwrap_or_else(|| self.home().join(".cache")).join("repertoire")
    }

    /// Where long output and the private folders of commands are: beneath the cache, or beneath the temporary folder of
    /// the system if the cache cannot be written to.
    pub fn output_dir(&self) -> Utf8PathBuf {
        let cached = self.cache_dir().join("output");
        if is_writable_folder(&cached) {
            return cached;
        }
        // If there is none either, the error of whatever is written names the folder of the cache.
        self.temporary_output_dir().unwrap_or(cached)
    }

    /// A folder of this user in the temporary folder, which others can neither read nor prepare.
    fn temporary_output_dir(&self) -> Option<Utf8PathBuf> {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
        let base = self.var("TMPDIR").map(Utf8PathBuf::from).filter(|base| base.is_absolute());
        let user = rustix::process::geteuid().as_raw();
        let own = base.unwrap_or_else(|| "/tmp".into()).join(format!("repertoire-{user}"));
        // It may be there already, and then has to be ours.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(&own);
        let found = own.symlink_metadata().ok()?;
        let is_ours = found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
        let output = own.join("output");
        (is_ours && is_writable_folder(&output)).then_some(output)
    }
}

/// Makes a folder that only this user reads, if it is not there. Returns whether files can be made in it.
fn is_writable_folder(folder: &Utf8Path) -> bool {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    made.is_ok() && rustix::fs::access(folder.as_str(), access).is_ok()
}

#[cfg(unix)]
fn is_program(path: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Utf8Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(vars: &[(&str, &Utf8Path)]) -> Env {
        let vars = vars.iter().map(|(name, path)| ((*name).to_owned(), path.to_string()));
        Env {
            here: "/".into(),
            moved: false,
            vars: vars.collect(),
            is_terminal: false,
            stdin_is_terminal: false,
            stderr_is_terminal: false,
            columns: 80,
        }
    }

    #[test]
    fn output_goes_to_the_temporary_folder_if_the_cache_cannot_be_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let file = dir.join("file");
        repertoire_text::fs::write_atomic(&file, b"").unwrap();
        let vars = [("XDG_CACHE_HOME", dir), ("TMPDIR", dir)];
        assert_eq!(env(&vars).output_dir(), dir.join("repertoire/output"));
        let vars = [("XDG_CACHE_HOME", file.as_path()), ("TMPDIR", dir)];
        let own = dir.join(format!("repertoire-{}", rustix::process::geteuid().as_raw()));
        assert_eq!(env(&vars).output_dir(), own.join("output"));
        // A folder that others prepared, or can read, is not taken.
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(env(&vars).output_dir(), file.join("repertoire/output"));
        std::fs::remove_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(dir, &own).unwrap();
        assert_eq!(env(&vars).output_dir(), file.join("repertoire/output"));
    }
}
