//! `rep chat`: a conversation at the terminal.

use repertoire::agent_setup::{AgentRunOptions, load_definition};
use repertoire::{ConversationDriver, OpenConversation};
use repertoire_agent::AgentRunStatus;
use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::effect::EffectLimit;
use repertoire_journal::Target;
use repertoire_model::ModelName;
use repertoire_skill::render::catalog::is_offered;

use crate::agent_flags::RunFlags;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::run::{close_driver, resume_named, split_unsaved, user_presence};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::foreground_run::{
    AlwaysAllowedCalls, CliSignal, CliSignalListener, ForegroundOutcome, ForegroundRun, StdinLines,
};
use crate::run_display::{RunDisplay, RunDisplayOptions, describe_error, short};
use crate::ui::{self, TerminalUi};

const HELP: &str = "\
/skills        the skills that can be used       /SKILL words   use a skill by its name
/tools         the tools of the agent            /agents        who else there is
/model NAME    go on with another model          /cost          what it has cost so far
/clear         begin a new conversation          /save          where it is kept
/exit          leave (Ctrl-D as well)            Ctrl-C         stop the answer
A line that ends in \\ goes on in the next.";

/// Arguments of `rep chat`
#[derive(Debug, clap::Args)]
pub(crate) struct ChatArgs {
    /// Chat with this agent (default: the agent of the resumed conversation, or the default agent)
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Continue a conversation, given by its id, a prefix of the id, or `last` (the default)
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "last")]
    resume: Option<String>,
    /// Show the model's thinking
    #[arg(short = 'v', long, visible_alias = "verbose")]
    thinking: bool,
    #[command(flatten)]
    flags: RunFlags,
}

struct ChatSession<'a> {
    ctx: &'a CliContext<'a>,
    driver: ConversationDriver,
    talk: OpenConversation,
    agent: String,
    flags: AgentRunOptions,
    live: RunDisplay,
    lines: StdinLines,
    /// Calls allowed with "always", for the whole chat.
    allowed: AlwaysAllowedCalls,
}

/// The next action after a line of input.
enum ChatFlow {
    GoOn,
    Leave,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &ChatArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let runtime = build_runtime()?;
    let outcome = runtime.block_on(async {
        let (driver, servers) = ctx.open_driver(&args.flags.to_options(), ui).await?;
        let outcome = match start_chat(ctx, args, driver.clone()).await {
            Ok(mut chat) => chat.converse(ui).await,
            Err(failure) => Err(failure),
        };
        close_driver(&driver, servers).await;
        outcome
    });
    runtime.shutdown_background();
    outcome
}

async fn start_chat<'a>(
    ctx: &'a CliContext<'a>,
    args: &ChatArgs,
    driver: ConversationDriver,
) -> Result<ChatSession<'a>, CliFailure> {
    let resumed = resume_named(&driver, args.resume.as_deref()).await?;
    let known = resumed.as_ref().map(|talk| talk.head().agent.clone());
    let agent = args.agent.clone().or(known).unwrap_or_else(|| DEFAULT_AGENT.to_owned());
    ctx.check_reach(driver.system(), &agent, &args.flags.to_options(), None)?;
    let talk = resumed.unwrap_or_else(|| driver.begin_conversation(&agent));
    let manner = RunDisplayOptions {
        thinking: args.thinking,
        streamed: true,
        rewritten: ctx.env.stderr_is_terminal,
    };
    let flags = args.flags.to_options();
    let live = RunDisplay::new(manner);
    Ok(ChatSession {
        ctx,
        driver,
        talk,
        agent,
        flags,
        live,
        lines: StdinLines::new(),
        allowed: AlwaysAllowedCalls::default(),
    })
}

impl ChatSession<'_> {
    async fn converse(&mut self, ui: &mut TerminalUi<'_>) -> CliResult {
        let model = self.model_name();
        let line = format!("{} on {model}. /help says what can be typed.", self.agent);
        let line = ui.paint_err(ui::FAINT, ui::fit_columns(&line, 200));
        ui.print_note(&line)?;
        if let Some(line) = self.ctx.note_on_other_project(&self.talk, &self.flags) {
            self.live.print_note(&line, ui)?;
        }
        while let Some(said) = self.read_message(ui).await? {
            let said = said.trim();
            if said.is_empty() {
                continue;
            }
            let then = match said.strip_prefix('/') {
                Some(command) => self.run_slash_command(command, ui).await?,
                None => self.send_text(said, ui).await?,
            };
            if matches!(then, ChatFlow::Leave) {
                break;
            }
        }
        if self.talk.head().turns > 0 {
            let line = format!("rep chat --resume {} goes on here", short(self.talk.id()));
            let line = ui.paint_err(ui::FAINT, line);
            ui.print_note(&line)?;
        }
        Ok(CliExit::Done)
    }

    /// Reads the user's message, joining lines that end in a backslash. Returns `None` at the end
    /// of the input, and after a second Ctrl-C.
    async fn read_message(
        &mut self,
        ui: &mut TerminalUi<'_>,
    ) -> Result<Option<String>, CliFailure> {
        let mut said = String::new();
        let mut signals = CliSignalListener::new()?;
        let mut stopped = false;
        loop {
            if self.ctx.env.stdin_is_terminal {
                let mark = if said.is_empty() { "› " } else { "… " };
                let mark = ui.paint_err(ui::ACCENT, mark);
                ui.out.flush()?;
                write!(ui.err, "{mark}")?;
                ui.err.flush()?;
            }
            tokio::select! {
                line = self.lines.next() => match line {
                    None if said.is_empty() => return Ok(None),
                    None => return Ok(Some(said)),
                    Some(line) => match line.strip_suffix('\\') {
                        Some(part) => said.push_str(&format!("{part}\n")),
                        None => {
                            said.push_str(&line);
                            return Ok(Some(said));
                        }
                    },
                },
                signal = signals.next() => {
                    if stopped || signal != CliSignal::Interrupt {
                        return Ok(None);
                    }
                    stopped = true;
                    said.clear();
                    ui.print_note("\nCtrl-C again or Ctrl-D leaves")?;
                }
            }
        }
    }

    async fn send_text(
        &mut self,
        said: &str,
        ui: &mut TerminalUi<'_>,
    ) -> Result<ChatFlow, CliFailure> {
        self.send_message(said, Vec::new(), ui).await
    }

    async fn send_message(
        &mut self,
        said: &str,
        skills: Vec<(String, String)>,
        ui: &mut TerminalUi<'_>,
    ) -> Result<ChatFlow, CliFailure> {
        let mut options = self.ctx.run_options(&self.flags)?;
        for (skill, arguments) in skills {
            options.skills.push(skill.clone());
            options.arguments.insert(skill, arguments);
        }
        let attended =
            ForegroundRun::connect(&mut options, user_presence(self.ctx, ui), &self.allowed);
        let work = self.talk.send_prompt(&self.agent, said, options);
        let sent = attended.attend(work, &mut self.live, &mut self.lines, ui).await?;
        let (report, unsaved) = match sent {
            ForegroundOutcome::Ended(sent) => split_unsaved(sent)?,
            ForegroundOutcome::Dropped => return Ok(ChatFlow::Leave),
        };
        self.live.close_line(ui)?;
        self.ctx.remember_use(&self.talk);
        if let Some(failure) = unsaved {
            // The next turn stores this one as well, for instance when the disk has room again.
            self.print_error(&failure.message, ui)?;
        }
        // An error ends the turn, not the chat.
        match (&report.error, report.status) {
            (Some(_), AgentRunStatus::Cancelled) => self.live.print_note("stopped", ui)?,
            (Some(error), _) => self.print_error(&describe_error(error), ui)?,
            (None, _) => {}
        }
        Ok(ChatFlow::GoOn)
    }

    fn print_error(&self, message: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let word = ui.paint_err(ui::BAD, "error:");
        ui.print_note(&format!("{word} {}", ui::fit_columns(message, 1000)))
    }

    async fn run_slash_command(
        &mut self,
        line: &str,
        ui: &mut TerminalUi<'_>,
    ) -> Result<ChatFlow, CliFailure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "exit" | "quit" | "q" => return Ok(ChatFlow::Leave),
            "help" | "?" => ui.print_note(HELP)?,
            "skills" => self.list_skills(ui)?,
            "tools" => self.list_tools(ui)?,
            "agents" => ui.print_note(&self.driver.system().agent_names().join("\n"))?,
            "cost" => self.print_cost(ui)?,
            "save" => {
                let place = match self.ctx.journal_target(None) {
                    Target::File(path) => path.to_string(),
                    // The address may contain a password.
                    Target::Url(_) => "the database of `database_url`".to_owned(),
                };
                let id = self.talk.id();
                ui.print_note(&format!("It is kept as it goes, as {id} in {place}"))?;
            }
            "clear" => {
                self.talk = self.driver.begin_conversation(&self.agent);
                ui.print_note("A new conversation.")?;
            }
            "model" => self.change_model(rest, ui)?,
            skill => return self.use_skill(skill, rest, ui).await,
        }
        Ok(ChatFlow::GoOn)
    }

    async fn use_skill(
        &mut self,
        name: &str,
        rest: &str,
        ui: &mut TerminalUi<'_>,
    ) -> Result<ChatFlow, CliFailure> {
        let catalog = self.driver.system().catalog();
        let id = match catalog.resolve(name) {
            Ok(entry) => entry.id.clone(),
            Err(missing) => {
                let near = missing.nearest.map(|near| format!(" Did you mean /{near}?"));
                let near = near.unwrap_or_default();
                let name = ui::fit_columns(name, 40);
                ui.print_note(&format!(
                    "There is no command and no skill /{name}.{near} /help helps."
                ))?;
                return Ok(ChatFlow::GoOn);
            }
        };
        let said = match rest {
            "" => format!("Carry out the skill `{id}`."),
            rest => rest.to_owned(),
        };
        self.send_message(&said, vec![(id, rest.to_owned())], ui).await
    }

    fn list_skills(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let catalog = self.driver.system().catalog();
        for entry in catalog.entries().iter().filter(|entry| is_offered(entry)) {
            let room = ui.columns.saturating_sub(32).max(20);
            let about = ui.paint_err(ui::FAINT, ui::fit_columns(&entry.skill.description, room));
            ui.print_note(&format!(
                "/{}  {about}",
                ui::pad_columns(&ui::fit_columns(&entry.id, 40), 28)
            ))?;
        }
        Ok(())
    }

    fn list_tools(&self, ui: &mut TerminalUi<'_>) -> Result<(), CliFailure> {
        let system = self.driver.system();
        let agent = load_definition(system, &self.agent)?;
        let limit = EffectLimit::for_agent(&agent.name, &agent.tools);
        let tools = system.tools().iter();
        let tools = tools.filter(|tool| limit.refuses_tool(&***tool).is_none());
        let names = tools.map(|tool| tool.name()).filter(|name| agent.tools.has(name));
        let names: Vec<&str> = names.collect();
        ui.print_note(&names.join(", "))?;
        Ok(())
    }

    fn print_cost(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let head = self.talk.head();
        let known = if head.cost_is_partial { " (not all prices are known)" } else { "" };
        let usage = self.talk.usage();
        let read = usage.input_tokens + usage.cache_read_tokens;
        let line = format!(
            "{}{known} · {} tokens in, {} out",
            ui::format_dollars(head.cost_usd),
            ui::format_thousands(read),
            ui::format_thousands(usage.output_tokens)
        );
        ui.print_note(&line)
    }

    fn change_model(&mut self, name: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if name.is_empty() {
            return ui.print_note(&self.model_name());
        }
        match name.parse::<ModelName>() {
            Ok(model) => {
                let before = self.flags.model.replace(model);
                let reach =
                    self.ctx.check_reach(self.driver.system(), &self.agent, &self.flags, None);
                if let Err(failure) = reach {
                    self.flags.model = before;
                    return ui.print_note(&failure.message);
                }
                ui.print_note(&format!("It goes on with {}.", self.model_name()))
            }
            Err(error) => ui.print_note(&error.to_string()),
        }
    }

    fn model_name(&self) -> String {
        if let Some(backend) = &self.flags.backend {
            return backend.clone();
        }
        let system = self.driver.system();
        let own = load_definition(system, &self.agent).ok().and_then(|agent| agent.model);
        let model = self.flags.model.clone().or(own);
        model.unwrap_or_else(|| system.config().model.clone()).to_string()
    }
}
