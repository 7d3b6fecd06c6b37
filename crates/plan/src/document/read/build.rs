//! Turns drafts into a plan: parses texts, assigns ids, resolves blockers and applies inheritance.

use repertoire_text::source::Span;
use repertoire_text::{Diagnostic, Source};

use super::{PlanDraft, TaskDraft};
use crate::codes;
use crate::document::inline::{InlineText, PlanParagraph, parse_task_text};
use crate::document::lines::{PlanLine, measure_indent};
use crate::document::specs::is_document;
use crate::document::{
    BlockerTarget, PlanDocument, PlanFormat, PlanSection, PlanTask, TaskBlocker, TaskId,
    TaskPriority, TaskSpans, blockers, check, ids,
};
use crate::limits::{PLAN_FINDINGS_MAX, PLAN_HINTS_MAX};

/// Builds the plan.
pub(super) fn build_plan(drafts: PlanDraft<'_>, source: Source) -> PlanDocument {
    let PlanDraft { lines, title, sections, tasks, mut fallback, found } = drafts;
    let texts: Vec<(PlanParagraph, InlineText)> =
        tasks.iter().map(|draft| parse_draft_text(draft, &lines)).collect();
    let named = texts.iter().map(|(_, said)| (said.label.as_deref(), said.normal.as_str()));
    let ids = ids::assign_ids(named);
    let format = detect_format(&source, &sections, &texts);
    let mut built: Vec<PlanTask> = Vec::with_capacity(tasks.len());
    for (at, (draft, (paragraph, said))) in tasks.into_iter().zip(texts).enumerate() {
        let parent = draft.parent.and_then(|parent| built.get(parent));
        let above = TaskAncestors { parent, sections: &sections, format };
        let task = build_task(&draft, said, &paragraph, &lines, &above);
        built.push(PlanTask { id: ids[at].clone(), ..task });
    }
    let mut diagnostics = found;
    if built.is_empty() && fallback.is_none() {
        let code = &codes::PLAN_NO_TASKS;
        let why = "the plan has no task".to_owned();
        let found = Diagnostic::new(code, why.clone()).in_file(source.path()).help(code.remedy);
        diagnostics.push(found);
        fallback = Some(why);
    }
    let mut plan =
        PlanDocument { title, sections, tasks: built, format, fallback, diagnostics, source };
    blockers::resolve_blockers(&mut plan);
    let waiting = check::check_blockers(&plan);
    let room = PLAN_FINDINGS_MAX.saturating_sub(plan.diagnostics.len());
    plan.diagnostics.extend(waiting.into_iter().take(room));
    plan.diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    plan
}

/// The text of a task: the rest of the line after its box, and the lines that continue it.
fn parse_draft_text(draft: &TaskDraft, lines: &[PlanLine<'_>]) -> (PlanParagraph, InlineText) {
    let head = lines[draft.line];
    let after = draft.mark.range().end - head.start + usize::from(draft.check_box.optional);
    let mut paragraph = PlanParagraph::default();
    paragraph.push_line(head.start + after, &head.text[after..]);
    for line in &lines[draft.line + 1..draft.line + draft.text_lines] {
        paragraph.push_line(line.start, line.text);
    }
    let said = parse_task_text(&paragraph.text);
    (paragraph, said)
}

/// The sources a task inherits from.
struct TaskAncestors<'a> {
    parent: Option<&'a PlanTask>,
    sections: &'a [PlanSection],
    format: PlanFormat,
}

impl TaskAncestors<'_> {
    fn enclosing_sections(&self, from: Option<usize>) -> impl Iterator<Item = &PlanSection> {
        std::iter::successors(from, |at| self.sections[*at].parent).map(|at| &self.sections[at])
    }

    /// The inherited priority. spec-kit gives its stories priorities, yet expects its phases to be done in order.
    fn inherited_priority(&self, section: Option<usize>) -> Option<TaskPriority> {
        if let Some(parent) = self.parent {
            return Some(parent.priority);
        }
        let mut sections =
            self.enclosing_sections(section).filter(|_| self.format != PlanFormat::SpecKit);
        sections.find_map(|section| section.priority)
    }
}

fn build_task(
    draft: &TaskDraft,
    said: InlineText,
    paragraph: &PlanParagraph,
    lines: &[PlanLine<'_>],
    above: &TaskAncestors<'_>,
) -> PlanTask {
    let head = lines[draft.line];
    let inline = said.blockers.iter().map(|(text, range)| TaskBlocker {
        text: text.clone(),
        on: BlockerTarget::Nothing,
        at: paragraph.file_span(range),
    });
    let own_hints = said
        .hints
        .iter()
        .map(|(name, range)| (name.clone(), paragraph.file_span(range)))
        .chain(draft.skills.iter().cloned());
    let own_hints: Vec<(String, Span)> = own_hints.take(PLAN_HINTS_MAX).collect();
    let inherited = above.parent.iter().flat_map(|parent| &parent.hints);
    let inherited = inherited
        .chain(above.enclosing_sections(draft.section).flat_map(|section| &section.hints))
        .cloned();
    let hints = own_hints.iter().map(|(name, _)| name.clone()).chain(inherited);
    let hints = unique_names(hints, PLAN_HINTS_MAX);
    let optional = draft.check_box.optional.then_some(TaskPriority::Low);
    let priority = said
        .priority
        .or(draft.priority)
        .or(optional)
        .or_else(|| above.inherited_priority(draft.section));
    let (spec_refs, specs) = collect_specs(&said, draft, paragraph);
    let places = TaskSpans {
        mark: draft.mark,
        known: draft.check_box.known,
        ticked: draft.check_box.ticked,
        head: Span::new(draft.mark.range().start, head.start + head.text.trim_end().len()),
        hints: own_hints,
        coded_hints: said.coded_hints.iter().map(|range| paragraph.file_span(range)).collect(),
        specs,
        text_end: lines[draft.line + draft.text_lines - 1].end_offset(),
        own_end: draft.own_end,
        nested: draft.nested.clone().unwrap_or_else(|| nested_indent(draft, head)),
    };
    PlanTask {
        id: TaskId::new(""),
        label: said.label,
        text: said.text,
        mark: draft.check_box.mark,
        section: draft.section,
        parent: above.parent.map(|parent| parent.id.clone()),
        priority: priority.unwrap_or_default(),
        blocked_by: inline.chain(draft.blocked_by.iter().cloned()).collect(),
        hints,
        spec_refs,
        details: collect_details(draft, lines),
        parallel: said.parallel,
        story: said.story,
        line: draft.line + 1,
        at: places,
    }
}

/// References in the text and on lines of their own; those that name files come with their span.
fn collect_specs(
    said: &InlineText,
    draft: &TaskDraft,
    paragraph: &PlanParagraph,
) -> (Vec<String>, Vec<(String, Span)>) {
    let mut refs = Vec::new();
    let mut files = Vec::new();
    for (text, range) in &said.refs {
        refs.push(text.clone());
        files.extend(range.as_ref().map(|range| (text.clone(), paragraph.file_span(range))));
    }
    for (text, span) in &draft.specs {
        let opaque = crate::document::opaque::OpaqueParts::find_parts(text);
        let within = crate::document::specs::find_spec_refs(text, &opaque);
        if within.is_empty() {
            refs.push(text.clone());
        }
        for (found, range) in within {
            if let Some(range) = range.filter(|_| is_document(&found)) {
                let start = span.range().start + range.start;
                files.push((found.clone(), Span::new(start, start + found.len())));
            }
            refs.push(found);
        }
    }
    (unique_names(refs, PLAN_HINTS_MAX), files)
}

/// Removes duplicates, keeping the order, and caps the number.
fn unique_names(names: impl IntoIterator<Item = String>, most: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        if out.len() < most && !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// The lines below a task, without their common indentation.
fn collect_details(draft: &TaskDraft, lines: &[PlanLine<'_>]) -> String {
    let own: Vec<&str> = draft.details.iter().map(|at| lines[*at].text.trim_end()).collect();
    let first = own.iter().position(|line| !line.is_empty()).unwrap_or(own.len());
    let last = own.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
    let own = &own[first..last];
    let shared = own
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| measure_indent(line, 0).0)
        .min()
        .unwrap_or(0);
    let mut out = String::new();
    for line in own {
        if !out.is_empty() {
            out.push('\n');
        }
        let (columns, blanks) = measure_indent(line, 0);
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', columns - shared));
        }
        out.push_str(&line[blanks..]);
    }
    out
}

/// The indentation for a line nested below a task that has none yet.
fn nested_indent(draft: &TaskDraft, head: PlanLine<'_>) -> String {
    let (_, blanks) = measure_indent(head.text, 0);
    let before = &head.text[..blanks];
    if before.contains('\t') {
        format!("{before}\t")
    } else {
        " ".repeat(draft.bullet.content_column)
    }
}

/// Detects the conventions of the file from its path and the labels of its tasks.
fn detect_format(
    source: &Source,
    sections: &[PlanSection],
    texts: &[(PlanParagraph, InlineText)],
) -> PlanFormat {
    let path = source.path().as_str().replace('\\', "/").to_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let labels = || texts.iter().filter_map(|(_, said)| said.label.as_deref());
    let is_numbered = |label: &str| label.strip_prefix('T').is_some_and(|rest| rest.len() >= 3);
    let stories = texts.iter().any(|(_, said)| said.parallel || said.story.is_some());
    if labels().any(is_numbered) && (stories || name == "tasks.md") {
        return PlanFormat::SpecKit;
    }
    let in_change = path.starts_with("openspec/") || path.contains("/openspec/");
    let numbered = |section: &PlanSection| section.title.starts_with(|c: char| c.is_ascii_digit());
    let dotted = labels().next().is_some_and(|label| label.contains('.'));
    if in_change || name == "tasks.md" && dotted && sections.iter().any(numbered) {
        return PlanFormat::OpenSpec;
    }
    if name == "tasks.md" { PlanFormat::Tasks } else { PlanFormat::Loop }
}
