//! Any body: it is read as Markdown, and every place in it is a place in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pulldown_cmark::{Options, Parser};
use repertoire_skill::load::{MissingDescription, load_skill_with};
use repertoire_skill::skill::SkillOrigin;
use repertoire_text::{Limits, Source};

fuzz_target!(|data: &[u8]| {
    let body = String::from_utf8_lossy(data);
    let text = format!("---\nname: a\n---\n{body}");
    let source = Source::new("a/SKILL.md", text);
    let missing = MissingDescription::FirstParagraph;
    let loaded = load_skill_with(source, SkillOrigin::from_file("a/SKILL.md"), &Limits::default(), missing);
    if let Some(skill) = loaded.skill {
        assert!(!skill.description.is_empty());
        assert!(body.ends_with(skill.body()));
    }
    for (_, range) in Parser::new_ext(&body, Options::all()).into_offset_iter() {
        assert!(body.get(range).is_some());
    }
});
