//! Delegates a run to an external agent: with the same prompt and skills, under the same
//! permissions.

use repertoire_model::{ModelMessage, ResponseFormat, UserPart};

use super::{AgentRunError, RunReport, System};
use crate::backend::{
    Backend, BackendJob, BackendRestrictions, BackendResult, freedom_of_mode, restrict_backend,
};
use crate::effect::EffectSet;
use crate::event::{AgentRunStatus, EventKind};
use crate::limits::BACKEND_IDLE;
use crate::middleware::AgentTurn;

impl System {
    /// Delegates the run to an external agent.
    pub(super) async fn run_backend(
        &self,
        turn: &mut AgentTurn,
        backend: &dyn Backend,
        report: &mut RunReport,
    ) {
        turn.preview = true;
        let before = turn.conversation.messages.len();
        self.run_turn(turn).await;
        if let Some(error) = turn.outcome.take().and_then(|outcome| outcome.error) {
            report.status = error.status();
            report.error = Some(error.into());
            return;
        }
        let failed =
            |message| AgentRunError::Backend { backend: backend.name().to_owned(), message };
        let (permissions, model) = (turn.run.permissions(), turn.options.model.as_ref());
        let limit = turn.run.limit();
        let told = match restrict_backend(backend, &permissions, &limit, model, &turn.run.events) {
            Ok(told) => told,
            Err(message) => {
                report.error = Some(failed(message));
                return;
            }
        };
        let job = with_form(build_job(turn, before, told), turn, backend);
        let ended = backend.run(&job, &turn.run.events).await;
        if let Some(form) = &job.form {
            form.close();
        }
        let BackendResult { status, text, structured, error, usage, cost_usd, .. } = ended;
        if !text.is_empty() {
            turn.conversation.messages.push(ModelMessage::assistant(text.clone()));
        }
        turn.conversation.session = ended.session.clone().or(turn.conversation.session.take());
        turn.conversation.session_at = Some(backend.name().to_owned());
        report.status = status;
        report.text = text;
        report.structured = structured;
        report.usage = usage;
        report.cost_usd = cost_usd;
        report.iterations = ended.iterations;
        report.denials = ended.denials;
        report.session = turn.conversation.session.clone();
        let message =
            error.or_else(|| (status != AgentRunStatus::Done).then(|| "it failed".to_owned()));
        report.error = message.map(failed);
    }
}

/// Adds a form for the answer, if the backend needs one. If the form cannot be created, the job is
/// unchanged: the answer is then parsed from the text.
fn with_form(job: BackendJob, turn: &AgentTurn, backend: &dyn Backend) -> BackendJob {
    let Some(forms) = turn.options.forms.as_ref().filter(|_| backend.wants_forms()) else {
        return job;
    };
    let ResponseFormat::Schema { name, schema } =
        turn.options.format.as_ref().unwrap_or(&turn.agent.format)
    else {
        return job;
    };
    let Ok(form) = forms.open(name, schema) else { return job };
    let Some(servers) = forms.with_server(&form, job.mcp_servers.as_ref()) else {
        form.close();
        return job;
    };
    BackendJob { form: Some(form), mcp_servers: Some(servers), ..job }
}

/// Builds the job for an external agent: the system prompt, skills loaded since, and the user's new
/// messages.
fn build_job(turn: &AgentTurn, before: usize, told: BackendRestrictions) -> BackendJob {
    let messages = &turn.conversation.messages;
    let goes_on = turn.conversation.session.is_some() && before > 0;
    // Most programs don't store the system prompt with the session, so it is always passed again.
    let leading = messages
        .iter()
        .take_while(|message| matches!(message, ModelMessage::System { .. }))
        .count();
    let fresh = &messages[if goes_on { before } else { leading }..];
    let options = &turn.options;
    let limits = turn.run.spending.limits();
    let schema = match options.format.as_ref().unwrap_or(&turn.agent.format) {
        ResponseFormat::Schema { schema, .. } => Some(schema.clone()),
        _ => None,
    };
    // Tools of MCP servers may have any effect, so a limited run does not get them.
    let takes_servers = EffectSet::UNKNOWN_TOOL.without(told.effects).is_empty();
    if options.mcp_servers.is_some() && !takes_servers {
        let message = "MCP servers are not offered in this run: their tools may have effects that it may not have.";
        let what = "limits".to_owned();
        turn.run.events.emit_once(EventKind::Degraded { what, message: message.to_owned() });
    }
    BackendJob {
        system: join_texts(&messages[..leading]),
        prompt: join_texts(fresh),
        dir: turn.run.workplace.dir.clone(),
        environment: turn.run.workplace.environment.clone(),
        model: options.model.as_ref().map(|model| model.model.clone()),
        session: turn.conversation.session.clone(),
        schema,
        form: None,
        freedom: freedom_of_mode(&turn.run.permissions()),
        told,
        max_cost_usd: limits.cost_usd_max,
        max_iterations: turn.agent.max_iterations.into_iter().chain([limits.iterations_max]).min(),
        mcp_servers: options.mcp_servers.clone().filter(|_| takes_servers),
        ignore_project_rules: options.ignore_project_rules,
        idle: BACKEND_IDLE,
        absolute: limits.duration_max,
        usage: turn.run.workplace.limits.usage.of_agent(),
        cancel: turn.run.cancel.clone(),
    }
}

fn join_texts(messages: &[ModelMessage]) -> String {
    messages.iter().map(message_text).collect::<Vec<_>>().join("\n\n")
}

/// The text of a message, without tool results.
fn message_text(message: &ModelMessage) -> String {
    match message {
        ModelMessage::System { text } => text.clone(),
        ModelMessage::User { content } => {
            let texts = content.iter().filter_map(|part| match part {
                UserPart::Text { text } => Some(text.as_str()),
                UserPart::ToolResult(_) => None,
            });
            texts.collect::<Vec<_>>().join("\n\n")
        }
        ModelMessage::Assistant { .. } => message.text(),
    }
}
