//! Generates `docs/reference/cli.md`: every command with its help text, as `rep COMMAND --help` prints it.

use crate::markdown::{GENERATED, table_header, table_row};

const INTRODUCTION: &str = "\
# Commands

`rep` writes data to standard output and everything else to standard error. Output is coloured on a terminal unless
`NO_COLOR` is set or `--color never` is given.

Commands that return data accept `--json`. The [JSON Schemas](schemas.md) describe every output; objects only gain fields.
Commands with exit codes of their own are listed in [exit codes](exit-codes.md).
";

const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Success."),
    ("1", "The answer is negative: lint errors, an unknown skill, a failed check."),
    ("2", "Usage error: an unknown flag or key, a path that does not exist."),
    (
        "3",
        "Could not run: a file that cannot be read or written, a damaged lock file, settings without consent.",
    ),
];

const COLUMNS: usize = 100;

pub(crate) fn render_page() -> String {
    let mut command = repertoire_cli::cli::build_clap_command().term_width(COLUMNS);
    command.build();
    let mut out = format!("{GENERATED}{INTRODUCTION}\n## Exit codes\n\n");
    out.push_str(&table_header(&["code", "meaning"]));
    for (code, meaning) in EXIT_CODES {
        out.push_str(&table_row(&[code, meaning]));
    }
    // Subcommands come right after their command, one heading deeper. Skip clap's own `help`.
    let mut open = vec![(command, "rep".to_owned())];
    while let Some((mut command, name)) = open.pop() {
        let depth = name.split(' ').count().max(2);
        out.push_str(&format!("\n{} `{name}`\n\n", "#".repeat(depth)));
        out.push_str(&code_block(&command.render_long_help().to_string()));
        let subs = command.get_subcommands();
        let subs = subs.filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
        let below = subs.map(|sub| (sub.clone(), format!("{name} {}", sub.get_name())));
        let below: Vec<_> = below.collect();
        open.extend(below.into_iter().rev());
    }
    out
}

/// Formats help as a code block, without the trailing blanks that clap adds.
fn code_block(help: &str) -> String {
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_below_another_has_its_section() {
        let page = render_page();
        for heading in ["\n## `rep list`\n", "\n## `rep workflow`\n", "\n### `rep workflow step`\n"]
        {
            assert_eq!(page.matches(heading).count(), 1, "{heading}");
        }
        assert!(page.contains("--output <TEXT>"), "the flags of `rep workflow step`");
        assert!(!page.contains("` help`"));
    }
}
