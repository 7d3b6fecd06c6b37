//! Looks into JSON that may have any shape: what is absent or of another type reads as empty.

use serde_json::{Map, Value};

/// A text of an event.
pub(crate) fn field<'a>(event: &'a Map<String, Value>, key: &str) -> &'a str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A text of a value.
pub(crate) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of an event.
pub(crate) fn entries<'a>(event: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    event.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A list of a value.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A number of an event, without its fraction.
pub(crate) fn number(event: &Map<String, Value>, key: &str) -> u64 {
    event.get(key).map_or(0, whole)
}

/// A count of a value. What is beyond 2^50 is no count, and thousands of them still have a sum.
pub(crate) fn count(value: &Value, key: &str) -> u64 {
    value.get(key).map_or(0, whole).min(1 << 50)
}

fn whole(value: &Value) -> u64 {
    // The cast saturates, and what is no number becomes 0.
    value.as_u64().or_else(|| value.as_f64().map(|float| float as u64)).unwrap_or(0)
}
