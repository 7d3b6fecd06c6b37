//! The environment of the process, read once and passed on. No other module reads it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_model::{ApiSecret, ModelEndpoints};
use repertoire_sandbox::confinement::{LazySandbox, scrub_environment};
use repertoire_text::secrets::is_secret_variable;

use crate::error::AppError;

pub mod secret_handover;

/// The working folder and the variables that a process was started with.
#[derive(Clone, Debug)]
pub struct AppEnvironment {
    pub here: Utf8PathBuf,
    /// True if `here` differs from the process's working folder, so that paths must be joined to
    /// it.
    pub moved: bool,
    /// Environment variables that are UTF-8.
    pub vars: BTreeMap<String, String>,
    /// The `rep` program, which sets up the sandbox (`rep __sandbox`) and takes the answers of external agents
    /// (`rep mcp`). `None` if there is none: then programs run without a sandbox.
    pub rep_program: Option<String>,
}

/// The hidden subcommand that sets up the sandbox.
pub const SANDBOX_WORD: &str = "__sandbox";

/// Prefixes of the variables that external agents need for themselves.
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

impl AppEnvironment {
    /// Reads the environment of this process, with the `rep` program that is on `PATH`.
    pub fn of_process() -> Result<Self, AppError> {
        let here = std::env::current_dir().map_err(|error| {
            AppError::cannot_run(format!("the working directory is gone: {error}"))
        })?;
        let here = Utf8PathBuf::from_path_buf(here).map_err(|path| {
            AppError::cannot_run(format!("the working directory is not UTF-8: {}", path.display()))
        })?;
        let mut vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        secret_handover::take_secrets(&mut vars);
        let mut env = AppEnvironment { here, moved: false, vars, rep_program: None };
        let found = env.find_program("rep").filter(|path| path.is_absolute());
        env.rep_program = found.map(Utf8PathBuf::into_string);
        Ok(env)
    }

    /// Returns the same environment in another working folder.
    #[must_use]
    pub fn in_folder(&self, here: impl Into<Utf8PathBuf>) -> Self {
        AppEnvironment { here: here.into(), moved: true, ..self.clone() }
    }

    /// Returns a variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The user's home. If unknown, a folder that does not exist.
    pub fn home(&self) -> Utf8PathBuf {
        let home = self.var("HOME").or_else(|| self.var("USERPROFILE"));
        home.map_or_else(|| Utf8PathBuf::from("/nonexistent"), Utf8PathBuf::from)
    }

    /// The folder of the user's configuration.
    pub fn config_dir(&self) -> Utf8PathBuf {
        let base = self.var("XDG_CONFIG_HOME").map(Utf8PathBuf::from);
        // A relative path would put the user's lock file into whatever project is the working
        // folder.
        let base = base.filter(|base| base.is_absolute());
        base.unwrap_or_else(|| self.home().join(".config")).join("repertoire")
    }

    /// The folder of the journal, the conversations, the worktrees and other data.
    pub fn data_dir(&self) -> Utf8PathBuf {
        if let Some(dir) = self.var("REPERTOIRE_DATA_DIR") {
            return dir.into();
        }
        let base = self.var("XDG_DATA_HOME").map(Utf8PathBuf::from);
        base.unwrap_or_else(|| self.home().join(".local/share")).join("repertoire")
    }

    /// Returns a variable as a secret, which cannot be printed.
    pub fn secret_var(&self, name: &str) -> Option<ApiSecret> {
        self.var(name).map(|value| ApiSecret::new(value.trim()))
    }

    /// Returns all variables with the name of a secret and a value long enough to be recognised in
    /// text.
    pub fn secret_values(&self) -> Vec<ApiSecret> {
        let all = self.vars.iter().filter(|(name, value)| is_secret(name, value));
        all.map(|(_, value)| ApiSecret::new(value.trim())).collect()
    }

    /// Returns the addresses of model services, with their API keys.
    pub fn model_endpoints(&self) -> ModelEndpoints {
        ModelEndpoints::from_variables(|name| self.var(name))
    }

    /// Returns the environment for programs that agents start, without secrets. With `for_agent`,
    /// an external agent gets its own keys as well.
    pub fn tool_environment(&self, for_agent: bool) -> Vec<(String, String)> {
        let mut out = scrub_environment(self.vars.clone());
        let own = self.vars.iter().filter(|(name, _)| for_agent && is_for_agents(name));
        out.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        out
    }

    /// Returns the command that sets up the sandbox: the `rep` program and its hidden subcommand. If
    /// there is no such program, its path is missing.
    pub fn sandbox_helper(&self) -> Vec<String> {
        self.rep_program.iter().cloned().chain([SANDBOX_WORD.to_owned()]).collect()
    }

    /// Returns the sandbox of this machine, which is probed once, when the first program starts.
    pub fn probe_sandbox(&self) -> LazySandbox {
        static SANDBOX: OnceLock<LazySandbox> = OnceLock::new();
        SANDBOX.get_or_init(|| LazySandbox::on_first_use(self.sandbox_helper())).clone()
    }

    /// Finds an executable in the folders of `PATH`.
    pub fn find_program(&self, name: &str) -> Option<Utf8PathBuf> {
        let folders = self.var("PATH")?.split(':').filter(|folder| !folder.is_empty());
        folders.map(|folder| Utf8Path::new(folder).join(name)).find(|path| is_program(path))
    }

    /// The folder of files that can be recreated.
    pub fn cache_dir(&self) -> Utf8PathBuf {
        let base = self.var("XDG_CACHE_HOME").map(Utf8PathBuf::from);
        // The XDG specification says to ignore relative paths.
        let base = base.filter(|base| base.is_absolute());
        base.unwrap_or_else(|| self.home().join(".cache")).join("repertoire")
    }

    /// The folder of long output and of the commands' private folders: beneath the cache, or
    /// beneath the system's temporary folder if the cache is not writable.
    pub fn output_dir(&self) -> Utf8PathBuf {
        let cached = self.cache_dir().join("output");
        if ensure_writable_folder(&cached) {
            return cached;
        }
        // If that fails too, return the cache folder, so that later errors name it.
        self.temporary_output_dir().unwrap_or(cached)
    }

    /// Returns a folder of this user in the temporary folder that others can neither read nor
    /// create beforehand.
    fn temporary_output_dir(&self) -> Option<Utf8PathBuf> {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
        let base = self.var("TMPDIR").map(Utf8PathBuf::from).filter(|base| base.is_absolute());
        let user = rustix::process::geteuid().as_raw();
        let own = base.unwrap_or_else(|| "/tmp".into()).join(format!("repertoire-{user}"));
        // The folder may exist already; then it must be ours, which is checked below.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(&own);
        let found = own.symlink_metadata().ok()?;
        let is_ours = found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
        let output = own.join("output");
        (is_ours && ensure_writable_folder(&output)).then_some(output)
    }
}

/// Creates a folder that only this user can read, if it does not exist. Returns true if it is
/// writable.
fn ensure_writable_folder(folder: &Utf8Path) -> bool {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    made.is_ok() && rustix::fs::access(folder.as_str(), access).is_ok()
}

/// Returns true if the name is that of a secret, and the value is long enough and no path.
fn is_secret(name: &str, value: &str) -> bool {
    // A variable such as `SSH_AUTH_SOCK` holds the path of a file, which is no secret.
    let is_path = value.starts_with('/') && value.matches('/').count() > 1;
    is_secret_variable(name) && value.trim().len() >= 8 && (!is_path || value.contains(['+', '=']))
}

fn is_for_agents(name: &str) -> bool {
    AGENTS_OWN.iter().any(|prefix| name.starts_with(prefix))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn env(vars: &[(&str, &Utf8Path)]) -> AppEnvironment {
        let vars = vars.iter().map(|(name, path)| ((*name).to_owned(), path.to_string()));
        AppEnvironment { here: "/".into(), moved: false, vars: vars.collect(), rep_program: None }
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
        // A folder that another user may have created, or can read, is not used.
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(env(&vars).output_dir(), file.join("repertoire/output"));
        std::fs::remove_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(dir, &own).unwrap();
        assert_eq!(env(&vars).output_dir(), file.join("repertoire/output"));
    }
}
