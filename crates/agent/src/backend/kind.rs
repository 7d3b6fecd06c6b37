//! The kinds of backends, and the names by which users select them.

use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::acp::AcpBackend;
use super::cli::CliBackend;
use super::command::CommandBackend;
use super::scripted::ScriptedBackend;
use super::{Backend, claude, codex, gemini, opencode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
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

impl Kind {
    pub const ALL: &[Kind] = &[
        Kind::Api,
        Kind::Claude,
        Kind::Codex,
        Kind::Opencode,
        Kind::Gemini,
        Kind::Acp,
        Kind::Command,
        Kind::Scripted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Api => "api",
            Kind::Claude => claude::CLI.name,
            Kind::Codex => codex::CLI.name,
            Kind::Opencode => opencode::CLI.name,
            Kind::Gemini => gemini::CLI.name,
            Kind::Acp => "acp",
            Kind::Command => "command",
            Kind::Scripted => "scripted",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if the whole backend is confined: by our sandbox, by its own, or because it has
    /// no side effects. Backends without a sandbox can read every file that the user can.
    pub fn is_walled(self) -> bool {
        match self {
            Kind::Api | Kind::Scripted => true,
            Kind::Claude => claude::CLI.holds.sandbox,
            Kind::Codex => codex::CLI.holds.sandbox,
            Kind::Opencode => opencode::CLI.holds.sandbox,
            Kind::Gemini => gemini::CLI.holds.sandbox,
            Kind::Acp | Kind::Command => false,
        }
    }

    /// The program that the backend runs, if it is always the same.
    pub fn program(self) -> Option<&'static str> {
        match self {
            Kind::Claude => Some(claude::CLI.program),
            Kind::Codex => Some(codex::CLI.program),
            Kind::Opencode => Some(opencode::CLI.program),
            Kind::Gemini => Some(gemini::CLI.program),
            Kind::Api | Kind::Acp | Kind::Command | Kind::Scripted => None,
        }
    }
}

/// An agent CLI that was found on the PATH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub kind: Kind,
    pub program: Utf8PathBuf,
}

/// Finds the agent CLIs in the folders of a `PATH`; the first match of each wins. Starts no
/// process.
pub fn available(path: &str) -> Vec<Installed> {
    Kind::ALL.iter().filter_map(|kind| find_installed(*kind, path)).collect()
}

fn find_installed(kind: Kind, path: &str) -> Option<Installed> {
    let program = kind.program()?;
    // A relative folder would resolve differently in every project.
    let dirs = path.split(':').map(Utf8Path::new).filter(|dir| dir.is_absolute());
    let program = dirs.map(|dir| dir.join(program)).find(|file| is_executable(file))?;
    Some(Installed { kind, program })
}

fn is_executable(file: &Utf8Path) -> bool {
    std::fs::metadata(file)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// A backend as selected by the user or the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub kind: Kind,
    /// Replaces the default program; for a transcript, its file.
    pub program: Option<String>,
    /// Additional arguments.
    pub args: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
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
pub fn backend(choice: Choice) -> Result<Box<dyn Backend>, ChoiceError> {
    let Choice { kind, program, args } = choice;
    let needed = |what| {
        let program = program.clone().filter(|program| !program.is_empty());
        program.ok_or(ChoiceError::Incomplete { kind: kind.name(), what })
    };
    Ok(match kind {
        Kind::Api => return Err(ChoiceError::Api),
        Kind::Claude => Box::new(CliBackend::new(claude::CLI, program.as_deref(), args)),
        Kind::Codex => Box::new(CliBackend::new(codex::CLI, program.as_deref(), args)),
        Kind::Opencode => Box::new(CliBackend::new(opencode::CLI, program.as_deref(), args)),
        Kind::Gemini => Box::new(CliBackend::new(gemini::CLI, program.as_deref(), args)),
        Kind::Acp => Box::new(AcpBackend::new(&needed("the program of an agent")?, args)),
        Kind::Command => Box::new(CommandBackend::new(&needed("a program")?, args)),
        Kind::Scripted => Box::new(ScriptedBackend::new(needed("the file of a transcript")?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(*kind));
        }
        assert_eq!(Kind::from_name("Claude"), None);
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
        let found = available(&path);
        let expected = [(Kind::Claude, root.join("b/claude")), (Kind::Codex, root.join("c/codex"))];
        assert_eq!(found, expected.map(|(kind, program)| Installed { kind, program }));
    }

    #[test]
    fn a_choice_that_is_incomplete_says_what_it_needs() {
        let choice = |kind| Choice { kind, program: None, args: Vec::new() };
        let error = |kind| backend(choice(kind)).err().expect("an error").to_string();
        assert_eq!(error(Kind::Command), "the `command` backend needs a program");
        assert_eq!(error(Kind::Scripted), "the `scripted` backend needs the file of a transcript");
        assert!(error(Kind::Api).contains("our own loop"));
        assert_eq!(backend(choice(Kind::Gemini)).expect("a backend").name(), "gemini");
    }
}
