//! `cargo xtask model DIR`: packs published word vectors and background frequencies into the two files that
//! `repertoire-select` embeds.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Result, bail};
use camino::Utf8Path;
use flate2::read::GzDecoder;
use repertoire_select::background::BackgroundFrequencies;
use repertoire_select::vectors::WordVectors;
use repertoire_text::fs;
use serde::Deserialize;

use crate::codegen::repository_root;

const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Deserialize)]
struct WordFrequencies {
    n: u32,
    nd: BTreeMap<String, u32>,
    ndb: BTreeMap<String, u32>,
}

/// Packs the model in a folder.
pub(crate) fn pack_model(from: &Utf8Path) -> Result<String> {
    let to = repository_root().join("crates/select/data/model");
    let read = |name: &str| {
        fs::read_bytes_beneath(from, name.into(), FILE_BYTES_MAX)
            .with_context(|| format!("cannot read {name} in {from}"))
    };
    let vocabulary = String::from_utf8(read("vocab.txt")?).context("vocab.txt is not UTF-8")?;
    let vectors =
        WordVectors::from_parts(&vocabulary, &read("static.scale.f32")?, &read("static.i8")?)?
            .write();

    let mut json = String::new();
    let packed = read("background-df.json.gz")?;
    GzDecoder::new(packed.as_slice()).take(FILE_BYTES_MAX).read_to_string(&mut json)?;
    let counted: WordFrequencies = serde_json::from_str(&json).context("background-df.json.gz")?;
    let mut counts: BTreeMap<String, (u16, u16)> = BTreeMap::new();
    for (stem, count) in counted.nd {
        counts.entry(stem).or_default().0 = u16::try_from(count)?;
    }
    for (stem, count) in counted.ndb {
        counts.entry(stem).or_default().1 = u16::try_from(count)?;
    }
    let background = BackgroundFrequencies::write(counted.n, &counts);
    let total = vectors.len() + background.len();
    if total > 10_000_000 {
        bail!("the model would add {total} bytes to the program, more than 10 MB");
    }
    fs::write_atomic(&to.join("vectors.bin"), &vectors)?;
    fs::write_atomic(&to.join("background.bin"), &background)?;
    Ok(format!("packed {total} bytes into {to}"))
}
