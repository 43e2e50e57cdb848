//! The HTTP server on loopback for the tests of curl and wget.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A server, until the process ends.
pub(crate) struct Server {
    pub(crate) port: u16,
}

struct Request {
    method: String,
    target: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

struct Answer {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: &'static str, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type", kind.to_owned())];
        Self { status, headers, body: body.into() }
    }

    fn ok(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("200 OK", kind, body)
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Requests to a path so far.
type Counts = Arc<Mutex<HashMap<String, u32>>>;

impl Server {
    pub(crate) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let counts = Counts::default();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = counts.clone();
                // A client that goes away is not the server's matter.
                std::thread::spawn(move || drop(serve(stream, &counts)));
            }
        });
        Ok(Self { port })
    }
}

fn serve(stream: TcpStream, counts: &Counts) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(request) = read(&mut reader)? else { return Ok(()) };
    let mut stream = reader.into_inner();
    let count = {
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(request.target.clone()).or_default();
        *count += 1;
        *count
    };
    if request.path == "/empty" {
        return Ok(());
    }
    if request.path == "/slow" {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf")?;
        std::thread::sleep(Duration::from_secs(5));
        return Ok(());
    }
    if request.path == "/chunked" {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        )?;
        return stream.write_all(b"6\r\nfirst \r\n6\r\nsecond\r\n0\r\n\r\n");
    }
    if request.path == "/garbage" {
        return stream.write_all(b"SSH-2.0-server\r\n");
    }
    if request.path == "/heads" {
        let heads: String = (0..2_000).map(|number| format!("X-{number}: {}\r\n", "x".repeat(100))).collect();
        return stream.write_all(format!("HTTP/1.1 200 OK\r\n{heads}Content-Length: 0\r\n\r\n").as_bytes());
    }
    if request.path == "/endless" {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")?;
        // Until nobody reads any more.
        loop {
            stream.write_all(&[b'x'; 4096])?;
        }
    }
    let answer = answer(&request, count);
    let length = match request.path.as_str() {
        "/short" => answer.body.len() + 5,
        _ => answer.body.len(),
    };
    let mut head = format!("HTTP/1.1 {}\r\n", answer.status);
    for (name, value) in &answer.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if !answer.status.starts_with("304") && !answer.status.starts_with("204") {
        let _ = write!(head, "Content-Length: {length}\r\n");
    }
    head.push_str("Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    if request.method != "HEAD" {
        stream.write_all(&answer.body)?;
    }
    stream.flush()
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, target) = (method.to_owned(), target.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut request = Request { method, target, path, headers, body: Vec::new() };
    if request.header("expect").is_some() {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            if size == 0 {
                break;
            }
            request.body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(length) = request.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        request.body.resize(length, 0);
        reader.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}

/// `alpha beta` and a newline, compressed.
#[rustfmt::skip]
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0xcc, 0x29, 0xc8, 0x48, 0x54,
    0x48, 0x4a, 0x2d, 0x49, 0xe4, 0x02, 0x00, 0x3e, 0x76, 0x07, 0xc8, 0x0b, 0x00, 0x00, 0x00,
];

fn answer(request: &Request, count: u32) -> Answer {
    let number = |prefix: &str| request.path.strip_prefix(prefix).and_then(|rest| rest.parse::<u32>().ok());
    if let Some(left) = number("/hops/") {
        let location = if left == 0 { "/a.json".to_owned() } else { format!("/hops/{}", left - 1) };
        return Answer::new("302 Found", "text/plain", "moved\n").with("Location", location);
    }
    if let Some(page) = request.path.strip_prefix("/site/") {
        return site(page);
    }
    match request.path.as_str() {
        "/" => Answer::ok("text/html", "<h1>hello</h1>\n"),
        "/a.json" => Answer::ok("application/json", "{\"name\": \"kiso\"}\n")
            .with("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        "/redirect" => Answer::new("302 Found", "text/plain", "moved\n").with("Location", "/a.json"),
        "/see" => Answer::new("303 See Other", "text/plain", "moved\n").with("Location", "/echo"),
        "/keep" => Answer::new("307 Temporary Redirect", "text/plain", "moved\n").with("Location", "/echo"),
        "/moved" => Answer::new("301 Moved Permanently", "text/plain", "moved\n").with("Location", "echo?x=1"),
        "/other" => Answer::new("302 Found", "text/plain", "moved\n").with("Location", "nonsense://127.0.0.1/x"),
        "/loop" => Answer::new("302 Found", "text/plain", "moved\n").with("Location", "/loop"),
        "/elsewhere" => {
            // The same machine by another name is another host.
            let port = request.header("host").and_then(|host| host.rsplit_once(':')).map_or("80", |(_, port)| port);
            Answer::new("302 Found", "text/plain", "moved\n").with("Location", format!("http://localhost:{port}/echo"))
        }
        "/echo" | "/search" | "/put" | "/x" | "/form" => echo(request),
        "/cookie" => Answer::ok("text/plain", format!("cookie: {}\n", request.header("cookie").unwrap_or("none")))
            .with("Set-Cookie", "sid=abc; Path=/")
            .with("Set-Cookie", "deep=1; Path=/cookie; HttpOnly"),
        "/gz" if request.header("accept-encoding").is_some_and(|accepted| accepted.contains("gzip")) => {
            Answer::ok("text/plain", GZIP).with("Content-Encoding", "gzip")
        }
        "/gz" => Answer::ok("text/plain", "alpha beta\n"),
        "/br" => Answer::ok("text/plain", "x").with("Content-Encoding", "nonsense"),
        "/big" => ranged(request),
        "/unranged" => Answer::ok("text/plain", "0123456789"),
        "/flaky" if !count.is_multiple_of(3) => {
            Answer::new("503 Service Unavailable", "text/plain", "busy\n").with("Retry-After", "0")
        }
        "/flaky" => Answer::ok("text/plain", "up\n"),
        "/basic" if request.header("authorization") == Some("Basic dXNlcjpwYXNz") => {
            Answer::ok("text/plain", "welcome\n")
        }
        "/basic" => {
            Answer::new("401 Unauthorized", "text/plain", "who?\n").with("WWW-Authenticate", "Basic realm=\"x\"")
        }
        "/bearer" if request.header("authorization") == Some("Bearer T") => Answer::ok("text/plain", "welcome\n"),
        "/bearer" => Answer::new("403 Forbidden", "text/plain", "no\n"),
        "/named" => {
            Answer::ok("text/plain", "named\n").with("Content-Disposition", "attachment; filename=\"../given.txt\"")
        }
        "/etag" if request.header("if-none-match") == Some("\"v1\"") => {
            Answer::new("304 Not Modified", "text/plain", "")
        }
        "/etag" => Answer::ok("text/plain", "tagged\n").with("ETag", "\"v1\""),
        "/short" => Answer::ok("text/plain", "0123456789"),
        "/nothing" => Answer::ok("text/plain", ""),
        "/204" => Answer::new("204 No Content", "text/plain", ""),
        "/500" => Answer::new("500 Internal Server Error", "text/plain", "broken\n"),
        "/robots.txt" => Answer::ok("text/plain", "User-agent: *\nDisallow: /site/private\n"),
        _ => Answer::new("404 Not Found", "text/plain", "nothing here\n"),
    }
}

/// Method, target, the headers that do not depend on the program, and the body.
fn echo(request: &Request) -> Answer {
    let mut text = format!("{} {}\n", request.method, request.target);
    let shown = ["accept", "authorization", "content-type", "cookie", "if-modified-since", "range", "referer"];
    let mut boundary = String::new();
    for (name, value) in &request.headers {
        if !shown.contains(&name.as_str()) && !name.starts_with("x-") {
            continue;
        }
        let value = match value.split_once("boundary=") {
            Some((before, found)) => {
                boundary = found.to_owned();
                format!("{before}boundary=B")
            }
            None => value.clone(),
        };
        let _ = writeln!(text, "{name}: {value}");
    }
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let body = if boundary.is_empty() { body } else { body.replace(&boundary, "B") };
    let _ = writeln!(text, "{} bytes: {body}", body.len());
    Answer::ok("text/plain", text)
}

/// A thousand lines, or the part of them that is asked for.
fn ranged(request: &Request) -> Answer {
    let whole: String = (0..1_000).map(|line| format!("line {line:04}\n")).collect();
    let range = request.header("range").and_then(|range| range.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return Answer::ok("text/plain", whole).with("Accept-Ranges", "bytes");
    };
    let (first, last) = match first.parse::<usize>() {
        Ok(first) => (first, last.parse::<usize>().unwrap_or(whole.len() - 1).min(whole.len() - 1)),
        Err(_) => (whole.len() - last.parse::<usize>().unwrap_or(0).min(whole.len()), whole.len() - 1),
    };
    if first >= whole.len() {
        let range = format!("bytes */{}", whole.len());
        return Answer::new("416 Range Not Satisfiable", "text/plain", "no such range\n").with("Content-Range", range);
    }
    let range = format!("bytes {first}-{last}/{}", whole.len());
    Answer::new("206 Partial Content", "text/plain", &whole.as_bytes()[first..=last]).with("Content-Range", range)
}

fn site(page: &str) -> Answer {
    match page {
        "" => Answer::ok(
            "text/html",
            "<a href=\"one.html\">1</a> <a href='sub/two.html'>2</a> <a href=\"/\">up</a> <a href=\"private/x\">p</a>\n",
        ),
        "one.html" => {
            Answer::ok("text/html", "<img src=\"pic.png\"> <a href=\"./\">home</a> <a href=\"one.html#x\">self</a>\n")
        }
        "sub/two.html" => {
            Answer::ok("text/html", "<link rel=stylesheet href=\"../style.css\"><a href=\"three.html?q=1\">3</a>\n")
        }
        "sub/three.html" => Answer::ok("text/html", "<p>the end\n"),
        "style.css" => Answer::ok("text/css", "p { background: url(pic.png) }\n"),
        "pic.png" => Answer::ok("image/png", "not really\n"),
        "private/x" => Answer::ok("text/plain", "secret\n"),
        _ => Answer::new("404 Not Found", "text/plain", "nothing here\n"),
    }
}
