//! `rep list`: prints skills as a tree of roots, including shadowed and broken ones.

use camino::Utf8Path;
use rayon::prelude::*;
use repertoire_skill::catalog::{BrokenSkill, Catalog, CatalogEntry, ShadowedSkill};
use repertoire_skill::codes;
use repertoire_skill::discover::RootState;
use repertoire_skill::openskills;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::TrustLevel;
use repertoire_text::Diagnostic;
use repertoire_text::terminal::printable_line;

use crate::cli::CliContext;
use crate::commands::{SWITCHED_OFF, is_compat, is_switched_off};
use crate::failure::{CliExit, CliResult};
use crate::schema::{BrokenJson, ListJson, ListSummary, RootJson, SkillRow};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep list`
#[derive(Debug, clap::Args)]
pub(crate) struct SkillListArgs {
    /// Only skills whose name or description contains this text
    filter: Option<String>,
    /// Only skills of this scope
    #[arg(long, value_enum)]
    scope: Option<SkillScopeArg>,
    /// Only skills of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only skills with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only skills triggered by this event
    #[arg(long)]
    event: Option<String>,
    /// Only agents with this capability
    #[arg(long)]
    capability: Option<String>,
    /// Only skills whose path globs match this path
    #[arg(long, value_name = "PATH")]
    path: Option<camino::Utf8PathBuf>,
    /// Print only names, one per line
    #[arg(long)]
    names: bool,
    /// With `--profile openskills`: reproduce the output of OpenSkills exactly
    #[arg(long)]
    compat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SkillScopeArg {
    Builtin,
    User,
    Project,
    Plugin,
    Extra,
}

impl SkillScopeArg {
    fn to_scope(self) -> Scope {
        match self {
            SkillScopeArg::Builtin => Scope::Builtin,
            SkillScopeArg::User => Scope::User,
            SkillScopeArg::Project => Scope::Project,
            SkillScopeArg::Plugin => Scope::Plugin,
            SkillScopeArg::Extra => Scope::Extra,
        }
    }
}

impl SkillListArgs {
    fn matches_entry(&self, entry: &CatalogEntry) -> bool {
        let skill = &entry.skill;
        let filter = self.filter.as_deref();
        filter.is_none_or(|part| {
            contains_ignoring_case(&entry.id, part)
                || contains_ignoring_case(&skill.description, part)
        }) && self.scope.is_none_or(|scope| skill.origin.scope == scope.to_scope())
            && self.kind.as_deref().is_none_or(|kind| skill.kind.as_str() == kind)
            && self
                .tag
                .as_ref()
                .is_none_or(|tag| skill.tags.iter().any(|t| t.eq_ignore_ascii_case(tag)))
            && self.event.as_ref().is_none_or(|event| skill.triggers.events.contains(event))
            && self.capability.as_ref().is_none_or(|word| skill.capabilities.contains(word))
            && self.path.as_ref().is_none_or(|path| {
                let mut globs = skill.triggers.paths.iter();
                globs.any(|glob| repertoire_skill::catalog::glob_matches(glob, path))
            })
    }

    /// Returns true if a broken file matches the filters that need no loaded skill.
    fn wants_broken(&self, broken: &BrokenSkill) -> bool {
        let path = broken.path.as_str().to_lowercase();
        self.filter.as_ref().is_none_or(|part| path.contains(&part.to_lowercase()))
            && self.scope.is_none_or(|scope| broken.scope == scope.to_scope())
    }

    /// Returns true if there is a filter that only a loaded skill can match.
    fn needs_a_record(&self) -> bool {
        self.kind.is_some()
            || self.tag.is_some()
            || self.event.is_some()
            || self.capability.is_some()
            || self.path.is_some()
    }

    fn is_filtered(&self) -> bool {
        self.filter.is_some()
            || self.scope.is_some()
            || self.kind.is_some()
            || self.tag.is_some()
            || self.event.is_some()
            || self.capability.is_some()
            || self.path.is_some()
    }
}

fn contains_ignoring_case(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &SkillListArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if is_compat(ctx, args.compat)? {
        let places = ctx.config.places();
        let found = openskills::find_all_skills(&places.here, &places.home);
        let entries: Vec<_> = found.iter().map(openskills::OpenSkillsSkill::to_entry).collect();
        write!(
            ui.out,
            "{}",
            openskills::render_list(&entries, openskills::OpenSkillsStyle::Compat)
        )?;
        return Ok(CliExit::Done);
    }
    let catalog = ctx.load_catalog()?;
    if ui.json {
        ui.print_json(&build_json(catalog, args))?;
    } else if args.names {
        for entry in catalog.entries().iter().filter(|entry| args.matches_entry(entry)) {
            writeln!(ui.out, "{}", entry.id)?;
        }
    } else {
        print_tree(catalog, args, ui)?;
    }
    Ok(CliExit::Done)
}

fn build_json(catalog: &Catalog, args: &SkillListArgs) -> ListJson {
    let winners = catalog.entries().iter().map(|entry| (entry, None));
    let losers = catalog.shadowed().iter().map(|lost| (&lost.entry, Some(lost.by.as_path())));
    let all: Vec<(&CatalogEntry, Option<&Utf8Path>)> =
        winners.chain(losers).filter(|(entry, _)| args.matches_entry(entry)).collect();
    // Computing digests dominates the time, and they are independent of each other.
    let skills = all.par_iter().map(|(entry, by)| SkillRow::from_entry(entry, *by)).collect();
    ListJson {
        skills,
        broken: catalog.broken().iter().map(BrokenJson::from_broken).collect(),
        roots: catalog.roots().iter().map(RootJson::from_report).collect(),
        summary: ListSummary::from_catalog(catalog),
    }
}

fn print_tree(
    catalog: &Catalog,
    args: &SkillListArgs,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let names = catalog.entries().iter().map(|entry| ui::text_width(&entry.id));
    let name_columns = names.max().unwrap_or(0).clamp(12, 32).min((ui.columns / 2).max(12));
    let mut shown = 0;
    for report in catalog.roots() {
        if !matches!(report.state, RootState::Searched | RootState::InPlace) {
            print_unsearched(catalog, report, ui)?;
            continue;
        }
        let dir = report.root.dir.as_path();
        let here =
            |entry: &CatalogEntry| entry.skill.origin.root == dir && args.matches_entry(entry);
        let mut lines = Vec::new();
        for entry in catalog.entries().iter().filter(|entry| here(entry)) {
            shown += 1;
            lines.push(skill_line(entry, name_columns, ui));
        }
        for lost in catalog.shadowed().iter().filter(|lost| here(&lost.entry)) {
            lines.push(shadowed_line(catalog, lost, name_columns, ui));
        }
        if !args.needs_a_record() {
            let here =
                |broken: &&BrokenSkill| broken.path.starts_with(dir) && args.wants_broken(broken);
            for broken in catalog.broken().iter().filter(here) {
                lines.push(broken_line(broken, dir, name_columns, ui));
            }
        }
        if !args.is_filtered() {
            let beneath = |found: &&Diagnostic| {
                let path = found.path.as_deref();
                is_passed_over(found) && path.is_some_and(|path| path.starts_with(dir))
            };
            for found in catalog.diagnostics().iter().filter(beneath).take(PASSED_OVER_MAX) {
                lines.push(passed_over_line(catalog, found, ui));
            }
        }
        if lines.is_empty() {
            continue;
        }
        writeln!(ui.out, "{}", root_line(catalog, report, ui))?;
        for line in lines {
            writeln!(ui.out, "{line}")?;
        }
        writeln!(ui.out)?;
    }
    if is_switched_off(catalog) {
        writeln!(ui.out, "{SWITCHED_OFF}")?;
    } else if args.is_filtered() {
        let all = catalog.entries().len();
        return match shown {
            0 => writeln!(ui.out, "No skill matches."),
            _ => writeln!(ui.out, "{shown} of {all} skills and agents"),
        };
    } else if catalog.entries().is_empty() && catalog.broken().is_empty() {
        writeln!(
            ui.out,
            "No skills found. `rep new NAME` starts one; `rep doctor` shows where they are looked for."
        )?;
    }
    writeln!(ui.out, "{}", summary_line(catalog, ui))
}

/// Maximum number of skipped files listed for a root. `rep doctor` lists them all.
const PASSED_OVER_MAX: usize = 5;

fn is_passed_over(found: &Diagnostic) -> bool {
    let all = [&codes::WALK_DEEP, &codes::WALK_ENTRIES, &codes::NAME_ON_DISK];
    all.contains(&found.code)
}

fn passed_over_line(catalog: &Catalog, found: &Diagnostic, ui: &TerminalUi<'_>) -> String {
    let path =
        found.path.as_ref().map_or(String::new(), |path| catalog.places().shorten_path(path));
    let text = format!("  passed over {path}: {} [{}]", found.message, found.code.id);
    ui.paint(ui::FAINT, printable_line(&text))
}

/// Prints a root that could not be searched, if there is a diagnostic for it. Default roots that
/// simply don't exist are not mentioned.
fn print_unsearched(
    catalog: &Catalog,
    report: &repertoire_skill::catalog::RootReport,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let dir = &report.root.dir;
    let mut diagnostics = catalog.diagnostics().iter();
    let Some(found) = diagnostics.find(|found| found.path.as_ref() == Some(dir)) else {
        return Ok(());
    };
    writeln!(ui.out, "{}", root_line(catalog, report, ui))?;
    let word = ui.paint(ui::BAD, "not searched");
    writeln!(ui.out, "  {word}: {} [{}]\n", found.message, found.code.id)
}

fn shadowed_line(
    catalog: &Catalog,
    lost: &ShadowedSkill,
    name_columns: usize,
    ui: &TerminalUi<'_>,
) -> String {
    let by = catalog.places().shorten_path(&lost.by);
    let name = ui::pad_columns(&ui::fit_columns(&lost.entry.id, name_columns), name_columns);
    let kept_out = catalog.diagnostics().iter().any(|found| {
        found.code == &codes::UNTRUSTED_SHADOW
            && found.path.as_ref() == Some(&lost.entry.skill.origin.file)
    });
    let why = match (kept_out, lost.entry.trust) {
        (true, TrustLevel::Changed) => "changed since trusted · does not replace",
        (true, _) => "untrusted · does not replace",
        (false, _) => "shadowed by",
    };
    let room = ui.columns.saturating_sub(name_columns + 4).max(20);
    let note = ui::fit_columns(&format!("{why} {by}"), room);
    ui.paint(ui::FAINT, format!("  {name}  {note}"))
}

fn root_line(
    catalog: &Catalog,
    report: &repertoire_skill::catalog::RootReport,
    ui: &TerminalUi<'_>,
) -> String {
    let root = &report.root;
    let dir = catalog.places().shorten_path(&root.dir);
    let scope = match (&root.plugin, root.scope) {
        (Some(plugin), _) => format!("plugin {} {}", plugin.name, plugin.version),
        (None, Scope::Builtin) => "built in".to_owned(),
        (None, Scope::User) => "yours".to_owned(),
        (None, Scope::Project) => "project".to_owned(),
        (None, Scope::Plugin) => "plugin".to_owned(),
        (None, Scope::Extra) => "named".to_owned(),
    };
    format!("{} {}", ui.paint(ui::STRONG, dir), ui.paint(ui::FAINT, format!("· {scope}")))
}

fn skill_line(entry: &CatalogEntry, name_columns: usize, ui: &TerminalUi<'_>) -> String {
    let name = ui::pad_columns(&ui::fit_columns(&entry.id, name_columns), name_columns);
    let mut notes = String::new();
    if entry.skill.is_agent() {
        notes.push_str("agent · ");
    }
    match entry.trust {
        TrustLevel::Trusted => {}
        TrustLevel::Untrusted => notes.push_str("untrusted · "),
        TrustLevel::Changed => notes.push_str("changed since trusted · "),
    }
    let room = ui.columns.saturating_sub(name_columns + 4 + ui::text_width(&notes)).max(10);
    let description = ui::fit_columns(&entry.skill.description, room);
    format!("  {}  {}{description}", ui.paint(ui::ACCENT, name), ui.paint(ui::FAINT, notes))
}

fn broken_line(
    broken: &BrokenSkill,
    root: &Utf8Path,
    name_columns: usize,
    ui: &TerminalUi<'_>,
) -> String {
    let path = broken.path.strip_prefix(root).unwrap_or(&broken.path);
    let path = path.as_str().trim_end_matches("/SKILL.md");
    let name = ui::pad_columns(&ui::fit_columns(path, name_columns), name_columns);
    let reason = format!("broken: {} [{}]", broken.reason.message, broken.reason.code.id);
    let room = ui.columns.saturating_sub(name_columns + 4).max(20);
    format!("  {}  {}", ui.paint(ui::BAD, name), ui::fit_columns(&reason, room))
}

fn summary_line(catalog: &Catalog, ui: &TerminalUi<'_>) -> String {
    let summary = ListSummary::from_catalog(catalog);
    let mut parts =
        vec![ui::format_count(summary.skills, "skill"), ui::format_count(summary.agents, "agent")];
    if summary.shadowed > 0 {
        parts.push(format!("{} shadowed", summary.shadowed));
    }
    if summary.broken > 0 {
        parts.push(ui.paint(ui::BAD, format!("{} broken", summary.broken)));
    }
    parts.join(", ")
}
