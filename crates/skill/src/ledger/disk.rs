//! The stored form of the ledger. Unknown fields are ignored, missing ones have defaults, and a ledger of a
//! later version is rejected rather than misread.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::{Ledger, LedgerEntry};
use crate::activate::{Activation, SkillReference, TextCut};
use crate::limits::{LEDGER_SKILLS_MAX, LEDGER_TTL_MS};
use crate::resources::ResourceFile;
use crate::skill::{ContentDigest, PluginInfo, Scope, SkillOrigin};
use crate::trust::TrustLevel;

const VERSION: u32 = 1;

/// The reason why a stored ledger cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The ledger has a later version.
    #[error("the ledger has version {found}; this program knows version {VERSION}")]
    Version { found: u32 },
}

#[derive(Serialize, Deserialize)]
pub(super) struct LedgerDisk {
    version: u32,
    #[serde(default = "default_ttl_ms")]
    ttl_ms: u64,
    #[serde(default = "default_skills_max")]
    skills_max: usize,
    #[serde(default)]
    hits: u64,
    #[serde(default)]
    misses: u64,
    #[serde(default)]
    held: Vec<LedgerEntryDisk>,
}

#[derive(Serialize, Deserialize)]
struct LedgerEntryDisk {
    id: String,
    name: String,
    #[serde(default)]
    description: String,
    digest: ContentDigest,
    #[serde(default)]
    arguments: String,
    body: String,
    #[serde(default)]
    resources: Option<Vec<ResourceFile>>,
    file: Utf8PathBuf,
    root: Utf8PathBuf,
    scope: Scope,
    #[serde(default)]
    plugin: Option<PluginInfo>,
    /// Records without this field are not trusted.
    #[serde(default = "untrusted")]
    trust: TrustLevel,
    #[serde(default)]
    cut: Option<TextCut>,
    #[serde(default)]
    references: Option<Vec<SkillReference>>,
    #[serde(default)]
    activated_ms: u64,
    #[serde(default)]
    used_ms: u64,
}

fn default_ttl_ms() -> u64 {
    LEDGER_TTL_MS
}

fn default_skills_max() -> usize {
    LEDGER_SKILLS_MAX
}

fn untrusted() -> TrustLevel {
    TrustLevel::Untrusted
}

impl From<Ledger> for LedgerDisk {
    fn from(ledger: Ledger) -> Self {
        LedgerDisk {
            version: VERSION,
            ttl_ms: ledger.ttl_ms,
            skills_max: ledger.skills_max,
            hits: ledger.hits,
            misses: ledger.misses,
            held: ledger.held.into_iter().map(LedgerEntryDisk::from).collect(),
        }
    }
}

impl TryFrom<LedgerDisk> for Ledger {
    type Error = LedgerError;

    fn try_from(disk: LedgerDisk) -> Result<Self, LedgerError> {
        if disk.version > VERSION {
            return Err(LedgerError::Version { found: disk.version });
        }
        let mut ledger = Ledger::new(disk.ttl_ms, disk.skills_max);
        (ledger.hits, ledger.misses) = (disk.hits, disk.misses);
        ledger.held = disk.held.into_iter().map(LedgerEntry::from).collect();
        Ok(ledger)
    }
}

impl From<LedgerEntry> for LedgerEntryDisk {
    fn from(LedgerEntry { activation, activated_ms, used_ms }: LedgerEntry) -> Self {
        let origin = activation.origin;
        LedgerEntryDisk {
            id: activation.id,
            name: activation.name,
            description: activation.description,
            digest: activation.digest,
            arguments: activation.arguments,
            body: activation.body,
            resources: activation.resources,
            file: origin.file,
            root: origin.root,
            scope: origin.scope,
            plugin: origin.plugin,
            trust: activation.trust,
            cut: activation.cut,
            references: activation.references,
            activated_ms,
            used_ms,
        }
    }
}

impl From<LedgerEntryDisk> for LedgerEntry {
    fn from(disk: LedgerEntryDisk) -> Self {
        let origin = SkillOrigin {
            file: disk.file,
            root: disk.root,
            scope: disk.scope,
            plugin: disk.plugin,
        };
        let activation = Activation {
            id: disk.id,
            name: disk.name,
            description: disk.description,
            digest: disk.digest,
            arguments: disk.arguments,
            body: disk.body,
            resources: disk.resources,
            origin,
            trust: disk.trust,
            cut: disk.cut,
            references: disk.references,
            diagnostics: Vec::new(),
        };
        LedgerEntry { activation, activated_ms: disk.activated_ms, used_ms: disk.used_ms }
    }
}
