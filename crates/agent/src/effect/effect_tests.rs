use super::*;
use crate::tools::builtin_tools;

fn lists(allowed: Option<&[&str]>, disallowed: &[&str]) -> ToolFilter {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ToolFilter { allowed: allowed.map(owned), disallowed: owned(disallowed) }
}

#[track_caller]
fn check(allowed: Option<&[&str]>, disallowed: &[&str], expect: &[RunEffect]) {
    let effects = EffectLimit::for_agent("a", &lists(allowed, disallowed)).effects();
    assert_eq!(effects, EffectSet::from_effects(expect), "{allowed:?} without {disallowed:?}");
}

#[test]
fn tool_lists_mean_effects() {
    let all = RunEffect::ALL;
    check(None, &[], &all);
    check(Some(&["*"]), &[], &all);
    check(Some(&[]), &[], &[]);
    check(Some(&["Read", "Grep", "TodoWrite"]), &[], &[]);
    check(Some(&["read", "Task"]), &[], &[Delegate]);
    check(Some(&["Edit"]), &[], &[ChangeFiles]);
    check(Some(&["Bash(git log:*)"]), &[], &[RunCommands, ChangeFiles, UseNetwork]);
    check(Some(&["read", "run_tests"]), &[], &[RunCommands, ChangeFiles]);
    check(Some(&["WebFetch", "github"]), &[], &[UseNetwork]);
    check(None, &["bash"], &[ChangeFiles, UseNetwork, Delegate]);
    check(None, &["Bash(rm:*)"], &[ChangeFiles, UseNetwork, Delegate]);
    check(None, &["write"], &[RunCommands, UseNetwork, Delegate]);
    check(None, &["edit"], &[RunCommands, UseNetwork, Delegate]);
    check(None, &["NotebookEdit"], &all);
    check(None, &["WebSearch"], &[ChangeFiles, RunCommands, Delegate]);
    check(None, &["run_tests", "git", "github"], &all);
    check(None, &["Agent"], &[ChangeFiles, RunCommands, UseNetwork]);
    check(None, &["*"], &[]);
    check(Some(&["bash", "write"]), &["Bash"], &[ChangeFiles, UseNetwork]);
}

#[test]
fn every_built_in_tool_has_a_row() {
    for tool in builtin_tools() {
        assert!(row_of(tool.name()).is_some(), "{}", tool.name());
    }
}

fn offered(limit: &EffectLimit) -> Vec<String> {
    let tools = builtin_tools();
    let left = tools.iter().filter(|tool| limit.refuses_tool(&***tool).is_none());
    left.map(|tool| tool.name().to_owned()).collect()
}

#[test]
fn no_tool_with_a_removed_effect_is_offered() {
    let tools =
        |disallowed: &[&str]| offered(&EffectLimit::for_agent("a", &lists(None, disallowed)));
    let lacks = |disallowed: &[&str], tool: &str| {
        let tools = tools(disallowed);
        assert!(!tools.iter().any(|name| name == tool), "{disallowed:?}: {tools:?}");
    };
    lacks(&["bash"], "bash");
    lacks(&["bash"], "run_tests");
    lacks(&["write"], "edit");
    lacks(&["edit"], "write");
    lacks(&["research"], "github");
    lacks(&["delegate"], "delegate");
    assert!(tools(&["bash"]).iter().any(|name| name == "git"));
}

#[test]
fn a_sub_agent_has_at_most_the_effects_of_the_agents_above_it() {
    let above = EffectLimit::for_agent("careful", &lists(None, &["bash", "github"]));
    let below = above.and(&EffectLimit::for_agent("free", &lists(None, &[])));
    assert!(!below.effects().has(RunCommands));
    for tool in ["bash", "run_tests", "github"] {
        assert!(!offered(&below).iter().any(|name| name == tool), "{tool}");
    }
    assert_eq!(
        below.refuses_named("bash").unwrap().to_string(),
        "`disallowed_tools` of agent `careful` names `bash`"
    );
    assert_eq!(
        below.refuses_named("run_tests").unwrap().to_string(),
        "agent `careful` may not run commands, which `run_tests` would do"
    );
    let named = EffectLimit::for_agent("free", &lists(Some(&["bash", "files_delete"]), &[]));
    assert!(above.and(&named).refuses_named("bash").is_some());
    assert!(above.and(&named).refuses_named("files_delete").is_some());
}

#[test]
fn a_tool_of_unknown_behaviour_needs_every_effect_or_its_name_in_the_list() {
    fn refused(allowed: Option<&[&str]>, disallowed: &[&str]) -> bool {
        let limit = EffectLimit::for_agent("a", &lists(allowed, disallowed));
        limit.refuses_named("files_list").is_some()
    }
    assert!(!refused(None, &[]));
    assert!(!refused(None, &["delegate"]));
    for disallowed in ["bash", "write", "research", "mcp__files__list", "mcp__files", "files_*"] {
        assert!(refused(None, &[disallowed]), "{disallowed}");
    }
    assert!(!refused(Some(&["read", "files_list"]), &[]));
    assert!(!refused(Some(&["read", "mcp__files__list"]), &[]));
    assert!(refused(Some(&["read"]), &[]));
}

#[test]
fn calls_are_judged_by_what_they_touch() {
    let tools = builtin_tools();
    let find = |name: &str| tools.iter().find(|tool| tool.name() == name).unwrap();
    let refused = |disallowed: &[&str], tool: &str, access| {
        EffectLimit::for_agent("a", &lists(None, disallowed))
            .refuses_call(&**find(tool), access)
            .is_some()
    };
    for (disallowed, tool, access, expect) in [
        (&["write"] as &[&str], "git", ToolAccess::Read, false),
        (&["write"], "git", ToolAccess::Write, true),
        (&["write"], "git", ToolAccess::Network, true),
        (&["write"], "bash", ToolAccess::Execute, false),
        (&["research"], "bash", ToolAccess::Execute, false),
        (&["research"], "bash", ToolAccess::Network, true),
        (&["research"], "git", ToolAccess::Network, true),
        (&["github"], "bash", ToolAccess::Network, true),
        (&["github"], "git", ToolAccess::Network, true),
        (&["github"], "research", ToolAccess::Network, false),
        (&["bash"], "run_tests", ToolAccess::Execute, true),
        (&["bash"], "git", ToolAccess::Write, false),
        (&["delegate"], "delegate", ToolAccess::None, true),
    ] {
        assert_eq!(refused(disallowed, tool, access), expect, "{disallowed:?}: {tool} {access:?}");
    }
}
