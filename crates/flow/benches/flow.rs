//! How long the engine takes for a report, and how long a step takes to be shown, on every workflow that is shipped.
//!
//! `cargo bench -p repertoire-flow` drives each workflow over its edges and times every state that it comes to. Figures
//! are the median and the worst over states, of which each counts the best of a hundred times: what else the machine does
//! is not measured. The goals are 20 µs for a report and 200 µs for a step.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark may print and give up as it likes"
)]
#![allow(dead_code, reason = "the driver is shared with the tests, which need more of it")]

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use repertoire_flow::CheckedWorkflow;
use repertoire_flow::engine::{EngineInput, advance_run};
use repertoire_flow::file;
use repertoire_flow::render;
use repertoire_flow::state::{WorkflowRunState, WorkflowRunStatus};
use repertoire_flow::step::{StepAddressing, build_view};
use repertoire_skill::skill::SkillOrigin;
use repertoire_skill::{load, pack};
use repertoire_text::{Limits, Source};

#[path = "../tests/it/drive.rs"]
mod drive;

/// The allocator that `rep` uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    println!(
        "{:<28} {:>5} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "workflow", "steps", "states", "next p50", "next max", "step p50", "step max", "thaw"
    );
    let mut flows = flows();
    flows.sort_by_key(|(_, flow)| std::cmp::Reverse(flow.workflow().steps.len()));
    for (name, flow) in &flows {
        let reports = reports(flow);
        let nexts = times(&reports, |(state, input)| advance_run(flow, state, input).is_ok());
        let shown = times(&reports, |(state, _)| {
            render::render_xml(&build_view(flow, state, &StepAddressing::Run).unwrap()).len()
        });
        let bytes = flow.freeze();
        let thaw = times(&[()], |()| CheckedWorkflow::thaw(&bytes, flow.fingerprint()).is_ok());
        println!(
            "{name:<28} {:>5} {:>7} {} {} {} {} {}",
            flow.workflow().steps.len(),
            reports.len(),
            micros(nexts[nexts.len() / 2]),
            micros(nexts[nexts.len() - 1]),
            micros(shown[shown.len() / 2]),
            micros(shown[shown.len() - 1]),
            micros(thaw[0]),
        );
    }
}

fn micros(time: Duration) -> String {
    format!("{:>6.1} µs", time.as_secs_f64() * 1e6)
}

/// All workflows of the pack that can run.
fn flows() -> Vec<(String, CheckedWorkflow)> {
    let folder = Utf8PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills"));
    let mut all = Vec::new();
    for path in pack::list_pack_files().iter().filter(|path| path.ends_with("/SKILL.md")) {
        let text = String::from_utf8(pack::read_pack_file(path).unwrap().into_owned()).unwrap();
        let file = folder.join(path.as_ref());
        let source = Source::new(file.clone(), text);
        let skill =
            load::load_skill(source, SkillOrigin::from_file(file), &Limits::default()).skill;
        let loaded = skill.iter().flat_map(file::load_workflows);
        all.extend(loaded.filter_map(|loaded| Some((loaded.name, loaded.checked?))));
    }
    all
}

/// States of some runs, each with a report that is accepted.
fn reports(flow: &CheckedWorkflow) -> Vec<(WorkflowRunState, EngineInput)> {
    let mut all = Vec::new();
    for seed in 1..=8 {
        let mut driver = drive::Driver::new(flow, seed);
        let mut state = driver.state.clone();
        while driver.state.status == WorkflowRunStatus::Active {
            let wishes = driver.wishes();
            let wish = driver.dice.pick(&wishes).clone();
            driver.leave(&wish);
        }
        for input in &driver.accepted {
            let after = advance_run(flow, &state, input).unwrap();
            all.push((std::mem::replace(&mut state, after), input.clone()));
        }
    }
    all
}

/// The best times for each of these, sorted.
fn times<T, R>(over: &[T], work: impl Fn(&T) -> R) -> Vec<Duration> {
    let once = |given: &T| {
        let start = Instant::now();
        std::hint::black_box(work(given));
        start.elapsed()
    };
    let mut all: Vec<Duration> =
        over.iter().map(|given| (0..100).map(|_| once(given)).min().unwrap()).collect();
    all.sort_unstable();
    all
}
