//! `rep trust`: records the user's trust in a skill, pinned by the digest of all its files, or in
//! the settings of a project that start programs.

use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::codes;
use repertoire_skill::dialect::is_skill_file;
use repertoire_skill::hidden_text;
use repertoire_skill::limits::ResourceLimits;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::{TrustLevel, TrustLock, TrustLockError};
use repertoire_text::Diagnostic;
use repertoire_text::terminal::printable_line;

use crate::cli::CliContext;
use crate::commands::resolve_skill;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{TrustJson, TrustRow};
use crate::ui::{self, TerminalUi};

mod project;

/// Arguments of `rep trust`
#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// Names or folders of skills to trust (default: list what is trusted and what is not)
    names: Vec<String>,
    /// Trust the current settings of this project that start programs: show them and ask, or
    /// compare them with `--consent DIGEST`
    #[arg(long, conflicts_with = "names")]
    project: bool,
    /// Remove trust
    #[arg(long)]
    revoke: bool,
    /// Trust a skill even if its files contain invisible characters that can carry text
    #[arg(long, requires = "names", conflicts_with = "revoke")]
    allow_invisible: bool,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &TrustArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    if args.project {
        return project::run(ctx, args.revoke, ui);
    }
    if args.revoke && args.names.is_empty() {
        return Err(CliFailure::wrong_usage(
            "`--revoke` needs the name of a skill, or `--project`",
        ));
    }
    let request = ctx.config.discovery_request()?;
    let catalog = repertoire_skill::discover::discover_catalog(&request);
    if args.names.is_empty() {
        return list_trust(ctx, &catalog, ui);
    }
    // Print the messages only after the lock file has been written.
    let said = TrustLock::update(&ctx.config.lock_path(), |lock| {
        let limits = &request.limits.resources;
        let say = |name: &String| change_trust(ctx, args, &catalog, name, lock, limits, &mut *ui);
        args.names.iter().map(say).collect::<Result<Vec<String>, CliFailure>>()
    })?;
    for line in said {
        writeln!(ui.out, "{line}")?;
    }
    Ok(CliExit::Done)
}

impl From<TrustLockError> for CliFailure {
    fn from(error: TrustLockError) -> Self {
        CliFailure::cannot_run(error.to_string())
    }
}

/// Grants or removes trust in one skill, and returns the message for the user.
fn change_trust(
    ctx: &CliContext<'_>,
    args: &TrustArgs,
    catalog: &Catalog,
    name: &str,
    lock: &mut TrustLock,
    limits: &ResourceLimits,
    ui: &mut TerminalUi<'_>,
) -> Result<String, CliFailure> {
    let entry = find_entry(ctx, catalog, name, args.revoke)?;
    let (id, skill) = (&entry.id, &entry.skill);
    let file = catalog.places().shorten_path(&skill.origin.file);
    if !needs_trust(entry) {
        return Ok(format!("`{id}` in {file} needs no word: it is your own or built in"));
    }
    if args.revoke {
        let word = if lock.unpin_skill(skill) { "is no longer trusted" } else { "was not trusted" };
        return Ok(format!("`{id}` in {file} {word}"));
    }
    show_invisible(args, entry, &file, limits, ui)?;
    let digest = lock.pin_skill(skill, limits).ok_or_else(|| {
        CliFailure::negative_answer(format!(
            "`{id}` in {file} has files that cannot be read, so it cannot be trusted"
        ))
        .hint(format!("`rep show {id}` says which."))
    })?;
    let word = ui.paint(ui::GOOD, "trusted");
    let mut said = format!("{word} `{id}` in {file}, as it is now ({digest})");
    if let Some(other) = find_replaced_skill(catalog, entry) {
        said.push_str(&format!("\nIt now stands before the one in {other}."));
    }
    Ok(said)
}

/// Warns about invisible characters in every file of a skill before it is trusted. Fails for those
/// that can carry text, unless `--allow-invisible` is given.
fn show_invisible(
    args: &TrustArgs,
    entry: &CatalogEntry,
    file: &str,
    limits: &ResourceLimits,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let found = hidden_text::find_in_skill(&entry.skill, limits);
    for one in &found {
        let head = ui.paint_err(ui::WARN, "warning:");
        let path = printable_line(one.path.as_str());
        let more = match one.lines {
            0 | 1 => String::new(),
            lines => format!(" and {} more", ui::format_count(lines - 1, "line")),
        };
        ui.print_note(&format!(
            "{head} {path}, line {}{more}: invisible characters: {}",
            one.line, one.summary
        ))?;
    }
    let is_refused = found.iter().any(|one| one.kind.can_carry_text());
    if !is_refused || args.allow_invisible {
        return Ok(());
    }
    let id = &entry.id;
    Err(CliFailure::negative_answer(format!(
        "`{id}` in {file} has invisible characters that can carry text"
    ))
    .hint("Models read them and people do not. `rep lint` shows where they are.")
    .hint(format!("Accept them as they are with `rep trust {id} --allow-invisible`.")))
}

/// Returns the file of the skill that this one replaces, now that it is trusted.
fn find_replaced_skill(catalog: &Catalog, entry: &CatalogEntry) -> Option<String> {
    let file = &entry.skill.origin.file;
    let kept_out = |found: &Diagnostic| {
        found.code == &codes::UNTRUSTED_SHADOW && found.path.as_ref() == Some(file)
    };
    let lost = catalog.shadowed().iter().find(|lost| lost.entry.skill.origin.file == *file)?;
    let waits = catalog.diagnostics().iter().any(kept_out);
    waits.then(|| catalog.places().shorten_path(&lost.by))
}

/// Returns true for skills that are not trusted by default.
fn needs_trust(entry: &CatalogEntry) -> bool {
    matches!(entry.skill.origin.scope, Scope::Project | Scope::Plugin)
}

/// Finds the skill to trust: by its path, or the one in use by that name. If that one needs no
/// change, finds the one that it keeps shadowed for lack of trust.
fn find_entry<'a>(
    ctx: &CliContext<'_>,
    catalog: &'a Catalog,
    name: &str,
    revoke: bool,
) -> Result<&'a CatalogEntry, CliFailure> {
    let losers = || catalog.shadowed().iter().map(|lost| &lost.entry);
    if name.contains('/') {
        let path = ctx.env.here.join(name.trim_end_matches('/'));
        let at = |entry: &&CatalogEntry| {
            let file = &entry.skill.origin.file;
            *file == path
                || (is_skill_file(file.file_name().unwrap_or_default())
                    && file.parent() == Some(&path))
        };
        return catalog.entries().iter().chain(losers()).find(at).ok_or_else(|| {
            CliFailure::negative_answer(format!("there is no skill in `{name}`"))
                .hint("`rep list` shows every skill and its folder.")
        });
    }
    let winner = resolve_skill(catalog, name)?;
    let open =
        |entry: &CatalogEntry| needs_trust(entry) && (entry.trust == TrustLevel::Trusted) == revoke;
    let twin = |entry: &&CatalogEntry| {
        entry.id == winner.id && entry.skill.is_agent() == winner.skill.is_agent() && open(entry)
    };
    let twins: Vec<&CatalogEntry> = losers().filter(twin).collect();
    match twins.as_slice() {
        _ if open(winner) => Ok(winner),
        [] => Ok(winner),
        [twin] => Ok(twin),
        several => {
            let paths: Vec<String> = several
                .iter()
                .map(|entry| catalog.places().shorten_path(&entry.skill.origin.file))
                .collect();
            let word = if revoke { "trusted" } else { "not trusted" };
            let list = paths.join(", ");
            Err(CliFailure::negative_answer(format!(
                "several skills called `{name}` are {word}: {list}"
            ))
            .hint("Name the one you mean by its path."))
        }
    }
}

fn list_trust(ctx: &CliContext<'_>, catalog: &Catalog, ui: &mut TerminalUi<'_>) -> CliResult {
    let losers =
        catalog.shadowed().iter().map(|lost| &lost.entry).filter(|entry| needs_trust(entry));
    let mut all: Vec<&CatalogEntry> = catalog.entries().iter().chain(losers).collect();
    all.sort_by(|a, b| (&a.id, &a.skill.origin.file).cmp(&(&b.id, &b.skill.origin.file)));
    if ui.json {
        let skills = all.iter().map(|entry| TrustRow::from_entry(entry)).collect();
        ui.print_json(&TrustJson { skills, project: project::as_json(ctx)? })?;
        return Ok(CliExit::Done);
    }
    let settings = ctx.config.pending_proposal().map(|_| ui::text_width(project::ROW_NAME));
    let names = all.iter().map(|entry| ui::text_width(&entry.id));
    let columns = names.chain(settings).max().unwrap_or(0).min(40);
    for entry in all {
        let word = trust_word(entry.trust, ui);
        let path = catalog.places().shorten_path(&entry.skill.origin.file);
        let name = ui::pad_columns(&entry.id, columns);
        writeln!(ui.out, "{word}  {name}  {}", ui.paint(ui::FAINT, path))?;
    }
    project::print_row(ctx, columns, ui)?;
    Ok(CliExit::Done)
}

/// The trust as a word of fixed width.
fn trust_word(trust: TrustLevel, ui: &TerminalUi<'_>) -> String {
    match trust {
        TrustLevel::Trusted => ui.paint(ui::GOOD, "trusted  "),
        TrustLevel::Untrusted => ui.paint(ui::WARN, "untrusted"),
        TrustLevel::Changed => ui.paint(ui::BAD, "changed  "),
    }
}
