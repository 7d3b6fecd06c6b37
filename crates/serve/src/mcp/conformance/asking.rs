//! Tools that need input from the client before they can answer, in the protocol of 2026-07-28:
//! they return the required input, and are called again with it.

use repertoire_skill::skill::Digest;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InputRequests, InputRequiredResult,
    InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::{made, said};

pub(super) const NAMES: &[&str] = &[
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
];

type Answer = Result<CallToolResponse, ErrorData>;

pub(super) fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    secret: &[u8],
) -> Option<Answer> {
    let asked = Asked { request, secret };
    Some(match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            asked.once(json!({ "user_name": form("What is your name?", "name", "string") }))
        }
        "test_input_required_result_sampling" => {
            asked.once(json!({ "capital_question": sampling("What is the capital of France?") }))
        }
        "test_input_required_result_list_roots" => asked.once(json!({ "client_roots": roots() })),
        "test_input_required_result_request_state" => {
            asked.with_state(json!({ "confirm": form("Please confirm", "ok", "boolean") }))
        }
        "test_input_required_result_tampered_state" => {
            asked.with_state(json!({ "confirm": form("Please confirm", "ok", "boolean") }))
        }
        "test_input_required_result_multiple_inputs" => asked.with_state(json!({
            "user_name": form("What is your name?", "name", "string"),
            "greeting": sampling("Generate a greeting"),
            "client_roots": roots(),
        })),
        "test_input_required_result_multi_round" => asked.in_rounds(),
        "test_input_required_result_capabilities" => asked.of_what_is_declared(context),
        _ => return None,
    })
}

/// A call, and the secret that authenticates states.
struct Asked<'a> {
    request: &'a CallToolRequestParams,
    secret: &'a [u8],
}

impl Asked<'_> {
    /// Requests input, and answers once it is complete.
    fn once(&self, questions: Value) -> Answer {
        Ok(match answers(self.request.input_responses.as_ref(), &questions) {
            Some(text) => CallToolResult::success(said(format!("Hello, {text}!"))).into(),
            None => required(questions, None),
        })
    }

    /// Like [`Asked::once`], with a state that the client must send back unchanged.
    fn with_state(&self, questions: Value) -> Answer {
        let state = match &self.request.request_state {
            None => return Ok(required(questions, Some(self.sealed("asked")))),
            Some(state) => self.opened(state)?,
        };
        Ok(match answers(self.request.input_responses.as_ref(), &questions) {
            Some(text) => {
                CallToolResult::success(said(format!("state-ok ({state}): {text}"))).into()
            }
            None => required(questions, Some(self.sealed("asked"))),
        })
    }

    /// Requests input in two rounds.
    fn in_rounds(&self) -> Answer {
        let first = json!({ "step1": form("Step 1: What is your name?", "name", "string") });
        let second =
            json!({ "step2": form("Step 2: What is your favourite colour?", "color", "string") });
        let given = self.request.input_responses.as_ref();
        let state = self.request.request_state.as_deref();
        let state = state.map(|state| self.opened(state)).transpose()?;
        Ok(match state.as_deref() {
            Some("second") => match answers(given, &second) {
                Some(text) => CallToolResult::success(said(format!("All is known: {text}"))).into(),
                None => required(second, Some(self.sealed("second"))),
            },
            Some(_) if answers(given, &first).is_some() => {
                required(second, Some(self.sealed("second")))
            }
            _ => required(first, Some(self.sealed("first"))),
        })
    }

    /// Requests only the input for which the client declared capabilities.
    fn of_what_is_declared(&self, context: &RequestContext<RoleServer>) -> Answer {
        let declared = context.client_capabilities().unwrap_or_default();
        let mut questions = serde_json::Map::new();
        if declared.sampling.is_some() {
            questions.insert("greeting".to_owned(), sampling("Generate a greeting"));
        }
        if declared.elicitation.is_some() {
            questions.insert("user_name".to_owned(), form("What is your name?", "name", "string"));
        }
        if declared.roots.is_some() {
            questions.insert("client_roots".to_owned(), roots());
        }
        if questions.is_empty() {
            Ok(CallToolResult::success(said("There is nothing to ask for.")).into())
        } else {
            self.once(Value::Object(questions))
        }
    }

    fn sealed(&self, state: &str) -> String {
        format!("{state}.{}", self.seal(state))
    }

    fn opened(&self, sealed: &str) -> Result<String, ErrorData> {
        let parts = sealed.split_once('.');
        let good = parts
            .filter(|(state, seal)| bool::from(self.seal(state).as_bytes().ct_eq(seal.as_bytes())));
        good.map(|(state, _)| state.to_owned()).ok_or_else(|| {
            ErrorData::invalid_params("this state was not given by this server", None)
        })
    }

    fn seal(&self, state: &str) -> String {
        let bytes = [self.secret, state.as_bytes(), self.secret].concat();
        Digest::of(&bytes).to_string()
    }
}

fn required(questions: Value, state: Option<String>) -> CallToolResponse {
    InputRequiredResult::new(Some(made::<InputRequests>(questions)), state).into()
}

/// The input as text, if there is a valid answer to every question.
pub(super) fn answers(given: Option<&InputResponses>, questions: &Value) -> Option<String> {
    let questions = questions.as_object()?;
    let texts: Option<Vec<String>> = questions
        .iter()
        .map(|(key, question)| answer(given?.get(key)?, question["method"].as_str()?))
        .collect();
    texts.map(|texts| texts.join(", "))
}

fn answer(given: &Value, method: &str) -> Option<String> {
    match method {
        "elicitation/create" => {
            let content = given["content"].as_object()?;
            let values: Vec<String> = content
                .values()
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                .collect();
            (given["action"] == "accept").then(|| values.join(" "))
        }
        "sampling/createMessage" => given["content"]["text"].as_str().map(str::to_owned),
        _ => {
            let roots = given["roots"].as_array()?;
            Some(roots.iter().filter_map(|root| root["uri"].as_str()).collect::<Vec<_>>().join(" "))
        }
    }
}

pub(super) fn form(message: &str, key: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { key: { "type": kind } },
                "required": [key],
            },
        },
    })
}

fn sampling(question: &str) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": question } }],
            "maxTokens": 100,
        },
    })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}
