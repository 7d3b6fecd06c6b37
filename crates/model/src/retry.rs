//! What to do about a call that failed: a pure decision.

use crate::error::Error;

/// How often and how long apart calls are tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Most calls in all, the first included.
    pub attempts_max: u32,
    /// The wait after the first failure.
    pub initial_ms: u64,
    /// The longest wait.
    pub max_ms: u64,
    /// How much a wait varies, as a share of it.
    pub jitter: f64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Try again after this long.
    Retry {
        /// How long to wait.
        after_ms: u64,
    },
    /// Wait until the allowance is filled again; this is no failed attempt.
    Pause {
        /// When, in milliseconds since 1970.
        until_ms: u64,
    },
    /// Trying again would not help.
    GiveUp,
}

impl Policy {
    /// What to do after `attempt` calls failed, the last with `error`. `random` is between 0 and 1.
    pub fn advise(&self, error: &Error, attempt: u32, random: f64, now_ms: u64) -> Advice {
        let _ = (error, attempt, random, now_ms);
        Advice::GiveUp
    }
}
