//! Making an index: words are counted in parallel, a chunk of skills at a time, and chunks are merged in
//! order. Skills that an earlier index has are taken from it as one more chunk.

use foldhash::{HashMap, HashMapExt};
use rayon::prelude::*;
use repertoire_skill::skill::Digest;

use super::Index;
use super::pairs::{self, Pair, StemHash};
use super::postings::{Posting, Postings, Weight};
use crate::document::Document;
use crate::limits::BODY_BYTES_MAX;
use crate::passages;
use crate::strings::Strings;
use crate::vectors::{Encoder, Vectors};
use crate::words::{Language, Table, each_word_joined};

/// How frequencies in one half of a skill become a weight.
struct Saturation {
    /// At which frequency a word says half of what it can say.
    half: f32,
    strong: Field,
    plain: Field,
}

/// How one field counts.
struct Field {
    weight: f32,
    /// How far a longer field makes each word say less.
    normalisation: f32,
}

const HEAD: Saturation = Saturation {
    half: 2.0,
    strong: Field { weight: 2.5, normalisation: 0.6 },
    plain: Field { weight: 1.0, normalisation: 0.6 },
};

const BODY: Saturation = Saturation {
    half: 1.5,
    strong: Field { weight: 2.0, normalisation: 0.9 },
    plain: Field { weight: 1.0, normalisation: 0.9 },
};

/// Words in the fields of a skill.
pub(super) type Lengths = [u16; 4];

/// What is usual among public skills, in words without stop words.
const USUAL: Lengths = [3, 50, 50, 800];
/// How many skills of usual length stand beside a catalog's own.
const USUAL_SKILLS: u64 = 3;
/// Steps of usual lengths: the next is a fifth longer.
const STEP: f32 = 1.2;

/// The usual lengths of a catalog's fields, where they are written at all.
///
/// They are rounded to steps, so that one more skill hardly ever changes them: with them, the weights of all
/// others would change.
fn usual_lengths<'a>(all: impl Iterator<Item = &'a Lengths>) -> Lengths {
    // Whole numbers: their sum is the same in every order.
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

/// How many parts a word may have to be indexed as a whole as well.
const JOINED_PARTS_MAX: usize = 3;

/// How much the body counts in a skill's vector, against name and description.
const BODY_IN_VECTOR: f32 = 0.6;
/// How much of the body is read for the vector.
const BODY_IN_VECTOR_BYTES: usize = 3000;

impl Field {
    fn frequency(&self, count: u8, longer: f32) -> f32 {
        self.weight * f32::from(count) / (1.0 - self.normalisation + self.normalisation * longer)
    }
}

impl Saturation {
    fn weigh(&self, strong: u8, plain: u8, longer: &[f32]) -> Weight {
        let frequency =
            self.strong.frequency(strong, longer[0]) + self.plain.frequency(plain, longer[1]);
        Weight::new(frequency / (frequency + self.half), strong > 0, plain > 0)
    }
}

impl Counts {
    /// Weights in a skill whose fields are so much longer than usual.
    fn weigh(&self, longer: [f32; 4]) -> (Weight, Weight) {
        let [name, description, headings, body] = self.0;
        let head = HEAD.weigh(name, description, &longer[..2]);
        (head, BODY.weigh(headings, body, &longer[2..]))
    }
}

/// What is kept of one skill.
struct Analysis<W> {
    /// Its place in the catalog.
    skill: u32,
    /// Stems of the chunk's list: how often they occur or, later, what that weighs.
    terms: Vec<(u32, W)>,
    lengths: Lengths,
    contra: Vec<u32>,
    pairs: Vec<u8>,
    vector: Vec<i8>,
    scale: f32,
}

/// Some skills, with stems numbered within the chunk.
struct Chunk<W> {
    terms: Vec<String>,
    skills: Vec<Analysis<W>>,
}

type Weights = (Weight, Weight);

impl Chunk<Counts> {
    fn weigh(self, usual: Lengths) -> Chunk<Weights> {
        let weigh = |skill: Analysis<Counts>| {
            let longer = std::array::from_fn(|field| {
                f32::from(skill.lengths[field]) / f32::from(usual[field])
            });
            let terms = skill.terms.into_iter().map(|(term, counts)| (term, counts.weigh(longer)));
            Analysis {
                skill: skill.skill,
                terms: terms.collect(),
                lengths: skill.lengths,
                contra: skill.contra,
                pairs: skill.pairs,
                vector: skill.vector,
                scale: skill.scale,
            }
        };
        Chunk { terms: self.terms, skills: self.skills.into_iter().map(weigh).collect() }
    }
}

/// Few skills are not worth a thread of their own.
const CHUNK_MIN: usize = 64;

impl Index {
    /// Indexes skills. What `before` holds under the same digest is taken over, not read again.
    ///
    /// The result is the same with and without an earlier index.
    pub fn build(documents: &[Document<'_>], vectors: &Vectors, before: Option<&Index>) -> Index {
        let before = before.filter(|index| index.is_made_with(vectors));
        if let Some(before) = before.filter(|index| index.is_of(documents)) {
            return before.clone();
        }
        let known: HashMap<Digest, u32> = before
            .map(|index| index.digests.iter().copied().zip(0..).collect())
            .unwrap_or_default();
        let old: Vec<Option<u32>> =
            documents.iter().map(|document| known.get(&document.digest).copied()).collect();
        let fresh: Vec<usize> = (0..documents.len()).filter(|at| old[*at].is_none()).collect();
        // One chunk a thread: every chunk has to learn the words of the catalog anew.
        let chunks = rayon::current_num_threads();
        let counted: Vec<Chunk<Counts>> = fresh
            .par_chunks(fresh.len().div_ceil(chunks).max(CHUNK_MIN))
            .map(|part| analyse(documents, part, vectors))
            .collect();

        let of_fresh = counted.iter().flat_map(|chunk| &chunk.skills).map(|skill| &skill.lengths);
        let of_old = old.iter().flatten().filter_map(|at| before?.lengths.get(*at as usize));
        let usual = usual_lengths(of_fresh.chain(of_old));
        if before.is_some_and(|before| before.usual != usual) {
            return Index::build(documents, vectors, None);
        }
        let mut chunks: Vec<Chunk<Weights>> =
            counted.into_par_iter().map(|chunk| chunk.weigh(usual)).collect();
        if let Some(before) = before.filter(|_| fresh.len() < documents.len()) {
            chunks.push(take_over(before, &old));
        }
        let digests = documents.iter().map(|document| document.digest).collect();
        let index = Index {
            fingerprint: vectors.fingerprint(),
            digests,
            usual,
            dimensions: vectors.dimensions(),
            ..Index::default()
        };
        merge(index, &chunks)
    }

    /// The same as [`Index::build`] with this index as the earlier one, which is kept where nothing changed.
    pub fn update(self, documents: &[Document<'_>], vectors: &Vectors) -> Index {
        if self.is_made_with(vectors) && self.is_of(documents) {
            return self;
        }
        Index::build(documents, vectors, Some(&self))
    }

    /// Whether these are the skills of the index, in its order.
    pub fn is_of(&self, documents: &[Document<'_>]) -> bool {
        self.digests.iter().eq(documents.iter().map(|document| &document.digest))
    }
}

fn analyse(documents: &[Document<'_>], part: &[usize], vectors: &Vectors) -> Chunk<Counts> {
    let mut counter = Counter::new(vectors);
    let skills = part.iter().map(|at| counter.analyse(&documents[*at], *at as u32)).collect();
    Chunk { terms: counter.terms, skills }
}

/// How often a stem stands in each field of a skill; more than 255 times is 255 times.
#[derive(Clone, Copy, Default)]
struct Counts([u8; 4]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Name,
    Description,
    Headings,
    Body,
}

/// Instead of a stem, where a word is a stop word.
const STOP: u32 = u32::MAX;

struct Counter<'a> {
    encoder: Encoder<'a>,
    terms: Vec<String>,
    hashes: Vec<StemHash>,
    by_stem: HashMap<String, u32>,
    /// Words as written, a table a language: each is looked at once.
    by_word: [Table<u32>; Language::COUNT],
    /// Of the skill at hand, by stem, and which of them are not zero.
    counts: Vec<Counts>,
    touched: Vec<u32>,
    lengths: Lengths,
    pairs: Vec<Pair>,
}

impl<'a> Counter<'a> {
    fn new(vectors: &'a Vectors) -> Self {
        Counter {
            encoder: vectors.encoder(),
            terms: Vec::new(),
            hashes: Vec::new(),
            by_stem: HashMap::new(),
            by_word: std::array::from_fn(|_| Table::new()),
            counts: Vec::new(),
            touched: Vec::new(),
            lengths: [0; 4],
            pairs: Vec::new(),
        }
    }

    fn term(&mut self, language: Language, word: &str) -> Option<u32> {
        let known = self.by_word[language.number()].get(word);
        let term = known.unwrap_or_else(|| self.new_word(language, word));
        (term != STOP).then_some(term)
    }

    #[cold]
    fn new_word(&mut self, language: Language, word: &str) -> u32 {
        let term = if language.is_stop_word(word) {
            STOP
        } else {
            let next = self.terms.len() as u32;
            *self.by_stem.entry(language.stem(word)).or_insert_with_key(|stem| {
                self.terms.push(stem.clone());
                self.hashes.push(StemHash::new(stem));
                self.counts.push(Counts::default());
                next
            })
        };
        self.by_word[language.number()].insert(word, term);
        term
    }

    fn count(&mut self, text: &str, language: Language, section: Section) {
        let section = section as usize;
        let mut before: Option<StemHash> = None;
        each_word_joined(text, |word, joins| {
            // Longer ones are identifiers, and nobody writes them in one.
            if joins > JOINED_PARTS_MAX {
                return;
            }
            let Some(term) = self.term(language, word) else { return };
            let counts = &mut self.counts[term as usize].0;
            if *counts == [0; 4] {
                self.touched.push(term);
            }
            counts[section] = counts[section].saturating_add(1);
            // The whole of a word whose parts were counted makes a text no longer, and stands beside nothing.
            if joins > 0 {
                return;
            }
            self.lengths[section] = self.lengths[section].saturating_add(1);
            let hash = self.hashes[term as usize];
            if let Some(before) = before {
                self.pairs.push(Pair::new(before, hash));
            }
            before = Some(hash);
        });
    }

    /// The counts of the skill at hand, which are zero afterwards.
    fn take_counts(&mut self) -> Vec<(u32, Counts)> {
        self.touched.sort_unstable();
        let counts = &mut self.counts;
        self.touched
            .drain(..)
            .map(|term| (term, std::mem::take(&mut counts[term as usize])))
            .collect()
    }

    fn analyse(&mut self, document: &Document<'_>, skill: u32) -> Analysis<Counts> {
        self.lengths = [0; 4];
        self.pairs.clear();
        let whole = document.description.join("\n");
        let described = passages::split(&whole);
        let language = Language::of(&whole);
        self.count(document.name, Language::ENGLISH, Section::Name);
        for passage in &described.pro {
            self.count(passage, language, Section::Description);
        }
        let body = beginning(document.body, BODY_BYTES_MAX);
        let body_language = Language::of(beginning(body, 4000));
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
            let section = if is_heading { Section::Headings } else { Section::Body };
            self.count(&without_addresses(line), body_language, section);
        }
        let terms = self.take_counts();
        let mut contra = self.stems(&described.contra.join("\n"), language);
        contra.extend(self.stems(&against.join("\n"), body_language));
        contra.sort_unstable();
        contra.dedup();
        let (vector, scale) = self.vector(document, &described.pro.join(" "), body);
        let pairs = pairs::filter(&mut self.pairs);
        Analysis { skill, terms, lengths: self.lengths, contra, pairs, vector, scale }
    }

    fn stems(&mut self, text: &str, language: Language) -> Vec<u32> {
        let mut stems = Vec::new();
        each_word_joined(text, |word, _| stems.extend(self.term(language, word)));
        stems.sort_unstable();
        stems.dedup();
        stems
    }

    fn vector(&mut self, document: &Document<'_>, described: &str, body: &str) -> (Vec<i8>, f32) {
        let head = self.encoder.encode(&format!("{} {described}", document.name));
        let body = self.encoder.encode(beginning(body, BODY_IN_VECTOR_BYTES));
        let both = head.plus(&body, BODY_IN_VECTOR);
        (both.bytes, both.scale)
    }
}

/// The beginning of a text, cut between characters.
fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// A line without web addresses: their words are about places, not about the skill.
fn without_addresses(line: &str) -> std::borrow::Cow<'_, str> {
    if memchr::memchr(b':', line.as_bytes()).is_none() || !line.contains("://") {
        return line.into();
    }
    let plain = line.split_whitespace().filter(|word| !word.contains("://"));
    plain.collect::<Vec<_>>().join(" ").into()
}

/// The skills of an earlier index, at their new places.
fn take_over(before: &Index, old: &[Option<u32>]) -> Chunk<Weights> {
    let mut skills = Vec::new();
    // Two skills of the same text share what the earlier index has once.
    let mut takers: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (skill, old) in old.iter().enumerate() {
        let Some(at) = old.map(|old| old as usize) else { continue };
        takers[at].push(skills.len());
        skills.push(Analysis {
            skill: skill as u32,
            terms: Vec::new(),
            lengths: before.lengths[at],
            contra: before.contra(at).to_vec(),
            pairs: before.pairs(at).to_vec(),
            vector: before.vector(at).to_vec(),
            scale: before.scales[at],
        });
    }
    for term in 0..before.terms.len() {
        for posting in before.postings.of(term) {
            for taker in takers.get(posting.skill as usize).into_iter().flatten() {
                skills[*taker].terms.push((term as u32, (posting.head, posting.body)));
            }
        }
    }
    Chunk { terms: before.terms.iter().map(str::to_owned).collect(), skills }
}

/// Fills an index from chunks: it becomes the same whatever the chunks.
fn merge(mut index: Index, chunks: &[Chunk<Weights>]) -> Index {
    let (stems, places) = used_stems(chunks);
    let mut skills: Vec<Placed<'_>> = chunks
        .iter()
        .zip(&places)
        .flat_map(|(chunk, places)| chunk.skills.iter().map(|skill| Placed { skill, places }))
        .collect();
    skills.sort_unstable_by_key(|placed| placed.skill.skill);

    index.postings = invert(stems.len(), &skills);
    index.terms = Strings::from_sorted(stems);
    for Placed { skill, places } in &skills {
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

/// A skill, and where its chunk's stems stand in the index.
struct Placed<'a> {
    skill: &'a Analysis<Weights>,
    places: &'a [u32],
}

/// All stems of chunks, sorted, and where each chunk's stems stand among them. Those that only a removed skill
/// had are not among them.
fn used_stems(chunks: &[Chunk<Weights>]) -> (Vec<&str>, Vec<Vec<u32>>) {
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

/// From lists of stems, a skill each, to lists of skills, a stem each.
fn invert(stems: usize, skills: &[Placed<'_>]) -> Postings {
    let mut starts = vec![0usize; stems + 1];
    for Placed { skill, places } in skills {
        for (term, _) in &skill.terms {
            starts[places[*term as usize] as usize + 1] += 1;
        }
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let empty = Posting { skill: 0, head: Weight::default(), body: Weight::default() };
    let mut flat = vec![empty; starts[stems]];
    for Placed { skill, places } in skills {
        for (term, (head, body)) in &skill.terms {
            let place = &mut next[places[*term as usize] as usize];
            flat[*place] = Posting { skill: skill.skill, head: *head, body: *body };
            *place += 1;
        }
    }
    Postings::pack((0..stems).map(|at| flat[starts[at]..starts[at + 1]].iter().copied()))
}
