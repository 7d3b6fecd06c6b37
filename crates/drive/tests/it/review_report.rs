//! What people and tools see of a review.

mod made_up;

use repertoire_drive::review::change::Change;
use repertoire_drive::review::record::Review;
use repertoire_drive::review::report::{Format, Look, Styles, json, render};
use serde_json::Value;

use made_up::{change, clean, hostile, review};

fn shown(format: Format, review: &Review, change: &Change) -> String {
    render(format, review, change, &Look::default())
}

fn snapshot(name: &str, text: &str) {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
    insta::with_settings!({
        snapshot_path => "../fixtures/review_report",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn a_review_as_text() {
    snapshot("text", &shown(Format::Text, &review(), &change()));
    let narrow = Look { width: 60, styles: Styles::ansi() };
    snapshot("text-ansi", &render(Format::Text, &review(), &change(), &narrow));
}

#[test]
fn a_clean_review_is_one_line() {
    let text = shown(Format::Text, &clean(), &change());
    assert_eq!(
        text,
        "No findings in 4 files (quick review, 4 agents; bugs, error handling, security, test coverage).\n"
    );
}

#[test]
fn hostile_text_neither_moves_the_cursor_nor_commands_the_build_log() {
    let (review, change) = hostile();
    for styles in [Styles::plain(), Styles::ansi()] {
        let text = render(Format::Text, &review, &change, &Look { width: 80, styles });
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("::"), "{line}");
            assert!(!line.contains("##["), "{line}");
            // What starts an escape is ours: it is a colour.
            for escape in line.split('\u{1b}').skip(1) {
                let end = escape.find('m').unwrap();
                let colour = &escape[1..end];
                assert!(colour.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{line}");
            }
            let rest = line.replace('\u{1b}', "");
            assert!(!rest.chars().any(repertoire_text::terminal::is_hidden), "{rest}");
        }
        assert!(text.len() < 2_000_000, "{}", text.len());
    }
}

#[test]
fn the_record_fits_its_schema_and_comes_back_as_it_was() {
    let schema = json::schema().to_value();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for review in [review(), clean(), hostile().0] {
        let text = shown(Format::Json, &review, &change());
        let value: Value = serde_json::from_str(&text).unwrap();
        let problems: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(serde_json::from_str::<Review>(&text).unwrap(), review);
    }
    snapshot("json", &shown(Format::Json, &review(), &change()));
}
