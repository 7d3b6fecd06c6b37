//! One error, as a tool has told it.

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
    /// Lines around the place, the place itself marked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
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
