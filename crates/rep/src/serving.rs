//! Assembles the services behind `rep serve` and `rep mcp` from the configuration.

use std::sync::Arc;

use camino::Utf8Path;
use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::system::RunOptions;
use repertoire_journal::{Journal, Target};
use repertoire_select::Settings;
use repertoire_serve::House;
use repertoire_serve::house::{Extras, MakePrompt, OpenJournal, Parts, PromptAsk, PromptError};
use repertoire_skill::discover::Request;
use repertoire_skill::library::Library;
use repertoire_skill::profile::{Places, ProfileId};
use repertoire_text::clock::{Clock as _, SystemClock};

use crate::cli::Ctx;
use crate::failure::Failure;
use crate::running::{RunFlags, definition, not_built};

impl Ctx<'_> {
    /// Returns the services for agents (MCP), without those that only the web page needs.
    pub(crate) fn house(&self) -> Result<House, Failure> {
        Ok(House::new(self.parts()?))
    }

    /// Returns all services, including those of the web page.
    pub(crate) fn whole_house(&self) -> Result<House, Failure> {
        let tools = self.env.tool_environment(false);
        let (preview, person) = (Some(self.make_prompt()?), Some(self.person()));
        Ok(House::with(self.parts()?, Extras { tools, sandbox: self.sandbox()?, preview, person }))
    }

    /// Returns services without any of the user's data, for the conformance suite, which needs no
    /// token.
    pub(crate) fn empty_house(&self, dir: &Utf8Path) -> Result<House, Failure> {
        let places =
            Places { home: dir.join("home"), pack: dir.join("pack"), here: dir.to_owned() };
        let nothing =
            Request { roots: Some(Vec::new()), ..Request::new(ProfileId::Repertoire, places) };
        Ok(House::new(Parts {
            library: Arc::new(Library::open(nothing)),
            journal: open_journal(Target::File(dir.join("journal.sqlite"))),
            project: dir.to_owned(),
            data: dir.to_owned(),
            ..self.parts()?
        }))
    }

    fn parts(&self) -> Result<Parts, Failure> {
        Ok(Parts {
            library: Arc::new(Library::open(self.config.request()?)),
            make_selector: self.make_selector()?,
            settings: self.config.selection(),
            journal: open_journal(self.journal_target(None)),
            project: self.project_dir(None),
            data: self.env.data_dir(),
            workplace: self.make_workplace()?,
            clock: Arc::new(|| SystemClock.now_ms()),
        })
    }

    /// Returns a factory for the prompts that `rep run --dry-run` shows. MCP servers are not
    /// started for a preview, so their tools are missing.
    fn make_prompt(&self) -> Result<MakePrompt, Failure> {
        let flags = RunFlags::default();
        let system = self.builder(&flags)?.build().map_err(not_built)?;
        let options = self.run_options(&flags)?;
        let configured = self.config.selection();
        Ok(Arc::new(move |ask: PromptAsk| {
            let system = system.clone();
            let selection = Settings {
                max_skills: ask.max_skills.unwrap_or(configured.max_skills),
                threshold: ask.threshold.unwrap_or(configured.threshold),
                ..configured
            };
            let options = RunOptions {
                skills: ask.skills,
                paths: ask.paths,
                event: ask.event,
                selection: Some(selection),
                ..options.clone()
            };
            Box::pin(async move {
                let agent = ask.agent.as_deref().unwrap_or(DEFAULT_AGENT);
                definition(&system, agent)
                    .map_err(|failure| PromptError::NoAgent(failure.message))?;
                let made = system.preview(agent, ask.task, options).await;
                made.map_err(|error| PromptError::Refused(error.to_string()))
            })
        }))
    }
}

fn open_journal(target: Target) -> OpenJournal {
    Arc::new(move || {
        let target = target.clone();
        Box::pin(async move { Journal::open(&target, Arc::new(|| SystemClock.now_ms())).await })
    })
}
