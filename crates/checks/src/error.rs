//! A single error, as reported by a tool.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error reported by a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParsedError {
    /// The kind of error.
    pub category: Category,
    /// The severity of the error.
    pub severity: Severity,
    /// The tool that reported the error.
    pub source: Tool,
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
    pub fn new(source: Tool, category: Category, message: impl Into<String>) -> Self {
        ParsedError {
            category,
            severity: category.severity(),
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
    pub fn place(&self) -> Option<String> {
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
pub enum Category {
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

impl Category {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Build => "build",
            Category::Dependency => "dependency",
            Category::Type => "type",
            Category::TypeMissing => "type_missing",
            Category::TypeMismatch => "type_mismatch",
            Category::Lint => "lint",
            Category::Format => "format",
            Category::TestFailure => "test_failure",
            Category::TestTimeout => "test_timeout",
            Category::Runtime => "runtime",
            Category::RuntimeReference => "runtime_reference",
            Category::Git => "git",
            Category::MergeConflict => "merge_conflict",
            Category::Environment => "environment",
            Category::Network => "network",
            Category::Unknown => "unknown",
        }
    }

    /// The default severity of this category. Linter findings that the tool itself reports as
    /// errors are raised by their parsers.
    pub fn severity(self) -> Severity {
        match self {
            Category::Lint | Category::Format => Severity::Low,
            Category::TestTimeout | Category::Git | Category::Network | Category::Unknown => {
                Severity::Medium
            }
            _ => Severity::High,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The severity of an error.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Can wait.
    Low,
    /// Should be fixed.
    Medium,
    /// Blocks further work.
    High,
    /// Data or secrets may be exposed or lost.
    Critical,
}

impl Severity {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// The tools whose output is understood.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
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

impl Tool {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            Tool::Rustc => "rustc",
            Tool::Cargo => "cargo",
            Tool::Tsc => "tsc",
            Tool::Eslint => "eslint",
            Tool::Biome => "biome",
            Tool::Pytest => "pytest",
            Tool::Go => "go",
            Tool::Jest => "jest",
            Tool::Vitest => "vitest",
            Tool::Generic => "generic",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
