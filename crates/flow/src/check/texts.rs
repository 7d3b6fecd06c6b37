//! Checks that texts and conditions are valid templates and use only declared names.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::names::meant;
use super::{Finding, Place};
use crate::codes;
use crate::limits::INJECTED_BYTES_MAX;
use crate::template::{TemplateError, names_in_expression, names_in_text};
use crate::workflow::{ArgType, Block, Decide, Dispatch, StepDef, Workflow};

/// The fields of `state` that templates can use.
const STATE: [&str; 6] = ["run", "step", "iteration", "outputs", "answers", "error"];

/// Help for a reference to an output that does not exist.
const OUTPUTS: &str = "Give the step an `output`, which says what it hands over, or correct the name; an id with `-` is \
written `state.outputs[\"a-b\"]`.";
/// Help for a reference to an undeclared parameter.
const PARAMETERS: &str = "Declare it under `parameters`, or correct the name.";

pub(super) fn check(workflow: &Workflow, out: &mut Vec<Finding>) {
    let mut checker = Checker { workflow, out };
    for (name, check) in &workflow.checks {
        let place = Place::default().key("checks").key(name.as_str());
        for (key, text) in
            [("command", &check.command), ("file", &check.file), ("plan", &check.plan)]
        {
            checker.text(text, &place.key(key), Item::Unknown);
        }
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = Place::step(at);
        checker.injected(step, &place);
        for (at, block) in step.actions.iter().enumerate() {
            checker.block(block, &place.key("actions").index(at));
        }
        match &step.decide {
            Decide::Cases(cases) => {
                for (at, case) in cases.when.iter().enumerate() {
                    let place = place.key("decide").key("cases").key("when").index(at).key("if");
                    checker.condition(&case.condition, &place);
                }
            }
            Decide::Gate(gate) => {
                for text in [&gate.banner, &gate.stop].into_iter().flatten() {
                    checker.text(text, &place.key("decide").key("gate"), Item::Unknown);
                }
                checker.text(&gate.pass_message, &place.key("decide").key("gate"), Item::Unknown);
            }
            Decide::Confidence(_) | Decide::Reported => {}
        }
    }
}

/// Tells if `item` is defined in a text.
#[derive(Clone, Copy, PartialEq)]
enum Item {
    Known,
    Unknown,
}

struct Checker<'a> {
    workflow: &'a Workflow,
    out: &'a mut Vec<Finding>,
}

impl Checker<'_> {
    /// Caps the injected bytes of a step: a short text that is injected often becomes long.
    fn injected(&mut self, step: &StepDef, place: &Place) {
        let texts = step.actions.iter().filter_map(|block| match block {
            Block::Resource(name) => self.workflow.resources.get(name)?.text.as_ref(),
            Block::Convention(name) => self.workflow.conventions.get(name),
            _ => None,
        });
        let bytes: usize = texts.map(String::len).sum();
        if bytes > INJECTED_BYTES_MAX {
            let message = format!(
                "step `{}` injects {bytes} bytes, and {INJECTED_BYTES_MAX} is the limit",
                step.id
            );
            self.out.push(Finding::new(&codes::BAD_BOUND, message, place.key("actions")));
        }
    }

    fn block(&mut self, block: &Block, place: &Place) {
        let _: Result<Block, Infallible> = block.try_map(&mut |text| {
            self.text(text, place, Item::Unknown);
            Ok(String::new())
        });
        if let Block::Dispatch(dispatch) = block {
            self.dispatch(dispatch, place);
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch, place: &Place) {
        match dispatch {
            Dispatch::Single(_) | Dispatch::Parallel(_) => {}
            Dispatch::Template(template) => {
                self.over(&template.over, place);
                let _: Result<_, Infallible> = template.each.try_map(&mut |text| {
                    self.text(text, place, Item::Known);
                    Ok(String::new())
                });
            }
            Dispatch::Conditional(conditional) => {
                if let Some(expression) = &conditional.expression {
                    self.condition(expression, place);
                }
                self.dispatch(&conditional.then, place);
                if let Some(other) = &conditional.otherwise {
                    self.dispatch(other, place);
                }
            }
        }
    }

    fn over(&mut self, over: &str, place: &Place) {
        let kind = self.workflow.parameters.get(over).map(|arg| arg.kind);
        let is_list = matches!(kind, Some(ArgType::List | ArgType::Work));
        if over != "items" && !is_list {
            let parameters = self.workflow.parameters.iter();
            let lists =
                parameters.filter(|(_, arg)| matches!(arg.kind, ArgType::List | ArgType::Work));
            let near =
                meant(self.out.len(), over, lists.map(|(name, _)| name.as_str()).chain(["items"]));
            let message = format!("`{over}` is no parameter of type `list` or `work`{near}");
            self.out.push(Finding::new(&codes::UNKNOWN_REFERENCE, message, place.clone()));
        }
    }

    fn text(&mut self, text: &str, place: &Place, item: Item) {
        self.names(names_in_text(text), place, item);
    }

    fn condition(&mut self, expression: &str, place: &Place) {
        self.names(names_in_expression(expression), place, Item::Unknown);
    }

    fn names(&mut self, names: Result<BTreeSet<String>, TemplateError>, place: &Place, item: Item) {
        let names = match names {
            Ok(names) => names,
            Err(error) => {
                let line = error.line.map(|line| format!(" (line {line} of the text)"));
                let message = format!("{}{}", error.message, line.unwrap_or_default());
                self.out.push(Finding::new(&codes::BAD_TEMPLATE, message, place.clone()));
                return;
            }
        };
        for name in names {
            let found = self.unknown(&name, place, item);
            self.out.extend(found);
        }
    }

    fn unknown(&self, name: &str, place: &Place, item: Item) -> Option<Finding> {
        let undeclared = |message: String| {
            Finding::new(&codes::UNDECLARED_NAME, message, place.clone()).about_name(name)
        };
        let mut parts = name.split('.');
        let first = parts.next().unwrap_or_default();
        match first {
            "item" if item == Item::Known => None,
            "state" => {
                let field = parts.next();
                let step = parts.next();
                match (field, step) {
                    (None, _) => None,
                    (Some("outputs"), Some(id)) => {
                        self.no_output(id).map(|said| undeclared(said).with_help(OUTPUTS))
                    }
                    (Some(field), _) if !STATE.contains(&field) => {
                        let said =
                            format!("the state has no `{field}`; it has {}", STATE.join(", "));
                        Some(undeclared(said).with_help("Correct the name."))
                    }
                    _ => None,
                }
            }
            first if self.workflow.parameters.contains_key(first) => None,
            first => {
                let declared = self.workflow.parameters.keys().map(String::as_str);
                let near = meant(self.out.len(), first, declared.chain(["state"]));
                let said = format!("`{first}` is not declared under `parameters`{near}");
                Some(undeclared(said).about_name(first).with_help(PARAMETERS))
            }
        }
    }

    /// Explains why this step has no output; `None` if it has one.
    fn no_output(&self, id: &str) -> Option<String> {
        match self.workflow.step(&id.into()) {
            Some(step) if step.output.is_some() => None,
            Some(_) => Some(format!("step `{id}` hands over no output")),
            None => {
                let steps = self.workflow.steps.iter().filter(|step| step.output.is_some());
                let near = meant(self.out.len(), id, steps.map(|step| step.id.as_str()));
                Some(format!("there is no step `{id}` that hands over an output{near}"))
            }
        }
    }
}
