//! A single call: sends the request, enforces timeouts, and decodes the response.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, Url};
use tokio::time::{Instant, timeout_at};

use super::{CallTimeouts, DeltaStream};
use crate::error::{ModelError, Phase};
use crate::error_parsing::{self, FailedResponse};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX};
use crate::protocol::{AnswerDelivery, ModelService, ResponseDecoder};
use crate::secret::ApiSecret;
use crate::transport::{HttpTransport, innermost_error};

mod events;

/// The data of a call, owned so that it does not borrow the request or the client.
pub(super) struct ModelCallRequest {
    pub(super) service: ModelService,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) key: Option<ApiSecret>,
    pub(super) decoder: Box<dyn ResponseDecoder>,
    pub(super) delivery: AnswerDelivery,
    pub(super) timeouts: CallTimeouts,
    pub(super) clock: fn() -> u64,
    pub(super) transport: HttpTransport,
}

impl ModelCallRequest {
    /// Returns the deltas of the answer. The request is sent when the stream is first polled.
    pub(super) fn start(self) -> DeltaStream {
        let key = self.key.clone();
        let tidy = move |error: ModelError| {
            error.map_message(|text| error_parsing::clean_message(text, key.as_ref()))
        };
        let pieces = stream::once(self.open_stream()).flat_map(|opened| match opened {
            Ok(pieces) => pieces,
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        });
        pieces.map(move |piece| piece.map_err(&tidy)).boxed()
    }

    async fn open_stream(mut self) -> Result<DeltaStream, ModelError> {
        let timers = CallTimers::start(self.service, self.timeouts);
        let client =
            self.transport.client(&self.url).map_err(|message| self.connection_error(message))?;
        let request = client.post(self.url.clone()).headers(std::mem::take(&mut self.headers));
        let request = request.body(std::mem::take(&mut self.body));
        let response = self.send(request, &timers).await?;
        let status = response.status().as_u16();
        let kind = content_type(&response);
        let mut reader = ResponseReader { response, timers, bytes: 0 };
        if !(200..300).contains(&status) {
            return Err(self.status_error(status, reader).await);
        }
        if kind.contains("html") {
            let message =
                "a web page; is the address the one of the programming interface?".to_owned();
            return Err(ModelError::Protocol { service: self.service, message });
        }
        if self.delivery == AnswerDelivery::Streamed && !kind.contains("json") {
            return Ok(events::decode_stream(self.service, reader.chunks(), self.decoder).boxed());
        }
        let text = reader.read_text(ANSWER_BYTES_MAX).await?;
        let mut out = Vec::new();
        let ended = error_parsing::parse_json(self.service, &text)
            .and_then(|answer| self.decoder.decode_answer(&answer, &mut out));
        Ok(stream::iter(out.into_iter().map(Ok).chain(ended.err().map(Err))).boxed())
    }

    async fn send(
        &self,
        request: RequestBuilder,
        timers: &CallTimers,
    ) -> Result<Response, ModelError> {
        let phase = (self.delivery == AnswerDelivery::Streamed).then_some(Phase::Headers);
        match timers.with_timeout(phase, request.send()).await? {
            Ok(response) => Ok(response),
            Err(error) if error.is_connect() && error.is_timeout() => {
                let waited_ms = self.timeouts.connect_ms;
                Err(self.connection_error(format!("no answer within {waited_ms} ms")))
            }
            Err(error) => Err(self.connection_error(innermost_error(&error.without_url()))),
        }
    }

    fn connection_error(&self, message: String) -> ModelError {
        let mut url = self.url.clone();
        // These only fail for URLs that cannot have a user name or password.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        ModelError::Connection { service: self.service, url: url.to_string(), message }
    }

    /// Converts an error status to an error. If the body cannot be read, the message stays empty.
    async fn status_error(&self, status: u16, mut reader: ResponseReader) -> ModelError {
        let headers = reader.response.headers().clone();
        let body = reader.read_text(ERROR_BODY_BYTES_MAX).await.unwrap_or_default();
        let now_ms = (self.clock)();
        let failed = FailedResponse { status, headers: &headers, body: &body, now_ms };
        self.service.protocol().response_error(&failed)
    }
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

/// The timeouts of a call in progress.
struct CallTimers {
    service: ModelService,
    timeouts: CallTimeouts,
    deadline: Instant,
}

impl CallTimers {
    fn start(service: ModelService, timeouts: CallTimeouts) -> Self {
        let deadline = Instant::now() + Duration::from_millis(timeouts.absolute_ms);
        CallTimers { service, timeouts, deadline }
    }

    /// Waits for a future. Without a phase, only the timeout of the whole call applies.
    async fn with_timeout<F: Future>(
        &self,
        phase: Option<Phase>,
        sign: F,
    ) -> Result<F::Output, ModelError> {
        let idle = Instant::now() + Duration::from_millis(self.timeouts.idle_ms);
        let stalls = phase.filter(|_| idle < self.deadline);
        let until = if stalls.is_some() { idle } else { self.deadline };
        let service = self.service;
        timeout_at(until, sign).await.map_err(|_| match stalls {
            Some(phase) => ModelError::Stalled { service, phase, waited_ms: self.timeouts.idle_ms },
            None => ModelError::TimedOut { service, limit_ms: self.timeouts.absolute_ms },
        })
    }
}

/// Reads the body of a response within limits of time and size.
struct ResponseReader {
    response: Response,
    timers: CallTimers,
    bytes: usize,
}

impl ResponseReader {
    /// The remaining bytes, as a stream that ends with its first error.
    fn chunks(self) -> impl Stream<Item = Result<Bytes, ModelError>> + Send {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            let next = reader.next_chunk().await.transpose()?;
            let rest = next.is_ok().then_some(reader);
            Some((next, rest))
        })
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let service = self.timers.service;
        let chunk = self.timers.with_timeout(Some(Phase::Stream), self.response.chunk()).await?;
        let chunk = chunk.map_err(|_| ModelError::BrokenOff { service })?;
        self.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len());
        if self.bytes > ANSWER_BYTES_MAX {
            let message = format!("an answer of more than {ANSWER_BYTES_MAX} bytes");
            return Err(ModelError::Protocol { service, message });
        }
        Ok(chunk)
    }

    /// The remaining bytes as text, truncated to `bytes_max`.
    async fn read_text(&mut self, bytes_max: usize) -> Result<String, ModelError> {
        let mut text = Vec::new();
        while let Some(chunk) = self.next_chunk().await? {
            text.extend_from_slice(&chunk);
            if text.len() >= bytes_max {
                text.truncate(bytes_max);
                break;
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
