//! `rep github run`: handles the event that started a workflow, from checking the actor's
//! permission to the reply in a comment.

use std::io::Write as _;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire::config::RepConfig;
use repertoire::github_setup::{CheckoutTrust, github_run_settings};
use repertoire::plan_setup::{PlanAgentBuilder, PlanRunOptions, host_name};
use repertoire_checks::memory::scope_of;
use repertoire_git::repo::{GitClient, GitObjectId};
use repertoire_github::base;
use repertoire_github::client::{ClientSettings, GitHubClient};
use repertoire_github::comment::NeutraliseRules;
use repertoire_github::credentials;
use repertoire_github::event::GitHubEventContext;
use repertoire_github::outputs;
use repertoire_github::publish;
use repertoire_github::run::{
    self as on_github, EventRunParameters, GitHubOutcome as Came, GitHubRunContext,
    GitHubRunSettings, RunConclusion, SandboxRequirement, commits, render,
};
use repertoire_journal::{DeadLetter, Journal, LetterStatus, QueueWorker, RunId};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_text::fs;
use repertoire_text::terminal::printable_line;
use tokio_util::sync::CancellationToken;

use super::EventArgs;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::daemon::cancel_on_signal;
use crate::commands::plan::run::record_failure;
use crate::commands::runs::dead_letters;
use crate::env::CliEnvironment;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::RunEventPrinter;
use crate::ui::{self, TerminalUi};

const API_URL: &str = "https://api.github.com";
/// Polling interval of the journal, for changes that it sends no notification of.
const TELL_POLL: Duration = Duration::from_millis(500);
const SERVER_URL: &str = "https://github.com";

/// Arguments of `rep github run`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GithubRunArgs {
    #[command(flatten)]
    event: EventArgs,
    /// Do this, whatever the event says
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Work in this mode (default: the mode that the event selects)
    #[arg(long, value_name = "NAME")]
    mode: Option<String>,
    /// Start work from this branch (default: `github.base_branch`, or the repository's default
    /// branch)
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// Check permissions and say what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
    /// Work through the waiting tasks
    #[arg(long)]
    continuous: bool,
    /// Push the branch of finished work
    #[arg(long)]
    push: bool,
    /// Open a pull request for finished work: a draft, unless auto-merge is on
    #[arg(long)]
    pull_request: bool,
    /// Retry this dead letter: it is resolved, or goes back to the queue
    #[arg(long, value_name = "LETTER")]
    letter: Option<String>,
    /// The backend that executes the turns, as in `rep run --backend`
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
    /// The model, as anthropic/NAME, openai/NAME or compat/NAME
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
}

impl GithubRunArgs {
    /// Adds the inputs of the GitHub action. A workflow passes them as environment variables,
    /// because interpolating untrusted text into a command line allows shell injection.
    fn with_inputs(mut self, env: &CliEnvironment) -> Self {
        let text = |name: &str| env.var(&format!("REPERTOIRE_ACTION_{name}")).map(str::to_owned);
        let flag =
            |name: &str| text(name).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
        self.prompt = self.prompt.or_else(|| text("PROMPT"));
        self.mode = self.mode.or_else(|| text("MODE"));
        self.backend = self.backend.or_else(|| text("BACKEND"));
        self.model = self.model.or_else(|| text("MODEL"));
        self.continuous |= flag("CONTINUOUS");
        self.push |= flag("PUSH");
        self.pull_request |= flag("PULL_REQUEST");
        self.dry_run |= flag("DRY_RUN");
        self
    }

    /// Adds the arguments of the original run, if this is a retry.
    fn with_started(mut self, started: Option<EventRunParameters>) -> Self {
        let Some(started) = started else { return self };
        self.prompt = self.prompt.or(started.prompt);
        self.mode = self.mode.or(started.mode);
        self.continuous |= started.continuous;
        self.push |= started.push;
        self.pull_request |= started.pull_request;
        self
    }
}

/// Runs `rep github run`. No configuration is read from the working folder: on a pull request, it
/// may hold an outside contributor's files.
pub(crate) fn run(
    env: &CliEnvironment,
    args: &GithubRunArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    keep_memory_private();
    let args = args.clone().with_inputs(env);
    let happened = args.event.read_event(env)?;
    // The Actions runner executes `::command::` lines that it finds in the output. Switch that off
    // while agents' and outsiders' text is printed.
    let quiet = env.var("GITHUB_ACTIONS").filter(|_| !ui.json).map(|_| RunId::new());
    if let Some(word) = &quiet {
        writeln!(ui.out, "{}", outputs::stop_commands_command(word.as_str()))?;
        // Standard error is not buffered, so its lines could come before the stop command.
        ui.out.flush()?;
    }
    let handled = build_runtime()?.block_on(handle_event(env, &args, happened, ui));
    match &handled {
        Ok(came) => report_outcome(env, came, ui)?,
        // `main` prints the message; the outputs of the workflow step need it too.
        Err(failure) => {
            write_workflow_outputs(env, &Came::new(RunConclusion::Failed, &failure.message))?
        }
    }
    if let Some(word) = &quiet {
        writeln!(ui.out, "{}", outputs::resume_commands_command(word.as_str()))?;
    }
    handled.map(|came| if came.conclusion.is_fine() { CliExit::Done } else { CliExit::No })
}

/// Marks the process as not dumpable, so that other programs of the same user cannot read the token
/// and API keys from its memory. The sandbox denies that as well.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    // Ignore an error: there is no alternative on such a kernel.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

async fn handle_event(
    env: &CliEnvironment,
    args: &GithubRunArgs,
    (context, payload): (GitHubEventContext, String),
    ui: &mut TerminalUi<'_>,
) -> Result<Came, CliFailure> {
    let context = &context;
    let client = build_client(env, context)?;
    if client.token().is_none() {
        let message = "there is no token (GITHUB_TOKEN), so permissions cannot be looked up";
        return Err(CliFailure::cannot_run(message).hint(
            "In a workflow, `github_token` of the action is it; `rep github detect` needs none.",
        ));
    }
    let context = &on_github::complete_event(&client, context).await.map_err(cannot_run)?;
    let git = GitClient::new(&env.here, env.tool_environment(false), env.probe_sandbox());
    without_credentials(&git).await?;
    let remote = publish::remote_of(env.var("GITHUB_SERVER_URL").unwrap_or(SERVER_URL), &client)
        .map_err(cannot_run)?;
    let ground = commits::find_commits(&git, context, args.base.as_deref(), Some(&remote))
        .await
        .map_err(cannot_run)?;
    let keep = tempfile::tempdir().map_err(|error| CliFailure::cannot_run(error.to_string()))?;
    let dir = Utf8PathBuf::from_path_buf(keep.path().join("base"))
        .map_err(|path| CliFailure::cannot_run(format!("{} is not UTF-8", path.display())))?;
    let base_checkout = base::checkout_base(&git, &ground.home, &dir).await.map_err(cannot_run)?;
    let handled = GithubEventHandler {
        env,
        args,
        payload: &payload,
        context,
        client: &client,
        remote: &remote,
        ground: &ground,
    };
    let came =
        handled.handle_in_checkout(&base_checkout, &git.in_dir(base_checkout.dir()), ui).await;
    // Show the branch in the message, not the temporary folder that it is checked out into.
    let came = came.map_err(|mut failure| {
        let named = format!("{}:", ground.home_ref);
        failure.message = failure.message.replace(&format!("{}/", base_checkout.dir()), &named);
        failure
    });
    // Best effort: the temporary folder is removed with `keep`, and git prunes the worktree in
    // time.
    let _ = base_checkout.remove_checkout().await;
    came
}

/// Fails if the checkout contains credentials, since every agent that works in it could read them.
async fn without_credentials(git: &GitClient) -> Result<(), CliFailure> {
    let found = credentials::find_persisted(git).await.map_err(cannot_run)?;
    let Some(first) = found.first() else { return Ok(()) };
    let message = format!(
        "the checkout keeps credentials, which agents could read: `{}` in {}",
        first.key, first.file
    );
    Err(CliFailure::cannot_run(message)
        .hint("Use `actions/checkout` with `persist-credentials: false`.")
        .hint("Elsewhere, take them out with `git config --local --unset-all KEY` first."))
}

/// The inputs of a run that are known before its configuration is read.
struct GithubEventHandler<'a> {
    env: &'a CliEnvironment,
    args: &'a GithubRunArgs,
    payload: &'a str,
    context: &'a GitHubEventContext,
    client: &'a GitHubClient,
    remote: &'a repertoire_git::repo::GitRemote,
    ground: &'a commits::RunCommits,
}

impl GithubEventHandler<'_> {
    async fn handle_in_checkout(
        &self,
        base_checkout: &base::BaseCheckout,
        git: &GitClient,
        ui: &mut TerminalUi<'_>,
    ) -> Result<Came, CliFailure> {
        let env = self.env.in_folder(base_checkout.dir());
        let ctx = CliContext::new(&env, RepConfig::of_base_branch(&env, base_checkout)?);
        let journal = ctx.journal(None).await?;
        let letter = self.take_letter(&journal).await?;
        let started = letter.as_ref().and_then(EventRunParameters::from_letter);
        let args = self.args.clone().with_started(started);
        let letter = letter.map(|letter| letter.id);
        let place = BaseWorkContext { ctx: &ctx, journal: &journal, base_checkout, git };
        let came = self.handle_with_settings(&place, &args, letter.as_deref(), ui).await;
        if let (Err(failure), Some(letter), false) = (&came, &letter, self.args.dry_run) {
            let (by, why) = (process_name(), &failure.message);
            let turn = journal.set_letter_status(letter, LetterStatus::Queued, &by, why);
            turn.await.map_err(dead_letters::letter_failure)?;
        }
        came
    }

    /// Loads the dead letter to retry, and marks it as retrying unless `rep runs dead-letters retry` has done so.
    async fn take_letter(&self, journal: &Journal) -> Result<Option<DeadLetter>, CliFailure> {
        let Some(id) = &self.args.letter else { return Ok(None) };
        let letter = journal.find_letter(id).await.map_err(dead_letters::letter_failure)?;
        if letter.status == LetterStatus::Retrying || self.args.dry_run {
            return Ok(Some(letter));
        }
        let by = process_name();
        let turn = journal.set_letter_status(&letter.id, LetterStatus::Retrying, &by, "");
        turn.await.map(Some).map_err(dead_letters::letter_failure)
    }

    async fn handle_with_settings(
        &self,
        place: &BaseWorkContext<'_>,
        args: &GithubRunArgs,
        letter: Option<&str>,
        ui: &mut TerminalUi<'_>,
    ) -> Result<Came, CliFailure> {
        let BaseWorkContext { ctx, journal, base_checkout, git } = *place;
        let env = ctx.env;
        let modes = ctx.load_modes(CheckoutTrust::OfBase)?;
        for warning in modes.warnings.iter() {
            ui.print_note(&ui.paint_err(ui::WARN, format!("! {warning}")))?;
        }
        let mut settings = github_run_settings(ctx, args.prompt.as_deref(), args.mode.as_deref())?;
        settings.triggers.continuous |= args.continuous;
        settings.push |= args.push || args.pull_request;
        settings.pull_request |= args.pull_request;
        self.look_up_own_account(&mut settings, ui).await?;
        let flags = PlanRunOptions {
            backend: args.backend.clone(),
            model: args.model.clone(),
            self_improve: true,
            ..PlanRunOptions::default()
        };
        let ground = self.find_starting_point(ctx, git).await?;
        let mut request = ctx.plan_request(Utf8PathBuf::new(), base_checkout.dir(), &flags)?;
        let scope = scope_of(git).await.map_err(cannot_run)?;
        if let Some(improve) = &mut request.improve {
            improve.scope.clone_from(&scope);
        }
        let agent_provider = PlanAgentBuilder::new(env)
            .with_trusted_checkout(base_checkout.clone(), ctx.config.clone());
        let mut runner = ctx.plan_runner(journal.clone(), None);
        runner.agent_provider = Arc::new(agent_provider);
        let nonce = RunId::new();
        let worker = QueueWorker {
            name: process_name(),
            labels: Default::default(),
            kinds: Default::default(),
            lease: ctx.lease_duration(),
        };
        let begun = GithubStartedRuns::default();
        let github_run = GitHubRunContext {
            client: self.client,
            remote: self.remote,
            journal,
            runner: &runner,
            worker: &worker,
            checkout: git,
            ground: &ground,
            settings: &settings,
            request: &request,
            limits: ctx.plan_limits(&flags),
            nonce: nonce.as_str(),
            scope: &scope,
            secrets: self.env.secret_values(),
            event: self.payload,
            on_run: &|id| begun.add(id),
            letter,
        };
        if self.args.dry_run {
            return Ok(github_run.describe_event(self.context, &modes).await);
        }
        let sandbox = ctx.configured_sandbox()?;
        require_sandbox(&sandbox, settings.walls)?;
        let shutdown = CancellationToken::new();
        cancel_on_signal(shutdown.clone())?;
        let work = github_run.handle_event(self.context, &modes, &shutdown);
        let mut came = begun.print_while(work, journal, ui).await;
        github_run.update_letter(&mut came).await;
        let kept = self.keep_events(journal, &begun.to_vec()).await;
        let patch = self.keep_patch(git, journal, &came).await;
        came.notes.extend([kept, patch].into_iter().filter_map(|kept| Some(kept.err()?.message)));
        Ok(came)
    }

    /// Returns where the work starts: on `github.base_branch`, unless `--base` was given.
    async fn find_starting_point(
        &self,
        ctx: &CliContext<'_>,
        git: &GitClient,
    ) -> Result<commits::RunCommits, CliFailure> {
        let named = ctx.config.values().github_base_branch.as_deref().map(str::trim);
        match named.filter(|name| !name.is_empty() && self.args.base.is_none()) {
            None => Ok(self.ground.clone()),
            Some(branch) => {
                self.ground.starting_on(branch, git, Some(self.remote)).await.map_err(cannot_run)
            }
        }
    }

    /// Looks up the account of the token, so that its comments count as our own even if
    /// `github.bot_login` differs. App tokens, such as a workflow's, may not make this request;
    /// that is no error.
    async fn look_up_own_account(
        &self,
        settings: &mut GitHubRunSettings,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        let Ok(user) = self.client.get_own_user().await else { return Ok(()) };
        if settings.rules.is_own(&user.login) {
            return Ok(());
        }
        let said = format!(
            "! the token is {}'s, and `github.bot_login` is {}: neither of them is answered",
            printable_line(&user.login),
            printable_line(&settings.rules.bot_login)
        );
        ui.print_note(&ui.paint_err(ui::WARN, said))?;
        settings.set_bot_login(&user.login);
        Ok(())
    }

    /// Writes the events of the runs to a file for later steps of the workflow.
    async fn keep_events(&self, journal: &Journal, runs: &[RunId]) -> Result<(), CliFailure> {
        let Some(first) = runs.first() else { return Ok(()) };
        let mut lines = String::new();
        for id in runs {
            let mut after = 0;
            loop {
                let page = journal.events(id, after, 0).await.map_err(record_failure)?;
                let Some(last) = page.last() else { break };
                after = last.seq;
                for event in &page {
                    lines.push_str(&serde_json::to_string(event).unwrap_or_default());
                    lines.push('\n');
                }
            }
        }
        self.write_artifact(
            "execution_file",
            &format!("repertoire-{}.jsonl", first.short()),
            lines.as_bytes(),
        )
    }

    /// Saves work that was not pushed as a patch file, since the runner's disk is discarded.
    async fn keep_patch(
        &self,
        git: &GitClient,
        journal: &Journal,
        came: &Came,
    ) -> Result<(), CliFailure> {
        let (Some(branch), Some(id), false) = (&came.branch, &came.run, came.pushed) else {
            return Ok(());
        };
        let run = journal.run(id).await.map_err(record_failure)?;
        let begun = run.and_then(|run| GitObjectId::parse(&run.worktree?.base));
        let tip = git.branch_tip(branch).await.map_err(cannot_run)?;
        let (Some(begun), Some(tip)) = (begun, tip) else { return Ok(()) };
        let trees = tokio::try_join!(git.tree_of(&begun), git.tree_of(&tip));
        let (before, after) = trees.map_err(cannot_run)?;
        let patch = git.patch_of(&before, &after, &[]).await.map_err(cannot_run)?;
        self.write_artifact("patch_file", &format!("{}.patch", branch.replace('/', "-")), &patch)
    }

    /// Writes a file to `$RUNNER_TEMP`, and sets a step output to its path. Does nothing outside
    /// Actions.
    fn write_artifact(
        &self,
        output_name: &str,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), CliFailure> {
        let Some(dir) = self.env.var("RUNNER_TEMP") else { return Ok(()) };
        let file = Utf8Path::new(dir).join(name);
        fs::write_private(&file, bytes).map_err(|error| {
            CliFailure::cannot_run(format!("{file} cannot be written: {error}"))
        })?;
        set_output(self.env, output_name, file.as_str())
    }
}

/// The runs that were started for this event.
#[derive(Default)]
struct GithubStartedRuns(Mutex<Vec<RunId>>);

impl GithubStartedRuns {
    fn add(&self, id: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
    }

    fn to_vec(&self) -> Vec<RunId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints the runs' events while `work` proceeds. Errors in printing don't stop the work.
    async fn print_while<T>(
        &self,
        work: impl Future<Output = T>,
        journal: &Journal,
        ui: &mut TerminalUi<'_>,
    ) -> T {
        let mut work = pin!(work);
        let mut changes = journal.subscribe_changes();
        let mut narrators: Vec<RunEventPrinter> = Vec::new();
        loop {
            let done = tokio::select! {
                done = &mut work => Some(done),
                _ = changes.next(TELL_POLL) => None,
            };
            let new = self.to_vec().into_iter().skip(narrators.len());
            narrators.extend(new.map(|id| RunEventPrinter::new(id, 0)));
            // JSON is printed once, at the end.
            if !ui.json {
                for narrator in &mut narrators {
                    let _ = narrator.print_new_events(journal, ui).await;
                }
            }
            if let Some(done) = done {
                return done;
            }
        }
    }
}

/// Fails without an enforced sandbox, since outsiders' text can influence which programs are run.
/// Only the owner of the machine can waive this, in the user configuration.
fn require_sandbox(sandbox: &Sandbox, walls: SandboxRequirement) -> Result<(), CliFailure> {
    if sandbox.is_enforced() || walls == SandboxRequirement::GivenUp {
        return Ok(());
    }
    Err(CliFailure::cannot_run(format!("{}, and checks would run without one", sandbox.describe()))
        .hint("Use a runner with Landlock (Linux 5.13 or later) or with `bwrap`.")
        .hint(
            "On a machine that has nothing to lose, set `sandbox = \"off\"` in the user's configuration, or \
             REPERTOIRE_SANDBOX=off.",
        ))
}

/// The checkout of the base branch with its configuration, and the journal that records the work.
struct BaseWorkContext<'a> {
    ctx: &'a CliContext<'a>,
    journal: &'a Journal,
    base_checkout: &'a base::BaseCheckout,
    git: &'a GitClient,
}

/// Returns the name of this process in the journal, `host:pid`.
fn process_name() -> String {
    format!("{}:{}", host_name(), std::process::id())
}

fn build_client(
    env: &CliEnvironment,
    context: &GitHubEventContext,
) -> Result<GitHubClient, CliFailure> {
    let api_url = env.var("GITHUB_API_URL").unwrap_or(API_URL);
    let token = env.secret_var("GITHUB_TOKEN");
    let repository = &context.repository;
    GitHubClient::new(ClientSettings::new(api_url, token, &repository.owner, &repository.name))
        .map_err(cannot_run)
}

fn cannot_run(error: impl std::fmt::Display) -> CliFailure {
    CliFailure::cannot_run(error.to_string())
}

/// Reports the outcome to the user and to the workflow.
fn report_outcome(
    env: &CliEnvironment,
    came: &Came,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    if ui.json {
        ui.print_json(came)?;
    } else {
        writeln!(ui.out, "{}", ui::printable_lines(&render::render_headline(came)))?;
        for note in &came.notes {
            ui.print_note(&ui::printable_lines(note))?;
        }
        if let Some(answer) = &came.answer {
            writeln!(ui.out)?;
            for line in answer.lines() {
                writeln!(ui.out, "{}", printable_line(line))?;
            }
        }
    }
    write_workflow_outputs(env, came)
}

/// Sets the outputs of the step and writes its summary.
fn write_workflow_outputs(env: &CliEnvironment, came: &Came) -> Result<(), CliFailure> {
    let number = came.pull_request.map(|number| number.to_string()).unwrap_or_default();
    let tasks =
        if came.tasks.is_empty() { usize::from(came.run.is_some()) } else { came.tasks.len() };
    for (name, value) in [
        ("conclusion", came.conclusion.as_str()),
        ("reason", &came.reason),
        ("mode", came.mode.as_deref().unwrap_or("none")),
        ("branch_name", came.branch.as_deref().unwrap_or_default()),
        ("pull_request", &number),
        ("tasks_processed", &tasks.to_string()),
        ("run_id", came.run.as_ref().map_or("", RunId::as_str)),
    ] {
        set_output(env, name, value)?;
    }
    if let Some(path) = env.var("GITHUB_STEP_SUMMARY") {
        let secrets = env.secret_values();
        let rules = NeutraliseRules { secrets: &secrets, ..NeutraliseRules::default() };
        append_to_file(path, &outputs::fit_summary(&render::render_summary(came, &rules)))?;
    }
    Ok(())
}

/// Sets an output of the step, if running in a workflow.
fn set_output(env: &CliEnvironment, name: &str, value: &str) -> Result<(), CliFailure> {
    let Some(path) = env.var("GITHUB_OUTPUT") else { return Ok(()) };
    let line = outputs::format_output(name, value, RunId::new().as_str()).map_err(cannot_run)?;
    append_to_file(path, &line)
}

fn append_to_file(path: &str, text: &str) -> Result<(), CliFailure> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| CliFailure::cannot_run(format!("{path} cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_walls_nothing_is_begun_unless_the_user_gave_them_up() {
        let none = Sandbox::Unavailable { reason: "the kernel has none".into() };
        let refused = require_sandbox(&none, SandboxRequirement::Needed).unwrap_err();
        assert!(refused.message.contains("the kernel has none"), "{}", refused.message);
        assert!(refused.hints.iter().any(|hint| hint.contains("sandbox = \"off\"")));
        assert!(require_sandbox(&none, SandboxRequirement::GivenUp).is_ok());
        assert!(require_sandbox(&Sandbox::None, SandboxRequirement::Needed).is_err());
    }
}
