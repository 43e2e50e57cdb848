//! Requests over a plain socket: what the unit tests have in the place of the host.

use super::{Failure, Request, Response};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Instant;

/// The body of an answer.
pub struct Stream {
    reader: BufReader<TcpStream>,
    left: Left,
}

enum Left {
    None,
    Bytes(u64),
    Chunks,
    UntilClosed,
}

pub fn send(request: &Request<'_>) -> Result<Response, Failure> {
    let host = request.url.host.trim_matches(['[', ']']);
    if request.url.is_https() {
        return Err(Failure::Tls("the unit tests have no TLS".to_owned()));
    }
    if host.ends_with(".denied") {
        return Err(Failure::Denied);
    }
    let mut addresses = (host, request.url.port_or_default()).to_socket_addrs().map_err(|_| Failure::Unresolved)?;
    let address = addresses.next().ok_or(Failure::Unresolved)?;
    let mut stream = TcpStream::connect(address).map_err(|_| Failure::Refused)?;
    set_deadline(&stream, request.deadline)?;
    let length = request.body.length().map_err(|e| Failure::Unreadable(crate::reason::reason(&e)))?;
    let mut head =
        format!("{} {} HTTP/1.1\r\nhost: {}\r\n", request.method, request.url.target(), request.url.host_header());
    for (name, value) in request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match (request.body.is_none(), length) {
        (true, _) => {}
        (_, Some(length)) => head.push_str(&format!("content-length: {length}\r\n")),
        (_, None) => head.push_str("transfer-encoding: chunked\r\n"),
    }
    head.push_str("\r\n");
    let _ = stream.write_all(head.as_bytes());
    let mut sent = 0;
    let read = request.body.read(&mut |part| {
        sent += part.len() as u64;
        match length {
            Some(_) => stream.write_all(part).is_ok(),
            None => write!(stream, "{:x}\r\n", part.len())
                .and_then(|()| stream.write_all(part))
                .and_then(|()| stream.write_all(b"\r\n"))
                .is_ok(),
        }
    });
    read.map_err(|e| Failure::Unreadable(crate::reason::reason(&e)))?;
    if length.is_none() {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
    let mut reader = BufReader::new(stream);
    let line = read_line(&mut reader)?;
    if line.is_empty() {
        return Err(Failure::Empty);
    }
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(Failure::Empty)?;
    let mut headers: Vec<(String, String)> = Vec::new();
    loop {
        let line = read_line(&mut reader)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let left = match (header("transfer-encoding"), header("content-length")) {
        _ if request.method == "HEAD" || status == 204 || status == 304 => Left::None,
        (Some(_), _) => Left::Chunks,
        (_, Some(length)) => Left::Bytes(length.parse().map_err(|_| Failure::Empty)?),
        _ => Left::UntilClosed,
    };
    headers.retain(|(name, _)| !["connection", "transfer-encoding", "keep-alive"].contains(&name.as_str()));
    Ok(Response { status, headers, body: Stream { reader, left }, sent })
}

fn set_deadline(stream: &TcpStream, deadline: Option<Instant>) -> Result<(), Failure> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Err(Failure::Timeout);
    }
    stream.set_read_timeout(left).map_err(|_| Failure::Timeout)
}

fn read_line(reader: &mut BufReader<TcpStream>) -> Result<String, Failure> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).map_err(|e| failed(&e))?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn failed(error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Timeout,
        _ => Failure::Broken,
    }
}

impl Stream {
    /// The next piece; nothing at the end.
    pub fn read(&mut self, deadline: Option<Instant>) -> Result<Option<Vec<u8>>, Failure> {
        set_deadline(self.reader.get_ref(), deadline)?;
        let mut piece = vec![0; 16 << 10];
        let max = match self.left {
            Left::None | Left::Bytes(0) => return Ok(None),
            Left::Bytes(left) => left.min(piece.len() as u64) as usize,
            Left::UntilClosed => piece.len(),
            Left::Chunks => {
                let size = read_line(&mut self.reader)?;
                let size = u64::from_str_radix(&size, 16).map_err(|_| Failure::Broken)?;
                piece.resize(size as usize, 0);
                self.reader.read_exact(&mut piece).map_err(|e| failed(&e))?;
                read_line(&mut self.reader)?;
                return Ok((size > 0).then_some(piece));
            }
        };
        let count = self.reader.read(&mut piece[..max]).map_err(|e| failed(&e))?;
        piece.truncate(count);
        match &mut self.left {
            Left::Bytes(_) if count == 0 => return Err(Failure::Broken),
            Left::Bytes(left) => *left -= count as u64,
            _ => {}
        }
        Ok((count > 0).then_some(piece))
    }
}
