//! The parts of NATS' protocol that tests need, so that they test the server and not a client's view of it.

use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Error, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A guard against answers that never come; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection. It reads only when something is requested.
#[derive(Debug)]
pub(super) struct Wire {
    stream: BufReader<TcpStream>,
    /// Prefix of the subjects for answers to this connection.
    inbox: String,
    requests: u64,
    /// Received messages that were not requested yet.
    unread: VecDeque<Message>,
}

#[derive(Debug)]
pub(super) struct Message {
    pub subject: String,
    pub payload: Vec<u8>,
}

impl Wire {
    /// Connects with the credentials in a USER:PASSWORD file, and waits until the server accepts.
    pub(super) fn open(url: &str, credentials: &Path) -> std::io::Result<Wire> {
        let address = url.strip_prefix("nats://").expect("it is an address of NATS");
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        static WIRES: AtomicU64 = AtomicU64::new(0);
        let inbox = format!("answer.{}", WIRES.fetch_add(1, Ordering::Relaxed));
        let mut wire = Wire { stream: BufReader::new(stream), inbox, requests: 0, unread: VecDeque::new() };
        let greeting = wire.line()?;
        if !greeting.starts_with("INFO ") {
            return Err(Error::other(greeting));
        }
        let credentials = std::fs::read_to_string(credentials)?;
        let (user, password) = credentials.trim().split_once(':').expect("it is USER:PASSWORD");
        let who = serde_json::json!({ "verbose": false, "pedantic": false, "headers": true, "no_responders": true,
            "user": user, "pass": password });
        wire.send(format!("CONNECT {who}\r\nPING\r\n").as_bytes())?;
        match wire.line()?.as_str() {
            "PONG" => wire.send(format!("SUB {}.* 1\r\n", wire.inbox).as_bytes())?,
            other => return Err(Error::other(other)),
        }
        Ok(wire)
    }

    /// Subscribes to a subject.
    pub(super) fn subscribe(&mut self, subject: &str) -> std::io::Result<()> {
        self.send(format!("SUB {subject} 2\r\nPING\r\n").as_bytes())?;
        loop {
            if self.next()?.is_none() {
                return Ok(());
            }
        }
    }

    pub(super) fn publish(&mut self, subject: &str, payload: &[u8]) -> std::io::Result<()> {
        let head = format!("PUB {subject} {}\r\n", payload.len());
        self.send(&[head.as_bytes(), payload, b"\r\n"].concat())
    }

    /// Sends a request. Returns the subject of its answer.
    pub(super) fn begin(
        &mut self,
        subject: &str,
        headers: &[(&str, String)],
        payload: &[u8],
    ) -> std::io::Result<String> {
        self.requests += 1;
        let inbox = format!("{}.{}", self.inbox, self.requests);
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let block = format!("NATS/1.0\r\n{lines}\r\n");
        let sizes = (block.len(), block.len() + payload.len());
        let head = format!("HPUB {subject} {inbox} {} {}\r\n{block}", sizes.0, sizes.1);
        self.send(&[head.as_bytes(), payload, b"\r\n"].concat())?;
        Ok(inbox)
    }

    /// Waits for the answer to a request.
    pub(super) fn answer(&mut self, inbox: &str) -> std::io::Result<Message> {
        self.heard(inbox)
    }

    /// The next message with this subject.
    pub(super) fn heard(&mut self, subject: &str) -> std::io::Result<Message> {
        loop {
            if let Some(at) = self.unread.iter().position(|message| message.subject == subject) {
                return Ok(self.unread.remove(at).expect("it was found there"));
            }
            self.next()?;
        }
    }

    /// Sends a request whose answer is JSON.
    #[track_caller]
    pub(super) fn ask(&mut self, subject: &str, headers: &[(&str, String)], payload: &[u8]) -> Value {
        let answer = self.begin(subject, headers, payload).and_then(|inbox| self.answer(&inbox));
        let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
        let text = String::from_utf8_lossy(&answer.payload);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{subject}: {error}: {text:?}"))
    }

    /// Whether something was received but not read, apart from the server's keepalive pings.
    pub(super) fn has_more(&mut self) -> bool {
        const ASKED: &[u8] = b"PING\r\n";
        self.stream.get_ref().set_nonblocking(true).expect("it can be asked");
        let mut asked = 0;
        let has = loop {
            match self.stream.fill_buf() {
                Ok(bytes) if bytes.starts_with(ASKED) => self.stream.consume(ASKED.len()),
                Ok(bytes) => break !bytes.is_empty(),
                Err(_) => break false,
            }
            asked += 1;
        };
        self.stream.get_ref().set_nonblocking(false).expect("it can be asked");
        (0..asked).for_each(|_| self.send(b"PONG\r\n").expect("it is there"));
        has || !self.unread.is_empty()
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(Error::other("the connection ended"));
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads one item: returns a message, which is stored, or `None` for an answer to a ping.
    fn next(&mut self) -> std::io::Result<Option<()>> {
        loop {
            let line = self.line()?;
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["PING"] => self.send(b"PONG\r\n")?,
                ["PONG"] => return Ok(None),
                ["INFO", ..] => {}
                [kind @ ("MSG" | "HMSG"), subject, .., size] => {
                    let size: usize = size.parse().map_err(Error::other)?;
                    // The length of the headers comes before it.
                    let headers =
                        if kind == "HMSG" { words[words.len() - 2].parse().map_err(Error::other)? } else { 0 };
                    let mut bytes = vec![0; size + 2];
                    self.stream.read_exact(&mut bytes)?;
                    let payload = bytes[headers..size].to_vec();
                    self.unread.push_back(Message { subject: subject.to_owned(), payload });
                    return Ok(Some(()));
                }
                _ => return Err(Error::other(line)),
            }
        }
    }
}
