//! Processes that outlive their command, and commands that use up the machine.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::scene::{Scene, processes_with, stays_as_it_is, until};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    let everywhere = |holds, attack| Guarantee { holds, tried: Tried::InEverySituation, attack };
    // They use up the machine, or are measured by the whole of it, so nothing else should run beside them.
    let alone = |holds, attack| Guarantee { holds, tried: Tried::InFullForm, attack };
    let once = |holds, attack| Guarantee { holds, tried: Tried::Once, attack };
    vec![
        everywhere("a double-forked process ends with its command", double_fork),
        everywhere("a double-forked process does not write .git/hooks later", late_hook),
        everywhere("nothing runs on after kill -9 of rep", killed_rep),
        everywhere(
            "a double-forked process that /proc hides ends with its command",
            hidden_double_fork,
        ),
        everywhere("protected paths are put right after kill -9 of rep", killed_rep_is_put_right),
        once("a double-forked process ends with its command without a sandbox", double_fork_off),
        once("killing the supervisor from inside gains nothing", killed_supervisor),
        everywhere("many processes end the command", many_processes),
        alone("a fork bomb ends the command and hurts nothing else", fork_bomb),
        everywhere("memory of several processes together ends the command", memory_in_pieces),
        everywhere("memory behind a descriptor ends the command", memory_behind_a_descriptor),
        alone("memory in socket buffers ends the command", memory_in_sockets),
        alone("page tables end the command", memory_in_page_tables),
        alone("memory that is mapped in part ends the command", memory_mapped_in_part),
        alone("memory of a process that cannot be looked at ends the command", hidden_memory),
        alone(
            "memory of a process whose first thread has ended ends the command",
            memory_without_a_first_thread,
        ),
        everywhere("many small files end the command", many_files),
        everywhere("a file without a name ends the command", nameless_file),
        alone("a file that is only mapped ends the command", mapped_file),
        alone("a file that waits in a socket ends the command", passed_file),
        everywhere("files written just before the end count", files_at_the_end),
        alone("a command is not stopped for files of others", files_of_others),
        alone("3 GB of memory end the command by default", three_gigabytes_of_memory),
        alone("3 GB of disk end the command by default", three_gigabytes_of_disk),
    ]
}

/// Leaves the session and the process group, forgets the environment, ignores signals, and writes a line every 20 ms.
const DAEMON: &str = "setsid env -i sh -c '(trap \"\" TERM INT HUP; while :; do echo x >> \"$0\"; \
                      sleep 0.02; done) &' \"$PWD/alive\" > /dev/null 2>&1 & \
                      while [ ! -e alive ]; do sleep 0.01; done";

fn check(scene: &Scene, script: &str) -> Command {
    scene.rep_command(&["verify", "--check", script])
}

fn said(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    let said = format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    (output.status.code().unwrap_or(-1), said)
}

fn nothing_is_left(scene: &Scene) {
    let token = scene.path("project/alive");
    let gone = || processes_with(token.as_str()).is_empty();
    assert!(until(Duration::from_secs(1), gone), "alive: {:?}", processes_with(token.as_str()));
    assert!(stays_as_it_is(&token, Duration::from_millis(200)), "it writes on");
}

fn double_fork(scene: &Scene) {
    let (_, said) = said(&mut check(scene, DAEMON));
    assert!(scene.exists("project/alive"), "the attack did not start: {said}");
    nothing_is_left(scene);
}

/// Leaves the session, cannot be looked at any more, and writes a line every 20 ms.
const HIDDEN_DAEMON: &str = "python3 -c \"
import os, time, ctypes
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        for fd in (0, 1, 2): os.close(fd)
        for i in range(1000):
            open('alive', 'a').write('x'); time.sleep(0.02)
    os._exit(0)
\"; while [ ! -e alive ]; do sleep 0.01; done";

/// Only root can mount `/proc` with `hidepid`, and only other accounts are hidden from by it.
fn hidden_double_fork(scene: &Scene) {
    let Some(id) = scene.user_id() else { return };
    let attacked = check(scene, HIDDEN_DAEMON);
    let mut command = Command::new("unshare");
    let mount = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid $0 --regid $0 --clear-groups \"$@\"";
    command.args(["--mount", "sh", "-c", mount, &id.to_string()]);
    command.arg(attacked.get_program()).args(attacked.get_args()).stdin(Stdio::null());
    command.env_clear().current_dir(scene.path("project"));
    command.envs(attacked.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (_, said) = said(&mut command);
    assert!(scene.exists("project/alive"), "the attack did not start: {said}");
    assert!(stays_as_it_is(&scene.path("project/alive"), Duration::from_millis(300)), "{said}");
}

fn double_fork_off(scene: &Scene) {
    let (_, said) = said(check(scene, DAEMON).env("REPERTOIRE_SANDBOX", "off"));
    assert!(scene.exists("project/alive"), "the attack did not start: {said}");
    nothing_is_left(scene);
}

fn late_hook(scene: &Scene) {
    let script = format!(
        "{DAEMON}; setsid sh -c '(while [ ! -e over ]; do sleep 0.02; done; \
         echo evil > .git/hooks/pre-commit; echo x > late) &' > /dev/null 2>&1 &"
    );
    said(&mut check(scene, &script));
    scene.write("project/over", "");
    let late = || scene.exists("project/late") || scene.exists("project/.git/hooks/pre-commit");
    assert!(!until(Duration::from_millis(300), late), "it wrote after the run");
    nothing_is_left(scene);
}

fn started(scene: &Scene, command: &mut Command) -> Child {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = until(Duration::from_secs(20), || scene.exists("project/alive"));
    assert!(begun, "the attack did not start");
    child
}

fn killed_rep(scene: &Scene) {
    let script = format!("{DAEMON}; sleep 60");
    let mut rep = started(scene, &mut check(scene, &script));
    rep.kill().unwrap();
    rep.wait().unwrap();
    nothing_is_left(scene);
}

fn killed_rep_is_put_right(scene: &Scene) {
    let config = scene.read("project/.git/config");
    let script =
        "printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config; ln -s README.md AGENTS.md
        mkdir nest; echo evil > nest/CLAUDE.md; touch alive; sleep 60";
    let mut rep = started(scene, &mut check(scene, script));
    rep.kill().unwrap();
    rep.wait().unwrap();
    let is_right = || {
        scene.read("project/.git/config") == config
            && !scene.exists("project/AGENTS.md")
            && !scene.exists("project/nest/CLAUDE.md")
    };
    assert!(until(Duration::from_secs(5), is_right), "{:?}", scene.read("project/.git/config"));
}

fn killed_supervisor(scene: &Scene) {
    let script = format!("{DAEMON}; kill -9 $PPID; sleep 60");
    let (code, said) = said(check(scene, &script).env("REPERTOIRE_SANDBOX", "off"));
    assert_ne!(code, 0, "{said}");
    nothing_is_left(scene);
}

/// Runs a check that has to be stopped by a limit, and expects a message that names the limit.
fn is_stopped(scene: &Scene, script: &str, limit: &str, variables: &[(&str, &str)]) {
    // Otherwise git reads everything that was written.
    scene.write("project/.gitignore", "big-*\n");
    scene.commit("Ignore large files");
    let mut command = check(scene, script);
    command.envs(variables.iter().copied());
    let (code, said) = said(&mut command);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(limit), "{said}");
    assert!(said.contains("more than ") && !said.contains("unknown"), "{said}");
    let token = scene.path("project");
    let gone = || processes_with(token.as_str()).is_empty();
    assert!(until(Duration::from_secs(1), gone), "{:?}", processes_with(token.as_str()));
}

fn many_processes(scene: &Scene) {
    let script = "i=0; while [ $i -lt 300 ]; do sleep 15 & i=$((i+1)); done; wait";
    let few = [("REPERTOIRE_LIMITS_COMMAND_PROCESSES", "100")];
    is_stopped(scene, script, "limits.command_processes", &few);
}

fn fork_bomb(scene: &Scene) {
    // A binary without the limit would take the machine down.
    assert!(!Scene::attacks_another_binary(), "the fork bomb is not run against another binary");
    is_stopped(scene, ":(){ :|:& };:; wait; sleep 60", "limits.command_processes", &[]);
}

fn memory_in_pieces(scene: &Scene) {
    let script = "for i in 1 2 3; do head -c 100000000 /dev/zero | (tail; sleep 8) > /dev/null & done; \
                  for i in 1 2 3; do head -c 100000000 /dev/zero | tail -c 100000000 | (sleep 8) & done; wait";
    let small = [("REPERTOIRE_LIMITS_COMMAND_MEMORY", "150MB")];
    is_stopped(scene, script, "limits.command_memory", &small);
}

fn memory_behind_a_descriptor(scene: &Scene) {
    let script = "import os,time\nf = os.memfd_create('x')\nfor i in range(40): os.write(f, b'x' * 10000000)\ntime.sleep(8)";
    let script = format!("python3 -c \"{script}\"");
    let small = [("REPERTOIRE_LIMITS_COMMAND_MEMORY", "150MB")];
    is_stopped(scene, &script, "limits.command_memory", &small);
}

/// Runs a Python program that has to be stopped for its memory.
fn is_stopped_for_memory(scene: &Scene, program: &str) {
    scene.write("project/attack.py", program);
    let small = [("REPERTOIRE_LIMITS_COMMAND_MEMORY", "150MB")];
    is_stopped(scene, "python3 attack.py", "limits.command_memory", &small);
}

/// Runs a Python program that has to be stopped for the files that it writes.
fn is_stopped_for_files(scene: &Scene, program: &str) {
    scene.write("project/attack.py", program);
    let small = [("REPERTOIRE_LIMITS_COMMAND_DISK", "100MB")];
    is_stopped(scene, "python3 attack.py", "limits.command_disk", &small);
}

fn memory_in_sockets(scene: &Scene) {
    let program = "import socket, time\nkept, total = [], 0\n\
        while total < 400_000_000 and len(kept) < 450:\n\
        \x20   pair = socket.socketpair(); kept.append(pair)\n\
        \x20   for end in pair:\n\
        \x20       end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000); end.setblocking(False)\n\
        \x20       try:\n\
        \x20           while True: total += end.send(bytes(100_000))\n\
        \x20       except BlockingIOError: pass\n\
        time.sleep(8)\n";
    is_stopped_for_memory(scene, program);
}

fn memory_in_page_tables(scene: &Scene) {
    let program = "import mmap, time\n\
        m = mmap.mmap(-1, 100_000 << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\n\
        m.madvise(mmap.MADV_NOHUGEPAGE)\n\
        for i in range(100_000): m[i << 21]\n\
        time.sleep(8)\n";
    is_stopped_for_memory(scene, program);
}

/// Each piece is smaller than the limit, so that only what is left of all of them counts.
fn memory_mapped_in_part(scene: &Scene) {
    let program = "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n\
        for piece in range(10):\n\
        \x20   f = os.memfd_create('x')\n\
        \x20   for i in range(40): os.write(f, bytes(1_000_000))\n\
        \x20   libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0)); os.close(f)\n\
        time.sleep(8)\n";
    is_stopped_for_memory(scene, program);
}

fn hidden_memory(scene: &Scene) {
    let program = "import ctypes, os, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
        f = os.memfd_create('x')\n\
        for i in range(40): os.write(f, bytes(10_000_000))\n\
        time.sleep(8)\n";
    is_stopped_for_memory(scene, program);
}

fn memory_without_a_first_thread(scene: &Scene) {
    let program = "import ctypes, os, threading, time\n\
        def use():\n\
        \x20   time.sleep(0.5); kept = b'x' * 400_000_000; time.sleep(8); os._exit(0)\n\
        threading.Thread(target=use).start()\nctypes.CDLL(None).pthread_exit(None)\n";
    is_stopped_for_memory(scene, program);
}

/// Writes ten files without a name, each smaller than the limit, and lets `keep` hold them before they are closed.
fn nameless_pieces(keep: &str) -> String {
    format!(
        "import ctypes, os, socket, time\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n\
         a, b = socket.socketpair()\n\
         for piece in range(10):\n\
         \x20   f = os.open('big-file', os.O_CREAT | os.O_RDWR); os.unlink('big-file')\n\
         \x20   for i in range(40): os.write(f, bytes(1_000_000))\n\
         \x20   {keep}; os.close(f)\n\
         time.sleep(8)\n"
    )
}

fn mapped_file(scene: &Scene) {
    let keep = "libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0))";
    is_stopped_for_files(scene, &nameless_pieces(keep));
}

fn passed_file(scene: &Scene) {
    is_stopped_for_files(scene, &nameless_pieces("socket.send_fds(a, [b'x'], [f])"));
}

fn many_files(scene: &Scene) {
    let script = "i=0; while [ $i -lt 300 ]; do head -c 1000000 /dev/zero > big-$i; i=$((i+1)); done; sleep 4";
    let small = [("REPERTOIRE_LIMITS_COMMAND_DISK", "100MB")];
    is_stopped(scene, script, "limits.command_disk", &small);
}

fn nameless_file(scene: &Scene) {
    let script = "exec 9> big; rm big; head -c 300000000 /dev/zero >&9; sleep 8";
    let small = [("REPERTOIRE_LIMITS_COMMAND_DISK", "100MB")];
    is_stopped(scene, script, "limits.command_disk", &small);
}

fn files_at_the_end(scene: &Scene) {
    let script = "for i in 1 2 3 4 5 6; do head -c 30000000 /dev/zero > big-$i; done";
    let small = [("REPERTOIRE_LIMITS_COMMAND_DISK", "100MB")];
    is_stopped(
        scene,
        script,
        "more than 95.3 MiB to the disk; raise `limits.command_disk`",
        &small,
    );
}

fn files_of_others(scene: &Scene) {
    scene.write("project/.gitignore", "big-*\n");
    scene.commit("Ignore large files");
    let write = |number: u32| format!("head -c 40000000 /dev/zero > big-{number}; sleep 1");
    let scripts = [write(1), write(2), write(3)];
    let mut args = vec!["verify"];
    args.extend(scripts.iter().flat_map(|script| ["--check", script.as_str()]));
    let mut command = scene.rep_command(&args);
    let (code, said) = said(command.env("REPERTOIRE_LIMITS_COMMAND_DISK", "100MB"));
    assert_eq!(code, 0, "{said}");
}

fn three_gigabytes_of_memory(scene: &Scene) {
    // Each process holds its part, so that the sum does not depend on when they run.
    let program = "import time\nx = bytearray(1_000_000_000)\n\
        for i in range(0, len(x), 4096): x[i] = 1\n\
        time.sleep(8)\n";
    scene.write("project/attack.py", program);
    let script = "for i in 1 2 3; do python3 attack.py & done; wait";
    is_stopped(scene, script, "limits.command_memory", &[]);
}

fn three_gigabytes_of_disk(scene: &Scene) {
    let script = "i=0; while [ $i -lt 300 ]; do head -c 10000000 /dev/zero > big-$i; i=$((i+1)); done; sleep 4";
    is_stopped(scene, script, "limits.command_disk", &[]);
}
