use proptest::prelude::*;

use super::*;

fn rules(list: &[&str]) -> Vec<PermissionRule> {
    list.iter().map(|rule| rule.parse().unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn access_of(tool: &str) -> ToolAccess {
    match tool {
        "bash" | "run_tests" => ToolAccess::Execute,
        "write" | "edit" => ToolAccess::Write,
        "research" | "github" => ToolAccess::Network,
        "todo" => ToolAccess::None,
        _ => ToolAccess::Read,
    }
}

fn with(mode: PermissionMode, allow: &[&str], ask: &[&str], deny: &[&str]) -> RunPermissions {
    RunPermissions {
        allow: rules(allow),
        ask: rules(ask),
        deny: rules(deny),
        ..RunPermissions::new(mode)
    }
}

fn decision(permissions: &RunPermissions, tool: &str, subject: &str) -> PermissionDecision {
    permissions.decide(tool, access_of(tool), subject, false).decision
}

#[track_caller]
fn allows(rule: &str, tool: &str, subject: &str, expected: bool) {
    let permissions = with(PermissionMode::Default, &[rule], &["*"], &[]);
    let matched = permissions.allow[0].permits(&rule::CallView::new(tool, subject, None));
    assert_eq!(matched, expected, "{rule} allows {tool}: {subject}");
}

#[track_caller]
fn denies(rule: &str, tool: &str, subject: &str, expected: bool) {
    let permissions = with(PermissionMode::Full, &["*"], &[], &[rule]);
    let denied = decision(&permissions, tool, subject) == PermissionDecision::Deny;
    assert_eq!(denied, expected, "{rule} denies {tool}: {subject}");
}

#[test]
fn without_rules_the_mode_decides() {
    use PermissionDecision::{Allow, Ask, Deny};
    use ToolAccess::{Execute, Network, None, Read, Write};
    let table: &[(PermissionMode, ToolAccess, bool, PermissionDecision)] = &[
        (PermissionMode::Default, None, false, Allow),
        (PermissionMode::Default, Read, false, Allow),
        (PermissionMode::Default, Write, true, Ask),
        (PermissionMode::Default, Execute, true, Ask),
        (PermissionMode::Default, Network, true, Ask),
        (PermissionMode::AcceptEdits, Write, false, Allow),
        (PermissionMode::AcceptEdits, Execute, true, Allow),
        (PermissionMode::AcceptEdits, Execute, false, Ask),
        (PermissionMode::AcceptEdits, Network, true, Ask),
        (PermissionMode::Full, Write, false, Allow),
        (PermissionMode::Full, Execute, false, Allow),
        (PermissionMode::Full, Network, false, Allow),
        (PermissionMode::ReadOnly, None, false, Allow),
        (PermissionMode::ReadOnly, Read, false, Allow),
        (PermissionMode::ReadOnly, Write, true, Deny),
        (PermissionMode::ReadOnly, Execute, true, Deny),
        (PermissionMode::ReadOnly, Network, true, Deny),
    ];
    for (mode, access, sandboxed, expected) in table {
        let verdict = RunPermissions::new(*mode).decide("tool", *access, "x", *sandboxed);
        assert_eq!(verdict.decision, *expected, "{mode:?} {access:?} {sandboxed}");
    }
    let verdict =
        with(PermissionMode::ReadOnly, &["*"], &[], &[]).decide("bash", Execute, "ls", true);
    assert_eq!(verdict.decision, Deny);
    assert_eq!(verdict.reason, "`bash` runs a program, and this run is read-only");
}

#[test]
fn names_of_other_agents_are_understood() {
    for (rule, tool) in [
        ("Bash", "bash"),
        ("READ", "read"),
        ("MultiEdit", "edit"),
        ("LS", "list"),
        ("Task", "delegate"),
        ("Agent", "delegate"),
        ("Skill", "skill"),
        ("TodoWrite", "todo"),
        ("mcp__git__*", "mcp__git__log"),
        ("*", "anything"),
    ] {
        allows(rule, tool, "subject", true);
    }
    allows("mcp__git__log", "git_log", "x", true);
    allows("mcp__git", "git_push", "x", true);
    allows("mcp__git", "git", "git log", false);
    allows("Read", "write", "x", false);
    allows("mcp__git__*", "mcp__other__log", "x", false);
    allows("WebFetch", "research", "https://a.b/", true);
    allows("WebFetch", "research", "search: a", false);
    allows("WebSearch", "research", "search: a", true);
    allows("WebSearch", "research", "https://a.b/", false);
}

#[test]
fn what_is_no_rule_is_told() {
    for wrong in ["", "  ", "Bash(", "Bash(x", "(x)", "Ba sh", "Read(~/x)", "Read([)", "Bash)x("] {
        assert!(wrong.parse::<PermissionRule>().is_err(), "{wrong}");
    }
    let error = "Bash(x".parse::<PermissionRule>().unwrap_err();
    assert!(error.to_string().contains("write `Tool` or `Tool(pattern)`"), "{error}");
}

#[test]
fn a_prefix_of_words_allows_all_of_a_command_or_nothing() {
    let rule = "Bash(git status:*)";
    for allowed in [
        "git status",
        "git  status -s",
        "git status 2>&1",
        "git status > /dev/null",
        "git status; git status",
        "git status && git status | git status",
        "git status $HOME",
        "git status \"a b\" 'c;d' \\;",
        "git status $(git status)",
        "git status \"$(git status -s)\"",
        "git status `git status`",
        "git \\\nstatus",
    ] {
        allows(rule, "bash", allowed, true);
    }
    for other in [
        "git statusx",
        "git push",
        "git",
        "",
        "git status && rm -rf x",
        "git status; rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git status $(rm x)",
        "git status \"$(rm x)\"",
        "git status `rm x`",
        "git status > file",
        "git status >> file",
        "git status < file",
        "git status <(rm x)",
        "git status <<EOF\nx\nEOF",
        "git status &> file",
        "git status ${x@P}",
        "git status $((a[$(rm x)]))",
        "git status $'\\n'",
        "GIT_DIR=x git status",
        "LD_PRELOAD=x git status",
        "git $X",
        "$X status",
        "git {status,push}",
        "(git status)",
        "{ git status; }",
        "! git status",
        "if git status; then rm x; fi",
        "git status 'unclosed",
        "git status \"unclosed",
        "git status $(unclosed",
        "git status `unclosed",
        "git status # comment",
        "git status \\",
        "git status \\\n#'\nrm x #'",
        "git status \"$\\\n(rm x)\"",
        "git status $\\\n{x@P}",
        "\"git status\"",
        "sudo git status",
    ] {
        allows(rule, "bash", other, false);
    }
    allows("Bash(ls)", "bash", "ls", true);
    allows("Bash(ls)", "bash", "ls -l", false);
    allows("Bash(npm run *)", "bash", "npm run build", true);
    allows("Bash(npm run *)", "bash", "npm run build; rm x", false);
    allows("Bash(* --version)", "bash", "node --version", true);
    allows("Bash(* --version)", "bash", "rm x; node --version", false);
}

#[test]
fn a_denied_command_is_found_wherever_it_stands() {
    let rule = "Bash(rm:*)";
    for denied in [
        "rm x",
        "ls; rm x",
        "ls && rm x",
        "ls | rm x",
        "ls $(rm x)",
        "ls `rm x`",
        "ls \"$(rm x)\"",
        "X=1 rm x",
        "sudo rm x",
        "/bin/rm x",
        "env X=1 rm x",
        "timeout 5 rm x",
        "xargs rm",
        "sh -c 'rm x'",
        "bash -c \"ls; rm x\"",
        "'rm' x",
        "r\\m x",
        "if true; then rm x; fi",
        "(rm x)",
        "{ rm x; }",
        "find . -exec rm {} +",
        "ls <<EOF\nx\nEOF\nrm x",
        "rm x > ${y}",
    ] {
        denies(rule, "bash", denied, true);
    }
    for other in ["ls", "rmdir x", "echo \"rm x\"", "echo rm", "git rm x"] {
        denies(rule, "bash", other, false);
    }
}

#[test]
fn a_denied_command_is_not_hidden_by_options_quotes_or_length() {
    let rule = "Bash(git push:*)";
    for denied in [
        "git -C . push",
        "git -c a=b --no-pager push origin",
        "sudo git --git-dir=x push",
        "sh -c 'cd x;git\tpush'",
    ] {
        denies(rule, "bash", denied, true);
    }
    denies(rule, "bash", "git -C push log", false);
    denies("Bash(rm:*)", "bash", "sh -c 'cd x&&rm'", true);
    denies("Bash(rm:*)", "bash", &format!("rm x #{}", "x".repeat(70_000)), true);
    // Takes neither minutes nor all of the memory.
    denies("Bash(rm:*)", "bash", &format!("env {}", "a ".repeat(30_000)), true);
    denies("Bash(rm:*)", "bash", &format!("echo {}", "a ".repeat(30_000)), false);
}

#[test]
fn rules_about_commands_and_files_hold_for_every_tool() {
    denies("Bash(git push:*)", "git", "git push origin main", true);
    denies("Git(push:*)", "git", "git push", true);
    denies("Bash(git push:*)", "git", "git status", false);
    denies("Bash(gh:*)", "github", "gh pr view", true);
    denies("Bash", "run_tests", "make", true);
    denies("Bash", "git", "git status", false);
    denies("Read(secret/**)", "grep", "secret", true);
    denies("Read(secret/**)", "read", "secret/a/b", true);
    denies("Read(secret)", "read", "secret/a/b", true);
    denies("Read(secret/**)", "git", "git show HEAD:secret/a", true);
    denies("Read(secret/**)", "git", "git blame -- secret/a", true);
    denies("Read(secret/**)", "git", "git show HEAD:src/a", false);
    allows("Read(src/**)", "git", "git commit src/a", false);
    allows("run_tests", "run_tests", "run_tests 'a b'", true);
    allows("run_tests", "run_tests", "curl x", false);
    allows("run_tests(make:*)", "run_tests", "make test", true);
    denies("Read(*.key)", "read", "a/b.key", true);
    denies("Edit(/docs/**)", "write", "docs/a", true);
    denies("Edit(/docs/**)", "write", "src/docs/a", false);
    denies("Edit(docs/**)", "read", "docs/a", false);
    allows("Edit(src/*)", "edit", "src/a", true);
    allows("Edit(src/*)", "edit", "src/a/b", false);
    allows("Edit(src/**)", "edit", "src/a/b", true);
    allows("Edit(src/**)", "edit", "src/../x", false);
    allows("Edit(src)", "edit", "src/a/b", true);
}

#[test]
fn domains_are_compared_as_hosts() {
    let rule = "WebFetch(domain:example.com)";
    allows(rule, "research", "https://example.com/x", true);
    allows(rule, "research", "https://EXAMPLE.com./x", true);
    allows(rule, "research", "https://evil.com/example.com", false);
    allows(rule, "research", "https://example.com.evil.com/", false);
    allows(rule, "research", "https://example.com@evil.com/", false);
    allows(rule, "research", "https://sub.example.com/", false);
    allows("WebFetch(domain:*.example.com)", "research", "https://sub.example.com/", true);
    allows("WebFetch(domain:*.example.com)", "research", "https://notexample.com/", false);
}

#[cfg(unix)]
#[test]
fn a_path_has_one_name_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
    repertoire_text::fs::write_atomic(&dir.join("secret/a"), b"x").unwrap();
    std::os::unix::fs::symlink("secret", dir.join("open")).unwrap();
    let permissions = with(PermissionMode::Full, &[], &[], &["Read(secret/**)"]).in_dir(&dir);
    for path in ["secret/a", "./secret/a", "x/../secret/a", "open/a", dir.join("secret/a").as_str()]
    {
        assert_eq!(decision(&permissions, "read", path), PermissionDecision::Deny, "{path}");
    }
    let absolute = format!("Read(/{dir}/secret/**)");
    let permissions = with(PermissionMode::Full, &[], &[], &[&absolute]).in_dir(&dir);
    for path in ["secret/a", "open/a", dir.join("secret/a").as_str()] {
        assert_eq!(decision(&permissions, "read", path), PermissionDecision::Deny, "{path}");
    }
    assert!(permissions.hidden_paths().matches("secret/a", dir.join("secret/a").as_str()));
    let permissions = with(PermissionMode::Default, &["Edit(open/**)"], &[], &[]).in_dir(&dir);
    assert_eq!(decision(&permissions, "edit", "open/a"), PermissionDecision::Ask);
}

#[test]
fn deny_wins_over_ask_and_ask_over_allow() {
    let all = ["Bash(ls:*)"];
    assert_eq!(
        decision(&with(PermissionMode::Full, &all, &all, &all), "bash", "ls"),
        PermissionDecision::Deny
    );
    assert_eq!(
        decision(&with(PermissionMode::Full, &all, &all, &[]), "bash", "ls"),
        PermissionDecision::Ask
    );
    assert_eq!(
        decision(&with(PermissionMode::Default, &all, &[], &[]), "bash", "ls"),
        PermissionDecision::Allow
    );
}

#[test]
fn an_untrusted_skill_only_takes_away_and_a_trusted_one_gives() {
    let base = with(PermissionMode::Full, &[], &[], &[]);
    let list = ["Read".to_owned(), "Bash(git:*)".to_owned()];
    let narrowed = base.narrowed_by(&list, false);
    assert_eq!(decision(&narrowed, "read", "x"), PermissionDecision::Allow);
    assert_eq!(decision(&narrowed, "bash", "git log"), PermissionDecision::Allow);
    assert_eq!(decision(&narrowed, "bash", "git log; rm x"), PermissionDecision::Deny);
    assert_eq!(decision(&narrowed, "write", "x"), PermissionDecision::Deny);
    let careful = RunPermissions::new(PermissionMode::Default);
    assert_eq!(
        decision(&careful.narrowed_by(&list, false), "bash", "git log"),
        PermissionDecision::Ask
    );
    assert_eq!(
        decision(&careful.narrowed_by(&list, true), "bash", "git log"),
        PermissionDecision::Allow
    );
    assert_eq!(
        decision(&careful.narrowed_by(&list, true), "bash", "rm x"),
        PermissionDecision::Ask
    );
    let broken = base.narrowed_by(&["(".to_owned()], false);
    assert_eq!(decision(&broken, "read", "x"), PermissionDecision::Deny);
    assert_eq!(decision(&base.narrowed_by(&[], false), "write", "x"), PermissionDecision::Allow);
}

#[tokio::test]
async fn nobody_says_no_and_what_to_add() {
    let verdict = RunPermissions::new(PermissionMode::Default).decide(
        "bash",
        ToolAccess::Execute,
        "cargo test",
        false,
    );
    let question = Question {
        tool: "bash".to_owned(),
        access: ToolAccess::Execute,
        subject: "cargo test".to_owned(),
        reason: verdict.reason.clone(),
    };
    let Answer::No(reason) = NonInteractiveAsker.ask(&question).await else {
        panic!("nobody said yes")
    };
    assert_eq!(
        reason,
        "`bash` runs a program without a sandbox, which needs permission, and this run cannot ask for it; to allow \
         it, add the rule `bash(cargo test)` with `--allow` or under `permissions.allow`"
    );
    assert_eq!(verdict.without_asking("bash", "cargo test").decision, PermissionDecision::Deny);
}

#[test]
fn always_is_for_exactly_one_call() {
    let mut permissions = RunPermissions::new(PermissionMode::Default);
    let subject = "rm * && ls $(x)".to_owned();
    let question = Question {
        tool: "bash".to_owned(),
        access: ToolAccess::Execute,
        subject,
        reason: String::new(),
    };
    permissions.allow_always(&question);
    assert_eq!(decision(&permissions, "bash", "rm * && ls $(x)"), PermissionDecision::Allow);
    assert_eq!(decision(&permissions, "bash", "rm a && ls $(x)"), PermissionDecision::Ask);
    assert_eq!(decision(&permissions, "bash", "rm *"), PermissionDecision::Ask);
    let with_network = permissions.decide("bash", ToolAccess::Network, "rm * && ls $(x)", true);
    assert_eq!(with_network.decision, PermissionDecision::Ask);
}

#[test]
fn searches_pass_over_what_would_be_asked_for() {
    let permissions = with(PermissionMode::Default, &[], &["Read(private/**)"], &[]);
    assert!(permissions.hidden_paths().matches("private/a", "/w/private/a"));
}

const RULES: &[&str] = &[
    "*",
    "Bash",
    "Bash(git:*)",
    "Bash(rm:*)",
    "Bash(ls)",
    "Bash(* x)",
    "Read",
    "Read(src/**)",
    "Edit(src/*)",
    "Write",
    "WebFetch(domain:example.com)",
    "Git(push:*)",
    "todo",
];
const CALLS: &[(&str, &str)] = &[
    ("bash", "git log"),
    ("bash", "rm x"),
    ("bash", "ls"),
    ("bash", "ls; rm x"),
    ("bash", "git $(rm x)"),
    ("bash", "ls <<"),
    ("git", "git push"),
    ("run_tests", "ls"),
    ("read", "src/a"),
    ("grep", "."),
    ("write", "src/a"),
    ("edit", "other"),
    ("research", "https://example.com/"),
    ("todo", "1 items"),
];

fn some_rules() -> impl Strategy<Value = Vec<String>> {
    let rule = proptest::sample::select(RULES).prop_map(str::to_owned);
    proptest::collection::vec(rule, 0..4)
}

fn some_permissions() -> impl Strategy<Value = RunPermissions> {
    let modes = [
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Full,
    ];
    let lists = (some_rules(), some_rules(), some_rules());
    (proptest::sample::select(modes.to_vec()), lists).prop_map(|(mode, (allow, ask, deny))| {
        let parsed = |list: Vec<String>| list.iter().map(|rule| rule.parse().unwrap()).collect();
        RunPermissions {
            allow: parsed(allow),
            ask: parsed(ask),
            deny: parsed(deny),
            ..RunPermissions::new(mode)
        }
    })
}

/// The permissiveness of a decision.
fn openness(decision: PermissionDecision) -> u8 {
    match decision {
        PermissionDecision::Deny => 0,
        PermissionDecision::Ask => 1,
        PermissionDecision::Allow => 2,
    }
}

proptest! {
    #[test]
    fn narrowing_never_allows_what_was_not_allowed(
        permissions in some_permissions(),
        skill in some_rules(),
        (tool, subject) in proptest::sample::select(CALLS),
        sandboxed: bool,
    ) {
        let narrowed = permissions.narrowed_by(&skill, false);
        let before = permissions.decide(tool, access_of(tool), subject, sandboxed).decision;
        let after = narrowed.decide(tool, access_of(tool), subject, sandboxed).decision;
        prop_assert!(openness(after) <= openness(before));
    }

    #[test]
    fn a_denied_call_stays_denied_whatever_else_is_allowed(
        permissions in some_permissions(),
        skill in some_rules(),
        trusted: bool,
        (tool, subject) in proptest::sample::select(CALLS),
    ) {
        let before = decision(&permissions, tool, subject);
        let mut more = permissions.narrowed_by(&skill, trusted);
        more.allow.extend(rules(&["*"]));
        if before == PermissionDecision::Deny {
            prop_assert_eq!(decision(&more, tool, subject), PermissionDecision::Deny);
        }
    }

    #[test]
    fn an_allow_rule_never_covers_a_command_with_another_behind_it(
        command in "[a-z $`'\"\\\\(){}<>|&;\n#*?=\\[\\]~!-]{0,40}",
        operator in proptest::sample::select(&[";", "&&", "||", "|", "&", "\n"][..]),
    ) {
        let permissions = with(PermissionMode::Default, &["Bash(ls:*)"], &[], &[]);
        let whole = format!("ls {operator} rm x {operator} {command}");
        prop_assert_eq!(decision(&permissions, "bash", &whole), PermissionDecision::Ask);
        // Never hangs or panics, whatever the input.
        decision(&permissions, "bash", &command);
        decision(&with(PermissionMode::Full, &[], &[], &["Bash(rm:*)"]), "bash", &command);
    }
}
