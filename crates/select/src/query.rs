//! A task's text prepared for scoring: weighted stems, pairs, sentences and vectors.

use crate::background::{BackgroundFrequencies, FrequencyPart};
use crate::expand::expand_word;
use crate::index::{SkillIndex, StemHash, StemPair};
use crate::limits::{SENTENCES_MAX, TASK_BYTES_MAX, TASK_TERMS_MAX};
use crate::tokenizer::{TextLanguage, each_word_joined};
use crate::vectors::{TextVector, WordVectors, quantise_sum};

/// The number of background skills that are added to a catalog's own when document frequencies are computed.
const BACKGROUND_SKILLS: f32 = 500.0;
/// The fraction for a stem that is not in the background: half a skill of its 67,745.
const UNSEEN: f32 = 0.5 / 67_745.0;

/// A word of the task.
#[derive(Clone, Debug)]
pub(crate) struct QueryTerm {
    /// The word as the user wrote it, in lower case.
    pub(crate) word: String,
    pub(crate) stem: String,
    /// The stems of the index that the word matches.
    pub(crate) places: Vec<StemMatch>,
    /// The inverse document frequency of the word in names and descriptions.
    pub(crate) head: f32,
    /// The inverse document frequency of the word anywhere in a skill.
    pub(crate) whole: f32,
}

/// A stem of the index that matches a word of the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StemMatch {
    pub(crate) at: usize,
    /// The similarity to the word: 1 for its own stem.
    pub(crate) likeness: f32,
}

/// Two adjacent terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TermPair {
    pub(crate) pair: StemPair,
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) worth: f32,
}

/// The terms of the whole text or of one sentence, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuerySpan {
    /// Positions in [`Query::terms`].
    pub(crate) terms: Vec<usize>,
    /// Pairs of adjacent terms.
    pub(crate) pairs: Vec<TermPair>,
    pub(crate) vector: TextVector,
    /// The beginning of the text, for display.
    pub(crate) text: String,
}

/// The analysed text of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskQuery {
    pub(crate) terms: Vec<QueryTerm>,
    pub(crate) whole: QuerySpan,
    /// Empty if the text is a single sentence.
    pub(crate) sentences: Vec<QuerySpan>,
}

impl TaskQuery {
    pub(crate) fn new(
        text: &str,
        index: &SkillIndex,
        background: &BackgroundFrequencies,
        vectors: &WordVectors,
    ) -> Self {
        let text = &text[..text.floor_char_boundary(TASK_BYTES_MAX)];
        let language = TextLanguage::detect_language(text);
        let mut query =
            TaskQuery { terms: Vec::new(), whole: QuerySpan::default(), sentences: Vec::new() };
        // The vector sum of a text is that of its sentences, so each is read only once.
        let mut sum = vectors.empty_sum();
        let mut sums = Vec::new();
        for sentence in split_sentences(text) {
            let mut part = vectors.empty_sum();
            vectors.add_text(sentence, &mut part);
            sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
            let terms = query.add_sentence(sentence, language, index, background);
            if terms.is_empty() {
                continue;
            }
            query.whole.terms.extend_from_slice(&terms);
            let pairs = query.adjacent_pairs(&terms);
            query.whole.pairs.extend_from_slice(&pairs);
            if query.sentences.len() < SENTENCES_MAX {
                let (vector, text) = (TextVector::default(), shorten_sentence(sentence));
                query.sentences.push(QuerySpan { terms, pairs, vector, text });
                sums.push(part);
            }
        }
        let TaskQuery { whole, sentences, .. } = &mut query;
        if sentences.len() == 1 {
            sentences.clear();
        }
        whole.vector = quantise_sum(&sum);
        for (sentence, sum) in sentences.iter_mut().zip(&sums) {
            sentence.vector = quantise_sum(sum);
        }
        for span in std::iter::once(whole).chain(sentences) {
            span.terms.sort_unstable();
            span.terms.dedup();
            span.pairs.sort_by_key(|pair| (pair.first, pair.second));
            span.pairs.dedup_by_key(|pair| (pair.first, pair.second));
        }
        query
    }

    /// Adds the terms of a sentence, and returns their positions in its order.
    fn add_sentence(
        &mut self,
        sentence: &str,
        language: TextLanguage,
        index: &SkillIndex,
        background: &BackgroundFrequencies,
    ) -> Vec<usize> {
        let mut order = Vec::new();
        // The lengths of `order` and `terms` before each word, to undo the parts of a joined word.
        let mut before: Vec<(usize, usize)> = Vec::new();
        each_word_joined(sentence, |word, joins| {
            let stem = language.stem(word);
            if joins > 0 {
                // If a skill contains the joined word, it replaces its parts: `GitHub` is not about `git` and
                // `hub`.
                let start = before.len().checked_sub(joins).and_then(|at| before.get(at));
                let (Some(_), Some(start)) = (index.terms().find(&stem), start) else { return };
                order.truncate(start.0);
                self.terms.truncate(start.1);
            } else {
                before.push((order.len(), self.terms.len()));
            }
            if language.is_stop_word(word) {
                return;
            }
            let known = self.terms.iter().position(|term| term.stem == stem);
            let at = known.or_else(|| {
                if self.terms.len() == TASK_TERMS_MAX {
                    return None;
                }
                self.terms.push(QueryTerm::new(word, stem, index, background));
                Some(self.terms.len() - 1)
            });
            order.extend(at);
        });
        order
    }

    fn adjacent_pairs(&self, terms: &[usize]) -> Vec<TermPair> {
        let pairs = terms.windows(2).map(|two| {
            let [one, other] = [&self.terms[two[0]], &self.terms[two[1]]];
            TermPair {
                pair: StemPair::new(StemHash::new(&one.stem), StemHash::new(&other.stem)),
                first: two[0],
                second: two[1],
                worth: (one.head * other.head).sqrt(),
            }
        });
        pairs.collect()
    }
}

impl QueryTerm {
    fn new(
        word: &str,
        stem: String,
        index: &SkillIndex,
        background: &BackgroundFrequencies,
    ) -> Self {
        let places = match index.terms().find(&stem) {
            Some(at) => vec![StemMatch { at, likeness: 1.0 }],
            None => expand_word(word, &stem, index, background),
        };
        let mut frequencies = [0; 2];
        for place in &places {
            let other = index.frequencies(place.at);
            frequencies = std::array::from_fn(|at| frequencies[at].max(other[at]));
        }
        let [anywhere, in_head] = frequencies;
        let in_background = background.find_stem(&stem);
        let worth = |frequency: u32, part: FrequencyPart| {
            let share = in_background.map_or(0.0, |at| background.share_at(at, part)).max(UNSEEN);
            let frequency = frequency as f32 + BACKGROUND_SKILLS * share;
            let skills = index.len() as f32 + BACKGROUND_SKILLS;
            libm::logf(1.0 + (skills - frequency + 0.5) / (frequency + 0.5))
        };
        let (head, whole) =
            (worth(in_head, FrequencyPart::Head), worth(anywhere, FrequencyPart::Whole));
        QueryTerm { word: word.to_owned(), stem, places, head, whole }
    }
}

/// Returns the beginning of a sentence, for display.
fn shorten_sentence(sentence: &str) -> String {
    const CHARS_MAX: usize = 50;
    let sentence = sentence.trim();
    match sentence.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", sentence[..end].trim_end()),
        None => sentence.to_owned(),
    }
}

/// Splits a text roughly into sentences: at newlines, and at punctuation followed by white space.
pub(crate) fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let ends = match c {
                '\n' | '。' | '！' | '？' => true,
                '.' | '!' | '?' | ';' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
                _ => false,
            };
            if ends {
                let (sentence, after) = rest.split_at(at + c.len_utf8());
                rest = after;
                return Some(sentence);
            }
        }
        Some(std::mem::take(&mut rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_people_end_them() {
        let all: Vec<&str> = split_sentences("Use v1.2 now. Then stop!\nDone? 終。次").collect();
        assert_eq!(all, ["Use v1.2 now.", " Then stop!", "\n", "Done?", " 終。", "次"]);
    }
}
