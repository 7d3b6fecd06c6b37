//! `search`: ranks files by the words they contain, for when the exact pattern is not known.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::{self, WalkContext, WalkEntryKind, WalkFilter, WalkFlow};
use super::{describe_search, grep, object_schema, path_subject};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};
use repertoire_sandbox::beneath;

/// The maximum number of files shown.
const SHOWN_MAX: usize = 20;
/// The maximum length of a query.
const QUERY_BYTES_MAX: usize = 1_024;
/// The maximum number of words of a query; the rest is ignored.
const WORDS_MAX: usize = 16;
/// The contents of larger files are not searched.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum number of bytes read in one search.
const TOTAL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The weight of a match in a path, relative to one in a line.
const PATH_WEIGHT: f64 = 4.0;

#[derive(Clone, Copy, Debug)]
pub struct SearchTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    #[serde(default)]
    path: Option<String>,
}

impl Tool for SearchTool {
    fn name(&self) -> &str {
        "search"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "search".to_owned(),
            description: format!(
                "Find files by words when you do not know the exact text: words are looked for in paths and contents, \
                 rare words count more. Answers with the best {SHOWN_MAX} files and the best line of each. With a \
                 known pattern, use `grep` or `glob`."
            ),
            parameters: object_schema(
                &["query"],
                json!({
                    "query": {"type": "string", "maxLength": QUERY_BYTES_MAX, "description": "Words, in any order."},
                    "path": {"type": "string", "description": "The folder to search; the work folder if absent."},
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::Read
    }

    fn concurrency(&self) -> ToolConcurrency {
        ToolConcurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        path_subject(arguments)
    }

    fn label(&self, arguments: &Value) -> String {
        describe_search(arguments, "query")
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(walk::run_search(call, search_files))
    }
}

/// The matches of the query's words in a file.
struct FileMatches {
    path: String,
    /// Weighted occurrences of each word, including those in the path.
    counts: Vec<f64>,
    /// For each combination of words, the number and text of the first line that contains them.
    lines: BTreeMap<BTreeSet<usize>, (usize, String)>,
}

fn search_files(ground: &WalkContext, wanted: &SearchArguments) -> Result<String, String> {
    let words = words_of(&wanted.query)?;
    let path = wanted.path.as_deref().unwrap_or(".");
    let start =
        beneath::open_readable(&ground.workplace, path).map_err(|error| error.to_string())?;
    let (mut seen, mut files, mut bytes) = (Vec::new(), 0_usize, 0_u64);
    let walked = walk::walk_entries(ground, &start, (WalkFilter::Usual, None), |met| {
        if met.kind == WalkEntryKind::File {
            files += 1;
            let shown = beneath::display_path(&ground.workplace, &met.path);
            seen.extend(match_file(met, shown, &words));
            bytes += met.bytes().min(FILE_BYTES_MAX);
        }
        if bytes > TOTAL_BYTES_MAX { WalkFlow::Stop } else { WalkFlow::Continue }
    });
    if seen.is_empty() {
        let query = &wanted.query;
        return Ok(format!(
            "no file in `{path}` has any word of `{query}`{}",
            walk::describe_skipped(walked)
        ));
    }
    let found = seen.len();
    let lines: Vec<String> =
        rank_files(seen, files, words.len()).into_iter().take(SHOWN_MAX).collect();
    let mut text = lines.join("\n");
    if found > SHOWN_MAX {
        text.push_str(&format!("\n[the best {SHOWN_MAX} of {found} files]"));
    }
    if bytes > TOTAL_BYTES_MAX {
        text.push_str("\n[not everything was searched: there is too much; name a folder]");
    }
    Ok(text + &walk::describe_skipped(walked))
}

fn words_of(query: &str) -> Result<Vec<String>, String> {
    if query.len() > QUERY_BYTES_MAX {
        return Err(format!("the query has more than {QUERY_BYTES_MAX} bytes"));
    }
    let mut words: Vec<String> = Vec::new();
    for word in split_words(query) {
        if !words.contains(&word) && words.len() < WORDS_MAX {
            words.push(word);
        }
    }
    if words.is_empty() { Err("the query has no words".to_owned()) } else { Ok(words) }
}

/// Splits a text into words in lower case. `readConfig` and `read_config` are two words each.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in text.chars() {
        let starts = c.is_uppercase() && lower_before;
        if (!c.is_alphanumeric() || starts) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase() || c.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns true if a word equals a query word, or extends it by a short ending, such as `parser` for `parse`.
fn is_word(word: &str, wanted: &str) -> bool {
    word == wanted
        || wanted.len() >= 4 && word.starts_with(wanted) && word.len() <= wanted.len() + 3
}

fn match_file(met: &walk::WalkEntry<'_>, path: String, words: &[String]) -> Option<FileMatches> {
    let mut seen = FileMatches { counts: vec![0.0; words.len()], lines: BTreeMap::new(), path };
    for (at, wanted) in words.iter().enumerate() {
        if split_words(&seen.path).iter().any(|word| is_word(word, wanted)) {
            seen.counts[at] += PATH_WEIGHT;
        }
    }
    if let Some(text) = met.read_text(FILE_BYTES_MAX) {
        for (number, line) in text.lines().enumerate() {
            match_line(number + 1, line, words, &mut seen);
        }
    }
    seen.counts.iter().any(|count| *count > 0.0).then_some(seen)
}

fn match_line(number: usize, line: &str, words: &[String], seen: &mut FileMatches) {
    let mut here = BTreeSet::new();
    for word in split_words(line) {
        for (at, wanted) in words.iter().enumerate() {
            if is_word(&word, wanted) {
                seen.counts[at] += 1.0;
                here.insert(at);
            }
        }
    }
    if !here.is_empty() {
        seen.lines.entry(here).or_insert_with(|| (number, grep::shorten_line(line.trim())));
    }
}

fn rank_files(seen: Vec<FileMatches>, files: usize, words: usize) -> Vec<String> {
    let count = |at: usize| seen.iter().filter(|seen| seen.counts[at] > 0.0).count();
    let rarity: Vec<f64> =
        (0..words).map(|at| (1.0 + (files as f64 + 1.0) / (count(at) as f64 + 1.0)).ln()).collect();
    // Repeated occurrences add less and less, so that a file does not win merely by being long.
    let score = |seen: &FileMatches| -> f64 {
        seen.counts.iter().zip(&rarity).map(|(count, rarity)| count / (count + 2.0) * rarity).sum()
    };
    let mut scored: Vec<(f64, FileMatches)> =
        seen.into_iter().map(|seen| (score(&seen), seen)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
    scored.into_iter().map(|(_, seen)| line_of(&seen, &rarity)).collect()
}

fn line_of(seen: &FileMatches, rarity: &[f64]) -> String {
    let worth = |words: &BTreeSet<usize>| -> f64 { words.iter().map(|at| rarity[*at]).sum() };
    let best = seen
        .lines
        .iter()
        .max_by(|a, b| worth(a.0).total_cmp(&worth(b.0)).then_with(|| b.1.0.cmp(&a.1.0)));
    match best {
        Some((_, (number, line))) => format!("{}:{number}: {line}", seen.path),
        None => seen.path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

    #[test]
    fn words_are_cut_where_a_reader_would() {
        assert_eq!(
            split_words("readConfig_file-2 HTTPServer"),
            ["read", "config", "file", "2", "httpserver"]
        );
        assert!(
            is_word("parser", "parse")
                && !is_word("parsimonious", "pars")
                && !is_word("card", "car")
        );
    }

    #[tokio::test]
    async fn rare_words_and_names_win() {
        let bench = Bench::new();
        for number in 0..10 {
            bench.file(&format!("noise{number}.txt"), "the file is read and the file is closed\n");
        }
        bench.file("src/retry.rs", "// waits longer\nfn backoff() { file }\n");
        bench.file("src/other.rs", "fn x() {}\n// backoff of a file\n");
        let text = bench.ok(&SearchTool, json!({"query": "retry backoff file"})).await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "src/retry.rs:2: fn backoff() { file }");
        assert_eq!(lines[1], "src/other.rs:2: // backoff of a file");
        assert_eq!(lines.len(), 12);
    }

    #[tokio::test]
    async fn there_are_bounds_and_clear_words() {
        let bench = Bench::new();
        for number in 0..30 {
            bench.file(&format!("{number:02}"), "needle\n");
        }
        bench.file(".env", "needle");
        let text = bench.ok(&SearchTool, json!({"query": "needle"})).await;
        assert!(text.ends_with("[the best 20 of 30 files]"), "{text}");
        bench.fails(&SearchTool, json!({"query": " -- "})).await;
        bench.fails(&SearchTool, json!({"query": "x", "path": "../"})).await;
        let text = bench.ok(&SearchTool, json!({"query": "haystack"})).await;
        assert_eq!(text, "no file in `.` has any word of `haystack`");
    }
}
