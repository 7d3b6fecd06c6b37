//! `rep setup`: adds `rep mcp` to the configuration of other agents, checks it, and removes it.

mod check;

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use repertoire_serve::clients::disk::{Config, Done, FileError, Found};
use repertoire_serve::clients::edit::EditError;
use repertoire_serve::clients::{Client, PROGRAM, Scope, Surroundings, all, find};

use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::serve::{
    SetupClientJson, SetupDone, SetupDoneJson, SetupFileJson, SetupListJson, SetupPrintJson,
};
use crate::ui::{self, Ui, pad};

/// Default name of our entry. Clients use it as the prefix of tool names.
const NAME: &str = "repertoire";

/// Arguments of `rep setup`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client to set up (default: list all clients)
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(all().iter().map(|client| client.id.as_str())))]
    client: Option<String>,
    /// Print the configuration entry without writing it
    #[arg(long, conflicts_with_all = ["check", "remove"])]
    print: bool,
    /// Check that the client is set up and that the command responds
    #[arg(long, conflicts_with = "remove")]
    check: bool,
    /// Remove our entry
    #[arg(long)]
    remove: bool,
    /// The configuration to change: that of the project or that of the user (default: depends on
    /// the client)
    #[arg(long, value_enum, value_name = "SCOPE")]
    scope: Option<ScopeArg>,
    /// Name of the entry
    #[arg(long, value_name = "NAME", default_value = NAME, value_parser = name)]
    name: String,
    /// Program for the client to start (default: `rep` for a project if that is this program,
    /// otherwise the full path of this program)
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["check", "remove"])]
    command: Option<String>,
    /// Replace another entry of the same name; `--remove` restores it
    #[arg(long, conflicts_with_all = ["check", "remove", "print"])]
    replace: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArg {
    Project,
    User,
}

impl From<ScopeArg> for Scope {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::Project => Scope::Project,
            ScopeArg::User => Scope::User,
        }
    }
}

/// Validates the name of the entry, which clients use as part of tool names.
fn name(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_name_char) {
        Ok(text.to_owned())
    } else {
        Err("a name has letters, digits, `-` and `_`, at most 64".to_owned())
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let var = |name: &str| ctx.env.var(name).map(str::to_owned);
    let around = Surroundings { home: ctx.env.home(), project: ctx.project_dir(None), var: &var };
    let Some(client) = args.client.as_deref().and_then(find) else {
        return if args.print || args.check || args.remove || args.replace {
            Err(Failure::usage("which client is meant?")
                .hint("`rep setup` lists those that are known."))
        } else {
            list(ctx, args, &around, ui)
        };
    };
    let scope = args.scope.map_or(client.scope, Scope::from);
    let file = client.file(scope, &around).ok_or_else(|| no_such_file(client, scope))?;
    let memory = memory(ctx);
    let project = (scope == Scope::Project).then_some(around.project.as_path());
    let config = Config { path: &file.path, client, name: &args.name, memory: &memory, project };
    let one = One { ctx, args, client, scope, config, note: file.note };
    match (args.print, args.check, args.remove) {
        (true, ..) => one.print(ui),
        (_, true, _) => check::run(&one, ui),
        (_, _, true) => one.remove(ui),
        _ => one.set(ui),
    }
}

/// One client with its configuration file.
struct One<'a> {
    ctx: &'a Ctx<'a>,
    args: &'a Args,
    client: &'a Client,
    scope: Scope,
    config: Config<'a>,
    /// Advice about the file for the user.
    note: Option<&'static str>,
}

impl One<'_> {
    fn set(&self, ui: &mut Ui<'_>) -> Outcome {
        let entry = self.entry();
        self.say_where_it_writes(ui)?;
        let done =
            if self.args.replace { self.config.replace(&entry) } else { self.config.set(&entry) };
        let done = done.map_err(|error| self.failure(error))?;
        let text = match done {
            Done::Made => "was made, with our entry",
            Done::Unchanged => "has our entry already",
            Done::Changed | Done::Removed | Done::Restored => "has our entry now",
        };
        self.say(done, text, ui)?;
        if !ui.json && done != Done::Unchanged {
            if let Some(note) = self.note {
                ui.note(note)?;
            }
            let scope = if self.scope == self.client.scope { "" } else { self.scope_flag() };
            ui.note(&format!("`rep setup {}{scope} --check` tries it.", self.client.id))?;
        }
        Ok(Exit::Done)
    }

    fn remove(&self, ui: &mut Ui<'_>) -> Outcome {
        self.say_where_it_writes(ui)?;
        let done = self.config.remove().map_err(|error| self.failure(error))?;
        let text = match done {
            Done::Removed => "was made for our entry, and is gone",
            Done::Restored => "has the entry again that ours had replaced",
            Done::Unchanged => "has no entry of ours",
            Done::Changed | Done::Made => "has our entry no more",
        };
        self.say(done, text, ui)?;
        Ok(Exit::Done)
    }

    fn print(&self, ui: &mut Ui<'_>) -> Outcome {
        let entry = self.entry();
        if ui.json {
            ui.print_json(&SetupPrintJson {
                client: self.client.id.clone(),
                scope: self.scope,
                file: self.config.path.to_string(),
                keys: self.client.keys.clone(),
                name: self.args.name.clone(),
                entry,
            })?;
            return Ok(Exit::Done);
        }
        ui.note(&format!("In {}:", self.short()))?;
        write!(ui.out, "{}", self.client.snippet(&self.args.name, &entry))?;
        Ok(Exit::Done)
    }

    /// Names the file if the project's root is above the working folder, where the user may not
    /// expect it.
    fn say_where_it_writes(&self, ui: &mut Ui<'_>) -> Result<(), Failure> {
        let path = self.config.path;
        if self.scope == Scope::Project && !path.starts_with(&self.ctx.env.here) {
            ui.note(&format!("The project begins above this folder: writing {path}"))?;
        }
        Ok(())
    }

    fn say(&self, done: Done, text: &str, ui: &mut Ui<'_>) -> Result<(), Failure> {
        if ui.json {
            let done = match done {
                Done::Made => SetupDone::Made,
                Done::Changed => SetupDone::Changed,
                Done::Unchanged => SetupDone::Unchanged,
                Done::Removed => SetupDone::Removed,
                Done::Restored => SetupDone::Restored,
            };
            let (client, file) = (self.client.id.clone(), self.config.path.to_string());
            ui.print_json(&SetupDoneJson { client, scope: self.scope, file, done })?;
            return Ok(());
        }
        writeln!(ui.out, "{}: {} {text}", self.client.name, self.short())?;
        Ok(())
    }

    fn entry(&self) -> serde_json::Value {
        let program = match &self.args.command {
            Some(program) => program.clone(),
            None => self.program(),
        };
        self.client.entry(&program, &["mcp".to_owned()])
    }

    /// Returns the default program. A project's file is shared, so it should not contain a path of
    /// this machine if `rep` on PATH is this program. A user's file may be read by a program with a
    /// different PATH, so it gets the full path.
    fn program(&self) -> String {
        let Some(own) = own_program() else { return PROGRAM.to_owned() };
        let on_path = self.ctx.env.program(PROGRAM);
        let is_on_path = on_path.is_some_and(|found| is_same_file(&found, &own));
        match self.scope {
            Scope::Project if is_on_path => PROGRAM.to_owned(),
            Scope::Project | Scope::User => own.to_string(),
        }
    }

    fn short(&self) -> String {
        self.ctx.config.places().shorten(self.config.path)
    }

    fn scope_flag(&self) -> &'static str {
        match self.scope {
            Scope::Project => " --scope project",
            Scope::User => " --scope user",
        }
    }

    fn failure(&self, error: FileError) -> Failure {
        let hint = match &error {
            FileError::Edit { source: EditError::Taken { .. }, .. } => {
                "`--replace` replaces it, `--name NAME` leaves it alone.".to_owned()
            }
            FileError::Foreign { .. } => {
                "Nothing was changed. Only what starts `rep mcp`, or what `rep setup` wrote, is taken out; this would have to go by hand.".to_owned()
            }
            FileError::Edit { .. } | FileError::Link { .. } | FileError::Read { .. } => format!(
                "Nothing was changed. `rep setup {} --print` prints what to put there by hand.",
                self.client.id
            ),
            FileError::OutsideProject { .. } => format!(
                "Nothing was changed. Replace the link by a folder, or put the output of `rep setup {} --print` there by hand.",
                self.client.id
            ),
            FileError::ReadOnly { .. } | FileError::Write { .. } => {
                "Nothing was changed. Mind who may write it, and try again.".to_owned()
            }
            FileError::Changed { .. } => "Nothing was changed. Try again.".to_owned(),
        };
        Failure::cannot_run(error.to_string()).hint(hint)
    }
}

/// Returns the path of the running executable.
fn own_program() -> Option<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(std::env::current_exe().ok()?).ok()
}

fn is_same_file(a: &Utf8Path, b: &Utf8Path) -> bool {
    a.canonicalize_utf8().ok() == b.canonicalize_utf8().ok()
}

fn memory(ctx: &Ctx<'_>) -> Utf8PathBuf {
    ctx.env.data_dir().join("setup")
}

fn no_such_file(client: &Client, scope: Scope) -> Failure {
    let (whose, other) = match scope {
        Scope::Project => ("a project", "user"),
        Scope::User => ("the user", "project"),
    };
    Failure::usage(format!("{} has no file of {whose} for this", client.name))
        .hint(format!("`--scope {other}`"))
}

/// A client, whether it is installed, and the state of its configuration files.
struct Row {
    client: &'static Client,
    is_here: bool,
    files: Vec<(Scope, Utf8PathBuf, State)>,
}

/// The state of our entry in a configuration file.
enum State {
    SetUp,
    /// There is an entry with our name that `rep setup` did not write.
    Foreign,
    Not,
    Broken(String),
}

/// Lists all clients, and whether each is installed and set up.
fn list(ctx: &Ctx<'_>, args: &Args, around: &Surroundings<'_>, ui: &mut Ui<'_>) -> Outcome {
    let rows: Vec<Row> = all().iter().map(|client| row(ctx, args, around, client)).collect();
    if ui.json {
        ui.print_json(&SetupListJson { clients: rows.iter().map(as_json).collect() })?;
        return Ok(Exit::Done);
    }
    for row in &rows {
        let line = as_text(ctx, &args.name, row, ui);
        writeln!(ui.out, "{line}")?;
    }
    ui.note("`rep setup CLIENT` sets one up, `--check` tries it, `--remove` takes it back.")?;
    Ok(Exit::Done)
}

fn row(ctx: &Ctx<'_>, args: &Args, around: &Surroundings<'_>, client: &'static Client) -> Row {
    let memory = memory(ctx);
    let is_here = ctx.env.program(&client.program).is_some() || client.was_used(around);
    let state = |scope: Scope, path: &Utf8Path| {
        let project = (scope == Scope::Project).then_some(around.project.as_path());
        let config = Config { path, client, name: &args.name, memory: &memory, project };
        match config.find() {
            Ok(Found::Ours(_)) => State::SetUp,
            Ok(Found::Foreign(_)) => State::Foreign,
            Ok(Found::Nothing) => State::Not,
            Err(error) => State::Broken(error.to_string()),
        }
    };
    let scopes = [Scope::Project, Scope::User].into_iter();
    let files = scopes.filter_map(|scope| {
        let path = client.file(scope, around)?.path;
        let state = state(scope, &path);
        Some((scope, path, state))
    });
    Row { client, is_here, files: files.collect() }
}

fn as_json(row: &Row) -> SetupClientJson {
    SetupClientJson {
        client: row.client.id.clone(),
        name: row.client.name.clone(),
        found: row.is_here,
        files: row.files.iter().map(file_as_json).collect(),
    }
}

fn file_as_json((scope, path, state): &(Scope, Utf8PathBuf, State)) -> SetupFileJson {
    SetupFileJson {
        scope: *scope,
        file: path.to_string(),
        set_up: matches!(state, State::SetUp),
        foreign: matches!(state, State::Foreign),
        problem: match state {
            State::Broken(why) => Some(why.clone()),
            State::SetUp | State::Foreign | State::Not => None,
        },
    }
}

fn as_text(ctx: &Ctx<'_>, name: &str, row: &Row, ui: &Ui<'_>) -> String {
    let set_up = row.files.iter().filter(|(.., state)| matches!(state, State::SetUp));
    let set_up: Vec<String> =
        set_up.map(|(_, path, _)| ctx.config.places().shorten(path)).collect();
    let state = match (row.is_here, set_up.as_slice()) {
        (_, [_, ..]) => ui.paint(ui::GOOD, format!("set up in {}", set_up.join(" and "))),
        (true, []) => "found, not set up".to_owned(),
        (false, []) => ui.paint(ui::FAINT, "not found"),
    };
    let mut text = format!("{}  {}  {state}", pad(&row.client.id, 8), pad(&row.client.name, 11));
    for (_, path, state) in &row.files {
        let why = match state {
            State::Broken(why) => why.clone(),
            State::Foreign => format!(
                "{} has an entry `{name}` that is not ours",
                ctx.config.places().shorten(path)
            ),
            State::SetUp | State::Not => continue,
        };
        let _ = write!(text, "\n          {}", ui.paint(ui::WARN, format!("! {why}")));
    }
    text
}
