//! The messages of `-v`, and heads as they are printed.

use crate::transport::{reason, written_name};
use crate::url::Url;

/// Headers whose values are not shown: who reads standard error is not always who typed the line.
const SECRET: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// A request's head, with `> ` before each line, and with the length of its body.
pub fn request(method: &str, url: &Url, headers: &[(String, String)], length: Option<u64>) -> String {
    let mut text = format!("> {method} {} HTTP/1.1\r\n> Host: {}\r\n", url.target(), url.host_header());
    for (name, value) in headers {
        let is_secret = SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret));
        let value = match value.split_once(' ') {
            Some((scheme, _)) if is_secret && name.eq_ignore_ascii_case("authorization") => {
                format!("{scheme} (not shown)")
            }
            _ if is_secret => "(not shown)".to_owned(),
            _ => value.clone(),
        };
        text.push_str(&format!("> {name}: {value}\r\n"));
    }
    if let Some(length) = length {
        text.push_str(&format!("> Content-Length: {length}\r\n"));
    }
    text + "> \r\n"
}

/// An answer's head, with `< ` before each line.
pub fn response(head: &str) -> String {
    head.split_inclusive('\n').map(|line| format!("< {line}")).collect()
}

/// An answer's head as a server would have written it.
pub fn head(status: u16, headers: &[(String, String)]) -> String {
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        text.push_str(&format!("{}: {value}\r\n", written_name(name)));
    }
    text + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [header("Authorization", "Bearer SECRET"), header("cookie", "s=SECRET"), header("A", "1")];
        let text = request("GET", &Url::parse("http://u:SECRET@h:80/x?y").unwrap(), &headers, Some(3));
        let expected = "> GET /x?y HTTP/1.1\r\n> Host: h\r\n> Authorization: Bearer (not shown)\r\n> cookie: (not shown)\r\n> A: 1\r\n> Content-Length: 3\r\n> \r\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_head_is_written_as_over_http_1() {
        let headers = [("content-type".to_owned(), "a/b".to_owned()), ("etag".to_owned(), "\"1\"".to_owned())];
        assert_eq!(head(404, &headers), "HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nETag: \"1\"\r\n\r\n");
        assert_eq!(response("a\r\n\r\n"), "< a\r\n< \r\n");
    }
}
