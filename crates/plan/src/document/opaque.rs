//! Finds the parts of a text that are not prose: code, links, autolinks and comments.

use std::collections::BTreeMap;
use std::ops::Range;

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpaqueKind {
    /// `` `code` ``.
    Code,
    /// `[text](target)`.
    Link,
    /// `<https://…>`, or a tag.
    Angle,
    /// `<!-- … -->`.
    Comment,
}

/// The parts of a text, in order and without overlap.
#[derive(Debug, Default)]
pub(super) struct OpaqueParts {
    pub(super) parts: Vec<(Range<usize>, OpaqueKind)>,
    /// The targets of links.
    pub(super) targets: Vec<Range<usize>>,
}

impl OpaqueParts {
    /// The kind of the part at this byte; `None` if it is prose.
    pub(super) fn kind_at(&self, byte: usize) -> Option<OpaqueKind> {
        let next = self.parts.partition_point(|(range, _)| range.start <= byte);
        let (range, kind) = self.parts[..next].last()?;
        range.contains(&byte).then_some(*kind)
    }

    /// Finds the parts in linear time: after a closing delimiter was not found once, it is not searched for again.
    pub(super) fn find_parts(text: &str) -> Self {
        let ticks = tick_runs(text);
        let mut out = OpaqueParts::default();
        let mut brackets = Vec::new();
        let (mut comments_end, mut links_end) = (true, true);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let rest = &text.as_bytes()[at..];
            let end = match rest[0] {
                b'\\' => {
                    at +=
                        1 + rest.get(1).map_or(0, |next| usize::from(next.is_ascii_punctuation()));
                    continue;
                }
                b'`' => code_end(text, at, &ticks).map(|end| (at..end, OpaqueKind::Code)),
                b'<' if rest.starts_with(b"<!--") && comments_end => {
                    let end = text[at + 4..].find("-->").map(|end| at + 4 + end + 3);
                    comments_end = end.is_some();
                    end.map(|end| (at..end, OpaqueKind::Comment))
                }
                b'<' => angle_end(text, at).map(|end| (at..end, OpaqueKind::Angle)),
                b'[' => {
                    brackets.push(at);
                    None
                }
                b']' => match (brackets.pop(), rest.get(1)) {
                    (Some(open), Some(b'(')) if links_end => {
                        let end = text[at + 2..].find(')').map(|end| at + 2 + end);
                        links_end = end.is_some();
                        end.map(|end| {
                            out.targets.push(at + 2..end);
                            (open..end + 1, OpaqueKind::Link)
                        })
                    }
                    _ => None,
                },
                _ => None,
            };
            match end {
                Some((range, kind)) => {
                    while out.parts.last().is_some_and(|(part, _)| part.start >= range.start) {
                        out.parts.pop();
                    }
                    at = range.end;
                    out.parts.push((range, kind));
                }
                // Skip a run of backticks that closes nothing as a whole.
                None if rest[0] == b'`' => at += count_backticks(rest),
                None => at += 1,
            }
        }
        out
    }
}

fn count_backticks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == b'`').count()
}

/// The start of each run of backticks, by length.
fn tick_runs(text: &str) -> BTreeMap<usize, Vec<usize>> {
    let mut runs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let (bytes, mut at) = (text.as_bytes(), 0);
    while at < bytes.len() {
        let length = count_backticks(&bytes[at..]);
        if length > 0 {
            runs.entry(length).or_default().push(at);
        }
        at += length.max(1);
    }
    runs
}

fn code_end(text: &str, at: usize, runs: &BTreeMap<usize, Vec<usize>>) -> Option<usize> {
    let length = count_backticks(&text.as_bytes()[at..]);
    let same = runs.get(&length)?;
    let next = same.partition_point(|start| *start <= at);
    same.get(next).map(|start| start + length)
}

fn angle_end(text: &str, at: usize) -> Option<usize> {
    let inner = &text[at + 1..];
    let stop = inner.find(|c: char| c.is_whitespace() || c == '<' || c == '>')?;
    (inner.as_bytes()[stop] == b'>').then_some(at + 1 + stop + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, OpaqueKind)]) {
        let found = OpaqueParts::find_parts(text);
        let found: Vec<(&str, OpaqueKind)> =
            found.parts.iter().map(|(range, kind)| (&text[range.clone()], *kind)).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn code_links_addresses_and_comments_are_found() {
        check("a `b` c", &[("`b`", OpaqueKind::Code)]);
        check("a ``b ` c`` d", &[("``b ` c``", OpaqueKind::Code)]);
        check("a ` b `` c", &[]);
        check("[a `b`](c) d", &[("[a `b`](c)", OpaqueKind::Link)]);
        check("see <https://a.b/@c>", &[("<https://a.b/@c>", OpaqueKind::Angle)]);
        check("a < b > c", &[]);
        check("a <!-- `b --> c`", &[("<!-- `b -->", OpaqueKind::Comment)]);
        check("\\`a `b`", &[("`b`", OpaqueKind::Code)]);
        check("[a](b", &[]);
    }

    #[test]
    fn hostile_texts_take_no_time() {
        for text in ["[](", "<!--", "`", "[", "](", "<a", "\\"] {
            let start = std::time::Instant::now();
            OpaqueParts::find_parts(&text.repeat(200_000));
            assert!(start.elapsed().as_secs() < 5, "{text}");
        }
        let rising: String = (1..900).map(|length| format!("{} ", "`".repeat(length))).collect();
        OpaqueParts::find_parts(&rising);
    }
}
