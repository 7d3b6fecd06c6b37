//! Skills: list, search and details.

mod detail;
mod file;

use std::collections::BTreeMap;

use repertoire_select::Task;
use repertoire_select::selection::SelectionReason;
use repertoire_skill::catalog::{BrokenSkill, Catalog, CatalogEntry, SkillNotFound};
use repertoire_skill::render::list::SkillRow;
use repertoire_skill::skill::{Dialect, PluginInfo, Scope};
use repertoire_skill::trust::TrustLevel;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing, run_blocking};
use crate::http::problem::HttpProblem;
use crate::serve_state::ServeState;

/// The maximum number of search hits; lower-ranked skills are irrelevant.
const HITS_MAX: usize = 500;
/// Skills that score less are found only if their name or description contains the search text.
const SCORE_MIN: f32 = 0.02;

/// The state of a skill file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
enum SkillFileState {
    /// In use.
    Used,
    /// Hidden by another skill with the same name.
    Shadowed,
    /// Could not be loaded.
    Broken,
}

/// An entry of the list of skills, in any state. Fields that are unknown for a broken file are null.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SkillListEntry {
    /// The state of the skill.
    state: SkillFileState,
    /// The name; for a file that could not be loaded, the name of its folder.
    name: String,
    /// The description: what the skill does and when to use it.
    description: Option<String>,
    /// The file.
    path: String,
    /// The same path, with `~` for the home directory.
    path_short: String,
    /// The scope of its root.
    scope: Scope,
    /// The dialect of the file.
    dialect: Option<Dialect>,
    /// The digest of the file.
    digest: Option<String>,
    /// The file of the skill that shadows it, if any.
    shadowed_by: Option<String>,
    /// The type of the skill.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// True if it is an agent.
    is_agent: bool,
    /// The trust decision, which controls its capabilities.
    trust: Option<TrustLevel>,
    /// The plugin it came with.
    plugin: Option<PluginInfo>,
    /// The reason why it could not be loaded.
    reason: Option<DiagnosticJson>,
    /// The search result; null if no search was made.
    found: Option<ListedSkillHit>,
}

/// The search result for a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ListedSkillHit {
    /// The estimated relevance, 0 to 1.
    score: f32,
    /// The reasons for and against it.
    reasons: Vec<SelectionReason>,
    /// The reasons as text.
    why: Vec<String>,
    /// True if the name contains the search text.
    in_name: bool,
}

/// A filter for skills.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct SkillFilter {
    /// Search for this text: the best matches in words and meaning come first, with score and reasons.
    q: Option<String>,
    /// Only skills of this scope.
    scope: Option<Scope>,
    /// Only skills in this state.
    state: Option<SkillFileState>,
    /// Only skills of this type, such as `custom` or `mode`; also `agent` and `skill`.
    kind: Option<String>,
    /// Only skills with this trust.
    trust: Option<TrustLevel>,
    /// Only skills with this tag.
    tag: Option<String>,
}

/// The path of a skill.
#[derive(Debug, Deserialize, JsonSchema)]
struct SkillNamePath {
    /// The name of the skill, also as `plugin:skill`.
    name: String,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let api = api.list("/api/v1/skills", "skills", "List and search skills", list_skills);
    file::add_endpoints(detail::add_endpoints(api))
}

async fn list_skills(call: ApiCall<Nothing, SkillFilter>) -> ApiResult<ListPage<SkillListEntry>> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let all = filter_candidates(&catalog, &call.query);
        let words = call.query.q.as_deref().map(str::trim).filter(|words| !words.is_empty());
        let found = match words {
            Some(words) => search_candidates(&call.serve_state, all, words),
            None => all.into_iter().map(|one| (one, None)).collect(),
        };
        // Digests are expensive, so compute them for this page only.
        let page = call.paging.cut_page(found.into_iter())?;
        let items = page.items.into_iter().map(|(one, found)| one.list_entry(&catalog, found));
        Ok(ListPage { items: items.collect(), next: page.next, total: page.total })
    })
    .await
}

/// A skill file that may be listed.
#[derive(Clone, Copy)]
enum ListedSkillCandidate<'c> {
    Used(&'c CatalogEntry),
    Shadowed(&'c CatalogEntry, &'c str),
    Broken(&'c BrokenSkill),
}

impl<'c> ListedSkillCandidate<'c> {
    fn name(self) -> &'c str {
        match self {
            ListedSkillCandidate::Used(entry) | ListedSkillCandidate::Shadowed(entry, _) => {
                &entry.id
            }
            ListedSkillCandidate::Broken(broken) => {
                let file = broken.path.as_path();
                let folder = file.parent().and_then(|dir| dir.file_name());
                match file.file_name() {
                    Some("SKILL.md" | "skill.md") => folder.unwrap_or(file.as_str()),
                    _ => file.file_stem().unwrap_or(file.as_str()),
                }
            }
        }
    }

    /// The text that is searched besides the name.
    fn search_text(self) -> &'c str {
        match self {
            ListedSkillCandidate::Used(entry) | ListedSkillCandidate::Shadowed(entry, _) => {
                &entry.skill.description
            }
            ListedSkillCandidate::Broken(broken) => broken.path.as_str(),
        }
    }

    fn list_entry(self, catalog: &Catalog, found: Option<ListedSkillHit>) -> SkillListEntry {
        let (state, entry, shadowed_by) = match self {
            ListedSkillCandidate::Used(entry) => (SkillFileState::Used, entry, None),
            ListedSkillCandidate::Shadowed(entry, by) => {
                (SkillFileState::Shadowed, entry, Some(by.into()))
            }
            ListedSkillCandidate::Broken(broken) => {
                return list_broken_entry(self, broken, catalog, found);
            }
        };
        let row = SkillRow::from_entry(entry, shadowed_by);
        SkillListEntry {
            state,
            name: row.name,
            description: Some(row.description),
            path_short: catalog.places().shorten_path(&entry.skill.origin.file),
            path: row.path,
            scope: row.scope,
            dialect: Some(row.dialect),
            digest: Some(row.digest),
            shadowed_by: row.shadowed_by,
            kind: Some(row.kind),
            is_agent: entry.skill.is_agent(),
            trust: Some(row.trust),
            plugin: row.plugin,
            reason: None,
            found,
        }
    }
}

fn list_broken_entry(
    candidate: ListedSkillCandidate<'_>,
    broken: &BrokenSkill,
    catalog: &Catalog,
    found: Option<ListedSkillHit>,
) -> SkillListEntry {
    SkillListEntry {
        state: SkillFileState::Broken,
        name: candidate.name().to_owned(),
        description: None,
        path: broken.path.to_string(),
        path_short: catalog.places().shorten_path(&broken.path),
        scope: broken.scope,
        dialect: None,
        digest: None,
        shadowed_by: None,
        kind: None,
        is_agent: false,
        trust: None,
        plugin: None,
        reason: Some(DiagnosticJson::from(&broken.reason)),
        found,
    }
}

/// Applies the filters: skills in use by name, then shadowed skills, then broken files.
fn filter_candidates<'c>(
    catalog: &'c Catalog,
    which: &SkillFilter,
) -> Vec<ListedSkillCandidate<'c>> {
    let state = |state: SkillFileState| which.state.is_none_or(|wanted| wanted == state);
    let wants = |entry: &CatalogEntry| {
        let skill = &entry.skill;
        let kind = |kind: &str| match kind {
            "agent" => skill.is_agent(),
            "skill" => !skill.is_agent(),
            kind => skill.kind.as_str() == kind,
        };
        which.scope.is_none_or(|scope| skill.origin.scope == scope)
            && which.kind.as_deref().is_none_or(kind)
            && which.trust.is_none_or(|trust| entry.trust == trust)
            && which
                .tag
                .as_ref()
                .is_none_or(|tag| skill.tags.iter().any(|one| one.eq_ignore_ascii_case(tag)))
    };
    let needs_a_record = which.kind.is_some() || which.trust.is_some() || which.tag.is_some();
    let mut out = Vec::new();
    if state(SkillFileState::Used) {
        let used = catalog.entries().iter().filter(|entry| wants(entry));
        out.extend(used.map(ListedSkillCandidate::Used));
    }
    if state(SkillFileState::Shadowed) {
        let lost = catalog.shadowed().iter().filter(|lost| wants(&lost.entry));
        out.extend(lost.map(|lost| ListedSkillCandidate::Shadowed(&lost.entry, lost.by.as_str())));
    }
    if state(SkillFileState::Broken) && !needs_a_record {
        let scope = |broken: &&BrokenSkill| which.scope.is_none_or(|scope| broken.scope == scope);
        out.extend(catalog.broken().iter().filter(scope).map(ListedSkillCandidate::Broken));
    }
    out
}

/// Returns the skills that match the words, best first. Names that start with the words come before everything else,
/// because a user who types a name is looking for it.
fn search_candidates<'c>(
    serve_state: &ServeState,
    all: Vec<ListedSkillCandidate<'c>>,
    words: &str,
) -> Vec<(ListedSkillCandidate<'c>, Option<ListedSkillHit>)> {
    let (_, selector) = serve_state.selector();
    let hits = selector.search(&Task::new(words), HITS_MAX);
    let mut hits: BTreeMap<String, _> =
        hits.into_iter().map(|hit| (hit.name.clone(), hit)).collect();
    let letters = words.to_lowercase();
    let mut found: Vec<(u8, ListedSkillCandidate<'c>, ListedSkillHit)> = Vec::new();
    for one in all {
        let name = one.name().to_lowercase();
        let is_ranked = matches!(one, ListedSkillCandidate::Used(entry) if !entry.skill.is_agent());
        let hit = if is_ranked { hits.remove(one.name()) } else { None };
        let (score, reasons) = hit.map_or((0.0, Vec::new()), |hit| (hit.score, hit.reasons));
        let in_name = name.contains(&letters);
        if !in_name && score < SCORE_MIN && !one.search_text().to_lowercase().contains(&letters) {
            continue;
        }
        let place = u8::from(!name.starts_with(&letters));
        let why = reasons.iter().map(ToString::to_string).collect();
        found.push((place, one, ListedSkillHit { score, reasons, why, in_name }));
    }
    found.sort_by(|(place_a, _, a), (place_b, _, b)| {
        place_a.cmp(place_b).then(b.score.total_cmp(&a.score)).then(b.in_name.cmp(&a.in_name))
    });
    found.into_iter().map(|(_, one, found)| (one, Some(found))).collect()
}

fn resolve_skill<'c>(catalog: &'c Catalog, name: &str) -> ApiResult<&'c CatalogEntry> {
    catalog.resolve(name).map_err(|error| skill_not_found(&error))
}

pub(super) fn skill_not_found(error: &SkillNotFound) -> HttpProblem {
    let problem = HttpProblem::not_found(error.to_string());
    match (&error.nearest, error.ambiguous.as_slice()) {
        (_, [_, ..]) => problem.hint(format!("It may be one of {}.", error.ambiguous.join(", "))),
        (Some(nearest), _) => problem.hint(format!("Did you mean `{nearest}`?")),
        (None, _) => problem.hint("`GET /api/v1/skills` lists every skill."),
    }
}
