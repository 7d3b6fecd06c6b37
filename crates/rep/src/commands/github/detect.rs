//! `rep github detect`: shows which mode would respond to an event, and why. It does nothing and
//! makes no requests.

use repertoire_github::actor::{Admission, Admitted, Answer, Answers, Permission, admit, to_ask};
use repertoire_github::base;
use repertoire_github::event::{Account, Context, EventName};
use repertoire_github::grant::grant;
use repertoire_github::mode::{
    Detection, Mode, ModeOrigin, Modes, OpensPullRequest, RequiresBranch, TrackingComment, detect,
};
use repertoire_github::template::{Facts, Prompt, prompt};
use repertoire_github::trigger::{Match, matched};
use repertoire_skill::name::nearest;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::terminal::{printable, render};

use super::{Checkout, EventArgs};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::github::{ActorJson, DetectJson, EntityJson, ModeJson, PromptJson, RemovedJson};
use crate::ui::{self, Ui};

/// The nonce in the fences of a previewed prompt. A real run uses a random one, which text in the
/// event cannot guess.
const PREVIEW: &str = "preview";

/// Arguments of `rep github detect`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    event: EventArgs,
    /// Use this mode instead of the one that the event selects
    #[arg(long, value_name = "NAME")]
    mode: Option<String>,
    /// The prompt that the run would be given
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Assume that the actor has this permission: admin, maintain, write, triage, read or none
    #[arg(long, value_name = "PERMISSION", value_parser = permission)]
    permission: Option<Permission>,
    /// Trust the skills of this folder, as a run does with its checkout of the base branch
    #[arg(long)]
    trust_checkout: bool,
    /// Show the prompt that the agent would get
    #[arg(long)]
    show_prompt: bool,
}

fn permission(name: &str) -> Result<Permission, String> {
    let known = "use admin, maintain, write, triage, read or none";
    Permission::parse(name).ok_or_else(|| known.to_owned())
}

/// The result of the detection, before it is printed.
struct Found {
    context: Context,
    modes: Modes,
    triggers: Vec<Match>,
    detection: Detection,
    asks: Vec<String>,
    admitted: Option<Admitted>,
    tools: Vec<String>,
    prompt: Option<Prompt>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let found = find(ctx, args)?;
    if ui.json {
        ui.print_json(&json(&found, args.show_prompt))?;
    } else {
        show(&found, args.show_prompt, ui)?;
    }
    Ok(Exit::Done)
}

fn find(ctx: &Ctx<'_>, args: &Args) -> Result<Found, Failure> {
    let (context, _) = args.event.read(ctx.env)?;
    let settings = ctx.config.triggers(args.prompt.as_deref(), args.mode.as_deref());
    let checkout = if args.trust_checkout { Checkout::OfBase } else { Checkout::Any };
    let modes = ctx.modes(checkout)?;
    let triggers = matched(&context, &settings);
    let detection = detect(&modes.modes, &triggers, args.mode.as_deref());
    let rules = ctx.config.github_rules();
    let asks: Vec<String> =
        to_ask(&context, &rules).into_iter().map(|account| account.login.clone()).collect();
    let answers = answers(&asks, args.permission);
    // If no permission has to be looked up, the admission is already certain.
    let known = args.permission.is_some() || asks.is_empty();
    let admitted = known.then(|| admit(&context, &answers, &rules));
    let admission = admitted.as_ref().map_or(Admission::Write, |made| made.admission.clone());
    let mode = detection.mode.as_deref().and_then(|name| modes.get(name));
    let network = ctx.config.texts("github.network_tools");
    let tools = mode.map(|mode| grant(mode, &admission, &network).tools).unwrap_or_default();
    let facts = Facts {
        nonce: PREVIEW.to_owned(),
        trigger: detection.trigger.clone(),
        admission: admitted.as_ref().map(|made| made.admission.clone()),
        answers,
        base_branch: base_branch(ctx, &context),
        tools: tools.clone(),
        ..Facts::default()
    };
    let prompt = mode.map(|mode| prompt(mode, &context, &settings, &facts));
    Ok(Found { context, modes, triggers, detection, asks, admitted, tools, prompt })
}

fn answers(asks: &[String], permission: Option<Permission>) -> Answers {
    let Some(permission) = permission else { return Answers::default() };
    asks.iter()
        .fold(Answers::default(), |answers, login| answers.with(login, Answer::Is(permission)))
}

fn base_branch(ctx: &Ctx<'_>, context: &Context) -> Option<String> {
    let pull = context.entity.as_ref().and_then(|entity| entity.pull.as_ref());
    let configured = ctx.config.text("github.base_branch").filter(|name| !name.is_empty());
    let of_pull = pull.map(|pull| pull.base_ref.clone());
    of_pull.or_else(|| {
        configured.map(str::to_owned).or_else(|| context.repository.default_branch.clone())
    })
}

impl Found {
    fn mode(&self) -> Option<&Mode> {
        self.detection.mode.as_deref().and_then(|name| self.modes.get(name))
    }

    fn warnings(&self) -> Vec<String> {
        let of_rules = self.admitted.iter().flat_map(|made| &made.warnings);
        self.modes.warnings.iter().chain(of_rules).cloned().collect()
    }
}

fn json(found: &Found, with_prompt: bool) -> DetectJson {
    let context = &found.context;
    let removed = found.prompt.iter().flat_map(|prompt| &prompt.removed);
    DetectJson {
        event: context.event_and_action(),
        repository: context.repository.full_name(),
        entity: context.entity.as_ref().map(|entity| EntityJson {
            kind: if entity.is_pull { "pull_request" } else { "issue" },
            number: entity.number,
        }),
        actor: actor_json(&context.actor),
        rerun_by: context.rerun_by.as_ref().map(actor_json),
        asks: found.asks.clone(),
        admitted: found.admitted.clone(),
        triggers: found.triggers.clone(),
        detection: found.detection.clone(),
        mode: found.mode().map(|mode| ModeJson {
            name: mode.name.clone(),
            origin: mode.origin.clone(),
            tools: found.tools.clone(),
            tracking: mode.tracking.clone(),
            execution: mode.execution.clone(),
        }),
        fork: context.is_fork(),
        removed: removed
            .map(|(from, removed)| RemovedJson {
                from: (*from).to_owned(),
                what: removed.what,
                count: removed.count,
            })
            .collect(),
        prompt: found
            .prompt
            .as_ref()
            .filter(|_| with_prompt)
            .map(|prompt| PromptJson { system: prompt.system.clone(), user: prompt.user.clone() }),
        warnings: found.warnings(),
        diagnostics: found.modes.findings.iter().map(DiagnosticJson::from).collect(),
    }
}

fn actor_json(account: &Account) -> ActorJson {
    ActorJson { login: account.login.clone(), bot: account.is_bot() }
}

fn show(found: &Found, with_prompt: bool, ui: &mut Ui<'_>) -> std::io::Result<()> {
    for (name, text) in rows(found) {
        let label = ui.paint(ui::ACCENT, ui::pad(name, 10));
        let text = ui::wrap(&printable(&text), ui.columns.saturating_sub(10).max(40), "");
        let text = text.trim_end().replace('\n', &format!("\n{}", " ".repeat(10)));
        writeln!(ui.out, "{label}{text}")?;
    }
    if let Some(prompt) = found.prompt.as_ref().filter(|_| with_prompt) {
        for (name, text) in [("System prompt", &prompt.system), ("Prompt", &prompt.user)] {
            let head = ui.paint(ui::ACCENT, name);
            writeln!(ui.out, "\n{head}\n{}", ui::printable_lines(text).trim_end())?;
        }
    }
    for warning in found.warnings() {
        let line = format!("{} {}", ui.paint_err(ui::BAD, "warning:"), printable(&warning));
        ui.note(&line)?;
    }
    for diagnostic in &found.modes.findings {
        let text = render(diagnostic, None, ui.diagnostics_colour());
        ui.note(text.trim_end())?;
    }
    Ok(())
}

/// The rows of the output: label and text.
fn rows(found: &Found) -> Vec<(&'static str, String)> {
    let context = &found.context;
    let mut rows =
        vec![("Event", event(context)), ("Result", result(found)), ("Actor", actor(found))];
    if context.is_fork() == Some(true) {
        let text = "from another repository: nothing of it is run, and nothing is pushed";
        rows.push(("Fork", text.to_owned()));
    }
    if let EventName::Other(name) = &context.event {
        let known = EventName::KNOWN;
        let text = match nearest(name, known) {
            Some(near) => format!("`{name}` calls nobody; did you mean `{near}`?"),
            None => format!("`{name}` calls nobody; those that do are {}", known.join(", ")),
        };
        rows.push(("Name", text));
    }
    rows.extend(found.mode().into_iter().flat_map(|mode| of_mode(found, mode)));
    rows.extend(found.prompt.iter().flat_map(|prompt| &prompt.removed).map(|(from, removed)| {
        ("Removed", format!("{} {} from `{from}`", removed.count, removed.what.words()))
    }));
    let others = found.detection.considered.iter();
    let others = others.filter(|other| Some(&other.mode) != found.detection.mode.as_ref());
    rows.extend(others.map(|other| ("Not", format!("`{}`: {}", other.mode, other.why))));
    rows
}

/// Summarises the outcome in a sentence.
fn result(found: &Found) -> String {
    let Some(mode) = found.mode() else { return format!("nothing: {}", found.detection.reason) };
    if let Some(why) = base::left_alone(&found.context) {
        return format!("nothing: {why}");
    }
    let name = &mode.name;
    match found.admitted.as_ref().map(|made| &made.admission) {
        None => format!("the mode `{name}` answers, if whoever asked may ask"),
        Some(Admission::Write) => format!("the mode `{name}` answers"),
        Some(Admission::Read) => format!("the mode `{name}` answers, and changes nothing"),
        Some(Admission::Refused { .. }) => "nothing: whoever asked may not".to_owned(),
    }
}

fn event(context: &Context) -> String {
    let entity = context.entity.as_ref().map(|entity| {
        let kind = if entity.is_pull { "pull request" } else { "issue" };
        format!(" on {kind} {}", entity.number)
    });
    let (event, repository) = (context.event_and_action(), context.repository.full_name());
    format!("{event}{} of {repository}", entity.unwrap_or_default())
}

fn actor(found: &Found) -> String {
    let context = &found.context;
    let who = match &context.rerun_by {
        None => context.actor.login.clone(),
        Some(by) => format!("{}, run again by {}", context.actor.login, by.login),
    };
    match &found.admitted {
        None => format!(
            "{who}; GitHub would be asked what {} may do in this repository",
            found.asks.join(" and ")
        ),
        Some(made) => {
            let may = match &made.admission {
                Admission::Write => "may have work done",
                Admission::Read => "may ask questions and change nothing",
                Admission::Refused { .. } => "is refused",
            };
            format!("{who} {may}: {}", made.because.join("; "))
        }
    }
}

fn of_mode(found: &Found, mode: &Mode) -> Vec<(&'static str, String)> {
    let detection = &found.detection;
    let origin = match &mode.origin {
        ModeOrigin::Skill { skill, .. } => format!("skill `{skill}`"),
        ModeOrigin::Fallback => "part of the program".to_owned(),
    };
    let most = if found.admitted.is_some() { "" } else { " (with write access)" };
    let trigger = detection.trigger.as_ref().map_or("", |found| found.trigger.as_str());
    let mut rows = vec![
        (
            "Mode",
            format!(
                "`{}`, priority {}, {origin}; {} % sure",
                mode.name, mode.priority, detection.confidence
            ),
        ),
        ("Why", format!("`{trigger}`: {}", detection.reason)),
    ];
    if !found.tools.is_empty() {
        rows.push(("Tools", format!("{}{most}", found.tools.join(", "))));
        rows.push(("Reports", reports(mode, found.admitted.as_ref().map(|made| &made.admission))));
    }
    rows
}

fn reports(mode: &Mode, admission: Option<&Admission>) -> String {
    let comment = match mode.tracking.comment {
        TrackingComment::New => "a new comment",
        TrackingComment::Sticky => "one comment that is kept up to date",
        TrackingComment::None => "no comment",
    };
    let label = match &mode.tracking.status_label {
        Some(label) => format!(", label `{label}` while at work"),
        None => String::new(),
    };
    if admission == Some(&Admission::Read) {
        return format!("{comment}{label}; no branch and no pull request");
    }
    let branch = match mode.execution.requires_branch {
        RequiresBranch::Always => "a branch",
        RequiresBranch::WhenChanging => "a branch if something changes",
        RequiresBranch::Never => "no branch",
    };
    let pull = match mode.execution.opens_pull_request {
        OpensPullRequest::OnRequest => "a pull request if asked for",
        OpensPullRequest::PerTask => "a pull request for each task",
        OpensPullRequest::Never => "no pull request",
    };
    format!("{comment}{label}; {branch}; {pull}, as far as the configuration lets it")
}
