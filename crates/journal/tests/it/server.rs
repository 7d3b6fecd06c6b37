//! A PostgreSQL server of its own for tests, from the binaries that are installed.
//!
//! A shell looks after it: when the test process is gone, however that came, it stops the server and removes its folder.
//! PostgreSQL refuses to run as root, so root runs it as nobody.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The user and group `nobody`.
const NOBODY: u32 = 65534;

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// Reads commands until its input ends. `$1` is the folder, the rest is the server.
const KEEPER: &str = r#"
trap '' INT TERM HUP
folder=$1; shift
start() { "$@" >>"$folder/log" 2>&1 & pid=$!; }
start "$@"
while read -r command; do
    case $command in
    kill)
        kill -STOP $pid
        children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
        kill -KILL $pid $children 2>/dev/null
        wait $pid 2>/dev/null
        for child in $children; do
            while grep -q '^State:[[:space:]]*[RSDTt]' "/proc/$child/status" 2>/dev/null; do sleep 0.02; done
        done
        echo killed ;;
    start) start "$@" ;;
    esac
done
kill -QUIT $pid 2>/dev/null
wait $pid 2>/dev/null
rm -rf "$folder"
"#;

/// A server that runs.
pub(crate) struct Server {
    folder: PathBuf,
    keeper: Child,
    orders: Option<ChildStdin>,
}

impl Server {
    /// Starts one with these settings (`fsync=off`). Without PostgreSQL it says so, and gives nothing; where `CI` is set
    /// it fails.
    #[expect(
        clippy::disallowed_methods,
        reason = "`CI` is about the machine, not about what is tested"
    )]
    pub(crate) fn start(settings: &[&str]) -> Option<Server> {
        let Some(binaries) = find_binaries() else {
            let message =
                "SKIPPED: PostgreSQL is not installed (`initdb` and `postgres` were not found)";
            assert!(std::env::var_os("CI").is_none(), "{message}");
            // Past the test harness, which would swallow it.
            let _ = writeln!(std::io::stderr(), "{message}");
            return None;
        };
        let made = tempfile::Builder::new().prefix("rep-pg-").tempdir().expect("a folder");
        let folder = made.path().to_owned();
        let is_root = is_root(&folder);
        if is_root {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("chown");
        }
        let data = folder.join("data");
        copy_folder(&initialised_folder(&binaries, is_root), &data);
        let server = as_nobody(is_root, &binaries.join("postgres"));
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(&folder);
        keeper.arg(server.get_program()).args(server.get_args());
        keeper.arg("-D").arg(&data).arg("-k").arg(&folder);
        keeper.args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
        for setting in settings {
            keeper.args(["-c", setting]);
        }
        keeper.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = keeper.spawn().expect("sh");
        // From here on the keeper removes it.
        let _ = made.keep();
        let orders = keeper.stdin.take();
        let server = Server { folder, keeper, orders };
        server.wait_until_ready(None);
        Some(server)
    }

    /// The folder that its socket is in, as `host` of an address.
    pub(crate) fn socket_folder(&self) -> &Path {
        &self.folder
    }

    /// The address of one of its databases.
    pub(crate) fn url(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://rep@{folder}/{database}")
    }

    /// Kills it and all its processes, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.order("kill");
        let mut answer = [0; 7];
        let stdout = self.keeper.stdout.as_mut().expect("it is piped");
        stdout.read_exact(&mut answer).expect("an answer");
    }

    /// Starts it again on the same data, after it was killed.
    pub(crate) fn restart(&mut self) {
        let before = self.pid_file();
        self.order("start");
        self.wait_until_ready(before.as_deref());
    }

    fn order(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("it runs");
        writeln!(orders, "{order}").and_then(|()| orders.flush()).expect("the keeper listens");
    }

    /// The file changes when a server has taken the folder, and says `ready` in the end.
    fn wait_until_ready(&self, before: Option<&str>) {
        let begun = Instant::now();
        loop {
            let now = self.pid_file();
            if now.is_some()
                && now.as_deref() != before
                && now.is_some_and(|text| text.contains("ready"))
            {
                return;
            }
            assert!(
                begun.elapsed() < START_MAX,
                "PostgreSQL did not start: {:?}",
                text_of(&self.folder.join("log"))
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn pid_file(&self) -> Option<String> {
        text_of(&self.folder.join("data/postmaster.pid"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.keeper.wait();
    }
}

fn text_of(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).and_then(|mut file| file.read_to_string(&mut text)).ok().map(|_| text)
}

/// Whoever makes a folder owns it.
fn is_root(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).expect("the folder is there").uid() == 0
}

fn as_nobody(is_root: bool, program: &Path) -> Command {
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let nobody = NOBODY.to_string();
    command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]).arg(program);
    command
}

/// A folder that `initdb` has made, from which servers begin: `initdb` takes longer than most tests, so that it runs once
/// for all test programs and for as long as the build folder is there.
fn initialised_folder(binaries: &Path, is_root: bool) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(place).expect("the build folder");
    let version = binaries.display().to_string().replace('/', "-");
    let account = if is_root { "nobody" } else { "own" };
    let ready = place.join(format!("postgres{version}-{account}"));
    if ready.is_dir() {
        return ready;
    }
    // Where `nobody` can write. It is moved as a whole, so that a folder that is there is complete.
    let made = tempfile::Builder::new().prefix("rep-initdb-").tempdir().expect("a folder");
    if is_root {
        std::os::unix::fs::chown(made.path(), Some(NOBODY), Some(NOBODY)).expect("chown");
    }
    let data = made.path().join("data");
    let mut initdb = as_nobody(is_root, &binaries.join("initdb"));
    initdb.args(["-U", "rep", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "-D"]);
    let done = initdb.arg(&data).current_dir("/").output().expect("initdb");
    assert!(done.status.success(), "initdb: {}", String::from_utf8_lossy(&done.stderr));
    let half = tempfile::Builder::new().prefix("initdb-").tempdir_in(place).expect("a folder");
    copy_folder(&data, &half.path().join("data"));
    // Another test may have been faster, whose folder is as good.
    let _ = std::fs::rename(half.path().join("data"), &ready);
    ready
}

/// Copies a folder with the owners of its files.
fn copy_folder(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).output().expect("cp");
    assert!(done.status.success(), "cp: {}", String::from_utf8_lossy(&done.stderr));
}

/// The folder of `initdb` and `postgres`: on the path, or where Debian puts them, the newest first.
#[expect(
    clippy::disallowed_methods,
    reason = "the path is about the machine, not about what is tested"
)]
fn find_binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}
