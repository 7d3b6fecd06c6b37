//! A record that is written and read again is the same record.

use proptest::prelude::*;
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::{Skill, SkillOrigin};
use repertoire_skill::write::to_markdown;
use repertoire_text::yaml::{
    ScalarKind, Value, YamlEntry, YamlFlow, YamlMapping, YamlNode, YamlScalar, YamlStyle, emit,
};
use repertoire_text::{Limits, Source, Span};

const PATHS: &[&str] = &["pdf/SKILL.md", "skills/recovery.md", "agents/planner.md"];

fn read(path: &str, text: &str) -> Result<Skill, TestCaseError> {
    let loaded =
        load_skill(Source::new(path, text), SkillOrigin::from_file(path), &Limits::default());
    let why = || TestCaseError::fail(format!("not loaded: {:?}\n{text}", loaded.diagnostics));
    loaded.skill.ok_or_else(why)
}

fn node(text: impl Into<String>, style: YamlStyle) -> YamlNode {
    YamlNode::without_span(Value::Scalar(YamlScalar { text: text.into(), style }))
}

fn mapping(entries: Vec<(String, YamlNode)>) -> YamlMapping {
    let entry = |(key, value)| YamlEntry { key, key_span: Span::default(), value };
    YamlMapping { entries: entries.into_iter().map(entry).collect(), flow: YamlFlow::Block }
}

/// Text as people and attackers write it.
fn odd_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,30}",
        "[a-z :#'\"\\\\,\\[\\]{}&*!|>%@`?-]{0,30}",
        "[ \t\na-c:-]{0,20}",
        "(---|\\.\\.\\.|# a|- a|a: b|\\? a|\n|  ){1,5}",
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?(e[0-9])?",
        prop::sample::select(vec![
            "true",
            "no",
            "~",
            "null",
            "0x1f",
            "1_000",
            "12:30:45",
            "2026-01-01",
            "<<",
            "=",
            ".inf",
            "-",
            "\u{feff}",
            "a\u{2028}b",
            "\u{85}",
            "\u{a0}x\u{a0}",
            "\r\n",
            "é",
            "日本語 ",
            "👩‍👩‍👧",
            "\\",
            "\"",
            "'",
        ])
        .prop_map(str::to_owned),
    ]
    .prop_map(|text| {
        text.chars().filter(|c| !c.is_control() || "\t\n\r\u{85}".contains(*c)).collect()
    })
}

fn style() -> impl Strategy<Value = YamlStyle> {
    prop::sample::select(vec![
        YamlStyle::Single,
        YamlStyle::Double,
        YamlStyle::Literal,
        YamlStyle::Folded,
    ])
}

/// A scalar of any meaning: quoted text, or a plain number, boolean or nothing.
fn scalar() -> impl Strategy<Value = YamlNode> {
    let plain = prop::sample::select(vec!["", "~", "null", "true", "-1", "0.5", "-2.5e3", "word"]);
    prop_oneof![
        4 => (odd_text(), style()).prop_map(|(text, style)| node(text, style)),
        1 => plain.prop_map(|text| node(text, YamlStyle::Plain)),
    ]
}

fn any_node() -> impl Strategy<Value = YamlNode> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let flow = || prop::sample::select(vec![YamlFlow::Block, YamlFlow::Brackets]);
        let entries = prop::collection::btree_map(odd_text(), inner.clone(), 0..4);
        prop_oneof![
            (prop::collection::vec(inner, 0..4), flow())
                .prop_map(|(items, flow)| YamlNode::without_span(Value::Sequence(items, flow))),
            (entries, flow()).prop_map(|(map, flow)| {
                let mapping = mapping(map.into_iter().collect());
                YamlNode::without_span(Value::Mapping(YamlMapping { flow, ..mapping }))
            }),
        ]
    })
}

fn texts() -> impl Strategy<Value = YamlNode> {
    let list = prop::collection::vec(odd_text(), 0..4).prop_map(|items| {
        let items = items.into_iter().map(|text| node(text, YamlStyle::Double)).collect();
        YamlNode::without_span(Value::Sequence(items, YamlFlow::Block))
    });
    prop_oneof![list, odd_text().prop_map(|text| node(text, YamlStyle::Double))]
}

fn one_of(words: &'static [&'static str]) -> BoxedStrategy<YamlNode> {
    prop::sample::select(words).prop_map(|word| node(word, YamlStyle::Plain)).boxed()
}

/// A value that the field takes.
fn known_value(key: &'static str) -> BoxedStrategy<YamlNode> {
    match key {
        "type" => one_of(&["custom", "mode", "subagent", "self-improvement", "review"]),
        "version" => one_of(&["1.10", "0.1.0-rc.1+b", "2"]),
        "cacheable" | "disable-model-invocation" | "user-invocable" => {
            one_of(&["true", "no", "off"])
        }
        "max_retries" | "timeout_ms" | "max_concurrent" => one_of(&["0", "3", "30000"]),
        "priority" => one_of(&["low", "medium", "high"]),
        "context" => one_of(&["fork", "inline"]),
        "dependencies" => one_of(&["a, b@^1.2", "failure-memory"]),
        "tags" | "capabilities" | "allowed-tools" | "tools" | "required_tools" | "paths"
        | "disallowed_tools" | "disallowed-tools" | "arguments" | "argument-hint" => {
            texts().boxed()
        }
        "metadata" | "hooks" => any_node().boxed(),
        "triggers" => triggers().boxed(),
        _ => odd_text().prop_map(|text| node(text, YamlStyle::Double)).boxed(),
    }
}

fn triggers() -> impl Strategy<Value = YamlNode> {
    let kinds = (texts(), texts(), texts(), texts(), 0_u8..=10);
    let all = kinds.prop_map(|(keywords, patterns, events, not, tenths)| {
        let confidence = node(format!("{}", f64::from(tenths) / 10.0), YamlStyle::Plain);
        let entries = [
            ("keywords", keywords),
            ("patterns", patterns),
            ("events", events),
            ("not", not),
            ("confidence", confidence),
        ];
        let entries = entries.map(|(key, value)| (key.to_owned(), value)).to_vec();
        YamlNode::without_span(Value::Mapping(mapping(entries)))
    });
    prop_oneof![all, texts()]
}

fn known_field() -> impl Strategy<Value = (String, YamlNode)> {
    let keys: Vec<&'static str> = repertoire_skill::dialect::known_fields()
        .filter(|key| !matches!(*key, "name" | "description"))
        .collect();
    prop::sample::select(keys)
        .prop_flat_map(|key| known_value(key).prop_map(move |value| (key.to_owned(), value)))
}

fn frontmatter() -> impl Strategy<Value = YamlMapping> {
    let description = "[A-Za-z]\\PC{0,40}".prop_map(|text| node(text, YamlStyle::Double));
    let unknown = ("(x-)?[a-zA-Z_.é -]{1,12}|\\PC{1,10}", any_node());
    let fields = prop::collection::vec(prop_oneof![known_field(), unknown], 0..12);
    (odd_text(), description, fields, any::<prop::sample::Index>()).prop_map(
        |(name, description, mut fields, at)| {
            fields.retain(|(key, _)| key != "name" && key != "description");
            fields.insert(at.index(fields.len() + 1), ("description".to_owned(), description));
            fields.push(("name".to_owned(), node(name, YamlStyle::Double)));
            let mut seen = std::collections::HashSet::new();
            fields.retain(|(key, _)| seen.insert(key.clone()));
            mapping(fields)
        },
    )
}

/// Whether two trees mean the same, wherever and however they are written.
fn same(a: &YamlNode, b: &YamlNode) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar(a), Value::Scalar(b)) => match (a.kind(), b.kind()) {
            (ScalarKind::Null, ScalarKind::Null) => true,
            (a_kind, b_kind) => a_kind == b_kind && a.text == b.text,
        },
        (Value::Sequence(a, _), Value::Sequence(b, _)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Mapping(a), Value::Mapping(b)) => same_fields(&a.entries, &b.entries),
        _ => false,
    }
}

fn same_fields(a: &[YamlEntry], b: &[YamlEntry]) -> bool {
    let same_entry = |(a, b): (&YamlEntry, &YamlEntry)| a.key == b.key && same(&a.value, &b.value);
    a.len() == b.len() && a.iter().zip(b).all(same_entry)
}

fn same_node(a: Option<&YamlNode>, b: Option<&YamlNode>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Fields in the order of the file; the hint is text once it is written, whatever it was.
fn without_hint(mapping: &YamlMapping) -> Vec<YamlEntry> {
    mapping.entries.iter().filter(|entry| entry.key != "argument-hint").cloned().collect()
}

fn assert_same(a: &Skill, b: &Skill) -> Result<(), TestCaseError> {
    prop_assert_eq!(&a.name, &b.name);
    prop_assert_eq!(&a.name_original, &b.name_original);
    prop_assert_eq!(&a.description, &b.description);
    prop_assert_eq!(a.dialect, b.dialect);
    prop_assert_eq!(&a.kind, &b.kind);
    prop_assert_eq!(&a.version, &b.version);
    prop_assert_eq!(&a.author, &b.author);
    prop_assert_eq!(&a.tags, &b.tags);
    prop_assert_eq!(&a.capabilities, &b.capabilities);
    prop_assert_eq!(&a.triggers, &b.triggers);
    prop_assert_eq!(&a.execution, &b.execution);
    prop_assert_eq!(&a.spec.license, &b.spec.license);
    prop_assert_eq!(&a.spec.compatibility, &b.spec.compatibility);
    prop_assert_eq!(&a.spec.allowed_tools, &b.spec.allowed_tools);
    prop_assert!(same_node(a.metadata(), b.metadata()));
    prop_assert!(same_node(a.hooks(), b.hooks()));
    prop_assert_eq!(&a.claude, &b.claude);
    let unknown = |skill: &Skill| skill.unknown_fields().cloned().collect::<Vec<_>>();
    prop_assert!(same_fields(&unknown(a), &unknown(b)));
    prop_assert!(same_fields(&without_hint(&a.frontmatter), &without_hint(&b.frontmatter)));
    prop_assert_eq!(a.body(), b.body());
    Ok(())
}

/// The same frontmatter with values in brackets and quotes, as JSON is.
fn as_json_lines(mapping: &YamlMapping) -> String {
    let line = |entry: &YamlEntry| {
        let key = serde_json::Value::from(entry.key.as_str());
        format!("{key}: {}\n", entry.value.to_json())
    };
    mapping.entries.iter().map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_as_the_same_record(
        fields in frontmatter(),
        body in "(---\n)?(\\PC{0,40}\n|\n|\r\n|---\n){0,6}\\PC{0,10}",
        path in prop::sample::select(PATHS),
    ) {
        let text = format!("---\n{}---\n{body}", emit(&YamlNode::without_span(Value::Mapping(fields.clone()))));
        let first = read(path, &text)?;
        prop_assert!(same_fields(&first.frontmatter.entries, &fields.entries), "{}", text);
        let written = to_markdown(&first);
        let second = read(path, &written)?;
        assert_same(&first, &second)?;
        prop_assert_eq!(to_markdown(&second), written);
    }

    #[test]
    fn a_file_in_brackets_and_quotes_is_written_as_the_same_record(
        fields in frontmatter(),
        path in prop::sample::select(PATHS),
    ) {
        let text = format!("---\n{}---\nBody.\n", as_json_lines(&fields));
        let first = read(path, &text)?;
        let second = read(path, &to_markdown(&first))?;
        assert_same(&first, &second)?;
    }
}

#[test]
fn a_hint_in_brackets_stays_text_in_brackets() {
    let text = "---\nname: a\ndescription: d\nargument-hint: [file]\n---\n";
    let first = read("a/SKILL.md", text).unwrap();
    assert_eq!(first.claude.argument_hint.as_deref(), Some("[file]"));
    let written = to_markdown(&first);
    let second = read("a/SKILL.md", &written).unwrap();
    assert_eq!(second.claude.argument_hint, first.claude.argument_hint, "{written}");
}

#[test]
fn numbers_below_zero_and_nothing_in_a_list_keep_their_meaning() {
    let text = "---\nname: a\ndescription: d\nx: [-1, , ~, 'null', \"-1\"]\n---\n";
    let text = text.replace(" , ", " null, ");
    let first = read("a/SKILL.md", &text).unwrap();
    let second = read("a/SKILL.md", &to_markdown(&first)).unwrap();
    let x = second.frontmatter.get("x").unwrap().to_json();
    assert_eq!(x, serde_json::json!([-1, null, null, "null", "-1"]));
}
