//! Document frequencies of words in a large corpus of public skills.
//!
//! In a catalog of thirty skills, a word's own frequency says little: a word found in one of thirty may be
//! highly distinctive or there by accident. Every catalog is therefore scored as if this background corpus
//! stood beside it.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::string_table::{BytesReader, StringTable};

const MAGIC: &[u8; 8] = b"REPBDF1\n";

static EMBEDDED: &[u8] = include_bytes!("../data/model/background.bin");

/// The part of a skill in which a word was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrequencyPart {
    /// Name and description.
    Head,
    /// Name, description and the beginning of the body.
    Whole,
}

/// Document frequencies over a large corpus.
#[derive(Clone, Debug)]
pub struct BackgroundFrequencies {
    skills: u32,
    stems: StringTable,
    head: Cow<'static, [u8]>,
    whole: Cow<'static, [u8]>,
}

impl BackgroundFrequencies {
    /// The frequencies embedded in the program.
    pub fn embedded() -> &'static BackgroundFrequencies {
        static BACKGROUND: OnceLock<BackgroundFrequencies> = OnceLock::new();
        BACKGROUND.get_or_init(|| {
            BackgroundFrequencies::read(Cow::Borrowed(EMBEDDED))
                .unwrap_or_else(BackgroundFrequencies::without_frequencies)
        })
    }

    /// Returns an empty background, so that a catalog is scored by its own frequencies alone.
    pub fn without_frequencies() -> BackgroundFrequencies {
        let nothing = Cow::Borrowed(&[] as &[u8]);
        BackgroundFrequencies {
            skills: 1,
            stems: StringTable::default(),
            head: nothing.clone(),
            whole: nothing,
        }
    }

    /// Parses the format that [`BackgroundFrequencies::write`] produces; `None` if the bytes are malformed.
    pub fn read(bytes: Cow<'static, [u8]>) -> Option<BackgroundFrequencies> {
        let mut reader = BytesReader::new(bytes);
        reader.expect_bytes(MAGIC)?;
        let skills = reader.read_u32()?;
        let stems = StringTable::read(&mut reader)?;
        let head = reader.take_bytes(2 * stems.len())?;
        let whole = reader.take_bytes(2 * stems.len())?;
        (skills > 0 && reader.is_at_end()).then_some(BackgroundFrequencies {
            skills,
            stems,
            head,
            whole,
        })
    }

    /// Serialises a table of sorted stems, each with the number of skills that have it in their head, and
    /// anywhere.
    pub fn write(skills: u32, counts: &std::collections::BTreeMap<String, (u16, u16)>) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&skills.to_le_bytes());
        StringTable::from_sorted(counts.keys().map(String::as_str)).write(&mut bytes);
        bytes.extend(counts.values().flat_map(|(head, _)| head.to_le_bytes()));
        bytes.extend(counts.values().flat_map(|(_, whole)| whole.to_le_bytes()));
        bytes
    }

    /// Returns the stems in sorted order.
    pub fn stems(&self) -> impl Iterator<Item = &str> {
        self.stems.iter()
    }

    /// Returns the fraction of skills that contain a stem, from 0 to 1.
    pub fn share_of_stem(&self, stem: &str, part: FrequencyPart) -> f32 {
        self.find_stem(stem).map_or(0.0, |at| self.share_at(at, part))
    }

    /// Returns the position of a stem in the sorted table.
    pub(crate) fn find_stem(&self, stem: &str) -> Option<usize> {
        self.stems.find(stem)
    }

    /// Returns the fraction of skills that contain the stem at position `at`.
    pub(crate) fn share_at(&self, at: usize, part: FrequencyPart) -> f32 {
        let counts = match part {
            FrequencyPart::Head => &self.head,
            FrequencyPart::Whole => &self.whole,
        };
        let count = counts.get(2 * at..2 * at + 2);
        let count = count.map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        f32::from(count) / self.skills as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_frequencies_can_be_read() {
        let background = BackgroundFrequencies::embedded();
        let common = background.share_of_stem("file", FrequencyPart::Whole);
        let rare = background.share_of_stem("tender", FrequencyPart::Whole);
        assert!(common > 0.4 && rare > 0.0 && rare < 0.001, "{common} {rare}");
        assert_eq!(background.share_of_stem("no such stem", FrequencyPart::Head), 0.0);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let counts = [("b".to_owned(), (1, 2)), ("a".to_owned(), (0, 7))].into();
        let read =
            BackgroundFrequencies::read(BackgroundFrequencies::write(10, &counts).into()).unwrap();
        assert_eq!(read.share_of_stem("a", FrequencyPart::Whole), 0.7);
        assert_eq!(read.share_of_stem("a", FrequencyPart::Head), 0.0);
        assert_eq!(read.share_of_stem("b", FrequencyPart::Head), 0.1);
    }
}
