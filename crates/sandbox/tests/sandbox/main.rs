//! The sandbox against programs that want out, for every kind that this machine allows. A kind that is missing is told
//! loudly, and has to be told to users as well.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "what was not enforced or not tested is told loudly")]

mod escape;
mod place;
mod protected;

use std::time::{Duration, Instant};

use place::{Place, alive, ended, helper, names, put, said};
use repertoire_sandbox::confinement::{NetworkAccess, Sandbox, SandboxGuarantee};
use repertoire_sandbox::process::{LimitedResource, ProcessStopReason, UsageLimits};

/// Every kind that works here. None at all is no reason to pass in silence.
fn kinds() -> Vec<Sandbox> {
    let kinds = Sandbox::probe_all(&helper());
    if kinds.len() < 3 {
        println!("NOT EVERYTHING IS TESTED: only {} of 3 kinds of sandbox work here", kinds.len());
    }
    if kinds.is_empty() {
        let none = Sandbox::probe(&helper());
        println!("NOT ENFORCED: {}", none.describe());
        assert!(!none.is_enforced());
        assert!(none.degradations()[0].contains("without a sandbox"), "{none:?}");
    }
    kinds
}

#[tokio::test]
async fn nothing_gets_out() {
    for sandbox in kinds() {
        escape::all_are_stopped(&sandbox).await;
    }
}

#[tokio::test]
async fn the_same_attempts_succeed_without_a_sandbox() {
    escape::all_succeed_without().await;
}

#[tokio::test]
async fn ordinary_work_goes_on() {
    let script = "set -e
        echo text > file; mkdir -p a/b; mv file a/b/; cat a/b/file; ln -s a/b/file link; cat link
        echo t > $TMPDIR/t; echo h > $HOME/h; cat $TMPDIR/t $HOME/h > /dev/null
        echo '#!/bin/sh' > run; echo 'echo ran' >> run; chmod +x run; ./run
        seq 100000 | sort -r | tail -1; cat $READABLE/text; head -c 4 /dev/urandom | wc -c
        (sleep 0.01 & wait); perl -e 'print \"perl\\n\"'; pwd; cat <(echo substituted)";
    for sandbox in kinds() {
        let place = Place::new();
        let ended = place.run(&sandbox, NetworkAccess::Off, script).await;
        assert_eq!(ended.code, Some(0), "{}: {}", sandbox.describe(), said(&ended));
        let expect = format!(
            "text\ntext\nran\n1\n{}4\nperl\n{}\nsubstituted\n",
            place::CANARY,
            place.root.join("work")
        );
        assert_eq!(String::from_utf8_lossy(&ended.stdout.bytes), expect, "{}", sandbox.describe());
        assert_eq!(names(&place.root.join("spill/private/home")), ["h"]);
    }
}

#[tokio::test]
async fn git_works_inside() {
    if !std::path::Path::new("/usr/bin/git").exists() {
        println!("NOT TESTED: git is not installed");
        return;
    }
    let script = "set -e; rm -rf x; mkdir x; cd x; git init -q .; git config user.name A; git config user.email a@b
        echo 1 > f; git add f; git commit -qm one; git status --short; git log --oneline | wc -l";
    for sandbox in kinds() {
        let place = Place::new();
        let ended = place.run(&sandbox, NetworkAccess::Off, script).await;
        assert_eq!(ended.stdout.bytes, b"1\n", "{}: {}", sandbox.describe(), said(&ended));
    }
}

#[tokio::test]
async fn exit_codes_come_through() {
    for sandbox in kinds() {
        let place = Place::new();
        for (script, code) in [("exit 7", 7), ("kill -KILL $$", 137)] {
            let ended = place.run(&sandbox, NetworkAccess::Off, script).await;
            let told = ended.code.or(ended.signal.map(|signal| 128 + signal));
            assert_eq!(told, Some(code), "{}: {}", sandbox.describe(), said(&ended));
        }
        let mut spawn = place.spawn("");
        spawn.program = "no-such-program".to_owned();
        let spawn = sandbox.confine(spawn, &place.workplace(&sandbox), NetworkAccess::Off);
        let ended = ended(&spawn).await;
        assert_eq!(ended.code, Some(127), "{}", said(&ended));
        assert!(said(&ended).contains("`no-such-program` cannot be started"), "{}", said(&ended));
    }
}

#[tokio::test]
async fn the_network_is_there_when_allowed() {
    for sandbox in kinds() {
        let mut place = Place::new();
        let script = "exec 3<>/dev/tcp/127.0.0.1/$TCP && echo connected";
        let ended = place.run(&sandbox, NetworkAccess::On, script).await;
        assert_eq!(ended.stdout.bytes, b"connected\n", "{}: {}", sandbox.describe(), said(&ended));
        assert_eq!(place.damage(), ["a connection came"]);
    }
}

#[tokio::test]
async fn other_files_stay_closed_when_the_network_is_allowed() {
    for sandbox in kinds() {
        let mut place = Place::new();
        let script = "cat $OUT/secret && echo ESCAPED; cat /proc/$BYSTANDER/environ && echo ESCAPED
            perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack_sockaddr_un(\"$ENV{OUT}/socket\")) && print \"ESCAPED\"'";
        let ended = place.run(&sandbox, NetworkAccess::On, script).await;
        assert!(!said(&ended).contains("ESCAPED"), "{}: {}", sandbox.describe(), said(&ended));
        assert!(place.damage().is_empty());
    }
}

#[tokio::test]
async fn a_race_of_links_changes_nothing_outside() {
    let script = "mkdir inside; ln -s inside link
        perl -e 'for (1..2000) { symlink($_ % 2 ? $ENV{OUT} : \"inside\", \"new\"); rename(\"new\", \"link\"); $n++ } print \"$n swaps\\n\"' &
        for i in $(seq 400); do echo x > link/new 2>/dev/null; echo x >> link/victim 2>/dev/null; done
        wait";
    for sandbox in kinds() {
        let mut place = Place::new();
        let ended = place.run(&sandbox, NetworkAccess::Off, script).await;
        assert_eq!(ended.stdout.bytes, b"2000 swaps\n", "{}", said(&ended));
        assert!(place.damage().is_empty(), "{}: {:?}", sandbox.describe(), place.damage());
    }
}

#[tokio::test]
async fn a_daemon_does_not_survive() {
    for sandbox in kinds() {
        let place = Place::new();
        let mark = format!("daemon-{}", place.mark);
        let script =
            format!("setsid sh -c 'sleep 5; :' {mark} > /dev/null 2>&1 & sleep 0.1; echo started");
        let ended = place.run(&sandbox, NetworkAccess::Off, &script).await;
        assert_eq!(ended.stdout.bytes, b"started\n", "{}", said(&ended));
        assert_eq!(alive(&mark), 0, "{}", sandbox.describe());
    }
}

#[tokio::test]
async fn a_crowd_of_processes_ends_on_time() {
    for sandbox in kinds() {
        let place = Place::new();
        let mark = format!("crowd-{}", place.mark);
        let script = format!(
            "for i in $(seq 200); do sh -c 'trap \"\" TERM; sleep 300; :' {mark} & done; wait"
        );
        let mut spawn = place.spawn(&script);
        spawn.limits.absolute = Duration::from_secs(1);
        let spawn = sandbox.confine(spawn, &place.workplace(&sandbox), NetworkAccess::Off);
        let ended = ended(&spawn).await;
        assert_eq!(ended.stopped, Some(ProcessStopReason::Absolute), "{}", said(&ended));
        assert!(ended.duration < Duration::from_secs(6), "{:?}", ended.duration);
        assert_eq!(alive(&mark), 0, "{}", sandbox.describe());
    }
}

#[tokio::test]
async fn a_command_that_passes_a_limit_ends_with_all_that_it_started() {
    let limits = UsageLimits {
        memory_bytes_max: Some(100_000_000),
        processes_max: Some(40),
        disk_bytes_max: Some(50_000_000),
    };
    for (script, resource) in [
        ("for i in $(seq 60); do sleep 300 & done; wait", LimitedResource::Processes),
        (
            "python3 -c \"import time; kept = b'x' * 200000000; time.sleep(300)\"",
            LimitedResource::Memory,
        ),
        (
            "for i in 1 2 3; do head -c 40000000 /dev/zero > $i; done; sleep 300",
            LimitedResource::Disk,
        ),
        ("for i in 1 2 3; do head -c 40000000 /dev/zero > $i; done", LimitedResource::Disk),
        (
            "fallocate -l 120000000 big || head -c 120000000 /dev/zero > big; sleep 300",
            LimitedResource::Disk,
        ),
        (
            "python3 -c \"import signal,os,time\nsignal.signal(17, signal.SIG_IGN)\nfor i in range(12):\n if os.fork()==0:\n  open(str(i),'wb').write(bytes(10000000)); os._exit(0)\ntime.sleep(300)\"",
            LimitedResource::Disk,
        ),
    ] {
        for sandbox in kinds() {
            let place = Place::new();
            let mut workplace = place.workplace(&sandbox);
            workplace.limits.usage = limits;
            let spawn = sandbox.confine(place.spawn(script), &workplace, NetworkAccess::Off);
            let ended = ended(&spawn).await;
            let Some(ProcessStopReason::Exceeded(exceeded)) = ended.stopped else {
                panic!("{script}: {}: {:?} {}", sandbox.describe(), ended.stopped, said(&ended));
            };
            assert_eq!(exceeded.resource, resource, "{}: {exceeded}", sandbox.describe());
            assert!(ended.duration < Duration::from_secs(15), "{:?}", ended.duration);
        }
    }
}

#[tokio::test]
async fn files_that_others_write_do_not_count_for_a_command() {
    for sandbox in kinds() {
        let place = Place::new();
        if is_in_memory(&place) {
            return;
        }
        let mut workplace = place.workplace(&sandbox);
        workplace.limits.usage.disk_bytes_max = Some(50_000_000);
        let script = "touch started; while [ ! -e done ]; do sleep 0.02; done; head -c 20000000 /dev/zero > own";
        let spawn = sandbox.confine(place.spawn(script), &workplace, NetworkAccess::Off);
        let dir = workplace.dir.clone();
        let other = std::thread::spawn(move || {
            while !dir.join("started").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            repertoire_text::fs::write_atomic(&dir.join("others"), &vec![7; 100_000_000]).unwrap();
            // Long enough for the supervisor to look several times.
            std::thread::sleep(Duration::from_millis(1500));
            std::fs::File::create(dir.join("done")).unwrap();
        });
        let ended = ended(&spawn).await;
        other.join().unwrap();
        assert_eq!((ended.stopped, ended.code), (None, Some(0)), "{}", said(&ended));
    }
}

/// Whether the kernel does not count what is written to a place.
fn is_in_memory(place: &Place) -> bool {
    let dir = place.workplace(&Sandbox::None).dir;
    rustix::fs::statfs(dir.as_str()).is_ok_and(|state| state.f_type == 0x0102_1994)
}

#[tokio::test]
async fn the_limit_of_the_kernel_on_tasks_follows_the_limit_on_processes() {
    let with_namespaces = |sandbox: &Sandbox| sandbox.describe().contains("namespaces, Landlock");
    for sandbox in kinds().into_iter().filter(with_namespaces) {
        for most in [20, 2000] {
            let place = Place::new();
            let mut workplace = place.workplace(&sandbox);
            workplace.limits.usage.processes_max = Some(most);
            let spawn = sandbox.confine(place.spawn("ulimit -Hu"), &workplace, NetworkAccess::Off);
            let ended = ended(&spawn).await;
            let limit: u64 =
                String::from_utf8_lossy(&ended.stdout.bytes).trim().parse().unwrap_or(0);
            assert_eq!(limit, 4 * most + 1, "{}", said(&ended));
        }
    }
}

#[test]
fn processes_end_with_their_command_only_where_they_cannot_kill_its_supervisor() {
    for sandbox in kinds() {
        let guarantees = sandbox.guarantees();
        let ends = guarantees.contains(&SandboxGuarantee::ProcessesEndWithCommand);
        assert!(
            !ends || guarantees.contains(&SandboxGuarantee::SignalsScoped),
            "{}",
            sandbox.describe()
        );
    }
}

#[tokio::test]
async fn a_confined_program_may_tidy_up_when_asked_to_end() {
    for sandbox in kinds() {
        let place = Place::new();
        let mut spawn = place.spawn("trap 'echo tidy; exit 3' TERM; while :; do sleep 0.02; done");
        spawn.limits.absolute = Duration::from_millis(700);
        spawn.limits.grace = Duration::from_secs(5);
        let spawn = sandbox.confine(spawn, &place.workplace(&sandbox), NetworkAccess::Off);
        let ended = ended(&spawn).await;
        if matches!(sandbox, Sandbox::Bubblewrap(_)) {
            // `bwrap` dies of the signal itself, and takes everything with it.
            assert_eq!(ended.stopped, Some(ProcessStopReason::Absolute), "{}", said(&ended));
            continue;
        }
        assert_eq!(ended.code, Some(3), "{}: {}", sandbox.describe(), said(&ended));
        assert_eq!(ended.stdout.bytes, b"tidy\n");
    }
}

#[tokio::test]
async fn a_file_that_was_left_open_is_no_door() {
    for sandbox in kinds() {
        let mut place = Place::new();
        let script = "echo x >&9 && echo ESCAPED; cat <&8 && echo ESCAPED";
        let spawn =
            sandbox.confine(place.spawn(script), &place.workplace(&sandbox), NetworkAccess::Off);
        let mut wrapped = place.spawn("exec 9>>$OUT/victim 8<$OUT/secret; exec \"$0\" \"$@\"");
        wrapped.args.push(spawn.program.clone());
        wrapped.args.extend(spawn.args.clone());
        wrapped.environment.extend(spawn.environment.clone());
        let ended = ended(&wrapped).await;
        assert!(!said(&ended).contains("ESCAPED"), "{}: {}", sandbox.describe(), said(&ended));
        assert!(place.damage().is_empty(), "{}", sandbox.describe());
    }
}

#[test]
fn without_a_helper_there_is_no_sandbox_and_it_says_so() {
    let sandbox = Sandbox::probe(&["/no/such/helper".to_owned()]);
    assert!(!sandbox.is_enforced());
    assert!(sandbox.describe().starts_with("no sandbox: "), "{}", sandbox.describe());
    assert!(sandbox.degradations()[0].contains("`/no/such/helper` cannot be started"));
    let relative = Sandbox::probe(&["helper".to_owned()]);
    assert!(relative.describe().contains("not absolute"), "{}", relative.describe());
    assert!(Sandbox::None.degradations()[0].contains("switched off"));
}

#[tokio::test]
async fn a_wall_that_cannot_go_up_keeps_the_program_from_starting() {
    let place = Place::new();
    for policy in ["{}", "nonsense", r#"{"walls":"All"}"#] {
        let mut spawn = place.spawn("");
        spawn.program = helper().remove(0);
        spawn.args = ["--", "sh", "-c", "echo ESCAPED"].map(str::to_owned).to_vec();
        spawn.environment.push(("REPERTOIRE_SANDBOX_POLICY".to_owned(), policy.to_owned()));
        let ended = ended(&spawn).await;
        assert_eq!(ended.code, Some(126));
        assert!(!said(&ended).contains("ESCAPED"));
        assert!(said(&ended).contains("sandbox: policy: "), "{}", said(&ended));
    }
}

#[tokio::test]
async fn the_price_of_a_sandbox_is_small() {
    let place = Place::new();
    put(&place.root.join("work/.git/info/exclude"), "");
    let mut all = vec![Sandbox::None];
    all.extend(kinds());
    for sandbox in all {
        let mut times = Vec::new();
        for _ in 0..20 {
            let mut spawn = place.spawn("");
            spawn.program = "true".to_owned();
            spawn.args.clear();
            let spawn = sandbox.confine(spawn, &place.workplace(&sandbox), NetworkAccess::Off);
            let start = Instant::now();
            assert_eq!(ended(&spawn).await.code, Some(0));
            times.push(start.elapsed());
        }
        times.sort();
        println!("{}: {:?} for `true`", sandbox.describe(), times[10]);
        // A busy machine and an unoptimised helper cost tenfold; a second is a fault.
        assert!(times[10] < Duration::from_secs(1), "{}", sandbox.describe());
    }
}

/// The loader of every process reads `LD_PRELOAD`: none of them may be outside the walls.
#[tokio::test]
async fn variables_of_a_program_reach_no_process_outside_the_walls() {
    for sandbox in kinds() {
        let place = Place::new();
        let mut spawn = place.spawn("echo $LD_PRELOAD-$MARK");
        spawn.environment.push(("LD_PRELOAD".to_owned(), "./evil.so".to_owned()));
        let confined = sandbox.confine(spawn, &place.workplace(&sandbox), NetworkAccess::Off);
        let names: Vec<&str> = confined.environment.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["REPERTOIRE_SANDBOX_POLICY"], "{}", sandbox.describe());
        assert!(!confined.args.iter().any(|arg| arg.contains("evil.so")), "{:?}", confined.args);
        let ended = ended(&confined).await;
        let expect = format!("./evil.so-{}\n", place.mark);
        assert_eq!(String::from_utf8_lossy(&ended.stdout.bytes), expect, "{}", said(&ended));
    }
}

#[tokio::test]
async fn variables_of_a_program_widen_nothing() {
    for sandbox in kinds() {
        let place = Place::new();
        let home = place.root.join("home");
        for name in
            ["HOME", "PATH", "RUSTUP_HOME", "CARGO_HOME", "NVM_DIR", "JAVA_HOME", "VIRTUAL_ENV"]
        {
            let mut spawn = place.spawn(
                "/bin/cat $REAL_HOME/.ssh/id $REAL_HOME/.cargo/credentials.toml $OUT/secret",
            );
            spawn.program = "/bin/bash".to_owned();
            for folder in [home.join(".ssh"), home.clone(), place.root.join("outside")] {
                spawn.environment.retain(|(other, _)| other != name);
                spawn.environment.push((name.to_owned(), folder.to_string()));
                let confined =
                    sandbox.confine(spawn.clone(), &place.workplace(&sandbox), NetworkAccess::Off);
                let ended = ended(&confined).await;
                assert!(
                    !said(&ended).contains(place::CANARY),
                    "{} {name}={folder}: {}",
                    sandbox.describe(),
                    said(&ended)
                );
            }
        }
    }
}

/// `require` refuses by this table, so it must not claim what the attempts disprove.
#[test]
fn each_kind_says_which_guarantees_it_gives() {
    for sandbox in kinds() {
        let held = sandbox.guarantees();
        let missing = SandboxGuarantee::missing_in(&held);
        let lacks = sandbox.degradations().join("\n");
        println!("{}: lacks {missing:?}", sandbox.describe());
        assert!(held.contains(&SandboxGuarantee::FilesConfined), "{missing:?}");
        assert!(held.contains(&SandboxGuarantee::NetworkOff), "{missing:?}");
        assert!(held.contains(&SandboxGuarantee::NoSetuidFiles), "{missing:?}");
        assert!(held.contains(&SandboxGuarantee::UnixSocketsClosed), "{missing:?}");
        assert!(missing.iter().all(|guarantee| lacks.contains(guarantee.name())), "{lacks}");
        let has_namespaces = sandbox.describe().contains("namespaces");
        assert_eq!(sandbox.protects_paths(), has_namespaces, "{}", sandbox.describe());
        assert_eq!(held.contains(&SandboxGuarantee::MetadataConfined), has_namespaces);
    }
    assert!(Sandbox::None.guarantees().is_empty());
}

/// The kernel keeps these objects for a user, not for a process.
#[tokio::test]
async fn shared_memory_of_other_processes_is_out_of_reach() {
    let made = std::process::Command::new("ipcmk").args(["-M", "64"]).output();
    let Ok(made) = made else {
        println!("NOT TESTED: ipcmk is not installed");
        return;
    };
    let id =
        String::from_utf8_lossy(&made.stdout).trim().rsplit(' ').next().unwrap_or("").to_owned();
    let script = format!("ipcrm -m {id} && echo ESCAPED");
    for sandbox in kinds() {
        let place = Place::new();
        let ended = place.run(&sandbox, NetworkAccess::Off, &script).await;
        assert!(!said(&ended).contains("ESCAPED"), "{}: {}", sandbox.describe(), said(&ended));
    }
    let removed = std::process::Command::new("ipcrm").args(["-m", &id]).status().expect("starts");
    assert!(removed.success(), "it was there all the time");
}
