//! The types of `rep verify --json`.

use repertoire_checks::analyse::OutputAnalysis;
use repertoire_checks::signature::FailureSignature;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `rep verify --read FILE --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifyReadJson {
    /// The file that was read; `-` for standard input.
    pub file: String,
    /// The exit code of the command, if given.
    pub exit_code: Option<i32>,
    /// The analysis of the output.
    pub analysis: OutputAnalysis,
    /// The signatures of the errors, in the same order.
    pub signatures: Vec<FailureSignature>,
}
