//! Parses the blocks of a step from XML elements.

use super::super::tree::Element;
use super::{Read, attribute, command, missing, number, optional, text_of, texts};
use crate::step::{AgentView, DispatchView, ResourceView, ViewBlock};
use crate::workflow::{
    Banner, ChecklistItem, DetectionQuestions, ExpectedOutput, IncorrectBehavior, ModelSelection,
    PostReview, Question, ReportForm, Route, StepId,
};

/// Parses a block; `None` if its kind is unknown.
pub(super) fn read(element: &Element<'_>) -> Read<Option<ViewBlock>> {
    let text = || element.text.to_string();
    Ok(Some(match element.name.as_ref() {
        "text" => ViewBlock::Text(text()),
        "state_banner" => ViewBlock::StateBanner(banner(element)?),
        "forbidden" => ViewBlock::Forbidden(texts(element, "action")),
        "expected_output" => ViewBlock::ExpectedOutput(ExpectedOutput {
            if_pass: text_of(element, "if_pass"),
            when_issues: text_of(element, "when_issues"),
            categories: element
                .find("categories")
                .map(|all| texts(all, "category"))
                .unwrap_or_default(),
        }),
        "routing" => ViewBlock::Routing(routes(element)?),
        "post_qr_routing" => ViewBlock::PostQrRouting(after_review(element)?),
        "resource" => ViewBlock::Resource(ResourceView {
            name: attribute(element, "name")?,
            purpose: optional(element, "purpose").unwrap_or_default(),
            text: text(),
        }),
        "detection_questions" => ViewBlock::DetectionQuestions(DetectionQuestions {
            category: attribute(element, "category")?,
            questions: element.every("question").map(question).collect::<Read<_>>()?,
        }),
        "verification_checklist" => ViewBlock::VerificationChecklist(
            element.every("check").map(check).collect::<Read<_>>()?,
        ),
        "incorrect_behavior" => ViewBlock::IncorrectBehavior(IncorrectBehavior {
            example: text_of(element, "example"),
            consequence: text_of(element, "consequence"),
        }),
        "orchestrator_constraint" => ViewBlock::OrchestratorConstraint(text()),
        "factored_verification_rationale" => ViewBlock::FactoredVerification(text()),
        "open_question_guidance" => ViewBlock::OpenQuestions(text()),
        "model_selection" => ViewBlock::ModelSelection(ModelSelection {
            default: attribute(element, "default")?,
            rationale: text_of(element, "rationale"),
            overrides: element
                .every("override")
                .map(|other| Ok((attribute(other, "agent")?, other.text.to_string())))
                .collect::<Read<_>>()?,
        }),
        "qr_file_output" => ViewBlock::QrReport(ReportForm {
            report: text_of(element, "report"),
            orchestrator_action: text_of(element, "orchestrator_action"),
        }),
        _ => return Ok(dispatch(element)?.map(ViewBlock::Dispatch)),
    }))
}

fn banner(element: &Element<'_>) -> Read<Banner> {
    Ok(Banner {
        checkpoint: attribute(element, "checkpoint")?,
        mode: optional(element, "mode").unwrap_or_default(),
        lines: texts(element, "line"),
        iteration: match element.attribute("iteration") {
            Some(_) => Some(number(element, "iteration")?),
            None => None,
        },
    })
}

fn routes(element: &Element<'_>) -> Read<Vec<Route>> {
    element
        .every("case")
        .map(|case| Ok(Route { result: attribute(case, "result")?, action: case.text.to_string() }))
        .collect()
}

fn after_review(element: &Element<'_>) -> Read<PostReview> {
    Ok(PostReview {
        gate: element.attribute("gate").map(StepId::from),
        role: text_of(element, "role"),
        rule: text_of(element, "pedantic_mode"),
        routes: element.find("routing_table").map(routes).transpose()?.unwrap_or_default(),
        forbidden: element
            .find("forbidden")
            .map(|forbidden| texts(forbidden, "action"))
            .unwrap_or_default(),
    })
}

fn question(element: &Element<'_>) -> Read<Question> {
    Ok(Question { id: attribute(element, "id")?, ask: element.text.to_string() })
}

fn check(element: &Element<'_>) -> Read<ChecklistItem> {
    Ok(ChecklistItem {
        element: attribute(element, "element")?,
        criterion: attribute(element, "criterion")?,
        if_missing: optional(element, "if_missing").unwrap_or_default(),
    })
}

fn dispatch(element: &Element<'_>) -> Read<Option<DispatchView>> {
    Ok(Some(match element.name.as_ref() {
        "subagent_dispatch" => DispatchView::Single(agent(element)?),
        "parallel_dispatch" => DispatchView::Parallel {
            instruction: text_of(element, "instruction"),
            shared: text_of(element, "shared_context"),
            agents: match element.find("agents") {
                Some(agents) => agents.every("agent").map(agent).collect::<Read<_>>()?,
                None => Vec::new(),
            },
        },
        "conditional_dispatch" => DispatchView::Conditional {
            condition: text_of(element, "condition"),
            then: Box::new(branch(element, "then")?.ok_or_else(|| missing(element, "then"))?),
            otherwise: branch(element, "else")?.map(Box::new),
        },
        "no_dispatch" => DispatchView::None { reason: element.text.to_string() },
        _ => return Ok(None),
    }))
}

fn branch(element: &Element<'_>, name: &'static str) -> Read<Option<DispatchView>> {
    match element.find(name).and_then(|branch| branch.children.first()) {
        Some(work) => dispatch(work),
        None => Ok(None),
    }
}

fn agent(element: &Element<'_>) -> Read<AgentView> {
    let context = element.find("context").map(|context| {
        let var = |var: &Element<'_>| Ok((attribute(var, "name")?, var.text.to_string()));
        context.every("var").map(var).collect::<Read<_>>()
    });
    Ok(AgentView {
        id: optional(element, "id").unwrap_or_default(),
        agent: attribute(element, "agent")?,
        model: optional(element, "model"),
        task: text_of(element, "task"),
        context: context.transpose()?.unwrap_or_default(),
        command: element.find("invoke").map(command).transpose()?,
        files: element.find("files").map(|files| texts(files, "file")).unwrap_or_default(),
        returns: text_of(element, "returns"),
        return_tokens_max: match element.attribute("return_tokens_max") {
            Some(_) => Some(number(element, "return_tokens_max")?),
            None => None,
        },
    })
}
