//! Any YAML that is read: what is written for it is read as the same, and written the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use repertoire_text::Span;
use repertoire_text::yaml::{Limits, emit, parse, parse_or_repair};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let limits = Limits::default();
    let whole = |text: &str| Span::new(0, text.len());
    let Ok(found) = parse_or_repair(&text, whole(&text), &limits, &["name", "description"]) else {
        return;
    };
    let written = emit(&found.node);
    let again = parse(&written, whole(&written), &limits)
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.to_json(), found.node.to_json(), "{written}");
    assert_eq!(emit(&again), written);
});
