//! The output of `openskills list`.

use std::fmt::Write;

use repertoire_text::terminal::printable_line;

use super::collate::sort_key;
use super::entry::{OpenSkillsEntry, OpenSkillsStyle, SkillLocation, fold_whitespace};
use super::js::pad_end;

/// The width of the name column, in UTF-16 units.
const NAME_WIDTH: usize = 25;

const NO_SKILLS: &str = "\
No skills installed.

Install skills:
  npx openskills install anthropics/skills         # Project (default)
  npx openskills install owner/skill --global     # Global (advanced)
";

/// Renders the list for people: project skills first, by name, then a summary. Ties keep the given order.
/// [`OpenSkillsStyle::Repertoire`] shows each description on one line and without escape sequences.
pub fn render_list(entries: &[OpenSkillsEntry<'_>], style: OpenSkillsStyle) -> String {
    let mut out = String::from("Available Skills:\n\n");
    if entries.is_empty() {
        out.push_str(match style {
            OpenSkillsStyle::Compat => NO_SKILLS,
            OpenSkillsStyle::Repertoire => "No skills installed.\n",
        });
        return out;
    }
    let mut sorted = entries.to_vec();
    sorted.sort_by_cached_key(|entry| (entry.location, sort_key(entry.name)));
    for entry in &sorted {
        push_entry(entry, style, &mut out);
    }
    let total = entries.len();
    let project = entries.iter().filter(|entry| entry.location == SkillLocation::Project).count();
    let global = total - project;
    writeln!(out, "Summary: {project} project, {global} global ({total} total)")
        .expect("a String takes every write");
    out
}

fn push_entry(entry: &OpenSkillsEntry<'_>, style: OpenSkillsStyle, out: &mut String) {
    let location = entry.location.as_str();
    let (name, description) = match style {
        OpenSkillsStyle::Compat => (entry.name.to_owned(), entry.description.to_owned()),
        OpenSkillsStyle::Repertoire => (
            printable_line(&fold_whitespace(entry.name)),
            printable_line(&fold_whitespace(entry.description)),
        ),
    };
    let name = pad_end(&name, NAME_WIDTH);
    writeln!(out, "  {name} ({location})\n    {description}\n")
        .expect("a String takes every write");
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn entry<'a>(
        name: &'a str,
        description: &'a str,
        location: SkillLocation,
    ) -> OpenSkillsEntry<'a> {
        OpenSkillsEntry { name, description, location }
    }

    #[test]
    fn project_skills_come_first_then_the_names_decide() {
        let entries = [
            entry("zeta", "\"Use \\\"it\\\" & <go>\"", SkillLocation::Global),
            entry("pdf-tools", ">-", SkillLocation::Project),
            entry("Alpha", "", SkillLocation::Global),
            entry("a-name-of-more-than-25-units", "Long.", SkillLocation::Project),
            entry("PDF", "Capitals.", SkillLocation::Project),
        ];
        assert_snapshot!(render_list(&entries, OpenSkillsStyle::Compat), @r#"
        Available Skills:

          a-name-of-more-than-25-units (project)
            Long.

          PDF                       (project)
            Capitals.

          pdf-tools                 (project)
            >-

          Alpha                     (global)
            

          zeta                      (global)
            "Use \"it\" & <go>"

        Summary: 3 project, 2 global (5 total)
        "#);
    }

    #[test]
    fn our_list_keeps_to_one_line_and_off_the_cursor() {
        let entries =
            [entry("a", "Two\n  lines,\u{1b}[2J and a \u{202e}trick.", SkillLocation::Project)];
        assert_snapshot!(render_list(&entries, OpenSkillsStyle::Repertoire), @r"
        Available Skills:

          a                         (project)
            Two lines, [2J and a ⟨U+202E⟩trick.

        Summary: 1 project, 0 global (1 total)
        ");
    }

    #[test]
    fn an_empty_list_says_how_to_go_on() {
        assert_snapshot!(render_list(&[], OpenSkillsStyle::Compat), @r"
        Available Skills:

        No skills installed.

        Install skills:
          npx openskills install anthropics/skills         # Project (default)
          npx openskills install owner/skill --global     # Global (advanced)
        ");
        assert_snapshot!(render_list(&[], OpenSkillsStyle::Repertoire), @r"
        Available Skills:

        No skills installed.
        ");
    }
}
