//! The details of a skill.

use http::Method;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::dependencies::{self, DependencyMatch};
use repertoire_skill::render::json::SkillJson;
use repertoire_skill::render::list::SkillRow;
use repertoire_skill::resources;
use repertoire_text::Diagnostic;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::diagnostics::{self, DiagnosticWithLines};
use super::super::{ApiBuilder, ApiCall, ApiResult, run_blocking};
use super::{SkillNamePath, resolve_skill};

/// The details of a skill.
#[derive(Debug, Serialize, JsonSchema)]
struct SkillDetailJson {
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
    needs: Vec<SkillDependencyJson>,
    /// Skills that depend on this one.
    needed_by: Vec<String>,
    /// The problems of the skill, with source lines.
    diagnostics: Vec<DiagnosticWithLines>,
    /// Files of the skill that were left out, with the reasons.
    left_out: Vec<DiagnosticJson>,
    /// True if it has a workflow.
    has_workflow: bool,
}

/// A dependency on another skill.
#[derive(Debug, Serialize, JsonSchema)]
struct SkillDependencyJson {
    /// The name of the skill.
    name: String,
    /// The required version.
    requirement: Option<String>,
    /// The state of the dependency.
    state: DependencyState,
    /// The skill that satisfies it, or would in another version.
    by: Option<String>,
}

/// The state of a dependency.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum DependencyState {
    /// Satisfied.
    Met,
    /// Not installed.
    Missing,
    /// Installed in a version that does not match.
    OtherVersion,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.add(Method::GET, "/api/v1/skills/{name}", "skills", "Everything about a skill", show_skill)
}

async fn show_skill(call: ApiCall<SkillNamePath>) -> ApiResult<SkillDetailJson> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let entry = resolve_skill(&catalog, &call.path.name)?;
        let skill = &entry.skill;
        let found = resources::list_resources(
            skill,
            &call.serve_state.library().request().limits.resources,
        );
        let file = &skill.origin.file;
        let twins = catalog.shadowed().iter().filter(|lost| lost.by == *file);
        let about = |found: &&Diagnostic| found.path.as_ref() == Some(file);
        let own = catalog.diagnostics().iter().filter(about);
        Ok(SkillDetailJson {
            path_short: catalog.places().shorten_path(file),
            frontmatter: skill.yaml.slice(skill.text()).to_owned(),
            body: skill.body().to_owned(),
            body_tokens: skill.body().len().div_ceil(4),
            stands_before: twins
                .map(|lost| SkillRow::from_entry(&lost.entry, Some(&lost.by)))
                .collect(),
            needs: list_dependencies(&catalog, entry),
            needed_by: list_dependents(&catalog, entry),
            diagnostics: diagnostics::add_source_lines(&call.serve_state, &catalog, own),
            left_out: found.diagnostics.iter().map(DiagnosticJson::from).collect(),
            has_workflow: !repertoire_flow::file::load_workflows(skill).is_empty(),
            skill: SkillJson::new(entry, Some(&found.files)),
        })
    })
    .await
}

fn list_dependencies(catalog: &Catalog, entry: &CatalogEntry) -> Vec<SkillDependencyJson> {
    dependencies::match_dependencies(&entry.skill, catalog.entries())
        .into_iter()
        .map(dependency_json)
        .collect()
}

fn dependency_json(
    (need, how): (&repertoire_skill::skill::SkillDependency, DependencyMatch<'_>),
) -> SkillDependencyJson {
    let (state, by) = match how {
        DependencyMatch::By(entry) => (DependencyState::Met, Some(entry.id.clone())),
        DependencyMatch::Missing => (DependencyState::Missing, None),
        DependencyMatch::OtherVersion(entry) => {
            (DependencyState::OtherVersion, Some(entry.id.clone()))
        }
    };
    let requirement = need.requirement.as_ref().map(ToString::to_string);
    SkillDependencyJson { name: need.name.clone(), requirement, state, by }
}

fn list_dependents(catalog: &Catalog, entry: &CatalogEntry) -> Vec<String> {
    let needs_it = |other: &&CatalogEntry| {
        let dependencies = &other.skill.execution.dependencies;
        dependencies.iter().any(|need| need.name == entry.id || need.name == entry.skill.name)
            && other.id != entry.id
    };
    catalog.entries().iter().filter(needs_it).map(|other| other.id.clone()).collect()
}
