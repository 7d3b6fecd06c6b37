//! The built-in tools, one per file, and their common functions.
//!
//! Every tool checks its own arguments and paths, so it is safe with any caller. [`crate::permission`] decides
//! beforehand whether it may be called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use repertoire_skill::name::nearest_name;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::event::TodoItem;
use crate::permission::{PathRules, PermissionDecision, PermissionVerdict, RunPermissions};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};

pub mod bash;
mod command;
pub mod delegate;
pub mod edit;
pub mod git;
pub mod github;
pub mod glob;
pub mod grep;
pub mod list;
pub mod plan;
pub mod read;
pub mod research;
pub mod run_tests;
pub mod search;
pub mod skill;
pub mod skill_search;
#[cfg(test)]
pub(crate) mod testing;
pub mod todo;
mod walk;
pub mod write;

pub use plan::AgentPlan;
pub use research::ResearchSettings;

/// All tools of this crate, with default settings.
pub fn builtin_tools() -> Vec<Arc<dyn Tool>> {
    builtin_tools_with(ResearchSettings::default())
}

/// All tools of this crate.
pub fn builtin_tools_with(research: ResearchSettings) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(skill::AgentSkillTool::default()),
        Arc::new(skill_search::AgentSkillSearchTool),
        Arc::new(delegate::DelegateTool),
        Arc::new(read::ReadTool),
        Arc::new(write::WriteTool),
        Arc::new(edit::EditTool),
        Arc::new(list::ListTool),
        Arc::new(glob::Glob),
        Arc::new(grep::GrepTool),
        Arc::new(search::SearchTool),
        Arc::new(bash::Bash),
        Arc::new(git::GitTool),
        Arc::new(github::GitHubTool),
        Arc::new(run_tests::RunTestsTool),
        Arc::new(research::ResearchTool::new(research)),
        Arc::new(plan::PlanTool),
        Arc::new(todo::TodoTool),
    ]
}

/// A name that does not belong to any tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`{}", self.hint())]
pub struct UnknownTool {
    pub name: String,
    /// The most similar tool name, as a suggestion.
    pub nearest: Option<String>,
    /// The names of all tools.
    pub known: Vec<String>,
}

impl UnknownTool {
    fn hint(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => format!("; there are: {}", self.known.join(", ")),
        }
    }
}

/// Finds a tool by name. Case does not matter, and other agents' names for the same tool are understood.
///
/// # Errors
///
/// If there is no such tool. The error suggests one.
pub fn find<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Result<&'a Arc<dyn Tool>, UnknownTool> {
    let named = |wanted: &str| tools.iter().find(|tool| tool.name() == wanted);
    if let Some(tool) = named(name) {
        return Ok(tool);
    }
    let ours = crate::permission::tool_name(name);
    if let Some(tool) = tools.iter().find(|tool| tool.name().eq_ignore_ascii_case(&ours)) {
        return Ok(tool);
    }
    let known: Vec<String> = tools.iter().map(|tool| tool.name().to_owned()).collect();
    let near = nearest_name(name, known.iter().map(String::as_str)).map(str::to_owned);
    Err(UnknownTool { name: name.to_owned(), nearest: near, known })
}

/// Permission rules for the location that a path actually leads to. The call was permitted based on its path, but a
/// symlink on it may have been replaced since.
pub(super) struct ResolvedPathRules {
    permissions: RunPermissions,
    tool: &'static str,
    access: ToolAccess,
}

impl ResolvedPathRules {
    pub(super) fn for_run(run: &AgentRun, tool: &'static str, access: ToolAccess) -> Self {
        ResolvedPathRules { permissions: run.permissions(), tool, access }
    }

    /// Checks the location `place`, relative to the work folder, that was reached through the path `typed`.
    ///
    /// # Errors
    ///
    /// If a rule denies the location, or requires confirmation for it that was not required for the path.
    pub(super) fn check_location(&self, typed: &str, place: &str) -> Result<(), String> {
        if repertoire_sandbox::beneath::normalise_path(typed) == place {
            return Ok(());
        }
        let decide =
            |subject: &str| self.permissions.decide(self.tool, self.access, subject, false);
        // Without a folder, rules match the typed path itself; links are not resolved.
        let mut by_name = self.permissions.clone();
        by_name.dir = None;
        let PermissionVerdict { decision, reason } = decide(place);
        let asked = || {
            by_name.decide(self.tool, self.access, typed, false).decision == PermissionDecision::Ask
        };
        match decision {
            PermissionDecision::Allow => Ok(()),
            PermissionDecision::Ask if asked() => Ok(()),
            PermissionDecision::Ask | PermissionDecision::Deny => Err(format!(
                "Not allowed: `{typed}` leads to `{place}`: {reason}; use that path itself"
            )),
        }
    }
}

/// State that tools keep between calls; one per run.
#[derive(Debug, Default)]
pub struct ToolState {
    /// Paths that rules keep from being read. Searches skip them.
    pub hidden: PathRules,
    todos: Mutex<Vec<TodoItem>>,
    plan: Mutex<Option<AgentPlan>>,
}

impl ToolState {
    /// State for a run whose searches skip these paths.
    pub fn hiding_paths(hidden: PathRules) -> Self {
        ToolState { hidden, ..ToolState::default() }
    }

    pub fn todos(&self) -> Vec<TodoItem> {
        lock_mutex(&self.todos).clone()
    }

    /// Replaces the to-do list, for example when a run is resumed.
    pub fn set_todos(&self, items: Vec<TodoItem>) {
        *lock_mutex(&self.todos) = items;
    }

    pub fn plan(&self) -> Option<AgentPlan> {
        lock_mutex(&self.plan).clone()
    }

    /// Replaces the plan, for example when a run is resumed.
    pub fn set_plan(&self, plan: Option<AgentPlan>) {
        *lock_mutex(&self.plan) = plan;
    }
}

/// Locks a mutex, even after a panic: values are only replaced as a whole, so they are never half-changed.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deserializes the arguments of a call.
fn arguments<T: DeserializeOwned>(call: &ToolInvocation<'_>) -> Result<T, ToolOutput> {
    if !call.arguments.is_object() {
        return Err(ToolOutput::error("the arguments are wrong: they must be an object"));
    }
    T::deserialize(call.arguments)
        .map_err(|error| ToolOutput::error(format!("the arguments are wrong: {error}")))
}

/// The JSON schema of arguments: an object with these properties and no others.
fn object_schema(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns a text argument, or an empty text if it is missing.
fn text_argument<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or("")
}

/// Returns the path of a call, for rules: normalised, and `.` (the work folder) if none is given.
fn path_subject(arguments: &Value) -> String {
    repertoire_sandbox::beneath::normalise_path(text_argument(arguments, "path"))
}

/// Describes a search for people: the search term and the folder.
fn describe_search(arguments: &Value, what: &str) -> String {
    match path_subject(arguments).as_str() {
        "." => text_argument(arguments, what).to_owned(),
        path => format!("{} in {path}", text_argument(arguments, what)),
    }
}

/// Runs blocking work on a thread where it does not hold up the runtime.
async fn run_blocking(work: impl FnOnce() -> ToolOutput + Send + 'static) -> ToolOutput {
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => ToolOutput::error(format!("the tool failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_rules_deny_is_refused_whichever_path_leads_there() {
        let mut permissions = RunPermissions::new(crate::permission::PermissionMode::AcceptEdits);
        permissions.deny = vec!["Write(secret/**)".parse().unwrap()];
        permissions.ask = vec!["Write(asked/**)".parse().unwrap()];
        let rules = ResolvedPathRules { permissions, tool: "write", access: ToolAccess::Write };
        assert_eq!(rules.check_location("src/a", "src/a"), Ok(()));
        assert_eq!(rules.check_location("link/a", "src/a"), Ok(()));
        assert_eq!(rules.check_location("asked/b", "asked/a"), Ok(()));
        assert!(rules.check_location("link/a", "secret/a").unwrap_err().contains("denies it"));
        assert!(
            rules.check_location("link/a", "asked/a").unwrap_err().contains("use that path itself")
        );
    }

    #[test]
    fn tools_are_found_by_their_names_by_other_agents_names_and_nearly() {
        let tools = builtin_tools();
        assert_eq!(find(&tools, "read").unwrap().name(), "read");
        assert_eq!(find(&tools, "Read").unwrap().name(), "read");
        assert_eq!(find(&tools, "TodoWrite").unwrap().name(), "todo");
        let lost = find(&tools, "raed").err().unwrap();
        assert_eq!(lost.to_string(), "there is no tool `raed`; did you mean `read`?");
        let lost = find(&tools, "teleport").err().unwrap();
        assert!(lost.to_string().contains("there are: skill, skill_search"), "{lost}");
    }

    #[test]
    fn every_schema_is_one_and_describes_every_property() {
        let bench = testing::Bench::new();
        let run = bench.run();
        for tool in builtin_tools() {
            let spec = tool.spec(&run);
            assert_eq!(spec.name, tool.name());
            assert!(!spec.description.is_empty() && spec.description.len() < 1500);
            jsonschema::validator_for(&spec.parameters).expect("a schema");
            assert_eq!(spec.parameters["additionalProperties"], json!(false), "{}", spec.name);
            let properties = spec.parameters["properties"].as_object().unwrap();
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{}: {name}", spec.name);
            }
        }
    }

    #[tokio::test]
    async fn no_tool_panics_on_arguments_that_do_not_fit() {
        let bench = testing::Bench::new();
        for tool in builtin_tools() {
            for wrong in [json!(null), json!([]), json!({}), json!({"path": 1}), json!({"x": "y"})]
            {
                tool.access(&wrong);
                tool.subject(&wrong);
                // These tools need no arguments, and would walk folders or run programs.
                let needs_none = ["list", "run_tests", "plan"].contains(&tool.name());
                if !(needs_none && wrong == json!({})) {
                    let output = bench.call(&*tool, wrong.clone()).await;
                    assert!(output.is_error, "{} took {wrong}", tool.name());
                }
            }
        }
    }
}
