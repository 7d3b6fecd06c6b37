//! `rep trust --project`: records the user's consent to the project's settings that start programs.

use repertoire_skill::trust::{Lock, Trust};

use super::word;
use crate::cli::Ctx;
use crate::consent::{ConsentBy, Standing, not_trusted, show};
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::TrustProjectJson;
use crate::ui::{self, Ui};

/// Name of the settings in the list of `rep trust`.
pub(super) const ROW_NAME: &str = "(settings)";
const NOTHING: &str = "no settings of this project start programs, so there is nothing to agree to";

pub(super) fn run(ctx: &Ctx<'_>, revoke: bool, ui: &mut Ui<'_>) -> Outcome {
    if revoke {
        return withdraw(ctx, ui);
    }
    let Some(proposal) = ctx.config.proposal() else {
        writeln!(ui.out, "{NOTHING}")?;
        return Ok(Exit::Done);
    };
    ctx.check_proposal()?;
    let standing = ctx.standing(proposal)?;
    match standing.by {
        Some(ConsentBy::Digest) => {
            show(ctx, &standing, ui)?;
            ctx.remember(&standing.proposal, ui)?;
        }
        Some(ConsentBy::Lock | ConsentBy::Folder) => {
            show(ctx, &standing, ui)?;
            if ctx.config.has_consent_flag() {
                return Err(not_trusted(&standing, true));
            }
        }
        None => ctx.obtain_trust(&standing, ui)?,
    }
    if ui.json {
        let trust = Trust::Trusted;
        ui.print_json(&json_of(&Standing { trust, ..standing }))?;
        return Ok(Exit::Done);
    }
    let digest = standing.proposal.settings.digest();
    let folder = ctx.config.places().shorten(&standing.proposal.folder);
    let word = ui.paint(ui::GOOD, "trusted");
    writeln!(ui.out, "{word} the settings of {folder}, as they are now ({digest})")?;
    Ok(Exit::Done)
}

fn withdraw(ctx: &Ctx<'_>, ui: &mut Ui<'_>) -> Outcome {
    // Consent may still be recorded for a folder whose settings are gone.
    let folder = match ctx.config.proposal() {
        Some(proposal) => proposal.folder,
        None => ctx.config.places().project().to_owned(),
    };
    let removed = Lock::update(&ctx.config.lock_path(), |lock| {
        Ok::<_, Failure>(lock.unpin_settings(&folder))
    })?;
    let word = if removed { "are no longer trusted" } else { "were not trusted" };
    writeln!(ui.out, "the settings of {} {word}", ctx.config.places().shorten(&folder))?;
    Ok(Exit::Done)
}

fn standing(ctx: &Ctx<'_>) -> Result<Option<Standing>, Failure> {
    ctx.config.proposal().map(|proposal| ctx.standing(proposal)).transpose()
}

/// Prints the project's settings as a row in the list of `rep trust`.
pub(super) fn print_row(ctx: &Ctx<'_>, columns: usize, ui: &mut Ui<'_>) -> Result<(), Failure> {
    let Some(standing) = standing(ctx)? else { return Ok(()) };
    let files: Vec<String> =
        standing.proposal.files.iter().map(|file| ctx.config.places().shorten(file)).collect();
    let name = ui::pad(ROW_NAME, columns);
    let files = ui.paint(ui::FAINT, files.join(", "));
    let word = word(standing.trust, ui);
    writeln!(ui.out, "{word}  {name}  {files}")?;
    if standing.trust != Trust::Trusted {
        ui.note("hint: `rep trust --project` shows the settings that start programs, and asks.")?;
    }
    Ok(())
}

pub(super) fn as_json(ctx: &Ctx<'_>) -> Result<Option<TrustProjectJson>, Failure> {
    Ok(standing(ctx)?.map(|standing| json_of(&standing)))
}

fn json_of(standing: &Standing) -> TrustProjectJson {
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
