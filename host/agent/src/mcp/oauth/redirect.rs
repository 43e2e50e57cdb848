//! The redirect target of the browser: a port of 127.0.0.1 that is open for one login.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

use super::OauthError;

/// Maximum size of a request in bytes.
const MAX_REQUEST: usize = 16 << 10;

/// Time limit of a connection. Browsers open some without using them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 16;

const PATH: &str = "/callback";

/// The result in the browser's redirect.
#[derive(Default, PartialEq, Eq)]
pub(super) struct RedirectAnswer {
    pub state: Option<String>,
    pub code: Option<String>,
    pub issuer: Option<String>,
    pub error: Option<String>,
    pub description: Option<String>,
}

pub(super) struct Redirect {
    listener: TcpListener,
    pub uri: String,
}

impl Redirect {
    pub(super) async fn listen() -> Result<Redirect, OauthError> {
        let failed = |error: std::io::Error| OauthError::Listen(error.to_string());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Redirect { listener, uri: format!("http://127.0.0.1:{port}{PATH}") })
    }

    /// Waits for the first redirect with this state. Others are refused.
    #[expect(clippy::expect_used, reason = "a sender is kept")]
    pub(super) async fn wait(&self, state: &str) -> RedirectAnswer {
        let (sender, mut returned) = mpsc::channel(1);
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accept = async {
            loop {
                let slot = kiso_base::compute::permit(&slots).await;
                let Ok((stream, _)) = self.listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let (sender, state) = (sender.clone(), state.to_owned());
                tokio::spawn(async move {
                    let _slot = slot;
                    let answered = tokio::time::timeout(PATIENCE, answer(stream, &state)).await;
                    if let Ok(Some(found)) = answered {
                        let _ = sender.try_send(found);
                    }
                });
            }
        };
        tokio::select! {
            found = returned.recv() => found.expect("a sender is kept"),
            never = accept => never,
        }
    }
}

/// Answers a request; returns its result if it has this state.
async fn answer(mut stream: TcpStream, state: &str) -> Option<RedirectAnswer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        if bytes.len() > MAX_REQUEST {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.split_ascii_whitespace();
    let target = words.next().filter(|method| *method == "GET").and(words.next());
    let found = target.and_then(parse);
    let (status, said, found) = match found {
        None => ("404 Not Found", "There is nothing here.", None),
        Some(found) if found.state.as_deref() != Some(state) => {
            ("400 Bad Request", "This link belongs to another login.", None)
        }
        Some(found) => {
            ("200 OK", "kiso has the answer. You can close this window and go back to the terminal.", Some(found))
        }
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{said}",
        said.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    found
}

/// Parses the query of a redirect. `target` may be a whole address.
pub(super) fn parse(target: &str) -> Option<RedirectAnswer> {
    let (path, query) = target.split_once('?')?;
    if !(path == PATH || (path.starts_with("http://127.0.0.1:") && path.ends_with(PATH))) {
        return None;
    }
    let mut found = RedirectAnswer::default();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(&value.replace('+', " ")).decode_utf8().ok()?.into_owned();
        let place = match name {
            "state" => &mut found.state,
            "code" => &mut found.code,
            "iss" => &mut found.issuer,
            "error" => &mut found.error,
            "error_description" => &mut found.description,
            _ => continue,
        };
        // A repeated parameter is ambiguous.
        if place.replace(value).is_some() {
            return None;
        }
    }
    Some(found)
}
