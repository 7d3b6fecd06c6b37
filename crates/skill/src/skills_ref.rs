//! A reimplementation of skills-ref 0.1.1 with the same findings.
//!
//! skills-ref is the reference validator of the Agent Skills specification (PyPI; console script
//! `agentskills`). [`validate`] returns the same findings in the same order and wording; [`SkillProperties`]
//! prints the same as its `read-properties`, and [`to_prompt`] the same as its `to-prompt`.
//!
//! Four deliberate differences:
//! - the text after `Invalid YAML in frontmatter: ` is ours; only the finding itself is the same;
//! - a file that is not UTF-8, or is not a regular file beneath its folder, gives one finding where
//!   skills-ref crashes or hangs;
//! - a path without a last component, such as `.`, is compared by the folder's real name, where skills-ref
//!   compares with an empty one;
//! - files, frontmatter, nesting and numbers of values beyond [`repertoire_text::Limits`] are rejected.
//!
//! ```
//! use repertoire_skill::skills_ref;
//!
//! let text = "---\nname: PDF\ndescription: Reads PDFs.\n---\nBody\n";
//! let findings = skills_ref::validate(text, "PDF");
//! assert_eq!(findings[0].message, "Skill name 'PDF' must be lowercase");
//! ```

mod frontmatter;
mod prompt;
mod properties;
mod strict_yaml;
mod validate;

pub use frontmatter::{ParsedFrontmatter, parse_frontmatter};
pub use prompt::{PromptSkill, prompt_of_paths, to_prompt};
pub use properties::{SkillProperties, read_properties};
pub use validate::{Field, SpecFinding, SpecFindingKind, shown_path, validate, validate_path};
