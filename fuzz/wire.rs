//! Input from clients: requests to the port and lines to the socket of a daemon that runs the real binary. The target checks the
//! daemon's memory, and that its log contains no panic.

use crate::Target;
use crate::dice::Dice;
use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

pub(crate) struct Wire {
    served: Served,
    home: Home,
    port: Option<BufReader<TcpStream>>,
    socket: Option<BufReader<UnixStream>>,
}

const CONFIG: &str = "model = \"reflex\"\n[log]\nlevel = \"error\"\n[gateway]\nmax_body_kib = 64\nmax_upload_mib = 1\n";

/// The first byte of an input: how it is sent.
const WHOLE: u8 = 0;
/// Sent to its end; the connection is then closed for writing.
const RAW: u8 = 1;
const LINE: u8 = 2;

/// Placeholder for the token, which is different in each run.
const TOKEN: &str = "TOKEN";

impl Wire {
    pub(crate) fn new() -> Wire {
        let home = Home::new();
        home.config(CONFIG);
        let token = home.kiso(&["--json", "token", "add", "fuzz", "--scope", "admin"]).json();
        let mut served = Served::start(&home);
        served.token = Some(token["token"].as_str().expect("it is shown once").to_owned());
        Wire { served, home, port: None, socket: None }
    }

    /// Sends a request with valid framing and returns the status of the response. Keeps the connection if the response allows it.
    fn whole(&mut self, bytes: &[u8]) -> std::io::Result<u16> {
        let kept = self.port.take();
        let fresh = kept.is_none();
        let mut port = kept.unwrap_or_else(|| BufReader::new(self.served.connect()));
        let sent = |port: &mut BufReader<TcpStream>| {
            port.get_mut().write_all(bytes)?;
            answer(port)
        };
        let (status, open) = match sent(&mut port) {
            Ok(answered) => answered,
            // A kept connection may have been closed meanwhile.
            Err(error) if !fresh && is_closed(&error) => {
                port = BufReader::new(self.served.connect());
                sent(&mut port)?
            }
            Err(error) => return Err(error),
        };
        self.port = open.then_some(port);
        Ok(status)
    }

    /// Sends any bytes and returns the status of the first response, or 0 if there is none.
    fn raw(&self, bytes: &[u8]) -> std::io::Result<u16> {
        let mut stream = self.served.connect();
        // The daemon may answer and close before it has read all.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answered = Vec::new();
        match stream.take(1 << 20).read_to_end(&mut answered) {
            Err(error) if !is_closed(&error) => return Err(error),
            _ => {}
        }
        let text = String::from_utf8_lossy(&answered[..answered.len().min(64)]).into_owned();
        Ok(text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0))
    }

    /// Sends a line and then a question with a known `ref`. Returns whether the line was understood.
    fn line(&mut self, bytes: &[u8]) -> std::io::Result<bool> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let mut stream = UnixStream::connect(self.home.path().join("kiso.sock"))?;
                stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
                stream.write_all(b"{\"type\":\"register\",\"client\":\"fuzz\",\"protocol\":1,\"ref\":\"begun\"}\n")?;
                let mut socket = BufReader::new(stream);
                until_answer(&mut socket, "begun")?;
                socket
            }
        };
        let sent = socket.get_mut().write_all(bytes);
        let sent = sent.and_then(|()| socket.get_mut().write_all(b"\n{\"type\":\"status\",\"ref\":\"asked\"}\n"));
        match sent.and_then(|()| until_answer(&mut socket, "asked")) {
            Ok(refused) => {
                self.socket = Some(socket);
                Ok(!refused)
            }
            // The daemon disconnects clients that send too much, or only lines it does not understand.
            Err(error) if is_closed(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}

/// Reads the response to a request: its status, and whether the connection can be used again.
fn answer(port: &mut BufReader<TcpStream>) -> std::io::Result<(u16, bool)> {
    let (mut status, mut length, mut open) = (0, None, true);
    loop {
        let mut line = String::new();
        if port.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest.split(' ').next().and_then(|status| status.parse().ok()).unwrap_or(0);
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse::<u64>().ok();
        }
        open &= line != "connection: close";
    }
    match length {
        _ if matches!(status, 204 | 304) => {}
        Some(length) => {
            std::io::copy(&mut port.take(length), &mut std::io::sink())?;
        }
        // The end of a stream is not known.
        None => open = false,
    }
    Ok((status, open))
}

/// Reads lines until the one with this `ref`. Returns whether an earlier one refused a line that was not understood.
fn until_answer(socket: &mut BufReader<UnixStream>, reference: &str) -> std::io::Result<bool> {
    let mut refused = false;
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line: Value = serde_json::from_str(&line).map_err(std::io::Error::other)?;
        if line["ref"] == reference {
            return Ok(refused);
        }
        refused |= line["code"] == "bad_request";
    }
}

impl Target for Wire {
    fn name(&self) -> &'static str {
        "wire"
    }

    fn together(&self) -> u64 {
        16
    }

    fn ordinary(&self) -> u64 {
        2_000
    }

    fn process(&self) -> Option<u32> {
        Some(self.served.pid())
    }

    fn make(&mut self, dice: &mut Dice) -> Vec<u8> {
        if dice.once_in(3) {
            let mut bytes = line(dice).into_bytes();
            if dice.once_in(3) {
                dice.mutate(&mut bytes);
            }
            // An input is one line; a mutation may have split it.
            bytes.retain(|byte| *byte != b'\n');
            bytes.insert(0, LINE);
            return bytes;
        }
        let (mut bytes, mut how) = (request(dice), WHOLE);
        if dice.once_in(3) {
            how = RAW;
            for _ in 0..1 + dice.below(4) {
                dice.mutate(&mut bytes);
            }
        }
        bytes.insert(0, how);
        bytes
    }

    fn run(&mut self, inputs: &[Vec<u8>]) -> Result<u64, String> {
        let mut past = 0;
        for input in inputs {
            let token = self.served.token.clone().unwrap_or_default();
            let text: Vec<u8> = replaced(&input[1..], TOKEN.as_bytes(), token.as_bytes());
            let understood = match input[0] {
                LINE => self.line(&text),
                how => {
                    let status = if how == WHOLE { self.whole(&text) } else { self.raw(&text) };
                    status.map(|status| !matches!(status, 0 | 400 | 408 | 413 | 414 | 431))
                }
            };
            past += u64::from(understood.map_err(|error| format!("the daemon does not answer: {error}"))?);
        }
        let log = self.served.log();
        if log.contains("panic") {
            return Err(format!("the daemon's log has {log}"));
        }
        Ok(past)
    }
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    match bytes.windows(from.len()).position(|window| window == from) {
        Some(at) => [&bytes[..at], to, &bytes[at + from.len()..]].concat(),
        None => bytes.to_vec(),
    }
}

/// A part of a path, percent-encoded or not.
fn part(dice: &mut Dice) -> String {
    const PARTS: [&str; 18] = [
        "default",
        "main",
        "x",
        "..",
        ".",
        "%2e%2e",
        "%2f",
        "%00",
        "%ff",
        "a%20b",
        "1",
        "-1",
        "99999999999999999999",
        "data",
        "fetch",
        "last",
        "caf%C3%A9",
        "%f",
    ];
    match dice.below(8) {
        0 => "a".repeat(dice.below(300)),
        _ => dice.one_of(&PARTS).to_owned(),
    }
}

fn path(dice: &mut Dice) -> String {
    let (one, two) = (part(dice), part(dice));
    let path = match dice.below(30) {
        0 => "/health".to_owned(),
        1 => "/me".to_owned(),
        2 => format!("/messages/{one}"),
        3 => "/sessions".to_owned(),
        4 => format!("/sessions/{one}"),
        5 => format!("/sessions/{one}/messages"),
        6 => format!("/sessions/{one}/files"),
        7 | 8 => format!("/sessions/{one}/files/{two}"),
        9 => format!("/sessions/{one}/read"),
        10 => "/search".to_owned(),
        11 => format!("/status/{one}"),
        12 => "/runs".to_owned(),
        13 => format!("/runs/{one}"),
        14 => format!("/runs/{one}/trace"),
        15 => "/schedules".to_owned(),
        16 => format!("/schedules/{one}"),
        17 => format!("/schedules/{one}/pause"),
        18 => "/skills".to_owned(),
        19 => format!("/skills/{one}"),
        20 => format!("/skills/{one}/grants"),
        21 => "/memory".to_owned(),
        22 => "/facts".to_owned(),
        23 => "/input".to_owned(),
        24 => "/usage".to_owned(),
        25 => format!("/pub/{one}"),
        26 => "/msg".to_owned(),
        27 => format!("/page/{one}/{two}"),
        28 => "/login".to_owned(),
        _ => format!("/{one}/{two}"),
    };
    let query = match dice.below(6) {
        0 => "?limit=2".to_owned(),
        1 => format!(
            "?{}={}",
            dice.one_of(&["before", "session", "q", "after", "limit", "replace", "grant"]),
            part(dice)
        ),
        _ => String::new(),
    };
    path + &query
}

fn body(dice: &mut Dice) -> String {
    match dice.below(9) {
        // Only commands are sent, because they are answered at once; another message would start a run.
        0 => json!({ "session": part(dice), "text": dice.one_of(&["/help", "/status", "/model", "/nothing", "/ "]) }).to_string(),
        1 => json!({ "title": dice.text() }).to_string(),
        2 => json!({ "message": dice.next() as i64 }).to_string(),
        3 => json!({ "name": part(dice), "when": dice.one_of(&["@yearly", "0 0 1 1 *", "* * * *", "x"]), "message": "/status" }).to_string(),
        4 => json!({ "token": dice.text() }).to_string(),
        5 => json!({ "grant": dice.one_of(&["all", "none", "some"]) }).to_string(),
        6 => json!({ "hosts": [{ "host": dice.text(), "private": dice.once_in(2) }] }).to_string(),
        7 => "[".repeat(dice.below(400)),
        _ => dice.text(),
    }
}

fn request(dice: &mut Dice) -> Vec<u8> {
    let method =
        dice.one_of(&["GET", "GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]);
    // Endless streams are not requested: the response to HEAD has a length and no body.
    let method = if method == "HEAD" { "GET" } else { method };
    let mut head = format!("{method} {} HTTP/1.1\r\nhost: localhost\r\n", path(dice));
    if dice.below(10) > 0 {
        head += &format!("authorization: Bearer {TOKEN}\r\n");
    }
    match dice.below(12) {
        0 => head += &format!("range: bytes={}-{}\r\n", dice.below(99), dice.below(99)),
        1 => head += &format!("x-more: {}\r\n", "y".repeat(dice.below(2_000))),
        2 => head += "origin: http://evil.example\r\n",
        3 => head += "cookie: kiso=x; a=b\r\n",
        4 => head += "accept: text/event-stream\r\nlast-event-id: 1\r\n",
        5 => head += "if-none-match: \"x\"\r\n",
        _ => {}
    }
    if matches!(method, "GET" | "OPTIONS") {
        return (head + "\r\n").into_bytes();
    }
    let body = body(dice);
    if dice.once_in(5) {
        let (left, right) = body.as_bytes().split_at(body.len() / 2);
        let mut bytes = (head + "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
        for piece in [left, right].into_iter().filter(|piece| !piece.is_empty()) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend(piece);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        return bytes;
    }
    let kind = dice.one_of(&["application/json", "application/json", "text/plain", "application/octet-stream"]);
    let framing = format!("content-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.into_bytes(), framing.into_bytes(), body.into_bytes()].concat()
}

fn line(dice: &mut Dice) -> String {
    let reference = match dice.below(4) {
        0 => json!(dice.text()),
        1 => json!(dice.below(9)),
        _ => json!("r1"),
    };
    let session = if dice.once_in(3) { json!(dice.text()) } else { json!("main") };
    let object = match dice.below(8) {
        0 | 1 => json!({ "type": "status", "session": session, "ref": reference }),
        2 | 3 => {
            json!({ "type": "command", "command": dice.one_of(&["help", "status", "model", "nothing", ""]), "args": dice.text(), "ref": reference })
        }
        4 => {
            json!({ "type": "inbound", "text": dice.one_of(&["/help", "/status", "", "   "]), "session": session, "ref": reference })
        }
        5 => json!({ "type": "register", "client": "fuzz", "protocol": dice.below(3), "ref": reference }),
        6 => json!({ "type": dice.text(), "ref": reference }),
        _ => json!([reference]),
    };
    object.to_string()
}
