//! Baseline methods, built from their published parameters, to be measured on the same queries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use repertoire_select::words::{Language, each_word};

use super::{Item, fields};

/// A method that ranks items.
pub(super) trait Ranker {
    /// The indexes of the best items.
    fn rank(&self, text: &str, limit: usize) -> Vec<usize>;
}

/// The fields of an item.
pub(super) struct Fielded<'a> {
    pub(super) name: &'a str,
    pub(super) first_sentence: &'a str,
    pub(super) description: &'a str,
    pub(super) body: &'a str,
}

/// All baselines, with their names.
pub(super) fn all(items: &[Item]) -> Vec<(&'static str, Box<dyn Ranker>)> {
    let items: Vec<Fielded<'_>> = items.iter().map(fields).collect();
    let bm25 = |weights: &[(usize, f64)], k1: f64, is_stemmed: bool| -> Box<dyn Ranker> {
        let documents = items.iter().map(|item| weighted_fields(item, weights));
        Box::new(Bm25::new(documents.collect(), k1, is_stemmed))
    };
    vec![
        ("share of matched words (seed 000)", Box::new(Share::new(&items))),
        ("BM25, name and description", bm25(&[(0, 1.0), (2, 1.0)], 1.2, false)),
        ("fielded BM25 of codex (8/4/1)", bm25(&[(0, 8.0), (1, 4.0), (2, 1.0)], 1.2, false)),
        ("fielded BM25 with body, stemmed", bm25(&[(0, 3.0), (2, 1.5), (3, 0.5)], 1.2, true)),
    ]
}

fn weighted_fields(item: &Fielded<'_>, weights: &[(usize, f64)]) -> Vec<(String, f64)> {
    let all = [item.name, item.first_sentence, item.description, item.body];
    weights.iter().map(|(field, weight)| (all[*field].to_owned(), *weight)).collect()
}

fn words(text: &str, is_stemmed: bool) -> Vec<String> {
    let mut all = Vec::new();
    each_word(text, |word| {
        if !Language::ENGLISH.is_stop_word(word) {
            let stem = || Language::ENGLISH.stem(word);
            all.push(if is_stemmed { stem() } else { word.to_owned() });
        }
    });
    all
}

fn best(scores: Vec<f64>, limit: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).collect();
    places.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    places.truncate(limit);
    places
}

/// Scores an item by the share of its words that occur in the text.
struct Share {
    words: Vec<BTreeSet<String>>,
}

impl Share {
    fn new(items: &[Fielded<'_>]) -> Self {
        Share { words: items.iter().map(item_words).collect() }
    }
}

fn item_words(item: &Fielded<'_>) -> BTreeSet<String> {
    let mut all = words(item.name, false);
    all.extend(words(item.description, false));
    all.into_iter().collect()
}

impl Ranker for Share {
    fn rank(&self, text: &str, limit: usize) -> Vec<usize> {
        let text: BTreeSet<String> = words(text, false).into_iter().collect();
        let share = |words: &BTreeSet<String>| {
            words.intersection(&text).count() as f64 / words.len().max(1) as f64
        };
        best(self.words.iter().map(share).collect(), limit)
    }
}

/// BM25 over weighted fields with one saturation.
struct Bm25 {
    k1: f64,
    is_stemmed: bool,
    count: usize,
    /// For each word, the items that contain it, with their normalised frequency.
    lists: HashMap<String, Vec<(usize, f64)>>,
}

impl Bm25 {
    const B: f64 = 0.75;
    /// The maximum number of words of a text that are used, as in codex.
    const WORDS_MAX: usize = 64;

    fn new(documents: Vec<Vec<(String, f64)>>, k1: f64, is_stemmed: bool) -> Self {
        let cut: Vec<Vec<(Vec<String>, f64)>> = documents
            .iter()
            .map(|fields| fields.iter().map(|(text, w)| (words(text, is_stemmed), *w)).collect())
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
        Bm25 { k1, is_stemmed, count: cut.len(), lists }
    }
}

impl Ranker for Bm25 {
    fn rank(&self, text: &str, limit: usize) -> Vec<usize> {
        let mut scores = vec![0.0; self.count];
        let asked: BTreeSet<String> =
            words(text, self.is_stemmed).into_iter().take(Self::WORDS_MAX).collect();
        for word in asked {
            let Some(list) = self.lists.get(&word) else { continue };
            let (all, have) = (self.count as f64, list.len() as f64);
            let rarity = (1.0 + (all - have + 0.5) / (have + 0.5)).ln();
            for (at, frequency) in list {
                scores[*at] += rarity * frequency * (self.k1 + 1.0) / (frequency + self.k1);
            }
        }
        best(scores, limit)
    }
}
