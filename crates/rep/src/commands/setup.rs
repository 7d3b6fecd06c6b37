//! `rep setup`: adds `rep mcp` to the configuration of other agents, checks it, and removes it.

mod check;
pub(crate) mod clients;

use std::fmt::Write as _;

use self::clients::config_file::{ClientConfigFile, ConfigFileError, EntryOwner, FileChange};
use self::clients::entry_edit::EntryEditError;
use self::clients::{
    ClientEnvironment, ClientScope, McpClient, PROGRAM, find_client, known_clients,
};
use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::serve::{
    SetupClientJson, SetupDone, SetupDoneJson, SetupFileJson, SetupListJson, SetupPrintJson,
};
use crate::ui::{self, TerminalUi, pad_columns};

/// Default name of our entry. Clients use it as the prefix of tool names.
const NAME: &str = "repertoire";

/// Arguments of `rep setup`
#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    /// The client to set up (default: list all clients)
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(known_clients().iter().map(|client| client.id.as_str())))]
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
    scope: Option<SetupScopeArg>,
    /// Name of the entry
    #[arg(long, value_name = "NAME", default_value = NAME, value_parser = parse_entry_name)]
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
enum SetupScopeArg {
    Project,
    User,
}

impl From<SetupScopeArg> for ClientScope {
    fn from(arg: SetupScopeArg) -> Self {
        match arg {
            SetupScopeArg::Project => ClientScope::Project,
            SetupScopeArg::User => ClientScope::User,
        }
    }
}

/// Validates the name of the entry, which clients use as part of tool names.
fn parse_entry_name(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_name_char) {
        Ok(text.to_owned())
    } else {
        Err("a name has letters, digits, `-` and `_`, at most 64".to_owned())
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &SetupArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let var = |name: &str| ctx.env.var(name).map(str::to_owned);
    let around =
        ClientEnvironment { home: ctx.env.home(), project: ctx.project_dir(None), var: &var };
    let Some(client) = args.client.as_deref().and_then(find_client) else {
        return if args.print || args.check || args.remove || args.replace {
            Err(CliFailure::wrong_usage("name a client")
                .hint("`rep setup` lists the supported clients."))
        } else {
            list_clients(ctx, args, &around, ui)
        };
    };
    let scope = args.scope.map_or(client.scope, ClientScope::from);
    let file = client.file(scope, &around).ok_or_else(|| no_such_file(client, scope))?;
    let memory = memory_dir(ctx);
    let project = (scope == ClientScope::Project).then_some(around.project.as_path());
    let config =
        ClientConfigFile { path: &file.path, client, name: &args.name, memory: &memory, project };
    let one = ClientSetupCommand { ctx, args, client, scope, config, note: file.note };
    match (args.print, args.check, args.remove) {
        (true, ..) => one.print_entry(ui),
        (_, true, _) => check::run(&one, ui),
        (_, _, true) => one.remove_entry(ui),
        _ => one.write_entry(ui),
    }
}

/// Returns the clients that are installed and not set up, with the file that would be changed.
pub(crate) fn find_missing_setups(
    ctx: &CliContext<'_>,
) -> Vec<(&'static McpClient, Option<Utf8PathBuf>)> {
    let var = |name: &str| ctx.env.var(name).map(str::to_owned);
    let around =
        ClientEnvironment { home: ctx.env.home(), project: ctx.project_dir(None), var: &var };
    let rows = known_clients().iter().map(|client| build_row(ctx, NAME, &around, client));
    let missing = rows.filter(|row| {
        let is_set_up = |state: &SetupEntryState| matches!(state, SetupEntryState::SetUp);
        row.is_here && !row.files.iter().any(|(.., state)| is_set_up(state))
    });
    missing
        .map(|row| {
            let mut files = row.files.into_iter();
            let file = files.find(|(scope, ..)| *scope == row.client.scope);
            (row.client, file.map(|(_, path, _)| path))
        })
        .collect()
}

/// Sets up a client as `rep setup CLIENT` does.
pub(crate) fn set_up_client(
    ctx: &CliContext<'_>,
    client: &McpClient,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let args = SetupArgs {
        client: Some(client.id.clone()),
        print: false,
        check: false,
        remove: false,
        scope: None,
        name: NAME.to_owned(),
        command: None,
        replace: false,
    };
    run(ctx, &args, ui)
}

/// One client with its configuration file.
struct ClientSetupCommand<'a> {
    ctx: &'a CliContext<'a>,
    args: &'a SetupArgs,
    client: &'a McpClient,
    scope: ClientScope,
    config: ClientConfigFile<'a>,
    /// Advice about the file for the user.
    note: Option<&'static str>,
}

impl ClientSetupCommand<'_> {
    fn write_entry(&self, ui: &mut TerminalUi<'_>) -> CliResult {
        let entry = self.build_entry();
        self.note_file_above(ui)?;
        let done = if self.args.replace {
            self.config.replace_entry(&entry)
        } else {
            self.config.add_entry(&entry)
        };
        let done = done.map_err(|error| self.file_failure(error))?;
        let text = match done {
            FileChange::Made => "created",
            FileChange::Unchanged => "already set up in",
            FileChange::Changed | FileChange::Removed | FileChange::Restored => "added to",
        };
        self.report_done(done, text, ui)?;
        if !ui.json && done != FileChange::Unchanged {
            if let Some(note) = self.note {
                ui.print_note(note)?;
            }
            let scope = if self.scope == self.client.scope { "" } else { self.scope_flag() };
            ui.print_note(&format!("Test it with `rep setup {}{scope} --check`.", self.client.id))?;
        }
        Ok(CliExit::Done)
    }

    fn remove_entry(&self, ui: &mut TerminalUi<'_>) -> CliResult {
        self.note_file_above(ui)?;
        let done = self.config.remove_entry().map_err(|error| self.file_failure(error))?;
        let text = match done {
            FileChange::Removed => "deleted",
            FileChange::Restored => "restored the previous entry in",
            FileChange::Unchanged => "not set up in",
            FileChange::Changed | FileChange::Made => "removed from",
        };
        self.report_done(done, text, ui)?;
        Ok(CliExit::Done)
    }

    fn print_entry(&self, ui: &mut TerminalUi<'_>) -> CliResult {
        let entry = self.build_entry();
        if ui.json {
            ui.print_json(&SetupPrintJson {
                client: self.client.id.clone(),
                scope: self.scope,
                file: self.config.path.to_string(),
                keys: self.client.keys.clone(),
                name: self.args.name.clone(),
                entry,
            })?;
            return Ok(CliExit::Done);
        }
        ui.print_note(&format!("In {}:", self.short_path()))?;
        write!(ui.out, "{}", self.client.render_snippet(&self.args.name, &entry))?;
        Ok(CliExit::Done)
    }

    /// Names the file if the project's root is above the working folder, where the user may not
    /// expect it.
    fn note_file_above(&self, ui: &mut TerminalUi<'_>) -> Result<(), CliFailure> {
        let path = self.config.path;
        if self.scope == ClientScope::Project && !path.starts_with(&self.ctx.env.here) {
            ui.print_note(&format!(
                "The root of the project is above this folder: writing {path}"
            ))?;
        }
        Ok(())
    }

    fn report_done(
        &self,
        done: FileChange,
        text: &str,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        if ui.json {
            let done = match done {
                FileChange::Made => SetupDone::Made,
                FileChange::Changed => SetupDone::Changed,
                FileChange::Unchanged => SetupDone::Unchanged,
                FileChange::Removed => SetupDone::Removed,
                FileChange::Restored => SetupDone::Restored,
            };
            let (client, file) = (self.client.id.clone(), self.config.path.to_string());
            ui.print_json(&SetupDoneJson { client, scope: self.scope, file, done })?;
            return Ok(());
        }
        writeln!(ui.out, "{}: {text} {}", self.client.name, self.short_path())?;
        Ok(())
    }

    fn build_entry(&self) -> serde_json::Value {
        let program = match &self.args.command {
            Some(program) => program.clone(),
            None => self.default_program(),
        };
        self.client.build_entry(&program, &["mcp".to_owned()])
    }

    /// Returns the default program. A project's file is shared, so it should not contain a path of
    /// this machine if `rep` on PATH is this program. A user's file may be read by a program with a
    /// different PATH, so it gets the full path.
    fn default_program(&self) -> String {
        let Some(own) = own_program() else { return PROGRAM.to_owned() };
        let on_path = self.ctx.env.find_program(PROGRAM);
        let is_on_path = on_path.is_some_and(|found| is_same_file(&found, &own));
        match self.scope {
            ClientScope::Project if is_on_path => PROGRAM.to_owned(),
            ClientScope::Project | ClientScope::User => own.to_string(),
        }
    }

    fn short_path(&self) -> String {
        self.ctx.config.places().shorten_path(self.config.path)
    }

    fn scope_flag(&self) -> &'static str {
        match self.scope {
            ClientScope::Project => " --scope project",
            ClientScope::User => " --scope user",
        }
    }

    fn file_failure(&self, error: ConfigFileError) -> CliFailure {
        let hint = match &error {
            ConfigFileError::Edit { source: EntryEditError::Taken { .. }, .. } => {
                "Replace it with `--replace`, or keep it and choose another name with `--name NAME`.".to_owned()
            }
            ConfigFileError::Foreign { .. } => {
                "Nothing was changed. `rep setup` removes only entries that start `rep mcp` or that it wrote; remove this one by hand.".to_owned()
            }
            ConfigFileError::Edit { .. } | ConfigFileError::Link { .. } | ConfigFileError::Read { .. } => format!(
                "Nothing was changed. `rep setup {} --print` prints the entry to add by hand.",
                self.client.id
            ),
            ConfigFileError::OutsideProject { .. } => format!(
                "Nothing was changed. Replace the link with a folder, or add the output of `rep setup {} --print` by hand.",
                self.client.id
            ),
            ConfigFileError::ReadOnly { .. } | ConfigFileError::Write { .. } => {
                "Nothing was changed. Check the permissions of the file, and try again.".to_owned()
            }
            ConfigFileError::Changed { .. } => "Nothing was changed. Try again.".to_owned(),
        };
        CliFailure::cannot_run(error.to_string()).hint(hint)
    }
}

/// Returns the path of the running executable.
fn own_program() -> Option<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(std::env::current_exe().ok()?).ok()
}

fn is_same_file(a: &Utf8Path, b: &Utf8Path) -> bool {
    a.canonicalize_utf8().ok() == b.canonicalize_utf8().ok()
}

fn memory_dir(ctx: &CliContext<'_>) -> Utf8PathBuf {
    ctx.env.data_dir().join("setup")
}

fn no_such_file(client: &McpClient, scope: ClientScope) -> CliFailure {
    let (whose, other) = match scope {
        ClientScope::Project => ("a project", "user"),
        ClientScope::User => ("the user", "project"),
    };
    CliFailure::wrong_usage(format!("{} has no configuration file of {whose}", client.name))
        .hint(format!("Use `--scope {other}`."))
}

/// A client, whether it is installed, and the state of its configuration files.
struct SetupClientRow {
    client: &'static McpClient,
    is_here: bool,
    files: Vec<(ClientScope, Utf8PathBuf, SetupEntryState)>,
}

/// The state of our entry in a configuration file.
enum SetupEntryState {
    SetUp,
    /// There is an entry with our name that `rep setup` did not write.
    Foreign,
    Not,
    Broken(String),
}

/// Lists all clients, and whether each is installed and set up.
fn list_clients(
    ctx: &CliContext<'_>,
    args: &SetupArgs,
    around: &ClientEnvironment<'_>,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let rows: Vec<SetupClientRow> =
        known_clients().iter().map(|client| build_row(ctx, &args.name, around, client)).collect();
    if ui.json {
        ui.print_json(&SetupListJson { clients: rows.iter().map(row_as_json).collect() })?;
        return Ok(CliExit::Done);
    }
    for row in &rows {
        let line = row_as_text(ctx, &args.name, row, ui);
        writeln!(ui.out, "{line}")?;
    }
    ui.print_note(
        "Set up a client with `rep setup CLIENT`; test it with `--check`, undo it with `--remove`.",
    )?;
    Ok(CliExit::Done)
}

fn build_row(
    ctx: &CliContext<'_>,
    name: &str,
    around: &ClientEnvironment<'_>,
    client: &'static McpClient,
) -> SetupClientRow {
    let memory = memory_dir(ctx);
    let is_here = ctx.env.find_program(&client.program).is_some() || client.was_used(around);
    let state = |scope: ClientScope, path: &Utf8Path| {
        let project = (scope == ClientScope::Project).then_some(around.project.as_path());
        let config = ClientConfigFile { path, client, name, memory: &memory, project };
        match config.find_owner() {
            Ok(EntryOwner::Ours(_)) => SetupEntryState::SetUp,
            Ok(EntryOwner::Foreign(_)) => SetupEntryState::Foreign,
            Ok(EntryOwner::Nothing) => SetupEntryState::Not,
            Err(error) => SetupEntryState::Broken(error.to_string()),
        }
    };
    let scopes = [ClientScope::Project, ClientScope::User].into_iter();
    let files = scopes.filter_map(|scope| {
        let path = client.file(scope, around)?.path;
        let state = state(scope, &path);
        Some((scope, path, state))
    });
    SetupClientRow { client, is_here, files: files.collect() }
}

fn row_as_json(row: &SetupClientRow) -> SetupClientJson {
    SetupClientJson {
        client: row.client.id.clone(),
        name: row.client.name.clone(),
        found: row.is_here,
        files: row.files.iter().map(file_as_json).collect(),
    }
}

fn file_as_json(
    (scope, path, state): &(ClientScope, Utf8PathBuf, SetupEntryState),
) -> SetupFileJson {
    SetupFileJson {
        scope: *scope,
        file: path.to_string(),
        set_up: matches!(state, SetupEntryState::SetUp),
        foreign: matches!(state, SetupEntryState::Foreign),
        problem: match state {
            SetupEntryState::Broken(why) => Some(why.clone()),
            SetupEntryState::SetUp | SetupEntryState::Foreign | SetupEntryState::Not => None,
        },
    }
}

fn row_as_text(
    ctx: &CliContext<'_>,
    name: &str,
    row: &SetupClientRow,
    ui: &TerminalUi<'_>,
) -> String {
    let set_up = row.files.iter().filter(|(.., state)| matches!(state, SetupEntryState::SetUp));
    let set_up: Vec<String> =
        set_up.map(|(_, path, _)| ctx.config.places().shorten_path(path)).collect();
    let state = match (row.is_here, set_up.as_slice()) {
        (_, [_, ..]) => ui.paint(ui::GOOD, format!("set up in {}", set_up.join(" and "))),
        (true, []) => "found, not set up".to_owned(),
        (false, []) => ui.paint(ui::FAINT, "not found"),
    };
    let mut text = format!(
        "{}  {}  {state}",
        pad_columns(&row.client.id, 8),
        pad_columns(&row.client.name, 11)
    );
    for (_, path, state) in &row.files {
        let why = match state {
            SetupEntryState::Broken(why) => why.clone(),
            SetupEntryState::Foreign => format!(
                "{} has another entry called `{name}`",
                ctx.config.places().shorten_path(path)
            ),
            SetupEntryState::SetUp | SetupEntryState::Not => continue,
        };
        let _ = write!(text, "\n          {}", ui.paint(ui::WARN, format!("! {why}")));
    }
    text
}
