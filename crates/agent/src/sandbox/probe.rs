//! Finding out what works, by doing it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::policy::Walls;
use super::{Bubblewrap, Landlock, Network, Sandbox};
use crate::limits::PROBE_OUTPUT_BYTES_MAX;
use crate::process::{ProcessLimits, Spawn, Stdin, Termination};
use crate::workplace::Workplace;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where `bwrap` may be. The user's `PATH` does not count: what confines must not be replaceable by who is confined.
const BWRAP: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// The line in which the helper tells the version of Landlock.
pub(super) const REPORT: &str = "landlock-abi ";

pub(super) fn best(helper: &[String]) -> Sandbox {
    let (found, reasons) = attempts(helper, Wanted::First);
    found.into_iter().next().unwrap_or_else(|| unavailable(&reasons))
}

pub(super) fn all(helper: &[String]) -> Vec<Sandbox> {
    attempts(helper, Wanted::Every).0
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    First,
    Every,
}

/// From the strongest to the weakest that does without Landlock.
enum Kind {
    Namespaces,
    Unprivileged,
    Bubblewrap,
}

fn unavailable(reasons: &[String]) -> Sandbox {
    Sandbox::Unavailable { reason: reasons.join("; ").into() }
}

fn attempts(helper: &[String], wanted: Wanted) -> (Vec<Sandbox>, Vec<String>) {
    let (mut found, mut reasons) = (Vec::new(), Vec::new());
    if !cfg!(target_os = "linux") {
        return (found, vec!["there is none for this system yet".to_owned()]);
    }
    if !helper.first().is_some_and(|program| Utf8Path::new(program).is_absolute()) {
        return (found, vec!["the helper's path is not absolute".to_owned()]);
    }
    for kind in [Kind::Namespaces, Kind::Unprivileged, Kind::Bubblewrap] {
        let attempt = match kind {
            Kind::Namespaces => landlock(helper, Walls::All, &reasons),
            Kind::Unprivileged => landlock(helper, Walls::Unprivileged, &reasons),
            Kind::Bubblewrap => bubblewrap(helper),
        };
        match attempt {
            Ok(sandbox) => found.push(sandbox),
            Err(reason) => reasons.push(reason),
        }
        if wanted == Wanted::First && !found.is_empty() {
            break;
        }
    }
    (found, reasons)
}

fn landlock(helper: &[String], walls: Walls, reasons: &[String]) -> Result<Sandbox, String> {
    let candidate = |abi, degradations| {
        let helper = helper.to_vec();
        Sandbox::Landlock(Arc::new(Landlock { helper, walls, abi, degradations }))
    };
    let told = tried(&candidate(0, Vec::new())).map_err(|reason| format!("Landlock: {reason}"))?;
    let abi = told.lines().find_map(|line| line.strip_prefix(REPORT)?.parse().ok()).unwrap_or(0);
    let mut degradations = Vec::new();
    if walls == Walls::Unprivileged {
        let reason = reasons.first().map_or("not asked for", String::as_str);
        degradations.extend(without_namespaces(abi, reason));
    }
    if abi < 3 {
        degradations.push(
            "Files that may be read can also be emptied (`truncate`). Use Linux 6.2 or later."
                .to_owned(),
        );
    }
    Ok(candidate(abi, degradations))
}

fn without_namespaces(abi: u32, reason: &str) -> Vec<String> {
    let mut lines = vec![
        format!(
            "Namespaces are not allowed here ({reason}). Protected files are compared and put back after each \
             command, and the mode and times of files that may only be read can be changed. Allow user namespaces (sysctl \
             `user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns`), or start the container \
             without its seccomp profile."
        ),
        "Unix sockets and `/proc` are closed to programs, because they cannot be narrowed without namespaces."
            .to_owned(),
    ];
    if abi < 6 {
        lines.push(
            "Programs may send signals to your other processes. Use Linux 6.12 or later."
                .to_owned(),
        );
    }
    lines
}

fn bubblewrap(helper: &[String]) -> Result<Sandbox, String> {
    let program = BWRAP.iter().find(|path| Utf8Path::new(path).is_file());
    let program = program.ok_or("bubblewrap: `bwrap` is not installed")?;
    let mut degradations = Vec::new();
    if is_root() {
        degradations
            .push("Secrets in `/etc` that only root may read can be read by programs.".to_owned());
    }
    let sandbox = Sandbox::Bubblewrap(Arc::new(Bubblewrap {
        program: (*program).to_owned(),
        helper: helper.to_vec(),
        degradations,
    }));
    tried(&sandbox).map_err(|reason| format!("bubblewrap: {reason}"))?;
    Ok(sandbox)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `true` inside, in a folder that is gone afterwards.
fn tried(sandbox: &Sandbox) -> Result<String, String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let dir = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
        .map_err(|path| format!("`{}` is not UTF-8", path.display()))?;
    let dir = dir.canonicalize_utf8().map_err(|error| error.to_string())?;
    std::fs::create_dir(dir.join("work")).map_err(|error| error.to_string())?;
    let workplace = Workplace::new(dir.join("work"), dir.join("spill"), sandbox.clone());
    let limits = ProcessLimits {
        idle: None,
        absolute: PATIENCE,
        grace: Duration::ZERO,
        kept_bytes_max: PROBE_OUTPUT_BYTES_MAX,
    };
    let spawn = Spawn {
        program: "true".to_owned(),
        args: Vec::new(),
        dir: workplace.dir.clone(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin:/usr/local/bin".to_owned())],
        stdin: Stdin::Closed,
        limits,
        termination: Termination::default(),
    };
    waited_for(&reporting(sandbox.confine(spawn, &workplace, Network::Off)))
}

/// Asks the helper to tell what it got.
fn reporting(mut spawn: Spawn) -> Spawn {
    for argument in &mut spawn.args {
        if argument.starts_with('{') {
            *argument = argument.replace(r#""report":false"#, r#""report":true"#);
        }
    }
    spawn
}

/// A probe is made before any runtime, so it waits by itself.
fn waited_for(spawn: &Spawn) -> Result<String, String> {
    let mut child = Command::new(&spawn.program)
        .args(&spawn.args)
        .current_dir(&spawn.dir)
        .env_clear()
        .envs(spawn.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{}` cannot be started: {error}", spawn.program))?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it did not answer in time".to_owned());
            }
        }
    };
    let mut told = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(PROBE_OUTPUT_BYTES_MAX as u64).read_to_end(&mut told);
    }
    let told = String::from_utf8_lossy(&told).trim().to_owned();
    if status.success() {
        Ok(told)
    } else {
        Err(told.lines().next().unwrap_or("it failed").to_owned())
    }
}
