//! Consent to the settings of a project that start programs, give them network access, or let them
//! read more: which settings need it, and whether the user has given it.
//!
//! The user agrees with `rep trust --project`, with a digest, or in the user configuration. This
//! module asks nothing.

use repertoire_skill::skill::ContentDigest;
use repertoire_skill::trust::{TrustLevel, TrustLock, TrustLockError};

use crate::config::{ConfigKey, KEY, SettingsProposal};
use crate::context::AppContext;
use crate::error::AppError;
use crate::plan_setup::CheckStage;

/// The keys requiring consent that `rep verify` reads.
pub static CHECK_KEYS: &[&ConfigKey] = &[&KEY.plan_checks, &KEY.plan_final_checks];
/// The keys requiring consent that a run of a plan reads.
pub static PLAN_KEYS: &[&ConfigKey] = &[
    &KEY.plan_checks,
    &KEY.plan_final_checks,
    &KEY.plan_self_improve,
    &KEY.plan_copy,
    &KEY.plan_setup,
];

/// The user's decision so far on the project's settings that start programs.
pub struct ConsentState {
    pub proposal: SettingsProposal,
    /// Trust in the current values of the settings.
    pub trust: TrustLevel,
    /// The way in which the user has agreed. `None` if not.
    pub by: Option<ConsentBy>,
    /// The lock file, with the settings that were agreed to before.
    pub lock: TrustLock,
}

/// The way in which the user has agreed to settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentBy {
    /// By their digest, with `--consent` or in `trust.settings`.
    Digest,
    /// By a folder in `trust.folders`.
    Folder,
    /// By an entry in the lock file.
    Lock,
}

impl<'a> AppContext<'a> {
    /// Returns a context with the project's settings for these keys in force.
    ///
    /// # Errors
    ///
    /// Fails if the user has not agreed to them, or if they have mistakes.
    pub fn with_given_consent(&self, keys: &[&ConfigKey]) -> Result<AppContext<'a>, AppError> {
        match self.missing_consent(keys)? {
            Some(standing) => Err(consent_needed(&standing, self.config.has_consent_flag())),
            None => Ok(self.with_keys_in_force(keys)),
        }
    }

    /// Returns a context with the project's settings for these keys in force. Call it only if
    /// [`AppContext::missing_consent`] returns `None`, or the user has agreed since.
    pub fn with_keys_in_force(&self, keys: &[&ConfigKey]) -> AppContext<'a> {
        AppContext { env: self.env, config: self.config.clone().with_keys_in_force(keys) }
    }

    /// Returns the decision so far if the user still has to agree to the project's settings for
    /// these keys. `None` if nothing is missing.
    ///
    /// # Errors
    ///
    /// Fails if the settings have mistakes, so that these are reported before asking.
    pub fn missing_consent(&self, keys: &[&ConfigKey]) -> Result<Option<ConsentState>, AppError> {
        let Some(proposal) =
            self.config.pending_proposal().filter(|proposal| proposal.concerns(keys))
        else {
            return Ok(None);
        };
        self.check_proposal()?;
        let standing = self.consent_state(proposal)?;
        let proposal = &standing.proposal;
        let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
        let is_pinned = standing.lock.covers_settings(&proposal.folder, &proposal.settings, &names);
        Ok((standing.by.is_none() && !is_pinned).then_some(standing))
    }

    /// Reports mistakes in the project's settings that need consent.
    pub fn check_proposal(&self) -> Result<(), AppError> {
        let checked = self.with_proposal_in_force();
        CheckStage::ALL.into_iter().try_for_each(|stage| checked.declared_checks(stage).map(drop))
    }

    /// Returns a context as if the user had agreed to everything. Only for checking and showing
    /// settings.
    pub fn with_proposal_in_force(&self) -> AppContext<'a> {
        AppContext { env: self.env, config: self.config.clone().with_proposal_in_force() }
    }

    /// Determines the user's decision so far.
    pub fn consent_state(&self, proposal: SettingsProposal) -> Result<ConsentState, AppError> {
        let lock = TrustLock::read(&self.config.lock_path()).map_err(|error| {
            AppError::cannot_run(error.to_string()).hint(TrustLockError::REMEDY)
        })?;
        let pinned = lock.trust_in_settings(&proposal.folder, &proposal.settings);
        let by = if self.config.consented_digests()?.contains(&proposal.settings.digest()) {
            Some(ConsentBy::Digest)
        } else if proposal.lies_in(&self.config.trusted_folders()) {
            Some(ConsentBy::Folder)
        } else {
            (pinned == TrustLevel::Trusted).then_some(ConsentBy::Lock)
        };
        let trust = if by.is_some() { TrustLevel::Trusted } else { pinned };
        Ok(ConsentState { proposal, trust, by, lock })
    }

    /// Pins settings in the user's lock file.
    pub fn pin_settings(&self, proposal: &SettingsProposal) -> Result<(), AppError> {
        TrustLock::update(&self.config.lock_path(), |lock| {
            lock.pin_settings(&proposal.folder, &proposal.settings);
            Ok(())
        })
    }
}

/// The failure of a command that needs consent where there is no terminal to ask at.
pub fn consent_needed(standing: &ConsentState, has_flag: bool) -> AppError {
    consent_failure("nothing was run", standing, has_flag)
        .hint("To agree for one command only, add the same `--consent` to it.")
}

/// The failure of `rep trust --project` where there is no terminal to ask at.
pub fn not_trusted(standing: &ConsentState, has_flag: bool) -> AppError {
    consent_failure("not trusted", standing, has_flag)
}

fn consent_failure(outcome: &str, standing: &ConsentState, has_flag: bool) -> AppError {
    let digest: ContentDigest = standing.proposal.settings.digest();
    let reason = match (has_flag, standing.trust) {
        (true, _) => {
            format!("`--consent` is for other settings than these, whose digest is {digest}")
        }
        (false, TrustLevel::Changed) => {
            "settings of this project that start programs have changed since you agreed to them"
                .to_owned()
        }
        (false, _) => {
            "settings of this project start programs, and you have not agreed to them".to_owned()
        }
    };
    AppError::cannot_run(format!("{outcome}: {reason}")).hint(format!(
        "To agree to exactly these settings: `rep trust --project --consent {digest}`"
    ))
}

/// The failure after the user has answered no.
pub fn consent_declined(outcome: &str) -> AppError {
    AppError::cannot_run(format!("{outcome}: you did not agree"))
        .hint("Edit the settings, or run the command again to be asked again.")
}

/// The failure of a command that reads settings before the user was asked about them.
pub fn consent_not_given() -> AppError {
    AppError::cannot_run("settings of this project start programs, and you have not agreed to them")
        .hint("Look at them and agree with `rep trust --project`.")
}

#[cfg(test)]
mod tests {
    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;
    use crate::config::{ConfigFlags, KEYS, RepConfig, SetBy};
    use crate::env::AppEnvironment;
    use crate::error::AppErrorKind;

    struct Place {
        _keep: tempfile::TempDir,
        dir: Utf8PathBuf,
    }

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let keep = tempfile::tempdir().unwrap();
            let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
            let place = Place { _keep: keep, dir };
            place.write("project/.git/HEAD", "ref: refs/heads/main\n");
            place.write("project/.git/objects/info/packs", "");
            place.write("project/.git/refs/heads/main", "");
            files.iter().for_each(|(path, text)| place.write(path, text));
            place
        }

        fn write(&self, path: &str, text: &str) {
            repertoire_text::fs::write_atomic(&self.dir.join(path), text.as_bytes()).unwrap();
        }

        fn env(&self, folder: &str) -> AppEnvironment {
            AppEnvironment {
                here: self.dir.join(folder),
                moved: true,
                vars: [("HOME".to_owned(), self.dir.join("home").to_string())].into(),
                rep_program: None,
            }
        }

        /// Returns true if the settings of a folder are agreed to, given these consents on the
        /// command line.
        fn is_agreed(&self, folder: &str, consents: Vec<ContentDigest>) -> bool {
            let env = self.env(folder);
            let flags = ConfigFlags { consents, ..ConfigFlags::default() };
            let ctx = AppContext::load(&env, &flags).unwrap();
            ctx.consent_state(ctx.config.pending_proposal().unwrap()).unwrap().by.is_some()
        }

        fn digest(&self, folder: &str) -> ContentDigest {
            let env = self.env(folder);
            let config = RepConfig::load(&env, &env.here, &ConfigFlags::default()).unwrap();
            config.pending_proposal().unwrap().settings.digest()
        }
    }

    const CHECKS: (&str, &str) = ("project/repertoire.toml", "[plan.checks.a]\ncommand = 'true'\n");
    const USER: &str = "home/.config/repertoire/repertoire.toml";

    #[test]
    fn a_digest_a_folder_and_the_lock_each_agree_and_nothing_else_does() {
        let place = Place::new(&[CHECKS, ("project/sub/x", "")]);
        assert!(!place.is_agreed("project", vec![]));
        assert!(!place.is_agreed("project", vec![ContentDigest::hash_bytes(b"other")]));
        let digest = place.digest("project");
        assert!(place.is_agreed("project", vec![digest]));
        assert!(place.is_agreed("project/sub", vec![digest]));
        place.write(USER, &format!("[trust]\nsettings = ['{digest}']\n"));
        assert!(place.is_agreed("project", vec![]));
        place.write(USER, "[trust]\nfolders = ['~/../project']\n");
        assert!(place.is_agreed("project/sub", vec![]));
        place.write(USER, "[trust]\nfolders = ['~/../proj', '~/missing']\n");
        assert!(!place.is_agreed("project", vec![]));
    }

    #[test]
    fn a_folder_agrees_only_to_files_that_lie_in_it() {
        let near = ("project/sub/repertoire.toml", "plan.setup = 'x'\n");
        let place = Place::new(&[CHECKS, near]);
        place.write(USER, "[trust]\nfolders = ['~/../project/sub']\n");
        assert!(!place.is_agreed("project/sub", vec![]), "checks are declared above the folder");
        place.write(USER, "[trust]\nfolders = ['~/../project']\n");
        assert!(place.is_agreed("project/sub", vec![]));
    }

    #[test]
    fn a_command_asks_only_about_the_keys_that_it_reads() {
        let place = Place::new(&[CHECKS]);
        let consents = |keys: &[&ConfigKey]| {
            let env = place.env("project");
            let ctx = AppContext::load(&env, &ConfigFlags::default()).unwrap();
            ctx.with_given_consent(keys).is_ok()
        };
        let project = |text: &str| place.write(CHECKS.0, text);
        assert!(!consents(CHECK_KEYS) && !consents(PLAN_KEYS));
        for unused in ["plan.copy = ['.env']\n", "plan.setup = 'npm ci'\n"] {
            project(unused);
            assert!(consents(CHECK_KEYS) && !consents(PLAN_KEYS), "{unused}");
        }
        for empty in ["[plan.checks]\n", "plan.setup = ''\n", "plan.copy = []\n"] {
            project(empty);
            assert!(consents(CHECK_KEYS) && consents(PLAN_KEYS), "{empty}");
        }
        // One consent is enough for all commands, until a value changes that a command reads.
        let text = "plan.setup = 'npm ci'\n[plan.checks.a]\ncommand = 'true'\n";
        project(text);
        let env = place.env("project");
        let config = RepConfig::load(&env, &env.here, &ConfigFlags::default()).unwrap();
        let proposal = config.pending_proposal().unwrap();
        TrustLock::update(&config.lock_path(), |lock| {
            lock.pin_settings(&proposal.folder, &proposal.settings);
            Ok::<_, AppError>(())
        })
        .unwrap();
        assert!(consents(CHECK_KEYS) && consents(PLAN_KEYS));
        project(&text.replace("npm ci", "npm install"));
        assert!(consents(CHECK_KEYS) && !consents(PLAN_KEYS));
        project(&text.replace("'true'", "'false'"));
        assert!(!consents(CHECK_KEYS) && !consents(PLAN_KEYS));
    }

    #[test]
    fn a_run_of_a_plan_reads_every_acting_key() {
        let mut acting = KEYS.to_vec();
        acting.retain(|key| key.set_by == SetBy::UserOrConsentedProject);
        assert_eq!(acting, PLAN_KEYS);
    }

    #[test]
    fn a_file_in_a_subfolder_is_agreed_to_on_its_own() {
        let place = Place::new(&[CHECKS, ("project/sub/repertoire.toml", "plan.setup = 'x'\n")]);
        let digest = place.digest("project");
        assert!(!place.is_agreed("project/sub", vec![digest]));
        assert_ne!(digest, place.digest("project/sub"));
    }

    #[test]
    fn a_project_cannot_agree_for_the_user() {
        for text in ["trust.settings = []", "trust.folders = ['/']", "checks.env_allowed = ['*']"] {
            let place = Place::new(&[("project/repertoire.toml", text)]);
            let env = place.env("project");
            let message =
                RepConfig::load(&env, &env.here, &ConfigFlags::default()).unwrap_err().message;
            assert!(message.contains("may not be set by a project"), "{message}");
        }
    }

    #[test]
    fn checks_that_nobody_agreed_to_cannot_be_read() {
        let place = Place::new(&[CHECKS]);
        let env = place.env("project");
        let config = RepConfig::load(&env, &env.here, &ConfigFlags::default()).unwrap();
        assert!(config.values().plan_checks.is_none());
        let ctx = AppContext { env: &env, config };
        assert_eq!(
            ctx.declared_checks(CheckStage::EveryChange).unwrap_err().kind,
            AppErrorKind::CannotRun
        );
        assert_eq!(
            ctx.with_proposal_in_force().declared_checks(CheckStage::EveryChange).unwrap().len(),
            1
        );
    }
}
