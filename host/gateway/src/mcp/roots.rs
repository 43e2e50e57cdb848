//! The roots of a client: the folders that it works in, which are opened in its session, as with `--dir`. Roots are requested
//! only from clients that started this process, and only in the older era, because the newer era discourages them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use kiso_base::home::{FolderRefusal, Home, MAX_FOLDERS, SessionFolder, SessionName, default_folder_path};
use kiso_base::rpc::{self, RequestId, RpcError};

/// How long a request waits for the client's roots.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum length in bytes of a root's URI.
const MAX_URI: usize = 4_096;

/// The roots of one client.
#[derive(Debug, Default)]
pub(super) struct ClientRoots {
    state: Mutex<RootsState>,
    answered: Notify,
}

#[derive(Debug, Default)]
struct RootsState {
    /// Whether the client has announced roots.
    announced: bool,
    /// The pending request for roots.
    asked: Option<RequestId>,
    requests: u64,
    known: Vec<PathBuf>,
    /// The last opening: its session, its roots, and the reasons for those that were refused.
    opened: Option<(SessionName, Vec<PathBuf>, Vec<String>)>,
}

impl ClientRoots {
    /// Reads the parameters of `initialize`.
    pub(super) fn announce(&self, params: &Map<String, Value>) {
        let roots = params.get("capabilities").and_then(|capabilities| capabilities.get("roots"));
        self.lock().announced = roots.is_some_and(Value::is_object);
    }

    /// Returns the request for the roots, if the client has some. A newer request replaces an unanswered one.
    pub(super) fn ask(&self) -> Option<Value> {
        let mut state = self.lock();
        if !state.announced {
            return None;
        }
        state.requests += 1;
        let id = RequestId::Text(format!("roots-{}", state.requests));
        let request = rpc::request(&id, "roots/list", json!({}));
        state.asked = Some(id);
        Some(request)
    }

    /// Handles a response of the client, if it answers the request for roots.
    pub(super) fn answer(&self, id: Option<&RequestId>, result: Result<Value, RpcError>) {
        let mut state = self.lock();
        if id.is_none() || state.asked.as_ref() != id {
            return;
        }
        state.asked = None;
        match result {
            Ok(result) => state.known = directories(&result),
            Err(error) => tracing::warn!(code = error.code, "the client does not tell its roots"),
        }
        drop(state);
        self.answered.notify_waiters();
    }

    /// Stops waiting, because the client sends no more messages.
    pub(super) fn close(&self) {
        self.lock().asked = None;
        self.answered.notify_waiters();
    }

    /// Returns the directories of the roots; waits for the client's response.
    pub(super) async fn known(&self) -> Vec<PathBuf> {
        let answer = async {
            loop {
                let answered = self.answered.notified();
                if self.lock().asked.is_none() {
                    return;
                }
                answered.await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, answer).await;
        self.lock().known.clone()
    }

    /// Returns whether these roots still have to be opened in the session.
    pub(super) fn is_new(&self, session: &SessionName, roots: &[PathBuf]) -> bool {
        !matches!(&self.lock().opened, Some((known, from, _)) if known == session && from == roots)
    }

    /// Opens the roots in a session, and stores the reasons for refused ones. The caller holds the session's lock.
    pub(super) fn open(&self, home: &Home, session: &SessionName, roots: &[PathBuf]) {
        let mut refused = Vec::new();
        for (number, root) in roots.iter().enumerate() {
            if let Err(refusal) = open(home, session, number, root) {
                tracing::warn!(%session, "a root of the client is not opened: {refusal}");
                refused.push(refusal.without_advice());
            }
        }
        self.lock().opened = Some((session.clone(), roots.to_vec(), refused));
    }

    /// Returns the reasons for refused roots, once.
    pub(super) fn take_refused(&self) -> Vec<String> {
        self.lock().opened.as_mut().map(|(.., refused)| std::mem::take(refused)).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, RootsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(home: &Home, session: &SessionName, number: usize, root: &Path) -> Result<(), FolderRefusal> {
    let folder = SessionFolder::new(home, root, &default_folder_path(number, root), false)?;
    // An editor's client calls many tools. A folder that is already open, with its decision about files with credentials, stays
    // unchanged.
    match home.folders(session)?.iter().any(|open| open.path == folder.path) {
        true => Ok(()),
        false => home.open_folder(session, folder),
    }
}

/// Returns the directories of a result of `roots/list`: the first ones with a `file://` URI.
fn directories(result: &Value) -> Vec<PathBuf> {
    let roots = result["roots"].as_array().map_or(&[][..], Vec::as_slice);
    let paths = roots.iter().filter_map(|root| directory(root["uri"].as_str()?));
    let mut known: Vec<PathBuf> = Vec::new();
    for path in paths {
        if known.len() < MAX_FOLDERS && !known.contains(&path) {
            known.push(path);
        }
    }
    known
}

/// Returns the absolute path of a `file://` URI.
fn directory(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://").filter(|_| uri.len() <= MAX_URI)?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return None;
    }
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let is_plain = !path.contains('\0') && path.split('/').all(|name| name != "..");
    is_plain.then(|| PathBuf::from(path.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_files_on_this_machine_are_roots() {
        let result = json!({ "roots": [
            { "uri": "https://example.org/x" }, { "uri": "file:///home/me/a%20b" }, { "uri": "file://server/share" },
            { "uri": "file://localhost/srv" }, { "uri": "file:///a/../etc" }, { "uri": "file:///a%00b" }, { "uri": 7 },
            { "name": "none" }, { "uri": "file:///srv" }, { "uri": "file:relative" }, { "uri": "file:///x?y" },
        ] });
        assert_eq!(directories(&result), [PathBuf::from("/home/me/a b"), PathBuf::from("/srv")]);
        let many: Vec<_> = (0..99).map(|number| json!({ "uri": format!("file:///r/{number}") })).collect();
        assert_eq!(directories(&json!({ "roots": many })).len(), MAX_FOLDERS);
        assert_eq!(directories(&json!({ "roots": "x" })), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn a_client_is_asked_if_it_has_roots() {
        let roots = ClientRoots::default();
        assert_eq!(roots.ask(), None);
        assert_eq!(roots.known().await, Vec::<PathBuf>::new());
        roots.announce(json!({ "capabilities": { "roots": {} } }).as_object().unwrap());
        let asked = roots.ask().unwrap();
        assert_eq!((&asked["id"], &asked["method"]), (&json!("roots-1"), &json!("roots/list")));
        let result = || Ok(json!({ "roots": [{ "uri": "file:///srv" }] }));
        roots.answer(Some(&RequestId::Text("roots-7".to_owned())), result());
        assert!(roots.lock().asked.is_some() && roots.lock().known.is_empty());
        roots.answer(Some(&RequestId::Text("roots-1".to_owned())), result());
        assert_eq!(roots.known().await, [PathBuf::from("/srv")]);
    }
}
