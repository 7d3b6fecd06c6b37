//! Floods and oversized requests against `rep serve`.
//!
//! By default the floods are small. `ATTACKS_FULL=1 cargo test -p repertoire-cli --test attacks -- server --nocapture` sends
//! 10,000 sockets, holds the promised figures, and prints them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scene::{Scene, is_full};
use crate::{Guarantee, Tried};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than the daemon of an older release had connections for.
const SOCKETS: usize = 4_200;
const SOCKETS_FULL: usize = 10_000;
const LISTENERS: usize = 4_200;
const LISTENERS_FULL: usize = 10_000;
/// Listeners before memory is measured: what a daemon takes once counts for none of them.
const FIRST_LISTENERS: usize = 200;
/// The memory that one listener may take.
const LISTENER_BYTES_MAX: u64 = 25 * 1024;
/// Paths that are answered without a token.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/api/v1/session"];
/// The memory that a body may take which was sent without a token.
const HELD_BODY_BYTES_MAX: u64 = 64 * 1024;
/// The time that the sockets may cost a client with a token.
const COST_MAX: Duration = Duration::from_millis(10);

pub(crate) fn guarantees() -> Vec<Guarantee> {
    vec![
        Guarantee {
            holds: "sockets without a token do not keep out a client that has one",
            tried: Tried::Once,
            attack: sockets_without_a_token,
        },
        Guarantee {
            holds: "thousands of clients with a token follow events, in little memory each",
            tried: Tried::Once,
            attack: many_listeners,
        },
        Guarantee {
            holds: "a body of 10 GB is refused before it is read",
            tried: Tried::Once,
            attack: a_huge_body,
        },
        Guarantee {
            holds: "bodies of clients without a token take no memory",
            tried: Tried::Once,
            attack: bodies_without_a_token,
        },
        Guarantee {
            holds: "a binary file of 15 MB is not served as 94 MB of JSON",
            tried: Tried::Once,
            attack: a_large_binary_file,
        },
        Guarantee {
            holds: "sessions of MCP are limited in number",
            tried: Tried::Once,
            attack: many_mcp_sessions,
        },
    ]
}

/// A daemon that is killed when the attack ends.
struct Daemon {
    child: Child,
    address: String,
    token: String,
}

impl Daemon {
    fn start(scene: &Scene, settings: &[(&str, &str)]) -> Self {
        let mut command = scene.rep_command(&["serve", "--port", "0", "--json"]);
        command.envs(settings.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        // Only now: the daemon has to raise its own limit.
        allow_many_files();
        let token = scene.read("data/serve/token").unwrap().trim().to_owned();
        Daemon { child, address: told["address"].as_str().unwrap().to_owned(), token }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The head of a request with the token; further headers end with `\r\n`.
    fn head(&self, first: &str, headers: &str) -> String {
        let (address, token) = (&self.address, &self.token);
        format!(
            "{first} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        )
    }

    /// Sends a request on a connection of its own, and reads the whole answer.
    fn ask(&self, first: &str, headers: &str, body: &str) -> String {
        let mut stream = self.connect();
        let head = self.head(first, &format!("Connection: close\r\n{headers}"));
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A connection that is closed with unread data ends with an error.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn post_json(&self, path: &str, headers: &str, body: &Value) -> String {
        let body = body.to_string();
        let headers = format!(
            "{headers}Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        self.ask(&format!("POST {path}"), &headers, &body)
    }

    /// The 99th percentile of the time that a small request takes, with its connection.
    fn slowest_of(&self, requests: usize) -> Duration {
        let mut times: Vec<Duration> = (0..requests)
            .map(|_| {
                let begun = Instant::now();
                let answer = self.ask("GET /api/v1/status", "", "");
                let time = begun.elapsed();
                assert!(answer.starts_with("HTTP/1.1 "), "{answer:?}");
                assert!(!answer.starts_with("HTTP/1.1 503"), "{answer}");
                time
            })
            .collect();
        times.sort();
        times[requests * 99 / 100]
    }

    /// The memory that the daemon has, in bytes.
    fn memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let mut text = String::new();
        std::fs::File::open(status).unwrap().read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sockets_without_a_token(scene: &Scene) {
    let daemon = Daemon::start(scene, &[]);
    let requests = if is_full() { 1_000 } else { 100 };
    let before = daemon.slowest_of(requests);
    let count = if is_full() { SOCKETS_FULL } else { SOCKETS };
    let mut sockets = Vec::with_capacity(count);
    for at in 0..count {
        let mut socket = daemon.connect();
        if at % 2 == 0 {
            // A head without an end. The daemon may have closed the socket already.
            let _ = socket.write_all(b"GET / HTTP/1.1\r\nHost: ");
        }
        sockets.push(socket);
    }
    let after = daemon.slowest_of(requests);
    report(&format!("{count} half-open sockets: p99 {before:?} before, {after:?} after"));
    // A busy machine makes single requests slow, so the short form only asks that they are answered.
    assert!(!is_full() || after < before + COST_MAX, "{before:?} before, {after:?} after");
}

fn many_listeners(scene: &Scene) {
    let daemon = Daemon::start(scene, &[]);
    let count = if is_full() { LISTENERS_FULL } else { LISTENERS };
    let mut listeners: Vec<TcpStream> = (0..FIRST_LISTENERS).map(|_| listen(&daemon)).collect();
    let before = daemon.memory();
    listeners.extend((0..count).map(|_| listen(&daemon)));
    let each = daemon.memory().saturating_sub(before) / count as u64;
    report(&format!("{count} listeners: {each} bytes of memory each"));
    assert!(each <= LISTENER_BYTES_MAX, "{each} bytes each");
    // All of them hear what happens.
    scene.write("project/PLAN.md", "# One\n\n- [ ] Write one\n");
    scene.commit("Plan");
    scene.write("agent.yaml", "- text: Done.\n");
    let backend = format!("scripted:{}", scene.path("agent.yaml"));
    let queued = scene.rep(&format!("plan run PLAN.md --detach --backend {backend}"));
    assert_eq!(queued.code, 0, "{queued:?}");
    for listener in listeners.iter_mut().rev().take(100) {
        let heard = read_until(listener, "RUN_CREATED");
        assert!(heard.contains("RUN_CREATED"), "{heard}");
    }
}

fn listen(daemon: &Daemon) -> TcpStream {
    let mut stream = daemon.connect();
    let request = daemon.head("GET /api/v1/events", "Accept: text/event-stream\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let heard = read_until(&mut stream, "event: hello");
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
    stream
}

fn a_huge_body(scene: &Scene) {
    let daemon = Daemon::start(scene, &[]);
    let begun = Instant::now();
    let headers = "Content-Type: application/json\r\nContent-Length: 10737418240\r\n";
    let answer = daemon.ask("POST /api/v1/select", headers, "{");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// Requests that hold back the end of their body, to every path that needs no token.
fn bodies_without_a_token(scene: &Scene) {
    const BODY_BYTES: usize = 1024 * 1024;
    let daemon = Daemon::start(scene, &[]);
    let count = if is_full() { 1_000 } else { 200 };
    daemon.slowest_of(10);
    let before = daemon.memory();
    let body = vec![b' '; BODY_BYTES - 8];
    for path in OPEN_PATHS {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {BODY_BYTES}\r\n\r\n",
            daemon.address
        );
        let held: Vec<TcpStream> = (0..count)
            .map(|_| {
                let mut stream = daemon.connect();
                stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
                // The daemon may close the connection before it has read the body.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
                stream
            })
            .collect();
        daemon.slowest_of(10);
        let each = daemon.memory().saturating_sub(before) / held.len() as u64;
        report(&format!("{count} bodies to {path} without a token: {each} bytes of memory each"));
        assert!(each <= HELD_BODY_BYTES_MAX, "{path}: {each} bytes each");
    }
}

fn a_large_binary_file(scene: &Scene) {
    scene.write(
        "project/.agents/skills/large/SKILL.md",
        "---\nname: large\ndescription: Has a large file.\n---\nBody.\n",
    );
    scene.write("project/.agents/skills/large/assets/zeros.bin", vec![1; 15 * 1024 * 1024]);
    let daemon = Daemon::start(scene, &[]);
    let answer = daemon.ask("GET /api/v1/skills/large/file?path=assets/zeros.bin", "", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{}", &answer[..answer.len().min(400)]);
    assert!(answer.len() < 1024 * 1024, "{} bytes", answer.len());
}

fn many_mcp_sessions(scene: &Scene) {
    let daemon = Daemon::start(scene, &[("REPERTOIRE_SERVE_MCP_SESSIONS_MAX", "3")]);
    let sessions: Vec<String> = (0..5).map(|_| begin_session(&daemon)).collect();
    let is_open = |session: &String| {
        let headers =
            format!("Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\n");
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
        daemon.post_json("/mcp", &headers, &ping).starts_with("HTTP/1.1 200")
    };
    let open: Vec<bool> = sessions.iter().map(is_open).collect();
    assert_eq!(open, [false, false, true, true, true], "the oldest make room");
}

fn begin_session(daemon: &Daemon) -> String {
    let begin = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "attack", "version": "1" },
        },
    });
    let accept = "Accept: application/json, text/event-stream\r\n";
    let answer = daemon.post_json("/mcp", accept, &begin);
    let lines = answer.lines().filter_map(|line| line.split_once(": "));
    let session = lines.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    session.unwrap_or_else(|| panic!("no session: {answer}")).1.to_owned()
}

/// Reads until these words have come, or the connection ends.
fn read_until(stream: &mut TcpStream, words: &str) -> String {
    let (mut heard, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(read @ 1..) => heard.extend_from_slice(&part[..read]),
            _ => return String::from_utf8_lossy(&heard).into_owned(),
        }
        let text = String::from_utf8_lossy(&heard);
        if text.contains(words) {
            return text.into_owned();
        }
    }
}

/// This process holds one end of every socket.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Shows a figure, past the test harness.
fn report(line: &str) {
    if is_full() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
