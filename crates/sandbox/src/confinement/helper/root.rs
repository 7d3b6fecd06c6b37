//! Builds a root file system that contains only the paths named by the policy.

use std::collections::HashSet;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::StatVfsMountFlags;

use super::{SandboxSetupError, WithStep};
use crate::confinement::NetworkAccess;
use crate::confinement::policy::{DEVICES, RESOLVER, SYSTEM, SandboxPolicy, secrets_beneath};

/// The size is for shared memory; nothing else is written to the new root itself.
const SIZE: &str = "size=256m,mode=755";

#[derive(Clone, Copy, PartialEq, Eq)]
enum MountAccess {
    Read,
    Write,
}

struct MountEntry {
    source: Utf8PathBuf,
    target: Utf8PathBuf,
    access: MountAccess,
    /// True for a folder of the run, which must never be reached through a link.
    is_private: bool,
}

/// Builds the new root, switches to it and detaches the old one.
pub(super) fn build_root(policy: &SandboxPolicy) -> Result<(), SandboxSetupError> {
    let cwd = std::env::current_dir().during("current folder")?;
    let root = policy.private.join("root");
    std::fs::create_dir_all(&root).during("private folder")?;
    let none: Option<&str> = None;
    // Keep the mounts below from propagating to the machine's mount namespace.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).during("private mounts")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), root.as_str(), Some("tmpfs"), flags, Some(SIZE)).during("new root")?;
    // A writable folder that contains the private folder is bound with all mounts below it. Unless the new root is
    // unbindable, it would be included half-built, without the mounts that make paths read-only or cover them.
    mount(none, root.as_str(), none, MsFlags::MS_UNBINDABLE, none).during("new root")?;
    for entry in list_mounts(policy) {
        bind_entry(&entry, &root)?;
    }
    bind_devices(&root)?;
    mount_proc(&root)?;
    // Only root could read the secrets.
    if rustix::process::geteuid().is_root() {
        cover_secrets(&root)?;
    }
    ProtectedMounts::new(policy, &root).protect_all()?;
    cover_sockets(policy, &root)?;
    switch_root(&root)?;
    // Resolve the working directory again, inside the new root.
    std::env::set_current_dir(cwd).during("current folder")
}

/// Lists the mounts, parents before children; for the same path, writable mounts come last and win.
fn list_mounts(policy: &SandboxPolicy) -> Vec<MountEntry> {
    let resolver = match policy.network {
        NetworkAccess::Off => &[][..],
        NetworkAccess::On => RESOLVER,
    };
    let system = SYSTEM.iter().chain(resolver);
    let system = system.map(|path| plain_entry(Utf8Path::new(path), MountAccess::Read));
    let read = policy.read.iter().map(|path| plain_entry(path, MountAccess::Read));
    let temporary = ["/tmp", "/var/tmp"].map(|target| MountEntry {
        source: policy.temporary_folder(),
        target: Utf8PathBuf::from(target),
        access: MountAccess::Write,
        is_private: true,
    });
    let write = policy.write.iter().map(|path| plain_entry(path, MountAccess::Write));
    let private = policy.private_folders();
    let private = private
        .iter()
        .map(|path| MountEntry { is_private: true, ..plain_entry(path, MountAccess::Write) });
    let mut entries: Vec<MountEntry> =
        system.chain(read).chain(temporary).chain(write).chain(private).collect();
    entries.sort_by(|a, b| a.target.components().cmp(b.target.components()));
    entries
}

/// A mount of a path at the same location.
fn plain_entry(path: &Utf8Path, access: MountAccess) -> MountEntry {
    MountEntry { source: path.to_owned(), target: path.to_owned(), access, is_private: false }
}

fn bind_entry(entry: &MountEntry, root: &Utf8Path) -> Result<(), SandboxSetupError> {
    let target = path_in_root(root, &entry.target);
    let top = entry.target.components().count() == 2;
    if let (true, Ok(link)) = (top, std::fs::read_link(&entry.source)) {
        // `/bin` is `usr/bin` on most systems.
        return symlink(link, &target).during("links of the system");
    }
    // An earlier program may have left a link here; don't follow it.
    if entry.is_private && entry.source.is_symlink() {
        return Err("it is a link").during("private folder");
    }
    let Ok(source) = entry.source.canonicalize_utf8() else { return Ok(()) };
    bind_to(&source, &target, entry.access)?;
    // Programs may use either path of a folder that is reached through a link.
    if source != entry.source && entry.source == entry.target {
        bind_to(&source, &path_in_root(root, &source), entry.access)?;
    }
    Ok(())
}

fn bind_to(
    source: &Utf8Path,
    target: &Utf8Path,
    access: MountAccess,
) -> Result<(), SandboxSetupError> {
    create_mount_point(source, target)?;
    let none: Option<&str> = None;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source.as_str()), target.as_str(), none, flags, none).during("folders")?;
    match access {
        MountAccess::Read => remount_read_only(target),
        MountAccess::Write => Ok(()),
    }
}

fn create_mount_point(source: &Utf8Path, target: &Utf8Path) -> Result<(), SandboxSetupError> {
    if source.is_dir() {
        return std::fs::create_dir_all(target).during("mount points");
    }
    if let Some(above) = target.parent() {
        std::fs::create_dir_all(above).during("mount points")?;
    }
    if target.exists() {
        return Ok(());
    }
    std::fs::File::create(target).map(drop).during("mount points")
}

/// Remounts a folder read-only. Mount flags that the administrator has set must be kept, or the kernel refuses.
fn remount_read_only(target: &Utf8Path) -> Result<(), SandboxSetupError> {
    let now = rustix::fs::statvfs(target.as_str()).during("read-only folders")?.f_flag;
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    let kept = [
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
        (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
    ];
    for (is, stays) in kept {
        flags.set(stays, now.contains(is));
    }
    let none: Option<&str> = None;
    mount(none, target.as_str(), none, flags, none).during("read-only folders")
}

fn bind_devices(root: &Utf8Path) -> Result<(), SandboxSetupError> {
    for device in DEVICES {
        bind_to(
            Utf8Path::new(device),
            &path_in_root(root, Utf8Path::new(device)),
            MountAccess::Write,
        )?;
    }
    let links = [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ];
    for (to, name) in links {
        symlink(to, root.join("dev").join(name)).during("devices")?;
    }
    std::fs::create_dir_all(root.join("dev/shm")).during("devices")
}

/// Hides files and folders that only root may read.
fn cover_secrets(root: &Utf8Path) -> Result<(), SandboxSetupError> {
    let empty = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    for target in secrets_beneath(&path_in_root(root, Utf8Path::new("/etc"))) {
        match std::fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => {
                mount(Some("tmpfs"), target.as_str(), Some("tmpfs"), empty, Some("size=4k"))
                    .during("secrets")?;
            }
            Ok(_) => bind_to(Utf8Path::new("/dev/null"), &target, MountAccess::Write)?,
            Err(_) => {}
        }
    }
    Ok(())
}

/// Covers the sockets of the work folder with a device: their servers are processes of the user, outside the sandbox.
fn cover_sockets(policy: &SandboxPolicy, root: &Utf8Path) -> Result<(), SandboxSetupError> {
    let real = policy.dir.canonicalize_utf8().during("folders")?;
    let under_both_names = policy.sockets.iter().flat_map(|socket| {
        let relative = socket.strip_prefix(&policy.dir).unwrap_or(socket);
        [policy.dir.join(relative), real.join(relative)]
    });
    let mut sockets: Vec<Utf8PathBuf> = under_both_names.collect();
    sockets.sort();
    sockets.dedup();
    for socket in &sockets {
        let target = path_in_root(root, socket);
        let is_there = std::fs::symlink_metadata(&target).is_ok_and(|metadata| !metadata.is_dir());
        if is_there && !target.is_symlink() {
            bind_to(Utf8Path::new("/dev/null"), &target, MountAccess::Read)?;
        }
    }
    Ok(())
}

/// Mounts a `/proc` that shows only the processes of the namespace.
fn mount_proc(root: &Utf8Path) -> Result<(), SandboxSetupError> {
    let target = root.join("proc");
    std::fs::create_dir_all(&target).during("/proc")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let none: Option<&str> = None;
    mount(Some("proc"), target.as_str(), Some("proc"), flags, none).during("/proc")
}

fn switch_root(root: &Utf8Path) -> Result<(), SandboxSetupError> {
    std::env::set_current_dir(root).during("new root")?;
    // This stacks the old root on top of the new one, so that it can be detached without a mount point of its own.
    rustix::process::pivot_root(".", ".").during("new root")?;
    umount2(".", MntFlags::MNT_DETACH).during("old root")?;
    std::env::set_current_dir("/").during("new root")
}

fn path_in_root(root: &Utf8Path, path: &Utf8Path) -> Utf8PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Protected paths beneath the work folder. They become read-only, and every folder above them becomes a mount point,
/// which can be neither renamed nor removed. Paths that do not exist cannot be mounted over; the guard handles those.
struct ProtectedMounts<'a> {
    policy: &'a SandboxPolicy,
    root: &'a Utf8Path,
    pinned: HashSet<Utf8PathBuf>,
}

impl<'a> ProtectedMounts<'a> {
    fn new(policy: &'a SandboxPolicy, root: &'a Utf8Path) -> Self {
        ProtectedMounts { policy, root, pinned: HashSet::new() }
    }

    fn protect_all(&mut self) -> Result<(), SandboxSetupError> {
        let policy = self.policy;
        // A work folder that is reached through a link is mounted under both paths.
        let mut names = vec![policy.dir.clone(), policy.dir.canonicalize_utf8().during("folders")?];
        names.dedup();
        for dir in &names {
            policy.protected.iter().try_for_each(|path| self.protect_path(path, dir))?;
        }
        Ok(())
    }

    fn protect_path(&mut self, path: &Utf8Path, dir: &Utf8Path) -> Result<(), SandboxSetupError> {
        let Ok(relative) = path.strip_prefix(&self.policy.dir) else { return Ok(()) };
        let mut at = dir.to_owned();
        let mut parts = relative.components().peekable();
        while let Some(part) = parts.next() {
            at.push(part);
            let Ok(metadata) = std::fs::symlink_metadata(path_in_root(self.root, &at)) else {
                return Ok(());
            };
            if metadata.is_symlink() {
                return self.protect_behind(&at, dir);
            }
            let access = match parts.peek() {
                Some(_) if metadata.is_dir() => MountAccess::Write,
                _ => MountAccess::Read,
            };
            self.pin_path(&at, access)?;
        }
        Ok(())
    }

    /// Protects the target of a link along with the link.
    fn protect_behind(&mut self, link: &Utf8Path, dir: &Utf8Path) -> Result<(), SandboxSetupError> {
        let real = dir.canonicalize_utf8().during("folders")?;
        let target = link.canonicalize_utf8();
        match target.as_ref().map(|target| target.strip_prefix(&real)) {
            Ok(Ok(relative)) => self.protect_path(&self.policy.dir.join(relative), dir),
            _ => Ok(()),
        }
    }

    fn pin_path(&mut self, path: &Utf8Path, access: MountAccess) -> Result<(), SandboxSetupError> {
        if !self.pinned.insert(path.to_owned()) {
            return Ok(());
        }
        let target = path_in_root(self.root, path);
        bind_to(&target, &target, access)
    }
}
