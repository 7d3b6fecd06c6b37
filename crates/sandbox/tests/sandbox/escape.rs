//! Attempts to get out. Each prints `ESCAPED` if it did. Where it does no harm, each is also made without a sandbox,
//! and has to succeed there: an attempt that cannot succeed proves nothing.

use repertoire_sandbox::confinement::{NetworkAccess, Sandbox};

use crate::place::{Place, said};

/// What an attempt does without a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    /// It succeeds.
    Succeeds,
    /// It would do harm, or depends on who runs it.
    NotMade,
}
use Control::{NotMade, Succeeds};

const ATTEMPTS: &[(&str, Control, &str)] = &[
    ("write to an absolute path", Succeeds, "echo x > $OUT/new && echo ESCAPED"),
    ("write through ..", Succeeds, "echo x > ../outside/new && echo ESCAPED"),
    (
        "write through a link to a folder",
        Succeeds,
        "ln -s $OUT link && echo x > link/new && echo ESCAPED",
    ),
    (
        "write through a link to a file",
        Succeeds,
        "ln -s $OUT/victim link && echo x >> link && echo ESCAPED",
    ),
    ("make a hard link", Succeeds, "ln $OUT/victim hard && echo x >> hard && echo ESCAPED"),
    ("move a folder in", Succeeds, "mv $OUT/victim . && echo ESCAPED"),
    ("remove a file", Succeeds, "rm $OUT/victim && echo ESCAPED"),
    ("empty a file", Succeeds, "truncate -s 0 $OUT/victim && echo ESCAPED"),
    ("write through /proc/self/root", Succeeds, "echo x > /proc/self/root$OUT/new && echo ESCAPED"),
    (
        "write through a parent's root",
        Succeeds,
        "echo x > /proc/$PARENT/root$OUT/new && echo ESCAPED",
    ),
    (
        "write through a parent's folder",
        Succeeds,
        "echo x > /proc/$BYSTANDER/root$OUT/new && echo ESCAPED",
    ),
    (
        "write with another loader",
        NotMade,
        "for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do $l /usr/bin/touch $OUT/new && echo ESCAPED; done",
    ),
    ("read a key", Succeeds, "cat $REAL_HOME/.ssh/id && echo ESCAPED"),
    ("list a home", Succeeds, "ls -A $REAL_HOME | grep -q netrc && echo ESCAPED"),
    (
        "read tokens of a tool chain",
        Succeeds,
        "cat $REAL_HOME/.cargo/credentials.toml && echo ESCAPED",
    ),
    ("read somebody else's folder", Succeeds, "cat $OUT/secret && echo ESCAPED"),
    ("read through /proc/self/root", Succeeds, "cat /proc/self/root$OUT/secret && echo ESCAPED"),
    (
        "read a parent's environment",
        Succeeds,
        "cat /proc/$PARENT/environ > /dev/null && echo ESCAPED",
    ),
    (
        "read any environment",
        Succeeds,
        "for f in /proc/$BYSTANDER/environ /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f | grep -q ^SECRET=$CANARY && echo ESCAPED; done",
    ),
    (
        "read other command lines",
        Succeeds,
        "tr '\\0' '\\n' < /proc/$BYSTANDER/cmdline | grep -q $MARK && echo ESCAPED",
    ),
    (
        "read memory",
        NotMade,
        "head -c 1 /proc/$BYSTANDER/mem && echo ESCAPED; ls /proc/$BYSTANDER/fd/ && echo ESCAPED",
    ),
    (
        "read passwords of the system",
        NotMade,
        "cat /etc/shadow /etc/gshadow | grep -q . && echo ESCAPED; cat /etc/ssh/*_key /etc/ssl/private/* | grep -q . && echo ESCAPED",
    ),
    (
        "read a disk",
        NotMade,
        "for d in /dev/[sv]da /dev/nvme0n1 /dev/mem /dev/kmsg; do head -c 1 $d && echo ESCAPED; done",
    ),
    ("TCP by the shell", Succeeds, "exec 3<>/dev/tcp/127.0.0.1/$TCP && echo ESCAPED"),
    (
        "TCP",
        Succeeds,
        "perl -MIO::Socket::INET -e 'print \"ESCAPED\" if IO::Socket::INET->new(\"127.0.0.1:$ENV{TCP}\")'",
    ),
    (
        "TCP over IPv6",
        NotMade,
        "perl -MSocket -e 'socket(S,AF_INET6,SOCK_STREAM,0) && connect(S,pack_sockaddr_in6($ENV{TCP6},inet_pton(AF_INET6,\"::1\"))) && print \"ESCAPED\"'",
    ),
    (
        "an IPv6 socket",
        Succeeds,
        "perl -MSocket -e 'socket(S,AF_INET6,SOCK_STREAM,0) && print \"ESCAPED\"'",
    ),
    ("UDP by the shell, as for DNS", Succeeds, "echo x > /dev/udp/127.0.0.1/$UDP && echo ESCAPED"),
    (
        "UDP",
        Succeeds,
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_DGRAM,0) && send(S,\"x\",0,pack_sockaddr_in($ENV{UDP},inet_aton(\"127.0.0.1\"))) && print \"ESCAPED\"'",
    ),
    (
        "a listener",
        Succeeds,
        "perl -MIO::Socket::INET -e 'print \"ESCAPED\" if IO::Socket::INET->new(LocalAddr=>\"127.0.0.1\",Listen=>1)'",
    ),
    ("netlink", Succeeds, "perl -e 'socket(S,16,3,0) && print \"ESCAPED\"'"),
    (
        "a raw socket",
        NotMade,
        "perl -e 'socket(S,17,3,768) && print \"ESCAPED\"; socket(S,2,3,1) && print \"ESCAPED\"'",
    ),
    (
        "an abstract Unix socket",
        Succeeds,
        "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack(\"Sa*\",AF_UNIX,\"\\0$ENV{MARK}\")) && print \"ESCAPED\"'",
    ),
    (
        "a Unix socket outside",
        Succeeds,
        "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack_sockaddr_un(\"$ENV{OUT}/socket\")) && print \"ESCAPED\"'",
    ),
    ("ask whether a parent is there", Succeeds, "kill -0 $PARENT && echo ESCAPED"),
    ("end a bystander", Succeeds, "kill -TERM $BYSTANDER && echo ESCAPED"),
    ("end everybody", NotMade, "[ $MARK ] && kill -0 -1 && kill -0 $PARENT && echo ESCAPED"),
    (
        "attach to a process",
        NotMade,
        "perl -e '$n = `uname -m` =~ /x86_64/ ? 101 : 117; print \"ESCAPED\" if syscall($n,16,$ENV{BYSTANDER}+0,0,0) == 0'",
    ),
    ("mount", NotMade, "mkdir m && mount -t tmpfs none m && echo ESCAPED"),
    ("bind a folder", NotMade, "mkdir m && mount --bind / m && echo ESCAPED"),
    (
        "unmount what protects",
        NotMade,
        "umount -l .git/hooks && echo ESCAPED; umount -l .git && echo ESCAPED",
    ),
    ("make a user namespace", NotMade, "unshare -U true && echo ESCAPED"),
    (
        "enter a namespace",
        NotMade,
        "nsenter -t $PARENT -m true && echo ESCAPED; nsenter -t 1 -m true && echo ESCAPED",
    ),
    ("change the root", NotMade, "chroot / true && echo ESCAPED"),
    (
        "set the core pattern",
        NotMade,
        "for f in sys/kernel/core_pattern sys/kernel/modprobe sysrq-trigger; do (exec 3>>/proc/$f) && echo ESCAPED; done",
    ),
    (
        "type into the terminal",
        Succeeds,
        "perl -e 'ioctl(STDIN,0x5412,my $c=\"x\"); print \"ESCAPED\" if $! != 1'",
    ),
    ("io_uring", Succeeds, "perl -e 'syscall(425,1,0); print \"ESCAPED\" if $! != 38'"),
    (
        "keys of the kernel",
        NotMade,
        "perl -e '$n = `uname -m` =~ /x86_64/ ? 250 : 219; print \"ESCAPED\" if syscall($n,0,-3,1) >= 0'",
    ),
    (
        "keep capabilities",
        NotMade,
        "while read -r k v; do case $k in CapEff:|CapPrm:|CapInh:|CapAmb:) [ $((16#$v)) = 0 ] || echo $k $v ESCAPED;; NoNewPrivs:) [ $v = 1 ] || echo ESCAPED;; esac; done < /proc/self/status",
    ),
    ("make a setuid file", Succeeds, "cp /bin/true s && chmod 4755 s && echo ESCAPED"),
    ("make a setgid file", Succeeds, "cp /bin/true s && chmod g+s s && echo ESCAPED"),
    (
        "create a setuid file",
        Succeeds,
        "perl -e 'use Fcntl; print \"ESCAPED\" if sysopen(F,\"s\",O_CREAT|O_WRONLY,04755)'",
    ),
    (
        "create a setuid file without being seen",
        NotMade,
        "perl -e '$how=pack(\"QQQ\",0101,04755,0); print \"ESCAPED\" if syscall(437,-100,\"s\",$how,24) >= 0'",
    ),
    ("limit another process", Succeeds, "prlimit --pid $BYSTANDER --core=0 && echo ESCAPED"),
    (
        "read through the root that is being built",
        NotMade,
        "ls ${TMPDIR%/tmp}/root/etc && echo ESCAPED; cat ${TMPDIR%/tmp}/root/etc/shadow && echo ESCAPED",
    ),
    (
        "replace the private folders",
        NotMade,
        "mv $TMPDIR $TMPDIR.old && echo ESCAPED; mv $HOME $HOME.old && echo ESCAPED",
    ),
    (
        "connect to a socket in the work folder",
        Succeeds,
        "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) && connect(S,pack_sockaddr_un(\"sub/socket\")) && print \"ESCAPED\"'",
    ),
    (
        "write to the memory of the first process",
        NotMade,
        "(exec 3<>/proc/1/mem) && echo ESCAPED; (exec 3</proc/1/mem) && echo ESCAPED",
    ),
    (
        "write to the system",
        NotMade,
        "touch /usr/new-$MARK && echo ESCAPED; touch /etc/new-$MARK && echo ESCAPED",
    ),
    (
        "change what may be read",
        NotMade,
        "echo x >> $READABLE/text && echo ESCAPED; rm -f $READABLE/text; touch $READABLE/new && echo ESCAPED",
    ),
    (
        "plant a file in the tool chains",
        NotMade,
        "mkdir -p $REAL_HOME/.local/bin && touch $REAL_HOME/.local/bin/git && ls $REAL_HOME/.ssh && echo ESCAPED",
    ),
];

/// Attempts that a kind of sandbox does not stop, and the words in which it says so.
fn is_known(sandbox: &Sandbox, attempt: &str) -> bool {
    let says = |words: &str| sandbox.degradations().iter().any(|line| line.contains(words));
    match attempt {
        "read passwords of the system" => says("Secrets in `/etc`"),
        _ => false,
    }
}

pub(crate) async fn all_are_stopped(sandbox: &Sandbox) {
    let mut escapes = Vec::new();
    for (name, _, script) in ATTEMPTS {
        let mut place = Place::new();
        let ended =
            place.run(sandbox, NetworkAccess::Off, &format!("echo STARTED; {script}")).await;
        let damage = place.damage();
        let said = said(&ended);
        let refused = !said.contains("STARTED");
        if (said.contains("ESCAPED") || refused || !damage.is_empty()) && !is_known(sandbox, name) {
            escapes.push(format!("{name}: {said} {damage:?}"));
        }
    }
    assert!(escapes.is_empty(), "{}:\n{}", sandbox.describe(), escapes.join("\n"));
    println!("{}: {} attempts blocked", sandbox.describe(), ATTEMPTS.len());
}

pub(crate) async fn all_succeed_without() {
    let mut failures = Vec::new();
    for (name, control, script) in ATTEMPTS {
        if *control == NotMade {
            continue;
        }
        let place = Place::new();
        let said = said(&place.run(&Sandbox::None, NetworkAccess::Off, script).await);
        if !said.contains("ESCAPED") {
            failures.push(format!("{name}: {said}"));
        }
    }
    assert!(failures.is_empty(), "these attempts prove nothing:\n{}", failures.join("\n"));
}
