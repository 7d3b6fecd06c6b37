//! Consent to the settings of a project that start programs, give them network access, or let them
//! read more.
//!
//! The user agrees at a terminal, with `rep trust --project`, with `--consent DIGEST`, or in the
//! user configuration. Without a terminal nothing is asked: the command stops and prints the
//! command that agrees.

use repertoire::config::{ConfigKey, SettingsProposal};
use repertoire::consent::{ConsentState, consent_declined, consent_needed, not_trusted};

use crate::cli::CliContext;
use crate::failure::CliFailure;
use crate::ui::TerminalUi;

mod question;

pub(crate) use self::question::show_settings;
use self::question::{ConsentAnswer, ask_for_consent, ask_to_remember};

impl<'a> CliContext<'a> {
    /// Returns a context with the project's settings for these keys in force, once the user has
    /// agreed to them. Asks at a terminal.
    ///
    /// A command names the keys that it reads. It does not ask because of other keys, and those
    /// don't come into force. The user sees all settings that need consent and agrees to them
    /// together, so that one consent is enough for every command. A changed key matters only to the
    /// commands that read it.
    pub(crate) fn with_consent(
        &self,
        keys: &[&ConfigKey],
        ui: &mut TerminalUi<'_>,
    ) -> Result<CliContext<'a>, CliFailure> {
        if let Some(standing) = self.missing_consent(keys)? {
            self.request_consent(&standing, ui)?;
        }
        Ok(CliContext { env: self.env, app: self.with_keys_in_force(keys) })
    }

    /// Shows settings that the user has not agreed to, and asks at a terminal.
    pub(crate) fn request_consent(
        &self,
        standing: &ConsentState,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        show_settings(self, standing, ui)?;
        if !self.can_be_asked(ui) {
            return Err(consent_needed(standing, self.config.has_consent_flag()).into());
        }
        match ask_for_consent(ui)? {
            ConsentAnswer::Always => self.pin_consent(&standing.proposal, ui),
            ConsentAnswer::Once => Ok(()),
            ConsentAnswer::No => Err(consent_declined("nothing was run").into()),
        }
    }

    /// Shows settings that the user has not agreed to, and asks at a terminal whether to trust them
    /// from now on.
    pub(crate) fn request_trust(
        &self,
        standing: &ConsentState,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        show_settings(self, standing, ui)?;
        if !self.can_be_asked(ui) {
            return Err(not_trusted(standing, self.config.has_consent_flag()).into());
        }
        if !ask_to_remember(ui)? {
            return Err(consent_declined("not trusted").into());
        }
        self.pin_consent(&standing.proposal, ui)
    }

    /// Returns true if a user is at a terminal and the output is not JSON.
    pub(crate) fn can_be_asked(&self, ui: &TerminalUi<'_>) -> bool {
        self.env.stdin_is_terminal && self.env.stderr_is_terminal && !ui.json
    }

    /// Pins settings in the user's lock file.
    pub(crate) fn pin_consent(
        &self,
        proposal: &SettingsProposal,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        self.pin_settings(proposal)?;
        let short = self.config.places().shorten_path(&self.config.lock_path());
        ui.print_note(&format!(
            "Remembered in {short}; `rep trust --project --revoke` removes it."
        ))?;
        Ok(())
    }
}
