//! Static word vectors: the vector of a text is the sum of its tokens' rows.
//!
//! A model is a vocabulary of WordPiece tokens and a matrix of signed bytes with one scale per row. There is
//! no network to run, only lookups, additions and a dot product. `data/model/README.md` describes the
//! embedded model; any other model of the same layout works as well.

use std::borrow::Cow;
use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::string_table::{BytesReader, StringTable};
use crate::tokenizer::{TextRun, WordTable, each_run, in_lower_case};

const MAGIC: &[u8; 8] = b"REPVEC1\n";
/// Longer words are skipped, because splitting takes quadratic time.
const WORD_CHARS_MAX: usize = 64;

static EMBEDDED: &[u8] = include_bytes!("../data/model/vectors.bin");

/// The reason why a matrix cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordVectorsError {
    /// The sizes of rows, scales and vocabulary do not match.
    #[error(
        "{tokens} tokens need {tokens} scales and a whole number of bytes a row, but there are {scales} scales and {bytes} bytes"
    )]
    Mismatch {
        /// The number of lines of the vocabulary.
        tokens: usize,
        scales: usize,
        /// The size of the matrix.
        bytes: usize,
    },
    /// A scale is not a finite number.
    #[error("the scale of row {row} is not a finite number")]
    Scale { row: usize },
    /// The number of dimensions is 0 or above the limit.
    #[error("{dimensions} dimensions; there must be 1 to {}", WordVectors::DIMENSIONS_MAX)]
    Dimensions { dimensions: usize },
}

/// A vocabulary and its matrix.
#[derive(Clone, Debug)]
pub struct WordVectors {
    tokens: StringTable,
    scales: Cow<'static, [u8]>,
    rows: Cow<'static, [u8]>,
    dimensions: usize,
    fingerprint: u64,
}

/// A quantised vector of length 1, or 0 for a text without any known token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextVector {
    pub bytes: Vec<i8>,
    /// The value of one unit of a component.
    pub scale: f32,
}

impl WordVectors {
    /// The maximum number of dimensions: within it, a dot product of bytes fits into 32 bits.
    pub const DIMENSIONS_MAX: usize = 4096;

    /// Returns the matrix embedded in the program.
    pub fn embedded() -> &'static WordVectors {
        static VECTORS: OnceLock<WordVectors> = OnceLock::new();
        VECTORS.get_or_init(|| {
            WordVectors::read(Cow::Borrowed(EMBEDDED)).unwrap_or_else(WordVectors::without_rows)
        })
    }

    /// Returns an empty matrix, under which no text is similar to any other.
    pub fn without_rows() -> WordVectors {
        let nothing = Cow::Borrowed(&[] as &[u8]);
        let tokens = StringTable::default();
        WordVectors {
            tokens,
            scales: nothing.clone(),
            rows: nothing,
            dimensions: 1,
            fingerprint: 0,
        }
    }

    /// Parses the format that [`WordVectors::write`] produces; `None` if the bytes are malformed.
    pub fn read(bytes: Cow<'static, [u8]>) -> Option<WordVectors> {
        let mut reader = BytesReader::new(bytes);
        reader.expect_bytes(MAGIC)?;
        let dimensions = reader.read_u32()? as usize;
        let tokens = StringTable::read(&mut reader)?;
        let scales = reader.take_bytes(4 * tokens.len())?;
        let rows = reader.take_bytes(tokens.len().checked_mul(dimensions)?)?;
        let fits = (1..=Self::DIMENSIONS_MAX).contains(&dimensions) && reader.is_at_end();
        // A packed file is embedded in the program, so its size and a sample of its numbers are enough to
        // tell versions apart. Hashing all of it would page in the whole file.
        let some = rows.iter().step_by(997).chain(scales.iter().step_by(97));
        let fingerprint = mix_all(mix_hash(tokens.len() as u64, dimensions as u64), some.copied());
        fits.then_some(WordVectors { tokens, scales, rows, dimensions, fingerprint })
    }

    /// Builds a matrix from its three parts: one token per line, one little-endian `f32` per row, and the
    /// rows in the same order. Such matrices are published in this layout.
    pub fn from_parts(
        vocabulary: &str,
        scales: &[u8],
        rows: &[u8],
    ) -> Result<WordVectors, WordVectorsError> {
        let lines: Vec<&str> = vocabulary.lines().collect();
        let dimensions = rows.len() / lines.len().max(1);
        if scales.len() != 4 * lines.len() || rows.len() != dimensions * lines.len() {
            let (tokens, scales, bytes) = (lines.len(), scales.len() / 4, rows.len());
            return Err(WordVectorsError::Mismatch { tokens, scales, bytes });
        }
        if !(1..=Self::DIMENSIONS_MAX).contains(&dimensions) {
            return Err(WordVectorsError::Dimensions { dimensions });
        }
        let scale = |row: usize| f32_at(scales, row);
        if let Some(row) = (0..lines.len()).find(|row| !scale(*row).is_finite()) {
            return Err(WordVectorsError::Scale { row });
        }
        let all = vocabulary.bytes().chain(scales.iter().copied()).chain(rows.iter().copied());
        let fingerprint = mix_all(dimensions as u64, all);
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|row| lines[*row]);
        order.dedup_by_key(|row| lines[*row]);
        Ok(WordVectors {
            tokens: StringTable::from_sorted(order.iter().map(|row| lines[*row])),
            scales: order.iter().flat_map(|row| scale(*row).to_le_bytes()).collect(),
            rows: order
                .iter()
                .flat_map(|row| &rows[row * dimensions..(row + 1) * dimensions])
                .copied()
                .collect(),
            dimensions,
            fingerprint,
        })
    }

    /// Serialises the matrix as one file that can be used without further processing.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(self.dimensions as u32).to_le_bytes());
        self.tokens.write(&mut bytes);
        bytes.extend_from_slice(&self.scales);
        bytes.extend_from_slice(&self.rows);
        bytes
    }

    /// Identifies the matrix. An index that was built with another one cannot be used.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The number of components of a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Creates an encoder for many texts.
    pub fn encoder(&self) -> TextEncoder<'_> {
        TextEncoder {
            vectors: self,
            words: WordTable::new(),
            known: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Encodes one text.
    pub fn encode(&self, text: &str) -> TextVector {
        let mut sum = self.empty_sum();
        self.add_text(text, &mut sum);
        quantise_sum(&sum)
    }

    /// Returns a zero vector, to which texts can be added.
    pub(crate) fn empty_sum(&self) -> Vec<f32> {
        vec![0.0; self.dimensions]
    }

    /// Adds the rows of a text's tokens to a sum.
    pub(crate) fn add_text(&self, text: &str, sum: &mut [f32]) {
        let mut pieces = Vec::new();
        each_word(text, |word| self.split_word(word, &mut pieces));
        self.add_rows(&pieces, sum);
    }

    fn add_rows(&self, pieces: &[u32], sum: &mut [f32]) {
        run_widest(AddRows { vectors: self, pieces, sum });
    }
}

/// One step of FNV-1a.
fn mix_hash(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(0x0100_0000_01b3)
}

fn mix_all(start: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(mix_hash(0xcbf2_9ce4_8422_2325, start), |hash, byte| mix_hash(hash, u64::from(byte)))
}

fn f32_at(bytes: &[u8], at: usize) -> f32 {
    let four = bytes.get(4 * at..4 * at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0.0, f32::from_le_bytes)
}

/// Encodes many texts, and caches the tokens of each word.
pub struct TextEncoder<'a> {
    vectors: &'a WordVectors,
    /// The range of each word's tokens in `known`.
    words: WordTable<(u32, u32)>,
    known: Vec<u32>,
    /// The tokens of the current text.
    pieces: Vec<u32>,
}

impl TextEncoder<'_> {
    /// The maximum number of cached words, so that untrusted texts cannot exhaust memory.
    const WORDS_MAX: usize = 1 << 18;

    /// Encodes one text.
    pub fn encode(&mut self, text: &str) -> TextVector {
        let TextEncoder { vectors, words, known, pieces } = self;
        pieces.clear();
        each_word(text, |word| {
            if let Some((start, end)) = words.get(word) {
                pieces.extend_from_slice(&known[start as usize..end as usize]);
                return;
            }
            let start = pieces.len();
            vectors.split_word(word, pieces);
            if words.len() < Self::WORDS_MAX && word.len() <= 4 * WORD_CHARS_MAX {
                let range = (known.len() as u32, (known.len() + pieces.len() - start) as u32);
                known.extend_from_slice(&pieces[start..]);
                words.insert(word, range);
            }
        });
        let mut sum = vectors.empty_sum();
        vectors.add_rows(pieces, &mut sum);
        quantise_sum(&sum)
    }
}

impl WordVectors {
    /// Splits a word into the longest known tokens from the left. Adds none if any part is unknown.
    fn split_word(&self, word: &str, pieces: &mut Vec<u32>) {
        if let Some(whole) = self.tokens.find(word) {
            pieces.push(whole as u32);
            return;
        }
        if word.chars().count() > WORD_CHARS_MAX {
            return;
        }
        let before = pieces.len();
        let mut candidate = String::with_capacity(word.len() + 2);
        let mut start = 0;
        while start < word.len() {
            let ends = word[start..].char_indices().map(|(at, c)| start + at + c.len_utf8());
            let found = ends.rev().find_map(|end| {
                candidate.clear();
                if start > 0 {
                    candidate.push_str("##");
                }
                candidate.push_str(&word[start..end]);
                self.tokens.find(&candidate).map(|token| (token, end))
            });
            let Some((token, end)) = found else { return pieces.truncate(before) };
            pieces.push(token as u32);
            start = end;
        }
    }
}

/// Calls `found` with every word of a text in the form of the vocabulary: in lower case without accents,
/// split at changes of case, with every punctuation mark and every ideograph as its own word.
fn each_word(text: &str, mut found: impl FnMut(&str)) {
    let mut normal = String::new();
    each_run(text, |run| match run {
        TextRun::Ascii(run) => each_ascii_word(run, &mut found),
        TextRun::Other(run) => {
            normal.clear();
            normalise_text(run, &mut normal);
            normal.split(' ').filter(|word| !word.is_empty()).for_each(&mut found);
        }
    });
}

/// The ASCII variant, which does not allocate unless a word has upper-case letters.
fn each_ascii_word(text: &str, found: &mut impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut lower = String::new();
    let mut flush = |start: usize, end: usize, has_upper: bool| {
        if start < end {
            found(in_lower_case(&text[start..end], has_upper, &mut lower));
        }
    };
    let (mut start, mut has_upper, mut after_lower) = (0, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() {
            after_lower = true;
        } else if byte.is_ascii_uppercase() {
            if after_lower {
                flush(start, at, has_upper);
                start = at;
            }
            (has_upper, after_lower) = (true, false);
        } else {
            flush(start, at, has_upper);
            if byte.is_ascii_graphic() {
                flush(at, at + 1, false);
            }
            (start, has_upper, after_lower) = (at + 1, false, false);
        }
    }
    flush(start, bytes.len(), has_upper);
}

/// Converts to lower case without accents, with spaces between the words.
fn normalise_text(text: &str, out: &mut String) {
    let mut after_lower = false;
    for c in text.nfd().filter(|c| !is_combining_mark(*c)) {
        if after_lower && c.is_uppercase() {
            out.push(' ');
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        let is_ideograph = matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}');
        if c.is_whitespace() || c.is_control() {
            out.push(' ');
        } else if is_ideograph || !(c.is_alphanumeric() || is_combining_mark(c)) {
            out.extend([' ', c, ' ']);
        } else if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else {
            out.extend(c.to_lowercase().nfd().filter(|c| !is_combining_mark(*c)));
        }
    }
}

/// Normalises a sum to length 1 and quantises it.
pub(crate) fn quantise_sum(sum: &[f32]) -> TextVector {
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    let most = sum.iter().fold(0f32, |most, x| most.max(x.abs()));
    if length.is_nan() || length <= 0.0 || !length.is_finite() {
        return TextVector { bytes: vec![0; sum.len()], scale: 0.0 };
    }
    // Rounds half away from zero like `f32::round`, which is a function call per number on processors without
    // such an instruction.
    let round = |x: f32| (x + 0.5f32.copysign(x)) as i32 as i8;
    let bytes: Vec<i8> = sum.iter().map(|x| round(x / most * 127.0)).collect();
    // Scale to length 1 after rounding, so that a text has similarity 1 with itself.
    let rounded = bytes.iter().map(|byte| i32::from(*byte).pow(2)).sum::<i32>();
    TextVector { bytes, scale: 1.0 / (rounded as f32).sqrt() }
}

/// Computes the dot product of two rows.
#[inline(always)]
fn dot_product(a: &[i8], b: &[i8]) -> i32 {
    // Blocks of a fixed size compile to straight-line code without bounds checks. These are plain loops,
    // because iterator adapters are not always inlined into functions with other target features.
    const BLOCK: usize = 64;
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let mut sum = 0;
    let mut start = 0;
    while start + BLOCK <= length {
        let (a, b) = (&a[start..start + BLOCK], &b[start..start + BLOCK]);
        for at in 0..BLOCK {
            sum += i32::from(a[at]) * i32::from(b[at]);
        }
        start += BLOCK;
    }
    for at in start..length {
        sum += i32::from(a[at]) * i32::from(b[at]);
    }
    sum
}

/// A loop over rows that benefits from SIMD instructions.
trait SimdLoop {
    fn run(self);
}

/// Runs a loop with the widest instructions that the processor has.
///
/// The results are the same everywhere; only the number of values computed at once differs.
fn run_widest(work: impl SimdLoop) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the only way to use what not every processor has")]
        // SAFETY: the processor was just found to support AVX2.
        return unsafe { run_avx2(work) };
    }
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2(work: impl SimdLoop) {
    work.run();
}

/// Calls `found` with the index and the dot product of each of `rows` with `row`.
pub(crate) fn dot_products(rows: &[i8], row: &[i8], found: impl FnMut(usize, i32)) {
    run_widest(DotProducts { rows: rows.chunks_exact(row.len().max(1)).enumerate(), row, found });
}

/// Like [`dots`], for the rows at the given indexes.
pub(crate) fn dot_products_at(rows: &[i8], at: &[u32], row: &[i8], found: impl FnMut(usize, i32)) {
    let place = |at: &u32| {
        let start = *at as usize * row.len();
        rows.get(start..start + row.len()).unwrap_or_default()
    };
    run_widest(DotProducts { rows: at.iter().map(place).enumerate(), row, found });
}

struct DotProducts<'a, Rows, Found> {
    rows: Rows,
    row: &'a [i8],
    found: Found,
}

impl<'a, Rows, Found> SimdLoop for DotProducts<'a, Rows, Found>
where
    Rows: Iterator<Item = (usize, &'a [i8])>,
    Found: FnMut(usize, i32),
{
    #[inline(always)]
    fn run(mut self) {
        for (at, other) in self.rows {
            (self.found)(at, dot_product(other, self.row));
        }
    }
}

/// Adds rows to a sum.
struct AddRows<'a> {
    vectors: &'a WordVectors,
    pieces: &'a [u32],
    sum: &'a mut [f32],
}

impl SimdLoop for AddRows<'_> {
    #[inline(always)]
    fn run(self) {
        let WordVectors { scales, rows, dimensions, .. } = self.vectors;
        for piece in self.pieces {
            let piece = *piece as usize;
            let scale = f32_at(scales, piece);
            let row = &rows[piece * dimensions..(piece + 1) * dimensions];
            let sum = &mut self.sum[..row.len()];
            for at in 0..row.len() {
                sum[at] += f32::from(row[at] as i8) * scale;
            }
        }
    }
}

impl TextVector {
    /// Adds `share` times another vector, and normalises the result.
    pub fn add_scaled(&self, other: &TextVector, share: f32) -> TextVector {
        let component = |(mine, theirs): (&i8, &i8)| {
            f32::from(*mine) * self.scale + f32::from(*theirs) * (other.scale * share)
        };
        let sum: Vec<f32> = self.bytes.iter().zip(&other.bytes).map(component).collect();
        quantise_sum(&sum)
    }

    /// Returns the cosine similarity, -1 to 1.
    pub fn closeness(&self, other: &TextVector) -> f32 {
        dot_product(&self.bytes, &other.bytes) as f32 * self.scale * other.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_mean_the_same_are_closer_than_texts_that_do_not() {
        let vectors = WordVectors::embedded();
        let tender = vectors.encode("public procurement rules");
        let near = tender.closeness(&vectors.encode("tender guidelines for purchasing"));
        let far = tender.closeness(&vectors.encode("sort photographs by colour"));
        assert!(near > far + 0.1, "{near} {far}");
        assert!((tender.closeness(&tender) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn a_text_without_words_is_close_to_nothing() {
        let vectors = WordVectors::embedded();
        let nothing = vectors.encode("");
        assert_eq!(nothing.closeness(&vectors.encode("anything")), 0.0);
        assert_eq!(nothing.closeness(&nothing), 0.0);
    }

    proptest::proptest! {
        #[test]
        fn a_text_in_runs_is_cut_like_a_whole_one(
            text in "[a-cA-C0-1\\t\\x00 ._x\u{e9}\u{301}\u{3000}\u{65e5}\u{a8}-]{0,200}"
        ) {
            let (mut normal, mut all) = (String::new(), Vec::new());
            normalise_text(&text, &mut normal);
            each_word(&text, |word| all.push(word.to_owned()));
            proptest::prop_assert!(normal.split(' ').filter(|word| !word.is_empty()).eq(all));
        }
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let scales = [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
        assert!(WordVectors::from_parts("a\nb\n", &scales, &[1, 0, 0, 1]).is_ok());
        let cut = WordVectors::from_parts("a\nb\n", &scales, &[1, 0, 0]);
        assert_eq!(cut.unwrap_err(), WordVectorsError::Mismatch { tokens: 2, scales: 2, bytes: 3 });
        let nan = [1f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat();
        let nan = WordVectors::from_parts("a\nb\n", &nan, &[1, 0, 0, 1]);
        assert_eq!(nan.unwrap_err(), WordVectorsError::Scale { row: 1 });
        assert!(WordVectors::from_parts("", &[], &[]).is_err());
    }

    #[test]
    fn another_matrix_can_take_the_place_of_the_embedded_one() {
        let scales = [1f32.to_le_bytes(), 2f32.to_le_bytes(), 1f32.to_le_bytes()].concat();
        let parts = WordVectors::from_parts("b\na\n##c\n", &scales, &[0, 1, 1, 0, 1, 0]).unwrap();
        let read = WordVectors::read(parts.write().into()).unwrap();
        for vectors in [parts, read] {
            assert_eq!(vectors.encode("A").bytes, [127, 0]);
            assert_eq!(vectors.encode("bc").bytes, [127, 127]);
            assert_eq!(vectors.encode("unknown").scale, 0.0);
        }
    }
}
