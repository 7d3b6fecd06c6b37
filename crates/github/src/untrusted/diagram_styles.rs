//! Styles in diagrams: those that leave every text legible, however they are combined.

/// The brightness from which a colour is light, of 255. Text is dark unless a style changes it.
const LIGHT_MIN: u32 = 150;
/// The brightness up to which a colour is dark.
const DARK_MAX: u32 = 90;

/// Names of light colours.
const LIGHT: &[&str] = &[
    "none",
    "white",
    "lightblue",
    "lightgreen",
    "lightyellow",
    "lightgrey",
    "lightgray",
    "lightpink",
    "lightcyan",
    "pink",
    "yellow",
    "orange",
    "gold",
    "khaki",
    "beige",
    "lavender",
];

/// Names of dark colours.
const DARK: &[&str] = &["black", "navy", "darkblue", "darkgreen", "darkred", "maroon"];

/// Returns true if all properties of a style are known and text stays legible: dark on light.
pub(super) fn is_legible_style(style: &str) -> bool {
    style.split(',').map(str::trim).filter(|property| !property.is_empty()).all(|property| {
        let Some((name, value)) = property.split_once(':') else { return false };
        let value = value.trim().to_ascii_lowercase();
        match name.trim().to_ascii_lowercase().as_str() {
            "fill" => is_colour(&value, LIGHT, |brightness| brightness >= LIGHT_MIN),
            "color" => is_colour(&value, DARK, |brightness| brightness <= DARK_MAX),
            "stroke" => value.chars().all(|c| c.is_ascii_alphanumeric() || c == '#'),
            "stroke-width" => is_length(value.trim_end_matches("px")),
            "stroke-dasharray" => value.split_whitespace().all(is_length),
            "font-weight" => matches!(value.as_str(), "bold" | "normal"),
            "font-style" => matches!(value.as_str(), "italic" | "normal"),
            _ => false,
        }
    })
}

fn is_length(value: &str) -> bool {
    value.parse::<f32>().is_ok_and(|length| (0.0..10.0).contains(&length))
}

fn is_colour(value: &str, names: &[&str], is_fit: impl Fn(u32) -> bool) -> bool {
    names.contains(&value) || brightness_of(value).is_some_and(is_fit)
}

/// Returns the brightness of a colour such as `#fe9` or `#ffee99`, from 0 to 255.
fn brightness_of(colour: &str) -> Option<u32> {
    let digits = colour.strip_prefix('#')?.as_bytes();
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    let parts = match digits.len() {
        3 => [digit(0)? * 17, digit(1)? * 17, digit(2)? * 17],
        6 => [0, 2, 4]
            .map(|at| Some(digit(at)? * 16 + digit(at + 1)?))
            .map(|part| part.unwrap_or(128)),
        _ => return None,
    };
    Some((parts[0] * 299 + parts[1] * 587 + parts[2] * 114) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_known_if_every_combination_is_legible() {
        for style in [
            "fill:#f9f,stroke:#333,stroke-width:4px",
            "fill:#ffeecc,color:#000",
            "stroke:red,stroke-dasharray: 5 5",
            "font-weight:bold, fill: lightblue",
        ] {
            assert!(is_legible_style(style), "{style}");
        }
        for style in [
            "color:#fff",
            "fill:#333",
            "fill:black,color:white",
            "opacity:0",
            "font-size:1px",
            "stroke-width:900px",
            "fill:#fff0",
            "display:none",
            "fill",
        ] {
            assert!(!is_legible_style(style), "{style}");
        }
    }
}
