//! Splits text into words, in any script, and reduces words to their stems.
//!
//! Words are split at everything that is neither letter nor digit, and at changes of case (`getUserName` is
//! three words). Scripts without spaces become overlapping pairs of characters. The background frequencies of
//! the model were counted by the same rules, so changing them requires counting again.

use std::collections::HashMap;
use std::sync::OnceLock;

use foldhash::fast::FixedState;
use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

mod table;

pub(crate) use table::WordTable;

/// The maximum length of a word: longer runs are data, not language.
const WORD_BYTES_MAX: usize = 64;

/// Calls `found` with every word of a text, in lower case and in order.
pub fn each_word(text: &str, mut found: impl FnMut(&str)) {
    each_word_joined(text, |word, joins| {
        if joins == 0 {
            found(word);
        }
    });
}

/// Like [`each_word`], but a word that was split at changes of case is also reported as a whole after its
/// parts, with their number: `GraphQL` gives `graph`, `ql` and `graphql`. The number is 0 for other words.
pub(crate) fn each_word_joined(text: &str, mut found: impl FnMut(&str, usize)) {
    let mut word = String::new();
    each_run(text, |run| match run {
        TextRun::Ascii(run) => split_ascii_words(run, &mut found),
        TextRun::Other(run) => split_words(run.nfkc(), &mut word, &mut |word: &str| found(word, 0)),
    });
}

/// A part of a text that begins and ends at white space.
pub(crate) enum TextRun<'a> {
    /// Any number of words in ASCII.
    Ascii(&'a str),
    /// A single run without white space that is not all ASCII.
    Other(&'a str),
}

/// Splits a text at ASCII white space, so that only runs that are not ASCII need Unicode normalisation: most
/// texts are ASCII but for a dash or an arrow somewhere. Normalisation never reaches across white space.
pub(crate) fn each_run<'a>(text: &'a str, mut found: impl FnMut(TextRun<'a>)) {
    let mut rest = text;
    while !rest.is_empty() {
        let bytes = rest.as_bytes();
        let ascii = ascii_bytes(bytes);
        let start = match ascii {
            all if all == bytes.len() => all,
            some => bytes[..some].iter().rposition(is_blank).map_or(0, |blank| blank + 1),
        };
        let length = bytes[ascii..].iter().position(is_blank);
        let end = length.map_or(bytes.len(), |length| ascii + length);
        if start > 0 {
            found(TextRun::Ascii(&rest[..start]));
        }
        if start < end {
            found(TextRun::Other(&rest[start..end]));
        }
        rest = &rest[end..];
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// Returns the number of leading ASCII bytes.
fn ascii_bytes(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = bytes.as_chunks::<BLOCK>().0.iter().take_while(|block| block.is_ascii()).count();
    let start = BLOCK * blocks;
    bytes[start..].iter().position(|byte| !byte.is_ascii()).map_or(bytes.len(), |at| start + at)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Lower,
    Upper,
    Digit,
    /// Scripts that are written without spaces between words.
    Dense,
    /// `+` and `#`, which belong to the word before them: `c++`, `c#`.
    Sign,
    /// An apostrophe within a word.
    Apostrophe,
    Other,
}

const fn class_of_ascii(c: u8) -> CharClass {
    match c {
        b'a'..=b'z' => CharClass::Lower,
        b'A'..=b'Z' => CharClass::Upper,
        b'0'..=b'9' => CharClass::Digit,
        b'+' | b'#' => CharClass::Sign,
        b'\'' => CharClass::Apostrophe,
        _ => CharClass::Other,
    }
}

/// The class of every byte, only meaningful for ASCII.
static CLASSES: [CharClass; 256] = {
    let mut classes = [CharClass::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class_of_ascii(byte as u8);
        byte += 1;
    }
    classes
};

/// Converts an ASCII word to lower case, copying only if necessary.
pub(crate) fn in_lower_case<'a>(word: &'a str, has_upper: bool, room: &'a mut String) -> &'a str {
    if !has_upper {
        return word;
    }
    room.clear();
    room.push_str(word);
    room.make_ascii_lowercase();
    room
}

/// Like [`cut`], for ASCII, where words are slices of the text unless they need lower-casing.
fn split_ascii_words(text: &str, found: &mut impl FnMut(&str, usize)) {
    let bytes = text.as_bytes();
    let mut lower = String::new();
    let mut flush = |start: usize, end: usize, has_upper: bool, joins: usize| {
        if start == end || end - start > WORD_BYTES_MAX {
            return;
        }
        found(in_lower_case(&text[start..end], has_upper, &mut lower), joins);
    };
    let (mut start, mut has_upper, mut before) = (0, false, CharClass::Other);
    // The start of the joined word whose parts are being split off, and their number.
    let (mut whole, mut parts) = (0, 0);
    for (at, byte) in bytes.iter().enumerate() {
        let class = CLASSES[usize::from(*byte)];
        let starts_word = match class {
            CharClass::Lower | CharClass::Digit => before == CharClass::Sign,
            CharClass::Upper => match before {
                CharClass::Lower | CharClass::Digit | CharClass::Sign => true,
                CharClass::Upper => {
                    bytes.get(at + 1).is_some_and(|next| class_of_ascii(*next) == CharClass::Lower)
                }
                _ => false,
            },
            CharClass::Sign if start < at => false,
            _ => {
                flush(start, at, has_upper, 0);
                if parts > 0 {
                    flush(whole, at, true, parts + 1);
                }
                (start, has_upper, before) = (at + 1, false, class);
                (whole, parts) = (at + 1, 0);
                continue;
            }
        };
        if starts_word && start < at {
            flush(start, at, has_upper, 0);
            (start, has_upper) = (at, false);
            parts += 1;
        }
        has_upper |= class == CharClass::Upper;
        before = class;
    }
    flush(start, bytes.len(), has_upper, 0);
    if parts > 0 {
        flush(whole, bytes.len(), true, parts + 1);
    }
}

fn class_of(c: char) -> CharClass {
    match c {
        'a'..='z' => CharClass::Lower,
        'A'..='Z' => CharClass::Upper,
        '0'..='9' => CharClass::Digit,
        '+' | '#' => CharClass::Sign,
        '\'' | '\u{2019}' => CharClass::Apostrophe,
        _ if c.is_ascii() => CharClass::Other,
        _ if is_dense(c) => CharClass::Dense,
        _ if c.is_uppercase() => CharClass::Upper,
        _ if c.is_numeric() => CharClass::Digit,
        _ if c.is_alphanumeric() || is_mark(c) => CharClass::Lower,
        _ => CharClass::Other,
    }
}

/// Returns true if a character belongs to a script without spaces between words.
pub(crate) fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'     // Thai, Lao
        | '\u{1000}'..='\u{109f}'   // Burmese
        | '\u{1780}'..='\u{17ff}'   // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'   // kana
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

/// Returns true for vowel signs and accents that are separate characters.
pub(crate) fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

fn split_words(text: impl Iterator<Item = char>, word: &mut String, found: &mut impl FnMut(&str)) {
    let mut flush = |word: &mut String| {
        if !word.is_empty() && word.len() <= WORD_BYTES_MAX {
            found(word);
        }
        word.clear();
    };
    let mut before = CharClass::Other;
    let mut dense: Option<char> = None;
    let mut dense_is_paired = false;
    let mut text = text.peekable();
    while let Some(c) = text.next() {
        let class = class_of(c);
        if class == CharClass::Dense {
            flush(word);
            if let Some(first) = dense {
                word.push(first);
                word.push(c);
                flush(word);
            }
            dense_is_paired = dense.is_some();
            dense = Some(c);
            before = class;
            continue;
        }
        if let Some(alone) = dense.take()
            && !dense_is_paired
        {
            word.push(alone);
            flush(word);
        }
        match class {
            CharClass::Upper => {
                let next_is_lower =
                    text.peek().is_some_and(|next| class_of(*next) == CharClass::Lower);
                // `parseURLNow`: a new word starts at `U`, after lower case, and at the `N` that begins
                // `Now`.
                if matches!(before, CharClass::Lower | CharClass::Digit)
                    || (before == CharClass::Upper && next_is_lower)
                {
                    flush(word);
                }
                if before == CharClass::Sign {
                    flush(word);
                }
                word.extend(c.to_lowercase());
            }
            CharClass::Lower | CharClass::Digit => {
                if before == CharClass::Sign {
                    flush(word);
                }
                word.push(c);
            }
            CharClass::Sign if !word.is_empty() => word.push(c),
            // `don't` and `team's`: the part after the apostrophe is useless as a search word.
            CharClass::Apostrophe if !word.is_empty() => flush(word),
            _ => flush(word),
        }
        before = class;
        // Bounds the memory for runs that are not words.
        if word.len() > WORD_BYTES_MAX + 4 {
            word.truncate(0);
            word.push_str(OVERLONG);
        }
    }
    if let Some(alone) = dense
        && !dense_is_paired
    {
        word.push(alone);
    }
    flush(word);
}

/// Longer than any word, so that the rest of the run is dropped together with it.
const OVERLONG: &str = "_________________________________________________________________";

/// A language with a stemmer and a list of stop words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextLanguage(u8);

struct LanguageData {
    algorithm: Algorithm,
    stop: &'static str,
}

/// The supported languages. The first is the default.
const LANGUAGES: &[LanguageData] = &[
    LanguageData { algorithm: Algorithm::English, stop: include_str!("../data/stop/english.txt") },
    LanguageData { algorithm: Algorithm::Danish, stop: include_str!("../data/stop/danish.txt") },
    LanguageData { algorithm: Algorithm::German, stop: include_str!("../data/stop/german.txt") },
    LanguageData { algorithm: Algorithm::French, stop: include_str!("../data/stop/french.txt") },
    LanguageData { algorithm: Algorithm::Spanish, stop: include_str!("../data/stop/spanish.txt") },
    LanguageData {
        algorithm: Algorithm::Portuguese,
        stop: include_str!("../data/stop/portuguese.txt"),
    },
    LanguageData { algorithm: Algorithm::Italian, stop: include_str!("../data/stop/italian.txt") },
    LanguageData { algorithm: Algorithm::Dutch, stop: include_str!("../data/stop/dutch.txt") },
    LanguageData { algorithm: Algorithm::Swedish, stop: include_str!("../data/stop/swedish.txt") },
    LanguageData {
        algorithm: Algorithm::Norwegian,
        stop: include_str!("../data/stop/norwegian.txt"),
    },
];

/// Stop words of the domain: they occur in the description of nearly every skill, and in many tasks.
static GENRE: &str = include_str!("../data/stop/genre.txt");

impl TextLanguage {
    pub const ENGLISH: TextLanguage = TextLanguage(0);

    pub(crate) const COUNT: usize = LANGUAGES.len();

    /// The index of the language, less than [`Language::COUNT`].
    pub(crate) fn table_index(self) -> usize {
        usize::from(self.0)
    }

    /// Iterates over every language but English.
    pub fn all_but_english() -> impl Iterator<Item = TextLanguage> {
        (1..LANGUAGES.len() as u8).map(TextLanguage)
    }

    /// Detects the language of a text by counting stop words in its first bytes.
    ///
    /// The result is English unless another language has more stop words, and at least two.
    pub fn detect_language(text: &str) -> TextLanguage {
        const BYTES_READ: usize = 1200;
        let mut votes = [0u32; LANGUAGES.len()];
        each_word(&text[..text.floor_char_boundary(BYTES_READ)], |word| {
            let mut left = stop_words().get(word).map_or(0, LanguageSet::votes);
            while left != 0 {
                votes[left.trailing_zeros() as usize] += 1;
                left &= left - 1;
            }
        });
        let english = votes[0];
        let (best, most) =
            votes.iter().enumerate().skip(1).fold((0, 0), |best, (at, votes)| {
                if *votes > best.1 { (at, *votes) } else { best }
            });
        if most >= 2 && most > english { TextLanguage(best as u8) } else { TextLanguage::ENGLISH }
    }

    /// Returns true if a word carries no meaning in this language, in English or in the domain of skills.
    pub fn is_stop_word(self, word: &str) -> bool {
        let never = LanguageSet::GENRE | LanguageSet::language_bit(TextLanguage::ENGLISH.0);
        stop_words()
            .get(word)
            .is_some_and(|languages| languages.0 & (never | LanguageSet::language_bit(self.0)) != 0)
    }

    /// Returns the stem of a lower-case word.
    pub fn stem(self, word: &str) -> String {
        let known = &LANGUAGES[usize::from(self.0)];
        Stemmer::new(known.algorithm).stem(word).into_owned()
    }
}

/// The set of languages in which a word is a stop word, one bit each.
#[derive(Clone, Copy, Default)]
struct LanguageSet(u16);

impl LanguageSet {
    /// Set for stop words of the domain.
    const GENRE: u16 = 1 << 15;

    const fn language_bit(language: u8) -> u16 {
        1 << language
    }

    /// The languages that the word is evidence for. Domain words occur in all of them, so they are evidence
    /// for none.
    fn votes(&self) -> u16 {
        if self.0 & Self::GENRE == 0 { self.0 } else { 0 }
    }
}

const _: () = assert!(LANGUAGES.len() < 15, "a bit a language");

/// The keys are our own word lists, so a hash without random state is safe from chosen collisions.
type StopWordTable = HashMap<&'static str, LanguageSet, FixedState>;

fn stop_words() -> &'static StopWordTable {
    static WORDS: OnceLock<StopWordTable> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words = StopWordTable::default();
        words.reserve(1024);
        for (known, language) in LANGUAGES.iter().zip(0..) {
            for word in known.stop.split_ascii_whitespace() {
                words.entry(word).or_default().0 |= LanguageSet::language_bit(language);
            }
        }
        for word in GENRE.split_ascii_whitespace() {
            words.entry(word).or_default().0 |= LanguageSet::GENRE;
        }
        words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        each_word(text, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn identifiers_are_cut_at_case_hyphen_and_underscore() {
        assert_eq!(words("getUserName"), ["get", "user", "name"]);
        assert_eq!(
            words("parseURLNow danish-tender_guidelines"),
            ["parse", "url", "now", "danish", "tender", "guidelines"]
        );
        assert_eq!(words("oauth2Login v1.2"), ["oauth2", "login", "v1", "2"]);
        assert_eq!(words("C++ and c# in it's"), ["c++", "and", "c#", "in", "it", "s"]);
    }

    #[test]
    fn a_word_that_was_cut_at_changes_of_case_is_also_given_as_a_whole() {
        let mut all = Vec::new();
        each_word_joined("GraphQL and JavaScript, c++Next x", |word, joins| {
            all.push(format!("{word}{}", "'".repeat(joins)));
        });
        assert_eq!(
            all.join(" "),
            "graph ql graphql'' and java script javascript'' c++ next c++next'' x"
        );
    }

    #[test]
    fn scripts_without_spaces_become_pairs_of_characters() {
        assert_eq!(words("日本語"), ["日本", "本語"]);
        assert_eq!(words("猫 and 翻訳API"), ["猫", "and", "翻訳", "api"]);
        assert_eq!(words("Ｐｄｆ文書"), ["pdf", "文書"]);
    }

    #[test]
    fn letters_of_every_script_are_letters() {
        assert_eq!(words("Udbuddets ÆØÅ-krav"), ["udbuddets", "æøå", "krav"]);
        assert_eq!(words("Привет, мир"), ["привет", "мир"]);
        assert_eq!(words("हिन्दी"), ["हिन्दी"]);
    }

    proptest::proptest! {
        #[test]
        fn a_text_in_runs_is_cut_like_a_whole_one(
            text in "[a-cA-C0-1+#' \n.x\u{e9}\u{301}\u{308}\u{fb01}\u{a8}\u{2019}\u{3000}\u{65e5}\u{672c}-]{0,200}"
        ) {
            let mut all = Vec::new();
            split_words(text.nfkc(), &mut String::new(), &mut |word: &str| all.push(word.to_owned()));
            proptest::prop_assert_eq!(words(&text), all);
        }
    }

    #[test]
    fn a_run_without_end_is_no_word() {
        assert_eq!(words(&format!("a {} b", "x".repeat(100_000))), ["a", "b"]);
    }

    #[test]
    fn a_language_is_known_by_its_little_words() {
        assert_eq!(
            TextLanguage::detect_language("Analyse the tender and its annexes"),
            TextLanguage::ENGLISH
        );
        let danish = TextLanguage::detect_language(
            "Gennemgå udbudsmaterialet og find de krav, der skal opfyldes",
        );
        assert_eq!(danish.stem("udbuddets"), "udbud");
        assert_eq!(TextLanguage::detect_language("zip"), TextLanguage::ENGLISH);
    }
}
