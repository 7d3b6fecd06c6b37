//! The review skills of the pack: every pattern finds what it is for, and leaves alone what merely looks like it.

use std::collections::BTreeMap;

use regex::Regex;
use repertoire_skill::pack;

mod architecture;
mod bugs;
mod compliance;
mod debt;
mod documentation;
mod performance;
mod security;

/// A pattern, lines that it finds, and lines that it does not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The patterns of each skill.
const SKILLS: &[(&str, &[Row])] = &[
    ("reviewing-security", security::SECURITY),
    ("reviewing-bugs", bugs::BUGS),
    ("reviewing-performance", performance::PERFORMANCE),
    ("reviewing-compliance", compliance::COMPLIANCE),
    ("reviewing-architecture-principles", architecture::ARCHITECTURE),
    ("reviewing-technical-debt", debt::DEBT),
    ("reviewing-documentation", documentation::DOCUMENTATION),
];

/// A row of a table, cell by cell, with the pipes that were escaped.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells = inner.replace(r"\|", "\0");
    Some(cells.split('|').map(|cell| cell.trim().replace('\0', "|")).collect())
}

/// The expressions of a skill's tables by name.
fn patterns(skill: &str) -> BTreeMap<String, Regex> {
    let mut found = BTreeMap::new();
    for file in ["SKILL.md", "references/patterns.md"] {
        let Some(bytes) = pack::read(&format!("{skill}/{file}")) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for row in text.lines().filter_map(cells).filter(|row| row.len() == 5) {
            let (Some(id), Some(regex)) = (code(&row[0]), code(&row[1])) else { continue };
            let regex = Regex::new(regex).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(found.insert(id.to_owned(), regex).is_none(), "{id} is there twice");
        }
    }
    found
}

/// What stands in backticks.
fn code(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

#[test]
fn every_pattern_of_the_pack_has_lines_that_it_finds_and_lines_that_it_leaves_alone() {
    let mut wrong = Vec::new();
    for (skill, rows) in SKILLS {
        let patterns = patterns(skill);
        let known: Vec<&str> = patterns.keys().map(String::as_str).collect();
        let mut tested: Vec<&str> = rows.iter().map(|(id, ..)| *id).collect();
        tested.sort_unstable();
        assert_eq!(known, tested, "{skill}");
        for (id, finds, leaves) in *rows {
            assert!(!finds.is_empty() && !leaves.is_empty(), "{id}");
            let missed = finds.iter().filter(|text| !patterns[*id].is_match(text));
            wrong.extend(missed.map(|text| format!("{id} does not find {text:?}")));
            let found = leaves.iter().filter(|text| patterns[*id].is_match(text));
            wrong.extend(found.map(|text| format!("{id} finds {text:?}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_pattern_of_the_pack_matches_nothing_at_all() {
    for (skill, _) in SKILLS {
        for (id, regex) in patterns(skill) {
            assert!(!regex.is_match(""), "{id}");
        }
    }
}

#[test]
fn every_review_skill_of_the_pack_is_tested_here() {
    let mut skills: Vec<String> = pack::files()
        .iter()
        .filter_map(|path| path.strip_suffix("/SKILL.md").map(str::to_owned))
        .filter(|name| name.starts_with("reviewing-"))
        .collect();
    let mut tested: Vec<&str> = SKILLS.iter().map(|(name, _)| *name).collect();
    skills.sort_unstable();
    tested.sort_unstable();
    assert_eq!(skills, tested);
}
