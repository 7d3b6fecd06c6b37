//! Diagnostics for people: as rustc prints them, with the source line, and the corrected line where a
//! fix is known.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};

/// Whether to write escape sequences for colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI colours.
    Always,
}

/// Longest line that is shown with its source; minified text is only named by its place.
const LINE_BYTES_MAX: usize = 4_000;

/// Lines before and after a finding that the renderer is given; it shows those that it needs.
const LINES_AROUND: usize = 4;
/// The maximum number of lines between the first and the last change of a correction that is shown.
const PATCHED_LINES_MAX: usize = 2_000;

/// Renders one diagnostic, ending in a line break. Without the text of the file only the place is named.
pub fn render(diagnostic: &Diagnostic, text: Option<&str>, colour: Colour) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let path = diagnostic.path.as_ref().map(|path| path.as_str());
    let title = level.primary_title(printable(&diagnostic.message)).id(diagnostic.code.id);
    let mut main = Group::with_title(title);
    let shown = text.and_then(|text| snippet_range(diagnostic, text).map(|range| (text, range)));
    match (shown, path) {
        (Some((text, range)), _) => {
            let window = Window::around(text, range.clone());
            let annotation = AnnotationKind::Primary.span(window.within(range));
            let mut snippet = Snippet::source(window.text).line_start(window.line);
            snippet = snippet.annotation(annotation);
            if let Some(path) = path {
                snippet = snippet.path(path);
            }
            main = main.element(snippet);
        }
        (None, Some(path)) => {
            let mut origin = Origin::path(path);
            if let Some(position) = diagnostic.position {
                origin = origin.line(position.line as usize).char_column(position.column as usize);
            }
            main = main.element(origin);
        }
        (None, None) => {}
    }
    let mut groups = Vec::new();
    let help = diagnostic.help.as_deref().map(printable);
    let patched = diagnostic.fix.as_ref().and_then(|fix| {
        let start = fix.edits.iter().map(|edit| edit.span.range().start).min()?;
        let end = fix.edits.iter().map(|edit| edit.span.range().end).max()?;
        let window = Window::around(text?, start..end);
        (window.text.lines().count() <= PATCHED_LINES_MAX).then_some((fix, window))
    });
    match patched {
        Some((fix, window)) => {
            groups.push(main);
            let patch = |edit: &'_ crate::diagnostic::Edit| window.within(edit.span.range());
            let patches = fix.edits.iter().map(|edit| Patch::new(patch(edit), edit.text.as_str()));
            let snippet = Snippet::source(window.text).line_start(window.line).patches(patches);
            groups.push(Level::HELP.secondary_title(fix.title.as_str()).element(snippet));
        }
        _ => {
            if let Some(help) = help {
                main = main.element(Level::HELP.message(help));
            }
            groups.push(main);
        }
    }
    let renderer = match colour {
        Colour::Always => Renderer::styled(),
        Colour::Never => Renderer::plain(),
    };
    let mut out = renderer.decor_style(DecorStyle::Ascii).render(&groups);
    out.push('\n');
    out
}

/// The lines around a range. The renderer builds a structure for every line that it is given, so that a whole file with
/// a million lines would cost hundreds of megabytes.
struct Window<'t> {
    text: &'t str,
    /// Where it starts in the whole text.
    start: usize,
    /// The number of its first line.
    line: usize,
}

impl<'t> Window<'t> {
    fn around(text: &'t str, range: std::ops::Range<usize>) -> Self {
        let bytes = text.as_bytes();
        let mut start = range.start.min(bytes.len());
        for _ in 0..=LINES_AROUND {
            start =
                memchr::memrchr(b'\n', &bytes[..start.saturating_sub(1)]).map_or(0, |at| at + 1);
        }
        let mut end = range.end.min(bytes.len());
        for _ in 0..=LINES_AROUND {
            end = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |at| end + at + 1);
        }
        let line = memchr::memchr_iter(b'\n', &bytes[..start]).count() + 1;
        Window { text: &text[start..end], start, line }
    }

    fn within(&self, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        range.start - self.start..range.end - self.start
    }
}

/// The span to underline, if its lines are fit to be shown.
fn snippet_range(diagnostic: &Diagnostic, text: &str) -> Option<std::ops::Range<usize>> {
    let span = diagnostic.span?;
    text.get(span.range())?;
    let start = text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
    let end =
        text[span.start as usize..].find('\n').map_or(text.len(), |at| span.start as usize + at);
    // A span over several lines is shown by its first line: the rest says no more.
    let range = span.start as usize..(span.end as usize).min(end.max(span.start as usize));
    (end - start <= LINE_BYTES_MAX).then_some(range)
}

/// Whether a character moves the cursor, starts a line, turns the direction of text or cannot be seen.
/// Joiners are left alone: emoji and some scripts need them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// A text for one line of a terminal: what is hidden is shown as its escape.
pub fn printable(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;
    use crate::diagnostic::{Edit, Fix};
    use crate::source::{Source, Span};

    #[test]
    fn a_finding_in_a_file_of_newlines_is_rendered_from_the_lines_around_it() {
        let text = "\n".repeat(1_900_000);
        let window = Window::around(&text, 1_000_000..1_000_000);
        assert_eq!((window.line, window.start), (999_996, 999_995));
        assert!(window.text.len() < 16, "{}", window.text.len());
        let source = Source::new("a", format!("{text}x\n"));
        let found = Diagnostic::new(&codes::YAML_ALIAS, "wrong")
            .at(&source, Span::new(1_900_000, 1_900_001));
        let shown = render(&found, Some(source.text()), Colour::Never);
        assert!(shown.contains("a:1900001:1") && shown.contains("1900001 | x"), "{shown}");
    }

    #[test]
    fn a_finding_shows_its_line_and_its_help() {
        let source = Source::new("a/SKILL.md", "---\nname: A\n---\n");
        let found = Diagnostic::new(&codes::YAML_ALIAS, "aliases are not accepted")
            .at(&source, Span::new(10, 11))
            .help("quote it");
        insta::assert_snapshot!(render(&found, Some(source.text()), Colour::Never), @r"
        error[RS022]: aliases are not accepted
         --> a/SKILL.md:2:7
          |
        2 | name: A
          |       ^
          |
          = help: quote it
        ");
    }

    #[test]
    fn a_fix_shows_the_corrected_line() {
        let source = Source::new("SKILL.md", "---\nd: a: b\n---\n");
        let fix = Fix {
            title: "quote the value".into(),
            edits: vec![Edit { span: Span::new(4, 11), text: "d: \"a: b\"".into() }],
        };
        let found = Diagnostic::new(&codes::REPAIRED_VALUE, "the value was read as if quoted")
            .at(&source, Span::new(4, 11))
            .fix(fix);
        insta::assert_snapshot!(render(&found, Some(source.text()), Colour::Never), @r#"
        warning[RS030]: the value was read as if quoted
         --> SKILL.md:2:1
          |
        2 | d: a: b
          | ^^^^^^^
          |
        help: quote the value
          |
        2 - d: a: b
        2 + d: "a: b"
          |
        "#);
    }

    #[test]
    fn without_text_only_the_place_is_named() {
        let found = Diagnostic::new(&codes::UNREADABLE, "permission denied")
            .in_file("x/SKILL.md".into())
            .help("check its permissions");
        insta::assert_snapshot!(render(&found, None, Colour::Never), @r"
        error[RS003]: permission denied
        --> x/SKILL.md
         = help: check its permissions
        ");
    }

    #[test]
    fn hidden_characters_are_shown_as_escapes() {
        assert_eq!(printable("a\u{202e}b\u{1b}[2J"), r"a\u{202e}b\u{1b}[2J");
        assert_eq!(printable("one\ntwo"), r"one\ntwo");
        assert_eq!(printable("👩‍👧"), "👩‍👧");
    }
}
