//! Executes the model's tool calls. Concurrency-safe calls run in parallel, the others one by one;
//! results are in the order of the calls, and every call and result is reported as an event. An
//! answer without calls ends the run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use repertoire_model::{ModelMessage, ResponseFormat, StopReason, ToolCall, ToolResult};
use repertoire_text::invisible;
use serde_json::Value;
use tokio::time::Instant;

use super::model_call::is_empty_message;
use super::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware, TurnOutcome};
use crate::event::{EventKind, ToolDenial};
use crate::limits::{RESHAPE_MAX, SUMMARY_CHARS_MAX, TOOL_CALLS_MAX, TOOLS_AT_ONCE_MAX};
use crate::permission::{
    Answer, NonInteractiveAsker, PermissionAsker, PermissionDecision, PermissionVerdict, Question,
    tool_name,
};
use crate::run::{AgentRun, lock_unpoisoned};
use crate::spill;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};

/// Executes tool calls.
#[derive(Clone, Copy, Debug)]
pub struct ToolExecution;

impl TurnMiddleware for ToolExecution {
    fn name(&self) -> &'static str {
        "tool execution"
    }

    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            let Some(response) = turn.response.clone() else { return next.run(turn).await };
            let calls: Vec<ToolCall> = response.message.tool_calls().cloned().collect();
            if calls.is_empty() {
                conclude_run(turn, &response.message, &response.stop)?;
            } else {
                let results = execute_calls(turn, &calls).await;
                turn.conversation.messages.push(ModelMessage::tool_results(results));
            }
            next.run(turn).await
        })
    }
}

/// Ends the run with an answer that has no tool calls, if it matches the requested format.
fn conclude_run(
    turn: &mut AgentTurn,
    message: &ModelMessage,
    stop: &StopReason,
) -> Result<(), TurnError> {
    match stop {
        StopReason::Refusal => return Err(TurnError::Refused),
        StopReason::MaxTokens => return Err(TurnError::CutOff),
        _ => {}
    }
    let text = message.text();
    let format = turn.options.format.as_ref().unwrap_or(&turn.agent.format);
    match parse_answer(&text, format) {
        Ok(structured) => {
            if is_empty_message(message) {
                // Providers reject conversations with empty messages.
                turn.conversation.messages.pop();
            }
            turn.outcome = Some(TurnOutcome::done(text, structured));
            Ok(())
        }
        Err(wrong) if turn.reshaped < RESHAPE_MAX => {
            turn.reshaped += 1;
            let again = format!(
                "{wrong}. Answer again with nothing but JSON of the shape that was asked for."
            );
            turn.conversation.messages.push(ModelMessage::user(again));
            Ok(())
        }
        Err(wrong) => Err(TurnError::Shape(wrong)),
    }
}

/// Parses and validates the answer if JSON was requested.
pub(crate) fn parse_answer(text: &str, format: &ResponseFormat) -> Result<Option<Value>, String> {
    let schema = match format {
        ResponseFormat::Text => return Ok(None),
        ResponseFormat::Json => None,
        ResponseFormat::Schema { schema, .. } => Some(schema),
    };
    let value: Value = serde_json::from_str(strip_fence(text))
        .map_err(|error| format!("The answer is not JSON: {error}"))?;
    let Some(schema) = schema else { return Ok(Some(value)) };
    match jsonschema::validate(schema, &value) {
        Ok(()) => Ok(Some(value)),
        Err(error) => Err(format!("The answer does not fit the schema: {error}")),
    }
}

/// Strips a code fence: models like to put JSON into one.
fn strip_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).map_or(text, str::trim)
}

async fn execute_calls(turn: &AgentTurn, calls: &[ToolCall]) -> Vec<ToolResult> {
    let mut results = Vec::with_capacity(calls.len());
    let mut rest = &calls[..calls.len().min(TOOL_CALLS_MAX)];
    while !rest.is_empty() {
        let safe = rest.iter().take_while(|call| is_safe(turn, call)).count();
        let (now, later) = rest.split_at(safe.max(1));
        let running: Vec<BoxFuture<'_, ToolResult>> =
            now.iter().map(|call| execute_call(turn, call).boxed()).collect();
        let running = stream::iter(running).buffered(TOOLS_AT_ONCE_MAX);
        results.extend(running.collect::<Vec<_>>().await);
        rest = later;
    }
    results.extend(calls.iter().skip(TOOL_CALLS_MAX).map(|call| ToolResult {
        call_id: call.id.clone(),
        text: format!("Not done: at most {TOOL_CALLS_MAX} calls in one turn."),
        is_error: true,
    }));
    results
}

fn is_safe(turn: &AgentTurn, call: &ToolCall) -> bool {
    find_tool(turn, &call.name).is_some_and(|tool| tool.concurrency() == ToolConcurrency::Safe)
}

fn find_tool<'t>(turn: &'t AgentTurn, name: &str) -> Option<&'t Arc<dyn Tool>> {
    // Some models call tools by another agent's names: `Read` for `read`.
    let named = |name: &str| turn.tools.iter().find(|tool| tool.name() == name);
    named(name).or_else(|| named(&tool_name(name)))
}

/// Executes one call, from its event to its result.
#[tracing::instrument(
    name = "tool_call",
    skip_all,
    fields(tool = %call.name, error = tracing::field::Empty)
)]
async fn execute_call(turn: &AgentTurn, call: &ToolCall) -> ToolResult {
    let started = Instant::now();
    let arguments = call.parse_arguments();
    let (subject, label) = match (find_tool(turn, &call.name), &arguments) {
        (Some(tool), Ok(arguments)) => (tool.subject(arguments), tool.label(arguments)),
        _ => Default::default(),
    };
    turn.run.events.emit(EventKind::ToolCall {
        id: call.id.clone(),
        tool: call.name.clone(),
        subject: label,
        arguments: arguments.clone().unwrap_or_else(|_| Value::String(call.arguments.clone())),
    });
    let mut open = OpenToolCall { run: &turn.run, call, started, is_answered: false };
    let output = match arguments {
        Ok(arguments) => perform_call(turn, call, &arguments, &subject).await,
        Err(wrong) => ToolOutput::error(format!("{wrong}. Call the tool again with valid JSON.")),
    };
    let output = handle_invisible(output, &call.name);
    let output = truncate_output(output, turn, call);
    open.report_result(&output);
    if output.is_error {
        tracing::Span::current().record("error", true);
    }
    ToolResult { call_id: call.id.clone(), text: output.text, is_error: output.is_error }
}

/// A call that was reported and has no result yet. If the run is stopped during the call, its drop
/// reports that as the result.
struct OpenToolCall<'a> {
    run: &'a AgentRun,
    call: &'a ToolCall,
    started: Instant,
    is_answered: bool,
}

impl OpenToolCall<'_> {
    fn report_result(&mut self, output: &ToolOutput) {
        self.is_answered = true;
        self.run.events.emit(EventKind::ToolResult {
            id: self.call.id.clone(),
            tool: self.call.name.clone(),
            is_error: output.is_error,
            summary: output.text.chars().take(SUMMARY_CHARS_MAX).collect(),
            bytes: output.text.len(),
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            spilled: output.spilled.as_ref().map(ToString::to_string),
        });
    }
}

impl Drop for OpenToolCall<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.report_result(&ToolOutput::error("The call was interrupted before it ended."));
        }
    }
}

/// Tools whose results are file contents: invisible characters are displayed there, so that the
/// model knows they are in the file. In all other results they are removed.
const TOOLS_THAT_SHOW_FILES: &[&str] = &["read", "grep", "glob", "list", "edit"];

/// Displays or removes invisible characters in a result, with a note.
fn handle_invisible(output: ToolOutput, tool: &str) -> ToolOutput {
    let (removed, summary) = invisible::removed(&output.text);
    if summary.is_empty() {
        return output;
    }
    let text = if TOOLS_THAT_SHOW_FILES.contains(&tool) {
        format!(
            "{}\n[invisible characters in this text, shown as ⟨U+…⟩: {summary}]",
            invisible::shown(&output.text).trim_end()
        )
    } else {
        format!("{removed}\n[invisible characters removed: {summary}]")
    };
    ToolOutput { text, ..output }
}

/// Truncates long results, since MCP tools may return anything. A skill's text has its own budget.
fn truncate_output(output: ToolOutput, turn: &AgentTurn, call: &ToolCall) -> ToolOutput {
    let chars_max = turn.run.workplace.limits.output_chars_max;
    if output.spilled.is_some() || call.name == "skill" || output.text.len() <= chars_max {
        return output;
    }
    let is_error = output.is_error;
    ToolOutput { is_error, ..spill::bound_text(&output.text, &turn.run.workplace, &call.id) }
}

async fn perform_call(
    turn: &AgentTurn,
    call: &ToolCall,
    arguments: &Value,
    subject: &str,
) -> ToolOutput {
    let Some(tool) = find_tool(turn, &call.name) else { return unknown_tool(turn, &call.name) };
    let spec = turn.specs.iter().find(|spec| spec.name == tool.name());
    if let Some(error) =
        spec.and_then(|spec| jsonschema::validate(&spec.parameters, arguments).err())
    {
        return ToolOutput::error(format!("The arguments do not fit: {error}."));
    }
    if let Err(reason) = check_permission(&turn.run, &**tool, arguments, subject).await {
        let (tool, subject) = (call.name.clone(), subject.to_owned());
        let denial =
            ToolDenial { tool: tool.clone(), subject: subject.clone(), reason: reason.clone() };
        lock_unpoisoned(&turn.run.denials).push(denial);
        turn.run.events.emit(EventKind::Denied { tool, subject, reason: reason.clone() });
        return ToolOutput::error(format!("Not allowed: {reason}"));
    }
    let doing = tool.call(ToolInvocation { id: &call.id, arguments, run: &turn.run });
    // A panic in a tool becomes a result for the model and does not end the run.
    AssertUnwindSafe(doing).catch_unwind().await.unwrap_or_else(|_| {
        ToolOutput::error(format!("The tool {} failed from a defect of its own.", call.name))
    })
}

async fn check_permission(
    run: &AgentRun,
    tool: &dyn Tool,
    arguments: &Value,
    subject: &str,
) -> Result<(), String> {
    let access = tool.access(arguments);
    check_effect_limit(run, tool, access)?;
    let runs_programs = matches!(access, ToolAccess::Execute | ToolAccess::Network);
    // Probe the sandbox only for tools that run programs: probing takes a moment.
    let is_sandboxed = runs_programs && run.workplace.sandbox.is_enforced();
    if runs_programs {
        report_degradations(run);
    }
    let PermissionVerdict { decision, reason } =
        run.permissions().decide(tool.name(), access, subject, is_sandboxed);
    match decision {
        PermissionDecision::Allow => Ok(()),
        PermissionDecision::Deny => Err(reason),
        PermissionDecision::Ask => {
            let (tool, subject) = (tool.name().to_owned(), subject.to_owned());
            let question = Question { tool, access, subject, reason };
            let answer = match &run.asker {
                Some(asker) => asker.ask(&question).await,
                None => NonInteractiveAsker.ask(&question).await,
            };
            match answer {
                Answer::Yes => Ok(()),
                Answer::Always => {
                    run.change_permissions(|permissions| permissions.allow_always(&question));
                    Ok(())
                }
                Answer::No(why) => Err(why),
            }
        }
    }
}

/// Rejects a call with an effect that the agent, or one that delegated to it, may not have.
/// Commands that must not change files or use the network need a sandbox that enforces it.
fn check_effect_limit(run: &AgentRun, tool: &dyn Tool, access: ToolAccess) -> Result<(), String> {
    let limit = run.limit();
    if let Some(refusal) = limit.refuses_call(tool, access) {
        return Err(refusal.to_string());
    }
    let is_free_command = matches!(tool.name(), "bash" | "run_tests");
    if is_free_command && limit.commands_need_sandbox() && !run.workplace.sandbox.is_enforced() {
        return Err(format!(
            "`{}` needs a sandbox here, because the agent may not do everything that a command can, and this machine has \
             none in use; `rep doctor` says why",
            tool.name()
        ));
    }
    Ok(())
}

/// Reports missing sandbox features once, before the first program is run.
fn report_degradations(run: &AgentRun) {
    for message in run.workplace.sandbox.degradations() {
        run.events.emit_once(EventKind::Degraded { what: "sandbox".to_owned(), message });
    }
}

fn unknown_tool(turn: &AgentTurn, name: &str) -> ToolOutput {
    let names: Vec<&str> = turn.tools.iter().map(|tool| tool.name()).collect();
    let near = repertoire_skill::name::nearest_name(name, names.iter().copied());
    let hint = near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    ToolOutput::error(format!("There is no tool `{name}`.{hint} There are: {}.", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_in_a_fence_is_json_all_the_same() {
        let format = ResponseFormat::Json;
        assert_eq!(parse_answer("```json\n{\"a\":1}\n```", &format), Ok(Some(json!({"a": 1}))));
        assert!(parse_answer("nothing", &format).unwrap_err().contains("not JSON"));
    }

    #[test]
    fn an_answer_is_held_against_its_schema() {
        let schema = json!({"type": "object", "required": ["ok"]});
        let format = ResponseFormat::Schema { name: "x".into(), schema };
        assert!(parse_answer("{}", &format).unwrap_err().contains("does not fit"));
        assert_eq!(parse_answer("{\"ok\":true}", &format), Ok(Some(json!({"ok": true}))));
    }

    #[test]
    fn invisible_characters_are_removed_or_shown_before_the_model_reads_them() {
        let spelt: String =
            "go".chars().filter_map(|c| char::from_u32(0xe0000 + c as u32)).collect();
        let text = format!("a\tb{spelt}\u{202e}\u{e0101}\r\nc");
        let counted = "2 tag characters, 1 variation selector, 1 bidirectional control";
        assert_eq!(
            handle_invisible(ToolOutput::ok(text.as_str()), "bash").text,
            format!("a\tb\r\nc\n[invisible characters removed: {counted}]")
        );
        assert_eq!(
            handle_invisible(ToolOutput::ok(text.as_str()), "read").text,
            format!(
                "a\tb⟨U+E0067⟩⟨U+E006F⟩⟨U+202E⟩⟨U+E0101⟩\r\nc\n[invisible characters in this text, shown as \
                 ⟨U+…⟩: {counted}]"
            )
        );
        let emoji = "naïve 👩\u{200d}🔬\n";
        assert_eq!(handle_invisible(ToolOutput::ok(emoji), "read").text, emoji);
    }
}
