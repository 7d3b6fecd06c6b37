//! Finds ` #` in unquoted prose, where YAML treats the rest of the line as a comment.

use repertoire_text::yaml::{Value, YamlStyle, emit_scalar};
use repertoire_text::{Diagnostic, DiagnosticFix, Span, SpanEdit};

use crate::codes;
use crate::lint::{LintRule, LintSubject};

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: true };

/// Fields with prose, which authors write without thinking of YAML.
const PROSE: &[&str] = &["description", "when_to_use", "compatibility", "argument-hint"];

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    for key in PROSE {
        let Some(node) = subject.skill.frontmatter.get(key) else { continue };
        let Value::Scalar(scalar) = &node.value else { continue };
        let text = subject.skill.text();
        let end = node.span.end as usize;
        let rest = text.get(end..).and_then(|rest| rest.lines().next()).unwrap_or("");
        // `# note` is probably meant as a comment; `#42` belongs to the sentence.
        let swallowed = rest
            .trim_start()
            .strip_prefix('#')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric()));
        if scalar.style != YamlStyle::Plain || !swallowed || node.span.slice(text).contains('\n') {
            continue;
        }
        let whole = Span::new(node.span.start as usize, end + rest.trim_end().len());
        let quoted = emit_scalar(whole.slice(text), YamlStyle::Double);
        let code = &codes::VALUE_CUT;
        let message = format!("`{key}` ends before ` #`: the rest of the line is a comment");
        let fix = DiagnosticFix {
            title: "quote the value to keep all of it".to_owned(),
            edits: vec![SpanEdit { span: whole, text: quoted }],
        };
        let found = Diagnostic::new(code, message).at(&subject.skill.source, whole);
        out.push(found.help(code.remedy).fix(fix));
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::findings;

    #[test]
    fn a_description_that_a_comment_cuts_is_found() {
        let check = |value: &str, count: usize| {
            let text = format!("---\nname: a\ndescription: {value}\n---\n");
            assert_eq!(findings("RS212", &text).len(), count, "{value}");
        };
        check("Fixes issue #42 and others. Use when open.", 1);
        check("Fixes issues. # a note to myself", 0);
        check("\"Fixes issue #42\"", 0);
        check("Fixes C# code", 0);
    }
}
