use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn document<S: AsRef<str>>(patterns: &[S]) -> SkillDocument<'static> {
    let mut document = SkillDocument::new("a", "a", "", "");
    document.triggers.patterns = patterns.iter().map(|p| p.as_ref().to_owned()).collect();
    document
}

#[track_caller]
fn check(pattern: &str, text: &str, expect: Option<&str>) {
    let patterns = PatternTriggers::new(&[document(&[pattern])]);
    assert_eq!(patterns.problems(), [], "{pattern}");
    let found = patterns.find(&Task::new(text));
    let matched = found.first().map(|found| match &found.reason {
        SelectionReason::Pattern { matched, .. } => matched.as_str(),
        other => panic!("{other}"),
    });
    assert_eq!(matched, expect, "{pattern} {text}");
}

#[test]
fn a_pattern_finds_its_text_in_any_case() {
    check("analy[sz]e.*tender", "Please ANALYZE this tender now", Some("ANALYZE this tender"));
    check("tender.*(denmark|danish)", "a tender in Norway", None);
    check("udbud|tilbudsgivning", "Gennemgå UDBUDDET", Some("UDBUD"));
    check("straße", "Große STRAẞE", Some("STRAẞE"));
    check(r"#\d+", "see #42", Some("#42"));
    check("masse", "ma\u{17f}\u{17f}e", Some("ma\u{17f}\u{17f}e"));
    check("翻訳", "この文書を翻訳して", Some("翻訳"));
}

#[test]
fn a_skill_is_found_once_by_its_first_pattern_and_more_add_nothing() {
    let patterns = PatternTriggers::new(&[
        document(&["never", "deploy", r"prod\w*", "deploy"]),
        document(&["deploy"]),
        document::<&str>(&[]),
    ]);
    let found = patterns.find(&Task::new("deploy to production"));
    assert_eq!(found.iter().map(|found| found.skill).collect::<Vec<_>>(), [0, 1]);
    assert_eq!([found[0].strength, found[1].strength], [STRENGTH; 2]);
    let expect = "trigger pattern /deploy/ matches \"deploy\"";
    assert_eq!(found[0].reason.to_string(), expect);
}

#[test]
fn a_long_match_is_cut_for_show() {
    check("x.+", &format!("x{}", "é".repeat(200)), Some(&format!("x{}…", "é".repeat(79))));
}

#[test]
fn what_cannot_be_used_is_a_problem_and_breaks_no_other() {
    let long = "x".repeat(1025);
    let classes = r"\pL".repeat(17);
    let bad = [
        ("(?=look)ahead", "look-around"),
        ("(unclosed", "unclosed group"),
        (r"\p{Nonsense}", "Unicode property"),
        (r"(?-u)\xFF", "UTF-8"),
        (&long, "1025 bytes"),
        (&classes, "17 Unicode classes"),
        (".*", "matches everything"),
        ("x?", "matches everything"),
        (r"\b", "matches everything"),
        ("", "matches everything"),
    ];
    let mut all: Vec<&str> = bad.iter().map(|(pattern, _)| *pattern).collect();
    all.push("tender");
    let patterns = PatternTriggers::new(&[document(&all)]);
    assert_eq!(patterns.problems().len(), bad.len());
    for (problem, (pattern, message)) in patterns.problems().iter().zip(bad) {
        assert_eq!((problem.skill, problem.pattern.as_str()), (0, pattern));
        assert!(problem.message.contains(message), "{}", problem.message);
    }
    assert_eq!(patterns.find(&Task::new("a tender")).len(), 1);
}

#[test]
fn a_pattern_that_turns_out_too_big_never_matches() {
    let patterns = PatternTriggers::new(&[document(&[r"tender\w{1000}"])]);
    assert_eq!(patterns.find(&Task::new(format!("tender{}", "x".repeat(2000)))), []);
}

#[test]
fn a_pattern_that_turns_out_too_big_is_a_problem_of_each_skill_that_has_it() {
    let big = r"the\w{6}";
    let patterns = PatternTriggers::new(&[
        document(&["tender", big]),
        document(&[big]),
        document(&["[a-c]x{40}def"]),
    ]);
    let problems = patterns.problems();
    assert_eq!(problems.iter().map(|problem| problem.skill).collect::<Vec<_>>(), [0, 1]);
    for problem in problems {
        assert_eq!(problem.pattern, big);
        assert!(problem.message.contains("262144 bytes"), "{}", problem.message);
    }
}

#[test]
fn what_is_not_reckoned_large_compiles_within_the_limit() {
    let parts =
        [r"\w", r"\pL", "k", "ß", ".", "[ks]", "[^a]", "(a|b)", "(?s:.)", r"\b", r"\W", "[a-z]"];
    for part in parts {
        for times in [1, 2, 3, 8, 15, 30, 100, 200, 300, 400, 480, 900] {
            for pattern in
                [format!("abc(?:{part}){{{times}}}"), format!("abc(?:{part}){{0,{times}}}")]
            {
                let patterns = PatternTriggers::new(&[document(&[&pattern])]);
                if patterns.patterns.iter().all(|pattern| !pattern.is_large) {
                    assert!(patterns.patterns[0].compiled_regex().is_some(), "{pattern}");
                }
            }
        }
    }
}

#[test]
fn a_pattern_without_a_fixed_text_stays_weak() {
    for (pattern, text) in
        [(r"#\d+", "see #42"), ("[a-z]{12,}", "internationalisation"), ("v[0-9]", "v2")]
    {
        let patterns = PatternTriggers::new(&[document(&[pattern])]);
        let found = patterns.find(&Task::new(text));
        assert_eq!(found[0].strength, WEAK, "{pattern}");
    }
}

#[test]
fn a_strong_pattern_goes_before_weak_ones_of_its_skill() {
    let patterns = PatternTriggers::new(&[document(&[r"#\d+", "issue", r"#\d\d"])]);
    let found = patterns.find(&Task::new("issue #42"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].strength, STRENGTH);
    assert!(found[0].reason.to_string().contains("/issue/"), "{}", found[0].reason);
}

#[test]
fn a_pattern_that_matches_texts_about_nothing_is_refused() {
    for pattern in [
        ".+",
        ".",
        r"\w+",
        "[a-z]+",
        r"\d",
        r"\S+\s\S+",
        "a|bcd",
        "^.{5}",
        "[^x]",
        "lo",
        ".{12,}",
        r"[^0-9]{20}",
    ] {
        let patterns = PatternTriggers::new(&[document(&[pattern])]);
        let [problem] = patterns.problems() else { panic!("{pattern}") };
        assert!(problem.message.contains("matches everything"), "{}", problem.message);
        assert_eq!(patterns.find(&Task::new("hello world, what a day, 1")), []);
    }
    assert_eq!(PatternTriggers::new(&[document(&["hello.*"])]).problems(), []);
}

#[test]
fn patterns_without_a_fixed_text_are_limited_in_one_skill() {
    let own: Vec<String> = (0..10).map(|at| format!("[0-9]{{{}}}", at + 2)).collect();
    let patterns = PatternTriggers::new(&[document(&own), document(&["x[0-9]", "tender"])]);
    assert_eq!(patterns.problems().len(), 10 - PATTERNS_EVERYWHERE_PER_SKILL_MAX);
    for problem in patterns.problems() {
        assert_eq!(problem.skill, 0);
        assert!(problem.message.contains("of the skill, the limit"), "{}", problem.message);
    }
    assert_eq!(patterns.find(&Task::new("x1")).len(), 1);
}

#[test]
fn patterns_that_are_left_when_the_work_for_a_task_is_used_up_are_not_tried() {
    let large: Vec<_> =
        (0..40).map(|at| document(&[format!("tender(a?){{600}}{at:03}")])).collect();
    let mut documents = large;
    documents.push(document(&["tender"]));
    let patterns = PatternTriggers::new(&documents);
    let every: String = (0..40).map(|at| format!("tender{at:03} ")).collect();
    assert_eq!(patterns.find(&Task::new(&every)).len(), 41);
    let found = patterns.find(&Task::new(every + &"x".repeat(TASK_BYTES_MAX / 2)));
    assert!((2..40).contains(&found.len()), "{}", found.len());
    assert_eq!(found.last().map(|found| found.skill), Some(40), "small ones go first");
}

#[test]
fn patterns_without_a_fixed_text_are_limited() {
    let documents: Vec<_> = (0..=PATTERNS_EVERYWHERE_MAX)
        .map(|at| document(&[format!("[0-9]{{{}}}", at + 2)]))
        .collect();
    let patterns = PatternTriggers::new(&documents);
    assert_eq!(patterns.problems().len(), 1);
    assert!(patterns.problems()[0].message.contains("no fixed text"));
}

#[test]
fn the_patterns_of_one_skill_are_limited() {
    let all: Vec<String> = (0..=PATTERNS_PER_SKILL_MAX).map(|at| format!("tender{at}")).collect();
    let patterns = PatternTriggers::new(&[document(&all)]);
    assert_eq!(patterns.problems().len(), 1);
    assert!(patterns.problems()[0].message.contains("more than 64 patterns"));
}

#[test]
fn a_pattern_that_is_much_work_reads_less_of_a_task() {
    let text = format!("{}tender", "x".repeat(5_000));
    check("tender", &text, Some("tender"));
    check("(x?){1000}tender", &text, None);
}

#[test]
fn nothing_past_the_limit_of_a_task_is_read() {
    let text = format!("{}tender", "é".repeat(TASK_BYTES_MAX));
    check("tender", &text, None);
}

#[test]
fn hostile_patterns_do_not_stall() {
    let mut all: Vec<String> =
        (0..20).map(|at| format!("(a+)+(a|aa)*[ab]{{0,{at}0}}aaab")).collect();
    all.extend((1..20).map(|at| format!("x{}", r"[^y]\w?".repeat(at))));
    all.extend(["abb([ab]?){900}q", "abb[ab]*a[ab]{400}q"].map(str::to_owned));
    all.push(r"\pL".repeat(16));
    all.push("(".repeat(500));
    let mixed = (0..TASK_BYTES_MAX).map(|at| if at * at % 7 < at % 5 { 'a' } else { 'b' });
    let texts = ["a".repeat(TASK_BYTES_MAX), "x".repeat(TASK_BYTES_MAX), mixed.collect()];
    let start = Instant::now();
    let patterns = PatternTriggers::new(&[document(&all)]);
    for text in texts {
        patterns.find(&Task::new(text));
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn no_pattern_and_no_text_makes_it_panic(pattern in "\\PC{0,24}", text in "\\PC{0,64}") {
        PatternTriggers::new(&[document(&[pattern])]).find(&Task::new(text));
    }

    #[test]
    fn a_pattern_is_found_exactly_where_the_plain_library_finds_it(
        pattern in "([a-cA-Cßſsk]{1,4}|\\(\\?:abc\\||\\)\\??|\\.\\*|\\[ab\\]|\\[\\^[ab]\\]|\\||\\?|\\+|\\{2\\}|\\(|\\)){1,8}",
        text in "[a-cA-CßẞſsSkK]{0,24}",
    ) {
        let plain = RegexBuilder::new(&pattern).case_insensitive(true).build();
        let expect = plain.is_ok_and(|plain| !plain.is_match("") && plain.is_match(&text));
        let patterns = PatternTriggers::new(&[document(&[pattern])]);
        let found = patterns.find(&Task::new(text)).len() == 1;
        let is_refused = patterns.problems().iter().any(|p| p.message.contains("no fixed text"));
        prop_assert_eq!(found, expect && !is_refused);
    }
}
