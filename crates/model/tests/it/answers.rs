//! Answers as they should be.

use repertoire_model::{
    AssistantPart, CallTimeouts, ModelEndpoint, ModelEndpoints, ModelError, ModelMessage,
    ModelRequest, ModelService, PromptCaching, ResponseFormat, StopReason, TokenUsage, ToolSpec,
};
use repertoire_scripted::{
    ModelFault, ModelScript, ScriptedServer, ScriptedToolUse, ScriptedTurn,
    ScriptedUsage as Claimed,
};
use serde_json::json;

use crate::support::{KEY, STREAMED, WAYS, answer, ask, client, model, patient, pieces};

#[tokio::test]
async fn text_and_usage_arrive() {
    for way in WAYS {
        let claimed = Claimed {
            input_tokens: 70,
            output_tokens: 9,
            cache_read_tokens: 30,
            cache_write_tokens: 0,
        };
        let turn = ScriptedTurn::text("Grüße, and all the best to you!").with_usage(claimed);
        let response = answer(turn, way).await.unwrap();
        assert_eq!(response.message, ModelMessage::assistant("Grüße, and all the best to you!"));
        assert_eq!(response.stop, StopReason::EndTurn);
        let usage = TokenUsage {
            input_tokens: 70,
            output_tokens: 9,
            cache_read_tokens: 30,
            cache_write_tokens: 0,
        };
        assert_eq!(response.usage, usage, "{way:?}");
    }
}

#[tokio::test]
async fn several_calls_arrive_with_their_arguments() {
    for way in WAYS {
        let turn = ScriptedTurn::tools(vec![
            ScriptedToolUse::new("bash", json!({ "command": "ls -l" })),
            ScriptedToolUse::new("read", json!({})),
        ])
        .and_text("I look.");
        let response = answer(turn, way).await.unwrap();
        assert_eq!(response.message.text(), "I look.");
        assert_eq!(response.stop, StopReason::ToolUse);
        let calls: Vec<_> = response.message.tool_calls().collect();
        assert_eq!(calls.len(), 2, "{way:?}");
        assert_eq!(calls[0].parse_arguments().unwrap(), json!({ "command": "ls -l" }));
        assert_eq!((calls[1].name.as_str(), calls[1].id.as_str()), ("read", "call_0_1"));
        assert_eq!(calls[1].parse_arguments().unwrap(), json!({}));
    }
}

#[tokio::test]
async fn thoughts_arrive_and_anthropic_signs_them() {
    for way in WAYS {
        let response =
            answer(ScriptedTurn::thinking("hm, hm, and hm").and_text("yes"), way).await.unwrap();
        let ModelMessage::Assistant { content } = &response.message else { panic!("an answer") };
        let signature = (way.0 == ModelService::Anthropic).then(|| "c2ln".to_owned());
        let thoughts = AssistantPart::Thinking { text: "hm, hm, and hm".into(), signature };
        assert_eq!(content[0], thoughts, "{way:?}");
    }
}

#[tokio::test]
async fn a_limit_that_was_reached_is_told() {
    for (way, reason) in WAYS.into_iter().zip(["max_tokens", "max_tokens", "length", "length"]) {
        let response = answer(ScriptedTurn::text("and then").with_stop(reason), way).await.unwrap();
        assert_eq!(response.stop, StopReason::MaxTokens);
    }
}

#[tokio::test]
async fn requests_carry_the_key_and_go_to_the_right_place() {
    let server =
        ScriptedServer::start(ModelScript::new().turn(ScriptedTurn::text("ok")).repeat_last())
            .await;
    let client = client(&server, patient());
    for service in ModelService::ALL {
        let messages = [ModelMessage::system("be brief"), ModelMessage::user("hello")];
        ask(&client, &ModelRequest::new(&model(service), &messages)).await.unwrap();
    }
    let [anthropic, openai, compat] = server.requests().try_into().unwrap();
    assert_eq!(anthropic.path, "/v1/messages");
    assert_eq!(anthropic.headers["x-api-key"], KEY);
    assert_eq!(anthropic.headers["anthropic-version"], "2023-06-01");
    assert!(!anthropic.headers.contains_key("authorization"));
    assert_eq!(anthropic.body["system"][0]["text"], "be brief");
    for request in [openai, compat] {
        assert_eq!(request.path, "/v1/chat/completions");
        assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(request.body["messages"][0]["content"], "be brief");
        assert_eq!(request.body["stream_options"]["include_usage"], true);
    }
}

#[tokio::test]
async fn addresses_may_be_written_in_several_ways() {
    let server =
        ScriptedServer::start(ModelScript::new().turn(ScriptedTurn::text("ok")).repeat_last())
            .await;
    for (service, end) in [
        (ModelService::Anthropic, ""),
        (ModelService::Anthropic, "/"),
        (ModelService::Anthropic, "/v1"),
        (ModelService::Anthropic, "/v1/"),
        (ModelService::Compat, "/v1"),
        (ModelService::Compat, "/v1/"),
        (ModelService::Compat, ""),
    ] {
        let endpoint = ModelEndpoint { base_url: format!("{}{end}", server.url()), key: None };
        let endpoints = ModelEndpoints::default().with(service, endpoint);
        let client = repertoire_model::ModelClient::new(endpoints, patient());
        let messages = [ModelMessage::user("hello")];
        let response = ask(&client, &ModelRequest::new(&model(service), &messages)).await;
        assert_eq!(response.map(|response| response.message.text()), Ok("ok".to_owned()), "{end}");
    }
}

#[tokio::test]
async fn what_is_not_set_up_is_told_without_a_call() {
    for (base_url, expect) in [
        (None, "openai is not set up: there is no address for it"),
        (Some("http://u:pw@"), "openai is not set up: its address `` is not a URL"),
        (
            Some("ftp://u:pw@host"),
            "openai is not set up: its address `host` begins with neither http:// nor https://",
        ),
    ] {
        let mut endpoints = ModelEndpoints::default();
        if let Some(base_url) = base_url {
            let endpoint = ModelEndpoint { base_url: base_url.to_owned(), key: None };
            endpoints = endpoints.with(ModelService::OpenAi, endpoint);
        }
        let client = repertoire_model::ModelClient::new(endpoints, CallTimeouts::default());
        let error =
            ask(&client, &ModelRequest::new(&model(ModelService::OpenAi), &[])).await.unwrap_err();
        assert_eq!(error.to_string(), expect);
    }
}

#[tokio::test]
async fn an_answer_of_a_given_shape_is_text() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let format = ResponseFormat::Schema { name: "count".into(), schema };
    let turn = ScriptedTurn::text("Here it is:").and_tool("structured_output", json!({ "n": 3 }));
    for streaming in [true, false] {
        let server = ScriptedServer::start(ModelScript::new().turn(turn.clone())).await;
        let client = client(&server, patient()).with_streaming(streaming);
        let messages = [ModelMessage::user("count")];
        let name = model(ModelService::Anthropic);
        let request =
            ModelRequest { format: format.clone(), ..ModelRequest::new(&name, &messages) };
        let response = ask(&client, &request).await.unwrap();
        assert_eq!(response.message.text(), r#"{"n":3}"#);
        assert_eq!(response.stop, StopReason::EndTurn);
        assert_eq!(response.message.tool_calls().count(), 0);
        let sent = &server.requests()[0].body;
        assert_eq!(sent["tool_choice"], json!({ "type": "tool", "name": "structured_output" }));
    }
}

#[tokio::test]
async fn the_request_is_read_before_the_stream_is() {
    let server = ScriptedServer::start(ModelScript::new().turn(ScriptedTurn::text("ok"))).await;
    let client = client(&server, patient());
    let stream = {
        let name = model(ModelService::Compat);
        let messages = vec![ModelMessage::user("hello")];
        let tools = vec![ToolSpec {
            name: "bash".into(),
            description: "Runs a command.".into(),
            parameters: json!({ "type": "object" }),
        }];
        let request = ModelRequest {
            tools: &tools,
            caching: PromptCaching::Off,
            ..ModelRequest::new(&name, &messages)
        };
        repertoire_model::ModelProvider::stream(&client, &request)
    };
    let pieces: Vec<_> = futures_util::StreamExt::collect(stream).await;
    assert!(pieces.iter().all(Result::is_ok));
    assert_eq!(server.requests()[0].body["tools"][0]["function"]["name"], "bash");
}

#[tokio::test]
async fn pieces_come_while_the_model_still_writes() {
    for (service, _) in STREAMED {
        let turn = ScriptedTurn::text("one two three four five six seven eight nine ten");
        let turn = turn.with_fault(ModelFault::Slow { ms_per_event: 2 });
        let server = ScriptedServer::start(ModelScript::new().turn(turn)).await;
        let messages = [ModelMessage::user("count")];
        let (pieces, end) =
            pieces(&client(&server, patient()), &ModelRequest::new(&model(service), &messages))
                .await;
        assert_eq!(end, Ok(()));
        assert!(pieces.len() > 4, "{pieces:?}");
    }
}

#[tokio::test]
async fn a_used_up_script_is_a_failure_of_the_server() {
    let server = ScriptedServer::start(ModelScript::new()).await;
    let messages = [ModelMessage::user("hello")];
    let error = ask(
        &client(&server, patient()),
        &ModelRequest::new(&model(ModelService::Compat), &messages),
    )
    .await;
    let Err(ModelError::Server { status: 500, message, .. }) = error else { panic!("{error:?}") };
    assert_eq!(message, "the script has no more turns");
}

#[tokio::test]
async fn answers_are_computed_from_requests() {
    let echo = ScriptedTurn::respond(|request| {
        ScriptedTurn::text(request.last_user_text().to_uppercase())
    });
    let server = ScriptedServer::start(ModelScript::new().turn(echo).repeat_last()).await;
    let client = client(&server, patient());
    for service in ModelService::ALL {
        let messages = [
            ModelMessage::user("one"),
            ModelMessage::assistant("two"),
            ModelMessage::user("three"),
        ];
        let response = ask(&client, &ModelRequest::new(&model(service), &messages)).await.unwrap();
        assert_eq!(response.message.text(), "THREE");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_after_an_answer() {
    for (service, streaming) in WAYS {
        let server =
            ScriptedServer::start(ModelScript::new().turn(ScriptedTurn::text("ok")).repeat_last())
                .await;
        let client = client(&server, patient()).with_streaming(streaming);
        let messages = [ModelMessage::user("hello")];
        for _ in 0..5 {
            ask(&client, &ModelRequest::new(&model(service), &messages)).await.unwrap();
        }
        assert_eq!(server.connections(), 1, "{service} {streaming}");
    }
}

#[tokio::test]
async fn a_stream_that_is_dropped_ends_the_call() {
    let slow =
        ScriptedTurn::text("x".repeat(5000)).with_fault(ModelFault::Slow { ms_per_event: 5 });
    let script = ModelScript::new().turn(slow).turn(ScriptedTurn::text("ok"));
    let server = ScriptedServer::start(script).await;
    let client = client(&server, patient());
    let name = model(ModelService::Anthropic);
    let messages = [ModelMessage::user("hello")];
    let request = ModelRequest::new(&name, &messages);
    let mut stream = repertoire_model::ModelProvider::stream(&client, &request);
    assert!(futures_util::StreamExt::next(&mut stream).await.unwrap().is_ok());
    drop(stream);
    assert_eq!(ask(&client, &request).await.unwrap().message.text(), "ok");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_whole_answer_to_a_request_for_a_stream_is_understood() {
    let body = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#;
    let turn = ScriptedTurn::fail(ModelFault::status(200, body));
    let response = answer(turn, (ModelService::Compat, true)).await.unwrap();
    assert_eq!(response.message.text(), "whole");
}
