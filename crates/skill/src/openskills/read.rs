//! The output of `openskills read`.

use std::collections::BTreeSet;

use super::js::is_whitespace;

/// The error for arguments without a name, only commas and spaces.
pub const NO_NAMES: &str = "Error: No skill names provided\n";

/// The error for missing arguments.
pub const MISSING_ARGUMENT: &str = "error: missing required argument 'skill-names'\n";

/// Renders one skill for an agent. The blocks of several skills follow each other without a separator.
pub fn read_block(name: &str, base_dir: &str, content: &str) -> String {
    format!("Reading: {name}\nBase directory: {base_dir}\n\n{content}\n\nSkill read: {name}\n")
}

/// Returns the names in the arguments, split at commas and trimmed, without duplicates and in order.
pub fn split_names<S: AsRef<str>>(arguments: &[S]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = arguments.iter().flat_map(|argument| argument.as_ref().split(','));
    names
        .map(|name| name.trim_matches(is_whitespace))
        .filter(|name| !name.is_empty() && seen.insert(*name))
        .map(str::to_owned)
        .collect()
}

/// Renders the error for names that are not found; nothing is read then.
pub fn not_found<S: AsRef<str>>(names: &[S]) -> String {
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    format!(
        "\
Error: Skill(s) not found: {names}

Searched:
  .agent/skills/ (project universal)
  ~/.agent/skills/ (global universal)
  .claude/skills/ (project)
  ~/.claude/skills/ (global)

Install skills: npx openskills install owner/repo
"
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_block_frames_the_file_as_it_is() {
        assert_snapshot!(read_block("pdf", "/p/.claude/skills/pdf", "---\nname: pdf\n---\nBody\n"), @r"
        Reading: pdf
        Base directory: /p/.claude/skills/pdf

        ---
        name: pdf
        ---
        Body


        Skill read: pdf
        ");
        assert!(read_block("a", "/a", "x\r\ny").contains("\n\nx\r\ny\n\nSkill read: a\n"));
    }

    #[test]
    fn names_are_split_trimmed_and_kept_once() {
        #[track_caller]
        fn check(arguments: &[&str], expect: &[&str]) {
            assert_eq!(split_names(arguments), expect);
        }
        check(&["b,a", " a ", "c"], &["b", "a", "c"]);
        check(&[" , ", "", "\u{feff}x\n,x"], &["x"]);
        check(&[",", ""], &[]);
        check(&["group/nested"], &["group/nested"]);
    }

    #[test]
    fn missing_names_are_told_with_the_places_searched() {
        assert_snapshot!(not_found(&["nope", "nada"]), @r"
        Error: Skill(s) not found: nope, nada

        Searched:
          .agent/skills/ (project universal)
          ~/.agent/skills/ (global universal)
          .claude/skills/ (project)
          ~/.claude/skills/ (global)

        Install skills: npx openskills install owner/repo
        ");
    }
}
