//! `rep trust --project`: records the user's consent to the project's settings that start programs.

use repertoire::consent::{ConsentBy, ConsentState, not_trusted};
use repertoire_skill::trust::{TrustLevel, TrustLock};

use super::trust_word;
use crate::cli::CliContext;
use crate::consent::show_settings;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::TrustProjectJson;
use crate::ui::{self, TerminalUi};

/// Name of the settings in the list of `rep trust`.
pub(super) const ROW_NAME: &str = "(settings)";
const NOTHING: &str = "no settings of this project start programs, so there is nothing to agree to";

pub(super) fn run(ctx: &CliContext<'_>, revoke: bool, ui: &mut TerminalUi<'_>) -> CliResult {
    if revoke {
        return revoke_consent(ctx, ui);
    }
    let Some(proposal) = ctx.config.pending_proposal() else {
        writeln!(ui.out, "{NOTHING}")?;
        return Ok(CliExit::Done);
    };
    ctx.check_proposal()?;
    let standing = ctx.consent_state(proposal)?;
    match standing.by {
        Some(ConsentBy::Digest) => {
            show_settings(ctx, &standing, ui)?;
            ctx.pin_consent(&standing.proposal, ui)?;
        }
        Some(ConsentBy::Lock | ConsentBy::Folder) => {
            show_settings(ctx, &standing, ui)?;
            if ctx.config.has_consent_flag() {
                return Err(not_trusted(&standing, true).into());
            }
        }
        None => ctx.request_trust(&standing, ui)?,
    }
    if ui.json {
        let trust = TrustLevel::Trusted;
        ui.print_json(&json_of(&ConsentState { trust, ..standing }))?;
        return Ok(CliExit::Done);
    }
    let digest = standing.proposal.settings.digest();
    let folder = ctx.config.places().shorten_path(&standing.proposal.folder);
    let word = ui.paint(ui::GOOD, "trusted");
    writeln!(ui.out, "{word} the settings of {folder}, as they are now ({digest})")?;
    Ok(CliExit::Done)
}

fn revoke_consent(ctx: &CliContext<'_>, ui: &mut TerminalUi<'_>) -> CliResult {
    // Consent may still be recorded for a folder whose settings are gone.
    let folder = match ctx.config.pending_proposal() {
        Some(proposal) => proposal.folder,
        None => ctx.config.places().project_dir().to_owned(),
    };
    let removed = TrustLock::update(&ctx.config.lock_path(), |lock| {
        Ok::<_, CliFailure>(lock.unpin_settings(&folder))
    })?;
    let word = if removed { "are no longer trusted" } else { "were not trusted" };
    writeln!(ui.out, "the settings of {} {word}", ctx.config.places().shorten_path(&folder))?;
    Ok(CliExit::Done)
}

fn consent_state(ctx: &CliContext<'_>) -> Result<Option<ConsentState>, CliFailure> {
    let proposal = ctx.config.pending_proposal();
    Ok(proposal.map(|proposal| ctx.consent_state(proposal)).transpose()?)
}

/// Prints the project's settings as a row in the list of `rep trust`.
pub(super) fn print_row(
    ctx: &CliContext<'_>,
    columns: usize,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let Some(standing) = consent_state(ctx)? else { return Ok(()) };
    let files: Vec<String> =
        standing.proposal.files.iter().map(|file| ctx.config.places().shorten_path(file)).collect();
    let name = ui::pad_columns(ROW_NAME, columns);
    let files = ui.paint(ui::FAINT, files.join(", "));
    let word = trust_word(standing.trust, ui);
    writeln!(ui.out, "{word}  {name}  {files}")?;
    if standing.trust != TrustLevel::Trusted {
        ui.print_note(
            "hint: `rep trust --project` shows the settings that start programs, and asks.",
        )?;
    }
    Ok(())
}

pub(super) fn as_json(ctx: &CliContext<'_>) -> Result<Option<TrustProjectJson>, CliFailure> {
    Ok(consent_state(ctx)?.map(|standing| json_of(&standing)))
}

fn json_of(standing: &ConsentState) -> TrustProjectJson {
    let proposal = &standing.proposal;
    let settings =
        proposal.settings.iter().map(|(key, text)| (key.to_owned(), parse_or_quote(text)));
    TrustProjectJson {
        folder: proposal.folder.to_string(),
        files: proposal.files.iter().map(ToString::to_string).collect(),
        digest: proposal.settings.digest().to_string(),
        trust: standing.trust,
        settings: settings.collect(),
    }
}

/// Parses a value as JSON. A text that is not JSON becomes a string.
fn parse_or_quote(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
