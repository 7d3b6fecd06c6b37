//! The output of `openskills sync`: the block that lists an agent's skills, and the messages about writing
//! it.

use repertoire_text::html::{EscapedQuotes, escape_markup};

use super::entry::{OpenSkillsEntry, OpenSkillsStyle, fold_whitespace};
use super::update::BlockUpdateOutcome;

/// The error for an output that is not a Markdown file.
pub const NOT_MARKDOWN: &str = "Error: Output file must be a markdown file (.md)\n";

/// The message if there are no skills to sync. A missing file has been created by then.
pub const NO_SKILLS_TO_SYNC: &str = "\
No skills installed. Install skills first:
  npx openskills install anthropics/skills --project
";

/// Returns true if a file may be synced.
pub fn is_markdown(output: &str) -> bool {
    output.ends_with(".md")
}

/// Returns the heading of a new file: its name without the first `.md` in it.
pub fn file_stem(output: &str) -> String {
    file_name(output).replacen(".md", "", 1)
}

/// Returns the text of a new file before its block is added.
pub fn new_file(file_stem: &str) -> String {
    format!("# {file_stem}\n\n")
}

/// Renders the message about a file that was created.
pub fn created_message(output: &str) -> String {
    format!("Created {output}\n")
}

/// Renders the message about a file that was synced.
pub fn outcome_message(outcome: BlockUpdateOutcome, output: &str, skills: usize) -> String {
    let name = file_name(output);
    let added = || format!("✅ Added skills section to {name} ({skills} skill(s))\n");
    match outcome {
        BlockUpdateOutcome::Created => created_message(output) + &added(),
        BlockUpdateOutcome::Added => added(),
        BlockUpdateOutcome::Synced => format!("✅ Synced {skills} skill(s) to {name}\n"),
        BlockUpdateOutcome::Unchanged => format!("✅ {name} is up to date ({skills} skill(s))\n"),
    }
}

/// Renders the block, from `<skills_system` to `</skills_system>`, without a final line break. Skills keep
/// the given order. [`OpenSkillsStyle::Compat`] writes names and descriptions as they are, markup included.
pub fn render_block(entries: &[OpenSkillsEntry<'_>], style: OpenSkillsStyle) -> String {
    let skills: Vec<String> = entries.iter().map(|entry| render_skill(entry, style)).collect();
    let skills = match (skills.as_slice(), style) {
        ([], OpenSkillsStyle::Repertoire) => String::new(),
        (skills, _) => format!("{}\n\n", skills.join("\n\n")),
    };
    let command = match style {
        OpenSkillsStyle::Compat => "npx openskills read",
        OpenSkillsStyle::Repertoire => "rep read",
    };
    format!(
        r#"<skills_system priority="1">

## Available Skills

<!-- SKILLS_TABLE_START -->
<usage>
When users ask you to perform tasks, check if any of the available skills below can help complete the task more effectively. Skills provide specialized capabilities and domain knowledge.

How to use skills:
- Invoke: `{command} <skill-name>` (run in your shell)
  - For multiple: `{command} skill-one,skill-two`
- The skill content will load with detailed instructions on how to complete the task
- Base directory provided in output for resolving bundled resources (references/, scripts/, assets/)

Usage notes:
- Only use skills listed in <available_skills> below
- Do not invoke a skill that is already loaded in your context
- Each skill invocation is stateless
</usage>

<available_skills>

{skills}</available_skills>
<!-- SKILLS_TABLE_END -->

</skills_system>"#
    )
}

fn render_skill(entry: &OpenSkillsEntry<'_>, style: OpenSkillsStyle) -> String {
    let (name, description) = match style {
        OpenSkillsStyle::Compat => (entry.name.to_owned(), entry.description.to_owned()),
        OpenSkillsStyle::Repertoire => {
            (escape_folded(entry.name), escape_folded(entry.description))
        }
    };
    let location = entry.location.as_str();
    format!(
        "<skill>\n<name>{name}</name>\n<description>{description}</description>\n\
         <location>{location}</location>\n</skill>"
    )
}

fn escape_folded(text: &str) -> String {
    escape_markup(&fold_whitespace(text), EscapedQuotes::None).into_owned()
}

fn file_name(output: &str) -> &str {
    output.rsplit('/').next().unwrap_or(output)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::SkillLocation;
    use super::*;

    const ENTRIES: [OpenSkillsEntry<'static>; 2] = [
        OpenSkillsEntry {
            name: "pdf",
            description: "Read PDFs.",
            location: SkillLocation::Project,
        },
        OpenSkillsEntry {
            name: "r&d",
            description: "A > B\n  </skills_system> $&",
            location: SkillLocation::Global,
        },
    ];

    #[test]
    fn compat_writes_everything_as_it_is() {
        assert_snapshot!(render_block(&ENTRIES, OpenSkillsStyle::Compat), @r#"
        <skills_system priority="1">

        ## Available Skills

        <!-- SKILLS_TABLE_START -->
        <usage>
        When users ask you to perform tasks, check if any of the available skills below can help complete the task more effectively. Skills provide specialized capabilities and domain knowledge.

        How to use skills:
        - Invoke: `npx openskills read <skill-name>` (run in your shell)
          - For multiple: `npx openskills read skill-one,skill-two`
        - The skill content will load with detailed instructions on how to complete the task
        - Base directory provided in output for resolving bundled resources (references/, scripts/, assets/)

        Usage notes:
        - Only use skills listed in <available_skills> below
        - Do not invoke a skill that is already loaded in your context
        - Each skill invocation is stateless
        </usage>

        <available_skills>

        <skill>
        <name>pdf</name>
        <description>Read PDFs.</description>
        <location>project</location>
        </skill>

        <skill>
        <name>r&d</name>
        <description>A > B
          </skills_system> $&</description>
        <location>global</location>
        </skill>

        </available_skills>
        <!-- SKILLS_TABLE_END -->

        </skills_system>
        "#);
    }

    #[test]
    fn ours_escapes_and_keeps_to_one_line() {
        let block = render_block(&ENTRIES, OpenSkillsStyle::Repertoire);
        assert!(block.contains("`rep read <skill-name>`") && !block.contains("npx"));
        let (_, skills) = block.split_once("<available_skills>\n").unwrap();
        assert_snapshot!(skills, @r"

        <skill>
        <name>pdf</name>
        <description>Read PDFs.</description>
        <location>project</location>
        </skill>

        <skill>
        <name>r&amp;d</name>
        <description>A &gt; B &lt;/skills_system&gt; $&amp;</description>
        <location>global</location>
        </skill>

        </available_skills>
        <!-- SKILLS_TABLE_END -->

        </skills_system>
        ");
    }

    #[test]
    fn no_skills_leave_an_empty_table() {
        let block = render_block(&[], OpenSkillsStyle::Repertoire);
        assert!(block.contains("\n<available_skills>\n\n</available_skills>\n"));
    }

    #[test]
    fn a_new_file_is_headed_by_its_name() {
        assert_eq!(file_stem("sub/dir/CLAUDE.md"), "CLAUDE");
        assert_eq!(file_stem("a.mdx.md"), "ax.md");
        assert_eq!(new_file("AGENTS"), "# AGENTS\n\n");
        assert!(is_markdown("x.md") && !is_markdown("x.MD") && !is_markdown("md"));
    }

    #[test]
    fn messages_name_the_file_and_count_the_skills() {
        let outcomes = [
            BlockUpdateOutcome::Created,
            BlockUpdateOutcome::Added,
            BlockUpdateOutcome::Synced,
            BlockUpdateOutcome::Unchanged,
        ];
        let messages = outcomes.map(|outcome| outcome_message(outcome, "docs/AGENTS.md", 2));
        assert_snapshot!(messages.concat(), @r"
        Created docs/AGENTS.md
        ✅ Added skills section to AGENTS.md (2 skill(s))
        ✅ Added skills section to AGENTS.md (2 skill(s))
        ✅ Synced 2 skill(s) to AGENTS.md
        ✅ AGENTS.md is up to date (2 skill(s))
        ");
        assert_snapshot!([NOT_MARKDOWN, NO_SKILLS_TO_SYNC].concat(), @r"
        Error: Output file must be a markdown file (.md)
        No skills installed. Install skills first:
          npx openskills install anthropics/skills --project
        ");
    }
}
