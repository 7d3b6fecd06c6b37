//! Posting lists, one per stem, packed into bytes.

/// A skill in the posting list of a stem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StemPosting {
    /// The index of the skill in the catalog.
    pub(crate) skill: u32,
    /// The weight of the stem in name and description.
    pub(crate) head: StemWeight,
    /// The weight of the stem in headings and body.
    pub(crate) body: StemWeight,
}

/// The weight of a stem in half a skill and the fields that contain it, packed into one byte: six bits of
/// weight, two bits of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StemWeight(pub(super) u8);

const LEVELS: u8 = 63;

impl StemWeight {
    /// `in_strong` stands for the name or a heading, `in_plain` for the description or the text.
    pub(crate) fn new(saturation: f32, in_strong: bool, in_plain: bool) -> Self {
        if !in_strong && !in_plain {
            return StemWeight(0);
        }
        let level = (saturation * f32::from(LEVELS)).round().clamp(1.0, f32::from(LEVELS)) as u8;
        StemWeight(level << 2 | u8::from(in_strong) << 1 | u8::from(in_plain))
    }

    pub(crate) fn level(self) -> usize {
        usize::from(self.0 >> 2)
    }

    /// The weight from 0 to 1.
    pub(crate) fn as_fraction(self) -> f32 {
        f32::from(self.0 >> 2) / f32::from(LEVELS)
    }

    pub(crate) fn in_strong(self) -> bool {
        self.0 & 2 != 0
    }

    pub(crate) fn in_plain(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Returns the value of each weight level, times a factor.
pub(crate) fn level_values(factor: f32) -> [f32; LEVELS as usize + 1] {
    std::array::from_fn(|level| factor * level as f32 / f32::from(LEVELS))
}

/// The posting lists of all stems.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PostingLists {
    /// The end offset of each list.
    pub(super) ends: Vec<u32>,
    /// The number of skills that contain each stem anywhere, and in name or description.
    pub(super) frequencies: Vec<[u32; 2]>,
    pub(super) bytes: Vec<u8>,
}

impl PostingLists {
    /// Packs posting lists that come in the order of stems, each sorted by skill.
    ///
    /// Each posting is stored as the distance to the previous skill, shifted by one bit that says whether a
    /// head weight follows the body weight.
    pub(super) fn pack(lists: impl Iterator<Item = impl Iterator<Item = StemPosting>>) -> Self {
        let mut packed = PostingLists::default();
        for list in lists {
            let mut next = 0;
            let mut frequencies = [0; 2];
            for StemPosting { skill, head, body } in list {
                // Skills are sorted; duplicates can only come from an earlier index file that was tampered
                // with.
                let Some(distance) = skill.checked_sub(next) else { continue };
                let in_head = head != StemWeight(0);
                put_number(&mut packed.bytes, distance << 1 | u32::from(in_head));
                packed.bytes.push(body.0);
                if in_head {
                    packed.bytes.push(head.0);
                }
                next = skill + 1;
                frequencies[0] += 1;
                frequencies[1] += u32::from(in_head);
            }
            packed.ends.push(packed.bytes.len() as u32);
            packed.frequencies.push(frequencies);
        }
        packed.bytes.shrink_to_fit();
        packed
    }

    pub(super) fn memory_bytes(&self) -> usize {
        4 * self.ends.len() + 8 * self.frequencies.len() + self.bytes.len()
    }

    fn list_bytes(&self, term: usize) -> &[u8] {
        let start = term.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |e| *e);
        let end = self.ends.get(term).copied().unwrap_or(start);
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Iterates over the posting list of a stem. Malformed bytes give a shorter list, never a panic.
    pub(super) fn iter_list(&self, term: usize) -> impl Iterator<Item = StemPosting> {
        let mut list = PostingCursor { rest: self.list_bytes(term), next: 0 };
        std::iter::from_fn(move || list.next_posting())
    }

    /// Calls `found` with every posting of a stem. This is the hot loop of scoring.
    #[inline]
    pub(super) fn for_each(&self, term: usize, mut found: impl FnMut(StemPosting)) {
        let mut list = PostingCursor { rest: self.list_bytes(term), next: 0 };
        loop {
            // Fast path: nearly all postings are a one-byte distance and one or two weights.
            while let [distance @ 0..0x80, body, head, ..] = list.rest {
                let in_head = distance & 1;
                let skill = list.next.wrapping_add(u32::from(distance >> 1));
                list.next = skill.wrapping_add(1);
                found(StemPosting {
                    skill,
                    head: StemWeight(head * in_head),
                    body: StemWeight(*body),
                });
                list.rest = &list.rest[2 + usize::from(in_head)..];
            }
            match list.next_posting() {
                Some(posting) => found(posting),
                None => return,
            }
        }
    }
}

/// A cursor into a posting list.
struct PostingCursor<'a> {
    rest: &'a [u8],
    /// The number after the last skill that was read.
    next: u32,
}

impl PostingCursor<'_> {
    fn next_posting(&mut self) -> Option<StemPosting> {
        let number = take_number(&mut self.rest)?;
        let skill = self.next.wrapping_add(number >> 1);
        self.next = skill.wrapping_add(1);
        let body = take_weight(&mut self.rest)?;
        let head = if number & 1 == 1 { take_weight(&mut self.rest)? } else { StemWeight(0) };
        Some(StemPosting { skill, head, body })
    }
}

/// Writes a number as LEB128: seven bits per byte, lowest first, with the high bit set if more follow.
fn put_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn take_weight(bytes: &mut &[u8]) -> Option<StemWeight> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(StemWeight(*first))
}

#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let (first, mut rest) = bytes.split_first()?;
    let mut number = u32::from(first & 0x7f);
    if first & 0x80 != 0 {
        let mut shift = 7;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = after;
            number |= u32::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *bytes = rest;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_as_they_were_packed() {
        let list = |skills: &'static [u32]| {
            skills.iter().map(|skill| StemPosting {
                skill: *skill,
                head: StemWeight::new(0.5, skill % 3 == 0, false),
                body: StemWeight::new(*skill as f32 / 100_000.0, skill % 2 == 0, true),
            })
        };
        let lists: [&[u32]; 4] = [&[0, 1, 2], &[], &[7, 300, 70_000, 99_999], &[16_384]];
        let packed = PostingLists::pack(lists.into_iter().map(list));
        for (term, expected) in lists.into_iter().enumerate() {
            assert!(packed.iter_list(term).eq(list(expected)), "list {term}");
            let mut each = Vec::new();
            packed.for_each(term, |posting| each.push(posting));
            assert!(list(expected).eq(each), "list {term}");
            assert_eq!(packed.frequencies[term][0] as usize, expected.len());
        }
        assert_eq!(packed.frequencies[0][1], 1);
        assert_eq!(packed.iter_list(4).count(), 0);
    }

    #[test]
    fn a_weight_keeps_fields_and_nearly_its_size() {
        let weight = StemWeight::new(0.5, true, false);
        assert!(weight.in_strong() && !weight.in_plain());
        assert!((level_values(1.0)[weight.level()] - 0.5).abs() < 0.01);
        assert_eq!(StemWeight::new(0.0, false, true).level(), 1);
        assert_eq!(StemWeight::new(2.0, false, true).level(), 63);
        assert_eq!(StemWeight::new(1.0, false, false), StemWeight(0));
    }
}
