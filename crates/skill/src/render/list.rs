//! Catalogs as JSON: rows of skills, broken files, and the roots that they came from.

use camino::Utf8Path;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{BrokenSkill, Catalog, CatalogEntry, RootReport};
use crate::discover::RootState;
use crate::profile::RootContents;
use crate::skill::{Dialect, PluginInfo, Scope};
use crate::trust::TrustLevel;

/// A skill in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// The name to request it by.
    pub name: String,
    /// The description: what the skill does and when to use it.
    pub description: String,
    /// The file that the skill was read from.
    pub path: String,
    /// The scope of its root.
    pub scope: Scope,
    /// The dialect of the file.
    pub dialect: Dialect,
    /// The digest of the file.
    pub digest: String,
    /// The file of the skill that shadows it, if any.
    pub shadowed_by: Option<String>,
    /// The `type` field.
    #[serde(rename = "type")]
    pub kind: String,
    /// The trust in the skill, which decides whether it may be given capabilities.
    pub trust: TrustLevel,
    /// The plugin that it came with.
    pub plugin: Option<PluginInfo>,
}

impl SkillRow {
    /// Converts an entry. `shadowed_by` is the file of the skill that shadows it.
    pub fn from_entry(entry: &CatalogEntry, shadowed_by: Option<&Utf8Path>) -> Self {
        let skill = &entry.skill;
        SkillRow {
            name: entry.id.clone(),
            description: skill.description.clone(),
            path: skill.origin.file.to_string(),
            scope: skill.origin.scope,
            dialect: skill.dialect,
            digest: skill.digest().to_string(),
            shadowed_by: shadowed_by.map(Utf8Path::to_string),
            kind: skill.kind.as_str().to_owned(),
            trust: entry.trust,
            plugin: skill.origin.plugin.clone(),
        }
    }
}

/// A file that could not be loaded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BrokenJson {
    /// The path of the file.
    pub path: String,
    /// The scope of its root.
    pub scope: Scope,
    /// The error that kept it out.
    pub reason: DiagnosticJson,
}

impl BrokenJson {
    pub fn from_broken(broken: &BrokenSkill) -> Self {
        BrokenJson {
            path: broken.path.to_string(),
            scope: broken.scope,
            reason: DiagnosticJson::from(&broken.reason),
        }
    }
}

/// A root that was scanned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RootJson {
    /// The directory.
    pub path: String,
    /// The scope of the root.
    pub scope: Scope,
    /// The contents of the root.
    pub holds: RootContents,
    /// The result of examining the root.
    pub state: RootState,
    /// The number of files that may be skills.
    pub found: usize,
}

impl RootJson {
    pub fn from_report(report: &RootReport) -> Self {
        RootJson {
            path: report.root.dir.to_string(),
            scope: report.root.scope,
            holds: report.root.holds,
            state: report.state,
            found: report.found,
        }
    }
}

/// The counts of a list.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ListSummary {
    /// The number of skills in use.
    pub skills: usize,
    /// The number of agents in use.
    pub agents: usize,
    /// The number of shadowed skills.
    pub shadowed: usize,
    /// The number of files that could not be loaded.
    pub broken: usize,
}

impl ListSummary {
    /// Counts the skills of a catalog.
    pub fn from_catalog(catalog: &Catalog) -> Self {
        let agents = catalog.entries().iter().filter(|entry| entry.skill.is_agent()).count();
        ListSummary {
            skills: catalog.entries().len() - agents,
            agents,
            shadowed: catalog.shadowed().len(),
            broken: catalog.broken().len(),
        }
    }
}
