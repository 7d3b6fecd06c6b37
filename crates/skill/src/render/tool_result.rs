//! The results of the `skill` tool: the skill as Markdown, or a list of the available skills.

use repertoire_text::layout::one_line;
use std::fmt::Write as _;

use super::describe_skill;
use camino::Utf8Path;

use crate::activate::Activation;
use crate::catalog::{CatalogEntry, SkillNotFound};
use crate::limits::{RESOURCES_LISTED_MAX, SKILLS_LISTED_MAX};
use crate::resources::{ResourceFile, ResourceGroup};

/// Renders an activation as the result of a tool call.
pub fn tool_result(activation: &Activation) -> String {
    let mut out = format!("# {}\n\n", activation.name);
    let description = one_line(&activation.description);
    if !description.is_empty() {
        let _ = write!(out, "*{description}*\n\n");
    }
    out.push_str(activation.body.trim_end());
    let files = activation.resources.as_deref().unwrap_or_default();
    push_resources(&mut out, files, activation.origin.dir());
    out
}

/// Renders the result for a skill that is already in the conversation.
pub fn already_active(activation: &Activation) -> String {
    format!(
        "Skill '{}' is already loaded in this conversation and has not changed. Follow it.",
        activation.name
    )
}

/// Renders the result for an unknown skill, with a list of the skills that the model may choose.
pub fn not_found(error: &SkillNotFound, available: &[CatalogEntry]) -> String {
    let mut out = format!("Skill '{}' not found.\n\n", one_line(&error.reference));
    if !error.ambiguous.is_empty() {
        let _ = write!(out, "Several skills have that name: {}.\n\n", error.ambiguous.join(", "));
    }
    if let Some(nearest) = &error.nearest {
        let _ = write!(out, "Did you mean '{nearest}'?\n\n");
    }
    let listed: Vec<&CatalogEntry> =
        available.iter().filter(|entry| super::catalog::is_offered(entry)).collect();
    if listed.is_empty() {
        out.push_str("No skills are available.");
        return out;
    }
    out.push_str("Available skills:\n");
    for entry in listed.iter().take(SKILLS_LISTED_MAX) {
        let _ = writeln!(out, "  - {}: {}", entry.id, describe_skill(entry));
    }
    if listed.len() > SKILLS_LISTED_MAX {
        let _ = writeln!(out, "  … and {} more; search for them", listed.len() - SKILLS_LISTED_MAX);
    }
    out.push_str("\nUse one of the above skill names.");
    out
}

fn group_heading(group: ResourceGroup) -> &'static str {
    match group {
        ResourceGroup::References => "Reference Documentation",
        ResourceGroup::Assets => "Assets & Templates",
        ResourceGroup::Scripts => "Executable Scripts",
        ResourceGroup::Examples => "Examples",
        ResourceGroup::Other => "Other Files",
    }
}

fn push_resources(out: &mut String, files: &[ResourceFile], dir: &Utf8Path) {
    if files.is_empty() {
        return;
    }
    out.push_str("\n\n## Available Resources\n\n");
    let listed = &files[..files.len().min(RESOURCES_LISTED_MAX)];
    for group in ResourceGroup::ALL {
        let mut files = listed.iter().filter(|file| file.group == *group).peekable();
        if files.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "**{}:**", group_heading(*group));
        for file in files {
            let _ = writeln!(out, "  - {}", file.path);
        }
        out.push('\n');
    }
    if files.len() > listed.len() {
        let _ = write!(out, "… and {} more files.\n\n", files.len() - listed.len());
    }
    let _ = writeln!(out, "Use the Read tool to access these resources; they are in {dir}.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{make_activation, make_described_entry, make_entry, make_resource};

    #[test]
    fn a_skill_is_given_with_its_resources_by_group() {
        let mut one = make_activation("danish-tender-guidelines", "Use [FAKTA] and [ESTIMAT].\n");
        let paths = ["reference/marker-system.md", "assets/t.md", "scripts/validate.py", "LICENSE"];
        one.resources = Some(paths.into_iter().map(make_resource).collect());
        insta::assert_snapshot!(tool_result(&one), @"
        # danish-tender-guidelines

        *Does danish-tender-guidelines. Use when asked for danish-tender-guidelines.*

        Use [FAKTA] and [ESTIMAT].

        ## Available Resources

        **Reference Documentation:**
          - reference/marker-system.md

        **Assets & Templates:**
          - assets/t.md

        **Executable Scripts:**
          - scripts/validate.py

        **Other Files:**
          - LICENSE

        Use the Read tool to access these resources; they are in /skills/danish-tender-guidelines.
        ");
    }

    #[test]
    fn a_skill_without_resources_has_no_section_for_them() {
        let mut one = make_activation("plain", "Do it.");
        one.resources = Some(Vec::new());
        assert!(!tool_result(&one).contains("Resources"));
    }

    #[test]
    fn a_skill_that_is_there_is_not_given_twice() {
        insta::assert_snapshot!(already_active(&make_activation("pdf", "x")), @"Skill 'pdf' is already loaded in this conversation and has not changed. Follow it.");
    }

    fn missing(reference: &str, nearest: Option<&str>) -> SkillNotFound {
        SkillNotFound {
            reference: reference.into(),
            searched: Vec::new(),
            nearest: nearest.map(str::to_owned),
            ambiguous: Vec::new(),
        }
    }

    #[test]
    fn a_missing_skill_is_answered_with_those_that_are_there() {
        let available = [
            make_entry("hidden", "disable-model-invocation: true\n", "x"),
            make_described_entry("pdf", "Fills\nforms", "", "x"),
            make_described_entry("tender", "Rules for tenders", "", "x"),
        ];
        insta::assert_snapshot!(not_found(&missing("pfd", Some("pdf")), &available), @r#"
        Skill 'pfd' not found.

        Did you mean 'pdf'?

        Available skills:
          - pdf: Fills forms
          - tender: Rules for tenders

        Use one of the above skill names.
        "#);
        insta::assert_snapshot!(not_found(&missing("pdf", None), &available[..1]), @r#"
        Skill 'pdf' not found.

        No skills are available.
        "#);
    }

    #[test]
    fn many_skills_are_counted() {
        let available: Vec<CatalogEntry> =
            (0..60).map(|n| make_entry(&format!("s{n:02}"), "", "x")).collect();
        let text = not_found(&missing("x", None), &available);
        assert!(text.contains("\n  … and 10 more; search for them\n"));
    }
}
