//! Errors with the exit codes and words of curl.

use crate::transport::Failure;
use crate::url::{Url, UrlError};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub code: u8,
    /// Without the name of the command.
    pub message: String,
    /// Whether the message has no code, and a line follows that names the help.
    pub usage: bool,
}

impl Failed {
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), usage: false }
    }

    pub fn usage(message: &str) -> Self {
        Self { code: 2, message: message.to_owned(), usage: true }
    }

    /// For an option that curl has, and this one must not have.
    pub fn refused(code: u8, message: &str) -> Self {
        Self { code, message: message.to_owned(), usage: code == 2 }
    }

    pub fn url(error: UrlError) -> Self {
        Self::new(3, format!("URL rejected: {error}"))
    }

    /// The error of a request, with its duration and the bytes that had come.
    pub fn transfer(failure: &Failure, url: &Url, took: Duration, received: u64, length: Option<u64>) -> Self {
        let (host, port) = (url.host.trim_matches(['[', ']']), url.port_or_default());
        let ms = took.as_millis();
        match failure {
            Failure::Denied => Self::new(7, format!("Failed to connect to {host} port {port}: not allowed")),
            Failure::Unresolved => Self::new(6, format!("Could not resolve host: {host}")),
            Failure::Refused => Self::new(
                7,
                format!("Failed to connect to {host} port {port} after {ms} ms: Could not connect to server"),
            ),
            Failure::ConnectTimeout => Self::new(28, format!("Connection timed out after {ms} milliseconds")),
            Failure::Timeout => {
                let out_of = length.map(|length| format!(" out of {length}")).unwrap_or_default();
                Self::new(
                    28,
                    format!("Operation timed out after {ms} milliseconds with {received}{out_of} bytes received"),
                )
            }
            Failure::Empty => Self::new(52, "Empty reply from server"),
            Failure::Broken => match length.filter(|length| *length > received) {
                Some(length) => {
                    Self::new(18, format!("transfer closed with {} bytes remaining to read", length - received))
                }
                None => Self::new(56, "Recv failure: Connection reset by peer"),
            },
            Failure::Certificate(why) => Self::new(60, format!("SSL certificate problem: {why}")),
            Failure::Tls(why) => Self::new(35, format!("TLS connect error: {why}")),
            Failure::TooLarge(max) => {
                let max = max.map(|max| format!(" of {max} bytes")).unwrap_or_default();
                Self::new(63, format!("the answer exceeds the limit{max} of [network] max_response_mib"))
            }
            Failure::Unsendable => Self::new(43, "A header or the method cannot be sent"),
            Failure::Unreadable(why) => {
                Self::new(26, format!("Failed to open/read local data from file/application: {why}"))
            }
        }
    }

    pub fn write(reason: &str) -> Self {
        Self::new(23, format!("Failure writing output to destination: {reason}"))
    }
}
