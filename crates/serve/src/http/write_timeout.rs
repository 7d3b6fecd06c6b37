//! A write timeout for connections. A client that stops reading would otherwise keep its connection, and the data
//! written for it, forever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream with a write timeout.
pub(super) struct WriteTimeoutStream<T> {
    stream: T,
    limit: Duration,
    waiting: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<T> WriteTimeoutStream<T> {
    /// Wraps a stream so that writes fail after waiting longer than `limit`.
    pub(super) fn new(stream: T, limit: Duration) -> Self {
        let waiting = Box::pin(tokio::time::sleep(limit));
        WriteTimeoutStream { stream, limit, waiting, is_waiting: false }
    }

    /// Turns a write that has been pending for too long into an error.
    fn enforce_timeout<R>(
        &mut self,
        cx: &mut Context<'_>,
        tried: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if tried.is_ready() {
            self.is_waiting = false;
            return tried;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let limit = self.limit;
            self.waiting.as_mut().reset(Instant::now() + limit);
        }
        ready!(self.waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.enforce_timeout(cx, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.enforce_timeout(cx, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_flush(cx);
        self.enforce_timeout(cx, tried)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.enforce_timeout(cx, tried)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn whoever_takes_nothing_is_given_up() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = WriteTimeoutStream::new(near, Duration::from_millis(500));
        let error = near.write_all(b"more than fits").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut taken = [0; 8];
        far.read_exact(&mut taken).await.unwrap();
    }

    #[tokio::test]
    async fn whoever_takes_a_little_now_and_then_is_not() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = WriteTimeoutStream::new(near, Duration::from_millis(500));
        let reader = tokio::spawn(async move {
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                far.read_exact(&mut [0; 4]).await.unwrap();
            }
        });
        near.write_all(&[7; 32]).await.unwrap();
        reader.await.unwrap();
    }
}
