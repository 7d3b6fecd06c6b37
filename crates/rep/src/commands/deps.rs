//! `rep deps`: prints the dependencies between skills as a tree, a diagram or JSON.

use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::depend::{self, Met};

use crate::cli::Ctx;
use crate::commands::resolve;
use crate::failure::{Exit, Outcome};
use crate::schema::{DepsJson, EdgeJson, EdgeState};
use crate::ui::{self, Ui};

/// Arguments of `rep deps`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show the dependencies of this skill (default: of every skill that has some)
    name: Option<String>,
    /// Print a Mermaid diagram
    #[arg(long)]
    mermaid: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let catalog = ctx.catalog()?;
    let starts: Vec<&Entry> = match &args.name {
        Some(name) => vec![resolve(catalog, name)?],
        None => tops(catalog),
    };
    let graph = graph(catalog, &starts);
    let whole = graph.cycles.is_empty() && graph.edges.iter().all(|e| e.state == EdgeState::Met);
    if ui.json {
        ui.print_json(&graph)?;
    } else if args.mermaid {
        write!(ui.out, "{}", mermaid(&graph))?;
    } else {
        print_trees(catalog, &starts, &graph, ui)?;
    }
    Ok(if whole { Exit::Done } else { Exit::No })
}

/// Returns where the trees start: skills that depend on others and that no other skill depends on,
/// plus the first skill of every cycle, which would otherwise not be reached.
fn tops(catalog: &Catalog) -> Vec<&Entry> {
    let needing =
        || catalog.entries().iter().filter(|entry| !entry.skill.execution.dependencies.is_empty());
    let needed = |wanted: &Entry| {
        needing().any(|entry| {
            let own = entry.id != wanted.id;
            let needs = &entry.skill.execution.dependencies;
            own && needs.iter().any(|need| need.name == wanted.skill.name)
        })
    };
    let tops: Vec<&Entry> = needing().filter(|entry| !needed(entry)).collect();
    let in_circles = needing().filter(|entry| {
        depend::cycles(catalog.entries()).iter().any(|path| path.first() == Some(&entry.id))
    });
    let mut all: Vec<&Entry> = tops.into_iter().chain(in_circles).collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all.dedup_by(|a, b| std::ptr::eq(*a, *b));
    all
}

fn graph(catalog: &Catalog, starts: &[&Entry]) -> DepsJson {
    let mut order: Vec<&Entry> = Vec::new();
    for start in starts {
        for entry in depend::order(catalog, start) {
            if !order.iter().any(|known| std::ptr::eq(*known, entry)) {
                order.push(entry);
            }
        }
    }
    let edges = order.iter().flat_map(|entry| edges(entry, catalog)).collect();
    let order: Vec<String> = order.iter().map(|entry| entry.id.clone()).collect();
    let cycles = depend::cycles(catalog.entries())
        .into_iter()
        .filter(|path| path.iter().any(|name| order.contains(name)))
        .collect();
    DepsJson { order, edges, cycles }
}

fn edges(entry: &Entry, catalog: &Catalog) -> Vec<EdgeJson> {
    depend::met(&entry.skill, catalog.entries())
        .into_iter()
        .map(|(need, how)| EdgeJson {
            from: entry.id.clone(),
            to: need.name.clone(),
            requirement: need.requirement.as_ref().map(ToString::to_string),
            state: match how {
                Met::By(_) => EdgeState::Met,
                Met::Missing => EdgeState::Missing,
                Met::OtherVersion(_) => EdgeState::OtherVersion,
            },
        })
        .collect()
}

fn mermaid(graph: &DepsJson) -> String {
    let mut out = String::from("graph TD\n");
    for name in &graph.order {
        out.push_str(&format!("  {}[\"{name}\"]\n", mermaid_id(name)));
    }
    for edge in &graph.edges {
        let label = edge.requirement.as_ref().map_or(String::new(), |r| format!("|\"{r}\"|"));
        let (arrow, note) = match edge.state {
            EdgeState::Met => ("-->", ""),
            EdgeState::Missing => ("-.->", " (missing)"),
            EdgeState::OtherVersion => ("-.->", " (other version)"),
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
    starts: &[&Entry],
    graph: &DepsJson,
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    if starts.is_empty() {
        return writeln!(ui.out, "No skill depends on another.");
    }
    if let [only] = starts
        && only.skill.execution.dependencies.is_empty()
    {
        return writeln!(ui.out, "{} depends on no other skill.", title(only));
    }
    for start in starts {
        writeln!(ui.out, "{}", ui.paint(ui::STRONG, title(start)))?;
        let mut path = vec![start.id.clone()];
        print_needs(catalog, start, "", &mut path, ui)?;
    }
    for cycle in &graph.cycles {
        let line = format!("circle: {} → {}", cycle.join(" → "), cycle[0]);
        writeln!(ui.out, "{}", ui.paint(ui::BAD, line))?;
    }
    Ok(())
}

fn title(entry: &Entry) -> String {
    match &entry.skill.version {
        Some(version) => format!("{} {version}", entry.id),
        None => entry.id.clone(),
    }
}

fn print_needs(
    catalog: &Catalog,
    entry: &Entry,
    indent: &str,
    path: &mut Vec<String>,
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let needs = depend::met(&entry.skill, catalog.entries());
    let last = needs.len().saturating_sub(1);
    for (at, (need, how)) in needs.into_iter().enumerate() {
        let (branch, deeper) =
            if at == last { ("└── ", "    ") } else { ("├── ", "│   ") };
        let asked = need.requirement.as_ref().map_or(String::new(), |r| format!(" ({r})"));
        match how {
            Met::By(next) if path.contains(&next.id) => {
                let note = ui.paint(ui::BAD, "↻ in a circle");
                writeln!(ui.out, "{indent}{branch}{}{asked} {note}", next.id)?;
            }
            Met::By(next) => {
                writeln!(ui.out, "{indent}{branch}{}{}", title(next), ui.paint(ui::FAINT, asked))?;
                path.push(next.id.clone());
                print_needs(catalog, next, &format!("{indent}{deeper}"), path, ui)?;
                path.pop();
            }
            Met::Missing => {
                let note = ui.paint(ui::BAD, "missing");
                writeln!(ui.out, "{indent}{branch}{}{asked} {note}", need.name)?;
            }
            Met::OtherVersion(found) => {
                let note = ui.paint(ui::BAD, "wrong version");
                writeln!(ui.out, "{indent}{branch}{}{asked} {note}", title(found))?;
            }
        }
    }
    Ok(())
}
