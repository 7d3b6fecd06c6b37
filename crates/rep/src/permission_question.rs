//! Asks the user to allow a tool call. The subject is shown in full, characters that a terminal
//! would hide are escaped, and a line break looks different from a wrapped line.

use repertoire_text::layout::prefix_of_width;
use repertoire_text::terminal::printable_line;
use serde_json::Value;

use crate::ui::{self, TerminalUi};

/// Maximum number of lines shown of a new text. Its size is printed as well.
const LINES_SHOWN_MAX: usize = 8;
/// Maximum width of the lines of a new text.
const LINE_COLUMNS_MAX: usize = 160;
const INDENT: &str = "    ";
const WRAPPED: &str = "  ↪ ";

/// A tool call that needs permission.
pub(crate) struct PermissionPrompt<'a> {
    pub(crate) tool: &'a str,
    /// The command, path or other subject of the call.
    pub(crate) subject: &'a str,
    /// The reason for asking.
    pub(crate) reason: &'a str,
    pub(crate) arguments: Option<&'a Value>,
}

/// Prints the question on the terminal.
pub(crate) fn print_question(
    wanted: &PermissionPrompt<'_>,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let tool = printable_line(wanted.tool);
    let subject = wanted.subject.trim_end_matches('\n');
    let details = describe_call(wanted, ui.columns);
    let short = format!("Allow {tool}: {}?", printable_line(subject));
    let is_short = !subject.contains('\n') && ui::text_width(&short) <= ui.columns;
    let head = match (subject.is_empty(), is_short) {
        (true, _) => format!("Allow {tool}?"),
        (false, true) => short,
        (false, false) => format!("Allow {tool}:"),
    };
    let head = ui.paint_err(ui::STRONG, head);
    writeln!(ui.err, "{head}")?;
    if !is_short {
        writeln!(ui.err, "{}", lay_out_lines(subject, ui.columns).join("\n"))?;
    }
    for line in details {
        let line = ui.paint_err(ui::FAINT, line);
        writeln!(ui.err, "{line}")?;
    }
    let why = ui::wrap_words(wanted.reason, ui.columns.saturating_sub(4).max(20), "  ");
    let why = ui.paint_err(ui::FAINT, format!("  ({why})"));
    write!(ui.err, "{why}\n[y]es / [a]lways / [n]o ")?;
    ui.err.flush()
}

/// Lays out a text: each line is indented, and long lines are wrapped with a mark.
fn lay_out_lines(text: &str, columns: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(INDENT, WRAPPED, line, columns)).collect()
}

/// Indents and escapes a line. If it is too long for the terminal, wraps it with a mark.
pub(crate) fn wrap_line(indent: &str, mark: &str, line: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(ui::text_width(indent)).max(20);
    let line = printable_line(line);
    let mut rest = line.as_str();
    let mut rows = Vec::new();
    loop {
        let row = prefix_of_width(rest, room);
        rows.push(format!("{}{row}", if rows.is_empty() { indent } else { mark }));
        rest = &rest[row.len()..];
        if rest.is_empty() {
            return rows;
        }
    }
}

/// Describes further effects of a call, based on its arguments.
fn describe_call(wanted: &PermissionPrompt<'_>, columns: usize) -> Vec<String> {
    let Some(arguments) = wanted.arguments else { return Vec::new() };
    let text = |name: &str| arguments[name].as_str();
    match wanted.tool {
        "write" => text("content").map(|text| describe_new_text(text, columns)).unwrap_or_default(),
        "edit" => describe_edits(arguments, columns),
        "run_tests" if text("command").is_none() => {
            let only = text("filter").map(|filter| format!(", only `{}`", printable_line(filter)));
            let only = only.unwrap_or_default();
            vec![format!(
                "  the tests that the folder is made for (cargo, npm, pytest, go, make){only}"
            )]
        }
        "bash" if arguments["network"] == true => vec!["  with the network".to_owned()],
        _ => Vec::new(),
    }
}

fn describe_edits(arguments: &Value, columns: usize) -> Vec<String> {
    let many = arguments["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = std::iter::once(arguments).chain(many);
    let pairs = all.filter_map(|one| Some((one["old"].as_str()?, one["new"].as_str()?)));
    pairs
        .flat_map(|(old, new)| {
            let mut lines = format_excerpt("- ", old, columns);
            lines.extend(format_excerpt("+ ", new, columns));
            lines
        })
        .collect()
}

fn describe_new_text(text: &str, columns: usize) -> Vec<String> {
    let size = format!(
        "  {} bytes, {}",
        ui::format_thousands(text.len() as u64),
        ui::format_count(text.lines().count(), "line")
    );
    std::iter::once(size).chain(format_excerpt("+ ", text, columns)).collect()
}

/// Returns the first lines of a text, and the number of the remaining ones.
fn format_excerpt(mark: &str, text: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(INDENT.len() + mark.len()).clamp(20, LINE_COLUMNS_MAX);
    let shown = text.lines().take(LINES_SHOWN_MAX).map(|line| truncate_line(line, room));
    let mut lines: Vec<String> = shown.map(|line| format!("{INDENT}{mark}{line}")).collect();
    let more = text.lines().count().saturating_sub(LINES_SHOWN_MAX);
    if more > 0 {
        lines.push(format!("{INDENT}{mark}… {}", ui::format_count(more, "more line")));
    }
    lines
}

/// Truncates a line to a number of columns, keeping its whitespace.
fn truncate_line(line: &str, columns: usize) -> String {
    let line = printable_line(line);
    let start = prefix_of_width(&line, columns.saturating_sub(1));
    if start.len() == line.len() { line } else { format!("{start}…") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(tool: &str, subject: &str, arguments: &Value) -> String {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ui = TerminalUi {
            out: &mut out,
            err: &mut err,
            colour: false,
            err_colour: false,
            columns: 40,
            json: false,
        };
        let wanted = PermissionPrompt {
            tool,
            subject,
            reason: "it needs permission",
            arguments: Some(arguments),
        };
        print_question(&wanted, &mut ui).unwrap();
        String::from_utf8(err).unwrap()
    }

    #[test]
    fn a_short_command_stands_in_the_question() {
        insta::assert_snapshot!(asked("bash", "npm test", &json!({"command": "npm test"})), @r"
        Allow bash: npm test?
          (it needs permission)
        [y]es / [a]lways / [n]o
        ");
    }

    #[test]
    fn nothing_of_a_long_command_is_hidden() {
        let command = "echo one\n  cat <<E | sh   # a tail that is longer than the terminal\n\u{1b}[2K\rrm -rf ~\n";
        insta::assert_snapshot!(asked("bash", command, &json!({"network": true})), @r"
        Allow bash:
            echo one
              cat <<E | sh   # a tail that is lo
          ↪ nger than the terminal
            ⟨U+001B⟩[2K⟨U+000D⟩rm -rf ~
          with the network
          (it needs permission)
        [y]es / [a]lways / [n]o
        ");
    }

    #[test]
    fn a_new_file_is_shown_with_its_size_and_how_it_begins() {
        let content = "line of text\n".repeat(10);
        insta::assert_snapshot!(asked("write", "a.txt", &json!({"content": content})), @"
        Allow write: a.txt?
          130 bytes, 10 lines
            + line of text
            + line of text
            + line of text
            + line of text
            + line of text
            + line of text
            + line of text
            + line of text
            + … 2 more lines
          (it needs permission)
        [y]es / [a]lways / [n]o
        ");
    }

    #[test]
    fn an_edit_is_shown_as_what_goes_and_what_comes() {
        let arguments = json!({"edits": [{"old": "  a", "new": "  b\n  c"}]});
        insta::assert_snapshot!(asked("edit", "src/lib.rs", &arguments), @"
        Allow edit: src/lib.rs?
            -   a
            +   b
            +   c
          (it needs permission)
        [y]es / [a]lways / [n]o
        ");
    }
}
