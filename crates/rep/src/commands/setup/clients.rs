//! Programs that load skills through our MCP server, and the entry in their configuration that
//! makes them do so.
//!
//! The programs are described in `clients/clients.toml`. Configuration files are edited as text:
//! everything but our entry is preserved byte for byte, and removing the entry restores the
//! original bytes.

pub(crate) mod config_file;
#[cfg(test)]
mod edit_tests;
pub(crate) mod entry_edit;
mod jsonc_entry;
mod limits;
pub(crate) mod probe;
mod toml_entry;

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of our own program on PATH.
pub(crate) const PROGRAM: &str = "rep";

/// A program that supports MCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpClient {
    /// The id for the command line.
    pub(crate) id: String,
    /// The display name.
    pub(crate) name: String,
    /// The program on `PATH`, if it is installed.
    pub(crate) program: String,
    pub(crate) format: ConfigFormat,
    /// The keys of the path to the list of servers.
    pub(crate) keys: Vec<String>,
    /// The default scope.
    pub(crate) scope: ClientScope,
    entry: Map<String, Value>,
    signs: Vec<String>,
    file: Vec<FileCandidate>,
}

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConfigFormat {
    /// Strict JSON.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
}

/// The scope of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientScope {
    /// The project's configuration.
    Project,
    /// The user's configuration.
    User,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCandidate {
    scope: ClientScope,
    platform: Option<String>,
    env: Option<String>,
    #[serde(default)]
    exists: bool,
    path: String,
    note: Option<String>,
}

/// A configuration file of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientFile {
    /// The path; the file need not exist.
    pub(crate) path: Utf8PathBuf,
    /// A note for the user.
    pub(crate) note: Option<&'static str>,
}

/// The environment for locating configuration files.
pub(crate) struct ClientEnvironment<'a> {
    pub(crate) home: Utf8PathBuf,
    pub(crate) project: Utf8PathBuf,
    /// Returns an environment variable that is set and not empty.
    pub(crate) var: &'a dyn Fn(&str) -> Option<String>,
}

/// All known clients.
pub(crate) fn known_clients() -> &'static [McpClient] {
    #[derive(Deserialize)]
    struct ClientTable {
        client: Vec<McpClient>,
    }
    static ALL: LazyLock<Vec<McpClient>> = LazyLock::new(|| {
        let all: ClientTable = toml_edit::de::from_str(include_str!("clients/clients.toml"))
            .expect("the file is part of the program, and a test reads it");
        all.client
    });
    &ALL
}

/// Finds a client by its id.
pub(crate) fn find_client(id: &str) -> Option<&'static McpClient> {
    known_clients().iter().find(|client| client.id == id)
}

impl McpClient {
    /// The file to edit, if the client has one of that scope.
    pub(crate) fn file(
        &'static self,
        scope: ClientScope,
        around: &ClientEnvironment<'_>,
    ) -> Option<ClientFile> {
        let mut of_scope = self.file.iter().filter(|candidate| candidate.scope == scope);
        of_scope.find_map(|candidate| {
            Some(ClientFile { path: candidate.path(around)?, note: candidate.note.as_deref() })
        })
    }

    /// Returns true if there are traces of the client's use.
    pub(crate) fn was_used(&self, around: &ClientEnvironment<'_>) -> bool {
        self.signs.iter().any(|sign| around.expand_path(sign, None).exists())
    }

    /// Builds the entry for a command.
    pub(crate) fn build_entry(&self, program: &str, args: &[String]) -> Value {
        let filled = |value: &Value| match value.as_str() {
            Some("{program}") => Value::from(program),
            Some("{args}") => Value::from(args),
            Some("{command}") => {
                std::iter::once(program).chain(args.iter().map(String::as_str)).collect()
            }
            _ => value.clone(),
        };
        self.entry.iter().map(|(key, value)| (key.clone(), filled(value))).collect()
    }

    /// Parses the command and arguments of an entry: the inverse of [`McpClient::build_entry`].
    pub(crate) fn parse_command(&self, entry: &Value) -> Option<(String, Vec<String>)> {
        let of = |placeholder: &str| {
            let (key, _) = self.entry.iter().find(|(_, value)| *value == placeholder)?;
            entry.get(key)
        };
        if let Some(command) = of("{command}") {
            let (program, args) =
                string_list(command)?.split_first().map(|(p, a)| (p.clone(), a.to_vec()))?;
            return Some((program, args));
        }
        let args = of("{args}").map_or_else(|| Some(Vec::new()), string_list)?;
        Some((of("{program}")?.as_str()?.to_owned(), args))
    }

    /// Returns true if an entry starts `rep mcp`, wherever `rep` is.
    pub(crate) fn is_own_entry(&self, entry: &Value) -> bool {
        self.parse_command(entry).is_some_and(|(program, args)| {
            Utf8Path::new(&program).file_name() == Some(PROGRAM) && args == ["mcp"]
        })
    }

    /// Renders the entry as a complete file, for pasting.
    pub(crate) fn render_snippet(&self, name: &str, entry: &Value) -> String {
        entry_edit::render_file(self.format, &self.keys, name, entry)
    }
}

fn string_list(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|word| Some(word.as_str()?.to_owned())).collect()
}

impl FileCandidate {
    fn path(&self, around: &ClientEnvironment<'_>) -> Option<Utf8PathBuf> {
        if self.platform.as_ref().is_some_and(|platform| platform != std::env::consts::OS) {
            return None;
        }
        let env = match &self.env {
            None => None,
            Some(name) => Some((around.var)(name)?),
        };
        let path = around.expand_path(&self.path, env.as_deref());
        (!self.exists || path.exists()).then_some(path)
    }
}

impl ClientEnvironment<'_> {
    fn expand_path(&self, path: &str, env: Option<&str>) -> Utf8PathBuf {
        let config = (self.var)("XDG_CONFIG_HOME").map(Utf8PathBuf::from);
        let config = config.filter(|dir| dir.is_absolute());
        let config = config.unwrap_or_else(|| self.home.join(".config"));
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let first = match first {
            "{project}" => self.project.as_path(),
            "{home}" => self.home.as_path(),
            "{config}" => config.as_path(),
            "{env}" => Utf8Path::new(env.unwrap_or_default()),
            other => Utf8Path::new(other),
        };
        first.join(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(var: &dyn Fn(&str) -> Option<String>) -> ClientEnvironment<'_> {
        ClientEnvironment { home: "/home/me".into(), project: "/home/me/shop".into(), var }
    }

    #[test]
    fn every_client_has_a_file_of_its_usual_scope_and_an_entry_that_reads_back() {
        let nothing = |_: &str| None;
        let args = vec!["mcp".to_owned(), "--x".to_owned()];
        assert_eq!(known_clients().len(), 6);
        for client in known_clients() {
            assert!(client.file(client.scope, &around(&nothing)).is_some(), "{}", client.id);
            let entry = client.build_entry("/bin/rep", &args);
            let read = client.parse_command(&entry);
            assert_eq!(read, Some(("/bin/rep".to_owned(), args.clone())), "{entry}");
            assert!(
                !entry.to_string().contains('{') || !entry.to_string().contains("{p"),
                "{entry}"
            );
        }
    }

    #[test]
    fn files_follow_the_environment() {
        let check =
            |id: &str, scope, var: &dyn Fn(&str) -> Option<String>, expect: Option<&str>| {
                let file = find_client(id).unwrap().file(scope, &around(var)).map(|file| file.path);
                assert_eq!(file.as_deref(), expect.map(Utf8Path::new), "{id}");
            };
        let nothing = |_: &str| None;
        check("claude", ClientScope::Project, &nothing, Some("/home/me/shop/.mcp.json"));
        check("claude", ClientScope::User, &nothing, Some("/home/me/.claude.json"));
        check("codex", ClientScope::Project, &nothing, None);
        check("codex", ClientScope::User, &nothing, Some("/home/me/.codex/config.toml"));
        let codex = |name: &str| (name == "CODEX_HOME").then(|| "/srv/codex".to_owned());
        check("codex", ClientScope::User, &codex, Some("/srv/codex/config.toml"));
        let config = |name: &str| (name == "XDG_CONFIG_HOME").then(|| "/cfg".to_owned());
        check("opencode", ClientScope::User, &config, Some("/cfg/opencode/opencode.json"));
    }
}
