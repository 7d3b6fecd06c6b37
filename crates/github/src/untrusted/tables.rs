//! Table cells beyond the columns of their table, which are not shown.

use super::{HiddenKind, RemovalCounts};

/// Removes cells beyond the columns of their table.
pub(super) fn without_excess_cells(text: &str, counts: &mut RemovalCounts) -> String {
    if !text.contains('|') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut columns = None;
    for line in text.split_inclusive('\n') {
        let plain = line.trim_end_matches('\n');
        let body = plain.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        if body.trim().is_empty() {
            columns = None;
        } else if let Some(count) = columns_of_delimiter(body) {
            columns = Some(count);
        } else if let Some(count) = columns
            && let Some(end) = end_of_cells(body, count)
        {
            counts.add(HiddenKind::TableCell);
            out.push_str(&plain[..plain.len() - body.len() + end]);
            if line.ends_with('\n') {
                out.push('\n');
            }
            continue;
        }
        out.push_str(line);
    }
    out
}

/// Returns the number of columns of a delimiter row such as `|---|:-:|`; `None` for any other line.
fn columns_of_delimiter(line: &str) -> Option<usize> {
    let inner = line.trim();
    let is_bar = |c: char| matches!(c, '|' | '-' | ':' | ' ' | '\t');
    // GitHub takes `:-:` for the delimiter row of one column; `---` alone is a thematic break.
    if !inner.contains('-') || !inner.contains(['|', ':']) || !inner.chars().all(is_bar) {
        return None;
    }
    let cells = inner.trim_matches('|').split('|');
    Some(cells.count())
}

/// Returns the end of the last shown cell of a row; `None` if the row has no excess cells.
fn end_of_cells(row: &str, columns: usize) -> Option<usize> {
    let bars = unescaped_bars(row);
    let starts_with_bar = row.starts_with('|');
    let last = bars.get(if starts_with_bar { columns } else { columns.checked_sub(1)? })?;
    let rest = &row[last + 1..];
    (!rest.trim().is_empty()).then_some(last + 1)
}

fn unescaped_bars(row: &str) -> Vec<usize> {
    let mut is_escaped = false;
    let mut bars = Vec::new();
    for (at, c) in row.char_indices() {
        if c == '|' && !is_escaped {
            bars.push(at);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    bars
}
