//! The parts of a check's output that are kept: its start, its end, and lines in between that look
//! like errors.

use repertoire_text::invisible::without_terminal_control as clean;

use super::LEFT_OUT;
use crate::limits::{
    CHECK_HEAD_BYTES_MAX, CHECK_HEARD_BYTES_MAX, CHECK_TAIL_BYTES_MAX, CHECK_TELLING_CHARS_MAX,
    CHECK_TELLING_LINES_MAX,
};

/// Collects output as it arrives.
#[derive(Default)]
pub(super) struct CheckOutputCollector {
    head: Vec<u8>,
    tail: Vec<u8>,
    telling: Vec<String>,
    tail_total: u64,
}

/// Substrings of error lines in the output of common tools.
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

/// The kept parts of a complete output.
pub(super) struct CollectedOutput {
    /// The start and the end, with a note about the gap between them. This is stored.
    pub(super) shown: String,
    /// A much larger part, if `shown` is not everything. This is analysed for errors.
    pub(super) heard: String,
    /// The lines that look like errors.
    pub(super) telling: Vec<String>,
}

impl CheckOutputCollector {
    /// Adds a line, or a piece of a very long one.
    pub(super) fn add_line(&mut self, line: &[u8]) {
        self.keep_if_telling(line);
        for part in [line, b"\n"] {
            let room = CHECK_HEARD_BYTES_MAX.saturating_sub(self.head.len()).min(part.len());
            self.head.extend_from_slice(&part[..room]);
            self.push_tail(&part[room..]);
        }
    }

    /// Lets the tail grow to twice its limit before trimming, so that its bytes are rarely moved.
    fn push_tail(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(CHECK_HEARD_BYTES_MAX)..]);
        self.tail_total += bytes.len() as u64;
        if self.tail.len() > 2 * CHECK_HEARD_BYTES_MAX {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        self.tail.drain(..self.tail.len().saturating_sub(CHECK_HEARD_BYTES_MAX));
    }

    /// Keeps the line if it looks like an error.
    fn keep_if_telling(&mut self, line: &[u8]) {
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

    /// Finishes the collection.
    pub(super) fn finish(mut self) -> CollectedOutput {
        self.trim_tail();
        let total = self.head.len() as u64 + self.tail_total;
        let kept = [self.head, self.tail].concat();
        let is_whole = total == kept.len() as u64;
        let small = CHECK_HEAD_BYTES_MAX + CHECK_TAIL_BYTES_MAX;
        if is_whole && kept.len() <= small {
            let shown = clean_text(&kept);
            return CollectedOutput { shown, heard: String::new(), telling: self.telling };
        }
        let heard = if is_whole {
            clean_text(&kept)
        } else {
            both_ends(&kept, CHECK_HEARD_BYTES_MAX, CHECK_HEARD_BYTES_MAX, total)
        };
        let shown = both_ends(&kept, CHECK_HEAD_BYTES_MAX, CHECK_TAIL_BYTES_MAX, total);
        CollectedOutput { shown, heard, telling: self.telling }
    }
}

fn clean_text(bytes: &[u8]) -> String {
    clean(&String::from_utf8_lossy(bytes)).trim_end().to_owned()
}

/// The two ends of an output of `total` bytes. Both are cut at line breaks where possible, since
/// half a line could be misread.
fn both_ends(bytes: &[u8], head_max: usize, tail_max: usize, total: u64) -> String {
    let is_end = |byte: &u8| *byte == b'\n';
    let head = &bytes[..head_max.min(bytes.len())];
    let head = head.iter().rposition(is_end).map_or(head, |at| &head[..=at]);
    let tail = &bytes[bytes.len().saturating_sub(tail_max).max(head.len())..];
    let tail = match tail.iter().position(is_end) {
        Some(at) if at + 1 < tail.len() => &tail[at + 1..],
        _ => tail,
    };
    let left_out = total.saturating_sub((head.len() + tail.len()) as u64);
    format!("{}\n[… {left_out}{LEFT_OUT}\n{}", clean_text(head), clean_text(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(lines: impl IntoIterator<Item = String>) -> CollectedOutput {
        let mut output = CheckOutputCollector::default();
        lines.into_iter().for_each(|line| output.add_line(line.as_bytes()));
        output.finish()
    }

    #[test]
    fn short_output_is_kept_as_it_is_without_colours() {
        let lines = ["\u{1b}[31merror[E0308]\u{1b}[0m: mismatched", "fine"];
        let CollectedOutput { shown, heard, telling } = ended(lines.map(str::to_owned));
        assert_eq!((shown.as_str(), heard.as_str()), ("error[E0308]: mismatched\nfine", ""));
        assert_eq!(telling, ["error[E0308]: mismatched"]);
    }

    #[test]
    fn of_long_output_the_two_ends_are_stored_and_all_of_it_is_heard() {
        let CollectedOutput { shown, heard, telling } = ended((0..100_000).map(|n| match n {
            50_000 => "test parser::empty ... FAILED".to_owned(),
            _ => format!("line {n}"),
        }));
        assert!(shown.starts_with("line 0\nline 1\n") && shown.ends_with("\nline 99999"));
        assert!(shown.contains(LEFT_OUT) && shown.len() < 100_000);
        assert!(heard.contains("\ntest parser::empty ... FAILED\n") && !heard.contains(LEFT_OUT));
        assert_eq!(heard.lines().count(), 100_000);
        assert_eq!(telling, ["test parser::empty ... FAILED"]);
        // Both ends are whole lines.
        let is_line = |line: &str| line.starts_with("line ") || line.ends_with(LEFT_OUT);
        assert!(shown.lines().all(is_line), "{shown}");
        let numbers = shown.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok());
        let numbers: Vec<u32> = numbers.collect();
        assert_eq!(numbers.windows(2).filter(|two| two[0] + 1 != two[1]).count(), 1);
    }

    #[test]
    fn what_is_too_long_to_be_heard_says_how_much_is_missing() {
        let line = "x".repeat(99);
        let CollectedOutput { shown, heard, .. } = ended(std::iter::repeat_n(line, 100_000));
        for text in [shown, heard] {
            let left_out = text.lines().find_map(|line| line.strip_suffix(LEFT_OUT));
            let left_out: usize = left_out.unwrap().trim_start_matches("[… ").parse().unwrap();
            let kept = text.lines().filter(|line| line.starts_with('x')).count() * 100;
            assert_eq!(left_out + kept, 10_000_000);
        }
    }

    #[test]
    fn output_without_line_breaks_is_bounded() {
        let mut output = CheckOutputCollector::default();
        for _ in 0..100 {
            output.add_line(&vec![b'x'; 1 << 20]);
        }
        assert!(output.head.len() == CHECK_HEARD_BYTES_MAX);
        assert!(output.tail.len() <= 2 * CHECK_HEARD_BYTES_MAX);
        let CollectedOutput { shown, heard, .. } = output.finish();
        let small = CHECK_HEAD_BYTES_MAX + CHECK_TAIL_BYTES_MAX;
        assert!(shown.len() < small + 100 && shown.contains(LEFT_OUT));
        assert!(heard.len() < 2 * CHECK_HEARD_BYTES_MAX + 100 && heard.contains(LEFT_OUT));
    }
}
