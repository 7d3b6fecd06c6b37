//! `rep new` and `rep show --docs`: a start that passes its own lint, and documentation from what is there.

use insta::assert_snapshot;

use crate::workspace::Workspace;

#[test]
fn a_new_skill_passes_lint_and_is_found() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep_with(&["new", "tidy-up", "-d", "Tidies: up. Use when it is untidy."]), @r#"
    created .agents/skills/tidy-up/SKILL.md
    [stderr]
    Edit it, then check it with `rep lint .agents/skills/tidy-up/SKILL.md`.
    [exit 0]
    "#);
    assert_snapshot!(ws.text("project/.agents/skills/tidy-up/SKILL.md"), @r#"
    ---
    name: tidy-up
    description: "Tidies: up. Use when it is untidy."
    ---

    # Tidy up

    ## When to use

    - The situation in which this helps, in the words that people use.

    ## Steps

    1. What to do first.
    2. How to tell that it worked.

    ## Output

    What to hand back, and in which form.
    "#);
    assert_eq!(ws.rep("lint --strict .agents").code, 0);
    assert_eq!(ws.rep("show tidy-up").code, 0);
}

#[test]
fn without_a_description_it_still_passes_lint() {
    let ws = Workspace::new();
    ws.rep("new plain");
    ws.rep("new helper --agent");
    ws.rep("new mine --user");
    ws.rep("new there --dir over/there");
    for path in [
        "project/.agents/skills/plain/SKILL.md",
        "project/.claude/agents/helper.md",
        "home/.agents/skills/mine/SKILL.md",
        "project/over/there/there/SKILL.md",
    ] {
        let ran = ws.rep_with(&["lint", "--strict", ws.path(path).as_str()]);
        assert_eq!(ran.code, 0, "{ran}");
    }
}

#[test]
fn a_name_is_written_as_names_are_and_that_is_said() {
    assert_snapshot!(Workspace::new().rep_with(&["new", "My Skill!"]), @r#"
    created .agents/skills/my-skill/SKILL.md
    [stderr]
    `My Skill!` is written `my-skill` as a name.
    Edit it, then check it with `rep lint .agents/skills/my-skill/SKILL.md`.
    [exit 0]
    "#);
}

#[test]
fn a_name_that_cannot_be_one_is_wrong_use() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("new ***"), @r#"
    [stderr]
    error: `***` cannot be a name
    hint: Use 1 to 64 lower-case letters, digits and single hyphens.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep_with(&["new", ""]), @r#"
    [stderr]
    error: an empty text cannot be a name
    hint: Use 1 to 64 lower-case letters, digits and single hyphens.
    [exit 2]
    "#);
    assert_eq!(ws.rep(&format!("new {}", "x".repeat(65))).code, 2);
    assert!(!ws.path("project/.agents").exists());
}

#[test]
fn a_name_cannot_climb_out_of_the_folder() {
    let ws = Workspace::new();
    ws.rep("new ../../escaped");
    assert!(ws.path("project/.agents/skills/escaped/SKILL.md").exists());
    assert!(!ws.path("escaped").exists());
}

#[test]
fn a_file_that_is_there_is_never_written_over() {
    let ws = Workspace::new();
    ws.skill("project/.agents/skills/mine", "mine", "Mine. Use when mine.");
    let before = ws.bytes("project/.agents/skills/mine/SKILL.md");
    assert_snapshot!(ws.rep("new mine"), @r#"
    [stderr]
    error: .agents/skills/mine/SKILL.md is there already
    hint: Choose another name, or edit that file.
    [exit 1]
    "#);
    assert_eq!(ws.bytes("project/.agents/skills/mine/SKILL.md"), before);
}

#[test]
fn a_file_in_place_of_the_folder_is_named() {
    let ws = Workspace::new();
    ws.write("project/.agents", "a file");
    assert_snapshot!(ws.rep("new mine"), @r#"
    [stderr]
    error: [TMP]/project/.agents/skills/mine/SKILL.md cannot be written: Not a directory (os error 20)
    [exit 3]
    "#);
}

#[test]
fn a_place_is_given_once() {
    assert_eq!(Workspace::new().rep("new mine --user --dir x").code, 2);
}

fn documented() -> Workspace {
    let ws = Workspace::new();
    ws.skill_with(
        "home/.claude/skills/sql",
        "name: sql\ndescription: Reviews | checks SQL. Use when asked.\nversion: 1.2.0\nauthor: Ann\ntype: mode\n\
         triggers: [pull_request]\ntags: [db]\ndependencies: ['first-aid']\nallowed-tools: Read Grep\n",
    );
    ws.write("home/.claude/skills/sql/references/locks.md", "# Locks\n");
    ws.write(
        "home/.claude/agents/keeper.md",
        "---\nname: keeper\ndescription: Knows the schema.\ncapabilities: [research]\n---\n\nYou know it.\n",
    );
    ws
}

#[test]
fn documentation_is_markdown_with_a_table_and_a_section_for_each() {
    assert_snapshot!(documented().rep("show --docs"), @r"
    <!-- Written by `rep show --docs`; changes are lost when it runs again. -->

    # Skills

    | name | type | description |
    |---|---|---|
    | [first-aid](#first-aid) | custom | Built in. Use when nothing else helps. |
    | [keeper](#keeper) | custom | Knows the schema. |
    | [sql](#sql) | mode | Reviews \| checks SQL. Use when asked. |

    ## Agents

    ### keeper

    Knows the schema.

    - **File**: `~/.claude/agents/keeper.md`
    - **Capabilities**: `research`

    ## Modes

    ### sql

    Reviews | checks SQL. Use when asked.

    - **File**: `~/.claude/skills/sql/SKILL.md`
    - **Version**: 1.2.0
    - **Author**: Ann
    - **Events**: `pull_request`
    - **Tools it may use**: `Read`, `Grep`
    - **Depends on**: `first-aid`
    - **Tags**: db
    - **Files**: `references/locks.md`

    ## Skills

    ### first-aid

    Built in. Use when nothing else helps.

    - **File**: `[TMP]/pack/first-aid/SKILL.md`
    [exit 0]
    ");
}

#[test]
fn documentation_goes_into_a_file_if_asked() {
    let ws = documented();
    assert_snapshot!(ws.rep("show --docs -o docs/skills.md"), @r#"
    wrote docs/skills.md (3 entries)
    [exit 0]
    "#);
    assert_eq!(ws.text("project/docs/skills.md"), String::from_utf8(ws.raw("docs")).unwrap());
}

#[test]
fn documentation_replaces_only_what_it_wrote_itself() {
    let ws = documented();
    ws.write("project/NOTES.md", "mine");
    assert_snapshot!(ws.rep("show --docs -o NOTES.md"), @"
    [stderr]
    error: NOTES.md exists, and was not written by `rep show --docs`
    hint: Choose another name, or overwrite it with `--force`.
    [exit 1]
    ");
    assert_eq!(ws.text("project/NOTES.md"), "mine");
    ws.rep("show --docs -o NOTES.md --force");
    assert_eq!(ws.rep("show --docs -o NOTES.md").code, 0);
    std::fs::create_dir_all(ws.path("project/docs")).unwrap();
    assert_eq!(ws.rep("show --docs -o docs").code, 1);
}
