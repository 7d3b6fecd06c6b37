//! What is read from a plan.

use camino::Utf8Path;
use repertoire_plan::document::{
    BlockerTarget, PlanFormat, PlanTask, TaskPriority, parse_plan, parse_plan_bytes,
};

use super::{plan, shown};

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(shown(&plan(text)), expect, "{text}");
}

/// The only task of a plan.
#[track_caller]
fn only(line: &str) -> PlanTask {
    let mut tasks = plan(line).tasks;
    assert_eq!(tasks.len(), 1, "{line}");
    tasks.remove(0)
}

#[test]
fn every_mark_and_every_bullet_is_read() {
    check(
        "- [ ] a\n* [~] b\n+ [x] c\n1. [X] d\n2) [R] e\n- [r] f\n- [ ]? g\n- [!] h\n",
        "[ ] a\n[~] b\n[x] c\n[x] d\n[R] e\n[R] f\n[ ]? g\n[!] h",
    );
}

#[test]
fn a_star_behind_a_box_makes_its_task_the_least_urgent() {
    let task = only("- [ ]* 2.2 Write tests\n");
    assert_eq!((task.text.as_str(), task.id.as_str()), ("Write tests", "2.2"));
    assert_eq!(task.priority, TaskPriority::Low);
}

#[test]
fn bytes_that_editors_leave_behind_do_not_matter() {
    check("\u{feff}- [ ] a\r\n- [x] b  \r\n\t- [ ] c\t\r\n- [ ] d", "[ ] a\n[x] b\n[ ] c\n[ ] d");
}

#[test]
fn what_is_no_task_is_left_alone() {
    check(
        "- [ ] a\n```\n- [ ] b\n```\n~~~~\n- [ ] c\n~~~\n- [ ] d\n~~~~\n- [ ] e\n",
        "[ ] a\n[ ] e",
    );
    check("<!-- - [ ] a -->\n<!--\n- [ ] b\n-->\n- [ ] c <!-- later -->\n", "[ ] c");
    check("> - [ ] quoted\n\n- [ ] a\n- `[ ]` pending\n- [x](link)\n- [1] note\n", "[ ] a");
    check("text - [ ] no\n\n    - [ ] code\n\n-[ ] no\n- [ ]no\n- [ ] yes\n", "[ ] yes");
    check("---\ntitle: x\n---\n- [ ] a\n", "[ ] a");
}

#[test]
fn sections_for_people_hold_no_tasks() {
    let text = "\
# Checklist of the release
- [ ] a
## Verification Checklist
- [ ] no
### Deeper
- [ ] no
## Manual QA
- [ ] no
## 7. Manual QA of it
- [ ] no
## Legend
- [x] done
## Work
- [ ] b
Verification
------------
- [ ] no
";
    let plan = plan(text);
    assert_eq!(shown(&plan), "[ ] a\n[ ] b");
    assert_eq!(plan.sections.iter().map(|section| section.ignored_boxes).sum::<usize>(), 6);
    assert_eq!(plan.title.as_deref(), Some("Checklist of the release"));
}

#[test]
fn a_fence_within_an_item_ends_with_the_item() {
    check("- [ ] a\n  ```\n  - [ ] code\n- [ ] b\n", "[ ] a\n[ ] b");
    check("- [ ] a\n\n  ```\n  - [ ] code\n  ```\n\n  - [ ] b\n", "[ ] a\n[ ] b");
    check("1. [ ] a\n   ````md\n   ```\n   - [ ] code\n   ````\n2. [ ] b\n", "[ ] a\n[ ] b");
}

#[test]
fn a_text_goes_on_in_the_next_line() {
    let text =
        "- [ ] Read the plan and\n      keep every byte (P1)\n      blocked by: T9\n  - a detail\n";
    let task = only(text);
    assert_eq!(task.text, "Read the plan and keep every byte");
    assert_eq!((task.priority, task.blocked_by.len()), (TaskPriority::High, 1));
    assert_eq!(task.details, "    blocked by: T9\n- a detail");
}

#[test]
fn a_text_goes_on_at_the_margin_until_a_blank_line() {
    let text = "- [ ] Add a table (one,\ntwo) and more\n- [ ] b\n**Checkpoint**: ready\n\nprose\n";
    check(text, "[ ] Add a table (one, two) and more\n[ ] b");
    check("- [ ] a\n# A\n- [ ] b\n---\n- [ ] c\n```\n```\n", "[ ] a\n[ ] b\n[ ] c");
}

#[test]
fn labels_are_cut_off() {
    let of = |line: &str| {
        let task = only(&format!("- [ ] {line}\n"));
        (task.label.unwrap_or_default(), task.text)
    };
    let check =
        |line: &str, label: &str, text: &str| assert_eq!(of(line), (label.into(), text.into()));
    check("T001 Make it", "T001", "Make it");
    check("T001: Make it", "T001", "Make it");
    check("**T001** Make it", "T001", "Make it");
    check("**Task 1.1**: Make it", "Task 1.1", "Make it");
    check("**Task 2:** Make it", "Task 2", "Make it");
    check("T-12 Make it", "T-12", "Make it");
    check("1.2 Make it", "1.2", "Make it");
    check("1. Make it", "1", "Make it");
    check("1.2.3. Make it", "1.2.3", "Make it");
    check("Task 3 - Make it", "Task 3", "Make it");
    check("AUTH-7: Make it", "AUTH-7", "Make it");
    check("**1.1 Make** it", "1.1", "**Make** it");
    check("3 tests fail", "", "3 tests fail");
    check("UTF-8 only", "", "UTF-8 only");
    check("Task force", "", "Task force");
    check("T1000000 is a number", "", "T1000000 is a number");
    check("2026-01-01 is a day", "", "2026-01-01 is a day");
}

#[test]
fn priorities_are_read_and_inherited() {
    let of = |line: &str| only(&format!("- [ ] {line}\n")).priority;
    for line in [
        "P0 a",
        "P0: a",
        "[P0] a",
        "a (P0)",
        "a [p0]",
        "a !critical",
        "a (priority: critical)",
        "a, priority: P0",
    ] {
        assert_eq!(of(line), TaskPriority::Critical, "{line}");
        assert_eq!(only(&format!("- [ ] {line}\n")).text, "a", "{line}");
    }
    for line in
        ["a", "[P] a", "[US1] a", "Rename P1 to P0", "a! high", "P0wer", "`!high` a", "a (P9)"]
    {
        assert_eq!(of(line), TaskPriority::Medium, "{line}");
    }
    let plan = plan(
        "## Soon (priority: high)\n- [ ] a\n- [ ] b (P3)\n  - [ ] c\n## Later\npriority: low\n- [ ] d\n",
    );
    let found: Vec<TaskPriority> = plan.tasks.iter().map(|task| task.priority).collect();
    assert_eq!(
        found,
        [TaskPriority::High, TaskPriority::Low, TaskPriority::Low, TaskPriority::Low]
    );
    assert_eq!(plan.sections[0].title, "Soon");
}

#[test]
fn hints_are_names_of_skills_and_nothing_else() {
    let of = |line: &str| only(&format!("- [ ] {line}\n")).hints;
    assert_eq!(of("Fill it @pdf-forms, then (@ocr) and @pdf-forms"), ["pdf-forms", "ocr"]);
    assert_eq!(of("ask a@b.c or @scope/package or @file.md or @Upper or @a--b or @-a"), [""; 0]);
    assert_eq!(of("`@code` [@link](x) <a@b.c> https://x.y/@z @x@y"), [""; 0]);
    assert_eq!(of("@first. @second: *@third*"), ["first", "second", "third"]);
    assert_eq!(of(&format!("@{}", "a".repeat(65))), [""; 0]);
    let plan = plan(
        "## A\nSkills: sql, @pdf\n- [ ] a @pdf\n  - skills: `ocr`\n  - [ ] b\n### B\n- [ ] c\n## C\n- [ ] d\n",
    );
    let found: Vec<String> = plan.tasks.iter().map(|task| task.hints.join(" ")).collect();
    assert_eq!(found, ["pdf ocr sql", "pdf ocr sql", "sql pdf", ""]);
}

#[test]
fn blockers_are_read_wherever_they_stand() {
    let before =
        "- [ ] T001 One\n- [ ] 1.1 Two\n- [ ] Other text, longer\n## Phase 1: Base\n- [ ] x\n";
    let of = |line: &str| {
        let plan = plan(&format!("{before}## Rest\n- [ ] {line}\n"));
        let task = plan.tasks.last().unwrap();
        let on = task.blocked_by.iter().map(|blocker| match &blocker.on {
            BlockerTarget::Task(id) => plan.task(id).unwrap().text.clone(),
            BlockerTarget::Section(at) => plan.sections[*at].title.clone(),
            BlockerTarget::Nothing => format!("?{}", blocker.text),
        });
        (task.text.clone(), on.collect::<Vec<_>>().join(" | "))
    };
    #[rustfmt::skip]
    let table = [
        ("a (blocked by: T001, \"other text, longer\")", "One | Other text, longer"),
        ("a (blocked by t001)", "One"),
        ("a [depends on 1.1]", "Two"),
        ("a blocked-by: T001", "One"),
        ("a, depends on T001 and 1.1", "One | Two"),
        ("a (depends on Phase 1)", "Phase 1: Base"),
        ("a (blocked by phase-1)", "Phase 1: Base"),
        ("a (blocked by: base)", "Phase 1: Base"),
        ("a (blocked by: 1)", "Phase 1: Base"),
        ("a (blocked by: other text)", "Other text, longer"),
        ("a (blocked by: T999)", "?T999"),
        ("a (blocked by: none)", ""),
        ("a\n  - Depends on: T001", "One"),
        ("a\n  - **Blocked by**: T001, 1.1", "One | Two"),
    ];
    for (line, on) in table {
        assert_eq!(of(line), ("a".to_owned(), on.to_owned()), "{line}");
    }
    assert_eq!(of("It depends on the weather").1, "");
    assert_eq!(of("`blocked by: T001` is kept").1, "");
    let ranges = plan("- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c (depends on T001-T002)\n");
    assert_eq!(ranges.tasks[2].blocked_by.len(), 2);
}

#[test]
fn a_heading_can_wait() {
    for heading in [
        "Phase 2: API (blocked by: Phase 1)",
        "Phase 2: API [blocked by Phase 1]",
        "Phase 2: API blocked-by: 1",
    ] {
        let plan = plan(&format!("## Phase 1\n- [ ] a\n## {heading}\n- [ ] b\n"));
        let section = &plan.sections[1];
        assert_eq!((section.title.as_str(), section.phase), ("Phase 2: API", Some(2)), "{heading}");
        assert_eq!(section.blocked_by[0].on, BlockerTarget::Section(0), "{heading}");
    }
}

#[test]
fn notes_behind_a_task_are_no_part_of_it() {
    for line in [
        "a (note: later)",
        "a — failed: no network",
        "a <!-- x -->",
        "a (P1) (note: x) (blocked by: none)",
    ] {
        assert_eq!(only(&format!("- [ ] {line}\n")).text, "a", "{line}");
    }
    assert_eq!(only("- [ ] Print (note: x) twice\n").text, "Print (note: x) twice");
    assert_eq!(only("- [ ] a - b\n").text, "a - b");
}

#[test]
fn references_to_specifications_are_kept() {
    let task = only(
        "- [ ] a (spec §3.2). See specs/foo.md#bar [spec](b.md)\n  - _Requirements: 1.2, 2.1_\n  - Spec: specs/c.md\n",
    );
    assert_eq!(
        task.spec_refs,
        ["spec §3.2", "specs/foo.md#bar", "b.md", "Requirements: 1.2, 2.1", "specs/c.md"]
    );
}

#[test]
fn open_spec_and_spec_kit_are_known_by_their_habits() {
    let at = |text: &str, path: &str| parse_plan(text, Utf8Path::new(path));
    let open =
        at("## 1. Setup\n- [ ] 1.1 Make it\n- [x] 1.2 Test it\n", "openspec/changes/a/tasks.md");
    assert_eq!((open.format, open.tasks[1].id.as_str()), (PlanFormat::OpenSpec, "1.2"));
    let kit = at(
        "## Phase 1: Setup\n- [ ] T001 Make src/x.rs\n**Checkpoint**: ready\n## Phase 3: User Story 1 - Log in (Priority: P1) MVP\n- [ ] T002 [P] [US1] Add src/y.rs\n",
        "specs/001-x/tasks.md",
    );
    assert_eq!(kit.format, PlanFormat::SpecKit);
    let task = &kit.tasks[1];
    assert!(task.parallel && task.story.as_deref() == Some("US1"));
    assert_eq!((task.text.as_str(), task.priority), ("Add src/y.rs", TaskPriority::Medium));
    assert_eq!(at("- [ ] a\n", "TASKS.md").format, PlanFormat::Tasks);
    assert_eq!(at("- [ ] a\n", "PLAN.md").format, PlanFormat::Loop);
}

#[test]
fn a_plan_that_cannot_be_told_says_why() {
    let why = |text: &str| plan(text).fallback.unwrap_or_default();
    assert_eq!(why("# Nothing\n"), "the plan has no task");
    assert_eq!(why("- [ ] a\n```\n- [ ] b\n"), "the fence of line 2 is not closed and hides a box");
    assert_eq!(
        why("- [ ] a\n<!--\n- [ ] b\n- [ ] c\n"),
        "the comment of line 2 is not closed and hides 2 boxes"
    );
    assert_eq!(why("- [ ] a\n```\nb\n"), "");
    assert_eq!(why(&"- [ ] a\n".repeat(2001)), "the plan has more than 2000 tasks");
    assert_eq!(
        why(&format!("- [ ] {}\n", "a".repeat(17_000))),
        "line 1 has 17006 bytes; the limit is 16384"
    );
    assert!(why(&"a\n".repeat(600_000)).contains("the limit is 1048576"));
    let bytes = parse_plan_bytes(b"- [ ] a\xff\n", Utf8Path::new("PLAN.md"));
    assert_eq!(bytes.fallback.as_deref(), Some("the plan is not UTF-8: byte 7 is wrong"));
    assert_eq!(bytes.diagnostics[0].code.id, "RS004");
}
