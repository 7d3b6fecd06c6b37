//! Draws the calibration of scores as a self-contained SVG without scripts that follows the light or dark
//! colour scheme. The upper plot shows the share of right skills against the score, the lower one the number
//! of scores.

use std::fmt::Write;

use repertoire_text::html::{EscapedQuotes, escape_markup};

use super::calibration::{CalibrationBin, ScoreCalibration};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 640.0;
/// Position and size of the upper plot, which is square.
const LEFT: f64 = 72.0;
const TOP: f64 = 84.0;
const SIDE: f64 = 400.0;
/// Position and height of the lower plot.
const BARS_TOP: f64 = 512.0;
const BARS_HEIGHT: f64 = 64.0;

/// Uses plain classes, because not every SVG renderer supports CSS variables.
const STYLE: &str = "\
text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 13px; fill: #57606a; }
.title { font-size: 18px; font-weight: 600; fill: #1f2328; }
.small { font-size: 11px; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.paper { fill: #ffffff; }
.grid { stroke: #d8dee4; stroke-width: 1; }
.axis { stroke: #8c959f; stroke-width: 1; fill: none; }
.ideal { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 5 4; }
.bar { fill: #2f6fd0; fill-opacity: 0.2; }
.count { fill: #2f6fd0; fill-opacity: 0.65; }
.gap { stroke: #c8571b; stroke-width: 2; }
.curve { stroke: #2f6fd0; stroke-width: 2; fill: none; stroke-linejoin: round; }
.dot { fill: #2f6fd0; stroke: #ffffff; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #9da7b3; }
  .title { fill: #e6edf3; }
  .paper { fill: #14181d; }
  .grid { stroke: #2d333b; }
  .axis, .ideal { stroke: #6e7681; }
  .bar, .count, .dot { fill: #6aa5f8; }
  .curve { stroke: #6aa5f8; }
  .gap { stroke: #f0935f; }
  .dot { stroke: #14181d; }
}
";

/// Draws a reliability diagram.
pub fn calibration_svg(calibration: &ScoreCalibration, title: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n",
        escape_xml(title),
        escape_xml(title),
    );
    svg += &format!("<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n");
    draw_text(&mut svg, (LEFT, 36.0), "title", title);
    draw_text(&mut svg, (LEFT, 60.0), "", &summarise_calibration(calibration));
    draw_axes(&mut svg);
    draw_shares(&mut svg, &calibration.bins);
    draw_counts(&mut svg, &calibration.bins);
    svg += "</svg>\n";
    svg
}

fn summarise_calibration(calibration: &ScoreCalibration) -> String {
    let Some((error, brier)) = calibration.expected_error.zip(calibration.brier) else {
        return "no scores to compare".to_owned();
    };
    let count = calibration.count;
    format!("{count} scores, expected calibration error {error:.3}, Brier score {brier:.3}")
}

fn draw_axes(svg: &mut String) {
    for step in 0..=5 {
        let value = f64::from(step) / 5.0;
        let (x, y) = (x_position(value), y_position(value));
        draw_line(svg, "grid", (LEFT, y), (LEFT + SIDE, y));
        draw_line(svg, "grid", (x, TOP), (x, TOP + SIDE));
        draw_text(svg, (LEFT - 10.0, y + 4.5), "end", &format_percent(value));
        draw_text(svg, (x, BARS_TOP + BARS_HEIGHT + 20.0), "middle", &format!("{value:.1}"));
    }
    draw_line(svg, "ideal", (x_position(0.0), y_position(0.0)), (x_position(1.0), y_position(1.0)));
    draw_text(svg, (LEFT + SIDE / 2.0, HEIGHT - 16.0), "middle", "score");
    let (x, y) = (22.0, TOP + SIDE / 2.0);
    push_element(
        svg,
        format_args!(
            "<text class=\"middle\" x=\"{x}\" y=\"{y}\" transform=\"rotate(-90 {x} {y})\">share right</text>"
        ),
    );
    let side = LEFT + SIDE + 12.0;
    draw_text(svg, (side, y_position(1.0) + 4.5), "small", "ideal");
    draw_line(svg, "gap", (side + 2.0, y_position(0.94)), (side + 2.0, y_position(0.89)));
    draw_text(svg, (side + 10.0, y_position(0.915) + 4.0), "small", "error");
    draw_text(svg, (side, BARS_TOP + BARS_HEIGHT), "small", "how many");
}

/// Draws a bar for the share of right skills in each bin, and its distance from the mean score.
fn draw_shares(svg: &mut String, bins: &[CalibrationBin]) {
    let known: Vec<(&CalibrationBin, f64, f64)> =
        bins.iter().filter_map(|bin| Some((bin, bin.mean_score?, bin.share_right?))).collect();
    for (bin, _, share) in &known {
        let (x, width) = bar_extent(bin);
        let (y, height) = (y_position(*share), SIDE * share);
        push_element(
            svg,
            format_args!(
                "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            ),
        );
    }
    for (_, score, share) in &known {
        draw_line(
            svg,
            "gap",
            (x_position(*score), y_position(*share)),
            (x_position(*score), y_position(*score)),
        );
    }
    let points: Vec<String> = known
        .iter()
        .map(|(_, score, share)| format!("{:.1},{:.1}", x_position(*score), y_position(*share)))
        .collect();
    push_element(svg, format_args!("<polyline class=\"curve\" points=\"{}\"/>", points.join(" ")));
    for (bin, score, share) in &known {
        let (x, y) = (x_position(*score), y_position(*share));
        let said = format!(
            "scores {:.1} to {:.1}: {} of {} right, mean score {score:.2}",
            bin.from,
            bin.to,
            (share * bin.count as f64).round(),
            bin.count
        );
        push_element(
            svg,
            format_args!(
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{said}</title></circle>"
            ),
        );
    }
    push_element(
        svg,
        format_args!(
            "<rect class=\"axis\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>"
        ),
    );
}

fn draw_counts(svg: &mut String, bins: &[CalibrationBin]) {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1) as f64;
    let floor = BARS_TOP + BARS_HEIGHT;
    for bin in bins.iter().filter(|bin| bin.count > 0) {
        let (x, width) = bar_extent(bin);
        // Keep bins with few scores visible beside large ones.
        let height = (BARS_HEIGHT * bin.count as f64 / most).max(1.5);
        let y = floor - height;
        push_element(
            svg,
            format_args!(
                "<rect class=\"count\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            ),
        );
        draw_text(svg, (x + width / 2.0, y - 4.0), "middle small", &bin.count.to_string());
    }
    draw_line(svg, "axis", (LEFT, floor), (LEFT + SIDE, floor));
}

fn bar_extent(bin: &CalibrationBin) -> (f64, f64) {
    (x_position(bin.from) + 2.0, SIDE * (bin.to - bin.from) - 4.0)
}

fn x_position(value: f64) -> f64 {
    LEFT + SIDE * value
}

fn y_position(value: f64) -> f64 {
    TOP + SIDE * (1.0 - value)
}

fn format_percent(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

fn draw_line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    push_element(
        svg,
        format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ),
    );
}

fn draw_text(svg: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let words = escape_xml(words);
    push_element(
        svg,
        format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"),
    );
}

fn push_element(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(svg, "{element}");
}

fn escape_xml(text: &str) -> String {
    escape_markup(text, EscapedQuotes::Double).replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ScoreCalibration {
        let rights = [(0.05, 1), (0.15, 2), (0.25, 2), (0.35, 5), (0.55, 5), (0.85, 9), (0.95, 9)];
        let one = |(score, right): (f64, usize)| (0..10).map(move |at| (score, at < right));
        let mut all: Vec<(f64, bool)> = rights.into_iter().flat_map(one).collect();
        all.extend((0..120).map(|at| (0.02, at == 0)));
        ScoreCalibration::from_samples(&all)
    }

    #[test]
    fn every_bin_with_scores_has_a_bar_a_dot_and_a_count() {
        let svg = calibration_svg(&sample(), "How sure, how right");
        assert_eq!(svg.matches("class=\"dot\"").count(), 7);
        assert_eq!(svg.matches("class=\"count\"").count(), 7);
        assert!(svg.contains("190 scores, expected calibration error"));
        assert!(svg.contains("scores 0.8 to 0.9: 9 of 10 right, mean score 0.85"));
        assert!(!svg.contains("<script") && !svg.contains("NaN"));
    }

    #[test]
    fn a_title_cannot_break_out_and_nothing_is_still_a_picture() {
        let svg = calibration_svg(&ScoreCalibration::from_samples(&[]), "a \"<b>\" & c");
        assert!(svg.contains("<title>a &quot;&lt;b&gt;&quot; &amp; c</title>"));
        assert!(svg.contains("no scores to compare"));
        assert!(!svg.contains("<b>"));
    }
}
