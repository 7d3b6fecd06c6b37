//! Hostile input: every bomb and every trap stands as one skill among good ones, and is discovered as any
//! other. It may cost little, it must be named, and the good skills must not notice.
//!
//! `REPERTOIRE_LONG=1` makes the large trees as large as they are promised to be survived.

use std::io::Write;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::discover::{DiscoveryRequest, discover_catalog};
use repertoire_skill::profile::{ProfileId, Root, SearchDirectories};

use crate::meter::{Cost, measure_best};

mod bombs;
#[cfg(target_os = "linux")]
mod resources;
#[cfg(target_os = "linux")]
mod traps;

use bombs::{Bomb, Expect};

const CPU_MAX: Duration = Duration::from_millis(10);
/// For roots that are larger than what is looked at, where reading up to the limit is the cost.
const CPU_TREE_MAX: Duration = Duration::from_millis(250);
const BYTES_MAX: usize = 16_000_000;

const GOOD: &[&str] = &["good-a", "good-b", "good-c", "zz-good"];

/// A project with a root of good skills, in a temporary folder.
struct Room {
    _keep: tempfile::TempDir,
    top: Utf8PathBuf,
}

impl Room {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let top = Utf8PathBuf::from_path_buf(keep.path().canonicalize().unwrap()).unwrap();
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(top.join("project/.git").join(folder)).unwrap();
        }
        put(&top.join("project/.git/HEAD"), "ref: refs/heads/main\n");
        let room = Room { _keep: keep, top };
        for name in GOOD {
            put(&room.root().join(name).join("SKILL.md"), skill_text(name));
        }
        room
    }

    fn project(&self) -> Utf8PathBuf {
        self.top.join("project")
    }

    fn home(&self) -> Utf8PathBuf {
        self.top.join("home")
    }

    /// The root that the good skills are in.
    fn root(&self) -> Utf8PathBuf {
        self.project().join(".claude/skills")
    }

    /// The folder of the skill that is a trap; it comes before the good ones in every order.
    fn trap(&self) -> Utf8PathBuf {
        self.root().join("a-trap")
    }

    /// What is nobody's business in here.
    fn outside(&self) -> Utf8PathBuf {
        self.top.join("outside")
    }

    fn request(&self, profile: ProfileId) -> DiscoveryRequest {
        let (here, home, pack) = (self.project(), self.home(), self.top.join("pack"));
        let places = SearchDirectories { here, home, pack };
        DiscoveryRequest { sync_pack: false, ..DiscoveryRequest::new(profile, places) }
    }

    /// The same root, but named by the user, so that links may leave it.
    fn request_extra(&self) -> DiscoveryRequest {
        let roots = Some(vec![Root::named_by_user(self.root())]);
        DiscoveryRequest { roots, ..self.request(ProfileId::Repertoire) }
    }
}

fn skill_text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}. Use when testing.\n---\nBody.\n")
}

fn put(path: &Utf8Path, contents: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(path).unwrap().write_all(contents.as_ref()).unwrap();
}

/// Whether large trees are made in full.
fn is_long() -> bool {
    std::env::vars_os().any(|(key, value)| key == "REPERTOIRE_LONG" && value == "1")
}

/// What is wrong with the cost of a case, if anything.
fn over_budget(cost: Cost, cpu_max: Duration) -> Option<String> {
    let over = cost.cpu > cpu_max || cost.bytes_peak > BYTES_MAX;
    over.then(|| format!("cost {:?} and {} bytes", cost.cpu, cost.bytes_peak))
}

/// Names in the catalog that are not the good ones; a good one that is missing is an error.
fn others(catalog: &Catalog) -> Result<Vec<String>, String> {
    let names: Vec<&str> = catalog.entries().iter().map(|entry| entry.id.as_str()).collect();
    match GOOD.iter().find(|good| !names.contains(good)) {
        Some(good) => Err(format!("lost {good}")),
        None => {
            Ok(names.iter().filter(|n| !GOOD.contains(n)).map(|name| (*name).to_owned()).collect())
        }
    }
}

/// Whether a finding of this code has these words.
fn finding(catalog: &Catalog, code: &str, words: &str) -> Result<(), String> {
    let found = catalog.diagnostics();
    let named = found.iter().any(|found| {
        let help = found.help.as_deref().unwrap_or("");
        found.code.id == code && (found.message.contains(words) || help.contains(words))
    });
    let shown = || -> Vec<String> {
        let short = |text: &str| text.chars().take(160).collect::<String>();
        found.iter().take(4).map(|f| format!("{} {}", f.code.id, short(&f.message))).collect()
    };
    if named { Ok(()) } else { Err(format!("no {code} with `{words}` in {:?}", shown())) }
}

/// The findings of a whole run: every case that broke its promise, and the worst costs.
#[derive(Default)]
struct Verdict {
    cases: usize,
    broken: Vec<String>,
    costs: Vec<(&'static str, Cost)>,
}

impl Verdict {
    fn case(
        &mut self,
        name: &'static str,
        cost: Cost,
        cpu_max: Duration,
        shape: Result<(), String>,
    ) {
        self.cases += 1;
        self.costs.push((name, cost));
        let over = over_budget(cost, cpu_max);
        let wrong = shape.err().into_iter().chain(over);
        self.broken.extend(wrong.map(|what| format!("{name}: {what}")));
    }

    #[track_caller]
    fn finish(mut self, cases_min: usize) {
        self.costs.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.cpu));
        println!("{} cases; slowest: {:#?}", self.cases, &self.costs[..self.costs.len().min(12)]);
        self.costs.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.bytes_peak));
        println!("largest: {:#?}", &self.costs[..self.costs.len().min(12)]);
        assert!(self.cases >= cases_min, "only {} cases", self.cases);
        assert!(
            self.broken.is_empty(),
            "{} broken:\n{}",
            self.broken.len(),
            self.broken.join("\n")
        );
    }
}

fn check_bomb(catalog: &Catalog, expect: Expect) -> Result<(), String> {
    let others = others(catalog)?;
    match expect {
        Expect::Refused(code, words) if others.is_empty() => {
            finding(catalog, code, words)?;
            let broken = catalog.broken();
            if broken.len() == 1 { Ok(()) } else { Err(format!("{} are broken", broken.len())) }
        }
        Expect::Refused(..) => Err(format!("loaded as {others:.60?}")),
        Expect::Loads(..) | Expect::Fine if others.len() != 1 => {
            Err(format!("not loaded: {:?}", catalog.broken().first().map(|b| &b.reason.message)))
        }
        Expect::Loads(code, words) => finding(catalog, code, words),
        Expect::Fine => {
            let wrong = catalog.diagnostics().iter().find(|found| found.code.id != "RS301");
            wrong.map_or(Ok(()), |found| Err(format!("unexpected: {}", found.message)))
        }
    }
}

#[test]
fn every_bomb_is_cheap_and_named_and_hurts_no_other_skill() {
    let room = Room::new();
    let file = room.trap().join("SKILL.md");
    let mut verdict = Verdict::default();
    for Bomb { name, text, expect } in bombs::all() {
        put(&file, text);
        let request = room.request(ProfileId::Repertoire);
        let (catalog, cost) = measure_best(|| discover_catalog(&request));
        verdict.case(name, cost, CPU_MAX, check_bomb(&catalog, expect));
    }
    verdict.finish(42);
}
