//! What a shell is answered that completes a command line.

use insta::assert_snapshot;

use crate::workspace::Workspace;

/// The names that `rep` offers for the last word, as fish asks for them.
#[track_caller]
fn complete(ws: &mut Workspace, words: &[&str]) -> Vec<String> {
    ws.set("REP_COMPLETE", "fish");
    let args: Vec<&str> = ["--", "rep"].iter().chain(words).copied().collect();
    let ran = ws.rep_with(&args);
    ws.set("REP_COMPLETE", "");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");
    let name = |line: &str| line.split('\t').next().unwrap().to_owned();
    ran.stdout.lines().map(name).collect()
}

#[test]
fn scripts_for_every_shell_ask_the_program() {
    let ws = Workspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = ws.rep(&format!("completions {shell}"));
        assert!(ran.code == 0 && ran.stdout.contains("REP_COMPLETE"), "{shell}: {ran}");
        assert!(ran.stdout.contains(shell), "{shell}: {ran}");
    }
    assert_snapshot!(ws.rep("completions tcsh"), @r#"
    [stderr]
    error: invalid value 'tcsh' for '<SHELL>'
      [possible values: bash, zsh, fish, elvish, powershell, man]

      tip: a similar value exists: 'zsh'

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn names_of_skills_agents_and_workflows_are_completed() {
    let mut ws = Workspace::with_shipped_pack();
    ws.skill("project/.claude/skills/my-notes", "my-notes", "Takes notes. Use when asked.");
    for (words, expected) in [
        (vec!["show", "my"], vec!["my-notes"]),
        (vec!["read", "my-notes", "brain"], vec!["brainstorming"]),
        (vec!["trust", "my"], vec!["my-notes"]),
        (vec!["run", "--skill", "my"], vec!["my-notes"]),
        (vec!["run", "--skills", "my"], vec!["my-notes"]),
        (vec!["run", "-a", "expl"], vec!["explore"]),
        (vec!["plan", "run", "--review-agent", "quality"], vec!["quality-reviewer"]),
        (vec!["agents", "expl"], vec!["explore"]),
        (vec!["workflow", "start", "deep"], vec!["deepthink"]),
        (vec!["show", "nothing-like-this"], vec![]),
        (vec!["runs", "dead"], vec!["dead-letters"]),
        (vec!["completions", "ma"], vec!["man"]),
    ] {
        assert_eq!(complete(&mut ws, &words), expected, "{words:?}");
    }
}

#[test]
fn runs_are_completed_by_kind() {
    let mut ws = Workspace::with_shipped_pack();
    assert!(complete(&mut ws, &["workflow", "status", "my"]).is_empty(), "there is no journal yet");
    assert_eq!(ws.rep("workflow start deepthink --id my-run --param question=why").code, 0);
    for words in [["workflow", "status", "my"], ["runs", "show", "my"], ["runs", "cancel", "my"]] {
        assert_eq!(complete(&mut ws, &words), ["my-run"], "{words:?}");
    }
    assert!(complete(&mut ws, &["run", "--resume", "my"]).is_empty(), "it is no conversation");
}

#[test]
fn a_broken_configuration_completes_commands_and_no_names() {
    let mut ws = Workspace::new();
    ws.write("project/repertoire.toml", "this is = not TOML = at all");
    assert_eq!(complete(&mut ws, &["doc"]), ["doctor"]);
    assert!(complete(&mut ws, &["show", "first"]).is_empty());
    ws.set("REP_COMPLETE", "tcsh");
    assert_eq!(ws.rep("-- rep show").code, 2);
}
