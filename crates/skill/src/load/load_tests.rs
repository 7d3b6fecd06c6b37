use super::*;
use crate::skill::Dialect;
use repertoire_text::terminal::{TerminalColour, render_diagnostic};

fn load_at(path: &str, text: &str) -> SkillLoadResult {
    load_skill(Source::new(path, text), SkillOrigin::from_file(path), &Limits::default())
}

fn skill_at(path: &str, text: &str) -> Skill {
    let loaded = load_at(path, text);
    loaded.skill.unwrap_or_else(|| panic!("not loaded: {:?}", loaded.diagnostics))
}

/// Formats the diagnostics that a user sees about a text.
fn shown(path: &str, text: &str) -> String {
    let loaded = load_at(path, text);
    loaded
        .diagnostics
        .iter()
        .map(|found| render_diagnostic(found, Some(text), TerminalColour::Never))
        .collect()
}

#[test]
fn every_field_of_claude_code_is_understood() {
    let skill = skill_at(
        "deploy/SKILL.md",
        "---\nname: deploy\ndescription: Deploys. Use when releasing.\nwhen_to_use: after merge\narguments: [env, tag]\nargument-hint: [env] (tag)\ndisable-model-invocation: yes\nuser-invocable: off\nallowed-tools: Bash(git log:*), Read\ndisallowed-tools: Write\ndisallowedTools: [Write, Edit]\nmodel: opus\neffort: high\ncontext: fork\nagent: Explore\nhooks:\n  PreToolUse: x\npaths: 'src/**, *.md'\nshell: bash\n---\nGo.\n",
    );
    assert_eq!(skill.dialect, Dialect::Claude);
    assert_eq!(skill.claude.arguments, ["env", "tag"]);
    assert_eq!(skill.claude.argument_hint.as_deref(), Some("[env] (tag)"));
    assert!(skill.claude.disable_model_invocation && skill.claude.hidden_from_user);
    assert_eq!(skill.spec.allowed_tools, ["Bash(git log:*)", "Read"]);
    assert_eq!(skill.execution.disallowed_tools, ["Write", "Edit"]);
    assert_eq!(skill.claude.context, InvocationContext::Fork);
    assert_eq!(skill.claude.agent.as_deref(), Some("Explore"));
    assert_eq!(skill.triggers.paths, ["src/**", "*.md"]);
    assert_eq!(skill.hooks().unwrap().to_json(), serde_json::json!({"PreToolUse": "x"}));
}

#[test]
fn the_flat_dialect_has_its_defaults() {
    let skill = skill_at(
        "skills/recovery.md",
        "---\nname: Recovery Plan\ntype: self-improvement\ndescription: d\ntriggers:\n  - error_detected\n---\nx\n",
    );
    assert_eq!((skill.dialect, skill.kind.as_str()), (Dialect::Flat, "self-improvement"));
    assert_eq!(
        (skill.name.as_str(), skill.name_original.as_str()),
        ("recovery-plan", "Recovery Plan")
    );
    assert_eq!(skill.triggers.events, ["error_detected"]);
    assert_eq!(skill.execution, ExecutionSettings::default());
}

#[test]
fn sub_agents_are_told_by_type_or_folder() {
    let by_type = "---\nname: a\ntype: subagent\ndescription: d\ncapabilities:\n  - web_search\nmax_concurrent: 1\n---\n";
    let skill = skill_at("x/a.md", by_type);
    assert_eq!(skill.dialect, Dialect::SubAgent);
    assert_eq!(skill.capabilities, ["web_search"]);
    assert_eq!(skill.execution.max_concurrent, Some(1));
    let by_folder =
        skill_at(".claude/agents/b.md", "---\nname: b\ndescription: d\ntools: Read, Grep\n---\n");
    assert_eq!(by_folder.dialect, Dialect::SubAgent);
    assert_eq!(by_folder.spec.allowed_tools, ["Read", "Grep"]);
}

#[test]
fn trigger_mappings_are_read_whole() {
    let skill = skill_at(
        "t/SKILL.md",
        "---\nname: t\ndescription: d\ntriggers:\n  keywords:\n    - dansk udbud\n  patterns:\n    - \"a{1,2}\"\n  not: [poem]\n  events: pr_opened\n  paths: ['*.pdf']\n  confidence: 0.7\n---\n",
    );
    assert_eq!(skill.triggers.keywords, ["dansk udbud"]);
    assert_eq!(skill.triggers.patterns, ["a{1,2}"]);
    assert_eq!(skill.triggers.not, ["poem"]);
    assert_eq!(skill.triggers.events, ["pr_opened"]);
    assert_eq!(skill.triggers.confidence, Some(0.7));
}

#[test]
fn dependencies_carry_versions() {
    let text = "---\nname: a\ndescription: d\ndependencies:\n  - b@^1.2\n  - Failure Memory\nversion: 1.2\n---\n";
    let skill = skill_at("a/SKILL.md", text);
    let shown: Vec<String> = skill.execution.dependencies.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["b@^1.2", "failure-memory"]);
    assert_eq!(skill.version, Some(semver::Version::new(1, 2, 0)));
}

#[test]
fn unknown_fields_are_kept_in_order_and_metadata_may_be_anything() {
    let skill = skill_at(
        "a/SKILL.md",
        "---\nzeta: 1\nname: a\ndescription: d\nalpha: {b: [1]}\nmetadata:\n  openclaw:\n    requires: [git]\n---\n",
    );
    let keys: Vec<&str> = skill.unknown_fields().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["zeta", "alpha"]);
    assert_eq!(
        skill.metadata().unwrap().to_json(),
        serde_json::json!({"openclaw": {"requires": ["git"]}})
    );
}

#[test]
fn a_skill_without_a_name_takes_its_folders_name() {
    let skill = skill_at("my/Nice Tool/SKILL.md", "---\ndescription: d\n---\n");
    assert_eq!((skill.name.as_str(), skill.name_original.as_str()), ("nice-tool", "Nice Tool"));
}

#[test]
fn what_cannot_be_loaded_says_why() {
    insta::assert_snapshot!(shown("a/SKILL.md", "---\nname: a\ndescription: ''\n---\nx\n"), @r"
    error[RS103]: the `description` is empty
     --> a/SKILL.md:3:1
      |
    3 | description: ''
      | ^^^^^^^^^^^
      |
      = help: Add a `description` that says what the skill does and when to use it.
    ");
    insta::assert_snapshot!(shown("a/SKILL.md", "# Title\n"), @r"
    error[RS010]: the file does not start with a `---` line
     --> a/SKILL.md:1:1
      |
    1 | # Title
      | ^^^^^^^
      |
      = help: Start the file with `---`, the fields, and another `---`.
    ");
    insta::assert_snapshot!(shown("a/SKILL.md", "---\n- a\n---\n"), @r"
    error[RS013]: the frontmatter is a list, not fields with values
     --> a/SKILL.md:2:1
      |
    2 | - a
      | ^^^
      |
      = help: Write one `field: value` per line.
    ");
}

#[test]
fn a_repair_is_shown_with_the_line_and_the_corrected_line() {
    insta::assert_snapshot!(shown("a/SKILL.md", "---\nname: a\ndescription: Use when: asked\n---\n"), @r#"
    warning[RS030]: the value is not valid YAML as written
     --> a/SKILL.md:3:1
      |
    3 | description: Use when: asked
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
    help: it was read as if quoted
      |
    3 - description: Use when: asked
    3 + description: "Use when: asked"
      |
    "#);
}

#[test]
fn fields_of_the_wrong_kind_are_reported_and_passed_over() {
    let text = "---\nname: a\ndescription: d\nmax_retries: many\npriority: urgent\nmodel: [a]\ndependencies: [b@latest]\n---\n";
    let loaded = load_at("a/SKILL.md", text);
    let shown: Vec<String> =
        loaded.diagnostics.iter().map(|d| format!("{} {}", d.code.id, d.message)).collect();
    assert_eq!(
        shown,
        [
            "RS113 `b@latest` is not a dependency",
            "RS105 `max_retries` is text, but should be a whole number from 0",
            "RS106 `priority` is `urgent`, which is not a known value",
            "RS105 `model` is a list, but should be text",
        ]
    );
    assert_eq!(loaded.skill.unwrap().execution, ExecutionSettings::default());
}

#[test]
fn the_first_paragraph_can_stand_in_for_a_description() {
    let load = |text: &str| {
        let limits = Limits::default();
        let origin = SkillOrigin::from_file("a/SKILL.md");
        load_skill_with(
            Source::new("a/SKILL.md", text),
            origin,
            &limits,
            MissingDescription::FirstParagraph,
        )
    };
    let skill = load("# Title\n\nDoes a\nthing.\n\nMore.\n").skill.unwrap();
    assert_eq!(skill.description, "Does a thing.");
    assert!(load("# Only a title\n").skill.is_none());
}
