//! `rep sync`: writes the list of skills into AGENTS.md, for agents that read only that file.

use camino::Utf8PathBuf;
use repertoire_skill::catalog::{Catalog, Entry as CatalogEntry};
use repertoire_skill::openskills::{self, Entry, Location, Outcome as Synced, Style};
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::skill::Scope;
use repertoire_text::fs::{Place, ReadError};

use crate::cli::Ctx;
use crate::commands::is_compat;
use crate::commands::{is_switched_off, removed_at_load};
use crate::failure::{Exit, Failure, Outcome};
use crate::project_files::place_to_write;
use crate::schema::{SyncJson, SyncOutcome};
use crate::ui::{self, Ui};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Arguments of `rep sync`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to write
    #[arg(short, long, default_value = "AGENTS.md", value_name = "FILE")]
    output: Utf8PathBuf,
    /// Accepted for compatibility with OpenSkills; there are no questions to confirm
    #[arg(short, long)]
    yes: bool,
    /// Write nothing; exit with 1 if the file is not up to date
    #[arg(long)]
    check: bool,
    /// With `--profile openskills`: write exactly the same as OpenSkills
    #[arg(long)]
    compat: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let compat = is_compat(ctx, args.compat)?;
    if !openskills::is_markdown(args.output.as_str()) {
        if compat {
            write!(ui.err, "{}", openskills::NOT_MARKDOWN)?;
            return Ok(Exit::No);
        }
        return Err(Failure::usage(format!("`{}` is not a Markdown file", args.output))
            .hint("Name a file that ends in `.md`, such as `AGENTS.md`."));
    }
    let path = ctx.env.here.join(&args.output);
    let place = place_to_write(ctx.config.places().project(), &path)?;
    let existing = match place.read_text(FILE_BYTES_MAX) {
        Ok(text) => Some(text),
        Err(ReadError::NotFound) => None,
        Err(error) => return Err(Failure::cannot_run(format!("{path} cannot be read: {error}"))),
    };
    if compat {
        return sync_compat(ctx, args, (&place, existing.as_deref()), ui);
    }
    let catalog = ctx.catalog()?;
    if is_switched_off(catalog) {
        return Err(Failure::no(format!(
            "{} was left as it is: skills are turned off",
            args.output
        ))
        .hint("`rep config` says where `skills_enabled` is set."));
    }
    let entries = entries(catalog);
    let block = openskills::render_block(&entries, Style::Repertoire);
    let stem = openskills::file_stem(args.output.as_str());
    let updated = openskills::update(existing.as_deref(), &stem, &block, Style::Repertoire)
        .map_err(|error| {
            Failure::no(format!("{} was left as it is: {error}", args.output)).hint(
                "Mend the markers by hand, or remove the whole block, and run `rep sync` again.",
            )
        })?;
    let outcome = match updated.outcome {
        Synced::Unchanged => SyncOutcome::Unchanged,
        _ if args.check => SyncOutcome::Stale,
        Synced::Created => SyncOutcome::Created,
        Synced::Added | Synced::Synced => SyncOutcome::Updated,
    };
    if matches!(outcome, SyncOutcome::Created | SyncOutcome::Updated) {
        write_file(&place, args, &updated.text)?;
    }
    let offered: Vec<&CatalogEntry> =
        catalog.entries().iter().filter(|entry| is_offered(entry)).collect();
    ui.note_removed("descriptions", &removed_at_load(&offered))?;
    report(args, outcome, entries.len(), ui)
}

fn report(args: &Args, outcome: SyncOutcome, count: usize, ui: &mut Ui<'_>) -> Outcome {
    let output = &args.output;
    let skills = ui::count(count, "skill");
    if ui.json {
        ui.print_json(&SyncJson { path: output.to_string(), outcome, skills: count })?;
    } else {
        let line = match outcome {
            SyncOutcome::Unchanged => format!("{output} is up to date ({skills})"),
            SyncOutcome::Stale => format!("{output} is not up to date; run `rep sync`"),
            SyncOutcome::Created => {
                format!("{} {output} ({skills})", ui.paint(ui::GOOD, "created"))
            }
            SyncOutcome::Updated => {
                format!("{} {output} ({skills})", ui.paint(ui::GOOD, "updated"))
            }
        };
        writeln!(ui.out, "{line}")?;
    }
    Ok(if outcome == SyncOutcome::Stale { Exit::No } else { Exit::Done })
}

fn write_file(place: &Place, args: &Args, text: &str) -> Result<(), Failure> {
    place
        .write_atomic(text.as_bytes())
        .map_err(|error| Failure::cannot_run(format!("{} cannot be written: {error}", args.output)))
}

/// Returns the skills that a model may choose by itself, without agents and hidden skills.
fn entries(catalog: &Catalog) -> Vec<Entry<'_>> {
    catalog
        .entries()
        .iter()
        .filter(|entry| is_offered(entry))
        .map(|entry| Entry {
            name: &entry.id,
            description: &entry.skill.description,
            location: match entry.skill.origin.scope {
                Scope::Project | Scope::Extra => Location::Project,
                Scope::Builtin | Scope::User | Scope::Plugin => Location::Global,
            },
        })
        .collect()
}

fn sync_compat(
    ctx: &Ctx<'_>,
    args: &Args,
    (place, existing): (&Place, Option<&str>),
    ui: &mut Ui<'_>,
) -> Outcome {
    let places = ctx.config.places();
    let found = openskills::find_all(&places.here, &places.home);
    let entries: Vec<_> = found.iter().map(openskills::Found::entry).collect();
    let stem = openskills::file_stem(args.output.as_str());
    if entries.is_empty() {
        if existing.is_none() {
            write_file(place, args, &openskills::new_file(&stem))?;
            write!(ui.out, "{}", openskills::created_message(args.output.as_str()))?;
        }
        write!(ui.out, "{}", openskills::NO_SKILLS_TO_SYNC)?;
        return Ok(Exit::Done);
    }
    let block = openskills::render_block(&entries, Style::Compat);
    ui.note_printed("the list of skills", &block)?;
    let updated = openskills::update(existing, &stem, &block, Style::Compat)
        .map_err(|error| Failure::no(error.to_string()))?;
    write_file(place, args, &updated.text)?;
    let message = openskills::outcome_message(updated.outcome, args.output.as_str(), entries.len());
    write!(ui.out, "{message}")?;
    Ok(Exit::Done)
}
