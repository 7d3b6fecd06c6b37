//! Structured answers: requests JSON from CLIs that have no option for it, and validates every
//! answer.

use serde_json::Value;

use super::limits::COMPLAINT_CHARS_MAX;
use super::tally::cut;
use super::{Finished, Job};
use crate::event::Status;
use crate::form::{Form, misfit};

/// The text to append to a prompt if the CLI has no option for a schema.
pub(crate) fn request(job: &Job) -> String {
    match (&job.form, &job.schema) {
        (Some(form), _) => form.words(),
        (None, Some(schema)) => format!(
            "\n\nAnswer with one JSON value and nothing else. It must be valid for this JSON Schema:\n{schema}\n"
        ),
        (None, None) => String::new(),
    }
}

/// Puts the system prompt at the start of the prompt, for CLIs that have no option for it.
pub(crate) fn with_system(system: &str, prompt: &str) -> String {
    if system.is_empty() {
        return prompt.to_owned();
    }
    format!("<operator_instructions>\n{system}\n</operator_instructions>\n\n{prompt}")
}

/// Parses a whole answer as JSON, without a surrounding code fence. Does not search prose for JSON.
pub(crate) fn parse(text: &str) -> Option<Value> {
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
pub(crate) fn checked(finished: Finished, job: &Job) -> Finished {
    let handed_in = job.form.as_ref().and_then(Form::answer);
    fitting(finished, handed_in, job.schema.as_ref())
}

fn fitting(mut finished: Finished, handed_in: Option<Value>, schema: Option<&Value>) -> Finished {
    let Some(schema) = schema else { return finished };
    if finished.status != Status::Done {
        return finished;
    }
    finished.structured = handed_in.or(finished.structured);
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
        let end = fitting(done("{\"ok\": 1}"), None, Some(&schema()));
        assert_eq!((end.status, end.structured), (Status::Failed, None));
        assert!(end.error.expect("an error").contains("/ok"));
        assert_eq!(fitting(done("no"), None, Some(&schema())).status, Status::Failed);
        assert_eq!(fitting(done("{\"ok\": false}"), None, Some(&schema())).status, Status::Done);
        assert_eq!(fitting(done("no"), None, None).status, Status::Done);
    }

    #[test]
    fn what_was_handed_in_counts_and_not_what_was_said() {
        let handed_in = serde_json::json!({"ok": true});
        let end = fitting(done("I have handed it in."), Some(handed_in.clone()), Some(&schema()));
        assert_eq!((end.status, end.structured), (Status::Done, Some(handed_in)));
    }
}
