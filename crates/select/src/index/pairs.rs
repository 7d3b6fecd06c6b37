//! The pairs of adjacent words in a skill, as one Bloom filter per skill.
//!
//! `pull` next to `request` says more than both words anywhere. Storing every pair would take more space than
//! the rest of the index. A filter takes eight bits per pair, with about one false positive in forty, and
//! only for skills that contain both words anyway.

const BITS_A_PAIR: usize = 8;
const PROBES: u32 = 5;

/// The hash of a stem, equal on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StemHash(u64);

impl StemHash {
    pub(crate) fn new(stem: &str) -> Self {
        // FNV-1a is good enough for single words.
        let hash = stem.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // The low bits of FNV-1a alone are weak, so mix once more.
        StemHash((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }
}

/// The hash of an ordered pair of stems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StemPair(u64);

impl StemPair {
    pub(crate) fn new(first: StemHash, second: StemHash) -> Self {
        let both = first.0.rotate_left(17).wrapping_add(second.0);
        let both = (both ^ (both >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        StemPair(both ^ (both >> 29))
    }

    fn probe_bits(self, bits: usize) -> impl Iterator<Item = usize> {
        // Multiply and shift maps a 32-bit number to the range below `bits`, and is cheaper than a remainder.
        let (start, step) = (self.0 as u32, (self.0 >> 32) as u32 | 1);
        (0..PROBES).map(move |probe| {
            let at = start.wrapping_add(probe.wrapping_mul(step));
            ((u64::from(at) * bits as u64) >> 32) as usize
        })
    }
}

/// Builds a filter that contains these pairs.
pub(crate) fn build_filter(pairs: &mut Vec<StemPair>) -> Vec<u8> {
    pairs.sort_unstable();
    pairs.dedup();
    let mut filter = vec![0u8; (pairs.len() * BITS_A_PAIR).div_ceil(8)];
    let bits = 8 * filter.len();
    for bit in pairs.iter().flat_map(|pair| pair.probe_bits(bits)) {
        filter[bit / 8] |= 1 << (bit % 8);
    }
    filter
}

/// Returns true if a filter contains a pair, or gives a false positive.
pub(crate) fn filter_contains(filter: &[u8], pair: StemPair) -> bool {
    !filter.is_empty()
        && pair.probe_bits(8 * filter.len()).all(|bit| filter[bit / 8] & (1 << (bit % 8)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_what_was_put_in_and_little_else() {
        let pair =
            |n: usize| StemPair::new(StemHash::new(&format!("word{n}")), StemHash::new("next"));
        let mut pairs: Vec<StemPair> = (0..500).map(pair).collect();
        let filter = build_filter(&mut pairs);
        assert!((0..500).all(|n| filter_contains(&filter, pair(n))));
        let wrong = (500..10_500).filter(|n| filter_contains(&filter, pair(*n))).count();
        assert!(wrong < 350, "{wrong} of 10,000");
        assert!(!filter_contains(&[], pair(0)));
    }
}
