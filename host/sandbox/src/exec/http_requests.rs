//! HTTP requests of programs that know WASI alone: the answer's head at once, its body piece by piece.

use super::errno::Errno;
use crate::skill::HttpGate;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use tokio::task::AbortHandle;
use wasmtime_wasi_http::{Error, WasiBody};

/// Bodies that are read at once.
const MAX_BODIES: usize = 64;

/// Header fields of a request.
const MAX_HEADERS: usize = 200;

/// Bytes of a piece, at most.
const MAX_PIECE: usize = 1 << 20;

/// The requests of one process.
#[derive(Debug)]
pub(super) struct HttpRequests {
    gate: HttpGate,
    bodies: BTreeMap<u32, OpenBody>,
    opened: u32,
}

/// A body that is being read.
#[derive(Debug)]
struct OpenBody {
    body: WasiBody,
    /// What came and was not asked for yet.
    rest: Bytes,
    connection: AbortHandle,
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// The head of a request.
#[derive(Debug, serde::Deserialize)]
pub(super) struct RequestHead {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
}

impl HttpRequests {
    pub(super) fn new(gate: HttpGate) -> Self {
        Self { gate, bodies: BTreeMap::new(), opened: 0 }
    }

    /// Sends a request, and tells the head of the answer; or an error number and words.
    pub(super) async fn send(&mut self, head: RequestHead, body: Bytes) -> Result<Value, Errno> {
        if self.bodies.len() >= MAX_BODIES || head.headers.len() > MAX_HEADERS {
            return Err(Errno::Invalid);
        }
        let request = request(head, body).ok_or(Errno::Invalid)?;
        let (response, connection) = match self.gate.send(request, None).await {
            Ok(sent) => sent,
            Err(error) => return Ok(failure(&error)),
        };
        let connection = tokio::spawn(async { _ = connection.await }).abort_handle();
        let (parts, body) = response.into_parts();
        self.opened += 1;
        self.bodies.insert(self.opened, OpenBody { body, rest: Bytes::new(), connection });
        let headers = parts.headers.iter().map(|(name, value)| json!([name.as_str(), latin1(value.as_bytes())]));
        Ok(json!({ "status": parts.status.as_u16(), "headers": headers.collect::<Vec<_>>(), "body": self.opened }))
    }

    /// The next piece of a body; nothing at its end.
    pub(super) async fn read(&mut self, number: u32, max: usize) -> Result<(Value, Bytes), Errno> {
        let open = self.bodies.get_mut(&number).ok_or(Errno::BadChannel)?;
        let max = max.clamp(1, MAX_PIECE);
        while open.rest.is_empty() {
            match open.body.frame().await {
                Some(Ok(frame)) => open.rest = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    self.bodies.remove(&number);
                    return Ok((failure(&error), Bytes::new()));
                }
                None => {
                    self.bodies.remove(&number);
                    return Ok((json!({}), Bytes::new()));
                }
            }
        }
        let piece = open.rest.split_to(max.min(open.rest.len()));
        Ok((json!({}), piece))
    }

    pub(super) fn close(&mut self, number: u32) {
        self.bodies.remove(&number);
    }
}

fn request(head: RequestHead, body: Bytes) -> Option<Request<WasiBody>> {
    let uri: Uri = head.url.parse().ok()?;
    let method = Method::from_bytes(head.method.as_bytes()).ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value: BytesMut = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<_>>()?;
        headers.append(name, HeaderValue::from_maybe_shared(value.freeze()).ok()?);
    }
    for own in [HOST, CONNECTION, TRANSFER_ENCODING, UPGRADE, CONTENT_LENGTH] {
        headers.remove(own);
    }
    let of_proxy: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with("proxy-")).cloned().collect();
    of_proxy.iter().for_each(|name| drop(headers.remove(name)));
    if !body.is_empty() || matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let mut request = Request::new(Full::new(body).map_err(|never| match never {}).boxed_unsync());
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    Some(request)
}

/// Each byte as the character with its number, as HTTP has always had it.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Why there is no answer, or no more of it.
fn failure(error: &Error) -> Value {
    let (errno, said) = match error {
        Error::HttpRequestDenied => ("EACCES", "it may not be reached".to_owned()),
        Error::DestinationIpProhibited => ("EACCES", "its address is private".to_owned()),
        Error::DnsError { .. } | Error::DestinationNotFound => {
            ("EAI_NONAME", "Name or service not known".to_owned())
        }
        Error::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            ("ECONNREFUSED", "Connection refused".to_owned())
        }
        Error::Connect(error) if error.kind() == io::ErrorKind::InvalidData => ("ECERT", error.to_string()),
        Error::ConnectionTimeout | Error::ConnectionReadTimeout => ("ETIMEDOUT", "timed out".to_owned()),
        Error::HttpResponseBodySize(_) => ("EFBIG", error.to_string()),
        _ => ("EIO", error.to_string()),
    };
    json!({ "errno": errno, "said": said })
}
