//! A search for many patterns at once, in one pass over the text.

use std::ops::Range;

/// The minimum length of a pattern.
pub(super) const PATTERN_BYTES_MIN: usize = 8;

/// The number of bits of the filter, as a power of two.
const FILTER_BITS_LOG2: u32 = 12;

/// Patterns that are found in one pass: a filter over the first bytes of all of them rejects nearly every position.
#[derive(Clone)]
pub(super) struct PatternSet {
    /// The first bytes of each pattern, and the pattern; the longest first.
    patterns: Vec<(u64, Vec<u8>)>,
    filter: Box<[u64; 1 << (FILTER_BITS_LOG2 - 6)]>,
}

impl PatternSet {
    /// Prepares a search. Patterns that are too short are left out.
    pub(super) fn new(patterns: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut patterns: Vec<_> = patterns
            .into_iter()
            .filter_map(|pattern| Some((first_bytes(&pattern)?, pattern)))
            .collect();
        patterns.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        patterns.dedup();
        let mut filter = Box::new([0; 1 << (FILTER_BITS_LOG2 - 6)]);
        for (first, _) in &patterns {
            let (word, bit) = filter_bit(*first);
            filter[word] |= bit;
        }
        PatternSet { patterns, filter }
    }

    /// Returns true if one of the patterns begins with these bytes, the first of which is the highest.
    #[inline]
    pub(super) fn begins_with(&self, first: u64) -> bool {
        let (word, bit) = filter_bit(first);
        self.filter[word] & bit != 0 && self.has_start(first)
    }

    #[cold]
    fn has_start(&self, first: u64) -> bool {
        self.patterns.iter().any(|(start, _)| *start == first)
    }

    /// Returns the longest match at each position at which a pattern begins. Matches may overlap.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let windows = text.windows(PATTERN_BYTES_MIN).enumerate();
        let begun = windows
            .filter(|(_, window)| first_bytes(window).is_some_and(|first| self.begins_with(first)));
        let longest_at = |(at, _)| {
            let here = &text[at..];
            let longest = self.patterns.iter().find(|(_, pattern)| here.starts_with(pattern));
            longest.map(|(_, pattern)| at..at + pattern.len())
        };
        begun.filter_map(longest_at).collect()
    }
}

fn first_bytes(text: &[u8]) -> Option<u64> {
    text.first_chunk::<PATTERN_BYTES_MIN>().map(|first| u64::from_be_bytes(*first))
}

/// Returns the word and the bit of the filter for the first bytes of a pattern.
#[inline]
fn filter_bit(first: u64) -> (usize, u64) {
    let hash = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS_LOG2);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pattern_at_each_position_is_found() {
        let patterns = ["abcdefgh", "abcdefghij", "cdefghij", "short"];
        let set = PatternSet::new(patterns.map(|pattern| pattern.as_bytes().to_vec()));
        assert_eq!(set.find(b"xabcdefghijx"), [1..11, 3..11]);
        assert_eq!(set.find(b"xabcdefghxcdefghij"), [1..9, 10..18]);
        assert!(set.find(b"short").is_empty() && set.find(b"").is_empty());
        assert!(PatternSet::new([]).find(b"abcdefgh").is_empty());
    }
}
