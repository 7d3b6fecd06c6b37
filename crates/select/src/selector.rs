//! The selector: prepares a catalog and answers tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use repertoire_skill::catalog::Catalog;

mod explain;

pub use explain::{Explanation, Problem, StageScore};

use crate::document::Document;
use crate::evidence::{Evidence, combine, combine_declared};
use crate::index::Index;
use crate::limits::{CANDIDATES_MAX, NEEDS_MAX};
use crate::model::Model;
use crate::query::Query;
use crate::selection::{
    Abstention, Field, Lack, NearMiss, Pick, Reason, Selection, Strategy, Unresolved,
};
use crate::settings::{Settings, Stage};
use crate::stages::calibrate;
pub use crate::stages::calibrate::Fit;
use crate::stages::context::{self, Context};
use crate::stages::fusion::{self, Candidate, Use};
use crate::stages::triggers::{Fired, Triggers};
use crate::stages::{contra, lexical};
use crate::task::Task;

/// Skills scoring below this are not listed as near misses.
const NEAR_MIN: f32 = 0.1;

/// A catalog prepared for selection.
///
/// The selector holds none of the skills' text. Clones are cheap and share the prepared catalog, so that it
/// can be queried under different settings.
///
/// ```
/// use repertoire_select::{Document, Model, Selector, Settings, Task};
///
/// let skills = [
///     Document::new("invoices", "invoices", "Checks invoices against purchase orders", ""),
///     Document::new("photos", "photos", "Sorts photographs by date and place", ""),
/// ];
/// let selector = Selector::new(&skills, Model::embedded(), Settings::default(), None);
///
/// let selection = selector.select(&Task::new("check this invoice against the purchase order"));
/// assert_eq!(selection.picks[0].name, "invoices");
/// assert!(selector.select(&Task::new("what's for lunch?")).picks.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Selector {
    ready: Arc<Ready>,
    model: Model,
    settings: Settings,
}

#[derive(Debug)]
struct Ready {
    cards: Vec<Card>,
    index: Index,
    triggers: Triggers,
}

/// The data of a skill that is not in the index.
#[derive(Debug)]
struct Card {
    id: String,
    /// The skill's own minimum score, `triggers.confidence`.
    confidence: f32,
    is_offered: bool,
    agent: Option<String>,
    /// The catalog indexes of the skills that it depends on.
    needs: Vec<usize>,
}

impl Card {
    /// `places` are the catalog indexes of skills by id.
    fn new(document: &Document<'_>, places: &BTreeMap<&str, usize>) -> Self {
        Card {
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
pub struct Ranked {
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    pub fit: Fit,
}

/// A search result.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The reasons for and against the skill.
    pub reasons: Vec<Reason>,
}

/// A skill scored against a task.
#[derive(Debug)]
struct Weighed {
    skill: usize,
    score: f32,
    strategy: Strategy,
    reasons: Vec<Reason>,
    /// The position in `reasons` at which the reasons given by the text are inserted. Formatting them is
    /// expensive, so it is only done for skills that are shown.
    text_at: usize,
    /// The rank by words and meaning, from 1.
    rank: Option<usize>,
    by_text: f32,
    by_triggers: f32,
    /// The strength of each trigger that fired, with its stage.
    strengths: Vec<(Stage, f32)>,
    boost: f32,
    against: f32,
    candidate: Candidate,
    fit: Fit,
}

impl Selector {
    /// Prepares a catalog for selection.
    pub fn of(catalog: &Catalog, model: Model, settings: Settings) -> Self {
        let documents = Document::all(catalog);
        Selector::new(&documents, model, settings, None)
    }

    /// Prepares skills for selection. Skills that the earlier index `before` holds are not analysed again.
    pub fn new(
        documents: &[Document<'_>],
        model: Model,
        settings: Settings,
        before: Option<Index>,
    ) -> Self {
        let index = before.unwrap_or_default().update(documents, model.vectors());
        Selector::with_index(documents, index, model, settings)
    }

    /// Prepares skills with an index that was built from exactly these.
    pub(crate) fn with_index(
        documents: &[Document<'_>],
        index: Index,
        model: Model,
        settings: Settings,
    ) -> Self {
        let places: BTreeMap<&str, usize> =
            documents.iter().enumerate().map(|(at, document)| (document.id, at)).collect();
        let cards = documents.iter().map(|document| Card::new(document, &places)).collect();
        let triggers = Triggers::new(documents);
        Selector { ready: Arc::new(Ready { cards, index, triggers }), model, settings }
    }

    /// Prepares another catalog, such as the next one after a reload. Unchanged skills are not analysed
    /// again.
    pub fn reload(&self, catalog: &Catalog) -> Self {
        let documents = Document::all(catalog);
        let before = Some(self.ready.index.clone());
        Selector::new(&documents, self.model.clone(), self.settings, before)
    }

    /// Returns a selector for the same catalog under other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        Selector { settings, ..self.clone() }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The index, for caching.
    pub fn index(&self) -> &Index {
        &self.ready.index
    }

    /// Picks the skills for a task.
    pub fn select(&self, task: &Task) -> Selection {
        let (query, weighed, unresolved) = self.weigh(task, &[]);
        let mut selection = Selection { unresolved, ..Selection::default() };
        let mut places = Vec::new();
        let mut matched = 0;
        let best = weighed.iter().max_by(|a, b| a.score.total_cmp(&b.score));
        let best = best.map(|one| (self.id(one.skill), round(one.score), self.lacks(one, 0)));
        for one in weighed {
            match self.lacks(&one, matched) {
                None => {
                    matched += usize::from(one.strategy != Strategy::Hint);
                    places.push(one.skill);
                    selection.picks.push(self.pick(&query, one));
                }
                Some(lacked)
                    if one.score >= NEAR_MIN
                        && selection.near_misses.len() < self.settings.near_misses =>
                {
                    selection.near_misses.push(self.near_miss(&query, one, lacked));
                }
                Some(_) => {}
            }
        }
        if self.settings.stages.has(Stage::Needs) {
            self.add_needs(&mut selection, &places);
        }
        if selection.picks.is_empty() {
            let threshold = self.settings.threshold;
            let nothing = (None, 0.0, None);
            let (nearest, best, lacked) =
                best.map_or(nothing, |(name, score, lacked)| (Some(name), score, lacked));
            selection.abstention = Some(Abstention { nearest, best, threshold, lacked });
        }
        selection
    }

    /// Returns the best skills for a task regardless of the threshold, for search and evaluation.
    pub fn rank(&self, task: &Task, limit: usize) -> Vec<Ranked> {
        let (_, weighed, _) = self.weigh(task, &[]);
        self.ranked(weighed, limit)
    }

    /// Like [`Selector::rank`], with the reasons for and against each skill.
    pub fn search(&self, task: &Task, limit: usize) -> Vec<Hit> {
        let (query, weighed, _) = self.weigh(task, &[]);
        let found = weighed.into_iter().take(limit).map(|one| Hit {
            name: self.id(one.skill),
            score: round(one.score),
            reasons: self.all_reasons(&query, &one),
        });
        found.collect()
    }

    /// Returns the best skills for a task in the order of their text fit, for measuring the ranking itself.
    pub fn rank_by_fit(&self, task: &Task, limit: usize) -> Vec<Ranked> {
        let (_, mut weighed, _) = self.weigh(task, &[]);
        weighed.sort_by_key(|one| one.rank.unwrap_or(usize::MAX));
        self.ranked(weighed, limit)
    }

    fn ranked(&self, weighed: Vec<Weighed>, limit: usize) -> Vec<Ranked> {
        let ranked = weighed.into_iter().take(limit).map(|one| Ranked {
            name: self.id(one.skill),
            score: round(one.score),
            fit: one.fit,
        });
        ranked.collect()
    }

    fn id(&self, skill: usize) -> String {
        self.ready.cards[skill].id.clone()
    }

    /// Scores all candidates, best first. Skills in `wanted` are always among them.
    fn weigh(&self, task: &Task, wanted: &[usize]) -> (Query, Vec<Weighed>, Vec<Unresolved>) {
        let stages = self.settings.stages;
        let index = &self.ready.index;
        let Fired { pro, contra: against, unresolved } = self.ready.triggers.find(task, stages);
        let used = Use { words: stages.has(Stage::Words), meaning: stages.has(Stage::Meaning) };
        let query = Query::new(&task.text, index, self.model.background(), self.model.vectors());
        let mut wanted = wanted.to_vec();
        wanted.extend(pro.iter().map(|found| found.skill));
        let candidates = if used.words || used.meaning || !wanted.is_empty() {
            fusion::rank(&query, index, used, &wanted)
        } else {
            Vec::new()
        };
        let named: Vec<usize> = pro
            .iter()
            .filter(|found| matches!(found.reason, Reason::Hint { .. }))
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
        let context = stages.has(Stage::Context).then(|| Context::new(task, &self.model));
        let mut by_skill: BTreeMap<usize, (Vec<Evidence>, Vec<Evidence>)> = BTreeMap::new();
        for found in pro {
            by_skill.entry(found.skill).or_default().0.push(found);
        }
        for found in against {
            by_skill.entry(found.skill).or_default().1.push(found);
        }
        let mut weighed: Vec<Weighed> = candidates
            .into_iter()
            .map(|candidate| {
                let skill = candidate.skill;
                let fired = by_skill.remove(&skill).unwrap_or_default();
                let place = competing.iter().position(|(other, _)| *other == skill);
                // Ranks beyond the candidates by score are unknown.
                let rank = place.filter(|at| has_text && *at < CANDIDATES_MAX).map(|at| at + 1);
                let text = has_text.then(|| rival_of(skill));
                self.weigh_one(&query, candidate, rank, text, fired, context.as_ref())
            })
            .collect();
        let place_of_hint = |one: &Weighed| {
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
    fn weigh_one(
        &self,
        query: &Query,
        candidate: Candidate,
        rank: Option<usize>,
        text: Option<Option<f32>>,
        (pro, against): (Vec<Evidence>, Vec<Evidence>),
        context: Option<&Context<'_>>,
    ) -> Weighed {
        let card = &self.ready.cards[candidate.skill];
        let index = &self.ready.index;
        let own_words = if self.settings.stages.has(Stage::Negatives) {
            contra::find(query, &candidate, index)
        } else {
            None
        };
        let own_share = own_words.as_ref().map_or(0.0, |(share, _)| *share);
        let fit = Fit::new(&candidate, text.flatten(), own_share);
        let by_text = if text.is_some() { calibrate::probability(&fit) } else { 0.0 };
        let by_triggers = combine_declared(pro.iter().map(|found| found.strength));
        let is_named = pro.iter().any(|found| matches!(found.reason, Reason::Hint { .. }));
        let strategy = match () {
            () if is_named => Strategy::Hint,
            () if by_triggers > 0.0 => Strategy::Trigger,
            () => Strategy::Match,
        };
        let strengths: Vec<(Stage, f32)> =
            pro.iter().map(|found| (found.reason.stage(), found.strength)).collect();
        let mut reasons: Vec<Reason> = pro.into_iter().map(|found| found.reason).collect();
        let text_at = reasons.len();
        let mut score = combine([by_triggers, by_text]);
        let mut boost = 0.0;
        if let Some(context) = context.filter(|_| score >= context::FIT_MIN && !is_named) {
            let agent = card.agent.as_deref();
            for (more, reason) in context.find(candidate.skill, &card.id, agent, index) {
                boost += more;
                reasons.push(reason);
            }
            score = (score + boost).min(1.0);
        }
        let mut not: Vec<(f32, Reason)> =
            against.into_iter().map(|found| (found.strength, found.reason)).collect();
        not.extend(own_words);
        let against = combine(not.iter().map(|(strength, _)| *strength));
        reasons.extend(not.into_iter().map(|(_, reason)| reason));
        // A skill that the task names is picked whatever speaks against it.
        if !is_named {
            score *= 1.0 - against;
        }
        Weighed {
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
    fn all_reasons(&self, query: &Query, one: &Weighed) -> Vec<Reason> {
        let (before, after) = one.reasons.split_at(one.text_at);
        [before, &self.reasons(query, &one.candidate), after].concat()
    }

    /// Returns the reasons given by the skill's text: its distinctive words, and meaning.
    fn reasons(&self, query: &Query, candidate: &Candidate) -> Vec<Reason> {
        const WORDS_MAX: usize = 5;
        let mut hits: Vec<_> =
            query.terms.iter().zip(&candidate.hits).filter(|(_, hit)| hit.score > 0.0).collect();
        hits.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
        let mut reasons: Vec<Reason> = hits
            .iter()
            .take(WORDS_MAX)
            .map(|(term, hit)| {
                let stem = self.ready.index.terms().get(hit.place);
                Reason::Word {
                    word: term.word.clone(),
                    as_word: (stem != term.stem && stem != term.word).then(|| stem.to_owned()),
                    fields: fields(hit),
                    weight: round(hit.score / candidate.words),
                }
            })
            .collect();
        if candidate.closeness >= 0.3 && self.settings.stages.has(Stage::Meaning) {
            reasons.push(Reason::Meaning { closeness: round(candidate.closeness) });
        }
        let sentence = query.sentences.get(candidate.sentence);
        if let Some(sentence) = sentence.filter(|_| candidate.vote >= fusion::VOTE_THAT_COUNTS) {
            reasons.push(Reason::Sentence { sentence: sentence.text.clone() });
        }
        reasons
    }

    /// Returns the reason why a skill is not picked after `picked` others, or `None` if it is.
    fn lacks(&self, one: &Weighed, picked: usize) -> Option<Lack> {
        let card = &self.ready.cards[one.skill];
        if one.strategy == Strategy::Hint {
            return None;
        }
        let threshold = self.threshold(card);
        match () {
            () if one.score < threshold => Some(Lack::Score { threshold }),
            () if !self.settings.enabled => Some(Lack::Enabled),
            () if !card.is_offered => Some(Lack::Name),
            () if picked >= self.settings.max_skills => {
                Some(Lack::Room { max_skills: self.settings.max_skills })
            }
            () => None,
        }
    }

    /// Returns the threshold of a skill, which may raise that of the settings but not lower it.
    fn threshold(&self, card: &Card) -> f32 {
        // NaN as a threshold is never reached.
        let asked = self.settings.threshold;
        if asked.is_nan() { f32::INFINITY } else { asked.max(card.confidence) }
    }

    fn pick(&self, query: &Query, one: Weighed) -> Pick {
        Pick {
            name: self.id(one.skill),
            score: round(one.score),
            strategy: one.strategy,
            reasons: self.all_reasons(query, &one),
        }
    }

    fn near_miss(&self, query: &Query, one: Weighed, lacked: Lack) -> NearMiss {
        NearMiss {
            name: self.id(one.skill),
            score: round(one.score),
            lacked,
            missing: self.missing(query, &one.candidate),
            reasons: self.all_reasons(query, &one),
        }
    }

    /// Inserts the dependencies of picks right after them, transitively.
    ///
    /// A skill that may only be used if it is named is added only as a dependency of one that was named.
    fn add_needs(&self, selection: &mut Selection, places: &[usize]) {
        let cards = &self.ready.cards;
        let mut taken: BTreeSet<usize> = places.iter().copied().collect();
        let mut added = 0;
        let mut picks = Vec::new();
        let mut left_out = Vec::new();
        for (pick, place) in std::mem::take(&mut selection.picks).into_iter().zip(places) {
            let (score, was_named) = (pick.score, pick.strategy == Strategy::Hint);
            picks.push(pick);
            let needs_of = |by: usize| cards[by].needs.iter().rev().map(move |need| (*need, by));
            // A stack in reverse order, so that dependencies come depth-first in their declared order.
            let mut waiting: Vec<(usize, usize)> = needs_of(*place).collect();
            while let Some((need, by)) = waiting.pop() {
                if added == NEEDS_MAX || !taken.insert(need) {
                    continue;
                }
                let reasons = vec![Reason::Need { by: self.id(by) }];
                let name = self.id(need);
                if !was_named && !cards[need].is_offered {
                    let (lacked, missing) = (Lack::Name, Vec::new());
                    left_out.push(NearMiss { name, score, lacked, missing, reasons });
                    continue;
                }
                picks.push(Pick { name, score, strategy: Strategy::Need, reasons });
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
    fn missing(&self, query: &Query, candidate: &Candidate) -> Vec<String> {
        const WORDS_MAX: usize = 4;
        if !self.settings.stages.has(Stage::Words) {
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

fn fields(hit: &lexical::Hit) -> Vec<Field> {
    let all = [
        (hit.head.in_strong(), Field::Name),
        (hit.head.in_plain(), Field::Description),
        (hit.body.in_strong(), Field::Headings),
        (hit.body.in_plain(), Field::Body),
    ];
    all.into_iter().filter(|(is_in, _)| *is_in).map(|(_, field)| field).collect()
}

/// Rounds to four digits, so that output is readable and equal on every machine.
fn round(number: f32) -> f32 {
    (number * 10_000.0).round() / 10_000.0
}
