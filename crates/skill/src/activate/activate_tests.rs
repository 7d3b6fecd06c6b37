use std::cell::RefCell;
use std::sync::Arc;

use camino::Utf8Path;
use repertoire_text::fs;

use super::*;
use crate::testing::make_entry;

/// A request that does not read folders, because the tests have none.
fn text_only() -> ActivationRequest<'static> {
    ActivationRequest { listing: ResourceListingMode::Skipped, ..ActivationRequest::default() }
}

fn ids(found: &[Diagnostic]) -> Vec<&str> {
    found.iter().map(|found| found.code.id).collect()
}

#[test]
fn a_body_comes_without_frontmatter_and_with_its_digest() {
    let entry = make_entry("pdf", "", "# PDF\n\nFill it.\n");
    let found = activate_skill(&entry, &text_only());
    assert_eq!(found.body, "# PDF\n\nFill it.");
    assert_eq!(found.digest, entry.skill.digest());
    assert_eq!((found.cut, found.truncation_event()), (None, None));
    assert!(found.diagnostics.is_empty());
}

#[test]
fn arguments_and_places_are_put_in() {
    let entry = make_entry(
        "fix",
        "arguments: [issue, branch]\n",
        "Fix $issue in ${CLAUDE_SKILL_DIR} on '$branch'",
    );
    let found = activate_skill(&entry, &ActivationRequest { arguments: "42", ..text_only() });
    assert_eq!(found.body, "Fix 42 in /skills/fix on ''");
    assert_eq!(ids(&found.diagnostics), ["RS403"]);
    let position = found.diagnostics[0].position.unwrap();
    assert_eq!((position.line, position.column), (6, 39));
}

#[test]
fn a_long_body_is_cut_with_a_marker_a_finding_and_an_event() {
    let entry = make_entry("long", "", &"A line of text.\n".repeat(2_000));
    let found = activate_skill(&entry, &text_only());
    assert!(found.body.ends_with(
        "\nA line of text.\n[… cut: 19904 of 31999 characters shown; read the rest in /skills/long/SKILL.md]"
    ));
    assert!(found.body.chars().count() <= 20_000);
    assert_eq!(ids(&found.diagnostics), ["RS401"]);
    assert_eq!(
        found.truncation_event(),
        Some(TruncationEvent { name: "long".into(), max_chars: 20_000 })
    );
}

#[test]
fn tokens_limit_a_body_too() {
    let entry = make_entry("long", "", &"A line of text.\n".repeat(2_000));
    let budget = ActivationBudget { body_tokens_max: Some(100), ..ActivationBudget::default() };
    let found = activate_skill(&entry, &ActivationRequest { budget, ..text_only() });
    assert!(estimate_tokens(&found.body) <= 100);
    assert_eq!(found.cut.unwrap().limit, 400);
}

#[test]
fn commands_are_left_as_text_unless_allowed_and_trusted() {
    let mut entry = make_entry("ctx", "", "Now: !`git log $1`\n```!\nls\n```\n");
    let asked = RefCell::new(Vec::new());
    let runner = |command: &str| {
        asked.borrow_mut().push(command.to_owned());
        Ok("!`rm` $1\n".to_owned())
    };
    let leave = ActivationRequest { arguments: "main", ..text_only() };
    let found = activate_skill(&entry, &leave);
    assert_eq!(found.body, "Now: !`git log main`\n```!\nls\n```");
    assert_eq!(ids(&found.diagnostics), ["RS402", "RS402"]);

    let allow = ActivationRequest { shell: ShellCommandMode::Run(&runner), ..leave };
    assert_eq!(activate_skill(&entry, &allow).body, "Now: !`rm` $1\n!`rm` $1");
    assert_eq!(asked.borrow().as_slice(), ["git log main", "ls"]);

    entry.trust = TrustLevel::Untrusted;
    let found = activate_skill(&entry, &allow);
    assert_eq!(ids(&found.diagnostics), ["RS402", "RS402"]);
    assert_eq!(asked.borrow().len(), 2, "nothing more was run");
}

#[test]
fn arguments_cannot_smuggle_a_command() {
    let entry = make_entry("ctx", "", "!`git log $1` $1");
    let runner = |_: &str| -> Result<String, String> { panic!("must not run") };
    let request = ActivationRequest {
        arguments: "'a; rm -rf /'",
        shell: ShellCommandMode::Run(&runner),
        ..text_only()
    };
    let found = activate_skill(&entry, &request);
    assert_eq!(found.body, "!`git log a; rm -rf /` a; rm -rf /");
    assert_eq!(ids(&found.diagnostics), ["RS402"]);
    let request = ActivationRequest { arguments: "--output=/tmp/x", ..request };
    assert_eq!(ids(&activate_skill(&entry, &request).diagnostics), ["RS402"]);
    let request = ActivationRequest { arguments: "!`x`", ..request };
    let plain = crate::testing::make_entry("plain", "", "See:\n$ARGUMENTS");
    assert_eq!(activate_skill(&plain, &request).body, "See:\n!`x`");
}

#[test]
fn a_command_that_fails_is_left_as_text_and_named() {
    let entry = make_entry("ctx", "", "!`false`");
    let runner = |_: &str| Err("exit code 1\nmore".to_owned());
    let found = activate_skill(
        &entry,
        &ActivationRequest { shell: ShellCommandMode::Run(&runner), ..text_only() },
    );
    assert_eq!(found.body, "!`false`");
    assert_eq!(found.diagnostics[0].message, "`false` failed: exit code 1");
}

#[test]
fn several_skills_share_the_total_in_order_and_none_is_lost() {
    let entries = [
        make_entry("a", "", &"a".repeat(1_000)),
        make_entry("b", "", &"b".repeat(1_000)),
        make_entry("c", "", "c"),
        make_entry("d", "", &"d".repeat(900)),
    ];
    let budget = ActivationBudget { total_chars_max: Some(1_500), ..ActivationBudget::default() };
    let found = activate_skills(&entries, &ActivationRequest { budget, ..text_only() });
    let kept: Vec<(&str, usize)> =
        found.activations.iter().map(|a| (a.id.as_str(), a.body.chars().count())).collect();
    assert_eq!(kept, [("a", 1_000), ("b", 498), ("c", 1)]);
    let left: Vec<&str> = found.left_out.iter().map(|left| left.id.as_str()).collect();
    assert_eq!(left, ["d"]);
}

fn folder_skill(keep: &tempfile::TempDir) -> CatalogEntry {
    let dir = Utf8Path::from_path(keep.path()).unwrap().join("a");
    for (path, text) in [
        ("SKILL.md", "---\nname: a\ndescription: d\n---\nBody.\n"),
        ("references/one.md", "One !`x` $1.\n"),
        ("references/two.md", &"Two. ".repeat(400)),
        ("references/data.csv", "1"),
    ] {
        fs::write_atomic(&dir.join(path), text.as_bytes()).unwrap();
    }
    let file = dir.join("SKILL.md");
    let text = fs::read_text(&file, 1000).unwrap();
    let source = repertoire_text::Source::new(file.clone(), text);
    let skill = crate::load::load_skill(source, SkillOrigin::from_file(file), &Default::default())
        .skill
        .unwrap();
    CatalogEntry { id: "a".into(), skill: Arc::new(skill), trust: TrustLevel::Trusted }
}

#[test]
fn references_are_appended_as_far_as_they_fit() {
    let keep = tempfile::tempdir().unwrap();
    let entry = folder_skill(&keep);
    let request =
        ActivationRequest { references: ReferenceMode::Appended, ..ActivationRequest::default() };
    let found = activate_skill(&entry, &request);
    assert!(found.body.starts_with(
        "Body.\n\n## Reference: references/one.md\n\nOne !`x` $1.\n\n## Reference: references/two.md\n\nTwo. Two."
    ));
    assert!(found.references.iter().flatten().all(|one| one.state == ReferenceState::Whole));
    assert_eq!(found.truncation_event(), None);

    let budget = ActivationBudget { body_chars_max: 100, ..ActivationBudget::default() };
    let found = activate_skill(&entry, &ActivationRequest { budget, ..request });
    let references = found.references.as_deref().unwrap();
    assert_eq!(references.len(), 2);
    assert_eq!(references[0].state, ReferenceState::Whole);
    assert!(matches!(references[1].state, ReferenceState::LeftOut(_)));
    assert_eq!(ids(&found.diagnostics), ["RS404"]);
    assert!(found.truncation_event().is_some());

    let budget = ActivationBudget { body_chars_max: 1_000, ..ActivationBudget::default() };
    let found = activate_skill(&entry, &ActivationRequest { budget, ..request });
    assert!(matches!(found.references.unwrap()[1].state, ReferenceState::Cut(_)));
    assert!(found.body.ends_with("references/two.md]"));
    assert!(found.body.chars().count() <= 1_000);
}

#[test]
fn resources_are_listed_unless_the_caller_skips_them() {
    let keep = tempfile::tempdir().unwrap();
    let entry = folder_skill(&keep);
    assert_eq!(activate_skill(&entry, &ActivationRequest::default()).resources.unwrap().len(), 3);
    let request =
        ActivationRequest { listing: ResourceListingMode::Skipped, ..ActivationRequest::default() };
    assert_eq!(activate_skill(&entry, &request).resources, None);
}
