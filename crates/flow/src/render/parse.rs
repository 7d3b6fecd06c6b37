//! Parses our own XML back into a step. Unknown elements are ignored, so that later versions can add some.

use std::str::FromStr;

use super::StepParseError;
use super::tree::{self, XmlElement};
use crate::state::{UserAnswer, UserQuestion, WorkflowRunId};
use crate::step::{
    ChoiceView, FactView, FindingsView, GateView, ItemView, NextStep, NextStepOption, PROTOCOL,
    ReportView, ReviewView, SetView, ShellCommand, StepView,
};

mod block;

type ParseResult<T> = Result<T, StepParseError>;

/// Parses a document into a step.
pub(super) fn parse_step(text: &str) -> ParseResult<StepView> {
    let root = tree::read_document(text)?;
    if root.name != "workflow" {
        return Err(StepParseError::Missing {
            element: root.name.into_owned(),
            what: "`workflow` around it",
        });
    }
    let protocol = number_attribute(&root, "protocol")?;
    if protocol != PROTOCOL {
        return Err(StepParseError::Protocol(protocol));
    }
    let header = required_child(&root, "step_header")?;
    let actions = required_child(&root, "current_action")?;
    Ok(StepView {
        protocol,
        workflow: required_attribute(header, "script")?,
        run: root.attribute("run").map(WorkflowRunId::new),
        status: required_attribute(&root, "status")?,
        turn: number_attribute(&root, "turn")?,
        step: number_attribute(header, "step")?,
        total: number_attribute(header, "total")?,
        id: required_attribute(header, "id")?,
        title: header.text.to_string(),
        phase: optional_attribute(header, "phase"),
        role: optional_attribute(header, "role"),
        iteration: number_attribute(header, "iteration")?,
        gate: root.find_child("gate_result").map(|result| parse_gate(&root, result)).transpose()?,
        review: root.find_child("review").map(parse_review).transpose()?,
        findings: root.find_child("findings").map(parse_findings).transpose()?,
        answers: match root.find_child("user_answers") {
            Some(all) => {
                all.children_named("answer").map(parse_answer).collect::<ParseResult<_>>()?
            }
            None => Vec::new(),
        },
        actions: actions
            .children
            .iter()
            .filter_map(|child| block::parse_block(child).transpose())
            .collect::<ParseResult<_>>()?,
        report: root.find_child("report").map(parse_report).transpose()?.unwrap_or_default(),
        next: parse_next(&root)?,
    })
}

fn parse_gate(root: &XmlElement<'_>, result: &XmlElement<'_>) -> ParseResult<GateView> {
    let actions = root.find_child("gate_actions");
    let ids = |name| match actions.and_then(|actions| actions.find_child(name)) {
        Some(list) => {
            list.children_named("item").map(|item| required_attribute(item, "id")).collect()
        }
        None => Ok(Vec::new()),
    };
    Ok(GateView {
        name: required_attribute(result, "name")?,
        status: required_attribute(result, "status")?,
        iteration: number_attribute(result, "iteration")?,
        limit: number_attribute(result, "limit")?,
        blocking_severity: required_attribute(result, "blocking_severity")?,
        message: result.text.to_string(),
        blocking: ids("blocking")?,
        passed_over: ids("passed_over")?,
        stop: actions.map(|actions| child_text(actions, "stop")).unwrap_or_default(),
    })
}

fn parse_review(element: &XmlElement<'_>) -> ParseResult<ReviewView> {
    Ok(ReviewView {
        gate: required_attribute(element, "gate")?,
        name: required_attribute(element, "name")?,
        iteration: number_attribute(element, "iteration")?,
        mode: required_attribute(element, "mode")?,
        banner: child_text(element, "banner"),
        items: parse_items(element, "items")?,
        checks: parse_items(element, "checks")?,
        record: element.find_child("record").map(parse_command).transpose()?,
    })
}

fn parse_findings(element: &XmlElement<'_>) -> ParseResult<FindingsView> {
    Ok(FindingsView {
        gate: required_attribute(element, "gate")?,
        name: required_attribute(element, "name")?,
        iteration: number_attribute(element, "iteration")?,
        fix: required_attribute(element, "fix")?,
        items: parse_items(element, "items")?,
    })
}

fn parse_items(element: &XmlElement<'_>, name: &str) -> ParseResult<Vec<ItemView>> {
    let Some(list) = element.find_child(name) else { return Ok(Vec::new()) };
    list.children_named("item").map(parse_item).collect()
}

fn parse_item(item: &XmlElement<'_>) -> ParseResult<ItemView> {
    Ok(ItemView {
        id: required_attribute(item, "id")?,
        severity: optional_attribute(item, "severity").unwrap_or_default(),
        status: required_attribute(item, "status")?,
        scope: child_text(item, "scope"),
        check: child_text(item, "check"),
        finding: child_text(item, "finding"),
    })
}

fn parse_answer(element: &XmlElement<'_>) -> ParseResult<UserAnswer> {
    Ok(UserAnswer {
        id: required_attribute(element, "id")?,
        ask: required_attribute(element, "ask")?,
        answer: element.text.to_string(),
    })
}

fn parse_report(element: &XmlElement<'_>) -> ParseResult<ReportView> {
    Ok(ReportView {
        set: element.children_named("set").map(parse_set).collect::<ParseResult<_>>()?,
        output: element.find_child("output").map(|output| output.text.to_string()),
        confidence: element
            .find_child("confidence")
            .map(|confidence| required_attribute(confidence, "until"))
            .transpose()?,
        facts: element.children_named("fact").map(parse_fact).collect::<ParseResult<_>>()?,
    })
}

fn parse_set(set: &XmlElement<'_>) -> ParseResult<SetView> {
    Ok(SetView {
        name: required_attribute(set, "name")?,
        takes: required_attribute(set, "takes")?,
        description: set.text.to_string(),
    })
}

fn parse_fact(fact: &XmlElement<'_>) -> ParseResult<FactView> {
    Ok(FactView {
        id: required_attribute(fact, "id")?,
        ask: child_text(fact, "ask"),
        answers: child_texts(fact, "option"),
    })
}

fn parse_next(root: &XmlElement<'_>) -> ParseResult<NextStep> {
    if let Some(over) =
        root.find_child("workflow_complete").or_else(|| root.find_child("workflow_ended"))
    {
        return Ok(NextStep::Complete { message: over.text.to_string() });
    }
    if let Some(first) = root.find_child("record_first") {
        return Ok(NextStep::Record { message: first.text.to_string() });
    }
    if let Some(person) = root.find_child("needs_user_input") {
        return Ok(NextStep::Person {
            about: child_text(person, "about"),
            choices: person
                .children_named("choice")
                .map(parse_choice)
                .collect::<ParseResult<_>>()?,
            questions: person
                .children_named("question")
                .map(parse_question)
                .collect::<ParseResult<_>>()?,
            command: person.find_child("answer").map(parse_command).transpose()?,
        });
    }
    let ways = match root.find_child("invoke_after") {
        Some(one) if one.children.is_empty() => {
            vec![parse_option(one, optional_attribute(one, "outcome"))?]
        }
        Some(several) => {
            several.children.iter().filter_map(parse_branch).collect::<ParseResult<_>>()?
        }
        None => required_child(root, "next").map(|_| Vec::new())?,
    };
    Ok(NextStep::Ways {
        ways,
        on_error: root.find_child("on_error").map(parse_command).transpose()?,
    })
}

fn parse_branch(element: &XmlElement<'_>) -> Option<ParseResult<NextStepOption>> {
    let outcome = match element.name.as_ref() {
        "if_pass" => Some("ok".to_owned()),
        "if_fail" => Some("fail".to_owned()),
        "if" => optional_attribute(element, "outcome"),
        _ => return None,
    };
    Some(parse_option(element, outcome))
}

fn parse_option(element: &XmlElement<'_>, outcome: Option<String>) -> ParseResult<NextStepOption> {
    Ok(NextStepOption {
        outcome,
        when: optional_attribute(element, "when").unwrap_or_default(),
        to: match element.attribute("step") {
            Some(_) => Some(number_attribute(element, "step")?),
            None => None,
        },
        title: optional_attribute(element, "title").unwrap_or_default(),
        command: parse_command(element)?,
    })
}

fn parse_choice(element: &XmlElement<'_>) -> ParseResult<ChoiceView> {
    Ok(ChoiceView {
        choice: required_attribute(element, "name")?,
        meaning: required_attribute(element, "meaning")?,
        command: parse_command(element)?,
    })
}

fn parse_question(element: &XmlElement<'_>) -> ParseResult<UserQuestion> {
    Ok(UserQuestion {
        id: required_attribute(element, "id")?,
        ask: child_text(element, "ask"),
        options: child_texts(element, "option"),
    })
}

fn parse_command(element: &XmlElement<'_>) -> ParseResult<ShellCommand> {
    let line = element.text.to_string();
    let argv = match element.attribute("argv") {
        Some(json) => serde_json::from_str(json).ok(),
        None => ShellCommand::split_line(&line),
    };
    match argv {
        Some(argv) => Ok(ShellCommand { argv, line }),
        None => Err(bad_value_error(element, "command", &line)),
    }
}

fn required_child<'e, 'a>(
    element: &'e XmlElement<'a>,
    what: &'static str,
) -> ParseResult<&'e XmlElement<'a>> {
    element.find_child(what).ok_or_else(|| missing_error(element, what))
}

fn required_attribute(element: &XmlElement<'_>, what: &'static str) -> ParseResult<String> {
    optional_attribute(element, what).ok_or_else(|| missing_error(element, what))
}

fn optional_attribute(element: &XmlElement<'_>, what: &str) -> Option<String> {
    element.attribute(what).map(str::to_owned)
}

fn number_attribute<T: FromStr>(element: &XmlElement<'_>, what: &'static str) -> ParseResult<T> {
    let value = element.attribute(what).ok_or_else(|| missing_error(element, what))?;
    value.parse().map_err(|_| bad_value_error(element, what, value))
}

fn child_text(element: &XmlElement<'_>, name: &str) -> String {
    element.find_child(name).map(|child| child.text.to_string()).unwrap_or_default()
}

fn child_texts(element: &XmlElement<'_>, name: &str) -> Vec<String> {
    element.children_named(name).map(|child| child.text.to_string()).collect()
}

fn missing_error(element: &XmlElement<'_>, what: &'static str) -> StepParseError {
    StepParseError::Missing { element: element.name.to_string(), what }
}

fn bad_value_error(element: &XmlElement<'_>, what: &'static str, value: &str) -> StepParseError {
    let value = value.chars().take(80).collect();
    StepParseError::Bad { element: element.name.to_string(), what, value }
}
