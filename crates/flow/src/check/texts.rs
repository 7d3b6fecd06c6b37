//! Checks that texts and conditions are valid templates and use only declared names.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::names::suggest_name;
use super::{FieldPath, WorkflowFinding};
use crate::codes;
use crate::limits::INJECTED_BYTES_MAX;
use crate::template::{TemplateError, check_command_text, names_in_expression, names_in_text};
use crate::workflow::{Decide, ParameterType, StepBlock, StepDef, SubagentDispatch, Workflow};

/// The fields of `state` that templates can use.
const STATE: [&str; 6] = ["run", "step", "iteration", "outputs", "answers", "error"];

/// Help for a reference to an output that does not exist.
const OUTPUTS: &str = "Give the step an `output`, which says what it hands over, or correct the name; an id with `-` is \
written `state.outputs[\"a-b\"]`.";
/// Help for a reference to an undeclared parameter.
const PARAMETERS: &str = "Declare it under `parameters`, or correct the name.";

pub(super) fn check_texts(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    let mut checker = TextChecker { workflow, out };
    for (name, check) in &workflow.checks {
        let place = FieldPath::default().key("checks").key(name.as_str());
        for (key, text) in
            [("command", &check.command), ("file", &check.file), ("plan", &check.plan)]
        {
            checker.check_text(text, &place.key(key), ItemScope::Unknown);
        }
        if let Err(error) = check_command_text(&check.command) {
            let finding =
                WorkflowFinding::new(&codes::BAD_TEMPLATE, error.message, place.key("command"));
            checker.out.push(finding);
        }
    }
    for (at, step) in workflow.steps.iter().enumerate() {
        let place = FieldPath::for_step(at);
        checker.check_injected(step, &place);
        for (at, block) in step.actions.iter().enumerate() {
            checker.check_block(block, &place.key("actions").index(at));
        }
        match &step.decide {
            Decide::Cases(cases) => {
                for (at, case) in cases.when.iter().enumerate() {
                    let place = place.key("decide").key("cases").key("when").index(at).key("if");
                    checker.check_condition(&case.condition, &place);
                }
            }
            Decide::Gate(gate) => {
                for text in [&gate.banner, &gate.stop].into_iter().flatten() {
                    checker.check_text(text, &place.key("decide").key("gate"), ItemScope::Unknown);
                }
                checker.check_text(
                    &gate.pass_message,
                    &place.key("decide").key("gate"),
                    ItemScope::Unknown,
                );
            }
            Decide::Confidence(_) | Decide::Reported => {}
        }
    }
}

/// Tells if `item` is defined in a text.
#[derive(Clone, Copy, PartialEq)]
enum ItemScope {
    Known,
    Unknown,
}

struct TextChecker<'a> {
    workflow: &'a Workflow,
    out: &'a mut Vec<WorkflowFinding>,
}

impl TextChecker<'_> {
    /// Caps the injected bytes of a step: a short text that is injected often becomes long.
    fn check_injected(&mut self, step: &StepDef, place: &FieldPath) {
        let texts = step.actions.iter().filter_map(|block| match block {
            StepBlock::Resource(name) => self.workflow.resources.get(name)?.text.as_ref(),
            StepBlock::Convention(name) => self.workflow.conventions.get(name),
            _ => None,
        });
        let bytes: usize = texts.map(String::len).sum();
        if bytes > INJECTED_BYTES_MAX {
            let message = format!(
                "step `{}` injects {bytes} bytes, and {INJECTED_BYTES_MAX} is the limit",
                step.id
            );
            self.out.push(WorkflowFinding::new(&codes::BAD_BOUND, message, place.key("actions")));
        }
    }

    fn check_block(&mut self, block: &StepBlock, place: &FieldPath) {
        let _: Result<StepBlock, Infallible> = block.try_map(&mut |text| {
            self.check_text(text, place, ItemScope::Unknown);
            Ok(String::new())
        });
        if let StepBlock::Dispatch(dispatch) = block {
            self.check_dispatch(dispatch, place);
        }
    }

    fn check_dispatch(&mut self, dispatch: &SubagentDispatch, place: &FieldPath) {
        match dispatch {
            SubagentDispatch::Single(_) | SubagentDispatch::Parallel(_) => {}
            SubagentDispatch::Template(template) => {
                self.check_list_name(&template.over, place);
                let _: Result<_, Infallible> = template.each.try_map(&mut |text| {
                    self.check_text(text, place, ItemScope::Known);
                    Ok(String::new())
                });
            }
            SubagentDispatch::Conditional(conditional) => {
                if let Some(expression) = &conditional.expression {
                    self.check_condition(expression, place);
                }
                self.check_dispatch(&conditional.then, place);
                if let Some(other) = &conditional.otherwise {
                    self.check_dispatch(other, place);
                }
            }
        }
    }

    fn check_list_name(&mut self, over: &str, place: &FieldPath) {
        let kind = self.workflow.parameters.get(over).map(|arg| arg.kind);
        let is_list = matches!(kind, Some(ParameterType::List | ParameterType::Work));
        if over != "items" && !is_list {
            let parameters = self.workflow.parameters.iter();
            let lists = parameters
                .filter(|(_, arg)| matches!(arg.kind, ParameterType::List | ParameterType::Work));
            let near = suggest_name(
                self.out.len(),
                over,
                lists.map(|(name, _)| name.as_str()).chain(["items"]),
            );
            let message = format!("`{over}` is no parameter of type `list` or `work`{near}");
            self.out.push(WorkflowFinding::new(&codes::UNKNOWN_REFERENCE, message, place.clone()));
        }
    }

    fn check_text(&mut self, text: &str, place: &FieldPath, item: ItemScope) {
        self.check_used_names(names_in_text(text), place, item);
    }

    fn check_condition(&mut self, expression: &str, place: &FieldPath) {
        self.check_used_names(names_in_expression(expression), place, ItemScope::Unknown);
    }

    fn check_used_names(
        &mut self,
        names: Result<BTreeSet<String>, TemplateError>,
        place: &FieldPath,
        item: ItemScope,
    ) {
        let names = match names {
            Ok(names) => names,
            Err(error) => {
                let line = error.line.map(|line| format!(" (line {line} of the text)"));
                let message = format!("{}{}", error.message, line.unwrap_or_default());
                self.out.push(WorkflowFinding::new(&codes::BAD_TEMPLATE, message, place.clone()));
                return;
            }
        };
        for name in names {
            let found = self.check_used_name(&name, place, item);
            self.out.extend(found);
        }
    }

    fn check_used_name(
        &self,
        name: &str,
        place: &FieldPath,
        item: ItemScope,
    ) -> Option<WorkflowFinding> {
        let undeclared = |message: String| {
            WorkflowFinding::new(&codes::UNDECLARED_NAME, message, place.clone()).about_name(name)
        };
        let mut parts = name.split('.');
        let first = parts.next().unwrap_or_default();
        match first {
            "item" if item == ItemScope::Known => None,
            "state" => {
                let field = parts.next();
                let step = parts.next();
                match (field, step) {
                    (None, _) => None,
                    (Some("outputs"), Some(id)) => self
                        .explain_missing_output(id)
                        .map(|said| undeclared(said).with_help(OUTPUTS)),
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
                let near = suggest_name(self.out.len(), first, declared.chain(["state"]));
                let said = format!("`{first}` is not declared under `parameters`{near}");
                Some(undeclared(said).about_name(first).with_help(PARAMETERS))
            }
        }
    }

    /// Explains why this step has no output; `None` if it has one.
    fn explain_missing_output(&self, id: &str) -> Option<String> {
        match self.workflow.find_step(&id.into()) {
            Some(step) if step.output.is_some() => None,
            Some(_) => Some(format!("step `{id}` hands over no output")),
            None => {
                let steps = self.workflow.steps.iter().filter(|step| step.output.is_some());
                let near = suggest_name(self.out.len(), id, steps.map(|step| step.id.as_str()));
                Some(format!("there is no step `{id}` that hands over an output{near}"))
            }
        }
    }
}
