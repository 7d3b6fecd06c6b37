//! `rep run --dry-run`: prints the exact prompt and sends nothing.

use std::sync::{Arc, Mutex, PoisonError};

use repertoire::Driver;
use repertoire_agent::conversation::tokens_of;
use repertoire_agent::event::Sink;
use repertoire_agent::system::Preview;
use repertoire_agent::{Event, EventKind, RunError, RunOptions};
use repertoire_model::{AssistantPart, Message, UserPart};

use super::{Args, agent};
use crate::failure::{Exit, Outcome};
use crate::live::{Live, Manner};
use crate::running::{definition, not_kept};
use crate::ui::{self, Ui};

pub(super) async fn run(
    driver: &Driver,
    args: &Args,
    prompt: &str,
    mut options: RunOptions,
    ui: &mut Ui<'_>,
) -> Outcome {
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let kept = events.clone();
    let sink: Sink = Arc::new(move |event: &Event| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    });
    options.on_event = Some(sink);
    let talk = args.resume.as_ref().map(|id| driver.resume(id)).transpose().map_err(not_kept)?;
    let agent = agent(args, talk.as_ref());
    definition(driver.system(), &agent)?;
    let backend = options.backend.as_ref().map(|backend| backend.name().to_owned());
    let previewed: Result<Preview, RunError> = match &talk {
        Some(talk) => talk.preview(&agent, prompt, options).await,
        None => driver.system().preview(&agent, prompt, options).await,
    };
    let preview = previewed.map_err(|error| crate::failure::Failure::no(error.to_string()))?;
    if ui.json {
        ui.print_json(&preview.body)?;
        return Ok(Exit::Done);
    }
    let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
    print(&preview, backend.as_deref(), &events, ui)?;
    Ok(Exit::Done)
}

fn print(
    preview: &Preview,
    backend: Option<&str>,
    events: &[Event],
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let Preview { model, agent, messages, tools, tokens, .. } = preview;
    writeln!(ui.out, "{} {}", paint_label("agent", ui), ui::fit(&agent.name, 60))?;
    match backend {
        Some(backend) => writeln!(ui.out, "{} {backend}", paint_label("backend", ui))?,
        None => writeln!(ui.out, "{} {model}", paint_label("model", ui))?,
    }
    print_skills(events, ui)?;
    for message in messages {
        print_message(message, ui)?;
    }
    heading("tools", tools.iter().map(tool_bytes).sum(), ui)?;
    for tool in tools {
        let first = tool.description.lines().next().unwrap_or_default();
        let room = ui.columns.saturating_sub(32).max(20);
        let about = ui::fit(first, room);
        let size = ui.paint(ui::FAINT, format!("{:>5}", tool_bytes(tool) / 4));
        writeln!(ui.out, "{size}  {} {about}", ui::pad(&tool.name, 16))?;
    }
    let whole = preview.body.to_string().len();
    let line = format!(
        "\nNothing was sent. The conversation is about {} tokens, the request {} bytes.",
        ui::thousands(*tokens),
        ui::thousands(whole as u64)
    );
    writeln!(ui.out, "{line}")
}

fn paint_label(name: &str, ui: &Ui<'_>) -> String {
    ui.paint(ui::FAINT, ui::pad(name, 7))
}

fn tool_bytes(tool: &repertoire_model::ToolSpec) -> usize {
    tool.description.len() + tool.parameters.to_string().len()
}

/// Prints the selected skills in the same form as a real run does.
fn print_skills(events: &[Event], ui: &mut Ui<'_>) -> std::io::Result<()> {
    let mut lines = Vec::new();
    let mut inner = Ui {
        out: &mut std::io::sink(),
        err: &mut lines,
        colour: ui.colour,
        err_colour: ui.colour,
        columns: ui.columns,
        json: false,
    };
    let mut live = Live::new(Manner::default());
    for event in events {
        live.show(event, &mut inner)?;
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

fn heading(title: &str, bytes: usize, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let size = format!("about {} tokens", ui::thousands(bytes as u64 / 4));
    let line = format!("── {title} ── {size} ");
    let rule = "─".repeat(ui.columns.min(100).saturating_sub(ui::width(&line)));
    writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, format!("{line}{rule}")))
}

fn print_message(message: &Message, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let (role, parts): (&str, Vec<String>) = match message {
        Message::System { text } => ("system", vec![text.clone()]),
        Message::User { content } => ("user", content.iter().map(user_part).collect()),
        Message::Assistant { content } => ("assistant", content.iter().map(own_part).collect()),
    };
    heading(role, tokens_of(message) as usize * 4, ui)?;
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

fn own_part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text { text } => text.clone(),
        AssistantPart::Thinking { text, .. } => format!("[thinking]\n{text}"),
        AssistantPart::RedactedThinking { .. } => "[thinking that cannot be shown]".to_owned(),
        AssistantPart::ToolCall(call) => format!("[calls {}] {}", call.name, call.arguments),
    }
}
