//! Builds an index: counts words in parallel, one chunk of skills per thread, and merges the chunks in order.
//! Skills that an earlier index already holds are taken over as one more chunk.

use foldhash::{HashMap, HashMapExt};
use rayon::prelude::*;
use repertoire_skill::skill::ContentDigest;

use super::SkillIndex;
use super::pairs::{self, StemHash, StemPair};
use super::postings::{PostingLists, StemPosting, StemWeight};
use crate::document::SkillDocument;
use crate::limits::BODY_BYTES_MAX;
use crate::passages;
use crate::string_table::StringTable;
use crate::tokenizer::{TextLanguage, WordTable, each_word_joined};
use crate::vectors::{TextEncoder, WordVectors};

/// The parameters that turn term frequencies in one half of a skill into a weight.
struct SaturationParams {
    /// The frequency at which a word reaches half of its maximum weight.
    half: f32,
    strong: FieldParams,
    plain: FieldParams,
}

/// The parameters of one field.
struct FieldParams {
    weight: f32,
    /// The strength of length normalisation, BM25's `b`: 0 ignores the length of the field, 1 divides by it.
    normalisation: f32,
}

const HEAD: SaturationParams = SaturationParams {
    half: 2.0,
    strong: FieldParams { weight: 2.5, normalisation: 0.6 },
    plain: FieldParams { weight: 1.0, normalisation: 0.6 },
};

const BODY: SaturationParams = SaturationParams {
    half: 1.5,
    strong: FieldParams { weight: 2.0, normalisation: 0.9 },
    plain: FieldParams { weight: 1.0, normalisation: 0.9 },
};

/// The number of words in each field of a skill: name, description, headings, body.
pub(super) type FieldLengths = [u16; 4];

/// Average lengths among public skills, in words without stop words.
const USUAL: FieldLengths = [3, 50, 50, 800];
/// The number of skills of average length that are added to a catalog's own.
const USUAL_SKILLS: u64 = 3;
/// Average lengths are rounded to powers of this factor.
const STEP: f32 = 1.2;

/// Returns the average lengths of a catalog's fields, over the skills in which they are not empty.
///
/// The averages are rounded to coarse steps, because a new average changes the weights of every skill. That
/// way adding one skill hardly ever forces a full rebuild.
fn usual_lengths<'a>(all: impl Iterator<Item = &'a FieldLengths>) -> FieldLengths {
    // Sums of integers do not depend on the order of the skills.
    let mut sums = USUAL.map(|length| u64::from(length) * USUAL_SKILLS);
    let mut counts = [USUAL_SKILLS; 4];
    for lengths in all {
        for (field, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            sums[field] += u64::from(*length);
            counts[field] += 1;
        }
    }
    std::array::from_fn(|field| {
        let mean = (sums[field] as f32 / counts[field] as f32).max(1.0);
        let steps = (libm::logf(mean) / libm::logf(STEP)).round();
        libm::powf(STEP, steps).round() as u16
    })
}

/// The maximum number of parts of a joined word that is also indexed as a whole.
const JOINED_PARTS_MAX: usize = 3;

/// The weight of the body in a skill's vector, relative to name and description.
const BODY_IN_VECTOR: f32 = 0.6;
/// The number of bytes of the body that are encoded in the vector.
const BODY_IN_VECTOR_BYTES: usize = 3000;

impl FieldParams {
    fn weighted_frequency(&self, count: u8, longer: f32) -> f32 {
        self.weight * f32::from(count) / (1.0 - self.normalisation + self.normalisation * longer)
    }
}

impl SaturationParams {
    fn weigh(&self, strong: u8, plain: u8, longer: &[f32]) -> StemWeight {
        let frequency = self.strong.weighted_frequency(strong, longer[0])
            + self.plain.weighted_frequency(plain, longer[1]);
        StemWeight::new(frequency / (frequency + self.half), strong > 0, plain > 0)
    }
}

impl StemCounts {
    /// Computes the weights in a skill; `longer` is the length of each field relative to the average.
    fn weigh(&self, longer: [f32; 4]) -> (StemWeight, StemWeight) {
        let [name, description, headings, body] = self.0;
        let head = HEAD.weigh(name, description, &longer[..2]);
        (head, BODY.weigh(headings, body, &longer[2..]))
    }
}

/// The analysis of one skill: its words counted (`Counts`) and later weighed (`Weights`).
struct SkillAnalysis<W> {
    /// The index of the skill in the catalog.
    skill: u32,
    /// Stems as positions in the chunk's list, each with its counts or weights.
    terms: Vec<(u32, W)>,
    lengths: FieldLengths,
    contra: Vec<u32>,
    pairs: Vec<u8>,
    vector: Vec<i8>,
    scale: f32,
}

/// Some of the skills, with stems numbered within the chunk.
struct SkillChunk<W> {
    terms: Vec<String>,
    skills: Vec<SkillAnalysis<W>>,
}

type HeadBodyWeights = (StemWeight, StemWeight);

impl SkillChunk<StemCounts> {
    fn weigh(self, usual: FieldLengths) -> SkillChunk<HeadBodyWeights> {
        let skills = self.skills.into_iter().map(|skill| skill.weigh(usual)).collect();
        SkillChunk { terms: self.terms, skills }
    }
}

impl SkillAnalysis<StemCounts> {
    fn weigh(self, usual: FieldLengths) -> SkillAnalysis<HeadBodyWeights> {
        let longer =
            std::array::from_fn(|field| f32::from(self.lengths[field]) / f32::from(usual[field]));
        let terms = self.terms.into_iter().map(|(term, counts)| (term, counts.weigh(longer)));
        SkillAnalysis {
            skill: self.skill,
            terms: terms.collect(),
            lengths: self.lengths,
            contra: self.contra,
            pairs: self.pairs,
            vector: self.vector,
            scale: self.scale,
        }
    }
}

/// Below this number of skills, another thread does not pay off.
const CHUNK_MIN: usize = 64;

impl SkillIndex {
    /// Builds an index. Skills that `before` holds under the same digest are taken over instead of analysed
    /// again.
    ///
    /// The result is the same with and without an earlier index.
    pub fn build(
        documents: &[SkillDocument<'_>],
        vectors: &WordVectors,
        before: Option<&SkillIndex>,
    ) -> SkillIndex {
        let before = before.filter(|index| index.is_made_with(vectors));
        if let Some(before) = before.filter(|index| index.holds_exactly(documents)) {
            return before.clone();
        }
        let known: HashMap<ContentDigest, u32> = before
            .map(|index| index.digests.iter().copied().zip(0..).collect())
            .unwrap_or_default();
        let old: Vec<Option<u32>> =
            documents.iter().map(|document| known.get(&document.digest).copied()).collect();
        let fresh: Vec<usize> = (0..documents.len()).filter(|at| old[*at].is_none()).collect();
        // One chunk per thread, because each chunk builds its own table of words.
        let chunks = rayon::current_num_threads();
        let counted: Vec<SkillChunk<StemCounts>> = fresh
            .par_chunks(fresh.len().div_ceil(chunks).max(CHUNK_MIN))
            .map(|part| analyse_chunk(documents, part, vectors))
            .collect();

        let of_fresh = counted.iter().flat_map(|chunk| &chunk.skills).map(|skill| &skill.lengths);
        let of_old = old.iter().flatten().filter_map(|at| before?.lengths.get(*at as usize));
        let usual = usual_lengths(of_fresh.chain(of_old));
        // With other average lengths, none of the earlier weights is valid any more.
        if before.is_some_and(|before| before.usual != usual) {
            return SkillIndex::build(documents, vectors, None);
        }
        let mut chunks: Vec<SkillChunk<HeadBodyWeights>> =
            counted.into_par_iter().map(|chunk| chunk.weigh(usual)).collect();
        if let Some(before) = before.filter(|_| fresh.len() < documents.len()) {
            chunks.push(take_over_skills(before, &old));
        }
        let digests = documents.iter().map(|document| document.digest).collect();
        let index = SkillIndex {
            fingerprint: vectors.fingerprint(),
            digests,
            usual,
            dimensions: vectors.dimensions(),
            ..SkillIndex::default()
        };
        merge_chunks(index, &chunks)
    }

    /// Like [`SkillIndex::build`] with this index as the earlier one, but returns it as it is if no skill changed.
    pub fn update(self, documents: &[SkillDocument<'_>], vectors: &WordVectors) -> SkillIndex {
        if self.is_made_with(vectors) && self.holds_exactly(documents) {
            return self;
        }
        SkillIndex::build(documents, vectors, Some(&self))
    }

    /// Returns true if the index holds exactly these skills, in this order.
    pub fn holds_exactly(&self, documents: &[SkillDocument<'_>]) -> bool {
        self.digests.iter().eq(documents.iter().map(|document| &document.digest))
    }
}

fn analyse_chunk(
    documents: &[SkillDocument<'_>],
    part: &[usize],
    vectors: &WordVectors,
) -> SkillChunk<StemCounts> {
    let mut counter = StemCounter::new(vectors);
    let skills = part.iter().map(|at| counter.analyse_skill(&documents[*at], *at as u32)).collect();
    SkillChunk { terms: counter.terms, skills }
}

/// The number of occurrences of a stem in each field of a skill, at most 255.
#[derive(Clone, Copy, Default)]
struct StemCounts([u8; 4]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum SkillSection {
    Name,
    Description,
    Headings,
    Body,
}

/// Marks a stop word in place of the number of a stem.
const STOP: u32 = u32::MAX;

struct StemCounter<'a> {
    encoder: TextEncoder<'a>,
    terms: Vec<String>,
    hashes: Vec<StemHash>,
    by_stem: HashMap<String, u32>,
    /// Caches the stem number of each word as written, with one table per language.
    by_word: [WordTable<u32>; TextLanguage::COUNT],
    /// The counts of the current skill by stem, and the stems whose counts are not zero.
    counts: Vec<StemCounts>,
    touched: Vec<u32>,
    lengths: FieldLengths,
    pairs: Vec<StemPair>,
}

impl<'a> StemCounter<'a> {
    fn new(vectors: &'a WordVectors) -> Self {
        StemCounter {
            encoder: vectors.encoder(),
            terms: Vec::new(),
            hashes: Vec::new(),
            by_stem: HashMap::new(),
            by_word: std::array::from_fn(|_| WordTable::new()),
            counts: Vec::new(),
            touched: Vec::new(),
            lengths: [0; 4],
            pairs: Vec::new(),
        }
    }

    fn term_number(&mut self, language: TextLanguage, word: &str) -> Option<u32> {
        let known = self.by_word[language.table_index()].get(word);
        let term = known.unwrap_or_else(|| self.new_word(language, word));
        (term != STOP).then_some(term)
    }

    #[cold]
    fn new_word(&mut self, language: TextLanguage, word: &str) -> u32 {
        let term = if language.is_stop_word(word) {
            STOP
        } else {
            let next = self.terms.len() as u32;
            *self.by_stem.entry(language.stem(word)).or_insert_with_key(|stem| {
                self.terms.push(stem.clone());
                self.hashes.push(StemHash::new(stem));
                self.counts.push(StemCounts::default());
                next
            })
        };
        self.by_word[language.table_index()].insert(word, term);
        term
    }

    fn count_words(&mut self, text: &str, language: TextLanguage, section: SkillSection) {
        let section = section as usize;
        let mut before: Option<StemHash> = None;
        each_word_joined(text, |word, joins| {
            // Longer joined words are identifiers, which users do not type as one word.
            if joins > JOINED_PARTS_MAX {
                return;
            }
            let Some(term) = self.term_number(language, word) else { return };
            let counts = &mut self.counts[term as usize].0;
            if *counts == [0; 4] {
                self.touched.push(term);
            }
            counts[section] = counts[section].saturating_add(1);
            // The parts of a joined word are already counted, so the whole adds neither length nor a pair.
            if joins > 0 {
                return;
            }
            self.lengths[section] = self.lengths[section].saturating_add(1);
            let hash = self.hashes[term as usize];
            if let Some(before) = before {
                self.pairs.push(StemPair::new(before, hash));
            }
            before = Some(hash);
        });
    }

    /// Returns the counts of the current skill and resets them to zero.
    fn take_counts(&mut self) -> Vec<(u32, StemCounts)> {
        self.touched.sort_unstable();
        let counts = &mut self.counts;
        self.touched
            .drain(..)
            .map(|term| (term, std::mem::take(&mut counts[term as usize])))
            .collect()
    }

    fn analyse_skill(
        &mut self,
        document: &SkillDocument<'_>,
        skill: u32,
    ) -> SkillAnalysis<StemCounts> {
        self.lengths = [0; 4];
        self.pairs.clear();
        let whole = document.description.join("\n");
        let described = passages::split_passages(&whole);
        let language = TextLanguage::detect_language(&whole);
        self.count_words(document.name, TextLanguage::ENGLISH, SkillSection::Name);
        for passage in &described.pro {
            self.count_words(passage, language, SkillSection::Description);
        }
        let body = text_prefix(document.body, BODY_BYTES_MAX);
        let body_language = TextLanguage::detect_language(text_prefix(body, 4000));
        let mut in_code = false;
        let mut is_against = false;
        let mut against: Vec<&str> = Vec::new();
        for line in body.lines() {
            let trimmed = line.trim_start();
            in_code ^= trimmed.starts_with("```") || trimmed.starts_with("~~~");
            let is_heading = !in_code && trimmed.starts_with('#');
            if is_heading {
                is_against = passages::is_against(trimmed);
            }
            if is_against {
                against.push(line);
            }
            let section = if is_heading { SkillSection::Headings } else { SkillSection::Body };
            self.count_words(&remove_urls(line), body_language, section);
        }
        let terms = self.take_counts();
        let mut contra = self.collect_stems(&described.contra.join("\n"), language);
        contra.extend(self.collect_stems(&against.join("\n"), body_language));
        contra.sort_unstable();
        contra.dedup();
        let (vector, scale) = self.encode_skill(document, &described.pro.join(" "), body);
        let pairs = pairs::build_filter(&mut self.pairs);
        SkillAnalysis { skill, terms, lengths: self.lengths, contra, pairs, vector, scale }
    }

    fn collect_stems(&mut self, text: &str, language: TextLanguage) -> Vec<u32> {
        let mut stems = Vec::new();
        each_word_joined(text, |word, _| stems.extend(self.term_number(language, word)));
        stems.sort_unstable();
        stems.dedup();
        stems
    }

    fn encode_skill(
        &mut self,
        document: &SkillDocument<'_>,
        described: &str,
        body: &str,
    ) -> (Vec<i8>, f32) {
        let head = self.encoder.encode(&format!("{} {described}", document.name));
        let body = self.encoder.encode(text_prefix(body, BODY_IN_VECTOR_BYTES));
        let both = head.add_scaled(&body, BODY_IN_VECTOR);
        (both.bytes, both.scale)
    }
}

/// Returns the beginning of a text, cut at a character boundary.
fn text_prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Removes URLs from a line, because their words say nothing about the skill.
fn remove_urls(line: &str) -> std::borrow::Cow<'_, str> {
    if memchr::memchr(b':', line.as_bytes()).is_none() || !line.contains("://") {
        return line.into();
    }
    let plain = line.split_whitespace().filter(|word| !word.contains("://"));
    plain.collect::<Vec<_>>().join(" ").into()
}

/// Copies the skills that an earlier index holds, under their new numbers.
fn take_over_skills(before: &SkillIndex, old: &[Option<u32>]) -> SkillChunk<HeadBodyWeights> {
    let mut skills = Vec::new();
    // Several skills with the same text share one skill of the earlier index.
    let mut takers: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (skill, old) in old.iter().enumerate() {
        let Some(at) = old.map(|old| old as usize) else { continue };
        takers[at].push(skills.len());
        skills.push(SkillAnalysis {
            skill: skill as u32,
            terms: Vec::new(),
            lengths: before.lengths[at],
            contra: before.contra_stems(at).to_vec(),
            pairs: before.pair_filter(at).to_vec(),
            vector: before.skill_vector(at).to_vec(),
            scale: before.scales[at],
        });
    }
    for term in 0..before.terms.len() {
        for posting in before.postings.iter_list(term) {
            for taker in takers.get(posting.skill as usize).into_iter().flatten() {
                skills[*taker].terms.push((term as u32, (posting.head, posting.body)));
            }
        }
    }
    SkillChunk { terms: before.terms.iter().map(str::to_owned).collect(), skills }
}

/// Fills an index from chunks. The result does not depend on how the skills were divided.
fn merge_chunks(mut index: SkillIndex, chunks: &[SkillChunk<HeadBodyWeights>]) -> SkillIndex {
    let (stems, places) = used_stems(chunks);
    let mut skills: Vec<PlacedSkill<'_>> = chunks
        .iter()
        .zip(&places)
        .flat_map(|(chunk, places)| chunk.skills.iter().map(|skill| PlacedSkill { skill, places }))
        .collect();
    skills.sort_unstable_by_key(|placed| placed.skill.skill);

    index.postings = invert_terms(stems.len(), &skills);
    index.terms = StringTable::from_sorted(stems);
    for PlacedSkill { skill, places } in &skills {
        let mut contra: Vec<u32> = skill.contra.iter().map(|term| places[*term as usize]).collect();
        contra.sort_unstable();
        index.contra.push(&contra);
        index.pairs.push(&skill.pairs);
        index.lengths.push(skill.lengths);
        index.vectors.extend_from_slice(&skill.vector);
        index.scales.push(skill.scale);
    }
    index
}

/// A skill, with the map from its chunk's stems to positions in the index.
struct PlacedSkill<'a> {
    skill: &'a SkillAnalysis<HeadBodyWeights>,
    places: &'a [u32],
}

/// Returns the stems in use, sorted, and the position of each chunk's stems among them. Stems that only
/// removed skills contained are dropped.
fn used_stems(chunks: &[SkillChunk<HeadBodyWeights>]) -> (Vec<&str>, Vec<Vec<u32>>) {
    let used = chunks.par_iter().enumerate().flat_map_iter(|(at, chunk)| {
        let mut used = vec![false; chunk.terms.len()];
        for skill in &chunk.skills {
            let terms = skill.terms.iter().map(|(term, _)| term);
            terms.chain(&skill.contra).for_each(|term| used[*term as usize] = true);
        }
        let terms = chunk.terms.iter().enumerate().zip(used).filter(|(_, used)| *used);
        terms.map(move |((term, stem), _)| (stem.as_str(), at, term))
    });
    let mut used: Vec<(&str, usize, usize)> = used.collect();
    used.par_sort_unstable();
    let mut places: Vec<Vec<u32>> = chunks.iter().map(|chunk| vec![0; chunk.terms.len()]).collect();
    let mut stems: Vec<&str> = Vec::new();
    for (stem, chunk, term) in used {
        if stems.last() != Some(&stem) {
            stems.push(stem);
        }
        places[chunk][term] = stems.len() as u32 - 1;
    }
    (stems, places)
}

/// Turns lists of stems per skill into lists of skills per stem.
fn invert_terms(stems: usize, skills: &[PlacedSkill<'_>]) -> PostingLists {
    let mut starts = vec![0usize; stems + 1];
    for PlacedSkill { skill, places } in skills {
        for (term, _) in &skill.terms {
            starts[places[*term as usize] as usize + 1] += 1;
        }
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let empty = StemPosting { skill: 0, head: StemWeight::default(), body: StemWeight::default() };
    let mut flat = vec![empty; starts[stems]];
    for PlacedSkill { skill, places } in skills {
        for (term, (head, body)) in &skill.terms {
            let place = &mut next[places[*term as usize] as usize];
            flat[*place] = StemPosting { skill: skill.skill, head: *head, body: *body };
            *place += 1;
        }
    }
    PostingLists::pack((0..stems).map(|at| flat[starts[at]..starts[at + 1]].iter().copied()))
}
