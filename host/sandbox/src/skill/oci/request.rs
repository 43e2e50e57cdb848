//! One request to a registry, and its response, up to a limit.

use super::OciError;
use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kiso_base::net;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// Timeout for a connection, and for a whole exchange: a layer of 128 MiB over a slow line.
const CONNECT: Duration = Duration::from_secs(20);
const TOTAL: Duration = Duration::from_secs(600);

/// Bytes of the head of a response, and headers in it.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// A request to a registry.
#[derive(Debug, Clone)]
pub(super) struct RegistryRequest {
    pub method: Method,
    pub uri: Uri,
    pub headers: Vec<(HeaderName, String)>,
    pub body: Bytes,
    /// Whether its host may have a private address: only the host that a person named.
    pub private: bool,
}

/// A registry's response.
#[derive(Debug)]
pub(super) struct RegistryAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl RegistryAnswer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends a request and reads at most `max` bytes of the response's body. Redirects are not followed here.
pub(super) async fn send(asked: RegistryRequest, what: &str, max: u64) -> Result<RegistryAnswer, OciError> {
    let host = asked.uri.authority().map_or("", |authority| authority.as_str()).to_owned();
    let late = |_| OciError::Unreachable { host: host.clone(), why: format!("no answer within {} s", TOTAL.as_secs()) };
    timeout(TOTAL, attempt(&asked, &host, what, max)).await.map_err(late)?
}

async fn attempt(asked: &RegistryRequest, authority: &str, what: &str, max: u64) -> Result<RegistryAnswer, OciError> {
    let unreachable = |why: String| OciError::Unreachable { host: authority.to_owned(), why };
    let encrypted = asked.uri.scheme_str() != Some("http");
    let host = asked.uri.host().unwrap_or_default();
    let port = asked.uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    let connecting = timeout(CONNECT, net::connect(host, port, asked.private));
    let stream = connecting.await.map_err(|_| unreachable("no connection in time".to_owned()))?;
    let stream = stream.map_err(|error| unreachable(error.to_string()))?;
    let request = request(asked, authority).ok_or_else(|| unreachable("its address cannot be written".to_owned()))?;
    if encrypted {
        let securing = timeout(CONNECT, net::secure(stream, host));
        let stream = securing.await.map_err(|_| unreachable("no encrypted connection in time".to_owned()))?;
        let stream = stream.map_err(|error| unreachable(error.to_string()))?;
        return exchange(stream, request, authority, what, max).await;
    }
    // Checks the connected address, and not a name, which anybody can choose.
    if !stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
        return Err(OciError::Plain { host: authority.to_owned() });
    }
    exchange(stream, request, authority, what, max).await
}

fn request(asked: &RegistryRequest, authority: &str) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(asked.body.clone()));
    *request.method_mut() = asked.method.clone();
    let path = asked.uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = Uri::builder().path_and_query(path).build().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(authority).ok()?);
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("kiso/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in &asked.headers {
        headers.append(name, HeaderValue::from_str(value).ok()?);
    }
    Some(request)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    request: Request<Full<Bytes>>,
    host: &str,
    what: &str,
    max: u64,
) -> Result<RegistryAnswer, OciError> {
    let broken = |error: hyper::Error| OciError::Unreachable {
        host: host.to_owned(),
        why: format!("the connection broke off: {error}"),
    };
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answered = async {
        let (head, mut body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if bytes.len() as u64 + data.len() as u64 > max {
                return Err(OciError::TooLarge { what: what.to_owned(), max });
            }
            bytes.extend_from_slice(&data);
        }
        Ok(RegistryAnswer { status: head.status, headers: head.headers, body: bytes })
    };
    let (mut connection, mut answered) = (std::pin::pin!(connection), std::pin::pin!(answered));
    tokio::select! {
        answer = &mut answered => return answer,
        // The connection may end before the last bytes of a response are read.
        _ = &mut connection => {}
    }
    answered.await
}
