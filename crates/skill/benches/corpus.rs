//! How long it takes to discover, parse and lint a folder of skills, against only reading the same bytes
//! with the same number of threads, and against the peers where they are installed.
//!
//! `cargo bench -p repertoire-skill` makes 2,500 skills of its own. With `REPERTOIRE_CORPUS=DIR` it takes
//! yours; with `SKILLS_REF_PYTHON=python` (a Python that has skills-ref) it runs skills-ref over the same
//! files in one process. Figures are the best of several rounds, of wall time and of CPU time: on a machine
//! that others use too, the ratio of CPU times is the honest one.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark may read, print and give up as it likes"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_skill::discover::{DiscoveryRequest, discover_catalog};
use repertoire_skill::limits::{SkillLimits, WalkLimits};
use repertoire_skill::lint::{LintRequest, LintRuleSet, lint_paths};
use repertoire_skill::profile::{ProfileId, Root, SearchDirectories};

/// The allocator that `rep` uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 15;

fn main() {
    let made = tempfile::tempdir().unwrap();
    let corpus = match std::env::var("REPERTOIRE_CORPUS") {
        Ok(dir) => Utf8PathBuf::from(dir),
        Err(_) => make_corpus(Utf8Path::from_path(made.path()).unwrap()),
    };
    let mut files = Vec::new();
    find(&corpus, &mut files);
    files.sort();
    let bytes: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    let threads = rayon::current_num_threads();
    println!("{} files, {} bytes, {threads} threads, best of {ROUNDS}\n", files.len(), bytes);

    let read = best(|| files.par_iter().map(|file| std::fs::read(file).unwrap().len()).sum());
    let find_and_read = best(|| {
        let mut found = Vec::new();
        find(&corpus, &mut found);
        found.par_iter().map(|file| std::fs::read(file).unwrap().len()).sum()
    });
    let discovered = best(|| discover_catalog(&request(&corpus)).entries().len());
    let checked = best(|| run_lint(&corpus, LintRuleSet::Repertoire));
    let verdicts = best(|| run_lint(&corpus, LintRuleSet::AgentSkills));

    println!(
        "{:<40} {:>10} {:>10} {:>10} {:>10}",
        "", "wall ms", "× reading", "CPU ms", "× reading"
    );
    let row = |name: &str, cost: Cost| {
        let wall = cost.wall.as_secs_f64() * 1e3;
        let cpu = cost.cpu.as_secs_f64() * 1e3;
        let wall_ratio = cost.wall.as_secs_f64() / read.wall.as_secs_f64();
        let cpu_ratio = cost.cpu.as_secs_f64() / read.cpu.as_secs_f64();
        println!("{name:<40} {wall:>10.2} {wall_ratio:>10.2} {cpu:>10.2} {cpu_ratio:>10.2}");
    };
    row("read the files, paths known", read);
    row("find the files and read them", find_and_read);
    row("discover and parse into a catalog", discovered);
    row("discover, parse and lint (repertoire)", checked);
    row("discover, parse and lint (agentskills)", verdicts);

    if let Ok(python) = std::env::var("SKILLS_REF_PYTHON") {
        let peer = skills_ref(&python, &files);
        row("skills-ref, in one process", peer);
        let ratio = |ours: Cost| peer.wall.as_secs_f64() / ours.wall.as_secs_f64();
        println!(
            "\nthroughput against skills-ref: {:.0} × (repertoire rules), {:.0} × (its own rules)",
            ratio(checked),
            ratio(verdicts)
        );
    }
}

/// What a piece of work took.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
}

fn best(mut work: impl FnMut() -> usize) -> Cost {
    let mut best = Cost { wall: Duration::MAX, cpu: Duration::MAX };
    for _ in 0..ROUNDS {
        let (start, cpu_start) = (Instant::now(), cpu_time());
        std::hint::black_box(work());
        best.wall = best.wall.min(start.elapsed());
        best.cpu = best.cpu.min(cpu_time() - cpu_start);
    }
    best
}

/// CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn find(dir: &Utf8Path, out: &mut Vec<Utf8PathBuf>) {
    for entry in dir.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            find(entry.path(), out);
        } else if entry.file_name() == "SKILL.md" {
            out.push(entry.into_path());
        }
    }
}

fn request(corpus: &Utf8Path) -> DiscoveryRequest {
    let nowhere = Utf8PathBuf::from("/nonexistent");
    let places = SearchDirectories { here: nowhere.clone(), home: nowhere.clone(), pack: nowhere };
    let mut request = DiscoveryRequest::new(ProfileId::Repertoire, places);
    request.roots = Some(Vec::new());
    request.extra_roots = vec![Root::named_by_user(corpus)];
    request.limits.walk = WalkLimits { depth_max: 32, entries_max: 1_000_000 };
    request.sync_pack = false;
    request
}

fn run_lint(corpus: &Utf8Path, rules: LintRuleSet) -> usize {
    let nothing = request(Utf8Path::new("/nonexistent"));
    let report = lint_paths(&LintRequest {
        paths: &[corpus.to_owned()],
        rules,
        limits: SkillLimits::default(),
        links_beneath: &|_| None,
        environment: &|| discover_catalog(&nothing),
        comparison: None,
        companions: None,
    });
    report.files.len()
}

const SKILLS_REF: &str = r"
import sys, time, pathlib
from skills_ref.validator import validate
paths = [pathlib.Path(line.strip()).parent for line in open(sys.argv[1])]
start = time.perf_counter()
for path in paths:
    try:
        validate(path)
    except Exception:
        pass
print(time.perf_counter() - start)
";

/// Wall time of skills-ref over all files, without the start of Python.
fn skills_ref(python: &str, files: &[Utf8PathBuf]) -> Cost {
    let list = tempfile::NamedTempFile::new().unwrap();
    let lines: Vec<&str> = files.iter().map(|file| file.as_str()).collect();
    std::fs::write(list.path(), lines.join("\n")).unwrap();
    let output = Command::new(python).args(["-c", SKILLS_REF]).arg(list.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let time = Duration::from_secs_f64(text.trim().parse().unwrap());
    Cost { wall: time, cpu: time }
}

/// Skills of the sizes that are found in the wild: half under 5 KB, one in ten over 15 KB.
fn make_corpus(dir: &Utf8Path) -> Utf8PathBuf {
    let paragraph = "Read the file that the user names, state what it does in one sentence, and list\n\
        what could break: inputs that are empty, names with spaces, and files that are not there.\n\n";
    for number in 0..2_500_usize {
        let name = format!("skill-{number:04}");
        let size = match number % 10 {
            0 => 16_000,
            1..=4 => 8_000,
            _ => 4_000,
        };
        let mut text = format!(
            "---\nname: {name}\ndescription: Handles case {number} of the benchmark. Use when case {number} comes up.\nlicense: MIT\nmetadata:\n  author: bench\n  version: \"1.0\"\nallowed-tools: Read Grep\n---\n\n# Case {number}\n\n"
        );
        while text.len() < size {
            text.push_str("## Step\n\n");
            text.push_str(paragraph);
            text.push_str(
                "```sh\ngit status\n```\n\n- See [the guide](https://example.org/guide).\n\n",
            );
        }
        let folder = dir.join(format!("group-{:02}", number % 50)).join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    dir.to_owned()
}
