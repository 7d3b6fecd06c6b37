//! The overview of `rep --help`: the commands in groups, the most important first.

use clap::Command;
use clap::builder::StyledStr;

use crate::ui;

/// The groups of the overview, with their commands.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Skills", &["list", "match", "show", "read", "lint", "new", "trust", "sync", "eval"]),
    ("Run", &["run", "chat", "agents", "setup"]),
    ("Plans and reviews", &["plan", "review", "workflow", "verify", "runs", "github"]),
    ("Serve", &["serve", "mcp", "daemon"]),
    ("Maintain", &["init", "doctor", "config", "completions", "demo"]),
];

/// Replaces the one long list of commands in the help of `command` by the groups.
pub(super) fn group_commands(command: Command, columns: usize) -> Command {
    let template = render_template(&command, columns);
    command.help_template(template)
}

fn render_template(command: &Command, columns: usize) -> StyledStr {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let indent = " ".repeat(width + 4);
    let room = columns.saturating_sub(indent.len()).max(20);
    let mut out = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        out.push_str(&format!("\n{header}{title}:{header:#}\n"));
        for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let name = sub.get_name();
            let blank = " ".repeat(width - name.len());
            let about = ui::wrap_words(&describe(sub), room, &indent);
            out.push_str(&format!("  {literal}{name}{literal:#}{blank}  {about}\n"));
        }
    }
    out.push_str(&format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}"));
    out.into()
}

fn describe(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    if aliases.is_empty() { about } else { format!("{about} [alias: {}]", aliases.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let command = crate::cli::build_clap_command();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
    }
}
