//! Parses permission rules and checks that their tools exist.

use repertoire_agent::permission::{PermissionRule, tool_name};
use repertoire_skill::name::nearest_name;

use crate::agent_setup::AgentRunOptions;
use crate::config::KEY;
use crate::context::AppContext;
use crate::error::AppError;

const HELP: &str =
    "`rep agents --tools` lists the tools; docs/reference/permissions.md explains rules.";

/// The tools that a rule can name.
#[derive(Debug)]
pub struct KnownTools {
    tools: Vec<String>,
    /// Prefixes of the tools of MCP servers, which need not be running.
    prefixes: Vec<String>,
}

impl KnownTools {
    /// Takes the names of tools and of MCP servers.
    pub fn new(tools: impl Iterator<Item = String>, servers: impl Iterator<Item = String>) -> Self {
        KnownTools {
            tools: tools.collect(),
            prefixes: servers.map(|server| tool_prefix(&server)).collect(),
        }
    }

    /// Returns true if a rule or a name refers to an existing tool.
    pub fn has_tool(&self, rule: &str) -> bool {
        let name = tool_of_rule(rule);
        let all = || self.tools.iter().map(|tool| tool.to_lowercase());
        match name.split_once('*') {
            Some((start, _)) => {
                let of_server =
                    |prefix: &String| prefix.starts_with(start) || start.starts_with(prefix);
                all().any(|tool| tool.starts_with(start)) || self.prefixes.iter().any(of_server)
            }
            None => {
                all().any(|tool| tool == name)
                    || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
            }
        }
    }

    fn nearest_tool(&self, rule: &str) -> Option<&str> {
        nearest_name(&tool_of_rule(rule), self.tools.iter().map(String::as_str))
    }
}

/// Returns the prefix of the names of an MCP server's tools, in lower case.
fn tool_prefix(server: &str) -> String {
    let plain = server.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    plain.chain(['_']).collect::<String>().to_lowercase()
}

/// Returns the tool of a rule, by our own name for it.
fn tool_of_rule(rule: &str) -> String {
    tool_name(rule.split('(').next().unwrap_or_default().trim())
}

pub fn parse_rules(texts: &[String], place: &str) -> Result<Vec<PermissionRule>, AppError> {
    let rule = |text: &String| {
        let read = text.parse::<PermissionRule>();
        read.map_err(|error| AppError::wrong_usage(format!("{place}: {error}")).hint(HELP))
    };
    texts.iter().map(rule).collect()
}

impl AppContext<'_> {
    /// Adds warnings about rules for tools that don't exist. A `--deny` rule for an unknown tool stops the
    /// run, since it would protect nothing.
    pub fn check_rules(
        &self,
        known: &KnownTools,
        options: &AgentRunOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(), AppError> {
        let unknown = |rule: &&String| !known.has_tool(rule);
        let meant =
            |rule: &str| known.nearest_tool(rule).map(|near| format!("Did you mean `{near}`?"));
        if let Some(rule) = options.deny.iter().find(unknown) {
            let message = format!("--deny {rule}: there is no tool `{}`", tool_of_rule(rule));
            return Err(meant(rule)
                .into_iter()
                .fold(AppError::wrong_usage(message), AppError::hint)
                .hint(HELP));
        }
        let values = self.config.values();
        let places = [
            ("--allow", &options.allow),
            (KEY.permissions_allow.name, &values.permissions_allow.0),
            (KEY.permissions_ask.name, &values.permissions_ask.0),
            (KEY.permissions_deny.name, &values.permissions_deny.0),
        ];
        for (place, rules) in places {
            for rule in rules.iter().filter(unknown) {
                let meant = meant(rule).map(|meant| format!(" {meant}")).unwrap_or_default();
                warnings.push(format!(
                    "{place} {rule}: there is no tool `{}`.{meant}",
                    tool_of_rule(rule)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_its_own_name_by_others_names_and_by_its_server() {
        let names = ["read", "bash", "research"].map(str::to_owned);
        let known = KnownTools::new(names.into_iter(), ["my notes".to_owned()].into_iter());
        for rule in [
            "read(.env)",
            "Bash(git status:*)",
            "WebFetch",
            "*",
            "re*",
            "my_notes_add(x)",
            "my_notes_*",
        ] {
            assert!(known.has_tool(rule), "{rule}");
        }
        for rule in ["raed(.env)", "notes_add", "x*"] {
            assert!(!known.has_tool(rule), "{rule}");
        }
        assert_eq!(known.nearest_tool("raed(.env)"), Some("read"));
    }
}
