//! `rep config`: prints every key, its value, and where the value comes from.

use crate::cli::Ctx;
use crate::config::{KEYS, Origin, variable_of};
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::{ConfigJson, SettingJson};
use crate::ui::{self, Ui};

const NOT_IN_FORCE: &str = ", not in force: see `rep trust --project`";

/// Arguments of `rep config`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Explain each key as well
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let waiting = waiting(ctx)?;
    let is_waiting = |name: &str| waiting.contains(&name);
    let shown = ctx.with_proposal_in_force();
    let settings = shown.config.settings();
    if ui.json {
        let settings = settings
            .iter()
            .map(|setting| SettingJson {
                key: setting.name.to_owned(),
                value: serde_json::to_value(setting.shown()).unwrap_or_default(),
                origin: setting.origin.clone(),
                in_force: !is_waiting(setting.name),
            })
            .collect();
        ui.print_json(&ConfigJson { settings })?;
        return Ok(Exit::Done);
    }
    let lines: Vec<(String, String)> = settings
        .iter()
        .map(|setting| {
            let value = setting.shown().map_or("(not set)".to_owned(), |v| v.to_string());
            let note = if is_waiting(setting.name) { NOT_IN_FORCE } else { "" };
            (format!("{} = {value}", setting.name), origin(ctx, &setting.origin) + note)
        })
        .collect();
    let columns = lines.iter().map(|(line, _)| ui::width(line)).max().unwrap_or(0).min(60);
    for (key, (line, origin)) in KEYS.iter().zip(lines) {
        let faint = ui.paint(ui::FAINT, format!("# {origin}"));
        writeln!(ui.out, "{}  {faint}", ui::pad(&line, columns))?;
        if args.explain {
            let about = format!("    {} (or ${})", key.about, variable_of(key.name));
            writeln!(ui.out, "{}", ui.paint(ui::FAINT, about))?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the names of the project's settings that the user has not agreed to.
fn waiting(ctx: &Ctx<'_>) -> Result<Vec<&'static str>, Failure> {
    let Some(proposal) = ctx.config.proposal() else { return Ok(Vec::new()) };
    let standing = ctx.standing(proposal)?;
    let waiting = ctx.config.proposed().iter().filter(|_| standing.by.is_none());
    Ok(waiting.map(|setting| setting.name).collect())
}

fn origin(ctx: &Ctx<'_>, origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File(place) => ctx.config.places().shorten(place.as_str().into()),
        Origin::Environment(variable) => format!("${variable}"),
        Origin::Flag(flag) => flag.clone(),
    }
}
