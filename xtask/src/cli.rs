//! `docs/cli.md`: every command with its help text, as `rep COMMAND --help` prints it.

use crate::markdown::{GENERATED, header, row};

const INTRODUCTION: &str = "\
# Commands

Data goes to standard output, everything else to standard error. Output has colour on a terminal, unless `NO_COLOR`
is set or `--color never` is given.

`--json` works with every command but `demo`, `docs`, `completions` and `man`, which refuse it; `props` always prints
JSON. The shapes are published as JSON Schemas in [schemas/](schemas/) and only ever gain fields.
";

const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Done."),
    ("1", "The answer is no: lint errors, a skill that is not there, a check that failed."),
    ("2", "Wrong use: an unknown flag or key, a path that does not exist."),
    ("3", "Could not run: a file that cannot be read or written, a damaged lock."),
];

const COLUMNS: usize = 100;

pub(crate) fn page() -> String {
    let mut command = repertoire::cli::command().term_width(COLUMNS);
    command.build();
    let mut out = format!("{GENERATED}{INTRODUCTION}\n## Exit codes\n\n");
    out.push_str(&header(&["code", "meaning"]));
    for (code, meaning) in EXIT_CODES {
        out.push_str(&row(&[code, meaning]));
    }
    out.push_str("\n## `rep`\n\n");
    out.push_str(&block(&command.render_long_help().to_string()));
    for sub in command.get_subcommands_mut() {
        out.push_str(&format!("\n## `rep {}`\n\n", sub.get_name()));
        out.push_str(&block(&sub.render_long_help().to_string()));
    }
    out
}

/// Help as a block of text, without the blanks that line it up on a terminal.
fn block(help: &str) -> String {
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n"))
}
