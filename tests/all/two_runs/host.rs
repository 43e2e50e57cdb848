//! A host that stores sent data by path, and returns it to anybody.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

/// Starts it. Returns its address.
pub(super) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let kept = Mutex::new(HashMap::new());
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            answer(&kept, stream);
        }
    });
    address
}

/// Answers one request with the previous data of its path.
fn answer(kept: &Mutex<HashMap<String, Vec<u8>>>, stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_lowercase();
        length = line.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap_or(0));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut kept = kept.lock().ok()?;
    let before = kept.get(&path).cloned().unwrap_or_else(|| b"nothing\n".to_vec());
    if first.starts_with('P') {
        kept.insert(path, body);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nset-cookie: a={}\r\nconnection: close\r\n\r\n",
        before.len(),
        before.len()
    );
    reader.into_inner().write_all(&[head.as_bytes(), &before].concat()).ok()
}
