//! Starts a server as a client would, and asks for its name, version and tools.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::limits::PROBE_TIMEOUT;

/// The protocol version to request; supported by all recent servers.
const PROTOCOL: &str = "2025-06-18";
/// The maximum number of bytes read of the output.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The time that a server has to exit after its input was closed.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason why a probe failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("`{program}` does not start: {source}")]
    Start { program: String, source: std::io::Error },
    /// The server exited, or sent an invalid response.
    #[error("`{program}` did not answer `{asked}`: {why}")]
    Answer {
        program: String,
        /// The method that was called.
        asked: &'static str,
        why: String,
    },
}

/// The information that a server gave about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tools: Vec<String>,
}

/// The command to probe, and its environment.
pub(crate) struct ServerProbe<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    /// The working folder.
    pub(crate) folder: &'a Utf8Path,
    /// The complete environment; nothing is inherited.
    pub(crate) vars: &'a BTreeMap<String, String>,
}

impl ServerProbe<'_> {
    /// Starts the command, queries it, and stops it.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not start or answer.
    pub(crate) async fn ask(&self) -> Result<ServerInfo, ProbeError> {
        let mut command = Command::new(self.program);
        command.args(self.args).current_dir(self.folder).env_clear().envs(self.vars);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let start = |source| ProbeError::Start { program: self.program.to_owned(), source };
        let mut child = command.spawn().map_err(start)?;
        let probed = match tokio::time::timeout(PROBE_TIMEOUT, self.query_server(&mut child)).await
        {
            Ok(probed) => probed,
            Err(_) => Err(self.answer_error("initialize", "it took too long")),
        };
        // Its stdin is closed by now, which is how a client ends a session.
        if tokio::time::timeout(END_TIMEOUT, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
        probed
    }

    async fn query_server(&self, child: &mut Child) -> Result<ServerInfo, ProbeError> {
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(self.answer_error("initialize", "it has no streams"));
        };
        let mut lines = BufReader::new(output.take(ANSWER_BYTES_MAX)).lines();
        let client = json!({ "name": "rep setup", "version": env!("CARGO_PKG_VERSION") });
        let params =
            json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        let hello = self.call_method(&mut input, &mut lines, "initialize", params).await?;
        let known = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send_message(&mut input, "initialize", &known).await?;
        let tools = self.call_method(&mut input, &mut lines, "tools/list", json!({})).await?;
        let tools = tools["tools"].as_array().into_iter().flatten();
        Ok(ServerInfo {
            name: string_value(&hello["serverInfo"]["name"]),
            version: string_value(&hello["serverInfo"]["version"]),
            tools: tools.map(|tool| string_value(&tool["name"])).collect(),
        })
    }

    async fn call_method(
        &self,
        input: &mut ChildStdin,
        lines: &mut Lines<BufReader<tokio::io::Take<ChildStdout>>>,
        asked: &'static str,
        params: Value,
    ) -> Result<Value, ProbeError> {
        let request = json!({ "jsonrpc": "2.0", "id": asked, "method": asked, "params": params });
        self.send_message(input, asked, &request).await?;
        loop {
            let line = lines
                .next_line()
                .await
                .map_err(|error| self.answer_error(asked, &error.to_string()))?;
            let line = line.ok_or_else(|| self.answer_error(asked, "it ended"))?;
            let said: Value = serde_json::from_str(&line)
                .map_err(|_| self.answer_error(asked, "what it writes is no JSON"))?;
            if said["id"] != asked {
                continue;
            }
            return match said.get("result") {
                Some(result) => Ok(result.clone()),
                None => Err(self.answer_error(asked, &said["error"]["message"].to_string())),
            };
        }
    }

    async fn send_message(
        &self,
        input: &mut ChildStdin,
        asked: &'static str,
        message: &Value,
    ) -> Result<(), ProbeError> {
        let line = format!("{message}\n");
        let sent = input.write_all(line.as_bytes()).await;
        sent.map_err(|error| self.answer_error(asked, &format!("it does not listen ({error})")))
    }

    fn answer_error(&self, asked: &'static str, why: &str) -> ProbeError {
        ProbeError::Answer { program: self.program.to_owned(), asked, why: why.to_owned() }
    }
}

fn string_value(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
