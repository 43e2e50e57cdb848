//! The text that `-w` prints after a transfer.

use crate::url::Url;
use serde_json::json;
use std::time::Duration;

/// The facts about a transfer that has ended.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub url: String,
    pub effective: Option<Url>,
    pub url_number: usize,
    pub method: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub error: Option<String>,
    pub exit_code: u8,
    pub redirects: u32,
    pub retries: u32,
    /// Where the last answer leads, if that was not followed.
    pub redirect_url: Option<String>,
    pub file: Option<String>,
    pub referer: Option<String>,
    pub downloaded: u64,
    pub uploaded: u64,
    pub header_bytes: u64,
    pub request_bytes: u64,
    /// Connections of this transfer.
    pub connects: u32,
    /// Until the last request began, until its first byte came, and until the end.
    pub redirect_time: Duration,
    pub first_byte: Duration,
    pub total: Duration,
}

/// A stream that the text goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    Stdout,
    Stderr,
    /// A file, and whether the text is put behind what it has.
    File(String, bool),
}

/// The value of a variable.
enum Value {
    Text(Option<String>),
    Number(u64),
    Seconds(Duration),
}

impl Value {
    /// As `%{…}` prints it.
    fn plain(self) -> String {
        match self {
            Self::Text(text) => text.unwrap_or_default(),
            Self::Number(number) => number.to_string(),
            Self::Seconds(time) => format!("{:.6}", time.as_secs_f64()),
        }
    }

    /// As `%{json}` has it.
    fn json(self) -> String {
        match self {
            Self::Text(text) => json!(text).to_string(),
            other => other.plain(),
        }
    }
}

const NAMES: [&str; 48] = [
    "certs",
    "conn_id",
    "content_type",
    "errormsg",
    "exitcode",
    "filename_effective",
    "ftp_entry_path",
    "http_code",
    "http_connect",
    "http_version",
    "local_ip",
    "local_port",
    "method",
    "num_certs",
    "num_connects",
    "num_headers",
    "num_redirects",
    "num_retries",
    "proxy_ssl_verify_result",
    "proxy_used",
    "redirect_url",
    "referer",
    "remote_ip",
    "remote_port",
    "response_code",
    "scheme",
    "size_delivered",
    "size_download",
    "size_header",
    "size_request",
    "size_upload",
    "speed_download",
    "speed_upload",
    "ssl_verify_result",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_posttransfer",
    "time_pretransfer",
    "time_queue",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "tls_earlydata",
    "url",
    "url_effective",
    "urlnum",
    "xfer_id",
];

impl Report {
    fn value(&self, name: &str) -> Option<Value> {
        use Value::{Number, Seconds, Text};
        let text = |text: &str| Text(Some(text.to_owned()));
        let url = self.effective.as_ref();
        let rate = |bytes: u64| match self.total.as_secs_f64() {
            0.0 => 0,
            seconds => (bytes as f64 / seconds) as u64,
        };
        let has_answer = self.status > 0;
        Some(match name {
            "certs" | "local_ip" => text(""),
            "conn_id" | "xfer_id" | "urlnum" => Number(self.url_number as u64),
            "content_type" => Text(self.header("content-type").map(str::to_owned)),
            "errormsg" => Text(self.error.clone()),
            "exitcode" => Number(self.exit_code.into()),
            "filename_effective" => Text(self.file.clone()),
            "ftp_entry_path" => Text(None),
            "http_code" | "response_code" => Number(self.status.into()),
            "http_connect"
            | "num_certs"
            | "proxy_ssl_verify_result"
            | "proxy_used"
            | "ssl_verify_result"
            | "local_port"
            | "tls_earlydata" => Number(0),
            "http_version" => text(if has_answer { "1.1" } else { "0" }),
            "method" => text(&self.method),
            "num_connects" => Number(self.connects.into()),
            "num_headers" => Number(self.headers.len() as u64),
            "num_redirects" => Number(self.redirects.into()),
            "num_retries" => Number(self.retries.into()),
            "redirect_url" => Text(self.redirect_url.clone()),
            "referer" => Text(self.referer.clone()),
            "remote_ip" => {
                let host = url.filter(|_| has_answer).map(|url| url.host.trim_matches(['[', ']']).to_owned());
                text(&host.filter(|host| host.parse::<std::net::IpAddr>().is_ok()).unwrap_or_default())
            }
            "remote_port" => Number(url.filter(|_| has_answer).map_or(0, Url::port_or_default).into()),
            "scheme" => Text(url.filter(|_| has_answer).map(|url| url.scheme.clone())),
            "size_download" | "size_delivered" => Number(self.downloaded),
            "size_header" => Number(self.header_bytes),
            "size_request" => Number(self.request_bytes),
            "size_upload" => Number(self.uploaded),
            "speed_download" => Number(rate(self.downloaded)),
            "speed_upload" => Number(rate(self.uploaded)),
            "time_appconnect" | "time_queue" => Seconds(Duration::ZERO),
            "time_connect" | "time_namelookup" | "time_pretransfer" | "time_posttransfer" | "time_redirect" => {
                Seconds(self.redirect_time)
            }
            "time_starttransfer" => Seconds(self.first_byte),
            "time_total" => Seconds(self.total),
            "url" => text(&self.url),
            "url_effective" => Text(Some(url.map_or_else(|| self.url.clone(), Url::to_string))),
            _ => return None,
        })
    }

    fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// A variable as `%{…}` prints it.
    fn print(&self, name: &str) -> Option<String> {
        match name {
            "http_code" | "response_code" | "http_connect" => {
                return Some(format!("{:03}", if name == "http_connect" { 0 } else { self.status }));
            }
            "json" => return Some(self.json()),
            "header_json" => return Some(self.headers_json()),
            _ => {}
        }
        if let Some(part) = name.strip_prefix("url.") {
            return Some(self.url_part(Url::parse(&self.url).ok().as_ref(), part));
        }
        if let Some(part) = name.strip_prefix("urle.") {
            return Some(self.url_part(self.effective.as_ref(), part));
        }
        self.value(name).map(Value::plain)
    }

    fn url_part(&self, url: Option<&Url>, part: &str) -> String {
        let Some(url) = url else { return String::new() };
        match part {
            "scheme" => url.scheme.clone(),
            "host" => url.host.clone(),
            "port" => url.port_or_default().to_string(),
            "path" => url.path.clone(),
            "query" => url.query.clone().unwrap_or_default(),
            "fragment" => url.fragment.clone().unwrap_or_default(),
            "user" => url.user.clone().unwrap_or_default(),
            _ => String::new(),
        }
    }

    fn json(&self) -> String {
        let names = NAMES.iter().filter_map(|name| Some(format!("{}:{}", json!(name), self.value(name)?.json())));
        let version = format!("\"curl_version\":{}", json!(super::VERSION));
        format!("{{{}}}", names.chain([version]).collect::<Vec<_>>().join(","))
    }

    fn headers_json(&self) -> String {
        let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, value) in &self.headers {
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => values.push(value),
                None => all.push((name, vec![value])),
            }
        }
        let lines: Vec<_> = all.iter().map(|(name, values)| format!("{}:{}", json!(name), json!(values))).collect();
        format!("{{{}\n}}", lines.join(",\n"))
    }

    /// The text of a format, in the order in which its parts go to their streams.
    pub fn fill(&self, format: &str) -> Vec<(Sink, String)> {
        let mut parts = vec![(Sink::Stdout, String::new())];
        let mut rest = format;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            let written = match c {
                '\\' => {
                    let Some(next) = rest.chars().next() else {
                        push(&mut parts, "\\");
                        break;
                    };
                    rest = &rest[next.len_utf8()..];
                    match next {
                        'n' => "\n".to_owned(),
                        'r' => "\r".to_owned(),
                        't' => "\t".to_owned(),
                        other => format!("\\{other}"),
                    }
                }
                '%' if rest.starts_with('%') => {
                    rest = &rest[1..];
                    "%".to_owned()
                }
                '%' if rest.starts_with("header{") || rest.starts_with("output{") => {
                    let Some((inner, after)) = rest[7..].split_once('}') else {
                        push(&mut parts, "%");
                        continue;
                    };
                    let is_header = rest.starts_with("header{");
                    rest = after;
                    if !is_header {
                        let (name, appends) = match inner.strip_prefix(">>") {
                            Some(name) => (name, true),
                            None => (inner, false),
                        };
                        parts.push((Sink::File(name.to_owned(), appends), String::new()));
                        continue;
                    }
                    self.header(inner).unwrap_or_default().to_owned()
                }
                '%' if rest.starts_with('{') => {
                    let Some((name, after)) = rest[1..].split_once('}') else {
                        push(&mut parts, "%");
                        continue;
                    };
                    rest = after;
                    match name {
                        "stdout" => parts.push((Sink::Stdout, String::new())),
                        "stderr" => parts.push((Sink::Stderr, String::new())),
                        "onerror" if self.exit_code == 0 => break,
                        _ => {}
                    }
                    match name {
                        "stdout" | "stderr" | "onerror" => continue,
                        // A name that curl does not know prints nothing there, either.
                        name => self.print(name).unwrap_or_default(),
                    }
                }
                c => c.to_string(),
            };
            push(&mut parts, &written);
        }
        parts.retain(|(_, text)| !text.is_empty());
        parts
    }
}

fn push(parts: &mut [(Sink, String)], text: &str) {
    if let Some((_, last)) = parts.last_mut() {
        last.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            url: "h/x?y".into(),
            effective: Url::parse("http://h/x?y").ok(),
            method: "GET".into(),
            status: 200,
            headers: vec![
                ("content-type".into(), "text/plain".into()),
                ("a".into(), "1".into()),
                ("a".into(), "2".into()),
            ],
            downloaded: 7,
            total: Duration::from_millis(1500),
            ..Report::default()
        }
    }

    #[test]
    fn variables_are_filled_in() {
        for (format, expected) in [
            ("%{http_code} %{size_download}\\n", "200 7\n"),
            ("%{url_effective}|%{content_type}|%{time_total}|%{nonsense}|", "http://h/x?y|text/plain|1.500000||"),
            ("100%% \\t\\x %{", "100% \t\\x %{"),
            ("%header{A} %{num_headers} %{url.query} %{exitcode}", "2 3 y 0"),
            ("a%{onerror}b", "a"),
            ("%{header_json}", "{\"content-type\":[\"text/plain\"],\n\"a\":[\"1\",\"2\"]\n}"),
        ] {
            let filled = report().fill(format);
            assert_eq!(filled.iter().map(|(_, text)| text.as_str()).collect::<String>(), expected, "{format}");
        }
        let streams = report().fill("a%{stderr}b%{stdout}c%output{>>f}d");
        let sinks: Vec<_> = streams.into_iter().map(|(sink, _)| sink).collect();
        assert_eq!(sinks, [Sink::Stdout, Sink::Stderr, Sink::Stdout, Sink::File("f".into(), true)]);
        let json: serde_json::Value = serde_json::from_str(&report().fill("%{json}")[0].1).unwrap();
        assert_eq!(
            (&json["http_code"], &json["time_total"], &json["errormsg"]),
            (&json!(200), &json!(1.5), &serde_json::Value::Null)
        );
    }

    #[test]
    fn every_name_has_a_value() {
        assert!(NAMES.is_sorted() && NAMES.iter().all(|name| report().value(name).is_some()));
    }
}
