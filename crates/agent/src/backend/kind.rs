//! The kinds of backends, by the words that users choose them by.

use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::acp::AcpBackend;
use super::cli::CliBackend;
use super::command::CommandBackend;
use super::scripted::ScriptedBackend;
use super::{Backend, claude, codex, gemini, opencode};

/// A kind of backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Our own loop, with a model behind an API.
    Api,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
    /// Any program that reads a prompt and prints an answer.
    Command,
    /// A transcript that is replayed.
    Scripted,
}

impl Kind {
    /// All of them.
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

    /// The word for it.
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

    /// The kind that a word stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether all that it does is kept in its place: by our sandbox, by one of its own, or because it does nothing. Agents that
    /// read without one read every file that the user can.
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

    /// The program that it needs, if it is always the same.
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

/// An agent CLI that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub program: Utf8PathBuf,
}

/// The agent CLIs that are installed in the folders of a `PATH`, each where it comes first. Nothing is started.
pub fn available(path: &str) -> Vec<Installed> {
    let found = |kind: Kind| {
        let program = kind.program()?;
        // A relative folder would mean something else in every project.
        let dirs = path.split(':').map(Utf8Path::new).filter(|dir| dir.is_absolute());
        let program = dirs.map(|dir| dir.join(program)).find(|file| is_executable(file))?;
        Some(Installed { kind, program })
    };
    Kind::ALL.iter().copied().filter_map(found).collect()
}

fn is_executable(file: &Utf8Path) -> bool {
    std::fs::metadata(file)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Which backend, as a user or a configuration says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kind.
    pub kind: Kind,
    /// The program in place of the usual one; for a script, its file.
    pub program: Option<String>,
    /// More arguments.
    pub args: Vec<String>,
}

/// A backend that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// Our own loop needs a model and is made elsewhere.
    #[error("the `api` backend is our own loop, not a program")]
    Api,
    /// A program is missing.
    #[error("the `{kind}` backend needs {what}")]
    Incomplete {
        /// The kind.
        kind: &'static str,
        /// What it needs.
        what: &'static str,
    },
}

/// The backend of a choice.
///
/// # Errors
///
/// For our own loop, and when a kind needs a program and there is none.
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
