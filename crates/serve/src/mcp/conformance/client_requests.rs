//! Tools that need input from the client before they can answer, in the protocol of 2026-07-28:
//! they return the required input, and are called again with it.

use repertoire_skill::skill::ContentDigest;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InputRequests, InputRequiredResult,
    InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::{parse_fixture, text_content};

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

type FixtureResult = Result<CallToolResponse, ErrorData>;

pub(super) fn call_tool(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    secret: &[u8],
) -> Option<FixtureResult> {
    let asked = FixtureCall { request, secret };
    Some(match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => asked
            .request_once(
                json!({ "user_name": form_request("What is your name?", "name", "string") }),
            ),
        "test_input_required_result_sampling" => asked.request_once(
            json!({ "capital_question": sampling_request("What is the capital of France?") }),
        ),
        "test_input_required_result_list_roots" => {
            asked.request_once(json!({ "client_roots": roots_request() }))
        }
        "test_input_required_result_request_state" => asked.request_with_state(
            json!({ "confirm": form_request("Please confirm", "ok", "boolean") }),
        ),
        "test_input_required_result_tampered_state" => asked.request_with_state(
            json!({ "confirm": form_request("Please confirm", "ok", "boolean") }),
        ),
        "test_input_required_result_multiple_inputs" => asked.request_with_state(json!({
            "user_name": form_request("What is your name?", "name", "string"),
            "greeting": sampling_request("Generate a greeting"),
            "client_roots": roots_request(),
        })),
        "test_input_required_result_multi_round" => asked.request_in_rounds(),
        "test_input_required_result_capabilities" => asked.request_declared(context),
        _ => return None,
    })
}

/// A call, and the secret that authenticates states.
struct FixtureCall<'a> {
    request: &'a CallToolRequestParams,
    secret: &'a [u8],
}

impl FixtureCall<'_> {
    /// Requests input, and answers once it is complete.
    fn request_once(&self, questions: Value) -> FixtureResult {
        Ok(match collect_answers(self.request.input_responses.as_ref(), &questions) {
            Some(text) => CallToolResult::success(text_content(format!("Hello, {text}!"))).into(),
            None => input_required(questions, None),
        })
    }

    /// Like [`Asked::once`], with a state that the client must send back unchanged.
    fn request_with_state(&self, questions: Value) -> FixtureResult {
        let state = match &self.request.request_state {
            None => return Ok(input_required(questions, Some(self.sign_state("asked")))),
            Some(state) => self.verify_state(state)?,
        };
        Ok(match collect_answers(self.request.input_responses.as_ref(), &questions) {
            Some(text) => {
                CallToolResult::success(text_content(format!("state-ok ({state}): {text}"))).into()
            }
            None => input_required(questions, Some(self.sign_state("asked"))),
        })
    }

    /// Requests input in two rounds.
    fn request_in_rounds(&self) -> FixtureResult {
        let first =
            json!({ "step1": form_request("Step 1: What is your name?", "name", "string") });
        let second = json!({ "step2": form_request("Step 2: What is your favourite colour?", "color", "string") });
        let given = self.request.input_responses.as_ref();
        let state = self.request.request_state.as_deref();
        let state = state.map(|state| self.verify_state(state)).transpose()?;
        Ok(match state.as_deref() {
            Some("second") => match collect_answers(given, &second) {
                Some(text) => {
                    CallToolResult::success(text_content(format!("All is known: {text}"))).into()
                }
                None => input_required(second, Some(self.sign_state("second"))),
            },
            Some(_) if collect_answers(given, &first).is_some() => {
                input_required(second, Some(self.sign_state("second")))
            }
            _ => input_required(first, Some(self.sign_state("first"))),
        })
    }

    /// Requests only the input for which the client declared capabilities.
    fn request_declared(&self, context: &RequestContext<RoleServer>) -> FixtureResult {
        let declared = context.client_capabilities().unwrap_or_default();
        let mut questions = serde_json::Map::new();
        if declared.sampling.is_some() {
            questions.insert("greeting".to_owned(), sampling_request("Generate a greeting"));
        }
        if declared.elicitation.is_some() {
            questions.insert(
                "user_name".to_owned(),
                form_request("What is your name?", "name", "string"),
            );
        }
        if declared.roots.is_some() {
            questions.insert("client_roots".to_owned(), roots_request());
        }
        if questions.is_empty() {
            Ok(CallToolResult::success(text_content("There is nothing to ask for.")).into())
        } else {
            self.request_once(Value::Object(questions))
        }
    }

    fn sign_state(&self, state: &str) -> String {
        format!("{state}.{}", self.state_digest(state))
    }

    fn verify_state(&self, sealed: &str) -> Result<String, ErrorData> {
        let parts = sealed.split_once('.');
        let good = parts.filter(|(state, seal)| {
            bool::from(self.state_digest(state).as_bytes().ct_eq(seal.as_bytes()))
        });
        good.map(|(state, _)| state.to_owned()).ok_or_else(|| {
            ErrorData::invalid_params("this state was not given by this server", None)
        })
    }

    fn state_digest(&self, state: &str) -> String {
        let bytes = [self.secret, state.as_bytes(), self.secret].concat();
        ContentDigest::hash_bytes(&bytes).to_string()
    }
}

fn input_required(questions: Value, state: Option<String>) -> CallToolResponse {
    InputRequiredResult::new(Some(parse_fixture::<InputRequests>(questions)), state).into()
}

/// The input as text, if there is a valid answer to every question.
pub(super) fn collect_answers(given: Option<&InputResponses>, questions: &Value) -> Option<String> {
    let questions = questions.as_object()?;
    let texts: Option<Vec<String>> = questions
        .iter()
        .map(|(key, question)| answer_text(given?.get(key)?, question["method"].as_str()?))
        .collect();
    texts.map(|texts| texts.join(", "))
}

fn answer_text(given: &Value, method: &str) -> Option<String> {
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

pub(super) fn form_request(message: &str, key: &str, kind: &str) -> Value {
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

fn sampling_request(question: &str) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": question } }],
            "maxTokens": 100,
        },
    })
}

fn roots_request() -> Value {
    json!({ "method": "roots/list", "params": {} })
}
