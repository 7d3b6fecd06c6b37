//! Reads fields from JSON of unknown shape: absent fields and fields of another type read as empty.

use serde_json::{Map, Value};

/// The string at `key` of an event.
pub(crate) fn event_str<'a>(event: &'a Map<String, Value>, key: &str) -> &'a str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The string at `key` of a value.
pub(crate) fn value_str<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The array at `key` of an event.
pub(crate) fn event_list<'a>(event: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    event.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The array at `key` of a value.
pub(crate) fn value_list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The number at `key` of an event, truncated to an integer.
pub(crate) fn event_number(event: &Map<String, Value>, key: &str) -> u64 {
    event.get(key).map_or(0, as_whole_number)
}

/// The count at `key` of a value, capped at 2^50 so that sums of thousands of counts cannot
/// overflow.
pub(crate) fn value_count(value: &Value, key: &str) -> u64 {
    value.get(key).map_or(0, as_whole_number).min(1 << 50)
}

fn as_whole_number(value: &Value) -> u64 {
    // The cast saturates, and NaN becomes 0.
    value.as_u64().or_else(|| value.as_f64().map(|float| float as u64)).unwrap_or(0)
}
