//! The JSON form of diagnostics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Severity};
use crate::invisible;

/// A diagnostic as it appears in `--json` output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosticJson {
    /// Stable code such as `RS020`.
    pub code: String,
    /// Readable name of the code such as `yaml-syntax`.
    pub name: String,
    /// The severity of the finding.
    pub severity: Severity,
    /// A description of the problem.
    pub message: String,
    /// Line, from 1; absent when the finding is about the whole file.
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
    /// Advice on what to do next.
    pub help: Option<String>,
    /// True if `rep lint --fix` corrects it.
    pub fixable: bool,
}

impl From<&Diagnostic> for DiagnosticJson {
    fn from(diagnostic: &Diagnostic) -> Self {
        DiagnosticJson {
            code: diagnostic.code.id.to_owned(),
            name: diagnostic.code.name.to_owned(),
            severity: diagnostic.severity,
            message: invisible::shown(&diagnostic.message).into_owned(),
            line: diagnostic.position.map(|position| position.line),
            column: diagnostic.position.map(|position| position.column),
            help: diagnostic.help.as_deref().map(str::to_owned),
            fixable: diagnostic.fix.is_some(),
        }
    }
}
