//! Code fences that are never closed. (Seed 001 has this test the wrong way round: balanced is good.)

use repertoire_text::Diagnostic;

use crate::codes;
use crate::lint::{Rule, Subject};

pub(in crate::lint) static RULE: Rule = Rule { check, claude: true };

fn check(subject: &Subject<'_>, out: &mut Vec<Diagnostic>) {
    if let Some(span) = subject.body.open_fence {
        let code = &codes::FENCE_OPEN;
        out.push(
            Diagnostic::new(code, "this code fence is never closed")
                .at(&subject.skill.source, span)
                .help(code.remedy),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[track_caller]
    fn check(body: &str, lines: &[u32]) {
        let found: Vec<u32> = findings("RS203", &skill("", body))
            .iter()
            .map(|found| found.split(':').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(found, lines, "{body}");
    }

    #[test]
    fn only_fences_that_stay_open_are_found() {
        check("```\ncode\n```\n", &[]);
        check("text\n```rust\ncode\n", &[6]);
        check("~~~\n```\n~~~\n", &[]);
        check("````\n```\n````\n", &[]);
        check("````\n```\n", &[5]);
        check("```a\n```b\n```\n", &[]);
        check("- item\n  ```\n  code\n  ```\n", &[]);
        check("inline ``` code ``` here\n", &[]);
        check("```js``` is inline\n", &[]);
        check("> ```\n> x\n> ```\n", &[]);
    }
}
