//! `cargo xtask eval DIR`: selection measured on folders of labelled queries.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};
use flate2::read::GzDecoder;
use repertoire_select::eval::metrics;
use repertoire_select::vectors::Vectors;
use repertoire_select::{Document, Index};
use repertoire_text::fs;
use serde::Deserialize;
use serde::de::DeserializeOwned;

const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Deserialize)]
struct Item {
    id: String,
    name: String,
    description: String,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct Labelled {
    text: String,
    rel: BTreeMap<String, f64>,
    #[serde(default)]
    #[expect(dead_code)]
    neg_of: Option<String>,
}

fn read_lines<T: DeserializeOwned>(dir: &Utf8Path, name: &str) -> Result<Vec<T>> {
    let packed = fs::read_bytes_beneath(dir, name.into(), FILE_BYTES_MAX)?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("{dir}/{name}")))
        .collect()
}

/// Measures every set.
pub(crate) fn run(dir: &Utf8Path) -> Result<String> {
    let mut sets: Vec<Utf8PathBuf> = Vec::new();
    for entry in fs::entries(dir)? {
        let Ok(name) = entry?.name.into_string() else { continue };
        let path = dir.join(name);
        if path.join("queries.jsonl.gz").is_file() {
            sets.push(path);
        }
    }
    sets.sort();
    let mut out = String::new();
    for set in &sets {
        out += &measure(set)?;
    }
    Ok(out)
}

fn measure(dir: &Utf8Path) -> Result<String> {
    let items: Vec<Item> = read_lines(dir, "corpus.jsonl.gz")?;
    let queries: Vec<Labelled> = read_lines(dir, "queries.jsonl.gz")?;
    let documents: Vec<Document<'_>> = items
        .iter()
        .map(|item| Document::new(&item.id, &item.name, &item.description, &item.body))
        .collect();
    let start = std::time::Instant::now();
    let index = Index::build(&documents, Vectors::embedded(), None);
    let built = start.elapsed();
    let mut line = format!("{:10}", dir.file_name().unwrap_or(""));
    for (words, meaning) in [(true, false), (false, true), (true, true)] {
        let start = std::time::Instant::now();
        let (mut ndcg, mut r1, mut n) = (0.0, 0.0, 0.0);
        for query in queries.iter().filter(|query| !query.rel.is_empty()) {
            let ranked = repertoire_select::rank(&query.text, &index, words, meaning);
            let ids: Vec<&str> =
                ranked.iter().take(5).map(|(at, _)| items[*at].id.as_str()).collect();
            ndcg += metrics::ndcg(&ids, &query.rel, 5);
            r1 += metrics::recall(&ids, &query.rel, 1);
            n += 1.0;
        }
        line += &format!(
            "  {:.3}/{:.3} {:4.0}us",
            ndcg / n,
            r1 / n,
            start.elapsed().as_secs_f64() * 1e6 / n
        );
    }
    line += &format!("  built {built:?} {} bytes a skill\n", index.bytes() / index.len());
    Ok(line)
}
