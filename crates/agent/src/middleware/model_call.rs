//! Calls the model: emits text as it arrives, assembles the answer, and records its cost.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use repertoire_model::{
    Assembler, Delta, Error, Message, Request, Response, ResponseFormat, StopReason, ToolChoice,
    Usage,
};

use super::{Middleware, ModelChoice, Next, Outcome, Turn, TurnError};
use crate::event::EventKind;
use crate::run::Run;

#[derive(Clone, Copy, Debug)]
pub struct ModelCall;

impl Middleware for ModelCall {
    fn name(&self) -> &'static str {
        "model call"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut Turn,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            if turn.preview {
                turn.outcome = Some(Outcome::done(String::new(), None));
                return Ok(());
            }
            let model = turn.model.clone().ok_or_else(|| {
                TurnError::Panicked("no model was chosen before it is called".to_owned())
            })?;
            let response = call(turn, &model).await?;
            remember(turn, response);
            next.run(turn).await
        })
    }
}

/// Builds the request for the current conversation.
pub fn request<'a>(turn: &'a Turn, model: &'a ModelChoice) -> Request<'a> {
    // The format is also requested on turns in which the model may still call tools.
    let format: ResponseFormat = turn.options.format.clone().unwrap_or(turn.agent.format.clone());
    Request {
        tools: &turn.specs,
        tool_choice: ToolChoice::Auto,
        max_tokens: turn.options.max_tokens,
        sampling: turn.agent.sampling,
        thinking: turn.agent.thinking,
        format,
        ..Request::new(&model.name, &turn.conversation.messages)
    }
}

async fn call(turn: &mut Turn, model: &ModelChoice) -> Result<Response, TurnError> {
    let system = turn.run.system.clone();
    let service = model.name.service;
    system.breakers().admit(service, system.clock().now_ms())?;
    let run = turn.run.clone();
    let mut admitted = Admitted { run: &run, model, answer: Some(Assembler::default()) };
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
                tell(turn, &delta);
                admitted.push(&delta);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    drop(stream);
    let (answer, usage, cost_usd) = admitted.pay();
    let ended = match (failed, answer.finish()) {
        (Some(error), _) => Err(error),
        (None, None) => Err(Error::BrokenOff { service }),
        (None, Some(response)) => Ok(response),
    };
    system.breakers().record(service, ended.as_ref().map(|_| ()), system.clock().now_ms());
    let response = ended?;
    turn.run.events.emit(EventKind::Answer {
        text: response.message.text(),
        stop: stop_word(&response.stop),
        usage,
        cost_usd,
    });
    Ok(response)
}

/// A model call that the circuit breaker admitted. If it is dropped before its end, it does not
/// count as a failure of the service and frees the breaker, but its usage is still recorded.
struct Admitted<'a> {
    run: &'a Run,
    model: &'a ModelChoice,
    /// The answer so far; `None` once it has been recorded.
    answer: Option<Assembler>,
}

impl Admitted<'_> {
    fn push(&mut self, delta: &Delta) {
        if let Some(answer) = &mut self.answer {
            answer.push(delta);
        }
    }

    fn pay(&mut self) -> (Assembler, Usage, Option<f64>) {
        let answer = self.answer.take().unwrap_or_default();
        let usage = answer.usage();
        let cost_usd = self.run.system.prices().cost_usd(&self.model.name, &usage);
        self.run.spending.add(usage, cost_usd);
        (answer, usage, cost_usd)
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.answer.is_some() {
            self.pay();
            self.run.system.breakers().abandon(self.model.name.service);
        }
    }
}

fn tell(turn: &Turn, delta: &Delta) {
    let kind = match delta {
        Delta::Text(text) => EventKind::Text { text: text.clone() },
        Delta::Thinking(text) => EventKind::Thinking { text: text.clone() },
        _ => return,
    };
    turn.run.events.emit(kind);
}

fn remember(turn: &mut Turn, response: Response) {
    let usage = response.usage;
    turn.conversation.messages.push(response.message.clone());
    // Input and output tokens together cover the conversation up to here.
    let measured = usage.total();
    if measured > 0 {
        turn.conversation.measured = Some((turn.conversation.messages.len(), measured));
    }
    turn.response = Some(response);
}

fn stop_word(stop: &StopReason) -> String {
    match stop {
        StopReason::EndTurn => "end_turn".to_owned(),
        StopReason::ToolUse => "tool_use".to_owned(),
        StopReason::MaxTokens => "max_tokens".to_owned(),
        StopReason::Refusal => "refusal".to_owned(),
        StopReason::Other(word) => word.clone(),
    }
}

/// Returns true if a message has neither text nor tool calls.
pub(crate) fn is_empty(message: &Message) -> bool {
    message.text().trim().is_empty() && message.tool_calls().next().is_none()
}
