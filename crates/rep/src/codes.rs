//! The diagnostic codes of all crates.

use repertoire_text::DiagnosticCode;

/// Returns all diagnostic codes, sorted by id.
pub fn all_diagnostic_codes() -> Vec<&'static DiagnosticCode> {
    let mut all = repertoire_select::lint::all_codes();
    all.extend(repertoire_review::codes::ALL);
    all.extend(repertoire_flow::codes::ALL);
    all.extend(repertoire_plan::codes::ALL);
    all.extend(repertoire_github::codes::ALL);
    all.sort_by_key(|code| code.id);
    all
}
