//! Sessions of the older era over HTTP: data from `initialize`, and active requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::task::AbortHandle;

use kiso_base::home::SessionName;
use kiso_base::rpc::{BUSY, INVALID_REQUEST, RequestId, RpcError};

/// Maximum number of sessions. Clients rarely end their sessions, so the least recently used one is removed.
const MAX_SESSIONS: usize = 256;

/// Maximum number of concurrent requests in a session.
const MAX_UNDER_WAY: usize = 64;

/// The sessions of a daemon. They end with it, and their clients start new ones.
#[derive(Debug, Default)]
pub(crate) struct HttpSessions {
    all: Mutex<HashMap<String, Arc<HttpSession>>>,
    uses: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct HttpSession {
    /// Identifies the token. Nobody else may use the session.
    owner: String,
    /// The kiso session of the client.
    pub session: SessionName,
    under_way: Mutex<HashMap<RequestId, Option<AbortHandle>>>,
    listens: AtomicBool,
    used: AtomicU64,
}

impl HttpSessions {
    /// Starts a session; returns its id, which nobody can guess.
    pub(crate) fn begin(&self, owner: String, session: SessionName) -> Result<String, RpcError> {
        let mut bytes = [0; 16];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| RpcError::internal(&"the system provides no random numbers"))?;
        let id = data_encoding::HEXLOWER.encode(&bytes);
        let mut all = self.lock();
        if all.len() >= MAX_SESSIONS {
            let idle = all.iter().filter(|(_, session)| session.is_idle());
            let oldest = idle.min_by_key(|(_, session)| session.used.load(Ordering::Relaxed)).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else {
                return Err(RpcError::new(BUSY, format!("{MAX_SESSIONS} sessions are in use")));
            };
            all.remove(&oldest);
        }
        let (under_way, listens) = (Mutex::default(), AtomicBool::new(false));
        let used = AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed));
        all.insert(id.clone(), Arc::new(HttpSession { owner, session, under_way, listens, used }));
        Ok(id)
    }

    /// Returns the session with this id, if it belongs to this owner.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Option<Arc<HttpSession>> {
        let session = self.lock().get(id).filter(|session| session.owner == owner).cloned()?;
        session.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session and its active requests; returns false if the owner has no such session.
    pub(crate) fn end(&self, id: &str, owner: &str) -> bool {
        if self.find(id, owner).is_none() {
            return false;
        }
        let Some(session) = self.lock().remove(id) else { return false };
        session.under_way().drain().filter_map(|(_, task)| task).for_each(|task| task.abort());
        true
    }

    /// Returns whether the session still exists; its stream ends with it.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    /// Takes a place for a request, until the returned guard is dropped.
    pub(crate) fn admit(self: &Arc<Self>, id: RequestId) -> Result<RequestSlot, RpcError> {
        let mut under_way = self.under_way();
        if under_way.contains_key(&id) {
            return Err(RpcError::new(INVALID_REQUEST, "a request with this id is still under way"));
        }
        if under_way.len() >= MAX_UNDER_WAY {
            return Err(RpcError::new(BUSY, format!("{MAX_UNDER_WAY} requests are already under way")));
        }
        under_way.insert(id.clone(), None);
        Ok(RequestSlot { session: self.clone(), id })
    }

    /// Stores the handle that cancels the request with this id.
    pub(crate) fn is_done_by(&self, id: &RequestId, task: AbortHandle) {
        if let Some(under_way) = self.under_way().get_mut(id) {
            *under_way = Some(task);
        }
    }

    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(Some(task)) = self.under_way().get(id) {
            task.abort();
        }
    }

    /// Takes the single place for a stream of notifications; `None` if it is taken.
    pub(crate) fn begin_listening(self: &Arc<Self>) -> Option<Listening> {
        (!self.listens.swap(true, Ordering::AcqRel)).then(|| Listening(self.clone()))
    }

    fn is_idle(&self) -> bool {
        self.under_way().is_empty() && !self.listens.load(Ordering::Acquire)
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<RequestId, Option<AbortHandle>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's place.
#[derive(Debug)]
pub(crate) struct RequestSlot {
    session: Arc<HttpSession>,
    id: RequestId,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.session.under_way().remove(&self.id);
    }
}

/// A stream's place.
#[derive(Debug)]
pub(crate) struct Listening(Arc<HttpSession>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listens.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_session_gives_way_and_nobody_uses_anothers() {
        let sessions = HttpSessions::default();
        let begin = |owner: &str| sessions.begin(owner.to_owned(), SessionName::default()).unwrap();
        let (first, second) = (begin("a"), begin("a"));
        assert!(sessions.find(&first, "b").is_none() && !sessions.end(&first, "b"));
        let _busy = sessions.find(&first, "a").unwrap().admit(RequestId::Number(1)).unwrap();
        let others: Vec<_> = (0..MAX_SESSIONS - 1).map(|_| begin("b")).collect();
        assert!(sessions.has(&first), "it is at work");
        assert!(!sessions.has(&second));
        assert!(sessions.end(&others[0], "b") && !sessions.has(&others[0]));
    }

    #[test]
    fn an_id_is_of_one_request_at_a_time() {
        let sessions = HttpSessions::default();
        let id = sessions.begin(String::new(), SessionName::default()).unwrap();
        let session = sessions.find(&id, "").unwrap();
        let first = session.admit(RequestId::Number(1)).unwrap();
        assert_eq!(session.admit(RequestId::Number(1)).unwrap_err().code, INVALID_REQUEST);
        drop(first);
        let all: Vec<_> = (0..).map_while(|id| session.admit(RequestId::Number(id)).ok()).collect();
        assert_eq!(all.len(), MAX_UNDER_WAY);
        let stream = session.begin_listening().unwrap();
        assert!(session.begin_listening().is_none());
        drop(stream);
        assert!(session.begin_listening().is_some());
    }
}
