//! Renders blocks: fills in templates, resources, banners and the briefs of sub-agents.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{AgentView, DispatchView, ResourceView, ShellCommand, StepAddressing, ViewBlock};
use crate::check::CheckedWorkflow;
use crate::state::{ItemStatus, WorkflowRunState};
use crate::template::{TemplateError, TemplateScope, evaluate_condition, render_template};
use crate::workflow::{
    StateBanner, StepBlock, StepDef, StepId, SubagentBrief, SubagentDispatch, TemplateDispatch,
};

/// Renders the actions of a step.
pub(super) fn render_blocks(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    scope: &TemplateScope,
    addressing: &StepAddressing,
) -> Result<Vec<ViewBlock>, TemplateError> {
    let shower = BlockRenderer { checked, state, scope, addressing };
    let mut shown = Vec::new();
    for block in &step.actions {
        match block {
            // A dispatch renders itself, so that the templates of a branch not taken are not evaluated.
            StepBlock::Dispatch(dispatch) => {
                shown.extend(
                    shower.render_dispatches(dispatch)?.into_iter().map(ViewBlock::Dispatch),
                );
            }
            other => shown.push(shower.render_block(other)?),
        }
    }
    Ok(shown)
}

struct BlockRenderer<'a> {
    checked: &'a CheckedWorkflow,
    state: &'a WorkflowRunState,
    scope: &'a TemplateScope,
    addressing: &'a StepAddressing,
}

impl BlockRenderer<'_> {
    fn render_block(&self, block: &StepBlock) -> Result<ViewBlock, TemplateError> {
        Ok(match block.try_map(&mut |text| render_template(text, self.scope))? {
            StepBlock::Text(text) => ViewBlock::Text(text),
            StepBlock::StateBanner(banner) => ViewBlock::StateBanner(StateBanner {
                iteration: Some(self.state.visit_count()),
                ..banner
            }),
            StepBlock::QrBanner(gate) => ViewBlock::StateBanner(self.review_banner(&gate)?),
            StepBlock::Forbidden(all) => ViewBlock::Forbidden(all),
            StepBlock::ExpectedOutput(output) => ViewBlock::ExpectedOutput(output),
            StepBlock::Routing(routes) => ViewBlock::Routing(routes),
            StepBlock::PostQrRouting(post) => ViewBlock::PostQrRouting(post),
            StepBlock::Resource(name) => ViewBlock::Resource(self.render_resource(&name)),
            StepBlock::Convention(name) => ViewBlock::Resource(ResourceView {
                text: self.checked.workflow().conventions.get(&name).cloned().unwrap_or_default(),
                purpose: "A convention to hold to".to_owned(),
                name,
            }),
            StepBlock::DetectionQuestions(asked) => ViewBlock::DetectionQuestions(asked),
            StepBlock::VerificationChecklist(items) => ViewBlock::VerificationChecklist(items),
            StepBlock::IncorrectBehavior(wrong) => ViewBlock::IncorrectBehavior(wrong),
            StepBlock::OrchestratorConstraint(text) => ViewBlock::OrchestratorConstraint(text),
            StepBlock::FactoredVerification(text) => ViewBlock::FactoredVerification(text),
            StepBlock::OpenQuestions(text) => ViewBlock::OpenQuestions(text),
            StepBlock::ModelSelection(models) => ViewBlock::ModelSelection(models),
            StepBlock::Dispatch(dispatch) => ViewBlock::Dispatch(self.render_dispatch(&dispatch)?),
            StepBlock::QrReport(form) => ViewBlock::QrReport(form),
        })
    }

    fn render_resource(&self, name: &str) -> ResourceView {
        let found = self.checked.workflow().resources.get(name).cloned().unwrap_or_default();
        ResourceView {
            name: name.to_owned(),
            purpose: found.purpose,
            text: found.text.unwrap_or_default(),
        }
    }

    fn review_banner(&self, gate_id: &StepId) -> Result<StateBanner, TemplateError> {
        let gate = self.checked.find_step(gate_id).and_then(|step| step.decide.as_gate());
        let Some(gate) = gate else { return Ok(StateBanner::default()) };
        let iteration = self.state.review_iteration(gate_id);
        let mode = match (iteration, gate.reverify) {
            (1, _) => "initial review",
            (_, Some(crate::workflow::ReverifyMode::Targeted)) => "targeted review",
            (_, _) => "fresh review",
        };
        Ok(StateBanner {
            checkpoint: gate.name.clone(),
            mode: mode.to_owned(),
            lines: vec![render_template(gate.banner.as_deref().unwrap_or_default(), self.scope)?],
            iteration: Some(iteration),
        })
    }

    /// The dispatches to carry out: one after another if the work comes in waves, none if the condition does not hold.
    fn render_dispatches(
        &self,
        dispatch: &SubagentDispatch,
    ) -> Result<Vec<DispatchView>, TemplateError> {
        match dispatch {
            SubagentDispatch::Template(template) => self.render_waves(template),
            SubagentDispatch::Conditional(conditional) if conditional.expression.is_some() => {
                let holds = evaluate_condition(
                    conditional.expression.as_deref().unwrap_or_default(),
                    self.scope,
                )?;
                match (holds, &conditional.otherwise) {
                    (true, _) => self.render_dispatches(&conditional.then),
                    (false, Some(other)) => self.render_dispatches(other),
                    (false, None) => Ok(Vec::new()),
                }
            }
            SubagentDispatch::Single(_)
            | SubagentDispatch::Parallel(_)
            | SubagentDispatch::Conditional(_) => Ok(vec![self.render_dispatch(dispatch)?]),
        }
    }

    /// Groups entries by wave. The entries of a wave are started together, the waves one after another.
    fn render_waves(
        &self,
        template: &TemplateDispatch,
    ) -> Result<Vec<DispatchView>, TemplateError> {
        let entries = self.dispatch_entries(&template.over);
        let wave_of = |entry: &Value| entry.get("wave").and_then(Value::as_u64).unwrap_or(1);
        let numbers: BTreeSet<u64> = entries.iter().map(wave_of).collect();
        if numbers.len() < 2 {
            return Ok(vec![self.render_template_dispatch(template, &entries, String::new())?]);
        }
        let mut all = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            let wave: Vec<Value> =
                entries.iter().filter(|entry| wave_of(entry) == *number).cloned().collect();
            let when = match at {
                0 => "Start these first, together.".to_owned(),
                _ => {
                    "Start these, together, when everything of the wave before is done.".to_owned()
                }
            };
            let said = format!("Wave {} of {}. {when}", at + 1, numbers.len());
            all.push(self.render_template_dispatch(template, &wave, said)?);
        }
        Ok(all)
    }

    fn render_dispatch(&self, dispatch: &SubagentDispatch) -> Result<DispatchView, TemplateError> {
        Ok(match dispatch {
            SubagentDispatch::Single(brief) => {
                DispatchView::Single(self.render_agent(brief, self.scope)?)
            }
            SubagentDispatch::Parallel(parallel) => DispatchView::Parallel {
                instruction: render_template(&parallel.instruction, self.scope)?,
                shared: render_template(&parallel.shared, self.scope)?,
                agents: parallel
                    .agents
                    .iter()
                    .map(|brief| self.render_agent(brief, self.scope))
                    .collect::<Result<_, _>>()?,
            },
            SubagentDispatch::Template(template) => self.render_template_dispatch(
                template,
                &self.dispatch_entries(&template.over),
                String::new(),
            )?,
            SubagentDispatch::Conditional(conditional) => {
                let judged = match &conditional.expression {
                    Some(expression) => Some(evaluate_condition(expression, self.scope)?),
                    None => None,
                };
                match judged {
                    Some(true) => self.render_dispatch(&conditional.then)?,
                    Some(false) => match &conditional.otherwise {
                        Some(other) => self.render_dispatch(other)?,
                        None => DispatchView::None {
                            reason: format!(
                                "This does not hold: {}",
                                render_template(&conditional.condition, self.scope)?
                            ),
                        },
                    },
                    None => DispatchView::Conditional {
                        condition: render_template(&conditional.condition, self.scope)?,
                        then: Box::new(self.render_dispatch(&conditional.then)?),
                        otherwise: match &conditional.otherwise {
                            Some(other) => Some(Box::new(self.render_dispatch(other)?)),
                            None => None,
                        },
                    },
                }
            }
        })
    }

    fn render_template_dispatch(
        &self,
        template: &TemplateDispatch,
        entries: &[Value],
        instruction: String,
    ) -> Result<DispatchView, TemplateError> {
        if entries.is_empty() {
            let reason = format!("There is nothing in `{}` to hand out.", template.over);
            return Ok(DispatchView::None { reason });
        }
        let mut agents = Vec::new();
        for entry in entries {
            let scope = self.scope.and_item(entry);
            let mut agent = self.render_agent(&template.each, &scope)?;
            if agent.id.is_empty() {
                let id = entry.get("id").and_then(Value::as_str);
                agent.id = id.unwrap_or_default().to_owned();
            }
            if let Some(files) = entry.get("files").and_then(Value::as_array)
                && agent.files.is_empty()
            {
                agent.files = files.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
            agents.push(agent);
        }
        let shared = render_template(&template.shared, self.scope)?;
        Ok(DispatchView::Parallel { instruction, shared, agents })
    }

    /// The entries to dispatch: those of a list parameter, or the open items of the current review.
    fn dispatch_entries(&self, over: &str) -> Vec<Value> {
        if over != "items" {
            let list = self.state.parameters.get(over).and_then(Value::as_array);
            return list.cloned().unwrap_or_default();
        }
        let gate = self.checked.workflow().gates().find(|(step, gate)| {
            step.id == self.state.step || gate.reviews.contains(&self.state.step)
        });
        let review = gate.and_then(|(step, _)| self.state.reviews.get(&step.id));
        let items = review.map(|review| review.items.as_slice()).unwrap_or_default();
        let open = items.iter().filter(|item| item.status == ItemStatus::Todo);
        open.map(|item| {
            json!({
                "id": item.id, "scope": item.scope, "check": item.check,
                "severity": item.severity.as_str(),
            })
        })
        .collect()
    }

    fn render_agent(
        &self,
        brief: &SubagentBrief,
        scope: &TemplateScope,
    ) -> Result<AgentView, TemplateError> {
        let brief = brief.try_map(&mut |text| render_template(text, scope))?;
        let command = brief.workflow.as_ref().map(|workflow| {
            let mut argv: Vec<String> =
                ["rep", "workflow", "start", workflow].map(str::to_owned).to_vec();
            for (name, value) in &brief.with {
                argv.extend(["--param".to_owned(), format!("{name}={value}")]);
            }
            if self.addressing.is_run() {
                argv.extend(["--parent".to_owned(), self.state.run.to_string()]);
            }
            ShellCommand::new(argv)
        });
        Ok(AgentView {
            id: brief.id,
            agent: brief.agent.as_str().to_owned(),
            model: brief.model,
            task: brief.task,
            context: if command.is_some() { Vec::new() } else { brief.with.into_iter().collect() },
            command,
            files: brief.files,
            returns: brief.returns,
            return_tokens_max: brief.return_tokens_max,
        })
    }
}
