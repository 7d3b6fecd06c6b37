//! Renders blocks: fills in templates, resources, banners and the briefs of sub-agents.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Addressing, AgentView, Command, DispatchView, ResourceView, ViewBlock};
use crate::check::Checked;
use crate::state::{ItemStatus, State};
use crate::template::{Scope, TemplateError, fill, holds};
use crate::workflow::{Banner, Block, Brief, Dispatch, StepDef, StepId, Template};

/// Renders the actions of a step.
pub(super) fn show(
    checked: &Checked,
    state: &State,
    step: &StepDef,
    scope: &Scope,
    addressing: &Addressing,
) -> Result<Vec<ViewBlock>, TemplateError> {
    let shower = Shower { checked, state, scope, addressing };
    let mut shown = Vec::new();
    for block in &step.actions {
        match block {
            // A dispatch renders itself, so that the templates of a branch not taken are not evaluated.
            Block::Dispatch(dispatch) => {
                shown.extend(shower.dispatches(dispatch)?.into_iter().map(ViewBlock::Dispatch));
            }
            other => shown.push(shower.block(other)?),
        }
    }
    Ok(shown)
}

struct Shower<'a> {
    checked: &'a Checked,
    state: &'a State,
    scope: &'a Scope,
    addressing: &'a Addressing,
}

impl Shower<'_> {
    fn block(&self, block: &Block) -> Result<ViewBlock, TemplateError> {
        Ok(match block.try_map(&mut |text| fill(text, self.scope))? {
            Block::Text(text) => ViewBlock::Text(text),
            Block::StateBanner(banner) => {
                ViewBlock::StateBanner(Banner { iteration: Some(self.state.visit()), ..banner })
            }
            Block::QrBanner(gate) => ViewBlock::StateBanner(self.review_banner(&gate)?),
            Block::Forbidden(all) => ViewBlock::Forbidden(all),
            Block::ExpectedOutput(output) => ViewBlock::ExpectedOutput(output),
            Block::Routing(routes) => ViewBlock::Routing(routes),
            Block::PostQrRouting(post) => ViewBlock::PostQrRouting(post),
            Block::Resource(name) => ViewBlock::Resource(self.resource(&name)),
            Block::Convention(name) => ViewBlock::Resource(ResourceView {
                text: self.checked.workflow().conventions.get(&name).cloned().unwrap_or_default(),
                purpose: "A convention to hold to".to_owned(),
                name,
            }),
            Block::DetectionQuestions(asked) => ViewBlock::DetectionQuestions(asked),
            Block::VerificationChecklist(items) => ViewBlock::VerificationChecklist(items),
            Block::IncorrectBehavior(wrong) => ViewBlock::IncorrectBehavior(wrong),
            Block::OrchestratorConstraint(text) => ViewBlock::OrchestratorConstraint(text),
            Block::FactoredVerification(text) => ViewBlock::FactoredVerification(text),
            Block::OpenQuestions(text) => ViewBlock::OpenQuestions(text),
            Block::ModelSelection(models) => ViewBlock::ModelSelection(models),
            Block::Dispatch(dispatch) => ViewBlock::Dispatch(self.dispatch(&dispatch)?),
            Block::QrReport(form) => ViewBlock::QrReport(form),
        })
    }

    fn resource(&self, name: &str) -> ResourceView {
        let found = self.checked.workflow().resources.get(name).cloned().unwrap_or_default();
        ResourceView {
            name: name.to_owned(),
            purpose: found.purpose,
            text: found.text.unwrap_or_default(),
        }
    }

    fn review_banner(&self, gate_id: &StepId) -> Result<Banner, TemplateError> {
        let gate = self.checked.step(gate_id).and_then(|step| step.decide.as_gate());
        let Some(gate) = gate else { return Ok(Banner::default()) };
        let iteration = self.state.iteration(gate_id);
        let mode = match (iteration, gate.reverify) {
            (1, _) => "initial review",
            (_, Some(crate::workflow::Reverify::Targeted)) => "targeted review",
            (_, _) => "fresh review",
        };
        Ok(Banner {
            checkpoint: gate.name.clone(),
            mode: mode.to_owned(),
            lines: vec![fill(gate.banner.as_deref().unwrap_or_default(), self.scope)?],
            iteration: Some(iteration),
        })
    }

    /// The dispatches to carry out: one after another if the work comes in waves, none if the condition does not hold.
    fn dispatches(&self, dispatch: &Dispatch) -> Result<Vec<DispatchView>, TemplateError> {
        match dispatch {
            Dispatch::Template(template) => self.waves(template),
            Dispatch::Conditional(conditional) if conditional.expression.is_some() => {
                let holds =
                    holds(conditional.expression.as_deref().unwrap_or_default(), self.scope)?;
                match (holds, &conditional.otherwise) {
                    (true, _) => self.dispatches(&conditional.then),
                    (false, Some(other)) => self.dispatches(other),
                    (false, None) => Ok(Vec::new()),
                }
            }
            Dispatch::Single(_) | Dispatch::Parallel(_) | Dispatch::Conditional(_) => {
                Ok(vec![self.dispatch(dispatch)?])
            }
        }
    }

    /// Groups entries by wave. The entries of a wave are started together, the waves one after another.
    fn waves(&self, template: &Template) -> Result<Vec<DispatchView>, TemplateError> {
        let entries = self.entries(&template.over);
        let wave_of = |entry: &Value| entry.get("wave").and_then(Value::as_u64).unwrap_or(1);
        let numbers: BTreeSet<u64> = entries.iter().map(wave_of).collect();
        if numbers.len() < 2 {
            return Ok(vec![self.template(template, &entries, String::new())?]);
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
            all.push(self.template(template, &wave, said)?);
        }
        Ok(all)
    }

    fn dispatch(&self, dispatch: &Dispatch) -> Result<DispatchView, TemplateError> {
        Ok(match dispatch {
            Dispatch::Single(brief) => DispatchView::Single(self.agent(brief, self.scope)?),
            Dispatch::Parallel(parallel) => DispatchView::Parallel {
                instruction: fill(&parallel.instruction, self.scope)?,
                shared: fill(&parallel.shared, self.scope)?,
                agents: parallel
                    .agents
                    .iter()
                    .map(|brief| self.agent(brief, self.scope))
                    .collect::<Result<_, _>>()?,
            },
            Dispatch::Template(template) => {
                self.template(template, &self.entries(&template.over), String::new())?
            }
            Dispatch::Conditional(conditional) => {
                let judged = match &conditional.expression {
                    Some(expression) => Some(holds(expression, self.scope)?),
                    None => None,
                };
                match judged {
                    Some(true) => self.dispatch(&conditional.then)?,
                    Some(false) => match &conditional.otherwise {
                        Some(other) => self.dispatch(other)?,
                        None => DispatchView::None {
                            reason: format!(
                                "This does not hold: {}",
                                fill(&conditional.condition, self.scope)?
                            ),
                        },
                    },
                    None => DispatchView::Conditional {
                        condition: fill(&conditional.condition, self.scope)?,
                        then: Box::new(self.dispatch(&conditional.then)?),
                        otherwise: match &conditional.otherwise {
                            Some(other) => Some(Box::new(self.dispatch(other)?)),
                            None => None,
                        },
                    },
                }
            }
        })
    }

    fn template(
        &self,
        template: &Template,
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
            let mut agent = self.agent(&template.each, &scope)?;
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
        let shared = fill(&template.shared, self.scope)?;
        Ok(DispatchView::Parallel { instruction, shared, agents })
    }

    /// The entries to dispatch: those of a list parameter, or the open items of the current review.
    fn entries(&self, over: &str) -> Vec<Value> {
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

    fn agent(&self, brief: &Brief, scope: &Scope) -> Result<AgentView, TemplateError> {
        let brief = brief.try_map(&mut |text| fill(text, scope))?;
        let command = brief.workflow.as_ref().map(|workflow| {
            let mut argv: Vec<String> =
                ["rep", "workflow", "start", workflow].map(str::to_owned).to_vec();
            for (name, value) in &brief.with {
                argv.extend(["--param".to_owned(), format!("{name}={value}")]);
            }
            if self.addressing.is_run() {
                argv.extend(["--parent".to_owned(), self.state.run.to_string()]);
            }
            Command::new(argv)
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
