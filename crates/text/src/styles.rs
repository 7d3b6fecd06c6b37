//! The colours of reports on a terminal.

use anstyle::{AnsiColor, Style};

/// Colours by what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Styles {
    /// Headings and names.
    pub strong: Style,
    /// Suggestions, and things that matter less.
    pub faint: Style,
    /// Added lines, and passed checks.
    pub good: Style,
    /// Critical findings, removed lines, and failed checks.
    pub bad: Style,
    /// Major findings, and warnings.
    pub warn: Style,
    /// Minor findings, places, and names to type.
    pub accent: Style,
}

impl Styles {
    /// No colour at all.
    pub const fn plain() -> Self {
        let none = Style::new();
        Styles { strong: none, faint: none, good: none, bad: none, warn: none, accent: none }
    }

    /// The usual colours.
    pub const fn ansi() -> Self {
        Styles {
            strong: Style::new().bold(),
            faint: Style::new().dimmed(),
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            warn: AnsiColor::Yellow.on_default(),
            accent: AnsiColor::Cyan.on_default(),
        }
    }
}
