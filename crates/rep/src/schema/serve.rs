//! The types of `rep serve --json` and `rep setup … --json`.

use crate::commands::setup::clients::ClientScope;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The output of `rep serve --json` and `rep serve link --json`, on one line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServeJson {
    /// The address to connect to, with its port.
    pub address: String,
    /// A link that opens the page once, within ten minutes.
    pub link: String,
    /// The file with the token for API clients.
    pub token_file: String,
}

/// The output of `rep setup --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupListJson {
    /// All supported clients.
    pub clients: Vec<SetupClientJson>,
}

/// A client, and the state of its configuration files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupClientJson {
    /// The name of the client on the command line.
    pub client: String,
    /// The name of the client for people.
    pub name: String,
    /// True if the client seems to be installed on this machine.
    pub found: bool,
    /// The configuration files of the client.
    pub files: Vec<SetupFileJson>,
}

/// A configuration file of a client.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupFileJson {
    /// The scope of the file: project or user.
    pub scope: ClientScope,
    /// The path of the file, which may not exist.
    pub file: String,
    /// True if the file has our entry.
    pub set_up: bool,
    /// True if the file has an entry with our name that `rep setup` did not write.
    pub foreign: bool,
    /// The reason why the file cannot be read; null if it can.
    pub problem: Option<String>,
}

/// The output of `rep setup CLIENT --json`, also with `--remove` or `--replace`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupDoneJson {
    /// The client.
    pub client: String,
    /// The scope of the configuration: project or user.
    pub scope: ClientScope,
    /// The path of the file.
    pub file: String,
    /// The outcome for the file.
    pub done: SetupDone,
}

/// The outcome of `rep setup` for a file.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SetupDone {
    /// The file was created.
    Made,
    /// The entry was added, changed or removed.
    Changed,
    /// The file needed no change.
    Unchanged,
    /// The file had been created for the entry, and was removed with it.
    Removed,
    /// The entry that ours had replaced was restored.
    Restored,
}

/// The output of `rep setup CLIENT --print --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupPrintJson {
    /// The client.
    pub client: String,
    /// The scope of the configuration: project or user.
    pub scope: ClientScope,
    /// The file that the entry belongs into.
    pub file: String,
    /// The keys that lead to the list of servers.
    pub keys: Vec<String>,
    /// The name of the entry.
    pub name: String,
    /// The entry, in the client's format.
    pub entry: Value,
}

/// The output of `rep setup CLIENT --check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupCheckJson {
    /// The client.
    pub client: String,
    /// The scope of the configuration: project or user.
    pub scope: ClientScope,
    /// The path of the file.
    pub file: String,
    /// True if the client can reach the server.
    pub ok: bool,
    /// The problem, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The name that the server reports, if it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The version that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The names of the server's tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}
