use super::*;

fn whole(text: &str) -> Result<YamlNode, YamlError> {
    parse(text, Span::new(0, text.len()), &Limits::default())
}

#[track_caller]
fn refused(text: &str, id: &str) {
    let error = whole(text).expect_err("this text must be refused");
    assert_eq!(error.code.id, id, "{}", error.message);
}

const FIELDS: &[&str] = &[
    "name",
    "description",
    "triggers",
    "required_tools",
    "disallowed_tools",
    "dependencies",
    "cacheable",
    "max_retries",
    "timeout_ms",
    "globs",
    "argument-hint",
    "license",
    "metadata",
];

#[track_caller]
fn mends(text: &str, corrected: &[&str], json: serde_json::Value) {
    let found = parse_or_repair(text, Span::new(0, text.len()), &Limits::default(), FIELDS)
        .expect("this text can be mended");
    let lines: Vec<&str> = found.repairs.iter().map(|repair| repair.corrected.as_str()).collect();
    assert_eq!(lines, corrected);
    assert_eq!(found.node.to_json(), json);
}

#[test]
fn spans_point_into_the_whole_file() {
    let text = "---\nname: pdf\ntags:\n  - a\n---\n";
    let node = parse(text, Span::new(4, 26), &Limits::default()).unwrap();
    let mapping = node.as_mapping().unwrap();
    assert_eq!(mapping.entries[0].key_span.slice(text), "name");
    assert_eq!(mapping.get("name").unwrap().span.slice(text), "pdf");
    assert_eq!(mapping.get("tags").unwrap().as_sequence().unwrap()[0].span.slice(text), "a");
}

#[test]
fn scalars_keep_their_text_and_mean_what_yaml_1_2_says() {
    let node =
        whole("a: 1.10\nb: no\nc: 'true'\nd: true\ne: 0755\nf:\ng: 12\nh: 2026-01-02\n").unwrap();
    let json = serde_json::json!({
        "a": 1.1, "b": "no", "c": "true", "d": true, "e": "0755", "f": null, "g": 12, "h": "2026-01-02",
    });
    assert_eq!(node.to_json(), json);
    assert_eq!(node.as_mapping().unwrap().get("a").unwrap().as_str(), Some("1.10"));
}

#[test]
fn what_only_bombs_use_is_refused_with_its_own_code() {
    refused("a: &x 1\nb: *x\n", "RS021");
    refused("a: !!str x\n", "RS023");
    refused("a: 1\n---\nb: 2\n", "RS024");
    refused("a: 1\na: 2\n", "RS027");
    refused("? [a, b]\n: c\n", "RS028");
    refused("a: \"x\0y\"\n", "RS029");
}

#[test]
fn the_messages_of_limits_name_the_limit() {
    let deep = format!("a: {}1{}\n", "[".repeat(17), "]".repeat(17));
    assert_eq!(
        whole(&deep).unwrap_err().message,
        "the frontmatter is nested deeper than 16 levels, the limit"
    );
    let wide: String = (0..2001).map(|n| format!("k{n}: v\n")).collect();
    assert_eq!(
        whole(&wide).unwrap_err().message,
        "the frontmatter has more than 4000 values, the limit"
    );
}

#[test]
fn prose_with_a_colon_is_quoted() {
    mends(
        "name: x\ndescription: Use when: the user says \"go\"\n",
        &[r#"description: "Use when: the user says \"go\"""#],
        serde_json::json!({"name": "x", "description": "Use when: the user says \"go\""}),
    );
}

#[test]
fn values_that_start_with_an_indicator_are_quoted() {
    for start in ["*bold* text", "& more", "!important now", "%done", "@scope/x", "`code` here"] {
        mends(
            &format!("name: x\ndescription: {start}\n"),
            &[&format!("description: \"{start}\"")],
            serde_json::json!({"name": "x", "description": start}),
        );
    }
    mends(
        "globs: **/*.c\nargument-hint: [file] (optional)\n",
        &["globs: \"**/*.c\"", "argument-hint: \"[file] (optional)\""],
        serde_json::json!({"globs": "**/*.c", "argument-hint": "[file] (optional)"}),
    );
}

#[test]
fn a_value_over_several_lines_is_quoted_as_one() {
    mends(
        "description: Use this\n  when the user says: hello\n  or bye\nname: x\n",
        &["description: \"Use this", "  or bye\""],
        serde_json::json!({
            "description": "Use this when the user says: hello or bye", "name": "x",
        }),
    );
}

#[test]
fn prose_that_spills_to_the_left_margin_is_taken_back() {
    mends(
        "description: **Bold** text\ngoes on here\nname: x\n",
        &["description: \"**Bold** text", "  goes on here\""],
        serde_json::json!({"description": "**Bold** text goes on here", "name": "x"}),
    );
}

#[test]
fn tabs_become_two_spaces() {
    mends(
        "name: x\nmetadata:\n\tk: v\n",
        &["  k: v"],
        serde_json::json!({"name": "x", "metadata": {"k": "v"}}),
    );
}

#[test]
fn the_mis_indented_example_of_the_flat_dialect_is_read_as_meant() {
    mends(
        "name: e\ndisallowed_tools:\n  - github\n  dependencies:\n    - failure-memory\n  - verification-loop\ncacheable: true\n  max_retries: 3\ntimeout_ms: 30000\n",
        &["dependencies:", "  - failure-memory", "max_retries: 3"],
        serde_json::json!({
            "name": "e",
            "disallowed_tools": ["github"],
            "dependencies": ["failure-memory", "verification-loop"],
            "cacheable": true,
            "max_retries": 3,
            "timeout_ms": 30000,
        }),
    );
}

#[test]
fn spans_after_a_repair_still_point_into_the_file() {
    let text = "description: a: b\nname: thing\nlicense: c: d\n";
    let found =
        parse_or_repair(text, Span::new(0, text.len()), &Limits::default(), FIELDS).unwrap();
    let mapping = found.node.as_mapping().unwrap();
    assert_eq!(mapping.get("name").unwrap().span.slice(text), "thing");
    assert_eq!(mapping.entries[2].key_span.slice(text), "license");
}

#[test]
fn real_anchors_and_duplicate_keys_are_not_mended_away() {
    for text in ["a: &x [1]\nb: [*x, *x]\n", "name: a: b\nname: c\n", "a: !!map {}\n"] {
        let span = Span::new(0, text.len());
        assert!(parse_or_repair(text, span, &Limits::default(), FIELDS).is_err(), "{text}");
    }
}

#[test]
fn a_control_character_is_refused_however_it_is_written() {
    let check = |text: &str, expect: &str| {
        let error = whole(text).unwrap_err();
        assert_eq!((error.code.id, error.message.as_str()), ("RS029", expect));
    };
    check("a: \u{9b}2J", "the frontmatter holds the control character U+009B");
    check("a: \"\\x00\"", "the frontmatter holds the control character U+0000 as an escape");
    check("\"\\e\": 1", "the frontmatter holds the control character U+001B as an escape");
    assert!(whole("a: \"\\t\\n\\r\\N\"").is_ok());
}

#[test]
fn more_repairs_than_allowed_are_not_made_and_the_limit_is_named() {
    let text = "a: b: c\nd: e: f\ng: h: i\n";
    let span = Span::new(0, text.len());
    let limits = Limits { repairs_max: 2, ..Limits::default() };
    let error = parse_or_repair(text, span, &limits, FIELDS).unwrap_err();
    assert!(error.message.ends_with("more than 2 lines, the limit"), "{error}");
    let limits = Limits { repairs_max: 3, ..Limits::default() };
    assert!(parse_or_repair(text, span, &limits, FIELDS).is_ok());
}

#[test]
fn numbers_and_nothing_are_emitted_as_they_are_and_long_keys_on_a_line_of_their_own() {
    let text = "a:\n  - -1\n  - ~\n  - \"-1\"\n";
    assert_eq!(emit(&whole(text).unwrap()), text);
    let long = "k".repeat(1100);
    let text = format!("- ? {long}\n  : - 1\n    - 2\n");
    let node = whole(&text).unwrap();
    let written = emit(&node);
    assert_eq!(whole(&written).unwrap().to_json(), node.to_json(), "{written}");
}

/// All spans of a tree.
fn spans(node: &YamlNode) -> Vec<Span> {
    let below: Vec<Span> = match &node.value {
        Value::Scalar(_) => Vec::new(),
        Value::Sequence(items, _) => items.iter().flat_map(spans).collect(),
        Value::Mapping(mapping) => mapping
            .entries
            .iter()
            .flat_map(|entry| [vec![entry.key_span], spans(&entry.value)].concat())
            .collect(),
    };
    [vec![node.span], below].concat()
}

#[test]
fn a_place_in_a_line_that_was_indented_with_tabs_is_not_inside_a_character() {
    let text = "name: \n\tæ\nlicense: \n";
    let span = Span::new(0, text.len());
    let found = parse_or_repair(text, span, &Limits::default(), FIELDS).unwrap();
    assert!(spans(&found.node).iter().all(|span| text.get(span.range()).is_some()));
}

/// Checks that a bad line beside `good` is repaired without a change to `good`.
#[track_caller]
fn leaves_alone(good: &str) {
    let json = whole(good).expect("this text is YAML").to_json();
    let bad = r#"license: "a: b""#;
    let mut with_license = json.clone();
    with_license["license"] = "a: b".into();
    mends(&format!("{good}license: a: b\n"), &[bad], with_license.clone());
    mends(&format!("license: a: b\n{good}"), &[bad], with_license);
}

#[test]
fn the_inside_of_quotes_and_brackets_is_left_alone() {
    leaves_alone("description: 'Reads it''s\n  Note: this: that\n\n  # not: a: comment\n  end'\n");
    leaves_alone("description: \"Reads \\\"x\n  Note: this: that\\\n  end\" # a: comment\n");
    leaves_alone("description:\n  'Reads\n  Note: this: that'\n");
    leaves_alone("globs: [\n  \"a: b: c]\", # it's: so: ]\n  don't, .x: y\n]\n");
    leaves_alone("metadata: {\n  a: 'x\n    b: c: d', \"e\":'}',\n  f: [g: h]\n  }\n");
    leaves_alone("globs:\n  - 'a\n    b: c: d'\n  - [e,\n    f: g]\n  - - \"h\n      i: j: k\"\n");
    leaves_alone("'my key': 'a\n  b: c: d'\nclé: \"a\n  b: c: d\"\n");
}

#[test]
fn a_quote_or_bracket_that_is_never_closed_hides_no_line() {
    mends(
        "name: x\ndescription: a: b\nmetadata:\n  k: it's\n  l: `c`\n",
        &[r#"description: "a: b""#, r#"  l: "`c`""#],
        serde_json::json!({
            "name": "x", "description": "a: b", "metadata": {"k": "it's", "l": "`c`"},
        }),
    );
    let text = "name: 'tis\nlicense: a: b\ndescription: [x\nmetadata: c: d\n";
    assert_eq!(repair::corrections(text, FIELDS), ["license: \"a: b\"", "metadata: \"c: d\""]);
}

#[test]
fn many_brackets_that_are_never_closed_are_read_a_bounded_number_of_times() {
    let text = "a: [\n".repeat(200_000);
    assert!(parse_or_repair(&text, Span::new(0, text.len()), &Limits::default(), FIELDS).is_err());
}

#[test]
fn tabs_in_the_text_of_a_block_are_left_alone() {
    leaves_alone("make: |\n  all:\n  \techo hi\n  \t\techo: there: x\n");
    leaves_alone("make: >-\n \t- tab first\n \tb\n");
    leaves_alone("make: |2\n   \tall: a: b\n  b\n");
    leaves_alone("globs:\n  - a: |\n      b: c: d\n      \te\n    f: g\n  - |\n    \th\n");
}

#[test]
fn tabs_that_indent_a_block_are_replaced_and_those_after_them_kept() {
    mends(
        "make: |\n\tall:\n\t\techo hi\nname: x\n",
        &["  all:", "  \techo hi"],
        serde_json::json!({"make": "all:\n\techo hi\n", "name": "x"}),
    );
    mends(
        "make: |\n  all:\n\techo hi\n",
        &["  echo hi"],
        serde_json::json!({"make": "all:\necho hi\n"}),
    );
}

#[test]
fn tabs_that_indent_the_inside_of_quotes_and_brackets_are_replaced() {
    mends(
        "description: \"a\n\tb: c: d\"\nglobs: [\n\tx\n]\n",
        &["  b: c: d\"", "  x"],
        serde_json::json!({"description": "a b: c: d", "globs": ["x"]}),
    );
}

#[test]
fn a_comment_after_a_value_stays_outside_the_quotes() {
    mends(
        "description: Use when: now # a comment\nglobs: *.c\t# b: c\nname: a#b: c\n",
        &[
            "description: \"Use when: now\" # a comment",
            "globs: \"*.c\"\t# b: c",
            "name: \"a#b: c\"",
        ],
        serde_json::json!({"description": "Use when: now", "globs": "*.c", "name": "a#b: c"}),
    );
    mends(
        "description: Use this\n  when: now # a comment\nargument-hint: [a b] c # d\n",
        &["description: \"Use this", "  when: now\" # a comment", "argument-hint: \"[a b] c\" # d"],
        serde_json::json!({"description": "Use this when: now", "argument-hint": "[a b] c"}),
    );
    leaves_alone("metadata: # note: this\n  a: b\t# c: d\n  e: f\n    g # h: i\n");
}

#[test]
fn lists_and_mappings_that_are_right_are_left_alone() {
    leaves_alone("globs:\n- a: b\n  c: d\n  e: f\n- g: h\n");
    leaves_alone("metadata:\n  owner: x\n  name: y\n");
    leaves_alone("metadata:\n  tags:\n  - a\n  name: y\n");
    leaves_alone("metadata:\n  tags:\n    - a\n  more:\n    name: y\n");
    leaves_alone("description: a\n  - *b*\n\n  - `c`\n \td\n");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn scalar() -> impl Strategy<Value = YamlNode> {
        let style = prop_oneof![
            Just(YamlStyle::Single),
            Just(YamlStyle::Double),
            Just(YamlStyle::Literal),
            Just(YamlStyle::Folded)
        ];
        ("\\PC{0,12}|[a-z \n:#\"'-]{0,20}", style).prop_map(|(text, style)| {
            YamlNode::without_span(Value::Scalar(YamlScalar { text, style }))
        })
    }

    /// Lines that the fast path accepts, and lines that are nearly so.
    fn simple_line() -> impl Strategy<Value = String> {
        let key = "[a-zA-Z][a-z0-9_-]{0,2}";
        let value = "[a-zA-Z0-9-][a-z0-9:#,.!&*'\"\\[\\]| \u{e9}\u{2014}\u{2028}]{0,9}";
        let quoted = "(\"[a-z:#'\\\\ \u{e9}]{0,6}\"|'[a-z:#\"\\\\ \u{e9}]{0,6}')";
        prop_oneof![
            3 => (key, value).prop_map(|(key, value)| format!("{key}: {value}")),
            2 => (key, quoted).prop_map(|(key, value)| format!("{key}: {value}")),
            2 => key.prop_map(|key| format!("{key}:")),
            3 => (key, value).prop_map(|(key, value)| format!("  {key}: {value}")),
            3 => value.prop_map(|value| format!("  - {value}")),
            1 => (" {0,4}", key, ":{0,2} {0,2}", value).prop_map(|(a, b, c, d)| a + &b + &c + &d),
        ]
    }

    fn tree() -> impl Strategy<Value = YamlNode> {
        scalar().prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(
                    |items| YamlNode::without_span(Value::Sequence(items, YamlFlow::Block))
                ),
                prop::collection::btree_map("\\PC{1,8}|[a-z-]{1,8}", inner, 0..4).prop_map(|map| {
                    let entries = map
                        .into_iter()
                        .map(|(key, value)| YamlEntry { key, key_span: Span::default(), value })
                        .collect();
                    YamlNode::without_span(Value::Mapping(YamlMapping {
                        entries,
                        flow: YamlFlow::Block,
                    }))
                }),
            ]
        })
    }

    /// A correct field, with `KEY` for its name.
    fn good_field() -> impl Strategy<Value = String> {
        let word =
            "[a-z]{1,3}('s)?|[a-z]+: [a-z]+: [a-z]+|Note:|\\*x\\*|`y`|- z|#c|name: n|\\[|\\}";
        let words = move || prop::collection::vec(word, 1..5);
        let plain = prop::collection::vec("[a-z]{1,3}('s)?|- \\*z\\*|\\[a|`b`", 0..3);
        let own = "[ ]{1,3}";
        prop_oneof![
            (plain, own, "( # a: comment)?").prop_map(|(lines, own, comment)| {
                let more: String = lines.iter().map(|line| format!("\n{own}{line}")).collect();
                format!("KEY: plain{more}{comment}\n")
            }),
            (words(), own).prop_map(|(words, own)| {
                let text = words.join(&format!("\n{own}")).replace('\'', "''");
                format!("KEY: '{text}' # it's: a: comment\n")
            }),
            (words(), own).prop_map(|(words, own)| {
                format!("KEY: \"\\\"{}\"\n", words.join(&format!("\n{own}")))
            }),
            ("[|>][+-]?", words(), own, "\t{0,2}").prop_map(|(header, words, own, tabs)| {
                let text = words.join(&format!("\n{own}{tabs}"));
                format!("KEY: {header}\n{own}{text}\n")
            }),
            (words(), "[ ]{0,3}").prop_map(|(words, own)| {
                let items = words.iter().map(|word| format!("{own}\"{word}\", # it's: ]\n"));
                format!("KEY: [\n{}{own}don't]\n", items.collect::<String>())
            }),
            words().prop_map(|words| {
                let items = words.iter().enumerate();
                let items = items.map(|(n, word)| format!("  k{n}: \"{word}\n   x: y: z\",\n"));
                format!("KEY: {{\n{}  }}\n", items.collect::<String>())
            }),
            (words(), "[ ]{0,2}").prop_map(|(words, own)| {
                let text = words.join(&format!("\n{own}    \t")).replace('\'', "''");
                format!("KEY:\n{own}- a: '{text}'\n{own}  b: c\n{own}  name: d\n{own}- e\n")
            }),
            (words(), own).prop_map(|(words, own)| {
                let text = words.join(&format!("\n{own}  \t"));
                format!("KEY: # a: b: c\n{own}x: y\n{own}name: z\n{own}t: |\n{own}  {text}\n")
            }),
            own.prop_map(|own| format!("KEY:\n{own}t:\n{own}- a\n{own}name:\n{own}  name: b\n")),
            "# [a-z]{1,3}: [a-z']: [`*]{1,3}\n",
        ]
    }

    fn bad_line() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "license: Use when: now\n",
            "license: Use when: now # it's: here\n",
            "license: *bold* text\n",
            "license: `code` text\n",
            "license: [a] b\n",
            "license:\n\tk: v\n",
        ])
    }

    proptest! {
        #[test]
        fn one_bad_line_changes_no_field_beside_it(
            good in prop::collection::vec(good_field(), 1..6),
            bad in bad_line(),
            place in any::<prop::sample::Index>(),
        ) {
            let mut parts: Vec<String> =
                good.iter().enumerate().map(|(n, field)| field.replace("KEY", &format!("key{n}"))).collect();
            let without = whole(&parts.concat())
                .map_err(|e| TestCaseError::fail(format!("{e}\n{}", parts.concat())))?;
            let place = place.index(parts.len() + 1);
            let start = parts[..place].concat().len();
            parts.insert(place, bad.to_owned());
            let text = parts.concat();
            let span = Span::new(0, text.len());
            let found = parse_or_repair(&text, span, &Limits::default(), FIELDS)
                .map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert!(!found.repairs.is_empty());
            for repair in &found.repairs {
                let lies = repair.line.start as usize >= start
                    && repair.line.end as usize <= start + bad.len();
                prop_assert!(lies, "{:?}\n{}", repair, text);
            }
            let fields = found.node.as_mapping().map(|m| m.entries.clone()).unwrap_or_default();
            for entry in fields.iter().filter(|entry| entry.key != "license") {
                let expect = without.as_mapping().and_then(|m| m.get(&entry.key));
                prop_assert_eq!(Some(entry.value.to_json()), expect.map(YamlNode::to_json), "{}", text);
                prop_assert_eq!(entry.key_span.slice(&text), &entry.key);
            }
            let expect = without.as_mapping().map_or(0, |m| m.entries.len()) + 1;
            prop_assert_eq!(fields.len(), expect, "{}", text);
        }

        #[test]
        fn what_is_emitted_reads_back_the_same(node in tree()) {
            let text = emit(&node);
            let back = whole(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(back.to_json(), node.to_json(), "{}", text);
        }

        #[test]
        fn the_short_cut_and_the_grammar_read_the_same(
            lines in prop::collection::vec(simple_line(), 1..6),
            end in "(\n| \n)?",
        ) {
            let text = lines.join("\n") + &end;
            let limits = Limits::default();
            if let Some(node) = fast_path::parse_plain(&text, 3, &limits) {
                let grammar = parse_by_grammar(&text, Span::new(3, 3 + text.len()), &limits);
                prop_assert_eq!(Ok(node), grammar, "{:?}", text);
            }
        }

        #[test]
        fn no_text_makes_the_parser_or_the_repair_panic(text in "[-a-z:&*!%@`\"'\\[\\]{}|>#?,\\\\ \t\n]{0,80}") {
            let span = Span::new(0, text.len());
            let _ = parse_or_repair(&text, span, &Limits::default(), FIELDS);
        }

        #[test]
        fn spans_of_mended_text_are_on_character_boundaries(text in "(name|description): [a-zø:*&\" ]{0,20}\n([ \t]{1,4}[a-zæø: ]{0,10}\n)?license: [a-z:*å ]{0,10}\n(\t\t[øæå]{1,3}: [øæ*:]{1,3}\n)?") {
            let span = Span::new(0, text.len());
            if let Ok(found) = parse_or_repair(&text, span, &Limits::default(), FIELDS) {
                for repair in &found.repairs {
                    prop_assert!(text.get(repair.line.range()).is_some());
                }
                for span in spans(&found.node) {
                    prop_assert!(text.get(span.range()).is_some());
                }
            }
        }
    }
}
