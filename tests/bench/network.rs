//! `curl` in a command line compared with the host's, with the same server on loopback.

use super::exec::{Shell, sh};
use super::{row, summary};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use tempfile::TempDir;

/// Downloads: name, bytes, and number of repetitions.
const BODIES: [(&str, usize, usize); 2] = [("1 kB", 1_000, 200), ("100 MB", 100_000_000, 7)];

/// Prints a pair of rows for each size.
pub(crate) async fn rows() {
    let address = serve();
    let dir = TempDir::new().expect("there is room");
    let shell = Shell::reaching(&dir.path().join("home"), &address);
    for (name, bytes, times) in BODIES {
        let line = format!("curl -s http://{address}/{bytes} -o out");
        let (mut of_host, mut of_kiso, mut to_nowhere) = (Vec::new(), Vec::new(), Vec::new());
        // The two alternate, so that other load on the machine affects both equally. The first turn is a warm-up.
        for turn in 0..=times {
            let (host, kiso) = (sh(dir.path(), &line), shell.run_for_good(&line).await);
            let null = shell.run_for_good(&line.replace("-o out", "-o /dev/null")).await;
            if turn > 0 {
                of_host.push(host);
                of_kiso.push(kiso);
                to_nowhere.push(null);
            }
        }
        let host = summary(of_host);
        row(&format!("the host's curl: {name}"), host, None);
        row(&format!("kiso, running: curl of {name} into a file"), summary(of_kiso), Some((host, "× the host's curl")));
        row(&format!("the same, into /dev/null: {name}"), summary(to_nowhere), Some((host, "× the host's curl")));
    }
}

/// A server that responds with as many bytes as the path says. Returns its address.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 20];
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
            let path = head.split(' ').nth(1).unwrap_or_default();
            let mut left: usize = path.trim_start_matches('/').parse().unwrap_or_default();
            let mut stream = reader.into_inner();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {left}\r\nconnection: close\r\n\r\n");
            let mut sent = stream.write_all(head.as_bytes());
            while left > 0 && sent.is_ok() {
                let now = left.min(piece.len());
                sent = stream.write_all(&piece[..now]);
                left -= now;
            }
        }
    });
    address
}
