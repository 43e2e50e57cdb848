//! A server on standard streams: one message per line in both directions, with any number of concurrent calls.
//!
//! A task that waits for an answer reads for all waiting tasks, and nobody reads if nobody waits: a server that floods then only
//! fills its own pipe. The data before an answer is limited, and a server that exceeds the limit is killed.

mod streams;

pub(super) use self::streams::{ServerInput, ServerOutput};

use std::collections::HashMap;
use std::fmt::Debug;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::{Instant, timeout_at};

use self::streams::{LineError, ServerLines};
use super::http::{Bounds, MAX_MESSAGES};
use super::{McpFault, shown};
use kiso_base::rpc::{self, RequestId, RpcError, RpcMessage};

/// How long a program may take to end by itself when kiso does.
const GRACE: Duration = Duration::from_secs(2);

/// Some programs write it before their first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How long a program that has closed its streams may take to end.
const CLOSING: Duration = Duration::from_secs(10);

/// The process or component at the other end of the streams.
pub(super) trait ServerLife: Debug + Send + Sync {
    /// Kills it, if it has not ended.
    fn end(&self);

    /// Asks it to end by itself; [`ServerLife::end`] follows.
    fn ask_to_end(&self) {}

    /// Returns whether it has ended.
    fn is_over(&self) -> bool;

    /// Waits until it has ended, and returns the reason.
    fn ended(&self) -> BoxFuture<'_, McpFault>;
}

/// A running server.
#[derive(Debug)]
pub(super) struct StdioServer {
    life: Box<dyn ServerLife>,
    input: AsyncMutex<ServerInput>,
    output: AsyncMutex<ServerLines>,
    waiting: Mutex<Waiting>,
}

/// The waiting requests.
#[derive(Debug)]
struct Waiting {
    requests: HashMap<RequestId, Waiter>,
    /// Messages and bytes since the last answer.
    messages: usize,
    bytes: usize,
    /// Time of the last read.
    heard: Option<Instant>,
    /// The last line that was not a message.
    noise: Option<String>,
    /// Why there will be no more answers.
    fault: Option<McpFault>,
}

#[derive(Debug)]
struct Waiter {
    max_kib: u64,
    answer: oneshot::Sender<Result<Value, McpFault>>,
}

impl StdioServer {
    pub(super) fn new(life: Box<dyn ServerLife>, input: ServerInput, output: ServerOutput) -> StdioServer {
        let waiting =
            Waiting { requests: HashMap::new(), messages: 0, bytes: 0, heard: None, noise: None, fault: None };
        let (input, output) = (AsyncMutex::new(input), AsyncMutex::new(ServerLines::new(output)));
        StdioServer { life, input, output, waiting: Mutex::new(waiting) }
    }

    /// Returns whether it has stopped answering. Another one must then be started.
    pub(super) fn is_over(&self) -> bool {
        self.lock().fault.is_some() || self.life.is_over()
    }

    /// Stops it, and gives it a moment to save its state.
    pub(super) async fn stop(&self) {
        self.life.ask_to_end();
        let _ = tokio::time::timeout(GRACE, self.life.ended()).await;
        self.fail(McpFault::Broken("kiso has ended it".to_owned()));
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn ask(&self, id: &RequestId, message: &Value, bounds: Bounds) -> Result<Value, McpFault> {
        let begun = Instant::now();
        let (sender, answer) = oneshot::channel();
        let _request = Request::new(self, id, Waiter { max_kib: bounds.max_kib, answer: sender })?;
        let talk = async {
            let (write, read) = (self.write(message), self.read_until(answer));
            tokio::pin!(write, read);
            tokio::select! {
                biased;
                written = &mut write => {
                    if let Err(error) = written {
                        return Err(self.broken(&error).await);
                    }
                    read.await
                }
                answer = &mut read => answer,
            }
        };
        timeout_at(bounds.end, talk).await.unwrap_or_else(|_| {
            let noise = self.lock().noise.take();
            let fault = match noise {
                Some(noise) => McpFault::Noise(bounds.timeout_s, noise),
                None => McpFault::Timeout(bounds.timeout_s),
            };
            // It may be busy with this request alone, or it hangs; the next request then starts another server.
            if self.lock().heard.is_none_or(|heard| heard < begun) {
                self.fail(fault.clone());
            }
            Err(fault)
        })
    }

    /// Sends a notification.
    pub(super) async fn tell(&self, message: &Value, bounds: Bounds) -> Result<(), McpFault> {
        match timeout_at(bounds.end, self.write(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.broken(&error).await),
            Err(_) => Err(McpFault::Timeout(bounds.timeout_s)),
        }
    }

    /// Kills it, and reports the reason to all waiting requests.
    fn fail(&self, fault: McpFault) {
        let mut waiting = self.lock();
        for (_, waiter) in waiting.requests.drain() {
            let _ = waiter.answer.send(Err(fault.clone()));
        }
        waiting.fault.get_or_insert(fault);
        drop(waiting);
        self.life.end();
    }

    /// Returns the reason for a failed write: most likely the server has ended.
    async fn broken(&self, error: &io::Error) -> McpFault {
        let fault = match self.life.is_over() || error.kind() == io::ErrorKind::BrokenPipe {
            true => self.why().await,
            false => McpFault::Broken(error.to_string()),
        };
        self.fail(fault.clone());
        fault
    }

    /// Returns why it has ended. A server that has closed its streams and is still running is killed.
    async fn why(&self) -> McpFault {
        let ended = tokio::time::timeout(CLOSING, self.life.ended());
        match ended.await {
            Ok(fault) => fault,
            Err(_) => McpFault::Broken("it has closed its standard output".to_owned()),
        }
    }

    /// Reads for all waiting requests, until there is an answer or another task reads.
    async fn read_until(&self, mut answer: oneshot::Receiver<Result<Value, McpFault>>) -> Result<Value, McpFault> {
        let gone = || Err(McpFault::Broken("it has ended".to_owned()));
        let mut output = tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or_else(|_| gone()),
            output = self.output.lock() => output,
        };
        loop {
            match answer.try_recv() {
                Ok(answer) => return answer,
                Err(oneshot::error::TryRecvError::Empty) => {}
                Err(oneshot::error::TryRecvError::Closed) => return gone(),
            }
            let (room, kib) = self.room();
            match output.next(room).await {
                Ok(Some(line)) => self.take(&line, kib).await,
                Ok(None) => self.fail(self.why().await),
                Err(LineError::TooLong) => self.fail(McpFault::TooLarge(kib)),
                Err(LineError::Io(error)) => self.fail(McpFault::Broken(error)),
            }
        }
    }

    /// Returns the number of bytes that may still arrive before the next answer, and the limit in KiB.
    fn room(&self) -> (usize, u64) {
        let waiting = self.lock();
        let kib = waiting.requests.values().map(|waiter| waiter.max_kib).max().unwrap_or_default();
        let most = usize::try_from(kib << 10).unwrap_or(usize::MAX);
        (most.saturating_sub(waiting.bytes), kib)
    }

    /// Handles a line of the server: a message, or other output such as a banner, which is logged and skipped.
    async fn take(&self, line: &[u8], kib: u64) {
        self.note(line.len());
        let message = match rpc::read(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)) {
            Ok(message) => message,
            Err((id, error)) => {
                let begin = shown(&String::from_utf8_lossy(&line[..line.len().min(120)]));
                tracing::warn!(
                    "an MCP server wrote a line to standard output that is not a message, {begin:?}: {}",
                    error.message
                );
                let waiter = id.and_then(|id| self.lock().requests.remove(&id));
                if let Some(waiter) = waiter {
                    let fault = format!("{begin:?}: {}", error.message);
                    let _ = waiter.answer.send(Err(McpFault::BadAnswer(shown(&fault))));
                }
                self.lock().noise = Some(begin);
                return self.count(kib);
            }
        };
        match message {
            RpcMessage::Request { id, method, .. } => self.reply(&id, &method, kib).await,
            RpcMessage::Response { id, result } => self.settle(id.as_ref(), result, line.len(), kib),
            RpcMessage::Notification { .. } => self.count(kib),
        }
    }

    fn note(&self, size: usize) {
        let mut waiting = self.lock();
        waiting.heard = Some(Instant::now());
        waiting.messages += 1;
        waiting.bytes += size;
    }

    /// Passes an answer to the request that waits for it.
    fn settle(&self, id: Option<&RequestId>, result: Result<Value, RpcError>, size: usize, kib: u64) {
        let mut waiting = self.lock();
        let waiter = match id {
            Some(id) => waiting.requests.remove(id),
            // An error without an id can be assigned if only one request is waiting.
            None if waiting.requests.len() == 1 => waiting.requests.drain().next().map(|(_, waiter)| waiter),
            None => None,
        };
        let Some(waiter) = waiter else {
            drop(waiting);
            return self.count(kib);
        };
        (waiting.messages, waiting.bytes, waiting.noise) = (0, 0, None);
        drop(waiting);
        let answer = match result {
            Ok(_) if size as u64 > waiter.max_kib << 10 => Err(McpFault::TooLarge(waiter.max_kib)),
            Ok(result) => Ok(result),
            Err(error) => Err(McpFault::Rpc { code: error.code, message: shown(&error.message) }),
        };
        let _ = waiter.answer.send(answer);
    }

    /// Kills a server that sends too many messages that nobody waits for.
    fn count(&self, kib: u64) {
        let waiting = self.lock();
        let (messages, bytes) = (waiting.messages, waiting.bytes as u64);
        drop(waiting);
        if messages > MAX_MESSAGES {
            self.fail(McpFault::TooManyMessages(MAX_MESSAGES));
        } else if bytes > kib << 10 {
            self.fail(McpFault::TooLarge(kib));
        }
    }

    /// Answers a request of the server: kiso answers pings, and supports no other requests.
    async fn reply(&self, id: &RequestId, method: &str, kib: u64) {
        self.count(kib);
        let result = match method {
            "ping" => Ok(json!({})),
            _ => Err(RpcError::new(rpc::METHOD_NOT_FOUND, "kiso offers nothing that a server can ask for")),
        };
        if let Err(error) = self.write(&rpc::response(id, result)).await {
            self.broken(&error).await;
        }
    }

    /// Writes a whole message. An incomplete one would be read as the beginning of the next.
    async fn write(&self, message: &Value) -> io::Result<()> {
        struct Half<'a>(&'a StdioServer, bool);
        impl Drop for Half<'_> {
            fn drop(&mut self) {
                if self.1 {
                    self.0.fail(McpFault::Broken("it did not read a whole request".to_owned()));
                }
            }
        }
        let line = line_of(message);
        let input = self.input.lock().await;
        let mut half = Half(self, true);
        let written = input.write(&line).await;
        half.1 = false;
        written
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        self.life.end();
    }
}

/// An active request. If nobody waits for it any more, the server is notified.
struct Request<'a> {
    server: &'a StdioServer,
    id: &'a RequestId,
}

impl<'a> Request<'a> {
    fn new(server: &'a StdioServer, id: &'a RequestId, waiter: Waiter) -> Result<Request<'a>, McpFault> {
        let mut waiting = server.lock();
        if let Some(fault) = &waiting.fault {
            return Err(fault.clone());
        }
        if waiting.requests.is_empty() {
            // Data that it sent while nobody waited fits into a pipe.
            (waiting.messages, waiting.bytes) = (0, 0);
        }
        waiting.requests.insert(id.clone(), waiter);
        Ok(Request { server, id })
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let mut waiting = self.server.lock();
        let unanswered = waiting.requests.remove(self.id).is_some();
        drop(waiting);
        if unanswered && let Ok(input) = self.server.input.try_lock() {
            let params = json!({ "requestId": Value::from(self.id), "reason": "nobody waits for it any more" });
            input.try_write(&line_of(&rpc::notification("notifications/cancelled", params)));
        }
    }
}

fn line_of(message: &Value) -> Vec<u8> {
    let mut line = kiso_base::json::bytes(message);
    line.push(b'\n');
    line
}
