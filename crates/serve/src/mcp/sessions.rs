//! Sessions of `/mcp`, limited in number.
//!
//! The session of a client that disconnected silently stays open for some minutes. Beyond the
//! limit, the least recently used session is closed; its client gets a 404, as the protocol
//! specifies, and starts another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};

/// The sessions, with the order of their last use.
pub(crate) struct CappedSessions {
    sessions: LocalSessionManager,
    sessions_max: usize,
    used: Mutex<SessionUse>,
}

/// The order of the last use of sessions: larger is later.
#[derive(Default)]
struct SessionUse {
    last: u64,
    by_session: BTreeMap<SessionId, u64>,
}

impl SessionUse {
    fn touch(&mut self, id: &SessionId) {
        self.last += 1;
        self.by_session.insert(id.clone(), self.last);
    }

    /// Removes and returns the sessions beyond the limit, the least recently used first.
    fn take_surplus(&mut self, sessions_max: usize) -> Vec<SessionId> {
        let mut by_use: Vec<(u64, SessionId)> =
            self.by_session.iter().map(|(id, used)| (*used, id.clone())).collect();
        by_use.sort();
        let surplus = by_use.len().saturating_sub(sessions_max);
        let ids: Vec<SessionId> = by_use.into_iter().take(surplus).map(|(_, id)| id).collect();
        for id in &ids {
            self.by_session.remove(id);
        }
        ids
    }
}

type SessionError = <LocalSessionManager as SessionManager>::Error;

impl CappedSessions {
    pub(crate) fn new(sessions_max: usize) -> Self {
        CappedSessions {
            sessions: LocalSessionManager::default(),
            sessions_max: sessions_max.max(1),
            used: Mutex::default(),
        }
    }

    fn lock_used(&self) -> MutexGuard<'_, SessionUse> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the use of a session, if it still exists.
    fn touch(&self, id: &SessionId) {
        let mut used = self.lock_used();
        if used.by_session.contains_key(id) {
            used.touch(id);
        }
    }

    /// Makes room for one more session. Sessions that have already ended are forgotten first.
    async fn make_room(&self) {
        let is_full = self.lock_used().by_session.len() >= self.sessions_max;
        if !is_full {
            return;
        }
        let alive: Vec<SessionId> = self.sessions.sessions.read().await.keys().cloned().collect();
        let surplus = {
            let mut used = self.lock_used();
            used.by_session.retain(|id, _| alive.contains(id));
            used.take_surplus(self.sessions_max - 1)
        };
        for id in surplus {
            // A session that cannot be closed now ends with its timeout.
            let _ = self.sessions.close_session(&id).await;
        }
    }
}

impl SessionManager for CappedSessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        self.make_room().await;
        let (id, transport) = self.sessions.create_session().await?;
        self.lock_used().touch(&id);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.lock_used().by_session.remove(id);
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.touch(id);
        self.sessions.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        self.touch(id);
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.touch(id);
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.touch(id);
        self.sessions.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_session_that_was_used_least_recently_makes_room() {
        let sessions = CappedSessions::new(2);
        let (first, _first) = sessions.create_session().await.unwrap();
        let (second, _second) = sessions.create_session().await.unwrap();
        sessions.touch(&first);
        let (third, _third) = sessions.create_session().await.unwrap();
        let has = async |id: &SessionId| sessions.has_session(id).await.unwrap();
        assert!(has(&first).await && has(&third).await);
        assert!(!has(&second).await);
        sessions.close_session(&first).await.unwrap();
        let (fourth, _fourth) = sessions.create_session().await.unwrap();
        assert!(has(&third).await && has(&fourth).await);
    }
}
