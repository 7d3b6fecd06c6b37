//! Parses the items and verdicts that reviewers type, in the forms that the step model offers them.
//!
//! `C1=PASS`, `C1=FAIL: what was found`, a JSON object, a JSON list of them, or one object a line.

use serde_json::Value;

use crate::engine::{CheckRecord, ItemRecord};
use crate::state::{CheckProof, GateCheckResult, ItemStatus};

/// The reason why a text is not an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; write `ID=PASS`, `ID=FAIL: finding`, or JSON with `id`, `check` and `severity`")]
pub struct NotAnItem {
    what: String,
}

/// Parses items.
///
/// ```
/// use repertoire_flow::items::parse_items;
/// use repertoire_flow::state::ItemStatus;
///
/// let items = parse_items("C1=FAIL: src/a.rs:3 drops the error").unwrap();
/// assert_eq!(items[0].status, Some(ItemStatus::Fail));
/// assert_eq!(items[0].finding.as_deref(), Some("src/a.rs:3 drops the error"));
/// ```
pub fn parse_items(text: &str) -> Result<Vec<ItemRecord>, NotAnItem> {
    let text = text.trim();
    if text.starts_with('[') {
        let all: Vec<Value> = serde_json::from_str(text).map_err(json_error)?;
        return all.into_iter().map(item_from_json).collect();
    }
    if text.starts_with('{') {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        return stream.map(|value| value.map_err(json_error).and_then(item_from_json)).collect();
    }
    let (id, status, finding) = parse_verdict(text)?;
    let finding = Some(finding).filter(|finding| !finding.is_empty());
    Ok(vec![ItemRecord { id, status: Some(status), finding, ..ItemRecord::default() }])
}

/// Parses a claimed verdict of a declared check: `tests=PASS`, `tests=FAIL: what was seen`.
pub fn parse_check(text: &str) -> Result<CheckRecord, NotAnItem> {
    let (name, status, note) = parse_verdict(text.trim())?;
    Ok(CheckRecord { name, result: GateCheckResult { status, proof: CheckProof::Claim, note } })
}

fn parse_verdict(text: &str) -> Result<(String, ItemStatus, String), NotAnItem> {
    let said = |what: String| NotAnItem { what };
    let (id, rest) =
        text.split_once('=').ok_or_else(|| said(format!("`{}` is no item", shorten_text(text))))?;
    let (word, finding) = rest.split_once(':').unwrap_or((rest, ""));
    let status = ItemStatus::parse(word)
        .ok_or_else(|| said(format!("`{}` is no verdict", shorten_text(word.trim()))))?;
    Ok((id.trim().to_owned(), status, finding.trim().to_owned()))
}

/// Parses an item from JSON. Models write keywords in any case.
fn item_from_json(mut value: Value) -> Result<ItemRecord, NotAnItem> {
    for field in ["severity", "status"] {
        if let Some(Value::String(word)) = value.get_mut(field) {
            *word = word.trim().to_uppercase();
        }
    }
    serde_json::from_value(value).map_err(json_error)
}

fn json_error(error: serde_json::Error) -> NotAnItem {
    NotAnItem { what: format!("this cannot be read as JSON items: {error}") }
}

fn shorten_text(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::ItemSeverity;

    #[test]
    fn items_come_as_json_in_any_case_and_as_words() {
        let json = r#"{"id":"C1","check":"it holds","severity":"must","status":"todo"}"#;
        let items = parse_items(json).unwrap();
        assert_eq!(items[0].severity, Some(ItemSeverity::Must));
        assert_eq!(parse_items(&format!("[{json},{json}]")).unwrap().len(), 2);
        assert_eq!(parse_items(&format!("{json}\n{json}\n")).unwrap().len(), 2);
        assert_eq!(parse_items("C1=pass").unwrap()[0].status, Some(ItemStatus::Pass));
    }

    #[test]
    fn what_is_no_item_says_what_one_is() {
        assert!(parse_items("C1").unwrap_err().to_string().starts_with("`C1` is no item; write"));
        assert!(parse_items("C1=maybe").is_err());
        assert!(parse_items(r#"{"id":"C1","chek":"x"}"#).unwrap_err().to_string().contains("chek"));
    }
}
