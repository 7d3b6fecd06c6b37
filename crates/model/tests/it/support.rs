//! A client for a scripted server, in each of the ways that it can ask.

use futures_util::StreamExt;
use repertoire_model::{
    Assembler, Client, Delta, Endpoint, Endpoints, Error, Message, ModelName, Provider, Request,
    Response, Secret, Service, Timeouts,
};
use repertoire_scripted::{Script, Server, Turn};

pub(crate) const KEY: &str = "sk-secret-of-the-test";

/// A way of asking: a protocol, streamed or not.
pub(crate) type Way = (Service, bool);

pub(crate) const WAYS: [Way; 4] = [
    (Service::Anthropic, true),
    (Service::Anthropic, false),
    (Service::Compat, true),
    (Service::Compat, false),
];

pub(crate) const STREAMED: [Way; 2] = [(Service::Anthropic, true), (Service::Compat, true)];

pub(crate) fn model(service: Service) -> ModelName {
    format!("{service}/test-model").parse().expect("a name")
}

/// Long enough for a busy machine; tests that wait for a limit set it themselves.
pub(crate) fn patient() -> Timeouts {
    Timeouts { connect_ms: 5_000, idle_ms: 20_000, absolute_ms: 30_000 }
}

pub(crate) fn client(server: &Server, timeouts: Timeouts) -> Client {
    let key = Some(Secret::new(KEY));
    let chat = Endpoint { base_url: format!("{}/v1", server.url()), key: key.clone() };
    let endpoints = Endpoints {
        anthropic: Some(Endpoint { base_url: server.url(), key }),
        openai: Some(chat.clone()),
        compat: Some(chat),
    };
    Client::new(endpoints, timeouts).with_clock(|| NOW_MS)
}

pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

/// All pieces of the answer, and how it ended.
pub(crate) async fn pieces(
    client: &Client,
    request: &Request<'_>,
) -> (Vec<Delta>, Result<(), Error>) {
    let mut stream = client.stream(request);
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last piece");
                return (pieces, Err(error));
            }
        }
    }
    (pieces, Ok(()))
}

pub(crate) async fn ask(client: &Client, request: &Request<'_>) -> Result<Response, Error> {
    let (pieces, end) = pieces(client, request).await;
    end?;
    let mut assembler = Assembler::default();
    pieces.iter().for_each(|piece| assembler.push(piece));
    Ok(assembler.finish().expect("a stream without an error ends with a stop"))
}

/// Asks a server with this one turn in this way.
pub(crate) async fn answer(turn: Turn, (service, streaming): Way) -> Result<Response, Error> {
    answer_within(turn, (service, streaming), patient()).await
}

pub(crate) async fn answer_within(
    turn: Turn,
    (service, streaming): Way,
    timeouts: Timeouts,
) -> Result<Response, Error> {
    let server = Server::start(Script::new().turn(turn)).await;
    let client = client(&server, timeouts).with_streaming(streaming);
    let messages = [Message::user("hello")];
    ask(&client, &Request::new(&model(service), &messages)).await
}
