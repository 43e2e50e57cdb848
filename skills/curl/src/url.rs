//! URLs as curl reads them: a missing scheme is http, and what a browser would repair is an error.

use std::fmt;

/// An absolute URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// In lower case.
    pub scheme: String,
    pub user: Option<String>,
    pub password: Option<String>,
    /// In lower case; an IPv6 address with its brackets.
    pub host: String,
    pub port: Option<u16>,
    /// Begins with a slash.
    pub path: String,
    pub query: Option<String>,
    pub fragment: Option<String>,
}

/// Why a text is not a URL: the end of curl's sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlError {
    Malformed,
    NoHost,
    BadHost,
    BadPort,
    TooLong,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "Malformed input to a URL function",
            Self::NoHost => "No host part in the URL",
            Self::BadHost => "Bad hostname",
            Self::BadPort => "Port number was not a decimal number between 0 and 65535",
            Self::TooLong => "The URL is too long",
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(user) = &self.user {
            f.write_str(user)?;
            if let Some(password) = &self.password {
                write!(f, ":{password}")?;
            }
            f.write_str("@")?;
        }
        f.write_str(&self.authority())?;
        f.write_str(&self.target())?;
        match &self.fragment {
            Some(fragment) => write!(f, "#{fragment}"),
            None => Ok(()),
        }
    }
}

impl Url {
    /// Parses an absolute URL. Without a scheme it is an http one.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > crate::limits::URL_BYTES {
            return Err(UrlError::TooLong);
        }
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(UrlError::Malformed);
        }
        let (scheme, rest) = match split_scheme(text) {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => ("http".to_owned(), text),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place)?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "\0"))) {
            None => (None, None),
            Some((user, "\0")) => (Some(user.to_owned()), None),
            Some((user, password)) => (Some(user.to_owned()), Some(password.to_owned())),
        };
        let (rest, fragment) = cut(rest, '#');
        let (path, query) = cut(rest, '?');
        let path = without_dots(&encode_non_ascii(if path.is_empty() { "/" } else { path }));
        let query = query.map(encode_non_ascii);
        Ok(Self { scheme, user, password, host, port, path, query, fragment: fragment.map(str::to_owned) })
    }

    /// Resolves what a `Location` or a link says.
    pub fn join(&self, text: &str) -> Result<Self, UrlError> {
        let text: String =
            text.trim().chars().map(|c| if c == ' ' { "%20".to_owned() } else { c.to_string() }).collect();
        if split_scheme(&text).is_some() {
            return Self::parse(&text);
        }
        if let Some(rest) = text.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme));
        }
        if text.len() > crate::limits::URL_BYTES || text.bytes().any(|byte| byte < b' ') {
            return Err(UrlError::Malformed);
        }
        let (text, fragment) = cut(&text, '#');
        let (path, query) = cut(text, '?');
        let mut joined = self.clone();
        joined.fragment = fragment.map(str::to_owned);
        if path.is_empty() {
            if query.is_some() {
                joined.query = query.map(encode_non_ascii);
            }
            return Ok(joined);
        }
        let whole = match path.strip_prefix('/') {
            Some(_) => path.to_owned(),
            None => format!("{}{path}", &self.path[..=self.path.rfind('/').unwrap_or(0)]),
        };
        joined.path = without_dots(&encode_non_ascii(&whole));
        joined.query = query.map(encode_non_ascii);
        Ok(joined)
    }

    pub fn is_https(&self) -> bool {
        self.scheme == "https"
    }

    pub fn default_port(&self) -> u16 {
        if self.is_https() { 443 } else { 80 }
    }

    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or_else(|| self.default_port())
    }

    /// Host and port, the port only where the URL has one.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Host and port as a request names them: without the scheme's own port.
    pub fn host_header(&self) -> String {
        match self.port {
            Some(port) if port != self.default_port() => format!("{}:{port}", self.host),
            _ => self.host.clone(),
        }
    }

    /// Path and query.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Whether credentials for the other one may go here, too.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (&self.scheme, &self.host, self.port_or_default()) == (&other.scheme, &other.host, other.port_or_default())
    }

    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// User and password, decoded.
    pub fn login(&self) -> Option<(String, String)> {
        let user = decode(self.user.as_ref()?);
        Some((user, self.password.as_deref().map(decode).unwrap_or_default()))
    }

    /// The same without user and password.
    pub fn without_login(&self) -> Self {
        Self { user: None, password: None, ..self.clone() }
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

fn split_port(place: &str) -> Result<(String, Option<u16>), UrlError> {
    let (host, port) = match place.strip_prefix('[') {
        Some(inner) => {
            let (address, rest) = inner.split_once(']').ok_or(UrlError::BadHost)?;
            address.parse::<std::net::Ipv6Addr>().map_err(|_| UrlError::BadHost)?;
            (format!("[{address}]"), rest.strip_prefix(':').or(if rest.is_empty() { None } else { Some("?") }))
        }
        None => {
            let (host, port) = cut(place, ':');
            (decode(host), port)
        }
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let port = match port {
        None | Some("") => None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(port.parse().map_err(|_| UrlError::BadPort)?)
        }
        Some(_) => return Err(UrlError::BadPort),
    };
    let host = host.to_lowercase();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte) || !byte.is_ascii();
    if !host.bytes().all(is_name) {
        return Err(UrlError::BadHost);
    }
    let host = host.split('.').map(punycode).collect::<Option<Vec<_>>>().ok_or(UrlError::BadHost)?;
    Ok((host.join("."), port))
}

/// A label of a host's name in ASCII (RFC 3492).
fn punycode(label: &str) -> Option<String> {
    if label.is_ascii() {
        return Some(label.to_owned());
    }
    let input: Vec<u32> = label.chars().map(u32::from).collect();
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut code, mut delta, mut bias, mut handled) = (128_u32, 0_u32, 72_u32, basic);
    while (handled as usize) < input.len() {
        let next = *input.iter().filter(|c| **c >= code).min()?;
        delta = delta.checked_add((next - code).checked_mul(handled + 1)?)?;
        code = next;
        for c in &input {
            if *c < code {
                delta = delta.checked_add(1)?;
            }
            if *c != code {
                continue;
            }
            let (mut q, mut k) = (delta, 36);
            loop {
                let limit = if k <= bias {
                    1
                } else if k >= bias + 26 {
                    26
                } else {
                    k - bias
                };
                if q < limit {
                    break;
                }
                out.push(digit(limit + (q - limit) % (36 - limit))?);
                q = (q - limit) / (36 - limit);
                k += 36;
            }
            out.push(digit(q)?);
            let mut d = if handled == basic { delta / 700 } else { delta / 2 };
            d += d / (handled + 1);
            let mut k = 0;
            while d > 455 {
                d /= 35;
                k += 36;
            }
            bias = k + 36 * d / (d + 38);
            delta = 0;
            handled += 1;
        }
        delta = delta.checked_add(1)?;
        code = code.checked_add(1)?;
    }
    (out.len() <= 59).then(|| format!("xn--{out}"))
}

fn digit(value: u32) -> Option<char> {
    let value = u8::try_from(value).ok()?;
    Some(char::from(if value < 26 { b'a' + value } else { b'0' + value - 26 }))
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_open = false;
    for part in path.split('/').skip(1) {
        ends_open = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if ends_open && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

fn encode_non_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii() {
            true => out.push(byte.into()),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A text as a part of a query, as `--data-urlencode` writes it.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Decodes `%XX`; what is not UTF-8 then stays as it was.
pub fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let value = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        out.push(value.unwrap_or(bytes[at]));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_as_curl_does() {
        for (text, expected) in [
            ("example.org", "http://example.org/"),
            ("HTTP://Example.ORG:80/a/../b/./c?x=1#y", "http://example.org:80/b/c?x=1#y"),
            ("http://u:p%40@h/", "http://u:p%40@h/"),
            ("http://h?q", "http://h/?q"),
            ("https://[::1]:1/", "https://[::1]:1/"),
            ("h/%zz/\u{e9}", "http://h/%zz/%C3%A9"),
            ("http://b\u{fc}cher.example/", "http://xn--bcher-kva.example/"),
            ("http://h:/x", "http://h/x"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), expected, "{text}");
        }
        for (text, expected) in [
            ("http://", UrlError::NoHost),
            ("http:///x", UrlError::NoHost),
            ("http://h:99999/", UrlError::BadPort),
            ("http://h:a/", UrlError::BadPort),
            ("http://a b/", UrlError::Malformed),
            ("http://[::1/", UrlError::BadHost),
            ("http://a<b/", UrlError::BadHost),
            ("http://h/\n", UrlError::Malformed),
        ] {
            assert_eq!(Url::parse(text), Err(expected), "{text}");
        }
        assert_eq!(Url::parse("http://u:p%40@h/").unwrap().login(), Some(("u".into(), "p@".into())));
    }

    #[test]
    fn links_are_resolved() {
        let base = Url::parse("http://h:8/a/b?c#d").unwrap();
        for (link, expected) in [
            ("x", "http://h:8/a/x"),
            ("/x?y", "http://h:8/x?y"),
            ("?z", "http://h:8/a/b?z"),
            ("../../../x", "http://h:8/x"),
            ("//other/x", "http://other/x"),
            ("https://o/", "https://o/"),
            ("a b", "http://h:8/a/a%20b"),
            ("#e", "http://h:8/a/b?c#e"),
            ("./", "http://h:8/a/"),
            ("..", "http://h:8/"),
        ] {
            assert_eq!(base.join(link).unwrap().to_string(), expected, "{link}");
        }
    }
}
