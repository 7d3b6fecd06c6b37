//! Limits on the configuration files of other programs, and on probes of servers.

use std::time::Duration;

/// The maximum size of another program's configuration file.
pub(super) const CLIENT_CONFIG_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The maximum size of a record of changes to such a file, including the replaced text.
pub(super) const CLIENT_RECORD_BYTES_MAX: u64 = 8 * CLIENT_CONFIG_BYTES_MAX;

/// The timeout for probing a server.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
