//! `wasi:http/outgoing-handler`: only to granted hosts, never to this machine's own network unless that was granted too.
//!
//! The address that was checked is the one that is connected to: a name that resolves to something else a moment later
//! (rebinding) gains nothing.

use crate::secret::SecretValue;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// What one call may reach, as granted.
#[derive(Debug, Clone, Default)]
pub struct HttpRules {
    pub rules: Vec<HttpRule>,
    /// Longest body of an answer, in bytes.
    pub max_response: usize,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
}

/// One granted host.
#[derive(Debug, Clone)]
pub struct HttpRule {
    /// "api.example.org", "*.example.org" (any name below, not the name itself), "*" (every host), each with an
    /// optional ":port"; without one the scheme's own port is meant.
    pub host: String,
    /// Methods in upper case.
    pub methods: Vec<String>,
    /// Whether loopback, private and link-local addresses may be reached. Only an administrator's file can say so.
    pub private: bool,
    /// Header and secret that the host puts into each request. The guest never sees the value.
    pub inject: Option<(HeaderName, SecretValue)>,
}

impl HttpRules {
    fn find(&self, method: &http::Method, host: &str, port: u16, default_port: u16) -> Option<&HttpRule> {
        self.rules.iter().find(|rule| rule.allows(method, host, port, default_port))
    }
}

impl HttpRule {
    fn allows(&self, method: &http::Method, host: &str, port: u16, default_port: u16) -> bool {
        let (name, allowed_port) = split_port(&self.host);
        let methods = &self.methods;
        methods.iter().any(|m| m == method.as_str())
            && port == allowed_port.unwrap_or(default_port)
            && match name.strip_prefix("*.") {
                Some(domain) => {
                    host.len() > domain.len() + 1 && host.ends_with(domain) && {
                        host.as_bytes()[host.len() - domain.len() - 1] == b'.'
                    }
                }
                None => name == "*" || name.eq_ignore_ascii_case(host),
            }
    }
}

/// `host:port` and `[v6]:port` in their parts.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (host, None),
        },
        _ => (host, None),
    }
}

/// The door between one call and the network.
#[derive(Debug, Default)]
pub struct HttpGate {
    pub rules: Arc<HttpRules>,
    /// The last request that was refused, for the person who can allow it.
    pub refused: Arc<Mutex<Option<Refused>>>,
}

/// A request that the grant does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The host is not granted, or not for this method.
    Host { host: String, method: String },
    /// The host is granted, but its address is private.
    Private { host: String },
}

impl Refused {
    /// What to do about it.
    pub fn hint(&self, skill: &str) -> String {
        match self {
            Self::Host { host, .. } => format!("allow it with `kiso skill grant {skill} --host {host}`"),
            Self::Private { host } => {
                format!(
                    "{host} has a private address; allow it with `kiso skill grant {skill} --host {host} --private`"
                )
            }
        }
    }
}

type Sent = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for HttpGate {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let (rules, refused) = (self.rules.clone(), self.refused.clone());
        Box::new(async move {
            let method = request.method().to_string();
            // As it stands in a grant: with its port where the URL has one.
            let host = request.uri().authority().map(|a| a.as_str().to_ascii_lowercase()).unwrap_or_default();
            let sent = send(&rules, request, options).await;
            let note = match &sent {
                Err(Error::HttpRequestDenied) => Some(Refused::Host { host, method }),
                Err(Error::DestinationIpProhibited) => Some(Refused::Private { host }),
                _ => None,
            };
            if note.is_some() {
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = note;
            }
            sent
        })
    }
}

async fn send(
    rules: &HttpRules,
    mut request: Request<WasiBody>,
    options: Option<RequestOptions>,
) -> Result<Sent, Error> {
    let uri = request.uri().clone();
    let host = uri.host().ok_or(Error::HttpRequestUriInvalid)?.to_ascii_lowercase();
    let (tls, default_port) = match uri.scheme_str() {
        Some("https") => (true, 443),
        Some("http") => (false, 80),
        _ => return Err(Error::HttpRequestUriInvalid),
    };
    let port = uri.port_u16().unwrap_or(default_port);
    let rule = rules.find(request.method(), &host, port, default_port).ok_or(Error::HttpRequestDenied)?;
    if let Some((header, secret)) = &rule.inject {
        let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| Error::HttpRequestDenied)?;
        value.set_sensitive(true);
        request.headers_mut().insert(header.clone(), value);
    }
    // The guest's own Host header could name another site behind the same front server.
    let authority = if port == default_port { host.clone() } else { format!("{host}:{port}") };
    let authority = HeaderValue::from_str(&authority).map_err(|_| Error::HttpRequestUriInvalid)?;
    request.headers_mut().insert(http::header::HOST, authority);

    let connect_limit =
        options.and_then(|o| o.connect_timeout).map_or(rules.connect_timeout, |t| t.min(rules.connect_timeout));
    let first_byte_limit = options.and_then(|o| o.first_byte_timeout).unwrap_or(FIRST_BYTE_LIMIT).min(FIRST_BYTE_LIMIT);
    let stream =
        timeout(connect_limit, connect(&host, port, rule.private)).await.map_err(|_| Error::ConnectionTimeout)??;
    // In clear over the open internet the secret would be anybody's; inside this machine's own network it may go so.
    if !tls && rule.inject.is_some() && stream.peer_addr().map_or(true, |peer| is_public(peer.ip())) {
        return Err(Error::HttpRequestDenied);
    }
    let stream: Box<dyn Stream> = if tls {
        let name =
            ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let handshake = TlsConnector::from(tls_config()).connect(name, stream);
        Box::new(timeout(connect_limit, handshake).await.map_err(|_| Error::ConnectionTimeout)?.map_err(Error::Tls)?)
    } else {
        Box::new(stream)
    };

    *request.uri_mut() = Uri::builder()
        .path_and_query(uri.path_and_query().map_or("/", |p| p.as_str()))
        .build()
        .map_err(|_| Error::HttpRequestUriInvalid)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(Error::Hyper)?;
    let mut connection = Box::pin(connection);
    let response = timeout(first_byte_limit, async {
        let mut answer = std::pin::pin!(sender.send_request(request));
        tokio::select! {
            answer = &mut answer => answer,
            ended = &mut connection => match ended {
                Ok(()) => answer.await,
                Err(error) => Err(error),
            },
        }
    });
    let response = response.await.map_err(|_| Error::ConnectionReadTimeout)?.map_err(Error::Hyper)?;
    let max = rules.max_response;
    let pause_limit = options.and_then(|o| o.between_bytes_timeout).unwrap_or(FIRST_BYTE_LIMIT).min(FIRST_BYTE_LIMIT);
    let body = response.map(|incoming| {
        let body = Limited::new(incoming, max).map_err(move |error| match error.downcast::<hyper::Error>() {
            Ok(error) => Error::Hyper(*error),
            Err(_) => Error::HttpResponseBodySize(Some(max as u64)),
        });
        Paced { body: Box::pin(body), limit: pause_limit, pause: None }.boxed_unsync()
    });
    Ok((body, Box::new(async move { connection.await.map_err(Error::Hyper) })))
}

/// Longest wait for the first byte of an answer, and between two pieces of it, whatever the guest asks for.
const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(60);

/// A body whose pieces come within a limit of each other.
struct Paced<B> {
    body: Pin<Box<B>>,
    limit: Duration,
    /// Runs while a piece is awaited.
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

/// Resolves once, drops addresses that may not be reached, and connects to one of those that were checked.
async fn connect(host: &str, port: u16, private: bool) -> Result<TcpStream, Error> {
    let addresses: Vec<SocketAddr> = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => match lookup_host((host, port)).await {
            Ok(found) => found.collect(),
            Err(error) => return Err(Error::DnsError { rcode: Some(error.to_string()), info_code: None }),
        },
    };
    let mut last = Error::DestinationNotFound;
    for address in addresses {
        if !private && !is_public(address.ip()) {
            last = Error::DestinationIpProhibited;
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = Error::Connect(error),
        }
    }
    Err(last)
}

/// Whether an address is on the open internet. Everything special is refused: loopback, private, link-local (where cloud
/// machines keep their credentials), carrier-grade NAT, multicast, documentation, benchmarks, and the IPv6 forms that
/// carry such an IPv4 address inside.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(a == 0
        || a >= 224
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0xdb8, ..] | [0x3fff, ..] | [0x2001, 0..=0x1ff, ..] => false,
        // Only 2000::/3 is handed out to networks.
        _ => s[0] & 0xe000 == 0x2000,
    }
}

/// Built on first use: most calls need no TLS.
fn tls_config() -> Arc<ClientConfig> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
            Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
        })
        .clone()
}

/// The bodies that pass the gate carry bytes.
const _: fn(WasiBody) -> http_body_util::combinators::UnsyncBoxBody<Bytes, Error> = |body| body;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(host: &str) -> HttpRule {
        HttpRule { host: host.into(), methods: vec!["GET".into()], private: false, inject: None }
    }

    #[test]
    fn a_rule_allows_its_host_and_nothing_that_looks_like_it() {
        let get = http::Method::GET;
        let table = [
            ("example.org", "example.org", 443, true),
            ("example.org", "EXAMPLE.ORG", 443, true),
            ("example.org", "evil-example.org", 443, false),
            ("example.org", "example.org.evil.net", 443, false),
            ("example.org", "www.example.org", 443, false),
            ("example.org", "example.org", 8443, false),
            ("example.org:8443", "example.org", 8443, true),
            ("example.org:8443", "example.org", 443, false),
            ("*.example.org", "a.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", "evilexample.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*", "anything.net", 443, true),
            ("*", "anything.net", 8080, false),
            ("[::1]:8080", "[::1]", 8080, true),
        ];
        for (allowed, host, port, expected) in table {
            assert_eq!(rule(allowed).allows(&get, host, port, 443), expected, "{allowed} against {host}:{port}");
        }
        assert!(!rule("example.org").allows(&http::Method::POST, "example.org", 443, 443));
    }

    #[test]
    fn addresses_that_are_not_on_the_open_internet_are_refused() {
        let refused = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ];
        for ip in refused {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["1.1.1.1", "93.184.216.34", "2606:2800:220:1::1", "64:ff9b::101:101", "::ffff:1.1.1.1"] {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }
}
