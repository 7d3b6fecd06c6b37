//! Checks the tools that `required_tools` and `disallowed_tools` name.

use repertoire_text::Diagnostic;

use crate::codes;
use crate::lint::tools::{KNOWN_TOOLS, is_known};
use crate::lint::{LintRule, LintSubject};
use crate::name::nearest_name;

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: false };

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let execution = &subject.skill.execution;
    let lists = [
        ("required_tools", &execution.required_tools),
        ("disallowed_tools", &execution.disallowed_tools),
    ];
    for (key, tools) in lists {
        let Some(node) = subject.skill.frontmatter.get(key) else { continue };
        for tool in tools.iter().filter(|tool| !is_known(tool)) {
            let item = node
                .as_sequence()
                .and_then(|items| items.iter().find(|item| item.as_str() == Some(tool.as_str())));
            let help = match nearest_name(tool, KNOWN_TOOLS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => codes::TOOL_UNKNOWN.remedy.to_owned(),
            };
            out.push(
                Diagnostic::new(&codes::TOOL_UNKNOWN, format!("unknown tool `{tool}`"))
                    .at(&subject.skill.source, item.unwrap_or(node).span)
                    .help(help),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[test]
    fn unknown_tools_are_found_where_they_stand() {
        let text = skill("required_tools:\n  - read\n  - serach\n  - mcp__x__y\n", "");
        assert_eq!(findings("RS112", &text), ["6:5 unknown tool `serach`"]);
    }
}
