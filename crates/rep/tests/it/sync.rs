//! `rep sync`: the block in AGENTS.md, and nothing but the block.

use insta::assert_snapshot;

use crate::workspace::Workspace;

fn two() -> Workspace {
    let ws = Workspace::new();
    ws.skill("project/.claude/skills/pdf", "pdf", "Reads <PDF> & more. Use when asked.");
    ws.skill_with(
        "project/.claude/skills/quiet",
        "name: quiet\ndescription: Not for models.\ndisable-model-invocation: true\n",
    );
    ws
}

#[test]
fn a_new_file_has_a_heading_and_the_block_and_stays_as_it_is() {
    let ws = two();
    assert_snapshot!(ws.rep("sync --check"), @r#"
    AGENTS.md is not up to date; run `rep sync`
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("sync"), @r#"
    created AGENTS.md (2 skills)
    [exit 0]
    "#);
    let first = ws.bytes("project/AGENTS.md");
    assert_snapshot!(ws.text("project/AGENTS.md"), @r#"
    # AGENTS

    <skills_system priority="1">

    ## Available Skills

    <!-- SKILLS_TABLE_START -->
    <usage>
    When users ask you to perform tasks, check if any of the available skills below can help complete the task more effectively. Skills provide specialized capabilities and domain knowledge.

    How to use skills:
    - Invoke: `rep read <skill-name>` (run in your shell)
      - For multiple: `rep read skill-one,skill-two`
    - The skill content will load with detailed instructions on how to complete the task
    - Base directory provided in output for resolving bundled resources (references/, scripts/, assets/)

    Usage notes:
    - Only use skills listed in <available_skills> below
    - Do not invoke a skill that is already loaded in your context
    - Each skill invocation is stateless
    </usage>

    <available_skills>

    <skill>
    <name>first-aid</name>
    <description>Built in. Use when nothing else helps.</description>
    <location>global</location>
    </skill>

    <skill>
    <name>pdf</name>
    <description>Reads &lt;PDF&gt; &amp; more. Use when asked.</description>
    <location>project</location>
    </skill>

    </available_skills>
    <!-- SKILLS_TABLE_END -->

    </skills_system>
    "#);
    assert_snapshot!(ws.rep("sync"), @r#"
    AGENTS.md is up to date (2 skills)
    [exit 0]
    "#);
    assert_eq!(ws.bytes("project/AGENTS.md"), first);
    assert_eq!(ws.rep("sync --check").code, 0);
}

#[test]
fn text_outside_the_markers_is_never_touched() {
    let ws = two();
    let before = "# Rules\n\nBe kind.  \n\n";
    let after = "\n\n## Later\n\ttabs and no final line break";
    ws.rep("sync");
    let file = ws.text("project/AGENTS.md");
    let block = file.strip_prefix("# AGENTS\n\n").unwrap().trim_end();
    ws.write("project/AGENTS.md", format!("{before}{block}{after}"));
    ws.skill("project/.claude/skills/more", "more", "One more. Use when more is needed.");
    assert_eq!(ws.rep("sync --check").code, 1);
    assert_eq!(ws.rep("sync").code, 0);
    let text = ws.text("project/AGENTS.md");
    assert!(text.starts_with(before) && text.ends_with(after), "{text}");
    assert!(text.contains("<name>more</name>"));
    assert_eq!(ws.rep("sync --check").code, 0);
}

#[test]
fn a_file_with_crlf_keeps_it() {
    let ws = two();
    ws.write("project/AGENTS.md", "# Rules\r\n\r\nBe kind.\r\n");
    ws.rep("sync");
    let text = ws.text("project/AGENTS.md");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    let once = ws.bytes("project/AGENTS.md");
    ws.rep("sync");
    assert_eq!(ws.bytes("project/AGENTS.md"), once);
}

#[test]
fn markers_that_do_not_pair_leave_the_file_alone() {
    let ws = two();
    let text = "x\n<skills_system priority=\"1\">\n";
    ws.write("project/AGENTS.md", text);
    assert_snapshot!(ws.rep("sync"), @r#"
    [stderr]
    error: AGENTS.md was left as it is: `<skills_system` on line 2 is never closed by `</skills_system>`
    hint: Mend the markers by hand, or remove the whole block, and run `rep sync` again.
    [exit 1]
    "#);
    assert_eq!(ws.text("project/AGENTS.md"), text);
    ws.write("project/AGENTS.md", "y\n</skills_system>\n");
    assert_snapshot!(ws.rep("sync"), @r#"
    [stderr]
    error: AGENTS.md was left as it is: `</skills_system>` on line 2 has no `<skills_system` before it
    hint: Mend the markers by hand, or remove the whole block, and run `rep sync` again.
    [exit 1]
    "#);
}

#[test]
fn only_markdown_is_written() {
    let ws = two();
    assert_snapshot!(ws.rep("sync --output skills.txt"), @r#"
    [stderr]
    error: `skills.txt` is not a Markdown file
    hint: Name a file that ends in `.md`, such as `AGENTS.md`.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("--profile openskills sync --compat --output skills.txt"), @r#"
    [stderr]
    Error: Output file must be a markdown file (.md)
    [exit 1]
    "#);
    assert!(!ws.path("project/skills.txt").exists());
}

#[test]
fn a_folder_in_the_way_is_named() {
    let ws = two();
    std::fs::create_dir_all(ws.path("project/AGENTS.md")).unwrap();
    assert_snapshot!(ws.rep("sync"), @r#"
    [stderr]
    error: [TMP]/project/AGENTS.md cannot be read: this is a folder, not a regular file
    [exit 3]
    "#);
}

#[test]
fn another_file_may_be_named() {
    let ws = two();
    assert_snapshot!(ws.rep("sync -y -o docs/CLAUDE.md"), @r#"
    created docs/CLAUDE.md (2 skills)
    [exit 0]
    "#);
    assert!(ws.text("project/docs/CLAUDE.md").starts_with("# CLAUDE\n\n<skills_system"));
}

#[test]
fn compat_writes_and_says_what_openskills_does() {
    let ws = two();
    assert_snapshot!(ws.rep("--profile openskills sync --compat -y"), @r#"
    Created AGENTS.md
    ✅ Added skills section to AGENTS.md (2 skill(s))
    [exit 0]
    "#);
    let text = ws.text("project/AGENTS.md");
    assert!(text.contains("npx openskills read") && text.contains("Reads <PDF> & more."), "{text}");
    assert_snapshot!(ws.rep("--profile openskills sync --compat -y"), @r#"
    ✅ Synced 2 skill(s) to AGENTS.md
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("sync --compat"), @r#"
    [stderr]
    error: `--compat` goes with `--profile openskills` only
    hint: Add `--profile openskills`, or leave `--compat` out.
    [exit 2]
    "#);
}

#[test]
#[cfg(unix)]
fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
    let ws = Workspace::new();
    std::os::unix::fs::symlink("CLAUDE.md", ws.path("project/AGENTS.md")).unwrap();
    assert_eq!(ws.rep("sync").code, 0);
    assert!(ws.path("project/AGENTS.md").is_symlink());
    assert!(ws.text("project/CLAUDE.md").contains("first-aid"));
}
