//! Every way in which a call goes wrong, in both protocols.

use repertoire_model::error::Phase;
use repertoire_model::{
    Client, Delta, Endpoint, Endpoints, Error, Message, Request, Secret, Service, Timeouts,
};
use repertoire_scripted::{Fault, Script, Server, Turn};
use tokio::net::TcpListener;

use crate::support::{
    KEY, NOW_MS, STREAMED, WAYS, answer, answer_within, ask, client, model, patient, pieces,
};

fn short_idle() -> Timeouts {
    Timeouts { idle_ms: 300, ..patient() }
}

fn short_absolute() -> Timeouts {
    Timeouts { absolute_ms: 80, ..patient() }
}

#[tokio::test]
async fn silence_before_the_answer_is_a_stall() {
    for way in STREAMED {
        let stalled = answer_within(Turn::fail(Fault::StallBeforeHeaders), way, short_idle()).await;
        let expect = Error::Stalled { service: way.0, phase: Phase::Headers, waited_ms: 300 };
        assert_eq!(stalled, Err(expect));
    }
}

#[tokio::test]
async fn silence_before_a_whole_answer_has_only_the_absolute_limit() {
    let way = (Service::Anthropic, false);
    let slow = Turn::fail(Fault::Slow { ms_per_event: 500 });
    assert!(answer_within(slow, way, short_idle()).await.is_ok());
    let late = answer_within(Turn::fail(Fault::StallBeforeHeaders), way, short_absolute()).await;
    assert_eq!(late, Err(Error::TimedOut { service: way.0, limit_ms: 80 }));
}

#[tokio::test]
async fn silence_in_the_middle_is_a_stall_after_the_pieces_that_came() {
    for (service, _) in STREAMED {
        let turn = Turn::fail(Fault::StallMidStream { after_events: 4 });
        let server = Server::start(Script::new().turn(turn)).await;
        let messages = [Message::user("hello")];
        let (pieces, end) =
            pieces(&client(&server, short_idle()), &Request::new(&model(service), &messages)).await;
        assert!(pieces.iter().any(|piece| matches!(piece, Delta::Text(_))), "{pieces:?}");
        let expect = Error::Stalled { service, phase: Phase::Stream, waited_ms: 300 };
        assert_eq!(end, Err(expect));
    }
    let turn = Turn::fail(Fault::StallMidStream { after_events: 0 });
    let way = (Service::Compat, false);
    let expect = Error::Stalled { service: way.0, phase: Phase::Stream, waited_ms: 300 };
    assert_eq!(answer_within(turn, way, short_idle()).await, Err(expect));
}

#[tokio::test]
async fn an_answer_that_never_ends_is_timed_out() {
    for way in STREAMED {
        let slow = Turn::text("x".repeat(2000)).with_fault(Fault::Slow { ms_per_event: 10 });
        let late = answer_within(slow, way, short_absolute()).await;
        assert_eq!(late, Err(Error::TimedOut { service: way.0, limit_ms: 80 }));
    }
}

#[tokio::test]
async fn a_cut_answer_is_broken_off() {
    for fault in [Fault::CutMidText, Fault::CutMidToolCall] {
        for way in WAYS {
            let cut = answer(Turn::fail(fault.clone()), way).await;
            assert_eq!(cut, Err(Error::BrokenOff { service: way.0 }), "{fault:?} {way:?}");
        }
    }
}

#[tokio::test]
async fn malformed_arguments_arrive_as_they_are() {
    for way in [STREAMED[0], STREAMED[1], (Service::Compat, false)] {
        let response = answer(Turn::fail(Fault::MalformedArguments), way).await.unwrap();
        let call = response.message.tool_calls().next().unwrap();
        assert_eq!(call.arguments, r#"{"command":"echo one two three four five""#);
        assert!(call.parsed().unwrap_err().contains("not valid JSON"));
    }
}

#[tokio::test]
async fn an_error_inside_of_an_answer_is_the_servers() {
    for way in WAYS {
        let failed = answer(Turn::fail(Fault::ErrorInStream), way).await;
        let Err(Error::Server { message, .. }) = failed else { panic!("{way:?}: {failed:?}") };
        assert_eq!(message, "Overloaded");
    }
}

#[tokio::test]
async fn garbage_is_not_the_protocol() {
    for way in WAYS {
        let failed = answer(Turn::fail(Fault::GarbageEvent), way).await;
        let Err(Error::Protocol { message, .. }) = failed else { panic!("{way:?}: {failed:?}") };
        assert!(message.contains("{this is not JSON"), "{message}");
    }
}

#[tokio::test]
async fn an_event_without_end_is_refused() {
    use repertoire_model::limits::EVENT_BYTES_MAX;
    for way in STREAMED {
        let huge = Turn::fail(Fault::HugeEvent { bytes: EVENT_BYTES_MAX + 1 });
        let Err(Error::Protocol { message, .. }) = answer(huge, way).await else {
            panic!("{way:?}")
        };
        assert_eq!(message, format!("an event of more than {EVENT_BYTES_MAX} bytes"));
        let large = Turn::fail(Fault::HugeEvent { bytes: EVENT_BYTES_MAX / 2 });
        assert!(answer(large, way).await.is_ok());
    }
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    use repertoire_model::limits::ANSWER_BYTES_MAX;
    let huge = Turn::fail(Fault::HugeEvent { bytes: ANSWER_BYTES_MAX });
    let failed = answer(huge, (Service::Anthropic, false)).await;
    let Err(Error::Protocol { message, .. }) = failed else { panic!("it was taken") };
    assert_eq!(message, format!("an answer of more than {ANSWER_BYTES_MAX} bytes"));
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let base_url = format!("http://user:{KEY}@{address}/v1?key={KEY}");
    let endpoint = Endpoint { base_url, key: Some(Secret::new(KEY)) };
    let endpoints = Endpoints { compat: Some(endpoint), ..Endpoints::default() };
    let client = Client::new(endpoints, patient());
    let error = ask(&client, &Request::new(&model(Service::Compat), &[])).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Connection { .. }), "{text}");
    assert!(text.contains(&format!("at http://{address}/v1/chat/completions: ")), "{text}");
    assert!(text.contains("refused"), "{text}");
    assert!(!format!("{error:?}{client:?}").contains(KEY), "{text}");
}

#[tokio::test]
async fn a_server_that_cannot_speak_securely_is_no_connection() {
    let server = Server::start(Script::new()).await;
    let base_url = server.url().replace("http://", "https://");
    let endpoint = Endpoint { base_url, key: None };
    let endpoints = Endpoints { anthropic: Some(endpoint), ..Endpoints::default() };
    let client = Client::new(endpoints, Timeouts { connect_ms: 300, ..patient() });
    let error = ask(&client, &Request::new(&model(Service::Anthropic), &[])).await.unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_web_page_is_not_an_answer() {
    for way in WAYS {
        let page = Fault::status_with(200, &[("content-type", "text/html")], "<p>Welcome</p>");
        let error = answer(Turn::fail(page), way).await.unwrap_err();
        assert!(error.to_string().contains("a web page"), "{error}");
    }
}

/// What a status becomes, as `Debug` shows it, without the service.
async fn of_status(service: Service, fault: Fault) -> Error {
    answer(Turn::fail(fault), (service, true)).await.expect_err("a failure")
}

#[tokio::test]
async fn the_key_never_appears_and_messages_are_one_short_line() {
    let long = format!("{}{KEY} is wrong\\n\\u001b[31m{}", "a ".repeat(240), "b".repeat(900));
    let body = format!(r#"{{"error":{{"message":"{long}"}}}}"#);
    for service in Service::ALL {
        let error = of_status(service, Fault::status(401, body.clone())).await;
        let Error::Unauthorised { status: 401, message, .. } = &error else { panic!("{error:?}") };
        assert!(message.contains("*** is wrong"), "{message}");
        assert!(!message.contains("sk-"), "{message}");
        assert!(!message.contains(|c: char| c.is_control()), "{message}");
        assert_eq!(message.chars().count(), 501);
    }
}

#[tokio::test]
async fn each_status_becomes_what_the_caller_can_do_about_it() {
    let service = Service::Anthropic;
    let message = || "m".to_owned();
    let body = r#"{"error":{"message":"m"}}"#;
    let retry = |retry_after_ms| Error::RateLimited {
        service,
        status: 429,
        message: message(),
        retry_after_ms,
    };
    let limit = |message: &str, resets_at_ms| Error::UsageLimit {
        service,
        message: message.to_owned(),
        resets_at_ms,
    };
    let hour = NOW_MS + 3_600_000;
    for (fault, expect) in [
        (Fault::status(429, body), retry(None)),
        (Fault::status_with(429, &[("retry-after", "7")], body), retry(Some(7000))),
        (
            Fault::status_with(429, &[("retry-after", "3600")], body),
            limit("m", Some(hour)),
        ),
        (
            Fault::status_with(429, &[("anthropic-ratelimit-unified-reset", "1800003600")], body),
            limit("m", Some(hour)),
        ),
        (
            Fault::status(429, r#"{"error":{"code":"insufficient_quota","message":"no"}}"#),
            limit("no", None),
        ),
        (
            Fault::status(429, r#"{"error":{"message":"Rate limit reached for requests"}}"#),
            Error::RateLimited {
                service,
                status: 429,
                message: "Rate limit reached for requests".into(),
                retry_after_ms: None,
            },
        ),
        (
            Fault::status_with(429, &[("x-ratelimit-reset", "30s")], body),
            retry(Some(30_000)),
        ),
        (
            Fault::status(400, r#"{"error":{"message":"no parameter quota"}}"#),
            Error::Rejected { service, status: 400, message: "no parameter quota".into() },
        ),
        (
            Fault::status(400, r#"{"error":{"message":"Your credit balance is too low"}}"#),
            limit("Your credit balance is too low", None),
        ),
        (
            Fault::status_with(503, &[("retry-after-ms", "10")], ""),
            Error::Server {
                service,
                status: 503,
                message: "no reason given".into(),
                retry_after_ms: Some(10),
            },
        ),
        (
            Fault::status(529, "busy\n"),
            Error::Server { service, status: 529, message: "busy".into(), retry_after_ms: None },
        ),
        (Fault::status(403, body), Error::Unauthorised { service, status: 403, message: message() }),
        (
            Fault::status(400, r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#),
            Error::ContextTooLong { message: "prompt is too long: 9 > 8".into() },
        ),
        (Fault::status(413, body), Error::ContextTooLong { message: message() }),
        (
            Fault::status(404, r#"{"error":"model 'x' not found"}"#),
            Error::Rejected { service, status: 404, message: "model 'x' not found".into() },
        ),
        (
            Fault::status_with(308, &[("location", "https://elsewhere/v1?k=1")], ""),
            Error::Rejected {
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
