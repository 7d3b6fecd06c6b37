//! `rep doctor`: explains which skills an agent would see, which it would not, and why.

use camino::Utf8Path;
use repertoire::runs::is_interrupted;
use repertoire_journal::{Filter, Journal, RunId, RunStatus, Target};
use repertoire_model::ModelService;
use repertoire_skill::budget::{CLIENTS, ClientListing};
use repertoire_skill::catalog::{Catalog, CatalogEntry, RootReport};
use repertoire_skill::discover::RootState;
use repertoire_skill::profile::CollisionRule;
use repertoire_skill::trust::TrustLevel;
use repertoire_text::json::DiagnosticJson;
use repertoire_text::{Diagnostic, Severity, terminal};

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::runs::journal_failure;
use crate::commands::{SWITCHED_OFF, is_switched_off};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{
    DoctorJson, JournalJson, ListSummary, ListingBudgetJson, RootJson, RunEnvironmentJson,
};
use crate::ui::{self, TerminalUi};

mod problems;

use problems::DoctorProblem;

/// Arguments of `rep doctor`
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Show missing roots too, and every finding
    #[arg(long, short)]
    verbose: bool,
}

/// Reports on a configuration. `settings` lists the mistakes in it.
pub(crate) fn run(
    ctx: &CliContext<'_>,
    settings: &[CliFailure],
    args: &DoctorArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let catalog = ctx.load_catalog()?;
    let (running, journal) = (Some(run_environment(ctx)), journal_report(ctx));
    let found = problems::find_problems(ctx, settings, catalog)?;
    let problems = found.iter().map(|problem| problem.text.clone()).collect();
    let report = DoctorJson { running, journal, problems, ..examine_catalog(catalog) };
    let sick = catalog.diagnostics().iter().any(|found| found.severity == Severity::Error)
        || found.iter().any(|problem| problem.is_error)
        || has_broken_journal(&report)
        || has_damaged_runs(&report);
    if ui.json {
        ui.print_json(&report)?;
    } else {
        print_report(catalog, &report, &found, args, ui)?;
    }
    Ok(if sick { CliExit::No } else { CliExit::Done })
}

/// Returns true if a journal exists but cannot be used.
fn has_broken_journal(report: &DoctorJson) -> bool {
    report.journal.as_ref().is_some_and(|journal| journal.problem.is_some())
}

fn has_damaged_runs(report: &DoctorJson) -> bool {
    report.journal.as_ref().is_some_and(|journal| !journal.damaged.is_empty())
}

fn examine_catalog(catalog: &Catalog) -> DoctorJson {
    let entries = catalog.entries();
    let ids = |wanted: &dyn Fn(&&CatalogEntry) -> bool| -> Vec<String> {
        entries.iter().filter(wanted).map(|entry| entry.id.clone()).collect()
    };
    DoctorJson {
        profile: catalog.profile().id.as_str().to_owned(),
        roots: catalog.roots().iter().map(RootJson::from_report).collect(),
        summary: ListSummary::from_catalog(catalog),
        untrusted: ids(&|entry| entry.trust != TrustLevel::Trusted),
        hidden: ids(&|entry| entry.skill.claude.disable_model_invocation),
        budgets: CLIENTS
            .iter()
            .map(|client| ClientListing::for_client(client, entries).to_budget_json(client))
            .collect(),
        running: None,
        journal: None,
        problems: Vec::new(),
        diagnostics: catalog.diagnostics().iter().map(DiagnosticJson::from).collect(),
    }
}

/// Describes the environment of `rep run`. For API keys, it reports only whether they are set.
fn run_environment(ctx: &CliContext<'_>) -> RunEnvironmentJson {
    let sandbox = ctx.sandbox_as_found();
    let endpoints = ctx.env.model_endpoints();
    let has = |service: &ModelService| {
        let variables = service.variables();
        // A service without a key always has an address; it counts if the user has set one.
        let is_chosen = variables.needs_key || ctx.env.var(variables.base_url).is_some();
        is_chosen && endpoints.get(*service).is_some()
    };
    RunEnvironmentJson {
        sandbox: sandbox.describe(),
        sandbox_is_enforced: sandbox.is_enforced(),
        sandbox_guarantees: sandbox.guarantees().iter().map(ToString::to_string).collect(),
        sandbox_lacks: sandbox.degradations().into_iter().chain(output_elsewhere(ctx)).collect(),
        model: ctx.config.values().model.to_string(),
        services: ModelService::ALL
            .iter()
            .filter(|one| has(one))
            .map(|one| one.to_string())
            .collect(),
        agent_clis: ctx.agent_clis().into_iter().map(str::to_owned).collect(),
    }
}

/// Returns a message if the output and private folders of commands are not beneath the cache
/// folder.
fn output_elsewhere(ctx: &CliContext<'_>) -> Option<String> {
    let (cache, used) = (ctx.env.cache_dir(), ctx.env.output_dir());
    let is_lasting = used.starts_with(&cache);
    if !is_lasting {
        return Some(format!(
            "`{cache}` cannot be written to: output and the private folders of commands are in `{used}`. Set \
             XDG_CACHE_HOME to a folder that you may write to."
        ));
    }
    (!used.is_dir()).then(|| {
        format!(
            "Commands cannot be run: neither `{cache}` nor the temporary folder can be written to. Set \
             XDG_CACHE_HOME to a folder that you may write to."
        )
    })
}

/// Reports where runs are recorded and how many wait or run. `None` if no journal exists yet.
fn journal_report(ctx: &CliContext<'_>) -> Option<JournalJson> {
    let target = ctx.journal_target(None);
    let place = match &target {
        Target::File(path) if !path.exists() => return None,
        Target::File(path) => Some(ctx.config.places().shorten_path(path)),
        // Don't show the address, since it may hold a password.
        Target::Url(_) => None,
    };
    let store = target.store_name();
    let looked = build_runtime().and_then(|runtime| {
        runtime.block_on(async {
            let journal = ctx.journal(None).await?;
            journal.check_damage().await.map_err(journal_failure)?;
            let (waiting, running) = count_runs(&journal, &ctx.run_places().runs).await?;
            let damaged = journal.list_damaged_runs().await.map_err(journal_failure)?;
            Ok((waiting, running, damaged))
        })
    });
    let problem = looked.as_ref().err().map(|failure| failure.message.clone());
    let (waiting, running, damaged) = looked.unwrap_or_default();
    Some(JournalJson { store: store.to_owned(), place, problem, waiting, running, damaged })
}

/// Counts the runs that wait for a person, and those that are running: a worker has them, or the
/// process that began them is still there, or they are workflows that can go on. `runs` is the folder
/// of all runs.
async fn count_runs(journal: &Journal, runs: &Utf8Path) -> Result<(usize, usize), CliFailure> {
    let (mut waiting, mut running) = (0, 0);
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await.map_err(journal_failure)?;
        for run in &page.items {
            match run.status {
                RunStatus::Waiting => waiting += 1,
                RunStatus::Running if !is_interrupted(run, runs) => running += 1,
                _ => {}
            }
        }
        filter.before = page.next;
        if filter.before.is_none() {
            return Ok((waiting, running));
        }
    }
}

fn print_report(
    catalog: &Catalog,
    report: &DoctorJson,
    problems: &[DoctorProblem],
    args: &DoctorArgs,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let rule = match catalog.profile().collision {
        CollisionRule::FirstWins => "the first wins",
        CollisionRule::TrustedThenFirst => "the first that is trusted wins",
        CollisionRule::KeepAll => "all of one name are kept",
    };
    print_heading("Roots", &format!("profile {}: {rule}", report.profile), ui)?;
    print_roots(catalog, args, ui)?;
    print_heading("Skills", "", ui)?;
    let summary = &report.summary;
    let mut line = format!(
        "{} and {} in use",
        ui::format_count(summary.skills, "skill"),
        ui::format_count(summary.agents, "agent")
    );
    if summary.shadowed > 0 {
        line.push_str(&format!(", {} shadowed by others of the same name", summary.shadowed));
    }
    if summary.broken > 0 {
        line.push_str(&format!(", {} broken", summary.broken));
    }
    writeln!(ui.out, "  {line}")?;
    print_names(
        "not trusted",
        "no hooks, no commands, no wider tools; see `rep trust`",
        &report.untrusted,
        ui,
    )?;
    print_names("never offered to a model", "disable-model-invocation", &report.hidden, ui)?;
    writeln!(ui.out)?;
    print_heading(
        "Room in a prompt",
        "if all of them were offered, in a window of 200,000 tokens",
        ui,
    )?;
    for budget in &report.budgets {
        print_budget(budget, ui)?;
    }
    if let Some(running) = &report.running {
        print_running(running, ui)?;
    }
    if let Some(journal) = &report.journal {
        print_journal(journal, ui)?;
    }
    let lacks = report
        .running
        .as_ref()
        .is_some_and(|running| running.services.is_empty() && running.agent_clis.is_empty());
    let open = ui.paint(ui::WARN, "!");
    let bad = ui.paint(ui::BAD, "✗");
    let mut obstacles = Vec::new();
    if lacks {
        obstacles.push(format!(
            "{open} running agents needs a key, a server of your own, or an agent of others on PATH"
        ));
    }
    if has_broken_journal(report) {
        obstacles.push(format!("{bad} runs need a journal that can be used: see above"));
    }
    if has_damaged_runs(report) {
        obstacles.push(format!("{bad} damaged runs cannot go on: see above"));
    }
    print_problems(problems, ui)?;
    if problems.is_empty() {
        return print_findings(catalog, args, &obstacles, ui);
    }
    if is_switched_off(catalog) || !shown_findings(catalog, args).is_empty() {
        return print_findings(catalog, args, &[], ui);
    }
    obstacles.iter().try_for_each(|line| writeln!(ui.out, "{line}"))
}

fn print_problems(problems: &[DoctorProblem], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(ui.out)?;
    print_heading("Problems", "", ui)?;
    for problem in problems {
        let mark =
            if problem.is_error { ui.paint(ui::BAD, "✗") } else { ui.paint(ui::WARN, "!") };
        let room = ui.columns.saturating_sub(4).max(20);
        let text = ui::wrap_words(&terminal::printable_line(&problem.text), room, "    ");
        writeln!(ui.out, "  {mark} {text}")?;
    }
    Ok(())
}

fn print_running(running: &RunEnvironmentJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    writeln!(ui.out)?;
    print_heading("Running agents", &format!("`rep run`, with {}", running.model), ui)?;
    let sound = running.sandbox_is_enforced && running.sandbox_lacks.is_empty();
    writeln!(ui.out, "  {} {}", check_mark(sound, ui), terminal::printable_line(&running.sandbox))?;
    if !running.sandbox_guarantees.is_empty() {
        let holds = format!("holds: {}", running.sandbox_guarantees.join(", "));
        let holds = ui::wrap_words(&holds, ui.columns.saturating_sub(4).max(20), "    ");
        writeln!(ui.out, "    {}", ui.paint(ui::FAINT, holds))?;
    }
    for lack in running.sandbox_lacks.iter().filter(|_| running.sandbox_is_enforced) {
        let lack = ui::wrap_words(lack, ui.columns.saturating_sub(4).max(20), "    ");
        writeln!(ui.out, "    {}", ui.paint(ui::FAINT, lack))?;
    }
    let services = ui::join_or(&running.services, &no_service());
    let services =
        ui::wrap_words(&format!("services: {services}"), ui.columns.saturating_sub(4), "    ");
    writeln!(ui.out, "  {} {services}", check_mark(!running.services.is_empty(), ui))?;
    let clis = ui::join_or(&running.agent_clis, "none on PATH");
    writeln!(ui.out, "  · agents of others: {clis}")
}

/// Returns a sentence for the case that no service is set up, with the variables that do it.
fn no_service() -> String {
    let mut variables: Vec<String> = Vec::new();
    for service in ModelService::ALL {
        let of_service = service.variables();
        variables.push(if of_service.needs_key {
            of_service.key.to_owned()
        } else {
            format!("or {} for a server of your own", of_service.base_url)
        });
    }
    format!("none is set up: {}", variables.join(", "))
}

fn check_mark(good: bool, ui: &TerminalUi<'_>) -> String {
    if good { ui.paint(ui::GOOD, "✓") } else { ui.paint(ui::WARN, "!") }
}

fn print_journal(journal: &JournalJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let place = journal.place.as_deref().unwrap_or("the one of `database_url`");
    let place = format!("{} ({})", place, journal.store);
    let mark = match (&journal.problem, journal.waiting) {
        (Some(_), _) => ui.paint(ui::BAD, "✗"),
        (None, 0) => ui.paint(ui::GOOD, "✓"),
        (None, _) => ui.paint(ui::WARN, "!"),
    };
    let text = match (&journal.problem, journal.waiting) {
        (Some(problem), _) => format!("journal: {place}: {problem}"),
        (None, 0) => {
            let running = ui::format_count(journal.running, "run");
            format!("journal: {place}; {running} running, see `rep runs --status running`")
        }
        (None, 1) => {
            format!("journal: {place}; 1 run waits for a person, see `rep runs --status waiting`")
        }
        (None, waiting) => format!(
            "journal: {place}; {waiting} runs wait for a person, see `rep runs --status waiting`"
        ),
    };
    writeln!(
        ui.out,
        "  {mark} {}",
        ui::wrap_words(&text, ui.columns.saturating_sub(4).max(20), "    ")
    )?;
    for row in &journal.damaged {
        let text = format!(
            "run {0} is damaged: {1}; `rep runs replay --verify {0}` says more, `rep runs rm --force {0}` removes it",
            RunId::known(&row.id).short(),
            row.what
        );
        let text = ui::wrap_words(&text, ui.columns.saturating_sub(4).max(20), "    ");
        writeln!(ui.out, "  {} {text}", ui.paint(ui::BAD, "✗"))?;
    }
    Ok(())
}

fn print_heading(title: &str, note: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let note =
        if note.is_empty() { String::new() } else { ui.paint(ui::FAINT, format!(" ({note})")) };
    writeln!(ui.out, "{}{note}", ui.paint(ui::STRONG, title))
}

fn print_roots(
    catalog: &Catalog,
    args: &DoctorArgs,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let mut missing = 0;
    for report in catalog.roots() {
        let dir = catalog.places().shorten_path(&report.root.dir);
        let (mark, word) = match report.state {
            RootState::Searched => (ui.paint(ui::GOOD, "✓"), describe_found(catalog, report)),
            RootState::Missing => ("·".to_owned(), "not there".to_owned()),
            RootState::Duplicate => ("·".to_owned(), "another name for a root above".to_owned()),
            RootState::Refused => (ui.paint(ui::BAD, "✗"), "refused".to_owned()),
            RootState::InPlace => {
                let word = format!("{}, from memory", ui::format_count(report.found, "file"));
                (ui.paint(ui::WARN, "!"), word)
            }
        };
        if report.state == RootState::Missing && !args.verbose && !report.root.named {
            missing += 1;
            continue;
        }
        writeln!(ui.out, "  {mark} {dir}  {}", ui.paint(ui::FAINT, word))?;
    }
    if missing > 0 {
        let line =
            format!("  · {} not there, see --verbose", ui::format_count(missing, "more root"));
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    writeln!(ui.out)
}

/// Returns the number of files in a root that can be skills, and how many of them are.
fn describe_found(catalog: &Catalog, report: &RootReport) -> String {
    let lost = catalog.shadowed().iter().map(|lost| &lost.entry);
    let entries = catalog.entries().iter().chain(lost);
    let skills = entries.filter(|entry| entry.skill.origin.root == report.root.dir).count();
    let files = ui::format_count(report.found, "file");
    if skills == report.found {
        return files;
    }
    format!("{files}, {skills} of them skills or agents")
}

fn print_names(
    title: &str,
    note: &str,
    names: &[String],
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    const SHOWN_MAX: usize = 8;
    let mut list = names.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN_MAX {
        list.push_str(&format!(" and {} more", names.len() - SHOWN_MAX));
    }
    let note = ui.paint(ui::FAINT, format!("({note})"));
    let line = ui::wrap_words(
        &format!("{} {title}: {list}", names.len()),
        ui.columns.saturating_sub(4).max(20),
        "    ",
    );
    writeln!(ui.out, "  {line}\n    {note}")
}

fn print_budget(budget: &ListingBudgetJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let ListingBudgetJson { client, chars_max, chars_needed, fit, cut } = budget;
    let good = ui.paint(ui::GOOD, "✓");
    let line = match (*fit, *cut) {
        (0, 0) => format!("{good} nothing to offer"),
        (1, 0) => format!("{good} the one description fits"),
        (fit, 0) => format!("{good} all {fit} descriptions fit"),
        (fit, cut) => {
            let bad = ui.paint(ui::WARN, "!");
            format!("{bad} {} whole, {cut} cut or dropped", ui::format_count(fit, "description"))
        }
    };
    let used = ui.paint(ui::FAINT, format!("({chars_needed} of {chars_max} characters)"));
    writeln!(ui.out, "  {}  {line} {used}", ui::pad_columns(client, 12))
}

fn shown_findings<'a>(catalog: &'a Catalog, args: &DoctorArgs) -> Vec<&'a Diagnostic> {
    let least = if args.verbose { Severity::Info } else { Severity::Warning };
    catalog.diagnostics().iter().filter(|found| found.severity <= least).collect()
}

fn print_findings(
    catalog: &Catalog,
    args: &DoctorArgs,
    obstacles: &[String],
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let shown = shown_findings(catalog, args);
    writeln!(ui.out)?;
    if is_switched_off(catalog) {
        return writeln!(ui.out, "{SWITCHED_OFF}");
    }
    if shown.is_empty() && !obstacles.is_empty() {
        let good = ui.paint(ui::GOOD, "ok:");
        writeln!(ui.out, "{good} nothing stands in the way of the skills")?;
        return obstacles.iter().try_for_each(|line| writeln!(ui.out, "{line}"));
    }
    if shown.is_empty() {
        return writeln!(ui.out, "{} nothing stands in the way", ui.paint(ui::GOOD, "ok:"));
    }
    print_heading("Findings", "`rep lint` shows the lines", ui)?;
    for found in shown {
        let style = if found.severity == Severity::Error { ui::BAD } else { ui::WARN };
        let code = ui.paint(style, found.code.id);
        let path =
            found.path.as_ref().map_or(String::new(), |path| catalog.places().shorten_path(path));
        let message = terminal::printable_line(&found.message);
        let room = ui.columns.saturating_sub(8).max(20);
        let text = ui::wrap_words(&format!("{path}: {message}"), room, "        ");
        writeln!(ui.out, "  {code} {text}")?;
        if let Some(help) = &found.help {
            let help = ui::wrap_words(help, room, "        ");
            writeln!(ui.out, "        {}", ui.paint(ui::FAINT, help))?;
        }
    }
    Ok(())
}
