//! Changes to plan files, and names that stay.

use proptest::prelude::*;
use repertoire_plan::document::{
    PlanDocument, PlanEditError, PlanTask, TaskId, TaskMark, append_note, mark_task,
};

use super::plan;

/// Everything that is told of the tasks, but the mark of one.
fn but_mark(plan: &PlanDocument, id: &TaskId) -> Vec<serde_json::Value> {
    let value = |task: &PlanTask| {
        let mut value = serde_json::to_value(task).expect("a task is plain data");
        if &task.id == id {
            value["mark"] = "any".into();
        }
        value
    };
    plan.tasks.iter().map(value).collect()
}

fn ids(plan: &PlanDocument) -> Vec<TaskId> {
    plan.tasks.iter().map(|task| task.id.clone()).collect()
}

#[test]
fn a_box_is_ticked_and_every_other_byte_stays() {
    let text = "\u{feff}# A\r\n\r\n- [ ] one  \r\n\t* [X]\ttwo\r\n1. [ ]? three";
    let id = |at: usize| plan(text).tasks[at].id.clone();
    let set = |at: usize, to: TaskMark| mark_task(text, &id(at), to).unwrap();
    assert_eq!(set(0, TaskMark::Implemented), text.replace("[ ] one", "[x] one"));
    assert_eq!(set(1, TaskMark::Implemented), text);
    assert_eq!(set(1, TaskMark::Reviewed), text.replace("[X]", "[R]"));
    assert_eq!(set(2, TaskMark::Open), text.replace("[ ]? three", "[ ] three"));
    assert_eq!(set(0, TaskMark::ManualQa), text.replace("[ ] one", "[ ]? one"));
    let unknown = TaskId::new("zz");
    assert_eq!(
        mark_task(text, &unknown, TaskMark::Open),
        Err(PlanEditError::UnknownTask { id: unknown.clone() })
    );
    assert_eq!(
        append_note("- [ ] a\n", &plan("- [ ] a\n").tasks[0].id, " \n"),
        Err(PlanEditError::EmptyNote)
    );
}

#[test]
fn a_box_that_nobody_understands_can_be_set() {
    let id = plan("- [y] a\n").tasks[0].id.clone();
    assert_eq!(mark_task("- [y] a\n", &id, TaskMark::Blocked).unwrap(), "- [~] a\n");
}

#[test]
fn a_note_is_nested_as_the_file_does_it() {
    let note = |text: &str, expect: &str| {
        let id = plan(text).tasks[0].id.clone();
        assert_eq!(append_note(text, &id, "failed: no\nnetwork").unwrap(), expect);
    };
    note("- [ ] a\n- [ ] b\n", "- [ ] a\n  - failed: no network\n- [ ] b\n");
    note("- [ ] a", "- [ ] a\n  - failed: no network");
    note("- [ ] a\r\n  more\r\n", "- [ ] a\r\n  more\r\n  - failed: no network\r\n");
    note("1. [ ] a\n2. [ ] b\n", "1. [ ] a\n   - failed: no network\n2. [ ] b\n");
    note(
        "- [ ] a\n    - x\n\n- [ ] b\n",
        "- [ ] a\n    - x\n    - failed: no network\n\n- [ ] b\n",
    );
    note("- [ ] a\n\t- [ ] b\n", "- [ ] a\n\t- failed: no network\n\t- [ ] b\n");
    // Behind code that its item closes, a note would be code.
    note(
        "- [ ] a\n  ```\n  x\n- [ ] b\n",
        "- [ ] a\n  - failed: no network\n  ```\n  x\n- [ ] b\n",
    );
}

#[test]
fn a_note_becomes_no_task_and_no_blocker() {
    let text = "- [ ] a\n";
    let id = plan(text).tasks[0].id.clone();
    for note in [
        "[ ] b",
        "blocked by: x",
        "skills: y",
        "- [x] c",
        "<!--",
        "```",
        "# d",
        "> e",
        "spec: x.md",
    ] {
        let edited = append_note(text, &id, note).unwrap();
        let after = plan(&edited);
        assert_eq!(after.tasks.len(), 1, "{edited}");
        assert!(after.tasks[0].details.contains(note), "{edited}");
        assert!(
            after.tasks[0].blocked_by.is_empty() && after.tasks[0].hints.is_empty(),
            "{edited}"
        );
        assert_eq!(after.sections.len() + after.diagnostics.len(), 0, "{edited}");
    }
    let long = append_note(text, &id, &"ø".repeat(5000)).unwrap();
    assert!(long.len() < 1100 && long.ends_with("…\n"));
}

/// Lines that plans are made of.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        6 => ("[ ]{0,5}", "[-*+]|1\\.", "[ xXR~!ry]", "[?]?[*]?", "[a-c]{1,3}( @[a-c]{1,3})?( \\(P[0-3]\\))?( \\(depends on T00[1-4]\\))?")
            .prop_map(|(indent, bullet, sign, qa, text)| format!("{indent}{bullet} [{sign}]{qa} {text}")),
        2 => ("T00[1-4]", "[a-c]{1,3}").prop_map(|(label, text)| format!("- [ ] {label} {text}")),
        1 => Just(String::new()),
        1 => "#{1,3} (Phase [1-3]|Manual QA|Work)( \\(blocked by: [1-3]\\))?",
        1 => Just("```".to_owned()),
        1 => Just("  ```".to_owned()),
        1 => Just("<!--".to_owned()),
        1 => Just("-->".to_owned()),
        1 => "[ ]{0,6}(- )?(skills|blocked by|priority): [a-c]{1,3}",
        1 => "[ ]{0,6}[a-z ]{1,10}",
        1 => Just("---".to_owned()),
    ];
    prop::collection::vec(line, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mark_changes_nothing_but_itself(lines in lines(), crlf: bool, ended: bool, which: usize, to in 0usize..6) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let mut text = lines.join(ending);
        if ended { text.push_str(ending); }
        let before = plan(&text);
        prop_assume!(!before.tasks.is_empty());
        let task = &before.tasks[which % before.tasks.len()];
        let to = TaskMark::ALL[to];
        let edited = mark_task(&text, &task.id, to).unwrap();
        let after = plan(&edited);
        prop_assert_eq!(but_mark(&before, &task.id), but_mark(&after, &task.id));
        prop_assert_eq!(after.task(&task.id).unwrap().mark, to);
        let sections = |plan: &PlanDocument| serde_json::to_value(&plan.sections).unwrap();
        prop_assert_eq!(sections(&before), sections(&after));
        prop_assert!(super::differ_in_one_box(&text, &edited));
    }

    #[test]
    fn a_note_changes_only_the_details_of_its_task(lines in lines(), which: usize) {
        let text = lines.join("\n");
        let before = plan(&text);
        prop_assume!(!before.tasks.is_empty());
        let id = before.tasks[which % before.tasks.len()].id.clone();
        if let Ok(edited) = append_note(&text, &id, "failed: it did not work") {
            let after = plan(&edited);
            prop_assert_eq!(ids(&before), ids(&after));
            for (old, new) in before.tasks.iter().zip(&after.tasks) {
                prop_assert_eq!((old.mark, &old.text, &old.hints), (new.mark, &new.text, &new.hints));
                prop_assert!(old.details == new.details || old.id == id);
            }
            prop_assert!(after.task(&id).unwrap().details.contains("- failed: it did not work"));
            prop_assert_eq!(edited.lines().count(), text.lines().count() + 1);
        }
    }

    #[test]
    fn names_stay_when_tasks_are_moved_ticked_and_joined_by_others(
        texts in prop::collection::btree_set("[a-d]{1,6}( [a-d]{1,4})?", 1..12),
        order: u64,
        marks in prop::collection::vec(0usize..6, 12),
    ) {
        let first: String = texts.iter().map(|text| format!("- [ ] {text}\n")).collect();
        let before = plan(&first);
        let mut moved: Vec<(usize, &String)> = texts.iter().enumerate().collect();
        moved.sort_by_key(|(at, _)| (*at as u64 + 7).wrapping_mul(order | 1));
        let mut second = "# New\n\n- [ ] zz a task above\n".to_owned();
        for (at, text) in &moved {
            let (symbol, blanks) = (TaskMark::ALL[marks[*at]].symbol(), " ".repeat(1 + at % 3));
            second.push_str(&format!("* {symbol}{blanks}{text} (note: {at}) @hint\n  - detail\n"));
        }
        let after = plan(&second);
        for task in &before.tasks {
            let found = after.task(&task.id);
            prop_assert_eq!(found.map(|found| found.text.replace(" @hint", "")), Some(task.text.clone()));
        }
    }
}
