//! One case that fires and one that does not for every rule, as an author sees them: `code line:column message`.

use repertoire_text::Source;

use crate::file::{Surroundings, Wanted, read_source};

/// Reads a workflow and compares everything that is found.
#[track_caller]
fn check(yaml: &str, expect: &[&str]) {
    let siblings = ["explore".to_owned(), "verify".to_owned()];
    let read = |wanted: Wanted<'_>| match wanted {
        Wanted::Resource("there.md") | Wanted::Convention("there") => Ok("text".to_owned()),
        Wanted::Resource("large.md") => Ok("x".repeat(3 << 20)),
        Wanted::Resource(_) | Wanted::Convention(_) => Err("there is no such file".to_owned()),
    };
    let around = Surroundings {
        name: "test",
        description: "For tests.",
        siblings: ("test", &siblings),
        read: &read,
    };
    let loaded = read_source(Source::new("workflow.yaml", yaml.to_owned()), &around);
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
            "RS702 1:15 `a-b` cannot be the name of a parameter",
            "RS702 1:24 `state` cannot be the name of a parameter",
            "RS702 1:35 `item` cannot be the name of a parameter",
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
            "RS705 4:11 no way leads to step `two`",
            "RS704 4:49 there is no step `thre`; is `three` meant?",
            "RS705 5:11 no way leads to step `three`",
        ],
    );
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
    // An edge that no outcome takes is no way.
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
    // What `default` takes leads back as well as any other edge.
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
        &["RS712 6:42 there is no step `reviw` to review in"],
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
    // What a condition decides is nobody's to choose.
    check(
        &skipping(", decide: { cases: { when: [{ if: 'state.iteration > 9', outcome: skip }] } }"),
        &[],
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
    check(
        twice,
        &[
            "RS712 5:42 step `work` reviews for `more` already",
            "RS712 9:42 step `work` reviews for `gate` already",
        ],
    );
}

#[test]
fn texts_use_what_is_declared() {
    let head = "parameters: { task: {} }\n";
    check(&with_action(head, "'{{ task }} {{ state.run }} {{ state.outputs.one }}'"), &[]);
    check(
        &with_action(head, "'{% for entry in task %}{{ loop.index }}{{ entry }}{% endfor %}'"),
        &[],
    );
    check(
        &with_action(head, "'{{ taks }} {{ item }} {{ state.nope }} {{ state.outputs.two }}'"),
        &[
            "RS713 7:9 `item` is not declared under `parameters`",
            "RS713 7:9 `state.outputs.two` is the output of a step that does not exist",
            "RS713 7:9 `taks` is not declared under `parameters`",
            "RS713 7:9 the state has no `nope`; it has run, step, iteration, outputs, answers, error",
        ],
    );
    check(
        &with_step("decide: { cases: { when: [{ if: 'mode == 1', outcome: ok }] } }"),
        &["RS713 2:89 `mode` is not declared under `parameters`"],
    );
    check(
        &with_head("checks: { tests: { command: '{{ what }}' } }"),
        &["RS713 1:29 `what` is not declared under `parameters`"],
    );
    check(
        &with_action(head, "dispatch: { single: { agent: explore, task: '{{ tsk }}' } }"),
        &["RS713 7:9 `tsk` is not declared under `parameters`"],
    );
    check(
        &with_action(
            "parameters: { list: { type: list } }\n",
            "dispatch: { template: { over: list, each: { agent: explore, task: '{{ item }}' } } }",
        ),
        &[],
    );
    check(
        &with_gate(&PILLARS.replace("banner: b", "banner: '{{ who }}'"), GOOD),
        &["RS713 6:15 `who` is not declared under `parameters`"],
    );
}

#[test]
fn texts_are_templates() {
    check(&with_action("", "'a { b } c'"), &[]);
    check(
        &with_action("", "'{{ '"),
        &[
            "RS714 6:9 syntax error: unexpected end of input, expected expression (line 1 of the text)",
        ],
    );
    check(
        &with_action("", "'{% set a = 1 %}'"),
        &[
            "RS714 6:9 `set` is no statement of templates here; there are `if` and `for` (line 1 of the text)",
        ],
    );
    check(
        &with_action("", "'{{ nope() }}'"),
        &["RS713 6:9 `nope` is not declared under `parameters`"],
    );
}

#[test]
fn references_lead_somewhere() {
    check(
        &with_step("phase: early, role: skeptic, sets: [mode]"),
        &[
            "RS715 2:64 there is no phase `early`",
            "RS715 2:77 there is no role `skeptic`",
            "RS715 2:93 there is no parameter `mode`",
        ],
    );
    let head = "phases: { early: Early }\nroles: { skeptic: Doubts }\nparameters: { mode: {} }\n";
    let good = with_step("phase: early, role: skeptic, sets: [mode]");
    check(&format!("{head}{good}"), &[]);
    check(&with_action("", "resource: plan"), &["RS715 6:9 there is no resource `plan`"]);
    check(&with_action("", "qr_banner: one"), &["RS715 6:9 there is no gate `one`"]);
    check(
        &with_action("", "post_qr_routing: { gate: one, role: r }"),
        &["RS715 6:9 there is no gate `one`"],
    );
    check(
        &with_action("", "dispatch: { single: { agent: nobody, task: t } }"),
        &["RS715 6:9 there is no role `nobody`"],
    );
    check(
        &with_action("", "dispatch: { template: { over: list, each: { task: t } } }"),
        &["RS715 6:9 `list` is no parameter of type `list` or `work`"],
    );
    check(&with_action("", "dispatch: { template: { over: items, each: { task: t } } }"), &[]);
    check(
        &with_gate(&format!("{PILLARS}, checks: [tests]"), GOOD),
        &["RS715 6:97 there is no check `tests`"],
    );
    check(&with_action("", "dispatch: { single: { task: t, workflow: explore } }"), &[]);
    check(&with_action("", "dispatch: { single: { task: t, workflow: elsewhere } }"), &[]);
    check(
        &with_action("", "dispatch: { single: { task: t, workflow: explor } }"),
        &["RS715 6:9 there is no workflow `explor`; is `explore` meant?"],
    );
    check(
        &with_action("", "dispatch: { single: { task: t, workflow: test/nowhere } }"),
        &["RS715 6:9 there is no workflow `test/nowhere`"],
    );
}

#[test]
fn agents_that_run_at_once_share_no_file() {
    let agents = |first: &str, second: &str| {
        let agents = format!(
            "dispatch: {{ parallel: {{ agents: [{{ id: a, task: t, files: [{first}] }}, {{ id: b, task: t, files: [{second}] }}] }} }}"
        );
        with_action("", &agents)
    };
    check(
        &agents("src/a.rs", "src/a.rs.bak, src"),
        &["RS716 6:9 sub-agents `b` and `a` run at once and both change `src/a.rs`"],
    );
    check(&agents("src/a.rs", "src/a.rs.bak, src2"), &[]);
    check(
        &agents("./src/a.rs", "src//x/../a.rs"),
        &["RS716 6:9 sub-agents `a` and `b` run at once and both change `src/a.rs`"],
    );
    check(
        &with_action(
            "",
            "dispatch: { conditional: { condition: c, then: { parallel: { agents: [{ task: t, files: [a] }, { task: t, files: [a] }] } } } }",
        ),
        &["RS716 6:9 sub-agents `1` and `2` run at once and both change `a`"],
    );
    check(
        &with_action(
            "",
            "dispatch: { parallel: { agents: [{ id: a, task: t }, { id: a, task: t }] } }",
        ),
        &["RS702 6:9 two sub-agents are called `a`"],
    );
}

#[test]
fn parameters_fit_together() {
    let parameter = |fields: &str| with_head(&format!("parameters:\n  p: {{ {fields} }}"));
    check(&parameter("choices: [a, b], default: a"), &[]);
    check(&parameter("type: integer, min: 1, max: 3, default: 2"), &[]);
    check(
        &parameter("choices: [a, b], default: c"),
        &["RS717 2:34 the default of `p` does not fit: it has to be one of a, b"],
    );
    check(
        &parameter("type: integer, default: x"),
        &["RS717 2:32 the default of `p` does not fit: it has to be a whole number"],
    );
    check(
        &parameter("required: true, default: x"),
        &["RS717 2:18 `p` is required and has a default; one of them is too many"],
    );
    check(
        &parameter("type: integer, min: 3, max: 1"),
        &["RS717 2:28 `p`: nothing is at least 3 and at most 1"],
    );
    check(&parameter("min: 3"), &["RS717 2:3 `p` is text, which has no `min` and no `max`"]);
    check(
        &parameter("type: integer, choices: [1, two]"),
        &["RS717 2:36 `two` is no choice for `p`, which is a whole number"],
    );
}

#[test]
fn bounds_are_numbers_that_can_be_used() {
    check(
        &looped("loop: { max: 0 }, next: { ok: end, again: one }"),
        &["RS718 3:56 `max` has to be 1 to 100"],
    );
    check(
        &looped("loop: { max: 101 }, next: { ok: end, again: one }"),
        &["RS718 3:56 `max` has to be 1 to 100"],
    );
    check(
        &looped("loop: { max: 2, at_limit: no }, next: { ok: end, again: one }"),
        &["RS718 3:69 step `two` cannot end with `no`"],
    );
    check(
        &looped(
            "decide: { confidence: { until: low, max: 0 } }, loop: { max: 1 }, next: { ok: end, iterate: one }",
        ),
        &[
            "RS718 3:84 `max` has to be 1 to 100",
            "RS718 3:91 step `two` has a bound of its own already",
        ],
    );
    let sums = |fields: &str| {
        looped(&format!(
            "decide: {{ confidence: {{ max: 2, {fields} }} }}, next: {{ ok: end, iterate: one }}"
        ))
    };
    let asked = "questions: { a: { ask: A? }, b: { ask: B? } }";
    check(&sums(&format!("until: high, {asked}, levels: {{ high: 2 }}")), &[]);
    check(&sums(&format!("until: high, {asked}, levels: {{ certain: 1.5 }}")), &[]);
    check(
        &sums(&format!("until: high, {asked}, levels: {{ high: 3 }}")),
        &["RS718 3:82 no answers give `high`: say in `levels` how many it needs"],
    );
    check(
        &sums("until: high, levels: { high: 3 }"),
        &["RS718 3:88 `levels` are for sums of `questions`"],
    );
    for (fields, expect) in [
        ("schedule: []", "RS718 6:88 the schedule is empty"),
        (
            "schedule: [MUST, COULD]",
            "RS718 6:88 the schedule gets stricter; it can only get more lenient",
        ),
        ("limit: 0", "RS718 6:95 the limit has to be 1 to 100"),
    ] {
        check(&with_gate(&format!("{PILLARS}, {fields}"), GOOD), &[expect]);
    }
    let many: String = (0..201)
        .map(|at| format!("  - {{ id: s{at}, title: T, actions: [Do], next: s{} }}\n", at + 1))
        .collect();
    check(&format!("steps:\n{many}"), &["RS718 1:1 there are 201 steps, and 200 is the limit"]);
}

#[test]
fn what_is_injected_can_be_read() {
    let resource =
        |fields: &str| with_action(&format!("resources: {{ r: {{ {fields} }} }}\n"), "resource: r");
    check(&resource("file: there.md"), &[]);
    check(&resource("text: here"), &[]);
    check(
        &resource("file: gone.md"),
        &["RS719 1:25 `gone.md` cannot be read: there is no such file"],
    );
    check(&resource("purpose: p"), &["RS719 1:14 resource `r` has neither `file` nor `text`"]);
    check(&with_action("", "convention: there"), &[]);
    check(
        &with_action("", "convention: gone"),
        &["RS719 6:9 `convention gone` cannot be read: there is no such file"],
    );
    check(
        &with_head("resources: { a: { file: large.md }, b: { file: large.md } }"),
        &["RS719 1:48 `large.md` cannot be read: all that is injected has more than 4194304 bytes"],
    );
    check(
        &with_action("resources: { r: { file: large.md } }\n", "resource: r\n      - resource: r"),
        &["RS718 6:5 step `one` injects 6291456 bytes, and 4194304 is the limit"],
    );
}

#[test]
fn a_step_tells_its_agent_something() {
    check(
        "steps:\n  - { id: one, title: One, next: end }\n",
        &["RS720 2:11 step `one` tells its agent nothing"],
    );
    check(
        &with_action("", "dispatch: { parallel: { agents: [] } }"),
        &["RS720 6:9 there is no sub-agent to start"],
    );
}
