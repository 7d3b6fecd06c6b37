//! Templates: what they can access, and that untrusted templates cannot use much time or memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::limits::STATEMENTS_MAX;
use crate::state::{
    STATE_VERSION, UserAnswer, WorkflowFingerprint, WorkflowRunId, WorkflowRunStatus,
};

fn state() -> WorkflowRunState {
    let parameters = [
        ("task", json!("plan <it> & \"go\"")),
        ("mode", json!("quick")),
        ("list", json!(["a", "b", "c"])),
        ("work", json!([{ "id": "w1", "task": "first" }])),
        ("number", json!(3)),
        ("long", json!("x".repeat(60_000))),
        ("flag", json!(false)),
    ];
    WorkflowRunState {
        version: STATE_VERSION,
        run: WorkflowRunId::new("run-1"),
        workflow: "test".into(),
        fingerprint: WorkflowFingerprint::from_bytes(b""),
        status: WorkflowRunStatus::Active,
        step: "one".into(),
        turn: 3,
        visits: [("one".into(), 2)].into(),
        granted: BTreeMap::new(),
        parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
        outputs: [("scope".into(), "the scope".to_owned())].into(),
        reviews: BTreeMap::new(),
        waits_since: None,
        asked: 0,
        answers: vec![UserAnswer { id: "q".into(), ask: "Q?".into(), answer: "yes".into() }],
        decisions: Vec::new(),
        history: Vec::new(),
    }
}

#[track_caller]
fn gives(text: &str, expect: &str) {
    assert_eq!(render_template(text, &TemplateScope::new(&state())).as_deref(), Ok(expect));
}

#[track_caller]
fn refuses(text: &str, expect: &str) {
    let started = Instant::now();
    let error = render_template(text, &TemplateScope::new(&state())).expect_err("this is refused");
    assert_eq!(error.message, expect);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn texts_are_filled_in_from_parameters_and_state() {
    gives("{{ task }}", "plan <it> & \"go\"");
    gives("{{ state.run }} {{ state.step }} {{ state.iteration }}", "run-1 one 2");
    gives("{{ state.outputs.scope }} {{ state.answers.q }}", "the scope yes");
    gives("{% for entry in list %}{{ loop.index }}{{ entry }}{% endfor %}", "1a2b3c");
    gives("{{ work[0].task }} {{ list[number - 1] }} {{ number + 1 }}", "first c 4");
    gives("{{ list | length }} {{ nothing | default('none') }}", "3 none");
    gives("{% if mode in ['quick', 'full'] and not flag %}yes{% else %}no{% endif %}", "yes");
    gives("{# nothing ~ here #}a { b } {\n", "a { b } {\n");
    gives("{{ '{{' }}", "{{");
}

#[test]
fn blocks_leave_no_empty_lines() {
    gives("a\n{% if flag %}\nb\n{% endif %}\nc\n", "a\nc\n");
}

#[test]
fn a_name_that_is_not_there_is_an_error_and_can_be_asked_for() {
    assert!(render_template("{{ nothing }}", &TemplateScope::new(&state())).is_err());
    assert!(render_template("{{ state.outputs.nothing }}", &TemplateScope::new(&state())).is_err());
    gives("{% if nothing is defined %}a{% else %}b{% endif %}", "b");
    gives("{% if state.outputs.nothing is defined %}a{% endif %}", "");
    gives("{% if state.error is defined %}a{% endif %}", "");
}

#[test]
fn an_item_is_seen_where_there_is_one() {
    let scope = TemplateScope::new(&state()).and_item(&json!({ "id": "w1" }));
    assert_eq!(
        render_template("{{ item.id }} {{ mode }} {{ state.run }}", &scope).as_deref(),
        Ok("w1 quick run-1")
    );
    let scope = TemplateScope::new(&state()).and_item(&json!("text"));
    assert_eq!(render_template("{{ item }}", &scope).as_deref(), Ok("text"));
    assert!(render_template("{{ item }}", &TemplateScope::new(&state())).is_err());
}

#[test]
fn nothing_is_seen_of_the_world() {
    for text in [
        "{{ range(3) }}",
        "{{ dict(a=1) }}",
        "{{ debug() }}",
        "{{ namespace() }}",
        "{{ env }}",
        "{{ task | upper }}",
        "{{ task | replace('a', 'b') }}",
        "{{ task | join }}",
        "{{ self }}",
        "{{ task.upper() }}",
        "{{ super() }}",
    ] {
        assert!(render_template(text, &TemplateScope::new(&state())).is_err(), "{text}");
    }
}

#[test]
fn only_conditions_and_loops_are_statements() {
    for word in [
        "set",
        "macro",
        "include",
        "import",
        "extends",
        "block",
        "call",
        "filter",
        "raw",
        "do",
        "with",
        "autoescape",
    ] {
        refuses(
            &format!("text\n{{%- {word} x %}}"),
            &format!("`{word}` is no statement of templates here; there are `if` and `for`"),
        );
    }
    let error = render_template("text\n{% set x = 1 %}", &TemplateScope::new(&state()))
        .expect_err("refused");
    assert_eq!(error.line, Some(2));
}

#[test]
fn nothing_makes_text_out_of_text() {
    let tilde = "`~` and `*` are not for templates here; texts stand beside each other";
    refuses("{{ long ~ long }}", tilde);
    refuses("{{ 'x' * 99999999 }}", tilde);
    refuses("{{ 2 ** 9999 }}", tilde);
    let sum = "`+` adds a number that is written out; texts stand beside each other";
    refuses("{{ long + long }}", sum);
    refuses("{{ 'a' + 'b' }}", sum);
    refuses("{{ list.0 + list.0 }}", sum);
    refuses("{{ 1 + long + long }}", sum);
    let list = "a list in a template has only texts and numbers that are written out";
    refuses("{% for a in [long, long] %}{% endfor %}", list);
    refuses("{{ [[1]] }}", list);
    refuses("{% for a in (long, long) %}{% endfor %}", "templates make no lists");
    refuses("{% for a in long, long %}{% endfor %}", "templates make no lists");
    refuses("{{ {'a': long} }}", "templates make no mappings");
    refuses("{% for a in list recursive %}{{ loop(list) }}{% endfor %}", "loops call nothing");
    // Plain text may contain anything.
    gives("{{ 'a ~ b * c + [d] {e}' }}", "a ~ b * c + [d] {e}");
    gives("2 * 3 ~ 4 + [5]", "2 * 3 ~ 4 + [5]");
}

#[test]
fn conditions_are_held_to_the_same() {
    let scope = TemplateScope::new(&state());
    assert_eq!(evaluate_condition("mode == 'quick' and list | length > 2", &scope), Ok(true));
    assert_eq!(evaluate_condition("nothing is defined", &scope), Ok(false));
    assert_eq!(evaluate_condition("flag", &scope), Ok(false));
    assert!(evaluate_condition("long ~ long", &scope).is_err());
    assert!(evaluate_condition("mode ==", &scope).is_err());
    assert!(names_in_expression("[long] == [long]").is_err());
}

#[test]
fn what_a_template_does_is_counted() {
    let nested = "{% for a in long %}{% for b in long %}{% endfor %}{% endfor %}";
    let started = Instant::now();
    assert!(render_template(nested, &TemplateScope::new(&state())).is_err());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn what_a_template_gives_has_a_cap() {
    let text = "{{ long }}".repeat(9);
    let error = render_template(&text, &TemplateScope::new(&state())).expect_err("it is too long");
    assert!(
        error.message.contains("write") || error.message.contains("limit"),
        "{}",
        error.message
    );
    // All texts of a step share a limit as well.
    let scope = TemplateScope::new(&state());
    let text = "{{ long }}".repeat(8);
    let given = (0..20).take_while(|_| render_template(&text, &scope).is_ok()).count();
    assert_eq!(given, STEP_BYTES_MAX / (8 * 60_000));
    let item = scope.and_item(&json!("x"));
    assert!(render_template(&text, &item).is_err());
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let text = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(render_template(&text, &TemplateScope::new(&state())).is_err());
    let text = format!("{{{{ {}flag }}}}", "not ".repeat(100_000));
    assert!(render_template(&text, &TemplateScope::new(&state())).is_err());
    assert!(
        evaluate_condition(
            &format!("{}flag", "not ".repeat(100_000)),
            &TemplateScope::new(&state())
        )
        .is_err()
    );
    for text in ["{% if flag %}", "{% for a in list %}"] {
        assert!(render_template(&text.repeat(20_000), &TemplateScope::new(&state())).is_err());
        // The maximum depth.
        assert!(
            render_template(&text.repeat(STATEMENTS_MAX), &TemplateScope::new(&state())).is_err()
        );
    }
    let elif = format!("{{% if flag %}}{}{{% endif %}}", "{% elif flag %}".repeat(20_000));
    assert!(render_template(&elif, &TemplateScope::new(&state())).is_err());
    let elif = format!("{{% if flag %}}{}{{% endif %}}", "{% elif flag %}".repeat(190));
    assert!(render_template(&elif, &TemplateScope::new(&state())).is_ok());
    let text = format!("{{{{ task{} }}}}", ".a".repeat(100_000));
    assert!(render_template(&text, &TemplateScope::new(&state())).is_err());
    let text = format!("{{{{ task{} }}}}", "[0]".repeat(100_000));
    assert!(render_template(&text, &TemplateScope::new(&state())).is_err());
    let text = format!("{{{{ task{} }}}}", " | length".repeat(100_000));
    assert!(render_template(&text, &TemplateScope::new(&state())).is_err());
}

#[test]
fn a_list_is_joined_and_not_without_end() {
    gives("{{ list | join(', ') }} {{ list | join }}", "a, b, c abc");
    gives("{{ list|join(mode)|default('none') }}", "aquickbquickc");
    let many = json!(vec!["x".repeat(1000); 900]);
    let scope = TemplateScope::new(&state()).and_item(&many);
    let error = render_template("{{ item | join }}", &scope).unwrap_err();
    assert!(error.message.contains("`join` gives more than"), "{error}");
    let error =
        render_template("{{ task | join(', ') }}", &TemplateScope::new(&state())).unwrap_err();
    assert!(error.message.contains("`join` is for lists"), "{error}");
}

#[test]
fn what_does_not_exist_is_found_before_anything_runs() {
    let says = |text: &str, expect: &str| {
        assert_eq!(names_in_text(text).expect_err(text).message, expect, "{text}");
    };
    let filters = "there are default, join, length";
    says("{{ task | upper }}", &format!("there is no filter `upper`; {filters}"));
    says("{{ list | length | round }}", &format!("there is no filter `round`; {filters}"));
    says("{{ list|default( task|e ) }}", &format!("there is no filter `e`; {filters}"));
    let tests = "there are defined, none";
    says("{% if task is string %}{% endif %}", &format!("there is no test `string`; {tests}"));
    says("{% if task is not odd %}{% endif %}", &format!("there is no test `odd`; {tests}"));
    for text in ["{{ task('x') }}", "{{ task.upper() }}", "{{ list[0]() }}", "{{ loop(list) }}"] {
        says(text, "templates call nothing");
    }
    assert_eq!(
        names_in_expression("task is even").unwrap_err().message,
        format!("there is no test `even`; {tests}")
    );
    for text in [
        "{{ (task) | default('a') }}",
        "{% if not (flag) and (number == 3) %}{% endif %}",
        "{% if task is not none and task is defined %}{% endif %}",
        "{% for entry in (list) %}{{ entry }}{% endfor %}",
        "{{ item.is }} {{ item.is.not }}",
        "a | b is c(d)",
    ] {
        assert!(names_in_text(text).is_ok(), "{text}: {:?}", names_in_text(text));
    }
}
