//! `rep match`: picks the skills that a task needs, with reasons, or abstains.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Instant;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use repertoire_select::selection::{
    NearMiss, RejectionReason, Selection, SelectionPick, SelectionReason, UnresolvedHint,
};
use repertoire_select::selector::{SkillExplanation, SkillSelector};
use repertoire_select::settings::StepKind;
use repertoire_select::{SelectionSettings, SelectionStage, StageSet, Task};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::trust::TrustLevel;
use repertoire_text::fs;
use repertoire_text::terminal::printable_line;

use crate::cli::CliContext;
use crate::commands::{SWITCHED_OFF, is_switched_off, resolve_skill};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::{ExplanationJson, MatchJson};
use crate::ui::{self, TerminalUi};

const TASK_BYTES_MAX: u64 = 1024 * 1024;
const BAR: usize = 10;

/// Arguments of `rep match`
#[derive(Debug, clap::Args)]
pub(crate) struct MatchArgs {
    /// The task, in any words; `-` reads it from standard input
    #[arg(required_unless_present_any = ["skills", "event", "paths"], value_name = "TASK")]
    task: Vec<String>,
    /// Always pick these skills, as `@skill` in the task does (may be repeated, or a
    /// comma-separated list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    skills: Vec<String>,
    /// A path that the task touches (may be repeated)
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<Utf8PathBuf>,
    /// The event that started the task
    #[arg(long)]
    event: Option<String>,
    /// The agent that will do the work
    #[arg(long)]
    agent: Option<String>,
    /// A file with the conversation so far
    #[arg(long, value_name = "FILE")]
    conversation: Option<Utf8PathBuf>,
    /// Skills that were used before, once for each use (may be repeated, or a comma-separated list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    used: Vec<String>,
    /// The kind of step, which sets how many skills are picked
    #[arg(long, value_enum)]
    step: Option<StepArg>,
    /// Pick at most this many skills
    #[arg(long, value_name = "N", conflicts_with = "step")]
    max: Option<usize>,
    /// Pick only skills with at least this confidence, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    threshold: Option<f32>,
    /// Use only these stages: hints, events, paths, phrases, patterns, words, meaning, context,
    /// negatives, needs
    #[arg(long, value_name = "STAGES", value_delimiter = ',', value_parser = parse_stage, conflicts_with = "without")]
    only: Vec<SelectionStage>,
    /// Leave these stages out
    #[arg(long, value_name = "STAGES", value_delimiter = ',', value_parser = parse_stage)]
    without: Vec<SelectionStage>,
    /// Show the score of every stage for the picks and near misses
    #[arg(long)]
    explain: bool,
    /// Explain why this skill is picked or not
    #[arg(long, value_name = "NAME", conflicts_with = "explain")]
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum StepArg {
    Implementation,
    Review,
}

fn parse_share(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    let fits = (0.0..=1.0).contains(&number);
    fits.then_some(number).ok_or_else(|| "it is not between 0 and 1".to_owned())
}

/// Parses the name of a stage.
pub(crate) fn parse_stage(name: &str) -> Result<SelectionStage, String> {
    SelectionStage::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = SelectionStage::ALL.iter().map(|stage| stage.as_str()).collect();
        format!("there is no such stage; the stages are {}", names.join(", "))
    })
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &MatchArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let task = build_task(ctx, args)?;
    let catalog = ctx.load_catalog()?;
    let selector = ctx.build_selector(catalog, selection_settings(ctx, args))?;
    if let Some(name) = &args.why {
        let entry = resolve_skill(catalog, name)?;
        let why = selector.explain(&task, &entry.id).ok_or_else(|| {
            CliFailure::negative_answer(format!(
                "`{}` is an agent, and only skills are picked for a task",
                entry.id
            ))
        })?;
        return print_why(why, ui);
    }
    let start = Instant::now();
    let selection = selector.select(&task);
    let took_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    let explained =
        if args.explain { explain_selection(selector, &task, &selection) } else { Vec::new() };
    for lost in &selection.unresolved {
        ui.print_note(&format_unresolved(lost))?;
    }
    let is_untrusted = |name: &&String| {
        catalog.get(name.as_str()).is_some_and(|entry| entry.trust == TrustLevel::Untrusted)
    };
    let untrusted = selection.picks.iter().map(|pick| &pick.name).filter(is_untrusted).cloned();
    let answer = MatchJson {
        untrusted: untrusted.collect(),
        skills: catalog.entries().iter().filter(|entry| !entry.skill.is_agent()).count(),
        took_us,
        ..MatchJson::from_selection(&task, selection, selector.settings().threshold)
    };
    if ui.json {
        let explained = explained.into_iter().map(ExplanationJson::from).collect();
        ui.print_json(&MatchJson { explained, ..answer })?;
    } else {
        print_selection(&answer, &explained, catalog, ui)?;
    }
    Ok(CliExit::Done)
}

fn build_task(ctx: &CliContext<'_>, args: &MatchArgs) -> Result<Task, CliFailure> {
    let text = match args.task.as_slice() {
        [dash] if dash == "-" => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().take(TASK_BYTES_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|error| {
                CliFailure::cannot_run(format!(
                    "the task cannot be read from standard input: {error}"
                ))
            })?;
            if bytes.len() as u64 > TASK_BYTES_MAX {
                let message = format!(
                    "the task on standard input has more than {TASK_BYTES_MAX} bytes, the limit"
                );
                return Err(CliFailure::wrong_usage(message)
                    .hint("Give a shorter task, for instance its first lines: `head -c 1M FILE | rep match -`."));
            }
            // Invalid UTF-8 matches no skill, so replacing it is harmless.
            String::from_utf8_lossy(&bytes).into_owned()
        }
        words => words.join(" "),
    };
    if text.trim().is_empty()
        && args.skills.is_empty()
        && args.event.is_none()
        && args.paths.is_empty()
    {
        return Err(CliFailure::wrong_usage("the task is empty")
            .hint("Say what is to be done: rep match \"fill in this form\""));
    }
    let conversation = match &args.conversation {
        None => Vec::new(),
        Some(path) => vec![read_conversation(&ctx.typed_path(path))?],
    };
    Ok(Task {
        text,
        hints: args.skills.clone(),
        paths: args.paths.iter().map(|path| relative_to_project(ctx, path)).collect(),
        event: args.event.clone(),
        agent: args.agent.clone(),
        conversation,
        usage: count_names(&args.used),
    })
}

/// Counts how often each name occurs.
fn count_names(names: &[String]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    counts
}

fn read_conversation(path: &Utf8Path) -> Result<String, CliFailure> {
    fs::read_text(path, TASK_BYTES_MAX)
        .map_err(|error| CliFailure::wrong_usage(format!("{path} cannot be read: {error}")))
}

/// Makes a path relative to the project, since the globs of skills are. `..` is resolved lexically.
fn relative_to_project(ctx: &CliContext<'_>, path: &Utf8Path) -> Utf8PathBuf {
    let places = ctx.config.places();
    let mut full = Utf8PathBuf::new();
    for part in places.here.join(path).components() {
        match part {
            Utf8Component::ParentDir => {
                full.pop();
            }
            Utf8Component::CurDir => {}
            part => full.push(part),
        }
    }
    full.strip_prefix(places.project_dir()).map_or_else(|_| path.to_owned(), Utf8Path::to_owned)
}

fn selection_settings(ctx: &CliContext<'_>, args: &MatchArgs) -> SelectionSettings {
    let configured = ctx.config.selection_settings();
    let stages = match args.only.as_slice() {
        [] => args.without.iter().fold(StageSet::ALL, |stages, stage| stages.without(*stage)),
        only => StageSet::only(only.iter().copied()),
    };
    let of_step = |step: StepArg| {
        ctx.config.max_skills_for(match step {
            StepArg::Implementation => StepKind::Implementation,
            StepArg::Review => StepKind::Review,
        })
    };
    SelectionSettings {
        threshold: args.threshold.unwrap_or(configured.threshold),
        max_skills: args.max.or(args.step.map(of_step)).unwrap_or(configured.max_skills),
        stages,
        ..configured
    }
}

/// Explains the picks and the near misses stage by stage.
fn explain_selection(
    selector: &SkillSelector,
    task: &Task,
    selection: &Selection,
) -> Vec<SkillExplanation> {
    let picked = selection.picks.iter().map(|pick| &pick.name);
    let missed = selection.near_misses.iter().map(|miss| &miss.name);
    picked.chain(missed).filter_map(|name| selector.explain(task, name)).collect()
}

fn format_unresolved(lost: &UnresolvedHint) -> String {
    let name = printable_line(&lost.named);
    match &lost.nearest {
        Some(nearest) => format!("warning: there is no skill `{name}`; did you mean `{nearest}`?"),
        None => format!("warning: there is no skill `{name}`; `rep list` shows every skill"),
    }
}

fn print_selection(
    answer: &MatchJson,
    explained: &[SkillExplanation],
    catalog: &Catalog,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    if answer.skills == 0 {
        let why = if is_switched_off(catalog) { SWITCHED_OFF } else { "There are no skills yet." };
        return writeln!(ui.out, "{why}");
    }
    for pick in &answer.picks {
        print_pick(pick, answer.untrusted.contains(&pick.name), ui)?;
    }
    if answer.abstained {
        let line = match (&answer.nearest, &answer.lacked) {
            (Some(nearest), Some(RejectionReason::Score { threshold })) => format!(
                "No skill fits: the best, {nearest}, reaches {:.2}, and {threshold:.2} is asked.",
                answer.best
            ),
            (Some(nearest), Some(lack)) => {
                format!("Nothing is picked: {nearest} fits with {:.2}, but {lack}.", answer.best)
            }
            _ => "No skill fits: none has anything to do with this.".to_owned(),
        };
        writeln!(ui.out, "{}", ui::wrap_words(&line, ui.columns, ""))?;
    }
    if !answer.near_misses.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Near misses"))?;
        for miss in &answer.near_misses {
            print_near_miss(miss, ui)?;
        }
    }
    if !explained.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Stage by stage"))?;
        for why in explained {
            print_stages(why, ui)?;
        }
    }
    let skills = ui::format_count(answer.skills, "skill");
    let picked = match answer.picks.len() {
        0 => format!("None of {skills} picked"),
        number => format!("{number} of {skills} picked"),
    };
    let took = format!("{picked} in {:.2} ms.", answer.took_us as f64 / 1000.0);
    writeln!(ui.out, "\n{}", ui.paint(ui::FAINT, took))
}

/// Draws a value from 0 to 1 as a bar.
fn draw_bar(share: f32) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f32).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

const INDENT: &str = "                  ";

fn print_pick(
    pick: &SelectionPick,
    is_untrusted: bool,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let score = format!("{}  {:.2}", ui.paint(ui::GOOD, draw_bar(pick.score)), pick.score);
    let name = ui.paint(ui::STRONG, printable_line(&pick.name));
    let how = ui.paint(ui::FAINT, format!("({})", pick.strategy));
    let note = if is_untrusted { ui.paint(ui::WARN, " untrusted") } else { String::new() };
    writeln!(ui.out, "{score}  {name} {how}{note}")?;
    print_reasons(&pick.reasons, ui)
}

fn print_near_miss(miss: &NearMiss, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let score = format!("{}  {:.2}", ui.paint(ui::FAINT, draw_bar(miss.score)), miss.score);
    let lacked = ui.paint(ui::FAINT, format!("({})", miss.lacked));
    writeln!(ui.out, "{score}  {} {lacked}", printable_line(&miss.name))?;
    print_reasons(&miss.reasons, ui)?;
    if !miss.missing.is_empty() {
        let words: Vec<String> = miss.missing.iter().map(|word| format!("\"{word}\"")).collect();
        print_line(&format!("lacks {}", words.join(", ")), ui)?;
    }
    Ok(())
}

fn print_reasons(reasons: &[SelectionReason], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let text = join_reasons(reasons);
    if text.is_empty() { Ok(()) } else { print_line(&text, ui) }
}

/// Formats reasons as one sentence, grouping words that occur in the same fields.
fn join_reasons(reasons: &[SelectionReason]) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut rest = reasons;
    while let [first, after @ ..] = rest {
        rest = after;
        let SelectionReason::Word { fields, as_word: None, .. } = first else {
            said.push(first.to_string());
            continue;
        };
        let mut words = String::new();
        let alike = |reason: &SelectionReason| matches!(reason, SelectionReason::Word { fields: f, as_word: None, .. } if f == fields);
        while let [SelectionReason::Word { word, .. }, after @ ..] = rest
            && alike(&rest[0])
        {
            words.push_str(&format!("\"{word}\", "));
            rest = after;
        }
        said.push(format!("{words}{first}"));
    }
    said.join("; ")
}

fn print_line(text: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let columns = ui.columns.saturating_sub(INDENT.len()).max(30);
    let text = ui::wrap_words(text, columns, INDENT);
    writeln!(ui.out, "{INDENT}{}", ui.paint(ui::FAINT, text))
}

fn print_why(why: SkillExplanation, ui: &mut TerminalUi<'_>) -> CliResult {
    if ui.json {
        ui.print_json(&ExplanationJson::from(why))?;
        return Ok(CliExit::Done);
    }
    let name = ui.paint(ui::STRONG, printable_line(&why.name));
    match (&why.lacked, &why.needed_by) {
        (None, Some(by)) => writeln!(ui.out, "{name} is picked because {by} needs it.")?,
        (None, None) => {
            let asked = format!("{:.2} is asked", why.threshold);
            writeln!(ui.out, "{name} is picked: it reaches {:.2}, and {asked}.", why.score)?;
        }
        (Some(lack), _) => {
            let held_back = held_back(&why);
            writeln!(ui.out, "{name} is not picked, with {:.2}: {lack}{held_back}.", why.score)?;
        }
    }
    if why.by_triggers > 0.0 {
        writeln!(ui.out, "Its triggers make it {:.2} likely.", why.by_triggers)?;
    }
    if let Some(rank) = why.rank {
        let likely = format!("which makes it {:.2} likely", why.by_text);
        writeln!(ui.out, "By words and meaning it comes {}, {likely}.", format_ordinal(rank))?;
    }
    if !why.missing.is_empty() {
        let words: Vec<String> = why.missing.iter().map(|word| format!("\"{word}\"")).collect();
        let line = format!("Words of the task that it has nowhere: {}.", words.join(", "));
        writeln!(ui.out, "{}", ui::wrap_words(&line, ui.columns, ""))?;
    }
    for problem in &why.problems {
        let declared = printable_line(&problem.declared);
        let line = format!("Its trigger `{declared}` cannot be used: {}.", problem.message);
        writeln!(ui.out, "{}", ui::wrap_words(&line, ui.columns, ""))?;
    }
    writeln!(ui.out)?;
    print_stages(&why, ui)?;
    Ok(CliExit::Done)
}

/// Returns the negative triggers that kept a skill from being picked, or an empty string.
fn held_back(why: &SkillExplanation) -> String {
    let negatives = why.stages.iter().find(|one| one.stage == SelectionStage::Negatives);
    let reasons = negatives.map_or(&[][..], |one| one.reasons.as_slice());
    let would_fit = why.by_text.max(why.by_triggers) >= why.threshold;
    match reasons {
        [_, ..] if would_fit => format!(", because it is {}", join_reasons(reasons)),
        _ => String::new(),
    }
}

fn format_ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn print_stages(why: &SkillExplanation, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let title = ui.paint(ui::STRONG, printable_line(&why.name));
    writeln!(ui.out, "{title} {}", ui.paint(ui::FAINT, format!("{:.2}", why.score)))?;
    for one in &why.stages {
        let stage = ui::pad_columns(one.stage.as_str(), 10);
        let reasons = join_reasons(&one.reasons);
        let indent = " ".repeat(12);
        let columns = ui.columns.saturating_sub(12).max(30);
        let says = match (one.score == 0.0, reasons.is_empty()) {
            (true, true) => ui.paint(ui::FAINT, "nothing"),
            (_, true) => format!("{:.2}", one.score),
            _ if one.stage == SelectionStage::Meaning => {
                format!("{:.2}  close in meaning", one.score)
            }
            _ => ui::wrap_words(&format!("{:.2}  {reasons}", one.score), columns, &indent),
        };
        writeln!(ui.out, "  {stage}{says}")?;
    }
    Ok(())
}
