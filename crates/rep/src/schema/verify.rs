//! The shapes of `rep verify`.

use repertoire_checks::analyse::Analysis;
use repertoire_checks::signature::Signature;
use schemars::JsonSchema;
use serde::Serialize;

/// `rep verify --read FILE --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifyReadJson {
    /// What was read; `-` for the standard input.
    pub file: String,
    /// How the command ended, if that was said.
    pub exit_code: Option<i32>,
    /// What the output says.
    pub analysis: Analysis,
    /// The signatures of the errors, in their order.
    pub signatures: Vec<Signature>,
}
