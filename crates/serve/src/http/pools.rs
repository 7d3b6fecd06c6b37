//! Two pools of connections: those that have shown a valid token, and those that have not.
//!
//! A connection starts in the unauthenticated pool. When that pool is full, its oldest connection is closed, so a
//! flood of unauthenticated sockets never locks out a client with a token: its first valid request moves it to the
//! other pool.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::limits::HttpLimits;

/// The number of connections closed at once when the system has no room for another.
const ENDED_AT_ONCE: usize = 16;

/// The open connections.
#[derive(Debug)]
pub(super) struct ConnectionPools {
    state: Mutex<PoolState>,
    unauthenticated_max: usize,
    authenticated_max: usize,
}

#[derive(Debug, Default)]
struct PoolState {
    /// The number of the next connection; a smaller number is older.
    next: u64,
    /// Connections without a token, with the handle that aborts each one once its task is known.
    unauthenticated: BTreeMap<u64, Option<AbortHandle>>,
    authenticated: usize,
}

/// The place of a connection in a pool. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    pools: Arc<ConnectionPools>,
    number: u64,
    is_authenticated: AtomicBool,
}

impl ConnectionPools {
    pub(super) fn new(limits: &HttpLimits) -> Arc<Self> {
        Arc::new(ConnectionPools {
            state: Mutex::default(),
            unauthenticated_max: limits.unauthenticated_connections_max.max(1),
            authenticated_max: limits.connections_max,
        })
    }

    /// Adds a new connection. If the pool is full, its oldest connection is closed.
    pub(super) fn add_connection(self: &Arc<Self>) -> Arc<ConnectionSlot> {
        let mut state = self.lock_state();
        let surplus = (state.unauthenticated.len() + 1).saturating_sub(self.unauthenticated_max);
        state.end_oldest(surplus);
        let number = state.next;
        state.next += 1;
        state.unauthenticated.insert(number, None);
        let pools = Arc::clone(self);
        Arc::new(ConnectionSlot { pools, number, is_authenticated: AtomicBool::new(false) })
    }

    /// Closes some of the oldest unauthenticated connections, because the system has no room for another connection.
    pub(super) fn end_oldest_connections(&self) {
        self.lock_state().end_oldest(ENDED_AT_ONCE);
    }

    /// Registers the handle that aborts a connection.
    pub(super) fn set_abort_handle(&self, number: u64, handle: AbortHandle) {
        // A connection that was moved or has already ended is no longer in the pool.
        if let Some(known) = self.lock_state().unauthenticated.get_mut(&number) {
            *known = Some(handle);
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn end_oldest(&mut self, count: usize) {
        for _ in 0..count {
            let Some((_, handle)) = self.unauthenticated.pop_first() else { return };
            if let Some(handle) = handle {
                handle.abort();
            }
        }
    }
}

impl ConnectionSlot {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Moves the connection to the authenticated pool. Returns false if that pool is full.
    pub(super) fn authenticate(&self) -> bool {
        if self.is_authenticated.load(Ordering::Relaxed) {
            return true;
        }
        let mut state = self.pools.lock_state();
        if state.authenticated >= self.pools.authenticated_max {
            return false;
        }
        // A connection that is just being closed has no place any more, and needs none.
        if state.unauthenticated.remove(&self.number).is_some() {
            state.authenticated += 1;
            self.is_authenticated.store(true, Ordering::Relaxed);
        }
        true
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = self.pools.lock_state();
        if self.is_authenticated.load(Ordering::Relaxed) {
            state.authenticated -= 1
        } else {
            drop(state.unauthenticated.remove(&self.number))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(unauthenticated: usize, authenticated: usize) -> Arc<ConnectionPools> {
        ConnectionPools::new(&HttpLimits {
            unauthenticated_connections_max: unauthenticated,
            connections_max: authenticated,
            ..HttpLimits::default()
        })
    }

    /// The number of connections with a token, and without one.
    fn counts(pools: &ConnectionPools) -> (usize, usize) {
        let state = pools.lock_state();
        (state.authenticated, state.unauthenticated.len())
    }

    #[tokio::test]
    async fn the_oldest_without_a_token_makes_room() {
        let pools = pools(2, 1);
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let seat = pools.add_connection();
            let number = seat.number();
            let task = tokio::spawn(async move {
                let _seat = seat;
                std::future::pending::<()>().await;
            });
            pools.set_abort_handle(number, task.abort_handle());
            tasks.push(task);
        }
        for task in tasks.drain(..2) {
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert_eq!(pools.lock_state().unauthenticated.keys().copied().collect::<Vec<_>>(), [2, 3]);
        assert!(tasks.iter().all(|task| !task.is_finished()));
    }

    #[test]
    fn a_token_moves_a_connection_out_of_reach() {
        let pools = pools(1, 1);
        let first = pools.add_connection();
        assert!(first.authenticate() && first.authenticate());
        let second = pools.add_connection();
        assert!(!second.authenticate(), "there is no room among those with a token");
        assert_eq!(counts(&pools), (1, 1));
        drop(first);
        assert!(second.authenticate());
        drop(second);
        assert_eq!(counts(&pools), (0, 0));
    }

    #[test]
    fn a_connection_that_was_ended_takes_no_place() {
        let pools = pools(1, 1);
        let (old, _new) = (pools.add_connection(), pools.add_connection());
        assert!(old.authenticate());
        assert_eq!(pools.lock_state().authenticated, 0);
        drop(old);
        assert_eq!(counts(&pools), (0, 1));
    }
}
