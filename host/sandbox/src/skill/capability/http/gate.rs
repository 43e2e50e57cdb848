//! The gate between one call and the network. It lets requests through to granted hosts, and to this machine's own network only
//! if that was granted, too.
//!
//! Which addresses these are is the matter of [`net`].

use super::masked::MaskedBody;
use super::network::{HostRequest, OpenNetwork, is_reading};
use super::rule::{HttpRule, HttpRules, Injection, PLACEHOLDER, RefusedRequest};
use super::sent_body::{SentBody, SentTo};
use crate::effect::label::LabelId;
use crate::effect::sink::Permit;
use crate::effect::undo::Transaction;
use crate::skill::usage::CapabilityUse;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame};
use kiso_base::net::{self, NetError};
use kiso_plan::label::{Confidentiality, Integrity, Label, PUBLIC};
use kiso_store::secret::SecretValue;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::rustls;
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// The note for a host that was reached at a private address, beside the method.
pub(super) const PRIVATE: &str = "private";

/// Bytes of a request's body that are buffered, in a guest of WASI 0.3.
const BODY_CHUNK: usize = 64 << 10;

/// Reports a refused request.
pub(crate) type TellRefused = Arc<dyn Fn(RefusedRequest) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The gate between one call and the network. Clones share it.
#[derive(Clone, Default)]
pub struct HttpGate {
    pub rules: Arc<HttpRules>,
    /// Access beside the rules, as `[network]` and people allow it.
    pub open: Option<OpenNetwork>,
    /// Called at once when a request is refused.
    pub tell: Option<TellRefused>,
    /// The last request that was refused, for the person who can allow it.
    pub refused: Arc<Mutex<Option<RefusedRequest>>>,
    /// The hosts that were reached, and by which method.
    pub reached: Arc<Mutex<CapabilityUse>>,
    /// The work that the call is a part of. What it sends cannot be undone.
    pub transaction: Option<Arc<Transaction>>,
    /// The connections of the call, if they are counted. A guest of WASI 0.2 has a handle for each anyway.
    pub connections: Option<CallConnections>,
    /// The data that the call may send, by the labels of what it has read.
    pub permit: Permit,
}

/// The connections that a call may have at once, which end with it.
#[derive(Debug, Clone)]
pub struct CallConnections {
    pub places: Arc<Semaphore>,
    /// Closed at the end of the call: the body of a response can be that of another request, and then neither ends by itself.
    pub call: watch::Receiver<()>,
}

impl std::fmt::Debug for HttpGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpGate").field("rules", &self.rules).field("open", &self.open).finish_non_exhaustive()
    }
}

/// The same in the types of the trait.
type Answered = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for HttpGate {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Answered, Error>> + Send> {
        let gate = self.clone();
        Box::new(async move {
            let counted = match &gate.connections {
                Some(CallConnections { places, call }) => {
                    Some((places.clone().acquire_owned().await.ok(), call.clone()))
                }
                None => None,
            };
            let (response, connection) = gate.send(request, options).await?;
            let connection: Box<dyn Future<Output = Result<(), Error>> + Send> = match counted {
                None => Box::new(connection),
                Some((place, mut call)) => Box::new(async move {
                    let _place = place;
                    tokio::select! {
                        ended = connection => ended,
                        _ = call.changed() => Ok(()),
                    }
                }),
            };
            Ok((response, connection))
        })
    }

    fn p3_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK
    }
}

impl HttpGate {
    /// A gate to one host of this machine.
    #[cfg(test)]
    pub(crate) fn with_local_host(host: &str) -> Self {
        let methods = vec!["POST".to_owned()];
        let rule = HttpRule { host: host.to_owned(), methods, private: true, inject: None, mask: None };
        let rules = HttpRules { rules: vec![rule], max_response: 1 << 20, connect_timeout: FIRST_BYTE_LIMIT };
        Self { rules: Arc::new(rules), ..Self::default() }
    }

    /// Sends a request. The second future is the connection, which has to be polled while the response is read.
    pub async fn send(&self, request: Request<WasiBody>, options: Option<RequestOptions>) -> Result<Sent, Error> {
        let method = request.method().to_string();
        // The form in a grant: with its port if the URL has one.
        let host = request.uri().authority().map(|a| a.as_str().to_ascii_lowercase()).unwrap_or_default();
        match send(self, request, options).await {
            Ok(sent) => Ok(sent),
            Err(SendError { error, why }) => {
                let note = match (why, &error) {
                    (Why::Unset { secret, how }, _) => Some(RefusedRequest::Unset { host, secret, how }),
                    (Why::Clear, _) => Some(RefusedRequest::Clear { host }),
                    (Why::Labels(why), _) => Some(RefusedRequest::Labels { host, why }),
                    (Why::Network(refused), _) => Some(refused),
                    (Why::Other, Error::HttpRequestDenied) => Some(RefusedRequest::Host { host, method }),
                    (Why::Other, Error::DestinationIpProhibited) if self.open.is_some() => {
                        let why = format!(
                            "it has an address in this machine's own network; `kiso network allow {host} --private` allows it"
                        );
                        Some(RefusedRequest::Network { host, why })
                    }
                    (Why::Other, Error::DestinationIpProhibited) => Some(RefusedRequest::Private { host }),
                    (Why::Other, _) => None,
                };
                if let Some(note) = note {
                    if let Some(tell) = &self.tell {
                        tell(note.clone()).await;
                    }
                    *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
                }
                Err(error)
            }
        }
    }
}

/// A request that was not sent, or got no response.
struct SendError {
    /// The error for the guest.
    error: Error,
    why: Why,
}

/// The reason, where the guest's error cannot express it.
enum Why {
    /// The error says everything.
    Other,
    /// The secret for the request has no value.
    Unset {
        secret: String,
        how: String,
    },
    /// The secret would be sent without encryption.
    Clear,
    /// Data that the call has read may not be sent there, or influenced the destination.
    Labels(String),
    Network(RefusedRequest),
}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        Self { error, why: Why::Other }
    }
}

type Sent = (Response<WasiBody>, Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>);

async fn send(gate: &HttpGate, request: Request<WasiBody>, options: Option<RequestOptions>) -> Result<Sent, SendError> {
    let (rules, permit) = (&*gate.rules, &gate.permit);
    let (parts, body) = request.into_parts();
    let reads = is_reading(&parts);
    let mut request = Request::from_parts(parts, body);
    let mut uri = request.uri().clone();
    let host = uri.host().ok_or(Error::HttpRequestUriInvalid)?.to_ascii_lowercase();
    let (tls, default_port) = match uri.scheme_str() {
        Some("https") => (true, 443),
        Some("http") => (false, 80),
        _ => return Err(Error::HttpRequestUriInvalid.into()),
    };
    let port = uri.port_u16().unwrap_or(default_port);
    let granted = rules.find(request.method(), &host, port, default_port);
    let rule = match (granted, &gate.open) {
        (Some(rule), _) => rule.clone(),
        (None, None) => return Err(Error::HttpRequestDenied.into()),
        (None, Some(open)) => {
            let wanted = HostRequest { method: request.method(), host: &host, port, default_port, reads };
            open.rule(wanted, permit).map_err(|refused| SendError {
                error: Error::HttpRequestDenied,
                why: refused.map_or(Why::Other, Why::Network),
            })?
        }
    };
    let by_name = !rule.host.contains('*');
    let allowed = permit.read().get();
    permit
        .request(&host, !reads, by_name)
        .map_err(|why| SendError { error: Error::HttpRequestDenied, why: Why::Labels(why) })?;
    match &rule.inject {
        None => {}
        Some(Injection::Unset { secret, how }) => {
            let why = Why::Unset { secret: secret.clone(), how: how.clone() };
            return Err(SendError { error: Error::ConfigurationError, why });
        }
        Some(Injection::Header(header, secret)) => {
            let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| Error::ConfigurationError)?;
            value.set_sensitive(true);
            request.headers_mut().insert(header.clone(), value);
        }
        Some(Injection::Path(secret)) => uri = filled(&uri, secret).ok_or(Error::HttpRequestUriInvalid)?,
    }
    if rule.mask.is_some() {
        // The secret can only be found in uncompressed and complete responses.
        for header in [http::header::ACCEPT_ENCODING, http::header::RANGE] {
            request.headers_mut().remove(header);
        }
    }
    // The guest's own Host header could name another site behind the same front server.
    let authority = if port == default_port { host.clone() } else { format!("{host}:{port}") };
    let authority = HeaderValue::from_str(&authority).map_err(|_| Error::HttpRequestUriInvalid)?;
    request.headers_mut().insert(http::header::HOST, authority);

    let connect_limit =
        options.and_then(|o| o.connect_timeout).map_or(rules.connect_timeout, |t| t.min(rules.connect_timeout));
    let first_byte_limit = options.and_then(|o| o.first_byte_timeout).unwrap_or(FIRST_BYTE_LIMIT).min(FIRST_BYTE_LIMIT);
    let late = |_| Error::ConnectionTimeout;
    // Recorded before anything is sent.
    if let Some(error) = gate.transaction.as_ref().and_then(|work| work.leaving(&host).err()) {
        return Err(Error::InternalError(Some(error.to_string())).into());
    }
    let stream = timeout(connect_limit, net::connect(&host, port, rule.private)).await.map_err(late)?;
    let stream = stream.map_err(unreached)?;
    let is_private = stream.peer_addr().is_ok_and(|peer| !net::is_public(peer.ip()));
    note(&gate.reached, request.method(), &rule.named(&host, port, default_port), is_private);
    // On the public internet, anybody could read an unencrypted secret; in the local network that is accepted.
    if !tls && rule.inject.is_some() && stream.peer_addr().map_or(true, |peer| net::is_public(peer.ip())) {
        return Err(SendError { error: Error::HttpRequestDenied, why: Why::Clear });
    }
    let stream: Box<dyn Stream> = if tls {
        let secured = timeout(connect_limit, net::secure(stream, &host)).await.map_err(late)?;
        Box::new(secured.map_err(unreached)?)
    } else {
        Box::new(stream)
    };

    // From here on the response is the host's. Before, an error such as a refused connection came from the local network.
    permit.read().join(LabelId::from_label(&answer_label(&host, &rule, request.headers())));
    *request.uri_mut() = Uri::builder()
        .path_and_query(uri.path_and_query().map_or("/", |p| p.as_str()))
        .build()
        .map_err(|_| Error::HttpRequestUriInvalid)?;
    let to = SentTo { permit: permit.clone(), host: host.clone(), changes: !reads, by_name };
    let (parts, body) = request.into_parts();
    let (body, progress) = SentBody::new(body, to, allowed);
    let request = Request::from_parts(parts, body);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(Error::Hyper)?;
    let mut connection = Box::pin(connection);
    let response = progress.answered(first_byte_limit, async {
        let mut answer = std::pin::pin!(sender.send_request(request));
        tokio::select! {
            answer = &mut answer => answer,
            ended = &mut connection => match ended {
                Ok(()) => answer.await,
                Err(error) => Err(error),
            },
        }
    });
    let response = response.await.ok_or(Error::ConnectionReadTimeout)?;
    let mut response = response.map_err(|error| match progress.take_refusal() {
        Some(why) => SendError { error: Error::HttpRequestDenied, why: Why::Labels(why) },
        None => Error::Hyper(error).into(),
    })?;
    let max = rules.max_response;
    let pause_limit = options.and_then(|o| o.between_bytes_timeout).unwrap_or(FIRST_BYTE_LIMIT).min(FIRST_BYTE_LIMIT);
    let mask = rule.mask.clone();
    if let Some(mask) = &mask {
        mask.headers(response.headers_mut());
    }
    let body = response.map(|incoming| {
        let body = Limited::new(incoming, max).map_err(move |error| match error.downcast::<hyper::Error>() {
            Ok(error) => Error::Hyper(*error),
            Err(_) => Error::HttpResponseBodySize(Some(max as u64)),
        });
        let body = Paced { body: Box::pin(body), limit: pause_limit, pause: None };
        match mask {
            Some(mask) => MaskedBody::new(body, mask).boxed_unsync(),
            None => body.boxed_unsync(),
        }
    });
    Ok((body, Box::pin(async move { connection.await.map_err(Error::Hyper) })))
}

/// The label of a host's response. A response without a secret in the request is public.
fn answer_label(host: &str, rule: &HttpRule, headers: &http::HeaderMap) -> Label {
    let shows_who =
        [http::header::AUTHORIZATION, http::header::COOKIE].iter().any(|header| headers.contains_key(header));
    match rule.inject.is_some() || rule.private || shows_who {
        true => Label::new(Integrity::World, Confidentiality::Session, &format!("host:{host}")),
        false => Label::world(&format!("{PUBLIC}{host}")),
    }
}

/// Records a connection to a host.
fn note(reached: &Mutex<CapabilityUse>, method: &http::Method, host: &str, is_private: bool) {
    let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
    reached.add(method.as_str(), host);
    if is_private {
        reached.add(PRIVATE, host);
    }
}

/// The address with the secret in its path. Nothing is put into the query, because services log it.
fn filled(uri: &Uri, secret: &SecretValue) -> Option<Uri> {
    let mut value = String::new();
    for byte in secret.expose().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' => value.push(byte.into()),
            _ => value.push_str(&format!("%{byte:02X}")),
        }
    }
    let mut path = uri.path().replacen(PLACEHOLDER, &value, 1);
    if let Some(query) = uri.query() {
        path = format!("{path}?{query}");
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// The longest wait for the first byte of a response, and between two pieces, whatever the guest asks for.
const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(60);

/// A body whose pieces come within a limit of each other.
struct Paced<B> {
    body: Pin<Box<B>>,
    limit: Duration,
    /// Runs while it waits for a piece.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<B: Body<Data = Bytes, Error = Error>> Body for Paced<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = this.body.as_mut().poll_frame(cx) {
            this.pause = None;
            return Poll::Ready(frame);
        }
        let limit = this.limit;
        let pause = this.pause.get_or_insert_with(|| Box::pin(sleep(limit)));
        pause.as_mut().poll(cx).map(|()| Some(Err(Error::ConnectionReadTimeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The same as an error of `wasi:http`.
fn unreached(error: NetError) -> Error {
    match error {
        NetError::Dns(error) => Error::DnsError { rcode: Some(error.to_string()), info_code: None },
        NetError::NoAddress => Error::DestinationNotFound,
        NetError::Private => Error::DestinationIpProhibited,
        NetError::Connect(error) => Error::Connect(error),
        NetError::BadName => Error::HttpRequestUriInvalid,
        NetError::Tls(error) => Error::Tls(without_names(&error)),
    }
}

/// The reason why TLS failed, without the names in a certificate: its owner has chosen them.
fn without_names(error: &io::Error) -> io::Error {
    let reason = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    io::Error::new(
        error.kind(),
        match reason {
            Some(rustls::Error::InvalidCertificate(_)) => "the certificate is not valid for this host",
            Some(rustls::Error::AlertReceived(_)) => "the host has refused the handshake",
            _ => "the handshake failed",
        },
    )
}

/// The bodies that pass the gate carry bytes.
const _: fn(WasiBody) -> http_body_util::combinators::UnsyncBoxBody<Bytes, Error> = |body| body;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_put_into_the_path_once_and_nowhere_else() {
        let secret = SecretValue::new("12:ab/c d".to_owned());
        for (uri, expected) in [
            ("https://a.example/bot$TOKEN/x?y=1", "https://a.example/bot12:ab%2Fc%20d/x?y=1"),
            ("https://a.example/$TOKEN/$TOKEN", "https://a.example/12:ab%2Fc%20d/$TOKEN"),
            ("https://a.example/x?y=$TOKEN", "https://a.example/x?y=$TOKEN"),
            ("https://a.example/%24TOKEN", "https://a.example/%24TOKEN"),
        ] {
            assert_eq!(filled(&uri.parse().unwrap(), &secret).unwrap().to_string(), expected);
        }
    }
}
