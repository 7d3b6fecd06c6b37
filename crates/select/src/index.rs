//! The inverted index: the skills that contain each stem, with the stem's weight in each of them.
//!
//! A skill has two halves. The *head* is its name and description, written by the author so that the skill
//! can be found; the *body* is its headings and instructions. For each half, a stem's weight is the
//! saturated, length-normalised term frequency of BM25, computed once and quantised to six bits, next to two
//! bits for the fields that contain it. Document frequencies are applied when a task is scored, so adding a
//! skill changes nothing about the others.

use repertoire_skill::skill::Digest;

mod build;
mod cache;
mod pairs;
mod postings;

pub use cache::CacheError;
pub(crate) use pairs::{Pair, StemHash};
use postings::Postings;
pub(crate) use postings::{Posting, Weight, levels};

use crate::strings::Strings;
use crate::vectors::{Vector, dots, dots_at};

/// Everything about a catalog that does not depend on the task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// The fingerprint of the vectors that the index was built with.
    fingerprint: u64,
    digests: Vec<Digest>,
    /// The number of words in each field of each skill, and the average over the catalog.
    lengths: Vec<build::Lengths>,
    usual: build::Lengths,
    terms: Strings,
    postings: Postings,
    /// Stems of the passages that say what a skill is not for.
    contra: Ragged<u32>,
    /// One filter per skill of the pairs of adjacent words.
    pairs: Ragged<u8>,
    dimensions: usize,
    vectors: Vec<i8>,
    scales: Vec<f32>,
}

/// Lists of different lengths, stored one after the other.
#[derive(Clone, Debug, PartialEq)]
struct Ragged<T> {
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Ragged<T> {
    fn default() -> Self {
        Ragged { ends: Vec::new(), items: Vec::new() }
    }
}

impl<T: Copy> Ragged<T> {
    fn push(&mut self, list: &[T]) {
        self.items.extend_from_slice(list);
        self.ends.push(self.items.len() as u32);
    }

    fn get(&self, at: usize) -> &[T] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |e| *e);
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.items.get(start as usize..end as usize).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        4 * self.ends.len() + size_of_val(self.items.as_slice())
    }
}

impl Index {
    /// The number of indexed skills.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// The digests of the skills' texts, in index order.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Returns true if no skill is indexed.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// The memory that the index takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.digests.as_slice())
            + size_of_val(self.lengths.as_slice())
            + self.terms.bytes()
            + self.postings.bytes()
            + self.contra.bytes()
            + self.pairs.bytes()
            + self.vectors.len()
            + size_of_val(self.scales.as_slice())
    }

    /// The stems, in sorted order.
    pub fn terms(&self) -> &Strings {
        &self.terms
    }

    /// Returns the number of skills that contain a stem anywhere, and in name or description.
    pub fn frequencies(&self, term: usize) -> [u32; 2] {
        self.postings.frequencies.get(term).copied().unwrap_or_default()
    }

    /// Calls `found` for every skill that contains a stem, in index order.
    #[inline]
    pub(crate) fn each_posting(&self, term: usize, found: impl FnMut(Posting)) {
        self.postings.each(term, found);
    }

    /// The stems of the passages that say what a skill is not for, as positions in [`Index::terms`].
    pub fn contra(&self, skill: usize) -> &[u32] {
        self.contra.get(skill)
    }

    fn pairs(&self, skill: usize) -> &[u8] {
        self.pairs.get(skill)
    }

    /// Returns true if two stems stand side by side in a skill. The filter may give false positives.
    pub(crate) fn has_pair(&self, skill: usize, pair: Pair) -> bool {
        pairs::has(self.pairs(skill), pair)
    }

    fn vector(&self, skill: usize) -> &[i8] {
        let start = skill * self.dimensions;
        self.vectors.get(start..start + self.dimensions).unwrap_or_default()
    }

    /// Adds to each skill's score its closeness to a text, times a factor.
    pub(crate) fn add_closeness(&self, query: &Vector, factor: f32, scores: &mut [f32]) {
        if self.dimensions == 0 || query.bytes.len() != self.dimensions {
            return;
        }
        dots(&self.vectors, &query.bytes, |skill, dot| {
            if let (Some(score), Some(scale)) = (scores.get_mut(skill), self.scales.get(skill)) {
                *score += factor * (dot as f32 * (scale * query.scale));
            }
        });
    }

    /// Returns the cosine similarity of a text and one skill, -1 to 1.
    pub fn closeness(&self, skill: usize, query: &Vector) -> f32 {
        self.closeness_of(&[skill as u32], query).first().copied().unwrap_or(0.0)
    }

    /// Returns the cosine similarity of a text and each of the given skills.
    pub(crate) fn closeness_of(&self, skills: &[u32], query: &Vector) -> Vec<f32> {
        let mut closeness = vec![0.0; skills.len()];
        if query.bytes.len() == self.dimensions {
            dots_at(&self.vectors, skills, &query.bytes, |at, dot| {
                let scale = self.scales.get(skills[at] as usize).copied().unwrap_or(0.0);
                closeness[at] = dot as f32 * (scale * query.scale);
            });
        }
        closeness
    }
}
