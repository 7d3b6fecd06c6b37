//! `rep config`: prints every key, its value, and where the value comes from.

use repertoire::config::{ConfigKey, ConfigOrigin, KEYS, variable_of};

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{ConfigJson, SettingJson};
use crate::ui::{self, TerminalUi};

const NOT_IN_FORCE: &str = ", not in force: see `rep trust --project`";

/// Arguments of `rep config`
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Explain each key as well
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &ConfigArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let waiting = settings_without_consent(ctx)?;
    let is_waiting = |key: &ConfigKey| waiting.contains(&key);
    let shown = ctx.with_proposal_in_force();
    let settings = shown.config.settings();
    if ui.json {
        let settings = settings
            .iter()
            .map(|setting| SettingJson {
                key: setting.key.name.to_owned(),
                value: serde_json::to_value(setting.display_value()).unwrap_or_default(),
                origin: setting.origin.clone(),
                in_force: !is_waiting(setting.key),
            })
            .collect();
        ui.print_json(&ConfigJson { settings })?;
        return Ok(CliExit::Done);
    }
    let lines: Vec<(String, String)> = settings
        .iter()
        .map(|setting| {
            let value = setting.display_value().map_or("(not set)".to_owned(), |v| v.to_string());
            let note = if is_waiting(setting.key) { NOT_IN_FORCE } else { "" };
            (format!("{} = {value}", setting.key.name), format_origin(ctx, &setting.origin) + note)
        })
        .collect();
    let columns = lines.iter().map(|(line, _)| ui::text_width(line)).max().unwrap_or(0).min(60);
    for (key, (line, origin)) in KEYS.iter().zip(lines) {
        let faint = ui.paint(ui::FAINT, format!("# {origin}"));
        writeln!(ui.out, "{}  {faint}", ui::pad_columns(&line, columns))?;
        if args.explain {
            let about = format!("    {} (or ${})", key.about, variable_of(key.name));
            writeln!(ui.out, "{}", ui.paint(ui::FAINT, about))?;
        }
    }
    Ok(CliExit::Done)
}

/// Returns the keys of the project's settings that the user has not agreed to.
fn settings_without_consent(ctx: &CliContext<'_>) -> Result<Vec<&'static ConfigKey>, CliFailure> {
    let Some(proposal) = ctx.config.pending_proposal() else { return Ok(Vec::new()) };
    let standing = ctx.consent_state(proposal)?;
    let waiting = ctx.config.proposed().iter().filter(|_| standing.by.is_none());
    Ok(waiting.map(|setting| setting.key).collect())
}

fn format_origin(ctx: &CliContext<'_>, origin: &ConfigOrigin) -> String {
    match origin {
        ConfigOrigin::Default => "default".to_owned(),
        ConfigOrigin::File(place) => ctx.config.places().shorten_path(place.as_str().into()),
        ConfigOrigin::Environment(variable) => format!("${variable}"),
        ConfigOrigin::Flag(flag) => flag.clone(),
    }
}
