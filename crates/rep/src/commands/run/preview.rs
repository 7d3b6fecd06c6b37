//! `rep run --dry-run`: prints the exact prompt and sends nothing.

use std::sync::{Arc, Mutex, PoisonError};

use repertoire::ConversationDriver;
use repertoire::agent_setup::load_definition;
use repertoire_agent::conversation::estimate_message_tokens;
use repertoire_agent::event::EventSink;
use repertoire_agent::system::RunPreview;
use repertoire_agent::{AgentEvent, AgentRunError, EventKind, RunOptions};
use repertoire_model::{AssistantPart, ModelMessage, UserPart};

use super::{RunArgs, agent_name, resume_named};
use crate::failure::{CliExit, CliResult};
use crate::run_display::{RunDisplay, RunDisplayOptions};
use crate::ui::{self, TerminalUi};

pub(super) async fn run(
    driver: &ConversationDriver,
    args: &RunArgs,
    prompt: &str,
    mut options: RunOptions,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let events: Arc<Mutex<Vec<AgentEvent>>> = Arc::default();
    let kept = events.clone();
    let sink: EventSink = Arc::new(move |event: &AgentEvent| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    });
    options.on_event = Some(sink);
    let talk = resume_named(driver, args.resume.as_deref()).await?;
    let agent = agent_name(args, talk.as_ref());
    load_definition(driver.system(), &agent)?;
    let backend = options.backend.as_ref().map(|backend| backend.name().to_owned());
    let previewed: Result<RunPreview, AgentRunError> = match &talk {
        Some(talk) => talk.preview_prompt(&agent, prompt, options).await,
        None => driver.system().preview(&agent, prompt, options).await,
    };
    let preview = previewed
        .map_err(|error| crate::failure::CliFailure::negative_answer(error.to_string()))?;
    if ui.json {
        ui.print_json(&preview.body)?;
        return Ok(CliExit::Done);
    }
    let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
    print_preview(&preview, backend.as_deref(), &events, ui)?;
    Ok(CliExit::Done)
}

fn print_preview(
    preview: &RunPreview,
    backend: Option<&str>,
    events: &[AgentEvent],
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let RunPreview { model, agent, messages, tools, tokens, .. } = preview;
    writeln!(ui.out, "{} {}", paint_label("agent", ui), ui::fit_columns(&agent.name, 60))?;
    match backend {
        Some(backend) => writeln!(ui.out, "{} {backend}", paint_label("backend", ui))?,
        None => writeln!(ui.out, "{} {model}", paint_label("model", ui))?,
    }
    print_skills(events, ui)?;
    for message in messages {
        print_message(message, ui)?;
    }
    print_heading("tools", tools.iter().map(tool_bytes).sum(), ui)?;
    for tool in tools {
        let first = tool.description.lines().next().unwrap_or_default();
        let room = ui.columns.saturating_sub(32).max(20);
        let about = ui::fit_columns(first, room);
        let size = ui.paint(ui::FAINT, format!("{:>5}", tool_bytes(tool) / 4));
        writeln!(ui.out, "{size}  {} {about}", ui::pad_columns(&tool.name, 16))?;
    }
    let whole = preview.body.to_string().len();
    let line = format!(
        "\nNothing was sent. The conversation is about {} tokens, the request {} bytes.",
        ui::format_thousands(*tokens),
        ui::format_thousands(whole as u64)
    );
    writeln!(ui.out, "{line}")
}

fn paint_label(name: &str, ui: &TerminalUi<'_>) -> String {
    ui.paint(ui::FAINT, ui::pad_columns(name, 7))
}

fn tool_bytes(tool: &repertoire_model::ToolSpec) -> usize {
    tool.description.len() + tool.parameters.to_string().len()
}

/// Prints the selected skills in the same form as a real run does.
fn print_skills(events: &[AgentEvent], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let mut lines = Vec::new();
    let mut inner = TerminalUi {
        out: &mut std::io::sink(),
        err: &mut lines,
        colour: ui.colour,
        err_colour: ui.colour,
        columns: ui.columns,
        json: false,
    };
    let mut live = RunDisplay::new(RunDisplayOptions::default());
    for event in events {
        live.show_event(event, &mut inner)?;
    }
    if lines.is_empty() {
        let abstained = events.iter().find_map(|event| match &event.kind {
            EventKind::SkillsSelected { abstention, .. } => abstention.clone(),
            _ => None,
        });
        let why = abstained.map(|why| format!(" ({why})")).unwrap_or_default();
        return writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("no skills{why}")));
    }
    ui.out.write_all(&lines)
}

fn print_heading(title: &str, bytes: usize, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let size = format!("about {} tokens", ui::format_thousands(bytes as u64 / 4));
    let line = format!("── {title} ── {size} ");
    let rule = "─".repeat(ui.columns.min(100).saturating_sub(ui::text_width(&line)));
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, format!("{line}{rule}")))
}

fn print_message(message: &ModelMessage, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let (role, parts): (&str, Vec<String>) = match message {
        ModelMessage::System { text } => ("system", vec![text.clone()]),
        ModelMessage::User { content } => ("user", content.iter().map(user_part).collect()),
        ModelMessage::Assistant { content } => {
            ("assistant", content.iter().map(assistant_part).collect())
        }
    };
    print_heading(role, estimate_message_tokens(message) as usize * 4, ui)?;
    for part in parts {
        writeln!(ui.out, "{}", ui::printable_lines(&part))?;
    }
    Ok(())
}

fn user_part(part: &UserPart) -> String {
    match part {
        UserPart::Text { text } => text.clone(),
        UserPart::ToolResult(result) => {
            let word = if result.is_error { "error" } else { "result" };
            format!("[{word} of {}]\n{}", result.call_id, result.text)
        }
    }
}

fn assistant_part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text { text } => text.clone(),
        AssistantPart::Thinking { text, .. } => format!("[thinking]\n{text}"),
        AssistantPart::RedactedThinking { .. } => "[thinking that cannot be shown]".to_owned(),
        AssistantPart::ToolCall(call) => format!("[calls {}] {}", call.name, call.arguments),
    }
}
