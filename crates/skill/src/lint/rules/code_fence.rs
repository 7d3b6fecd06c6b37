//! Finds code fences that are never closed, and fences inside fences that close each other.

use repertoire_text::{Diagnostic, Severity};

use crate::codes;
use crate::lint::{LintRule, LintSubject};

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: true };

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let Some(span) = subject.body.open_fence else { return };
    let code = &codes::FENCE_OPEN;
    let found = Diagnostic::new(code, "this code fence is never closed")
        .at(&subject.skill.source, span)
        .help(code.remedy);
    // An even number of markers means nested fences: readers see what is meant, but parsers do not.
    let nested = subject.body.fence_lines.is_multiple_of(2);
    out.push(if nested {
        found
            .help("a fence inside a fence closes it; give the outer one more backticks")
            .severity(Severity::Warning)
    } else {
        found
    });
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
        check("```markdown\n```bash\n```\n```\n", &[8]);
    }
}
