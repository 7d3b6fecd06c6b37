//! The subset of HTTP/1.1 that the servers need.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::limits::{BODY_BYTES_MAX, HEAD_BYTES_MAX};

/// A request with an unparsed body.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// A connection, with a buffer of bytes that were read ahead.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl HttpConnection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        HttpConnection { stream, read: Vec::new() }
    }

    /// Reads the next request; `None` when the client has closed the connection.
    pub(crate) async fn read_request(&mut self) -> io::Result<Option<RawRequest>> {
        let head_end = loop {
            if let Some(at) = find_bytes(&self.read, b"\r\n\r\n") {
                break at;
            }
            if self.read.len() > HEAD_BYTES_MAX {
                return Err(io::Error::other("the head of the request is too long"));
            }
            if !self.fill_buffer().await? {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.read[..head_end]).into_owned();
        self.read.drain(..head_end + 4);
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let body = self.read_body(length.unwrap_or(0)).await?;
        Ok(Some(RawRequest { method: method.to_owned(), path: path.to_owned(), headers, body }))
    }

    async fn read_body(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(io::Error::other("the body of the request is too long"));
        }
        while self.read.len() < length {
            if !self.fill_buffer().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.read.drain(..length).collect())
    }

    async fn fill_buffer(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.read).await? > 0)
    }

    /// Sends the head of a response; `headers` must include those on the length of the body.
    pub(crate) async fn send_head(
        &mut self,
        status: u16,
        headers: &[(&str, String)],
    ) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(status));
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.send_raw(head.as_bytes()).await
    }

    /// Sends a complete JSON response.
    pub(crate) async fn send_json(&mut self, status: u16, body: &str) -> io::Result<()> {
        let length = ("content-length", body.len().to_string());
        self.send_head(status, &[("content-type", "application/json".to_owned()), length]).await?;
        self.send_raw(body.as_bytes()).await
    }

    /// Sends a chunk of a chunked body; an empty one ends it.
    pub(crate) async fn send_chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.send_raw(&chunk).await
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Status",
    }
}
