//! Serialises an index for a cache file: whole arrays one after the other, so that reading is mostly copying.
//!
//! A file that is truncated, damaged or written by another version is an error. The checksum only detects
//! accidents, so nothing in the file is assumed to be in bounds.

use repertoire_skill::skill::ContentDigest;

use super::postings::PostingLists;
use super::{RaggedArray, SkillIndex};
use crate::string_table::{BytesReader, StringTable};
use crate::vectors::WordVectors;

const MAGIC: &[u8; 8] = b"REPIDX\r\n";
/// Increase this whenever the layout changes, or the rules for words, stems, weights or pairs.
const FORMAT: u32 = 1;

/// The reason why bytes cannot be read as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexCacheError {
    /// The bytes do not start with the magic number.
    #[error("this is not an index of skills")]
    Foreign,
    /// Another version of the program wrote them.
    #[error("the index has format {found}; this program reads format {FORMAT}")]
    Format { found: u32 },
    /// The bytes are truncated or altered.
    #[error("the index is damaged")]
    Damaged,
}

impl SkillIndex {
    /// Serialises the index.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.memory_bytes() + self.memory_bytes() / 16 + 256);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        for number in [self.len(), self.dimensions] {
            bytes.extend_from_slice(&(number as u32).to_le_bytes());
        }
        put_items(&mut bytes, &[self.usual], encode_lengths);
        put_items(&mut bytes, &self.digests, |digest| *digest.as_bytes());
        put_items(&mut bytes, &self.lengths, encode_lengths);
        self.terms.write(&mut bytes);
        put_ragged(&mut bytes, &self.postings.ends, &self.postings.bytes, |byte| [*byte]);
        put_items(&mut bytes, &self.postings.frequencies, |[whole, head]| {
            (u64::from(*whole) | u64::from(*head) << 32).to_le_bytes()
        });
        put_ragged(&mut bytes, &self.contra.ends, &self.contra.items, |term| term.to_le_bytes());
        put_ragged(&mut bytes, &self.pairs.ends, &self.pairs.items, |byte| [*byte]);
        put_items(&mut bytes, &self.vectors, |component| component.to_le_bytes());
        put_items(&mut bytes, &self.scales, |scale| scale.to_le_bytes());
        let sum = compute_checksum(&bytes[SUMMED..]);
        bytes[SUM..SUMMED].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the format that [`SkillIndex::write`] produces.
    pub fn read(bytes: Vec<u8>) -> Result<SkillIndex, IndexCacheError> {
        if !bytes.starts_with(MAGIC) {
            return Err(IndexCacheError::Foreign);
        }
        let mut reader = BytesReader::new(bytes.into());
        reader.take_bytes(MAGIC.len());
        let found = reader.read_u32().ok_or(IndexCacheError::Damaged)?;
        if found != FORMAT {
            return Err(IndexCacheError::Format { found });
        }
        let expected = reader.read_u64().ok_or(IndexCacheError::Damaged)?;
        if compute_checksum(reader.remaining_bytes()) != expected {
            return Err(IndexCacheError::Damaged);
        }
        let index = read_parts(&mut reader).ok_or(IndexCacheError::Damaged)?;
        if index.is_consistent() && reader.is_at_end() {
            Ok(index)
        } else {
            Err(IndexCacheError::Damaged)
        }
    }

    /// Returns true if the index was built with these vectors. It cannot be used with any others.
    pub fn is_made_with(&self, vectors: &WordVectors) -> bool {
        self.dimensions == vectors.dimensions() && self.fingerprint == vectors.fingerprint()
    }

    /// Returns true if the lengths of all arrays agree with the number of skills and stems.
    fn is_consistent(&self) -> bool {
        let skills = self.len();
        let stems = self.terms.len();
        self.lengths.len() == skills
            && self.scales.len() == skills
            && skills.checked_mul(self.dimensions) == Some(self.vectors.len())
            && self.contra.is_consistent(skills)
            && self.contra.items.iter().all(|term| (*term as usize) < stems)
            && self.pairs.is_consistent(skills)
            && self.postings.ends.len() == stems
            && self.postings.frequencies.len() == stems
            && are_ends_consistent(&self.postings.ends, self.postings.bytes.len())
    }
}

/// The offset of the checksum, and the offset of the data that it covers.
const SUM: usize = 12;
const SUMMED: usize = 20;

impl<T> RaggedArray<T> {
    fn is_consistent(&self, lists: usize) -> bool {
        self.ends.len() == lists && are_ends_consistent(&self.ends, self.items.len())
    }
}

/// Returns true if the ends of lists are ascending and the last one is the number of items.
fn are_ends_consistent(ends: &[u32], items: usize) -> bool {
    ends.is_sorted() && ends.last().map_or(0, |end| *end as usize) == items
}

fn read_parts(reader: &mut BytesReader) -> Option<SkillIndex> {
    let fingerprint = reader.read_u64()?;
    let skills = reader.read_u32()? as usize;
    let dimensions = reader.read_u32()? as usize;
    let usual = *take_items(reader, 1, decode_lengths)?.first()?;
    let digests = take_items(reader, skills, |digest: &[u8; 32]| ContentDigest::from(*digest))?;
    let lengths = take_items(reader, skills, decode_lengths)?;
    let terms = StringTable::read(reader)?;
    let (ends, bytes) = take_ragged(reader, terms.len(), |[byte]: &[u8; 1]| *byte)?;
    let frequencies = take_items(reader, terms.len(), |both: &[u8; 8]| {
        let both = u64::from_le_bytes(*both);
        [both as u32, (both >> 32) as u32]
    })?;
    let postings = PostingLists { ends, frequencies, bytes };
    let (ends, items) = take_ragged(reader, skills, |term: &[u8; 4]| u32::from_le_bytes(*term))?;
    let contra = RaggedArray { ends, items };
    let (ends, items) = take_ragged(reader, skills, |[byte]: &[u8; 1]| *byte)?;
    let pairs = RaggedArray { ends, items };
    let vectors =
        take_items(reader, skills.checked_mul(dimensions)?, |[byte]: &[u8; 1]| *byte as i8)?;
    let scales = take_items(reader, skills, |scale: &[u8; 4]| f32::from_le_bytes(*scale))?;
    Some(SkillIndex {
        fingerprint,
        digests,
        lengths,
        usual,
        terms,
        postings,
        contra,
        pairs,
        dimensions,
        vectors,
        scales,
    })
}

fn encode_lengths(lengths: &[u16; 4]) -> [u8; 8] {
    let [a, b, c, d] = lengths.map(u64::from);
    (a | b << 16 | c << 32 | d << 48).to_le_bytes()
}

fn decode_lengths(bytes: &[u8; 8]) -> [u16; 4] {
    let all = u64::from_le_bytes(*bytes);
    [0, 16, 32, 48].map(|shift| (all >> shift) as u16)
}

fn put_items<T, const N: usize>(bytes: &mut Vec<u8>, items: &[T], item: impl Fn(&T) -> [u8; N]) {
    let start = bytes.len();
    bytes.resize(start + N * items.len(), 0);
    for (room, one) in bytes[start..].as_chunks_mut::<N>().0.iter_mut().zip(items) {
        *room = item(one);
    }
}

fn put_ragged<T, const N: usize>(
    bytes: &mut Vec<u8>,
    ends: &[u32],
    items: &[T],
    item: impl Fn(&T) -> [u8; N],
) {
    put_items(bytes, ends, |end| end.to_le_bytes());
    put_items(bytes, items, item);
}

fn take_items<T, const N: usize>(
    reader: &mut BytesReader,
    count: usize,
    item: impl Fn(&[u8; N]) -> T,
) -> Option<Vec<T>> {
    let bytes = reader.next_bytes(count.checked_mul(N)?)?;
    Some(bytes.as_chunks::<N>().0.iter().map(item).collect())
}

/// Reads the ends of lists, and as many items as the last end says.
fn take_ragged<T, const N: usize>(
    reader: &mut BytesReader,
    lists: usize,
    item: impl Fn(&[u8; N]) -> T,
) -> Option<(Vec<u32>, Vec<T>)> {
    let ends = take_items(reader, lists, |end: &[u8; 4]| u32::from_le_bytes(*end))?;
    let items = take_items(reader, ends.last().map_or(0, |end| *end as usize), item)?;
    Some((ends, items))
}

/// Detects every single flipped bit and nearly all other accidental damage. It does not protect against
/// tampering: a process that can write the file can write any index.
fn compute_checksum(bytes: &[u8]) -> u64 {
    const LANES: usize = 4;
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME).rotate_left(29);
    // Four independent lanes, because a single hash would wait for each multiplication to finish.
    let mut lanes: [u64; LANES] = [1, 2, 3, 4];
    let (blocks, rest) = bytes.as_chunks::<{ 8 * LANES }>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let rest = rest.iter().map(|byte| u64::from(*byte));
    let all = lanes.into_iter().chain(rest).chain([bytes.len() as u64]);
    let hash = all.fold(0, mix);
    (hash ^ hash >> 32).wrapping_mul(PRIME)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
