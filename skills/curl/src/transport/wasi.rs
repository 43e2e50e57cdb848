//! Requests through the host.

use super::{Failure, Request, Response};
use std::time::{Duration, Instant};
use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, Method, OutgoingBody, OutgoingRequest, RequestOptions,
    Scheme,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

/// Bytes that are read of an answer at once.
const PIECE: u64 = 64 << 10;

/// The body of an answer.
pub struct Stream {
    // Declared before `body`, so that it is dropped first: this stream is a child resource of the body.
    stream: Option<InputStream>,
    body: Option<IncomingBody>,
    /// The longest wait for a piece. The host ends a longer one without its reason.
    patience: Option<Duration>,
}

pub fn send(request: &Request<'_>) -> Result<Response, Failure> {
    let headers = Fields::new();
    let length = request.body.length().map_err(|e| Failure::Unreadable(crate::reason::reason(&e)))?;
    for (name, value) in request.headers {
        headers.append(name, value.as_bytes()).map_err(|_| Failure::Unsendable)?;
    }
    if let (false, Some(length)) = (request.body.is_none(), length) {
        headers.append("content-length", length.to_string().as_bytes()).map_err(|_| Failure::Unsendable)?;
    }
    let outgoing = OutgoingRequest::new(headers);
    let scheme = if request.url.is_https() { Scheme::Https } else { Scheme::Http };
    outgoing
        .set_method(&method(request.method))
        .and_then(|()| outgoing.set_scheme(Some(&scheme)))
        .and_then(|()| outgoing.set_authority(Some(&request.url.authority())))
        .and_then(|()| outgoing.set_path_with_query(Some(&request.url.target())))
        .map_err(|()| Failure::Unsendable)?;
    let options = RequestOptions::new();
    let nanos = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    if let Some(limit) = request.connect_timeout {
        let _ = options.set_connect_timeout(Some(nanos(limit)));
    }
    if let Some(limit) = request.read_timeout {
        let _ = options.set_first_byte_timeout(Some(nanos(limit)));
        let _ = options.set_between_bytes_timeout(Some(nanos(limit)));
    }
    let body = match request.body.is_none() {
        true => None,
        false => Some(outgoing.body().map_err(|()| Failure::Unsendable)?),
    };
    let pending = outgoing_handler::handle(outgoing, Some(options)).map_err(|code| failed(&code))?;
    let answered = pending.subscribe();
    let mut sent = 0;
    if let Some(body) = body {
        {
            let stream = body.write().map_err(|()| Failure::Unsendable)?;
            let writing = Writing { stream: &stream, ready: stream.subscribe(), answered: &answered };
            let mut ended = Ok(true);
            let read = request.body.read(&mut |part| {
                ended = writing.write(part, request.deadline, &mut sent);
                ended == Ok(true)
            });
            read.map_err(|e| Failure::Unreadable(crate::reason::reason(&e)))?;
            ended?;
            if writing.stream.flush().is_ok() {
                wait(&[&writing.ready, &answered], request.deadline)?;
            }
        }
        let _ = OutgoingBody::finish(body, None);
    }
    wait(&[&answered], request.deadline)?;
    drop(answered);
    accept(&pending, sent, request.read_timeout)
}

fn accept(pending: &FutureIncomingResponse, sent: u64, patience: Option<Duration>) -> Result<Response, Failure> {
    let response = match pending.get() {
        Some(Ok(answer)) => answer.map_err(|code| failed(&code))?,
        Some(Err(())) | None => return Err(Failure::Empty),
    };
    let status = response.status();
    let text = |value: Vec<u8>| {
        String::from_utf8(value).unwrap_or_else(|e| e.as_bytes().iter().map(|b| char::from(*b)).collect())
    };
    let headers = response.headers().entries();
    let headers = headers.into_iter().map(|(name, value)| (name.to_lowercase(), text(value))).collect();
    let body = response.consume().map_err(|()| Failure::Broken)?;
    let stream = body.stream().map_err(|()| Failure::Broken)?;
    Ok(Response { status, headers, body: Stream { stream: Some(stream), body: Some(body), patience }, sent })
}

impl Stream {
    /// The next piece; nothing at the end.
    pub fn read(&mut self, deadline: Option<Instant>) -> Result<Option<Vec<u8>>, Failure> {
        let begun = Instant::now();
        loop {
            let Some(stream) = &self.stream else { return Ok(None) };
            match stream.read(PIECE) {
                Ok(piece) if piece.is_empty() => {
                    let ready = stream.subscribe();
                    wait(&[&ready], deadline)?;
                }
                Ok(piece) => return Ok(Some(piece)),
                Err(StreamError::Closed) => {
                    self.stream = None;
                    self.body = None;
                    return Ok(None);
                }
                Err(StreamError::LastOperationFailed(error)) => {
                    let code = wasip2::http::types::http_error_code(&error);
                    return Err(match code.map(|code| failed(&code)) {
                        Some(failure @ (Failure::TooLarge(_) | Failure::Timeout)) => failure,
                        _ if self.patience.is_some_and(|patience| begun.elapsed() >= patience) => Failure::Timeout,
                        _ => Failure::Broken,
                    });
                }
            }
        }
    }
}

/// A request's body on its way.
struct Writing<'a> {
    stream: &'a OutputStream,
    ready: Pollable,
    answered: &'a Pollable,
}

impl Writing<'_> {
    /// Writes all of it. `false`: nobody reads it any more, or the answer came before there was room for it.
    fn write(&self, mut part: &[u8], deadline: Option<Instant>, sent: &mut u64) -> Result<bool, Failure> {
        while !part.is_empty() {
            let Ok(room) = self.stream.check_write() else { return Ok(false) };
            if room == 0 {
                wait(&[&self.ready, self.answered], deadline)?;
                if !self.ready.ready() && self.answered.ready() {
                    return Ok(false);
                }
                continue;
            }
            let count = part.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            if self.stream.write(&part[..count]).is_err() {
                return Ok(false);
            }
            *sent += count as u64;
            part = &part[count..];
        }
        Ok(true)
    }
}

/// Waits for one of them.
fn wait(pollables: &[&Pollable], deadline: Option<Instant>) -> Result<(), Failure> {
    let Some(deadline) = deadline else {
        poll(pollables);
        return Ok(());
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let timer = monotonic_clock::subscribe_duration(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    let ready = poll(&[pollables, &[&timer]].concat());
    match ready.iter().any(|at| (*at as usize) < pollables.len()) {
        true => Ok(()),
        false => Err(Failure::Timeout),
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        name => Method::Other(name.to_owned()),
    }
}

fn failed(code: &ErrorCode) -> Failure {
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited | ErrorCode::ConfigurationError => {
            Failure::Denied
        }
        ErrorCode::DnsError(_) | ErrorCode::DnsTimeout | ErrorCode::DestinationNotFound => Failure::Unresolved,
        ErrorCode::ConnectionRefused | ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => {
            Failure::Refused
        }
        ErrorCode::ConnectionTimeout => Failure::ConnectTimeout,
        ErrorCode::ConnectionReadTimeout | ErrorCode::ConnectionWriteTimeout | ErrorCode::HttpResponseTimeout => {
            Failure::Timeout
        }
        ErrorCode::TlsCertificateError => Failure::Certificate("unable to get local issuer certificate".to_owned()),
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => Failure::Tls("the handshake failed".to_owned()),
        ErrorCode::HttpResponseBodySize(max) => Failure::TooLarge(*max),
        ErrorCode::HttpRequestUriInvalid
        | ErrorCode::HttpRequestMethodInvalid
        | ErrorCode::HttpRequestHeaderSize(_)
        | ErrorCode::HttpRequestHeaderSectionSize(_) => Failure::Unsendable,
        // The host says the same of an answer that is not HTTP.
        _ => Failure::Empty,
    }
}
