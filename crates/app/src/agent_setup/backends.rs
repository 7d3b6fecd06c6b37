//! Selects the backend that executes the turns: the built-in loop or an external agent.

use std::sync::Arc;

use repertoire_agent::backend::{
    Backend, BackendChoice, BackendKind, build_backend, find_installed_clis,
};
use repertoire_skill::name::nearest_name;

use super::AgentRunOptions;
use crate::context::AppContext;
use crate::error::AppError;

impl AppContext<'_> {
    /// Parses `--backend`: `claude`, `command:PROGRAM ARGS`, `acp:PROGRAM ARGS`, `scripted:FILE`
    /// and so on. `None` is the built-in loop.
    pub(super) fn make_backend(
        &self,
        options: &AgentRunOptions,
    ) -> Result<Option<Arc<dyn Backend>>, AppError> {
        let Some(text) = options.backend.as_deref() else { return Ok(None) };
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let names = || BackendKind::ALL.iter().map(|kind| kind.name());
        let Some(kind) = BackendKind::from_name(word) else {
            let failure = AppError::wrong_usage(format!("there is no backend `{word}`"));
            let failure = match nearest_name(word, names()) {
                Some(near) => failure.hint(format!("Did you mean `{near}`?")),
                None => failure,
            };
            let all: Vec<&str> = names().collect();
            return Err(failure.hint(format!("There are {}.", all.join(", "))));
        };
        if kind == BackendKind::Api {
            return Ok(None);
        }
        if let Some(program) = kind.program().filter(|name| self.env.find_program(name).is_none()) {
            return Err(AppError::cannot_run(format!("`{program}` is not on PATH"))
                .hint(format!("`--backend {word}` needs it installed.")));
        }
        let mut words = rest.split_whitespace().map(str::to_owned);
        let (program, args) = match kind {
            BackendKind::Scripted => {
                let file = Some(rest).filter(|rest| !rest.is_empty());
                (file.map(|file| self.env.here.join(file).to_string()), Vec::new())
            }
            _ => (words.next(), words.collect()),
        };
        self.check_program(kind, program.as_deref())?;
        let made = build_backend(BackendChoice { kind, program, args }).map_err(|error| {
            AppError::wrong_usage(error.to_string())
                .hint(format!("Write it as `--backend {word}:…`."))
        })?;
        Ok(Some(Arc::from(made)))
    }

    /// Checks that the program or file of a backend exists, before anything is started.
    fn check_program(&self, kind: BackendKind, program: Option<&str>) -> Result<(), AppError> {
        let Some(program) = program else { return Ok(()) };
        let path = self.env.here.join(program);
        let message = match kind {
            BackendKind::Scripted if !path.is_file() => format!("there is no transcript {path}"),
            BackendKind::Scripted => return Ok(()),
            _ if program.contains('/') && !path.is_file() => format!("there is no program {path}"),
            _ if !program.contains('/') && self.env.find_program(program).is_none() => {
                format!("`{program}` is not on PATH")
            }
            _ => return Ok(()),
        };
        Err(AppError::cannot_run(message))
    }

    /// Returns the external agent CLIs that are installed.
    pub fn agent_clis(&self) -> Vec<&'static str> {
        let path = self.env.var("PATH").unwrap_or_default();
        find_installed_clis(path).into_iter().map(|installed| installed.kind.name()).collect()
    }
}

/// Returns true if the built-in loop executes the turns.
pub(super) fn is_builtin_loop(options: &AgentRunOptions) -> bool {
    options.backend.as_deref().is_none_or(|word| word == "api")
}
