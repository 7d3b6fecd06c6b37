//! Renders the blocks of a step as text.

use super::super::hints;
use super::super::page::Page;
use crate::step::{AgentView, DispatchView, ViewBlock};
use crate::workflow::{Banner, ExpectedOutput, ModelSelection, PostReview, Route};

pub(super) fn show(page: &mut Page, block: &ViewBlock) {
    match block {
        ViewBlock::Text(text) => page.verbatim(0, text),
        ViewBlock::StateBanner(shown) => banner(page, shown),
        ViewBlock::Forbidden(all) => listed(page, 0, "Forbidden:", all),
        ViewBlock::ExpectedOutput(output) => expected_output(page, output),
        ViewBlock::Routing(cases) => {
            page.line(0, "What to do after which result:");
            routes(page, cases);
        }
        ViewBlock::PostQrRouting(post) => after_review(page, post),
        ViewBlock::Resource(resource) => {
            let purpose = match resource.purpose.as_str() {
                "" => String::new(),
                purpose => format!(": {purpose}"),
            };
            page.paragraph(0, &format!("Resource {}{purpose}", resource.name));
            page.verbatim(4, &resource.text);
        }
        ViewBlock::DetectionQuestions(asked) => {
            page.paragraph(0, &format!("Questions about {}:", asked.category));
            for question in &asked.questions {
                page.item(2, &format!("{}: ", question.id), &question.ask);
            }
        }
        ViewBlock::VerificationChecklist(items) => {
            page.line(0, "Make sure of:");
            for item in items {
                page.item(2, "[ ] ", &format!("{}: {}", item.element, item.criterion));
                if !item.if_missing.is_empty() {
                    page.item(6, "if not: ", &item.if_missing);
                }
            }
        }
        ViewBlock::IncorrectBehavior(wrong) => {
            page.item(0, "Wrong: ", &wrong.example);
            page.item(0, "What comes of it: ", &wrong.consequence);
        }
        ViewBlock::OrchestratorConstraint(text) => page.item(0, "Your part: ", text),
        ViewBlock::FactoredVerification(text) => page.item(0, "Criteria first: ", text),
        ViewBlock::OpenQuestions(text) => page.item(0, "How to ask: ", text),
        ViewBlock::ModelSelection(shown) => models(page, shown),
        ViewBlock::Dispatch(work) => dispatch(page, 0, work),
        ViewBlock::QrReport(form) => {
            page.line(0, "How the reviewer's answer ends:");
            page.item(2, "findings: ", &form.report);
            page.item(2, "what its reader does next: ", &form.orchestrator_action);
        }
    }
}

fn listed(page: &mut Page, indent: usize, heading: &str, entries: &[String]) {
    page.line(indent, heading);
    page.list(indent + 2, entries);
}

fn banner(page: &mut Page, banner: &Banner) {
    let iteration = banner.iteration.map(|iteration| format!("iteration {iteration}"));
    let parts = [Some(banner.checkpoint.clone()), iteration, Some(banner.mode.clone())];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    page.paragraph(0, &format!("== {} ==", parts.join(" · ")));
    for line in &banner.lines {
        page.paragraph(0, line);
    }
}

fn expected_output(page: &mut Page, output: &ExpectedOutput) {
    page.line(0, "What the answer looks like:");
    if !output.if_pass.is_empty() {
        page.line(2, "if all is well:");
        page.verbatim(4, &output.if_pass);
    }
    if !output.when_issues.is_empty() {
        page.line(2, "if something was found:");
        page.verbatim(4, &output.when_issues);
    }
    if !output.categories.is_empty() {
        page.item(2, "categories: ", &output.categories.join(", "));
    }
}

fn routes(page: &mut Page, routes: &[Route]) {
    for route in routes {
        page.item(2, &format!("{}: ", route.result), &route.action);
    }
}

fn after_review(page: &mut Page, post: &PostReview) {
    page.item(0, "After the review: ", &post.role);
    if !post.rule.is_empty() {
        page.paragraph(2, &post.rule);
    }
    routes(page, &post.routes);
    if !post.forbidden.is_empty() {
        listed(page, 2, "Forbidden:", &post.forbidden);
    }
}

fn models(page: &mut Page, models: &ModelSelection) {
    let why = match models.rationale.as_str() {
        "" => String::new(),
        rationale => format!(". {rationale}"),
    };
    page.item(0, "Model: ", &format!("{}{why}", models.default));
    for (agent, model) in &models.overrides {
        page.item(2, &format!("{agent}: "), model);
    }
}

fn dispatch(page: &mut Page, indent: usize, work: &DispatchView) {
    match work {
        DispatchView::Single(one) => {
            page.paragraph(indent, &format!("Start one sub-agent: {}", who(one)));
            brief(page, indent + 4, one);
        }
        DispatchView::Parallel { instruction, shared, agents } => {
            page.paragraph(indent, &format!("{} {}", hints::count_rule(agents.len()), hints::WAIT));
            if !instruction.is_empty() {
                page.paragraph(indent, instruction);
            }
            if !shared.is_empty() {
                page.line(indent, "All of them are told:");
                page.verbatim(indent + 4, shared);
            }
            for (at, one) in agents.iter().enumerate() {
                page.gap();
                page.item(indent, &format!("{}. ", at + 1), &who(one));
                brief(page, indent + 4, one);
            }
        }
        DispatchView::Conditional { condition, then, otherwise } => {
            page.item(indent, "If ", condition);
            dispatch(page, indent + 2, then);
            if let Some(other) = otherwise {
                page.line(indent, "Otherwise");
                dispatch(page, indent + 2, other);
            }
        }
        DispatchView::None { reason } => {
            page.item(indent, "No sub-agent is started: ", reason);
        }
    }
}

fn who(agent: &AgentView) -> String {
    let mut said = match agent.id.as_str() {
        "" => agent.agent.clone(),
        id => format!("{id} ({})", agent.agent),
    };
    if let Some(model) = &agent.model {
        said.push_str(&format!(", model {model}"));
    }
    said
}

fn brief(page: &mut Page, indent: usize, agent: &AgentView) {
    page.verbatim(indent, &agent.task);
    for (name, value) in &agent.context {
        page.item(indent, &format!("{name}: "), value);
    }
    if !agent.files.is_empty() {
        page.item(indent, "May change only: ", &agent.files.join(", "));
    }
    if !agent.returns.is_empty() {
        page.item(indent, "Gives back: ", &agent.returns);
    }
    if let Some(most) = agent.return_tokens_max {
        page.line(indent, &format!("Answers in at most {most} tokens."));
    }
    if let Some(command) = &agent.command {
        page.line(indent, "Its prompt begins with: Start by running:");
        page.command(indent + 2, command);
    }
}
