//! Renders diagnostics for terminals, as rustc prints them: with the source line, and the corrected line if a fix is
//! known.

use std::borrow::Cow;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::invisible;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalColour {
    Never,
    Always,
}

/// The maximum length of a line that is shown with its source. For longer ones, as in minified text, only the position
/// is shown.
const LINE_BYTES_MAX: usize = 4_000;

/// The number of lines before and after a finding that are passed to the renderer, which shows those that it needs.
const LINES_AROUND: usize = 4;
/// The maximum number of lines between the first and last change of a correction that is shown.
const PATCHED_LINES_MAX: usize = 2_000;

/// Renders one diagnostic, ending in a line break. Without the text of the file, only the position is shown.
pub fn render_diagnostic(
    diagnostic: &Diagnostic,
    text: Option<&str>,
    colour: TerminalColour,
) -> String {
    let shown = text.and_then(|text| {
        let range = snippet_range(diagnostic, text)?;
        let source = VisibleSource::around(text, range.clone());
        let range = source.visible_range(range);
        (line_bytes(&source.text, range.start) <= LINE_BYTES_MAX).then_some((source, range))
    });
    let corrected = text.and_then(|text| corrected_source(diagnostic, text));
    let path = diagnostic.path.as_ref().map(|path| printable_line(path.as_str()));
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = level.primary_title(printable_line(&diagnostic.message)).id(diagnostic.code.id);
    let mut main = Group::with_title(title);
    match (&shown, path) {
        (Some((source, range)), path) => {
            let snippet = Snippet::source(&*source.text).line_start(source.line).path(path);
            let annotation = AnnotationKind::Primary.span(range.clone());
            main = main.element(snippet.annotation(annotation));
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
    match (&diagnostic.fix, &corrected) {
        (Some(fix), Some(source)) => {
            let patches = fix.edits.iter().map(|edit| {
                Patch::new(source.visible_range(edit.span.range()), invisible::shown(&edit.text))
            });
            let snippet = Snippet::source(&*source.text).line_start(source.line).patches(patches);
            groups.push(main);
            groups.push(Level::HELP.secondary_title(printable_line(&fix.title)).element(snippet));
        }
        _ => {
            if let Some(help) = diagnostic.help.as_deref() {
                main = main.element(Level::HELP.message(printable_line(help)));
            }
            groups.push(main);
        }
    }
    let renderer = match colour {
        TerminalColour::Always => Renderer::styled(),
        TerminalColour::Never => Renderer::plain(),
    };
    let mut out = renderer.decor_style(DecorStyle::Ascii).render(&groups);
    out.push('\n');
    out
}

/// The lines that a correction changes, if they are few enough to show.
fn corrected_source<'t>(diagnostic: &Diagnostic, text: &'t str) -> Option<VisibleSource<'t>> {
    let edits = &diagnostic.fix.as_ref()?.edits;
    let start = edits.iter().map(|edit| edit.span.range().start).min()?;
    let end = edits.iter().map(|edit| edit.span.range().end).max()?;
    let source = VisibleSource::around(text, start..end);
    (source.text.lines().count() <= PATCHED_LINES_MAX).then_some(source)
}

/// The lines around a range. The renderer builds a structure for every line that it gets, so a whole file with a
/// million lines would cost hundreds of megabytes.
struct SourceWindow<'t> {
    text: &'t str,
    /// The offset in the whole text.
    start: usize,
    /// The number of the first line.
    line: usize,
}

impl<'t> SourceWindow<'t> {
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
        SourceWindow { text: &text[start..end], start, line }
    }
}

/// The span to underline, cut at the end of its first line.
fn snippet_range(diagnostic: &Diagnostic, text: &str) -> Option<std::ops::Range<usize>> {
    let range = diagnostic.span?.range();
    text.get(range.clone())?;
    let end = text[range.start..].find('\n').map_or(text.len(), |at| range.start + at);
    Some(range.start..range.end.min(end))
}

/// The length of the line around an offset.
fn line_bytes(text: &str, offset: usize) -> usize {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    text[offset..].find('\n').map_or(text.len(), |at| offset + at) - start
}

/// Formats a text for one line of a terminal: invisible characters are shown as `⟨U+202E⟩`, line breaks as `\n`.
pub fn printable_line(text: &str) -> String {
    invisible::shown_on_one_line(text)
}

/// Lines of a source with markers in place of invisible characters, and the resulting shift of offsets.
struct VisibleSource<'t> {
    text: Cow<'t, str>,
    /// The offset of its first line in the whole source.
    start: usize,
    /// The number of the first line.
    line: usize,
    replaced: Vec<ReplacedCharacter>,
}

/// A character's bytes in the source, and the end of its marker in the visible text.
struct ReplacedCharacter {
    source: std::ops::Range<usize>,
    marker_end: usize,
}

impl<'t> VisibleSource<'t> {
    fn around(text: &'t str, range: std::ops::Range<usize>) -> Self {
        let SourceWindow { text, start, line } = SourceWindow::around(text, range);
        if invisible::is_clean(text) {
            return VisibleSource { text: Cow::Borrowed(text), start, line, replaced: Vec::new() };
        }
        let (mut out, mut last, mut replaced) = (String::new(), 0, Vec::new());
        for found in invisible::find(text) {
            let source = found.span.range();
            out.push_str(&text[last..source.start]);
            out.push_str(&invisible::marker_of(found.char));
            out.push_str(&invisible::shown(
                &text[source.start + found.char.len_utf8()..source.end],
            ));
            last = source.end;
            replaced.push(ReplacedCharacter { source, marker_end: out.len() });
        }
        out.push_str(&text[last..]);
        VisibleSource { text: Cow::Owned(out), start, line, replaced }
    }

    fn visible_range(&self, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.visible_offset(range.start - self.start)..self.visible_offset(range.end - self.start)
    }

    fn visible_offset(&self, offset: usize) -> usize {
        let before = self.replaced.partition_point(|one| one.source.start < offset);
        match before.checked_sub(1).and_then(|at| self.replaced.get(at)) {
            None => offset,
            Some(one) => one.marker_end + offset.saturating_sub(one.source.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;
    use crate::diagnostic::{DiagnosticFix, SpanEdit};
    use crate::source::{Source, Span};

    #[test]
    fn a_finding_shows_its_line_and_its_help() {
        let source = Source::new("a/SKILL.md", "---\nname: A\n---\n");
        let found = Diagnostic::new(&codes::YAML_ALIAS, "aliases are not accepted")
            .at(&source, Span::new(10, 11))
            .help("quote it");
        insta::assert_snapshot!(render_diagnostic(&found, Some(source.text()), TerminalColour::Never), @r"
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
        let fix = DiagnosticFix {
            title: "quote the value".into(),
            edits: vec![SpanEdit { span: Span::new(4, 11), text: "d: \"a: b\"".into() }],
        };
        let found = Diagnostic::new(&codes::REPAIRED_VALUE, "the value was read as if quoted")
            .at(&source, Span::new(4, 11))
            .fix(fix);
        insta::assert_snapshot!(render_diagnostic(&found, Some(source.text()), TerminalColour::Never), @r#"
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
        insta::assert_snapshot!(render_diagnostic(&found, None, TerminalColour::Never), @r"
        error[RS003]: permission denied
        --> x/SKILL.md
         = help: check its permissions
        ");
    }

    #[test]
    fn hidden_characters_are_shown_as_escapes() {
        assert_eq!(printable_line("a\u{202e}b\u{1b}[2J"), r"a⟨U+202E⟩b⟨U+001B⟩[2J");
        assert_eq!(printable_line("one\ntwo"), r"one\ntwo");
        assert_eq!(printable_line("👩‍👧"), "👩‍👧");
    }

    #[test]
    fn a_source_line_is_never_printed_raw() {
        let source = Source::new("a\u{7}.md", "x \u{e0041}\u{202e}y\u{1b}[2J z\n");
        let at = source.text().find('y').unwrap();
        let fix = DiagnosticFix {
            title: "remove".into(),
            edits: vec![SpanEdit { span: Span::new(2, at), text: "\u{200b}".into() }],
        };
        let found = Diagnostic::new(&codes::YAML_ALIAS, "hidden \u{202e}text")
            .at(&source, Span::new(2, at))
            .fix(fix);
        let shown = render_diagnostic(&found, Some(source.text()), TerminalColour::Never);
        assert!(invisible::is_clean(&shown), "{shown}");
        assert!(shown.contains("hidden ⟨U+202E⟩text") && shown.contains("a⟨U+0007⟩.md"), "{shown}");
        assert!(shown.contains("x ⟨U+E0041⟩⟨U+202E⟩y⟨U+001B⟩[2J z"), "{shown}");
        let visible = VisibleSource::around(source.text(), 2..at);
        assert_eq!(&visible.text[visible.visible_range(2..at)], "⟨U+E0041⟩⟨U+202E⟩");
    }
}
