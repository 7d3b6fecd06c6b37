//! A client that writes what it is told to, and reads what comes back, line by line.

use std::time::Duration;

use repertoire_agent::form::AnswerForm;
use repertoire_serve::{ServeState, mcp};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long an answer may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of the protocol of 2025, after its handshake.
pub(crate) struct Wire {
    output: WriteHalf<DuplexStream>,
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    asked: u64,
    /// Methods of notifications that came in between.
    pub(crate) heard: Vec<String>,
    /// What the server has said of itself.
    pub(crate) server: Value,
    _stop: DropGuard,
}

impl Wire {
    pub(crate) async fn to(serve_state: ServeState) -> Self {
        Self::with_form(serve_state, None).await
    }

    pub(crate) async fn with_form(serve_state: ServeState, form: Option<AnswerForm>) -> Self {
        let mut wire = Self::silent(serve_state, form);
        let client = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        wire.server = wire.ok("initialize", client).await;
        wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        wire
    }

    /// A client that has said nothing yet.
    pub(crate) fn silent(serve_state: ServeState, form: Option<AnswerForm>) -> Self {
        let (mine, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let stop = CancellationToken::new();
        tokio::spawn(mcp::serve_stdio(serve_state, form, input, output, stop.clone()));
        let (input, output) = tokio::io::split(mine);
        Wire {
            output,
            input: BufReader::new(input).lines(),
            asked: 0,
            heard: Vec::new(),
            server: Value::Null,
            _stop: stop.drop_guard(),
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The next message, whatever it is.
    pub(crate) async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.input.next_line()).await;
        let line = line.expect("the server answers in time").unwrap().expect("it is still there");
        serde_json::from_str(&line).unwrap()
    }

    /// The whole answer to a request.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.hear().await;
            if message["id"] == id {
                return message;
            }
            self.heard.push(message["method"].as_str().unwrap_or_default().to_owned());
        }
    }

    /// The result of a request that goes well.
    #[track_caller]
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        async move {
            let answer = self.ask(method, params).await;
            assert!(answer["error"].is_null(), "{at}: {answer}");
            answer["result"].clone()
        }
    }

    /// The code and the words of a request that does not.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.ask(method, params).await;
        assert!(answer["result"].is_null(), "{answer}");
        let error = &answer["error"];
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// The text and the structure of what a tool gives.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        let result = self.ok("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(result["isError"], false, "{result}");
        (text(&result), result["structuredContent"].clone())
    }

    /// What a tool complains of.
    pub(crate) async fn complaint(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ok("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(result["isError"], true, "{result}");
        text(&result)
    }

    /// Waits for a notification.
    pub(crate) async fn until(&mut self, method: &str) {
        while !self.heard.iter().any(|heard| heard == method) {
            let message = self.hear().await;
            self.heard.push(message["method"].as_str().unwrap_or_default().to_owned());
        }
    }
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
