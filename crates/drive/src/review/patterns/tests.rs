use repertoire_skill::review::ReviewKind;

use super::*;
use crate::review::change::{FileStatus, Line, Tier};
use crate::review::diff;

fn skill(patterns: &[(&str, &str)]) -> ReviewSkill {
    let pattern = |(id, text): &(&str, &str)| Pattern {
        id: (*id).to_owned(),
        pattern: (!text.is_empty()).then(|| (*text).to_owned()),
        description: format!("finds {id}"),
        severity: None,
        files: Vec::new(),
        unusable: None,
    };
    ReviewSkill {
        name: "rules".to_owned(),
        source: "rules".to_owned(),
        kind: ReviewKind::Review,
        primary_agent: None,
        focus_areas: Vec::new(),
        auto_validated_patterns: patterns.iter().map(pattern).collect(),
        false_positive_rules: Vec::new(),
        priority_files: None,
        methodology: None,
    }
}

fn set(skill: &ReviewSkill) -> PatternSet {
    PatternSet::new(&[PatternSource { skill, category: "security", trusted: true }])
}

fn whole(path: &str, text: &str) -> ChangedFile {
    ChangedFile {
        path: path.into(),
        old_path: None,
        status: FileStatus::Whole,
        hunks: diff::whole(text),
        text: text.to_owned(),
        language: None,
        tier: Tier::Full,
    }
}

fn change(files: Vec<ChangedFile>) -> Change {
    Change { files, skipped: Vec::new() }
}

fn places(hits: &[Hit]) -> Vec<(&str, &str, String)> {
    let place = |hit: &Hit| hit.lines.to_string();
    hits.iter().map(|hit| (hit.pattern.as_str(), hit.file.as_str(), place(hit))).collect()
}

#[test]
fn hits_are_in_the_order_of_files_lines_and_patterns() {
    let skill =
        skill(&[("eval", r"\beval\("), ("password", r"(?i)password\s*="), ("digits", r"\d{4}")]);
    let set = set(&skill);
    let files = vec![
        whole("a.py", "PassWord = 1\nx = eval(y)\nn = 1234; password = eval(1)\n"),
        whole("b.py", "nothing\n"),
        whole("c.py", "eval(z)\n"),
    ];
    let hits = set.scan(&change(files));
    assert_eq!(
        places(&hits),
        [
            ("password", "a.py", "1".to_owned()),
            ("eval", "a.py", "2".to_owned()),
            ("eval", "a.py", "3".to_owned()),
            ("password", "a.py", "3".to_owned()),
            ("digits", "a.py", "3".to_owned()),
            ("eval", "c.py", "1".to_owned()),
        ]
    );
    let first = &hits[0];
    assert_eq!((first.severity, first.category.as_str()), (Severity::Major, "security"));
    assert!(first.trusted && first.skill == "rules" && first.description == "finds password");
}

#[test]
fn only_what_came_counts_and_hunks_are_apart() {
    let line = |kind, old, new, text: &str| Line { kind, old, new, text: text.to_owned() };
    let hunk =
        |lines: Vec<Line>| Hunk { old_start: 1, new_start: 1, section: String::new(), lines };
    let mut file = whole("a.py", "");
    file.hunks = vec![
        hunk(vec![
            line(LineKind::Context, Some(1), Some(1), "eval(old)"),
            line(LineKind::Removed, Some(2), None, "eval(gone)"),
            line(LineKind::Added, None, Some(2), "call("),
            line(LineKind::Context, Some(3), Some(3), "  secret)"),
            line(LineKind::Added, None, Some(4), "begin"),
        ]),
        hunk(vec![line(LineKind::Added, None, Some(20), "end")]),
    ];
    let skill = skill(&[
        ("eval", r"eval\("),
        ("spanning", r"call\(\s*secret"),
        ("across", r"begin\s*end"),
        ("ends", r"^begin$"),
    ]);
    let hits = set(&skill).scan(&change(vec![file]));
    assert_eq!(
        places(&hits),
        [("spanning", "a.py", "2-3".to_owned()), ("ends", "a.py", "4".to_owned())]
    );
}

#[test]
fn a_pattern_is_for_its_files() {
    let mut skill = skill(&[("eval", r"eval\(")]);
    skill.auto_validated_patterns[0].files = vec!["*.py".to_owned(), "src/**/*.rb".to_owned()];
    let set = set(&skill);
    let text = "eval(x)\n";
    let files = ["a.py", "b/c.py", "src/d/e.rb", "f.rb", "g.js"].map(|path| whole(path, text));
    let hits = set.scan(&change(files.to_vec()));
    let found: Vec<&str> = hits.iter().map(|hit| hit.file.as_str()).collect();
    assert_eq!(found, ["a.py", "b/c.py", "src/d/e.rb"]);
    assert_eq!(set.matches("eval", &whole("g.js", text), LineRange::line(1)), Claim::WrongFile);
}

#[test]
fn a_claim_is_proved_on_exactly_the_cited_lines() {
    let skill = skill(&[("call", r"call\(\s*secret"), ("prose", ""), ("broken", "(")]);
    let set = set(&skill);
    let file = whole("a.py", "x\ncall(\n  secret)\ny\n");
    let claim = |id: &str, first, last| set.matches(id, &file, LineRange { first, last });
    assert_eq!(claim("call", 2, 3), Claim::Holds { trusted: true, severity: Severity::Major });
    assert_eq!(claim("call", 1, 99), Claim::Holds { trusted: true, severity: Severity::Major });
    for (first, last) in [(2, 2), (3, 3), (1, 1), (4, 4), (90, 99), (3, 2), (0, 0)] {
        assert_eq!(claim("call", first, last), Claim::DoesNotMatch, "{first}-{last}");
    }
    assert_eq!(claim("prose", 2, 3), Claim::NotUsable);
    assert_eq!(claim("broken", 2, 3), Claim::NotUsable);
    assert_eq!(claim("made_up", 2, 3), Claim::NoSuchPattern);
}

#[test]
fn patterns_that_cannot_be_run_say_why() {
    let long = "a".repeat(REVIEW_PATTERN_BYTES_MAX + 1);
    let skill = skill(&[
        ("broken", "(a"),
        ("empty", "a*"),
        ("long", &long),
        ("huge", r"(?:\w{1000}){1000}"),
        ("looking", r"(?=x)y"),
        ("fine", "abc"),
    ]);
    let set = set(&skill);
    assert_eq!((set.len(), set.unusable().len()), (1, 5));
    let why = |id: &str| &set.unusable().iter().find(|(known, _)| known == id).unwrap().1;
    assert_eq!(why("empty"), "it matches the empty text");
    assert_eq!(why("broken"), "unclosed group");
    assert!(why("looking").contains("look-around"), "{}", why("looking"));
}

#[test]
fn many_hits_in_a_file_are_counted_and_not_all_listed() {
    let skill = skill(&[("x", "x")]);
    let hits =
        set(&skill).scan(&change(vec![whole("a", &"x\n".repeat(REVIEW_HITS_PER_FILE_MAX + 7))]));
    assert_eq!(hits.len(), REVIEW_HITS_PER_FILE_MAX);
    assert_eq!((hits[0].more, hits[hits.len() - 1].more), (0, 7));
}

#[test]
fn looking_for_fixed_texts_first_changes_nothing() {
    let patterns = [
        ("a", r"(?i)ta[sk]k\b"),
        ("b", r"(foo|bar\d)+x?"),
        ("c", r"(?m)^\s*let\s+(mut\s+)?\w+"),
        ("d", r#"["'](?:http|ftp)s?://"#),
        ("e", r"x{3,}"),
        ("f", r"(?i:select)\s.*\bfrom\b"),
    ];
    let texts = [
        "taſk TASK task",
        "foo bar1x bar",
        "let mut x = 1;",
        "'https://a' \"ftp://b\" http://c",
        "xx xxx xxxx",
        "SELECT a\nFROM b; select c from d; Select e From f",
        "\u{212a} ta\u{212a}k",
    ];
    let skill = skill(&patterns);
    let set = set(&skill);
    let files = texts.iter().enumerate().map(|(at, text)| whole(&format!("{at}"), text)).collect();
    let hits = set.scan(&change(files));
    for (id, pattern) in patterns {
        let regex = RegexBuilder::new(pattern).multi_line(true).build().unwrap();
        for (at, text) in texts.iter().enumerate() {
            let found = hits.iter().any(|hit| hit.pattern == id && hit.file == at.to_string());
            assert_eq!(found, regex.is_match(text), "{id}: {text}");
        }
    }
}
