//! How long clients of MCP wait: `cargo bench -p repertoire-serve --bench mcp [-- SKILLS]`, 10,000 skills by default.
//!
//! Every figure is from writing the request on a stream to having read the whole answer from it. "The first time" files are
//! listed and read, and digests made. What opening the skills costs is told apart. It fails when the median of the first page,
//! asked for again, is over [`FIRST_PAGE_MAX`].

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on should stop there"
)]
#![allow(dead_code, unused_imports, reason = "the helpers of the tests can do more")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "../tests/it/serve_state.rs"]
mod serve_state;
#[path = "../tests/it/mcp/wire.rs"]
mod wire;

use serve_state::Field;
use wire::Wire;

const ROUNDS: usize = 200;
/// What the first page may take at 10,000 skills once their names are settled; beyond it this fails.
const FIRST_PAGE_MAX: Duration = Duration::from_millis(5);
const THEMES: &[&str] =
    &["invoices", "kubernetes", "poetry", "postgres", "pdf forms", "tax", "maps", "audio"];

fn skills() -> usize {
    std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(10_000)
}

fn write(field: &Field, count: usize) {
    for number in 0..count {
        let theme = THEMES[number % THEMES.len()];
        let dir = format!("project/.agents/skills/skill-{number:05}");
        let text = format!(
            "---\nname: skill-{number:05}\ndescription: Works on {theme}, case {number}. Use when {theme} are asked for.\n\
             metadata:\n  author: bench\n---\n\n# Case {number}\n\n{}",
            format!("Do {theme} with care, step by step.\n").repeat(40)
        );
        field.write(&format!("{dir}/SKILL.md"), &text);
        field
            .write(&format!("{dir}/references/notes.md"), &format!("Notes on {theme} {number}.\n"));
    }
}

async fn timed(wire: &mut Wire, method: &str, params: Value) -> (Duration, Value) {
    let start = Instant::now();
    let answer = wire.ask(method, params).await;
    (start.elapsed(), answer)
}

/// Shows the times, and gives the median.
fn shown(what: &str, times: &mut [Duration]) -> Duration {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{what:<44} median {:>8.3} ms   p99 {:>8.3} ms", at(0.5), at(0.99));
    times[(times.len() - 1) / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let count = skills();
        let field = Field::new();
        write(&field, count);
        let start = Instant::now();
        let serve_state = field.serve_state().await;
        println!("{count} skills, opened in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
        let mut wire = Wire::to(serve_state).await;
        wire.ok("tools/list", json!({})).await;
        let (first, page) = timed(&mut wire, "skills/list", json!({})).await;
        let next = page["result"]["nextCursor"].clone();
        assert_eq!(page["result"]["skills"].as_array().unwrap().len(), count.min(50));
        println!("{:<44} once   {:>8.3} ms", "skills/list, first page, the first time", first.as_secs_f64() * 1e3);
        let mut again = Vec::new();
        let mut others = Vec::new();
        for _ in 0..ROUNDS {
            again.push(timed(&mut wire, "skills/list", json!({})).await.0);
        }
        let page = shown("skills/list, first page, again", &mut again);
        assert!(page <= FIRST_PAGE_MAX, "the first page took {page:?}, and may take {FIRST_PAGE_MAX:?}");
        let mut cursor = next;
        while cursor.is_string() {
            let (took, page) = timed(&mut wire, "skills/list", json!({ "cursor": cursor })).await;
            others.push(took);
            cursor = page["result"]["nextCursor"].clone();
        }
        if !others.is_empty() {
            shown("skills/list, every other page, the first time", &mut others);
        }
        let search = json!({ "name": "skill_search", "arguments": { "task": "Fill in the fields of a pdf form" } });
        let (first, _) = timed(&mut wire, "tools/call", search.clone()).await;
        println!("{:<44} once   {:>8.3} ms", "skill_search, the first time (index is made)", first.as_secs_f64() * 1e3);
        let mut searches = Vec::new();
        for _ in 0..ROUNDS {
            searches.push(timed(&mut wire, "tools/call", search.clone()).await.0);
        }
        shown("skill_search, again", &mut searches);
    });
}
