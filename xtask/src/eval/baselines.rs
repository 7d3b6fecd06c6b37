//! Baseline methods, built from their published parameters, to be measured on the same queries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use repertoire_select::tokenizer::{TextLanguage, each_word};

use super::{EvalItem, item_fields};

/// A method that ranks items.
pub(super) trait BaselineRanker {
    /// The indexes of the best items.
    fn rank(&self, text: &str, limit: usize) -> Vec<usize>;
}

/// The fields of an item.
pub(super) struct ItemFields<'a> {
    pub(super) name: &'a str,
    pub(super) first_sentence: &'a str,
    pub(super) description: &'a str,
    pub(super) body: &'a str,
}

/// All baselines, with their names.
pub(super) fn all_baselines(items: &[EvalItem]) -> Vec<(&'static str, Box<dyn BaselineRanker>)> {
    let items: Vec<ItemFields<'_>> = items.iter().map(item_fields).collect();
    let bm25 = |weights: &[(usize, f64)], k1: f64, is_stemmed: bool| -> Box<dyn BaselineRanker> {
        let documents = items.iter().map(|item| weighted_fields(item, weights));
        Box::new(Bm25Ranker::new(documents.collect(), k1, is_stemmed))
    };
    vec![
        ("share of matched words (seed 000)", Box::new(MatchedShare::new(&items))),
        ("BM25, name and description", bm25(&[(0, 1.0), (2, 1.0)], 1.2, false)),
        ("fielded BM25 of codex (8/4/1)", bm25(&[(0, 8.0), (1, 4.0), (2, 1.0)], 1.2, false)),
        ("fielded BM25 with body, stemmed", bm25(&[(0, 3.0), (2, 1.5), (3, 0.5)], 1.2, true)),
    ]
}

fn weighted_fields(item: &ItemFields<'_>, weights: &[(usize, f64)]) -> Vec<(String, f64)> {
    let all = [item.name, item.first_sentence, item.description, item.body];
    weights.iter().map(|(field, weight)| (all[*field].to_owned(), *weight)).collect()
}

fn split_words(text: &str, is_stemmed: bool) -> Vec<String> {
    let mut all = Vec::new();
    each_word(text, |word| {
        if !TextLanguage::ENGLISH.is_stop_word(word) {
            let stem = || TextLanguage::ENGLISH.stem(word);
            all.push(if is_stemmed { stem() } else { word.to_owned() });
        }
    });
    all
}

fn best_indexes(scores: Vec<f64>, limit: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).collect();
    places.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    places.truncate(limit);
    places
}

/// Scores an item by the share of its words that occur in the text.
struct MatchedShare {
    words: Vec<BTreeSet<String>>,
}

impl MatchedShare {
    fn new(items: &[ItemFields<'_>]) -> Self {
        MatchedShare { words: items.iter().map(item_words).collect() }
    }
}

fn item_words(item: &ItemFields<'_>) -> BTreeSet<String> {
    let mut all = split_words(item.name, false);
    all.extend(split_words(item.description, false));
    all.into_iter().collect()
}

impl BaselineRanker for MatchedShare {
    fn rank(&self, text: &str, limit: usize) -> Vec<usize> {
        let text: BTreeSet<String> = split_words(text, false).into_iter().collect();
        let share = |words: &BTreeSet<String>| {
            words.intersection(&text).count() as f64 / words.len().max(1) as f64
        };
        best_indexes(self.words.iter().map(share).collect(), limit)
    }
}

/// BM25 over weighted fields with one saturation.
struct Bm25Ranker {
    k1: f64,
    is_stemmed: bool,
    count: usize,
    /// For each word, the items that contain it, with their normalised frequency.
    lists: HashMap<String, Vec<(usize, f64)>>,
}

impl Bm25Ranker {
    const B: f64 = 0.75;
    /// The maximum number of words of a text that are used, as in codex.
    const WORDS_MAX: usize = 64;

    fn new(documents: Vec<Vec<(String, f64)>>, k1: f64, is_stemmed: bool) -> Self {
        let cut: Vec<Vec<(Vec<String>, f64)>> = documents
            .iter()
            .map(|fields| {
                fields.iter().map(|(text, w)| (split_words(text, is_stemmed), *w)).collect()
            })
            .collect();
        let field_count = cut.first().map_or(0, Vec::len);
        let mean = |field: usize| {
            let sum: usize = cut.iter().map(|fields| fields[field].0.len()).sum();
            (sum as f64 / cut.len().max(1) as f64).max(1.0)
        };
        let means: Vec<f64> = (0..field_count).map(mean).collect();
        let mut lists: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        for (at, fields) in cut.iter().enumerate() {
            let mut frequencies: BTreeMap<&str, f64> = BTreeMap::new();
            for (field, (words, weight)) in fields.iter().enumerate() {
                let norm = 1.0 - Self::B + Self::B * words.len() as f64 / means[field];
                for word in words {
                    *frequencies.entry(word).or_default() += weight / norm;
                }
            }
            for (word, frequency) in frequencies {
                lists.entry(word.to_owned()).or_default().push((at, frequency));
            }
        }
        Bm25Ranker { k1, is_stemmed, count: cut.len(), lists }
    }
}

impl BaselineRanker for Bm25Ranker {
    fn rank(&self, text: &str, limit: usize) -> Vec<usize> {
        let mut scores = vec![0.0; self.count];
        let asked: BTreeSet<String> =
            split_words(text, self.is_stemmed).into_iter().take(Self::WORDS_MAX).collect();
        for word in asked {
            let Some(list) = self.lists.get(&word) else { continue };
            let (all, have) = (self.count as f64, list.len() as f64);
            let rarity = (1.0 + (all - have + 0.5) / (have + 0.5)).ln();
            for (at, frequency) in list {
                scores[*at] += rarity * frequency * (self.k1 + 1.0) / (frequency + self.k1);
            }
        }
        best_indexes(scores, limit)
    }
}
