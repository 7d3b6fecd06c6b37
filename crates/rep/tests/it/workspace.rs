//! A home, a data folder, a pack and a project in a temporary folder, and `rep` run among them with nothing
//! of this machine's environment.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

/// A body that no rule complains about.
pub(crate) const BODY: &str =
    "Read the file, do the work, and check that the result is what was asked for.";

/// Longer than any command takes, even on a busy machine.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Which built-in skills there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pack {
    /// One small skill, so that snapshots do not change with the real pack.
    Small,
    /// The one that ships.
    Shipped,
}

/// The folders of one test.
pub(crate) struct Workspace {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
    pack: Pack,
    variables: Vec<(String, String)>,
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let workspace = Self::with(Pack::Small);
        let description = "Built in. Use when nothing else helps.";
        workspace.skill("pack/first-aid", "first-aid", description);
        workspace
    }

    /// With the pack that ships in the binary.
    pub(crate) fn with_shipped_pack() -> Self {
        Self::with(Pack::Shipped)
    }

    fn with(pack: Pack) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        // The least that git takes for a repository.
        for folder in ["home", "data", "project/.git/objects", "project/.git/refs"] {
            std::fs::create_dir_all(dir.join(folder)).unwrap();
        }
        let workspace = Workspace { _keep: keep, dir, pack, variables: Vec::new() };
        workspace.write("project/.git/HEAD", "ref: refs/heads/main\n");
        workspace
    }

    /// Sets an environment variable for every command that follows.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Says in the user's own configuration that the project is theirs, so that its checks run.
    pub(crate) fn own_the_project(&self) {
        let text = "[trust]\nfolders = [\"~/../project\"]\n";
        self.write("home/.config/repertoire/repertoire.toml", text);
    }

    pub(crate) fn path(&self, relative: &str) -> Utf8PathBuf {
        self.dir.join(relative)
    }

    pub(crate) fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn bytes(&self, relative: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        File::open(self.path(relative)).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn text(&self, relative: &str) -> String {
        String::from_utf8(self.bytes(relative)).unwrap()
    }

    /// The files in a folder, as paths from the workspace, sorted.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap())
        };
        let mut files: Vec<String> = entries.map(name).collect();
        files.sort();
        files
    }

    /// A skill that is in order, in a folder.
    pub(crate) fn skill(&self, folder: &str, name: &str, description: &str) {
        self.skill_with(folder, &format!("name: {name}\ndescription: {description}\n"));
    }

    /// A skill with these fields.
    pub(crate) fn skill_with(&self, folder: &str, fields: &str) {
        self.write(&format!("{folder}/SKILL.md"), format!("---\n{fields}---\n\n{BODY}\n"));
    }

    /// Runs `rep` in the project; the line is split at blanks.
    pub(crate) fn rep(&self, line: &str) -> Ran {
        self.rep_with(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn rep_with(&self, args: &[&str]) -> Ran {
        let mut command = assert_cmd::Command::from_std(self.command(args));
        let output = command.timeout(TIMEOUT).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran {
            stdout: self.hide(&text(output.stdout)),
            stderr: self.hide(&text(output.stderr)),
            code: output.status.code().unwrap(),
        }
    }

    /// The bytes that a command prints, with nothing hidden.
    pub(crate) fn raw(&self, line: &str) -> Vec<u8> {
        self.command(&line.split_whitespace().collect::<Vec<_>>()).output().unwrap().stdout
    }

    /// A JSON answer, checked against its published schema.
    pub(crate) fn json(&self, line: &str, schema: &str) -> Value {
        let ran = self.rep(line);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        let all = repertoire_cli::schema::all_schemas();
        let (_, schema) = all.into_iter().find(|(name, _)| *name == schema).unwrap();
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(wrong, Vec::<String>::new());
        value
    }

    /// Changes the journal with another program.
    pub(crate) fn tamper(&self, sql: &'static str) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let url = format!("sqlite://{}", self.path("data/journal.sqlite"));
            let db = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await;
            sqlx::raw_sql(sql).execute(&mut db.unwrap()).await.unwrap();
        });
    }

    /// What a person at a terminal sees, and the exit code, with these keys pressed.
    pub(crate) fn at_a_terminal(&self, line: &str, typed: &str) -> (String, i32) {
        let rep = self.command(&[]);
        let mut script = Command::new("script");
        let command = format!("{} {line}", rep.get_program().to_str().unwrap());
        script.args(["--quiet", "--return", "--echo", "never", "--command", &command, "/dev/null"]);
        script.env_clear().envs(rep.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.env("SHELL", "/bin/sh").current_dir(self.path("project"));
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let seen = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        (self.hide(&seen), output.status.code().unwrap())
    }

    /// The command with an explicit environment, for what the other methods cannot do.
    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rep"));
        command.args(args).current_dir(self.path("project")).env_clear();
        command.env("HOME", self.path("home")).env("REPERTOIRE_DATA_DIR", self.path("data"));
        command.env("COLUMNS", "100").env("NO_COLOR", "1");
        // What a sandbox can do depends on the machine.
        command.env("REPERTOIRE_SANDBOX", "off");
        if self.pack == Pack::Small {
            command.env("REPERTOIRE_SKILLS_BUILTIN_DIR", self.path("pack"));
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A text without the temporary folder and without digests.
    pub(crate) fn hide(&self, text: &str) -> String {
        let text = text.replace(self.dir.as_str(), "[TMP]");
        let mut parts = text.split("sha256:");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            out.push_str("[DIGEST]");
            out.push_str(rest);
        }
        out
    }
}

/// As a person sees it, with the exit code.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ran { stdout, stderr, code } = self;
        f.write_str(stdout)?;
        if !stderr.is_empty() {
            write!(f, "[stderr]\n{stderr}")?;
        }
        write!(f, "[exit {code}]")
    }
}

/// The keys of a JSON object, in their order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Whether this process is stopped by permissions; root is not.
pub(crate) fn permissions_hold(path: &Utf8Path) -> bool {
    File::open(path).is_err()
}
