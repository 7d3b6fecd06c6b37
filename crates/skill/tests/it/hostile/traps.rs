//! Traps on disk: files that are none, links that lead astray, trees without an end.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// One trap: how it is laid, and what must become of it.
#[derive(Clone)]
struct Trap {
    name: &'static str,
    lay: fn(&Room),
    request: fn(&Room) -> DiscoveryRequest,
    finding: Option<(&'static str, &'static str)>,
    loads: Others,
    cpu_max: Duration,
}

/// What is loaded besides the good skills.
#[derive(Clone, Copy, Debug)]
enum Others {
    Names(&'static [&'static str]),
    Count(usize),
}

impl Others {
    fn are(self, names: &[String]) -> bool {
        match self {
            Others::Names(expected) => names == expected,
            Others::Count(expected) => names.len() == expected,
        }
    }
}

fn trap(name: &'static str, lay: fn(&Room)) -> Trap {
    let request = |room: &Room| room.request(ProfileId::Repertoire);
    Trap { name, lay, request, finding: None, loads: Others::Names(&[]), cpu_max: CPU_MAX }
}

impl Trap {
    fn finding(self, code: &'static str, words: &'static str) -> Self {
        Trap { finding: Some((code, words)), ..self }
    }

    fn loads(self, names: &'static [&'static str]) -> Self {
        Trap { loads: Others::Names(names), ..self }
    }

    fn loads_count(self, count: usize) -> Self {
        Trap { loads: Others::Count(count), ..self }
    }

    fn request(self, request: fn(&Room) -> DiscoveryRequest) -> Self {
        Trap { request, ..self }
    }

    /// In a root that the user named, where links may lead anywhere.
    fn extra(self) -> Self {
        self.request(Room::request_extra)
    }

    fn tree(self) -> Self {
        Trap { cpu_max: CPU_TREE_MAX, ..self }
    }

    fn check(&self, catalog: &Catalog) -> Result<(), String> {
        let others = others(catalog)?;
        if !self.loads.are(&others) {
            return Err(format!("loaded {others:?}, not {:?}", self.loads));
        }
        match self.finding {
            Some((code, words)) => finding(catalog, code, words),
            None => match catalog.diagnostics().first() {
                None => Ok(()),
                Some(found) => Err(format!("unexpected: {found:?}")),
            },
        }
    }
}

fn link(to: impl AsRef<Utf8Path>, at: impl AsRef<Utf8Path>) {
    std::fs::create_dir_all(at.as_ref().parent().unwrap()).unwrap();
    symlink(to.as_ref(), at.as_ref()).unwrap();
}

fn pipe(at: &Utf8Path) {
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, at.as_std_path(), kind, mode, 0).unwrap();
}

fn forbid(path: &Utf8Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
}

/// Root reads everything, so what is forbidden to others is a good skill to it.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn folder_of_bytes(room: &Room, name: &[u8]) {
    let dir = room.root().into_std_path_buf().join(std::ffi::OsStr::from_bytes(name));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::hard_link(room.root().join("good-a/SKILL.md"), dir.join("SKILL.md")).unwrap();
}

fn files_that_are_none() -> Vec<Trap> {
    vec![
        trap("SKILL.md of 1 GiB", |room| {
            put(&room.trap().join("SKILL.md"), "---\n");
            File::options()
                .write(true)
                .open(room.trap().join("SKILL.md"))
                .and_then(|file| file.set_len(1 << 30))
                .unwrap();
        })
        .finding("RS001", "1073741824 bytes; the limit is 2097152"),
        trap("one byte over the limit", |room| {
            let body = "x".repeat(2 * 1024 * 1024 + 1 - skill_text("a-trap").len());
            put(&room.trap().join("SKILL.md"), skill_text("a-trap") + &body);
        })
        .finding("RS001", "2097153 bytes; the limit is 2097152"),
        trap("exactly the limit, on one line", |room| {
            let body = "x ".repeat(1024 * 1024 - skill_text("a-trap").len());
            put(&room.trap().join("SKILL.md"), skill_text("a-trap") + &body);
        })
        .loads(&["a-trap"]),
        trap("a named pipe", |room| pipe(&room.trap().join("SKILL.md")))
            .finding("RS002", "a named pipe"),
        trap("a named pipe as a flat skill", |room| pipe(&room.root().join("a.md")))
            .finding("RS002", "a named pipe"),
        trap("a link to a named pipe", |room| {
            pipe(&room.trap().join("pipe"));
            link("pipe", room.trap().join("SKILL.md"));
        })
        .finding("RS002", "a named pipe"),
        trap("a socket", |room| {
            std::fs::create_dir_all(room.trap()).unwrap();
            // The name of a socket must be short, so it is made elsewhere and moved.
            let short = tempfile::Builder::new().prefix("s").tempdir_in("/tmp").unwrap();
            let made = short.path().join("s");
            drop(std::os::unix::net::UnixListener::bind(&made).unwrap());
            std::fs::rename(made, room.trap().join("SKILL.md")).unwrap();
        })
        .finding("RS002", "a socket"),
        trap("a link to /dev/zero", |room| link("/dev/zero", room.trap().join("SKILL.md")))
            .finding("RS006", "out of the project"),
        trap("a link to /dev/zero that may be followed", |room| {
            link("/dev/zero", room.trap().join("SKILL.md"));
        })
        .extra()
        .finding("RS002", "a device"),
        trap("a link to /dev/tty that may be followed", |room| {
            link("/dev/tty", room.trap().join("SKILL.md"));
        })
        .extra()
        .finding("RS002", "a device"),
        trap("a link to /dev/stdin that may be followed", |room| {
            pipe(&room.outside().with_file_name("pipe"));
            link(room.outside().with_file_name("pipe"), room.trap().join("SKILL.md"));
        })
        .extra()
        .finding("RS002", "a named pipe"),
        trap("a file without an end in /proc", |room| {
            link("/proc/self/mem", room.trap().join("SKILL.md"));
        })
        .extra()
        .finding("RS003", ""),
        trap("SKILL.md is a folder", |room| {
            std::fs::create_dir_all(room.trap().join("SKILL.md/deeper")).unwrap();
        })
        .finding("RS002", "a folder"),
        trap("SKILL.md and skill.md", |room| {
            put(&room.trap().join("SKILL.md"), skill_text("a-trap"));
            put(&room.trap().join("skill.md"), skill_text("other"));
        })
        .finding("RS304", "`skill.md` is passed over")
        .loads(&["a-trap"]),
        trap("an empty file", |room| put(&room.trap().join("SKILL.md"), ""))
            .finding("RS010", "`---`"),
        trap("only a byte order mark", |room| put(&room.trap().join("SKILL.md"), "\u{feff}"))
            .finding("RS005", "byte order mark"),
        trap("bytes that are not UTF-8 behind 2 MB of text", |room| {
            let mut text = skill_text("a-trap").into_bytes();
            text.resize(2_000_000, b'x');
            text.push(0xff);
            put(&room.trap().join("SKILL.md"), text);
        })
        .finding("RS004", "byte 2000000"),
        trap("a second name of a good file", |room| {
            std::fs::create_dir_all(room.trap()).unwrap();
            let good = room.root().join("good-a/SKILL.md");
            std::fs::hard_link(good, room.trap().join("SKILL.md")).unwrap();
        })
        .finding("RS304", "copy of the one in"),
        trap("a body without a paragraph's end and no description", |room| {
            put(&room.trap().join("SKILL.md"), "a ".repeat(1_000_000));
        })
        .request(|room| room.request(ProfileId::Claude))
        .finding("RS100", "no `name`")
        .loads(&["a-trap"]),
    ]
}

fn links() -> Vec<Trap> {
    let leads_out = ("RS006", "broken, circular or leads out");
    let led_out = |name, lay| trap(name, lay).finding(leads_out.0, leads_out.1);
    vec![
        led_out("a link to itself", |room| link("a-trap", room.trap())),
        led_out("SKILL.md is a link to itself", |room| {
            link("SKILL.md", room.trap().join("SKILL.md"))
        }),
        led_out("two links in a circle", |room| {
            link("b-trap", room.trap());
            link("a-trap", room.root().join("b-trap"));
        }),
        trap("two folders with links to each other", |room| {
            link("../b-trap", room.trap().join("b"));
            link("../a-trap", room.root().join("b-trap/a"));
        }),
        led_out("a link to the folder above", |room| link("..", room.trap())),
        led_out("a link to the root of the disk", |room| link("/", room.trap())),
        led_out("a link to the root of the disk that may be followed", |room| {
            link("/", room.trap())
        })
        .extra(),
        led_out("a link to nowhere", |room| link("gone", room.trap())),
        led_out("SKILL.md is a link to nowhere", |room| link("gone", room.trap().join("SKILL.md"))),
        led_out("SKILL.md is a link out of the project", |room| {
            put(&room.outside().join("SKILL.md"), skill_text("stolen"));
            link(room.outside().join("SKILL.md"), room.trap().join("SKILL.md"));
        }),
        led_out("a folder is a link out of the project", |room| {
            put(&room.outside().join("SKILL.md"), skill_text("stolen"));
            link("../../../outside", room.trap());
        }),
        led_out("a link out behind a link that stays", |room| {
            put(&room.outside().join("SKILL.md"), skill_text("stolen"));
            link(room.outside(), room.project().join("hop"));
            link("../../hop", room.trap());
        }),
        led_out("a flat skill is a link out of the project", |room| {
            put(&room.outside().join("a.md"), skill_text("stolen"));
            link(room.outside().join("a.md"), room.root().join("a.md"));
        }),
        led_out("a link to a folder with links", |room| {
            put(&room.project().join("lib/x/SKILL.md"), skill_text("x"));
            link(room.outside(), room.project().join("lib/y"));
            std::fs::create_dir_all(room.outside()).unwrap();
            link("../../lib", room.trap());
        })
        .loads(&["x"]),
        trap("1,000 links to one folder", |room| {
            put(&room.project().join("lib/SKILL.md"), skill_text("lib"));
            for number in 0..1_000 {
                link("../../lib", room.root().join(format!("a-{number:04}")));
            }
        })
        .finding("RS319", "999 more links")
        .loads(&["lib"]),
        trap("1,000 links out of the project", |room| {
            std::fs::create_dir_all(room.outside()).unwrap();
            for number in 0..1_000 {
                link("../../../outside", room.root().join(format!("a-{number:04}")));
            }
        })
        .finding("RS006", "and 999 more"),
        trap("a chain of 100 links", |room| {
            for number in 0..100 {
                link(format!("l{}", number + 1), room.root().join(format!("l{number}")));
            }
        })
        .finding(leads_out.0, leads_out.1),
        trap("the root is a link out of the project", |room| {
            put(&room.outside().join("x/SKILL.md"), skill_text("stolen"));
            link(room.outside(), room.project().join(".agents/skills"));
        })
        .finding("RS006", "leads out of the project"),
        trap("the root is a link to itself", |room| {
            link("skills", room.project().join(".agents/skills"));
        })
        .finding("RS006", "broken or circular"),
        trap("the root is a link to the project", |room| {
            link("..", room.project().join(".agents/skills"));
        })
        .finding("RS304", "copy of the one in"),
    ]
}

fn names() -> Vec<Trap> {
    let refused = |name, lay, words| trap(name, lay).finding("RS312", words);
    vec![
        refused("a line break in a name", |room| folder_of_bytes(room, b"a\nb"), "`a\\nb`"),
        refused(
            "an escape in a name",
            |room| folder_of_bytes(room, b"a\x1b[2Jb"),
            "`a⟨U+001B⟩[2Jb`",
        ),
        refused(
            "a name that reads backwards",
            |room| folder_of_bytes(room, "a\u{202e}dm".as_bytes()),
            "`a⟨U+202E⟩dm`",
        ),
        refused(
            "a name with characters that cannot be seen",
            |room| folder_of_bytes(room, "a\u{200b}\u{e0041}".as_bytes()),
            "⟨U+200B⟩",
        ),
        refused("a name that is not UTF-8", |room| folder_of_bytes(room, b"a\xff"), "`a\u{fffd}`"),
        refused(
            "a name that is neither UTF-8 nor harmless",
            |room| folder_of_bytes(room, b"a\xff\x1b[2J"),
            "`a\u{fffd}⟨U+001B⟩[2J`",
        ),
        trap("a folder called ..foo", |room| {
            put(&room.root().join("..foo/SKILL.md"), skill_text("dots"));
        })
        .loads(&["dots"]),
        trap("a name that climbs", |room| {
            put(&room.trap().join("SKILL.md"), skill_text("../../etc/passwd"));
        })
        .loads(&["etc-passwd"]),
        trap("a name of nothing but dots", |room| {
            put(&room.trap().join("SKILL.md"), skill_text("'..'"));
        })
        .finding("RS100", "no `name`; `a-trap` is used")
        .loads(&["a-trap"]),
        trap("the name of a good skill", |room| {
            put(&room.root().join("zzz/SKILL.md"), skill_text("Good A"));
        })
        .finding("RS304", "shadowed"),
        trap("a name of 255 bytes", |room| {
            put(&room.root().join("n".repeat(255)).join("SKILL.md"), skill_text("long"));
        })
        .loads(&["long"]),
    ]
}

fn forbidden() -> Vec<Trap> {
    let for_root: &'static [&'static str] = if is_root() { &["a-trap"] } else { &[] };
    let finding = |trap: Trap| match is_root() {
        true => trap.loads(for_root),
        false => trap.finding("RS003", "ermission denied"),
    };
    vec![
        finding(trap("a file that may not be read", |room| {
            put(&room.trap().join("SKILL.md"), skill_text("a-trap"));
            forbid(&room.trap().join("SKILL.md"));
        })),
        finding(trap("a folder that may not be read", |room| {
            put(&room.trap().join("SKILL.md"), skill_text("a-trap"));
            forbid(&room.trap());
        })),
    ]
}

/// A tenth, unless the trees are to be as large as promised; the limit shrinks with them.
fn scaled(count: usize) -> usize {
    if is_long() { count } else { count / 10 }
}

fn fill(dir: &Utf8Path, count: usize, ending: &str) {
    std::fs::create_dir_all(dir).unwrap();
    (0..count).for_each(|n| drop(File::create(dir.join(format!("f{n}{ending}"))).unwrap()));
}

fn trees() -> Vec<Trap> {
    let entries = ("RS311", "0 entries, the limit");
    let large = |name, lay| trap(name, lay).finding(entries.0, entries.1).tree();
    vec![
        trap("folders 1,000 deep", |room| {
            let deep = "d/".repeat(1_000);
            std::fs::create_dir_all(room.trap().join(deep)).unwrap();
        })
        .finding("RS310", "deeper than 6 levels, the limit"),
        large("a folder of 100,000 files", |room| fill(&room.trap(), scaled(100_000), "")),
        large("a folder of 100,000 flat skills", |room| fill(&room.trap(), scaled(100_000), ".md")),
        large("a tree of 100,000 files", |room| {
            for number in 0..100 {
                fill(&room.trap().join(format!("{number}")), scaled(1_000), "");
            }
        }),
        large("a skill with 100,000 files", |room| {
            put(&room.trap().join("SKILL.md"), skill_text("a-trap"));
            fill(&room.trap().join("x"), scaled(100_000), "");
        })
        .loads(&["a-trap"]),
        large("20,001 files in the root itself", |room| fill(&room.root(), scaled(20_010), "")),
        large("20,001 folders in the root itself, after the good ones", |room| {
            for number in 0..scaled(20_010) {
                std::fs::create_dir(room.root().join(format!("zzz{number}"))).unwrap();
            }
        }),
        trap("200 skills that all need each other", |room| {
            let all: Vec<String> = (0..200).map(|n| format!("s{n}")).collect();
            let needs = all[..100].join(",");
            for name in &all {
                let text =
                    format!("---\nname: {name}\ndescription: d\ndependencies: {needs}\n---\n");
                put(&room.root().join("a").join(name).join("SKILL.md"), text);
            }
        })
        .finding("RS303", "more circles")
        .tree()
        .loads_count(200),
    ]
}

fn plugins() -> Vec<Trap> {
    fn cache(room: &Room) -> Utf8PathBuf {
        room.home().join(".claude/plugins/cache")
    }
    vec![
        trap("a plugin with a link out of itself", |room| {
            let skills = cache(room).join("m/tool/1.0.0/skills");
            put(&skills.join("fine/SKILL.md"), skill_text("fine"));
            put(&room.outside().join("SKILL.md"), skill_text("stolen"));
            link(room.outside(), skills.join("x"));
        })
        .finding("RS006", "leads out")
        .loads(&["tool:fine"]),
        trap("a plugin whose skills are a link", |room| {
            put(&room.outside().join("x/SKILL.md"), skill_text("stolen"));
            link(room.outside(), cache(room).join("m/tool/1.0.0/skills"));
        })
        .finding("RS006", "leads out"),
        trap("a plugin with a line break in its name", |room| {
            put(&cache(room).join("m/to\nol/1.0.0/skills/x/SKILL.md"), skill_text("x"));
        })
        .finding("RS312", "control characters"),
        trap("a plugin with a version beyond all numbers", |room| {
            let tool = cache(room).join("m/tool");
            put(&tool.join("1.2.3/skills/x/SKILL.md"), skill_text("x"));
            let huge = "9".repeat(60);
            put(&tool.join(format!("{huge}.0.0/skills/y/SKILL.md")), skill_text("y"));
        })
        .loads(&["tool:x"]),
        trap("a cache in a circle", |room| link("cache", cache(room))),
        trap("a cache of more entries than are looked at", |room| {
            put(&cache(room).join("m/tool/1.0.0/skills/x/SKILL.md"), skill_text("x"));
            fill(&cache(room).join("m/tool/1.0.0"), 20_001, "");
        })
        .finding("RS311", "more than 20000 entries, the limit")
        .tree(),
    ]
}

fn spring(verdict: &mut Verdict, trap: &Trap) {
    let room = Room::new();
    (trap.lay)(&room);
    let mut request = (trap.request)(&room);
    request.limits.walk.entries_max = scaled(20_000);
    let (catalog, cost) = measure_best(|| discover_catalog(&request));
    verdict.case(trap.name, cost, trap.cpu_max, trap.check(&catalog));
    // So that the room can be cleared again.
    let _ = std::fs::set_permissions(room.trap(), std::fs::Permissions::from_mode(0o755));
}

#[test]
fn every_trap_is_cheap_and_named_and_hurts_no_other_skill() {
    let mut verdict = Verdict::default();
    for trap in [files_that_are_none(), links(), names(), forbidden(), trees(), plugins()].concat()
    {
        spring(&mut verdict, &trap);
    }
    verdict.finish(32);
}

#[test]
fn a_file_that_grows_while_it_is_read_is_cut_off_at_the_limit() {
    let room = Room::new();
    let file = room.trap().join("SKILL.md");
    put(&file, skill_text("a-trap"));
    let grow = || {
        let mut file = File::options().append(true).open(&file).unwrap();
        (0..64).for_each(|_| file.write_all(&[b'x'; 64 * 1024]).unwrap());
    };
    std::thread::scope(|scope| {
        let growing = scope.spawn(grow);
        while !growing.is_finished() {
            let catalog = discover_catalog(&room.request(ProfileId::Repertoire));
            others(&catalog).unwrap();
        }
    });
    let catalog = discover_catalog(&room.request(ProfileId::Repertoire));
    finding(&catalog, "RS001", "the limit is 2097152").unwrap();
}
