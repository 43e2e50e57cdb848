//! The DevTools protocol over a pipe: JSON messages, each ended by a zero byte.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A guard against a browser that hangs; no test waits for it to pass.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Receives the events of one tab: name and parameters. It is called in the order of arrival, before any answer that comes after
/// the event, and must not call a method and wait.
pub(super) type Listener = dyn Fn(&Wire, &str, &Value) + Send + Sync;

pub(super) struct Wire {
    out: Mutex<ChildStdin>,
    state: Mutex<State>,
    /// The file with the browser's output.
    said: PathBuf,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<u64, Sender<Result<Value, String>>>,
    listeners: HashMap<String, Arc<Listener>>,
    ended: bool,
}

impl Wire {
    pub(super) fn new(mut child: Child, said: PathBuf) -> Arc<Wire> {
        let out = child.stdin.take().expect("it is a pipe");
        let mut input = BufReader::with_capacity(1 << 20, child.stdout.take().expect("it is a pipe"));
        let wire = Arc::new(Wire { out: Mutex::new(out), state: Mutex::default(), said });
        let reading = wire.clone();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while input.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                if message.pop() == Some(0) {
                    reading.heard(&message);
                }
                message.clear();
            }
            let mut state = reading.state();
            state.ended = true;
            // Their calls notice that no answer will come.
            state.waiting.clear();
            drop(state);
            let _ = child.wait();
        });
        wire
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self, message: &[u8]) {
        let Ok(mut message) = serde_json::from_slice::<Value>(message) else { return };
        if let Some(id) = message["id"].as_u64() {
            let waiting = self.state().waiting.remove(&id);
            if let Some(waiting) = waiting {
                let answer = match message.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or("it failed").to_owned()),
                    None => Ok(message["result"].take()),
                };
                let _ = waiting.send(answer);
            }
            return;
        }
        let listener = message["sessionId"].as_str().and_then(|session| self.state().listeners.get(session).cloned());
        if let (Some(listener), Some(method)) = (listener, message["method"].as_str()) {
            listener(self, method, &message["params"]);
        }
    }

    pub(super) fn listen(&self, session: &str, listener: Arc<Listener>) {
        self.state().listeners.insert(session.to_owned(), listener);
    }

    pub(super) fn leave(&self, session: &str) {
        self.state().listeners.remove(session);
    }

    /// Calls a method of a tab or of the browser itself. Returns its result or error.
    pub(super) fn call(&self, session: Option<&str>, method: &str, params: &Value) -> Result<Value, String> {
        let (sender, answer) = channel();
        self.send(session, method, params, Some(sender))?;
        match answer.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(format!("{method} was not answered")),
            Err(RecvTimeoutError::Disconnected) => Err(self.obituary()),
        }
    }

    /// Calls a method without waiting for the answer.
    pub(super) fn tell(&self, session: Option<&str>, method: &str, params: &Value) {
        let _ = self.send(session, method, params, None);
    }

    fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        answer: Option<Sender<Result<Value, String>>>,
    ) -> Result<(), String> {
        let mut state = self.state();
        if state.ended {
            drop(state);
            return Err(self.obituary());
        }
        state.last += 1;
        let id = state.last;
        if let Some(answer) = answer {
            state.waiting.insert(id, answer);
        }
        drop(state);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&bytes).and_then(|()| out.flush()).map_err(|_| self.obituary())
    }

    fn obituary(&self) -> String {
        let said = std::fs::read(&self.said).unwrap_or_default();
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(2_000)..]).into_owned();
        format!("the browser has ended; it said: {said}")
    }
}
