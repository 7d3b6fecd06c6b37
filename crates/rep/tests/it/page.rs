//! The page, in a real browser, served by the real binary: what people see and do, and what strangers' text cannot do.

mod edges;
mod pictures;
pub(crate) mod project_fixture;

use crate::browser::{Browser, Key};
use crate::workspace::Workspace;
use project_fixture::{RunWriter, Served, project_fixture, repository, small_project_fixture};

/// What may be loaded before anything is painted.
const FIRST_PAINT_BYTES_MAX: u64 = 150_000;

/// The views that the page links to, each with the key after `g`.
fn views(browser: &mut Browser) -> Vec<(String, String)> {
    let links = browser.eval(
        "[...document.querySelectorAll('#nav a')]\
         .map((a) => [a.dataset.view, a.getAttribute('aria-keyshortcuts').slice(2)])",
    );
    let views: Vec<(String, String)> = serde_json::from_value(links).unwrap();
    assert!(views.len() >= 6, "{views:?}");
    views
}

/// A browser on the page, or nothing where there is no browser.
fn visit(ws: &Workspace) -> Option<(Served, Browser)> {
    let mut browser = Browser::start()?;
    let served = Served::start(ws);
    browser.open(&served.link());
    browser.wait("document.querySelector('.view')");
    browser.wait("document.getElementById('live').dataset.state === 'live'");
    Some((served, browser))
}

fn go(browser: &mut Browser, place: &str) {
    browser.eval(&format!("location.hash = '#/{place}'"));
    let view = place.split('/').next().unwrap_or_default();
    browser.wait(&format!("document.querySelector('.view-{view}')"));
}

#[test]
fn a_search_finds_while_one_types_and_says_why() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.wait_text("sql-review");
    assert_eq!(browser.eval("location.hash"), "#/skills", "the code does not stay in the address");
    browser.press(Key("/"));
    browser.type_text("migration locks a table");
    browser.wait("document.querySelector('.item .meter')");
    browser.wait("document.querySelector('.item-name').innerText === 'sql-review'");
    let why = browser.text(".item .item-why");
    assert!(why.contains("migration"), "{why}");
    assert!(browser.eval("location.hash").as_str().unwrap().contains("q=migration"));
    browser.press(Key("Enter"));
    browser.wait("document.querySelector('.pane-detail h1')?.innerText === 'sql-review'");
    browser.wait_text("Instructions");
}

#[test]
fn shadowed_and_broken_skills_are_told_apart_with_the_line_that_is_wrong() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    let alone = |look: &str| {
        format!(
            "document.querySelectorAll('a.item').length === 1 && document.querySelector('{look}')"
        )
    };
    browser.click(".segments [data-value=shadowed]");
    browser.wait(&alone("a.item.dim"));
    browser.click(".segments [data-value=broken]");
    browser.wait(&alone("a.item .chip.bad"));
    browser.click(".item");
    browser.wait_text("What is wrong");
    assert!(browser.text(".pane-detail .source-line.marked").contains("name: draft"));
    browser.click(".segments [data-value=findings]");
    browser.wait("document.querySelector('.item .mono')?.innerText.startsWith('RS')");
    go(&mut browser, "skills/colon?state=");
    browser.wait("document.querySelector('.pane-detail h1')?.innerText === 'colon'");
    let marked = browser.text(".source-line.marked");
    assert!(marked.contains("Use when: the build"), "{marked}");
}

#[test]
fn the_room_of_an_agent_is_drawn_with_what_it_hides() {
    let ws = Workspace::new();
    for number in 0..40 {
        let name = format!("skill-{number:02}");
        let description =
            format!("Number {number}. {}", "Use when something has to be done. ".repeat(12));
        ws.skill(&format!("project/.claude/skills/{name}"), &name, &description);
    }
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.wait("document.querySelector('.budget .bar')");
    let claude = browser.text(".budget .legend");
    assert!(claude.contains("whole") && claude.contains("by name only"), "{claude}");
    browser.eval("(() => { const s = document.querySelector('.budget select'); s.value = 'copilot'; s.dispatchEvent(new Event('change')); })()");
    browser.wait("document.querySelector('.budget .legend').innerText.includes('hidden')");
}

#[test]
fn the_playground_says_which_skills_why_and_what_is_sent() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "play");
    browser.wait("document.activeElement?.tagName === 'TEXTAREA'");
    browser.type_text("is this sql migration safe?");
    browser.wait("document.querySelector('.pick-name')?.innerText === 'sql-review'");
    assert!(browser.text(".pick .reasons").contains("migration"));
    browser.wait("document.querySelector('.message .code')");
    let prompt = browser.text(".play-prompt");
    assert!(
        prompt.contains("is this sql migration safe?") && prompt.contains("Nothing was sent"),
        "{prompt}"
    );
    browser.eval("(() => { const t = document.querySelector('textarea'); t.value = 'what is the capital of France?'; t.dispatchEvent(new Event('input')); })()");
    browser.wait("document.querySelector('.abstained')");
    assert!(browser.text(".abstained").contains("No skill fits"));
}

#[test]
fn a_run_is_seen_live_paused_and_resumed() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    let writer = RunWriter::open(&ws);
    go(&mut browser, "runs");
    browser.wait_text("No runs yet");
    let run = writer.begin("Discount codes");
    browser.wait_text("Discount codes");
    browser.click("a.run-row");
    browser.wait("document.querySelector('.step.live')");
    run.finish_step(1, "implementation");
    browser.wait("document.querySelector('.step.ok[data-step=\"1\"]')");
    run.start_step(2, "review");
    browser.wait("document.querySelector('.step.live[data-step=\"2\"]')");
    let buttons = browser.text(".view-head .buttons");
    assert!(buttons.contains("Pause") && !buttons.contains("Resume"), "{buttons}");
    browser.eval("[...document.querySelectorAll('.buttons button')].find((b) => b.innerText.includes('Pause')).click()");
    browser.wait_text("pause asked for");
    run.finish_step(2, "review");
    run.pause();
    browser.wait("document.querySelector('.view-head [data-status=paused]')");
    browser.wait("[...document.querySelectorAll('.buttons button')].some((b) => b.innerText.includes('Resume'))");
    browser.eval("[...document.querySelectorAll('.buttons button')].find((b) => b.innerText.includes('Steer')).click()");
    browser.wait("document.querySelector('dialog[open] textarea')");
    browser.type_text("Leave the interface as it is");
    browser.eval("[...document.querySelectorAll('dialog button')].find((b) => b.innerText.includes('Send')).click()");
    browser.wait_text("says for the next prompt: “Leave the interface as it is”");
    browser.eval("[...document.querySelectorAll('.buttons button')].find((b) => b.innerText.includes('Resume')).click()");
    browser.wait("document.querySelector('.view-head [data-status=queued]')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_plan_that_was_worked_through_shows_what_it_changed() {
    let ws = repository();
    let ran = ws.rep("plan run --backend scripted:../agent.yaml");
    assert_eq!(ran.code, 0, "{ran}");
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "runs");
    browser.click("a.run-row");
    browser.wait("document.querySelectorAll('.step.ok').length >= 2");
    assert!(browser.text(".run-plan .legend").contains("2 reviewed"));
    browser.click("#tab-diff");
    browser.wait("document.querySelector('.diff-line.add')");
    browser.wait_text("alpha.txt");
}

#[test]
fn a_hot_reload_appears_without_a_refresh_and_takes_nothing_away() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.wait_text("sql-review");
    browser.eval("window.stays = true");
    browser.eval("document.querySelector('a.item').focus()");
    let focused = browser.eval("document.activeElement.querySelector('.item-name').innerText");
    ws.skill(
        "project/.claude/skills/brand-new",
        "brand-new",
        "Brand new. Use when something is new.",
    );
    browser.wait_text("brand-new");
    assert_eq!(browser.eval("window.stays"), true, "the page was loaded again");
    assert_eq!(
        browser.eval("document.activeElement.querySelector('.item-name').innerText"),
        focused
    );
    go(&mut browser, "skills/brand-new");
    browser.wait_text("Use when something is new.");
    ws.skill(
        "project/.claude/skills/brand-new",
        "brand-new",
        "Changed. Use when something is old.",
    );
    browser.wait("document.querySelector('.lead')?.innerText.startsWith('Changed.')");
}

#[test]
fn without_a_token_the_page_says_what_to_do_and_takes_another() {
    let ws = small_project_fixture();
    let Some((served, mut browser)) = visit(&ws) else { return };
    // A token that has expired is refused just as one that never was.
    browser.eval("sessionStorage.setItem('token', 'expired'); document.querySelector('.segments [data-value=used]').click()");
    browser.wait_text("rep serve link");
    browser.wait_text("Token expired");
    assert_eq!(browser.eval("sessionStorage.getItem('token')"), serde_json::Value::Null);
    browser.wait("document.getElementById('paste')");
    browser.eval("document.getElementById('paste').focus()");
    browser.type_text("nonsense");
    browser.press(Key("Enter"));
    browser.wait("document.getElementById('paste-problem').innerText !== ''");
    browser.eval("document.getElementById('paste').value = ''");
    browser.type_text(&served.token(&ws));
    browser.press(Key("Enter"));
    browser.wait("document.querySelector('.view-skills')");
    browser.wait("document.getElementById('live').dataset.state === 'live'");
    browser.open(&served.used_link());
    browser.eval("sessionStorage.clear()");
    browser.open("about:blank");
    browser.open(&served.used_link());
    browser.wait_text("rep serve link");
    assert!(!browser.eval("location.href").as_str().unwrap().contains("code="));
}

#[test]
fn the_text_of_strangers_is_shown_and_never_run() {
    let ws = Workspace::new();
    let evil = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=2</script>";
    let body = format!(
        "# {evil}\n\n{evil}\n\n[a](javascript:window.pwned=3)\n\n- {evil}\n\n```\n{evil}\n```\n"
    );
    let fields = format!("name: evil\ndescription: '{}'\n", evil.replace('\'', "''"));
    ws.write("project/.claude/skills/evil/SKILL.md", format!("---\n{fields}---\n\n{body}"));
    ws.write("project/.claude/skills/evil/references/evil.html", evil);
    let run_name = evil;
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.wait_text("onerror");
    browser.click("a.item");
    browser.wait("document.querySelector('.pane-detail .prose')");
    for tab in ["front", "files", "facts", "body"] {
        browser.click(&format!("#tab-{tab}"));
    }
    browser.click("#tab-files");
    browser.click(".files summary");
    browser.wait("document.querySelector('.files .code')");
    let writer = RunWriter::open(&ws);
    let run = writer.begin(run_name);
    run.finish_step(1, evil);
    for (view, _) in views(&mut browser) {
        go(&mut browser, &view);
    }
    go(&mut browser, "runs");
    browser.click("a.run-row");
    browser.wait("document.querySelector('.step')");
    browser.eval("new Promise((done) => setTimeout(done, 300))");
    assert_eq!(browser.eval("window.pwned ?? null"), serde_json::Value::Null);
    assert_eq!(
        browser.eval(
            "document.querySelectorAll('main script, main img[src=x], a[href^=javascript]').length"
        ),
        0
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn everything_can_be_done_by_keyboard() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.wait("document.querySelector('a.item')");
    browser.press(Key("Tab"));
    assert_eq!(browser.eval("document.activeElement.id"), "skip");
    browser.press(Key("Enter"));
    assert_eq!(browser.eval("document.activeElement.id"), "main");
    browser.press(Key("/"));
    assert_eq!(browser.eval("document.activeElement.getAttribute('aria-label')"), "Search skills");
    browser.press(Key("ArrowDown"));
    let first = browser.eval("document.activeElement.querySelector('.item-name').innerText");
    browser.press(Key("ArrowDown"));
    let second = browser.eval("document.activeElement.querySelector('.item-name').innerText");
    assert_ne!(first, second);
    let ring = browser.eval("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(ring, "solid", "what has the focus can be seen");
    browser.press(Key("Enter"));
    browser.wait(&format!("document.querySelector('.pane-detail h1')?.innerText === {second}"));
    browser.press(Key("Escape"));
    browser.wait("location.hash === '#/skills'");
    // The first view is the open one, so it comes last.
    let mut views = views(&mut browser);
    views.rotate_left(1);
    for (view, key) in views {
        browser.eval("document.activeElement.blur()");
        browser.press(Key("g"));
        browser.press(Key(&key));
        browser.wait(&format!("document.querySelector('.view-{view}')"));
        browser.wait("document.querySelector('main h1')");
    }
    browser.press(Key("?"));
    browser.wait("document.querySelector('dialog[open] .keys')");
    browser.press(Key("Escape"));
    browser.wait("!document.querySelector('dialog')");
    let before = browser.eval("document.documentElement.dataset.theme");
    browser.press(Key("t"));
    assert_ne!(browser.eval("document.documentElement.dataset.theme"), before);
}

#[test]
fn a_daemon_that_comes_back_is_found_again() {
    let ws = small_project_fixture();
    let Some((served, mut browser)) = visit(&ws) else { return };
    browser.wait_text("sql-review");
    let port = served.port();
    let token = served.token(&ws);
    drop(served);
    browser.wait("document.getElementById('live').dataset.state === 'reconnecting'");
    browser.eval(&format!("sessionStorage.setItem('token', '{token}')"));
    ws.skill(
        "project/.claude/skills/meanwhile",
        "meanwhile",
        "Made meanwhile. Use when nobody looks.",
    );
    let _again = Served::start_at(&ws, port);
    browser.wait("document.getElementById('live').dataset.state === 'live'");
    browser.wait_text("meanwhile");
}

#[test]
fn every_view_is_quiet_narrow_and_asks_nobody_else() {
    let ws = project_fixture();
    let Some((served, mut browser)) = visit(&ws) else { return };
    let origin = served.origin();
    let mut places: Vec<String> = views(&mut browser).into_iter().map(|(view, _)| view).collect();
    places.push("skills/sql-review".to_owned());
    places.push(format!("runs/{}", project_fixture::first(&ws, "--json runs", "runs", "id")));
    places.push(format!("reviews/{}", project_fixture::review(&ws)));
    places.push("workflows/sql-review".to_owned());
    places.push("workflows/run/orders-index".to_owned());
    places.push("workflows/run/orders-lock".to_owned());
    for (width, height) in [(1280, 800), (390, 844)] {
        browser.resize(width, height);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            for place in &places {
                browser.eval(&format!("location.hash = '#/{place}'"));
                browser.wait("document.querySelector('main h1')");
                browser.wait("!document.querySelector('main .skeleton')");
                browser.wait(&format!("document.documentElement.dataset.theme === '{scheme}'"));
                let wide = browser.eval("document.documentElement.scrollWidth");
                assert_eq!(wide, width, "{place} at {width} can be moved sideways");
                assert_eq!(
                    browser.eval("document.querySelectorAll('.failure').length"),
                    0,
                    "{place}"
                );
            }
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let strangers: Vec<String> = browser
        .requested()
        .into_iter()
        .filter(|url| !url.starts_with(&origin) && !url.starts_with("data:image/svg+xml"))
        .collect();
    assert_eq!(strangers, Vec::<String>::new());
}

#[test]
fn the_first_paint_needs_little() {
    let ws = small_project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    browser.wait("document.querySelector('a.item')");
    let sizes = browser.eval(
        "performance.getEntriesByType('resource').filter((e) => !e.name.includes('/api/')) \
         .concat(performance.getEntriesByType('navigation')).map((e) => [e.name, e.decodedBodySize])",
    );
    let sizes: Vec<(String, u64)> = serde_json::from_value(sizes).unwrap();
    let sum: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    assert!(sizes.len() > 5 && sum > 20_000, "{sizes:?}");
    assert!(sum < FIRST_PAINT_BYTES_MAX, "{sum} bytes: {sizes:?}");
}

#[test]
fn a_workflow_that_waits_is_seen_with_its_gate() {
    let ws = project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "workflows");
    browser.wait_text("orders-index");
    browser.eval("location.hash = '#/workflows/run/orders-index'");
    browser.wait("document.querySelector('img.graph-picture')?.naturalWidth > 0");
    browser.wait_text("line 3 locks it");
    browser.eval("location.hash = '#/workflows/run/orders-lock'");
    browser.wait_text("A person has to decide");
    browser.eval("document.querySelector('.decide input').focus()");
    browser.type_text("The window is on Sunday");
    browser.click(".decide [data-choice=skip]");
    browser.wait("document.querySelector('.view-head [data-status=done]')");
    browser.wait_text("skip, “The window is on Sunday”");
}

#[test]
fn findings_of_a_review_stand_in_their_diff() {
    let ws = project_fixture();
    let Some((_served, mut browser)) = visit(&ws) else { return };
    go(&mut browser, "reviews");
    browser.click("a.review-row");
    browser.wait("document.querySelector('.diff-line.add')");
    browser.wait("document.querySelector('.diff-lines .review-finding')");
    let after = browser.eval(
        "document.querySelector('.diff-lines .review-finding').previousElementSibling.className",
    );
    assert!(after.as_str().unwrap().starts_with("diff-line"), "{after}");
}
