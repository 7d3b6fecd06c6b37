//! Text in diagrams: cleaned, measured and wrapped without access to a font.

/// Puts text on one line and removes invisible characters, some of which XML forbids.
pub(super) fn clean_text(text: &str) -> String {
    let (text, _) = repertoire_text::invisible::removed(text);
    repertoire_text::layout::one_line(text.trim_start_matches('\u{feff}'))
}

/// The approximate width of a text in pixels. Without a font this is an estimate, on the wide side.
pub(super) fn text_width(text: &str, size: i32) -> i32 {
    let hundredths: i32 = text.chars().map(char_width).sum();
    (hundredths * size + 99) / 100
}

/// The width of a character in hundredths of the font size.
fn char_width(c: char) -> i32 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' | '!' | '.' | ',' | ':' | ';' => 32,
        ' ' | 'f' | 'r' | 't' | 'I' | '(' | ')' | '[' | ']' | '-' | '/' => 40,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 92,
        'A'..='Z' | '&' | '<' | '>' | '≤' | '×' | '=' | '+' => 72,
        c if c.is_ascii() => 60,
        // Wide scripts and emoji.
        '\u{1100}'.. => 105,
        _ => 66,
    }
}

/// Wraps text into lines at most `width_max` wide; text beyond `lines_max` is replaced with `…`.
pub(super) fn wrap_text(text: &str, size: i32, width_max: i32, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if text_width(&longer, size) <= width_max {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if text_width(&line, size) + text_width(c.encode_utf8(&mut [0; 4]), size) > width_max {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines.retain(|line| !line.is_empty());
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = shorten_text(&format!("{last}…"), size, width_max);
        }
    }
    lines
}

/// Shortens text with `…` if it is too wide.
pub(super) fn shorten_text(text: &str, size: i32, width_max: i32) -> String {
    if text_width(text, size) <= width_max {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.trim_end_matches('…').chars().collect();
    while kept.pop().is_some() {
        let cut: String = kept.iter().collect();
        let cut = format!("{}…", cut.trim_end());
        if text_width(&cut, size) <= width_max {
            return cut;
        }
    }
    "…".to_owned()
}
