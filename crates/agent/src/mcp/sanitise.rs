//! Sanitises untrusted text for the model: removes control and invisible characters, and limits the
//! length.

use serde_json::Value;

/// Removes control and invisible characters, except line breaks, and truncates the text with an
/// ellipsis.
pub(super) fn clean_text(text: &str, chars_max: usize) -> String {
    let (visible, _) = repertoire_text::invisible::removed(text);
    let mut visible = visible.trim_start_matches('\u{feff}').chars();
    let mut cleaned: String = visible.by_ref().take(chars_max).collect();
    if visible.next().is_some() {
        cleaned.push('…');
    }
    cleaned
}

/// Cleans all strings of a schema, including field names.
pub(super) fn clean_schema(value: &Value, chars_max: usize) -> Value {
    match value {
        Value::String(text) => Value::String(clean_text(text, chars_max)),
        Value::Array(items) => items.iter().map(|item| clean_schema(item, chars_max)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (clean_text(key, chars_max), clean_schema(value, chars_max)))
            .collect(),
        other => other.clone(),
    }
}

/// Builds a name that every provider accepts: letters, digits, `_` and `-`, at most 64 characters,
/// and not in `taken`, which is in lower case: permission rules don't distinguish `Run_Tests` from
/// `run_tests`.
pub(super) fn unique_tool_name(
    server: &str,
    tool: &str,
    taken: &std::collections::BTreeSet<String>,
) -> String {
    let whole: String = format!("{server}_{tool}").chars().map(name_char).collect();
    let cut = |room: usize| whole.chars().take(room).collect::<String>();
    let first = cut(NAME_CHARS_MAX);
    let is_taken = |name: &str| taken.contains(&name.to_ascii_lowercase());
    if !is_taken(&first) {
        return first;
    }
    let numbered = (2_u64..).map(|number| {
        let number = format!("_{number}");
        format!("{}{number}", cut(NAME_CHARS_MAX - number.len()))
    });
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or(first)
}

fn name_char(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
}

const NAME_CHARS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn hidden_characters_go_and_visible_ones_stay() {
        let text = "Adds\u{200B} two\u{202E} numbers\u{E0041}\u{E0042}\x1b[31m.\nGrüße, 世界";
        assert_eq!(clean_text(text, 100), "Adds two numbers.\nGrüße, 世界");
        assert_eq!(clean_text("abcdef", 3), "abc…");
        assert_eq!(clean_text("abc", 3), "abc");
    }

    #[test]
    fn schemas_are_cleaned_to_their_leaves() {
        let schema =
            serde_json::json!({"properties": {"a\u{200B}": {"description": ["x\u{FEFF}"]}}});
        let expected = serde_json::json!({"properties": {"a": {"description": ["x"]}}});
        assert_eq!(clean_schema(&schema, 100), expected);
    }

    #[test]
    fn names_are_plain_short_and_never_the_same() {
        let mut taken = BTreeSet::new();
        let mut next = |server: &str, tool: &str| {
            let name = unique_tool_name(server, tool, &taken);
            taken.insert(name.clone());
            name
        };
        assert_eq!(next("demo", "math.add"), "demo_math_add");
        assert_eq!(next("demo", "math add"), "demo_math_add_2");
        assert_eq!(next("demo", "math/add"), "demo_math_add_3");
        assert_eq!(next("demo", "Math_Add"), "demo_Math_Add_4");
        let long = "x".repeat(100);
        assert_eq!(next("s", &long).len(), 64);
        let second = next("s", &long);
        assert_eq!((second.len(), second.ends_with("_2")), (64, true));
    }
}
