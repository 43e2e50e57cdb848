//! A web server of a test: on loopback, a request for each connection, as long as the test's process lives.

use crate::harness::Home;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A page of plain text.
pub(crate) fn text(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// Answers every request with what `answer` makes of its path. Returns the address.
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
            // A connection that brings nothing is none that was meant.
            let Some(path) = request.split(' ').nth(1) else { continue };
            let _ = stream.write_all(&answer(path));
        }
    });
    address
}

/// A server that says what the weather is, whatever it is asked for.
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

    /// The paths that it was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Lets the home's `fetch` reach it once somebody has accepted that.
    pub(crate) fn is_asked_for(&self, home: &Home) {
        home.kiso(&["skill", "grant", "fetch", "--ask-host", &self.address, "--private"]).ok();
    }
}
