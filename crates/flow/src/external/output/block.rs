//! Parses what a script says to do into blocks: known tags, and the text between them.

use super::super::scan::{self, Close, Tag};
use crate::step::{AgentView, Command, DispatchView, ResourceView, ViewBlock};
use crate::workflow::{
    Banner, ChecklistItem, DetectionQuestions, ExpectedOutput, IncorrectBehavior, PostReview,
    Question, Route,
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
pub(super) fn read(actions: &str) -> Vec<ViewBlock> {
    let mut blocks = Vec::new();
    let mut from = 0;
    for tag in scan::find_all(actions, &KNOWN) {
        if let Some(block) = block(&tag) {
            text(&actions[from..tag.start], &mut blocks);
            blocks.push(block);
            from = tag.end;
        }
    }
    text(&actions[from..], &mut blocks);
    blocks
}

fn text(text: &str, blocks: &mut Vec<ViewBlock>) {
    let text = dedented(text);
    if !text.is_empty() {
        blocks.push(ViewBlock::Text(text));
    }
}

/// Removes the common indentation and the blank lines around a text.
fn dedented(text: &str) -> String {
    let filled = || text.lines().filter(|line| !line.trim().is_empty());
    let indent = filled().map(|line| line.len() - line.trim_start_matches(' ').len()).min();
    let cut = |line: &str| {
        line.get(indent.unwrap_or_default()..).unwrap_or_default().trim_end().to_owned()
    };
    let lines: Vec<String> = text.lines().map(cut).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn block(tag: &Tag<'_>) -> Option<ViewBlock> {
    Some(match tag.name {
        "state_banner" => ViewBlock::StateBanner(Banner {
            checkpoint: tag.attribute("checkpoint")?,
            mode: tag.attribute("mode").unwrap_or_default(),
            lines: lines(tag.inner),
            iteration: tag.attribute("iteration").and_then(|value| value.parse().ok()),
        }),
        "forbidden" => ViewBlock::Forbidden(prohibitions(tag.inner)),
        "expected_output" => ViewBlock::ExpectedOutput(expected_output(tag.inner)),
        "routing" => ViewBlock::Routing(
            scan::find_all(tag.inner, &["case"])
                .iter()
                .filter_map(|case| {
                    Some(Route { result: case.attribute("result")?, action: dedented(case.inner) })
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
            questions: scan::find_all(tag.inner, &["question"])
                .iter()
                .map(|question| Question {
                    id: question.attribute("id").unwrap_or_default(),
                    ask: dedented(question.inner),
                })
                .collect(),
        }),
        "verification_checklist" => ViewBlock::VerificationChecklist(
            scan::find_all(tag.inner, &["check"])
                .iter()
                .map(|check| ChecklistItem {
                    element: check.attribute("element").unwrap_or_default(),
                    criterion: check.attribute("criterion").unwrap_or_default(),
                    if_missing: check.attribute("if_missing").unwrap_or_default(),
                })
                .collect(),
        ),
        "incorrect_behavior" => ViewBlock::IncorrectBehavior(IncorrectBehavior {
            example: inside(tag.inner, "example"),
            consequence: inside(tag.inner, "consequence"),
        }),
        "orchestrator_constraint" => ViewBlock::OrchestratorConstraint(dedented(tag.inner)),
        "factored_verification" => ViewBlock::FactoredVerification(dedented(tag.inner)),
        "verification_principle" => ViewBlock::OpenQuestions(dedented(tag.inner)),
        "subagent_dispatch" => ViewBlock::Dispatch(DispatchView::Single(agent(tag)?)),
        "parallel_dispatch" => ViewBlock::Dispatch(parallel(tag)?),
        _ => return None,
    })
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the text in the first tag of this name.
fn inside(text: &str, name: &str) -> String {
    scan::find(text, &[name], Close::Own)
        .map(|tag| dedented(tag.inner).trim().to_owned())
        .unwrap_or_default()
}

/// Parses one prohibition per tag, or else one per line.
fn prohibitions(text: &str) -> Vec<String> {
    let tagged = scan::find_all(text, &["action"]);
    if tagged.is_empty() {
        lines(text)
    } else {
        tagged.iter().map(|tag| tag.inner.trim().to_owned()).collect()
    }
}

fn expected_output(text: &str) -> ExpectedOutput {
    let issues = ["when_issues", "if_issues"].map(|name| inside(text, name));
    ExpectedOutput {
        if_pass: inside(text, "if_pass"),
        when_issues: issues.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
        categories: scan::find_all(text, &["category"])
            .iter()
            .map(|tag| tag.inner.trim().to_owned())
            .collect(),
    }
}

fn post_review(text: &str) -> PostReview {
    PostReview {
        gate: None,
        role: inside(text, "role"),
        rule: inside(text, "pedantic_mode"),
        routes: table(&inside(text, "routing_table")),
        forbidden: scan::find(text, &["forbidden"], Close::Own)
            .map(|tag| prohibitions(tag.inner))
            .unwrap_or_default(),
    }
}

/// Parses the rows of a table of results and actions, without its header.
fn table(text: &str) -> Vec<Route> {
    let is_rule = |line: &&str| line.contains("---");
    let rows = text.lines().skip_while(|line| !is_rule(line)).skip(1);
    rows.filter_map(|line| match table_cells(line).as_slice() {
        [result, action] => Some(Route { result: result.clone(), action: action.clone() }),
        _ => None,
    })
    .collect()
}

fn table_cells(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn agent(tag: &Tag<'_>) -> Option<AgentView> {
    let context = scan::find(tag.inner, &["context"], Close::Own).map(|context| {
        let vars = scan::find_all(context.inner, &["var"]);
        let var = |var: &Tag<'_>| Some((var.attribute("name")?, dedented(var.inner)));
        vars.iter().filter_map(var).collect()
    });
    let free = ["free_form_instruction", "task"].map(|name| inside(tag.inner, name));
    Some(AgentView {
        agent: tag.attribute("agent")?,
        model: tag.attribute("model"),
        task: free.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
        context: context.unwrap_or_default(),
        command: invoked(tag.inner),
        ..AgentView::default()
    })
}

/// The command of a sub-agent, verbatim: it may contain `$NAMES` that the agent fills in.
fn invoked(text: &str) -> Option<Command> {
    let tag = scan::find(text, &["invoke"], Close::Own)?;
    let line = tag.attribute("cmd").unwrap_or_else(|| tag.inner.trim().to_owned());
    let argv = Command::split(&line)
        .unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    Some(Command { argv, line })
}

/// Parses a dispatch of several sub-agents. Returns `None` if they are not listed individually; the tag then stays
/// text.
fn parallel(tag: &Tag<'_>) -> Option<DispatchView> {
    let listed = scan::find(tag.inner, &["agents"], Close::Own)?;
    let command = invoked(tag.inner);
    let role = tag.attribute("agent").unwrap_or_else(|| "general-purpose".to_owned());
    let one = |(at, one): (usize, &Tag<'_>)| AgentView {
        id: ["id", "name", "index"]
            .iter()
            .find_map(|name| one.attribute(name))
            .unwrap_or_else(|| (at + 1).to_string()),
        agent: role.clone(),
        model: one.attribute("model"),
        task: dedented(one.inner).trim().to_owned(),
        command: command.clone(),
        ..AgentView::default()
    };
    let agents: Vec<AgentView> =
        scan::find_all(listed.inner, &["agent"]).iter().enumerate().map(one).collect();
    (!agents.is_empty()).then(|| DispatchView::Parallel {
        instruction: inside(tag.inner, "instruction"),
        shared: inside(tag.inner, "shared_context"),
        agents,
    })
}
