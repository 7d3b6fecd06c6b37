//! JSON Schemas of the record's types that do not derive them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::change::{FileStatus, LineRange, SkippedFile};
use crate::finding::{FindingFix, Phase};
use crate::lineup::ModelTier;

/// Implements `JsonSchema` for a type, under its own name.
macro_rules! describe {
    ($kind:ident, $($schema:tt)+) => {
        impl JsonSchema for $kind {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($kind))
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)+)
            }
        }
    };
}

describe!(LineRange, {
    "description": "Lines of the new side of a file, both ends included, counted from 1.",
    "type": "object",
    "properties": {
        "first": { "description": "The first.", "type": "integer", "minimum": 0 },
        "last": { "description": "The last.", "type": "integer", "minimum": 0 },
    },
    "required": ["first", "last"],
});

describe!(SkippedFile, {
    "description": "A file that is not reviewed.",
    "type": "object",
    "properties": {
        "path": { "description": "Its path.", "type": "string" },
        "reason": { "description": "Why not, for people.", "type": "string" },
        "missed": { "description": "Whether it should have been looked at.", "type": "boolean" },
    },
    "required": ["path", "reason"],
});

describe!(FileStatus, {
    "description": "What happened to a file.",
    "enum": ["added", "modified", "renamed", "whole"],
});

describe!(Phase, {
    "description": "A part of a review.",
    "enum": ["patterns", "thorough", "quick", "gaps", "synthesis", "validation"],
});

describe!(ModelTier, {
    "description": "Which kind of model does the work.",
    "enum": ["strong", "fast"],
});

describe!(FindingFix, {
    "description": "What to do about a finding.",
    "oneOf": [
        {
            "description": "A replacement at one place, as a diff of few lines.",
            "type": "object",
            "properties": { "diff": { "type": "string" } },
            "required": ["diff"],
            "additionalProperties": false,
        },
        {
            "description": "What to tell an agent that shall mend it.",
            "type": "object",
            "properties": { "prompt": { "type": "string" } },
            "required": ["prompt"],
            "additionalProperties": false,
        },
    ],
});

#[cfg(test)]
mod tests {
    use schemars::schema_for;
    use serde::Serialize;

    use super::*;

    #[track_caller]
    fn check<T: JsonSchema + Serialize>(values: &[T]) {
        let schema = schema_for!(T).to_value();
        for value in values {
            let value = serde_json::to_value(value).unwrap();
            assert!(jsonschema::is_valid(&schema, &value), "{value}");
        }
        assert!(!jsonschema::is_valid(&schema, &serde_json::json!("something else")));
    }

    #[test]
    fn every_value_fits_its_schema() {
        use Phase::{Gaps, Patterns, Quick, Synthesis, Thorough, Validation};
        check(&[LineRange { first: 1, last: 2 }]);
        check(&[SkippedFile { path: "a".into(), reason: "binary".into(), missed: true }]);
        check(&[FileStatus::Added, FileStatus::Modified, FileStatus::Renamed, FileStatus::Whole]);
        check(&[Patterns, Thorough, Quick, Gaps, Synthesis, Validation]);
        check(&[ModelTier::Strong, ModelTier::Fast]);
        check(&[FindingFix::Diff("-a".into()), FindingFix::Prompt("b".into())]);
    }
}
