//! Requests over HTTP: the host decides which hosts may be reached. All are sent and read side by side, in one thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use boa_engine::object::builtins::JsArray;
use boa_engine::{Context, JsArgs, JsError, JsNativeError, JsResult, JsValue};
use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    Scheme,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use super::process::list;
use super::{Function, buffer, content, string, text};

pub const FUNCTIONS: &[(&str, Function)] =
    &[("httpSend", send), ("httpWait", wait), ("httpHead", head), ("httpRead", read), ("httpClose", close)];

/// Requests that are open at once. The host has a limit for streams; an error of its own would end the script.
const MAX_OPEN: usize = 32;

/// Read at once, in bytes.
const MAX_READ: u64 = 256 << 10;

/// One request and its answer. What was made of something else stands above it, and is dropped first.
#[derive(Default)]
struct Exchange {
    upload: Option<Upload>,
    /// Ready when the answer, or more of its body, is there.
    ready: Option<Pollable>,
    stream: Option<InputStream>,
    body: Option<IncomingBody>,
    response: Option<IncomingResponse>,
    answer: Option<FutureIncomingResponse>,
}

/// A body that is being sent.
struct Upload {
    stream: OutputStream,
    body: OutgoingBody,
    bytes: Vec<u8>,
    sent: usize,
}

thread_local! {
    static OPEN: RefCell<BTreeMap<u32, Exchange>> = const { RefCell::new(BTreeMap::new()) };
    static LAST: RefCell<u32> = const { RefCell::new(0) };
}

/// `httpSend(method, isHttps, authority, path, [name, value, ...], body, timeout)`: begins a request, and returns its number.
fn send(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let method = text(arguments, 0, context)?;
    let is_https = arguments.get_or_undefined(1).to_boolean();
    let (authority, path) = (text(arguments, 2, context)?, text(arguments, 3, context)?);
    let headers = list(arguments, 4, context)?;
    let has_body = !arguments.get_or_undefined(5).is_undefined();
    let bytes = if has_body { content(arguments, 5, context)? } else { Vec::new() };
    if OPEN.with_borrow(BTreeMap::len) >= MAX_OPEN {
        let message = format!("a script has at most {MAX_OPEN} requests at once");
        return Err(super::error("EMFILE", &message, context));
    }
    let fields = Fields::new();
    for [name, value] in headers.as_chunks::<2>().0 {
        let value: Vec<u8> = value.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
        // One that is the host's own, such as `host`, is left out.
        let _ = fields.append(name, &value);
    }
    let request = OutgoingRequest::new(fields);
    let scheme = if is_https { Scheme::Https } else { Scheme::Http };
    let set = request
        .set_method(&method_of(&method))
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(&authority)))
        .and_then(|()| request.set_path_with_query(Some(&path)));
    let wrong = |what: &str| JsError::from(JsNativeError::typ().with_message(what.to_owned()));
    set.map_err(|()| wrong("the address cannot be sent"))?;
    let body = request.body().map_err(|()| wrong("the request has no body"))?;
    let answer = outgoing_handler::handle(request, None).map_err(|code| failed(&code, context))?;
    let mut exchange = Exchange { ready: Some(answer.subscribe()), answer: Some(answer), ..Exchange::default() };
    if bytes.is_empty() {
        // The answer says what became of a request that could not be ended.
        let _ = OutgoingBody::finish(body, None);
    } else {
        let stream = body.write().map_err(|()| wrong("the request has no body"))?;
        exchange.upload = Some(Upload { stream, body, bytes, sent: 0 });
        exchange.send_more();
    }
    let number = LAST.with_borrow_mut(|last| {
        *last += 1;
        *last
    });
    OPEN.with_borrow_mut(|open| open.insert(number, exchange));
    Ok(number.into())
}

fn method_of(name: &str) -> Method {
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
        other => Method::Other(other.to_owned()),
    }
}

impl Exchange {
    /// Sends as much of the body as there is room for.
    fn send_more(&mut self) {
        let Some(upload) = &mut self.upload else { return };
        while let Ok(room) = upload.stream.check_write() {
            if room == 0 {
                return;
            }
            if upload.sent == upload.bytes.len() {
                // All of it has left.
                break;
            }
            let end = upload.bytes.len().min(upload.sent.saturating_add(usize::try_from(room).unwrap_or(usize::MAX)));
            if upload.stream.write(&upload.bytes[upload.sent..end]).is_err() {
                break;
            }
            upload.sent = end;
        }
        // Sent, or refused by a server that has read enough: its answer says more.
        let Some(Upload { stream, body, .. }) = self.upload.take() else { return };
        drop(stream);
        let _ = OutgoingBody::finish(body, None);
    }
}

/// `httpWait([number, ...], milliseconds)`: waits until one of these has something to read, and returns the numbers of those that do. A
/// negative time has no end.
fn wait(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let numbers: Vec<u32> = list(arguments, 0, context)?.iter().filter_map(|number| number.parse().ok()).collect();
    let milliseconds = arguments.get_or_undefined(1).to_number(context)?;
    if milliseconds != 0.0 {
        // Nobody waits for output that is already there.
        let _ = std::io::stdout().flush();
    }
    let end = (milliseconds >= 0.0).then(|| {
        let wait = Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(Duration::MAX);
        monotonic_clock::subscribe_duration(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
    });
    let ready = OPEN.with_borrow_mut(|open| ready(open, &numbers, end.as_ref()));
    Ok(JsArray::from_iter(ready.into_iter().map(JsValue::from), context).into())
}

fn ready(open: &mut BTreeMap<u32, Exchange>, numbers: &[u32], end: Option<&Pollable>) -> Vec<u32> {
    loop {
        // A body goes out whether or not somebody waits for the answer.
        let uploads: Vec<(u32, Pollable)> = open
            .iter()
            .filter_map(|(number, exchange)| Some((*number, exchange.upload.as_ref()?.stream.subscribe())))
            .collect();
        let answers: Vec<(u32, &Pollable)> =
            numbers.iter().filter_map(|number| Some((*number, open.get(number)?.ready.as_ref()?))).collect();
        let mut pollables: Vec<&Pollable> = answers.iter().map(|(_, pollable)| *pollable).collect();
        pollables.extend(uploads.iter().map(|(_, pollable)| pollable));
        pollables.extend(end);
        if pollables.is_empty() {
            return Vec::new();
        }
        let woken = poll(&pollables);
        let (mut found, mut sending, mut is_over) = (Vec::new(), Vec::new(), false);
        for index in woken {
            let index = index as usize;
            match (answers.get(index), uploads.get(index.wrapping_sub(answers.len()))) {
                (Some((number, _)), _) => found.push(*number),
                (None, Some((number, _))) => sending.push(*number),
                (None, None) => is_over = true,
            }
        }
        drop(uploads);
        for number in sending {
            open.entry(number).and_modify(Exchange::send_more);
        }
        if is_over || !found.is_empty() {
            return found;
        }
    }
}

/// `httpHead(number)`: the status and the headers of an answer that is there, or undefined.
fn head(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let number = arguments.get_or_undefined(0).to_u32(context)?;
    let answer =
        OPEN.with_borrow_mut(|open| open.get_mut(&number).and_then(|exchange| exchange.answer.as_ref()?.get()));
    let Some(answer) = answer else { return Ok(JsValue::undefined()) };
    let response = match answer {
        Ok(Ok(response)) => response,
        Ok(Err(code)) => return Err(failed(&code, context)),
        Err(()) => return Err(super::error("ECONNRESET", "socket hang up", context)),
    };
    let status = response.status();
    let mut headers = Vec::new();
    for (name, value) in response.headers().entries() {
        let value: String = value.iter().map(|byte| char::from(*byte)).collect();
        headers.extend([string(&name), string(&value)]);
    }
    // One whose body was taken already does not come twice.
    let body = response.consume().ok();
    let stream = body.as_ref().and_then(|body| body.stream().ok());
    OPEN.with_borrow_mut(|open| {
        if let Some(exchange) = open.get_mut(&number) {
            exchange.ready = stream.as_ref().map(InputStream::subscribe);
            (exchange.stream, exchange.body, exchange.response) = (stream, body, Some(response));
        }
    });
    let headers = JsArray::from_iter(headers, context).into();
    Ok(JsArray::from_iter([JsValue::from(status), headers], context).into())
}

/// `httpRead(number)`: the next bytes of the body; undefined if there are none yet, and null at its end.
fn read(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let number = arguments.get_or_undefined(0).to_u32(context)?;
    let read =
        OPEN.with_borrow(|open| open.get(&number).and_then(|exchange| Some(exchange.stream.as_ref()?.read(MAX_READ))));
    match read {
        Some(Ok(bytes)) if bytes.is_empty() => Ok(JsValue::undefined()),
        Some(Ok(bytes)) => buffer(&bytes, context),
        Some(Err(StreamError::Closed)) | None => Ok(JsValue::null()),
        Some(Err(StreamError::LastOperationFailed(error))) => {
            let code = wasip2::http::types::http_error_code(&error);
            Err(match code {
                Some(code) => failed(&code, context),
                None => super::error("ECONNRESET", "aborted", context),
            })
        }
    }
}

/// `httpClose(number)`: gives up a request, or an answer that nobody reads on.
fn close(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let number = arguments.get_or_undefined(0).to_u32(context)?;
    drop(OPEN.with_borrow_mut(|open| open.remove(&number)));
    Ok(JsValue::undefined())
}

/// An error with Node's code, and the host's words.
fn failed(code: &ErrorCode, context: &mut Context) -> JsError {
    let code_of = match code {
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => "ENOTFOUND",
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited | ErrorCode::ConfigurationError => "EACCES",
        ErrorCode::ConnectionRefused => "ECONNREFUSED",
        ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => "EHOSTUNREACH",
        ErrorCode::ConnectionTimeout => "ETIMEDOUT",
        ErrorCode::ConnectionReadTimeout | ErrorCode::ConnectionWriteTimeout | ErrorCode::HttpResponseTimeout => {
            "ESOCKETTIMEDOUT"
        }
        // The host has one code for a response that is not HTTP and for one that never began.
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete | ErrorCode::HttpProtocolError => {
            "ECONNRESET"
        }
        ErrorCode::TlsCertificateError => "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => "EPROTO",
        ErrorCode::HttpResponseBodySize(_) => "ERR_RESPONSE_TOO_LARGE",
        ErrorCode::HttpRequestUriInvalid => "ERR_INVALID_URL",
        _ => "EIO",
    };
    super::error(code_of, &code.to_string(), context)
}
