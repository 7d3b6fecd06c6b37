//! Splits a line into text and code spans, which are delimited by equal numbers of backticks.

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProseSpan<'a> {
    Text(&'a str),
    /// Code, without its backticks.
    Code(&'a str),
}

/// Splits a line. Backticks that are not closed are text.
pub(super) fn split_spans(line: &str) -> Vec<ProseSpan<'_>> {
    let mut out = Vec::new();
    let (mut text_from, mut from) = (0, 0);
    while let Some(at) = line[from..].find('`') {
        let start = from + at;
        let inner = start + backtick_run(line, start);
        let run = inner - start;
        from = inner;
        let Some(end) = find_closing_run(line, inner, run) else { continue };
        if line[inner..end].trim().is_empty() {
            continue;
        }
        if text_from < start {
            out.push(ProseSpan::Text(&line[text_from..start]));
        }
        out.push(ProseSpan::Code(line[inner..end].trim()));
        from = end + run;
        text_from = from;
    }
    if text_from < line.len() {
        out.push(ProseSpan::Text(&line[text_from..]));
    }
    out
}

/// The number of consecutive backticks at an offset.
fn backtick_run(line: &str, at: usize) -> usize {
    line[at..].bytes().take_while(|byte| *byte == b'`').count()
}

/// The offset of the next run of exactly `run` backticks.
fn find_closing_run(line: &str, mut from: usize, run: usize) -> Option<usize> {
    while let Some(at) = line[from..].find('`') {
        let start = from + at;
        let length = backtick_run(line, start);
        if length == run {
            return Some(start);
        }
        from = start + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::ProseSpan::{Code, Text};
    use super::*;

    #[test]
    fn code_is_between_as_many_backticks() {
        assert_eq!(split_spans("a `b` c"), [Text("a "), Code("b"), Text(" c")]);
        assert_eq!(split_spans("`` a`b ``"), [Code("a`b")]);
        assert_eq!(split_spans("`a``b`"), [Code("a``b")]);
    }

    #[test]
    fn what_nothing_closes_is_text() {
        assert_eq!(split_spans("a ` b"), [Text("a ` b")]);
        assert_eq!(split_spans("``` `c` ` `"), [Text("``` "), Code("c"), Text(" ` `")]);
        assert_eq!(split_spans(""), []);
    }
}
