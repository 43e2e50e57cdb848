//! Requests that a command which knows only WASI makes through its control file: it starts other commands and uses pipes to them.
//! `_kiso_host.py` of the package `python` is the other side.
//!
//! ```text
//!  request, answer:  u32 length of JSON │ u32 length of bytes │ JSON │ bytes      (little endian)
//! ```

use super::channel::{Channel, IoError, TaskEnded};
use super::errno::Errno;
use super::http_requests::{HttpRequests, RequestHead};
use super::instance::Components;
use super::process::{Child, Process, ProcessSpec};
use super::task::ExecTask;
use super::wit::kiso::exec::spawn::Mode;
use crate::engine::limits::LimitHit;
use crate::skill::sandbox::CommandRequests;
use bytes::Bytes;
use futures_util::future::select_all;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Most pipes that are open at once, each of 64 KiB at most.
const MAX_PIPES: usize = 256;

/// Most commands that were started and whose exit code nobody has read.
const MAX_CHILDREN: usize = 4_096;

/// Most bytes that are read at once.
const READ: usize = 256 << 10;

/// The longest wait in milliseconds; a line ends long before.
const MAX_MILLIS: u64 = 86_400_000;

/// The process that asks for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent<'a> {
    pub components: &'a Arc<Components>,
    pub task: &'a Arc<ExecTask>,
    pub process: &'a Arc<Process>,
    /// Whether it is a shell. A shell looks for files itself.
    pub is_shell: bool,
}

/// The reason why a command was not started.
#[derive(Debug)]
pub(super) enum StartRefusal {
    /// No command has this name. Contains a hint, as a phrase, if there is one.
    Unknown(Option<String>),
    /// As a sentence without a dot.
    Failed(&'static str),
}

/// Starts the command that the first word names, as a child of `Parent`.
pub(super) type StartCommand = fn(Parent<'_>, ProcessSpec) -> Result<Result<Child, StartRefusal>, LimitHit>;

/// The commands, pipes and requests of one process.
pub(super) struct ChildRequests {
    components: Arc<Components>,
    task: Arc<ExecTask>,
    process: Arc<Process>,
    start: StartCommand,
    /// Its own streams.
    own: [Channel; 3],
    pipes: BTreeMap<u32, Channel>,
    children: BTreeMap<u32, Child>,
    pipes_made: u32,
    http: HttpRequests,
}

impl std::fmt::Debug for ChildRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildRequests").field("children", &self.children).finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
enum Request {
    /// Starts a command.
    Start {
        argv: Vec<String>,
        env: Vec<(String, String)>,
        cwd: String,
        streams: [Plug; 3],
    },
    /// Waits until bytes can be written or read, the command has ended, or the time is over. Then does as much as is possible.
    Move {
        /// The pipe that the request's bytes are written to.
        write: Option<u32>,
        read: Vec<u32>,
        /// Bytes to read, at most.
        max: Option<usize>,
        child: Option<u32>,
        millis: Option<u64>,
    },
    /// Kills a command and everything that it started.
    Kill {
        child: u32,
    },
    /// Whether it has not ended.
    Alive {
        child: u32,
    },
    /// Drops a command that nobody will wait for.
    Forget {
        child: u32,
    },
    Close {
        pipe: u32,
    },
    /// Whether a command of this name exists.
    Exists {
        name: String,
    },
    /// Sends an HTTP request, whose body is the bytes.
    Http(RequestHead),
    /// Begins an HTTP request whose body comes piece by piece.
    HttpOpen(RequestHead),
    /// Sends the bytes as the next piece of a request's body.
    HttpWrite {
        request: u32,
        #[serde(default)]
        last: bool,
        millis: Option<u64>,
    },
    /// Reads the next piece of a response's body.
    HttpRead {
        body: u32,
        max: usize,
        millis: Option<u64>,
    },
    /// Waits for the response to one of the requests that were sent in this way.
    HttpWait {
        requests: Vec<u32>,
        millis: Option<u64>,
    },
    HttpClose {
        body: u32,
    },
}

/// The source or destination of a command's stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Plug {
    Null,
    /// A new pipe to the process that makes the request.
    Pipe,
    /// A stream of the process that makes the request, by number.
    Own(usize),
    /// An open pipe, by number.
    Of(u32),
    /// Standard error goes to standard output.
    Stdout,
    /// A file, read from this offset on.
    From(String, u64),
    /// A file, to which output is appended.
    To(String),
}

/// The reply to the guest, or the error that ends it.
type Answer = wasmtime::Result<Result<(Value, Bytes), Errno>>;

/// Returns from the function with the reply to the guest.
macro_rules! told {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(errno) => return Ok(Err(errno)),
        }
    };
}

impl ChildRequests {
    pub(super) fn new(parent: Parent<'_>, argv: &[String], own: [Channel; 3], start: StartCommand) -> Self {
        let (components, task, process) = (parent.components.clone(), parent.task.clone(), parent.process.clone());
        let (pipes, children) = (BTreeMap::new(), BTreeMap::new());
        let http = HttpRequests::new(super::http::gate(&task, &process, argv, own[2].clone()));
        Self { components, task, process, start, own, pipes, children, pipes_made: 0, http }
    }

    async fn answered(&mut self, request: &[u8]) -> Answer {
        let (head, bytes) = told!(parts(request).ok_or(Errno::Invalid));
        match told!(serde_json::from_slice(head).map_err(|_| Errno::Invalid)) {
            Request::Start { argv, env, cwd, streams } => {
                let _alone = self.task.alone_in_folders().await;
                self.start(argv, env, cwd, streams)
            }
            Request::Move { read, .. } if read.len() > MAX_PIPES => Ok(Err(Errno::Invalid)),
            Request::Move { write, read, max, child, millis } => {
                let write = told!(write.map(|pipe| self.pipe(pipe)).transpose()).filter(|_| !bytes.is_empty());
                let read =
                    told!(read.into_iter().map(|pipe| Ok((pipe, self.pipe(pipe)?))).collect::<Result<Vec<_>, _>>());
                let child = told!(child.map(|child| self.child(child)).transpose());
                let moved = Moved { write, bytes, read, max: max.unwrap_or(READ).clamp(1, READ), child };
                self.moved(moved, millis.map(|millis| Duration::from_millis(millis.min(MAX_MILLIS)))).await
            }
            Request::Kill { child } => {
                let child = told!(self.child(child));
                self.task.kill(&child);
                Ok(Ok((json!({}), Bytes::new())))
            }
            Request::Alive { child } => {
                let child = told!(self.child(child));
                self.process.label.join(child.label.get());
                Ok(Ok((json!({ "alive": child.code().is_none() }), Bytes::new())))
            }
            Request::Forget { child } => {
                self.children.remove(&child);
                Ok(Ok((json!({}), Bytes::new())))
            }
            Request::Close { pipe } => {
                self.pipes.remove(&pipe);
                Ok(Ok((json!({}), Bytes::new())))
            }
            Request::Exists { name } => {
                Ok(Ok((json!({ "exists": self.task.commands.find(&name).is_some() }), Bytes::new())))
            }
            Request::Http(head) => {
                let sent = self.http.send(head, Bytes::copy_from_slice(bytes)).await;
                self.going_on(sent.map(|head| (head, Bytes::new())))
            }
            Request::HttpOpen(head) => {
                let opened = self.http.open(head);
                self.going_on(opened.map(|head| (head, Bytes::new())))
            }
            Request::HttpWrite { request, last, millis } => {
                let written = self.http.write(request, (Bytes::copy_from_slice(bytes), last), millis).await;
                self.going_on(written.map(|head| (head, Bytes::new())))
            }
            Request::HttpRead { body, max, millis } => {
                let read = self.http.read(body, max, millis).await;
                self.going_on(read)
            }
            Request::HttpWait { requests, millis } => {
                let answer = self.http.wait(&requests, millis).await;
                self.going_on(answer.map(|answer| (answer.unwrap_or_else(|| json!({})), Bytes::new())))
            }
            Request::HttpClose { body } => {
                self.http.close(body);
                Ok(Ok((json!({}), Bytes::new())))
            }
        }
    }

    /// Opens a file as the shell does for a redirection.
    fn open(&self, path: &str, mode: Mode) -> Result<Channel, IoError> {
        let (dirs, permit) = (&self.task.dirs, &self.task.commands.permit);
        dirs.open_file(path, mode, &self.task.quota, (&self.process.label, permit))
    }

    fn pipe(&self, number: u32) -> Result<Channel, Errno> {
        self.pipes.get(&number).cloned().ok_or(Errno::BadChannel)
    }

    fn child(&self, number: u32) -> Result<Child, Errno> {
        self.children.get(&number).cloned().ok_or(Errno::Invalid)
    }

    fn start(&mut self, argv: Vec<String>, mut env: Vec<(String, String)>, cwd: String, streams: [Plug; 3]) -> Answer {
        if argv.is_empty() || !cwd.starts_with('/') {
            return Ok(Err(Errno::Invalid));
        }
        if self.children.len() >= MAX_CHILDREN || self.pipes.len() + streams.len() > MAX_PIPES {
            let said = format!(
                "a program may have at most {MAX_PIPES} pipes to commands and {MAX_CHILDREN} commands that it does not wait for"
            );
            return Ok(Ok(refused("EMFILE", said)));
        }
        // Secrets that were granted to this program are not passed on.
        env.retain(|(_, value)| self.task.commands.secrets.redact(value) == *value);
        let (mut channels, mut kept) = (BTreeMap::new(), [const { None }; 3]);
        for (number, plug) in (0..).zip(streams) {
            let channel = match plug {
                Plug::Null => Channel::Null,
                Plug::Own(own) => told!(self.own.get(own).cloned().ok_or(Errno::BadChannel)),
                Plug::Of(pipe) => told!(self.pipe(pipe)),
                Plug::From(path, at) => {
                    let file = match self.open(&path, Mode::Read) {
                        Ok(file) => file,
                        Err(error) => return self.failed(error),
                    };
                    if let Channel::File(file) = &file {
                        *file.position.lock().unwrap_or_else(PoisonError::into_inner) = at;
                    }
                    file
                }
                Plug::To(path) => match self.open(&path, Mode::Append) {
                    Ok(file) => file,
                    Err(error) => return self.failed(error),
                },
                Plug::Stdout => channels.get(&1).cloned().unwrap_or(Channel::Null),
                Plug::Pipe => {
                    let (reader, writer) = self.task.pipe();
                    let (reader, writer) = (Channel::Reader(reader), Channel::Writer(writer));
                    let (given, left) = if number == 0 { (reader, writer) } else { (writer, reader) };
                    kept[number as usize] = Some(left);
                    given
                }
            };
            channels.insert(number, channel);
        }
        let (components, task, process) = (&self.components, &self.task, &self.process);
        let parent = Parent { components, task, process, is_shell: false };
        let child = match (self.start)(parent, ProcessSpec { argv, env, cwd, channels, ..ProcessSpec::default() })? {
            Ok(child) => child,
            Err(StartRefusal::Unknown(instead)) => return Ok(Ok(refused("ENOENT", instead.unwrap_or_default()))),
            Err(StartRefusal::Failed(why)) => return Ok(Ok(refused("E2BIG", why.to_owned()))),
        };
        let pipes = kept.map(|channel| {
            channel.map(|channel| {
                self.pipes_made += 1;
                self.pipes.insert(self.pipes_made, channel);
                self.pipes_made
            })
        });
        let number = child.id;
        self.children.insert(number, child);
        Ok(Ok((json!({ "child": number, "pipes": pipes }), Bytes::new())))
    }

    async fn moved(&mut self, moved: Moved<'_>, within: Option<Duration>) -> Answer {
        let until = within.map(|within| Instant::now() + within);
        loop {
            let (mut answer, mut bytes) = (json!({}), Bytes::new());
            if let Some(pipe) = &moved.write {
                match put(pipe, moved.bytes, &self.process) {
                    Ok(0) => {}
                    Ok(count) => answer["wrote"] = count.into(),
                    Err(IoError::Errno(Errno::Closed)) => answer["closed"] = true.into(),
                    Err(error) => return self.failed(error),
                }
                // The free room depends on how much the reader has read, so its label applies.
                self.children.values().for_each(|child| self.process.label.join(child.label.get()));
            }
            for (number, pipe) in &moved.read {
                match pipe.try_read(moved.max) {
                    Ok(None) => {}
                    Ok(Some(read)) => {
                        self.process.label.join(pipe.label());
                        answer["read"] = (*number).into();
                        bytes = read;
                        break;
                    }
                    Err(error) => return self.failed(error),
                }
            }
            let ended = moved.child.as_ref().and_then(|child| Some((child, child.code()?)));
            // The end of a command and its code depend on the data that it has read.
            moved.child.iter().for_each(|child| self.process.label.join(child.label.get()));
            if let Some((child, code)) = ended {
                if let Some(hit) = self.task.limit() {
                    return Err(hit.into());
                }
                self.children.remove(&child.id);
                answer["code"] = code.into();
            }
            let is_over = until.is_some_and(|until| Instant::now() >= until);
            if answer.as_object().is_some_and(|answer| !answer.is_empty()) || is_over || moved.is_nothing() {
                return Ok(Ok((answer, bytes)));
            }
            moved.possible(until).await;
        }
    }

    /// Returns `answer`, unless the line was stopped meanwhile.
    fn going_on(&self, answer: Result<(Value, Bytes), Errno>) -> Answer {
        match self.task.limit() {
            Some(hit) => Err(hit.into()),
            None => Ok(answer),
        }
    }

    fn failed(&self, error: IoError) -> Answer {
        match error {
            IoError::Errno(errno) => Ok(Err(errno)),
            IoError::Limit(hit) => Err(hit.into()),
            IoError::Ended => Err(self.task.limit().map_or_else(|| TaskEnded.into(), Into::into)),
        }
    }
}

/// The data to move.
struct Moved<'a> {
    write: Option<Channel>,
    bytes: &'a [u8],
    read: Vec<(u32, Channel)>,
    max: usize,
    child: Option<Child>,
}

impl Moved<'_> {
    fn is_nothing(&self) -> bool {
        self.write.is_none() && self.read.is_empty() && self.child.is_none()
    }

    /// Waits until one of the operations is possible.
    async fn possible(&self, until: Option<Instant>) {
        let mut any: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = Vec::new();
        any.extend(self.write.iter().map(|pipe| Box::pin(pipe.writable()) as _));
        any.extend(self.read.iter().map(|(_, pipe)| Box::pin(pipe.readable()) as _));
        any.extend(self.child.iter().map(|child| Box::pin(async { _ = child.wait().await }) as _));
        any.push(Box::pin(async move {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => pending().await,
            }
        }));
        select_all(any).await;
    }
}

/// Writes as many bytes as there is room for, and returns the number.
fn put(pipe: &Channel, bytes: &[u8], process: &Process) -> Result<usize, IoError> {
    let room = pipe.room()?.min(bytes.len());
    if room > 0 {
        pipe.mark(process.label.get())?;
        pipe.put(&bytes[..room])?;
    }
    Ok(room)
}

fn refused(errno: &str, said: String) -> (Value, Bytes) {
    (json!({ "errno": errno, "said": said }), Bytes::new())
}

/// The JSON of a request, and its bytes.
#[expect(clippy::expect_used, reason = "it has four")]
fn parts(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (sizes, rest) = request.split_at_checked(8)?;
    let [head, bytes] =
        [&sizes[..4], &sizes[4..]].map(|size| u32::from_le_bytes(size.try_into().expect("it has four")));
    let (head, rest) = rest.split_at_checked(head as usize)?;
    (rest.len() == bytes as usize).then_some((head, rest))
}

#[expect(clippy::expect_used, reason = "an answer is short")]
fn joined(head: &Value, bytes: &[u8]) -> Vec<u8> {
    let head = head.to_string();
    let size = |bytes: &[u8]| u32::try_from(bytes.len()).expect("an answer is short").to_le_bytes();
    [&size(head.as_bytes())[..], &size(bytes), head.as_bytes(), bytes].concat()
}

impl CommandRequests for ChildRequests {
    fn answer(&mut self, request: Vec<u8>) -> Pin<Box<dyn Future<Output = wasmtime::Result<Vec<u8>>> + Send + '_>> {
        Box::pin(async move {
            let (head, bytes) = match self.answered(&request).await? {
                Ok(answer) => answer,
                Err(errno) => refused(errno.name(), errno.in_words().to_owned()),
            };
            Ok(joined(&head, &bytes))
        })
    }
}
