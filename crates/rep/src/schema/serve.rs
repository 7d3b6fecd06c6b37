//! The shapes of `rep serve --json` and `rep setup … --json`.

use repertoire_serve::clients::Scope;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// `rep serve --json` and `rep serve link --json`, on one line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServeJson {
    /// The address to connect to, with its port.
    pub address: String,
    /// Opens the page once, within ten minutes.
    pub link: String,
    /// Where the token is that programs send.
    pub token_file: String,
}

/// `rep setup --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupListJson {
    /// Every client that is known.
    pub clients: Vec<SetupClientJson>,
}

/// A client, and what its files say of us.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupClientJson {
    /// What is typed.
    pub client: String,
    /// What people call it.
    pub name: String,
    /// Whether there are signs of it on this machine.
    pub found: bool,
    /// The files that it reads.
    pub files: Vec<SetupFileJson>,
}

/// A configuration file of a client.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupFileJson {
    /// Whose it is.
    pub scope: Scope,
    /// Where it is, or would be.
    pub file: String,
    /// Whether our entry is in it.
    pub set_up: bool,
    /// Whether an entry of somebody else's has our name.
    pub foreign: bool,
    /// Why it cannot be read; null if it can.
    pub problem: Option<String>,
}

/// `rep setup CLIENT --json`, also with `--remove` or `--replace`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupDoneJson {
    /// The client.
    pub client: String,
    /// Whose configuration.
    pub scope: Scope,
    /// The file.
    pub file: String,
    /// What became of it.
    pub done: SetupDone,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SetupDone {
    /// There was none, and now there is.
    Made,
    /// It has the entry now, or has it no more.
    Changed,
    /// It was as it should be.
    Unchanged,
    /// It was made for the entry, and is gone with it.
    Removed,
    /// It has the entry again that ours had replaced.
    Restored,
}

/// `rep setup CLIENT --print --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupPrintJson {
    /// The client.
    pub client: String,
    /// Whose configuration.
    pub scope: Scope,
    /// The file that it would go into.
    pub file: String,
    /// The keys on the way to the list of servers.
    pub keys: Vec<String>,
    /// The name of the entry.
    pub name: String,
    /// The entry, in the client's own shape.
    pub entry: Value,
}

/// `rep setup CLIENT --check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupCheckJson {
    /// The client.
    pub client: String,
    /// Whose configuration.
    pub scope: Scope,
    /// The file.
    pub file: String,
    /// Whether the client would reach us.
    pub ok: bool,
    /// What is wrong, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What the server calls itself, if it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The names of its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}
