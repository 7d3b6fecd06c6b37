//! Splits output into lines as it arrives, with a cap on the buffered part of a line.

use super::{CapturedStream, OutputFlow};
use crate::limits::LINE_BYTES_MAX;

/// Passes lines to a reader until the reader is finished.
pub(super) struct LineSplitter<'a> {
    on_line: &'a mut (dyn FnMut(&[u8]) -> OutputFlow + Send),
    /// The beginning of an incomplete line.
    pending: Vec<u8>,
    finished: bool,
}

impl<'a> LineSplitter<'a> {
    pub(super) fn new(on_line: &'a mut (dyn FnMut(&[u8]) -> OutputFlow + Send)) -> Self {
        LineSplitter { on_line, pending: Vec::new(), finished: false }
    }

    /// Processes the next bytes. Returns [`Flow::Finished`] once the reader is finished.
    pub(super) fn push_bytes(&mut self, mut bytes: &[u8]) -> OutputFlow {
        while !self.finished && !bytes.is_empty() {
            let room = LINE_BYTES_MAX - self.pending.len();
            let end = bytes.iter().position(|byte| *byte == b'\n');
            match end {
                Some(end) if end <= room => {
                    self.emit_line(&bytes[..end], LineBreak::There);
                    bytes = &bytes[end + 1..];
                }
                _ if bytes.len() <= room => {
                    self.pending.extend_from_slice(bytes);
                    bytes = &[];
                }
                _ => {
                    self.emit_line(&bytes[..room], LineBreak::Missing);
                    bytes = &bytes[room..];
                }
            }
        }
        self.flow()
    }

    /// Processes the end of the output: pending bytes are the last line.
    pub(super) fn finish_output(&mut self) -> OutputFlow {
        if !self.finished && !self.pending.is_empty() {
            self.emit_line(&[], LineBreak::Missing);
        }
        self.flow()
    }

    fn emit_line(&mut self, rest: &[u8], line_break: LineBreak) {
        let flow = if self.pending.is_empty() {
            (self.on_line)(without_return(rest, line_break))
        } else {
            self.pending.extend_from_slice(rest);
            let flow = (self.on_line)(without_return(&self.pending, line_break));
            self.pending.clear();
            flow
        };
        self.finished |= flow == OutputFlow::Finished;
    }

    fn flow(&self) -> OutputFlow {
        if self.finished { OutputFlow::Finished } else { OutputFlow::Continue }
    }
}

/// Records whether a piece ends with a line break.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineBreak {
    There,
    Missing,
}

fn without_return(line: &[u8], line_break: LineBreak) -> &[u8] {
    match line_break {
        LineBreak::There => line.strip_suffix(b"\r").unwrap_or(line),
        LineBreak::Missing => line,
    }
}

impl CapturedStream {
    /// Counts bytes, and keeps them while there is room.
    pub(super) fn keep_bytes(&mut self, bytes: &[u8], bytes_max: usize) {
        self.total += bytes.len() as u64;
        let room = bytes_max.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chunks: &[&[u8]], expect: &[&[u8]]) {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut on_line = |line: &[u8]| {
            lines.push(line.to_vec());
            if line == b"stop" { OutputFlow::Finished } else { OutputFlow::Continue }
        };
        let mut cutter = LineSplitter::new(&mut on_line);
        for chunk in chunks {
            cutter.push_bytes(chunk);
        }
        cutter.finish_output();
        assert_eq!(lines, expect);
    }

    #[test]
    fn lines_are_whole_however_the_bytes_come() {
        check(&[b"a\nb", b"c\r\n", b"\nd"], &[b"a", b"bc", b"", b"d"]);
        check(&[b"a\r", b"\n"], &[b"a"]);
        check(&[], &[]);
    }

    #[test]
    fn nothing_comes_after_the_reader_has_finished() {
        check(&[b"a\nstop\nb\n", b"c\n"], &[b"a", b"stop"]);
    }

    #[test]
    fn a_line_longer_than_the_cap_comes_in_pieces() {
        let long = vec![b'x'; LINE_BYTES_MAX + 3];
        check(&[&long, b"\nb\n"], &[&long[..LINE_BYTES_MAX], b"xxx", b"b"]);
    }

    #[test]
    fn a_line_of_exactly_the_cap_is_one_line() {
        let long = vec![b'x'; LINE_BYTES_MAX];
        check(&[&long, b"\nb\n"], &[&long, b"b"]);
        check(&[&long[1..], b"x\nb\n"], &[&long, b"b"]);
    }

    #[test]
    fn what_is_kept_is_the_start_and_the_rest_is_counted() {
        let mut captured = CapturedStream::default();
        captured.keep_bytes(b"abc", 4);
        captured.keep_bytes(b"def", 4);
        assert_eq!(captured, CapturedStream { bytes: b"abcd".to_vec(), total: 6 });
    }
}
