//! Starts a server as a client would, and asks who it is.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::limits::PROBE_TIMEOUT;

/// What is asked for: what every server of the last years speaks.
const PROTOCOL: &str = "2025-06-18";
/// Most that is read of an answer.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How long a server has to end when nobody listens any more.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a server is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It does not start.
    #[error("`{program}` does not start: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended, or said what is no answer.
    #[error("`{program}` did not answer `{asked}`: {why}")]
    Answer {
        /// The program.
        program: String,
        /// What it was asked.
        asked: &'static str,
        /// What happened instead.
        why: String,
    },
}

/// Who a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The names of its tools.
    pub tools: Vec<String>,
}

/// A command, and where it is started.
pub struct Probe<'a> {
    /// The program.
    pub program: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// The folder that it stands in.
    pub folder: &'a Utf8Path,
    /// All that it sees of the environment.
    pub vars: &'a BTreeMap<String, String>,
}

impl Probe<'_> {
    /// Starts the command, asks, and ends it.
    ///
    /// # Errors
    ///
    /// [`ProbeError`].
    pub async fn ask(&self) -> Result<Probed, ProbeError> {
        let mut command = Command::new(self.program);
        command.args(self.args).current_dir(self.folder).env_clear().envs(self.vars);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let start = |source| ProbeError::Start { program: self.program.to_owned(), source };
        let mut child = command.spawn().map_err(start)?;
        let probed = match tokio::time::timeout(PROBE_TIMEOUT, self.talk(&mut child)).await {
            Ok(probed) => probed,
            Err(_) => Err(self.silent("initialize", "it took too long")),
        };
        // Its input is closed by now, which is how a client says goodbye.
        if tokio::time::timeout(END_TIMEOUT, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
        probed
    }

    async fn talk(&self, child: &mut Child) -> Result<Probed, ProbeError> {
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(self.silent("initialize", "it has no streams"));
        };
        let mut lines = BufReader::new(output.take(ANSWER_BYTES_MAX)).lines();
        let client = json!({ "name": "rep setup", "version": env!("CARGO_PKG_VERSION") });
        let params =
            json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        let hello = self.call(&mut input, &mut lines, "initialize", params).await?;
        let known = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(&mut input, "initialize", &known).await?;
        let tools = self.call(&mut input, &mut lines, "tools/list", json!({})).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tools = tools["tools"].as_array().into_iter().flatten();
        Ok(Probed {
            name: text(&hello["serverInfo"]["name"]),
            version: text(&hello["serverInfo"]["version"]),
            tools: tools.map(|tool| text(&tool["name"])).collect(),
        })
    }

    async fn call(
        &self,
        input: &mut ChildStdin,
        lines: &mut Lines<BufReader<tokio::io::Take<ChildStdout>>>,
        asked: &'static str,
        params: Value,
    ) -> Result<Value, ProbeError> {
        let request = json!({ "jsonrpc": "2.0", "id": asked, "method": asked, "params": params });
        self.send(input, asked, &request).await?;
        loop {
            let line =
                lines.next_line().await.map_err(|error| self.silent(asked, &error.to_string()))?;
            let line = line.ok_or_else(|| self.silent(asked, "it ended"))?;
            let said: Value = serde_json::from_str(&line)
                .map_err(|_| self.silent(asked, "what it writes is no JSON"))?;
            if said["id"] != asked {
                continue;
            }
            return match said.get("result") {
                Some(result) => Ok(result.clone()),
                None => Err(self.silent(asked, &said["error"]["message"].to_string())),
            };
        }
    }

    async fn send(
        &self,
        input: &mut ChildStdin,
        asked: &'static str,
        message: &Value,
    ) -> Result<(), ProbeError> {
        let line = format!("{message}\n");
        let sent = input.write_all(line.as_bytes()).await;
        sent.map_err(|error| self.silent(asked, &format!("it does not listen ({error})")))
    }

    fn silent(&self, asked: &'static str, why: &str) -> ProbeError {
        ProbeError::Answer { program: self.program.to_owned(), asked, why: why.to_owned() }
    }
}
