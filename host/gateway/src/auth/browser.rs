//! Browser logins: the login cookie, and detecting which page caused a request.
//!
//! A browser sends the cookie with every request to this address, whichever page caused the request. `SameSite=Strict` excludes
//! pages of other sites, but pages of other ports on this machine count as the same site. So the browser's headers are checked:
//! `Sec-Fetch-Site` or `Origin` names the page that caused a request, and no page can forge them.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use kiso_store::store::LOGIN_MS;

/// Header of the page's requests. Pages of another origin would need a preflight request to send it, and kiso never answers
/// those.
const PAGE: HeaderName = HeaderName::from_static("x-kiso-page");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Prefix of the login cookies of all ports.
const COOKIE: &str = "kiso-";

/// Length of a cookie's value: 256 bits in hex.
const VALUE: usize = 64;

/// The login cookie of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionCookie<'a> {
    /// There is no cookie.
    Nothing,
    Value(&'a str),
    /// There are several cookies, or one that kiso cannot have set.
    Unclear,
}

/// The page that caused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// This daemon's page.
    Own,
    Foreign,
    /// No known page: a person who typed the address, or a program.
    Nobody,
}

/// Returns the cookie's name. Browsers share cookies between all ports of a machine, but each daemon has its own login.
fn cookie(port: u16) -> String {
    format!("{COOKIE}{port}")
}

/// Returns the login cookie for the daemon at this port.
pub(crate) fn shown(headers: &HeaderMap, port: u16) -> SessionCookie<'_> {
    let name = cookie(port);
    let mut shown = SessionCookie::Nothing;
    // Compares bytes, because programs at other ports may have set cookies with any content.
    for pair in headers.get_all(header::COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';')) {
        let mut parts = pair.splitn(2, |byte| *byte == b'=');
        if parts.next().map(<[u8]>::trim_ascii) != Some(name.as_bytes()) {
            continue;
        }
        let value = parts.next().unwrap_or_default().trim_ascii();
        let is_ours = value.len() == VALUE && value.iter().all(u8::is_ascii_hexdigit);
        match std::str::from_utf8(value) {
            Ok(value) if is_ours && shown == SessionCookie::Nothing => shown = SessionCookie::Value(value),
            _ => return SessionCookie::Unclear,
        }
    }
    shown
}

/// Returns the header that sets the cookie for the lifetime of the login. If a proxy reports TLS, the cookie is limited to TLS.
pub(crate) fn keep(asked: &HeaderMap, port: u16, value: &str) -> Option<HeaderValue> {
    cookie_for(asked, port, value, LOGIN_MS / 1_000)
}

/// Returns the header that deletes the cookie.
pub(crate) fn forget(asked: &HeaderMap, port: u16) -> Option<HeaderValue> {
    cookie_for(asked, port, "", 0)
}

fn cookie_for(asked: &HeaderMap, port: u16, value: &str, seconds: i64) -> Option<HeaderValue> {
    let secure = asked.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if secure { "; Secure" } else { "" };
    let name = cookie(port);
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut value = HeaderValue::from_str(&cookie).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns whether the request has the page's header. This is meaningful only together with [`sender`].
pub(crate) fn says_page(headers: &HeaderMap) -> bool {
    headers.get(PAGE).is_some_and(|value| value == "1")
}

/// Returns the page that caused a request. `Sec-Fetch-Site` takes precedence over `Origin`, which names a different host than the
/// request if there is a proxy.
pub(crate) fn sender(headers: &HeaderMap, uri: &Uri) -> Sender {
    let mut sites = headers.get_all(FETCH_SITE).iter();
    match (sites.next(), sites.next()) {
        (None, _) => {}
        (Some(site), None) if site == "same-origin" => return Sender::Own,
        (Some(site), None) if site == "none" => return Sender::Nobody,
        _ => return Sender::Foreign,
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Sender::Nobody,
        (Some(origin), None) if is_host(origin, headers, uri) => Sender::Own,
        _ => Sender::Foreign,
    }
}

/// Returns whether an origin has the host of the request.
fn is_host(origin: &HeaderValue, headers: &HeaderMap, uri: &Uri) -> bool {
    let asked = match uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(header::HOST).and_then(|host| host.to_str().ok()),
    };
    let origin = origin.to_str().ok().and_then(|origin| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
        (!host.is_empty()).then_some(host)
    });
    matches!((origin, asked), (Some(origin), Some(asked)) if origin.eq_ignore_ascii_case(asked))
}

/// Returns whether a page in a browser may have caused the request, even if the page reaches this machine under a foreign host
/// name.
pub(crate) fn is_of_a_page(headers: &HeaderMap, uri: &Uri) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let named = is_own_name(host) && uri.authority().is_none_or(|authority| is_own_name(authority.as_str()));
    sender(headers, uri) != Sender::Nobody || headers.contains_key(header::ORIGIN) || says_page(headers) || !named
}

/// Returns whether a host name always means this machine. Names that somebody else's server may resolve are excluded.
fn is_own_name(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    };
    let name = name.to_ascii_lowercase();
    port.len() <= 5 && matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in ["localhost", "LOCALHOST:8333", "127.0.0.1:1", "127.0.0.1", "[::1]", "[::1]:8333"] {
            assert!(is_own_name(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8333",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "127.0.0.1:80@evil.example",
            "0.0.0.0:8333",
            "[::1",
            "localhost:123456",
        ] {
            assert!(!is_own_name(other), "{other}");
        }
    }

    #[test]
    fn one_cookie_of_this_port_is_read_and_nothing_is_guessed() {
        let (a, b) = ("a1".repeat(32), "B2".repeat(32));
        let of = |lines: &[String]| {
            let headers = headers(&lines.iter().map(|line| ("cookie", line.as_str())).collect::<Vec<_>>());
            match shown(&headers, 8333) {
                SessionCookie::Value(value) => format!("value {value}"),
                other => format!("{other:?}"),
            }
        };
        for line in [
            format!("kiso-8333={a}"),
            format!("theme=dark; kiso-8333={a}; kiso-8334={b}; x=\u{fc}"),
            format!(";;=; =x; kiso-8333 = {a} ;kiso-83330={b}; xkiso-8333={b}; KISO-8333={b}"),
        ] {
            assert_eq!(of(std::slice::from_ref(&line)), format!("value {a}"), "{line}");
        }
        assert_eq!(of(&["x=1".to_owned(), format!("kiso-8333={a}")]), format!("value {a}"));
        for line in ["", "kiso-8334=x", "kiso-8333x=1", "; ;", "theme=kiso-8333"] {
            assert_eq!(of(&[line.to_owned()]), "Nothing", "{line}");
        }
        for lines in [
            vec!["kiso-8333=".to_owned()],
            vec!["kiso-8333".to_owned()],
            vec![format!("kiso-8333=\"{a}\"")],
            vec![format!("kiso-8333={a}0")],
            vec![format!("kiso-8333={a}; kiso-8333={a}")],
            vec![format!("kiso-8333={a}; kiso-8333={b}")],
            vec![format!("kiso-8333={a}; kiso-8333=")],
            vec![format!("kiso-8333={a}"), format!("kiso-8333={b}")],
        ] {
            assert_eq!(of(&lines), "Unclear", "{lines:?}");
        }
    }

    #[test]
    fn a_request_is_from_the_page_that_the_browser_names() {
        let of = |lines: &[(&'static str, &str)], uri: &'static str| {
            let headers = headers(&[&[("host", "Kiso.lan:8333")], lines].concat());
            sender(&headers, &Uri::from_static(uri))
        };
        for (lines, expected) in [
            (&[][..], Sender::Nobody),
            (&[("sec-fetch-site", "none")], Sender::Nobody),
            (&[("sec-fetch-site", "same-origin")], Sender::Own),
            // A proxy has changed the host.
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://kiso.example")], Sender::Own),
            (&[("sec-fetch-site", "cross-site")], Sender::Foreign),
            // Another port of the same machine.
            (&[("sec-fetch-site", "same-site")], Sender::Foreign),
            (&[("sec-fetch-site", "same-site"), ("origin", "http://kiso.lan:8333")], Sender::Foreign),
            (&[("sec-fetch-site", "")], Sender::Foreign),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], Sender::Foreign),
            (&[("origin", "http://kiso.lan:8333")], Sender::Own),
            (&[("origin", "https://KISO.lan:8333")], Sender::Own),
            (&[("origin", "http://kiso.lan")], Sender::Foreign),
            (&[("origin", "http://kiso.lan:8333.evil.example")], Sender::Foreign),
            (&[("origin", "http://evil.example/kiso.lan:8333")], Sender::Foreign),
            (&[("origin", "kiso.lan:8333")], Sender::Foreign),
            (&[("origin", "null")], Sender::Foreign),
            (&[("origin", "")], Sender::Foreign),
            (&[("origin", "http://kiso.lan:8333"), ("origin", "http://kiso.lan:8333")], Sender::Foreign),
        ] {
            assert_eq!(of(lines, "/msg"), expected, "{lines:?}");
        }
        // If the target contains a host, that host applies.
        let origin = [("origin", "http://kiso.lan:8333")];
        assert_eq!(of(&origin, "http://other.example/msg"), Sender::Foreign);
        assert_eq!(of(&origin, "http://kiso.lan:8333/msg"), Sender::Own);
        // Without a host, no origin can match.
        assert_eq!(sender(&headers(&[("origin", "http://")]), &Uri::from_static("/")), Sender::Foreign);
    }

    #[test]
    fn the_cookie_is_for_this_daemon_alone() {
        let plain = keep(&headers(&[]), 8333, "abc").unwrap();
        assert_eq!(plain, "kiso-8333=abc; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
        assert!(plain.is_sensitive());
        let secure = forget(&headers(&[("x-forwarded-proto", "https")]), 1).unwrap();
        assert_eq!(secure, "kiso-1=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0; Secure");
    }
}
