//! `rep conversations`: lists the conversations that can be resumed, and removes some.

use repertoire::StoreError;
use repertoire::conversation::{Head, Listed};

use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::live::short;
use crate::running::not_kept;
use crate::schema::{BrokenConversationJson, ConversationJson, ConversationsJson};
use crate::ui::{self, Ui};

const SHOWN_MAX: usize = 20;

/// Arguments of `rep conversations`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List all conversations, not only the latest 20
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Remove conversations
    Rm {
        /// Ids of the conversations, prefixes of ids, or `last`
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let store = ctx.store();
    if let Some(Action::Rm { ids }) = &args.action {
        for id in ids {
            let wanted = match id.as_str() {
                "last" => store.last_in(&ctx.project_dir(None)).map_err(not_found)?,
                id => id.to_owned(),
            };
            let id = store.remove(&wanted).map_err(not_found)?;
            ui.note(&format!("removed {id}"))?;
        }
        return Ok(Exit::Done);
    }
    let all = store.list().map_err(not_kept)?;
    if ui.json {
        let mut json = ConversationsJson { conversations: Vec::new(), broken: Vec::new() };
        for line in &all {
            match line {
                Listed::Conversation(head) => json.conversations.push(ConversationJson::of(head)),
                Listed::Broken { id, error } => {
                    let (id, reason) = (id.clone(), error.to_string());
                    json.broken.push(BrokenConversationJson { id, reason });
                }
            }
        }
        ui.print_json(&json)?;
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        writeln!(ui.out, "There are no conversations yet. `rep run \"…\"` begins one.")?;
        return Ok(Exit::Done);
    }
    let now_ms = now_ms();
    let shown = if args.all { all.len() } else { SHOWN_MAX };
    for line in all.iter().take(shown) {
        match line {
            Listed::Conversation(head) => print(ctx, head, now_ms, ui)?,
            Listed::Broken { id, error } => {
                let reason = ui.paint(ui::BAD, ui::fit(&error.to_string(), 200));
                writeln!(ui.out, "{}  {reason}", short(id))?;
            }
        }
    }
    if all.len() > shown {
        let line = format!("{} more, see --all", all.len() - shown);
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(Exit::Done)
}

/// A conversation that does not exist is a negative answer (exit code 1); only the other errors
/// mean that the command could not run.
fn not_found(error: StoreError) -> Failure {
    let is_answer = !matches!(
        error,
        StoreError::InUse { .. } | StoreError::Io { .. } | StoreError::Damaged { .. }
    );
    let failure = not_kept(error);
    if is_answer { Failure { exit: Exit::No, ..failure } } else { failure }
}

fn print(ctx: &Ctx<'_>, head: &Head, now_ms: u64, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let cost =
        if head.cost_is_partial { "cost not known".to_owned() } else { ui::dollars(head.cost_usd) };
    let mut facts = format!(
        "{} · {} · {cost} · {}",
        ui::fit(&head.agent, 30),
        ui::count(head.turns as usize, "turn"),
        ago(now_ms.saturating_sub(head.updated_ms))
    );
    if !head.folder.is_empty() {
        let folder = if ctx.project_dir(None) == head.folder.as_str() {
            "here".to_owned()
        } else {
            ctx.config.places().shorten(head.folder.as_str().into())
        };
        facts.push_str(&format!(" · {}", ui::fit(&folder, 30)));
    }
    if head.at_work.is_some() {
        facts.push_str(" · at work or interrupted");
    }
    let id = ui.paint(ui::ACCENT, short(&head.id));
    let room = ui.columns.saturating_sub(15 + 2 + ui::width(&facts)).max(32);
    let first = ui::pad(&ui::fit(&head.first, room), room.min(48));
    writeln!(ui.out, "{id}  {first}  {}", ui.paint(ui::FAINT, facts))
}

pub(crate) fn ago(ms: u64) -> String {
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
