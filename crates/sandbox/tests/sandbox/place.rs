//! A place with something to steal: a home with a key, a folder of somebody else, listeners, a bystander.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use repertoire_sandbox::confinement::{NetworkAccess, Sandbox};
use repertoire_sandbox::process::{
    OutputFlow, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec, TerminationSettings, run,
};
use repertoire_sandbox::workplace::RunWorkplace;
use tokio_util::sync::CancellationToken;

pub(crate) const CANARY: &str = "canary-that-nobody-may-see";

pub(crate) struct Place {
    _scratch: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) mark: String,
    bystander: Child,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    _unix: [UnixListener; 2],
    _abstract_unix: UnixListener,
}

pub(crate) fn helper() -> Vec<String> {
    vec![env!("CARGO_BIN_EXE_repertoire-sandbox").to_owned()]
}

impl Place {
    pub(crate) fn new() -> Place {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(scratch.path().canonicalize().expect("is there"));
        let root = root.expect("UTF-8");
        let mark = format!("mark-{}", root.file_name().expect("a name"));
        for folder in [
            "home/.ssh",
            "home/.cargo",
            "outside",
            "readable",
            "spill",
            "work/.git/hooks",
            "work/sub",
        ] {
            std::fs::create_dir_all(root.join(folder)).expect("created");
        }
        for file in [
            "home/.ssh/id",
            "home/.cargo/credentials.toml",
            "home/.netrc",
            "outside/secret",
            "outside/victim",
            "readable/text",
            "work/.git/hooks/pre-commit",
            "work/.git/config",
            "work/AGENTS.md",
            "work/.claude/settings.json",
            "work/skills/a/SKILL.md",
            "work/nest/AGENTS.md",
            "work/nest/.git/config",
            "work/nest/.git/hooks/pre-commit",
        ] {
            put(&root.join(file), CANARY);
        }
        let bystander = Command::new("sh")
            .args(["-c", "read line", &mark])
            .env("SECRET", CANARY)
            .stdin(Stdio::piped())
            .spawn()
            .expect("starts");
        let name = SocketAddr::from_abstract_name(&mark).expect("a name");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("binds");
        udp.set_nonblocking(true).expect("can");
        Place {
            bystander,
            tcp: TcpListener::bind("127.0.0.1:0").expect("binds"),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp,
            _unix: ["outside/socket", "work/sub/socket"]
                .map(|path| UnixListener::bind(root.join(path)).expect("binds")),
            _abstract_unix: UnixListener::bind_addr(&name).expect("binds"),
            mark,
            root,
            _scratch: scratch,
        }
    }

    pub(crate) fn workplace(&self, sandbox: &Sandbox) -> RunWorkplace {
        let (work, spill) = (self.root.join("work"), self.root.join("spill"));
        let workplace = RunWorkplace::new(work, spill, sandbox.clone());
        workplace.readable.add(self.root.join("readable"));
        workplace
    }

    pub(crate) fn spawn(&self, script: &str) -> ProcessSpec {
        let port6 = self.tcp6.as_ref().map_or(1, |tcp6| tcp6.local_addr().expect("bound").port());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        ProcessSpec {
            program: "bash".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            dir: self.root.join("work"),
            environment: vec![
                pair("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
                pair("HOME", self.root.join("home").as_str()),
                pair("REAL_HOME", self.root.join("home").as_str()),
                pair("OUT", self.root.join("outside").as_str()),
                pair("READABLE", self.root.join("readable").as_str()),
                pair("MARK", &self.mark),
                pair("CANARY", CANARY),
                pair("PARENT", &std::process::id().to_string()),
                pair("BYSTANDER", &self.bystander.id().to_string()),
                pair("TCP", &self.tcp.local_addr().expect("bound").port().to_string()),
                pair("TCP6", &port6.to_string()),
                pair("UDP", &self.udp.local_addr().expect("bound").port().to_string()),
            ],
            stdin: ProcessInput::Closed,
            limits: ProcessLimits {
                idle: None,
                absolute: Duration::from_secs(20),
                grace: Duration::from_millis(300),
                kept_bytes_max: 64 * 1024,
            },
            termination: TerminationSettings::default(),
        }
    }

    pub(crate) async fn run(
        &self,
        sandbox: &Sandbox,
        network: NetworkAccess,
        script: &str,
    ) -> ProcessResult {
        let spawn = sandbox.confine(self.spawn(script), &self.workplace(sandbox), network);
        ended(&spawn).await
    }

    /// What was done to the world outside, in one word each.
    pub(crate) fn damage(&mut self) -> Vec<String> {
        let mut damage = Vec::new();
        let outside: Vec<_> = names(&self.root.join("outside"));
        if outside != ["secret", "socket", "victim"] {
            damage.push(format!("files outside: {outside:?}"));
        }
        if text(&self.root.join("outside/victim")) != CANARY {
            damage.push("a file outside was changed".to_owned());
        }
        if self.udp.recv(&mut [0; 16]).is_ok() {
            damage.push("a datagram came".to_owned());
        }
        self.tcp.set_nonblocking(true).expect("can");
        if self.tcp.accept().is_ok() {
            damage.push("a connection came".to_owned());
        }
        if self.bystander.try_wait().expect("ours").is_some() {
            damage.push("the bystander is dead".to_owned());
        }
        damage
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

pub(crate) async fn ended(spawn: &ProcessSpec) -> ProcessResult {
    run(spawn, &CancellationToken::new(), &mut |_| OutputFlow::Continue).await.expect("starts")
}

pub(crate) fn said(ended: &ProcessResult) -> String {
    let out = String::from_utf8_lossy(&ended.stdout.bytes);
    let err = String::from_utf8_lossy(&ended.stderr.bytes);
    format!("{out}{err}(code {:?}, stopped {:?})", ended.code, ended.stopped)
}

pub(crate) fn put(path: &camino::Utf8Path, text: &str) {
    use std::io::Write;
    std::fs::create_dir_all(path.parent().expect("has one")).expect("created");
    let mut file = std::fs::File::create(path).expect("created");
    file.write_all(text.as_bytes()).expect("written");
}

pub(crate) fn text(path: &camino::Utf8Path) -> String {
    let mut text = String::new();
    let mut file = std::fs::File::open(path).expect("is there");
    file.read_to_string(&mut text).expect("UTF-8");
    text
}

pub(crate) fn names(dir: &camino::Utf8Path) -> Vec<String> {
    let entries = dir.read_dir_utf8().expect("is there").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_owned()).collect();
    names.sort();
    names
}

/// How many processes have this argument, after a moment in which they may vanish.
pub(crate) fn alive(mark: &str) -> usize {
    let count = || {
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes.filter(|entry| has_argument(&entry.path().join("cmdline"), mark)).count()
    };
    let deadline = Instant::now() + Duration::from_secs(3);
    while count() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    count()
}

fn has_argument(cmdline: &Path, mark: &str) -> bool {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(cmdline).and_then(|mut file| file.read_to_end(&mut bytes));
    read.is_ok() && bytes.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
}
