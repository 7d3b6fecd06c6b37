//! Every way in which a call goes wrong, in both protocols.

use repertoire_model::error::Phase;
use repertoire_model::{
    ApiSecret, CallTimeouts, ModelClient, ModelEndpoint, ModelEndpoints, ModelError, ModelMessage,
    ModelRequest, ModelService, ResponseDelta,
};
use repertoire_scripted::{ModelFault, ModelScript, ScriptedServer, ScriptedTurn};
use tokio::net::TcpListener;

use crate::support::{
    KEY, NOW_MS, STREAMED, WAYS, answer, answer_within, ask, client, model, patient, pieces,
};

fn short_idle() -> CallTimeouts {
    CallTimeouts { idle_ms: 300, ..patient() }
}

fn short_absolute() -> CallTimeouts {
    CallTimeouts { absolute_ms: 80, ..patient() }
}

#[tokio::test]
async fn silence_before_the_answer_is_a_stall() {
    for way in STREAMED {
        let stalled =
            answer_within(ScriptedTurn::fail(ModelFault::StallBeforeHeaders), way, short_idle())
                .await;
        let expect = ModelError::Stalled { service: way.0, phase: Phase::Headers, waited_ms: 300 };
        assert_eq!(stalled, Err(expect));
    }
}

#[tokio::test]
async fn silence_before_a_whole_answer_has_only_the_absolute_limit() {
    let way = (ModelService::Anthropic, false);
    let slow = ScriptedTurn::fail(ModelFault::Slow { ms_per_event: 500 });
    assert!(answer_within(slow, way, short_idle()).await.is_ok());
    let late =
        answer_within(ScriptedTurn::fail(ModelFault::StallBeforeHeaders), way, short_absolute())
            .await;
    assert_eq!(late, Err(ModelError::TimedOut { service: way.0, limit_ms: 80 }));
}

#[tokio::test]
async fn silence_in_the_middle_is_a_stall_after_the_pieces_that_came() {
    for (service, _) in STREAMED {
        let turn = ScriptedTurn::fail(ModelFault::StallMidStream { after_events: 4 });
        let server = ScriptedServer::start(ModelScript::new().turn(turn)).await;
        let messages = [ModelMessage::user("hello")];
        let (pieces, end) =
            pieces(&client(&server, short_idle()), &ModelRequest::new(&model(service), &messages))
                .await;
        assert!(pieces.iter().any(|piece| matches!(piece, ResponseDelta::Text(_))), "{pieces:?}");
        let expect = ModelError::Stalled { service, phase: Phase::Stream, waited_ms: 300 };
        assert_eq!(end, Err(expect));
    }
    let turn = ScriptedTurn::fail(ModelFault::StallMidStream { after_events: 0 });
    let way = (ModelService::Compat, false);
    let expect = ModelError::Stalled { service: way.0, phase: Phase::Stream, waited_ms: 300 };
    assert_eq!(answer_within(turn, way, short_idle()).await, Err(expect));
}

#[tokio::test]
async fn an_answer_that_never_ends_is_timed_out() {
    for way in STREAMED {
        let slow =
            ScriptedTurn::text("x".repeat(2000)).with_fault(ModelFault::Slow { ms_per_event: 10 });
        let late = answer_within(slow, way, short_absolute()).await;
        assert_eq!(late, Err(ModelError::TimedOut { service: way.0, limit_ms: 80 }));
    }
}

#[tokio::test]
async fn a_cut_answer_is_broken_off() {
    for fault in [ModelFault::CutMidText, ModelFault::CutMidToolCall] {
        for way in WAYS {
            let cut = answer(ScriptedTurn::fail(fault.clone()), way).await;
            assert_eq!(cut, Err(ModelError::BrokenOff { service: way.0 }), "{fault:?} {way:?}");
        }
    }
}

#[tokio::test]
async fn malformed_arguments_arrive_as_they_are() {
    for way in [STREAMED[0], STREAMED[1], (ModelService::Compat, false)] {
        let response =
            answer(ScriptedTurn::fail(ModelFault::MalformedArguments), way).await.unwrap();
        let call = response.message.tool_calls().next().unwrap();
        assert_eq!(call.arguments, r#"{"command":"echo one two three four five""#);
        assert!(call.parse_arguments().unwrap_err().contains("not valid JSON"));
    }
}

#[tokio::test]
async fn an_error_inside_of_an_answer_is_the_servers() {
    for way in WAYS {
        let failed = answer(ScriptedTurn::fail(ModelFault::ErrorInStream), way).await;
        let Err(ModelError::Server { message, .. }) = failed else { panic!("{way:?}: {failed:?}") };
        assert_eq!(message, "Overloaded");
    }
}

#[tokio::test]
async fn garbage_is_not_the_protocol() {
    for way in WAYS {
        let failed = answer(ScriptedTurn::fail(ModelFault::GarbageEvent), way).await;
        let Err(ModelError::Protocol { message, .. }) = failed else {
            panic!("{way:?}: {failed:?}")
        };
        assert!(message.contains("{this is not JSON"), "{message}");
    }
}

#[tokio::test]
async fn an_event_without_end_is_refused() {
    use repertoire_model::limits::EVENT_BYTES_MAX;
    for way in STREAMED {
        let huge = ScriptedTurn::fail(ModelFault::HugeEvent { bytes: EVENT_BYTES_MAX + 1 });
        let Err(ModelError::Protocol { message, .. }) = answer(huge, way).await else {
            panic!("{way:?}")
        };
        assert_eq!(message, format!("an event of more than {EVENT_BYTES_MAX} bytes"));
        let large = ScriptedTurn::fail(ModelFault::HugeEvent { bytes: EVENT_BYTES_MAX / 2 });
        assert!(answer(large, way).await.is_ok());
    }
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    use repertoire_model::limits::ANSWER_BYTES_MAX;
    let huge = ScriptedTurn::fail(ModelFault::HugeEvent { bytes: ANSWER_BYTES_MAX });
    let failed = answer(huge, (ModelService::Anthropic, false)).await;
    let Err(ModelError::Protocol { message, .. }) = failed else { panic!("it was taken") };
    assert_eq!(message, format!("an answer of more than {ANSWER_BYTES_MAX} bytes"));
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let base_url = format!("http://user:{KEY}@{address}/v1?key={KEY}");
    let endpoint = ModelEndpoint { base_url, key: Some(ApiSecret::new(KEY)) };
    let endpoints = ModelEndpoints::default().with(ModelService::Compat, endpoint);
    let client = ModelClient::new(endpoints, patient());
    let error =
        ask(&client, &ModelRequest::new(&model(ModelService::Compat), &[])).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ModelError::Connection { .. }), "{text}");
    assert!(text.contains(&format!("at http://{address}/v1/chat/completions: ")), "{text}");
    assert!(text.contains("refused"), "{text}");
    assert!(!format!("{error:?}{client:?}").contains(KEY), "{text}");
}

#[tokio::test]
async fn a_server_that_cannot_speak_securely_is_no_connection() {
    let server = ScriptedServer::start(ModelScript::new()).await;
    let base_url = server.url().replace("http://", "https://");
    let endpoint = ModelEndpoint { base_url, key: None };
    let endpoints = ModelEndpoints::default().with(ModelService::Anthropic, endpoint);
    let client = ModelClient::new(endpoints, CallTimeouts { connect_ms: 300, ..patient() });
    let error =
        ask(&client, &ModelRequest::new(&model(ModelService::Anthropic), &[])).await.unwrap_err();
    assert!(matches!(error, ModelError::Connection { .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_web_page_is_not_an_answer() {
    for way in WAYS {
        let page = ModelFault::status_with(200, &[("content-type", "text/html")], "<p>Welcome</p>");
        let error = answer(ScriptedTurn::fail(page), way).await.unwrap_err();
        assert!(error.to_string().contains("a web page"), "{error}");
    }
}

/// What a status becomes, as `Debug` shows it, without the service.
async fn of_status(service: ModelService, fault: ModelFault) -> ModelError {
    answer(ScriptedTurn::fail(fault), (service, true)).await.expect_err("a failure")
}

#[tokio::test]
async fn the_key_never_appears_and_messages_are_one_short_line() {
    let long = format!("{}{KEY} is wrong\\n\\u001b[31m{}", "a ".repeat(240), "b".repeat(900));
    let body = format!(r#"{{"error":{{"message":"{long}"}}}}"#);
    for service in ModelService::ALL {
        let error = of_status(service, ModelFault::status(401, body.clone())).await;
        let ModelError::Unauthorised { status: 401, message, .. } = &error else {
            panic!("{error:?}")
        };
        assert!(message.contains("*** is wrong"), "{message}");
        assert!(!message.contains("sk-"), "{message}");
        assert!(!message.contains(|c: char| c.is_control()), "{message}");
        assert_eq!(message.chars().count(), 501);
    }
}

#[tokio::test]
async fn each_status_becomes_what_the_caller_can_do_about_it() {
    let service = ModelService::Anthropic;
    let message = || "m".to_owned();
    let body = r#"{"error":{"message":"m"}}"#;
    let retry = |retry_after_ms| ModelError::RateLimited {
        service,
        status: 429,
        message: message(),
        retry_after_ms,
    };
    let limit = |message: &str, resets_at_ms| ModelError::UsageLimit {
        service,
        message: message.to_owned(),
        resets_at_ms,
    };
    let hour = NOW_MS + 3_600_000;
    for (fault, expect) in [
        (ModelFault::status(429, body), retry(None)),
        (ModelFault::status_with(429, &[("retry-after", "7")], body), retry(Some(7000))),
        (
            ModelFault::status_with(429, &[("retry-after", "3600")], body),
            limit("m", Some(hour)),
        ),
        (
            ModelFault::status_with(429, &[("anthropic-ratelimit-unified-reset", "1800003600")], body),
            limit("m", Some(hour)),
        ),
        (
            ModelFault::status(429, r#"{"error":{"code":"insufficient_quota","message":"no"}}"#),
            limit("no", None),
        ),
        (
            ModelFault::status(429, r#"{"error":{"message":"Rate limit reached for requests"}}"#),
            ModelError::RateLimited {
                service,
                status: 429,
                message: "Rate limit reached for requests".into(),
                retry_after_ms: None,
            },
        ),
        (
            ModelFault::status_with(429, &[("x-ratelimit-reset", "30s")], body),
            retry(Some(30_000)),
        ),
        (
            ModelFault::status(400, r#"{"error":{"message":"no parameter quota"}}"#),
            ModelError::Rejected { service, status: 400, message: "no parameter quota".into() },
        ),
        (
            ModelFault::status(400, r#"{"error":{"message":"Your credit balance is too low"}}"#),
            limit("Your credit balance is too low", None),
        ),
        (
            ModelFault::status_with(503, &[("retry-after-ms", "10")], ""),
            ModelError::Server {
                service,
                status: 503,
                message: "no reason given".into(),
                retry_after_ms: Some(10),
            },
        ),
        (
            ModelFault::status(529, "busy\n"),
            ModelError::Server { service, status: 529, message: "busy".into(), retry_after_ms: None },
        ),
        (ModelFault::status(403, body), ModelError::Unauthorised { service, status: 403, message: message() }),
        (
            ModelFault::status(400, r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#),
            ModelError::ContextTooLong { message: "prompt is too long: 9 > 8".into() },
        ),
        (ModelFault::status(413, body), ModelError::ContextTooLong { message: message() }),
        (
            ModelFault::status(404, r#"{"error":"model 'x' not found"}"#),
            ModelError::Rejected { service, status: 404, message: "model 'x' not found".into() },
        ),
        (
            ModelFault::status_with(308, &[("location", "https://elsewhere/v1?k=1")], ""),
            ModelError::Rejected {
                service,
                status: 308,
                message: "it sends us to https://elsewhere/v1; redirections are not followed, so set the address \
                          that is meant"
                    .into(),
            },
        ),
    ] {
        assert_eq!(of_status(service, fault.clone()).await, expect, "{fault:?}");
    }
}
