//! The guarantees that a sandbox can give. This one table determines what each sandbox reports, what `rep doctor` shows
//! and what `sandbox = "require"` refuses.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A property of confined programs that holds whatever they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxGuarantee {
    /// Programs read and write only the folders that the policy names.
    FilesConfined,
    /// System secrets that only root may read stay unreadable to programs that run as root.
    SecretsUnreadable,
    /// Programs cannot change the mode, owner or times of files outside the policy's folders.
    MetadataConfined,
    /// Protected paths that exist are read-only while a program runs, rather than restored afterwards.
    ProtectedPathsReadOnly,
    /// Programs cannot create setuid files, which other users could run with this user's rights.
    NoSetuidFiles,
    /// Without network permission, programs cannot reach any network.
    NetworkOff,
    /// Programs cannot connect to another process's Unix sockets, including abstract ones.
    UnixSocketsClosed,
    /// Programs cannot send signals to the user's other processes.
    SignalsScoped,
    /// All processes started by a command end with it.
    ProcessesEndWithCommand,
}

use SandboxGuarantee::{
    FilesConfined, MetadataConfined, NetworkOff, NoSetuidFiles, ProcessesEndWithCommand,
    ProtectedPathsReadOnly, SecretsUnreadable, SignalsScoped, UnixSocketsClosed,
};

impl SandboxGuarantee {
    /// All guarantees. `sandbox = "require"` demands every one unless the configuration names fewer.
    pub const ALL: &[SandboxGuarantee] = &[
        FilesConfined,
        SecretsUnreadable,
        MetadataConfined,
        ProtectedPathsReadOnly,
        NoSetuidFiles,
        NetworkOff,
        UnixSocketsClosed,
        SignalsScoped,
        ProcessesEndWithCommand,
    ];

    /// The name used in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            FilesConfined => "files-confined",
            SecretsUnreadable => "secrets-unreadable",
            MetadataConfined => "metadata-confined",
            ProtectedPathsReadOnly => "protected-paths-read-only",
            NoSetuidFiles => "no-setuid-files",
            NetworkOff => "network-off",
            UnixSocketsClosed => "unix-sockets-closed",
            SignalsScoped => "signals-scoped",
            ProcessesEndWithCommand => "processes-end-with-command",
        }
    }

    /// Explains to the user what is possible without this guarantee, and the remedy.
    pub fn describe_lack(self) -> &'static str {
        match self {
            FilesConfined => "Programs can read and write files outside the work folder.",
            SecretsUnreadable => {
                "Secrets in `/etc` that only root may read can be read by programs. Run as an ordinary user."
            }
            MetadataConfined => {
                "Programs can change the mode and times of your other files, though not read or write them."
            }
            ProtectedPathsReadOnly => {
                "Protected files are compared and put back after each command; until it ends, they can be changed."
            }
            NoSetuidFiles => "Programs can leave files that others run with your rights.",
            NetworkOff => "Programs can reach the network.",
            UnixSocketsClosed => "Programs can connect to Unix sockets of your other programs.",
            SignalsScoped => {
                "Programs may send signals to your other processes. Use Linux 6.12 or later."
            }
            ProcessesEndWithCommand => {
                "A command can kill its supervisor and outlive it. Use Linux 6.12 or later."
            }
        }
    }

    /// Returns the guarantees missing from a set, in the order of [`SandboxGuarantee::ALL`].
    pub fn missing_in(held: &BTreeSet<SandboxGuarantee>) -> Vec<SandboxGuarantee> {
        SandboxGuarantee::ALL
            .iter()
            .copied()
            .filter(|guarantee| !held.contains(guarantee))
            .collect()
    }
}

impl fmt::Display for SandboxGuarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that does not belong to any guarantee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a guarantee of the sandbox")]
pub struct UnknownGuarantee(pub String);

impl FromStr for SandboxGuarantee {
    type Err = UnknownGuarantee;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found =
            SandboxGuarantee::ALL.iter().copied().find(|guarantee| guarantee.name() == name);
        found.ok_or_else(|| UnknownGuarantee(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guarantee_is_found_by_its_name() {
        for guarantee in SandboxGuarantee::ALL {
            assert_eq!(guarantee.name().parse(), Ok(*guarantee));
        }
        assert!("no-such-thing".parse::<SandboxGuarantee>().is_err());
        let distinct: BTreeSet<_> = SandboxGuarantee::ALL.iter().collect();
        assert_eq!(distinct.len(), SandboxGuarantee::ALL.len());
    }

    #[test]
    fn a_set_that_lacks_one_says_which() {
        let mut held: BTreeSet<_> = SandboxGuarantee::ALL.iter().copied().collect();
        held.remove(&SignalsScoped);
        assert_eq!(SandboxGuarantee::missing_in(&held), [SignalsScoped]);
    }
}
