//! Calls the model: emits text as it arrives, assembles the answer, and records its cost.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use repertoire_model::{
    ModelError, ModelMessage, ModelRequest, ModelResponse, ResponseAssembler, ResponseDelta,
    ResponseFormat, StopReason, TokenUsage, ToolChoice,
};

use super::{AgentTurn, MiddlewareNext, ModelChoice, TurnError, TurnMiddleware, TurnOutcome};
use crate::event::EventKind;
use crate::run::AgentRun;

#[derive(Clone, Copy, Debug)]
pub struct ModelCall;

impl TurnMiddleware for ModelCall {
    fn name(&self) -> &'static str {
        "model call"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.preview {
                turn.outcome = Some(TurnOutcome::done(String::new(), None));
                return Ok(());
            }
            let model = turn.model.clone().ok_or_else(|| {
                TurnError::Panicked("no model was chosen before it is called".to_owned())
            })?;
            let response = call_model(turn, &model).await?;
            record_response(turn, response);
            next.run(turn).await
        })
    }
}

/// Builds the request for the current conversation.
pub fn request<'a>(turn: &'a AgentTurn, model: &'a ModelChoice) -> ModelRequest<'a> {
    // The format is also requested on turns in which the model may still call tools.
    let format: ResponseFormat = turn.options.format.clone().unwrap_or(turn.agent.format.clone());
    ModelRequest {
        tools: &turn.specs,
        tool_choice: ToolChoice::Auto,
        max_tokens: turn.options.max_tokens,
        sampling: turn.agent.sampling,
        thinking: turn.agent.thinking,
        format,
        ..ModelRequest::new(&model.name, &turn.conversation.messages)
    }
}

#[tracing::instrument(
    name = "model_call",
    skip_all,
    fields(
        model = %model.name,
        iteration = turn.iteration,
        attempt = turn.attempt,
        error = tracing::field::Empty
    )
)]
async fn call_model(turn: &mut AgentTurn, model: &ModelChoice) -> Result<ModelResponse, TurnError> {
    let system = turn.run.system.clone();
    let service = model.name.service;
    system.breakers().admit(service, system.clock().now_ms())?;
    let run = turn.run.clone();
    let mut admitted =
        AdmittedCall { run: &run, model, answer: Some(ResponseAssembler::default()) };
    turn.run.events.emit(EventKind::ModelCall {
        model: model.name.to_string(),
        iteration: turn.iteration,
        attempt: turn.attempt,
    });
    let mut stream = system.provider().stream(&request(turn, model));
    let mut failed = None;
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(delta) => {
                emit_delta(turn, &delta);
                admitted.push(&delta);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    drop(stream);
    let (answer, usage, cost_usd) = admitted.record_usage();
    let ended = match (failed, answer.finish()) {
        (Some(error), _) => Err(error),
        (None, None) => Err(ModelError::BrokenOff { service }),
        (None, Some(response)) => Ok(response),
    };
    system.breakers().record(service, ended.as_ref().map(|_| ()), system.clock().now_ms());
    if ended.is_err() {
        tracing::Span::current().record("error", true);
    }
    let response = ended?;
    turn.run.events.emit(EventKind::Answer {
        text: response.message.text(),
        stop: stop_reason_name(&response.stop),
        usage,
        cost_usd,
    });
    Ok(response)
}

/// A model call that the circuit breaker admitted. If it is dropped before its end, it does not
/// count as a failure of the service and frees the breaker, but its usage is still recorded.
struct AdmittedCall<'a> {
    run: &'a AgentRun,
    model: &'a ModelChoice,
    /// The answer so far; `None` once it has been recorded.
    answer: Option<ResponseAssembler>,
}

impl AdmittedCall<'_> {
    fn push(&mut self, delta: &ResponseDelta) {
        if let Some(answer) = &mut self.answer {
            answer.push(delta);
        }
    }

    fn record_usage(&mut self) -> (ResponseAssembler, TokenUsage, Option<f64>) {
        let answer = self.answer.take().unwrap_or_default();
        let usage = answer.usage();
        let cost_usd = self.run.system.prices().cost_usd(&self.model.name, &usage);
        self.run.spending.record_call(usage, cost_usd);
        (answer, usage, cost_usd)
    }
}

impl Drop for AdmittedCall<'_> {
    fn drop(&mut self) {
        if self.answer.is_some() {
            self.record_usage();
            self.run.system.breakers().record_abandoned(self.model.name.service);
        }
    }
}

fn emit_delta(turn: &AgentTurn, delta: &ResponseDelta) {
    let kind = match delta {
        ResponseDelta::Text(text) => EventKind::Text { text: text.clone() },
        ResponseDelta::Thinking(text) => EventKind::Thinking { text: text.clone() },
        _ => return,
    };
    turn.run.events.emit(kind);
}

fn record_response(turn: &mut AgentTurn, response: ModelResponse) {
    let usage = response.usage;
    turn.conversation.messages.push(response.message.clone());
    // Input and output tokens together cover the conversation up to here.
    let measured = usage.total();
    if measured > 0 {
        turn.conversation.measured = Some((turn.conversation.messages.len(), measured));
    }
    turn.response = Some(response);
}

fn stop_reason_name(stop: &StopReason) -> String {
    match stop {
        StopReason::EndTurn => "end_turn".to_owned(),
        StopReason::ToolUse => "tool_use".to_owned(),
        StopReason::MaxTokens => "max_tokens".to_owned(),
        StopReason::Refusal => "refusal".to_owned(),
        StopReason::Other(word) => word.clone(),
    }
}

/// Returns true if a message has neither text nor tool calls.
pub(crate) fn is_empty_message(message: &ModelMessage) -> bool {
    message.text().trim().is_empty() && message.tool_calls().next().is_none()
}
