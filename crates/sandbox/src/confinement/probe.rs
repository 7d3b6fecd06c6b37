//! The probe: finds out which sandboxes work by trying them.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::policy::SandboxLayers;
use super::{BubblewrapSandbox, LandlockSandbox, NetworkAccess, Sandbox, SandboxGuarantee};
use crate::limits::PROBE_OUTPUT_BYTES_MAX;
use crate::process::{ProcessInput, ProcessLimits, ProcessSpec, TerminationSettings};
use crate::workplace::RunWorkplace;

/// The timeout of one attempt.
const PATIENCE: Duration = Duration::from_secs(5);

/// Locations of `bwrap`. The user's `PATH` is ignored, so that confined programs cannot replace it.
const BWRAP: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// The prefix of the line in which the helper reports the Landlock ABI version.
pub(super) const REPORT: &str = "landlock-abi ";

/// The prefix of the lines in which the helper reports the guarantees that hold.
pub(super) const GUARANTEE: &str = "guarantee ";

/// Variables that tell the helper what to attack: a folder outside, the process of the prober, and its abstract socket.
pub(super) const OUTSIDE: &str = "PROBED_OUTSIDE";
pub(super) const PROBER: &str = "PROBER";
pub(super) const ABSTRACT_SOCKET: &str = "PROBED_ABSTRACT_SOCKET";

/// A protected file that exists in the work folder of a probe.
pub(super) const PROTECTED_FILE: &str = "AGENTS.md";

pub(super) fn probe_best(helper: &[String]) -> Sandbox {
    let (found, reasons) = try_sandboxes(helper, ProbeExtent::First);
    found.into_iter().next().unwrap_or_else(|| unavailable_sandbox(&reasons))
}

pub(super) fn probe_all(helper: &[String]) -> Vec<Sandbox> {
    try_sandboxes(helper, ProbeExtent::Every).0
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProbeExtent {
    First,
    Every,
}

/// The kinds of sandbox, from the strongest to the one that does without Landlock.
enum SandboxKind {
    Namespaces,
    Unprivileged,
    Bubblewrap,
}

fn unavailable_sandbox(reasons: &[String]) -> Sandbox {
    Sandbox::Unavailable { reason: reasons.join("; ").into() }
}

fn try_sandboxes(helper: &[String], wanted: ProbeExtent) -> (Vec<Sandbox>, Vec<String>) {
    let (mut found, mut reasons) = (Vec::new(), Vec::new());
    if !cfg!(target_os = "linux") {
        return (found, vec!["there is none for this system yet".to_owned()]);
    }
    if !helper.first().is_some_and(|program| Utf8Path::new(program).is_absolute()) {
        return (found, vec!["the helper's path is not absolute".to_owned()]);
    }
    for kind in [SandboxKind::Namespaces, SandboxKind::Unprivileged, SandboxKind::Bubblewrap] {
        let attempt = match kind {
            SandboxKind::Namespaces => try_landlock(helper, SandboxLayers::All, &reasons),
            SandboxKind::Unprivileged => {
                try_landlock(helper, SandboxLayers::Unprivileged, &reasons)
            }
            SandboxKind::Bubblewrap => try_bubblewrap(helper),
        };
        match attempt {
            Ok(sandbox) => found.push(sandbox),
            Err(reason) => reasons.push(reason),
        }
        if wanted == ProbeExtent::First && !found.is_empty() {
            break;
        }
    }
    (found, reasons)
}

fn try_landlock(
    helper: &[String],
    walls: SandboxLayers,
    reasons: &[String],
) -> Result<Sandbox, String> {
    let candidate = |abi, guarantees, notes| {
        let helper = helper.to_vec();
        Sandbox::Landlock(Arc::new(LandlockSandbox { helper, walls, abi, guarantees, notes }))
    };
    let told = run_probe(&candidate(0, BTreeSet::new(), Vec::new()))
        .map_err(|reason| format!("Landlock: {reason}"))?;
    let abi = told.lines().find_map(|line| line.strip_prefix(REPORT)?.parse().ok()).unwrap_or(0);
    let mut notes = Vec::new();
    if walls == SandboxLayers::Unprivileged {
        let reason = reasons.first().map_or("not asked for", String::as_str);
        notes.extend(without_namespaces(reason));
    }
    if abi < 3 {
        notes.push(
            "Files that may be read can also be emptied (`truncate`). Use Linux 6.2 or later."
                .to_owned(),
        );
    }
    if abi < 6 && walls == SandboxLayers::All {
        notes.push(ABSTRACT_WITH_NETWORK.to_owned());
    }
    if is_root() {
        notes.push(ROOT.to_owned());
    }
    Ok(candidate(abi, guarantees_in(&told), notes))
}

/// Parses the guarantees that the helper reported.
fn guarantees_in(told: &str) -> BTreeSet<SandboxGuarantee> {
    told.lines().filter_map(|line| line.strip_prefix(GUARANTEE)?.parse().ok()).collect()
}

const ROOT: &str = "Programs run as root: the system does not limit how many processes root starts. Run as an \
                    ordinary user.";

const ABSTRACT_WITH_NETWORK: &str = "A program that may use the network also reaches abstract Unix sockets of your \
                                     other programs. Use Linux 6.12 or later.";

fn without_namespaces(reason: &str) -> [String; 2] {
    [
        format!(
            "Namespaces are not allowed here ({reason}). Allow user namespaces (sysctl \
             `user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns`), or start the container \
             without its seccomp profile."
        ),
        "Unix sockets, System V IPC and `/proc` are closed to programs, because they cannot be narrowed without \
         namespaces."
            .to_owned(),
    ]
}

fn try_bubblewrap(helper: &[String]) -> Result<Sandbox, String> {
    let program = BWRAP.iter().find(|path| Utf8Path::new(path).is_file());
    let program = program.ok_or("bubblewrap: `bwrap` is not installed")?;
    let mut notes = vec![ABSTRACT_WITH_NETWORK.to_owned()];
    if is_root() {
        notes.push(ROOT.to_owned());
    }
    let candidate = |guarantees, notes| {
        let (program, helper) = ((*program).to_owned(), helper.to_vec());
        Sandbox::Bubblewrap(Arc::new(BubblewrapSandbox { program, helper, guarantees, notes }))
    };
    let told = run_probe(&candidate(BTreeSet::new(), Vec::new()))
        .map_err(|reason| format!("bubblewrap: {reason}"))?;
    Ok(candidate(guarantees_in(&told), notes))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `true` in the sandbox, in a temporary folder, with files and sockets outside for the helper to attack. Returns
/// the helper's report.
fn run_probe(sandbox: &Sandbox) -> Result<String, String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let dir = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
        .map_err(|path| format!("`{}` is not UTF-8", path.display()))?;
    let dir = dir.canonicalize_utf8().map_err(|error| error.to_string())?;
    let targets =
        ProbeTargets::new(&dir).map_err(|error| format!("a probe cannot be set up: {error}"))?;
    let workplace = RunWorkplace::new(dir.join("work"), dir.join("spill"), sandbox.clone());
    let limits = ProcessLimits {
        idle: None,
        absolute: PATIENCE,
        grace: Duration::ZERO,
        kept_bytes_max: PROBE_OUTPUT_BYTES_MAX,
    };
    let spawn = ProcessSpec {
        program: "true".to_owned(),
        args: Vec::new(),
        dir: workplace.dir.clone(),
        environment: targets.environment(&dir),
        stdin: ProcessInput::Closed,
        limits,
        termination: TerminationSettings::default(),
    };
    wait_for_report(&with_report(sandbox.confine(spawn, &workplace, NetworkAccess::Off)))
}

/// Files and sockets that the helper tries to reach from inside. The sockets listen until this is dropped.
struct ProbeTargets {
    _sockets: Vec<UnixListener>,
    abstract_socket: String,
}

impl ProbeTargets {
    fn new(dir: &Utf8Path) -> std::io::Result<Self> {
        std::fs::create_dir(dir.join("work"))?;
        std::fs::create_dir(dir.join("outside"))?;
        std::fs::File::create(dir.join("work").join(PROTECTED_FILE))?;
        std::fs::File::create(dir.join("outside/secret"))?;
        // A path may be too long for a socket. Then the helper finds nothing to connect to.
        let paths = [dir.join("work/socket"), dir.join("outside/socket")];
        let mut sockets: Vec<_> = paths.iter().flat_map(UnixListener::bind).collect();
        let folder = dir.file_name().unwrap_or_default();
        let abstract_socket = format!("repertoire-probe-{}-{folder}", std::process::id());
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            let name = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_socket)?;
            sockets.extend(UnixListener::bind_addr(&name));
        }
        Ok(ProbeTargets { _sockets: sockets, abstract_socket })
    }

    fn environment(&self, dir: &Utf8Path) -> Vec<(String, String)> {
        vec![
            probe_variable("PATH", "/usr/bin:/bin:/usr/local/bin"),
            probe_variable(OUTSIDE, dir.join("outside").as_str()),
            probe_variable(PROBER, &std::process::id().to_string()),
            probe_variable(ABSTRACT_SOCKET, &self.abstract_socket),
        ]
    }
}

fn probe_variable(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Makes the helper report what it achieved.
fn with_report(mut spawn: ProcessSpec) -> ProcessSpec {
    // The policy is JSON text in the helper's environment; flip its flag there.
    for (_, policy) in &mut spawn.environment {
        *policy = policy.replace(r#""report":false"#, r#""report":true"#);
    }
    spawn
}

/// Runs the probe and returns its standard error. Probes run before any async runtime exists, so this polls the child
/// itself.
fn wait_for_report(spawn: &ProcessSpec) -> Result<String, String> {
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
