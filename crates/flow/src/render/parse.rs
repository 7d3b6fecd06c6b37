//! Parses our own XML back into a step. Unknown elements are ignored, so that later versions can add some.

use std::str::FromStr;

use super::ParseError;
use super::tree::{self, Element};
use crate::state::{Answer, RunId, UserQuestion};
use crate::step::{
    ChoiceView, Command, FactView, FindingsView, GateView, ItemView, Next, PROTOCOL, ReportView,
    ReviewView, SetView, StepView, Way,
};

mod block;

type Read<T> = Result<T, ParseError>;

/// Parses a document into a step.
pub(super) fn parse(text: &str) -> Read<StepView> {
    let root = tree::read(text)?;
    if root.name != "workflow" {
        return Err(ParseError::Missing {
            element: root.name.into_owned(),
            what: "`workflow` around it",
        });
    }
    let protocol = number(&root, "protocol")?;
    if protocol != PROTOCOL {
        return Err(ParseError::Protocol(protocol));
    }
    let header = needed(&root, "step_header")?;
    let actions = needed(&root, "current_action")?;
    Ok(StepView {
        protocol,
        workflow: attribute(header, "script")?,
        run: root.attribute("run").map(RunId::new),
        status: attribute(&root, "status")?,
        turn: number(&root, "turn")?,
        step: number(header, "step")?,
        total: number(header, "total")?,
        id: attribute(header, "id")?,
        title: header.text.to_string(),
        phase: optional(header, "phase"),
        role: optional(header, "role"),
        iteration: number(header, "iteration")?,
        gate: root.find("gate_result").map(|result| gate(&root, result)).transpose()?,
        review: root.find("review").map(review).transpose()?,
        findings: root.find("findings").map(findings).transpose()?,
        answers: match root.find("user_answers") {
            Some(all) => all.every("answer").map(answer).collect::<Read<_>>()?,
            None => Vec::new(),
        },
        actions: actions
            .children
            .iter()
            .filter_map(|child| block::read(child).transpose())
            .collect::<Read<_>>()?,
        report: root.find("report").map(report).transpose()?.unwrap_or_default(),
        next: next(&root)?,
    })
}

fn gate(root: &Element<'_>, result: &Element<'_>) -> Read<GateView> {
    let actions = root.find("gate_actions");
    let ids = |name| match actions.and_then(|actions| actions.find(name)) {
        Some(list) => list.every("item").map(|item| attribute(item, "id")).collect(),
        None => Ok(Vec::new()),
    };
    Ok(GateView {
        name: attribute(result, "name")?,
        status: attribute(result, "status")?,
        iteration: number(result, "iteration")?,
        limit: number(result, "limit")?,
        blocking_severity: attribute(result, "blocking_severity")?,
        message: result.text.to_string(),
        blocking: ids("blocking")?,
        passed_over: ids("passed_over")?,
        stop: actions.map(|actions| text_of(actions, "stop")).unwrap_or_default(),
    })
}

fn review(element: &Element<'_>) -> Read<ReviewView> {
    Ok(ReviewView {
        gate: attribute(element, "gate")?,
        name: attribute(element, "name")?,
        iteration: number(element, "iteration")?,
        mode: attribute(element, "mode")?,
        banner: text_of(element, "banner"),
        items: items(element, "items")?,
        checks: items(element, "checks")?,
        record: element.find("record").map(command).transpose()?,
    })
}

fn findings(element: &Element<'_>) -> Read<FindingsView> {
    Ok(FindingsView {
        gate: attribute(element, "gate")?,
        name: attribute(element, "name")?,
        iteration: number(element, "iteration")?,
        fix: attribute(element, "fix")?,
        items: items(element, "items")?,
    })
}

fn items(element: &Element<'_>, name: &str) -> Read<Vec<ItemView>> {
    let Some(list) = element.find(name) else { return Ok(Vec::new()) };
    list.every("item").map(item_view).collect()
}

fn item_view(item: &Element<'_>) -> Read<ItemView> {
    Ok(ItemView {
        id: attribute(item, "id")?,
        severity: optional(item, "severity").unwrap_or_default(),
        status: attribute(item, "status")?,
        scope: text_of(item, "scope"),
        check: text_of(item, "check"),
        finding: text_of(item, "finding"),
    })
}

fn answer(element: &Element<'_>) -> Read<Answer> {
    Ok(Answer {
        id: attribute(element, "id")?,
        ask: attribute(element, "ask")?,
        answer: element.text.to_string(),
    })
}

fn report(element: &Element<'_>) -> Read<ReportView> {
    Ok(ReportView {
        set: element.every("set").map(set_view).collect::<Read<_>>()?,
        output: element.find("output").map(|output| output.text.to_string()),
        confidence: element
            .find("confidence")
            .map(|confidence| attribute(confidence, "until"))
            .transpose()?,
        facts: element.every("fact").map(fact_view).collect::<Read<_>>()?,
    })
}

fn set_view(set: &Element<'_>) -> Read<SetView> {
    Ok(SetView {
        name: attribute(set, "name")?,
        takes: attribute(set, "takes")?,
        description: set.text.to_string(),
    })
}

fn fact_view(fact: &Element<'_>) -> Read<FactView> {
    Ok(FactView {
        id: attribute(fact, "id")?,
        ask: text_of(fact, "ask"),
        answers: texts(fact, "option"),
    })
}

fn next(root: &Element<'_>) -> Read<Next> {
    if let Some(over) = root.find("workflow_complete").or_else(|| root.find("workflow_ended")) {
        return Ok(Next::Complete { message: over.text.to_string() });
    }
    if let Some(first) = root.find("record_first") {
        return Ok(Next::Record { message: first.text.to_string() });
    }
    if let Some(person) = root.find("needs_user_input") {
        return Ok(Next::Person {
            about: text_of(person, "about"),
            choices: person.every("choice").map(choice).collect::<Read<_>>()?,
            questions: person.every("question").map(question).collect::<Read<_>>()?,
            command: person.find("answer").map(command).transpose()?,
        });
    }
    let ways = match root.find("invoke_after") {
        Some(one) if one.children.is_empty() => vec![way(one, optional(one, "outcome"))?],
        Some(several) => several.children.iter().filter_map(branch).collect::<Read<_>>()?,
        None => needed(root, "next").map(|_| Vec::new())?,
    };
    Ok(Next::Ways { ways, on_error: root.find("on_error").map(command).transpose()? })
}

fn branch(element: &Element<'_>) -> Option<Read<Way>> {
    let outcome = match element.name.as_ref() {
        "if_pass" => Some("ok".to_owned()),
        "if_fail" => Some("fail".to_owned()),
        "if" => optional(element, "outcome"),
        _ => return None,
    };
    Some(way(element, outcome))
}

fn way(element: &Element<'_>, outcome: Option<String>) -> Read<Way> {
    Ok(Way {
        outcome,
        when: optional(element, "when").unwrap_or_default(),
        to: match element.attribute("step") {
            Some(_) => Some(number(element, "step")?),
            None => None,
        },
        title: optional(element, "title").unwrap_or_default(),
        command: command(element)?,
    })
}

fn choice(element: &Element<'_>) -> Read<ChoiceView> {
    Ok(ChoiceView {
        choice: attribute(element, "name")?,
        meaning: attribute(element, "meaning")?,
        command: command(element)?,
    })
}

fn question(element: &Element<'_>) -> Read<UserQuestion> {
    Ok(UserQuestion {
        id: attribute(element, "id")?,
        ask: text_of(element, "ask"),
        options: texts(element, "option"),
    })
}

fn command(element: &Element<'_>) -> Read<Command> {
    let line = element.text.to_string();
    let argv = match element.attribute("argv") {
        Some(json) => serde_json::from_str(json).ok(),
        None => Command::split(&line),
    };
    match argv {
        Some(argv) => Ok(Command { argv, line }),
        None => Err(bad(element, "command", &line)),
    }
}

fn needed<'e, 'a>(element: &'e Element<'a>, what: &'static str) -> Read<&'e Element<'a>> {
    element.find(what).ok_or_else(|| missing(element, what))
}

fn attribute(element: &Element<'_>, what: &'static str) -> Read<String> {
    optional(element, what).ok_or_else(|| missing(element, what))
}

fn optional(element: &Element<'_>, what: &str) -> Option<String> {
    element.attribute(what).map(str::to_owned)
}

fn number<T: FromStr>(element: &Element<'_>, what: &'static str) -> Read<T> {
    let value = element.attribute(what).ok_or_else(|| missing(element, what))?;
    value.parse().map_err(|_| bad(element, what, value))
}

fn text_of(element: &Element<'_>, name: &str) -> String {
    element.find(name).map(|child| child.text.to_string()).unwrap_or_default()
}

fn texts(element: &Element<'_>, name: &str) -> Vec<String> {
    element.every(name).map(|child| child.text.to_string()).collect()
}

fn missing(element: &Element<'_>, what: &'static str) -> ParseError {
    ParseError::Missing { element: element.name.to_string(), what }
}

fn bad(element: &Element<'_>, what: &'static str, value: &str) -> ParseError {
    let value = value.chars().take(80).collect();
    ParseError::Bad { element: element.name.to_string(), what, value }
}
