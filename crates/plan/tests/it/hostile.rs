//! Files by strangers: whatever they hold, reading ends, soon, with an answer.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use proptest::prelude::*;
use repertoire_plan::document::{
    TaskMark, append_note, check_plan, mark_task, parse_plan_bytes, select_task,
};

use super::plan;

/// A plan with a bit of everything.
const SAMPLE: &str = "\u{feff}---\ntitle: x\n---\n# Plan\r\n\r\n## Phase 1: A (priority: high)\r\nSkills: pdf\r\n- [ ] T001 [P] [US1] Do `@x` it @pdf (P1)\n  more text (spec §3) [s](a.md)\n  - Depends on: T002, \"Tést it\"\n\t- [x] **1.1** nested\n```rust\n- [ ] no\n```\n<!-- - [ ] no\n-->\n## Phase 2 [blocked by Phase 1]\n1. [~] Tést it — note: ü\n* [ ]? look\n+ [y] what\n> - [ ] quoted\n\nLegend\n------\n- [R] no\n";

/// Everything that can be asked of a plan.
fn use_all(bytes: &[u8]) {
    let plan = parse_plan_bytes(bytes, Utf8Path::new("PLAN.md"));
    let found = check_plan(&plan, &|_| false, &|_| false);
    let text = plan.source().text().to_owned();
    for found in &found {
        assert!(found.span.is_none_or(|span| text.get(span.range()).is_some()), "{found:?}");
    }
    select_task(&plan);
    for task in plan.tasks.iter().take(3) {
        plan.blocking_reasons(&task.id);
        let edited = mark_task(&text, &task.id, TaskMark::Failed).expect("the task is there");
        assert!(super::differ_in_one_box(&text, &edited), "{text:?}\n{edited:?}");
        let _ = append_note(&text, &task.id, "failed: why");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mutated_plans_are_read(
        edits in prop::collection::vec((0.0f64..1.0, 0usize..12, prop::sample::select(vec![
            "", "[", "]", "(", ")", "`", "```", "~~~", "<!--", "-->", "\n", "\r", "\t", "- ", "[ ]", "@", "§", "#",
            "blocked by: ", "depends on ", "T001", "**", "é", "\u{202e}", "\0", "    ", ":", "—", "P0", "!high",
        ])), 1..12)
    ) {
        let mut text = SAMPLE.to_owned();
        for (place, length, put) in edits {
            let mut start = (place * text.len() as f64) as usize;
            while !text.is_char_boundary(start) { start -= 1; }
            let mut end = (start + length).min(text.len());
            while !text.is_char_boundary(end) { end -= 1; }
            text.replace_range(start..end.max(start), put);
        }
        use_all(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use_all(&bytes);
    }

    #[test]
    fn any_text_behind_a_box_is_read(text in "\\PC{0,80}") {
        use_all(format!("- [ ] {text}\n- [x] {text}\n  - {text}\n## {text}\n").as_bytes());
    }
}

#[test]
fn the_sample_has_a_bit_of_everything() {
    let plan = plan(SAMPLE);
    assert_eq!(plan.tasks.len(), 5);
    assert!(plan.sections.len() == 4 && plan.fallback.is_none());
    assert_eq!((plan.tasks[0].spec_refs.len(), plan.tasks[0].blocked_by.len()), (2, 2));
}

#[test]
fn a_large_hostile_plan_takes_no_time() {
    let lines = [
        "- [ ] a (depends on T001, T002) @x\n",
        "- [ ] a (blocked by: \"a\")\n",
        "- [ ] `a `` ``` (((([[[[ ]( <!-- @ @ @ @\n",
        "                                        - [ ] deep\n",
        "- [ ] (p1) (p1) (p1) (p1) (p1) (p1) (note: x)\n",
        "- [ ] a blocked by: a, a, a, a, a, a, a, a, a, a, a, “a, “a\n",
        "# a (blocked by: a)\n- [ ] a\n",
        "skills: a b c d e f\n- [ ] T001-T900 x (depends on T001-T900)\n",
        "- - - - - - - - - - - - [ ] a\n",
        "> <!-- ``` - [ ]\n",
        "  [ ] - a b: c @ § see a.md and b.md\n",
        "- [ ] a\n  b see §§§ see\n",
        "```\n- [ ] a\n````\n",
        "\n",
    ];
    for line in lines {
        let text = line.repeat(1_000_000 / line.len());
        let start = Instant::now();
        let read = plan(&text);
        check_plan(&read, &|_| false, &|_| false);
        select_task(&read);
        assert!(start.elapsed() < Duration::from_secs(10), "{line:?}: {:?}", start.elapsed());
    }
    let wide: String =
        ["(p1) ", "[](", "` `` ", "@a ", "blocked by: a, ", "§ ", "!high ", "- note: "]
            .iter()
            .map(|piece| {
                format!(
                    "- [ ] {}\n",
                    format!("{}\n  ", piece.repeat(15_000 / piece.len())).repeat(20)
                )
            })
            .collect();
    let start = Instant::now();
    plan(&wide);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
