//! Parses the blocks of a step from XML elements.

use super::super::tree::XmlElement;
use super::{
    ParseResult, child_text, child_texts, missing_error, number_attribute, optional_attribute,
    parse_command, required_attribute,
};
use crate::step::{AgentView, DispatchView, ResourceView, ViewBlock};
use crate::workflow::{
    ChecklistItem, DetectionQuestion, DetectionQuestions, ExpectedOutput, IncorrectBehavior,
    ModelSelection, PostReview, ReportForm, ResultRoute, StateBanner, StepId,
};

/// Parses a block; `None` if its kind is unknown.
pub(super) fn parse_block(element: &XmlElement<'_>) -> ParseResult<Option<ViewBlock>> {
    let text = || element.text.to_string();
    Ok(Some(match element.name.as_ref() {
        "text" => ViewBlock::Text(text()),
        "state_banner" => ViewBlock::StateBanner(parse_banner(element)?),
        "forbidden" => ViewBlock::Forbidden(child_texts(element, "action")),
        "expected_output" => ViewBlock::ExpectedOutput(ExpectedOutput {
            if_pass: child_text(element, "if_pass"),
            when_issues: child_text(element, "when_issues"),
            categories: element
                .find_child("categories")
                .map(|all| child_texts(all, "category"))
                .unwrap_or_default(),
        }),
        "routing" => ViewBlock::Routing(parse_routes(element)?),
        "post_qr_routing" => ViewBlock::PostQrRouting(parse_post_review(element)?),
        "resource" => ViewBlock::Resource(ResourceView {
            name: required_attribute(element, "name")?,
            purpose: optional_attribute(element, "purpose").unwrap_or_default(),
            text: text(),
        }),
        "detection_questions" => ViewBlock::DetectionQuestions(DetectionQuestions {
            category: required_attribute(element, "category")?,
            questions: element
                .children_named("question")
                .map(parse_question)
                .collect::<ParseResult<_>>()?,
        }),
        "verification_checklist" => ViewBlock::VerificationChecklist(
            element
                .children_named("check")
                .map(parse_checklist_item)
                .collect::<ParseResult<_>>()?,
        ),
        "incorrect_behavior" => ViewBlock::IncorrectBehavior(IncorrectBehavior {
            example: child_text(element, "example"),
            consequence: child_text(element, "consequence"),
        }),
        "orchestrator_constraint" => ViewBlock::OrchestratorConstraint(text()),
        "factored_verification_rationale" => ViewBlock::FactoredVerification(text()),
        "open_question_guidance" => ViewBlock::OpenQuestions(text()),
        "model_selection" => ViewBlock::ModelSelection(ModelSelection {
            default: required_attribute(element, "default")?,
            rationale: child_text(element, "rationale"),
            overrides: element
                .children_named("override")
                .map(|other| Ok((required_attribute(other, "agent")?, other.text.to_string())))
                .collect::<ParseResult<_>>()?,
        }),
        "qr_file_output" => ViewBlock::QrReport(ReportForm {
            report: child_text(element, "report"),
            orchestrator_action: child_text(element, "orchestrator_action"),
        }),
        _ => return Ok(parse_dispatch(element)?.map(ViewBlock::Dispatch)),
    }))
}

fn parse_banner(element: &XmlElement<'_>) -> ParseResult<StateBanner> {
    Ok(StateBanner {
        checkpoint: required_attribute(element, "checkpoint")?,
        mode: optional_attribute(element, "mode").unwrap_or_default(),
        lines: child_texts(element, "line"),
        iteration: match element.attribute("iteration") {
            Some(_) => Some(number_attribute(element, "iteration")?),
            None => None,
        },
    })
}

fn parse_routes(element: &XmlElement<'_>) -> ParseResult<Vec<ResultRoute>> {
    element
        .children_named("case")
        .map(|case| {
            Ok(ResultRoute {
                result: required_attribute(case, "result")?,
                action: case.text.to_string(),
            })
        })
        .collect()
}

fn parse_post_review(element: &XmlElement<'_>) -> ParseResult<PostReview> {
    Ok(PostReview {
        gate: element.attribute("gate").map(StepId::from),
        role: child_text(element, "role"),
        rule: child_text(element, "pedantic_mode"),
        routes: element
            .find_child("routing_table")
            .map(parse_routes)
            .transpose()?
            .unwrap_or_default(),
        forbidden: element
            .find_child("forbidden")
            .map(|forbidden| child_texts(forbidden, "action"))
            .unwrap_or_default(),
    })
}

fn parse_question(element: &XmlElement<'_>) -> ParseResult<DetectionQuestion> {
    Ok(DetectionQuestion { id: required_attribute(element, "id")?, ask: element.text.to_string() })
}

fn parse_checklist_item(element: &XmlElement<'_>) -> ParseResult<ChecklistItem> {
    Ok(ChecklistItem {
        element: required_attribute(element, "element")?,
        criterion: required_attribute(element, "criterion")?,
        if_missing: optional_attribute(element, "if_missing").unwrap_or_default(),
    })
}

fn parse_dispatch(element: &XmlElement<'_>) -> ParseResult<Option<DispatchView>> {
    Ok(Some(match element.name.as_ref() {
        "subagent_dispatch" => DispatchView::Single(parse_agent(element)?),
        "parallel_dispatch" => DispatchView::Parallel {
            instruction: child_text(element, "instruction"),
            shared: child_text(element, "shared_context"),
            agents: match element.find_child("agents") {
                Some(agents) => {
                    agents.children_named("agent").map(parse_agent).collect::<ParseResult<_>>()?
                }
                None => Vec::new(),
            },
        },
        "conditional_dispatch" => DispatchView::Conditional {
            condition: child_text(element, "condition"),
            then: Box::new(
                parse_branch(element, "then")?.ok_or_else(|| missing_error(element, "then"))?,
            ),
            otherwise: parse_branch(element, "else")?.map(Box::new),
        },
        "no_dispatch" => DispatchView::None { reason: element.text.to_string() },
        _ => return Ok(None),
    }))
}

fn parse_branch(element: &XmlElement<'_>, name: &'static str) -> ParseResult<Option<DispatchView>> {
    match element.find_child(name).and_then(|branch| branch.children.first()) {
        Some(work) => parse_dispatch(work),
        None => Ok(None),
    }
}

fn parse_agent(element: &XmlElement<'_>) -> ParseResult<AgentView> {
    let context = element.find_child("context").map(|context| {
        let var =
            |var: &XmlElement<'_>| Ok((required_attribute(var, "name")?, var.text.to_string()));
        context.children_named("var").map(var).collect::<ParseResult<_>>()
    });
    Ok(AgentView {
        id: optional_attribute(element, "id").unwrap_or_default(),
        agent: required_attribute(element, "agent")?,
        model: optional_attribute(element, "model"),
        task: child_text(element, "task"),
        context: context.transpose()?.unwrap_or_default(),
        command: element.find_child("invoke").map(parse_command).transpose()?,
        files: element
            .find_child("files")
            .map(|files| child_texts(files, "file"))
            .unwrap_or_default(),
        returns: child_text(element, "returns"),
        return_tokens_max: match element.attribute("return_tokens_max") {
            Some(_) => Some(number_attribute(element, "return_tokens_max")?),
            None => None,
        },
    })
}
