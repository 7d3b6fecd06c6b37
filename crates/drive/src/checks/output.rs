//! What is kept of a check's output: its start, its end, and the lines between that look like errors.

use repertoire_agent::spill::clean;

use crate::limits::{
    CHECK_HEAD_BYTES_MAX, CHECK_TAIL_BYTES_MAX, CHECK_TELLING_CHARS_MAX, CHECK_TELLING_LINES_MAX,
};

/// What is kept of output while it comes.
#[derive(Default)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    telling: Vec<String>,
    tail_total: u64,
}

/// Words of lines that say what is wrong, in the tongues of common tools.
const TELLING: &[&str] = &[
    "error[",
    "error:",
    "error TS",
    "Error:",
    "ERROR",
    "FAILED",
    "FAIL:",
    "FAIL ",
    "panicked",
    "Traceback (most",
    "Exception",
    "fatal:",
    "not ok ",
    "✗",
    "✖",
];

impl Output {
    /// Takes a line, or a piece of a very long one.
    pub(super) fn take(&mut self, line: &[u8]) {
        self.look(line);
        for part in [line, b"\n"] {
            let room = CHECK_HEAD_BYTES_MAX.saturating_sub(self.head.len()).min(part.len());
            self.head.extend_from_slice(&part[..room]);
            self.push_tail(&part[room..]);
        }
    }

    /// Twice as much as is kept may gather, so that moving it is rare.
    fn push_tail(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(CHECK_TAIL_BYTES_MAX)..]);
        self.tail_total += bytes.len() as u64;
        if self.tail.len() > 2 * CHECK_TAIL_BYTES_MAX {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        self.tail.drain(..self.tail.len().saturating_sub(CHECK_TAIL_BYTES_MAX));
    }

    fn look(&mut self, line: &[u8]) {
        if self.telling.len() >= CHECK_TELLING_LINES_MAX {
            return;
        }
        let start = &line[..line.len().min(CHECK_TELLING_CHARS_MAX)];
        let text = String::from_utf8_lossy(start);
        if TELLING.iter().any(|word| text.contains(word)) {
            let text = clean(&text).trim().to_owned();
            if !self.telling.contains(&text) {
                self.telling.push(text);
            }
        }
    }

    /// The start and the end, with a word on what is missing between them; and the lines that look like errors.
    pub(super) fn end(mut self) -> (String, Vec<String>) {
        self.trim_tail();
        let text = match self.tail_total - self.tail.len() as u64 {
            0 => clean(&String::from_utf8_lossy(&[self.head, self.tail].concat())),
            left_out => {
                let head = clean(&String::from_utf8_lossy(&self.head));
                let tail = clean(&String::from_utf8_lossy(&self.tail));
                format!("{}\n[… {left_out} bytes left out …]\n{tail}", head.trim_end())
            }
        };
        (text.trim_end().to_owned(), self.telling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_as_it_is_without_colours() {
        let mut output = Output::default();
        output.take("\u{1b}[31merror[E0308]\u{1b}[0m: mismatched".as_bytes());
        output.take(b"fine");
        let (text, telling) = output.end();
        assert_eq!(text, "error[E0308]: mismatched\nfine");
        assert_eq!(telling, ["error[E0308]: mismatched"]);
    }

    #[test]
    fn long_output_keeps_both_ends_and_what_is_telling_between() {
        let mut output = Output::default();
        for n in 0..100_000 {
            let line = match n {
                50_000 => "test parser::empty ... FAILED".to_owned(),
                _ => format!("line {n}"),
            };
            output.take(line.as_bytes());
        }
        let (text, telling) = output.end();
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("\nline 99999"));
        assert!(text.contains(" bytes left out …]") && text.len() < 100_000);
        assert_eq!(telling, ["test parser::empty ... FAILED"]);
    }

    #[test]
    fn output_without_line_breaks_is_bounded() {
        let mut output = Output::default();
        for _ in 0..100 {
            output.take(&vec![b'x'; 1 << 20]);
        }
        assert!(output.head.len() == CHECK_HEAD_BYTES_MAX);
        assert!(output.tail.len() <= 2 * CHECK_TAIL_BYTES_MAX);
    }
}
