//! Skills: list, search and details.

mod detail;
mod file;

use std::collections::BTreeMap;

use repertoire_select::Task;
use repertoire_select::selection::Reason;
use repertoire_skill::catalog::{Broken, Catalog, Entry, NotFound};
use repertoire_skill::render::list::SkillRow;
use repertoire_skill::skill::{Dialect, Plugin, Scope};
use repertoire_skill::trust::Trust;
use repertoire_text::json::DiagnosticJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, Nothing, Page, blocking};
use crate::house::House;
use crate::http::problem::Problem;

/// The maximum number of search hits; lower-ranked skills are irrelevant.
const HITS_MAX: usize = 500;
/// Skills that score less are found only if their name or description contains the search text.
const SCORE_MIN: f32 = 0.02;

/// The state of a skill file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
enum State {
    /// In use.
    Used,
    /// Hidden by another skill with the same name.
    Shadowed,
    /// Could not be loaded.
    Broken,
}

/// An entry of the list of skills, in any state. Fields that are unknown for a broken file are null.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Listed {
    /// The state of the skill.
    state: State,
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
    trust: Option<Trust>,
    /// The plugin it came with.
    plugin: Option<Plugin>,
    /// The reason why it could not be loaded.
    reason: Option<DiagnosticJson>,
    /// The search result; null if no search was made.
    found: Option<Found>,
}

/// The search result for a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Found {
    /// The estimated relevance, 0 to 1.
    score: f32,
    /// The reasons for and against it.
    reasons: Vec<Reason>,
    /// The reasons as text.
    why: Vec<String>,
    /// True if the name contains the search text.
    in_name: bool,
}

/// A filter for skills.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Which {
    /// Search for this text: the best matches in words and meaning come first, with score and reasons.
    q: Option<String>,
    /// Only skills of this scope.
    scope: Option<Scope>,
    /// Only skills in this state.
    state: Option<State>,
    /// Only skills of this type, such as `custom` or `mode`; also `agent` and `skill`.
    kind: Option<String>,
    /// Only skills with this trust.
    trust: Option<Trust>,
    /// Only skills with this tag.
    tag: Option<String>,
}

/// The path of a skill.
#[derive(Debug, Deserialize, JsonSchema)]
struct NamePath {
    /// The name of the skill, also as `plugin:skill`.
    name: String,
}

pub(super) fn add(api: Api) -> Api {
    let api = api.list("/api/v1/skills", "skills", "List and search skills", list);
    file::add(detail::add(api))
}

async fn list(call: Call<Nothing, Which>) -> Answer<Page<Listed>> {
    blocking(move || {
        let catalog = call.house.catalog();
        let all = candidates(&catalog, &call.query);
        let words = call.query.q.as_deref().map(str::trim).filter(|words| !words.is_empty());
        let found = match words {
            Some(words) => search(&call.house, all, words),
            None => all.into_iter().map(|one| (one, None)).collect(),
        };
        // Digests are expensive, so compute them for this page only.
        let page = call.paging.cut(found.into_iter())?;
        let items = page.items.into_iter().map(|(one, found)| one.listed(&catalog, found));
        Ok(Page { items: items.collect(), next: page.next, total: page.total })
    })
    .await
}

/// A skill file that may be listed.
#[derive(Clone, Copy)]
enum Candidate<'c> {
    Used(&'c Entry),
    Shadowed(&'c Entry, &'c str),
    Broken(&'c Broken),
}

impl<'c> Candidate<'c> {
    fn name(self) -> &'c str {
        match self {
            Candidate::Used(entry) | Candidate::Shadowed(entry, _) => &entry.id,
            Candidate::Broken(broken) => {
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
    fn text(self) -> &'c str {
        match self {
            Candidate::Used(entry) | Candidate::Shadowed(entry, _) => &entry.skill.description,
            Candidate::Broken(broken) => broken.path.as_str(),
        }
    }

    fn listed(self, catalog: &Catalog, found: Option<Found>) -> Listed {
        let (state, entry, shadowed_by) = match self {
            Candidate::Used(entry) => (State::Used, entry, None),
            Candidate::Shadowed(entry, by) => (State::Shadowed, entry, Some(by.into())),
            Candidate::Broken(broken) => return listed_broken(self, broken, catalog, found),
        };
        let row = SkillRow::of(entry, shadowed_by);
        Listed {
            state,
            name: row.name,
            description: Some(row.description),
            path_short: catalog.places().shorten(&entry.skill.origin.file),
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

fn listed_broken(
    candidate: Candidate<'_>,
    broken: &Broken,
    catalog: &Catalog,
    found: Option<Found>,
) -> Listed {
    Listed {
        state: State::Broken,
        name: candidate.name().to_owned(),
        description: None,
        path: broken.path.to_string(),
        path_short: catalog.places().shorten(&broken.path),
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
fn candidates<'c>(catalog: &'c Catalog, which: &Which) -> Vec<Candidate<'c>> {
    let state = |state: State| which.state.is_none_or(|wanted| wanted == state);
    let wants = |entry: &Entry| {
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
    if state(State::Used) {
        let used = catalog.entries().iter().filter(|entry| wants(entry));
        out.extend(used.map(Candidate::Used));
    }
    if state(State::Shadowed) {
        let lost = catalog.shadowed().iter().filter(|lost| wants(&lost.entry));
        out.extend(lost.map(|lost| Candidate::Shadowed(&lost.entry, lost.by.as_str())));
    }
    if state(State::Broken) && !needs_a_record {
        let scope = |broken: &&Broken| which.scope.is_none_or(|scope| broken.scope == scope);
        out.extend(catalog.broken().iter().filter(scope).map(Candidate::Broken));
    }
    out
}

/// Returns the skills that match the words, best first. Names that start with the words come before everything else,
/// because a user who types a name is looking for it.
fn search<'c>(
    house: &House,
    all: Vec<Candidate<'c>>,
    words: &str,
) -> Vec<(Candidate<'c>, Option<Found>)> {
    let (_, selector) = house.selector();
    let hits = selector.search(&Task::new(words), HITS_MAX);
    let mut hits: BTreeMap<String, _> =
        hits.into_iter().map(|hit| (hit.name.clone(), hit)).collect();
    let letters = words.to_lowercase();
    let mut found: Vec<(u8, Candidate<'c>, Found)> = Vec::new();
    for one in all {
        let name = one.name().to_lowercase();
        let is_ranked = matches!(one, Candidate::Used(entry) if !entry.skill.is_agent());
        let hit = if is_ranked { hits.remove(one.name()) } else { None };
        let (score, reasons) = hit.map_or((0.0, Vec::new()), |hit| (hit.score, hit.reasons));
        let in_name = name.contains(&letters);
        if !in_name && score < SCORE_MIN && !one.text().to_lowercase().contains(&letters) {
            continue;
        }
        let place = u8::from(!name.starts_with(&letters));
        let why = reasons.iter().map(ToString::to_string).collect();
        found.push((place, one, Found { score, reasons, why, in_name }));
    }
    found.sort_by(|(place_a, _, a), (place_b, _, b)| {
        place_a.cmp(place_b).then(b.score.total_cmp(&a.score)).then(b.in_name.cmp(&a.in_name))
    });
    found.into_iter().map(|(_, one, found)| (one, Some(found))).collect()
}

fn resolve<'c>(catalog: &'c Catalog, name: &str) -> Answer<&'c Entry> {
    catalog.resolve(name).map_err(|error| not_found(&error))
}

pub(super) fn not_found(error: &NotFound) -> Problem {
    let problem = Problem::not_found(error.to_string());
    match (&error.nearest, error.ambiguous.as_slice()) {
        (_, [_, ..]) => problem.hint(format!("It may be one of {}.", error.ambiguous.join(", "))),
        (Some(nearest), _) => problem.hint(format!("Did you mean `{nearest}`?")),
        (None, _) => problem.hint("`GET /api/v1/skills` lists every skill."),
    }
}
