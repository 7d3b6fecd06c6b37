//! `rep plan`: what comes next, how far a plan is, and what is wrong with it.

use crate::workspace::Workspace;

const PLAN: &str = "\
# Forms by mail

## Phase 1: Reading
- [R] 1.1 Read a form (spec §3.1)
- [x] 1.2 Keep what was not understood

## Phase 2: Filling (blocked by: Phase 1)
Skills: first-aid
- [ ] 2.1 Fill in text, and say in one sentence what could not be filled in and for what reason
- [ ] 2.2 Fill in boxes @frist-aid (P1)
  Boxes are ticked with an x.
  - [x] 2.2.1 Round
  - [ ] 2.2.2 Square
- [ ] 2.3 Sign (depends on 2.1, 2.2)
- [~] 2.4 Ask who signs
- [!] 2.5 Fetch the old forms
- [ ]? 2.6 Print one

## Phase 3: Mail (blocked by: Phase 2)
- [ ] 3.1 Send
- [ ] 3.2 Wait for an answer

## Manual QA
- [ ] Look at it
";

fn workspace(plan: &str) -> Workspace {
    let ws = Workspace::new();
    ws.write("project/PLAN.md", plan);
    ws
}

#[test]
fn a_plan_is_drawn() {
    let mut ws = workspace(PLAN);
    ws.set("COLUMNS", "72");
    insta::assert_snapshot!(ws.rep("plan status"), @r#"
    Forms by mail
    ███▓▓▓▓!!░░░░░░░░░░░░░░░
    3 of 11 done · 2 to review · 1 blocked · 1 failed · 1 for people

    Phase 1: Reading                              ██████▓▓▓▓▓▓  2/2

    Phase 2: Filling                              ▓▓!!░░░░░░░░  1/7
      [ ]  2.1    Fill in text, and say in one sentence what could not be…
      [ ]  2.2    Fill in boxes @frist-aid Boxes are ticked with an x.  high
           waits for 2.2.2 (open), which is within it
        [x]  2.2.1  Round  high
    →   [ ]  2.2.2  Square  high
      [ ]  2.3    Sign
           waits for 2.1 (open); 2.2 (open)
      [~]  2.4    Ask who signs
      [!]  2.5    Fetch the old forms
      [ ]? 2.6    Print one

    Phase 3: Mail                                 ░░░░░░░░░░░░  0/2
      [ ]  3.1    Send
           waits for "Phase 2: Filling" (1 of 7 done)
      [ ]  3.2    Wait for an answer

    1 box in sections for people, not shown.
    [exit 0]
    "#);
}

#[test]
fn finished_sections_are_drawn_in_full_on_request() {
    let ws = workspace(PLAN);
    assert!(!ws.rep("plan status").stdout.contains("Keep what was not understood"));
    assert!(ws.rep("plan status --all").stdout.contains("Keep what was not understood"));
}

#[test]
fn every_line_fits_the_terminal() {
    for columns in ["40", "60", "80", "120"] {
        let mut ws = workspace(PLAN);
        ws.set("COLUMNS", columns);
        let wide = columns.parse().unwrap();
        for command in ["plan status", "plan next"] {
            let ran = ws.rep(command);
            let long = ran.stdout.lines().find(|line| line.chars().count() > wide);
            assert_eq!(long, None, "{columns}\n{}", ran.stdout);
            assert!(ran.stdout.lines().all(|line| line == line.trim_end()), "{}", ran.stdout);
        }
    }
}

#[test]
fn the_next_task_is_told_with_its_reason() {
    insta::assert_snapshot!(workspace(PLAN).rep("plan next"), @r#"
    2.2.2  Square
      PLAN.md:13 · Phase 2: Filling
      why      priority high; of the open tasks before it 1 is less urgent and 1 waits
      part of  Fill in boxes @frist-aid Boxes are ticked with an x.
      after    "Phase 1: Reading"
      skills   @frist-aid, @first-aid
    [exit 0]
    "#);
}

#[test]
fn where_all_wait_each_says_why() {
    let plan =
        "- [x] T1 a\n  - [~] T2 b\n- [ ] c (depends on T1)\n- [ ] d (blocked by: the review)\n";
    insta::assert_snapshot!(workspace(plan).rep("plan next"), @r#"
    2 tasks are open, and every one waits.
      2e7d2c03  c
          waits for T1 (not complete)
      18ac3e73  d
          waits for "the review", which names no task and no section
    [exit 1]
    "#);
}

#[test]
fn where_nothing_is_open_the_answer_is_no() {
    insta::assert_snapshot!(workspace("- [x] a\n- [~] b\n- [R] c\n- [ ]? d\n").rep("plan next"), @"
    Nothing is open: 2 of 3 tasks done, 1 to review, 1 blocked, 1 for people.
    [exit 1]
    ");
    insta::assert_snapshot!(workspace("- [ ] a\n```\n- [ ] b\n").rep("plan next"), @"
    The tasks cannot be told: the fence of line 2 is not closed and hides a box.
    `rep plan check` shows where.
    [exit 1]
    ");
}

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let ws =
        workspace("- [ ] a @frist-aid (blocked by: T9)\n- [y] b\n# A\n- [ ] c\n# B\n- [ ] c\n");
    insta::assert_snapshot!(ws.rep("plan check"), @"
    warning[RS740]: there is no skill `frist-aid`
     --> PLAN.md:1:9
      |
    1 | - [ ] a @frist-aid (blocked by: T9)
      |         ^^^^^^^^^^
      |
      = help: Did you mean `first-aid`?

    error[RS737]: `T9` names no task and no section
     --> PLAN.md:1:33
      |
    1 | - [ ] a @frist-aid (blocked by: T9)
      |                                 ^^
      |
      = help: Name a task by its label, id or text, or a section by its title or phase.

    error[RS733]: nobody knows what the box `[y]` means
     --> PLAN.md:2:3
      |
    2 | - [y] b
      |   ^^^
      |
      = help: Use `[ ]` open, `[~]` blocked, `[x]` implemented, `[R]` reviewed, `[!]` failed, or `[ ]?` for people.

    4 tasks: 2 errors, 1 warning; 1 note not shown, see --verbose
    [exit 1]
    ");
}

#[test]
fn a_good_plan_is_ok_and_a_warning_is_no_error_unless_asked() {
    let ws = workspace("- [ ] a @first-aid\n");
    insta::assert_snapshot!(ws.rep("plan check"), @"
    ok: 1 task, nothing to complain about
    [exit 0]
    ");
    let ws = workspace("- [ ] a\n- [ ] a\n");
    assert_eq!(ws.rep("plan check").code, 0);
    assert_eq!(ws.rep("plan check --strict").code, 1);
}

#[test]
fn json_has_its_published_shape() {
    let ws = workspace(PLAN);
    let next = ws.json("--json plan next", "plan-next.json");
    assert_eq!((&next["choice"], &next["task"]["id"]), (&"task".into(), &"2.2.2".into()));
    let status = ws.json("--json plan status", "plan-status.json");
    assert_eq!((&status["next"], &status["progress"]["failed"]), (&"2.2.2".into(), &1.into()));
    assert_eq!(status["tasks"][10]["waits_for"][0], "waits for \"Phase 2: Filling\" (1 of 7 done)");
    let check = ws.json("--json plan check", "plan-check.json");
    assert_eq!((&check["errors"], &check["warnings"]), (&0.into(), &1.into()));
    let stuck = workspace("- [ ] a (blocked by: b)\n").json("--json plan next", "plan-next.json");
    assert_eq!(
        (&stuck["choice"], stuck["waiting"].as_array().map(Vec::len)),
        (&"stuck".into(), Some(1))
    );
}

#[test]
fn the_plan_of_a_project_is_found() {
    let ws = Workspace::new();
    insta::assert_snapshot!(ws.rep("plan next"), @"
    [stderr]
    error: there is no plan here
    hint: Looked for PLAN.md, plan.md, TASKS.md, tasks.md, specs/*/tasks.md and openspec/changes/*/tasks.md; name another file.
    [exit 2]
    ");
    ws.write("project/openspec/changes/archive/tasks.md", "- [ ] old\n");
    ws.write("project/openspec/changes/add/tasks.md", "## 1. Setup\n- [ ] 1.1 Make it\n");
    assert!(ws.rep("plan next").stdout.starts_with("1.1  Make it\n"));
    ws.write("project/specs/001-a/tasks.md", "- [ ] T001 One\n");
    assert!(ws.rep("plan next").stdout.starts_with("T001  One\n"));
    ws.write("project/specs/002-b/tasks.md", "- [ ] T001 Two\n");
    insta::assert_snapshot!(ws.rep("plan next"), @"
    [stderr]
    error: there are 2 plans in specs
    hint: Name one: specs/001-a/tasks.md, specs/002-b/tasks.md
    [exit 2]
    ");
    ws.write("project/tasks.md", "- [ ] T9 Three\n");
    assert!(ws.rep("plan next").stdout.starts_with("T9  Three\n"));
    assert!(ws.rep("plan next specs/002-b/tasks.md").stdout.starts_with("T001  Two\n"));
}

#[test]
fn bad_files_get_one_clear_message() {
    let ws = Workspace::new();
    ws.write("project/bytes.md", b"- [ ] a\xff\n");
    ws.write("project/large.md", "- [ ] a\n".repeat(200_000));
    insta::assert_snapshot!(ws.rep("plan check bytes.md"), @"
    error[RS004]: the plan is not UTF-8: byte 7 is wrong
    --> bytes.md
     = help: Save it as UTF-8.

    0 tasks: 1 error
    [exit 1]
    ");
    insta::assert_snapshot!(ws.rep("plan next large.md"), @"
    [stderr]
    error: large.md cannot be read: the file has 1600000 bytes; the limit is 1048576
    [exit 3]
    ");
    insta::assert_snapshot!(ws.rep("plan next gone.md"), @"
    [stderr]
    error: there is no `gone.md`
    hint: Name a Markdown file with tasks such as `- [ ] what to do`.
    [exit 2]
    ");
    insta::assert_snapshot!(ws.rep("plan next ."), @"
    [stderr]
    error: `.` is a folder
    hint: Name the file of the plan in it.
    [exit 2]
    ");
}

#[test]
fn escapes_of_a_stranger_do_not_reach_the_terminal() {
    let ws = workspace(
        "# a\u{1b}[2J\n- [ ] b\u{1b}[2Jc @x\n  - d\u{1b}[2J\n- [y] e (blocked by: \u{1b}[2J)\n",
    );
    for command in ["plan next", "plan status", "plan check"] {
        let ran = ws.rep(command);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{command}");
    }
}
