//! `rep list`: skills as a tree of roots, with what lost and what broke.

use camino::Utf8Path;
use rayon::prelude::*;
use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::discover::RootState;
use repertoire_skill::openskills;
use repertoire_skill::profile::ProfileId;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::Trust;

use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::schema::{BrokenJson, ListJson, ListSummary, RootJson, SkillRow};
use crate::ui::{self, Ui};

/// What to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only names or descriptions that contain this text
    filter: Option<String>,
    /// Only skills of this scope
    #[arg(long, value_enum)]
    scope: Option<ScopeArg>,
    /// Only skills of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only skills with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only skills started by this event
    #[arg(long)]
    event: Option<String>,
    /// Only agents with this capability
    #[arg(long)]
    capability: Option<String>,
    /// Only skills whose path globs match this path
    #[arg(long, value_name = "PATH")]
    path: Option<camino::Utf8PathBuf>,
    /// Print names only, one a line
    #[arg(long)]
    names: bool,
    /// With `--profile openskills`: print exactly what OpenSkills prints
    #[arg(long)]
    compat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ScopeArg {
    Builtin,
    User,
    Project,
    Plugin,
    Extra,
}

impl ScopeArg {
    fn scope(self) -> Scope {
        match self {
            ScopeArg::Builtin => Scope::Builtin,
            ScopeArg::User => Scope::User,
            ScopeArg::Project => Scope::Project,
            ScopeArg::Plugin => Scope::Plugin,
            ScopeArg::Extra => Scope::Extra,
        }
    }
}

impl Args {
    fn wants(&self, entry: &Entry) -> bool {
        let skill = &entry.skill;
        let contains = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
        let filter = self.filter.as_deref();
        filter.is_none_or(|part| contains(&entry.id, part) || contains(&skill.description, part))
            && self.scope.is_none_or(|scope| skill.origin.scope == scope.scope())
            && self.kind.as_deref().is_none_or(|kind| skill.kind.as_str() == kind)
            && self
                .tag
                .as_ref()
                .is_none_or(|tag| skill.tags.iter().any(|t| t.eq_ignore_ascii_case(tag)))
            && self.event.as_ref().is_none_or(|event| skill.triggers.events.contains(event))
            && self.capability.as_ref().is_none_or(|word| skill.capabilities.contains(word))
            && self.path.as_ref().is_none_or(|path| {
                let hit = |glob: &String| repertoire_skill::catalog::glob_matches(glob, path);
                skill.triggers.paths.iter().any(hit)
            })
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

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    if args.compat && ctx.config.profile() == ProfileId::Openskills {
        let places = ctx.config.places();
        let found = openskills::find_all(&places.here, &places.home);
        let entries: Vec<_> = found.iter().map(openskills::Found::entry).collect();
        write!(ui.out, "{}", openskills::render_list(&entries, openskills::Style::Compat))?;
        return Ok(Exit::Done);
    }
    let catalog = ctx.catalog()?;
    if ui.json {
        ui.print_json(&json(&catalog, args))?;
    } else if args.names {
        for entry in catalog.entries().iter().filter(|entry| args.wants(entry)) {
            writeln!(ui.out, "{}", entry.id)?;
        }
    } else {
        print_tree(&catalog, args, ui)?;
    }
    Ok(Exit::Done)
}

fn json(catalog: &Catalog, args: &Args) -> ListJson {
    let winners = catalog.entries().iter().map(|entry| (entry, None));
    let losers = catalog.shadowed().iter().map(|lost| (&lost.entry, Some(lost.by.as_path())));
    let all: Vec<(&Entry, Option<&Utf8Path>)> =
        winners.chain(losers).filter(|(entry, _)| args.wants(entry)).collect();
    // Digests are the only work here, and they are independent of each other.
    let skills = all.par_iter().map(|(entry, by)| SkillRow::of(entry, *by)).collect();
    ListJson {
        skills,
        broken: catalog.broken().iter().map(BrokenJson::of).collect(),
        roots: catalog.roots().iter().map(RootJson::of).collect(),
        summary: summary(catalog),
    }
}

fn summary(catalog: &Catalog) -> ListSummary {
    let agents = catalog.entries().iter().filter(|entry| entry.skill.is_agent()).count();
    ListSummary {
        skills: catalog.entries().len() - agents,
        agents,
        shadowed: catalog.shadowed().len(),
        broken: catalog.broken().len(),
    }
}

fn print_tree(catalog: &Catalog, args: &Args, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let names = catalog.entries().iter().map(|entry| ui::width(&entry.id));
    let name_columns = names.max().unwrap_or(0).clamp(12, 32);
    let mut shown = 0;
    for report in catalog.roots().iter().filter(|report| report.state == RootState::Searched) {
        let dir = report.root.dir.as_path();
        let here = |entry: &Entry| entry.skill.origin.root == dir && args.wants(entry);
        let mut lines = Vec::new();
        for entry in catalog.entries().iter().filter(|entry| here(entry)) {
            shown += 1;
            lines.push(skill_line(entry, name_columns, ui));
        }
        for lost in catalog.shadowed().iter().filter(|lost| here(&lost.entry)) {
            let by = catalog.places().shorten(&lost.by);
            let name = ui::pad(&ui::fit(&lost.entry.id, name_columns), name_columns);
            lines.push(ui.paint(ui::FAINT, format!("  {name}  shadowed by {by}")));
        }
        if !args.is_filtered() {
            for broken in catalog.broken().iter().filter(|broken| broken.path.starts_with(dir)) {
                lines.push(broken_line(broken, dir, name_columns, ui));
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
    if shown == 0 && args.is_filtered() {
        writeln!(ui.out, "No skill matches.")?;
    } else if catalog.entries().is_empty() {
        writeln!(
            ui.out,
            "No skills found. `rep new NAME` starts one; `rep doctor` shows where they are looked for."
        )?;
    }
    writeln!(ui.out, "{}", summary_line(catalog, ui))
}

fn root_line(
    catalog: &Catalog,
    report: &repertoire_skill::catalog::RootReport,
    ui: &Ui<'_>,
) -> String {
    let root = &report.root;
    let dir = catalog.places().shorten(&root.dir);
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

fn skill_line(entry: &Entry, name_columns: usize, ui: &Ui<'_>) -> String {
    let name = ui::pad(&ui::fit(&entry.id, name_columns), name_columns);
    let mut notes = String::new();
    if entry.skill.is_agent() {
        notes.push_str("agent · ");
    }
    match entry.trust {
        Trust::Trusted => {}
        Trust::Untrusted => notes.push_str("untrusted · "),
        Trust::Changed => notes.push_str("changed since trusted · "),
    }
    let room = ui.columns.saturating_sub(name_columns + 4 + ui::width(&notes)).max(20);
    let description = ui::fit(&entry.skill.description, room);
    format!("  {}  {}{description}", ui.paint(ui::ACCENT, name), ui.paint(ui::FAINT, notes))
}

fn broken_line(
    broken: &repertoire_skill::catalog::Broken,
    root: &Utf8Path,
    name_columns: usize,
    ui: &Ui<'_>,
) -> String {
    let path = broken.path.strip_prefix(root).unwrap_or(&broken.path);
    let path = path.as_str().trim_end_matches("/SKILL.md");
    let name = ui::pad(&ui::fit(path, name_columns), name_columns);
    let reason = format!("broken: {} [{}]", broken.reason.message, broken.reason.code.id);
    let room = ui.columns.saturating_sub(name_columns + 4).max(20);
    format!("  {}  {}", ui.paint(ui::BAD, name), ui::fit(&reason, room))
}

fn summary_line(catalog: &Catalog, ui: &Ui<'_>) -> String {
    let summary = summary(catalog);
    let mut parts = vec![ui::count(summary.skills, "skill"), ui::count(summary.agents, "agent")];
    if summary.shadowed > 0 {
        parts.push(format!("{} shadowed", summary.shadowed));
    }
    if summary.broken > 0 {
        parts.push(ui.paint(ui::BAD, format!("{} broken", summary.broken)));
    }
    parts.join(", ")
}
