//! A single call of git: its settings and environment, and its result.

use std::borrow::Cow;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_sandbox::process::{
    self, OutputFlow, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec, ProcessStopReason,
    TerminationSettings,
};
use tokio_util::sync::CancellationToken;

use super::confinement::{RepositoryAccess, access_of, remove_created};
use super::harmless::{HARMLESS_ENVIRONMENT, NetworkUse, harmless_settings};
use super::{GitClient, GitError, GitObjectId};
use crate::limits::{
    GIT_CONFIG_TIMEOUT, GIT_GRACE, GIT_OUTPUT_BYTES_MAX, GIT_SAID_BYTES_MAX, GIT_TIMEOUT,
    GIT_VERSION_MIN,
};

/// Variables of git that neither redirect it nor run programs.
const HARMLESS: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_EXEC_PATH",
];

/// Returns true if a variable of the caller's environment is passed on to git. `GIT_DIR`, for
/// instance, is set if a git hook started us, and must not be.
pub(super) fn is_passed_to_git(name: &str) -> bool {
    let ours = HARMLESS_ENVIRONMENT.iter().any(|(set, _)| *set == name);
    !ours && (!name.starts_with("GIT_") || HARMLESS.contains(&name))
}

/// A call of git: its arguments and everything else it runs with.
pub(super) struct GitCall<'a> {
    pub(super) args: &'a [&'a str],
    pub(super) settings: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) stdin: ProcessInput,
    pub(super) kept_bytes_max: usize,
    pub(super) confinement: CallConfinement,
    /// Folders outside the repository that the call writes to.
    pub(super) reach: Vec<Utf8PathBuf>,
    pub(super) timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallConfinement {
    /// In the sandbox, with this access to the repository, which is untrusted.
    Repository(RepositoryAccess),
    /// Unconfined: the call only reads configuration, or works in a repository that only the engine
    /// has written to.
    None,
}

impl<'a> GitCall<'a> {
    pub(super) fn new(args: &'a [&'a str]) -> Self {
        GitCall {
            args,
            settings: Vec::new(),
            environment: Vec::new(),
            stdin: ProcessInput::Closed,
            kept_bytes_max: GIT_OUTPUT_BYTES_MAX,
            confinement: CallConfinement::Repository(access_of(args)),
            reach: Vec::new(),
            timeout: GIT_TIMEOUT,
        }
    }

    /// A call that reads configuration and runs no programs. Included files can be anywhere, so it
    /// is not confined; one of them could be a named pipe, so its timeout is short.
    pub(super) fn for_configuration(args: &'a [&'a str]) -> Self {
        GitCall {
            confinement: CallConfinement::None,
            timeout: GIT_CONFIG_TIMEOUT,
            ..GitCall::new(args)
        }
    }
}

/// The result of a call that ran to its end.
pub(super) struct GitOutput {
    command: String,
    dir: camino::Utf8PathBuf,
    pub(super) code: i32,
    ended: ProcessResult,
}

impl GitOutput {
    /// All of standard output; an error if it was larger than the limit.
    pub(super) fn stdout_bytes(&self) -> Result<&[u8], GitError> {
        let stdout = &self.ended.stdout;
        if stdout.total > stdout.bytes.len() as u64 {
            Err(GitError::TooMuch { command: self.command.clone(), bytes: stdout.total })
        } else {
            Ok(&stdout.bytes)
        }
    }

    /// The kept part of standard output, and its whole size.
    pub(super) fn kept_stdout(&self) -> (&[u8], u64) {
        (&self.ended.stdout.bytes, self.ended.stdout.total)
    }

    /// Standard output without the final line break.
    pub(super) fn stdout_text(&self) -> Result<Cow<'_, str>, GitError> {
        let bytes = self.stdout_bytes()?;
        Ok(String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(bytes)))
    }

    pub(super) fn parse_oid(&self) -> Result<GitObjectId, GitError> {
        let text = self.stdout_text()?;
        GitObjectId::parse(&text).ok_or_else(|| self.unclear_error(&text))
    }

    pub(super) fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.ended.stderr.bytes)
    }

    pub(super) fn unclear_error(&self, said: &str) -> GitError {
        let said = said.chars().take(200).collect();
        GitError::Unclear { command: self.command.clone(), said }
    }

    /// Returns true if the sandbox helper failed before it started git.
    fn is_refused_by_walls(&self) -> bool {
        matches!(self.code, 126 | 127) && self.stderr_text().trim_start().starts_with("sandbox: ")
    }

    /// The error for an unexpected exit code.
    pub(super) fn failure_error(&self) -> GitError {
        let said = stderr_tail(&self.ended.stderr.bytes);
        if said.contains("not a git repository") || said.contains("must be run in a work tree") {
            return GitError::NotARepository { dir: self.dir.clone() };
        }
        let command = self.command.clone();
        // A partial clone: the engine's calls cannot fetch missing objects.
        if said.contains("lazy fetching disabled") || said.contains("could not fetch") {
            return GitError::MissingObjects { dir: self.dir.clone() };
        }
        let lock = said.contains(".lock") || said.contains("could not lock");
        if lock && said.contains("File exists") {
            return GitError::Locked { command, said };
        }
        GitError::Failed { command, dir: self.dir.clone(), code: self.code, said }
    }
}

impl GitClient {
    /// Runs git after checking its version once. Accepts any exit code.
    pub(super) async fn run_call(
        &self,
        ask: GitCall<'_>,
        on_line: &mut (dyn FnMut(&[u8]) -> OutputFlow + Send),
    ) -> Result<GitOutput, GitError> {
        self.version.get_or_try_init(|| self.check_version()).await?;
        self.run_call_unchecked(ask, on_line).await
    }

    #[tracing::instrument(name = "git", level = "debug", skip_all, fields(command = ask.args.first().copied()))]
    pub(super) async fn run_call_unchecked(
        &self,
        ask: GitCall<'_>,
        on_line: &mut (dyn FnMut(&[u8]) -> OutputFlow + Send),
    ) -> Result<GitOutput, GitError> {
        let (command, timeout, confinement) =
            (display_command(ask.args), ask.timeout, ask.confinement);
        let spawn = match confinement {
            CallConfinement::Repository(access) => self.confined_spawn(ask, access).await?,
            CallConfinement::None => self.build_spawn(ask, &[]),
        };
        let absent = self.absent_kept_paths(confinement)?;
        let ended = process::run(&spawn, &CancellationToken::new(), on_line).await;
        remove_created(&absent)?;
        let ended = ended?;
        if ended.stopped == Some(ProcessStopReason::Absolute) {
            let seconds = timeout.as_secs();
            return Err(GitError::TimedOut { command, dir: self.dir.clone(), seconds });
        }
        let answer =
            GitOutput { command, dir: self.dir.clone(), code: ended.code.unwrap_or(-1), ended };
        if answer.is_refused_by_walls() {
            Err(GitError::NoWalls { said: answer.stderr_text().trim().to_owned() })
        } else {
            Ok(answer)
        }
    }

    /// Builds the call confined to its repository. Without a sandbox, replaces all programs that
    /// the repository's configuration names.
    async fn confined_spawn(
        &self,
        ask: GitCall<'_>,
        access: RepositoryAccess,
    ) -> Result<ProcessSpec, GitError> {
        let place = self.repository_dirs()?;
        // Boxed, since its future is large, and most calls find the value cached.
        let surroundings = Box::pin(self.git_config(&place)).await?;
        let mut environment = place.git_environment();
        if !self.may_run_programs(access) {
            environment.extend(config_variables(&surroundings.replaced_programs()));
        }
        if !self.sandbox.is_enforced() {
            return Ok(self.build_spawn(ask, &environment));
        }
        if let Some(global) = &surroundings.global {
            environment.push(owned_pair("GIT_CONFIG_GLOBAL", global.as_str()));
        }
        let reach = ask.reach.clone();
        let spawn = self.build_spawn(ask, &environment);
        self.confine_spawn(spawn, &place, access, &reach, &surroundings.readable)
    }

    fn build_spawn(&self, ask: GitCall<'_>, around: &[(String, String)]) -> ProcessSpec {
        let mut args = vec!["--no-pager".to_owned()];
        let ours = harmless_settings(NetworkUse::None).map(str::to_owned);
        for setting in ours.chain(ask.settings) {
            args.extend(["-c".to_owned(), setting]);
        }
        args.extend(ask.args.iter().map(|arg| (*arg).to_owned()));
        let mut environment = self.environment.to_vec();
        environment
            .extend(HARMLESS_ENVIRONMENT.iter().map(|(name, value)| owned_pair(name, value)));
        environment.extend(around.iter().cloned());
        environment.extend(ask.environment);
        ProcessSpec {
            program: "git".to_owned(),
            args,
            dir: self.dir.clone(),
            environment,
            stdin: ask.stdin,
            limits: ProcessLimits {
                idle: None,
                absolute: ask.timeout,
                grace: GIT_GRACE,
                kept_bytes_max: ask.kept_bytes_max,
            },
            termination: TerminationSettings::default(),
        }
    }

    async fn check_version(&self) -> Result<(), GitError> {
        let ask = GitCall { confinement: CallConfinement::None, ..GitCall::new(&["--version"]) };
        let answer = self.run_call_unchecked(ask, &mut |_| OutputFlow::Continue).await?;
        let found = answer.stdout_text()?.into_owned();
        match version_of(&found) {
            Some(version) if version >= GIT_VERSION_MIN => Ok(()),
            _ => Err(GitError::TooOld { found }),
        }
    }

    /// Runs git. Accepts any exit code.
    pub(super) async fn run_any_code(&self, args: &[&str]) -> Result<GitOutput, GitError> {
        self.run_call(GitCall::new(args), &mut |_| OutputFlow::Continue).await
    }

    /// Runs git. Accepts exit code 0 only.
    pub(super) async fn run_checked_call(&self, ask: GitCall<'_>) -> Result<GitOutput, GitError> {
        let answer = self.run_call(ask, &mut |_| OutputFlow::Continue).await?;
        match answer.code {
            0 => Ok(answer),
            _ => Err(answer.failure_error()),
        }
    }

    /// Runs git and returns its output. Accepts exit code 0 only.
    pub async fn ok(&self, args: &[&str]) -> Result<Vec<u8>, GitError> {
        let answer = self.run_checked_call(GitCall::new(args)).await?;
        answer.stdout_bytes().map(<[u8]>::to_vec)
    }

    /// Runs git with write access to folders outside the repository. Accepts exit code 0 only.
    pub async fn run_checked_reaching(
        &self,
        args: &[&str],
        reach: &[&camino::Utf8Path],
    ) -> Result<Vec<u8>, GitError> {
        let reach = reach.iter().map(|path| (*path).to_owned()).collect();
        let answer = self.run_checked_call(GitCall { reach, ..GitCall::new(args) }).await?;
        answer.stdout_bytes().map(<[u8]>::to_vec)
    }

    /// Runs git and returns its one line of output.
    pub(super) async fn run_for_line(&self, args: &[&str]) -> Result<String, GitError> {
        let answer = self.run_checked_call(GitCall::new(args)).await?;
        match answer.stdout_text()? {
            Cow::Borrowed(text) if !text.is_empty() => Ok(text.to_owned()),
            other => Err(answer.unclear_error(&other)),
        }
    }

    /// Runs git for a yes (exit code 0) or no (exit code 1) answer.
    pub(super) async fn run_for_bool(&self, args: &[&str]) -> Result<bool, GitError> {
        let answer = self.run_any_code(args).await?;
        match answer.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(answer.failure_error()),
        }
    }
}

pub(super) fn owned_pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Settings as environment variables: unlike `-c`, these accept any key.
pub(super) fn config_variables(settings: &[(String, String)]) -> Vec<(String, String)> {
    if settings.is_empty() {
        return Vec::new();
    }
    let mut set = vec![owned_pair("GIT_CONFIG_COUNT", &settings.len().to_string())];
    for (number, (key, value)) in settings.iter().enumerate() {
        set.push(owned_pair(&format!("GIT_CONFIG_KEY_{number}"), key));
        set.push(owned_pair(&format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    set
}

/// The command for messages, without our settings, on one line and shortened.
fn display_command(args: &[&str]) -> String {
    let line = format!("git {}", args.join(" "));
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

fn stderr_tail(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(GIT_SAID_BYTES_MAX)..]);
    match text.trim() {
        "" => "it said nothing".to_owned(),
        said => said.to_owned(),
    }
}

/// Parses the first two numbers of `git version 2.47.3 (Apple Git-1)`.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split(['.', ' ', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_vendors_write_them() {
        for (text, version) in [
            ("git version 2.47.3", Some((2, 47))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 2.50.0.windows.1", Some((2, 50))),
            ("git version 3.0-rc1", Some((3, 0))),
            ("hub version 2", None),
        ] {
            assert_eq!(version_of(text), version, "{text}");
        }
    }

    #[test]
    fn a_hook_that_started_us_does_not_lead_git_elsewhere() {
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_EXTERNAL_DIFF", "LC_ALL"]
        {
            assert!(!is_passed_to_git(name), "{name}");
        }
        for name in ["PATH", "HOME", "GIT_AUTHOR_NAME", "GIT_CONFIG_GLOBAL"] {
            assert!(is_passed_to_git(name), "{name}");
        }
    }
}
