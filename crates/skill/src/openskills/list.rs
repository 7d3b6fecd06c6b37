//! The output of `openskills list`.

use std::fmt::Write;

use repertoire_text::terminal::printable;

use super::collate::sort_key;
use super::entry::{Entry, Location, Style, fold};
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
/// [`Style::Repertoire`] shows each description on one line and without escape sequences.
pub fn render_list(entries: &[Entry<'_>], style: Style) -> String {
    let mut out = String::from("Available Skills:\n\n");
    if entries.is_empty() {
        out.push_str(match style {
            Style::Compat => NO_SKILLS,
            Style::Repertoire => "No skills installed.\n",
        });
        return out;
    }
    let mut sorted = entries.to_vec();
    sorted.sort_by_cached_key(|entry| (entry.location, sort_key(entry.name)));
    for entry in &sorted {
        push_entry(entry, style, &mut out);
    }
    let total = entries.len();
    let project = entries.iter().filter(|entry| entry.location == Location::Project).count();
    let global = total - project;
    writeln!(out, "Summary: {project} project, {global} global ({total} total)")
        .expect("a String takes every write");
    out
}

fn push_entry(entry: &Entry<'_>, style: Style, out: &mut String) {
    let location = entry.location.as_str();
    let (name, description) = match style {
        Style::Compat => (entry.name.to_owned(), entry.description.to_owned()),
        Style::Repertoire => (printable(&fold(entry.name)), printable(&fold(entry.description))),
    };
    let name = pad_end(&name, NAME_WIDTH);
    writeln!(out, "  {name} ({location})\n    {description}\n")
        .expect("a String takes every write");
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn entry<'a>(name: &'a str, description: &'a str, location: Location) -> Entry<'a> {
        Entry { name, description, location }
    }

    #[test]
    fn project_skills_come_first_then_the_names_decide() {
        let entries = [
            entry("zeta", "\"Use \\\"it\\\" & <go>\"", Location::Global),
            entry("pdf-tools", ">-", Location::Project),
            entry("Alpha", "", Location::Global),
            entry("a-name-of-more-than-25-units", "Long.", Location::Project),
            entry("PDF", "Capitals.", Location::Project),
        ];
        assert_snapshot!(render_list(&entries, Style::Compat), @r#"
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
            [entry("a", "Two\n  lines,\u{1b}[2J and a \u{202e}trick.", Location::Project)];
        assert_snapshot!(render_list(&entries, Style::Repertoire), @r"
        Available Skills:

          a                         (project)
            Two lines, [2J and a ⟨U+202E⟩trick.

        Summary: 1 project, 0 global (1 total)
        ");
    }

    #[test]
    fn an_empty_list_says_how_to_go_on() {
        assert_snapshot!(render_list(&[], Style::Compat), @r"
        Available Skills:

        No skills installed.

        Install skills:
          npx openskills install anthropics/skills         # Project (default)
          npx openskills install owner/skill --global     # Global (advanced)
        ");
        assert_snapshot!(render_list(&[], Style::Repertoire), @r"
        Available Skills:

        No skills installed.
        ");
    }
}
