//! A terminal window as an SVG picture. Every text has a fixed length, so that no font clips it.

use repertoire_text::html::{EscapedQuotes, escape_markup};
use repertoire_text::layout::text_width;

use super::terminal::{TerminalInk, TerminalLine, TerminalSpan};

/// The colours of a picture.
pub(super) struct WindowTheme {
    /// The last part of the file's name.
    pub(super) name: &'static str,
    background: &'static str,
    bar: &'static str,
    border: &'static str,
    text: &'static str,
    faint: &'static str,
    /// Black, red, green, yellow, blue, magenta, cyan and white.
    colours: [&'static str; 8],
}

pub(super) const LIGHT: WindowTheme = WindowTheme {
    name: "light",
    background: "#ffffff",
    bar: "#f6f8fa",
    border: "#d0d7de",
    text: "#1f2328",
    faint: "#656d76",
    colours: [
        "#24292f", "#cf222e", "#1a7f37", "#9a6700", "#0969da", "#8250df", "#1b7c83", "#6e7781",
    ],
};

pub(super) const DARK: WindowTheme = WindowTheme {
    name: "dark",
    background: "#0d1117",
    bar: "#161b22",
    border: "#30363d",
    text: "#e6edf3",
    faint: "#8d96a0",
    colours: [
        "#6e7681", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    ],
};

/// Width of a column, height of a line, and other lengths, in pixels.
const COLUMN_PX: f64 = 8.4;
const LINE_PX: f64 = 20.0;
const FONT_PX: f64 = 14.0;
const MARGIN_PX: f64 = 18.0;
const BAR_PX: f64 = 34.0;

/// The three buttons of the window.
const BUTTONS: [&str; 3] = ["#ff5f57", "#febc2e", "#28c840"];

const FONTS: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";

pub(super) fn draw_window(lines: &[TerminalLine], columns: usize, theme: &WindowTheme) -> String {
    let width = columns as f64 * COLUMN_PX + 2.0 * MARGIN_PX;
    let height = BAR_PX + lines.len() as f64 * LINE_PX + 2.0 * MARGIN_PX;
    let WindowTheme { background, bar, border, text, .. } = theme;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"A terminal with rep match and rep plan run\">\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"10\" fill=\"{background}\" stroke=\"{border}\"/>\n\
         <path d=\"M1 {BAR_PX} V10 A9 9 0 0 1 10 1 H{:.0} A9 9 0 0 1 {:.0} 10 V{BAR_PX} Z\" fill=\"{bar}\"/>\n\
         <path d=\"M1 {BAR_PX} H{:.0}\" stroke=\"{border}\"/>\n",
        width - 1.0,
        height - 1.0,
        width - 10.0,
        width - 1.0,
        width - 1.0,
    );
    for (number, colour) in BUTTONS.iter().enumerate() {
        let x = MARGIN_PX + 3.0 + number as f64 * 20.0;
        out.push_str(&format!("<circle cx=\"{x}\" cy=\"17\" r=\"6\" fill=\"{colour}\"/>\n"));
    }
    out.push_str(&format!(
        "<g font-family=\"{FONTS}\" font-size=\"{FONT_PX}\" fill=\"{text}\" xml:space=\"preserve\">\n"
    ));
    for (number, line) in lines.iter().enumerate() {
        let y = BAR_PX + MARGIN_PX + number as f64 * LINE_PX + FONT_PX;
        draw_line(line, y, theme, &mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn draw_line(line: &TerminalLine, y: f64, theme: &WindowTheme, out: &mut String) {
    let mut column = 0;
    for span in &line.spans {
        let width = text_width(&span.text);
        let blank = text_width(&span.text) - text_width(span.text.trim_start());
        let text = span.text.trim();
        if !text.is_empty() {
            let x = MARGIN_PX + (column + blank) as f64 * COLUMN_PX;
            let length = text_width(text) as f64 * COLUMN_PX;
            out.push_str(&format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\"{}>{}</text>\n",
                span_attributes(span, theme),
                escape_markup(text, EscapedQuotes::None),
            ));
        }
        column += width;
    }
}

fn span_attributes(span: &TerminalSpan, theme: &WindowTheme) -> String {
    let colour = match span.style.ink {
        TerminalInk::Default if span.style.faint => Some(theme.faint),
        TerminalInk::Default => None,
        TerminalInk::Colour(number) | TerminalInk::Bright(number) => {
            theme.colours.get(usize::from(number)).copied()
        }
    };
    let mut out = colour.map(|colour| format!(" fill=\"{colour}\"")).unwrap_or_default();
    if span.style.bold {
        out.push_str(" font-weight=\"bold\"");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::terminal::parse_output;
    use super::*;

    #[test]
    fn texts_are_escaped_and_stand_in_their_columns() {
        let lines = parse_output("  a < b\u{1b}[31m  red\u{1b}[0m");
        let picture = draw_window(&lines, 20, &LIGHT);
        assert!(picture.contains("<text x=\"34.8\" y=\"66.0\" textLength=\"42.0\""), "{picture}");
        assert!(picture.contains(">a &lt; b</text>"), "{picture}");
        assert!(picture.contains("<text x=\"93.6\""), "{picture}");
        assert!(picture.contains("fill=\"#cf222e\">red</text>"), "{picture}");
    }
}
