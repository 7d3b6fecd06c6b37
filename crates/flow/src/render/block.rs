//! Renders the blocks of a step as XML elements.

use super::hints;
use super::tree::{Element, element};
use super::xml::command;
use crate::step::{AgentView, DispatchView, ViewBlock};
use crate::workflow::{Banner, ExpectedOutput, ModelSelection, PostReview, Route};

pub(super) fn written(block: &ViewBlock) -> Element<'_> {
    match block {
        ViewBlock::Text(text) => element("text").text(text.as_str()),
        ViewBlock::StateBanner(banner) => state_banner(banner),
        ViewBlock::Forbidden(all) => forbidden(all),
        ViewBlock::ExpectedOutput(output) => expected_output(output),
        ViewBlock::Routing(routes) => cases("routing", routes),
        ViewBlock::PostQrRouting(post) => post_qr_routing(post),
        ViewBlock::Resource(resource) => element("resource")
            .with("name", resource.name.as_str())
            .with_any("purpose", &resource.purpose)
            .text(resource.text.as_str()),
        ViewBlock::DetectionQuestions(asked) => element("detection_questions")
            .with("category", asked.category.as_str())
            .all(asked.questions.iter().map(|question| {
                element("question").with("id", question.id.as_str()).text(question.ask.as_str())
            })),
        ViewBlock::VerificationChecklist(items) => {
            element("verification_checklist").all(items.iter().map(|item| {
                element("check")
                    .with("element", item.element.as_str())
                    .with("criterion", item.criterion.as_str())
                    .with_any("if_missing", &item.if_missing)
            }))
        }
        ViewBlock::IncorrectBehavior(wrong) => element("incorrect_behavior")
            .child(element("example").text(wrong.example.as_str()))
            .child(element("consequence").text(wrong.consequence.as_str())),
        ViewBlock::OrchestratorConstraint(text) => {
            element("orchestrator_constraint").text(text.as_str())
        }
        ViewBlock::FactoredVerification(text) => {
            element("factored_verification_rationale").text(text.as_str())
        }
        ViewBlock::OpenQuestions(text) => element("open_question_guidance").text(text.as_str()),
        ViewBlock::ModelSelection(models) => model_selection(models),
        ViewBlock::Dispatch(work) => dispatch(work),
        ViewBlock::QrReport(form) => element("qr_file_output")
            .child(element("report").text(form.report.as_str()))
            .child(element("orchestrator_action").text(form.orchestrator_action.as_str())),
    }
}

fn state_banner(banner: &Banner) -> Element<'_> {
    let start = element("state_banner").with("checkpoint", banner.checkpoint.as_str());
    let start = match banner.iteration {
        Some(iteration) => start.with_number("iteration", iteration),
        None => start,
    };
    start
        .with_any("mode", &banner.mode)
        .all(banner.lines.iter().map(|line| element("line").text(line.as_str())))
}

fn forbidden(all: &[String]) -> Element<'_> {
    element("forbidden").all(all.iter().map(|text| element("action").text(text.as_str())))
}

fn expected_output(output: &ExpectedOutput) -> Element<'_> {
    let categories = || {
        let all = output.categories.iter().map(|name| element("category").text(name.as_str()));
        element("categories").all(all)
    };
    element("expected_output")
        .child_any("if_pass", &output.if_pass)
        .child_any("when_issues", &output.when_issues)
        .child_some((!output.categories.is_empty()).then(categories))
}

fn cases<'a>(name: &'static str, routes: &'a [Route]) -> Element<'a> {
    element(name).all(routes.iter().map(|route| {
        element("case").with("result", route.result.as_str()).text(route.action.as_str())
    }))
}

fn post_qr_routing(post: &PostReview) -> Element<'_> {
    element("post_qr_routing")
        .with_some("gate", post.gate.as_ref().map(crate::workflow::StepId::as_str))
        .child(element("role").text(post.role.as_str()))
        .child_any("pedantic_mode", &post.rule)
        .child_some((!post.routes.is_empty()).then(|| cases("routing_table", &post.routes)))
        .child_some((!post.forbidden.is_empty()).then(|| forbidden(&post.forbidden)))
}

fn model_selection(models: &ModelSelection) -> Element<'_> {
    element("model_selection")
        .with("default", models.default.as_str())
        .child_any("rationale", &models.rationale)
        .all(models.overrides.iter().map(|(agent, model)| {
            element("override").with("agent", agent.as_str()).text(model.as_str())
        }))
}

fn dispatch(work: &DispatchView) -> Element<'_> {
    match work {
        DispatchView::Single(one) => agent("subagent_dispatch", one),
        DispatchView::Parallel { instruction, shared, agents } => element("parallel_dispatch")
            .with_number("count", agents.len())
            .child(element("mandatory").text(hints::count_rule(agents.len())))
            .child_any("instruction", instruction)
            .child_any("shared_context", shared)
            .child(element("agents").all(agents.iter().map(|one| agent("agent", one))))
            .child(element("wait").text(hints::WAIT)),
        DispatchView::Conditional { condition, then, otherwise } => element("conditional_dispatch")
            .child(element("condition").text(condition.as_str()))
            .child(element("then").child(dispatch(then)))
            .child_some(otherwise.as_ref().map(|other| element("else").child(dispatch(other)))),
        DispatchView::None { reason } => element("no_dispatch").text(reason.as_str()),
    }
}

fn agent<'a>(name: &'static str, one: &'a AgentView) -> Element<'a> {
    let start = element(name)
        .with("agent", one.agent.as_str())
        .with("mode", hints::mode(one))
        .with_any("id", &one.id)
        .with_some("model", one.model.as_deref());
    let start = match one.return_tokens_max {
        Some(most) => start.with_number("return_tokens_max", most),
        None => start,
    };
    let context =
        || {
            element("context").all(one.context.iter().map(|(name, value)| {
                element("var").with("name", name.as_str()).text(value.as_str())
            }))
        };
    let files =
        || element("files").all(one.files.iter().map(|file| element("file").text(file.as_str())));
    start
        .child_any("task", &one.task)
        .child_some((!one.context.is_empty()).then(context))
        .child_some(one.command.as_ref().map(|start| command("invoke", start)))
        .child_some(
            one.command
                .as_ref()
                .map(|start| element("handoff_instruction").text(hints::handoff(start))),
        )
        .child_some((!one.files.is_empty()).then(files))
        .child_any("returns", &one.returns)
}
