//! Finds the templates in the text of a mode: the fenced block below a heading.

/// The content below a heading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TemplateSection<'a> {
    /// The text of the block, and its offset.
    Block(&'a str, usize),
    /// There is no such heading, or no block below it.
    Missing,
    /// The block is not closed; with its offset.
    Open(usize),
}

/// Finds the first fenced block below a heading of level two or three.
pub(super) fn block_below<'a>(body: &'a str, heading: &str) -> TemplateSection<'a> {
    let mut here = false;
    let mut at = 0;
    let mut fence: Option<TemplateFence> = None;
    for line in body.split_inclusive('\n') {
        let start = at;
        at += line.len();
        match &fence {
            Some(open) if open.is_closed_by(line) => {
                if here {
                    return TemplateSection::Block(&body[open.content..start], open.content);
                }
                fence = None;
            }
            Some(_) => {}
            None => match (TemplateFence::opened_by(line, at), parse_heading(line)) {
                (Some(opened), _) => fence = Some(opened),
                (None, Some((level, text))) => {
                    // Another heading of any level ends the section.
                    here = matches!(level, 2 | 3) && text.eq_ignore_ascii_case(heading);
                }
                (None, None) => {}
            },
        }
    }
    match fence {
        Some(open) if here => TemplateSection::Open(open.content),
        _ => TemplateSection::Missing,
    }
}

struct TemplateFence {
    mark: char,
    length: usize,
    /// The offset of the block's text.
    content: usize,
}

impl TemplateFence {
    fn opened_by(line: &str, content: usize) -> Option<TemplateFence> {
        let bare = line.trim_start();
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = bare.chars().take_while(|c| *c == mark).count();
        let info = &bare[length..];
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(TemplateFence {
            mark,
            length,
            content,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let bare = line.trim();
        bare.chars().count() >= self.length && bare.chars().all(|c| c == self.mark)
    }
}

fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let text = line[level..].trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && line[level..].starts_with([' ', '\t'])).then_some((level, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expect: TemplateSection<'_>) {
        assert_eq!(block_below(body, "User Prompt Template"), expect, "{body:?}");
    }

    #[test]
    fn headings_of_two_levels_have_templates() {
        check(
            "## User Prompt Template\n\n```text\na\nb\n```\n",
            TemplateSection::Block("a\nb\n", 33),
        );
        check("### user prompt template ###\n~~~\na\n~~~\n", TemplateSection::Block("a\n", 33));
    }

    #[test]
    fn other_headings_and_blocks_have_none() {
        check("# User Prompt Template\n```\na\n```\n", TemplateSection::Missing);
        check("## User Prompt Template\ntext\n", TemplateSection::Missing);
        check("## User Prompt Template\n## Next\n```\na\n```\n", TemplateSection::Missing);
        check("##User Prompt Template\n```\na\n```\n", TemplateSection::Missing);
        check("```\n## User Prompt Template\n```\n```\nb\n```\n", TemplateSection::Missing);
    }

    #[test]
    fn a_longer_fence_may_hold_a_shorter_one() {
        let body = "## User Prompt Template\n````\na\n```\nb\n```\n````\n";
        check(body, TemplateSection::Block("a\n```\nb\n```\n", 29));
    }

    #[test]
    fn a_block_that_is_not_closed_is_told() {
        check("## User Prompt Template\n```\na\n", TemplateSection::Open(28));
    }
}
