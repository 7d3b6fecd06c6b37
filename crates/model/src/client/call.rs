//! A single call: sends the request, enforces timeouts, and decodes the response.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{DeltaStream, Timeouts};
use crate::error::{Error, Phase};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX};
use crate::name::Service;
use crate::response::Delta;
use crate::secret::Secret;
use crate::transport::{Transport, deepest};
use crate::{anthropic, chat, fault};

mod events;

/// The data of a call, owned so that it does not borrow the request or the client.
pub(super) struct Call {
    pub(super) service: Service,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) key: Option<Secret>,
    pub(super) decoder: Decoder,
    pub(super) streaming: bool,
    pub(super) timeouts: Timeouts,
    pub(super) clock: fn() -> u64,
    pub(super) transport: Transport,
}

/// The decoder of either protocol.
pub(super) enum Decoder {
    Anthropic(anthropic::Decoder),
    Chat(chat::Decoder),
}

impl Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), Error> {
        match self {
            Decoder::Anthropic(decoder) => decoder.event(data, out),
            Decoder::Chat(decoder) => decoder.event(data, out),
        }
    }

    fn answer(&mut self, answer: &Value, out: &mut Vec<Delta>) -> Result<(), Error> {
        match self {
            Decoder::Anthropic(decoder) => decoder.answer(answer, out),
            Decoder::Chat(decoder) => decoder.answer(answer, out),
        }
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), Error> {
        match self {
            Decoder::Anthropic(decoder) => decoder.finish(out),
            Decoder::Chat(decoder) => decoder.finish(out),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Decoder::Anthropic(decoder) => decoder.is_done(),
            Decoder::Chat(decoder) => decoder.is_done(),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Decoder::Anthropic(decoder) => decoder.is_complete(),
            Decoder::Chat(decoder) => decoder.is_complete(),
        }
    }
}

impl Call {
    /// Returns the deltas of the answer. The request is sent when the stream is first polled.
    pub(super) fn start(self) -> DeltaStream {
        let key = self.key.clone();
        let tidy = move |error: Error| error.map_message(|text| fault::tidy(text, key.as_ref()));
        let pieces = stream::once(self.open()).flat_map(|opened| match opened {
            Ok(pieces) => pieces,
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        });
        pieces.map(move |piece| piece.map_err(&tidy)).boxed()
    }

    async fn open(mut self) -> Result<DeltaStream, Error> {
        let timers = Timers::start(self.service, self.timeouts);
        let client =
            self.transport.client(&self.url).map_err(|message| self.no_connection(message))?;
        let request = client.post(self.url.clone()).headers(std::mem::take(&mut self.headers));
        let request = request.body(std::mem::take(&mut self.body));
        let response = self.send(request, &timers).await?;
        let status = response.status().as_u16();
        let kind = content_type(&response);
        let mut reader = Reader { response, timers, bytes: 0 };
        if !(200..300).contains(&status) {
            return Err(self.refusal(status, reader).await);
        }
        if kind.contains("html") {
            let message =
                "a web page; is the address the one of the programming interface?".to_owned();
            return Err(Error::Protocol { service: self.service, message });
        }
        if self.streaming && !kind.contains("json") {
            return Ok(events::pieces(self.service, reader.chunks(), self.decoder).boxed());
        }
        let text = reader.text(ANSWER_BYTES_MAX).await?;
        let mut out = Vec::new();
        let ended = fault::parse(self.service, &text)
            .and_then(|answer| self.decoder.answer(&answer, &mut out));
        Ok(stream::iter(out.into_iter().map(Ok).chain(ended.err().map(Err))).boxed())
    }

    async fn send(&self, request: RequestBuilder, timers: &Timers) -> Result<Response, Error> {
        let phase = if self.streaming { Some(Phase::Headers) } else { None };
        match timers.watch(phase, request.send()).await? {
            Ok(response) => Ok(response),
            Err(error) if error.is_connect() && error.is_timeout() => {
                let waited_ms = self.timeouts.connect_ms;
                Err(self.no_connection(format!("no answer within {waited_ms} ms")))
            }
            Err(error) => Err(self.no_connection(deepest(&error.without_url()))),
        }
    }

    fn no_connection(&self, message: String) -> Error {
        let mut url = self.url.clone();
        // These only fail for URLs that cannot have a user name or password.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        Error::Connection { service: self.service, url: url.to_string(), message }
    }

    /// Converts an error status to an error. If the body cannot be read, the message stays empty.
    async fn refusal(&self, status: u16, mut reader: Reader) -> Error {
        let headers = reader.response.headers().clone();
        let body = reader.text(ERROR_BODY_BYTES_MAX).await.unwrap_or_default();
        fault::of_status(self.service, status, &headers, &body, (self.clock)())
    }
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

/// The timeouts of a call in progress.
struct Timers {
    service: Service,
    timeouts: Timeouts,
    deadline: Instant,
}

impl Timers {
    fn start(service: Service, timeouts: Timeouts) -> Self {
        let deadline = Instant::now() + Duration::from_millis(timeouts.absolute_ms);
        Timers { service, timeouts, deadline }
    }

    /// Waits for a future. Without a phase, only the timeout of the whole call applies.
    async fn watch<F: Future>(&self, phase: Option<Phase>, sign: F) -> Result<F::Output, Error> {
        let idle = Instant::now() + Duration::from_millis(self.timeouts.idle_ms);
        let stalls = phase.filter(|_| idle < self.deadline);
        let until = if stalls.is_some() { idle } else { self.deadline };
        let service = self.service;
        timeout_at(until, sign).await.map_err(|_| match stalls {
            Some(phase) => Error::Stalled { service, phase, waited_ms: self.timeouts.idle_ms },
            None => Error::TimedOut { service, limit_ms: self.timeouts.absolute_ms },
        })
    }
}

/// Reads the body of a response within limits of time and size.
struct Reader {
    response: Response,
    timers: Timers,
    bytes: usize,
}

impl Reader {
    /// The remaining bytes, as a stream that ends with its first error.
    fn chunks(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            let next = reader.chunk().await.transpose()?;
            let rest = next.is_ok().then_some(reader);
            Some((next, rest))
        })
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let service = self.timers.service;
        let chunk = self.timers.watch(Some(Phase::Stream), self.response.chunk()).await?;
        let chunk = chunk.map_err(|_| Error::BrokenOff { service })?;
        self.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len());
        if self.bytes > ANSWER_BYTES_MAX {
            let message = format!("an answer of more than {ANSWER_BYTES_MAX} bytes");
            return Err(Error::Protocol { service, message });
        }
        Ok(chunk)
    }

    /// The remaining bytes as text, truncated to `bytes_max`.
    async fn text(&mut self, bytes_max: usize) -> Result<String, Error> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            text.extend_from_slice(&chunk);
            if text.len() >= bytes_max {
                text.truncate(bytes_max);
                break;
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
