//! `rep serve`: what it prints, how it is found again, and what it refuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use repertoire_scripted::TraceCollector;
use serde_json::{Value, json};

use crate::workspace::Workspace;

/// A daemon on a free port, ended with the test.
struct Daemon {
    child: Child,
    said: Value,
}

impl Daemon {
    fn start(ws: &Workspace, args: &[&str]) -> Self {
        let all = [&["--json", "serve", "--port", "0"], args].concat();
        let mut command = ws.command(&all);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Daemon { child, said: serde_json::from_str(&line).unwrap() }
    }

    fn address(&self) -> &str {
        self.said["address"].as_str().unwrap()
    }

    /// The status of an answer.
    fn ask(&self, head: &str, body: &str) -> u16 {
        self.ask_with(head, "", body)
    }

    /// The status of an answer to a request with more headers, each with its line break.
    fn ask_with(&self, head: &str, headers: &str, body: &str) -> u16 {
        let (address, length) = (self.address(), body.len());
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer[9..12].parse().unwrap()
    }

    fn redeem(&self, link: &str) -> u16 {
        let (_, code) = link.trim().split_once("#code=").unwrap();
        self.ask("POST /api/v1/session", &format!("{{\"code\":\"{code}\"}}"))
    }

    /// Asks it to end, as a supervisor does, and waits.
    fn end(&mut self) -> i32 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_daemon_says_where_it_is_and_links_open_one_page_each() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("serve link"), @"
    [stderr]
    error: no daemon is running
    hint: `rep serve` starts one.
    [exit 1]
    ");
    let mut daemon = Daemon::start(&ws, &[]);
    let token_file = daemon.said["token_file"].as_str().unwrap();
    assert_eq!(token_file, ws.path("data/serve/token"));
    let first = daemon.said["link"].as_str().unwrap();
    assert_eq!((daemon.redeem(first), daemon.redeem(first)), (200, 401));

    let second = ws.rep("serve link");
    assert_eq!(second.code, 0, "{second}");
    assert!(second.stdout.starts_with(&format!("http://{}/#code=", daemon.address())), "{second}");
    assert_eq!((daemon.redeem(&second.stdout), daemon.redeem(&second.stdout)), (200, 401));
    let third = ws.json("--json serve link", "serve.json");
    assert_eq!(third["address"], daemon.said["address"]);

    assert_eq!(daemon.end(), 0);
    assert!(!ws.path("data/serve/address").exists());
    assert_eq!(ws.rep("serve link").code, 1);
}

#[test]
fn a_second_daemon_on_the_same_port_is_told_of_the_first() {
    let ws = Workspace::new();
    let daemon = Daemon::start(&ws, &[]);
    let (_, port) = daemon.address().rsplit_once(':').unwrap();
    let second = ws.rep(&format!("serve --port {port}"));
    assert_eq!(second.code, 3);
    assert_eq!(second.stdout, "");
    let said =
        second.stderr.replace(port, "[PORT]").replace(&daemon.child.id().to_string(), "[PID]");
    assert_snapshot!(said, @"
    error: a daemon is at 127.0.0.1:[PORT] already: process [PID], for [TMP]/project
    hint: `rep serve link` prints a link to its page.
    hint: `--port 0` takes any port that is free.
    ");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let third = ws.rep(&format!("serve --port {port}")).stderr.replace(&port, "[PORT]");
    assert_snapshot!(third, @"
    error: another program listens on 127.0.0.1:[PORT]
    hint: `--port 0` takes any port that is free.
    ");
}

#[test]
fn a_daemon_that_was_killed_is_not_found() {
    let ws = Workspace::new();
    let daemon = Daemon::start(&ws, &[]);
    drop(daemon);
    assert!(ws.path("data/serve/address").exists());
    assert_eq!(ws.rep("serve link").code, 1);
    // Only a daemon removes the file: it may be the one of a daemon that is just starting.
    assert!(ws.path("data/serve/address").exists());
    let next = Daemon::start(&ws, &[]);
    assert_eq!(ws.rep("serve link").code, 0);
    drop(next);
}

#[test]
fn other_machines_are_let_in_only_on_purpose() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("serve --host 0.0.0.0 --port 0"), @"
    [stderr]
    error: other machines can reach 0.0.0.0, and this has no TLS
    hint: Reach this machine by `ssh -L 7757:127.0.0.1:7757 HOST`, and leave `--host` out.
    hint: Or say `--allow-remote --allowed-host NAME`, with the name that clients use, behind a proxy that has TLS.
    [exit 2]
    ");
    let check = |line: &str| {
        let ran = ws.rep(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran}");
    };
    check("serve --host 0.0.0.0 --port 0 --allow-remote");
    check("serve --host 0.0.0.0 --port 0 --allowed-host rep.example.com");
    check("serve --host 0.0.0.0 --port 0 --allow-remote --allowed-host http://x/");
    check("serve --port 0 --allow-remote --allowed-host x");
}

#[test]
fn a_token_that_others_could_read_is_replaced_with_a_note() {
    use std::os::unix::fs::PermissionsExt as _;
    let ws = Workspace::new();
    let mut daemon = Daemon::start(&ws, &[]);
    daemon.end();
    let (path, before) = (ws.path("data/serve/token"), ws.text("data/serve/token"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut daemon = Daemon::start(&ws, &["--work"]);
    assert_eq!(
        daemon.ask(
            &format!(
                "GET /api/v1/skills HTTP/1.1\r\nAuthorization: Bearer {}\r\nX:",
                before.trim()
            ),
            ""
        ),
        401
    );
    assert_ne!(ws.text("data/serve/token"), before);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(daemon.end(), 0);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert_snapshot!(ws.rep("serve --port 0"), @"
    [stderr]
    error: [TMP]/data/serve/token is a link: the token is kept here, and nowhere else
    hint: Remove it, and a new one is made.
    [exit 3]
    ");
}

#[test]
fn a_request_continues_its_callers_trace_at_the_collector() {
    let collector = TraceCollector::start();
    let mut ws = Workspace::new();
    ws.set("REPERTOIRE_TELEMETRY_OTLP_ENDPOINT", &collector.url());
    let mut daemon = Daemon::start(&ws, &[]);
    let caller = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    assert_eq!(daemon.ask_with("GET /api/v1/runs/7?secret=1", caller, ""), 401);
    assert_eq!(daemon.end(), 0);
    let spans = collector.spans();
    let span = spans.iter().find(|span| span["kind"] == 2).unwrap();
    assert_eq!(span["name"], "GET /api/v1/runs/{id}");
    assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
    let status = json!({"key": "http.response.status_code", "value": {"intValue": "401"}});
    assert!(span["attributes"].as_array().unwrap().contains(&status), "{span}");
    assert!(!span.to_string().contains("secret"), "{span}");
}
