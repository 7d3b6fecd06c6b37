//! `todo`: replaces the whole to-do list.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, object_schema};
use crate::event::{EventKind, TodoItem, TodoStatus};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};

/// The maximum number of items.
const ITEMS_MAX: usize = 50;
/// The maximum length of an item.
const CONTENT_CHARS_MAX: usize = 500;

#[derive(Clone, Copy, Debug)]
pub struct TodoTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TodoArguments {
    items: Vec<TodoItem>,
}

impl Tool for TodoTool {
    fn name(&self) -> &str {
        "todo"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "todo".to_owned(),
            description: format!(
                "Keep a list of what is to be done, for work of three steps or more. Every call replaces the whole list. \
                 At most {ITEMS_MAX} items, at most one of them `in_progress`; mark each `completed` as soon as it is."
            ),
            parameters: object_schema(
                &["items"],
                json!({
                    "items": {
                        "type": "array",
                        "maxItems": ITEMS_MAX,
                        "description": "The whole list.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": {"type": "string", "description": "What is to be done."},
                                "status": {
                                    "type": "string",
                                    "enum": ["pending", "in_progress", "completed"],
                                    "description": "How far it is.",
                                },
                            },
                            "required": ["content", "status"],
                            "additionalProperties": false,
                        },
                    },
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::None
    }

    fn subject(&self, arguments: &Value) -> String {
        let count = arguments.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        format!("{count} items")
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let wanted: TodoArguments = match arguments(&call) {
                Ok(wanted) => wanted,
                Err(output) => return output,
            };
            if let Err(message) = check_items(&wanted.items) {
                return ToolOutput::error(format!("the list is as it was: {message}"));
            }
            let said = summarize_items(&wanted.items);
            call.run.state.set_todos(wanted.items.clone());
            call.run.events.emit(EventKind::Todos { items: wanted.items });
            ToolOutput::ok(said)
        })
    }
}

fn check_items(items: &[TodoItem]) -> Result<(), String> {
    if items.len() > ITEMS_MAX {
        return Err(format!("{} items; at most {ITEMS_MAX}", items.len()));
    }
    let current = items.iter().filter(|item| item.status == TodoStatus::InProgress).count();
    if current > 1 {
        return Err(format!("{current} items are in progress; do one at a time"));
    }
    let mut seen = BTreeSet::new();
    for item in items {
        let content = item.content.trim();
        if content.is_empty() || content.chars().count() > CONTENT_CHARS_MAX {
            return Err(format!("an item must have 1 to {CONTENT_CHARS_MAX} characters"));
        }
        if !seen.insert(content.to_lowercase()) {
            return Err(format!("`{content}` is there twice"));
        }
    }
    Ok(())
}

fn summarize_items(items: &[TodoItem]) -> String {
    let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
    let current = items.iter().find(|item| item.status == TodoStatus::InProgress);
    let now = current.map_or(String::new(), |item| format!("; now: {}", item.content));
    format!("{done} of {} done{now}", items.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Bench, call};

    fn item(content: &str, status: &str) -> Value {
        json!({"content": content, "status": status})
    }

    #[tokio::test]
    async fn the_list_is_replaced_and_told() {
        let bench = Bench::new();
        let run = bench.run();
        let items = json!({"items": [item("a", "completed"), item("b", "in_progress")]});
        let output = call(&TodoTool, &run, items).await;
        assert_eq!(output, ToolOutput::ok("1 of 2 done; now: b"));
        call(&TodoTool, &run, json!({"items": [item("c", "pending")]})).await;
        assert_eq!(run.state.todos().len(), 1);
        let told = bench.events();
        assert!(
            matches!(&told[..], [EventKind::Todos { .. }, EventKind::Todos { items }] if items.len() == 1)
        );
    }

    #[tokio::test]
    async fn a_list_that_makes_no_sense_changes_nothing() {
        let bench = Bench::new();
        let many: Vec<Value> = (0..51).map(|number| item(&number.to_string(), "pending")).collect();
        for (items, expected) in [
            (json!([item("a", "in_progress"), item("b", "in_progress")]), "one at a time"),
            (json!([item("a", "pending"), item(" A ", "pending")]), "is there twice"),
            (json!([item(" ", "pending")]), "1 to 500 characters"),
            (json!([item("a", "someday")]), "unknown variant"),
            (json!(many), "at most 50"),
        ] {
            let said = bench.fails(&TodoTool, json!({"items": items})).await;
            assert!(said.contains(expected), "{said}");
        }
        assert_eq!(bench.events(), []);
    }
}
