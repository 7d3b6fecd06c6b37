//! One error, as a tool has told it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParsedError {
    /// What kind it is.
    pub category: Category,
    /// How bad it is.
    pub severity: Severity,
    /// Which tool spoke.
    pub source: Tool,
    /// The tool's own words, without colours and without the place.
    pub message: String,
    /// The file, as the tool named it, relative where it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The tool's name for this kind of error: `E0308`, `TS2322`, `no-unused-vars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The test that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The command, where nothing that it said was understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Lines around the place, the place itself marked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

impl ParsedError {
    /// An error of which nothing but this is known, as bad as its kind usually is.
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

    /// The place as people write it: `file:line:column`, as far as it is known.
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
    /// It cannot be built.
    Build,
    /// Something that it needs is not there.
    Dependency,
    /// A type is wrong.
    Type,
    /// A name is not there.
    TypeMissing,
    /// One type was wanted and another given.
    TypeMismatch,
    /// A rule of a linter.
    Lint,
    /// A formatter would change it.
    Format,
    /// A test failed.
    TestFailure,
    /// A test took too long.
    TestTimeout,
    /// A program failed.
    Runtime,
    /// A program used what is not there.
    RuntimeReference,
    /// Git refused.
    Git,
    /// Two changes do not go together.
    MergeConflict,
    /// The machine is not as it should be.
    Environment,
    /// Somebody else could not be reached.
    Network,
    /// Something else.
    Unknown,
}

impl Category {
    /// Its name, as it is written down.
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

    /// How bad an error of this kind is, if nothing else is known. A rule that the tool itself calls an error is worse.
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

/// How bad an error is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It can wait.
    Low,
    /// It should be mended.
    Medium,
    /// Nothing goes on before it is mended.
    High,
    /// Data or secrets may be lost.
    Critical,
}

impl Severity {
    /// Its name, as it is written down.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// The tools whose words are understood.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// The Rust compiler.
    Rustc,
    /// Cargo, its tests included.
    Cargo,
    /// The TypeScript compiler.
    Tsc,
    /// ESLint.
    Eslint,
    /// Biome.
    Biome,
    /// pytest.
    Pytest,
    /// Go, its tests included.
    Go,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// Any other.
    Generic,
}

impl Tool {
    /// Its name, as it is written down.
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
