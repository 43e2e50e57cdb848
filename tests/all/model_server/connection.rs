//! The server's connections, with the parts of HTTP that a model client needs.

use super::*;

/// Handles the requests of one connection, one after the other.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let connection = {
        let mut state = shared.state();
        state.connections += 1;
        state.connections - 1
    };
    let mut rest = Vec::new();
    while let Some((seen, asked)) = request(&stream, &mut rest, connection).await {
        let answer = shared.answer(seen);
        if send(&shared, &stream, answer, asked).await.is_none() {
            return;
        }
    }
}

/// Writes an answer. Returns `None` if the connection must be closed.
async fn send(shared: &Shared, stream: &TcpStream, answer: render::Answer, asked: Instant) -> Option<()> {
    let mut parts = Vec::with_capacity(answer.body.len());
    write(stream, &answer.head).await?;
    for part in answer.body {
        parts.push(Instant::now());
        match part {
            render::Part::Bytes(bytes) => write_chunk(stream, &bytes).await?,
            render::Part::Hold => shared.hold(stream).await.then_some(())?,
            render::Part::Cut => return None,
            render::Part::Endless(bytes) => loop {
                write_chunk(stream, &bytes).await?;
            },
        }
    }
    // Recorded before the client can know that the answer ended.
    shared.state().timings.push(Timing { asked, parts, answered: Instant::now() });
    write(stream, b"0\r\n\r\n").await
}

async fn write_chunk(stream: &TcpStream, bytes: &[u8]) -> Option<()> {
    let head = format!("{:x}\r\n", bytes.len());
    write(stream, &[head.as_bytes(), bytes, b"\r\n"].concat()).await
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        stream.writable().await.ok()?;
        match stream.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// Returns `None` at the end of the connection.
pub(super) async fn read(stream: &TcpStream, buffer: &mut [u8]) -> Option<usize> {
    loop {
        stream.readable().await.ok()?;
        match stream.try_read(buffer) {
            Ok(0) => return None,
            Ok(n) => return Some(n),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// The next request, and the time of its first bytes. `rest` holds bytes that were read beyond it.
async fn request(stream: &TcpStream, rest: &mut Vec<u8>, connection: usize) -> Option<(Seen, Instant)> {
    let mut buffer = [0; 8192];
    let mut asked = None;
    let end = loop {
        if let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let n = read(stream, &mut buffer).await?;
        asked.get_or_insert_with(Instant::now);
        rest.extend_from_slice(&buffer[..n]);
    };
    let head = String::from_utf8_lossy(&rest[..end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap_or(0));
    while rest.len() < end + length {
        let n = read(stream, &mut buffer).await?;
        rest.extend_from_slice(&buffer[..n]);
    }
    let body = serde_json::from_slice(&rest[end..end + length]).unwrap_or(Value::Null);
    rest.drain(..end + length);
    Some((Seen { path, headers, body, connection }, asked.unwrap_or_else(Instant::now)))
}
