//! A client for a scripted server, in each of the ways that it can ask.

use futures_util::StreamExt;
use repertoire_model::{
    ApiSecret, CallTimeouts, ModelClient, ModelEndpoint, ModelEndpoints, ModelError, ModelMessage,
    ModelName, ModelProvider, ModelRequest, ModelResponse, ModelService, ResponseAssembler,
    ResponseDelta,
};
use repertoire_scripted::{ModelScript, ScriptedServer, ScriptedTurn};

pub(crate) const KEY: &str = "sk-secret-of-the-test";

/// A way of asking: a protocol, streamed or not.
pub(crate) type Way = (ModelService, bool);

pub(crate) const WAYS: [Way; 4] = [
    (ModelService::Anthropic, true),
    (ModelService::Anthropic, false),
    (ModelService::Compat, true),
    (ModelService::Compat, false),
];

pub(crate) const STREAMED: [Way; 2] =
    [(ModelService::Anthropic, true), (ModelService::Compat, true)];

pub(crate) fn model(service: ModelService) -> ModelName {
    format!("{service}/test-model").parse().expect("a name")
}

/// Long enough for a busy machine; tests that wait for a limit set it themselves.
pub(crate) fn patient() -> CallTimeouts {
    CallTimeouts { connect_ms: 5_000, idle_ms: 20_000, absolute_ms: 30_000 }
}

pub(crate) fn client(server: &ScriptedServer, timeouts: CallTimeouts) -> ModelClient {
    let key = Some(ApiSecret::new(KEY));
    let chat = ModelEndpoint { base_url: format!("{}/v1", server.url()), key: key.clone() };
    let endpoints = ModelEndpoints::default()
        .with(ModelService::Anthropic, ModelEndpoint { base_url: server.url(), key })
        .with(ModelService::OpenAi, chat.clone())
        .with(ModelService::Compat, chat);
    ModelClient::new(endpoints, timeouts).with_clock(|| NOW_MS)
}

pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

/// All pieces of the answer, and how it ended.
pub(crate) async fn pieces(
    client: &ModelClient,
    request: &ModelRequest<'_>,
) -> (Vec<ResponseDelta>, Result<(), ModelError>) {
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

pub(crate) async fn ask(
    client: &ModelClient,
    request: &ModelRequest<'_>,
) -> Result<ModelResponse, ModelError> {
    let (pieces, end) = pieces(client, request).await;
    end?;
    let mut assembler = ResponseAssembler::default();
    pieces.iter().for_each(|piece| assembler.push(piece));
    Ok(assembler.finish().expect("a stream without an error ends with a stop"))
}

/// Asks a server with this one turn in this way.
pub(crate) async fn answer(
    turn: ScriptedTurn,
    (service, streaming): Way,
) -> Result<ModelResponse, ModelError> {
    answer_within(turn, (service, streaming), patient()).await
}

pub(crate) async fn answer_within(
    turn: ScriptedTurn,
    (service, streaming): Way,
    timeouts: CallTimeouts,
) -> Result<ModelResponse, ModelError> {
    let server = ScriptedServer::start(ModelScript::new().turn(turn)).await;
    let client = client(&server, timeouts).with_streaming(streaming);
    let messages = [ModelMessage::user("hello")];
    ask(&client, &ModelRequest::new(&model(service), &messages)).await
}
