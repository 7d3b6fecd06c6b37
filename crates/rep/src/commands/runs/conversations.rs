//! `rep runs --kind conversation`: lists the conversations that can be resumed, and removes some.

use repertoire::conversation::{ConversationListEntry, ConversationMetadata};
use repertoire::{ConversationStore, ConversationStoreError};
use repertoire_journal::RunId;

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::run_display::short;
use crate::schema::{BrokenConversationJson, ConversationJson, ConversationsJson};
use crate::ui::{self, TerminalUi};
use repertoire::agent_setup::store_failure;

const SHOWN_MAX: usize = 20;

/// Arguments of `rep runs --kind conversation`
#[derive(Debug, clap::Args)]
pub(crate) struct ConversationsArgs {
    /// List all conversations, not only the latest 20
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    action: Option<ConversationsAction>,
}

#[derive(Debug, clap::Subcommand)]
enum ConversationsAction {
    /// Remove conversations
    Rm {
        /// Ids of the conversations, prefixes of ids, or `last`
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &ConversationsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let store = ctx.conversation_store();
    let runtime = build_runtime()?;
    if let Some(ConversationsAction::Rm { ids }) = &args.action {
        for id in ids {
            let removed = runtime.block_on(remove_conversation(ctx, &store, id));
            ui.print_note(&format!("removed {}", removed.map_err(missing_conversation)?))?;
        }
        return Ok(CliExit::Done);
    }
    let all = runtime.block_on(store.list()).map_err(store_failure)?;
    if ui.json {
        let mut json = ConversationsJson { conversations: Vec::new(), broken: Vec::new() };
        for line in &all {
            match line {
                ConversationListEntry::Conversation(head) => {
                    json.conversations.push(ConversationJson::from_head(head))
                }
                ConversationListEntry::Broken { id, error } => {
                    let (id, reason) = (id.clone(), error.to_string());
                    json.broken.push(BrokenConversationJson { id, reason });
                }
            }
        }
        ui.print_json(&json)?;
        return Ok(CliExit::Done);
    }
    if all.is_empty() {
        writeln!(ui.out, "There are no conversations. `rep run \"…\"` begins one.")?;
        return Ok(CliExit::Done);
    }
    let now_ms = now_ms();
    let shown = if args.all { all.len() } else { SHOWN_MAX };
    for line in all.iter().take(shown) {
        match line {
            ConversationListEntry::Conversation(head) => print_conversation(ctx, head, now_ms, ui)?,
            ConversationListEntry::Broken { id, error } => {
                let reason = ui.paint(ui::BAD, ui::fit_columns(&error.to_string(), 200));
                writeln!(ui.out, "{}  {reason}", short(id))?;
            }
        }
    }
    if all.len() > shown {
        let line = format!("{} more, see --all", all.len() - shown);
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(CliExit::Done)
}

async fn remove_conversation(
    ctx: &CliContext<'_>,
    store: &ConversationStore,
    wanted: &str,
) -> Result<RunId, ConversationStoreError> {
    if wanted == "last" {
        let id = store.last_in(&ctx.project_dir(None)).await?;
        return store.remove(id.as_str()).await;
    }
    store.remove(wanted).await
}

/// A conversation that does not exist is a negative answer (exit code 1); only the other errors
/// mean that the command could not run.
fn missing_conversation(error: ConversationStoreError) -> CliFailure {
    let is_answer = matches!(
        error,
        ConversationStoreError::NotFound { .. }
            | ConversationStoreError::NoneIn { .. }
            | ConversationStoreError::Ambiguous { .. }
    );
    let failure = CliFailure::from(store_failure(error));
    if is_answer { CliFailure { exit: CliExit::No, ..failure } } else { failure }
}

fn print_conversation(
    ctx: &CliContext<'_>,
    head: &ConversationMetadata,
    now_ms: u64,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let cost = if head.cost_is_partial {
        "cost not known".to_owned()
    } else {
        ui::format_dollars(head.cost_usd)
    };
    let mut facts = format!(
        "{} · {} · {cost} · {}",
        ui::fit_columns(&head.agent, 30),
        ui::format_count(head.turns as usize, "turn"),
        format_ago(now_ms.saturating_sub(head.updated_ms))
    );
    if !head.folder.is_empty() {
        let folder = if ctx.project_dir(None) == head.folder.as_str() {
            "here".to_owned()
        } else {
            ctx.config.places().shorten_path(head.folder.as_str().into())
        };
        facts.push_str(&format!(" · {}", ui::fit_columns(&folder, 30)));
    }
    if head.at_work {
        facts.push_str(" · at work or interrupted");
    }
    let id = ui.paint(ui::ACCENT, short(&head.id));
    let room = ui.columns.saturating_sub(15 + 2 + ui::text_width(&facts)).max(32);
    let first = ui::pad_columns(&ui::fit_columns(&head.first, room), room.min(48));
    writeln!(ui.out, "{id}  {first}  {}", ui.paint(ui::FAINT, facts))
}

pub(crate) fn format_ago(ms: u64) -> String {
    match ms / 1000 {
        0..=59 => "just now".to_owned(),
        60..=3_599 => format!("{} min ago", ms / 60_000),
        3_600..=86_399 => format!("{} h ago", ms / 3_600_000),
        _ => format!("{} days ago", ms / 86_400_000),
    }
}

fn now_ms() -> u64 {
    use repertoire_text::clock::{Clock as _, SystemClock};
    SystemClock.now_ms()
}
