//! The kinds of backends, and the names by which users select them.

use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::acp::AcpBackend;
use super::cli::CliBackend;
use super::command::CommandBackend;
use super::scripted::ScriptedBackend;
use super::{Backend, claude, codex, gemini, opencode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackendKind {
    Api,
    Claude,
    Codex,
    Opencode,
    Gemini,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
    /// Any program that reads a prompt and prints an answer.
    Command,
    /// Replays a transcript.
    Scripted,
}

impl BackendKind {
    pub const ALL: &[BackendKind] = &[
        BackendKind::Api,
        BackendKind::Claude,
        BackendKind::Codex,
        BackendKind::Opencode,
        BackendKind::Gemini,
        BackendKind::Acp,
        BackendKind::Command,
        BackendKind::Scripted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            BackendKind::Api => "api",
            BackendKind::Claude => claude::CLI.name,
            BackendKind::Codex => codex::CLI.name,
            BackendKind::Opencode => opencode::CLI.name,
            BackendKind::Gemini => gemini::CLI.name,
            BackendKind::Acp => "acp",
            BackendKind::Command => "command",
            BackendKind::Scripted => "scripted",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        BackendKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if the whole backend is confined: by our sandbox, by its own, or because it has
    /// no side effects. Backends without a sandbox can read every file that the user can.
    pub fn is_confined(self) -> bool {
        match self {
            BackendKind::Api | BackendKind::Scripted => true,
            BackendKind::Claude => claude::CLI.holds.sandbox,
            BackendKind::Codex => codex::CLI.holds.sandbox,
            BackendKind::Opencode => opencode::CLI.holds.sandbox,
            BackendKind::Gemini => gemini::CLI.holds.sandbox,
            BackendKind::Acp | BackendKind::Command => false,
        }
    }

    /// The program that the backend runs, if it is always the same.
    pub fn program(self) -> Option<&'static str> {
        match self {
            BackendKind::Claude => Some(claude::CLI.program),
            BackendKind::Codex => Some(codex::CLI.program),
            BackendKind::Opencode => Some(opencode::CLI.program),
            BackendKind::Gemini => Some(gemini::CLI.program),
            BackendKind::Api | BackendKind::Acp | BackendKind::Command | BackendKind::Scripted => {
                None
            }
        }
    }
}

/// An agent CLI that was found on the PATH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledCli {
    pub kind: BackendKind,
    pub program: Utf8PathBuf,
}

/// Finds the agent CLIs in the folders of a `PATH`; the first match of each wins. Starts no
/// process.
pub fn find_installed_clis(path: &str) -> Vec<InstalledCli> {
    BackendKind::ALL.iter().filter_map(|kind| find_installed(*kind, path)).collect()
}

fn find_installed(kind: BackendKind, path: &str) -> Option<InstalledCli> {
    let program = kind.program()?;
    // A relative folder would resolve differently in every project.
    let dirs = path.split(':').map(Utf8Path::new).filter(|dir| dir.is_absolute());
    let program = dirs.map(|dir| dir.join(program)).find(|file| is_executable(file))?;
    Some(InstalledCli { kind, program })
}

fn is_executable(file: &Utf8Path) -> bool {
    std::fs::metadata(file)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// A backend as selected by the user or the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendChoice {
    pub kind: BackendKind,
    /// Replaces the default program; for a transcript, its file.
    pub program: Option<String>,
    /// Additional arguments.
    pub args: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum BackendChoiceError {
    /// Our own loop needs a model and is constructed elsewhere.
    #[error("the `api` backend is our own loop, not a program")]
    Api,
    #[error("the `{kind}` backend needs {what}")]
    Incomplete { kind: &'static str, what: &'static str },
}

/// Creates the selected backend.
///
/// # Errors
///
/// Returns an error for our own loop, and if a kind needs a program and none is given.
pub fn build_backend(choice: BackendChoice) -> Result<Box<dyn Backend>, BackendChoiceError> {
    let BackendChoice { kind, program, args } = choice;
    let needed = |what| {
        let program = program.clone().filter(|program| !program.is_empty());
        program.ok_or(BackendChoiceError::Incomplete { kind: kind.name(), what })
    };
    Ok(match kind {
        BackendKind::Api => return Err(BackendChoiceError::Api),
        BackendKind::Claude => Box::new(CliBackend::new(claude::CLI, program.as_deref(), args)),
        BackendKind::Codex => Box::new(CliBackend::new(codex::CLI, program.as_deref(), args)),
        BackendKind::Opencode => Box::new(CliBackend::new(opencode::CLI, program.as_deref(), args)),
        BackendKind::Gemini => Box::new(CliBackend::new(gemini::CLI, program.as_deref(), args)),
        BackendKind::Acp => Box::new(AcpBackend::new(&needed("the program of an agent")?, args)),
        BackendKind::Command => Box::new(CommandBackend::new(&needed("a program")?, args)),
        BackendKind::Scripted => {
            Box::new(ScriptedBackend::new(needed("the file of a transcript")?))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in BackendKind::ALL {
            assert_eq!(BackendKind::from_name(kind.name()), Some(*kind));
        }
        assert_eq!(BackendKind::from_name("Claude"), None);
    }

    #[test]
    fn what_is_installed_is_found_where_it_comes_first_and_only_if_it_can_run() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8");
        for (folder, name, mode) in [
            ("a", "claude", 0o644),
            ("b", "claude", 0o755),
            ("c", "claude", 0o755),
            ("c", "codex", 0o755),
        ] {
            let file = root.join(folder).join(name);
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
            std::fs::File::create(&file).expect("a file");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let path = format!("{root}/nowhere:relative::{root}/a:{root}/b:{root}/c");
        let found = find_installed_clis(&path);
        let expected = [
            (BackendKind::Claude, root.join("b/claude")),
            (BackendKind::Codex, root.join("c/codex")),
        ];
        assert_eq!(found, expected.map(|(kind, program)| InstalledCli { kind, program }));
    }

    #[test]
    fn a_choice_that_is_incomplete_says_what_it_needs() {
        let choice = |kind| BackendChoice { kind, program: None, args: Vec::new() };
        let error = |kind| build_backend(choice(kind)).err().expect("an error").to_string();
        assert_eq!(error(BackendKind::Command), "the `command` backend needs a program");
        assert_eq!(
            error(BackendKind::Scripted),
            "the `scripted` backend needs the file of a transcript"
        );
        assert!(error(BackendKind::Api).contains("our own loop"));
        assert_eq!(build_backend(choice(BackendKind::Gemini)).expect("a backend").name(), "gemini");
    }
}
