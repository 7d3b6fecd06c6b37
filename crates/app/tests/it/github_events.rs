//! The events that the tests of `repertoire-github` know, and the skills that are shipped.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_github::actor::{AccountPermission, KnownPermissions, PermissionLookup};
use repertoire_github::event::{ActionsEnvironment, GitHubEventContext, read_event};
use repertoire_github::mode::{ModeSet, load_modes};
use repertoire_github::trigger::TriggerSettings;
use repertoire_skill::catalog::Catalog;
use repertoire_skill::discover::{DiscoveryRequest, discover_catalog};
use repertoire_skill::profile::{ProfileId, SearchDirectories};

use crate::repo::write;

/// An event.
#[track_caller]
pub(crate) fn context(name: &str) -> GitHubEventContext {
    let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../github/tests/it/events");
    let payload =
        repertoire_text::fs::read_text(&dir.join(format!("{name}.json")), 1 << 20).unwrap();
    let event = name.split('.').next().unwrap();
    let around =
        ActionsEnvironment::from_pairs([("GITHUB_EVENT_NAME", event), ("GITHUB_RUN_ID", "991")]);
    read_event(&payload, &around).unwrap()
}

/// Settings with a label and an account of the bot's.
pub(crate) fn settings() -> TriggerSettings {
    TriggerSettings {
        label: Some("repertoire".to_owned()),
        assignee: Some("repertoire-bot".to_owned()),
        ..TriggerSettings::default()
    }
}

/// What the service says of the people in the events.
pub(crate) fn answers() -> KnownPermissions {
    KnownPermissions::default()
        .with("ada-maintainer", PermissionLookup::Is(AccountPermission::Write))
        .with("rita-reader", PermissionLookup::Is(AccountPermission::Read))
        .with("mallory-outside", PermissionLookup::Is(AccountPermission::None))
}

/// A project with skills of its own, a user with others, and the shipped ones.
pub(crate) struct GitHubFixture {
    _keep: tempfile::TempDir,
    /// The project.
    pub(crate) project: Utf8PathBuf,
    home: Utf8PathBuf,
    pack: Utf8PathBuf,
}

impl GitHubFixture {
    pub(crate) fn new() -> GitHubFixture {
        let keep = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let [project, home, pack] = ["project", "home", "pack"].map(|name| base.join(name));
        for dir in [&project, &home] {
            std::fs::create_dir_all(dir).unwrap();
        }
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(project.join(".git").join(folder)).unwrap();
        }
        write(&project.join(".git/HEAD"), "ref: refs/heads/main\n");
        GitHubFixture { _keep: keep, project, home, pack }
    }

    /// A skill of the user's.
    pub(crate) fn user_skill(&self, name: &str, text: &str) {
        write(&self.home.join(format!(".agents/skills/{name}/SKILL.md")), text);
    }

    /// A skill of the project's.
    pub(crate) fn project_skill(&self, name: &str, text: &str) {
        write(&self.project.join(format!(".agents/skills/{name}/SKILL.md")), text);
    }

    pub(crate) fn request(&self) -> DiscoveryRequest {
        let places = SearchDirectories {
            here: self.project.clone(),
            home: self.home.clone(),
            pack: self.pack.clone(),
        };
        DiscoveryRequest::new(ProfileId::Repertoire, places)
    }

    pub(crate) fn catalog(&self) -> Catalog {
        discover_catalog(&self.request())
    }

    pub(crate) fn modes(&self) -> ModeSet {
        load_modes(Some(&self.catalog()))
    }
}

/// A mode of one's own.
pub(crate) fn mode_skill(name: &str, head: &str, system: &str, user: &str) -> String {
    format!(
        "---\nname: {name}\ntype: mode\ndescription: Answers something. Use when it is tested.\n{head}---\n\n\
         # A mode\n\n## System Prompt Template\n\n```text\n{system}\n```\n\n### User Prompt Template\n\n```text\n{user}\n```\n"
    )
}
