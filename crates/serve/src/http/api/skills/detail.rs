//! Everything about one skill.

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

/// Everything about a skill.
#[derive(Debug, Serialize, JsonSchema)]
struct Detail {
    /// The record, with the files beside it.
    skill: SkillJson,
    /// The file, with `~` for the home.
    path_short: String,
    /// The frontmatter as it was written, without its fences.
    frontmatter: String,
    /// The instructions.
    body: String,
    /// About how many tokens they are.
    body_tokens: usize,
    /// Skills of the same name that this one stands before.
    stands_before: Vec<SkillRow>,
    /// What it needs.
    needs: Vec<Need>,
    /// Skills that need it.
    needed_by: Vec<String>,
    /// What was found wrong, with lines.
    diagnostics: Vec<Found>,
    /// Files beside it that were left out, and why.
    left_out: Vec<DiagnosticJson>,
    /// Whether it holds a workflow.
    has_workflow: bool,
}

/// A skill that is needed.
#[derive(Debug, Serialize, JsonSchema)]
struct Need {
    /// Its name.
    name: String,
    /// The version that is asked for.
    requirement: Option<String>,
    /// How it is met.
    state: NeedState,
    /// The skill that meets it, or would in another version.
    by: Option<String>,
}

/// How a need is met.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum NeedState {
    /// It is there.
    Met,
    /// It is not there.
    Missing,
    /// It is there in a version that will not do.
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
    let need = |(need, how): (&repertoire_skill::skill::Dependency, Met<'_>)| {
        let (state, by) = match how {
            Met::By(entry) => (NeedState::Met, Some(entry.id.clone())),
            Met::Missing => (NeedState::Missing, None),
            Met::OtherVersion(entry) => (NeedState::OtherVersion, Some(entry.id.clone())),
        };
        let requirement = need.requirement.as_ref().map(ToString::to_string);
        Need { name: need.name.clone(), requirement, state, by }
    };
    depend::met(&entry.skill, catalog.entries()).into_iter().map(need).collect()
}

fn needed_by(catalog: &Catalog, entry: &Entry) -> Vec<String> {
    let needs_it = |other: &&Entry| {
        let dependencies = &other.skill.execution.dependencies;
        dependencies.iter().any(|need| need.name == entry.id || need.name == entry.skill.name)
            && other.id != entry.id
    };
    catalog.entries().iter().filter(needs_it).map(|other| other.id.clone()).collect()
}
