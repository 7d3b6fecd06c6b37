//! What is found wrong with plans: each code, and exactly where.

use repertoire_plan::document::check_plan;

use super::plan;

/// Code, severity, what is underlined, and the message.
fn found(text: &str) -> Vec<String> {
    let plan = plan(text);
    let known = |name: &str| name == "pdf";
    let exists = |path: &str| path == "specs/there.md";
    check_plan(&plan, &known, &exists)
        .iter()
        .map(|found| {
            let under = found.span.map_or("-", |span| span.slice(text));
            let (code, severity) = (found.code.id, found.severity.as_str());
            assert!(found.help.is_some(), "{found:?}");
            format!("{code} {severity} <{under}> {}", found.message)
        })
        .collect()
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(found(text), expect, "{text}");
}

#[test]
fn a_good_plan_has_no_findings() {
    check(
        "# A\n## Phase 1\n- [ ] T001 a @pdf. See specs/there.md\n## Phase 2 (blocked by: 1)\n- [ ] T002 b (depends on T001)\n",
        &[],
    );
}

#[test]
fn a_plan_without_tasks() {
    check("# A\n", &["RS730 error <-> the plan has no task"]);
}

#[test]
fn a_plan_over_a_limit() {
    let long = format!("- [ ] a\n- [ ] {}\n", "b".repeat(20_000));
    check(&long, &["RS731 error <-> line 2 has 20006 bytes; the limit is 16384"]);
}

#[test]
fn something_that_is_not_closed() {
    check(
        "- [ ] a\n```rust\n- [ ] b\n",
        &["RS732 error <```rust> the fence of line 2 is not closed and hides a box"],
    );
    check("- [ ] a\n~~~\nb\n", &["RS732 warning <~~~> this fence is not closed"]);
    check("- [ ] a\n\n<!-- b\n", &["RS732 warning <<!-- b> this comment is not closed"]);
}

#[test]
fn a_mark_that_nobody_knows() {
    check("- [y] a\n", &["RS733 error <[y]> nobody knows what the box `[y]` means"]);
    check("- [] a\n", &["RS733 error <[]> nobody knows what the box `[]` means"]);
    check("- [-]? a\n", &["RS733 error <[-]?> nobody knows what the box `[-]?` means"]);
}

#[test]
fn a_box_that_is_indented_like_code() {
    check(
        "- [ ] a\n\ntext\n\n    - [ ] b\n",
        &["RS734 warning <- [ ] b> this box is indented like code, so it is no task"],
    );
}

#[test]
fn a_task_that_says_nothing() {
    check("- [ ] (P1)\n- [ ] a\n", &["RS735 warning <[ ]> this task says nothing"]);
}

#[test]
fn tasks_that_say_the_same() {
    check("- [ ] a\n- [x] a @pdf\n", &[]);
    check(
        "- [ ] a\n- [x]  a\n",
        &["RS736 warning <[x]  a> this says the same as the task of line 1"],
    );
    check(
        "# A\n- [ ] a\n# B\n- [ ] a\n",
        &["RS736 info <[ ] a> this says the same as the task of line 2"],
    );
    check(
        "- [ ] T1 a\n- [ ] T1 b\n",
        &["RS736 warning <[ ] T1 b> the task of line 1 has the label `T1` as well"],
    );
}

#[test]
fn a_blocker_that_names_nothing() {
    check(
        "- [ ] a (blocked by: T9, b)\n",
        &[
            "RS737 error <T9> `T9` names no task and no section",
            "RS737 error <b> `b` names no task and no section",
        ],
    );
    check(
        "## A (blocked by: X)\n- [ ] a\n  - depends on: \"what now\"\n",
        &[
            "RS737 error <X> `X` names no task and no section",
            "RS737 error <what now> `what now` names no task and no section",
        ],
    );
}

#[test]
fn blockers_that_wait_for_each_other() {
    check("- [ ] T1 a (depends on T1)\n", &["RS738 error <T1> these wait for each other: T1 → T1"]);
    check(
        "- [ ] T1 a (depends on T2)\n- [ ] T2 b (depends on T3)\n- [x] T3 c (depends on T1)\n",
        &["RS738 error <T2> these wait for each other: T1 → T2 → T3 → T1"],
    );
    check(
        "## Phase 1: A (blocked by: Phase 2)\n- [ ] a\n## Phase 2: B (blocked by: Phase 1)\n- [ ] b\n",
        &[
            "RS738 error <Phase 2> these wait for each other: \"Phase 2: B\" → \"Phase 1: A\" → \"Phase 2: B\"",
        ],
    );
    check(
        "## Phase 1\n- [ ] T1 a (depends on Phase 1)\n",
        &["RS738 error <Phase 1> these wait for each other: T1 → \"Phase 1\" → T1"],
    );
    check(
        "- [ ] T1 a\n  - [ ] T2 b (depends on T1)\n",
        &["RS738 error <T1> these wait for each other: T1 → T2 → T1"],
    );
}

#[test]
fn a_task_that_is_too_long() {
    let text = format!("- [ ] {}\n", "word ".repeat(150));
    assert_eq!(found(&text).len(), 1);
    assert!(found(&text)[0].starts_with("RS739 warning <[ ] word"), "{:?}", found(&text));
    assert!(
        found(&text)[0]
            .ends_with("this task has 749 characters; more than 600 do not fit one iteration")
    );
}

#[test]
fn a_skill_that_is_not_there() {
    check(
        "- [ ] a @pfd\n  more @pdf and @ocr\n",
        &[
            "RS740 warning <@pfd> there is no skill `pfd`",
            "RS740 warning <@ocr> there is no skill `ocr`",
        ],
    );
    check(
        "## A\nskills: pdf, sql\n- [ ] a\n  - Skills: `x`\n",
        &["RS740 warning <sql> there is no skill `sql`", "RS740 warning <x> there is no skill `x`"],
    );
}

#[test]
fn a_skill_in_backticks() {
    check(
        "- [ ] a `@pdf` and `x @pdf`\n",
        &["RS741 warning <@pdf> `@pdf` is code, so it is not read as a skill"],
    );
}

#[test]
fn a_file_that_is_not_there() {
    check(
        "- [ ] a (see `specs/gone.md#x`)\n  - Spec: specs/also.md\n",
        &[
            "RS742 warning <specs/gone.md#x> there is no `specs/gone.md`",
            "RS742 warning <specs/also.md> there is no `specs/also.md`",
        ],
    );
}

#[test]
fn a_ticked_task_with_an_open_one_within() {
    check(
        "- [x] T1 a\n  - [ ] T2 b\n  - [ ]? c\n",
        &["RS743 warning <[x]> the task is ticked, but T2 within it (line 2) is open"],
    );
}
