//! Spans as OTLP, in its JSON form.

use serde_json::{Value, json};

use super::{ClosedSpan, SpanValue, attribute_name};

/// `SPAN_KIND_INTERNAL`, `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT` of OTLP.
const KIND_INTERNAL: u8 = 1;
const KIND_SERVER: u8 = 2;
const KIND_CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR` of OTLP.
const STATUS_ERROR: u8 = 2;

/// Encodes a batch of spans.
pub(super) fn otlp_payload(service: &str, spans: &[ClosedSpan]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span_json).collect();
    let version = SpanValue::Text(env!("CARGO_PKG_VERSION").to_owned());
    let service = SpanValue::Text(service.to_owned());
    json!({
        "resourceSpans": [{
            "resource": {
                "attributes": [
                    attribute_json("service.name", &service),
                    attribute_json("service.version", &version),
                ],
            },
            "scopeSpans": [{
                "scope": { "name": "repertoire", "version": env!("CARGO_PKG_VERSION") },
                "spans": spans,
            }],
        }],
    })
}

fn span_json(span: &ClosedSpan) -> Value {
    let values = span.fields.values.iter();
    let attributes: Vec<Value> = values
        .filter_map(|(field, value)| Some(attribute_json(attribute_name(field)?, value)))
        .collect();
    let mut out = json!({
        "traceId": to_hex(&span.trace),
        "spanId": to_hex(&span.id),
        "name": span_name(span),
        "kind": match span.name {
            "request" => KIND_SERVER,
            "model_call" => KIND_CLIENT,
            _ => KIND_INTERNAL,
        },
        // OTLP JSON encodes 64-bit integers as strings.
        "startTimeUnixNano": span.begun_ns.to_string(),
        "endTimeUnixNano": span.ended_ns.to_string(),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        out["parentSpanId"] = json!(to_hex(&parent));
    }
    if span.fields.is_error {
        out["status"] = json!({ "code": STATUS_ERROR });
    }
    out
}

/// The name of a span; that of a request has the method and the route, by which collectors group them.
fn span_name(span: &ClosedSpan) -> String {
    let text = |field| match span.fields.values.get(field) {
        Some(SpanValue::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    match (text("method"), text("route")) {
        (Some(method), Some(route)) => format!("{method} {route}"),
        (Some(method), None) => method.to_owned(),
        _ => span.name.to_owned(),
    }
}

fn attribute_json(key: &str, value: &SpanValue) -> Value {
    let value = match value {
        SpanValue::Flag(flag) => json!({ "boolValue": flag }),
        SpanValue::Number(number) => json!({ "intValue": number.to_string() }),
        SpanValue::Text(text) => json!({ "stringValue": text }),
    };
    json!({ "key": key, "value": value })
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
