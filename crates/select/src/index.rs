//! The inverted index: the skills that contain each stem, with the stem's weight in each of them.
//!
//! A skill has two halves. The *head* is its name and description, written by the author so that the skill
//! can be found; the *body* is its headings and instructions. For each half, a stem's weight is the
//! saturated, length-normalised term frequency of BM25, computed once and quantised to six bits, next to two
//! bits for the fields that contain it. Document frequencies are applied when a task is scored, so adding a
//! skill changes nothing about the others.

use repertoire_skill::skill::ContentDigest;

mod build;
mod cache;
mod pairs;
mod postings;

pub use cache::IndexCacheError;
pub(crate) use pairs::{StemHash, StemPair};
use postings::PostingLists;
pub(crate) use postings::{StemPosting, StemWeight, level_values};

use crate::string_table::StringTable;
use crate::vectors::{TextVector, dot_products, dot_products_at};

/// Everything about a catalog that does not depend on the task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillIndex {
    /// The fingerprint of the vectors that the index was built with.
    fingerprint: u64,
    digests: Vec<ContentDigest>,
    /// The number of words in each field of each skill, and the average over the catalog.
    lengths: Vec<build::FieldLengths>,
    usual: build::FieldLengths,
    terms: StringTable,
    postings: PostingLists,
    /// Stems of the passages that say what a skill is not for.
    contra: RaggedArray<u32>,
    /// One filter per skill of the pairs of adjacent words.
    pairs: RaggedArray<u8>,
    dimensions: usize,
    vectors: Vec<i8>,
    scales: Vec<f32>,
}

/// Lists of different lengths, stored one after the other.
#[derive(Clone, Debug, PartialEq)]
struct RaggedArray<T> {
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for RaggedArray<T> {
    fn default() -> Self {
        RaggedArray { ends: Vec::new(), items: Vec::new() }
    }
}

impl<T: Copy> RaggedArray<T> {
    fn push(&mut self, list: &[T]) {
        self.items.extend_from_slice(list);
        self.ends.push(self.items.len() as u32);
    }

    fn get(&self, at: usize) -> &[T] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |e| *e);
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.items.get(start as usize..end as usize).unwrap_or_default()
    }

    fn memory_bytes(&self) -> usize {
        4 * self.ends.len() + size_of_val(self.items.as_slice())
    }
}

impl SkillIndex {
    /// The number of indexed skills.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// The digests of the skills' texts, in index order.
    pub fn digests(&self) -> &[ContentDigest] {
        &self.digests
    }

    /// Returns true if no skill is indexed.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// The memory that the index takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.digests.as_slice())
            + size_of_val(self.lengths.as_slice())
            + self.terms.memory_bytes()
            + self.postings.memory_bytes()
            + self.contra.memory_bytes()
            + self.pairs.memory_bytes()
            + self.vectors.len()
            + size_of_val(self.scales.as_slice())
    }

    /// The stems, in sorted order.
    pub fn terms(&self) -> &StringTable {
        &self.terms
    }

    /// Returns the number of skills that contain a stem anywhere, and in name or description.
    pub fn frequencies(&self, term: usize) -> [u32; 2] {
        self.postings.frequencies.get(term).copied().unwrap_or_default()
    }

    /// Calls `found` for every skill that contains a stem, in index order.
    #[inline]
    pub(crate) fn each_posting(&self, term: usize, found: impl FnMut(StemPosting)) {
        self.postings.for_each(term, found);
    }

    /// The stems of the passages that say what a skill is not for, as positions in [`SkillIndex::terms`].
    pub fn contra_stems(&self, skill: usize) -> &[u32] {
        self.contra.get(skill)
    }

    fn pair_filter(&self, skill: usize) -> &[u8] {
        self.pairs.get(skill)
    }

    /// Returns true if two stems stand side by side in a skill. The filter may give false positives.
    pub(crate) fn has_pair(&self, skill: usize, pair: StemPair) -> bool {
        pairs::filter_contains(self.pair_filter(skill), pair)
    }

    fn skill_vector(&self, skill: usize) -> &[i8] {
        let start = skill * self.dimensions;
        self.vectors.get(start..start + self.dimensions).unwrap_or_default()
    }

    /// Adds to each skill's score its closeness to a text, times a factor.
    pub(crate) fn add_closeness(&self, query: &TextVector, factor: f32, scores: &mut [f32]) {
        if self.dimensions == 0 || query.bytes.len() != self.dimensions {
            return;
        }
        dot_products(&self.vectors, &query.bytes, |skill, dot| {
            if let (Some(score), Some(scale)) = (scores.get_mut(skill), self.scales.get(skill)) {
                *score += factor * (dot as f32 * (scale * query.scale));
            }
        });
    }

    /// Returns the cosine similarity of a text and one skill, -1 to 1.
    pub fn closeness(&self, skill: usize, query: &TextVector) -> f32 {
        self.closeness_of(&[skill as u32], query).first().copied().unwrap_or(0.0)
    }

    /// Returns the cosine similarity of a text and each of the given skills.
    pub(crate) fn closeness_of(&self, skills: &[u32], query: &TextVector) -> Vec<f32> {
        let mut closeness = vec![0.0; skills.len()];
        if query.bytes.len() == self.dimensions {
            dot_products_at(&self.vectors, skills, &query.bytes, |at, dot| {
                let scale = self.scales.get(skills[at] as usize).copied().unwrap_or(0.0);
                closeness[at] = dot as f32 * (scale * query.scale);
            });
        }
        closeness
    }
}
