//! Renders diagnostics as SARIF 2.1.0, for code-scanning views.

use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, DiagnosticCode, Severity};
use crate::invisible;

/// Renders one run of a tool over many files. `rules` lists every code that the tool may report.
pub fn render_report<'a>(
    tool_version: &str,
    rules: &[&DiagnosticCode],
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
) -> Value {
    let rules: Vec<Value> = rules.iter().map(|code| render_rule(code)).collect();
    let results: Vec<Value> = diagnostics.into_iter().map(render_result).collect();
    let run = json!({ "columnKind": COLUMN_KIND, "results": results });
    wrap_run(tool_version, rules.into(), run)
}

/// The unit of columns in all reports.
pub const COLUMN_KIND: &str = "unicodeCodePoints";

/// Makes a report of one run of `rep`. `run` is the run without its tool, as a JSON object.
pub fn wrap_run(tool_version: &str, rules: Value, run: Value) -> Value {
    let driver = json!({ "name": "rep", "semanticVersion": tool_version, "rules": rules });
    let mut whole = json!({ "tool": { "driver": driver } });
    if let (Value::Object(whole), Value::Object(run)) = (&mut whole, run) {
        whole.extend(run);
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [whole],
    })
}

fn render_rule(code: &DiagnosticCode) -> Value {
    json!({
        "id": code.id,
        "name": code.name,
        "shortDescription": { "text": code.summary },
        "help": { "text": code.remedy },
        "defaultConfiguration": { "level": sarif_level(code.severity) },
    })
}

fn render_result(diagnostic: &Diagnostic) -> Value {
    let mut out = json!({
        "ruleId": diagnostic.code.id,
        "level": sarif_level(diagnostic.severity),
        "message": { "text": full_message(diagnostic) },
    });
    if let Some(path) = &diagnostic.path {
        let mut physical = json!({ "artifactLocation": { "uri": path_uri(path.as_str()) } });
        if let Some(position) = diagnostic.position {
            physical["region"] =
                json!({ "startLine": position.line, "startColumn": position.column });
        }
        out["locations"] = json!([{ "physicalLocation": physical }]);
    }
    out
}

fn full_message(diagnostic: &Diagnostic) -> String {
    let message = match &diagnostic.help {
        Some(help) => format!("{}. {}", to_sentence(&diagnostic.message), to_sentence(help)),
        None => diagnostic.message.clone(),
    };
    invisible::shown(&message).into_owned()
}

/// Capitalises a text and drops its full stop: messages are written for the middle of a line.
fn to_sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

fn sarif_level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Converts a path to a URI reference.
fn path_uri(path: &str) -> String {
    let out = encode_path(path.trim_start_matches("./"));
    if path.starts_with('/') { format!("file://{out}") } else { out }
}

/// Converts a path to a URI reference relative to the root of a repository.
pub fn relative_uri(path: &str) -> String {
    encode_path(path.trim_start_matches("./").trim_start_matches('/'))
}

/// Percent-encodes everything but unreserved characters and `/`.
fn encode_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;
    use crate::source::{Source, Span};

    #[test]
    fn a_path_is_a_relative_reference() {
        assert_eq!(relative_uri("./a b/ü:c.rs"), "a%20b/%C3%BC%3Ac.rs");
        assert_eq!(relative_uri("/etc/passwd"), "etc/passwd");
        assert_eq!(path_uri("/a b"), "file:///a%20b");
    }

    #[test]
    fn a_result_names_rule_place_and_help() {
        let source = Source::new("my skill/SKILL.md", "---\nx: *y\n---\n");
        let found = Diagnostic::new(&codes::YAML_ALIAS, "no aliases")
            .at(&source, Span::new(7, 9))
            .help("Quote it.");
        let report = render_report("1.2.3", &[&codes::YAML_ALIAS], [&found]);
        assert_eq!(
            report["runs"][0]["results"][0],
            json!({
                "ruleId": "RS022",
                "level": "error",
                "message": { "text": "No aliases. Quote it" },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": "my%20skill/SKILL.md" },
                    "region": { "startLine": 2, "startColumn": 4 },
                }}],
            })
        );
    }
}
