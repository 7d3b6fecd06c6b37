//! Messages to listeners that are not in the journal.

use repertoire_skill::library::LibraryReload;
use schemars::JsonSchema;
use serde::Serialize;

/// The skills were reloaded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillsReloaded {
    /// The generation of the catalog, incremented on every reload.
    pub generation: u64,
    /// Skills that are new.
    pub added: Vec<String>,
    /// Skills that were removed.
    pub removed: Vec<String>,
    /// Skills whose file, text or trust has changed.
    pub changed: Vec<String>,
    /// Skills whose file can no longer be loaded.
    pub broken: Vec<String>,
    /// The number of new findings.
    pub findings: usize,
}

impl SkillsReloaded {
    pub(super) fn from_reload(reload: &LibraryReload) -> Self {
        SkillsReloaded {
            generation: reload.catalog.generation(),
            added: reload.added.clone(),
            removed: reload.removed.clone(),
            changed: reload.changed.clone(),
            broken: reload.broken.clone(),
            findings: reload.findings.len(),
        }
    }
}

/// The first message to a listener.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HelloMessage {
    /// The cursor at which it starts.
    pub cursor: String,
    /// The current generation of the catalog.
    pub generation: u64,
}

/// The last message to a listener that was too slow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DroppedMessage {
    /// The value to send as `Last-Event-ID` or `after` to resume without loss.
    pub cursor: String,
    /// The reason.
    pub reason: String,
}
