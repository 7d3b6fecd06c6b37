//! `rep config`: every key, its value, and where it came from.

use crate::cli::Ctx;
use crate::config::{KEYS, Origin, variable_of};
use crate::failure::{Exit, Outcome};
use crate::schema::{ConfigJson, SettingJson};
use crate::ui::{self, Ui};

/// What to print.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Explain each key as well
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let settings = ctx.config.settings();
    if ui.json {
        let settings = settings
            .iter()
            .map(|setting| SettingJson {
                key: setting.name.to_owned(),
                value: serde_json::to_value(setting.shown()).unwrap_or_default(),
                origin: setting.origin.clone(),
            })
            .collect();
        ui.print_json(&ConfigJson { settings })?;
        return Ok(Exit::Done);
    }
    let lines: Vec<(String, String)> = settings
        .iter()
        .map(|setting| {
            let value = setting.shown().map_or("(not set)".to_owned(), |v| v.to_string());
            (format!("{} = {value}", setting.name), origin(ctx, &setting.origin))
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

fn origin(ctx: &Ctx<'_>, origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File(place) => ctx.config.places().shorten(place.as_str().into()),
        Origin::Environment(variable) => format!("${variable}"),
        Origin::Flag(flag) => flag.clone(),
    }
}
