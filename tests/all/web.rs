//! A web server for tests: on loopback, one request for each connection, until the test's process ends.

use crate::harness::Home;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};

/// A page of plain text.
pub(crate) fn text(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// Responds to every request with the result of `answer` for its path. Returns the address.
pub(crate) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut chunk) {
                    Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request);
            // A connection without a request is ignored.
            let Some(path) = request.split(' ').nth(1) else { continue };
            let _ = stream.write_all(&answer(path));
        }
    });
    address
}

/// The lines of a request's head.
pub(crate) fn read_head(reader: &mut impl BufRead) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            return Ok(lines);
        }
        lines.push(line.trim_end().to_owned());
    }
}

/// A field of a head, or an empty text.
pub(crate) fn field<'a>(head: &'a [String], name: &str) -> &'a str {
    let fields = head.iter().skip(1).filter_map(|line| line.split_once(": "));
    fields.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next().unwrap_or_default()
}

/// Passes on the body of a request piece by piece, with a length or in chunks. Returns an error if it is cut off.
pub(crate) fn read_body(reader: &mut impl BufRead, head: &[String], mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut pass = |reader: &mut dyn Read, size: u64| {
        let (mut left, mut piece) = (reader.take(size), [0; 65_536]);
        let mut all = 0;
        while let count @ 1.. = left.read(&mut piece)? {
            take(&piece[..count]);
            all += count as u64;
        }
        if all == size { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    if field(head, "transfer-encoding") != "chunked" {
        return pass(reader, field(head, "content-length").parse().unwrap_or(0));
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        pass(reader, size)?;
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Answers every request with its method, the length of its body, the body's Adler-32 checksum, and its framing. The receiver
/// gets the answers; a body that is cut off is `cut`.
pub(crate) fn weigh() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let kept = sender.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::with_capacity(1 << 16, stream);
                while let Ok(head) = read_head(&mut reader) {
                    let Some(method) = head.first().and_then(|line| line.split(' ').next()) else { return };
                    let (mut low, mut high, mut length) = (1_u64, 0_u64, 0);
                    let taken = read_body(&mut reader, &head, |piece| {
                        length += piece.len();
                        for part in piece.chunks(4096) {
                            for byte in part {
                                low += u64::from(*byte);
                                high += low;
                            }
                            (low, high) = (low % 65_521, high % 65_521);
                        }
                    });
                    let framed = if field(&head, "content-length").is_empty() { "chunks" } else { "length" };
                    let answer = match taken {
                        Ok(()) => format!("{method} {length} {} {framed}", high << 16 | low),
                        Err(_) => "cut".to_owned(),
                    };
                    let _ = kept.send(answer.clone());
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
                    if taken.is_err() || reader.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, answers)
}

/// A server that reports the weather for every request.
pub(crate) struct Web {
    pub address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    pub(crate) fn start() -> Web {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        let address = serve(move |path| {
            kept.lock().unwrap().push(path.to_owned());
            text("Rain in Oslo")
        });
        Web { address, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Requested paths.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Lets the home's `fetch` reach the server after an approval.
    pub(crate) fn is_asked_for(&self, home: &Home) {
        home.kiso(&["skill", "grant", "fetch", "--ask-host", &self.address, "--private"]).ok();
    }
}
