//! Answers as JSON: how a CLI that has no option for it is asked, and how every answer is checked.

use serde_json::Value;

use super::Finished;
use super::limits::COMPLAINT_CHARS_MAX;
use super::tally::cut;
use crate::event::Status;

/// What is added to a prompt where the CLI cannot be told a schema in any other way.
pub(crate) fn request(schema: &Value) -> String {
    format!(
        "\n\nAnswer with one JSON value and nothing else. It must be valid for this JSON Schema:\n{schema}\n"
    )
}

/// The operator's words at the start of a prompt, where the CLI has no other place for them.
pub(crate) fn with_system(system: &str, prompt: &str) -> String {
    if system.is_empty() {
        return prompt.to_owned();
    }
    format!("<operator_instructions>\n{system}\n</operator_instructions>\n\n{prompt}")
}

/// A whole answer as JSON; one fence around it is taken off, but nothing is searched for in prose.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(text, |(_, body)| body);
    serde_json::from_str(inner.trim()).ok()
}

/// An end whose answer fits the schema, where one was asked for; else it is a failure that says so.
pub(crate) fn checked(mut finished: Finished, schema: Option<&Value>) -> Finished {
    let Some(schema) = schema else { return finished };
    if finished.status != Status::Done {
        return finished;
    }
    if finished.structured.is_none() {
        finished.structured = parse(&finished.text);
    }
    let problem = match &finished.structured {
        None => Some("the answer is not JSON, though a schema was asked for".to_owned()),
        Some(value) => misfit(value, schema),
    };
    if let Some(problem) = problem {
        finished.status = Status::Failed;
        finished.structured = None;
        finished.error = Some(cut(&problem, COMPLAINT_CHARS_MAX));
    }
    finished
}

fn misfit(value: &Value, schema: &Value) -> Option<String> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => return Some(format!("the schema that was asked for is not one: {error}")),
    };
    let error = validator.validate(value).err()?;
    Some(format!("the answer does not fit the schema at `{}`: {error}", error.instance_path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cli::failed;

    fn done(text: &str) -> Finished {
        Finished {
            status: Status::Done,
            text: text.to_owned(),
            error: None,
            ..failed(String::new())
        }
    }

    fn schema() -> Value {
        serde_json::json!({"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}})
    }

    #[test]
    fn an_answer_may_stand_in_a_fence_but_not_in_prose() {
        let wanted = Some(serde_json::json!({"ok": true}));
        assert_eq!(parse("{\"ok\": true}"), wanted);
        assert_eq!(parse("```json\n{\"ok\": true}\n```\n"), wanted);
        assert_eq!(parse("Here it is: {\"ok\": true}"), None);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_a_failure_that_says_where() {
        let end = checked(done("{\"ok\": 1}"), Some(&schema()));
        assert_eq!((end.status, end.structured), (Status::Failed, None));
        assert!(end.error.expect("an error").contains("/ok"));
        assert_eq!(checked(done("no"), Some(&schema())).status, Status::Failed);
        assert_eq!(checked(done("{\"ok\": false}"), Some(&schema())).status, Status::Done);
        assert_eq!(checked(done("no"), None).status, Status::Done);
    }
}
