//! `rep show --deps`: prints the dependencies between skills as a tree, a diagram or JSON.

use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::dependencies::{self, DependencyMatch};

use crate::cli::CliContext;
use crate::commands::resolve_skill;
use crate::failure::{CliExit, CliResult};
use crate::schema::{DepsEdgeJson, DepsEdgeState, DepsJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep show --deps`
#[derive(Debug, clap::Args)]
pub(crate) struct ShowDepsArgs {
    /// Show the dependencies of this skill (default: of every skill that has some)
    pub(crate) name: Option<String>,
    /// Print a Mermaid diagram
    #[arg(long)]
    pub(crate) mermaid: bool,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &ShowDepsArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let catalog = ctx.load_catalog()?;
    let starts: Vec<&CatalogEntry> = match &args.name {
        Some(name) => vec![resolve_skill(catalog, name)?],
        None => find_tree_roots(catalog),
    };
    let graph = build_graph(catalog, &starts);
    let whole =
        graph.cycles.is_empty() && graph.edges.iter().all(|e| e.state == DepsEdgeState::Met);
    if ui.json {
        ui.print_json(&graph)?;
    } else if args.mermaid {
        write!(ui.out, "{}", render_mermaid(&graph))?;
    } else {
        print_trees(catalog, &starts, &graph, ui)?;
    }
    Ok(if whole { CliExit::Done } else { CliExit::No })
}

/// Returns where the trees start: skills that depend on others and that no other skill depends on,
/// plus the first skill of every cycle, which would otherwise not be reached.
fn find_tree_roots(catalog: &Catalog) -> Vec<&CatalogEntry> {
    let needing =
        || catalog.entries().iter().filter(|entry| !entry.skill.execution.dependencies.is_empty());
    let needed = |wanted: &CatalogEntry| {
        needing().any(|entry| {
            let own = entry.id != wanted.id;
            let needs = &entry.skill.execution.dependencies;
            own && needs.iter().any(|need| need.name == wanted.skill.name)
        })
    };
    let tops: Vec<&CatalogEntry> = needing().filter(|entry| !needed(entry)).collect();
    let in_circles = needing().filter(|entry| {
        dependencies::find_cycles(catalog.entries())
            .iter()
            .any(|path| path.first() == Some(&entry.id))
    });
    let mut all: Vec<&CatalogEntry> = tops.into_iter().chain(in_circles).collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all.dedup_by(|a, b| std::ptr::eq(*a, *b));
    all
}

fn build_graph(catalog: &Catalog, starts: &[&CatalogEntry]) -> DepsJson {
    let mut order: Vec<&CatalogEntry> = Vec::new();
    for start in starts {
        for entry in dependencies::order_by_dependency(catalog, start) {
            if !order.iter().any(|known| std::ptr::eq(*known, entry)) {
                order.push(entry);
            }
        }
    }
    let edges = order.iter().flat_map(|entry| dependency_edges(entry, catalog)).collect();
    let order: Vec<String> = order.iter().map(|entry| entry.id.clone()).collect();
    let cycles = dependencies::find_cycles(catalog.entries())
        .into_iter()
        .filter(|path| path.iter().any(|name| order.contains(name)))
        .collect();
    DepsJson { order, edges, cycles }
}

fn dependency_edges(entry: &CatalogEntry, catalog: &Catalog) -> Vec<DepsEdgeJson> {
    dependencies::match_dependencies(&entry.skill, catalog.entries())
        .into_iter()
        .map(|(need, how)| DepsEdgeJson {
            from: entry.id.clone(),
            to: need.name.clone(),
            requirement: need.requirement.as_ref().map(ToString::to_string),
            state: match how {
                DependencyMatch::By(_) => DepsEdgeState::Met,
                DependencyMatch::Missing => DepsEdgeState::Missing,
                DependencyMatch::OtherVersion(_) => DepsEdgeState::OtherVersion,
            },
        })
        .collect()
}

fn render_mermaid(graph: &DepsJson) -> String {
    let mut out = String::from("graph TD\n");
    for name in &graph.order {
        out.push_str(&format!("  {}[\"{name}\"]\n", mermaid_id(name)));
    }
    for edge in &graph.edges {
        let label = edge.requirement.as_ref().map_or(String::new(), |r| format!("|\"{r}\"|"));
        let (arrow, note) = match edge.state {
            DepsEdgeState::Met => ("-->", ""),
            DepsEdgeState::Missing => ("-.->", " (missing)"),
            DepsEdgeState::OtherVersion => ("-.->", " (other version)"),
        };
        let (from, to) = (mermaid_id(&edge.from), mermaid_id(&edge.to));
        out.push_str(&format!("  {from} {arrow}{label} {to}[\"{}{note}\"]\n", edge.to));
    }
    out
}

fn mermaid_id(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn print_trees(
    catalog: &Catalog,
    starts: &[&CatalogEntry],
    graph: &DepsJson,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    if starts.is_empty() {
        return writeln!(ui.out, "No skill depends on another.");
    }
    if let [only] = starts
        && only.skill.execution.dependencies.is_empty()
    {
        return writeln!(ui.out, "{} depends on no other skill.", entry_title(only));
    }
    for start in starts {
        writeln!(ui.out, "{}", ui.paint(ui::STRONG, entry_title(start)))?;
        let mut path = vec![start.id.clone()];
        print_needs(catalog, start, "", &mut path, ui)?;
    }
    for cycle in &graph.cycles {
        let line = format!("circle: {} → {}", cycle.join(" → "), cycle[0]);
        writeln!(ui.out, "{}", ui.paint(ui::BAD, line))?;
    }
    Ok(())
}

fn entry_title(entry: &CatalogEntry) -> String {
    match &entry.skill.version {
        Some(version) => format!("{} {version}", entry.id),
        None => entry.id.clone(),
    }
}

fn print_needs(
    catalog: &Catalog,
    entry: &CatalogEntry,
    indent: &str,
    path: &mut Vec<String>,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let needs = dependencies::match_dependencies(&entry.skill, catalog.entries());
    let last = needs.len().saturating_sub(1);
    for (at, (need, how)) in needs.into_iter().enumerate() {
        let (branch, deeper) =
            if at == last { ("└── ", "    ") } else { ("├── ", "│   ") };
        let asked = need.requirement.as_ref().map_or(String::new(), |r| format!(" ({r})"));
        match how {
            DependencyMatch::By(next) if path.contains(&next.id) => {
                let note = ui.paint(ui::BAD, "↻ in a circle");
                writeln!(ui.out, "{indent}{branch}{}{asked} {note}", next.id)?;
            }
            DependencyMatch::By(next) => {
                writeln!(
                    ui.out,
                    "{indent}{branch}{}{}",
                    entry_title(next),
                    ui.paint(ui::FAINT, asked)
                )?;
                path.push(next.id.clone());
                print_needs(catalog, next, &format!("{indent}{deeper}"), path, ui)?;
                path.pop();
            }
            DependencyMatch::Missing => {
                let note = ui.paint(ui::BAD, "missing");
                writeln!(ui.out, "{indent}{branch}{}{asked} {note}", need.name)?;
            }
            DependencyMatch::OtherVersion(found) => {
                let note = ui.paint(ui::BAD, "wrong version");
                writeln!(ui.out, "{indent}{branch}{}{asked} {note}", entry_title(found))?;
            }
        }
    }
    Ok(())
}
