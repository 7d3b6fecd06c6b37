//! Which task comes next, and why others wait.

use repertoire_plan::document::{TaskChoice, TaskId, TaskMark, select_task};

use super::plan;

/// What is chosen, in one line.
fn chosen(text: &str) -> String {
    let plan = plan(text);
    let text_of = |id: &TaskId| plan.task(id).map_or("?", |task| task.text.as_str());
    match select_task(&plan) {
        TaskChoice::Task(id) => text_of(&id).to_owned(),
        TaskChoice::Nothing => "nothing".to_owned(),
        TaskChoice::Stuck { waiting } => {
            let line = |(id, why): &(TaskId, String)| format!("{}: {why}", text_of(id));
            waiting.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn the_first_open_task_is_chosen() {
    assert_eq!(chosen("- [x] a\n- [~] b\n- [R] c\n- [ ]? d\n- [!] e\n- [ ] f\n- [ ] g\n"), "f");
}

#[test]
fn a_more_urgent_task_comes_first_and_file_order_decides_among_equals() {
    assert_eq!(chosen("- [ ] a\n- [ ] b (P3)\n- [ ] c (P1)\n- [ ] d (P1)\n"), "c");
    assert_eq!(chosen("- [ ] a (P3)\n- [ ] b\n"), "b");
    assert_eq!(chosen("- [ ] a (P2)\n- [ ] b\n"), "a");
}

#[test]
fn a_task_waits_until_what_it_names_is_implemented() {
    let with =
        |mark: &str| chosen(&format!("- [ ] b (P0, soon) (depends on T001)\n- {mark} T001 a\n"));
    assert_eq!(with("[ ]"), "a");
    assert_eq!(with("[x]"), "b (P0, soon)");
    assert_eq!(with("[R]"), "b (P0, soon)");
    assert_eq!(with("[~]"), "b (P0, soon): waits for T001 (blocked)");
    assert_eq!(with("[!]"), "b (P0, soon): waits for T001 (failed)");
    assert_eq!(with("[ ]?"), "b (P0, soon): waits for T001 (manual QA)");
    assert_eq!(with("[x]?"), "b (P0, soon)");
}

#[test]
fn a_phase_waits_for_all_tasks_of_another_but_not_for_people() {
    let phases = |first: &str| {
        chosen(&format!(
            "## Phase 1\n{first}- [ ]? look\n### Part\n- [~] deep\n## Phase 2 (blocked by: Phase 1)\n### Below\n- [ ] b (P0)\n"
        ))
    };
    assert_eq!(phases("- [ ] a\n"), "a");
    assert_eq!(phases("- [x] a\n"), "b: waits for \"Phase 1\" (1 of 2 done)");
    assert_eq!(chosen("## Phase 1\n- [ ]? look\n## Phase 2 (blocked by: Phase 1)\n- [ ] b\n"), "b");
}

#[test]
fn a_blocker_that_names_nothing_is_waited_for() {
    assert_eq!(
        chosen("- [ ] a (blocked by: the review)\n"),
        "a: waits for \"the review\", which names no task and no section"
    );
    assert_eq!(chosen("- [ ] a (blocked by: the review)\n- [ ] b\n"), "b");
}

#[test]
fn a_task_comes_after_the_tasks_within_it() {
    assert_eq!(chosen("- [ ] a (P0)\n  - [x] b\n  - [ ] c\n"), "c");
    assert_eq!(chosen("- [ ] a\n  - [x] b\n  - [ ]? c\n"), "a");
    assert_eq!(
        chosen("- [ ] 1. a\n  - [~] 1.1 b\n"),
        "a: waits for 1.1 (blocked), which is within it"
    );
    assert_eq!(
        chosen("- [x] T1 a\n  - [~] b\n- [ ] c (depends on T1)\n"),
        "c: waits for T1 (not complete)"
    );
}

#[test]
fn a_task_waits_for_what_the_task_around_it_waits_for() {
    let text = "- [~] T1 x\n- [ ] a (depends on T1)\n  - [ ] b\n";
    assert!(chosen(text).contains("b: waits for T1 (blocked)"), "{}", chosen(text));
}

#[test]
fn nothing_is_chosen_where_nothing_is_open() {
    assert_eq!(chosen("- [x] a\n- [~] b\n"), "nothing");
    assert_eq!(chosen("text\n"), "nothing");
    assert_eq!(chosen("- [ ]\n"), ": says nothing");
}

#[test]
fn those_who_wait_for_each_other_are_stuck() {
    let text = "- [ ] T1 a (depends on T2)\n- [ ] T2 b (depends on T1)\n";
    assert_eq!(chosen(text), "a: waits for T2 (open)\nb: waits for T1 (open)");
}

#[test]
fn progress_counts_every_mark() {
    let plan = plan("- [ ] a\n- [~] b\n- [x] c\n- [R] d\n- [ ]? e\n- [!] f\n- [y] g\n");
    let progress = plan.count_marks();
    assert_eq!((progress.open, progress.blocked, progress.implemented), (1, 2, 1));
    assert_eq!((progress.reviewed, progress.manual_qa, progress.failed), (1, 1, 1));
    assert_eq!((progress.done_count(), progress.task_count(), progress.is_done()), (2, 6, false));
    assert_eq!(plan.review_backlog().next().map(|task| task.mark), Some(TaskMark::Implemented));
    assert!(plan.tasks.iter().all(|task| plan.blocking_reasons(&task.id).is_empty()));
}
