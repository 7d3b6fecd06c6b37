use super::*;
use InvisibleKind::*;

#[track_caller]
fn check_found(text: &str, expected: &[InvisibleKind]) {
    let found: Vec<InvisibleKind> = find(text).map(|found| found.kind).collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn each_kind_is_found() {
    for (text, kind) in [
        ("a\u{e0041}b", TagCharacter),
        ("a\u{fe01}b", VariationSelector),
        ("a\u{e0101}b", VariationSelector),
        ("a\u{200b}b", ZeroWidth),
        ("a\u{200c}b", ZeroWidth),
        ("a\u{200d}b", ZeroWidth),
        ("a\u{2060}b", ZeroWidth),
        ("a\u{feff}b", ZeroWidth),
        ("a\u{180e}b", ZeroWidth),
        ("a\u{34f}b", ZeroWidth),
        ("a\u{202e}b", BidirectionalControl),
        ("a\u{2066}b", BidirectionalControl),
        ("a\u{200e}b", DirectionMark),
        ("a\u{61c}b", DirectionMark),
        ("a\u{2061}b", InvisibleOperator),
        ("a\u{2064}b", InvisibleOperator),
        ("a\u{206a}b", FormatControl),
        ("a\u{17b4}b", FormatControl),
        ("a\u{1d173}b", FormatControl),
        ("a\u{115f}b", BlankFiller),
        ("a\u{1160}b", BlankFiller),
        ("a\u{3164}b", BlankFiller),
        ("a\u{ffa0}b", BlankFiller),
        ("a\u{2800}b", BlankFiller),
        ("co\u{ad}py", SoftHyphen),
        ("a\u{e000}b", PrivateUse),
        ("a\u{f0000}b", PrivateUse),
        ("a\u{10fffd}b", PrivateUse),
        ("a\u{7}b", ControlCharacter),
        ("a\rb", ControlCharacter),
        ("a\u{7f}b", ControlCharacter),
        ("a\u{85}b", ControlCharacter),
        ("a\u{1b}", ControlCharacter),
        ("a\u{1b}[31mb", TerminalEscape),
        ("a\u{fff9}b", AnnotationMark),
        ("a\u{2028}b", LineSeparator),
        ("a\u{fdd0}b", Noncharacter),
        ("a\u{1ffff}b", Noncharacter),
        ("a\u{2065}b", UnassignedIgnorable),
        ("a\u{e0fff}b", UnassignedIgnorable),
    ] {
        check_found(text, &[kind]);
        check_found(&format!("{}{text}{}", "x".repeat(100), "—".repeat(50)), &[kind]);
    }
}

#[test]
fn emoji_scripts_and_typography_are_left_alone() {
    for text in [
        "plain — “quotes” … \u{a0}\u{202f}\u{3000} tab\t line\r\n",
        "👩\u{200d}🔬 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 👍🏽 🏳\u{fe0f}\u{200d}🌈 1\u{fe0f}\u{20e3} ✔\u{fe0f} ©\u{fe0e}",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "می\u{200c}خواهم, क्\u{200d}ष, සි\u{200d}ංහල",
        "葛\u{e0100}飾区 邉\u{e011d}",
        "שלום!\u{200f} C++ \u{200e}עברית",
        "ภาษา\u{200b}ไทย",
        "⠙⠀⠀⠹",
        "\u{feff}after a byte order mark",
        "𠮷野家, Ελληνικά, русский, 한국어, 日本語のテキスト",
    ] {
        check_found(text, &[]);
        assert!(matches!(shown(text), Cow::Borrowed(_)), "{text:?}");
    }
}

#[test]
fn runs_and_other_bases_are_never_in_place() {
    check_found("✔\u{fe0f}\u{fe0f}", &[VariationSelector]);
    check_found("葛\u{e0100}\u{e0101}", &[VariationSelector]);
    check_found("葛\u{e0150}", &[VariationSelector]);
    check_found("😀\u{e0141}", &[VariationSelector]);
    check_found("😀\u{fe01}", &[VariationSelector]);
    check_found("🏴\u{e0068}\u{e0069}\u{e007f}", &[TagCharacter; 3]);
    check_found("م\u{200c}\u{200c}ی", &[ZeroWidth]);
    check_found("😀\u{200d}a", &[ZeroWidth]);
    check_found("a\u{200e}\u{200e} ש", &[DirectionMark; 2]);
    check_found("ש then a\nb\u{200f}", &[DirectionMark]);
}

#[test]
fn removal_keeps_words_and_lines_apart() {
    let check = |text: &str, expected: &str| assert_eq!(removed(text).0, expected);
    check("ig\u{200b}nore", "ignore");
    check("a\u{2028}b\rc\r\nd", "a\nb\nc\r\nd");
    check("a\u{3164}b", "a b");
    check("\u{1b}]8;;https://evil.example\u{1b}\\text\u{1b}]8;;\u{7}", "text");
    check("\u{1b}[31mred\u{1b}[0m \u{9b}2Jx", "red x");
    check("\u{1b}]0;never ends\nnext", "]0;never ends\nnext");
}

#[test]
fn a_summary_names_each_kind_with_its_count() {
    let (_, summary) = removed("\u{e0041}\u{e0042}\u{202e}\u{ad}x\u{ad}");
    assert_eq!(summary.to_string(), "2 tag characters, 1 bidirectional control, 2 soft hyphens");
    assert_eq!((summary.total(), removed("x").1.is_empty()), (5, true));
}

#[test]
fn characters_are_shown_by_number_and_long_runs_are_counted() {
    assert_eq!(shown("a\u{202e}b\u{e0041}"), "a⟨U+202E⟩b⟨U+E0041⟩");
    assert_eq!(shown("\u{1b}[2Jx"), "⟨U+001B⟩[2Jx");
    assert_eq!(shown("\u{1b}]0;a\u{7}x"), "⟨U+001B⟩]0;a⟨U+0007⟩x");
    let long = format!("a{}b\u{ad}c", "\u{200b}".repeat(11));
    let marks = "⟨U+200B⟩".repeat(8);
    assert_eq!(shown(&long), format!("a{marks}⟨3 more⟩b⟨U+00AD⟩c"));
    assert_eq!(shown(&"\u{200b}".repeat(9)), format!("{marks}⟨1 more⟩"));
    assert_eq!(shown_on_one_line("a\n\tb\u{7}"), "a\\n\\tb⟨U+0007⟩");
}

#[test]
fn json_keeps_its_meaning_without_invisible_characters() {
    let text = "a\u{202e}\u{e0041}\u{200b} \u{9b}31m\u{f0000}";
    let json = serde_json::to_string_pretty(&serde_json::json!({ "text": text })).unwrap();
    let escaped = escaped_in_json(&json);
    assert!(escaped.is_ascii() && escaped.contains(r"\u202e\udb40\udc41\u200b"), "{escaped}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap()["text"], text);
}

#[test]
fn json_values_are_cleaned_to_their_leaves() {
    let mut value = serde_json::json!({"a\u{200b}": ["x\u{e0041}", {"b": "c\u{202e}"}], "d": 1});
    let summary = remove_in_json(&mut value);
    assert_eq!(value, serde_json::json!({"a": ["x", {"b": "c"}], "d": 1}));
    assert_eq!(summary.total(), 3);
}

#[test]
fn ranges_for_other_languages_leave_out_what_can_be_in_place() {
    let ranges = ranges_never_proper();
    let has = |code: u32| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
    assert!([0x08, 0x0b, 0x0c, 0x1b, 0x200b, 0x202e, 0xfe0d, 0xe0041, 0xfeff].into_iter().all(has));
    assert!(![0x09, 0x0a, 0x0d, 0x200d, 0xfe0f, 0x61c, 0x2800].into_iter().any(has));
}

#[test]
fn markers_are_recognised() {
    assert!(has_marker("a ⟨U+E0041⟩ b") && has_marker("⟨U+00AD⟩"));
    assert!(!has_marker("⟨U+⟩") && !has_marker("⟨U+XYZ⟩") && !has_marker("plain"));
}

#[test]
fn the_table_is_in_order_and_the_scan_misses_nothing() {
    assert!(table::TABLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    for c in (0..=0x10ffff).filter_map(char::from_u32) {
        let text = format!("ab{c}cd");
        let is_layout = matches!(c, '\n' | '\t');
        let found = find(&text).next().is_some();
        assert_eq!(found, InvisibleKind::of_char(c).is_some() && !is_layout, "{:X}", u32::from(c));
    }
}

/// Runs every function that reads or cleans text, on a stack too small for recursion into the text. Returns the CPU time
/// of its thread, which other tests do not change.
fn clean_in_every_way(text: &str) -> std::time::Duration {
    let text = text.to_owned();
    let work = move || {
        let shown = shown(&text);
        assert!(is_clean(&shown) && is_clean(&removed(&text).0));
        let _ = (
            escaped_in_json(&text),
            without_terminal_control(&text),
            InvisibleSummary::count_in(&text),
        );
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::try_from(used).unwrap()
    };
    std::thread::Builder::new().stack_size(128 * 1024).spawn(work).unwrap().join().unwrap()
}

/// The shortest of three times: caches and clock rates vary.
fn time_to_clean(text: &str) -> std::time::Duration {
    let time = || clean_in_every_way(text);
    time().min(time()).min(time())
}

/// Repeats a text, with an end that closes escape sequences. A linear pass takes about 20 ms; a quadratic one more than
/// a second.
fn check_linear(repeated: &str, last: &str) {
    const BYTES: usize = 128 * 1024;
    let limit = std::time::Duration::from_millis(500);
    let text = repeated.repeat(BYTES / repeated.len()) + last;
    assert!(clean_in_every_way(&text) < limit, "{repeated:?} and {last:?}");
}

#[test]
fn every_character_of_the_table_is_cleaned_in_linear_time_without_recursion() {
    let ends = table::TABLE.iter().flat_map(|(first, last, _)| [*first, *last]);
    for c in ends.chain(0x80..0xa0).filter_map(char::from_u32) {
        check_linear(&c.to_string(), "\u{7}");
    }
}

#[test]
fn pairs_of_characters_that_are_judged_by_others_are_cleaned_in_linear_time() {
    let judged = "\u{1b}\u{90}\u{9b}\u{9d}]P[\\0\u{2800}\u{2801}\u{200d}\u{200f}\u{e0067}😀";
    for first in judged.chars() {
        for second in judged.chars() {
            check_linear(&format!("{first}{second}"), "\u{7}");
        }
    }
}

#[test]
fn four_times_the_text_takes_about_four_times_as_long() {
    for repeated in
        ["\u{9d}", "\u{2800}", "\u{1b}]", "\u{9d}\u{1b}", "\u{1b}[0", "\u{90}a", "\u{200f}"]
    {
        let text = |bytes: usize| repeated.repeat(bytes / repeated.len()) + "\u{7}";
        let (small, large) = (time_to_clean(&text(256 * 1024)), time_to_clean(&text(1024 * 1024)));
        assert!(large < small * 10, "{repeated:?}: {small:?} and {large:?}");
    }
}

#[test]
fn a_string_sequence_has_a_maximum_length() {
    let title = |length: usize| format!("\u{1b}]0;{}\u{7}x", "a".repeat(length));
    assert_eq!(removed(&title(4000)).0, "x");
    assert_eq!(removed(&title(5000)).0, format!("]0;{}x", "a".repeat(5000)));
    assert_eq!(shown("\u{9d}\u{9d}a\u{7}"), "⟨U+009D⟩⟨U+009D⟩a⟨U+0007⟩");
    assert_eq!(removed("\u{9d}\u{9d}a\u{7}b").0, "b");
}

proptest::proptest! {
    #[test]
    fn what_is_removed_or_shown_is_clean(text in "(?s)[a \n\r\u{1b}\\[\\]m;\u{7}\u{200b}-\u{200f}\u{202e}\u{fe0f}\u{e0041}😀葛م\u{e0100}\u{2800}⠹🏴]{0,40}") {
        proptest::prop_assert!(is_clean(&shown(&text)), "{:?}", shown(&text));
        proptest::prop_assert!(is_clean(&removed(&text).0), "{:?}", removed(&text));
    }
}
