//! Text processing: sources with spans, diagnostics and their renderers, bounded YAML with repair, and file access that
//! stays beneath a folder and within limits.
//!
//! This crate knows nothing of skills. Its parsers return what they understood together with diagnostics; they never
//! panic on input and never do unbounded work.
//!
//! ```
//! use repertoire_text::{frontmatter, yaml};
//!
//! let text = "---\nname: pdf\n---\nBody\n";
//! let parts = frontmatter::split(text, 64 * 1024).unwrap();
//! let node = yaml::parse(text, parts.yaml, &yaml::Limits::default()).unwrap();
//! let name = node.as_mapping().unwrap().get("name").unwrap();
//! assert_eq!(name.as_str(), Some("pdf"));
//! assert_eq!(&text[parts.body.range()], "Body\n");
//! ```

pub mod clock;
pub mod codes;
pub mod diagnostic;
pub mod duration;
pub mod frontmatter;
pub mod fs;
pub mod html;
pub mod invisible;
pub mod json;
pub mod layout;
pub mod limits;
pub mod repository;
pub mod sarif;
pub mod secrets;
pub mod source;
pub mod styles;
pub mod template;
pub mod terminal;
pub mod yaml;

pub use diagnostic::{Diagnostic, DiagnosticCode, DiagnosticFix, Severity, SpanEdit};
pub use limits::Limits;
pub use source::{SharedText, Source, Span, TextPosition};
