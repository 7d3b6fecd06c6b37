//! `rep sync`: writes the list of skills into AGENTS.md, for agents that read only that file, or prints
//! the list for a system prompt.

use camino::Utf8PathBuf;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::openskills::{
    self, BlockUpdateOutcome as Synced, OpenSkillsEntry, OpenSkillsStyle, SkillLocation,
};
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::skill::Scope;
use repertoire_text::fs::{FileLocation, ReadError};

use crate::cli::CliContext;
use crate::commands::is_compat;
use crate::commands::{is_switched_off, removed_at_load};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::project_files::place_to_write;
use crate::schema::{SyncJson, SyncOutcome};
use crate::ui::{self, TerminalUi};

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(crate) mod print;

/// Arguments of `rep sync`
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("paths", |arg| arg.requires("print")),
    mut_arg("budget", |arg| arg.requires("print")),
)]
pub(crate) struct SyncArgs {
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
    /// Print the list of skills for a system prompt instead of writing a file
    #[arg(long, conflicts_with_all = ["output", "yes", "check", "compat"])]
    print: bool,
    #[command(flatten)]
    print_args: print::SyncPrintArgs,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &SyncArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if args.print {
        return print::run(ctx, &args.print_args, ui);
    }
    let compat = is_compat(ctx, args.compat)?;
    if !openskills::is_markdown(args.output.as_str()) {
        if compat {
            write!(ui.err, "{}", openskills::NOT_MARKDOWN)?;
            return Ok(CliExit::No);
        }
        return Err(CliFailure::wrong_usage(format!("`{}` is not a Markdown file", args.output))
            .hint("Name a file that ends in `.md`, such as `AGENTS.md`."));
    }
    let path = ctx.env.here.join(&args.output);
    let place = place_to_write(ctx.config.places().project_dir(), &path)?;
    let existing = match place.read_text(FILE_BYTES_MAX) {
        Ok(text) => Some(text),
        Err(ReadError::NotFound) => None,
        Err(error) => {
            return Err(CliFailure::cannot_run(format!("{path} cannot be read: {error}")));
        }
    };
    if compat {
        return sync_compat(ctx, args, (&place, existing.as_deref()), ui);
    }
    let catalog = ctx.load_catalog()?;
    if is_switched_off(catalog) {
        return Err(CliFailure::negative_answer(format!(
            "{} was left as it is: skills are turned off",
            args.output
        ))
        .hint("`rep config` says where `skills_enabled` is set."));
    }
    let entries = offered_entries(catalog);
    let block = openskills::render_block(&entries, OpenSkillsStyle::Repertoire);
    let stem = openskills::file_stem(args.output.as_str());
    let updated =
        openskills::update_block(existing.as_deref(), &stem, &block, OpenSkillsStyle::Repertoire)
            .map_err(|error| {
            CliFailure::negative_answer(format!("{} was left as it is: {error}", args.output)).hint(
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
    report_outcome(args, outcome, entries.len(), ui)
}

fn report_outcome(
    args: &SyncArgs,
    outcome: SyncOutcome,
    count: usize,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let output = &args.output;
    let skills = ui::format_count(count, "skill");
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
    Ok(if outcome == SyncOutcome::Stale { CliExit::No } else { CliExit::Done })
}

fn write_file(place: &FileLocation, args: &SyncArgs, text: &str) -> Result<(), CliFailure> {
    place.write_atomic(text.as_bytes()).map_err(|error| {
        CliFailure::cannot_run(format!("{} cannot be written: {error}", args.output))
    })
}

/// Returns the skills that a model may choose by itself, without agents and hidden skills.
fn offered_entries(catalog: &Catalog) -> Vec<OpenSkillsEntry<'_>> {
    catalog
        .entries()
        .iter()
        .filter(|entry| is_offered(entry))
        .map(|entry| OpenSkillsEntry {
            name: &entry.id,
            description: &entry.skill.description,
            location: match entry.skill.origin.scope {
                Scope::Project | Scope::Extra => SkillLocation::Project,
                Scope::Builtin | Scope::User | Scope::Plugin => SkillLocation::Global,
            },
        })
        .collect()
}

fn sync_compat(
    ctx: &CliContext<'_>,
    args: &SyncArgs,
    (place, existing): (&FileLocation, Option<&str>),
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let places = ctx.config.places();
    let found = openskills::find_all_skills(&places.here, &places.home);
    let entries: Vec<_> = found.iter().map(openskills::OpenSkillsSkill::to_entry).collect();
    let stem = openskills::file_stem(args.output.as_str());
    if entries.is_empty() {
        if existing.is_none() {
            write_file(place, args, &openskills::new_file(&stem))?;
            write!(ui.out, "{}", openskills::created_message(args.output.as_str()))?;
        }
        write!(ui.out, "{}", openskills::NO_SKILLS_TO_SYNC)?;
        return Ok(CliExit::Done);
    }
    let block = openskills::render_block(&entries, OpenSkillsStyle::Compat);
    ui.note_printed("the list of skills", &block)?;
    let updated = openskills::update_block(existing, &stem, &block, OpenSkillsStyle::Compat)
        .map_err(|error| CliFailure::negative_answer(error.to_string()))?;
    write_file(place, args, &updated.text)?;
    let message = openskills::outcome_message(updated.outcome, args.output.as_str(), entries.len());
    write!(ui.out, "{message}")?;
    Ok(CliExit::Done)
}
