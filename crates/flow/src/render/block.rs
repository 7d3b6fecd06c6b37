//! Renders the blocks of a step as XML elements.

use super::hints;
use super::tree::{XmlElement, new_element};
use super::xml::command_element;
use crate::step::{AgentView, DispatchView, ViewBlock};
use crate::workflow::{ExpectedOutput, ModelSelection, PostReview, ResultRoute, StateBanner};

pub(super) fn block_element(block: &ViewBlock) -> XmlElement<'_> {
    match block {
        ViewBlock::Text(text) => new_element("text").text(text.as_str()),
        ViewBlock::StateBanner(banner) => state_banner(banner),
        ViewBlock::Forbidden(all) => forbidden_element(all),
        ViewBlock::ExpectedOutput(output) => expected_output(output),
        ViewBlock::Routing(routes) => cases_element("routing", routes),
        ViewBlock::PostQrRouting(post) => post_qr_routing(post),
        ViewBlock::Resource(resource) => new_element("resource")
            .with("name", resource.name.as_str())
            .with_any("purpose", &resource.purpose)
            .text(resource.text.as_str()),
        ViewBlock::DetectionQuestions(asked) => new_element("detection_questions")
            .with("category", asked.category.as_str())
            .all(asked.questions.iter().map(|question| {
                new_element("question").with("id", question.id.as_str()).text(question.ask.as_str())
            })),
        ViewBlock::VerificationChecklist(items) => {
            new_element("verification_checklist").all(items.iter().map(|item| {
                new_element("check")
                    .with("element", item.element.as_str())
                    .with("criterion", item.criterion.as_str())
                    .with_any("if_missing", &item.if_missing)
            }))
        }
        ViewBlock::IncorrectBehavior(wrong) => new_element("incorrect_behavior")
            .child(new_element("example").text(wrong.example.as_str()))
            .child(new_element("consequence").text(wrong.consequence.as_str())),
        ViewBlock::OrchestratorConstraint(text) => {
            new_element("orchestrator_constraint").text(text.as_str())
        }
        ViewBlock::FactoredVerification(text) => {
            new_element("factored_verification_rationale").text(text.as_str())
        }
        ViewBlock::OpenQuestions(text) => new_element("open_question_guidance").text(text.as_str()),
        ViewBlock::ModelSelection(models) => model_selection(models),
        ViewBlock::Dispatch(work) => dispatch_element(work),
        ViewBlock::QrReport(form) => new_element("qr_file_output")
            .child(new_element("report").text(form.report.as_str()))
            .child(new_element("orchestrator_action").text(form.orchestrator_action.as_str())),
    }
}

fn state_banner(banner: &StateBanner) -> XmlElement<'_> {
    let start = new_element("state_banner").with("checkpoint", banner.checkpoint.as_str());
    let start = match banner.iteration {
        Some(iteration) => start.with_number("iteration", iteration),
        None => start,
    };
    start
        .with_any("mode", &banner.mode)
        .all(banner.lines.iter().map(|line| new_element("line").text(line.as_str())))
}

fn forbidden_element(all: &[String]) -> XmlElement<'_> {
    new_element("forbidden").all(all.iter().map(|text| new_element("action").text(text.as_str())))
}

fn expected_output(output: &ExpectedOutput) -> XmlElement<'_> {
    let categories = || {
        let all = output.categories.iter().map(|name| new_element("category").text(name.as_str()));
        new_element("categories").all(all)
    };
    new_element("expected_output")
        .child_any("if_pass", &output.if_pass)
        .child_any("when_issues", &output.when_issues)
        .child_some((!output.categories.is_empty()).then(categories))
}

fn cases_element<'a>(name: &'static str, routes: &'a [ResultRoute]) -> XmlElement<'a> {
    new_element(name).all(routes.iter().map(|route| {
        new_element("case").with("result", route.result.as_str()).text(route.action.as_str())
    }))
}

fn post_qr_routing(post: &PostReview) -> XmlElement<'_> {
    new_element("post_qr_routing")
        .with_some("gate", post.gate.as_ref().map(crate::workflow::StepId::as_str))
        .child(new_element("role").text(post.role.as_str()))
        .child_any("pedantic_mode", &post.rule)
        .child_some((!post.routes.is_empty()).then(|| cases_element("routing_table", &post.routes)))
        .child_some((!post.forbidden.is_empty()).then(|| forbidden_element(&post.forbidden)))
}

fn model_selection(models: &ModelSelection) -> XmlElement<'_> {
    new_element("model_selection")
        .with("default", models.default.as_str())
        .child_any("rationale", &models.rationale)
        .all(models.overrides.iter().map(|(agent, model)| {
            new_element("override").with("agent", agent.as_str()).text(model.as_str())
        }))
}

fn dispatch_element(work: &DispatchView) -> XmlElement<'_> {
    match work {
        DispatchView::Single(one) => agent_element("subagent_dispatch", one),
        DispatchView::Parallel { instruction, shared, agents } => new_element("parallel_dispatch")
            .with_number("count", agents.len())
            .child(new_element("mandatory").text(hints::count_rule(agents.len())))
            .child_any("instruction", instruction)
            .child_any("shared_context", shared)
            .child(new_element("agents").all(agents.iter().map(|one| agent_element("agent", one))))
            .child(new_element("wait").text(hints::WAIT)),
        DispatchView::Conditional { condition, then, otherwise } => {
            new_element("conditional_dispatch")
                .child(new_element("condition").text(condition.as_str()))
                .child(new_element("then").child(dispatch_element(then)))
                .child_some(
                    otherwise
                        .as_ref()
                        .map(|other| new_element("else").child(dispatch_element(other))),
                )
        }
        DispatchView::None { reason } => new_element("no_dispatch").text(reason.as_str()),
    }
}

fn agent_element<'a>(name: &'static str, one: &'a AgentView) -> XmlElement<'a> {
    let start = new_element(name)
        .with("agent", one.agent.as_str())
        .with("mode", hints::agent_mode(one))
        .with_any("id", &one.id)
        .with_some("model", one.model.as_deref());
    let start = match one.return_tokens_max {
        Some(most) => start.with_number("return_tokens_max", most),
        None => start,
    };
    let context = || {
        new_element("context").all(one.context.iter().map(|(name, value)| {
            new_element("var").with("name", name.as_str()).text(value.as_str())
        }))
    };
    let files = || {
        new_element("files")
            .all(one.files.iter().map(|file| new_element("file").text(file.as_str())))
    };
    start
        .child_any("task", &one.task)
        .child_some((!one.context.is_empty()).then(context))
        .child_some(one.command.as_ref().map(|start| command_element("invoke", start)))
        .child_some(
            one.command
                .as_ref()
                .map(|start| new_element("handoff_instruction").text(hints::handoff_rule(start))),
        )
        .child_some((!one.files.is_empty()).then(files))
        .child_any("returns", &one.returns)
}
