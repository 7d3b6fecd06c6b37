//! Rules about texts, references, parameters, numbers and what is injected.

use super::{GOOD, PILLARS, check, looped, read, with_action, with_gate, with_head, with_step};

#[test]
fn texts_use_what_is_declared() {
    let head = "parameters: { task: {} }\n";
    check(
        &with_action(head, "'{{ task }} {{ state.run }} {{ state.outputs.one }}'")
            .replace("    next", "    output: o\n    next"),
        &[],
    );
    check(&with_action(head, "'{{ state.outputs[\"a-b\"] }}'"), &[]);
    check(
        &with_action(head, "'{% for entry in task %}{{ loop.index }}{{ entry }}{% endfor %}'"),
        &[],
    );
    check(
        &with_action(head, "'{{ taks }} {{ item }} {{ state.nope }} {{ state.outputs.two }}'"),
        &[
            "RS713 7:13 `taks` is not declared under `parameters`; is `task` meant?",
            "RS713 7:24 `item` is not declared under `parameters`",
            "RS713 7:35 the state has no `nope`; it has run, step, iteration, outputs, answers, error",
            "RS713 7:52 there is no step `two` that hands over an output",
        ],
    );
    check(
        &with_step("decide: { cases: { when: [{ if: 'mode == 1', outcome: ok }] } }"),
        &["RS713 2:90 `mode` is not declared under `parameters`"],
    );
    check(
        &with_head("checks: { tests: { command: '{{ what }}' } }"),
        &["RS713 1:33 `what` is not declared under `parameters`"],
    );
    check(
        &with_action(head, "dispatch: { single: { agent: explore, task: '{{ tsk }}' } }"),
        &["RS713 7:57 `tsk` is not declared under `parameters`; is `task` meant?"],
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
        &["RS713 6:63 `who` is not declared under `parameters`"],
    );
}

#[test]
fn a_name_is_pointed_at_where_it_stands() {
    let text = "|\n          The tsk is not here: task.\n          {% if task %}But {{ tsk }} is.{% endif %}\n";
    check(
        &with_action("parameters: { task: {} }\n", text),
        &["RS713 9:31 `tsk` is not declared under `parameters`; is `task` meant?"],
    );
    check(
        &with_action("", ">\n          Folded,\n          {{ nope }}.\n"),
        &["RS713 8:14 `nope` is not declared under `parameters`"],
    );
    // Resources that are not spelled out are shown with their text.
    check(
        &with_action("", r#""{{ n\u006fpe }}""#),
        &["RS713 6:9 `nope` is not declared under `parameters`"],
    );
}

#[test]
fn outputs_are_declared_by_the_step_that_hands_them_over() {
    let steps = |output: &str, used: &str| {
        format!(
            "steps:
  - {{ id: scope-it, title: A, actions: [Do], next: find{output} }}
  - {{ id: find, title: B, actions: [Do], next: tell, output: What was found }}
  - {{ id: tell, title: C, actions: ['{{{{ state.outputs{used} }}}}'], next: end }}
"
        )
    };
    check(&steps("", ".find"), &[]);
    check(&steps(", output: o", "[\"scope-it\"]"), &[]);
    check(
        &steps("", ".fnd"),
        &["RS713 4:41 there is no step `fnd` that hands over an output; is `find` meant?"],
    );
    check(&steps("", ".tell"), &["RS713 4:41 step `tell` hands over no output"]);
    let said = read(&steps("", ".tell"));
    let help = said.diagnostics[0].help.as_deref().unwrap_or_default();
    assert!(help.starts_with("Give the step an `output`"), "{help}");
    let said = read(&with_action("", "'{{ tsk }}'"));
    assert_eq!(
        said.diagnostics[0].help.as_deref(),
        Some("Declare it under `parameters`, or correct the name.")
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
        &["RS714 6:9 templates call nothing (line 1 of the text)"],
    );
    check(
        &with_action("", "'{{ nope | upper }}'"),
        &[
            "RS714 6:9 there is no filter `upper`; there are default, join, length (line 1 of the text)",
        ],
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
    let near = "phases: { early: E }\nroles: { skeptic: S }\nparameters: { mode: {} }\n";
    check(
        &format!("{near}{}", with_step("phase: erly, role: sceptic, sets: [mod]")),
        &[
            "RS715 5:64 there is no phase `erly`; is `early` meant?",
            "RS715 5:76 there is no role `sceptic`; is `skeptic` meant?",
            "RS715 5:92 there is no parameter `mod`; is `mode` meant?",
        ],
    );
    check(
        &with_action("resources: { plan: { text: t } }\n", "resource: paln"),
        &["RS715 7:9 there is no resource `paln`; is `plan` meant?"],
    );
    check(
        &with_action("", "dispatch: { single: { agent: explorer, task: t } }"),
        &["RS715 6:9 there is no role `explorer`; is `explore` meant?"],
    );
    check(
        &with_action(
            "parameters: { parts: { type: list } }\n",
            "dispatch: { template: { over: part, each: { task: t } } }",
        ),
        &["RS715 7:9 `part` is no parameter of type `list` or `work`; is `parts` meant?"],
    );
    check(
        &format!(
            "checks: {{ tests: {{}} }}\n{}",
            with_gate(&format!("{PILLARS}, checks: [test]"), GOOD)
        ),
        &["RS715 7:97 there is no check `test`; is `tests` meant?"],
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
