//! Prompts for the conformance suite.

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequests, InputRequiredResult,
    Prompt, PromptMessage,
};
use serde_json::{Value, json};

use super::client_requests::{collect_answers, form_request};
use super::content::PNG;
use super::parse_fixture;

pub(super) fn list_prompts() -> Vec<Prompt> {
    parse_fixture(json!([
        { "name": "test_simple_prompt", "description": "One sentence" },
        {
            "name": "test_prompt_with_arguments",
            "description": "Repeats what it is given",
            "arguments": [
                { "name": "arg1", "description": "First test argument", "required": true },
                { "name": "arg2", "description": "Second test argument", "required": true },
            ],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "Has a resource in it",
            "arguments": [{ "name": "resourceUri", "description": "Its address", "required": true }],
        },
        { "name": "test_prompt_with_image", "description": "Has a picture in it" },
        { "name": "test_input_required_result_prompt", "description": "Asks before it answers" },
    ]))
}

pub(super) fn get_prompt(
    request: &GetPromptRequestParams,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text_block("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![text_block(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            text_argument(request, "arg1"),
            text_argument(request, "arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            json!({ "type": "resource", "resource": {
                "uri": text_argument(request, "resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            } }),
            text_block("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
            text_block("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let question = form_request("What context should the prompt use?", "context", "string");
            let questions = json!({ "user_context": question });
            match collect_answers(request.input_responses.as_ref(), &questions) {
                Some(context) => vec![text_block(&format!("Use this context: {context}"))],
                None => {
                    let questions: InputRequests = parse_fixture(questions);
                    return Some(Ok(InputRequiredResult::new(Some(questions), None).into()));
                }
            }
        }
        _ => return None,
    };
    let message = |content: Value| -> PromptMessage {
        parse_fixture(json!({ "role": "user", "content": content }))
    };
    let messages = contents.into_iter().map(message).collect();
    Some(Ok(GetPromptResult::new(messages).into()))
}

fn text_argument<'a>(request: &'a GetPromptRequestParams, key: &str) -> &'a str {
    let arguments = request.arguments.as_ref();
    arguments.and_then(|all| all.get(key)).and_then(Value::as_str).unwrap_or_default()
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
