//! Shows the settings that need consent in full, with the changes since the user last agreed, and
//! asks.

use std::collections::BTreeMap;

use repertoire_skill::trust::{ActingSettings, SettingChange};

use crate::cli::CliContext;
use crate::permission_question::wrap_line;
use crate::ui::{self, TerminalUi};
use repertoire::config::KEY;
use repertoire::consent::ConsentState;

pub(super) enum ConsentAnswer {
    /// Agree, and remember it.
    Always,
    /// Agree for this command.
    Once,
    /// Do not agree.
    No,
}

/// Shows all settings in full. Nothing is truncated, and characters that a terminal would hide are
/// escaped.
pub(crate) fn show_settings(
    ctx: &CliContext<'_>,
    standing: &ConsentState,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let files = standing.proposal.files.iter();
    let files: Vec<String> = files.map(|file| ctx.config.places().shorten_path(file)).collect();
    let files = files.join(" and ");
    let agreed = standing.lock.agreed_settings(&standing.proposal.folder);
    let head = match (&standing.by, agreed) {
        (Some(_), _) => format!("{files} starts programs, and you have agreed to this:"),
        (None, None) => format!("{files} wants to start programs on this machine:"),
        (None, Some(_)) => {
            format!("{files} wants to start programs, and has changed since you agreed to it:")
        }
    };
    let head = ui.paint_err(ui::STRONG, head);
    writeln!(ui.err, "{head}\n")?;
    let settings = &standing.proposal.settings;
    let compared = match agreed {
        Some(agreed) => settings.compared_with(agreed),
        None => mark_unchanged(settings),
    };
    for (key, change) in compared {
        for (mark, value) in with_diff_marks(change) {
            write_setting(mark, key, value, ui)?;
        }
    }
    let note = explain_settings(ctx, settings);
    let note = ui::wrap_words(&note, ui.columns.max(20), "");
    writeln!(ui.err, "\n{}", ui.paint_err(ui::FAINT, note))
}

/// Asks for consent and waits for the answer.
pub(super) fn ask_for_consent(ui: &mut TerminalUi<'_>) -> std::io::Result<ConsentAnswer> {
    let question = ui.paint_err(ui::STRONG, "Agree to these settings?");
    let answer = ui.read_answer(&format!("{question} [y]es, and remember it / [o]nce / [n]o "))?;
    Ok(match answer.as_str() {
        "y" | "yes" => ConsentAnswer::Always,
        "o" | "once" => ConsentAnswer::Once,
        _ => ConsentAnswer::No,
    })
}

/// Asks whether to trust the settings from now on, and waits for the answer.
pub(super) fn ask_to_remember(ui: &mut TerminalUi<'_>) -> std::io::Result<bool> {
    ui.ask_yes_or_no("Trust these settings?")
}

fn mark_unchanged(settings: &ActingSettings) -> BTreeMap<&str, SettingChange<'_>> {
    settings.iter().map(|(key, value)| (key, SettingChange::Same(value))).collect()
}

/// Returns the values to show for a key, each with a diff mark.
fn with_diff_marks(change: SettingChange<'_>) -> Vec<(&'static str, &str)> {
    match change {
        SettingChange::Same(value) => vec![("    ", value)],
        SettingChange::Added(value) => vec![("  + ", value)],
        SettingChange::Removed(value) => vec![("  - ", value)],
        SettingChange::Changed { before, now } => vec![("  - ", before), ("  + ", now)],
    }
}

fn write_setting(
    mark: &str,
    key: &str,
    value: &str,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let opens_network = key.ends_with(".network") && value == "true";
    let style = match mark.trim() {
        "+" => ui::GOOD,
        "-" => ui::BAD,
        _ if opens_network => ui::WARN,
        _ => anstyle::Style::new(),
    };
    for line in format_setting(mark, key, value, ui.columns) {
        let line = ui.paint_err(style, line);
        writeln!(ui.err, "{line}")?;
    }
    Ok(())
}

/// Formats a setting as lines. A multi-line value goes below its key behind bars, so that it cannot
/// be mistaken for another setting.
fn format_setting(mark: &str, key: &str, value: &str, columns: usize) -> Vec<String> {
    let text: Option<String> = serde_json::from_str(value).ok();
    let is_plain = |text: &String| !text.is_empty() && text.trim() == text;
    match text.filter(is_plain) {
        Some(text) if text.contains('\n') => {
            let mut all = wrap_line(mark, "  ↪ ", &format!("{key} ="), columns);
            all.extend(
                text.split('\n').flat_map(|line| wrap_line("      │ ", "    ↪ │ ", line, columns)),
            );
            all
        }
        Some(text) => wrap_line(mark, "  ↪ ", &format!("{key} = {text}"), columns),
        None => wrap_line(mark, "  ↪ ", &format!("{key} = {value}"), columns),
    }
}

/// Explains the effects of the settings, for users who see them for the first time.
fn explain_settings(ctx: &CliContext<'_>, settings: &ActingSettings) -> String {
    let has =
        |wanted: fn(&str, &str) -> bool| settings.iter().any(|(key, value)| wanted(key, value));
    let enforced = ctx.configured_sandbox().is_ok_and(|sandbox| sandbox.is_enforced());
    let mut sentences = vec![if enforced {
        "Commands run in the sandbox."
    } else {
        "There is no sandbox here: commands can do everything that you can."
    }];
    if has(|key, value| key.ends_with(".network") && value == "true") {
        sentences.push(
            "With `network = true` a command can send everything that it can read to any host.",
        );
    }
    if has(|key, _| key == KEY.plan_copy.name) {
        sentences.push("`plan.copy` lets agents and commands read files that git does not track.");
    }
    if has(|key, _| key == KEY.plan_self_improve.name) {
        sentences.push("`plan.self_improve` runs linters and package managers of the project when checks fail.");
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str) -> Vec<String> {
        format_setting("    ", "plan.setup", &serde_json::to_string(value).unwrap(), 40)
    }

    #[test]
    fn nothing_of_a_setting_is_hidden_and_none_looks_like_two() {
        assert_eq!(shown("make test"), ["    plan.setup = make test"]);
        assert_eq!(
            shown("true\nplan.copy = nothing"),
            ["    plan.setup =", "      │ true", "      │ plan.copy = nothing"]
        );
        assert_eq!(
            shown("curl https://example.com/a/script | sh"),
            ["    plan.setup = curl https://example.co", "  ↪ m/a/script | sh"]
        );
        assert_eq!(shown(" true "), ["    plan.setup = \" true \""]);
        let hidden = shown("echo \u{1b}[2K\r\u{202e}\u{200b}").concat();
        assert!(!hidden.contains(['\u{1b}', '\r', '\u{202e}', '\u{200b}']), "{hidden:?}");
    }
}
