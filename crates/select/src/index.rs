//! The inverted index: for every stem, in which skills it stands and how much it says about each.
//!
//! A skill has two halves. Its *head* is name and description, what its author wants it to be found by; its
//! *body* is headings and instructions. For each half a stem's weight in a skill is the saturated,
//! length-normalised frequency of BM25, worked out once and kept in six bits, beside two bits that say in
//! which fields it stands. Document frequencies come in when a task is scored, so that adding a skill changes
//! nothing about the others.

use repertoire_skill::skill::Digest;

mod build;
mod pairs;
mod postings;

pub(crate) use pairs::{Pair, StemHash};
use postings::Postings;
pub(crate) use postings::{Posting, Weight, levels};

use crate::strings::Strings;
use crate::vectors::{Vector, dots, dots_at};

/// Everything about a catalog that does not depend on the task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    digests: Vec<Digest>,
    /// Words in each field of each skill, and what is usual in this catalog.
    lengths: Vec<build::Lengths>,
    usual: build::Lengths,
    terms: Strings,
    postings: Postings,
    /// Stems of passages that speak against a skill.
    contra: Ragged<u32>,
    /// Filters of the pairs of words that stand side by side.
    pairs: Ragged<u8>,
    dimensions: usize,
    vectors: Vec<i8>,
    scales: Vec<f32>,
}

/// Lists of different lengths, one after the other.
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
    /// How many skills are indexed.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Bytes of memory, all in all.
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

    /// The stems, sorted.
    pub fn terms(&self) -> &Strings {
        &self.terms
    }

    /// How many skills have a stem anywhere, and how many have it in name or description.
    pub fn frequencies(&self, term: usize) -> [u32; 2] {
        self.postings.frequencies.get(term).copied().unwrap_or_default()
    }

    /// Calls `found` with every skill that has a stem, in order.
    #[inline]
    pub(crate) fn each_posting(&self, term: usize, found: impl FnMut(Posting)) {
        self.postings.each(term, found);
    }

    /// The stems of passages that say what a skill is not for, as places in [`Index::terms`].
    pub fn contra(&self, skill: usize) -> &[u32] {
        self.contra.get(skill)
    }

    fn pairs(&self, skill: usize) -> &[u8] {
        self.pairs.get(skill)
    }

    /// Whether two stems stand side by side in a skill.
    pub(crate) fn has_pair(&self, skill: usize, pair: Pair) -> bool {
        pairs::has(self.pairs(skill), pair)
    }

    fn vector(&self, skill: usize) -> &[i8] {
        let start = skill * self.dimensions;
        self.vectors.get(start..start + self.dimensions).unwrap_or_default()
    }

    /// Adds, to a number a skill, its closeness to a text times a factor.
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

    /// The closeness of a text to one skill, -1 to 1.
    pub fn closeness(&self, skill: usize, query: &Vector) -> f32 {
        self.closeness_of(&[skill as u32], query).first().copied().unwrap_or(0.0)
    }

    /// The closeness of a text to some skills.
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
