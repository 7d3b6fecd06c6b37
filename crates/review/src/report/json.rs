//! Renders the record itself as JSON.

use schemars::{Schema, schema_for};

use crate::record::ReviewRecord;

/// Renders the record as indented JSON.
pub fn render_json(review: &ReviewRecord) -> String {
    let mut out = serde_json::to_string_pretty(review).expect("a record has no keys but strings");
    out.push('\n');
    out
}

/// The JSON Schema of the record.
pub fn record_schema() -> Schema {
    schema_for!(ReviewRecord)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_describes_every_part_by_name() {
        let schema = record_schema().to_value();
        let parts = [
            "ReportedFinding",
            "ReviewInsight",
            "ReviewCall",
            "LineRange",
            "Phase",
            "FindingFix",
            "ModelTier",
        ];
        for part in parts {
            assert!(schema["$defs"][part].is_object(), "{part}");
        }
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}
