//! Reads the lines of a plan. This is a line scanner instead of a Markdown parser: it needs the offset of every byte,
//! and has to accept what people and agents actually write.

use camino::Utf8Path;
use repertoire_text::source::Span;
use repertoire_text::{Diagnostic, Source};

use super::lines::{
    CheckBox, CodeFence, ListBullet, PlanLine, count_frontmatter_lines, has_box, measure_indent,
    parse_bullet, parse_check_box, parse_heading, split_lines, underline_level,
};
use super::metadata::parse_metadata_line;
use super::{PlanDocument, PlanFormat, PlanSection, TaskBlocker, TaskPriority};
use crate::codes;
use crate::limits::{
    PLAN_BYTES_MAX, PLAN_FINDINGS_MAX, PLAN_LINE_BYTES_MAX, PLAN_NESTING_MAX, PLAN_TASKS_MAX,
    PLAN_TEXT_LINES_MAX,
};

mod build;
mod headings;

/// Parses a plan.
pub(super) fn read_plan(source: Source) -> PlanDocument {
    let text = source.shared_text();
    let bytes = text.len();
    if bytes > PLAN_BYTES_MAX {
        let why = format!("the plan has {bytes} bytes; the limit is {PLAN_BYTES_MAX}");
        let found = Diagnostic::new(&codes::PLAN_TOO_LARGE, why.clone())
            .in_file(source.path())
            .help(codes::PLAN_TOO_LARGE.remedy);
        return empty_plan(source, why, found);
    }
    let mut reader = PlanReader::new(&source, split_lines(&text));
    let skipped = count_frontmatter_lines(&reader.lines);
    for at in skipped..reader.lines.len() {
        reader.read_line(at);
    }
    reader.report_unclosed();
    build::build_plan(reader.into_draft(), source.clone())
}

/// The plan for a file that is not text.
pub(super) fn plan_not_text(path: &Utf8Path, at: usize) -> PlanDocument {
    let why = format!("the plan is not UTF-8: byte {at} is wrong");
    let code = &repertoire_text::codes::NOT_UTF8;
    let found = Diagnostic::new(code, why.clone()).in_file(path).help(code.remedy);
    empty_plan(Source::new(path, String::new()), why, found)
}

fn empty_plan(source: Source, why: String, found: Diagnostic) -> PlanDocument {
    PlanDocument {
        title: None,
        sections: Vec::new(),
        tasks: Vec::new(),
        format: PlanFormat::Loop,
        fallback: Some(why),
        diagnostics: vec![found],
        source: source.with_path(source.path().to_owned()),
    }
}

/// The result of reading the lines, before texts are parsed and ids assigned.
struct PlanDraft<'a> {
    lines: Vec<PlanLine<'a>>,
    title: Option<String>,
    sections: Vec<PlanSection>,
    tasks: Vec<TaskDraft>,
    fallback: Option<String>,
    found: Vec<Diagnostic>,
}

/// A task as found in the lines.
struct TaskDraft {
    check_box: CheckBox,
    /// The span of the box in the file.
    mark: Span,
    line: usize,
    /// The number of lines of its text.
    text_lines: usize,
    /// The indices of its other lines below.
    details: Vec<usize>,
    /// Byte offset of the end of its last line before a nested task.
    own_end: usize,
    bullet: ListBullet,
    /// The indentation of the first line nested below it.
    nested: Option<String>,
    has_child: bool,
    parent: Option<usize>,
    section: Option<usize>,
    priority: Option<TaskPriority>,
    blocked_by: Vec<TaskBlocker>,
    skills: Vec<(String, Span)>,
    specs: Vec<(String, Span)>,
}

/// A list item that is still open.
struct OpenListItem {
    bullet: ListBullet,
    /// The innermost task that the item is or is nested in.
    owner: Option<usize>,
}

/// A construct that hides lines until it is closed.
struct HiddenBlock {
    kind: HiddenBlockKind,
    /// Lines indented by less than this don't belong to the item the construct is in.
    inside: usize,
    opened: Span,
    boxes: usize,
}

enum HiddenBlockKind {
    Fence(CodeFence),
    Comment,
}

struct PlanReader<'a> {
    source: &'a Source,
    lines: Vec<PlanLine<'a>>,
    title: Option<String>,
    sections: Vec<PlanSection>,
    tasks: Vec<TaskDraft>,
    items: Vec<OpenListItem>,
    hiding: Option<HiddenBlock>,
    /// The task whose text may continue on the next line.
    open_text: Option<usize>,
    /// True if the previous line was prose at the margin, which an underline turns into a heading.
    after_prose: bool,
    after_blank: bool,
    blockers: usize,
    fallback: Option<String>,
    found: Vec<Diagnostic>,
}

impl<'a> PlanReader<'a> {
    fn new(source: &'a Source, lines: Vec<PlanLine<'a>>) -> Self {
        PlanReader {
            source,
            lines,
            title: None,
            sections: Vec::new(),
            tasks: Vec::new(),
            items: Vec::new(),
            hiding: None,
            open_text: None,
            after_prose: false,
            after_blank: true,
            blockers: 0,
            fallback: None,
            found: Vec::new(),
        }
    }

    fn into_draft(self) -> PlanDraft<'a> {
        PlanDraft {
            lines: self.lines,
            title: self.title,
            sections: self.sections,
            tasks: self.tasks,
            fallback: self.fallback,
            found: self.found,
        }
    }

    fn read_line(&mut self, at: usize) {
        let line = self.lines[at];
        if line.text.len() > PLAN_LINE_BYTES_MAX {
            let why = format!(
                "line {} has {} bytes; the limit is {PLAN_LINE_BYTES_MAX}",
                at + 1,
                line.text.len()
            );
            return self.exceed_limit(why, Span::new(line.start, line.start + 1));
        }
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_blank());
        let after_prose = std::mem::take(&mut self.after_prose);
        let (columns, blanks) = measure_indent(line.text, 0);
        if self.hiding.is_some() && !self.is_shown(&line, columns, blanks) {
            self.add_detail(at);
            return;
        }
        if line.is_blank() {
            self.open_text = None;
            self.add_detail(at);
            return;
        }
        if after_prose && let Some(level) = underline_level(line.text) {
            let before = self.lines[at - 1];
            let indented = before.text.len() - before.text.trim_start().len();
            self.read_heading(level, at - 1, indented..before.text.trim_end().len());
            return;
        }
        if self.continues_text(at, columns, blanks) {
            return self.read_prose(at, &line.text[blanks..]);
        }
        // A line indented by less ends the items it does not belong to.
        while self.items.last().is_some_and(|item| columns < item.bullet.content_margin()) {
            self.items.pop();
            self.open_text = None;
        }
        let margin = self.items.last().map_or(0, |item| item.bullet.content_margin());
        let is_code = columns >= margin + 4
            && after_blank
            && self.items.last().is_none_or(|item| columns >= item.bullet.content_column + 4);
        if is_code { self.read_code(at) } else { self.read_block(at, columns, blanks) }
    }

    /// Returns true if a line at the margin continues the text of a task: prose that follows without a blank line. A
    /// line that starts in bold is a statement of its own.
    fn continues_text(&self, at: usize, columns: usize, blanks: usize) -> bool {
        let line = self.lines[at];
        let is_heading =
            self.lines.get(at + 1).is_some_and(|next| underline_level(next.text).is_some());
        let body = &line.text[blanks..];
        self.open_text.is_some()
            && !is_heading
            && self.items.last().is_some_and(|item| columns < item.bullet.content_margin())
            && !body.starts_with(['>', '<', '|', '#', '*', '`', '~', '='])
            && parse_bullet(line.text, blanks, columns).is_none()
            && underline_level(line.text).is_none()
            && parse_metadata_line(body).is_none()
    }

    /// Returns true if a line is outside of the construct that hides lines, which then ends. The line that closes it
    /// stays hidden.
    fn is_shown(&mut self, line: &PlanLine<'_>, columns: usize, blanks: usize) -> bool {
        let Some(hiding) = &mut self.hiding else { return true };
        if !line.is_blank() && columns < hiding.inside {
            self.hiding = None;
            return true;
        }
        let closes = match &hiding.kind {
            HiddenBlockKind::Fence(fence) => {
                columns < hiding.inside + 4 && fence.is_closed_by(&line.text[blanks..])
            }
            HiddenBlockKind::Comment => line.text.contains("-->"),
        };
        hiding.boxes += usize::from(has_box(line.text));
        if closes {
            self.hiding = None;
        }
        false
    }

    /// Handles a line that is neither blank nor code.
    fn read_block(&mut self, at: usize, columns: usize, blanks: usize) {
        let line = self.lines[at];
        let body = &line.text[blanks..];
        if self.open_hidden_block(body, &line, blanks) || body.starts_with('>') {
            self.open_text = None;
            self.add_detail(at);
            return;
        }
        if self.items.is_empty()
            && let Some((level, range)) = parse_heading(line.text)
        {
            return self.read_heading(level, at, range);
        }
        match parse_bullet(line.text, blanks, columns) {
            Some(found) => self.read_item(at, found),
            None => self.read_prose(at, body),
        }
    }

    /// Opens a fence or a comment if the text starts one.
    fn open_hidden_block(&mut self, body: &str, line: &PlanLine<'_>, at: usize) -> bool {
        let kind = match CodeFence::opened_by(body) {
            Some(fence) => HiddenBlockKind::Fence(fence),
            None if body.starts_with("<!--") => {
                if body[4..].contains("-->") {
                    return true;
                }
                HiddenBlockKind::Comment
            }
            None => return false,
        };
        let inside = self.items.last().map_or(0, |item| item.bullet.content_margin());
        let opened = Span::new(line.start + at, line.end_offset());
        self.hiding = Some(HiddenBlock { kind, inside, opened, boxes: 0 });
        true
    }

    /// Handles a list item, or several nested ones on one line.
    fn read_item(&mut self, at: usize, first: ListBullet) {
        self.open_text = None;
        let line = self.lines[at];
        let mut found = first;
        loop {
            while self.items.last().is_some_and(|item| found.column < item.bullet.content_margin())
            {
                self.items.pop();
            }
            self.items.truncate(PLAN_NESTING_MAX);
            let owner = self.items.last().and_then(|item| item.owner);
            let content = &line.text[found.content..];
            if let Some(check_box) = parse_check_box(content) {
                let task = self.add_task(at, found, check_box, owner);
                self.items.push(OpenListItem { bullet: found, owner: task.or(owner) });
                return;
            }
            self.items.push(OpenListItem { bullet: found, owner });
            match parse_bullet(line.text, found.content, found.content_column) {
                Some(next) => found = next,
                None => break,
            }
        }
        self.add_detail(at);
        let body = &line.text[found.content..];
        if !self.open_hidden_block(body, &line, found.content) {
            self.read_metadata(at, found.content);
        }
    }

    /// Handles a checkbox: a task, unless its section is for people.
    fn add_task(
        &mut self,
        at: usize,
        bullet: ListBullet,
        check_box: CheckBox,
        parent: Option<usize>,
    ) -> Option<usize> {
        let section = self.sections.len().checked_sub(1);
        if let Some(section) = section.filter(|at| self.sections[*at].ignored) {
            self.sections[section].ignored_boxes += 1;
            return None;
        }
        let line = self.lines[at];
        let start = line.start + bullet.content;
        let mark = Span::new(start, start + check_box.bytes);
        if self.tasks.len() >= PLAN_TASKS_MAX {
            self.exceed_limit(format!("the plan has more than {PLAN_TASKS_MAX} tasks"), mark);
            return None;
        }
        if !check_box.known {
            let sign = &line.text[bullet.content..bullet.content + check_box.bytes];
            let code = &codes::PLAN_UNKNOWN_MARK;
            let message = format!("nobody knows what the box `{sign}` means");
            self.push_diagnostic(
                Diagnostic::new(code, message).at(self.source, mark).help(code.remedy),
            );
        }
        if let Some(parent) = parent {
            let parent = &mut self.tasks[parent];
            parent.has_child = true;
            parent.nested.get_or_insert_with(|| leading_whitespace(line.text).to_owned());
        }
        self.tasks.push(TaskDraft {
            check_box,
            mark,
            line: at,
            text_lines: 1,
            details: Vec::new(),
            own_end: line.end_offset(),
            bullet,
            nested: None,
            has_child: false,
            parent,
            section,
            priority: None,
            blocked_by: Vec::new(),
            skills: Vec::new(),
            specs: Vec::new(),
        });
        let task = self.tasks.len() - 1;
        self.open_text = Some(task);
        Some(task)
    }

    /// Handles prose: the continuation of a task's text, metadata, or text that does not matter.
    fn read_prose(&mut self, at: usize, body: &str) {
        let content = self.lines[at].text.len() - body.len();
        let task = self.open_text.filter(|_| !self.items.is_empty());
        if let Some(task) = task
            && self.tasks[task].text_lines < PLAN_TEXT_LINES_MAX
            && parse_metadata_line(body).is_none()
        {
            self.tasks[task].text_lines += 1;
            self.tasks[task].own_end = self.lines[at].end_offset();
            return;
        }
        self.open_text = None;
        self.add_detail(at);
        self.after_prose = self.items.is_empty();
        self.read_metadata(at, content);
    }

    /// Handles indented code. Authors who indent a list by four columns don't mean code, so boxes are reported.
    fn read_code(&mut self, at: usize) {
        self.open_text = None;
        let line = self.lines[at];
        let ignored = self.sections.last().is_some_and(|section| section.ignored);
        if self.items.is_empty() && has_box(line.text) && !ignored {
            let blanks = line.text.len() - line.text.trim_start().len();
            let code = &codes::PLAN_HIDDEN_TASK;
            let span = Span::new(line.start + blanks, line.end_offset());
            let message = "this box is indented like code, so it is no task";
            self.push_diagnostic(
                Diagnostic::new(code, message).at(self.source, span).help(code.remedy),
            );
        }
        self.add_detail(at);
        // Lines that follow without a blank line are code as well.
        self.after_blank = true;
    }

    /// Assigns a line to the innermost task it is nested in.
    fn add_detail(&mut self, at: usize) {
        let Some(owner) = self.items.last().and_then(|item| item.owner) else { return };
        let line = self.lines[at];
        let task = &mut self.tasks[owner];
        task.details.push(at);
        if !line.is_blank() && !task.has_child {
            task.own_end = line.end_offset();
            if bullet_at(line.text).is_some() {
                task.nested.get_or_insert_with(|| leading_whitespace(line.text).to_owned());
            }
        }
    }

    /// Reports a fence or comment that is still open at the end of the file.
    fn report_unclosed(&mut self) {
        let Some(hiding) = self.hiding.take() else { return };
        // A list item ends with the file, and so does everything in it.
        if hiding.inside > 0 && hiding.boxes == 0 {
            return;
        }
        let what = match hiding.kind {
            HiddenBlockKind::Fence(_) => "fence",
            HiddenBlockKind::Comment => "comment",
        };
        let code = &codes::PLAN_UNCLOSED;
        let mut found = Diagnostic::new(code, format!("this {what} is not closed"))
            .at(self.source, hiding.opened)
            .help(code.remedy);
        match hiding.boxes {
            0 => found = found.severity(repertoire_text::Severity::Warning),
            boxes => {
                let line = found.position.map_or(0, |position| position.line);
                let hidden = if boxes == 1 { "a box".to_owned() } else { format!("{boxes} boxes") };
                let why = format!("the {what} of line {line} is not closed and hides {hidden}");
                found.message = why.clone();
                self.fallback.get_or_insert(why);
            }
        }
        self.push_diagnostic(found);
    }

    fn exceed_limit(&mut self, why: String, span: Span) {
        if self.fallback.is_none() {
            let code = &codes::PLAN_TOO_LARGE;
            let found = Diagnostic::new(code, why.clone()).at(self.source, span);
            self.push_diagnostic(found.help(code.remedy));
            self.fallback = Some(why);
        }
    }

    fn push_diagnostic(&mut self, found: Diagnostic) {
        if self.found.len() < PLAN_FINDINGS_MAX {
            self.found.push(found);
        }
    }
}

fn bullet_at(line: &str) -> Option<ListBullet> {
    let (column, at) = measure_indent(line, 0);
    parse_bullet(line, at, column)
}

/// The leading whitespace of a line.
fn leading_whitespace(line: &str) -> &str {
    let (_, blanks) = measure_indent(line, 0);
    &line[..blanks]
}
