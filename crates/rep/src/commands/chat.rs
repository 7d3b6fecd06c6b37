//! `rep chat`: a conversation at the terminal.

use repertoire::{Driver, Talk};
use repertoire_agent::Status;
use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::effect::EffectLimit;
use repertoire_model::ModelName;
use repertoire_skill::render::catalog::is_offered;

use crate::attending::{Allowed, Attended, Left, Lines, Signal, Signals};
use crate::cli::Ctx;
use crate::commands::run::person;
use crate::failure::{Exit, Failure, Outcome};
use crate::live::{Live, Manner, error_words, short};
use crate::running::{RunFlags, definition, not_kept, runtime};
use crate::ui::{self, Ui};

const HELP: &str = "\
/skills        the skills that can be used       /SKILL words   use a skill by its name
/tools         the tools of the agent            /agents        who else there is
/model NAME    go on with another model          /cost          what it has cost so far
/clear         begin a new conversation          /save          where it is kept
/exit          leave (Ctrl-D as well)            Ctrl-C         stop the answer
A line that ends in \\ goes on in the next.";

/// Arguments of `rep chat`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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

struct Chat<'a> {
    ctx: &'a Ctx<'a>,
    driver: Driver,
    talk: Talk,
    agent: String,
    flags: RunFlags,
    live: Live,
    lines: Lines,
    /// Calls allowed with "always", for the whole chat.
    allowed: Allowed,
}

/// The next action after a line of input.
enum Then {
    GoOn,
    Leave,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let (driver, servers) = ctx.driver(&args.flags, ui).await?;
        let outcome = match chat(ctx, args, driver) {
            Ok(mut chat) => chat.converse(ui).await,
            Err(failure) => Err(failure),
        };
        servers.close().await;
        outcome
    });
    runtime.shutdown_background();
    outcome
}

fn chat<'a>(ctx: &'a Ctx<'a>, args: &Args, driver: Driver) -> Result<Chat<'a>, Failure> {
    let resumed = args.resume.as_ref().map(|id| driver.resume(id)).transpose().map_err(not_kept)?;
    let known = resumed.as_ref().map(|talk| talk.head().agent.clone());
    let agent = args.agent.clone().or(known).unwrap_or_else(|| DEFAULT_AGENT.to_owned());
    ctx.check_reach(driver.system(), &agent, &args.flags, None)?;
    let talk = match resumed {
        Some(talk) => talk,
        None => driver.begin(&agent).map_err(not_kept)?,
    };
    let manner =
        Manner { thinking: args.thinking, streamed: true, rewritten: ctx.env.stderr_is_terminal };
    let flags = args.flags.clone();
    let live = Live::new(manner);
    Ok(Chat {
        ctx,
        driver,
        talk,
        agent,
        flags,
        live,
        lines: Lines::new(),
        allowed: Allowed::default(),
    })
}

impl Chat<'_> {
    async fn converse(&mut self, ui: &mut Ui<'_>) -> Outcome {
        let model = self.model();
        let line = format!("{} on {model}. /help says what can be typed.", self.agent);
        let line = ui.paint_err(ui::FAINT, ui::fit(&line, 200));
        ui.note(&line)?;
        if let Some(line) = self.ctx.begun_elsewhere(&self.talk, &self.flags) {
            self.live.note(&line, ui)?;
        }
        while let Some(said) = self.read(ui).await? {
            let said = said.trim();
            if said.is_empty() {
                continue;
            }
            let then = match said.strip_prefix('/') {
                Some(command) => self.command(command, ui).await?,
                None => self.say(said, ui).await?,
            };
            if matches!(then, Then::Leave) {
                break;
            }
        }
        if self.talk.head().turns > 0 {
            let line = format!("rep chat --resume {} goes on here", short(self.talk.id()));
            let line = ui.paint_err(ui::FAINT, line);
            ui.note(&line)?;
        }
        Ok(Exit::Done)
    }

    /// Reads the user's message, joining lines that end in a backslash. Returns `None` at the end
    /// of the input, and after a second Ctrl-C.
    async fn read(&mut self, ui: &mut Ui<'_>) -> Result<Option<String>, Failure> {
        let mut said = String::new();
        let mut signals = Signals::new()?;
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
                    if stopped || signal != Signal::Interrupt {
                        return Ok(None);
                    }
                    stopped = true;
                    said.clear();
                    ui.note("\nCtrl-C again or Ctrl-D leaves")?;
                }
            }
        }
    }

    async fn say(&mut self, said: &str, ui: &mut Ui<'_>) -> Result<Then, Failure> {
        self.send(said, Vec::new(), ui).await
    }

    async fn send(
        &mut self,
        said: &str,
        skills: Vec<(String, String)>,
        ui: &mut Ui<'_>,
    ) -> Result<Then, Failure> {
        let mut options = self.ctx.run_options(&self.flags)?;
        for (skill, arguments) in skills {
            options.skills.push(skill.clone());
            options.arguments.insert(skill, arguments);
        }
        let attended = Attended::of(&mut options, person(self.ctx, ui), &self.allowed);
        let work = self.talk.send(&self.agent, said, options);
        let report = match attended.stay(work, &mut self.live, &mut self.lines, ui).await? {
            Left::Ended(report) => report.map_err(not_kept)?,
            Left::Dropped => return Ok(Then::Leave),
        };
        self.live.close(ui)?;
        self.ctx.remember_use(&self.talk);
        // An error ends the turn, not the chat.
        match (&report.error, report.status) {
            (Some(_), Status::Cancelled) => self.live.note("stopped", ui)?,
            (Some(error), _) => {
                let word = ui.paint_err(ui::BAD, "error:");
                ui.note(&format!("{word} {}", ui::fit(&error_words(error), 1000)))?;
            }
            (None, _) => {}
        }
        Ok(Then::GoOn)
    }

    async fn command(&mut self, line: &str, ui: &mut Ui<'_>) -> Result<Then, Failure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "exit" | "quit" | "q" => return Ok(Then::Leave),
            "help" | "?" => ui.note(HELP)?,
            "skills" => self.list_skills(ui)?,
            "tools" => self.list_tools(ui)?,
            "agents" => ui.note(&self.driver.system().agent_names().join("\n"))?,
            "cost" => self.tell_cost(ui)?,
            "save" => {
                let dir = self.driver.store().dir().join(self.talk.id());
                ui.note(&format!("It is kept as it goes, in {dir}"))?;
            }
            "clear" => {
                self.talk = self.driver.begin(&self.agent).map_err(not_kept)?;
                ui.note("A new conversation.")?;
            }
            "model" => self.change_model(rest, ui)?,
            skill => return self.use_skill(skill, rest, ui).await,
        }
        Ok(Then::GoOn)
    }

    async fn use_skill(
        &mut self,
        name: &str,
        rest: &str,
        ui: &mut Ui<'_>,
    ) -> Result<Then, Failure> {
        let catalog = self.driver.system().catalog();
        let id = match catalog.resolve(name) {
            Ok(entry) => entry.id.clone(),
            Err(missing) => {
                let near = missing.nearest.map(|near| format!(" Did you mean /{near}?"));
                let near = near.unwrap_or_default();
                let name = ui::fit(name, 40);
                ui.note(&format!("There is no command and no skill /{name}.{near} /help helps."))?;
                return Ok(Then::GoOn);
            }
        };
        let said = match rest {
            "" => format!("Carry out the skill `{id}`."),
            rest => rest.to_owned(),
        };
        self.send(&said, vec![(id, rest.to_owned())], ui).await
    }

    fn list_skills(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let catalog = self.driver.system().catalog();
        for entry in catalog.entries().iter().filter(|entry| is_offered(entry)) {
            let room = ui.columns.saturating_sub(32).max(20);
            let about = ui.paint_err(ui::FAINT, ui::fit(&entry.skill.description, room));
            ui.note(&format!("/{}  {about}", ui::pad(&ui::fit(&entry.id, 40), 28)))?;
        }
        Ok(())
    }

    fn list_tools(&self, ui: &mut Ui<'_>) -> Result<(), Failure> {
        let system = self.driver.system();
        let agent = definition(system, &self.agent)?;
        let limit = EffectLimit::of(&agent.name, &agent.tools);
        let tools = system.tools().iter();
        let tools = tools.filter(|tool| limit.refuses_tool(&***tool).is_none());
        let names = tools.map(|tool| tool.name()).filter(|name| agent.tools.has(name));
        let names: Vec<&str> = names.collect();
        ui.note(&names.join(", "))?;
        Ok(())
    }

    fn tell_cost(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let head = self.talk.head();
        let known = if head.cost_is_partial { " (not all prices are known)" } else { "" };
        let read = head.usage.input_tokens + head.usage.cache_read_tokens;
        let line = format!(
            "{}{known} · {} tokens in, {} out",
            ui::dollars(head.cost_usd),
            ui::thousands(read),
            ui::thousands(head.usage.output_tokens)
        );
        ui.note(&line)
    }

    fn change_model(&mut self, name: &str, ui: &mut Ui<'_>) -> std::io::Result<()> {
        if name.is_empty() {
            return ui.note(&self.model());
        }
        match name.parse::<ModelName>() {
            Ok(model) => {
                let before = self.flags.model.replace(model);
                let reach =
                    self.ctx.check_reach(self.driver.system(), &self.agent, &self.flags, None);
                if let Err(failure) = reach {
                    self.flags.model = before;
                    return ui.note(&failure.message);
                }
                ui.note(&format!("It goes on with {}.", self.model()))
            }
            Err(error) => ui.note(&error.to_string()),
        }
    }

    fn model(&self) -> String {
        if let Some(backend) = &self.flags.backend {
            return backend.clone();
        }
        let system = self.driver.system();
        let own = definition(system, &self.agent).ok().and_then(|agent| agent.model);
        let model = self.flags.model.clone().or(own);
        model.unwrap_or_else(|| system.config().model.clone()).to_string()
    }
}
