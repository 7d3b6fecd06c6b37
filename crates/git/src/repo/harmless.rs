//! Settings and variables that keep git from running programs that a repository names. They hold for the engine's own calls
//! and for the calls of agents.

use super::call::config_variables;
use super::{GitClient, GitError};

/// The first ones keep configuration that an agent may have written from running programs, the
/// others keep the user's preferences out of output that is parsed.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=true",
    "core.askPass=true",
    "core.alternateRefsCommand=true",
    "sequence.editor=true",
    "interactive.diffFilter=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "push.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "diff.ignoreSubmodules=dirty",
    "fetch.recurseSubmodules=false",
    "log.mailmap=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.quotePath=false",
    "color.ui=false",
    "i18n.logOutputEncoding=UTF-8",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    "checkout.defaultRemote=",
];

/// Settings of calls that do not use the network.
const OFFLINE_SETTINGS: &[&str] =
    &["core.sshCommand=false", "core.gitProxy=", "credential.helper="];

/// Variables of every call.
pub const HARMLESS_ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    // `git status` must not take the index lock while another process works in the repository.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // With replace refs, an agent could show one commit in place of another.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // A partial clone would fetch missing objects from a URL in the repository's configuration.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Whether a call uses the network, and so the user's ssh program and credential helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkUse {
    None,
    WithUserPrograms,
}

/// The settings for `-c`, in order.
pub fn harmless_settings(network: NetworkUse) -> impl Iterator<Item = &'static str> {
    let offline = match network {
        NetworkUse::None => OFFLINE_SETTINGS,
        NetworkUse::WithUserPrograms => &[],
    };
    SETTINGS.iter().chain(offline).copied()
}

impl GitClient {
    /// Variables for a call of git by somebody else: they pin it to this repository, and replace every program that the
    /// repository's configuration names with the user's own, or with one that does nothing.
    pub async fn harmless_variables(&self) -> Result<Vec<(String, String)>, GitError> {
        let place = self.repository_dirs()?;
        let config = self.read_config(&place).await?;
        let mut variables = place.git_environment();
        variables.extend(config_variables(&config.replaced_programs()));
        Ok(variables)
    }
}
