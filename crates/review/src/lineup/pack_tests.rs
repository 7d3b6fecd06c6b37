//! The false-positive rules of the pack's skills: they are about what they say, and not about everything else.

use crate::extract::extract_review_skill;
use camino::Utf8Path;
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::SkillOrigin;
use repertoire_text::fs::read_text;
use repertoire_text::{Limits, Source};

use crate::patterns::find_rule_about;

fn rules(skill: &str) -> Vec<String> {
    let folder = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills"));
    let file = folder.join(skill).join("SKILL.md");
    let source = Source::new(file.clone(), read_text(&file, 1024 * 1024).unwrap());
    let skill = load_skill(source, SkillOrigin::from_file(file), &Limits::default()).skill.unwrap();
    extract_review_skill(&skill, &skill.name).skill.false_positive_rules
}

/// Whether a rule of the skill is about each of these files.
#[track_caller]
fn check(skill: &str, about: &[&str], not_about: &[&str]) {
    let rules = rules(skill);
    for path in about {
        assert!(find_rule_about(&rules, Utf8Path::new(path), "").is_some(), "{path}");
    }
    for path in not_about {
        assert_eq!(find_rule_about(&rules, Utf8Path::new(path), ""), None, "{path}");
    }
}

#[test]
fn rules_of_the_pack_leave_ordinary_files_alone() {
    let code = &["src/auth/login.rs", "app/models/user.py", "web/cart.ts"][..];
    check("reviewing-security", &["tests/login.rs", "config/app.yaml.example"], code);
    check("reviewing-performance", &["tests/speed.py", "scripts/import.py"], code);
    check("reviewing-compliance", &["vendor/x/y.go"], code);
    check("reviewing-architecture-principles", &["src/main.rs"], code);
    // A focused or skipped test stands in a test, and so do many leftovers.
    let tests = &["web/cart.test.ts", "tests/it/main.rs", "src/queue.rs"][..];
    check("reviewing-bugs", &["web/node_modules/a/b.js"], tests);
    check("reviewing-technical-debt", &["web/app.min.js"], tests);
    check("reviewing-documentation", &["CHANGES.md"], &["docs/guide.md", "README.md"]);
}
