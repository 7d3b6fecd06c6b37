//! The selector: prepares a catalog and answers tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use repertoire_skill::catalog::Catalog;

mod explain;

pub use explain::{SkillExplanation, StageScore, TriggerProblem};

use crate::document::SkillDocument;
use crate::evidence::{StageEvidence, combine_declared, combine_strengths};
use crate::index::SkillIndex;
use crate::limits::{CANDIDATES_MAX, NEEDS_MAX};
use crate::model::SelectionModel;
use crate::query::TaskQuery;
use crate::selection::{
    Field, NearMiss, PickStrategy, RejectionReason, Selection, SelectionAbstention, SelectionPick,
    SelectionReason, UnresolvedHint,
};
use crate::settings::{SelectionSettings, SelectionStage};
use crate::stages::calibrate;
pub use crate::stages::calibrate::TextFit;
use crate::stages::context::{self, SelectionContext};
use crate::stages::fusion::{self, RankCandidate, TextEvidenceUse};
use crate::stages::triggers::{CompiledTriggers, FiredTriggers};
use crate::stages::{exclusions, lexical};
use crate::task::Task;

/// Skills scoring below this are not listed as near misses.
const NEAR_MIN: f32 = 0.1;

/// A catalog prepared for selection.
///
/// The selector holds none of the skills' text. Clones are cheap and share the prepared catalog, so that it
/// can be queried under different settings.
///
/// ```
/// use repertoire_select::{SkillDocument, SelectionModel, SkillSelector, SelectionSettings, Task};
///
/// let skills = [
///     SkillDocument::new("invoices", "invoices", "Checks invoices against purchase orders", ""),
///     SkillDocument::new("photos", "photos", "Sorts photographs by date and place", ""),
/// ];
/// let selector = SkillSelector::new(&skills, SelectionModel::embedded(), SelectionSettings::default(), None);
///
/// let selection = selector.select(&Task::new("check this invoice against the purchase order"));
/// assert_eq!(selection.picks[0].name, "invoices");
/// assert!(selector.select(&Task::new("what's for lunch?")).picks.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct SkillSelector {
    ready: Arc<PreparedCatalog>,
    model: SelectionModel,
    settings: SelectionSettings,
}

#[derive(Debug)]
struct PreparedCatalog {
    cards: Vec<PreparedSkill>,
    index: SkillIndex,
    triggers: CompiledTriggers,
}

/// The data of a skill that is not in the index.
#[derive(Debug)]
struct PreparedSkill {
    id: String,
    /// The skill's own minimum score, `triggers.confidence`.
    confidence: f32,
    is_offered: bool,
    agent: Option<String>,
    /// The catalog indexes of the skills that it depends on.
    needs: Vec<usize>,
}

impl PreparedSkill {
    /// `places` are the catalog indexes of skills by id.
    fn new(document: &SkillDocument<'_>, places: &BTreeMap<&str, usize>) -> Self {
        PreparedSkill {
            id: document.id.to_owned(),
            confidence: document.triggers.confidence.unwrap_or(0.0) as f32,
            is_offered: document.is_offered,
            agent: document.agent.map(str::to_owned),
            needs: document.needs.iter().filter_map(|id| places.get(id).copied()).collect(),
        }
    }
}

/// A skill in a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedSkill {
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    pub fit: TextFit,
}

/// A search result.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillSearchHit {
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The reasons for and against the skill.
    pub reasons: Vec<SelectionReason>,
}

/// A skill scored against a task.
#[derive(Debug)]
struct ScoredSkill {
    skill: usize,
    score: f32,
    strategy: PickStrategy,
    reasons: Vec<SelectionReason>,
    /// The position in `reasons` at which the reasons given by the text are inserted. Formatting them is
    /// expensive, so it is only done for skills that are shown.
    text_at: usize,
    /// The rank by words and meaning, from 1.
    rank: Option<usize>,
    by_text: f32,
    by_triggers: f32,
    /// The strength of each trigger that fired, with its stage.
    strengths: Vec<(SelectionStage, f32)>,
    boost: f32,
    against: f32,
    candidate: RankCandidate,
    fit: TextFit,
}

impl SkillSelector {
    /// Prepares a catalog for selection.
    pub fn from_catalog(
        catalog: &Catalog,
        model: SelectionModel,
        settings: SelectionSettings,
    ) -> Self {
        let documents = SkillDocument::from_catalog(catalog);
        SkillSelector::new(&documents, model, settings, None)
    }

    /// Prepares skills for selection. Skills that the earlier index `before` holds are not analysed again.
    pub fn new(
        documents: &[SkillDocument<'_>],
        model: SelectionModel,
        settings: SelectionSettings,
        before: Option<SkillIndex>,
    ) -> Self {
        let index = before.unwrap_or_default().update(documents, model.vectors());
        SkillSelector::with_index(documents, index, model, settings)
    }

    /// Prepares skills with an index that was built from exactly these.
    pub(crate) fn with_index(
        documents: &[SkillDocument<'_>],
        index: SkillIndex,
        model: SelectionModel,
        settings: SelectionSettings,
    ) -> Self {
        let places: BTreeMap<&str, usize> =
            documents.iter().enumerate().map(|(at, document)| (document.id, at)).collect();
        let cards =
            documents.iter().map(|document| PreparedSkill::new(document, &places)).collect();
        let triggers = CompiledTriggers::new(documents);
        SkillSelector {
            ready: Arc::new(PreparedCatalog { cards, index, triggers }),
            model,
            settings,
        }
    }

    /// Prepares another catalog, such as the next one after a reload. Unchanged skills are not analysed
    /// again.
    pub fn reload(&self, catalog: &Catalog) -> Self {
        let documents = SkillDocument::from_catalog(catalog);
        let before = Some(self.ready.index.clone());
        SkillSelector::new(&documents, self.model.clone(), self.settings, before)
    }

    /// Returns a selector for the same catalog under other settings.
    pub fn with_settings(&self, settings: SelectionSettings) -> Self {
        SkillSelector { settings, ..self.clone() }
    }

    pub fn settings(&self) -> &SelectionSettings {
        &self.settings
    }

    /// The index, for caching.
    pub fn index(&self) -> &SkillIndex {
        &self.ready.index
    }

    /// Picks the skills for a task.
    #[tracing::instrument(name = "select", level = "debug", skip_all)]
    pub fn select(&self, task: &Task) -> Selection {
        let (query, weighed, unresolved) = self.score_candidates(task, &[]);
        let mut selection = Selection { unresolved, ..Selection::default() };
        let mut places = Vec::new();
        let mut matched = 0;
        let best = weighed.iter().max_by(|a, b| a.score.total_cmp(&b.score));
        let best = best.map(|one| {
            (self.skill_id(one.skill), round_score(one.score), self.rejection_reason(one, 0))
        });
        for one in weighed {
            match self.rejection_reason(&one, matched) {
                None => {
                    matched += usize::from(one.strategy != PickStrategy::Hint);
                    places.push(one.skill);
                    selection.picks.push(self.to_pick(&query, one));
                }
                Some(lacked)
                    if one.score >= NEAR_MIN
                        && selection.near_misses.len() < self.settings.near_misses =>
                {
                    selection.near_misses.push(self.to_near_miss(&query, one, lacked));
                }
                Some(_) => {}
            }
        }
        if self.settings.stages.has(SelectionStage::Needs) {
            self.add_dependencies(&mut selection, &places);
        }
        if selection.picks.is_empty() {
            let threshold = self.settings.threshold;
            let nothing = (None, 0.0, None);
            let (nearest, best, lacked) =
                best.map_or(nothing, |(name, score, lacked)| (Some(name), score, lacked));
            selection.abstention = Some(SelectionAbstention { nearest, best, threshold, lacked });
        }
        selection
    }

    /// Returns the best skills for a task regardless of the threshold, for search and evaluation.
    pub fn rank(&self, task: &Task, limit: usize) -> Vec<RankedSkill> {
        let (_, weighed, _) = self.score_candidates(task, &[]);
        self.to_ranked(weighed, limit)
    }

    /// Like [`SkillSelector::rank`], with the reasons for and against each skill.
    pub fn search(&self, task: &Task, limit: usize) -> Vec<SkillSearchHit> {
        let (query, weighed, _) = self.score_candidates(task, &[]);
        let found = weighed.into_iter().take(limit).map(|one| SkillSearchHit {
            name: self.skill_id(one.skill),
            score: round_score(one.score),
            reasons: self.all_reasons(&query, &one),
        });
        found.collect()
    }

    /// Returns the best skills for a task in the order of their text fit, for measuring the ranking itself.
    pub fn rank_by_fit(&self, task: &Task, limit: usize) -> Vec<RankedSkill> {
        let (_, mut weighed, _) = self.score_candidates(task, &[]);
        weighed.sort_by_key(|one| one.rank.unwrap_or(usize::MAX));
        self.to_ranked(weighed, limit)
    }

    fn to_ranked(&self, weighed: Vec<ScoredSkill>, limit: usize) -> Vec<RankedSkill> {
        let ranked = weighed.into_iter().take(limit).map(|one| RankedSkill {
            name: self.skill_id(one.skill),
            score: round_score(one.score),
            fit: one.fit,
        });
        ranked.collect()
    }

    fn skill_id(&self, skill: usize) -> String {
        self.ready.cards[skill].id.clone()
    }

    /// Scores all candidates, best first. Skills in `wanted` are always among them.
    fn score_candidates(
        &self,
        task: &Task,
        wanted: &[usize],
    ) -> (TaskQuery, Vec<ScoredSkill>, Vec<UnresolvedHint>) {
        let stages = self.settings.stages;
        let index = &self.ready.index;
        let FiredTriggers { pro, contra: against, unresolved } =
            self.ready.triggers.find(task, stages);
        let used = TextEvidenceUse {
            words: stages.has(SelectionStage::Words),
            meaning: stages.has(SelectionStage::Meaning),
        };
        let query =
            TaskQuery::new(&task.text, index, self.model.background(), self.model.vectors());
        let mut wanted = wanted.to_vec();
        wanted.extend(pro.iter().map(|found| found.skill));
        let candidates = if used.words || used.meaning || !wanted.is_empty() {
            fusion::rank_candidates(&query, index, used, &wanted)
        } else {
            Vec::new()
        };
        let named: Vec<usize> = pro
            .iter()
            .filter(|found| matches!(found.reason, SelectionReason::Hint { .. }))
            .map(|found| found.skill)
            .collect();
        // A skill that cannot be picked must not reduce the margin of the others.
        let competes = |skill: usize| self.ready.cards[skill].is_offered || named.contains(&skill);
        let competing: Vec<(usize, f32)> = candidates
            .iter()
            .filter(|candidate| competes(candidate.skill))
            .map(|candidate| (candidate.skill, candidate.score))
            .collect();
        let rival_of = |skill: usize| {
            competing.iter().find(|(other, _)| *other != skill).map(|(_, score)| *score)
        };
        let has_text = used.words || used.meaning;
        let context =
            stages.has(SelectionStage::Context).then(|| SelectionContext::new(task, &self.model));
        let mut by_skill: BTreeMap<usize, (Vec<StageEvidence>, Vec<StageEvidence>)> =
            BTreeMap::new();
        for found in pro {
            by_skill.entry(found.skill).or_default().0.push(found);
        }
        for found in against {
            by_skill.entry(found.skill).or_default().1.push(found);
        }
        let mut weighed: Vec<ScoredSkill> = candidates
            .into_iter()
            .map(|candidate| {
                let skill = candidate.skill;
                let fired = by_skill.remove(&skill).unwrap_or_default();
                let place = competing.iter().position(|(other, _)| *other == skill);
                // Ranks beyond the candidates by score are unknown.
                let rank = place.filter(|at| has_text && *at < CANDIDATES_MAX).map(|at| at + 1);
                let text = has_text.then(|| rival_of(skill));
                self.score_candidate(&query, candidate, rank, text, fired, context.as_ref())
            })
            .collect();
        let place_of_hint = |one: &ScoredSkill| {
            named.iter().position(|skill| *skill == one.skill).unwrap_or(usize::MAX)
        };
        weighed.sort_by(|a, b| {
            place_of_hint(a)
                .cmp(&place_of_hint(b))
                .then(b.score.total_cmp(&a.score))
                .then(a.rank.unwrap_or(usize::MAX).cmp(&b.rank.unwrap_or(usize::MAX)))
                .then(a.skill.cmp(&b.skill))
        });
        (query, weighed, unresolved)
    }

    /// Scores one skill. `text` is `None` if text stages are off; otherwise it holds the score of the best
    /// rival, if any.
    fn score_candidate(
        &self,
        query: &TaskQuery,
        candidate: RankCandidate,
        rank: Option<usize>,
        text: Option<Option<f32>>,
        (pro, against): (Vec<StageEvidence>, Vec<StageEvidence>),
        context: Option<&SelectionContext<'_>>,
    ) -> ScoredSkill {
        let card = &self.ready.cards[candidate.skill];
        let index = &self.ready.index;
        let own_words = if self.settings.stages.has(SelectionStage::Negatives) {
            exclusions::find_exclusion(query, &candidate, index)
        } else {
            None
        };
        let own_share = own_words.as_ref().map_or(0.0, |(share, _)| *share);
        let fit = TextFit::new(&candidate, text.flatten(), own_share);
        let by_text = if text.is_some() { calibrate::estimate_probability(&fit) } else { 0.0 };
        let by_triggers = combine_declared(pro.iter().map(|found| found.strength));
        let is_named = pro.iter().any(|found| matches!(found.reason, SelectionReason::Hint { .. }));
        let strategy = match () {
            () if is_named => PickStrategy::Hint,
            () if by_triggers > 0.0 => PickStrategy::Trigger,
            () => PickStrategy::Match,
        };
        let strengths: Vec<(SelectionStage, f32)> =
            pro.iter().map(|found| (found.reason.stage(), found.strength)).collect();
        let mut reasons: Vec<SelectionReason> = pro.into_iter().map(|found| found.reason).collect();
        let text_at = reasons.len();
        let mut score = combine_strengths([by_triggers, by_text]);
        let mut boost = 0.0;
        if let Some(context) = context.filter(|_| score >= context::FIT_MIN && !is_named) {
            let agent = card.agent.as_deref();
            for (more, reason) in context.find_boosts(candidate.skill, &card.id, agent, index) {
                boost += more;
                reasons.push(reason);
            }
            score = (score + boost).min(1.0);
        }
        let mut not: Vec<(f32, SelectionReason)> =
            against.into_iter().map(|found| (found.strength, found.reason)).collect();
        not.extend(own_words);
        let against = combine_strengths(not.iter().map(|(strength, _)| *strength));
        reasons.extend(not.into_iter().map(|(_, reason)| reason));
        // A skill that the task names is picked whatever speaks against it.
        if !is_named {
            score *= 1.0 - against;
        }
        ScoredSkill {
            skill: candidate.skill,
            score,
            strategy,
            reasons,
            text_at,
            rank,
            by_text,
            by_triggers,
            strengths,
            boost,
            against,
            candidate,
            fit,
        }
    }

    /// Returns all reasons for and against a skill, in the order of the stages.
    fn all_reasons(&self, query: &TaskQuery, one: &ScoredSkill) -> Vec<SelectionReason> {
        let (before, after) = one.reasons.split_at(one.text_at);
        [before, &self.text_reasons(query, &one.candidate), after].concat()
    }

    /// Returns the reasons given by the skill's text: its distinctive words, and meaning.
    fn text_reasons(&self, query: &TaskQuery, candidate: &RankCandidate) -> Vec<SelectionReason> {
        const WORDS_MAX: usize = 5;
        let mut hits: Vec<_> =
            query.terms.iter().zip(&candidate.hits).filter(|(_, hit)| hit.score > 0.0).collect();
        hits.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
        let mut reasons: Vec<SelectionReason> = hits
            .iter()
            .take(WORDS_MAX)
            .map(|(term, hit)| {
                let stem = self.ready.index.terms().get(hit.place);
                SelectionReason::Word {
                    word: term.word.clone(),
                    as_word: (stem != term.stem && stem != term.word).then(|| stem.to_owned()),
                    fields: matched_fields(hit),
                    weight: round_score(hit.score / candidate.words),
                }
            })
            .collect();
        if candidate.closeness >= 0.3 && self.settings.stages.has(SelectionStage::Meaning) {
            reasons.push(SelectionReason::Meaning { closeness: round_score(candidate.closeness) });
        }
        let sentence = query.sentences.get(candidate.sentence);
        if let Some(sentence) = sentence.filter(|_| candidate.vote >= fusion::VOTE_THAT_COUNTS) {
            reasons.push(SelectionReason::Sentence { sentence: sentence.text.clone() });
        }
        reasons
    }

    /// Returns the reason why a skill is not picked after `picked` others, or `None` if it is.
    fn rejection_reason(&self, one: &ScoredSkill, picked: usize) -> Option<RejectionReason> {
        let card = &self.ready.cards[one.skill];
        if one.strategy == PickStrategy::Hint {
            return None;
        }
        let threshold = self.threshold_for(card);
        match () {
            () if one.score < threshold => Some(RejectionReason::Score { threshold }),
            () if !self.settings.enabled => Some(RejectionReason::Enabled),
            () if !card.is_offered => Some(RejectionReason::Name),
            () if picked >= self.settings.max_skills => {
                Some(RejectionReason::Room { max_skills: self.settings.max_skills })
            }
            () => None,
        }
    }

    /// Returns the threshold of a skill, which may raise that of the settings but not lower it.
    fn threshold_for(&self, card: &PreparedSkill) -> f32 {
        // NaN as a threshold is never reached.
        let asked = self.settings.threshold;
        if asked.is_nan() { f32::INFINITY } else { asked.max(card.confidence) }
    }

    fn to_pick(&self, query: &TaskQuery, one: ScoredSkill) -> SelectionPick {
        SelectionPick {
            name: self.skill_id(one.skill),
            score: round_score(one.score),
            strategy: one.strategy,
            reasons: self.all_reasons(query, &one),
        }
    }

    fn to_near_miss(
        &self,
        query: &TaskQuery,
        one: ScoredSkill,
        lacked: RejectionReason,
    ) -> NearMiss {
        NearMiss {
            name: self.skill_id(one.skill),
            score: round_score(one.score),
            lacked,
            missing: self.missing_words(query, &one.candidate),
            reasons: self.all_reasons(query, &one),
        }
    }

    /// Inserts the dependencies of picks right after them, transitively.
    ///
    /// A skill that may only be used if it is named is added only as a dependency of one that was named.
    fn add_dependencies(&self, selection: &mut Selection, places: &[usize]) {
        let cards = &self.ready.cards;
        let mut taken: BTreeSet<usize> = places.iter().copied().collect();
        let mut added = 0;
        let mut picks = Vec::new();
        let mut left_out = Vec::new();
        for (pick, place) in std::mem::take(&mut selection.picks).into_iter().zip(places) {
            let (score, was_named) = (pick.score, pick.strategy == PickStrategy::Hint);
            picks.push(pick);
            let needs_of = |by: usize| cards[by].needs.iter().rev().map(move |need| (*need, by));
            // A stack in reverse order, so that dependencies come depth-first in their declared order.
            let mut waiting: Vec<(usize, usize)> = needs_of(*place).collect();
            while let Some((need, by)) = waiting.pop() {
                if added == NEEDS_MAX || !taken.insert(need) {
                    continue;
                }
                let reasons = vec![SelectionReason::Need { by: self.skill_id(by) }];
                let name = self.skill_id(need);
                if !was_named && !cards[need].is_offered {
                    let (lacked, missing) = (RejectionReason::Name, Vec::new());
                    left_out.push(NearMiss { name, score, lacked, missing, reasons });
                    continue;
                }
                picks.push(SelectionPick { name, score, strategy: PickStrategy::Need, reasons });
                added += 1;
                waiting.extend(needs_of(need));
            }
        }
        selection.picks = picks;
        let is_picked = |miss: &NearMiss| selection.picks.iter().any(|pick| pick.name == miss.name);
        selection.near_misses.retain(|miss| !is_picked(miss));
        let is_known = |miss: &NearMiss| selection.near_misses.iter().any(|m| m.name == miss.name);
        left_out.retain(|miss| !is_known(miss));
        selection.near_misses.extend(left_out);
    }

    /// Returns the most distinctive words of a task that a skill does not contain.
    fn missing_words(&self, query: &TaskQuery, candidate: &RankCandidate) -> Vec<String> {
        const WORDS_MAX: usize = 4;
        if !self.settings.stages.has(SelectionStage::Words) {
            return Vec::new();
        }
        let terms = query.terms.iter().zip(&candidate.hits);
        let mut missing: Vec<_> =
            terms.filter(|(_, hit)| hit.score == 0.0).map(|(term, _)| term).collect();
        // Numbers are rare and so look distinctive, but explain nothing.
        missing.retain(|term| term.word.chars().any(char::is_alphabetic));
        missing.sort_by(|a, b| b.whole.total_cmp(&a.whole));
        missing.iter().take(WORDS_MAX).map(|term| term.word.clone()).collect()
    }
}

fn matched_fields(hit: &lexical::TermHit) -> Vec<Field> {
    let all = [
        (hit.head.in_strong(), Field::Name),
        (hit.head.in_plain(), Field::Description),
        (hit.body.in_strong(), Field::Headings),
        (hit.body.in_plain(), Field::Body),
    ];
    all.into_iter().filter(|(is_in, _)| *is_in).map(|(_, field)| field).collect()
}

/// Rounds to four digits, so that output is readable and equal on every machine.
fn round_score(number: f32) -> f32 {
    (number * 10_000.0).round() / 10_000.0
}
