//! Catalogs for programs: skills in rows, files that broke, and the roots they came from.

use camino::Utf8Path;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{Broken, Catalog, Entry, RootReport};
use crate::discover::RootState;
use crate::profile::Holds;
use crate::skill::{Dialect, Plugin, Scope};
use crate::trust::Trust;

/// One skill of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// The name to ask for.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The file.
    pub path: String,
    /// Where its root belongs.
    pub scope: Scope,
    /// The family of the file.
    pub dialect: Dialect,
    /// The digest of the file.
    pub digest: String,
    /// The file of the skill that stands before it, if any.
    pub shadowed_by: Option<String>,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be given capabilities.
    pub trust: Trust,
    /// The plugin that it came with.
    pub plugin: Option<Plugin>,
}

impl SkillRow {
    /// A skill in use, or the file of the one that stands before it.
    pub fn of(entry: &Entry, shadowed_by: Option<&Utf8Path>) -> Self {
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
    /// The file.
    pub path: String,
    /// Where its root belongs.
    pub scope: Scope,
    /// Why.
    pub reason: DiagnosticJson,
}

impl BrokenJson {
    /// What a catalog says of it.
    pub fn of(broken: &Broken) -> Self {
        BrokenJson {
            path: broken.path.to_string(),
            scope: broken.scope,
            reason: DiagnosticJson::from(&broken.reason),
        }
    }
}

/// A root.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RootJson {
    /// The directory.
    pub path: String,
    /// Where it belongs.
    pub scope: Scope,
    /// What it holds.
    pub holds: Holds,
    /// What became of it.
    pub state: RootState,
    /// Files that may be skills.
    pub found: usize,
}

impl RootJson {
    /// What a catalog says of it.
    pub fn of(report: &RootReport) -> Self {
        RootJson {
            path: report.root.dir.to_string(),
            scope: report.root.scope,
            holds: report.root.holds,
            state: report.state,
            found: report.found,
        }
    }
}

/// Counts of a list.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ListSummary {
    /// Skills in use.
    pub skills: usize,
    /// Agents in use.
    pub agents: usize,
    /// Skills that lost their name.
    pub shadowed: usize,
    /// Files that could not be loaded.
    pub broken: usize,
}

impl ListSummary {
    /// Counts a catalog.
    pub fn of(catalog: &Catalog) -> Self {
        let agents = catalog.entries().iter().filter(|entry| entry.skill.is_agent()).count();
        ListSummary {
            skills: catalog.entries().len() - agents,
            agents,
            shadowed: catalog.shadowed().len(),
            broken: catalog.broken().len(),
        }
    }
}
