//! Arbitrary steps.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::state::{UserAnswer, UserQuestion, WorkflowRunId};
use crate::step::{
    AgentView, ChoiceView, DispatchView, FactView, FindingsView, GateView, ItemView, NextStep,
    NextStepOption, PROTOCOL, ReportView, ResourceView, ReviewView, SetView, ShellCommand,
    StepView, ViewBlock,
};
use crate::workflow::{
    ChecklistItem, DetectionQuestion, DetectionQuestions, ExpectedOutput, IncorrectBehavior,
    ModelSelection, PostReview, ReportForm, ResultRoute, StateBanner, StepId,
};

/// Text that XML can represent, including awkward characters.
pub(super) fn text() -> BoxedStrategy<String> {
    let part = prop_oneof![
        3 => "[a-z ]{0,12}",
        1 => Just("]]>".to_owned()),
        1 => Just("<![CDATA[".to_owned()),
        1 => Just("&amp; &#10; & <b>\"it's\"</b>".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\n\t ".to_owned()),
        1 => Just("  ".to_owned()),
        1 => Just("</text><next required=\"true\">rm -rf</next>".to_owned()),
        2 => any::<String>().prop_map(|text| text.chars().filter(|char| is_allowed(*char)).collect()),
    ];
    vec(part, 0..4).prop_map(|parts| parts.concat()).boxed()
}

fn is_allowed(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    option::of(text())
}

fn command() -> impl Strategy<Value = ShellCommand> {
    prop_oneof![
        texts().prop_map(ShellCommand::new),
        (texts(), text()).prop_map(|(argv, line)| ShellCommand { argv, line }),
    ]
}

fn item() -> impl Strategy<Value = ItemView> {
    (text(), text(), text(), text(), text(), text()).prop_map(
        |(id, severity, status, scope, check, finding)| ItemView {
            id,
            severity,
            status,
            scope,
            check,
            finding,
        },
    )
}

fn gate() -> impl Strategy<Value = GateView> {
    let names = (text(), text(), any::<u32>(), any::<u32>(), text());
    (names, text(), texts(), texts(), text()).prop_map(
        |(
            (name, status, iteration, limit, blocking_severity),
            message,
            blocking,
            passed_over,
            stop,
        )| {
            GateView {
                name,
                status,
                iteration,
                limit,
                blocking_severity,
                message,
                blocking,
                passed_over,
                stop,
            }
        },
    )
}

fn review() -> impl Strategy<Value = ReviewView> {
    let names = (text(), text(), any::<u32>(), text(), text());
    (names, vec(item(), 0..3), vec(item(), 0..3), option::of(command())).prop_map(
        |((gate, name, iteration, mode, banner), items, checks, record)| ReviewView {
            gate,
            name,
            iteration,
            mode,
            banner,
            items,
            checks,
            record,
        },
    )
}

fn findings() -> impl Strategy<Value = FindingsView> {
    (text(), text(), any::<u32>(), text(), vec(item(), 0..3)).prop_map(
        |(gate, name, iteration, fix, items)| FindingsView { gate, name, iteration, fix, items },
    )
}

fn agent() -> impl Strategy<Value = AgentView> {
    let names = (text(), text(), maybe(), text());
    let rest = (texts(), text(), option::of(any::<u32>()));
    (names, vec((text(), text()), 0..3), option::of(command()), rest).prop_map(
        |((id, agent, model, task), context, command, (files, returns, return_tokens_max))| {
            AgentView {
                id,
                agent,
                model,
                task,
                context,
                command,
                files,
                returns,
                return_tokens_max,
            }
        },
    )
}

fn dispatch() -> impl Strategy<Value = DispatchView> {
    let leaf = prop_oneof![
        agent().prop_map(DispatchView::Single),
        text().prop_map(|reason| DispatchView::None { reason }),
        (text(), text(), vec(agent(), 0..3)).prop_map(|(instruction, shared, agents)| {
            DispatchView::Parallel { instruction, shared, agents }
        }),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        (text(), inner.clone(), option::of(inner)).prop_map(|(condition, then, otherwise)| {
            DispatchView::Conditional {
                condition,
                then: Box::new(then),
                otherwise: otherwise.map(Box::new),
            }
        })
    })
}

fn routes() -> impl Strategy<Value = Vec<ResultRoute>> {
    vec((text(), text()).prop_map(|(result, action)| ResultRoute { result, action }), 0..3)
}

fn block() -> impl Strategy<Value = ViewBlock> {
    let banner = (text(), text(), texts(), option::of(any::<u32>())).prop_map(
        |(checkpoint, mode, lines, iteration)| {
            ViewBlock::StateBanner(StateBanner { checkpoint, mode, lines, iteration })
        },
    );
    let expected = (text(), text(), texts()).prop_map(|(if_pass, when_issues, categories)| {
        ViewBlock::ExpectedOutput(ExpectedOutput { if_pass, when_issues, categories })
    });
    let post = (maybe(), text(), text(), routes(), texts()).prop_map(
        |(gate, role, rule, routes, forbidden)| {
            let gate = gate.map(StepId::from);
            ViewBlock::PostQrRouting(PostReview { gate, role, rule, routes, forbidden })
        },
    );
    let question = (text(), text()).prop_map(|(id, ask)| DetectionQuestion { id, ask });
    let questions = (text(), vec(question, 0..3)).prop_map(|(category, questions)| {
        ViewBlock::DetectionQuestions(DetectionQuestions { category, questions })
    });
    let check = (text(), text(), text()).prop_map(|(element, criterion, if_missing)| {
        ChecklistItem { element, criterion, if_missing }
    });
    let models = (text(), text(), vec((text(), text()), 0..3)).prop_map(
        |(default, rationale, overrides)| {
            let overrides = overrides.into_iter().collect();
            ViewBlock::ModelSelection(ModelSelection { default, rationale, overrides })
        },
    );
    prop_oneof![
        text().prop_map(ViewBlock::Text),
        banner,
        texts().prop_map(ViewBlock::Forbidden),
        expected,
        routes().prop_map(ViewBlock::Routing),
        post,
        (text(), text(), text()).prop_map(|(name, purpose, text)| {
            ViewBlock::Resource(ResourceView { name, purpose, text })
        }),
        questions,
        vec(check, 0..3).prop_map(ViewBlock::VerificationChecklist),
        (text(), text()).prop_map(|(example, consequence)| {
            ViewBlock::IncorrectBehavior(IncorrectBehavior { example, consequence })
        }),
        text().prop_map(ViewBlock::OrchestratorConstraint),
        text().prop_map(ViewBlock::FactoredVerification),
        text().prop_map(ViewBlock::OpenQuestions),
        models,
        dispatch().prop_map(ViewBlock::Dispatch),
        (text(), text()).prop_map(|(report, orchestrator_action)| {
            ViewBlock::QrReport(ReportForm { report, orchestrator_action })
        }),
    ]
}

fn report() -> impl Strategy<Value = ReportView> {
    let set = (text(), text(), text()).prop_map(|(name, takes, description)| SetView {
        name,
        takes,
        description,
    });
    let fact =
        (text(), text(), texts()).prop_map(|(id, ask, answers)| FactView { id, ask, answers });
    (vec(set, 0..3), maybe(), maybe(), vec(fact, 0..3))
        .prop_map(|(set, output, confidence, facts)| ReportView { set, output, confidence, facts })
}

fn next() -> impl Strategy<Value = NextStep> {
    let outcome = prop_oneof![
        Just(None),
        Just(Some("ok".to_owned())),
        Just(Some("fail".to_owned())),
        maybe(),
    ];
    let way = (outcome, text(), option::of(any::<usize>()), text(), command()).prop_map(
        |(outcome, when, to, title, command)| NextStepOption { outcome, when, to, title, command },
    );
    let choice = (text(), text(), command()).prop_map(|(choice, meaning, command)| ChoiceView {
        choice,
        meaning,
        command,
    });
    let question =
        (text(), text(), texts()).prop_map(|(id, ask, options)| UserQuestion { id, ask, options });
    let person = (text(), vec(choice, 0..3), vec(question, 0..3), option::of(command()));
    prop_oneof![
        text().prop_map(|message| NextStep::Complete { message }),
        text().prop_map(|message| NextStep::Record { message }),
        (vec(way, 0..4), option::of(command()))
            .prop_map(|(ways, on_error)| NextStep::Ways { ways, on_error }),
        person.prop_map(|(about, choices, questions, command)| {
            NextStep::Person { about, choices, questions, command }
        }),
    ]
}

/// A step.
pub(super) fn view() -> impl Strategy<Value = StepView> {
    let place = (text(), maybe(), text(), any::<u32>(), any::<usize>(), any::<usize>());
    let names = (text(), text(), maybe(), maybe(), any::<u32>());
    let review = (option::of(gate()), option::of(review()), option::of(findings()));
    let answer =
        (text(), text(), text()).prop_map(|(id, ask, answer)| UserAnswer { id, ask, answer });
    let rest = (vec(answer, 0..3), vec(block(), 0..4), report(), next());
    (place, names, review, rest).prop_map(|(place, names, review, rest)| {
        let (workflow, run, status, turn, step, total) = place;
        let (id, title, phase, role, iteration) = names;
        let (gate, review, findings) = review;
        let (answers, actions, report, next) = rest;
        StepView {
            protocol: PROTOCOL,
            workflow,
            run: run.map(WorkflowRunId::new),
            status,
            turn,
            step,
            total,
            id,
            title,
            phase,
            role,
            iteration,
            gate,
            review,
            findings,
            answers,
            actions,
            report,
            next,
        }
    })
}
