//! Measures the overhead of a run: time to the first request and CPU time per turn, compared with other agents against
//! the same scripted model on this machine. The model answers immediately, so all remaining time is overhead.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use repertoire_scripted::{ModelScript, ScriptedServer, ScriptedTurn};
use serde_json::{Value, json};

const TURNS: usize = 20;
const RUNS: usize = 5;

/// An agent to measure.
struct MeasuredAgent {
    name: &'static str,
    program: Utf8PathBuf,
    /// The tool that reads or prints a small file, and its arguments.
    tool: (&'static str, Value),
    args: fn(&str) -> Vec<String>,
    environment: fn(&str) -> Vec<(&'static str, String)>,
}

/// The median cost of several runs.
struct AgentCost {
    first_request: Duration,
    wall: Duration,
    cpu: Duration,
}

pub(crate) fn measure_agents(bin: Option<&Utf8Path>) -> Result<String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut out = format!(
        "{TURNS} turns with a tool each, median of {RUNS} runs\n\n| agent | to the first request | processor, whole run | a turn | turns alone |\n|---|---|---|---|---|\n"
    );
    let mut measured = 0;
    for agent in list_agents(bin) {
        if !agent.program.exists() {
            writeln!(out, "| {} | not found at {} | | | |", agent.name, agent.program)?;
            continue;
        }
        let one = measure_cost(&runtime, &agent, 1).with_context(|| agent.name.to_owned())?;
        let many = measure_cost(&runtime, &agent, TURNS).with_context(|| agent.name.to_owned())?;
        let between = many.cpu.saturating_sub(one.cpu) / (TURNS as u32 - 1);
        writeln!(
            out,
            "| {} | {:.1} ms | {:.1} ms ({:.0} ms wall) | {:.2} ms | {:.2} ms |",
            agent.name,
            as_ms(one.first_request),
            as_ms(many.cpu),
            as_ms(many.wall),
            as_ms(many.cpu) / TURNS as f64,
            as_ms(between),
        )?;
        measured += 1;
    }
    ensure!(measured > 0, "there was nothing to measure\n{out}");
    Ok(out)
}

fn list_agents(bin: Option<&Utf8Path>) -> Vec<MeasuredAgent> {
    let target = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/rep");
    let other = |name: &str| find_program(bin, name);
    let rep = |name, tool| rep_agent(name, tool, target.clone());
    vec![
        rep("rep run, read", ("read", json!({"path": "note.txt"}))),
        rep("rep run, bash", ("bash", json!({"command": "cat note.txt"}))),
        MeasuredAgent {
            name: "claude -p, Read",
            program: other("claude"),
            tool: ("Read", json!({"file_path": "note.txt"})),
            args: |_| {
                split_words(
                    "-p go --output-format stream-json --verbose --allowedTools Read,Bash --max-turns 50",
                )
            },
            environment: |url| {
                vec![
                    ("ANTHROPIC_BASE_URL", url.to_owned()),
                    ("ANTHROPIC_API_KEY", "none".to_owned()),
                    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ]
            },
        },
        MeasuredAgent {
            name: "codex exec, shell",
            program: other("codex"),
            tool: ("exec_command", json!({"cmd": "cat note.txt"})),
            args: |url| {
                let mut args = split_words(
                    "exec --json --skip-git-repo-check -s workspace-write --disable apps --disable plugins -m gpt-5-codex -c model_provider=local -c",
                );
                args.push(format!("model_providers.local={{name=\"local\",base_url=\"{url}/v1\",env_key=\"LOCAL_KEY\",wire_api=\"responses\"}}"));
                args.push("go".to_owned());
                args
            },
            environment: |_| vec![("LOCAL_KEY", "none".to_owned())],
        },
    ]
}

fn rep_agent(
    name: &'static str,
    tool: (&'static str, Value),
    program: Utf8PathBuf,
) -> MeasuredAgent {
    MeasuredAgent {
        name,
        program,
        tool,
        args: |_| {
            split_words("run --json -m anthropic/claude-haiku-4-5 --full-access --max-turns 50 go")
        },
        environment: |url| {
            vec![("ANTHROPIC_BASE_URL", url.to_owned()), ("ANTHROPIC_API_KEY", "none".to_owned())]
        },
    }
}

fn find_program(bin: Option<&Utf8Path>, name: &str) -> Utf8PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "a measurement looks where its user's shell looks"
    )]
    let path = std::env::var("PATH").unwrap_or_default();
    let dirs =
        bin.map(Utf8Path::to_owned).into_iter().chain(path.split(':').map(Utf8PathBuf::from));
    let mut files = dirs.map(|dir| dir.join(name));
    files.find(|file| file.exists()).unwrap_or_else(|| Utf8PathBuf::from(name))
}

fn split_words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn as_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn measure_cost(
    runtime: &tokio::runtime::Runtime,
    agent: &MeasuredAgent,
    turns: usize,
) -> Result<AgentCost> {
    // Codex keeps helpers in its home, and refuses the system's temporary folder.
    let base = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let dir = tempfile::Builder::new().prefix("agents-").tempdir_in(base)?;
    let here = Utf8Path::from_path(dir.path()).context("the folder's name is not UTF-8")?;
    // Warm up: one-time setup is not measured.
    run_once(runtime, agent, turns, here)?;
    let mut costs = Vec::new();
    for _ in 0..RUNS {
        costs.push(run_once(runtime, agent, turns, here)?);
    }
    Ok(AgentCost {
        first_request: median_cost(&costs, |cost| cost.first_request),
        wall: median_cost(&costs, |cost| cost.wall),
        cpu: median_cost(&costs, |cost| cost.cpu),
    })
}

fn median_cost(costs: &[AgentCost], of: fn(&AgentCost) -> Duration) -> Duration {
    let mut values: Vec<Duration> = costs.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn run_once(
    runtime: &tokio::runtime::Runtime,
    agent: &MeasuredAgent,
    turns: usize,
    here: &Utf8Path,
) -> Result<AgentCost> {
    let mut script = ModelScript::new().by_results().aside("A title").repeat_last();
    for _ in 1..turns {
        script = script.turn(ScriptedTurn::tool(agent.tool.0, agent.tool.1.clone()));
    }
    let server = runtime.block_on(ScriptedServer::start(script.turn(ScriptedTurn::text("Done."))));
    let (home, work) = (here.join("home"), here.join("work"));
    std::fs::create_dir_all(home.join("codex"))?;
    std::fs::create_dir_all(&work)?;
    repertoire_text::fs::write_atomic(&work.join("note.txt"), b"a small file\n")?;
    let mut command = Command::new(&agent.program);
    command.args((agent.args)(&server.url())).current_dir(&work).env_clear();
    command
        .env("HOME", &home)
        .env("CODEX_HOME", home.join("codex"))
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.envs((agent.environment)(&server.url()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = cpu_of_children()?;
    let begun = Instant::now();
    let output = command.output()?;
    let wall = begun.elapsed();
    let cpu = cpu_of_children()?.saturating_sub(before);
    let requests = server.requests();
    let asked = requests.iter().filter(|request| request.has_tools()).count();
    if asked < turns {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "it asked {asked} times instead of {turns}; it said: {}",
            said.chars().take(600).collect::<String>()
        );
    }
    let first = requests.first().context("it asked nothing")?.received;
    Ok(AgentCost { first_request: first.duration_since(begun), wall, cpu })
}

fn cpu_of_children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros).unwrap_or_default()))
}
