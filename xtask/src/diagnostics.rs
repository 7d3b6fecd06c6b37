//! Generates `docs/reference/diagnostics.md`: every code, from the tables that the code itself uses.

use repertoire_cli::codes::all_diagnostic_codes as all_codes;

use crate::markdown::{GENERATED, table_cell, table_header, table_row};

const INTRODUCTION: &str = "\
# Diagnostics

Every finding about a file has one of these codes. A code never changes its meaning, and a retired code is never reused.
The table lists the default severity; a rule may raise or lower it in a clear case, for example for an unknown field whose
name is close to a known one.

- **error**: the file breaks a rule that other tools rely on, or cannot be used. `rep lint` exits with 1.
- **warning**: the file works, but may behave unexpectedly. `rep lint --strict` exits with 1.
- **info**: a note. `rep lint --verbose` shows it.

[Lint rules](lint.md) lists which codes each profile checks and the output formats.
";

/// Groups of codes, by the first digit of their number.
const GROUPS: &[(char, &str)] = &[
    ('0', "Files, frontmatter and YAML"),
    ('1', "Fields"),
    ('2', "Bodies and descriptions"),
    ('3', "Catalogs, roots and reloads"),
    ('4', "Resources and activation"),
    ('5', "The specification as skills-ref enforces it"),
    ('6', "Skills that selection confuses"),
    ('7', "Workflows and plans"),
    ('8', "GitHub modes"),
];

pub(crate) fn render_page() -> String {
    let mut out = format!("{GENERATED}{INTRODUCTION}");
    for (digit, title) in GROUPS {
        out.push_str(&format!("\n## {title}\n\n"));
        out.push_str(&table_header(&["code", "name", "severity", "meaning", "fix"]));
        for code in all_codes().into_iter().filter(|code| code.id.chars().nth(2) == Some(*digit)) {
            let anchor = format!("<a id=\"{}\"></a>`{}`", code.id.to_lowercase(), code.id);
            let name = format!("`{}`", code.name);
            let (what, remedy) = (table_cell(code.summary), table_cell(code.remedy));
            out.push_str(&table_row(&[&anchor, &name, code.severity.as_str(), &what, &remedy]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_group_and_stands_on_the_page_once() {
        let page = render_page();
        for code in all_codes() {
            let anchor = format!("<a id=\"{}\"></a>", code.id.to_lowercase());
            assert_eq!(page.matches(&anchor).count(), 1, "{}", code.id);
        }
    }

    #[test]
    fn the_page_on_lint_names_every_code_about_bodies_and_descriptions() {
        let page = include_str!("../../docs/reference/lint.md");
        for code in all_codes().into_iter().filter(|code| code.id.starts_with("RS2")) {
            assert!(page.contains(code.id), "{} is missing in docs/reference/lint.md", code.id);
        }
    }
}
