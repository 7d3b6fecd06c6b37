//! `rep trust`: a person's word about a skill, bound to every file of it.

use repertoire_skill::skill::Scope;
use repertoire_skill::trust::{Lock, LockError, Trust};

use crate::cli::Ctx;
use crate::commands::resolve;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::{self, Ui};

/// Which skills.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names of skills; without any, what is trusted and what is not
    names: Vec<String>,
    /// Take the word back
    #[arg(long, requires = "names")]
    revoke: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let request = ctx.config.request()?;
    let catalog = repertoire_skill::discover::discover(&request);
    if args.names.is_empty() {
        return list(&catalog, ui);
    }
    let path = ctx.config.lock_path();
    let failed = |error: LockError| Failure::cannot_run(error.to_string());
    let mut lock = Lock::read(&path).map_err(failed)?;
    for name in &args.names {
        let entry = resolve(&catalog, name)?;
        let skill = &entry.skill;
        if !matches!(skill.origin.scope, Scope::Project | Scope::Plugin) {
            writeln!(ui.out, "`{}` is trusted already: it is your own or built in", entry.id)?;
            continue;
        }
        if args.revoke {
            let known = lock.unpin(skill);
            let word = if known { "no longer trusted" } else { "was not trusted" };
            writeln!(ui.out, "`{}` {word}", entry.id)?;
            continue;
        }
        let digest = lock.pin(skill, &request.limits.resources).ok_or_else(|| {
            Failure::no(format!(
                "`{}` has files that cannot be read, so it cannot be trusted",
                entry.id
            ))
            .hint(format!("`rep show {}` says which.", entry.id))
        })?;
        writeln!(
            ui.out,
            "{} `{}` as it is now ({digest})",
            ui.paint(ui::GOOD, "trusted"),
            entry.id
        )?;
    }
    lock.write(&path).map_err(failed)?;
    Ok(Exit::Done)
}

fn list(catalog: &repertoire_skill::catalog::Catalog, ui: &mut Ui<'_>) -> Outcome {
    for entry in catalog.entries() {
        let word = match entry.trust {
            Trust::Trusted => ui.paint(ui::GOOD, "trusted  "),
            Trust::Untrusted => ui.paint(ui::WARN, "untrusted"),
            Trust::Changed => ui.paint(ui::BAD, "changed  "),
        };
        let path = catalog.places().shorten(&entry.skill.origin.file);
        writeln!(ui.out, "{word}  {}  {}", entry.id, ui.paint(ui::FAINT, path))?;
    }
    Ok(Exit::Done)
}
