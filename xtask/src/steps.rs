//! Measures the cost of a workflow step as a whole process, compared with a python3 script that prints one.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::write_atomic;
use serde_json::Value;

const SCRIPT: &str = include_str!("steps/step.py");
const RUNS: usize = 100;

pub(crate) fn measure_steps() -> Result<String> {
    let keep = tempfile::tempdir()?;
    let dir = Utf8PathBuf::try_from(keep.path().to_owned())?;
    let script = dir.join("planner.py");
    write_atomic(&script, SCRIPT.as_bytes())?;
    let rep = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/rep");
    ensure!(rep.exists(), "build it first: cargo build --release");
    let interpreter = find_interpreter()?;
    let bench = StepBench { rep, dir };
    bench.start_run("asked")?;
    bench.start_run("reported")?;
    let mut times: [Vec<Duration>; 4] = Default::default();
    // Interleave the measurements, so that other load on the machine affects all of them.
    for turn in 1..=RUNS {
        times[0].push(time_command(Command::new(&interpreter).args([
            script.as_str(),
            "--step",
            "6",
            "--total-steps",
            "13",
        ]))?);
        times[1].push(time_command(bench.command().args(["workflow", "step", "asked"]))?);
        times[2].push(time_command(bench.command().args([
            "workflow",
            "step",
            "reported",
            "--at",
            &turn.to_string(),
            "--outcome",
            "iterate",
        ]))?);
        times[3].push(time_command(bench.command().args([
            "workflow",
            "step",
            "planner",
            "--step",
            "6",
            "--total-steps",
            "13",
            "--param",
            "task=x",
        ]))?);
    }
    let [python, asked, reported, stateless] = times.map(median_duration);
    let mut out = format!(
        "Whole processes, median of {RUNS}, one after the other\n\n| what | time | python3 takes |\n|---|---:|---:|\n"
    );
    writeln!(
        out,
        "| `python3 planner.py --step 6`, which prints a step and keeps nothing | {:.1} ms | |",
        as_ms(python)
    )?;
    for (what, time) in [
        ("`rep workflow step RUN`: where a run of `planner` is", asked),
        (
            "`rep workflow step RUN --outcome …`: the next step, written to disk and synced",
            reported,
        ),
        ("`rep workflow step planner --step 6`: without a run, discovering all skills", stateless),
    ] {
        writeln!(out, "| {what} | {:.1} ms | {:.1} × |", as_ms(time), as_ms(python) / as_ms(time))?;
    }
    Ok(out)
}

/// The interpreter itself, since the `python3` on the PATH may be a wrapper script.
fn find_interpreter() -> Result<String> {
    let said =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

struct StepBench {
    rep: Utf8PathBuf,
    dir: Utf8PathBuf,
}

impl StepBench {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.rep);
        command.current_dir(&self.dir).env_clear().env("HOME", self.dir.join("home"));
        command
    }

    /// Starts a run of the planner, or of a loop that lasts as long as the measurement.
    fn start_run(&self, id: &str) -> Result<()> {
        if id == "reported" {
            let folder = self.dir.join("home/.agents/skills/round");
            let skill =
                "---\nname: round\ndescription: Goes round. Use when measuring.\n---\nGo round.\n";
            write_atomic(&folder.join("SKILL.md"), skill.as_bytes())?;
            write_atomic(&folder.join("workflow.yaml"), round_workflow()?.as_bytes())?;
        }
        let (workflow, param) =
            if id == "reported" { ("round", None) } else { ("planner", Some("task=x")) };
        let mut command = self.command();
        command.args(["--json", "workflow", "start", workflow, "--id", id]);
        command.args(param.into_iter().flat_map(|param| ["--param", param]));
        let output = command.output()?;
        let step: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        ensure!(step["run"] == id, "the run did not start: {step}");
        Ok(())
    }
}

/// A step that leads back to itself, with about as much text as one of the planner's.
fn round_workflow() -> Result<String> {
    let mut text = String::new();
    for line in 1..40 {
        writeln!(text, "        {line}. Look at it closely, write down what you see, and where.")?;
    }
    Ok(format!(
        "steps:\n  - id: work\n    title: Work\n    actions:\n      - |\n{text}    loop: {{ max: 100, at_limit: iterate }}\n    outcomes: {{ ok: enough, iterate: more }}\n    next: {{ ok: end, iterate: again }}\n  - id: again\n    title: Again\n    actions: [Once more.]\n    outcomes: {{ ok: enough, iterate: more }}\n    loop: {{ max: 100 }}\n    next: {{ ok: end, iterate: work }}\n"
    ))
}

fn time_command(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let status =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let took = begun.elapsed();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(took)
}

fn median_duration(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn as_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
