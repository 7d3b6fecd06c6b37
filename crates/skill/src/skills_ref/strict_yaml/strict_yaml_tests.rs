use repertoire_text::yaml::Value;

use super::*;

fn read(yaml: &str) -> Result<YamlNode, StrictYamlError> {
    parse_strict_yaml(yaml, Span::new(0, yaml.len()), &Limits::default())
}

/// Renders the tree as JSON in which every scalar is a string.
fn json(node: &YamlNode) -> serde_json::Value {
    match &node.value {
        Value::Scalar(scalar) => scalar.text.as_str().into(),
        Value::Sequence(items, _) => items.iter().map(json).collect(),
        Value::Mapping(mapping) => mapping
            .entries
            .iter()
            .map(|entry| (entry.key.clone(), json(&entry.value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[track_caller]
fn check(yaml: &str, expect: &str) {
    let found = match read(yaml) {
        Ok(node) => json(&node).to_string(),
        Err(refusal) => format!("refused: {}", refusal.message),
    };
    assert_eq!(found, expect, "{yaml:?}");
}

#[track_caller]
fn refuses(yamls: &[&str]) {
    for yaml in yamls {
        let start: String = yaml.chars().take(80).collect();
        assert!(read(yaml).is_err(), "{start:?} was not refused");
    }
}

#[test]
fn everything_is_a_text() {
    check("a: 1.0\nb: true\nc: ~\nd:\ne: 'q'", r#"{"a":"1.0","b":"true","c":"~","d":"","e":"q"}"#);
    check("a:\n  b:\n  - c\n  -\n  - - d\n    - e: f", r#"{"a":{"b":["c","",["d",{"e":"f"}]]}}"#);
    check("a:\n- b\n-\nc: d", r#"{"a":["b",""],"c":"d"}"#);
    check("  a: b\n  c: d", r#"{"a":"b","c":"d"}"#);
}

#[test]
fn what_strictyaml_forbids_is_refused() {
    refuses(&["a: [b]", "a: {b: c}", "[a]: b", "a: &x b", "a: *x", "a: !t b", "!!map\na: b"]);
    refuses(&["a: 1\na: 2", "a:\n  b: 1\n  b: 2", "a: ]", "a: , b", ", a: b"]);
    refuses(&["? [a]\n: b", "? a: b\n: c", "? - a\n: b"]);
}

#[test]
fn sibling_mappings_must_share_a_column() {
    refuses(&["a:\n  b: c\nd:\n   e: f", "x:\n  a:\n    b: c\n  d:\n     e: f"]);
    check("a:\n  b: c\nd:\n- e\nf:\n  g: h", r#"{"a":{"b":"c"},"d":["e"],"f":{"g":"h"}}"#);
    check(
        "a:\n  - b:\n      c: d\n  - e:\n        f: g",
        r#"{"a":[{"b":{"c":"d"}},{"e":{"f":"g"}}]}"#,
    );
}

#[test]
fn tabs_between_values_are_refused_except_after_an_empty_line() {
    refuses(&["a:\tb", "a: b\t", "a: b\tc", "a: b\n\tc: d", "a:\n\tb: c", "a: >\t\n  b", "\t"]);
    refuses(&["a: 'b'\t", "-\ta"]);
    check("a: 'b\tc'\nd: \"e\t\n\tf\"", r#"{"a":"b\tc","d":"e f"}"#);
    check("a: |\n  b\tc\n  \td\n", r#"{"a":"b\tc\n\td\n"}"#);
    check("a: 'b'\n\n\t# c\nd: e", r#"{"a":"b","d":"e"}"#);
}

#[test]
fn a_hash_starts_a_comment_after_any_token() {
    check("a: \"b\"#c\nd: 'e' # f", r#"{"a":"b","d":"e"}"#);
    check(
        "a: b#c\nd: e #f\n# g\n   # h\ni:#j\nk: l",
        "refused: this line is neither a `field: value` nor part of the value above",
    );
    check("a: b\n  # c\nd: e", r#"{"a":"b","d":"e"}"#);
    refuses(&["a: b\n  # c\n  d"]);
    check("a: | # b\n  # c\n # d\ne: f", r##"{"a":"# c\n","e":"f"}"##);
    refuses(&["a: |# b\n  c"]);
}

#[test]
fn plain_scalars_fold_and_end_as_in_ruamel() {
    check("a: b c\n  d\n\n\n  e  f  \ng: h", r#"{"a":"b c d\n\ne  f","g":"h"}"#);
    check(
        "a: -b\nc: ?d\ne: :f\ng: h:i\nj: k,l]",
        r#"{"a":"-b","c":"?d","e":":f","g":"h:i","j":"k,l]"}"#,
    );
    check("a:\n  b\n c", r#"{"a":"b c"}"#);
    refuses(&["a: b: c", "a: b\n  c: d", "a: - b", "a: ? b", "a: @b", "a: `b`", "a: %b"]);
    refuses(&["a: b\nc", "a: b\n c: d", "a\nb: c", "a: 'b' c", "a:b\nc: d"]);
}

#[test]
fn quoted_scalars_may_stand_at_any_column() {
    check("a: \"b\nc\n\n d\"\ne: 'f\ng'", r#"{"a":"b c\nd","e":"f g"}"#);
    check(
        r#"a: "\x41\u00e9\U0001F600\/\_\
   b\
   c""#,
        "{\"a\":\"Aé😀/\u{a0}bc\"}",
    );
    check(r#"a: 'it''s "\n"'"#, r#"{"a":"it's \"\\n\""}"#);
    check(r#"a: "\ud83d\ude00 \ud83d""#, "{\"a\":\"😀 \u{fffd}\"}");
    refuses(&[
        "a: \"b",
        "a: 'b",
        r#"a: "\q""#,
        r#"a: "\x4""#,
        r#"a: "\uD8""#,
        r#"a: "\UFFFFFFFF""#,
    ]);
    refuses(&["a: \"b\n...\nc\""]);
}

#[test]
fn block_scalars_keep_fold_and_chomp() {
    check("a: |\n  b\n   c\n\n  d\n\ne: f", r#"{"a":"b\n c\n\nd\n","e":"f"}"#);
    check("a: >\n  b\n  c\n\n  d\n    e\n  f\n", r#"{"a":"b c\nd\n  e\nf\n"}"#);
    check("a: |-\n  b\n\nc: |+\n  d\n\ne: >-2\n    f", r#"{"a":"b","c":"d\n\n","e":"  f"}"#);
    check("a: |1\n  b\n c\n", r#"{"a":" b\nc\n"}"#);
    check("a: |\nb: >-", r#"{"a":"","b":""}"#);
    refuses(&["a: |0\n  b", "a: |x\n  b", "a: |10\n  b", "a: |+-\n  b"]);
    // The widest empty line before the text sets the indentation.
    refuses(&["a: |\n    \n  b"]);
    check("|\nb\n...\n", r#""b\n""#);
}

#[test]
fn keys_may_be_quoted_empty_or_marked_but_not_long() {
    check("\"a b\" : c\n'd''e': f\ng h: i", r#"{"a b":"c","d'e":"f","g h":"i"}"#);
    check("? a\n: b\n? c\n? |\n  d\n: e", r#"{"a":"b","c":"","d\n":"e"}"#);
    check(": a\nb: c", r#"{"":"a","b":"c"}"#);
    let key = |length: usize| format!("{}: v", "é".repeat(length));
    assert!(read(&key(1024)).is_ok());
    refuses(&[&key(1025), "\"a\nb\": c"]);
}

#[test]
fn there_is_one_document_and_no_directive() {
    check("a: b\n...\n", r#"{"a":"b"}"#);
    check("a: b\n... # c\n", r#"{"a":"b"}"#);
    check("a: b ...\nc: ....", r#"{"a":"b ...","c":"...."}"#);
    refuses(&["a: b\n...\n...\n", "a: b\n...\nc: d", "...\na: b", "%YAML 1.2\na: b", "a: b\n%c"]);
    check("a:\n  b\n  %c", r#"{"a":"b %c"}"#);
}

#[test]
fn merge_keys_are_resolved_below_the_top_and_dropped_at_it() {
    check("a:\n  <<:\n    b: 1\n    c: 2\n  c: 3", r#"{"a":{"c":"3","b":"1"}}"#);
    check("a:\n  <<:\n  - b: 1\n  - c: 2", r#"{"a":{"b":"1","c":"2"}}"#);
    check("<<:\n  a: 1\nb: 2", r#"{"b":"2"}"#);
    check("'<<': a", r#"{"<<":"a"}"#);
    refuses(&["<<: a", "<<:\n- a", "a:\n  <<:\n    b: 1\n  <<:\n    c: 2"]);
}

#[test]
fn line_breaks_are_those_of_yaml_1_1() {
    check("a: b\r\n  c\rd: e\r\n", r#"{"a":"b c","d":"e"}"#);
    check("a: b\u{85}c\u{2028}d", "{\"a\":\"b c\u{2028}d\"}");
    check("a: |\r\n  b\r\n  c\r\n", r#"{"a":"b\nc\n"}"#);
    check("\u{feff}a: b\nc: d", r#"{"a":"b","c":"d"}"#);
}

#[test]
fn unprintable_characters_are_refused() {
    refuses(&["a: \u{7}", "a: \u{7f}", "a: \u{80}", "a: \u{fffe}", "a: \0", "# \u{1b}"]);
    check("a: \u{a0}\u{e000}\u{fffd}\u{10ffff}", "{\"a\":\"\u{a0}\u{e000}\u{fffd}\u{10ffff}\"}");
}

#[test]
fn limits_hold() {
    let deep = (0..20).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>();
    check(&deep, "refused: nested deeper than 16 levels, the limit");
    let many = (0..2001).map(|key| format!("k{key}: v\n")).collect::<String>();
    check(&many, "refused: more than 4000 values, the limit");
}

#[test]
fn long_lines_take_no_longer_than_many_lines() {
    let lines = ["- ", "'' ", "? "].map(|part| part.repeat(100_000));
    refuses(&lines.each_ref().map(String::as_str));
    assert!(read(&"a ".repeat(100_000)).is_ok());
}

#[test]
fn spans_are_offsets_into_the_whole_text() {
    let text = "---\nname: 'x'\nlist:\n- é b\n---\n";
    let node = parse_strict_yaml(text, Span::new(3, text.len() - 4), &Limits::default()).unwrap();
    let mapping = node.as_mapping().unwrap();
    assert_eq!(node.span.slice(text), "name: 'x'\nlist:\n- é b");
    assert_eq!(mapping.entries[0].key_span.slice(text), "name");
    assert_eq!(mapping.entries[0].value.span.slice(text), "'x'");
    assert_eq!(mapping.get("list").unwrap().as_sequence().unwrap()[0].span.slice(text), "é b");
    assert_eq!(
        parse_strict_yaml("---\na: [b]", Span::new(3, 10), &Limits::default()).unwrap_err().at,
        7
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(yaml in "[-a: \\n\\t#?|>'\"\\\\.<=é\u{85}\u{2028}0-9u]{0,60}") {
        let _ = read(&yaml);
    }
}
