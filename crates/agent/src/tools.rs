//! Tools, one a file; this is their list, and what they have in common.
//!
//! Every tool checks its own arguments and its own paths, so that it is safe whoever calls it. Whether it may be called
//! is decided before, by [`crate::permission`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use repertoire_skill::name::nearest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::event::TodoItem;
use crate::permission::{Decision, PathRules, Permissions, Verdict};
use crate::run::Run;
use crate::tool::{Access, Call, Output, Tool};

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

pub use plan::Plan;
pub use research::ResearchSettings;

/// All tools of this crate, with the usual settings.
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    builtin_with(ResearchSettings::default())
}

/// All tools of this crate.
pub fn builtin_with(research: ResearchSettings) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(skill::Skill::default()),
        Arc::new(skill_search::SkillSearch),
        Arc::new(delegate::Delegate),
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(list::List),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(search::Search),
        Arc::new(bash::Bash),
        Arc::new(git::Git),
        Arc::new(github::GitHub),
        Arc::new(run_tests::RunTests),
        Arc::new(research::Research::new(research)),
        Arc::new(plan::PlanTool),
        Arc::new(todo::Todo),
    ]
}

/// A name that no tool has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`{}", self.hint())]
pub struct UnknownTool {
    /// The name.
    pub name: String,
    /// The tool that was probably meant.
    pub nearest: Option<String>,
    /// The tools that there are.
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

/// The tool of a name. Case does not matter, and the names that other agents use for the same thing are understood.
///
/// # Errors
///
/// When there is none; the error suggests one.
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
    let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    Err(UnknownTool { name: name.to_owned(), nearest: near, known })
}

/// The rules for the place that a path has led to. The permission for a call was decided by its path; a link on it may
/// have been replaced since.
pub(super) struct PlaceRules {
    permissions: Permissions,
    tool: &'static str,
    access: Access,
}

impl PlaceRules {
    pub(super) fn of(run: &Run, tool: &'static str, access: Access) -> Self {
        PlaceRules { permissions: run.permissions(), tool, access }
    }

    /// Checks a place, relative to the work folder, that was reached by the path `typed`.
    ///
    /// # Errors
    ///
    /// When a rule denies it, or asks for it and did not ask for the path.
    pub(super) fn check(&self, typed: &str, place: &str) -> Result<(), String> {
        if repertoire_sandbox::beneath::normalised(typed) == place {
            return Ok(());
        }
        let decide =
            |subject: &str| self.permissions.decide(self.tool, self.access, subject, false);
        let mut by_name = self.permissions.clone();
        by_name.dir = None;
        let Verdict { decision, reason } = decide(place);
        let asked =
            || by_name.decide(self.tool, self.access, typed, false).decision == Decision::Ask;
        match decision {
            Decision::Allow => Ok(()),
            Decision::Ask if asked() => Ok(()),
            Decision::Ask | Decision::Deny => Err(format!(
                "Not allowed: `{typed}` leads to `{place}`: {reason}; use that path itself"
            )),
        }
    }
}

/// What tools keep from call to call, one for a run.
#[derive(Debug, Default)]
pub struct State {
    /// What rules keep from being read; searches pass over it.
    pub hidden: PathRules,
    todos: Mutex<Vec<TodoItem>>,
    plan: Mutex<Option<Plan>>,
}

impl State {
    /// The state of a run whose searches pass over what rules hide.
    pub fn hiding(hidden: PathRules) -> Self {
        State { hidden, ..State::default() }
    }

    /// The list of things to do.
    pub fn todos(&self) -> Vec<TodoItem> {
        lock(&self.todos).clone()
    }

    /// Sets the list of things to do, as when a run is resumed.
    pub fn set_todos(&self, items: Vec<TodoItem>) {
        *lock(&self.todos) = items;
    }

    /// The plan.
    pub fn plan(&self) -> Option<Plan> {
        lock(&self.plan).clone()
    }

    /// Sets the plan, as when a run is resumed.
    pub fn set_plan(&self, plan: Option<Plan>) {
        *lock(&self.plan) = plan;
    }
}

/// A panic elsewhere leaves the value as it was before or after a change, never between.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The arguments of a call in the tool's own type.
fn arguments<T: DeserializeOwned>(call: &Call<'_>) -> Result<T, Output> {
    if !call.arguments.is_object() {
        return Err(Output::error("the arguments are wrong: they must be an object"));
    }
    T::deserialize(call.arguments)
        .map_err(|error| Output::error(format!("the arguments are wrong: {error}")))
}

/// The schema of arguments: an object of these properties and no others.
fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A text argument, for a call's subject: the first line of what is there, if it is there.
fn text_argument<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or("")
}

/// The path of a call, for rules: without `.` and `..`, and the work folder if none is given.
fn path_subject(arguments: &Value) -> String {
    repertoire_sandbox::beneath::normalised(text_argument(arguments, "path"))
}

/// What a search is about, for people: what is sought, and where.
fn sought(arguments: &Value, what: &str) -> String {
    match path_subject(arguments).as_str() {
        "." => text_argument(arguments, what).to_owned(),
        path => format!("{} in {path}", text_argument(arguments, what)),
    }
}

/// Runs work that waits for the disk where it holds up nobody.
async fn blocking(work: impl FnOnce() -> Output + Send + 'static) -> Output {
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => Output::error(format!("the tool failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_rules_deny_is_refused_whichever_path_leads_there() {
        let mut permissions = Permissions::new(crate::permission::Mode::AcceptEdits);
        permissions.deny = vec!["Write(secret/**)".parse().unwrap()];
        permissions.ask = vec!["Write(asked/**)".parse().unwrap()];
        let rules = PlaceRules { permissions, tool: "write", access: Access::Write };
        assert_eq!(rules.check("src/a", "src/a"), Ok(()));
        assert_eq!(rules.check("link/a", "src/a"), Ok(()));
        assert_eq!(rules.check("asked/b", "asked/a"), Ok(()));
        assert!(rules.check("link/a", "secret/a").unwrap_err().contains("denies it"));
        assert!(rules.check("link/a", "asked/a").unwrap_err().contains("use that path itself"));
    }

    #[test]
    fn tools_are_found_by_their_names_by_other_agents_names_and_nearly() {
        let tools = builtin();
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
        for tool in builtin() {
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
        for tool in builtin() {
            for wrong in [json!(null), json!([]), json!({}), json!({"path": 1}), json!({"x": "y"})]
            {
                tool.access(&wrong);
                tool.subject(&wrong);
                // These tools need no argument, and would walk or run.
                let needs_none = ["list", "run_tests", "plan"].contains(&tool.name());
                if !(needs_none && wrong == json!({})) {
                    let output = bench.call(&*tool, wrong.clone()).await;
                    assert!(output.is_error, "{} took {wrong}", tool.name());
                }
            }
        }
    }
}
