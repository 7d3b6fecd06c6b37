//! Parses what a script says to do into blocks: known tags, and the text between them.

use super::super::scan::{self, ClosingTag, ScriptTag};
use crate::step::{AgentView, DispatchView, ResourceView, ShellCommand, ViewBlock};
use crate::workflow::{
    ChecklistItem, DetectionQuestion, DetectionQuestions, ExpectedOutput, IncorrectBehavior,
    PostReview, ResultRoute, StateBanner,
};

/// Tags that have a block of their own. Other tags stay in the text.
const KNOWN: [&str; 14] = [
    "state_banner",
    "forbidden",
    "expected_output",
    "routing",
    "post_qr_routing",
    "resource",
    "detection_questions",
    "verification_checklist",
    "incorrect_behavior",
    "orchestrator_constraint",
    "factored_verification",
    "verification_principle",
    "subagent_dispatch",
    "parallel_dispatch",
];

/// Splits the instructions into blocks.
pub(super) fn split_blocks(actions: &str) -> Vec<ViewBlock> {
    let mut blocks = Vec::new();
    let mut from = 0;
    for tag in scan::find_tags(actions, &KNOWN) {
        if let Some(block) = parse_block(&tag) {
            push_text(&actions[from..tag.start], &mut blocks);
            blocks.push(block);
            from = tag.end;
        }
    }
    push_text(&actions[from..], &mut blocks);
    blocks
}

fn push_text(text: &str, blocks: &mut Vec<ViewBlock>) {
    let text = dedent_text(text);
    if !text.is_empty() {
        blocks.push(ViewBlock::Text(text));
    }
}

/// Removes the common indentation and the blank lines around a text.
fn dedent_text(text: &str) -> String {
    let filled = || text.lines().filter(|line| !line.trim().is_empty());
    let indent = filled().map(|line| line.len() - line.trim_start_matches(' ').len()).min();
    let cut = |line: &str| {
        line.get(indent.unwrap_or_default()..).unwrap_or_default().trim_end().to_owned()
    };
    let lines: Vec<String> = text.lines().map(cut).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn parse_block(tag: &ScriptTag<'_>) -> Option<ViewBlock> {
    Some(match tag.name {
        "state_banner" => ViewBlock::StateBanner(StateBanner {
            checkpoint: tag.attribute("checkpoint")?,
            mode: tag.attribute("mode").unwrap_or_default(),
            lines: trimmed_lines(tag.inner),
            iteration: tag.attribute("iteration").and_then(|value| value.parse().ok()),
        }),
        "forbidden" => ViewBlock::Forbidden(parse_prohibitions(tag.inner)),
        "expected_output" => ViewBlock::ExpectedOutput(expected_output(tag.inner)),
        "routing" => ViewBlock::Routing(
            scan::find_tags(tag.inner, &["case"])
                .iter()
                .filter_map(|case| {
                    Some(ResultRoute {
                        result: case.attribute("result")?,
                        action: dedent_text(case.inner),
                    })
                })
                .collect(),
        ),
        "post_qr_routing" => ViewBlock::PostQrRouting(post_review(tag.inner)),
        "resource" => ViewBlock::Resource(ResourceView {
            name: tag.attribute("name")?,
            purpose: tag.attribute("purpose").unwrap_or_default(),
            text: tag.inner.trim_matches('\n').to_owned(),
        }),
        "detection_questions" => ViewBlock::DetectionQuestions(DetectionQuestions {
            category: tag.attribute("category").unwrap_or_default(),
            questions: scan::find_tags(tag.inner, &["question"])
                .iter()
                .map(|question| DetectionQuestion {
                    id: question.attribute("id").unwrap_or_default(),
                    ask: dedent_text(question.inner),
                })
                .collect(),
        }),
        "verification_checklist" => ViewBlock::VerificationChecklist(
            scan::find_tags(tag.inner, &["check"])
                .iter()
                .map(|check| ChecklistItem {
                    element: check.attribute("element").unwrap_or_default(),
                    criterion: check.attribute("criterion").unwrap_or_default(),
                    if_missing: check.attribute("if_missing").unwrap_or_default(),
                })
                .collect(),
        ),
        "incorrect_behavior" => ViewBlock::IncorrectBehavior(IncorrectBehavior {
            example: tag_text(tag.inner, "example"),
            consequence: tag_text(tag.inner, "consequence"),
        }),
        "orchestrator_constraint" => ViewBlock::OrchestratorConstraint(dedent_text(tag.inner)),
        "factored_verification" => ViewBlock::FactoredVerification(dedent_text(tag.inner)),
        "verification_principle" => ViewBlock::OpenQuestions(dedent_text(tag.inner)),
        "subagent_dispatch" => ViewBlock::Dispatch(DispatchView::Single(parse_agent(tag)?)),
        "parallel_dispatch" => ViewBlock::Dispatch(parse_parallel_dispatch(tag)?),
        _ => return None,
    })
}

fn trimmed_lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the text in the first tag of this name.
fn tag_text(text: &str, name: &str) -> String {
    scan::find_tag(text, &[name], ClosingTag::Own)
        .map(|tag| dedent_text(tag.inner).trim().to_owned())
        .unwrap_or_default()
}

/// Parses one prohibition per tag, or else one per line.
fn parse_prohibitions(text: &str) -> Vec<String> {
    let tagged = scan::find_tags(text, &["action"]);
    if tagged.is_empty() {
        trimmed_lines(text)
    } else {
        tagged.iter().map(|tag| tag.inner.trim().to_owned()).collect()
    }
}

fn expected_output(text: &str) -> ExpectedOutput {
    let issues = ["when_issues", "if_issues"].map(|name| tag_text(text, name));
    ExpectedOutput {
        if_pass: tag_text(text, "if_pass"),
        when_issues: issues.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
        categories: scan::find_tags(text, &["category"])
            .iter()
            .map(|tag| tag.inner.trim().to_owned())
            .collect(),
    }
}

fn post_review(text: &str) -> PostReview {
    PostReview {
        gate: None,
        role: tag_text(text, "role"),
        rule: tag_text(text, "pedantic_mode"),
        routes: parse_route_table(&tag_text(text, "routing_table")),
        forbidden: scan::find_tag(text, &["forbidden"], ClosingTag::Own)
            .map(|tag| parse_prohibitions(tag.inner))
            .unwrap_or_default(),
    }
}

/// Parses the rows of a table of results and actions, without its header.
fn parse_route_table(text: &str) -> Vec<ResultRoute> {
    let is_rule = |line: &&str| line.contains("---");
    let rows = text.lines().skip_while(|line| !is_rule(line)).skip(1);
    rows.filter_map(|line| match table_cells(line).as_slice() {
        [result, action] => Some(ResultRoute { result: result.clone(), action: action.clone() }),
        _ => None,
    })
    .collect()
}

fn table_cells(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn parse_agent(tag: &ScriptTag<'_>) -> Option<AgentView> {
    let context = scan::find_tag(tag.inner, &["context"], ClosingTag::Own).map(|context| {
        let vars = scan::find_tags(context.inner, &["var"]);
        let var = |var: &ScriptTag<'_>| Some((var.attribute("name")?, dedent_text(var.inner)));
        vars.iter().filter_map(var).collect()
    });
    let free = ["free_form_instruction", "task"].map(|name| tag_text(tag.inner, name));
    Some(AgentView {
        agent: tag.attribute("agent")?,
        model: tag.attribute("model"),
        task: free.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
        context: context.unwrap_or_default(),
        command: parse_invocation(tag.inner),
        ..AgentView::default()
    })
}

/// The command of a sub-agent, verbatim: it may contain `$NAMES` that the agent fills in.
fn parse_invocation(text: &str) -> Option<ShellCommand> {
    let tag = scan::find_tag(text, &["invoke"], ClosingTag::Own)?;
    let line = tag.attribute("cmd").unwrap_or_else(|| tag.inner.trim().to_owned());
    let argv = ShellCommand::split_line(&line)
        .unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    Some(ShellCommand { argv, line })
}

/// Parses a dispatch of several sub-agents. Returns `None` if they are not listed individually; the tag then stays
/// text.
fn parse_parallel_dispatch(tag: &ScriptTag<'_>) -> Option<DispatchView> {
    let listed = scan::find_tag(tag.inner, &["agents"], ClosingTag::Own)?;
    let command = parse_invocation(tag.inner);
    let role = tag.attribute("agent").unwrap_or_else(|| "general-purpose".to_owned());
    let one = |(at, one): (usize, &ScriptTag<'_>)| AgentView {
        id: ["id", "name", "index"]
            .iter()
            .find_map(|name| one.attribute(name))
            .unwrap_or_else(|| (at + 1).to_string()),
        agent: role.clone(),
        model: one.attribute("model"),
        task: dedent_text(one.inner).trim().to_owned(),
        command: command.clone(),
        ..AgentView::default()
    };
    let agents: Vec<AgentView> =
        scan::find_tags(listed.inner, &["agent"]).iter().enumerate().map(one).collect();
    (!agents.is_empty()).then(|| DispatchView::Parallel {
        instruction: tag_text(tag.inner, "instruction"),
        shared: tag_text(tag.inner, "shared_context"),
        agents,
    })
}
