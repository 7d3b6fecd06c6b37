//! A task's text as the index sees it: stems with what they are worth, pairs, sentences and a direction.

use crate::background::{Background, Part};
use crate::expand::expand;
use crate::index::{Index, Pair, StemHash};
use crate::limits::{SENTENCES_MAX, TASK_BYTES_MAX, TASK_TERMS_MAX};
use crate::vectors::{Vector, Vectors, quantise};
use crate::words::{Language, each_word_joined};

/// How many skills of the background stand beside a catalog.
const BACKGROUND_SKILLS: f32 = 500.0;
/// The share of a stem that the background has not: less than one skill of the many.
const UNSEEN: f32 = 0.5 / 67_745.0;

/// A word of the task.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// As the user wrote it, in lower case.
    pub(crate) word: String,
    pub(crate) stem: String,
    /// Places in the index's stems that it stands for.
    pub(crate) places: Vec<Place>,
    /// How telling it is in a name or description.
    pub(crate) head: f32,
    /// How telling it is anywhere in a skill.
    pub(crate) whole: f32,
}

/// A stem of the index that a word of the task stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) at: usize,
    /// How like the word it is: 1 for its very stem.
    pub(crate) likeness: f32,
}

/// Two terms side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairOf {
    pub(crate) pair: Pair,
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) worth: f32,
}

/// Some of the task's terms, in the order of the text: the whole of it, or a sentence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// Places in [`Query::terms`].
    pub(crate) terms: Vec<usize>,
    /// Terms that stand side by side.
    pub(crate) pairs: Vec<PairOf>,
    pub(crate) vector: Vector,
    /// How it begins, to be shown.
    pub(crate) text: String,
}

/// A task's text.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) terms: Vec<Term>,
    pub(crate) whole: Span,
    /// Empty where the text is one sentence.
    pub(crate) sentences: Vec<Span>,
}

impl Query {
    pub(crate) fn new(
        text: &str,
        index: &Index,
        background: &Background,
        vectors: &Vectors,
    ) -> Self {
        let text = &text[..text.floor_char_boundary(TASK_BYTES_MAX)];
        let language = Language::of(text);
        let mut query = Query { terms: Vec::new(), whole: Span::default(), sentences: Vec::new() };
        // The sum of a text is that of its sentences: each is read once.
        let mut sum = vectors.empty_sum();
        let mut sums = Vec::new();
        for sentence in sentences(text) {
            let mut part = vectors.empty_sum();
            vectors.add(sentence, &mut part);
            sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
            let terms = query.add(sentence, language, index, background);
            if terms.is_empty() {
                continue;
            }
            query.whole.terms.extend_from_slice(&terms);
            let pairs = query.pairs(&terms);
            query.whole.pairs.extend_from_slice(&pairs);
            if query.sentences.len() < SENTENCES_MAX {
                let (vector, text) = (Vector::default(), beginning(sentence));
                query.sentences.push(Span { terms, pairs, vector, text });
                sums.push(part);
            }
        }
        let Query { whole, sentences, .. } = &mut query;
        if sentences.len() == 1 {
            sentences.clear();
        }
        whole.vector = quantise(&sum);
        for (sentence, sum) in sentences.iter_mut().zip(&sums) {
            sentence.vector = quantise(sum);
        }
        for span in std::iter::once(whole).chain(sentences) {
            span.terms.sort_unstable();
            span.terms.dedup();
            span.pairs.sort_by_key(|pair| (pair.first, pair.second));
            span.pairs.dedup_by_key(|pair| (pair.first, pair.second));
        }
        query
    }

    /// Adds the terms of a sentence, and returns them in its order.
    fn add(
        &mut self,
        sentence: &str,
        language: Language,
        index: &Index,
        background: &Background,
    ) -> Vec<usize> {
        let mut order = Vec::new();
        // How much there was before each word, so that the parts of one can be taken back.
        let mut before: Vec<(usize, usize)> = Vec::new();
        each_word_joined(sentence, |word, joins| {
            let stem = language.stem(word);
            if joins > 0 {
                // A whole that skills know goes before its parts: `GitHub` is not about `git` and `hub`.
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
                self.terms.push(Term::new(word, stem, index, background));
                Some(self.terms.len() - 1)
            });
            order.extend(at);
        });
        order
    }

    fn pairs(&self, terms: &[usize]) -> Vec<PairOf> {
        let pairs = terms.windows(2).map(|two| {
            let [one, other] = [&self.terms[two[0]], &self.terms[two[1]]];
            PairOf {
                pair: Pair::new(StemHash::new(&one.stem), StemHash::new(&other.stem)),
                first: two[0],
                second: two[1],
                worth: (one.head * other.head).sqrt(),
            }
        });
        pairs.collect()
    }
}

impl Term {
    fn new(word: &str, stem: String, index: &Index, background: &Background) -> Self {
        let places = match index.terms().find(&stem) {
            Some(at) => vec![Place { at, likeness: 1.0 }],
            None => expand(word, &stem, index, background),
        };
        let mut frequencies = [0; 2];
        for place in &places {
            let other = index.frequencies(place.at);
            frequencies = std::array::from_fn(|at| frequencies[at].max(other[at]));
        }
        let [anywhere, in_head] = frequencies;
        let in_background = background.find(&stem);
        let worth = |frequency: u32, part: Part| {
            let share = in_background.map_or(0.0, |at| background.share_at(at, part)).max(UNSEEN);
            let frequency = frequency as f32 + BACKGROUND_SKILLS * share;
            let skills = index.len() as f32 + BACKGROUND_SKILLS;
            libm::logf(1.0 + (skills - frequency + 0.5) / (frequency + 0.5))
        };
        let (head, whole) = (worth(in_head, Part::Head), worth(anywhere, Part::Whole));
        Term { word: word.to_owned(), stem, places, head, whole }
    }
}

/// A sentence as far as it is shown.
fn beginning(sentence: &str) -> String {
    const CHARS_MAX: usize = 50;
    let sentence = sentence.trim();
    match sentence.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", sentence[..end].trim_end()),
        None => sentence.to_owned(),
    }
}

/// The sentences of a text, roughly: ends of lines, and marks that end a sentence before a blank.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
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
        let all: Vec<&str> = sentences("Use v1.2 now. Then stop!\nDone? 終。次").collect();
        assert_eq!(all, ["Use v1.2 now.", " Then stop!", "\n", "Done?", " 終。", "次"]);
    }
}
