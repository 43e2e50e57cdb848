//! The connection to the daemon: reconnects by itself, resumes where it was, and loses no message.
//!
//! A message that was not accepted when the connection broke is sent again with the same key, so it is processed once.

pub(super) mod daemon;
pub(super) mod upload;
pub(super) mod wire;

use self::wire::{PROTOCOL, Say, ServerLine};
use kiso_base::home::SessionName;
use kiso_gateway::{Lines, NoLine};
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Longest line that is read: much longer than any reply, so that only broken peers hit the limit.
const MAX_LINE: usize = 64 << 20;

/// How long to wait for a daemon that does not read.
const STALLED: Duration = Duration::from_secs(30);

/// Maximum lines waiting for the screen; then the daemon has to wait.
const AHEAD: usize = 256;

/// How long a conversation waits for the connection before it begins without one.
const FIRST: Duration = Duration::from_secs(2);

/// Pauses between attempts to reconnect: the first and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Events of the connection.
#[derive(Debug)]
pub(super) enum News {
    /// Connected; `again` if it was connected before.
    Connected {
        again: bool,
    },
    /// Disconnected. The client reconnects.
    Lost,
    Heard(ServerLine),
}

/// A client of the daemon. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Client {
    say: mpsc::UnboundedSender<Say>,
    news: mpsc::Receiver<News>,
    /// The first event, if it was already awaited.
    first: Option<News>,
}

impl Client {
    /// Starts to connect, in the caller's runtime. `name` is for the daemon's log; `live` requests texts while they are
    /// written.
    pub(super) fn start(name: &'static str, path: PathBuf, session: &SessionName, live: bool) -> Client {
        let (say, says) = mpsc::unbounded_channel();
        let (tell, news) = mpsc::channel(AHEAD);
        let connection = Connection {
            name,
            path,
            session: session.to_string(),
            live,
            says,
            tell,
            last: None,
            unaccepted: Vec::new(),
            refused: String::new(),
        };
        tokio::spawn(connection.run());
        Client { say, news, first: None }
    }

    /// Sends a line as soon as the client is connected.
    pub(super) fn say(&self, say: Say) {
        // The receiver lives as long as this client.
        let _ = self.say.send(say);
    }

    /// Waits until the client is connected or has failed; [`Client::news`] returns the result. Waits only briefly, because
    /// the daemon may be away. Lines sent by the daemon after that are received.
    pub(super) async fn stands(&mut self) {
        if let Ok(news) = tokio::time::timeout(FIRST, self.news()).await {
            self.first = Some(news);
        }
    }

    /// Waits for the next event.
    pub(super) async fn news(&mut self) -> News {
        if let Some(first) = self.first.take() {
            return first;
        }
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }
}

struct Connection {
    name: &'static str,
    path: PathBuf,
    session: String,
    live: bool,
    says: mpsc::UnboundedReceiver<Say>,
    tell: mpsc::Sender<News>,
    /// The id of the last received event.
    last: Option<i64>,
    /// Sent messages that were neither accepted nor refused yet.
    unaccepted: Vec<Say>,
    /// The reason of the last refusal, so that it is reported once.
    refused: String,
}

/// The client was dropped.
struct Left;

impl Connection {
    async fn run(mut self) {
        let (mut pause, mut again) = (AGAIN.0, false);
        loop {
            match UnixStream::connect(&self.path).await {
                Ok(stream) => {
                    let mut lines = Lines::new(stream, MAX_LINE, STALLED);
                    match self.register(&mut lines).await {
                        Ok(true) => {
                            pause = AGAIN.0;
                            let talked = self.converse(&mut lines, again).await;
                            again = true;
                            if talked.is_err() || self.tell.send(News::Lost).await.is_err() {
                                return;
                            }
                        }
                        Ok(false) => {}
                        Err(Left) => return,
                    }
                }
                Err(error) => tracing::debug!("{} cannot be reached: {error}", self.path.display()),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.tell.closed() => return,
            }
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    /// Registers. Returns whether the daemon accepted it.
    async fn register(&mut self, lines: &mut Lines) -> Result<bool, Left> {
        let (session, after, live) = (self.session.clone(), self.last, self.live);
        let register = Say::Register { client: self.name, protocol: PROTOCOL, session, after, live };
        if write(lines, &register).await.is_err() {
            return Ok(false);
        }
        match next(lines).await {
            Some(ServerLine::Registered { last }) => {
                self.last.get_or_insert(last);
                self.refused.clear();
                Ok(true)
            }
            Some(ServerLine::Error { message, .. }) if message == self.refused => Ok(false),
            // The line says why; the reason may be temporary.
            Some(heard) => {
                if let ServerLine::Error { message, .. } = &heard {
                    self.refused.clone_from(message);
                }
                self.tell.send(News::Heard(heard)).await.map(|()| false).map_err(|_| Left)
            }
            None => Ok(false),
        }
    }

    /// Sends and receives until the connection breaks.
    async fn converse(&mut self, lines: &mut Lines, again: bool) -> Result<(), Left> {
        self.tell.send(News::Connected { again }).await.map_err(|_| Left)?;
        // Lines that the daemon sent before it closed the connection are still processed.
        let mut broken = false;
        for say in &self.unaccepted {
            if write(lines, say).await.is_err() {
                broken = true;
                break;
            }
        }
        loop {
            tokio::select! {
                say = self.says.recv(), if !broken => {
                    let say = say.ok_or(Left)?;
                    if matches!(say, Say::Inbound { .. }) {
                        self.unaccepted.push(say.clone());
                    }
                    broken = write(lines, &say).await.is_err();
                }
                heard = next(lines) => {
                    let Some(mut heard) = heard else { return Ok(()) };
                    // Lines are answered in order, so the error belongs to the first unanswered one. Sent again, it would be
                    // too large again.
                    if let ServerLine::Error { reference: none @ None, code, .. } = &mut heard
                        && code == "too_large"
                        && let Some(Say::Inbound { reference, .. }) = self.unaccepted.first()
                    {
                        *none = Some(reference.clone());
                    }
                    if let ServerLine::Error { code, .. } = &heard && code == "shutting_down" {
                        // It is sent to the next daemon.
                        continue;
                    }
                    if let Some(answered) = heard.reference() {
                        self.unaccepted
                            .retain(|say| !matches!(say, Say::Inbound { reference, .. } if reference == answered));
                    }
                    let id = heard.id();
                    self.tell.send(News::Heard(heard)).await.map_err(|_| Left)?;
                    self.last = id.or(self.last);
                }
            }
        }
    }
}

async fn write(lines: &Lines, say: &Say) -> std::io::Result<()> {
    lines.write(&serde_json::to_value(say)?).await
}

/// Returns the next valid line; `None` at the end.
async fn next(lines: &mut Lines) -> Option<ServerLine> {
    loop {
        match lines.next().await {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(heard) => return Some(heard),
                Err(error) => tracing::warn!("a line from the daemon cannot be read: {error}"),
            },
            Err(NoLine::Gone) => return None,
            Err(error) => {
                tracing::warn!("the connection to the daemon was lost: {error}");
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::UnixListener;

    #[tokio::test]
    async fn it_stands_when_the_daemon_tells_what_happens_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kiso.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = Client::start("test", path, &SessionName::parse("s").unwrap(), false);
        let (mut daemon, mut asked) = (BufReader::new(listener.accept().await.unwrap().0), String::new());
        daemon.read_line(&mut asked).await.unwrap();
        assert!(asked.contains("register"), "{asked}");
        let mut stands = Box::pin(client.stands());
        assert!((&mut stands).now_or_never().is_none(), "it is connected, and not heard yet");
        daemon.write_all(b"{\"type\":\"registered\",\"last\":7}\n").await.unwrap();
        stands.await;
        assert!(matches!(client.news().await, News::Connected { again: false }));
    }
}
