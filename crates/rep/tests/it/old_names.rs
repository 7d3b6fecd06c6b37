//! Commands by their old names, and words that are no commands.

use insta::assert_snapshot;

use crate::workspace::Workspace;

#[test]
fn old_names_print_the_same_as_the_new_ones() {
    let ws = Workspace::with_shipped_pack();
    for (old, new) in [
        ("to-prompt --budget 500", "sync --print --budget 500"),
        ("docs", "show --docs"),
        ("deps --mermaid", "show --deps --mermaid"),
        ("deps auto-merge --json", "show auto-merge --deps --json"),
        ("tools -a explore", "agents explore --tools"),
        ("tools --json", "agents --tools --json"),
        ("exec missing a task", "run --skill missing \"a task\""),
        ("exec --capability none a task", "run --capability none a task"),
        ("events", "runs events"),
        ("replay --all", "runs replay --all"),
        ("dlq", "runs dead-letters"),
        ("dlq list --json", "runs dlq list --json"),
        ("memory", "verify memory"),
        ("memory show abc", "verify memory show abc"),
        ("man", "completions man"),
        ("pause last", "runs pause last"),
        ("retry last", "runs retry last"),
        ("diff last", "runs diff last"),
    ] {
        assert_eq!(ws.rep(old).to_string(), ws.rep(new).to_string(), "{old}");
    }
}

#[test]
fn options_of_a_flag_are_wrong_use_without_it() {
    let ws = Workspace::new();
    for command in [
        "show",
        "show --mermaid pdf",
        "show -o out.md pdf",
        "show --docs pdf",
        "sync --budget 500",
        "sync folder",
        "sync --print -o AGENTS.md",
        "agents -a reader",
        "run --context file.json task",
        "run --skill one --capability two",
        "run --skill one --resume last",
        "completions bash --dir pages",
    ] {
        assert_eq!(ws.rep(command).code, 2, "{command}");
    }
    assert!(ws.rep("show --docs --json").stderr.contains("`rep show --docs` has no JSON output"));
    assert!(ws.rep("runs metrics --json").stderr.contains("`rep runs metrics` has no JSON output"));
}

#[test]
fn a_word_of_other_tools_leads_to_what_works_here() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("install owner/repo"), @r#"
    [stderr]
    error: `rep install` does not exist yet: rep cannot install skills
    hint: Copy or `git clone` the skill's folder into `.agents/skills`, or use `openskills install OWNER/REPO`; then check with `rep list`.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("update"), @r#"
    [stderr]
    error: `rep update` does not exist yet: rep cannot update skills
    hint: Run `git pull` in the folder that you cloned, or `openskills update`; then check with `rep list`.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("remove pdf"), @r#"
    [stderr]
    error: `rep remove` does not exist yet: rep cannot remove skills
    hint: Delete the skill's folder: `rep show NAME` prints its path; then check with `rep list`.
    hint: To remove a run, use `rep runs rm RUN`.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("search fill in a --form"), @r#"
    [stderr]
    error: there is no command `rep search`
    hint: To pick the skills for a task, run `rep match "fill in a"`.
    hint: To filter the list of skills by a word, run `rep list fill`.
    [exit 2]
    "#);
    assert_eq!(ws.rep("add x").code, 2);
}

#[test]
fn a_typo_suggests_the_nearest_command_by_its_new_name() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("evnts last --follow"), @r#"
    [stderr]
    error: there is no command `rep evnts`
    hint: Did you mean `rep runs events`?
    hint: `rep --help` lists the commands.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("frobnicate"), @r#"
    [stderr]
    error: there is no command `rep frobnicate`
    hint: `rep --help` lists the commands.
    [exit 2]
    "#);
}

#[test]
fn help_of_a_command_is_the_same_either_way() {
    let ws = Workspace::new();
    for command in ["list", "runs", "runs events", "verify memory teach", "runs dead-letters"] {
        let (before, after) =
            (ws.rep(&format!("help {command}")), ws.rep(&format!("{command} --help")));
        assert_eq!((before.code, before.stdout), (0, after.stdout), "{command}");
    }
}
