//! Checks handwritten pages in `docs/reference/` that must match the code: fields in `skill-format.md`, limits in
//! `limits.md`, the example in `library.md`; and the commands in the README.

use anyhow::{Result, bail};
use repertoire_select::limits as select;
use repertoire_skill::dialect::known_fields;
use repertoire_skill::limits as skill;
use repertoire_text::limits as text;

use crate::codegen::read_file;

const SKILL_FORMAT: &str = "docs/reference/skill-format.md";
const LIMITS: &str = "docs/reference/limits.md";
const LIBRARY: &str = "docs/reference/library.md";
const EXAMPLE: &str = "crates/skill/examples/serve.rs";

/// The texts that each page must contain verbatim.
fn expected_texts() -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    out.extend(known_fields().map(|field| (SKILL_FORMAT, format!("| `{field}` |"))));
    out.extend(
        list_limits()
            .into_iter()
            .map(|(name, value)| (LIMITS, format!("| `{name}` | {} |", with_commas(value)))),
    );
    for command in ["cargo run --release --bin rep -- demo", "cargo test --workspace"] {
        out.push(("README.md", command.to_owned()));
    }
    out
}

/// All limits with their names and defaults.
fn list_limits() -> Vec<(&'static str, u64)> {
    let file = text::Limits::default();
    let walk = skill::WalkLimits::default();
    let resources = skill::ResourceLimits::default();
    let counts = [
        ("Limits::frontmatter_bytes_max", file.frontmatter_bytes_max),
        ("yaml::Limits::depth_max", file.yaml.depth_max),
        ("yaml::Limits::nodes_max", file.yaml.nodes_max),
        ("yaml::Limits::repairs_max", file.yaml.repairs_max),
        ("WalkLimits::depth_max", walk.depth_max),
        ("WalkLimits::entries_max", walk.entries_max),
        ("ResourceLimits::files_max", resources.files_max),
        ("ResourceLimits::depth_max", resources.depth_max),
        ("WALK_READS_PER_ENTRY", skill::WALK_READS_PER_ENTRY),
        ("NAME_BYTES_MAX", skill::NAME_BYTES_MAX),
        ("VERSION_BYTES_MAX", skill::VERSION_BYTES_MAX),
        ("DEPENDENCIES_MAX", skill::DEPENDENCIES_MAX),
        ("CYCLES_MAX", skill::CYCLES_MAX),
        ("DESCRIPTION_CHARS_MAX", skill::DESCRIPTION_CHARS_MAX),
        ("PATTERN_BYTES_MAX", skill::PATTERN_BYTES_MAX),
        ("PATTERN_COMPILED_BYTES_MAX", skill::PATTERN_COMPILED_BYTES_MAX),
        ("BODY_CHARS_MAX", skill::BODY_CHARS_MAX),
        ("KEPT_CHARS_MIN", skill::KEPT_CHARS_MIN),
        ("ARGUMENT_BYTES_MAX", skill::ARGUMENT_BYTES_MAX),
        ("ARGUMENT_NAMES_MAX", skill::ARGUMENT_NAMES_MAX),
        ("LEDGER_SKILLS_MAX", skill::LEDGER_SKILLS_MAX),
        ("REATTACH_TOKENS_EACH", skill::REATTACH_TOKENS_EACH),
        ("REATTACH_TOKENS_TOTAL", skill::REATTACH_TOKENS_TOTAL),
        ("RESOURCES_LISTED_MAX", skill::RESOURCES_LISTED_MAX),
        ("SKILLS_LISTED_MAX", skill::SKILLS_LISTED_MAX),
        ("BODY_BYTES_MAX", select::BODY_BYTES_MAX),
        ("TASK_BYTES_MAX", select::TASK_BYTES_MAX),
        ("TASK_TERMS_MAX", select::TASK_TERMS_MAX),
        ("SENTENCES_MAX", select::SENTENCES_MAX),
        ("CANDIDATES_MAX", select::CANDIDATES_MAX),
        ("TASK_PATHS_MAX", select::TASK_PATHS_MAX),
        ("PHRASE_BYTES_MAX", select::PHRASE_BYTES_MAX),
        ("PHRASES_PER_SKILL_MAX", select::PHRASES_PER_SKILL_MAX),
        ("GLOB_BYTES_MAX", select::GLOB_BYTES_MAX),
        ("PATTERN_CLASSES_MAX", select::PATTERN_CLASSES_MAX),
        ("PATTERN_DFA_BYTES_MAX", select::PATTERN_DFA_BYTES_MAX),
        ("PATTERNS_PER_SKILL_MAX", select::PATTERNS_PER_SKILL_MAX),
        ("PATTERN_STEPS_MAX", select::PATTERN_STEPS_MAX),
        ("PATTERNS_EVERYWHERE_MAX", select::PATTERNS_EVERYWHERE_MAX),
        ("PATTERNS_EVERYWHERE_PER_SKILL_MAX", select::PATTERNS_EVERYWHERE_PER_SKILL_MAX),
        ("TASK_PATTERN_STEPS_MAX", select::TASK_PATTERN_STEPS_MAX),
        ("MATCHED_CHARS_MAX", select::MATCHED_CHARS_MAX),
        ("NEEDS_MAX", select::NEEDS_MAX),
        ("SUGGESTIONS_MAX", select::SUGGESTIONS_MAX),
        ("COMPARED_SKILLS_MAX", select::COMPARED_SKILLS_MAX),
        ("OWN_WORDS_MAX", select::OWN_WORDS_MAX),
        ("NOTICES_MAX", skill::NOTICES_MAX),
        ("SUSPECTS_MAX", skill::SUSPECTS_MAX),
        ("SETTLE_ROUNDS_MAX", skill::SETTLE_ROUNDS_MAX),
    ];
    let large = [
        ("Limits::file_bytes_max", file.file_bytes_max),
        ("ResourceLimits::bytes_max", resources.bytes_max),
        ("LEDGER_TTL_MS", skill::LEDGER_TTL_MS),
    ];
    counts.into_iter().map(|(name, value)| (name, value as u64)).chain(large).collect()
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Compares the pages with the code.
pub(crate) fn check_pages() -> Result<()> {
    let mut missing = Vec::new();
    for (page, words) in expected_texts() {
        if !read_file(page.into())?.contains(&words) {
            missing.push(format!("{page} should say `{words}`"));
        }
    }
    if !read_file(LIBRARY.into())?.contains(&read_file(EXAMPLE.into())?) {
        missing.push(format!("{LIBRARY} should show all of {EXAMPLE}"));
    }
    match missing.len() {
        0 => Ok(()),
        _ => bail!("written by hand and out of date:\n  {}", missing.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!(with_commas(100), "100");
        assert_eq!(with_commas(2_097_152), "2,097,152");
    }
}
