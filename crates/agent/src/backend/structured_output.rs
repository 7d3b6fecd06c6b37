//! Structured answers: requests JSON from CLIs that have no option for it, and validates every
//! answer.

use serde_json::Value;

use super::limits::COMPLAINT_CHARS_MAX;
use super::stream_tally::truncate_chars;
use super::{BackendJob, BackendResult};
use crate::event::AgentRunStatus;
use crate::form::{AnswerForm, schema_violation};

/// The text to append to a prompt if the CLI has no option for a schema.
pub(crate) fn schema_request(job: &BackendJob) -> String {
    match (&job.form, &job.schema) {
        (Some(form), _) => form.instructions(),
        (None, Some(schema)) => format!(
            "\n\nAnswer with one JSON value and nothing else. It must be valid for this JSON Schema:\n{schema}\n"
        ),
        (None, None) => String::new(),
    }
}

/// Puts the system prompt at the start of the prompt, for CLIs that have no option for it.
pub(crate) fn prepend_system(system: &str, prompt: &str) -> String {
    if system.is_empty() {
        return prompt.to_owned();
    }
    format!("<operator_instructions>\n{system}\n</operator_instructions>\n\n{prompt}")
}

/// Parses a whole answer as JSON, without a surrounding code fence. Does not search prose for JSON.
pub(crate) fn parse_answer(text: &str) -> Option<Value> {
    let text = text.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(text, |(_, body)| body);
    serde_json::from_str(inner.trim()).ok()
}

/// Validates the answer against the schema, if one was requested, and fails the result if it does
/// not match. An answer submitted through a form takes precedence over the text.
pub(crate) fn check_answer(finished: BackendResult, job: &BackendJob) -> BackendResult {
    let handed_in = job.form.as_ref().and_then(AnswerForm::answer);
    check_against_schema(finished, handed_in, job.schema.as_ref())
}

fn check_against_schema(
    mut finished: BackendResult,
    handed_in: Option<Value>,
    schema: Option<&Value>,
) -> BackendResult {
    let Some(schema) = schema else { return finished };
    if finished.status != AgentRunStatus::Done {
        return finished;
    }
    finished.structured = handed_in.or(finished.structured);
    if finished.structured.is_none() {
        finished.structured = parse_answer(&finished.text);
    }
    let problem = match &finished.structured {
        None => Some("the answer is not JSON, though a schema was asked for".to_owned()),
        Some(value) => schema_violation(value, schema),
    };
    if let Some(problem) = problem {
        finished.status = AgentRunStatus::Failed;
        finished.structured = None;
        finished.error = Some(truncate_chars(&problem, COMPLAINT_CHARS_MAX));
    }
    finished
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cli::failed_result;

    fn done(text: &str) -> BackendResult {
        BackendResult {
            status: AgentRunStatus::Done,
            text: text.to_owned(),
            error: None,
            ..failed_result(String::new())
        }
    }

    fn schema() -> Value {
        serde_json::json!({"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}})
    }

    #[test]
    fn an_answer_may_stand_in_a_fence_but_not_in_prose() {
        let wanted = Some(serde_json::json!({"ok": true}));
        assert_eq!(parse_answer("{\"ok\": true}"), wanted);
        assert_eq!(parse_answer("```json\n{\"ok\": true}\n```\n"), wanted);
        assert_eq!(parse_answer("Here it is: {\"ok\": true}"), None);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_a_failure_that_says_where() {
        let end = check_against_schema(done("{\"ok\": 1}"), None, Some(&schema()));
        assert_eq!((end.status, end.structured), (AgentRunStatus::Failed, None));
        assert!(end.error.expect("an error").contains("/ok"));
        assert_eq!(
            check_against_schema(done("no"), None, Some(&schema())).status,
            AgentRunStatus::Failed
        );
        assert_eq!(
            check_against_schema(done("{\"ok\": false}"), None, Some(&schema())).status,
            AgentRunStatus::Done
        );
        assert_eq!(check_against_schema(done("no"), None, None).status, AgentRunStatus::Done);
    }

    #[test]
    fn what_was_handed_in_counts_and_not_what_was_said() {
        let handed_in = serde_json::json!({"ok": true});
        let end = check_against_schema(
            done("I have handed it in."),
            Some(handed_in.clone()),
            Some(&schema()),
        );
        assert_eq!((end.status, end.structured), (AgentRunStatus::Done, Some(handed_in)));
    }
}
