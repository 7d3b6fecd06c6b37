use crate::extract::ReviewKind;

use super::*;
use crate::change::{DiffHunk, FilePromptTier, FileStatus, HunkLine, LineKind};
use crate::limits::REVIEW_PATTERN_WINDOW_LINES;
use repertoire_git::diff;

fn skill(patterns: &[(&str, &str)]) -> ReviewSkill {
    let pattern = |(id, text): &(&str, &str)| ReviewPattern {
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

fn whole(path: &str, text: &str) -> ReviewedFile {
    ReviewedFile {
        path: path.into(),
        old_path: None,
        status: FileStatus::Whole,
        hunks: diff::whole_file_hunks(text),
        text: text.to_owned(),
        language: None,
        tier: FilePromptTier::Full,
    }
}

fn change(files: Vec<ReviewedFile>) -> ReviewChange {
    ReviewChange { files, skipped: Vec::new() }
}

fn places(hits: &[PatternHit]) -> Vec<(&str, &str, String)> {
    let place = |hit: &PatternHit| hit.lines.to_string();
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
    let hits = set.scan_change(&change(files), None).hits;
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
    assert_eq!((first.severity, first.category.as_str()), (ReviewSeverity::Major, "security"));
    assert!(first.trusted && first.skill == "rules" && first.description == "finds password");
}

#[test]
fn only_what_came_counts_and_hunks_are_apart() {
    let line = |kind, old, new, text: &str| HunkLine { kind, old, new, text: text.to_owned() };
    let hunk = |lines: Vec<HunkLine>| DiffHunk {
        old_start: 1,
        new_start: 1,
        section: String::new(),
        lines,
    };
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
    let hits = set(&skill).scan_change(&change(vec![file]), None).hits;
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
    let hits = set.scan_change(&change(files.to_vec()), None).hits;
    let found: Vec<&str> = hits.iter().map(|hit| hit.file.as_str()).collect();
    assert_eq!(found, ["a.py", "b/c.py", "src/d/e.rb"]);
    assert_eq!(
        set.check_claim("eval", &whole("g.js", text), LineRange::from_line(1)),
        PatternClaim::WrongFile
    );
}

#[test]
fn a_claim_is_proved_on_exactly_the_cited_lines() {
    let skill = skill(&[("call", r"call\(\s*secret"), ("prose", ""), ("broken", "(")]);
    let set = set(&skill);
    let file = whole("a.py", "x\ncall(\n  secret)\ny\n");
    let claim = |id: &str, first, last| set.check_claim(id, &file, LineRange { first, last });
    let holds = PatternClaim::Holds {
        trusted: true,
        severity: ReviewSeverity::Major,
        category: "security".to_owned(),
        lines: LineRange { first: 2, last: 3 },
    };
    assert_eq!(claim("call", 2, 3), holds);
    assert_eq!(claim("call", 1, 99), holds, "and it says where");
    for (first, last) in [(2, 2), (3, 3), (1, 1), (4, 4), (90, 99), (3, 2), (0, 0)] {
        assert_eq!(claim("call", first, last), PatternClaim::DoesNotMatch, "{first}-{last}");
    }
    assert_eq!(claim("prose", 2, 3), PatternClaim::NotUsable);
    assert_eq!(claim("broken", 2, 3), PatternClaim::NotUsable);
    assert_eq!(claim("made_up", 2, 3), PatternClaim::NoSuchPattern);
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
fn what_is_beyond_the_limit_of_hits_is_told() {
    let skill = skill(&[("x", "x")]);
    let file = whole("a", &"x\n".repeat(REVIEW_HITS_PER_FILE_MAX + 7));
    let hits = set(&skill).scan_change(&change(vec![file]), None).hits;
    assert_eq!(hits.len(), REVIEW_HITS_PER_FILE_MAX);
    assert_eq!((hits[0].more, hits[hits.len() - 1].more), (0, 1), "at least one");
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
    let hits = set.scan_change(&change(files), None).hits;
    for (id, pattern) in patterns {
        let regex = RegexBuilder::new(pattern).multi_line(true).build().unwrap();
        for (at, text) in texts.iter().enumerate() {
            let found = hits.iter().any(|hit| hit.pattern == id && hit.file == at.to_string());
            assert_eq!(found, regex.is_match(text), "{id}: {text}");
        }
    }
}

#[test]
fn a_claim_is_proved_by_what_came_and_by_few_lines() {
    let skill = skill(&[("password", r"password = \S+"), ("wide", r"(?s)begin.*end")]);
    let set = set(&skill);
    let mut file = whole("a.py", "password = 1\nharmless = 1\npassword = 2\n");
    file.hunks[0].lines[0].kind = LineKind::Context;
    let claim = |first, last| set.check_claim("password", &file, LineRange { first, last });
    assert_eq!(claim(1, 2), PatternClaim::DoesNotMatch, "what was there proves nothing");
    let PatternClaim::Holds { lines, .. } = claim(1, 3) else { panic!("{:?}", claim(1, 3)) };
    assert_eq!(lines, LineRange::from_line(3));
    for (between, expected) in [(8, true), (9, false)] {
        let file = whole("a.py", &format!("begin\n{}end\n", "x\n".repeat(between)));
        let claim = set.check_claim("wide", &file, LineRange { first: 1, last: 99 });
        assert_eq!(matches!(claim, PatternClaim::Holds { .. }), expected, "{between}: {claim:?}");
    }
}

#[test]
fn patterns_of_strangers_are_not_looked_for_and_prove_nothing() {
    let skill = skill(&[("eval", r"eval\(")]);
    let source = PatternSource { skill: &skill, category: "security", trusted: false };
    let set = PatternSet::new(&[source]);
    let file = whole("a.py", "eval(x)\n");
    let claim = set.check_claim("eval", &file, LineRange::from_line(1));
    assert!(matches!(claim, PatternClaim::Holds { trusted: false, .. }), "{claim:?}");
    assert_eq!(set.scan_change(&change(vec![file]), None), PatternScan::default());
}

#[test]
fn a_match_is_found_wherever_the_window_stands() {
    let skill = skill(&[("short", r"begin\s+end"), ("long", r"(?s)open.*?close")]);
    let set = set(&skill);
    let most = REVIEW_PATTERN_WINDOW_LINES / 2;
    for before in 0..3 * REVIEW_PATTERN_WINDOW_LINES {
        let pad = "x\n".repeat(before);
        let gap = "y\n".repeat(most - 1);
        let text = format!("{pad}begin\n\nend\n{pad}open\n{gap}close\n{pad}begin end begin\nend");
        let hits = set.scan_change(&change(vec![whole("a", &text)]), None).hits;
        let at = |line: usize, id: &'static str, lines: usize| {
            let range = LineRange { first: line as u32, last: (line + lines - 1) as u32 };
            (id, "a", range.to_string())
        };
        let (first, second) = (before + 1, 2 * before + 4);
        let third = second + most + 1 + before;
        let expected = [
            at(first, "short", 3),
            at(second, "long", most + 1),
            at(third, "short", 1),
            at(third, "short", 2),
        ];
        assert_eq!(places(&hits), expected, "{before} lines before");
    }
}

#[test]
fn what_looks_far_ahead_for_every_match_takes_little_time() {
    let skill = skill(&[("far", r"(?s)a.*zq|a"), ("line", r"a.*zq|a")]);
    let set = set(&skill);
    let files = vec![whole("many", &"a\n".repeat(20_000)), whole("one", &"a".repeat(40_000))];
    let start = std::time::Instant::now();
    let scan = set.scan_change(&change(files), None);
    let took = start.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    assert_eq!((scan.hits.len(), scan.cut), (2 * REVIEW_HITS_PER_FILE_MAX + 2, false));
}

#[test]
fn a_scan_that_is_stopped_says_so() {
    let skill = skill(&[("x", "x"), ("y", r"y\s*z")]);
    let set = set(&skill);
    let change = change(vec![whole("a", &"x\ny z\n".repeat(500))]);
    assert_eq!(
        set.scan_change(&change, Some(&|| true)),
        PatternScan { hits: Vec::new(), cut: true }
    );
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let soon = || asked.fetch_add(1, Ordering::Relaxed) > 100;
    let scan = set.scan_change(&change, Some(&soon));
    assert!(scan.cut && !scan.hits.is_empty() && scan.hits.len() < 200, "{}", scan.hits.len());
    let whole = set.scan_change(&change, Some(&|| false));
    assert_eq!((whole.hits.len(), whole.cut), (1_000, false));
}
