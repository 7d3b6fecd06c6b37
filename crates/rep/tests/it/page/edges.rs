//! The page where lists are long, addresses are wrong, and somebody has to decide.

use repertoire_journal::Payload;
use repertoire_journal::event::StepOutcome;
use serde_json::{Value, json};

use super::project_fixture::{LiveRun, RunWriter, project_fixture, small_project_fixture};
use super::{go, visit};
use crate::browser::{Browser, Key};
use crate::workspace::Workspace;

/// Writes what an agent said in a step where the worker does.
fn say(ws: &Workspace, run: &LiveRun<'_>, step: u32, texts: &[&str]) {
    let line = |text: &&str| {
        let said = json!({"v": 1, "seq": 1, "at_ms": 1, "run": "r", "agent": "a", "depth": 0, "type": "text", "text": text});
        format!("{said}\n")
    };
    let log: String = texts.iter().map(line).collect();
    ws.write(&format!("data/runs/{}/{step:03}-implementation.jsonl", run.id), log);
}

#[test]
fn the_output_of_a_long_run_shows_the_newest_step_and_asks_for_older_ones_when_they_are_opened() {
    const STEPS: u32 = 205;
    let ws = small_project_fixture();
    let writer = RunWriter::open(&ws);
    let run = writer.begin("A long way");
    for step in 1..=STEPS {
        say(&ws, &run, step, &[&format!("words of step {step}.")]);
    }
    for step in 1..STEPS {
        run.append(vec![
            LiveRun::ended(step, StepOutcome::Ok, "", 1),
            LiveRun::started(step + 1, "implementation"),
        ]);
    }
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, &format!("runs/{}", run.id));
    browser.click("#tab-output");
    browser.wait_text("words of step 205.");
    say(&ws, &run, STEPS, &["words of step 205.", " And more of them."]);
    browser.wait_text("And more of them.");
    browser.click("[data-said='150'] summary");
    browser.wait_text("words of step 150.");
    browser.wait_text("105 older steps not listed");
    browser.eval("[...document.querySelectorAll('.list-note button')].at(-1).click()");
    browser.eval("[...document.querySelectorAll('.list-note button')].at(-1).click()");
    browser.click("[data-said='3'] summary");
    browser.wait_text("words of step 3.");
    let asked: Vec<String> =
        browser.requested().into_iter().filter(|url| url.contains("/output?")).collect();
    let steps = |number: u32| {
        asked.iter().filter(|url| url.ends_with(&format!("/output?step={number}"))).count()
    };
    assert!(steps(205) >= 2, "{asked:?}");
    assert_eq!((steps(150), steps(3)), (1, 1), "{asked:?}");
    assert_eq!(steps(205) + 2, asked.len(), "{asked:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_a_run_that_waits_proposes_can_be_done_there() {
    let ws = small_project_fixture();
    let writer = RunWriter::open(&ws);
    let run = writer.begin("Out of money");
    run.end_step(1, StepOutcome::Ok, "", 6_000_000);
    let choices = ["resume it with higher limits", "sleep over it", "cancel it"];
    run.append(vec![Payload::RunWaiting {
        reason: "it has used its dollars".into(),
        choices: choices.map(str::to_owned).to_vec(),
    }]);
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, &format!("runs/{}", run.id));
    browser.wait_text("A person has to decide");
    assert_eq!(browser.eval("document.querySelectorAll('.decide li').length"), 3);
    assert_eq!(
        browser.eval(
            "[...document.querySelectorAll('.decide [data-choice]')].map((b) => b.dataset.choice)"
        ),
        json!(["resume", "cancel"]),
        "what nobody can do here has no button"
    );
    browser.click(".decide [data-choice=resume]");
    browser.wait("document.querySelector('dialog[open] [name=max_cost_usd]')?.value === '12'");
    browser.eval("[...document.querySelectorAll('dialog button')].find((b) => b.innerText.includes('Resume')).click()");
    browser.wait("document.querySelector('.view-head [data-status=queued]')");
    browser.wait("!document.querySelector('.decide')");
}

#[test]
fn more_runs_than_one_answer_holds_are_shown_page_by_page() {
    let ws = small_project_fixture();
    let writer = RunWriter::open(&ws);
    for number in 0..520 {
        writer.queue(&format!("Run {number}"));
    }
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "runs");
    for shown in [50, 150, 250, 350, 450] {
        browser.wait(&format!("document.querySelectorAll('a.run-row').length === {shown}"));
        browser.wait_text(&format!("The latest {shown} shown."));
        browser.eval("document.querySelector('.list-note button').click()");
    }
    browser.wait("document.querySelectorAll('a.run-row').length === 520");
    browser.wait("!document.querySelector('.list-note button')");
}

#[test]
fn plans_that_cannot_be_read_are_not_passed_over() {
    let ws = small_project_fixture();
    ws.write("project/PLAN.md", "- [ ] Again and again\n".repeat(400_000));
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "runs");
    browser.wait("document.querySelector('.plans-problem')");
    assert!(browser.text(".plans-problem").contains("PLAN.md"));
}

#[test]
fn a_review_appears_by_itself() {
    let ws = project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "reviews");
    browser.wait("document.querySelectorAll('a.review-row').length === 1");
    browser.eval("document.querySelector('a.review-row').focus()");
    let reviewed = ws.rep("review --backend scripted:reviewers.yaml");
    assert!(reviewed.code <= 1, "{reviewed}");
    browser.wait("document.querySelectorAll('a.review-row').length === 2");
    assert_eq!(
        browser.eval("document.activeElement === document.querySelectorAll('a.review-row')[1]"),
        true,
        "who has the focus keeps it"
    );
}

#[test]
fn a_review_under_way_is_seen_and_leads_to_its_run() {
    let ws = project_fixture();
    ws.write("project/slow.yaml", "- wait_ms: 60000\n- finish: {text: No.}\n");
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "reviews");
    browser.wait("document.querySelectorAll('a.review-row').length === 1");
    let mut command = ws.command(&["review", "--backend", "scripted:slow.yaml"]);
    let mut review = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    browser.wait("document.querySelector('a.review-row [data-status=running]')");
    browser.click("a.review-row");
    browser.wait("document.querySelector('.view-runs .view-head [data-status=running]')");
    browser.wait_text("Agent asked");
    review.kill().unwrap();
    review.wait().unwrap();
    browser.call("Page.reload", json!({}));
    browser.wait("document.querySelector('.view-head [data-status=interrupted]')");
    go(&mut browser, "runs");
    browser.wait("document.querySelectorAll('a.run-row').length > 2");
    browser.eval("document.querySelector('.segments [data-value=review]').click()");
    browser.wait("document.querySelectorAll('a.run-row').length === 2");
    browser.wait("document.querySelector('a.run-row [data-status=interrupted]')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_address_that_cannot_be_decoded_still_shows_a_view() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "runs");
    browser.eval("location.hash = '#/skills/100%'");
    browser.wait("document.querySelector('.view-skills')");
    browser.wait_text("100%");
}

#[test]
fn light_and_dark_can_be_chosen_where_nothing_can_be_kept() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    let refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })";
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": refuse }));
    browser.scheme("light");
    browser.call("Page.reload", json!({}));
    browser.wait("document.querySelector('a.item')");
    browser.press(Key("t"));
    browser.wait("document.documentElement.dataset.theme === 'dark'");
    browser.press(Key("t"));
    browser.wait("document.documentElement.dataset.theme === 'light'");
}

#[test]
fn a_list_of_events_has_nothing_but_events_in_it() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "events");
    let strangers = "document.querySelectorAll('ol > :not(li), ul > :not(li)').length";
    browser.wait_text("Nothing has happened yet");
    assert_eq!(browser.eval(strangers), 0);
    browser.eval("[...document.querySelectorAll('.buttons button')].at(-1).click()");
    RunWriter::open(&ws).begin("Held back");
    browser.wait_text("new)");
    assert_eq!(browser.eval("document.querySelectorAll('.live-list li').length"), 0);
    browser.eval("[...document.querySelectorAll('.buttons button')].at(-1).click()");
    browser.wait_text("Held back");
    assert_eq!(browser.eval(strangers), 0);
}

#[test]
fn what_a_person_must_decide_stands_before_the_graph() {
    let ws = project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.resize(390, 844);
    go(&mut browser, "workflows/run/orders-lock");
    browser.wait("document.querySelector('img.graph-picture')?.naturalWidth > 0");
    let top = |what: &str| format!("document.querySelector('{what}').getBoundingClientRect().top");
    assert_eq!(browser.eval(&format!("{} < {}", top(".decide"), top(".graph"))), true);
    assert_eq!(browser.eval(&format!("{} < 844", top(".decide [data-choice]"))), true);
}

#[test]
fn the_prompt_is_asked_for_in_the_words_of_the_selection_beside_it() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "play");
    browser.wait("document.activeElement?.tagName === 'TEXTAREA'");
    browser.eval(
        "(() => { const real = window.fetch; window.sent = {}; window.fetch = (url, how) => { \
         window.sent[new URL(url).pathname.split('/').pop()] = how?.body; return real(url, how); }; })()",
    );
    browser.eval(
        "(() => { const [paths, max, threshold] = document.querySelectorAll('.form-grid input'); \
         paths.value = 'orders.sql'; max.value = '2'; threshold.value = '0.5'; })()",
    );
    browser.type_text("is this sql migration safe?");
    browser.wait("window.sent.prompt && JSON.parse(window.sent.prompt).task === 'is this sql migration safe?'");
    let sent = |browser: &mut Browser, to: &str| -> Value {
        serde_json::from_str(browser.eval(&format!("window.sent.{to}")).as_str().unwrap()).unwrap()
    };
    let prompt = sent(&mut browser, "prompt");
    assert_eq!(
        prompt,
        json!({"task": "is this sql migration safe?", "paths": ["orders.sql"], "max": 2, "threshold": 0.5})
    );
    let select = sent(&mut browser, "select");
    for (field, value) in prompt.as_object().unwrap() {
        assert_eq!(&select[field], value, "{field}");
    }
}
