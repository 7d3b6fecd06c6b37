//! What listeners are told of that is in no journal.

use repertoire_skill::library::Reload;
use schemars::JsonSchema;
use serde::Serialize;

/// The skills were read again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillsNews {
    /// Counts how often the skills were read: a higher number is newer.
    pub generation: u64,
    /// Skills that were not there before.
    pub added: Vec<String>,
    /// Skills that have gone.
    pub removed: Vec<String>,
    /// Skills whose file, text or trust is another now.
    pub changed: Vec<String>,
    /// Skills whose file can no longer be loaded.
    pub broken: Vec<String>,
    /// How many findings there are that were not there before.
    pub findings: usize,
}

impl SkillsNews {
    pub(super) fn of(reload: &Reload) -> Self {
        SkillsNews {
            generation: reload.catalog.generation(),
            added: reload.added.clone(),
            removed: reload.removed.clone(),
            changed: reload.changed.clone(),
            broken: reload.broken.clone(),
            findings: reload.findings.len(),
        }
    }
}

/// The first thing that a listener hears.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Hello {
    /// Where it begins to listen.
    pub cursor: String,
    /// How often the skills were read by now.
    pub generation: u64,
}

/// The last thing that a listener hears that was too slow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Dropped {
    /// What to send as `Last-Event-ID` or `after` to go on without loss.
    pub cursor: String,
    /// Why.
    pub reason: String,
}
