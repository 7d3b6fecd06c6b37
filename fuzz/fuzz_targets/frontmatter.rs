//! Any file: it is split, parsed or mended, loaded and written again, and every place that is named
//! is a place in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::SkillOrigin;
use repertoire_skill::write::to_markdown;
use repertoire_text::{Limits, Source, Span, diagnostic::apply_edits};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let limits = Limits::default();
    let read = |text: &str| load_skill(Source::new("a/SKILL.md", text), SkillOrigin::from_file("a/SKILL.md"), &limits);
    let loaded = read(&text);
    for found in &loaded.diagnostics {
        let Span { start, end } = found.span.unwrap_or_default();
        assert!(text.get(start as usize..end as usize).is_some(), "{found:?}");
        let edits = found.fix.iter().flat_map(|fix| &fix.edits);
        let _ = apply_edits(&text, edits);
    }
    let Some(skill) = loaded.skill else {
        assert!(loaded.diagnostics.iter().any(|found| found.is_error()));
        return;
    };
    let _ = skill.body();
    let written = to_markdown(&skill);
    // Escapes may make the text longer than what is read; nothing else may be lost.
    if written.len() - skill.body.len() < limits.frontmatter_bytes_max {
        let again = read(&written);
        let again = again.skill.unwrap_or_else(|| panic!("{:?}\n{written}", again.diagnostics));
        assert_eq!(again.description, skill.description);
        assert_eq!(again.name, skill.name);
        assert_eq!(again.body(), skill.body());
        assert_eq!(again.claude.argument_hint, skill.claude.argument_hint);
        assert_eq!(to_markdown(&again), written);
    }
});
