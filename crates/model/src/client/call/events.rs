//! Decodes the server-sent events of a streamed answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use sse_stream::{Sse, SseByteStream};
use tokio::time::timeout;

use crate::error::ModelError;
use crate::limits::{DRAIN_MS_MAX, EVENT_BYTES_MAX};
use crate::protocol::{ModelService, ResponseDecoder};
use crate::response::ResponseDelta;

#[cfg(test)]
mod tests;

/// The deltas of a streamed answer; an error is always the last item.
pub(super) fn decode_stream(
    service: ModelService,
    chunks: impl Stream<Item = Result<Bytes, ModelError>> + Send,
    decoder: Box<dyn ResponseDecoder>,
) -> impl Stream<Item = Result<ResponseDelta, ModelError>> + Send {
    let since_event = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&since_event);
    let chunks = chunks.and_then(move |chunk| {
        let bytes = counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        std::future::ready(if bytes > EVENT_BYTES_MAX {
            Err(too_large(service))
        } else {
            Ok(chunk)
        })
    });
    let events = Box::pin(SseByteStream::new(chunks));
    let state =
        SseDecodeState { service, events, since_event, decoder, ready: VecDeque::new(), end: None };
    stream::unfold(state, |mut state| async move { Some((state.next_delta().await?, state)) })
}

fn too_large(service: ModelService) -> ModelError {
    let message = format!("an event of more than {EVENT_BYTES_MAX} bytes");
    ModelError::Protocol { service, message }
}

struct SseDecodeState<S> {
    service: ModelService,
    events: S,
    /// The bytes received since the last complete event.
    since_event: Arc<AtomicUsize>,
    decoder: Box<dyn ResponseDecoder>,
    ready: VecDeque<ResponseDelta>,
    /// The result, once the answer has ended.
    end: Option<Option<ModelError>>,
}

impl<S: Stream<Item = Result<Sse, sse_stream::Error>> + Unpin> SseDecodeState<S> {
    async fn next_delta(&mut self) -> Option<Result<ResponseDelta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            match &mut self.end {
                Some(error) => {
                    let error = error.take();
                    self.drain_connection().await;
                    return error.map(Err);
                }
                None => self.read_event().await,
            }
        }
    }

    /// Reads the next event, or the end of the stream.
    async fn read_event(&mut self) {
        let mut out = Vec::new();
        let taken = match self.events.next().await {
            Some(Ok(event)) => {
                self.since_event.store(0, Ordering::Relaxed);
                event.data.map_or(Ok(()), |data| self.decoder.decode_event(&data, &mut out))
            }
            Some(Err(error)) => self.handle_stream_error(error, &mut out),
            None => self.decoder.finish(&mut out),
        };
        self.ready.extend(out);
        match taken {
            Err(error) => self.end = Some(Some(error)),
            Ok(()) if self.decoder.is_done() => self.end = Some(None),
            Ok(()) => {}
        }
    }

    /// Handles a stream error. An error after the final event does not invalidate a complete
    /// answer.
    fn handle_stream_error(
        &mut self,
        error: sse_stream::Error,
        out: &mut Vec<ResponseDelta>,
    ) -> Result<(), ModelError> {
        if self.decoder.is_complete() {
            return self.decoder.finish(out);
        }
        let service = self.service;
        Err(match error {
            sse_stream::Error::Body(error) => match error.downcast::<ModelError>() {
                Ok(error) => *error,
                Err(_) => ModelError::BrokenOff { service },
            },
            other => ModelError::Protocol { service, message: other.to_string() },
        })
    }

    /// Reads the rest of a complete answer, so that the connection can be reused.
    async fn drain_connection(&mut self) {
        if self.decoder.is_done() {
            let end = async { while let Some(Ok(_)) = self.events.next().await {} };
            let _ = timeout(Duration::from_millis(DRAIN_MS_MAX), end).await;
        }
    }
}
