//! `rep github run`: handles the event that started a workflow, from checking the actor's
//! permission to the reply in a comment.

use std::io::Write as _;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_checks::memory::scope_of;
use repertoire_git::repo::{Git, Oid};
use repertoire_github::base;
use repertoire_github::client::{Client, Settings as ClientSettings};
use repertoire_github::comment::Harmless;
use repertoire_github::credentials;
use repertoire_github::event::Context;
use repertoire_github::outputs;
use repertoire_github::publish;
use repertoire_github::run::{
    self as on_github, Conclusion, Desk, Outcome as Came, Settings, Started, Walls, ground, words,
};
use repertoire_journal::{DeadLetter, Journal, LetterStatus, RunId, Worker};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_text::fs;
use repertoire_text::terminal::printable;
use tokio_util::sync::CancellationToken;

use super::settings::settings;
use super::{Checkout, EventArgs};
use crate::cli::Ctx;
use crate::commands::dlq;
use crate::commands::plan::run::not_recorded;
use crate::commands::worker::stop_when_asked;
use crate::config::Config;
use crate::env::Env;
use crate::failure::{Exit, Failure, Outcome};
use crate::planning::{House, PlanFlags, host};
use crate::running::runtime;
use crate::runs_text::Narrator;
use crate::ui::{self, Ui};

const API_URL: &str = "https://api.github.com";
/// Polling interval of the journal, for changes that it sends no notification of.
const TELL_POLL: Duration = Duration::from_millis(500);
const SERVER_URL: &str = "https://github.com";

/// Arguments of `rep github run`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
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

impl Args {
    /// Adds the inputs of the GitHub action. A workflow passes them as environment variables,
    /// because interpolating untrusted text into a command line allows shell injection.
    fn with_inputs(mut self, env: &Env) -> Self {
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
    fn with_started(mut self, started: Option<Started>) -> Self {
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
pub(crate) fn run(env: &Env, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    keep_memory_private();
    let args = args.clone().with_inputs(env);
    let happened = args.event.read(env)?;
    // The Actions runner executes `::command::` lines that it finds in the output. Switch that off
    // while agents' and outsiders' text is printed.
    let quiet = env.var("GITHUB_ACTIONS").filter(|_| !ui.json).map(|_| RunId::new());
    if let Some(word) = &quiet {
        writeln!(ui.out, "{}", outputs::stop_commands(word.as_str()))?;
        // Standard error is not buffered, so its lines could come before the stop command.
        ui.out.flush()?;
    }
    let handled = runtime()?.block_on(handle(env, &args, happened, ui));
    match &handled {
        Ok(came) => report(env, came, ui)?,
        // `main` prints the message; the outputs of the workflow step need it too.
        Err(failure) => tell_workflow(env, &Came::new(Conclusion::Failed, &failure.message))?,
    }
    if let Some(word) = &quiet {
        writeln!(ui.out, "{}", outputs::resume_commands(word.as_str()))?;
    }
    handled.map(|came| if came.conclusion.is_fine() { Exit::Done } else { Exit::No })
}

/// Marks the process as not dumpable, so that other programs of the same user cannot read the token
/// and API keys from its memory. The sandbox denies that as well.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    // Ignore an error: there is no alternative on such a kernel.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

async fn handle(
    env: &Env,
    args: &Args,
    (context, payload): (Context, String),
    ui: &mut Ui<'_>,
) -> Result<Came, Failure> {
    let context = &context;
    let client = client(env, context)?;
    if client.token().is_none() {
        let message = "there is no token (GITHUB_TOKEN), so permissions cannot be looked up";
        return Err(Failure::cannot_run(message).hint(
            "In a workflow, `github_token` of the action is it; `rep github detect` needs none.",
        ));
    }
    let context = &on_github::complete(&client, context).await.map_err(cannot)?;
    let git = Git::new(&env.here, env.tool_environment(false), Env::sandbox());
    without_credentials(&git).await?;
    let remote = publish::remote_of(env.var("GITHUB_SERVER_URL").unwrap_or(SERVER_URL), &client)
        .map_err(cannot)?;
    let ground =
        ground::find(&git, context, args.base.as_deref(), Some(&remote)).await.map_err(cannot)?;
    let keep = tempfile::tempdir().map_err(|error| Failure::cannot_run(error.to_string()))?;
    let dir = Utf8PathBuf::from_path_buf(keep.path().join("base"))
        .map_err(|path| Failure::cannot_run(format!("{} is not UTF-8", path.display())))?;
    let house = base::house(&git, &ground.home, &dir).await.map_err(cannot)?;
    let handled = Handling {
        env,
        args,
        payload: &payload,
        context,
        client: &client,
        remote: &remote,
        ground: &ground,
    };
    let came = handled.in_house(&house, &git.in_dir(house.dir()), ui).await;
    // Show the branch in the message, not the temporary folder that it is checked out into.
    let came = came.map_err(|mut failure| {
        let named = format!("{}:", ground.home_ref);
        failure.message = failure.message.replace(&format!("{}/", house.dir()), &named);
        failure
    });
    // Best effort: the temporary folder is removed with `keep`, and git prunes the worktree in
    // time.
    let _ = house.leave().await;
    came
}

/// Fails if the checkout contains credentials, since every agent that works in it could read them.
async fn without_credentials(git: &Git) -> Result<(), Failure> {
    let found = credentials::persisted(git).await.map_err(cannot)?;
    let Some(first) = found.first() else { return Ok(()) };
    let message = format!(
        "the checkout keeps credentials, which agents could read: `{}` in {}",
        first.key, first.file
    );
    Err(Failure::cannot_run(message)
        .hint("Use `actions/checkout` with `persist-credentials: false`.")
        .hint("Elsewhere, take them out with `git config --local --unset-all KEY` first."))
}

/// The inputs of a run that are known before its configuration is read.
struct Handling<'a> {
    env: &'a Env,
    args: &'a Args,
    payload: &'a str,
    context: &'a Context,
    client: &'a Client,
    remote: &'a repertoire_git::repo::Remote,
    ground: &'a ground::Ground,
}

impl Handling<'_> {
    async fn in_house(
        &self,
        house: &base::House,
        git: &Git,
        ui: &mut Ui<'_>,
    ) -> Result<Came, Failure> {
        let env = Env { here: house.dir().to_owned(), moved: true, ..self.env.clone() };
        let ctx = Ctx { env: &env, config: Config::of_base_branch(&env, house)? };
        let journal = ctx.journal(None).await?;
        let letter = self.taken_up(&journal).await?;
        let started = letter.as_ref().and_then(Started::of);
        let args = self.args.clone().with_started(started);
        let letter = letter.map(|letter| letter.id);
        let place = Place { ctx: &ctx, journal: &journal, house, git };
        let came = self.at_desk(&place, &args, letter.as_deref(), ui).await;
        if let (Err(failure), Some(letter), false) = (&came, &letter, self.args.dry_run) {
            let (by, why) = (by(), &failure.message);
            let turn = journal.letter_status(letter, LetterStatus::Queued, &by, why);
            turn.await.map_err(dlq::failed)?;
        }
        came
    }

    /// Loads the dead letter to retry, and marks it as retrying unless `rep dlq retry` has done so.
    async fn taken_up(&self, journal: &Journal) -> Result<Option<DeadLetter>, Failure> {
        let Some(id) = &self.args.letter else { return Ok(None) };
        let letter = journal.letter(id).await.map_err(dlq::failed)?;
        if letter.status == LetterStatus::Retrying || self.args.dry_run {
            return Ok(Some(letter));
        }
        let by = by();
        let turn = journal.letter_status(&letter.id, LetterStatus::Retrying, &by, "");
        turn.await.map(Some).map_err(dlq::failed)
    }

    async fn at_desk(
        &self,
        place: &Place<'_>,
        args: &Args,
        letter: Option<&str>,
        ui: &mut Ui<'_>,
    ) -> Result<Came, Failure> {
        let Place { ctx, journal, house, git } = *place;
        let env = ctx.env;
        let modes = ctx.modes(Checkout::OfBase)?;
        for warning in modes.warnings.iter() {
            ui.note(&ui.paint_err(ui::WARN, format!("! {warning}")))?;
        }
        let mut settings = settings(ctx, args.prompt.as_deref(), args.mode.as_deref())?;
        settings.triggers.continuous |= args.continuous;
        settings.push |= args.push || args.pull_request;
        settings.pull_request |= args.pull_request;
        self.find_out_who_we_are(&mut settings, ui).await?;
        let flags = PlanFlags {
            backend: args.backend.clone(),
            model: args.model.clone(),
            self_improve: true,
            ..PlanFlags::default()
        };
        let ground = self.work_begins_on(ctx, git).await?;
        let mut request = ctx.plan_request(Utf8PathBuf::new(), house.dir(), &flags)?;
        let scope = scope_of(git).await.map_err(cannot)?;
        if let Some(improve) = &mut request.improve {
            improve.scope.clone_from(&scope);
        }
        let crew = House::new(env).vouched_for(house.clone(), ctx.config.clone());
        let mut runner = ctx.runner(journal.clone(), None);
        runner.crew = Arc::new(crew);
        let nonce = RunId::new();
        let worker = Worker {
            name: by(),
            labels: Default::default(),
            kinds: Default::default(),
            lease: ctx.lease(),
        };
        let begun = Begun::default();
        let desk = Desk {
            client: self.client,
            remote: self.remote,
            journal,
            runner: &runner,
            worker: &worker,
            house: git,
            ground: &ground,
            settings: &settings,
            request: &request,
            limits: ctx.plan_limits(&flags),
            nonce: nonce.as_str(),
            scope: &scope,
            secrets: self.env.secrets(),
            event: self.payload,
            on_run: &|id| begun.add(id),
            letter,
        };
        if self.args.dry_run {
            return Ok(desk.decide(self.context, &modes).await);
        }
        let sandbox = ctx.sandbox()?;
        within(&sandbox, settings.walls)?;
        let shutdown = CancellationToken::new();
        stop_when_asked(shutdown.clone())?;
        let work = desk.handle(self.context, &modes, &shutdown);
        let mut came = begun.told(work, journal, ui).await;
        desk.settle(&mut came).await;
        let kept = self.keep_events(journal, &begun.all()).await;
        let patch = self.keep_patch(git, journal, &came).await;
        came.notes.extend([kept, patch].into_iter().filter_map(|kept| Some(kept.err()?.message)));
        Ok(came)
    }

    /// Returns where the work starts: on `github.base_branch`, unless `--base` was given.
    async fn work_begins_on(&self, ctx: &Ctx<'_>, git: &Git) -> Result<ground::Ground, Failure> {
        let named = ctx.config.text("github.base_branch").map(str::trim);
        match named.filter(|name| !name.is_empty() && self.args.base.is_none()) {
            None => Ok(self.ground.clone()),
            Some(branch) => {
                self.ground.beginning_on(branch, git, Some(self.remote)).await.map_err(cannot)
            }
        }
    }

    /// Looks up the account of the token, so that its comments count as our own even if
    /// `github.bot_login` differs. App tokens, such as a workflow's, may not make this request;
    /// that is no error.
    async fn find_out_who_we_are(
        &self,
        settings: &mut Settings,
        ui: &mut Ui<'_>,
    ) -> Result<(), Failure> {
        let Ok(user) = self.client.who_am_i().await else { return Ok(()) };
        if settings.rules.is_own(&user.login) {
            return Ok(());
        }
        let said = format!(
            "! the token is {}'s, and `github.bot_login` is {}: neither of them is answered",
            printable(&user.login),
            printable(&settings.rules.bot_login)
        );
        ui.note(&ui.paint_err(ui::WARN, said))?;
        settings.written_by(&user.login);
        Ok(())
    }

    /// Writes the events of the runs to a file for later steps of the workflow.
    async fn keep_events(&self, journal: &Journal, runs: &[RunId]) -> Result<(), Failure> {
        let Some(first) = runs.first() else { return Ok(()) };
        let mut lines = String::new();
        for id in runs {
            let mut after = 0;
            loop {
                let page = journal.events(id, after, 0).await.map_err(not_recorded)?;
                let Some(last) = page.last() else { break };
                after = last.seq;
                for event in &page {
                    lines.push_str(&serde_json::to_string(event).unwrap_or_default());
                    lines.push('\n');
                }
            }
        }
        self.keep(
            "execution_file",
            &format!("repertoire-{}.jsonl", first.short()),
            lines.as_bytes(),
        )
    }

    /// Saves work that was not pushed as a patch file, since the runner's disk is discarded.
    async fn keep_patch(&self, git: &Git, journal: &Journal, came: &Came) -> Result<(), Failure> {
        let (Some(branch), Some(id), false) = (&came.branch, &came.run, came.pushed) else {
            return Ok(());
        };
        let run = journal.run(id).await.map_err(not_recorded)?;
        let begun = run.and_then(|run| Oid::parse(&run.worktree?.base));
        let tip = git.branch_tip(branch).await.map_err(cannot)?;
        let (Some(begun), Some(tip)) = (begun, tip) else { return Ok(()) };
        let trees = tokio::try_join!(git.tree_of(&begun), git.tree_of(&tip));
        let (before, after) = trees.map_err(cannot)?;
        let patch = git.patch_of(&before, &after, &[]).await.map_err(cannot)?;
        self.keep("patch_file", &format!("{}.patch", branch.replace('/', "-")), &patch)
    }

    /// Writes a file to `$RUNNER_TEMP`, and sets a step output to its path. Does nothing outside
    /// Actions.
    fn keep(&self, output_name: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let Some(dir) = self.env.var("RUNNER_TEMP") else { return Ok(()) };
        let file = Utf8Path::new(dir).join(name);
        fs::write_private(&file, bytes)
            .map_err(|error| Failure::cannot_run(format!("{file} cannot be written: {error}")))?;
        output(self.env, output_name, file.as_str())
    }
}

/// The runs that were started for this event.
#[derive(Default)]
struct Begun(Mutex<Vec<RunId>>);

impl Begun {
    fn add(&self, id: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
    }

    fn all(&self) -> Vec<RunId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints the runs' events while `work` proceeds. Errors in printing don't stop the work.
    async fn told<T>(
        &self,
        work: impl Future<Output = T>,
        journal: &Journal,
        ui: &mut Ui<'_>,
    ) -> T {
        let mut work = pin!(work);
        let mut changes = journal.changes();
        let mut narrators: Vec<Narrator> = Vec::new();
        loop {
            let done = tokio::select! {
                done = &mut work => Some(done),
                _ = changes.next(TELL_POLL) => None,
            };
            let new = self.all().into_iter().skip(narrators.len());
            narrators.extend(new.map(|id| Narrator::new(id, 0)));
            // JSON is printed once, at the end.
            if !ui.json {
                for narrator in &mut narrators {
                    let _ = narrator.tell(journal, ui).await;
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
fn within(sandbox: &Sandbox, walls: Walls) -> Result<(), Failure> {
    if sandbox.is_enforced() || walls == Walls::GivenUp {
        return Ok(());
    }
    Err(Failure::cannot_run(format!("{}, and checks would run without one", sandbox.describe()))
        .hint("Use a runner with Landlock (Linux 5.13 or later) or with `bwrap`.")
        .hint(
            "On a machine that has nothing to lose, set `sandbox = \"off\"` in the user's configuration, or \
             REPERTOIRE_SANDBOX=off.",
        ))
}

/// The checkout of the base branch with its configuration, and the journal that records the work.
struct Place<'a> {
    ctx: &'a Ctx<'a>,
    journal: &'a Journal,
    house: &'a base::House,
    git: &'a Git,
}

/// Returns the name of this process in the journal, `host:pid`.
fn by() -> String {
    format!("{}:{}", host(), std::process::id())
}

fn client(env: &Env, context: &Context) -> Result<Client, Failure> {
    let api_url = env.var("GITHUB_API_URL").unwrap_or(API_URL);
    let token = env.secret("GITHUB_TOKEN");
    let repository = &context.repository;
    Client::new(ClientSettings::new(api_url, token, &repository.owner, &repository.name))
        .map_err(cannot)
}

fn cannot(error: impl std::fmt::Display) -> Failure {
    Failure::cannot_run(error.to_string())
}

/// Reports the outcome to the user and to the workflow.
fn report(env: &Env, came: &Came, ui: &mut Ui<'_>) -> Result<(), Failure> {
    if ui.json {
        ui.print_json(came)?;
    } else {
        writeln!(ui.out, "{}", ui::printable_lines(&words::headline(came)))?;
        for note in &came.notes {
            ui.note(&ui::printable_lines(note))?;
        }
        if let Some(answer) = &came.answer {
            writeln!(ui.out)?;
            for line in answer.lines() {
                writeln!(ui.out, "{}", printable(line))?;
            }
        }
    }
    tell_workflow(env, came)
}

/// Sets the outputs of the step and writes its summary.
fn tell_workflow(env: &Env, came: &Came) -> Result<(), Failure> {
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
        output(env, name, value)?;
    }
    if let Some(path) = env.var("GITHUB_STEP_SUMMARY") {
        let secrets = env.secrets();
        let rules = Harmless { secrets: &secrets, ..Harmless::default() };
        append(path, &outputs::summary(&words::summary(came, &rules)))?;
    }
    Ok(())
}

/// Sets an output of the step, if running in a workflow.
fn output(env: &Env, name: &str, value: &str) -> Result<(), Failure> {
    let Some(path) = env.var("GITHUB_OUTPUT") else { return Ok(()) };
    let line = outputs::output(name, value, RunId::new().as_str()).map_err(cannot)?;
    append(path, &line)
}

fn append(path: &str, text: &str) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::cannot_run(format!("{path} cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_walls_nothing_is_begun_unless_the_user_gave_them_up() {
        let none = Sandbox::Unavailable { reason: "the kernel has none".into() };
        let refused = within(&none, Walls::Needed).unwrap_err();
        assert!(refused.message.contains("the kernel has none"), "{}", refused.message);
        assert!(refused.hints.iter().any(|hint| hint.contains("sandbox = \"off\"")));
        assert!(within(&none, Walls::GivenUp).is_ok());
        assert!(within(&Sandbox::None, Walls::Needed).is_err());
    }
}
