//! Browsers: the cookie by which one is logged in to the page, and where a request comes from that it sends by itself.
//!
//! A browser sends the cookie with every request to this address, whoever made it send that. `SameSite=Strict` keeps it from
//! those of other sites, but pages of other ports of this machine are no other site. So the browser is asked: it says with
//! `Sec-Fetch-Site` or with `Origin` which page a request is from, and no page can change that.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use kiso_store::store::LOGIN_MS;

/// What the page sends along. A page of another origin cannot without being asked first, which is never answered.
const PAGE: HeaderName = HeaderName::from_static("x-kiso-page");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the login cookies of all ports begin with.
const COOKIE: &str = "kiso-";

/// Characters of a cookie's value: those of 256 bits in hex.
const VALUE: usize = 64;

/// The cookie with which a request shows who its browser is logged in as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionCookie<'a> {
    /// There is none.
    Nothing,
    Value(&'a str),
    /// There are several, or one that cannot be ours: somebody else wrote them.
    Unclear,
}

/// Whose page made the browser send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The page of this daemon.
    Own,
    Foreign,
    /// No page, as far as is known: a person who typed the address, or a program.
    Nobody,
}

/// The cookie's name. Browsers keep one jar for all ports of a machine, and each daemon has its own login.
fn cookie(port: u16) -> String {
    format!("{COOKIE}{port}")
}

/// The login cookie of the daemon at this port.
pub(crate) fn shown(headers: &HeaderMap, port: u16) -> SessionCookie<'_> {
    let name = cookie(port);
    let mut shown = SessionCookie::Nothing;
    // By bytes: programs at other ports may have put anything beside it.
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

/// Has the browser keep a value as long as the login lives that it is of. Where a proxy says that it was asked with TLS, it
/// is shown in such requests alone.
pub(crate) fn keep(asked: &HeaderMap, port: u16, value: &str) -> Option<HeaderValue> {
    cookie_for(asked, port, value, LOGIN_MS / 1_000)
}

/// Has the browser forget it.
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

/// Whether the request says that it is from the page. Only together with [`sender`] is that worth anything.
pub(crate) fn says_page(headers: &HeaderMap) -> bool {
    headers.get(PAGE).is_some_and(|value| value == "1")
}

/// Whose page a request is from. `Sec-Fetch-Site` counts more than `Origin`, which names another host than the request does
/// where a proxy stands between.
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

/// Whether an origin is the host that is asked.
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

/// Whether a page that a browser shows may have made it send the request, also one that reaches this machine by a name of
/// its own.
pub(crate) fn is_of_a_page(headers: &HeaderMap, uri: &Uri) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let named = is_own_name(host) && uri.authority().is_none_or(|authority| is_own_name(authority.as_str()));
    sender(headers, uri) != Sender::Nobody || headers.contains_key(header::ORIGIN) || says_page(headers) || !named
}

/// Whether this machine is called so, by itself: a name that somebody else's server may resolve is none of these.
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
        // A target with a host of its own is what the request is for.
        let origin = [("origin", "http://kiso.lan:8333")];
        assert_eq!(of(&origin, "http://other.example/msg"), Sender::Foreign);
        assert_eq!(of(&origin, "http://kiso.lan:8333/msg"), Sender::Own);
        // Without a host there is nothing that an origin could be.
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
