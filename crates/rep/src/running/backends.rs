//! Selects the backend that executes the turns: the built-in loop or an external agent.

use std::sync::Arc;

use repertoire_agent::backend::{Backend, Choice, Kind, available, backend};
use repertoire_skill::name::nearest;

use super::RunFlags;
use crate::cli::Ctx;
use crate::failure::Failure;

impl Ctx<'_> {
    /// Parses `--backend`: `claude`, `command:PROGRAM ARGS`, `acp:PROGRAM ARGS`, `scripted:FILE`
    /// and so on. `None` is the built-in loop.
    pub(super) fn backend(&self, flags: &RunFlags) -> Result<Option<Arc<dyn Backend>>, Failure> {
        let Some(text) = flags.backend.as_deref() else { return Ok(None) };
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let names = || Kind::ALL.iter().map(|kind| kind.name());
        let Some(kind) = Kind::from_name(word) else {
            let failure = Failure::usage(format!("there is no backend `{word}`"));
            let failure = match nearest(word, names()) {
                Some(near) => failure.hint(format!("Did you mean `{near}`?")),
                None => failure,
            };
            let all: Vec<&str> = names().collect();
            return Err(failure.hint(format!("There are {}.", all.join(", "))));
        };
        if kind == Kind::Api {
            return Ok(None);
        }
        if let Some(program) = kind.program().filter(|name| self.env.program(name).is_none()) {
            return Err(Failure::cannot_run(format!("`{program}` is not on PATH"))
                .hint(format!("`--backend {word}` needs it installed.")));
        }
        let mut words = rest.split_whitespace().map(str::to_owned);
        let (program, args) = match kind {
            Kind::Scripted => {
                let file = Some(rest).filter(|rest| !rest.is_empty());
                (file.map(|file| self.env.here.join(file).to_string()), Vec::new())
            }
            _ => (words.next(), words.collect()),
        };
        self.check_program(kind, program.as_deref())?;
        let made = backend(Choice { kind, program, args }).map_err(|error| {
            Failure::usage(error.to_string()).hint(format!("Write it as `--backend {word}:…`."))
        })?;
        Ok(Some(Arc::from(made)))
    }

    /// Checks that the program or file of a backend exists, before anything is started.
    fn check_program(&self, kind: Kind, program: Option<&str>) -> Result<(), Failure> {
        let Some(program) = program else { return Ok(()) };
        let path = self.env.here.join(program);
        let message = match kind {
            Kind::Scripted if !path.is_file() => format!("there is no transcript {path}"),
            Kind::Scripted => return Ok(()),
            _ if program.contains('/') && !path.is_file() => format!("there is no program {path}"),
            _ if !program.contains('/') && self.env.program(program).is_none() => {
                format!("`{program}` is not on PATH")
            }
            _ => return Ok(()),
        };
        Err(Failure::cannot_run(message))
    }

    /// Returns the external agent CLIs that are installed.
    pub(crate) fn agent_clis(&self) -> Vec<&'static str> {
        let path = self.env.var("PATH").unwrap_or_default();
        available(path).into_iter().map(|installed| installed.kind.name()).collect()
    }
}

/// Returns true if the built-in loop executes the turns.
pub(super) fn is_own_loop(flags: &RunFlags) -> bool {
    flags.backend.as_deref().is_none_or(|word| word == "api")
}
