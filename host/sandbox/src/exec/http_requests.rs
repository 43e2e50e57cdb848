//! HTTP requests of programs that know only WASI. A body is sent at once or piece by piece, a program waits for the response's
//! head or asks for it later, and reads its body piece by piece.

use super::errno::Errno;
use super::http_upload::RequestUpload;
use crate::skill::HttpGate;
use bytes::{Bytes, BytesMut};
use futures_util::future::select_all;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, WasiBody};

/// Requests without a response yet, and bodies that are being read, at most.
const MAX_OPEN: usize = 64;

/// The longest wait in milliseconds; a line ends long before.
const MAX_MILLIS: u64 = 86_400_000;

/// Header fields of a request.
const MAX_HEADERS: usize = 200;

/// Bytes of a piece, at most.
const MAX_PIECE: usize = 1 << 20;

/// The task of a connection: a server can respond before it has the whole body, which the program still sends.
#[derive(Debug)]
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Sent = (Response<WasiBody>, Connection);

/// The requests of one process.
#[derive(Debug)]
pub(super) struct HttpRequests {
    gate: HttpGate,
    pending: BTreeMap<u32, PendingRequest>,
    bodies: BTreeMap<u32, OpenBody>,
    uploads: BTreeMap<u32, RequestUpload>,
    opened: u32,
}

/// A request on its way.
struct PendingRequest(JoinHandle<Result<Sent, Error>>);

impl std::fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PendingRequest").field(&self.0.id()).finish()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body that is being read.
#[derive(Debug)]
struct OpenBody {
    body: WasiBody,
    /// Bytes that were received and not read yet.
    rest: Bytes,
    _connection: Connection,
}

/// The head of a request.
#[derive(Debug, serde::Deserialize)]
pub(super) struct RequestHead {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    /// The longest wait for the response.
    millis: Option<u64>,
    /// Whether the program asks for the response later.
    #[serde(default)]
    later: bool,
    /// The size of a body that is sent piece by piece, if the program knows it.
    size: Option<u64>,
}

impl HttpRequests {
    pub(super) fn new(gate: HttpGate) -> Self {
        let (pending, bodies, uploads) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { gate, pending, bodies, uploads, opened: 0 }
    }

    /// Sends a request. Returns the head of the response, or the request's number if the program asks later; or an error number
    /// and words.
    pub(super) async fn send(&mut self, head: RequestHead, body: Bytes) -> Result<Value, Errno> {
        let (millis, later) = (head.millis, head.later);
        let has_length = !body.is_empty() || matches!(&head.method[..], "POST" | "PUT" | "PATCH");
        let length = has_length.then_some(body.len() as u64);
        let number = self.begin(head, length, Full::new(body).map_err(|never| match never {}).boxed_unsync())?;
        if later {
            return Ok(json!({ "request": number }));
        }
        let answer = self.wait(&[number], millis).await?;
        Ok(answer.unwrap_or_else(|| {
            self.close(number);
            failure(&Error::ConnectionReadTimeout)
        }))
    }

    /// Begins a request whose body is sent piece by piece, and returns its number.
    pub(super) fn open(&mut self, head: RequestHead) -> Result<Value, Errno> {
        let size = head.size;
        let (upload, body) = RequestUpload::new(size).ok_or(Errno::Invalid)?;
        let number = self.begin(head, size, body.boxed_unsync())?;
        self.uploads.insert(number, upload);
        Ok(json!({ "request": number }))
    }

    /// Sends a piece of a body, as soon as there is room for it. Returns `full` if there was no room in time, and `over` if the
    /// connection takes no more: then a response or an error is available.
    pub(super) async fn write(
        &mut self,
        number: u32,
        (piece, is_last): (Bytes, bool),
        millis: Option<u64>,
    ) -> Result<Value, Errno> {
        let upload = self.uploads.get_mut(&number).ok_or(Errno::BadChannel)?;
        let sent = within(millis, upload.send(piece, is_last)).await.transpose()?;
        if is_last && sent.is_some() || sent == Some(false) {
            self.uploads.remove(&number);
        }
        Ok(match sent {
            Some(true) => json!({}),
            Some(false) => json!({ "over": true }),
            None => json!({ "full": true }),
        })
    }

    fn begin(&mut self, head: RequestHead, length: Option<u64>, body: WasiBody) -> Result<u32, Errno> {
        if self.bodies.len() + self.pending.len() >= MAX_OPEN || head.headers.len() > MAX_HEADERS {
            return Err(Errno::Invalid);
        }
        let request = request(&head, length, body).ok_or(Errno::Invalid)?;
        let gate = self.gate.clone();
        self.opened += 1;
        let sent = tokio::spawn(async move {
            let (response, connection) = gate.send(request, None).await?;
            let driven = tokio::spawn(async { _ = connection.await });
            Ok((response, Connection(driven.abort_handle())))
        });
        self.pending.insert(self.opened, PendingRequest(sent));
        Ok(self.opened)
    }

    /// Waits for the response to one of these requests. Returns `None` after the timeout.
    pub(super) async fn wait(&mut self, requests: &[u32], millis: Option<u64>) -> Result<Option<Value>, Errno> {
        let mut pending: Vec<_> = self.pending.iter_mut().filter(|(number, _)| requests.contains(number)).collect();
        if pending.is_empty() || pending.len() != requests.len() {
            return Err(Errno::BadChannel);
        }
        let first = within(millis, select_all(pending.iter_mut().map(|(_, request)| &mut request.0))).await;
        let Some((answer, at, _)) = first else { return Ok(None) };
        let number = *pending[at].0;
        self.pending.remove(&number);
        let mut told = match answer.unwrap_or_else(|_| Err(Error::InternalError(None))) {
            Ok((response, connection)) => self.answered(number, response, connection),
            Err(error) => {
                self.uploads.remove(&number);
                failure(&error)
            }
        };
        told["request"] = number.into();
        Ok(Some(told))
    }

    /// Returns the head of a response. Its body gets the number of the request.
    fn answered(&mut self, number: u32, response: Response<WasiBody>, connection: Connection) -> Value {
        let (parts, body) = response.into_parts();
        self.bodies.insert(number, OpenBody { body, rest: Bytes::new(), _connection: connection });
        let headers = parts.headers.iter().map(|(name, value)| json!([name.as_str(), latin1(value.as_bytes())]));
        json!({ "status": parts.status.as_u16(), "headers": headers.collect::<Vec<_>>(), "body": number })
    }

    /// The next piece of a body; nothing at its end.
    pub(super) async fn read(&mut self, number: u32, max: usize, millis: Option<u64>) -> Result<(Value, Bytes), Errno> {
        let open = self.bodies.get_mut(&number).ok_or(Errno::BadChannel)?;
        let max = max.clamp(1, MAX_PIECE);
        while open.rest.is_empty() {
            match within(millis, open.body.frame()).await {
                Some(Some(Ok(frame))) => open.rest = frame.into_data().unwrap_or_default(),
                Some(Some(Err(error))) => {
                    self.close(number);
                    return Ok((failure(&error), Bytes::new()));
                }
                Some(None) => {
                    self.close(number);
                    return Ok((json!({}), Bytes::new()));
                }
                // The program can ask for it again.
                None => return Ok((failure(&Error::ConnectionReadTimeout), Bytes::new())),
            }
        }
        let piece = open.rest.split_to(max.min(open.rest.len()));
        Ok((json!({}), piece))
    }

    pub(super) fn close(&mut self, number: u32) {
        self.pending.remove(&number);
        self.bodies.remove(&number);
        self.uploads.remove(&number);
    }
}

async fn within<T>(millis: Option<u64>, future: impl Future<Output = T>) -> Option<T> {
    match millis {
        Some(millis) => timeout(Duration::from_millis(millis.min(MAX_MILLIS)), future).await.ok(),
        None => Some(future.await),
    }
}

/// `length` is the size of the body, if it is known and sent.
fn request(head: &RequestHead, length: Option<u64>, body: WasiBody) -> Option<Request<WasiBody>> {
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
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    Some(request)
}

/// Converts each byte to the character with its number: header fields of HTTP are Latin-1.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The error for a request that failed, or whose body broke off.
fn failure(error: &Error) -> Value {
    let (errno, said) = match error {
        Error::HttpRequestDenied => ("EACCES", "it may not be reached".to_owned()),
        Error::DestinationIpProhibited => ("EACCES", "its address is private".to_owned()),
        Error::DnsError { .. } | Error::DestinationNotFound => ("EAI_NONAME", "Name or service not known".to_owned()),
        Error::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            ("ECONNREFUSED", "Connection refused".to_owned())
        }
        Error::Tls(error) if error.to_string().contains("certificate") => ("ECERT", error.to_string()),
        Error::Tls(error) => ("ETLS", error.to_string()),
        Error::ConnectionTimeout | Error::ConnectionReadTimeout => ("ETIMEDOUT", "timed out".to_owned()),
        Error::HttpResponseBodySize(_) => ("EFBIG", error.to_string()),
        _ => ("EIO", error.to_string()),
    };
    json!({ "errno": errno, "said": said })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    /// Bytes of a body, more than are sent at once.
    const BODY: u64 = 16 << 20;

    fn head(host: &str) -> RequestHead {
        let url = format!("http://{host}/");
        serde_json::from_value(json!({ "method": "POST", "url": url, "headers": [], "size": BODY })).unwrap()
    }

    /// A server that responds as soon as it has the head of a request, then reads its body and reports how many bytes came.
    fn early() -> (String, mpsc::Receiver<u64>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (host, (sender, taken)) = (listener.local_addr().unwrap().to_string(), mpsc::channel());
        std::thread::spawn(move || {
            let mut reader = BufReader::new(listener.accept().unwrap().0);
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
            let (mut piece, mut all) = ([0; 65_536], 0);
            while all < BODY
                && let Ok(count @ 1..) = reader.read(&mut piece)
            {
                all += count as u64;
            }
            let _ = sender.send(all);
        });
        (host, taken)
    }

    #[tokio::test]
    async fn a_body_is_sent_on_behind_an_early_answer() {
        let (host, taken) = early();
        let mut requests = HttpRequests::new(HttpGate::with_local_host(&host));
        let number = requests.open(head(&host)).unwrap()["request"].as_u64().unwrap() as u32;
        while !requests.pending[&number].0.is_finished() {
            tokio::task::yield_now().await;
        }
        let piece = Bytes::from(vec![b'x'; 256 << 10]);
        let count = BODY / piece.len() as u64;
        for n in 1..=count {
            assert_eq!(requests.write(number, (piece.clone(), n == count), Some(60_000)).await, Ok(json!({})));
        }
        let answer = requests.wait(&[number], Some(60_000)).await.unwrap().unwrap();
        assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!(number)));
        assert_eq!(requests.read(number, 10, Some(60_000)).await.unwrap().1, "ok");
        let taken = async {
            loop {
                match taken.try_recv() {
                    Ok(all) => break all,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        assert_eq!(within(Some(60_000), taken).await, Some(BODY));
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_request_that_is_over() {
        let (host, _taken) = early();
        let mut requests = HttpRequests::new(HttpGate::with_local_host(&host));
        for at in ["other.test", &host] {
            let number = requests.open(head(at)).unwrap()["request"].as_u64().unwrap() as u32;
            let answer = requests.wait(&[number], Some(60_000)).await.unwrap().unwrap();
            if answer["body"].is_number() {
                while !requests.read(number, 10, Some(60_000)).await.unwrap().1.is_empty() {}
            }
            let kept = (requests.pending.len(), requests.bodies.len(), requests.uploads.len());
            assert_eq!(kept, (0, 0, 0), "{at}: {answer}");
        }
    }
}
