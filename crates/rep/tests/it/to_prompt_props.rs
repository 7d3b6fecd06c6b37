//! `rep sync --print` and `rep props`: skills-ref's outputs, and a catalog that keeps to its budget.

use insta::assert_snapshot;

use crate::workspace::Workspace;

fn several() -> Workspace {
    let ws = Workspace::new();
    for name in ["alpha", "beta", "gamma", "delta"] {
        let description =
            format!("Does {name} & more. Use when {name} is to be done, again and again.");
        ws.skill(&format!("home/.claude/skills/{name}"), name, &description);
    }
    ws
}

#[test]
fn the_catalog_is_printed_as_skills_ref_prints_it() {
    assert_snapshot!(several().rep("sync --print"), @r#"
    <available_skills>
    <skill>
    <name>
    alpha
    </name>
    <description>
    Does alpha &amp; more. Use when alpha is to be done, again and again.
    </description>
    <location>
    [TMP]/home/.claude/skills/alpha/SKILL.md
    </location>
    </skill>
    <skill>
    <name>
    beta
    </name>
    <description>
    Does beta &amp; more. Use when beta is to be done, again and again.
    </description>
    <location>
    [TMP]/home/.claude/skills/beta/SKILL.md
    </location>
    </skill>
    <skill>
    <name>
    delta
    </name>
    <description>
    Does delta &amp; more. Use when delta is to be done, again and again.
    </description>
    <location>
    [TMP]/home/.claude/skills/delta/SKILL.md
    </location>
    </skill>
    <skill>
    <name>
    first-aid
    </name>
    <description>
    Built in. Use when nothing else helps.
    </description>
    <location>
    [TMP]/pack/first-aid/SKILL.md
    </location>
    </skill>
    <skill>
    <name>
    gamma
    </name>
    <description>
    Does gamma &amp; more. Use when gamma is to be done, again and again.
    </description>
    <location>
    [TMP]/home/.claude/skills/gamma/SKILL.md
    </location>
    </skill>
    </available_skills>
    [exit 0]
    "#);
}

#[test]
fn named_folders_are_printed_in_their_order() {
    let ws = several();
    ws.skill("project/s/one", "one", "One. Use when one.");
    assert_snapshot!(ws.rep("sync --print s/one"), @r#"
    <available_skills>
    <skill>
    <name>
    one
    </name>
    <description>
    One. Use when one.
    </description>
    <location>
    [TMP]/project/s/one/SKILL.md
    </location>
    </skill>
    </available_skills>
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("sync --print s/none"), @r#"
    [stderr]
    Error: SKILL.md not found in s/none
    [exit 1]
    "#);
}

#[test]
fn a_budget_is_never_passed() {
    let ws = several();
    for budget in [0, 1, 20, 60, 100, 150, 200, 300, 400, 600, 1_000, 10_000] {
        let ran = ws.rep(&format!("sync --print --budget {budget}"));
        assert_eq!(ran.code, 0, "{ran}");
        let raw = String::from_utf8(ws.raw(&format!("to-prompt --budget {budget}"))).unwrap();
        assert!(raw.chars().count() <= budget, "{budget}: {raw}");
    }
}

#[test]
fn what_comes_first_is_whole_and_the_rest_is_shortened_named_or_counted() {
    let ws = several();
    assert_snapshot!(ws.rep("sync --print --budget 330 --first gamma"), @r#"
    <available_skills>
    <skill><name>gamma</name><description>Does gamma &amp; more. Use when gamma is to be done, again and again.</description></skill>
    <skill><name>alpha</name></skill>
    <skill><name>beta</name></skill>
    <skill><name>delta</name></skill>
    <skill><name>first-aid</name></skill>
    </available_skills>
    [stderr]
    1 whole, 0 shortened, 4 by name only, 0 counted
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("sync --print --budget 330 --first gama"), @r#"
    [stderr]
    error: skill `gama` not found
    hint: Did you mean `gamma`?
    hint: Searched: ~/.claude/skills, [TMP]/pack
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
}

#[test]
fn flags_that_do_not_go_together_are_wrong_use() {
    let ws = several();
    assert_snapshot!(ws.rep("sync --print --first alpha"), @r#"
    [stderr]
    error: the following required arguments were not provided:
      --budget <CHARS>

    Usage: rep sync --print --budget <CHARS> --first <NAME> [PATHS]...

    For more information, try '--help'.
    [exit 2]
    "#);
    assert_eq!(ws.rep("sync --print --budget 10 s").code, 2);
    assert_eq!(ws.rep("sync --print --budget many").code, 2);
}

#[test]
fn properties_are_found_by_folder_file_and_name() {
    let ws = several();
    ws.skill_with(
        "project/s/one",
        "name: one\ndescription: One. Use when one.\nlicense: MIT\nmetadata:\n  a: 1\n",
    );
    assert_snapshot!(ws.rep("props s/one"), @r#"
    {
      "name": "one",
      "description": "One. Use when one.",
      "license": "MIT",
      "metadata": {
        "a": "1"
      }
    }
    [exit 0]
    "#);
    assert_eq!(ws.rep("props s/one/SKILL.md").stdout, ws.rep("props s/one").stdout);
    assert!(ws.rep("props alpha").stdout.contains("\"name\": \"alpha\""));
}

#[test]
fn properties_that_are_not_there_say_why() {
    let ws = several();
    ws.write("project/s/bad/SKILL.md", "no frontmatter");
    assert_snapshot!(ws.rep("props alhpa"), @r#"
    [stderr]
    error: skill `alhpa` not found
    hint: Did you mean `alpha`?
    hint: Searched: ~/.claude/skills, [TMP]/pack
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("props ./nowhere"), @r#"
    [stderr]
    Error: SKILL.md not found in nowhere
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("props s/bad"), @r#"
    [stderr]
    Error: SKILL.md must start with YAML frontmatter (---)
    [exit 1]
    "#);
}
