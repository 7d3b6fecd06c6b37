//! Which pairs of words stand side by side in a skill, as a Bloom filter a skill.
//!
//! That `pull` and `request` stand together says more than that both occur. Keeping every pair would take more
//! room than all the rest; a filter takes eight bits a pair and is wrong once in forty times, in favour of a
//! skill that has both words anyway.

const BITS_A_PAIR: usize = 8;
const PROBES: u32 = 5;

/// A stem, as a number that is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StemHash(u64);

impl StemHash {
    pub(crate) fn new(stem: &str) -> Self {
        // FNV-1a: good enough for a word.
        let hash = stem.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // Its low bits alone are weak.
        StemHash((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }
}

/// A pair of stems, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pair(u64);

impl Pair {
    pub(crate) fn new(first: StemHash, second: StemHash) -> Self {
        let both = first.0.rotate_left(17).wrapping_add(second.0);
        let both = (both ^ (both >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Pair(both ^ (both >> 29))
    }

    fn probes(self, bits: usize) -> impl Iterator<Item = usize> {
        // A number below 2^32 times `bits`, without its low half, is one below `bits`: cheaper than a rest.
        let (start, step) = (self.0 as u32, (self.0 >> 32) as u32 | 1);
        (0..PROBES).map(move |probe| {
            let at = start.wrapping_add(probe.wrapping_mul(step));
            ((u64::from(at) * bits as u64) >> 32) as usize
        })
    }
}

/// A filter that has these pairs.
pub(crate) fn filter(pairs: &mut Vec<Pair>) -> Vec<u8> {
    pairs.sort_unstable();
    pairs.dedup();
    let mut filter = vec![0u8; (pairs.len() * BITS_A_PAIR).div_ceil(8)];
    let bits = 8 * filter.len();
    for bit in pairs.iter().flat_map(|pair| pair.probes(bits)) {
        filter[bit / 8] |= 1 << (bit % 8);
    }
    filter
}

/// Whether a filter has a pair, or looks as if.
pub(crate) fn has(filter: &[u8], pair: Pair) -> bool {
    !filter.is_empty()
        && pair.probes(8 * filter.len()).all(|bit| filter[bit / 8] & (1 << (bit % 8)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_what_was_put_in_and_little_else() {
        let pair = |n: usize| Pair::new(StemHash::new(&format!("word{n}")), StemHash::new("next"));
        let mut pairs: Vec<Pair> = (0..500).map(pair).collect();
        let filter = filter(&mut pairs);
        assert!((0..500).all(|n| has(&filter, pair(n))));
        let wrong = (500..10_500).filter(|n| has(&filter, pair(*n))).count();
        assert!(wrong < 350, "{wrong} of 10,000");
        assert!(!has(&[], pair(0)));
    }
}
