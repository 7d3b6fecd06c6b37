//! Every relative link and anchor of the documentation leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use regex::Regex;

/// A code span.
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(`+).*?[^`]?(`+)").unwrap());
/// An anchor of its own.
static ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"\bid="([^"]+)""#).unwrap());
/// The text of a link.
static TEXT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap());
/// The target of a link or picture.
static TARGET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\]\(([^)\s]+)(?:\s+"[^"]*")?\)|(?:src|srcset|href)="([^"]+)""#).unwrap()
});

fn root() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize_utf8().unwrap()
}

/// The Markdown files of the documentation, sorted.
fn documents() -> Vec<Utf8PathBuf> {
    let root = root();
    let mut found: Vec<Utf8PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)).into();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some("md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file's lines outside of fenced code and comments of several lines, with their numbers; code spans are blanked.
fn prose(path: &Utf8Path) -> Vec<(usize, String)> {
    #[expect(clippy::disallowed_methods, reason = "a file of this repository")]
    let text = std::fs::read_to_string(path).unwrap();
    let mut fence: Option<String> = None;
    let mut comment = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        comment |= line.starts_with("<!--");
        if comment {
            comment = !line.contains("-->");
            continue;
        }
        let marks: String = line.trim_start().chars().take_while(|&c| c == '`').collect();
        match &fence {
            Some(open) if marks.starts_with(open.as_str()) => fence = None,
            Some(_) => {}
            None if marks.len() >= 3 => fence = Some(marks),
            None => lines.push((index + 1, line.to_owned())),
        }
    }
    for (_, line) in &mut lines {
        if !line.starts_with('#') {
            *line = CODE.replace_all(line, "").into_owned();
        }
    }
    lines
}

/// The anchors of a file: its headings as GitHub and mdBook name them, and `id="…"`.
fn anchors(path: &Utf8Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in prose(path) {
        found.extend(ID.captures_iter(&line).map(|id| id[1].to_owned()));
        let hashes = line.chars().take_while(|&c| c == '#').count();
        if (1..=6).contains(&hashes) && line[hashes..].starts_with(' ') {
            let title = TEXT.replace_all(line[hashes..].trim(), "$1").to_lowercase();
            let slug: String = title
                .chars()
                .filter(|&c| c.is_alphanumeric() || " -_".contains(c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let seen = times.entry(slug.clone()).or_default();
            found.insert(if *seen == 0 { slug.clone() } else { format!("{slug}-{seen}") });
            *seen += 1;
        }
    }
    found
}

/// The targets of links and pictures in a line.
fn targets(line: &str) -> Vec<String> {
    let target = |found: regex::Captures<'_>| {
        found.get(1).or(found.get(2)).map(|target| target.as_str().to_owned())
    };
    TARGET.captures_iter(line).filter_map(target).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let docs = root().join("docs");
    let mut wrong = Vec::new();
    for path in documents() {
        for (number, line) in prose(&path) {
            for target in targets(&line) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
                let folder = path.parent().unwrap();
                let to = if file.is_empty() { path.clone() } else { folder.join(file) };
                let place = format!("{}:{number}: {target}", path.strip_prefix(root()).unwrap());
                let Ok(to) = to.canonicalize_utf8() else {
                    wrong.push(format!("{place}: there is no such file"));
                    continue;
                };
                if path.starts_with(&docs) && !to.starts_with(&docs) {
                    wrong.push(format!("{place}: leaves docs/, so it leads nowhere in the book"));
                }
                let markdown = to.extension() == Some("md");
                if markdown && !anchor.is_empty() && !anchors(&to).contains(anchor) {
                    wrong.push(format!("{place}: there is no such heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let summary: BTreeSet<String> =
        prose(&docs.join("SUMMARY.md")).iter().flat_map(|(_, line)| targets(line)).collect();
    let pages: BTreeSet<String> = documents()
        .iter()
        .filter_map(|path| path.strip_prefix(&docs).ok())
        .filter(|path| *path != "SUMMARY.md")
        .map(ToString::to_string)
        .collect();
    let missing: Vec<&String> = pages.symmetric_difference(&summary).collect();
    assert!(missing.is_empty(), "only in docs/ or only in SUMMARY.md: {missing:?}");
}
