use proptest::prelude::*;

use super::*;

fn document<S: AsRef<str>>(phrases: &[S]) -> SkillDocument<'static> {
    let mut document = SkillDocument::new("a", "a", "", "");
    document.triggers.keywords = phrases.iter().map(|p| p.as_ref().to_owned()).collect();
    document
}

#[track_caller]
fn check(phrase: &str, text: &str, expect: f32) {
    let found = PhraseTriggers::new(&[document(&[phrase])]).find(&Task::new(text));
    let strength = found.first().map_or(0.0, |found| found.strength);
    assert!((strength - expect).abs() < 1e-6, "\"{phrase}\" in \"{text}\": {strength}");
}

#[test]
fn phrases_are_found_between_the_ends_of_words() {
    check("tender", "Analyse this Danish tender.", ONE_WORD);
    check("tender", "tenderness is all", 0.0);
    check("tender", "a pretender", 0.0);
    check("tender", "\"tender\"", ONE_WORD);
    check("danish tender", "A danish tender", SEVERAL_WORDS);
    check("danish tender", "a danish bartender", 0.0);
    check("ci/cd", "Fix our CI/CD.", ONE_WORD);
    check(".net", "port it to ASP.NET", ONE_WORD);
    check("c++", "in C++, please", ONE_WORD);
    check("c#", "C#", ONE_WORD);
}

#[test]
fn case_blanks_hyphens_and_underscores_make_no_difference() {
    for text in
        ["PULL REQUEST", "pull-request", "pull_request", "pull \n\t request", "Pull‐Request"]
    {
        check("pull request", text, SEVERAL_WORDS);
        check(text, "a pull request here", SEVERAL_WORDS);
    }
    check("pull request", "pullrequest", 0.0);
    check("ÆBLEGRØD", "lav æblegrød", ONE_WORD);
    check("A\u{30a}RHUS", "århus", ONE_WORD);
    check("don't panic", "Don’t panic", SEVERAL_WORDS);
}

#[test]
fn the_last_word_may_be_inflected() {
    check("spreadsheet", "two spreadsheets", ONE_WORD);
    check("spreadsheet", "the spreadsheet's cells", ONE_WORD);
    check("mailbox", "all mailboxes", ONE_WORD);
    check("fill form", "fill forms", SEVERAL_WORDS);
    check("rebase", "I am rebasing", ONE_WORD);
    check("rebase", "it was rebased", ONE_WORD);
    check("inventory", "two inventories", ONE_WORD);
    check("unplug", "unplugging it", ONE_WORD);
    check("pr", "two PRs", ONE_WORD);
    check("danish tender", "danish tendering", SEVERAL_WORDS);
}

#[test]
fn a_longer_word_is_not_another_form() {
    check("import", "an important question", 0.0);
    check("organ", "organise it", 0.0);
    check("universe", "the university", 0.0);
    check("note", "nothing", 0.0);
    check("go", "goes", 0.0);
}

#[test]
fn danish_endings_count_in_a_danish_text() {
    check("udbud", "Gennemgå udbuddets krav og find de svage", ONE_WORD);
    check("udbud", "Hvad står der i udbuddet, og hvad skal vi gøre", ONE_WORD);
    check("offentligt udbud", "Det er et offentligt udbuds krav", SEVERAL_WORDS);
    check("udbud", "udbudsmateriale og andet der skal læses", 0.0);
}

#[test]
fn scripts_without_blanks_have_no_ends_of_words() {
    check("翻訳", "この文書を翻訳して", SEVERAL_WORDS);
    check("猫", "黒猫が好き", COMMON);
    check("번역", "문서를 번역해 주세요", SEVERAL_WORDS);
    check("pdf", "请处理pdf文件", ONE_WORD);
    check("แปล", "ช่วยแปลเอกสาร", SEVERAL_WORDS);
}

#[test]
fn common_words_count_less_and_empty_ones_not_at_all() {
    check("file", "open the file", COMMON);
    for nothing in ["the", "x", "", " - ", "use"] {
        check(nothing, "use the x - y", 0.0);
    }
    check(&"x".repeat(PHRASE_BYTES_MAX + 1), &"x".repeat(PHRASE_BYTES_MAX + 1), 0.0);
}

#[test]
fn phrases_of_stop_words_alone_are_ignored() {
    for phrase in ["of the", "in the", "how to", "How-To", "how to?", "of, the", "... the"] {
        check(phrase, &format!("how to, of the, in the {phrase}"), 0.0);
    }
    check("how to deploy", "how to deploy it", SEVERAL_WORDS);
}

#[test]
fn common_words_together_stay_weak_however_many_there_are() {
    let words = ["file", "code", "create", "check", "project"];
    words.iter().for_each(|word| check(word, word, COMMON));
    let text = words.join(", ");
    let of =
        |all: &[&str]| PhraseTriggers::new(&[document(all)]).find(&Task::new(&text))[0].strength;
    assert!((of(&words) - COMMON_TOGETHER_MAX).abs() < 1e-6, "{}", of(&words));
    check("file", "a file", COMMON);
    let both = PhraseTriggers::new(&[document(&["file", "code", "tender"])]);
    let strength = both.find(&Task::new("a tender, a file, some code"))[0].strength;
    assert!(
        (strength - combine_strengths([ONE_WORD, COMMON_TOGETHER_MAX])).abs() < 1e-6,
        "{strength}"
    );
}

#[test]
fn later_phrases_than_the_limit_are_not_used() {
    let all: Vec<String> = (0..=PHRASES_PER_SKILL_MAX).map(|at| format!("tender{at}")).collect();
    let phrases = PhraseTriggers::new(&[document(&all)]);
    assert_eq!(phrases.find(&Task::new(&all[PHRASES_PER_SKILL_MAX])), []);
    assert_eq!(phrases.find(&Task::new(&all[PHRASES_PER_SKILL_MAX - 1])).len(), 1);
}

#[test]
fn a_skill_is_found_once_by_its_longest_phrase_and_more_add() {
    let phrases = PhraseTriggers::new(&[
        document(&["tender", "Danish-Tender", "danish tender"]),
        document(&["nothing"]),
        document(&["tender"]),
    ]);
    let found = phrases.find(&Task::new("a danish tender, and a tender"));
    assert_eq!(found.iter().map(|found| found.skill).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(found[0].reason, SelectionReason::Phrase { phrase: "Danish-Tender".to_owned() });
    assert!((found[0].strength - combine_strengths([0.75, 0.85])).abs() < 1e-6);
    assert_eq!(found[1].strength, ONE_WORD);
}

#[test]
fn overlapping_phrases_are_all_found() {
    let phrases =
        PhraseTriggers::new(&[document(&["code review", "review tool"]), document(&["view"])]);
    let found = phrases.find(&Task::new("a code review tool"));
    assert_eq!(found.len(), 1);
    assert!((found[0].strength - combine_strengths([0.85, 0.85])).abs() < 1e-6);
}

/// The expected result of [`PhraseSet::find`], computed by trying every part of the text.
fn naive(phrase: &str, text: &str) -> bool {
    let (phrase, text) = (normalise_phrase(phrase), normalise_phrase(text));
    let language = TextLanguage::detect_language(&text);
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let is_part = |start: usize, end: usize| {
        let part = &text[start..end];
        let cut = |at: usize| {
            let (before, after) = (text[..at].chars().next_back(), text[at..].chars().next());
            !(before.is_some_and(is_bounded) && after.is_some_and(is_bounded))
        };
        let split = phrase.trim_end_matches(is_bounded).len();
        let (head, last) = phrase.split_at(split);
        let is_same = part.strip_prefix(head).is_some_and(|word| {
            word == last
                || (!last.is_empty()
                    && word.chars().all(is_bounded)
                    && is_inflected(last, word, &mut || language))
        });
        cut(start) && cut(end) && is_same
    };
    !is_meaningless(&phrase)
        && ends.iter().any(|start| ends.iter().any(|end| start < end && is_part(*start, *end)))
}

proptest! {
    #[test]
    fn no_phrase_and_no_text_makes_it_panic(phrase in "\\PC{0,12}", text in "\\PC{0,48}") {
        PhraseTriggers::new(&[document(&[phrase])]).find(&Task::new(text));
    }

    #[test]
    fn the_automaton_finds_what_a_naive_search_finds(
        phrases in prop::collection::vec("[abeyæ語-]{1,4}( [abey.]{1,3})?", 1..4),
        text in "([abeyæ語]{1,4}|s|ies|ing| |-|\\.|\n){0,16}",
    ) {
        let documents: Vec<_> = phrases.iter().map(|phrase| document(&[phrase])).collect();
        let found = PhraseTriggers::new(&documents).find(&Task::new(&text));
        let found: Vec<usize> = found.iter().map(|found| found.skill).collect();
        let expect: Vec<usize> =
            (0..phrases.len()).filter(|at| naive(&phrases[*at], &text)).collect();
        prop_assert_eq!(found, expect);
    }
}
