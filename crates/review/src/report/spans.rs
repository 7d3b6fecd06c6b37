//! Splits a line into text and code spans, which are delimited by equal numbers of backticks.

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span<'a> {
    Text(&'a str),
    /// Code, without its backticks.
    Code(&'a str),
}

/// Splits a line. Backticks that are not closed are text.
pub(super) fn spans(line: &str) -> Vec<Span<'_>> {
    let mut out = Vec::new();
    let (mut text_from, mut from) = (0, 0);
    while let Some(at) = line[from..].find('`') {
        let start = from + at;
        let inner = start + run_at(line, start);
        let run = inner - start;
        from = inner;
        let Some(end) = closing(line, inner, run) else { continue };
        if line[inner..end].trim().is_empty() {
            continue;
        }
        if text_from < start {
            out.push(Span::Text(&line[text_from..start]));
        }
        out.push(Span::Code(line[inner..end].trim()));
        from = end + run;
        text_from = from;
    }
    if text_from < line.len() {
        out.push(Span::Text(&line[text_from..]));
    }
    out
}

/// The number of consecutive backticks at an offset.
fn run_at(line: &str, at: usize) -> usize {
    line[at..].bytes().take_while(|byte| *byte == b'`').count()
}

/// The offset of the next run of exactly `run` backticks.
fn closing(line: &str, mut from: usize, run: usize) -> Option<usize> {
    while let Some(at) = line[from..].find('`') {
        let start = from + at;
        let length = run_at(line, start);
        if length == run {
            return Some(start);
        }
        from = start + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Span::{Code, Text};
    use super::*;

    #[test]
    fn code_is_between_as_many_backticks() {
        assert_eq!(spans("a `b` c"), [Text("a "), Code("b"), Text(" c")]);
        assert_eq!(spans("`` a`b ``"), [Code("a`b")]);
        assert_eq!(spans("`a``b`"), [Code("a``b")]);
    }

    #[test]
    fn what_nothing_closes_is_text() {
        assert_eq!(spans("a ` b"), [Text("a ` b")]);
        assert_eq!(spans("``` `c` ` `"), [Text("``` "), Code("c"), Text(" ` `")]);
        assert_eq!(spans(""), []);
    }
}
