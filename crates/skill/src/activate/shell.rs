//! Finds the commands that a body asks to run while it is loaded: `` !`cmd` `` at the start of a line or
//! after white space, and fences marked `` ```! ``. This module does not run them.

use std::ops::Range;

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyPart {
    Text(Range<usize>),
    /// A command, which its output replaces.
    Command {
        /// The range including the marks around the command.
        whole: Range<usize>,
        /// The range of the command alone.
        command: Range<usize>,
    },
}

/// Splits a body into text and commands, in order and without gaps.
pub(crate) fn split_body(body: &str) -> Vec<BodyPart> {
    let mut out = Vec::new();
    let mut done = 0;
    for (whole, command) in find_commands(body) {
        if whole.start > done {
            out.push(BodyPart::Text(done..whole.start));
        }
        done = whole.end;
        out.push(BodyPart::Command { whole, command });
    }
    if done < body.len() {
        out.push(BodyPart::Text(done..body.len()));
    }
    out
}

fn find_commands(body: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let mut out = Vec::new();
    let mut fence: Option<CommandFence> = None;
    let mut start = 0;
    for line in body.split_inclusive('\n') {
        let end = start + line.len();
        match &fence {
            Some(open) if open.is_closed_by(line) => {
                let whole = open.start..start + line.trim_end().len();
                out.push((whole, open.content..start));
                fence = None;
            }
            Some(_) => {}
            None => match opening_ticks(line) {
                Some(ticks) => fence = Some(CommandFence { ticks, start, content: end }),
                None => find_inline_commands(line, start, &mut out),
            },
        }
        start = end;
    }
    // A fence that is never closed is text, but inline commands on its lines still count.
    if let Some(open) = fence {
        let mut start = open.content;
        for line in body[open.content..].split_inclusive('\n') {
            find_inline_commands(line, start, &mut out);
            start += line.len();
        }
    }
    out
}

struct CommandFence {
    ticks: usize,
    start: usize,
    content: usize,
}

impl CommandFence {
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.ticks && line.bytes().all(|byte| byte == b'`')
    }
}

fn opening_ticks(line: &str) -> Option<usize> {
    let line = line.trim();
    let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
    (ticks >= 3 && &line[ticks..] == "!").then_some(ticks)
}

fn find_inline_commands(line: &str, base: usize, out: &mut Vec<(Range<usize>, Range<usize>)>) {
    let mut from = 0;
    while let Some(at) = line[from..].find("!`").map(|at| at + from) {
        let command = at + 2;
        let Some(len) = line[command..].find('`') else { return };
        let stands_alone = line[..at].chars().next_back().is_none_or(char::is_whitespace);
        if stands_alone && len > 0 {
            let end = command + len;
            out.push((base + at..base + end + 1, base + command..base + end));
            from = end + 1;
        } else {
            from = command;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expect: &[&str]) {
        let parts = split_body(body);
        let found: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                BodyPart::Command { command, .. } => Some(&body[command.clone()]),
                BodyPart::Text(_) => None,
            })
            .collect();
        assert_eq!(found, expect);
        let whole: String = parts
            .iter()
            .map(|part| match part {
                BodyPart::Command { whole, .. } | BodyPart::Text(whole) => &body[whole.clone()],
            })
            .collect();
        assert_eq!(whole, body, "no byte is lost");
    }

    #[test]
    fn commands_stand_at_a_line_start_or_after_white_space() {
        check("!`date`\n- now: !`git log -1` and\t!`x`", &["date", "git log -1", "x"]);
        check("wow!`date` (!`x`) !`` !` open", &[]);
    }

    #[test]
    fn a_marked_fence_is_one_command() {
        check("```!\ngit status\nls\n```\nrest !`x`", &["git status\nls\n", "x"]);
        check("````!\n```\n````", &["```\n"]);
        check("```bash\nls\n```\n", &[]);
    }

    #[test]
    fn an_open_fence_is_text_whose_lines_are_still_searched() {
        check("```!\n!`a`\nb", &["a"]);
    }
}
