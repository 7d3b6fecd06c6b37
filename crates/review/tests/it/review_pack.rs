//! The review skills of the pack: every pattern finds what it is for, and leaves alone what merely looks like it.

use std::collections::BTreeMap;

use camino::Utf8Path;
use regex::Regex;
use repertoire_review::extract::{ReviewKind, ReviewSkill, compile_pattern, extract_review_skill};
use repertoire_skill::load::load_skill;
use repertoire_skill::pack;
use repertoire_skill::skill::SkillOrigin;
use repertoire_text::fs::read_text;
use repertoire_text::{Limits, Source};

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

/// A skill of the pack, as a review sees it. Nothing is odd about it.
fn extracted(skill: &str) -> ReviewSkill {
    let folder = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills")).join(skill);
    let file = folder.join("SKILL.md");
    let text = read_text(&file, 1024 * 1024).unwrap();
    let source = Source::new(file.clone(), text);
    let skill = load_skill(source, SkillOrigin::from_file(file), &Limits::default()).skill.unwrap();
    let found = extract_review_skill(&skill, &skill.name);
    assert!(found.diagnostics.is_empty(), "{:#?}", found.diagnostics);
    found.skill
}

/// The expressions of a skill by name.
fn patterns(skill: &str) -> BTreeMap<String, Regex> {
    let found = extracted(skill).auto_validated_patterns.into_iter();
    let compiled = found.map(|found| {
        assert!(found.severity.is_some() && !found.description.is_empty(), "{}", found.id);
        let regex = compile_pattern(&found.pattern.unwrap()).unwrap();
        (found.id, regex)
    });
    compiled.collect()
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
fn what_a_pattern_finds_begins_on_its_own_line() {
    let before = "first_line();\n";
    for (skill, rows) in SKILLS {
        let patterns = patterns(skill);
        for (id, finds, _) in *rows {
            for text in *finds {
                let below = format!("{before}{text}");
                let found = patterns[*id].find(&below).map(|found| found.start());
                assert!(found.is_some_and(|at| at >= before.len()), "{id}: {text:?}");
            }
        }
    }
}

#[test]
fn a_review_takes_from_the_skills_of_the_pack_what_they_say() {
    let agents = [
        ("reviewing-security", Some("security-agent")),
        ("reviewing-bugs", Some("bug-detection-agent")),
        ("reviewing-performance", Some("performance-agent")),
        ("reviewing-compliance", Some("compliance-agent")),
        ("reviewing-architecture-principles", Some("architecture-agent")),
        ("reviewing-technical-debt", Some("technical-debt-agent")),
    ];
    for (name, agent) in agents {
        let skill = extracted(name);
        assert_eq!((skill.kind, skill.primary_agent.as_deref()), (ReviewKind::Review, agent));
        assert!((4..=7).contains(&skill.focus_areas.len()), "{name}: {:?}", skill.focus_areas);
        for area in &skill.focus_areas {
            assert!(area.severity.is_some(), "{name}: {}", area.name);
            assert!((4..=8).contains(&area.checks.len()), "{name}: {}", area.name);
        }
        assert!(skill.false_positive_rules.len() >= 5, "{name}");
        assert!(skill.priority_files.unwrap().patterns.len() >= 8, "{name}");
    }
    let docs = extracted("reviewing-documentation");
    assert_eq!((docs.kind, docs.primary_agent), (ReviewKind::Command, None));
    assert_eq!(docs.false_positive_rules.len(), 5);
}

#[test]
fn the_methods_of_the_pack_are_whole() {
    for (name, steps) in [("brainstorming", 8), ("systematic-debugging", 9)] {
        let skill = extracted(name);
        assert_eq!((skill.kind, skill.primary_agent), (ReviewKind::Methodology, None));
        let method = skill.methodology.unwrap();
        assert!(!method.approach.is_empty() && !method.mindset.is_empty(), "{method:#?}");
        assert_eq!((method.steps.len(), method.questions.len()), (steps, 7), "{method:#?}");
    }
}

#[test]
fn every_review_skill_of_the_pack_is_tested_here() {
    let mut skills: Vec<String> = pack::list_pack_files()
        .iter()
        .filter_map(|path| path.strip_suffix("/SKILL.md").map(str::to_owned))
        .filter(|name| name.starts_with("reviewing-"))
        .collect();
    let mut tested: Vec<&str> = SKILLS.iter().map(|(name, _)| *name).collect();
    skills.sort_unstable();
    tested.sort_unstable();
    assert_eq!(skills, tested);
}
