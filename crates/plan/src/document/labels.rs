//! Parses labels that authors give their tasks.

/// A label and its range.
pub(super) struct TaskLabel {
    /// The label as written.
    pub(super) label: String,
    /// The range of the text that the label takes up, with its separator.
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Parses a label at the start of a text: `T001`, `1.2`, `Task 3:`, `AUTH-7:`, also in bold.
pub(super) fn parse_label(text: &str) -> Option<TaskLabel> {
    let stars = if text.starts_with("**") { 2 } else { 0 };
    let body = &text[stars..];
    let (length, separators_wanted) = label_length(body)?;
    let after = &body[length..];
    let bold_ends = stars > 0
        && (after.starts_with("**") || after.starts_with(":**") || after.starts_with(".**"));
    let rest = if bold_ends {
        after.trim_start_matches([':', '.']).trim_start_matches("**")
    } else {
        after
    };
    let colon = rest.trim_start_matches([':', '.', ')']);
    let dash = colon.trim_start();
    let dash = ["- ", "– ", "— ", "-- "].iter().find_map(|dash_sign| dash.strip_prefix(dash_sign));
    let separated = bold_ends || colon.len() < rest.len() || dash.is_some();
    let ends = colon.is_empty() || colon.starts_with(char::is_whitespace);
    if !ends || separators_wanted && !separated {
        return None;
    }
    let remaining = dash.unwrap_or(colon).trim_start();
    let label = body[..length].to_owned();
    Some(TaskLabel {
        label,
        from: if bold_ends { 0 } else { stars },
        to: text.len() - remaining.len(),
    })
}

/// The length of a label in bytes, and true if it counts as one only when a separator follows.
fn label_length(text: &str) -> Option<(usize, bool)> {
    if let Some(rest) = text.strip_prefix('T') {
        let number = rest.strip_prefix('-').unwrap_or(rest);
        if (1..=5).contains(&count_digits(number)) {
            return Some((text.len() - number.len() + count_digits(number), false));
        }
    }
    if text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("task ")) {
        let number = dotted_number_length(&text[5..])?;
        return Some((5 + number.0, true));
    }
    let capitals =
        text.bytes().take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count();
    if (2..=10).contains(&capitals)
        && text.as_bytes()[0].is_ascii_uppercase()
        && let Some(rest) = text[capitals..].strip_prefix('-')
        && (1..=6).contains(&count_digits(rest))
    {
        let length = capitals + 1 + count_digits(rest);
        return text[length..].starts_with([':', '*']).then_some((length, true));
    }
    let (length, dotted) = dotted_number_length(text)?;
    Some((length, !dotted))
}

fn count_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Parses `1`, `1.2`, `1.2.3`. Returns the length in bytes, and true if there is a dot in it.
fn dotted_number_length(text: &str) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut parts = 0;
    loop {
        let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=4).contains(&digits) {
            // The dot before is not part of the label.
            return (parts > 0).then(|| (at - 1, parts > 1));
        }
        at += digits;
        parts += 1;
        if parts > 5 || !text[at..].starts_with('.') {
            return Some((at, parts > 1));
        }
        at += 1;
    }
}
