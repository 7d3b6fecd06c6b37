//! `rep runs events`: prints the events of one run or of all runs, one per line.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use repertoire_journal::{DamagedRow, Event, EventCursor, Journal, Payload, Run, RunId};

use super::{NO_RUNS, RunArg, describe_left_out, journal_failure, now_ms};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::{LocalClock, describe_event, event_style};
use crate::ui::{self, TerminalUi};

/// Number of events shown by default if no run is given.
const SHOWN: usize = 100;
const SHOWN_BEFORE_FOLLOWING: usize = 10;
/// Polling interval of the journal, for changes that it sends no notification of.
const LOOK: Duration = Duration::from_secs(2);
/// Maximum time to wait for the report (post-mortem) of a run that is over.
const REPORT_WAIT: Duration = Duration::from_secs(3);

/// Arguments of `rep runs events`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsEventsArgs {
    /// Only events of this run, given by its id, the start or end of the id, its name, or `last`
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Keep printing events as they arrive, until the run is over
    #[arg(short, long)]
    follow: bool,
    /// Only events after this one: an event number of the run, or, without RUN, a cursor such as
    /// 12-345
    #[arg(long, value_name = "SEQ")]
    after: Option<String>,
    /// Only events of this type, such as step_finished (may be repeated, or a comma-separated list)
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', ignore_case = true, hide_possible_values = true, value_parser = PossibleValuesParser::new(TYPES))]
    types: Vec<String>,
    /// Print at most this many events: the last ones, or with --after the first ones (default: all
    /// events of a run; the last 100 of all runs, or 10 with --follow)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print the age of events instead of the time
    #[arg(long)]
    relative: bool,
}

/// The types of events, in the order of a run's life. A test keeps the list equal to the schema.
const TYPES: [&str; 40] = [
    "RUN_CREATED",
    "LEASE_TAKEN",
    "LEASE_RELEASED",
    "LEASE_EXPIRED",
    "RUN_STARTED",
    "STEP_STARTED",
    "STEP_FINISHED",
    "STEP_INTERRUPTED",
    "WATCHDOG_SIGNAL",
    "WATCHDOG_REWRITE",
    "RUN_COMPLETED",
    "RUN_FAILED",
    "RUN_WAITING",
    "RUN_DEFERRED",
    "PAUSE_REQUESTED",
    "RUN_PAUSED",
    "RUN_RESUMED",
    "RUN_RETRIED",
    "CANCEL_REQUESTED",
    "RUN_CANCELLED",
    "STEERED",
    "WORKTREE_PROVIDER_SELECTED",
    "WORKTREE_CREATED",
    "WORKTREE_REMOVED",
    "DELIVERED",
    "POSTMORTEM_START",
    "POSTMORTEM_END",
    "SKILLS_DISCOVERED",
    "SKILLS_SELECTED",
    "SKILLS_LOAD_FAILED",
    "SKILLS_TRUNCATED",
    "PLAN_READ",
    "PLAN_FALLBACK",
    "PLAN_RESTORED",
    "TASK_MARKED",
    "LEARNED",
    "FAILURE_SEEN",
    "FIX_TRIED",
    "KIND_EVENT",
    "NOTE",
];

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsEventsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let runtime = build_runtime()?;
    runtime.block_on(async {
        let told = async {
            match &args.run {
                Some(run) => {
                    let journal = ctx.require_journal().await?;
                    let run = RunArg { run: run.clone() }.find_run(&journal).await?;
                    print_events_of_run(ctx, args, &journal, &run, ui).await
                }
                None => print_all_events(ctx, args, ui).await,
            }
        };
        tokio::select! {
            told = told => told,
            _ = tokio::signal::ctrl_c() => Ok(CliExit::Interrupted),
        }
    })
}

/// The format of the printed lines.
struct EventLinePrinter<'a> {
    args: &'a RunsEventsArgs,
    with_run: bool,
    /// True if lines are truncated to the width of the screen.
    is_cut: bool,
}

impl<'a> EventLinePrinter<'a> {
    fn new(ctx: &CliContext<'_>, args: &'a RunsEventsArgs, with_run: bool) -> Self {
        let is_cut = ctx.env.is_terminal || ctx.env.var("COLUMNS").is_some();
        EventLinePrinter { args, with_run, is_cut }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        let name = event.payload.name();
        let types = &self.args.types;
        types.is_empty() || types.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    }

    fn print_event(&self, event: &Event, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if ui.json {
            return ui.print_json_line(event);
        }
        let clock = LocalClock::local(now_ms());
        let when = if self.args.relative {
            format!("{:>4}", clock.format_age(event.at_ms))
        } else {
            clock.format_brief(event.at_ms)
        };
        let place = if self.with_run {
            ui::pad_columns(&ui::fit_columns(event.run.short(), 8), 8)
        } else {
            format!("{:>4}", event.seq)
        };
        let name = ui::pad_columns(event.payload.name(), 18);
        let used = ui::text_width(&when) + ui::text_width(&place) + ui::text_width(&name) + 6;
        let words = describe_event(&event.payload);
        let words = if self.is_cut {
            ui::fit_columns(&words, ui.columns.saturating_sub(used).max(12))
        } else {
            words
        };
        let style = event_style(&event.payload);
        let (name, words) = if words.is_empty() {
            (ui.paint(style, event.payload.name()), String::new())
        } else {
            (ui.paint(style, name), format!("  {words}"))
        };
        let before = ui.paint(ui::FAINT, format!("{when}  {place}"));
        writeln!(ui.out, "{before}  {name}{words}")
    }
}

async fn print_events_of_run(
    ctx: &CliContext<'_>,
    args: &RunsEventsArgs,
    journal: &Journal,
    run: &Run,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let lines = EventLinePrinter::new(ctx, args, false);
    let after = match args.after.as_deref().map(str::parse::<u64>) {
        None => 0,
        Some(Ok(after)) => after,
        Some(Err(_)) => {
            return Err(CliFailure::wrong_usage("`--after` is the number of an event of the run")
                .hint("A place such as 12-345 goes with the events of all runs, without RUN."));
        }
    };
    let most = args.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut seen = EventReadPosition { at: after, report_is_open: false };
    let mut kept = RecentEventBuffer::new(most, args.after.is_some());
    while let Some(events) = read_page(journal, &run.id, &mut seen).await? {
        let wanted = events.into_iter().filter(|event| lines.is_wanted(event));
        if kept.push_events(wanted) {
            break;
        }
    }
    for event in kept.into_events() {
        lines.print_event(&event, ui)?;
    }
    ui.out.flush()?;
    if args.follow {
        follow_run(journal, &run.id, &lines, seen, ui).await
    } else {
        Ok(CliExit::Done)
    }
}

/// The position up to which the events of a run were read.
struct EventReadPosition {
    at: u64,
    /// True while a report (post-mortem) is being written.
    report_is_open: bool,
}

async fn read_page(
    journal: &Journal,
    run: &RunId,
    seen: &mut EventReadPosition,
) -> Result<Option<Vec<Event>>, CliFailure> {
    let events = journal.events(run, seen.at, 0).await.map_err(journal_failure)?;
    for event in &events {
        seen.at = event.seq;
        match event.payload {
            Payload::PostmortemStart { .. } => seen.report_is_open = true,
            Payload::PostmortemEnd { .. } => seen.report_is_open = false,
            _ => {}
        }
    }
    Ok(Some(events).filter(|events| !events.is_empty()))
}

async fn follow_run(
    journal: &Journal,
    run: &RunId,
    lines: &EventLinePrinter<'_>,
    mut seen: EventReadPosition,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut changes = journal.subscribe_changes();
    let mut waited = Duration::ZERO;
    loop {
        // Read the status before the events: events recorded after this point are printed in the
        // next round, so none is missed at the end.
        let now = journal.run(run).await.map_err(journal_failure)?;
        while let Some(events) = read_page(journal, run, &mut seen).await? {
            for event in events.iter().filter(|event| lines.is_wanted(event)) {
                lines.print_event(event, ui)?;
            }
            ui.out.flush()?;
        }
        let is_over = now.as_ref().is_none_or(|run| run.status.is_over() && run.seq <= seen.at);
        if is_over && (!seen.report_is_open || waited >= REPORT_WAIT) {
            return Ok(CliExit::Done);
        }
        let pause = if is_over { REPORT_WAIT / 10 } else { LOOK };
        changes.next(pause).await;
        waited += if is_over { pause } else { Duration::ZERO };
    }
}

async fn print_all_events(
    ctx: &CliContext<'_>,
    args: &RunsEventsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let lines = EventLinePrinter::new(ctx, args, true);
    let after = args.after.as_deref().map(str::parse::<EventCursor>).transpose();
    let after = after.map_err(|error| {
        CliFailure::wrong_usage(error.to_string())
            .hint("A number of an event goes with a run: rep runs events RUN --after 12.")
    })?;
    let journal = match (ctx.open_existing_journal().await?, args.follow) {
        (Some(journal), _) => journal,
        (None, true) => ctx.journal(None).await?,
        (None, false) => {
            if !ui.json {
                writeln!(ui.out, "{NO_RUNS}")?;
            }
            return Ok(CliExit::Done);
        }
    };
    let usual = match (args.follow, after.is_some()) {
        (_, true) => usize::MAX,
        (true, false) => SHOWN_BEFORE_FOLLOWING,
        (false, false) => SHOWN,
    };
    let most = args.limit.map_or(usual, |limit| limit as usize);
    let mut kept = RecentEventBuffer::new(most, after.is_some());
    let mut at = after.unwrap_or_default();
    let mut damaged = DamagedRunReport::default();
    loop {
        let size = u32::try_from(kept.remaining()).unwrap_or(u32::MAX).min(1_000);
        let page = journal.list_all_events(at, size).await.map_err(journal_failure)?;
        if page.is_end() {
            break;
        }
        at = page.next;
        damaged.add(page.damaged);
        let events = page.events.into_iter().map(|(_, event)| event);
        if kept.push_events(events.filter(|event| lines.is_wanted(event))) {
            break;
        }
    }
    let is_part = kept.is_partial();
    for event in kept.into_events() {
        lines.print_event(&event, ui)?;
    }
    ui.out.flush()?;
    damaged.print_new(ui)?;
    if args.follow {
        return follow_all(&journal, &lines, at, damaged, ui).await;
    }
    match (after.is_some(), is_part) {
        (true, true) => ui.print_note(&format!("there may be more: `--after {at}` goes on"))?,
        (false, true) => ui.print_note("there are earlier ones: `--limit N` shows more")?,
        _ => {}
    }
    // The output lacks events.
    Ok(if damaged.is_empty() { CliExit::Done } else { CliExit::No })
}

async fn follow_all(
    journal: &Journal,
    lines: &EventLinePrinter<'_>,
    mut at: EventCursor,
    mut damaged: DamagedRunReport,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut changes = journal.subscribe_changes();
    loop {
        loop {
            let page = journal.list_all_events(at, 0).await.map_err(journal_failure)?;
            if page.is_end() {
                break;
            }
            at = page.next;
            for (_, event) in page.events.iter().filter(|(_, event)| lines.is_wanted(event)) {
                lines.print_event(event, ui)?;
            }
            ui.out.flush()?;
            damaged.add(page.damaged);
            damaged.print_new(ui)?;
        }
        changes.next(LOOK).await;
    }
}

/// The damaged runs among those that events are printed of. Each is reported once.
#[derive(Default)]
struct DamagedRunReport {
    known: BTreeSet<String>,
    /// Runs that were not reported yet.
    new: Vec<DamagedRow>,
}

impl DamagedRunReport {
    fn add(&mut self, rows: Vec<DamagedRow>) {
        let new = rows.into_iter().filter(|row| self.known.insert(row.id.clone()));
        self.new.extend(new);
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn print_new(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        self.new.drain(..).try_for_each(|row| ui.print_warning(&describe_left_out(&row)))
    }
}

/// A bounded buffer of the first or the last events.
struct RecentEventBuffer {
    events: VecDeque<Event>,
    most: usize,
    is_first: bool,
    dropped: bool,
}

impl RecentEventBuffer {
    fn new(most: usize, is_first: bool) -> Self {
        RecentEventBuffer { events: VecDeque::new(), most, is_first, dropped: false }
    }

    /// The number of further events that can be used.
    fn remaining(&self) -> usize {
        if self.is_first { self.most - self.events.len() } else { usize::MAX }
    }

    /// Adds events. Returns true if no further events are needed.
    fn push_events(&mut self, events: impl Iterator<Item = Event>) -> bool {
        for event in events {
            if self.events.len() < self.most {
                self.events.push_back(event);
                continue;
            }
            self.dropped = true;
            if self.is_first {
                break;
            }
            self.events.pop_front();
            self.events.push_back(event);
        }
        self.is_first && self.events.len() >= self.most
    }

    fn is_partial(&self) -> bool {
        self.dropped || self.is_first && self.events.len() >= self.most
    }

    fn into_events(self) -> VecDeque<Event> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_schema_can_be_asked_for() {
        let schema = serde_json::to_value(schemars::schema_for!(Payload)).unwrap();
        let variants = schema["oneOf"].as_array().unwrap();
        let tag = |variant: &serde_json::Value| {
            variant["properties"]["type"]["const"].as_str().unwrap().to_owned()
        };
        let mut tags: Vec<String> = variants.iter().map(tag).collect();
        tags.sort();
        let mut types: Vec<&str> = TYPES.to_vec();
        types.sort_unstable();
        assert_eq!(tags, types);
    }
}
