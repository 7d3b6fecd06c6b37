//! Checks the size of the body: long enough to instruct, short enough to load.

use repertoire_text::{Diagnostic, DiagnosticCode, Span};

use crate::codes;
use crate::lint::{LintRule, LintSubject};

const CHARS_MIN: usize = 50;
const CHARS_MAX: usize = 50_000;
const TOKENS_MAX: usize = 5_000;
const LINES_MAX: usize = 500;
/// Bytes per token, measured on real skills so that the number of tokens is rather over-estimated.
const TOKEN_BYTES: usize = 4;

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: false };

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let body = subject.body.as_str().trim();
    // A character has one to four bytes, so characters are only counted near the limits.
    if body.len() < CHARS_MIN * 4 {
        let chars = body.chars().count();
        if chars < CHARS_MIN {
            let message = format!("the body has {chars} characters; {CHARS_MIN} is the least");
            out.push(body_diagnostic(subject, &codes::BODY_SHORT, message));
        }
    }
    let chars = if body.len() > CHARS_MAX { body.chars().count() } else { body.len() };
    if chars > CHARS_MAX {
        let message = format!("the body has {chars} characters; the limit is {CHARS_MAX}");
        out.push(body_diagnostic(subject, &codes::BODY_LONG, message));
        return;
    }
    let tokens = body.len().div_ceil(TOKEN_BYTES);
    let lines = subject.body.count_lines();
    if tokens > TOKENS_MAX || lines > LINES_MAX {
        let message = format!(
            "the body has about {tokens} tokens on {lines} lines; {TOKENS_MAX} tokens and {LINES_MAX} lines are recommended"
        );
        out.push(body_diagnostic(subject, &codes::BODY_TOKENS, message));
    }
}

fn body_diagnostic(
    subject: &LintSubject<'_>,
    code: &'static DiagnosticCode,
    message: String,
) -> Diagnostic {
    let blank = subject.body.as_str().len() - subject.body.as_str().trim_start().len();
    let first = subject.body.span.start as usize + blank;
    let place = Span::new(first, first);
    Diagnostic::new(code, message).at(&subject.skill.source, place).help(code.remedy)
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[track_caller]
    fn check(code: &str, body: &str, count: usize) {
        assert_eq!(findings(code, &skill("", body)).len(), count);
    }

    #[test]
    fn bodies_out_of_bounds_are_found() {
        check("RS200", &"x".repeat(49), 1);
        check("RS200", &"ø".repeat(50), 0);
        check("RS201", &"x".repeat(50_000), 0);
        check("RS201", &"x".repeat(50_001), 1);
        check("RS201", &"ø".repeat(50_000), 0);
        check("RS202", &"x".repeat(20_000), 0);
        check("RS202", &"x".repeat(20_001), 1);
        check("RS202", &"x\n".repeat(500), 0);
        check("RS202", &"x\n".repeat(501), 1);
    }
}
