//! `rep github detect`: shows which mode would respond to an event, and why. It does nothing and
//! makes no requests.

use repertoire::github_setup::CheckoutTrust;
use repertoire_github::actor::{
    AccountPermission, AdmissionDecision, KnownPermissions, PermissionLookup, RunAdmission,
    accounts_to_look_up, decide_admission,
};
use repertoire_github::base;
use repertoire_github::event::{EventName, GitHubAccount, GitHubEventContext};
use repertoire_github::grant::decide_grant;
use repertoire_github::mode::{
    GitHubMode, ModeDetection, ModeOrigin, ModeSet, OpensPullRequest, RequiresBranch,
    TrackingComment, detect_mode,
};
use repertoire_github::template::{ModePrompt, PromptFacts, render_prompt};
use repertoire_github::trigger::{TriggerMatch, match_triggers};
use repertoire_skill::name::nearest_name;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::terminal::{printable_line, render_diagnostic};

use super::EventArgs;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::github::{
    DetectPromptJson, GithubActorJson, GithubDetectJson, GithubEntityJson, GithubModeJson,
    RemovedTextJson,
};
use crate::ui::{self, TerminalUi};

/// The nonce in the fences of a previewed prompt. A real run uses a random one, which text in the
/// event cannot guess.
const PREVIEW: &str = "preview";

/// Arguments of `rep github detect`
#[derive(Debug, clap::Args)]
pub(crate) struct GithubDetectArgs {
    #[command(flatten)]
    event: EventArgs,
    /// Use this mode instead of the one that the event selects
    #[arg(long, value_name = "NAME")]
    mode: Option<String>,
    /// The prompt that the run would be given
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Assume that the actor has this permission: admin, maintain, write, triage, read or none
    #[arg(long, value_name = "PERMISSION", value_parser = parse_permission)]
    permission: Option<AccountPermission>,
    /// Trust the skills of this folder, as a run does with its checkout of the base branch
    #[arg(long)]
    trust_checkout: bool,
    /// Show the prompt that the agent would get
    #[arg(long)]
    show_prompt: bool,
}

fn parse_permission(name: &str) -> Result<AccountPermission, String> {
    let known = "use admin, maintain, write, triage, read or none";
    AccountPermission::parse(name).ok_or_else(|| known.to_owned())
}

/// The result of the detection, before it is printed.
struct GithubDetectReport {
    context: GitHubEventContext,
    modes: ModeSet,
    triggers: Vec<TriggerMatch>,
    detection: ModeDetection,
    asks: Vec<String>,
    admitted: Option<AdmissionDecision>,
    tools: Vec<String>,
    prompt: Option<ModePrompt>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &GithubDetectArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let found = detect_event(ctx, args)?;
    if ui.json {
        ui.print_json(&build_json(&found, args.show_prompt))?;
    } else {
        print_detection(&found, args.show_prompt, ui)?;
    }
    Ok(CliExit::Done)
}

fn detect_event(
    ctx: &CliContext<'_>,
    args: &GithubDetectArgs,
) -> Result<GithubDetectReport, CliFailure> {
    let (context, _) = args.event.read_event(ctx.env)?;
    let settings = ctx.config.trigger_settings(args.prompt.as_deref(), args.mode.as_deref());
    let checkout = if args.trust_checkout { CheckoutTrust::OfBase } else { CheckoutTrust::Any };
    let modes = ctx.load_modes(checkout)?;
    let triggers = match_triggers(&context, &settings);
    let detection = detect_mode(&modes.modes, &triggers, args.mode.as_deref());
    let rules = ctx.config.github_rules();
    let asks: Vec<String> = accounts_to_look_up(&context, &rules)
        .into_iter()
        .map(|account| account.login.clone())
        .collect();
    let answers = assumed_answers(&asks, args.permission);
    // If no permission has to be looked up, the admission is already certain.
    let known = args.permission.is_some() || asks.is_empty();
    let admitted = known.then(|| decide_admission(&context, &answers, &rules));
    let admission = admitted.as_ref().map_or(RunAdmission::Write, |made| made.admission.clone());
    let mode = detection.mode.as_deref().and_then(|name| modes.get(name));
    let network = &ctx.config.values().github_network_tools;
    let tools = mode.map(|mode| decide_grant(mode, &admission, network).tools).unwrap_or_default();
    let facts = PromptFacts {
        nonce: PREVIEW.to_owned(),
        trigger: detection.trigger.clone(),
        admission: admitted.as_ref().map(|made| made.admission.clone()),
        answers,
        base_branch: base_branch(ctx, &context),
        tools: tools.clone(),
        ..PromptFacts::default()
    };
    let prompt = mode.map(|mode| render_prompt(mode, &context, &settings, &facts));
    Ok(GithubDetectReport { context, modes, triggers, detection, asks, admitted, tools, prompt })
}

fn assumed_answers(asks: &[String], permission: Option<AccountPermission>) -> KnownPermissions {
    let Some(permission) = permission else { return KnownPermissions::default() };
    asks.iter().fold(KnownPermissions::default(), |answers, login| {
        answers.with(login, PermissionLookup::Is(permission))
    })
}

fn base_branch(ctx: &CliContext<'_>, context: &GitHubEventContext) -> Option<String> {
    let pull = context.entity.as_ref().and_then(|entity| entity.pull.as_ref());
    let configured = ctx.config.values().github_base_branch.clone().filter(|name| !name.is_empty());
    let of_pull = pull.map(|pull| pull.base_ref.clone());
    of_pull.or(configured).or_else(|| context.repository.default_branch.clone())
}

impl GithubDetectReport {
    fn selected_mode(&self) -> Option<&GitHubMode> {
        self.detection.mode.as_deref().and_then(|name| self.modes.get(name))
    }

    fn collect_warnings(&self) -> Vec<String> {
        let of_rules = self.admitted.iter().flat_map(|made| &made.warnings);
        self.modes.warnings.iter().chain(of_rules).cloned().collect()
    }
}

fn build_json(found: &GithubDetectReport, with_prompt: bool) -> GithubDetectJson {
    let context = &found.context;
    let removed = found.prompt.iter().flat_map(|prompt| &prompt.removed);
    GithubDetectJson {
        event: context.event_and_action(),
        repository: context.repository.full_name(),
        entity: context.entity.as_ref().map(|entity| GithubEntityJson {
            kind: if entity.is_pull { "pull_request" } else { "issue" },
            number: entity.number,
        }),
        actor: actor_json(&context.actor),
        rerun_by: context.rerun_by.as_ref().map(actor_json),
        asks: found.asks.clone(),
        admitted: found.admitted.clone(),
        triggers: found.triggers.clone(),
        detection: found.detection.clone(),
        mode: found.selected_mode().map(|mode| GithubModeJson {
            name: mode.name.clone(),
            origin: mode.origin.clone(),
            tools: found.tools.clone(),
            tracking: mode.tracking.clone(),
            execution: mode.execution.clone(),
        }),
        fork: context.is_fork(),
        removed: removed
            .map(|(from, removed)| RemovedTextJson {
                from: (*from).to_owned(),
                what: removed.what,
                count: removed.count,
            })
            .collect(),
        prompt: found.prompt.as_ref().filter(|_| with_prompt).map(|prompt| DetectPromptJson {
            system: prompt.system.clone(),
            user: prompt.user.clone(),
        }),
        warnings: found.collect_warnings(),
        diagnostics: found.modes.findings.iter().map(DiagnosticJson::from).collect(),
    }
}

fn actor_json(account: &GitHubAccount) -> GithubActorJson {
    GithubActorJson { login: account.login.clone(), bot: account.is_bot() }
}

fn print_detection(
    found: &GithubDetectReport,
    with_prompt: bool,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    for (name, text) in output_rows(found) {
        let label = ui.paint(ui::ACCENT, ui::pad_columns(name, 10));
        let text =
            ui::wrap_words(&printable_line(&text), ui.columns.saturating_sub(10).max(40), "");
        let text = text.trim_end().replace('\n', &format!("\n{}", " ".repeat(10)));
        writeln!(ui.out, "{label}{text}")?;
    }
    if let Some(prompt) = found.prompt.as_ref().filter(|_| with_prompt) {
        for (name, text) in [("System prompt", &prompt.system), ("Prompt", &prompt.user)] {
            let head = ui.paint(ui::ACCENT, name);
            writeln!(ui.out, "\n{head}\n{}", ui::printable_lines(text).trim_end())?;
        }
    }
    for warning in found.collect_warnings() {
        let line = format!("{} {}", ui.paint_err(ui::BAD, "warning:"), printable_line(&warning));
        ui.print_note(&line)?;
    }
    for diagnostic in &found.modes.findings {
        let text = render_diagnostic(diagnostic, None, ui.diagnostics_colour());
        ui.print_note(text.trim_end())?;
    }
    Ok(())
}

/// The rows of the output: label and text.
fn output_rows(found: &GithubDetectReport) -> Vec<(&'static str, String)> {
    let context = &found.context;
    let mut rows = vec![
        ("Event", describe_event(context)),
        ("Result", describe_result(found)),
        ("Actor", describe_actor(found)),
    ];
    if context.is_fork() == Some(true) {
        let text = "from another repository: nothing of it is run, and nothing is pushed";
        rows.push(("Fork", text.to_owned()));
    }
    if let EventName::Other(name) = &context.event {
        let known = EventName::KNOWN;
        let text = match nearest_name(name, known) {
            Some(near) => format!("`{name}` calls nobody; did you mean `{near}`?"),
            None => format!("`{name}` calls nobody; those that do are {}", known.join(", ")),
        };
        rows.push(("Name", text));
    }
    rows.extend(found.selected_mode().into_iter().flat_map(|mode| mode_rows(found, mode)));
    rows.extend(found.prompt.iter().flat_map(|prompt| &prompt.removed).map(|(from, removed)| {
        ("Removed", format!("{} {} from `{from}`", removed.count, removed.what.describe()))
    }));
    let others = found.detection.considered.iter();
    let others = others.filter(|other| Some(&other.mode) != found.detection.mode.as_ref());
    rows.extend(others.map(|other| ("Not", format!("`{}`: {}", other.mode, other.why))));
    rows
}

/// Summarises the outcome in a sentence.
fn describe_result(found: &GithubDetectReport) -> String {
    let Some(mode) = found.selected_mode() else {
        return format!("nothing: {}", found.detection.reason);
    };
    if let Some(why) = base::fork_skip_reason(&found.context) {
        return format!("nothing: {why}");
    }
    let name = &mode.name;
    match found.admitted.as_ref().map(|made| &made.admission) {
        None => format!("the mode `{name}` answers, if whoever asked may ask"),
        Some(RunAdmission::Write) => format!("the mode `{name}` answers"),
        Some(RunAdmission::Read) => format!("the mode `{name}` answers, and changes nothing"),
        Some(RunAdmission::Refused { .. }) => "nothing: whoever asked may not".to_owned(),
    }
}

fn describe_event(context: &GitHubEventContext) -> String {
    let entity = context.entity.as_ref().map(|entity| {
        let kind = if entity.is_pull { "pull request" } else { "issue" };
        format!(" on {kind} {}", entity.number)
    });
    let (event, repository) = (context.event_and_action(), context.repository.full_name());
    format!("{event}{} of {repository}", entity.unwrap_or_default())
}

fn describe_actor(found: &GithubDetectReport) -> String {
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
                RunAdmission::Write => "may have work done",
                RunAdmission::Read => "may ask questions and change nothing",
                RunAdmission::Refused { .. } => "is refused",
            };
            format!("{who} {may}: {}", made.because.join("; "))
        }
    }
}

fn mode_rows(found: &GithubDetectReport, mode: &GitHubMode) -> Vec<(&'static str, String)> {
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
        rows.push((
            "Reports",
            describe_reports(mode, found.admitted.as_ref().map(|made| &made.admission)),
        ));
    }
    rows
}

fn describe_reports(mode: &GitHubMode, admission: Option<&RunAdmission>) -> String {
    let comment = match mode.tracking.comment {
        TrackingComment::New => "a new comment",
        TrackingComment::Sticky => "one comment that is kept up to date",
        TrackingComment::None => "no comment",
    };
    let label = match &mode.tracking.status_label {
        Some(label) => format!(", label `{label}` while at work"),
        None => String::new(),
    };
    if admission == Some(&RunAdmission::Read) {
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
