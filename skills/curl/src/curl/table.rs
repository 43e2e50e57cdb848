//! The options of curl: their names, and what is done with those that have no place here.

/// The effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Flag,
    Value,
    /// Changes nothing here.
    Ignored,
    IgnoredValue,
    /// Why it is an error, and the exit code.
    Refused(u8, &'static str),
    RefusedValue(u8, &'static str),
}

/// An option's names and kind.
pub struct Entry {
    pub short: Option<char>,
    pub long: &'static str,
    pub kind: Kind,
}

const fn flag(short: char, long: &'static str) -> Entry {
    Entry { short: if short == ' ' { None } else { Some(short) }, long, kind: Kind::Flag }
}

const fn value(short: char, long: &'static str) -> Entry {
    Entry { short: if short == ' ' { None } else { Some(short) }, long, kind: Kind::Value }
}

const fn other(short: char, long: &'static str, kind: Kind) -> Entry {
    Entry { short: if short == ' ' { None } else { Some(short) }, long, kind }
}

const VERIFIED: &str = "certificates are always verified; an administrator can add one with [network] ca_file";
const PROXY: &str = "proxies are not used; kiso connects to the host itself";
const LOGIN: &str = "only Basic and Bearer logins are supported; use -u or --oauth2-bearer";
const NETRC: &str = "no .netrc is read; give the login with -u";
const CONNECTION: &str = "kiso chooses the connection; leave it out";
const NO_FTP: &str = "only http and https are supported";

use Kind::{Ignored, IgnoredValue, Refused, RefusedValue};

/// All of them. The first that begins with an abbreviation is not taken unless it is the only one.
pub const TABLE: &[Entry] = &[
    value('A', "user-agent"),
    value('b', "cookie"),
    value('c', "cookie-jar"),
    value('C', "continue-at"),
    value('d', "data"),
    value(' ', "data-ascii"),
    value(' ', "data-binary"),
    value(' ', "data-raw"),
    value(' ', "data-urlencode"),
    value('D', "dump-header"),
    value('e', "referer"),
    value('F', "form"),
    value(' ', "form-string"),
    value('H', "header"),
    value('K', "config"),
    value('m', "max-time"),
    value('o', "output"),
    value('r', "range"),
    value('T', "upload-file"),
    value('u', "user"),
    value('w', "write-out"),
    value('X', "request"),
    value('z', "time-cond"),
    value(' ', "connect-timeout"),
    value(' ', "etag-compare"),
    value(' ', "etag-save"),
    value(' ', "json"),
    value(' ', "limit-rate"),
    value(' ', "max-filesize"),
    value(' ', "max-redirs"),
    value(' ', "oauth2-bearer"),
    value(' ', "output-dir"),
    value(' ', "proto"),
    value(' ', "proto-default"),
    value(' ', "proto-redir"),
    value(' ', "request-target"),
    value(' ', "retry"),
    value(' ', "retry-delay"),
    value(' ', "retry-max-time"),
    value(' ', "stderr"),
    value(' ', "url"),
    value(' ', "url-query"),
    flag('f', "fail"),
    flag('g', "globoff"),
    flag('G', "get"),
    flag('h', "help"),
    flag('i', "include"),
    flag(' ', "show-headers"),
    flag('I', "head"),
    flag('j', "junk-session-cookies"),
    flag('J', "remote-header-name"),
    flag('L', "location"),
    flag('N', "no-buffer"),
    flag(' ', "buffer"),
    flag('O', "remote-name"),
    flag('q', "disable"),
    flag('R', "remote-time"),
    flag('s', "silent"),
    flag('S', "show-error"),
    flag('v', "verbose"),
    flag('V', "version"),
    flag(':', "next"),
    flag(' ', "compressed"),
    flag(' ', "create-dirs"),
    flag(' ', "fail-early"),
    flag(' ', "fail-with-body"),
    flag(' ', "form-escape"),
    flag(' ', "ignore-content-length"),
    flag(' ', "location-trusted"),
    flag(' ', "clobber"),
    flag(' ', "post301"),
    flag(' ', "post302"),
    flag(' ', "post303"),
    flag(' ', "remote-name-all"),
    flag(' ', "remove-on-error"),
    flag(' ', "retry-all-errors"),
    flag(' ', "retry-connrefused"),
    flag(' ', "skip-existing"),
    flag(' ', "styled-output"),
    other('#', "progress-bar", Ignored),
    other(' ', "progress-meter", Ignored),
    other('Z', "parallel", Ignored),
    other(' ', "parallel-immediate", Ignored),
    other(' ', "parallel-max", IgnoredValue),
    other('0', "http1.0", Ignored),
    other(' ', "http1.1", Ignored),
    other(' ', "http2", Ignored),
    other(' ', "http2-prior-knowledge", Ignored),
    other(' ', "http3", Ignored),
    other('1', "tlsv1", Ignored),
    other(' ', "tlsv1.0", Ignored),
    other(' ', "tlsv1.1", Ignored),
    other(' ', "tlsv1.2", Ignored),
    other(' ', "tlsv1.3", Ignored),
    other(' ', "tls-max", IgnoredValue),
    other('4', "ipv4", Ignored),
    other('6', "ipv6", Ignored),
    other(' ', "alpn", Ignored),
    other(' ', "basic", Ignored),
    other(' ', "expect100-timeout", IgnoredValue),
    other(' ', "keepalive", Ignored),
    other(' ', "keepalive-time", IgnoredValue),
    other(' ', "http0.9", Ignored),
    other(' ', "path-as-is", Ignored),
    other(' ', "sessionid", Ignored),
    other(' ', "ssl", Ignored),
    other(' ', "ssl-reqd", Ignored),
    other(' ', "tcp-nodelay", Ignored),
    other(' ', "tcp-fastopen", Ignored),
    other(' ', "noproxy", IgnoredValue),
    other('k', "insecure", Refused(2, VERIFIED)),
    other(' ', "doh-insecure", Refused(2, VERIFIED)),
    other(' ', "cacert", RefusedValue(2, VERIFIED)),
    other(' ', "capath", RefusedValue(2, VERIFIED)),
    other(' ', "pinnedpubkey", RefusedValue(2, VERIFIED)),
    other('E', "cert", RefusedValue(2, "certificates of clients are not supported")),
    other(' ', "key", RefusedValue(2, "certificates of clients are not supported")),
    other('x', "proxy", RefusedValue(5, PROXY)),
    other('U', "proxy-user", RefusedValue(5, PROXY)),
    other(' ', "preproxy", RefusedValue(5, PROXY)),
    other(' ', "proxy-header", RefusedValue(5, PROXY)),
    other(' ', "socks4", RefusedValue(5, PROXY)),
    other(' ', "socks4a", RefusedValue(5, PROXY)),
    other(' ', "socks5", RefusedValue(5, PROXY)),
    other(' ', "socks5-hostname", RefusedValue(5, PROXY)),
    other('p', "proxytunnel", Refused(5, PROXY)),
    other('n', "netrc", Refused(2, NETRC)),
    other(' ', "netrc-optional", Refused(2, NETRC)),
    other(' ', "netrc-file", RefusedValue(2, NETRC)),
    other(' ', "digest", Refused(2, LOGIN)),
    other(' ', "ntlm", Refused(2, LOGIN)),
    other(' ', "negotiate", Refused(2, LOGIN)),
    other(' ', "anyauth", Refused(2, LOGIN)),
    other(' ', "aws-sigv4", RefusedValue(2, LOGIN)),
    other(' ', "resolve", RefusedValue(2, CONNECTION)),
    other(' ', "connect-to", RefusedValue(2, CONNECTION)),
    other(' ', "interface", RefusedValue(2, CONNECTION)),
    other(' ', "dns-servers", RefusedValue(2, CONNECTION)),
    other(' ', "doh-url", RefusedValue(2, CONNECTION)),
    other(' ', "unix-socket", RefusedValue(2, CONNECTION)),
    other(' ', "abstract-unix-socket", RefusedValue(2, CONNECTION)),
    other(' ', "local-port", RefusedValue(2, CONNECTION)),
    other('a', "append", Refused(2, NO_FTP)),
    other('B', "use-ascii", Refused(2, NO_FTP)),
    other('l', "list-only", Refused(2, NO_FTP)),
    other('P', "ftp-port", RefusedValue(2, NO_FTP)),
    other('Q', "quote", RefusedValue(2, NO_FTP)),
    other('t', "telnet-option", RefusedValue(2, NO_FTP)),
    other('M', "manual", Refused(2, "there is no manual; see curl --help")),
    other('y', "speed-time", RefusedValue(2, "use -m to limit the time")),
    other('Y', "speed-limit", RefusedValue(2, "use -m to limit the time")),
    other(' ', "trace", RefusedValue(2, "use -v")),
    other(' ', "trace-ascii", RefusedValue(2, "use -v")),
];

/// The option with this letter.
pub fn short(letter: char) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.short == Some(letter))
}

/// The option with this name, or with the only name that begins so.
pub fn long(name: &str) -> Result<&'static Entry, &'static str> {
    if let Some(entry) = TABLE.iter().find(|entry| entry.long == name) {
        return Ok(entry);
    }
    let mut fitting = TABLE.iter().filter(|entry| entry.long.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(entry), None) => Ok(entry),
        (Some(_), Some(_)) => Err("is ambiguous"),
        _ => Err("is unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_has_two_options() {
        for (at, entry) in TABLE.iter().enumerate() {
            let others = &TABLE[at + 1..];
            assert!(others.iter().all(|other| other.long != entry.long), "--{}", entry.long);
            assert!(entry.short.is_none() || others.iter().all(|other| other.short != entry.short), "--{}", entry.long);
        }
        assert_eq!(long("head").map(|entry| entry.long), Ok("head"));
        assert_eq!(long("connect-ti").map(|entry| entry.long), Ok("connect-timeout"));
        assert_eq!((long("retr").err(), long("nothing").err()), (Some("is ambiguous"), Some("is unknown")));
    }
}
