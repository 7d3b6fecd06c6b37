//! One case that fires and one that does not for every rule, as an author sees them: `code line:column message`.

mod fields;

use repertoire_text::Source;

use crate::file::{InjectedText, LoadedWorkflow, WorkflowContext, read_source};

/// Reads a workflow.
fn read(yaml: &str) -> LoadedWorkflow {
    let siblings = ["explore".to_owned(), "verify".to_owned()];
    let read = |wanted: InjectedText<'_>| match wanted {
        InjectedText::Resource("there.md") | InjectedText::Convention("there") => {
            Ok("text".to_owned())
        }
        InjectedText::Resource("large.md") => Ok("x".repeat(3 << 20)),
        InjectedText::Resource(_) | InjectedText::Convention(_) => {
            Err("there is no such file".to_owned())
        }
    };
    let around = WorkflowContext {
        name: "test",
        description: "For tests.",
        siblings: ("test", &siblings),
        read: &read,
    };
    read_source(Source::new("workflow.yaml", yaml.to_owned()), &around)
}

/// Reads a workflow and compares everything that is found.
#[track_caller]
fn check(yaml: &str, expect: &[&str]) {
    let loaded = read(yaml);
    let found: Vec<String> = loaded
        .diagnostics
        .iter()
        .map(|found| {
            let at = found.position.expect("every finding has its place");
            format!("{} {}:{} {}", found.code.id, at.line, at.column, found.message)
        })
        .collect();
    assert_eq!(found, expect);
    let is_good = !loaded.diagnostics.iter().any(repertoire_text::Diagnostic::is_error);
    assert_eq!(loaded.checked.is_some(), is_good);
}

/// A workflow of one step that ends it, with something in front.
fn with_head(head: &str) -> String {
    format!("{head}\nsteps:\n  - {{ id: one, title: One, actions: [Do it], next: end }}\n")
}

/// A workflow of one step, with something in it.
fn with_step(fields: &str) -> String {
    format!("steps:\n  - {{ id: one, title: One, actions: [Do it], next: end, {fields} }}\n")
}

/// A workflow of one step whose only action this is.
fn with_action(head: &str, action: &str) -> String {
    format!(
        "{head}steps:\n  - id: one\n    title: One\n    next: end\n    actions:\n      - {action}\n"
    )
}

/// A workflow with a gate.
fn with_gate(fields: &str, next: &str) -> String {
    format!(
        "steps:
  - {{ id: work, title: Work, actions: [Do it], next: review }}
  - {{ id: review, title: Review, actions: [Look], next: gate }}
  - id: gate
    title: Gate
    decide: {{ gate: {{ name: G, {fields} }} }}
    next: {next}
  - {{ id: ship, title: Ship, actions: [Ship], next: end }}
"
    )
}

const PILLARS: &str = "reviews: [review], banner: b, stop: s, reverify: fresh";
const GOOD: &str = "{ ok: ship, fail: work }";

#[test]
fn a_check_whose_command_uses_what_the_worker_reports_is_an_error() {
    let with_check = |step: &str, check: &str| {
        let declared =
            format!("parameters: {{ test: {{}} }}\nchecks: {{ tests: {{ {check} }} }}\nsteps:");
        with_gate(&format!("{PILLARS}, checks: [tests]"), GOOD)
            .replace("steps:", &declared)
            .replace(&format!("title: {step},"), &format!("title: {step}, sets: [test],"))
            .replace(&format!("title: {step}\n"), &format!("title: {step}\n    sets: [test]\n"))
    };
    let sets = |column: u32, step: &str| {
        format!(
            "RS712 2:{column} check `tests` uses `test`, which step `{step}` sets: who does the work cannot decide what proves it; let the run be started with the value"
        )
    };
    let command = "command: '{{ test }}'";
    check(&with_check("Gate", command), &[&sets(29, "gate")]);
    check(&with_check("Work", "command: 'test -e a-{{ test }}'"), &[&sets(29, "work")]);
    check(&with_check("Work", "file: '{{ test }}'"), &[&sets(26, "work")]);
    check(&with_check("None", command), &[]);
    let reported = "which the agent that does the work reports: who does the work cannot decide what proves it; let the run be started with the value";
    check(
        &with_check("None", "command: 'echo {{ state.outputs.work }}'")
            .replace("title: Work", "title: Work, output: Something"),
        &[&format!("RS712 2:29 check `tests` uses `state.outputs.work`, {reported}")],
    );
    check(&with_check("None", "command: 'echo {{ state.run }}'"), &[]);
    check(
        &with_check("None", "command: 'echo `echo {{ test }}`'"),
        &[
            "RS714 2:29 a value cannot stand after a backtick in a command, because it cannot be quoted there; make it a word of its own",
        ],
    );
}

#[test]
fn a_good_workflow_has_no_findings() {
    check(&with_head(""), &[]);
    check(&with_gate(PILLARS, GOOD), &[]);
}

#[test]
fn formats_are_known() {
    check(&with_head("format: 1"), &[]);
    check(&with_head("format: 2"), &["RS701 1:9 format 2 is not known; 1 is"]);
}

#[test]
fn names_can_be_names() {
    let step =
        |id: &str| format!("steps:\n  - {{ id: {id}, title: T, actions: [Do], next: end }}\n");
    check(&step("a-b_1"), &[]);
    check(&step("end"), &["RS702 2:11 `end` cannot be the name of a step"]);
    check(&step("A"), &["RS702 2:11 `A` cannot be the name of a step"]);
    check(&step("1a"), &["RS702 2:11 `1a` cannot be the name of a step"]);
    check(&step("\"a\\nb\""), &["RS702 2:11 `a\nb` cannot be the name of a step"]);
    check(&with_head("parameters: { a_b: {} }"), &[]);
    check(
        &with_head("parameters: { a-b: {}, state: {}, item: {}, E: {} }"),
        &[
            "RS702 1:15 `a-b` cannot be the name of a parameter: it stands in expressions, so it has no `-`",
            "RS702 1:24 `state` cannot be the name of a parameter: it means something else in texts",
            "RS702 1:35 `item` cannot be the name of a parameter: it means something else in texts",
            "RS702 1:45 `E` cannot be the name of a parameter",
        ],
    );
    check(&with_head("phases: { A: x }"), &["RS702 1:14 `A` cannot be the name of a phase"]);
    check(&with_head("roles: { A: x }"), &["RS702 1:13 `A` cannot be the name of a role"]);
    check(&with_head("checks: { A: {} }"), &["RS702 1:11 `A` cannot be the name of a check"]);
}

#[test]
fn default_is_an_edge_and_no_outcome() {
    let step = |fields: &str| {
        format!(
            "steps:\n  - {{ id: one, title: One, actions: [Do it], {fields} }}\n  - {{ id: two, title: Two, actions: [Do it], next: end }}\n"
        )
    };
    check(&step("next: { ok: two, default: end }"), &[]);
    check(
        &step("next: { default: two }"),
        &["RS702 2:46 `default` cannot be the only edge; write `next: STEP`"],
    );
    check(
        &step("next: { ok: two, default: end }, outcomes: { ok: '', default: '' }"),
        &["RS702 2:108 `default` takes what no other edge takes, and is no outcome"],
    );
    check(
        &step(
            "next: { ok: two, default: end }, decide: { cases: { when: [{ if: 'true', outcome: default }] } }",
        ),
        &["RS702 2:89 `default` takes what no other edge takes, and is no outcome"],
    );
    check(
        &step("next: { ok: two, default: end }, loop: { max: 2, at_limit: default }"),
        &["RS702 2:105 `default` takes what no other edge takes, and is no outcome"],
    );
    check(
        &step("next: { ok: two, 'A b': end }"),
        &["RS702 2:46 `A b` cannot be the name of an outcome"],
    );
}

#[test]
fn two_steps_have_two_names() {
    check(
        "steps:
  - { id: one, title: One, actions: [Do], next: two }
  - { id: two, title: Two, actions: [Do], next: end }
  - { id: two, title: Two, actions: [Do], next: end }
",
        &["RS705 3:11 no way leads to step `two`", "RS703 4:11 step `two` is there twice"],
    );
}

#[test]
fn edges_lead_to_steps() {
    check(
        "entry: on
steps:
  - { id: one, title: One, actions: [Do], next: { ok: tow, fail: end } , on_error: nowhere }
  - { id: two, title: Two, actions: [Do], next: thre }
  - { id: three, title: Three, actions: [Do], next: end }
",
        &[
            "RS704 1:8 there is no step `on`; is `one` meant?",
            "RS704 3:55 there is no step `tow`; is `two` meant?",
            "RS704 3:84 there is no step `nowhere`",
            "RS704 4:49 there is no step `thre`; is `three` meant?",
        ],
    );
}

#[test]
fn what_an_edge_to_nowhere_causes_is_not_said_as_well() {
    let gate = with_gate(PILLARS, "{ ok: shp, fail: wrok }");
    check(
        &gate,
        &[
            "RS704 7:17 there is no step `shp`; is `ship` meant?",
            "RS704 7:28 there is no step `wrok`; is `work` meant?",
        ],
    );
    let review = with_gate(PILLARS, GOOD).replace("next: gate", "next: gaet");
    check(&review, &["RS704 3:57 there is no step `gaet`; is `gate` meant?"]);
}

#[test]
fn every_step_is_reached() {
    let two = |next: &str| {
        format!(
            "steps:\n  - {{ id: one, title: One, actions: [Do], {next} }}\n  - {{ id: two, title: Two, actions: [Do], next: end }}\n"
        )
    };
    check(&two("next: two"), &[]);
    check(&two("next: end, on_error: two"), &[]);
    check(&two("next: end"), &["RS705 3:11 no way leads to step `two`"]);
    // An edge that no outcome takes is ignored.
    check(
        &two("next: { ok: end, fail: two }, outcomes: { ok: '' }"),
        &["RS709 2:66 step `one` never ends with `fail`", "RS705 3:11 no way leads to step `two`"],
    );
}

#[test]
fn every_workflow_ends() {
    check("steps: []", &["RS706 1:1 the workflow has no steps"]);
    check(
        "steps:\n  - { id: one, title: One, actions: [Do], loop: { max: 2 }, next: one }\n",
        &["RS706 1:1 no step ends the workflow"],
    );
    check(
        "steps:
  - { id: one, title: One, actions: [Do], next: { ok: end, other: two } }
  - { id: two, title: Two, actions: [Do], loop: { max: 2 }, next: two }
",
        &["RS707 3:11 from step `two` there is no way to the end"],
    );
}

#[test]
fn every_outcome_has_an_edge() {
    let step = |fields: &str| with_step(fields).replace("next: end, ", "");
    check(&step("outcomes: { ok: '', no: '' }, next: { ok: end, default: end }"), &[]);
    check(
        &step("outcomes: { ok: '', no: '' }, next: { ok: end }"),
        &["RS708 2:76 step `one` can end with `no`, and no edge takes that"],
    );
    check(
        &step("decide: { confidence: { until: high, max: 2 } }, next: end"),
        &["RS708 2:101 step `one` can end with `iterate`, and no edge takes that"],
    );
    check(
        &step("decide: { cases: { when: [{ if: 'true', outcome: skip }] } }, next: { ok: end }"),
        &["RS708 2:108 step `one` can end with `skip`, and no edge takes that"],
    );
    check(
        &with_gate(PILLARS, "ship"),
        &["RS708 7:11 step `gate` can end with `fail`, and no edge takes that"],
    );
}

#[test]
fn every_edge_has_an_outcome() {
    check(
        &with_gate(PILLARS, "{ ok: ship, fail: work, skip: ship }"),
        &["RS709 7:41 step `gate` never ends with `skip`"],
    );
    check(
        &with_gate(PILLARS, "{ ok: ship, fail: work, default: ship }"),
        &["RS709 7:44 step `gate` never ends with `default`"],
    );
}

/// A loop of two steps, of which the second has this.
fn looped(fields: &str) -> String {
    format!(
        "steps:
  - {{ id: one, title: One, actions: [Do], next: two }}
  - {{ id: two, title: Two, actions: [Do], {fields} }}
"
    )
}

#[test]
fn every_loop_has_a_bound() {
    check(&looped("loop: { max: 2 }, next: { ok: end, again: one }"), &[]);
    check(&looped("loop: { max: 2, at_limit: ok }, next: { ok: end, again: one }"), &[]);
    check(
        &looped("decide: { confidence: { until: low, max: 2 } }, next: { ok: end, iterate: one }"),
        &[],
    );
    check(
        &looped("next: { ok: end, again: one }"),
        &["RS710 2:49 the loop one → two → one has no bound"],
    );
    check(
        &looped("next: end, on_error: one"),
        &["RS710 2:49 the loop one → two → one has no bound"],
    );
    check(
        &looped("loop: { max: 2, at_limit: again }, next: { ok: end, again: one }"),
        &["RS710 2:49 the loop one → two → one has no bound"],
    );
    // A `default` edge counts as a way back like any other edge.
    check(
        &looped(
            "outcomes: { ok: '', again: '' }, loop: { max: 2, at_limit: again }, next: { ok: end, default: one }",
        ),
        &["RS710 2:49 the loop one → two → one has no bound"],
    );
    check(
        &looped(
            "decide: { confidence: { until: low, max: 2 } }, next: { iterate: end, default: one }",
        ),
        &["RS710 2:49 the loop one → two → one has no bound"],
    );
}

#[test]
fn a_gate_has_three_pillars() {
    check(
        &with_gate("reviews: [review]", GOOD),
        &[
            "RS711 6:15 gate `gate` lacks its banner (`banner`)",
            "RS711 6:15 gate `gate` lacks its re-verify mode (`reverify`)",
            "RS711 6:15 gate `gate` lacks its stop condition (`stop`)",
        ],
    );
    check(
        &with_gate("reviews: [review], banner: ' ', stop: s, reverify: targeted", GOOD),
        &["RS711 6:15 gate `gate` lacks its banner (`banner`)"],
    );
}

#[test]
fn a_gate_is_fed_by_a_review_and_has_no_way_round() {
    let pillars = |reviews: &str| PILLARS.replace("[review]", reviews);
    check(&with_gate(&pillars("[]"), GOOD), &["RS712 6:32 gate `gate` names no review"]);
    check(
        &with_gate(&pillars("[reviw]"), GOOD),
        &["RS712 6:42 there is no step `reviw` to review in; is `review` meant?"],
    );
    check(
        &with_gate(&pillars("[gate]"), GOOD),
        &["RS712 6:42 there is no step `gate` to review in"],
    );
    check(
        &with_gate(&pillars("[review, ship]"), GOOD),
        &["RS712 6:50 from review `ship` there is no way to gate `gate`"],
    );
    check(
        &with_gate(PILLARS, "{ ok: ship, fail: end }"),
        &[
            "RS712 6:15 gate `gate` ends the workflow when it fails; lead it to the step that repairs",
        ],
    );
    check(
        &with_gate(PILLARS, "{ ok: ship, fail: ship }"),
        &["RS712 7:29 from `ship` there is no way back to gate `gate`"],
    );
    check(
        &with_gate(PILLARS, "{ ok: ship, fail: work }\n    on_error: ship"),
        &["RS712 8:15 gate `gate` cannot have `on_error`: it would be a way round it"],
    );
    let skipping = |more: &str| {
        with_gate(PILLARS, GOOD).replace(
            "id: work, title: Work, actions: [Do it], next: review",
            &format!(
                "id: work, title: Work, actions: [Do it], next: {{ ok: review, skip: ship }}{more}"
            ),
        )
    };
    check(
        &skipping(""),
        &[
            "RS712 7:29 from `work`, where gate `gate` leads when it fails, `ship` is reached without passing it",
        ],
    );
    // An agent cannot influence what a condition decides.
    check(
        &skipping(", decide: { cases: { when: [{ if: 'state.iteration > 9', outcome: skip }] } }"),
        &[],
    );
    // Unless the condition uses a value that an agent reports on the way.
    let said =
        ", sets: [mode], decide: { cases: { when: [{ if: 'mode == \"x\"', outcome: skip }] } }";
    check(
        &format!("parameters: {{ mode: {{}} }}\n{}", skipping(said)),
        &[
            "RS712 8:29 from `work`, where gate `gate` leads when it fails, `ship` is reached without passing it",
        ],
    );
    check(
        &skipping("").replace("skip: ship", "skip: end"),
        &[
            "RS712 7:29 from `work`, where gate `gate` leads when it fails, the end is reached without passing it",
        ],
    );
    check(
        &with_gate(PILLARS, GOOD)
            .replace(
                "id: work, title: Work, actions: [Do it], next: review",
                "id: work, title: Work, actions: [Do it], next: gate",
            )
            .replace(
                "id: review, title: Review, actions: [Look], next: gate",
                "id: review, title: Review, actions: [Look], next: work, on_error: ship",
            )
            .replace("steps:", "entry: review\nsteps:"),
        &["RS712 7:42 from review `review`, `ship` is reached without passing gate `gate`"],
    );
    let twice = "steps:
  - { id: work, title: Work, actions: [Do it], next: gate }
  - id: gate
    title: Gate
    decide: { gate: { name: G, reviews: [work], banner: b, stop: s, reverify: fresh } }
    next: { ok: more, fail: work }
  - id: more
    title: Gate
    decide: { gate: { name: G, reviews: [work], banner: b, stop: s, reverify: fresh } }
    next: { ok: end, fail: work }
";
    check(twice, &["RS712 9:42 step `work` reviews for `gate` already"]);
}

#[test]
fn a_stranger_s_file_takes_no_long_time_and_gives_no_endless_list() {
    let reviews = vec!["s"; 80].join(", ");
    let mut yaml = "steps:\n  - { id: s, title: S, actions: [x], next: g0 }\n".to_owned();
    for at in 0..190 {
        yaml += &format!(
            "  - id: g{at}
    title: G
    decide: {{ gate: {{ name: G, reviews: [{reviews}], banner: b, stop: s, reverify: fresh }} }}
    next: {{ ok: g{}, fail: s }}
",
            (at + 1) % 190
        );
    }
    let started = std::time::Instant::now();
    let read = |_: InjectedText<'_>| Err("there is nothing".to_owned());
    let around =
        WorkflowContext { name: "test", description: "", siblings: ("test", &[]), read: &read };
    let loaded = read_source(Source::new("workflow.yaml", yaml), &around);
    assert_eq!(loaded.diagnostics.len(), crate::limits::FINDINGS_MAX);
    assert!(loaded.checked.is_none());
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn thousands_of_names_that_are_wrong_are_not_all_guessed_at() {
    let mut yaml = "steps:\n".to_owned();
    for at in 0..200 {
        let ways: Vec<String> =
            (0..40).map(|way| format!("o{way}: {}{at}-{way}", "y".repeat(50))).collect();
        let id = "x".repeat(50);
        yaml += &format!(
            "  - {{ id: {id}{at}, title: T, actions: [x], next: {{ {} }} }}\n",
            ways.join(", ")
        );
    }
    let started = std::time::Instant::now();
    let read = |_: InjectedText<'_>| Err("there is nothing".to_owned());
    let around =
        WorkflowContext { name: "test", description: "", siblings: ("test", &[]), read: &read };
    let loaded = read_source(Source::new("workflow.yaml", yaml), &around);
    assert_eq!(loaded.diagnostics.len(), crate::limits::FINDINGS_MAX);
    assert!(started.elapsed() < std::time::Duration::from_secs(15), "{:?}", started.elapsed());
}

#[test]
fn an_error_is_not_lost_among_warnings() {
    let outcomes: Vec<String> = (0..300).map(|at| format!("o{at}: end")).collect();
    let yaml = format!(
        "steps:
  - {{ id: one, title: One, actions: [x], outcomes: {{ ok: '' }}, next: {{ {}, ok: two }} }}
  - {{ id: two, title: Two, actions: ['{{{{ nothing }}}}'], next: end }}
",
        outcomes.join(", ")
    );
    let read = |_: InjectedText<'_>| Err("there is nothing".to_owned());
    let around =
        WorkflowContext { name: "test", description: "", siblings: ("test", &[]), read: &read };
    let loaded = read_source(Source::new("workflow.yaml", yaml), &around);
    assert!(loaded.checked.is_none());
    assert!(loaded.diagnostics.iter().any(repertoire_text::Diagnostic::is_error));
}
