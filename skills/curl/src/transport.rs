//! One request and its answer: through `wasi:http` in the sandbox, over a plain socket in the unit tests.

#[cfg(not(target_os = "wasi"))]
mod socket;
#[cfg(target_os = "wasi")]
mod wasi;

use crate::body::Body;
use crate::url::Url;
use std::time::{Duration, Instant};

#[cfg(not(target_os = "wasi"))]
pub use socket::{Stream, send};
#[cfg(target_os = "wasi")]
pub use wasi::{Stream, send};

/// A request. No redirect is followed, and nothing is decoded.
#[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "sockets have fewer limits than the host"))]
pub struct Request<'a> {
    pub method: &'a str,
    pub url: &'a Url,
    /// Without `host` and what says how the body is framed, which are the transport's.
    pub headers: &'a [(String, String)],
    pub body: &'a Body,
    pub connect_timeout: Option<Duration>,
    /// The longest wait for the first byte, and between two pieces.
    pub read_timeout: Option<Duration>,
    pub deadline: Option<Instant>,
}

/// The head of an answer, and the stream of its body.
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Stream,
    /// Bytes of the request's body that were sent.
    pub sent: u64,
}

/// Why there is no answer, or no more of it.
#[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "sockets fail in fewer ways than the host"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A rule of the host; it has said so itself.
    Denied,
    Unresolved,
    Refused,
    /// Before there was a connection.
    ConnectTimeout,
    Timeout,
    /// The connection ended before a status, or what came is not HTTP.
    Empty,
    /// The connection broke off within the answer.
    Broken,
    Certificate(String),
    Tls(String),
    /// More than the host allows for one answer.
    TooLarge(Option<u64>),
    /// A header or the method cannot be sent.
    Unsendable,
    /// The request's own body could not be read.
    Unreadable(String),
}

impl Response {
    /// The last header of that name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The usual words for a status: the transport tells only the number.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

/// A header's name as servers write it over HTTP/1.1: the transport has them in lower case.
pub fn written_name(name: &str) -> String {
    match name {
        "etag" => return "ETag".to_owned(),
        "www-authenticate" => return "WWW-Authenticate".to_owned(),
        "te" => return "TE".to_owned(),
        "dnt" => return "DNT".to_owned(),
        "content-md5" => return "Content-MD5".to_owned(),
        _ => {}
    }
    let part = |part: &str| match part {
        "id" => "ID".to_owned(),
        "xss" => "XSS".to_owned(),
        "ratelimit" => "RateLimit".to_owned(),
        part => part.get(..1).map(str::to_ascii_uppercase).unwrap_or_default() + part.get(1..).unwrap_or_default(),
    };
    name.split('-').map(part).collect::<Vec<_>>().join("-")
}
