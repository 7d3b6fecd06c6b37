//! `cargo xtask eval DIR`: measures selection on folders of labelled queries, and compares it with other methods.
//!
//! Every folder in `DIR` with `corpus.jsonl.gz` (`id`, `name`, `description`, `body`) and `queries.jsonl.gz` (`id`,
//! `text`, `rel` with the relevant ids and their grades, `neg_of` for a query that must not pick a skill) is a set.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use camino::{Utf8Path, Utf8PathBuf};
use flate2::read::GzDecoder;
use repertoire_select::eval::metrics::{self, GoldSkills};
use repertoire_select::{
    SelectionModel, SelectionSettings, SelectionStage, SkillDocument, SkillSelector, StageSet, Task,
};
use repertoire_text::fs;
use serde::Deserialize;
use serde::de::DeserializeOwned;

mod baselines;
mod unrelated;

use baselines::{BaselineRanker, ItemFields};

const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A skill that can be selected.
#[derive(Deserialize)]
struct EvalItem {
    id: String,
    name: String,
    description: String,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct EvalQuery {
    text: String,
    rel: GoldSkills,
    neg_of: Option<String>,
}

struct EvalSet {
    name: String,
    items: Vec<EvalItem>,
    queries: Vec<EvalQuery>,
}

/// The scores of a method on a set.
#[derive(Clone, Copy, Default)]
struct EvalScores {
    ndcg: f64,
    recall: f64,
}

/// Measures every set.
pub(crate) fn run(dir: &Utf8Path, dump: Option<&Utf8Path>) -> Result<String> {
    let sets = read_sets(dir)?;
    let mut rows: BTreeMap<usize, (String, Vec<EvalScores>)> = BTreeMap::new();
    let mut silence = String::new();
    let mut speed = String::new();
    for set in &sets {
        let measured = set.measure_methods()?;
        for (at, (method, reached)) in measured.methods.into_iter().enumerate() {
            rows.entry(at).or_insert((method, Vec::new())).1.push(reached);
        }
        silence += &measured.silence;
        speed += &measured.speed;
        if let Some(dump) = dump {
            fs::write_atomic(&dump.join(format!("{}.tsv", set.name)), set.dump_fits().as_bytes())?;
        }
    }
    let mut out = String::from("nDCG@5 / recall@1\n\n| method |");
    sets.iter().for_each(|set| out += &format!(" {} |", set.name));
    out += " mean |\n|---|";
    out += &"---|".repeat(sets.len() + 1);
    out.push('\n');
    for (method, reached) in rows.values() {
        out += &format!("| {method} |");
        let mean =
            |of: fn(&EvalScores) -> f64| reached.iter().map(of).sum::<f64>() / sets.len() as f64;
        let all = EvalScores { ndcg: mean(|one| one.ndcg), recall: mean(|one| one.recall) };
        for one in reached.iter().chain([&all]) {
            out += &format!(" {:.3} / {:.3} |", one.ndcg, one.recall);
        }
        out.push('\n');
    }
    out += "\nPicks under the default settings\n\n";
    out += "| set | right skill picked | forbidden skill picked | nothing picked for unrelated sentences | picks that are right |\n|---|---|---|---|---|\n";
    out += &silence;
    out += "\n| set | skills | index | built in | p50 of a task |\n|---|---|---|---|---|\n";
    out += &speed;
    Ok(out)
}

fn read_sets(dir: &Utf8Path) -> Result<Vec<EvalSet>> {
    let mut folders: Vec<Utf8PathBuf> = Vec::new();
    for entry in fs::list_entries(dir).with_context(|| format!("cannot read {dir}"))? {
        let Ok(name) = entry?.name.into_string() else { continue };
        if dir.join(&name).join("queries.jsonl.gz").is_file() {
            folders.push(dir.join(name));
        }
    }
    folders.sort();
    if folders.is_empty() {
        bail!("no folder in {dir} has a queries.jsonl.gz");
    }
    folders.iter().map(|folder| read_set(folder)).collect()
}

fn read_set(folder: &Utf8Path) -> Result<EvalSet> {
    Ok(EvalSet {
        name: folder.file_name().unwrap_or_default().to_owned(),
        items: read_lines(folder, "corpus.jsonl.gz")?,
        queries: read_lines(folder, "queries.jsonl.gz")?,
    })
}

fn read_lines<T: DeserializeOwned>(dir: &Utf8Path, name: &str) -> Result<Vec<T>> {
    let packed = fs::read_bytes_beneath(dir, name.into(), FILE_BYTES_MAX)
        .with_context(|| format!("cannot read {dir}/{name}"))?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let line = |(at, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("{dir}/{name}, line {}", at + 1))
    };
    text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()).map(line).collect()
}

struct EvalResult {
    methods: Vec<(String, EvalScores)>,
    silence: String,
    speed: String,
}

impl EvalSet {
    fn build_selector(&self) -> SkillSelector {
        let documents: Vec<SkillDocument<'_>> = self
            .items
            .iter()
            .map(|item| SkillDocument::new(&item.id, &item.name, &item.description, &item.body))
            .collect();
        SkillSelector::new(
            &documents,
            SelectionModel::embedded(),
            SelectionSettings::default(),
            None,
        )
    }

    fn measure_methods(&self) -> Result<EvalResult> {
        let start = Instant::now();
        let selector = self.build_selector();
        let built = start.elapsed();
        let stages = |only: &[SelectionStage]| {
            let stages = StageSet::only(only.iter().copied());
            selector.with_settings(SelectionSettings { stages, ..SelectionSettings::default() })
        };
        let both = stages(&[SelectionStage::Words, SelectionStage::Meaning]);
        let mut methods = Vec::new();
        for (name, baseline) in baselines::all_baselines(&self.items) {
            let reached = self.score_method(|text| self.ranked_ids(&*baseline, text));
            methods.push((name.to_owned(), reached));
        }
        let words = stages(&[SelectionStage::Words]);
        methods.push(("ours, words".to_owned(), self.score_method(|text| best_five(&words, text))));
        let meaning = stages(&[SelectionStage::Meaning]);
        methods.push((
            "ours, meaning".to_owned(),
            self.score_method(|text| best_five(&meaning, text)),
        ));
        methods.push(("**ours**".to_owned(), self.score_method(|text| best_five(&both, text))));

        let mut times: Vec<Duration> = Vec::new();
        for query in self.queries.iter().take(500) {
            let start = Instant::now();
            std::hint::black_box(selector.select(&Task::new(query.text.as_str())));
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let speed = format!(
            "| {} | {} | {} B a skill | {:.0} ms | {:.0} µs |\n",
            self.name,
            self.items.len(),
            selector.index().memory_bytes() / self.items.len().max(1),
            built.as_secs_f64() * 1e3,
            times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6),
        );
        Ok(EvalResult { methods, silence: self.silence_row(&selector), speed })
    }

    fn score_method(&self, rank: impl Fn(&str) -> Vec<String>) -> EvalScores {
        let mut sum = EvalScores::default();
        let positive: Vec<&EvalQuery> = self.queries.iter().filter(|q| !q.rel.is_empty()).collect();
        for query in &positive {
            let ranked = rank(&query.text);
            let ranked: Vec<&str> = ranked.iter().map(String::as_str).collect();
            sum.ndcg += metrics::ndcg(&ranked, &query.rel, 5);
            sum.recall += metrics::recall_at(&ranked, &query.rel, 1);
        }
        let count = positive.len().max(1) as f64;
        EvalScores { ndcg: sum.ndcg / count, recall: sum.recall / count }
    }

    fn ranked_ids(&self, ranker: &dyn BaselineRanker, text: &str) -> Vec<String> {
        ranker.rank(text, 5).into_iter().map(|at| self.items[at].id.clone()).collect()
    }

    fn silence_row(&self, selector: &SkillSelector) -> String {
        let picks = |text: &str| selector.select(&Task::new(text)).picks;
        let (mut found, mut positive, mut forbidden, mut negative) = (0, 0, 0, 0);
        let (mut right, mut picked) = (0, 0);
        for query in &self.queries {
            let names: Vec<String> = picks(&query.text).into_iter().map(|pick| pick.name).collect();
            if let Some(not) = &query.neg_of {
                negative += 1;
                forbidden += usize::from(names.contains(not));
            } else if !query.rel.is_empty() {
                positive += 1;
                let hits = names.iter().filter(|name| query.rel.contains_key(*name)).count();
                found += usize::from(hits > 0);
                right += hits;
                picked += names.len();
            }
        }
        let sentences = unrelated::list_sentences();
        let silent = sentences.iter().filter(|text| picks(text).is_empty()).count();
        format!(
            "| {} | {} | {} | {} | {} |\n",
            self.name,
            format_percentage(found, positive),
            format_percentage(forbidden, negative),
            format_percentage(silent, sentences.len()),
            format_percentage(right, picked),
        )
    }

    /// Data for fitting a calibration: the fit of the best five skills for every query, and whether each is right (1),
    /// forbidden (-1) or neither (0).
    fn dump_fits(&self) -> String {
        let selector = self.build_selector();
        let mut out = String::new();
        for (number, query) in self.queries.iter().enumerate() {
            for (rank, one) in
                selector.rank_by_fit(&Task::new(query.text.as_str()), 5).into_iter().enumerate()
            {
                let label = match () {
                    () if query.rel.contains_key(&one.name) => 1,
                    () if query.neg_of.as_ref() == Some(&one.name) => -1,
                    () => 0,
                };
                let (gold, negative) = (query.rel.len(), u8::from(query.neg_of.is_some()));
                let fit = one.fit;
                out += &format!(
                    "{}\t{number}\t{rank}\t{label}\t{gold}\t{negative}\t{}\t{}\t{}\t{}\n",
                    self.name, fit.closeness, fit.score, fit.margin, fit.against
                );
            }
        }
        out
    }
}

fn format_percentage(part: usize, whole: usize) -> String {
    match whole {
        0 => "—".to_owned(),
        _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Splits an item into the fields that the baselines use.
fn item_fields(item: &EvalItem) -> ItemFields<'_> {
    let end = item.description.find(". ").map_or(item.description.len(), |at| at + 1);
    ItemFields {
        name: &item.name,
        first_sentence: &item.description[..end],
        description: &item.description,
        body: &item.body,
    }
}

fn best_five(selector: &SkillSelector, text: &str) -> Vec<String> {
    let ranked = selector.rank_by_fit(&Task::new(text), 5);
    ranked.into_iter().map(|one| one.name).collect()
}
