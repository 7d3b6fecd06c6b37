//! Renders the blocks of a step as text.

use super::super::hints;
use super::super::page::TextPage;
use crate::step::{AgentView, DispatchView, ViewBlock};
use crate::workflow::{ExpectedOutput, ModelSelection, PostReview, ResultRoute, StateBanner};

pub(super) fn write_block(page: &mut TextPage, block: &ViewBlock) {
    match block {
        ViewBlock::Text(text) => page.push_verbatim(0, text),
        ViewBlock::StateBanner(shown) => write_banner(page, shown),
        ViewBlock::Forbidden(all) => write_list(page, 0, "Forbidden:", all),
        ViewBlock::ExpectedOutput(output) => write_expected_output(page, output),
        ViewBlock::Routing(cases) => {
            page.push_line(0, "What to do after which result:");
            write_routes(page, cases);
        }
        ViewBlock::PostQrRouting(post) => write_post_review(page, post),
        ViewBlock::Resource(resource) => {
            let purpose = match resource.purpose.as_str() {
                "" => String::new(),
                purpose => format!(": {purpose}"),
            };
            page.push_paragraph(0, &format!("Resource {}{purpose}", resource.name));
            page.push_verbatim(4, &resource.text);
        }
        ViewBlock::DetectionQuestions(asked) => {
            page.push_paragraph(0, &format!("Questions about {}:", asked.category));
            for question in &asked.questions {
                page.push_item(2, &format!("{}: ", question.id), &question.ask);
            }
        }
        ViewBlock::VerificationChecklist(items) => {
            page.push_line(0, "Make sure of:");
            for item in items {
                page.push_item(2, "[ ] ", &format!("{}: {}", item.element, item.criterion));
                if !item.if_missing.is_empty() {
                    page.push_item(6, "if not: ", &item.if_missing);
                }
            }
        }
        ViewBlock::IncorrectBehavior(wrong) => {
            page.push_item(0, "Wrong: ", &wrong.example);
            page.push_item(0, "What comes of it: ", &wrong.consequence);
        }
        ViewBlock::OrchestratorConstraint(text) => page.push_item(0, "Your part: ", text),
        ViewBlock::FactoredVerification(text) => page.push_item(0, "Criteria first: ", text),
        ViewBlock::OpenQuestions(text) => page.push_item(0, "How to ask: ", text),
        ViewBlock::ModelSelection(shown) => write_models(page, shown),
        ViewBlock::Dispatch(work) => write_dispatch(page, 0, work),
        ViewBlock::QrReport(form) => {
            page.push_line(0, "How the reviewer's answer ends:");
            page.push_item(2, "findings: ", &form.report);
            page.push_item(2, "what its reader does next: ", &form.orchestrator_action);
        }
    }
}

fn write_list(page: &mut TextPage, indent: usize, heading: &str, entries: &[String]) {
    page.push_line(indent, heading);
    page.push_list(indent + 2, entries);
}

fn write_banner(page: &mut TextPage, banner: &StateBanner) {
    let iteration = banner.iteration.map(|iteration| format!("iteration {iteration}"));
    let parts = [Some(banner.checkpoint.clone()), iteration, Some(banner.mode.clone())];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    page.push_paragraph(0, &format!("== {} ==", parts.join(" · ")));
    for line in &banner.lines {
        page.push_paragraph(0, line);
    }
}

fn write_expected_output(page: &mut TextPage, output: &ExpectedOutput) {
    page.push_line(0, "What the answer looks like:");
    if !output.if_pass.is_empty() {
        page.push_line(2, "if all is well:");
        page.push_verbatim(4, &output.if_pass);
    }
    if !output.when_issues.is_empty() {
        page.push_line(2, "if something was found:");
        page.push_verbatim(4, &output.when_issues);
    }
    if !output.categories.is_empty() {
        page.push_item(2, "categories: ", &output.categories.join(", "));
    }
}

fn write_routes(page: &mut TextPage, routes: &[ResultRoute]) {
    for route in routes {
        page.push_item(2, &format!("{}: ", route.result), &route.action);
    }
}

fn write_post_review(page: &mut TextPage, post: &PostReview) {
    page.push_item(0, "After the review: ", &post.role);
    if !post.rule.is_empty() {
        page.push_paragraph(2, &post.rule);
    }
    write_routes(page, &post.routes);
    if !post.forbidden.is_empty() {
        write_list(page, 2, "Forbidden:", &post.forbidden);
    }
}

fn write_models(page: &mut TextPage, models: &ModelSelection) {
    let why = match models.rationale.as_str() {
        "" => String::new(),
        rationale => format!(". {rationale}"),
    };
    page.push_item(0, "Model: ", &format!("{}{why}", models.default));
    for (agent, model) in &models.overrides {
        page.push_item(2, &format!("{agent}: "), model);
    }
}

fn write_dispatch(page: &mut TextPage, indent: usize, work: &DispatchView) {
    match work {
        DispatchView::Single(one) => {
            page.push_paragraph(indent, &format!("Start one sub-agent: {}", agent_label(one)));
            write_brief(page, indent + 4, one);
        }
        DispatchView::Parallel { instruction, shared, agents } => {
            page.push_paragraph(
                indent,
                &format!("{} {}", hints::count_rule(agents.len()), hints::WAIT),
            );
            if !instruction.is_empty() {
                page.push_paragraph(indent, instruction);
            }
            if !shared.is_empty() {
                page.push_line(indent, "All of them are told:");
                page.push_verbatim(indent + 4, shared);
            }
            for (at, one) in agents.iter().enumerate() {
                page.push_gap();
                page.push_item(indent, &format!("{}. ", at + 1), &agent_label(one));
                write_brief(page, indent + 4, one);
            }
        }
        DispatchView::Conditional { condition, then, otherwise } => {
            page.push_item(indent, "If ", condition);
            write_dispatch(page, indent + 2, then);
            if let Some(other) = otherwise {
                page.push_line(indent, "Otherwise");
                write_dispatch(page, indent + 2, other);
            }
        }
        DispatchView::None { reason } => {
            page.push_item(indent, "No sub-agent is started: ", reason);
        }
    }
}

fn agent_label(agent: &AgentView) -> String {
    let mut said = match agent.id.as_str() {
        "" => agent.agent.clone(),
        id => format!("{id} ({})", agent.agent),
    };
    if let Some(model) = &agent.model {
        said.push_str(&format!(", model {model}"));
    }
    said
}

fn write_brief(page: &mut TextPage, indent: usize, agent: &AgentView) {
    page.push_verbatim(indent, &agent.task);
    for (name, value) in &agent.context {
        page.push_item(indent, &format!("{name}: "), value);
    }
    if !agent.files.is_empty() {
        page.push_item(indent, "May change only: ", &agent.files.join(", "));
    }
    if !agent.returns.is_empty() {
        page.push_item(indent, "Gives back: ", &agent.returns);
    }
    if let Some(most) = agent.return_tokens_max {
        page.push_line(indent, &format!("Answers in at most {most} tokens."));
    }
    if let Some(command) = &agent.command {
        page.push_line(indent, "Its prompt begins with: Start by running:");
        page.push_command(indent + 2, command);
    }
}
