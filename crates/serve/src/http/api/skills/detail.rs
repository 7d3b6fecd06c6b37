//! The details of a skill.

use http::Method;
use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::depend::{self, Met};
use repertoire_skill::render::json::SkillJson;
use repertoire_skill::render::list::SkillRow;
use repertoire_skill::resources;
use repertoire_text::Diagnostic;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::diagnostics::{self, Found};
use super::super::{Answer, Api, Call, blocking};
use super::{NamePath, resolve};

/// The details of a skill.
#[derive(Debug, Serialize, JsonSchema)]
struct Detail {
    /// The skill, with its files.
    skill: SkillJson,
    /// The file, with `~` for the home directory.
    path_short: String,
    /// The frontmatter as written, without its fences.
    frontmatter: String,
    /// The instructions.
    body: String,
    /// The approximate number of tokens of the instructions.
    body_tokens: usize,
    /// Skills with the same name that this one shadows.
    stands_before: Vec<SkillRow>,
    /// The dependencies of the skill.
    needs: Vec<Need>,
    /// Skills that depend on this one.
    needed_by: Vec<String>,
    /// The problems of the skill, with source lines.
    diagnostics: Vec<Found>,
    /// Files of the skill that were left out, with the reasons.
    left_out: Vec<DiagnosticJson>,
    /// True if it has a workflow.
    has_workflow: bool,
}

/// A dependency on another skill.
#[derive(Debug, Serialize, JsonSchema)]
struct Need {
    /// The name of the skill.
    name: String,
    /// The required version.
    requirement: Option<String>,
    /// The state of the dependency.
    state: NeedState,
    /// The skill that satisfies it, or would in another version.
    by: Option<String>,
}

/// The state of a dependency.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum NeedState {
    /// Satisfied.
    Met,
    /// Not installed.
    Missing,
    /// Installed in a version that does not match.
    OtherVersion,
}

pub(super) fn add(api: Api) -> Api {
    api.add(Method::GET, "/api/v1/skills/{name}", "skills", "Everything about a skill", detail)
}

async fn detail(call: Call<NamePath>) -> Answer<Detail> {
    blocking(move || {
        let catalog = call.house.catalog();
        let entry = resolve(&catalog, &call.path.name)?;
        let skill = &entry.skill;
        let found = resources::list(skill, &call.house.library().request().limits.resources);
        let file = &skill.origin.file;
        let twins = catalog.shadowed().iter().filter(|lost| lost.by == *file);
        let about = |found: &&Diagnostic| found.path.as_ref() == Some(file);
        let own = catalog.diagnostics().iter().filter(about);
        Ok(Detail {
            path_short: catalog.places().shorten(file),
            frontmatter: skill.yaml.slice(skill.text()).to_owned(),
            body: skill.body().to_owned(),
            body_tokens: skill.body().len().div_ceil(4),
            stands_before: twins.map(|lost| SkillRow::of(&lost.entry, Some(&lost.by))).collect(),
            needs: needs(&catalog, entry),
            needed_by: needed_by(&catalog, entry),
            diagnostics: diagnostics::with_lines(&call.house, &catalog, own),
            left_out: found.diagnostics.iter().map(DiagnosticJson::from).collect(),
            has_workflow: !repertoire_flow::file::load(skill).is_empty(),
            skill: SkillJson::new(entry, Some(&found.files)),
        })
    })
    .await
}

fn needs(catalog: &Catalog, entry: &Entry) -> Vec<Need> {
    depend::met(&entry.skill, catalog.entries()).into_iter().map(to_need).collect()
}

fn to_need((need, how): (&repertoire_skill::skill::Dependency, Met<'_>)) -> Need {
    let (state, by) = match how {
        Met::By(entry) => (NeedState::Met, Some(entry.id.clone())),
        Met::Missing => (NeedState::Missing, None),
        Met::OtherVersion(entry) => (NeedState::OtherVersion, Some(entry.id.clone())),
    };
    let requirement = need.requirement.as_ref().map(ToString::to_string);
    Need { name: need.name.clone(), requirement, state, by }
}

fn needed_by(catalog: &Catalog, entry: &Entry) -> Vec<String> {
    let needs_it = |other: &&Entry| {
        let dependencies = &other.skill.execution.dependencies;
        dependencies.iter().any(|need| need.name == entry.id || need.name == entry.skill.name)
            && other.id != entry.id
    };
    catalog.entries().iter().filter(needs_it).map(|other| other.id.clone()).collect()
}
