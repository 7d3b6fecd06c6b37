//! A single error, as reported by a tool.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error reported by a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParsedError {
    /// The kind of error.
    pub category: ErrorCategory,
    /// The severity of the error.
    pub severity: ErrorSeverity,
    /// The tool that reported the error.
    pub source: ReportingTool,
    /// The tool's message, without colours and without the location.
    pub message: String,
    /// The file as the tool printed it, relative if possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The tool's code for this kind of error, such as `E0308`, `TS2322` or `no-unused-vars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The failed test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The command, if its output was not understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The lines around the location, with a mark at the location itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

impl ParsedError {
    /// An error without a location, with the default severity of its category.
    pub fn new(source: ReportingTool, category: ErrorCategory, message: impl Into<String>) -> Self {
        ParsedError {
            category,
            severity: category.default_severity(),
            source,
            message: message.into(),
            file: None,
            line: None,
            column: None,
            code: None,
            test: None,
            command: None,
            context: Vec::new(),
        }
    }

    /// The location as `file:line:column`, as far as it is known.
    pub fn location(&self) -> Option<String> {
        let mut place = self.file.clone()?;
        for number in [self.line, self.column].into_iter().map_while(|number| number) {
            place.push_str(&format!(":{number}"));
        }
        Some(place)
    }
}

/// The kinds of errors.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// The code cannot be built.
    Build,
    /// A dependency is missing.
    Dependency,
    /// A type error.
    Type,
    /// An undefined name.
    TypeMissing,
    /// A type other than the expected one.
    TypeMismatch,
    /// A linter rule.
    Lint,
    /// A formatter would change the file.
    Format,
    /// A failed test.
    TestFailure,
    /// A test that timed out.
    TestTimeout,
    /// A program failed.
    Runtime,
    /// A program used an undefined or null value.
    RuntimeReference,
    /// Git refused an operation.
    Git,
    /// A merge conflict.
    MergeConflict,
    /// A problem of the machine or its configuration.
    Environment,
    /// A network failure.
    Network,
    /// Any other error.
    Unknown,
}

impl ErrorCategory {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCategory::Build => "build",
            ErrorCategory::Dependency => "dependency",
            ErrorCategory::Type => "type",
            ErrorCategory::TypeMissing => "type_missing",
            ErrorCategory::TypeMismatch => "type_mismatch",
            ErrorCategory::Lint => "lint",
            ErrorCategory::Format => "format",
            ErrorCategory::TestFailure => "test_failure",
            ErrorCategory::TestTimeout => "test_timeout",
            ErrorCategory::Runtime => "runtime",
            ErrorCategory::RuntimeReference => "runtime_reference",
            ErrorCategory::Git => "git",
            ErrorCategory::MergeConflict => "merge_conflict",
            ErrorCategory::Environment => "environment",
            ErrorCategory::Network => "network",
            ErrorCategory::Unknown => "unknown",
        }
    }

    /// The default severity of this category. Linter findings that the tool itself reports as
    /// errors are raised by their parsers.
    pub fn default_severity(self) -> ErrorSeverity {
        match self {
            ErrorCategory::Lint | ErrorCategory::Format => ErrorSeverity::Low,
            ErrorCategory::TestTimeout
            | ErrorCategory::Git
            | ErrorCategory::Network
            | ErrorCategory::Unknown => ErrorSeverity::Medium,
            _ => ErrorSeverity::High,
        }
    }
}

impl fmt::Display for ErrorCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The severity of an error.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorSeverity {
    /// Can wait.
    Low,
    /// Should be fixed.
    Medium,
    /// Blocks further work.
    High,
    /// Data or secrets may be exposed or lost.
    Critical,
}

impl ErrorSeverity {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorSeverity::Low => "low",
            ErrorSeverity::Medium => "medium",
            ErrorSeverity::High => "high",
            ErrorSeverity::Critical => "critical",
        }
    }
}

/// The tools whose output is understood.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReportingTool {
    /// The Rust compiler.
    Rustc,
    /// Cargo, including its tests.
    Cargo,
    /// The TypeScript compiler.
    Tsc,
    /// ESLint.
    Eslint,
    /// Biome.
    Biome,
    /// pytest.
    Pytest,
    /// Go, including its tests.
    Go,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// Any other tool.
    Generic,
}

impl ReportingTool {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            ReportingTool::Rustc => "rustc",
            ReportingTool::Cargo => "cargo",
            ReportingTool::Tsc => "tsc",
            ReportingTool::Eslint => "eslint",
            ReportingTool::Biome => "biome",
            ReportingTool::Pytest => "pytest",
            ReportingTool::Go => "go",
            ReportingTool::Jest => "jest",
            ReportingTool::Vitest => "vitest",
            ReportingTool::Generic => "generic",
        }
    }
}

impl fmt::Display for ReportingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
