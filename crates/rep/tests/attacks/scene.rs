//! The place of one attack: folders of an account, `rep` and git run as that account, and the walls that it can have.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// The user and group id of `nobody`.
const NOBODY: u32 = 65534;
/// The first argument that makes this program a wrapper, which gives up user namespaces and becomes another program.
const WITHOUT_USER_NAMESPACES: &str = "--without-user-namespaces";

/// The account and the walls of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation {
    pub(crate) account: Account,
    pub(crate) namespaces: UserNamespaces,
}

/// The account that `rep` runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The account that runs the tests.
    Own,
    /// `nobody`, which only root can become.
    Nobody,
}

/// Whether programs can make user namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserNamespaces {
    Allowed,
    /// As in many containers, and by default on Ubuntu 24.04.
    Denied,
}

impl Situation {
    /// The account that runs the tests, with the best walls.
    pub(crate) fn own() -> Self {
        Situation { account: Account::Own, namespaces: UserNamespaces::Allowed }
    }

    /// The situations that guarantees are tried in: all four in the full form, otherwise one with user namespaces and one
    /// without, each with another account where that is possible.
    pub(crate) fn tried() -> Vec<Situation> {
        let situation = |account, namespaces| Situation { account, namespaces };
        let other = if is_root() { Account::Nobody } else { Account::Own };
        let short = [Situation::own(), situation(other, UserNamespaces::Denied)];
        let rest = [
            situation(Account::Own, UserNamespaces::Denied),
            situation(Account::Nobody, UserNamespaces::Allowed),
            situation(Account::Nobody, UserNamespaces::Denied),
        ];
        let mut tried = short.to_vec();
        if is_full() {
            tried.extend(rest.into_iter().filter(|situation| !short.contains(situation)));
        }
        tried
    }

    /// Whether this machine can offer it.
    pub(crate) fn is_offered(self) -> bool {
        let account = self.account == Account::Own || is_root();
        let namespaces = self.namespaces == UserNamespaces::Denied || has_user_namespaces();
        account && (namespaces || self == Situation::own())
    }
}

/// Whether the full form was asked for.
#[expect(clippy::disallowed_methods, reason = "the length of the suite is chosen where it is run")]
pub(crate) fn is_full() -> bool {
    std::env::var_os("ATTACKS_FULL").is_some()
}

impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = match self.account {
            Account::Own if is_root() => "root",
            Account::Own => "user",
            Account::Nobody => "nobody",
        };
        let namespaces = match self.namespaces {
            UserNamespaces::Allowed => "user namespaces",
            UserNamespaces::Denied => "no user namespaces",
        };
        write!(f, "{account}, {namespaces}")
    }
}

/// The folders of one attack, which belong to the attacked account: `home`, `data`, `project` (a git repository with one
/// commit) and `outside`, which nothing that is confined to the project may change.
pub(crate) struct Scene {
    _keep: tempfile::TempDir,
    dir: Utf8PathBuf,
    pub(crate) situation: Situation,
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The exit code; -1 after a signal.
    pub(crate) code: i32,
}

impl Scene {
    pub(crate) fn new(situation: Situation) -> Self {
        let keep = tempfile::tempdir().unwrap();
        std::fs::set_permissions(keep.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let scene = Scene { _keep: keep, dir, situation };
        for folder in ["home", "data", "project", "outside"] {
            scene.folder(folder);
        }
        scene.git("project", &["init", "--quiet", "--initial-branch=main"]);
        scene.git("project", &["config", "user.name", "Attacked"]);
        scene.git("project", &["config", "user.email", "attacked@example.com"]);
        scene.write("project/README.md", "# A project\n");
        scene.commit("Start");
        scene
    }

    /// The path of something in the scene.
    pub(crate) fn path(&self, relative: &str) -> Utf8PathBuf {
        self.dir.join(relative)
    }

    /// Makes a folder, with those above it, that belongs to the account.
    pub(crate) fn folder(&self, relative: &str) {
        let mut at = self.dir.clone();
        for part in Utf8Path::new(relative).components() {
            at.push(part);
            if !at.exists() {
                std::fs::create_dir(&at).unwrap();
                self.give(&at);
            }
        }
    }

    /// Writes a file that belongs to the account.
    #[expect(clippy::disallowed_methods, reason = "nobody reads it meanwhile")]
    pub(crate) fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(relative);
        self.folder(Utf8Path::new(relative).parent().unwrap().as_str());
        std::fs::write(&path, bytes).unwrap();
        self.give(&path);
    }

    /// Writes a file that the account may execute.
    pub(crate) fn write_program(&self, relative: &str, text: &str) {
        self.write(relative, text);
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(relative), permissions).unwrap();
    }

    /// The text of a file; `None` if there is none.
    #[expect(clippy::disallowed_methods, reason = "files of this test are small")]
    pub(crate) fn read(&self, relative: &str) -> Option<String> {
        std::fs::read_to_string(self.path(relative)).ok()
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.path(relative).symlink_metadata().is_ok()
    }

    fn give(&self, path: &Utf8Path) {
        if let Some(id) = self.user_id() {
            std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
        }
    }

    pub(crate) fn user_id(&self) -> Option<u32> {
        (self.situation.account == Account::Nobody).then_some(NOBODY)
    }

    /// Runs git as the account in a folder of the scene, and expects it to succeed.
    pub(crate) fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut git = self.plain_command("git");
        let ran = ran(&git.args(args).current_dir(self.path(folder)).output().unwrap());
        assert_eq!(ran.code, 0, "git {args:?}: {}", ran.stderr);
        ran.stdout
    }

    /// Commits everything in the project.
    pub(crate) fn commit(&self, message: &str) {
        self.git("project", &["add", "--all"]);
        self.git("project", &["commit", "--quiet", "--message", message]);
    }

    /// Runs `rep` in the project as the account, within the situation's walls; the line is split at blanks.
    pub(crate) fn rep(&self, line: &str) -> Ran {
        ran(&self.rep_command(&line.split_whitespace().collect::<Vec<_>>()).output().unwrap())
    }

    /// The command that [`Scene::rep`] runs, for attacks that need more: other variables, input, or a kill.
    pub(crate) fn rep_command(&self, args: &[&str]) -> Command {
        let mut command = match self.situation.namespaces {
            UserNamespaces::Allowed => self.plain_command(attacked()),
            UserNamespaces::Denied => {
                let mut command = self.plain_command(wrapper());
                command.arg(WITHOUT_USER_NAMESPACES).arg(attacked());
                command
            }
        };
        command.args(args).current_dir(self.path("project"));
        command.env("REPERTOIRE_DATA_DIR", self.path("data")).env("NO_COLOR", "1");
        command
    }

    /// A command as the account with a small environment of its own, outside every wall.
    pub(crate) fn plain_command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).current_dir(&self.dir);
        command.env("HOME", self.path("home")).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if let Some(id) = self.user_id() {
            command.uid(id).gid(id);
        }
        command
    }
}

pub(crate) fn ran(output: &Output) -> Ran {
    Ran {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has_user_namespaces() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "true"]).stderr(Stdio::null());
        unshare.status().is_ok_and(|status| status.success())
    })
}

/// The binary under attack, where every account can run it.
fn attacked() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        #[expect(clippy::disallowed_methods, reason = "whoever runs the suite names the binary")]
        let named = std::env::var_os("REPERTOIRE_ATTACKED").map(PathBuf::from);
        reachable(&named.unwrap_or_else(|| env!("CARGO_BIN_EXE_rep").into()), "rep")
    })
}

/// This very program, where every account can run it.
fn wrapper() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| reachable(&std::env::current_exe().unwrap(), "wrapper"))
}

/// A copy of a program in a folder that every account can read. The folder is left to the system's temporary files.
fn reachable(program: &Path, name: &str) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::Builder::new().prefix("attacks-").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    });
    let copy = folder.path().join(name);
    if std::fs::hard_link(program, &copy).is_err() {
        std::fs::copy(program, &copy).unwrap();
    }
    copy
}

/// If this program was started as a wrapper: denies user namespaces to itself and becomes the other program. Comes back
/// with an exit code only when that fails.
#[expect(clippy::print_stderr, reason = "the wrapper has no other way to report")]
pub(crate) fn become_without_user_namespaces() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WITHOUT_USER_NAMESPACES {
        return None;
    }
    deny_user_namespaces();
    let error = Command::new(args.next()?).args(args).exec();
    eprintln!("wrapper: {error}");
    Some(ExitCode::from(126))
}

fn deny_user_namespaces() {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };
    const CLONE_NEWUSER: u64 = 0x1000_0000;
    // Numbers of the system calls: `clone3` hides its flags from a filter, and programs fall back to `clone` without it.
    let (clone, unshare) = match std::env::consts::ARCH {
        "aarch64" => (220, 97),
        _ => (56, 272),
    };
    let clone3 = 435;
    let condition = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(CLONE_NEWUSER),
        CLONE_NEWUSER,
    )
    .unwrap();
    let rule = || vec![SeccompRule::new(vec![condition.clone()]).unwrap()];
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let deny = |rules, errno| -> BpfProgram {
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch)
            .unwrap()
            .try_into()
            .unwrap()
    };
    let (not_permitted, not_implemented) = (1, 38);
    let namespaces = deny([(clone, rule()), (unshare, rule())].into(), not_permitted);
    let opaque = deny([(clone3, Vec::new())].into(), not_implemented);
    seccompiler::apply_filter(&namespaces).unwrap();
    seccompiler::apply_filter(&opaque).unwrap();
}

impl Scene {
    /// Whether the suite attacks a binary other than the one that was just built.
    pub(crate) fn attacks_another_binary() -> bool {
        #[expect(clippy::disallowed_methods, reason = "whoever runs the suite names the binary")]
        std::env::var_os("REPERTOIRE_ATTACKED").is_some()
    }
}

/// Waits until something is so; returns whether it became so in time.
pub(crate) fn until(time: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + time;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the size of a file does not change for a time.
pub(crate) fn stays_as_it_is(path: &Utf8Path, time: Duration) -> bool {
    let size = || path.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    let before = size();
    !until(time, || size() != before)
}

/// The living processes whose command line or working folder contains a text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            #[expect(clippy::disallowed_methods, reason = "files of the system are small")]
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let is_meant = line.contains(text) || folder.to_string_lossy().contains(text);
            (is_meant && !line.is_empty()).then(|| format!("{id}: {line}"))
        })
        .collect()
}
