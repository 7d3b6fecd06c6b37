//! A collector of OpenTelemetry traces: keeps the spans that it gets, answers late or never.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// The time after which a test fails that waits for a request.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A collector on this machine. It ends with the process.
#[derive(Debug)]
pub struct TraceCollector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Value>>>,
    arrivals: Receiver<()>,
    /// Answers are held back until this is dropped.
    gate: Option<Sender<()>>,
}

impl TraceCollector {
    /// Starts a collector that answers at once.
    pub fn start() -> Self {
        let mut collector = TraceCollector::start_silent();
        collector.open();
        collector
    }

    /// Starts a collector that takes requests and does not answer before [`TraceCollector::open`].
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub fn start_silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let bodies = Arc::<Mutex<Vec<Value>>>::default();
        let (gate, is_open) = channel();
        let (arrived, arrivals) = channel();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(body) = read_body(&stream) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(body);
                }
                // The test may have ended.
                let _ = arrived.send(());
                let _: Result<(), _> = is_open.recv();
                answer_request(stream);
            }
        });
        TraceCollector { address, bodies, arrivals, gate: Some(gate) }
    }

    /// Answers from now on.
    pub fn open(&mut self) {
        self.gate = None;
    }

    /// Waits until a request has arrived.
    ///
    /// # Panics
    ///
    /// If none arrives within 30 s.
    pub fn wait_for_request(&self) {
        let arrived = self.arrivals.recv_timeout(WAIT_MAX);
        assert_ne!(arrived, Err(RecvTimeoutError::Timeout), "no request arrived");
    }

    /// The endpoint to configure.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of all requests so far.
    pub fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The spans of all requests so far.
    pub fn spans(&self) -> Vec<Value> {
        let bodies = self.bodies();
        let spans = bodies.iter().map(|body| &body["resourceSpans"][0]["scopeSpans"][0]["spans"]);
        spans.flat_map(|spans| spans.as_array().cloned().unwrap_or_default()).collect()
    }
}

/// Reads a request and returns its body, if it is JSON for `/v1/traces`.
fn read_body(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if !head.starts_with("POST /v1/traces ") {
        return None;
    }
    serde_json::from_slice(&body).ok()
}

fn answer_request(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    // The client may have given up.
    let _ = stream.write_all(answer);
}
