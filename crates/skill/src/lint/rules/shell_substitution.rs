//! Finds `` !`command` `` in a body: a request to run a command while the skill is loaded.

use memchr::memmem;
use repertoire_text::{Diagnostic, Span};

use crate::codes;
use crate::lint::{LintRule, LintSubject};

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: false };

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let body = subject.body.as_str();
    let base = subject.body.span.start as usize;
    let start = memmem::find_iter(body.as_bytes(), b"!`").find(|at| {
        let before = body[..*at].chars().next_back();
        let offset = u32::try_from(base + at).unwrap_or(u32::MAX);
        before.is_none_or(char::is_whitespace) && !subject.body.is_code(offset)
    });
    let Some(at) = start else { return };
    let code = &codes::SHELL_SUBSTITUTION;
    let span = Span::new(base + at, base + at + 2);
    let message = "the body asks for a command to be run while it is loaded";
    out.push(Diagnostic::new(code, message).at(&subject.skill.source, span).help(code.remedy));
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[test]
    fn a_substitution_is_found_and_ordinary_code_is_not() {
        let check = |body: &str, count: usize| {
            assert_eq!(findings("RS210", &skill("", body)).len(), count, "{body}");
        };
        check("Diff: !`git diff`\n", 1);
        check("Wow!`x`\n", 0);
        check("```\n!`git diff`\n```\n", 0);
    }
}
