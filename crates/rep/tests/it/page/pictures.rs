//! Pictures of every view, for people to look at and for the documentation:
//! `PAGE_PICTURES=target/pictures cargo test -p repertoire-cli --test it page_pictures -- --ignored`. `PAGE_SIGHTS=run,diff`
//! makes only those.

use std::io::Write as _;

use repertoire_journal::Payload;
use repertoire_journal::event::StepOutcome;

use super::project_fixture::{RunWriter, Served, first, project_fixture, review};
use crate::browser::Browser;
use crate::workspace::Workspace;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// A view, and what is done in it before it is looked at.
struct Sight {
    name: &'static str,
    place: String,
    act: &'static str,
    ready: &'static str,
}

#[test]
#[ignore = "makes pictures for people"]
#[expect(clippy::disallowed_methods, reason = "whoever asks for pictures says where they go")]
fn page_pictures() {
    let folder = std::env::var("PAGE_PICTURES").expect("PAGE_PICTURES says where pictures go");
    let folder = camino::Utf8PathBuf::from(folder);
    let folder = match folder.is_absolute() {
        true => folder,
        false => camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder),
    };
    std::fs::create_dir_all(&folder).unwrap();
    let ws = project_fixture();
    let _writer = days_of_work(&ws);
    let mut browser = Browser::start().expect("there is a browser");
    let served = Served::start(&ws);
    browser.open(&served.link());
    browser.wait("document.querySelector('a.item')");
    let only = std::env::var("PAGE_SIGHTS").ok();
    let is_wanted = |sight: &Sight| {
        only.as_ref().is_none_or(|only| only.split(',').any(|one| one == sight.name))
    };
    for sight in sights(&ws).into_iter().filter(is_wanted) {
        for (width, height) in [(1280, 800), (390, 844)] {
            for scheme in ["light", "dark"] {
                browser.resize(width, height);
                browser.scheme(scheme);
                browser.eval("location.hash = '#/events'");
                browser.wait("document.querySelector('.view-events h1')");
                browser.eval(&format!("location.hash = '#/{}'", sight.place));
                browser.wait("document.querySelector('main h1')");
                browser.eval(sight.act);
                browser.wait(sight.ready);
                browser.wait("!document.querySelector('main .skeleton')");
                browser.eval("new Promise((done) => setTimeout(done, 350))");
                let bytes = decode(&browser.picture());
                let path = folder.join(format!("page-{}-{width}-{scheme}.png", sight.name));
                std::fs::File::create(path).unwrap().write_all(&bytes).unwrap();
            }
        }
    }
}

fn sights(ws: &Workspace) -> Vec<Sight> {
    let run = first(ws, "--json runs", "runs", "id");
    let sight = |name, place: &str, act, ready| Sight { name, place: place.to_owned(), act, ready };
    vec![
        sight("skills", "skills", "null", "document.querySelector('.overview')"),
        sight(
            "search",
            "skills?q=a+migration+locks+the+orders+table",
            "null",
            "document.querySelector('.item .meter')",
        ),
        sight(
            "skill",
            "skills/sql-review?q=",
            "null",
            "document.querySelector('.pane-detail .prose')",
        ),
        sight(
            "finding",
            "skills/load-test?q=&state=findings",
            "null",
            "document.querySelector('.pane-detail .source-line.marked')",
        ),
        sight(
            "play",
            "play?task=Is+the+index+of+this+migration+safe+to+add+while+people+order%3F",
            "document.activeElement.blur()",
            "document.querySelector('.pick') && document.querySelector('.message')",
        ),
        sight(
            "runs",
            "runs",
            "null",
            "document.querySelectorAll('a.run-row').length > 2 && document.querySelector('.chart')",
        ),
        sight("run", &format!("runs/{run}"), "null", "document.querySelector('.step.live')"),
        sight(
            "diff",
            &format!("runs/{}", run_where(ws, |run| run["branch"].is_string())),
            "new Promise((done) => setTimeout(() => { document.querySelector('#tab-diff').click(); done(); }, 1200))",
            "document.querySelector('.diff-line.add')",
        ),
        sight(
            "waiting",
            &format!("runs/{}", run_where(ws, |run| run["status"] == "waiting")),
            "null",
            "document.querySelector('.decide')",
        ),
        sight("workflows", "workflows", "null", "document.querySelector('.flow-card')"),
        sight(
            "workflow",
            "workflows/run/orders-lock",
            "null",
            "document.querySelector('img.graph-picture')?.naturalWidth > 0",
        ),
        sight("reviews", "reviews", "null", "document.querySelector('a.review-row')"),
        sight(
            "review",
            &format!("reviews/{}", review(ws)),
            "null",
            "document.querySelector('.review-finding')",
        ),
        // Without the names of workers, which have that of the machine in them.
        sight(
            "events",
            "events",
            "(() => { const s = document.querySelector('[data-search]'); s.value = 'step'; s.dispatchEvent(new Event('input')); })()",
            "document.querySelector('.event-list li') && document.querySelector('.list-note').innerText.includes(' of ')",
        ),
    ]
}

/// The latest run of a kind.
fn run_where(ws: &Workspace, is_it: impl Fn(&&serde_json::Value) -> bool) -> String {
    let value: serde_json::Value = serde_json::from_slice(&ws.raw("--json runs")).unwrap();
    let runs = value["runs"].as_array().unwrap();
    runs.iter().find(is_it).unwrap()["id"].as_str().unwrap().to_owned()
}

/// Runs of some days: done, failed, waiting, and one that is under way.
fn days_of_work(ws: &Workspace) -> RunWriter {
    let writer = RunWriter::open(ws).of_folder("/home/ada/shop");
    let names = [
        "Invoices by country",
        "Search that forgives",
        "Faster check-out",
        "Refunds in parts",
        "Mail templates",
    ];
    for (at, name) in names.iter().enumerate() {
        writer.ago((96 - 20 * at as u64) * HOUR_MS);
        let run = writer.begin(name);
        let steps = 4 + at as u32 % 3;
        for step in 1..=steps {
            if step > 1 {
                run.start_step(step, if step % 2 == 0 { "review" } else { "implementation" });
            }
            writer.pass((2 + u64::from(step)) * MINUTE_MS);
            // The one that waits has used up what it may.
            let dear = if at == 3 { 3 } else { 1 };
            let cost = (90_000 * u64::from(step) + 70_000 * at as u64) * dear;
            run.end_step(step, StepOutcome::Ok, "", cost);
        }
        let done = if matches!(at, 1 | 3) { 2 } else { 4 };
        for task in 0..done {
            run.mark(2 * task + 1, "reviewed", "the checks are green");
        }
        let end = match at {
            1 => Payload::RunFailed {
                reason: "check: the tests of the search are red after 3 attempts".into(),
            },
            3 => Payload::RunWaiting {
                reason: "the budget of $5.00 is used up".into(),
                choices: vec!["resume it with higher limits".into(), "cancel it".into()],
            },
            _ => Payload::RunCompleted {
                summary: "every task is reviewed, and the checks are green".into(),
                head: None,
            },
        };
        run.append(vec![end]);
    }
    writer.ago(23 * MINUTE_MS);
    under_way(&writer);
    writer
}

fn under_way(writer: &RunWriter) {
    let run = writer.begin("Discount codes");
    writer.pass(4 * MINUTE_MS);
    run.end_step(1, StepOutcome::Ok, "", 310_000);
    run.mark(1, "implemented", "implemented, and the checks are green");
    run.start_step(2, "review");
    writer.pass(2 * MINUTE_MS);
    run.end_step(
        2,
        StepOutcome::SentBack,
        "The index is built without CONCURRENTLY and locks the table.",
        140_000,
    );
    run.start_step(3, "implementation");
    writer.pass(5 * MINUTE_MS);
    run.end_step(3, StepOutcome::Failed, "tests/test_checkout.py: 2 failed, 31 passed", 420_000);
    run.start_step(4, "implementation");
    writer.pass(6 * MINUTE_MS);
    run.end_step(4, StepOutcome::Ok, "", 380_000);
    run.mark(3, "reviewed", "reviewed, and the checks are green");
    run.start_step(5, "review");
}

/// Base 64, as browsers hand out pictures.
fn decode(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut kept, mut bits) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|one| *one == letter).expect("base 64");
        kept = kept << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((kept >> bits) as u8);
        }
    }
    out
}
