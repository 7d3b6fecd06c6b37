//! The flags of every command that runs an agent, and the warnings of setting one up.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire::ConversationDriver;
use repertoire::agent_setup::AgentRunOptions;
use repertoire::text::duration::parse_duration;
use repertoire_agent::System;
use repertoire_agent::mcp::McpServers;
use repertoire_agent::permission::PermissionMode;
use repertoire_model::ModelName;

use crate::cli::CliContext;
use crate::failure::CliFailure;
use crate::ui::{self, TerminalUi};

const WHO: &str = "Agent and model";
const LIMITS: &str = "Limits";
const FREEDOM: &str = "Permissions";

/// Options of every command that runs an agent
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RunFlags {
    /// The model, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL", help_heading = WHO)]
    pub(crate) model: Option<ModelName>,
    /// The backend that executes the turns: api, claude, codex, opencode, gemini, acp:PROGRAM,
    /// command:PROGRAM, scripted:FILE
    #[arg(long, value_name = "BACKEND", help_heading = WHO)]
    pub(crate) backend: Option<String>,
    /// Always load these skills (may be repeated, or a comma-separated list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = WHO)]
    pub(crate) skills: Vec<String>,
    /// Use only skills that are named explicitly
    #[arg(long, help_heading = WHO)]
    pub(crate) no_auto: bool,
    /// A path that the task touches, which helps to choose skills (may be repeated)
    #[arg(long = "path", value_name = "PATH", help_heading = WHO)]
    pub(crate) paths: Vec<Utf8PathBuf>,
    /// The folder that the agent works in
    #[arg(long, value_name = "DIR", help_heading = WHO)]
    pub(crate) cd: Option<Utf8PathBuf>,
    /// Stop when the run has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,
    /// Stop after this many turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = LIMITS)]
    pub(crate) max_turns: Option<u32>,
    /// Stop when all calls together have used this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after this time, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LIMITS)]
    pub(crate) timeout: Option<Duration>,
    /// Let the agent read, but change nothing
    #[arg(long, conflicts_with_all = ["accept_edits", "full_access"], help_heading = FREEDOM)]
    pub(crate) read_only: bool,
    /// Let the agent change files in the folder and run commands in the sandbox without asking
    #[arg(long, conflicts_with = "full_access", help_heading = FREEDOM)]
    pub(crate) accept_edits: bool,
    /// Let the agent do anything without asking
    #[arg(long, help_heading = FREEDOM)]
    pub(crate) full_access: bool,
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
}

/// Permission rules of one run
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RuleFlags {
    /// Allow calls that match this rule, such as 'bash(git status:*)' (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = FREEDOM)]
    pub(crate) allow: Vec<String>,
    /// Forbid calls that match this rule (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = FREEDOM)]
    pub(crate) deny: Vec<String>,
}

impl RunFlags {
    /// Converts the flags to the options of a run.
    pub(crate) fn to_options(&self) -> AgentRunOptions {
        let mode = match (self.read_only, self.full_access, self.accept_edits) {
            (true, _, _) => Some(PermissionMode::ReadOnly),
            (_, true, _) => Some(PermissionMode::Full),
            (_, _, true) => Some(PermissionMode::AcceptEdits),
            (false, false, false) => None,
        };
        AgentRunOptions {
            model: self.model.clone(),
            backend: self.backend.clone(),
            skills: self.skills.clone(),
            no_auto: self.no_auto,
            paths: self.paths.clone(),
            work_dir: self.cd.clone(),
            cost_usd_max: self.max_cost,
            turns_max: self.max_turns,
            tokens_max: self.max_tokens,
            duration_max: self.timeout,
            mode,
            allow: self.rules.allow.clone(),
            deny: self.rules.deny.clone(),
        }
    }
}

pub(crate) fn parse_dollars(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.trim_start_matches('$').parse().map_err(|_| "it is not a number".to_owned())?;
    let fits = number.is_finite() && number > 0.0;
    fits.then_some(number).ok_or_else(|| "it must be more than nothing".to_owned())
}

impl CliContext<'_> {
    /// Returns a driver for conversations, as configured, and prints warnings.
    pub(crate) async fn open_driver(
        &self,
        options: &AgentRunOptions,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(ConversationDriver, McpServers), CliFailure> {
        let mut warnings = Vec::new();
        let built = self.app.build_driver(options, &mut warnings).await;
        print_warnings(&warnings, ui)?;
        Ok(built?)
    }

    /// Returns a system that saves no conversations, and prints warnings.
    pub(crate) async fn open_system(
        &self,
        options: &AgentRunOptions,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(System, McpServers), CliFailure> {
        let mut warnings = Vec::new();
        let built = self.app.build_system(options, &mut warnings).await;
        print_warnings(&warnings, ui)?;
        Ok(built?)
    }
}

fn print_warnings(warnings: &[String], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    for warning in warnings {
        let line = ui.paint_err(ui::WARN, format!("! {}", ui::fit_columns(warning, 400)));
        ui.print_note(&line)?;
    }
    Ok(())
}
