//! One URL: its attempts, its redirects, and the file that it is saved in.

use super::client::{Client, Saved};
use super::code;
use super::log;
use super::name;
use super::save::Trouble;
use crate::body::Body;
use crate::curl::disposition;
use crate::date;
use crate::reason::reason;
use crate::transport::{self, Failure, Request, Response, written_name};
use crate::url::Url;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The end of one attempt.
enum Ended {
    Saved(Box<Saved>),
    /// Nothing was saved, with the exit code.
    Done(u8),
    /// It may be tried again.
    Again,
}

impl Client<'_> {
    /// Fetches what stands on the line.
    pub fn start(&mut self, text: &str) -> Option<Saved> {
        match Url::parse(text) {
            Ok(url) if ["http", "https"].contains(&url.scheme.as_str()) => self.fetch(&url, None),
            Ok(_) => {
                self.log.brief(&format!("{text}: Unsupported scheme.\n"));
                self.note(code::GENERAL);
                None
            }
            Err(why) => {
                self.log.brief(&format!("{text}: {why}.\n"));
                self.note(code::GENERAL);
                None
            }
        }
    }

    /// Fetches a URL, and returns what was saved.
    pub fn fetch(&mut self, url: &Url, referer: Option<&str>) -> Option<Saved> {
        let options = self.options;
        if options.quota.is_some_and(|most| self.bytes > most) {
            return None;
        }
        if self.requests > 0 {
            std::thread::sleep(options.wait);
        }
        self.requests += 1;
        let mut tries = 0;
        loop {
            tries += 1;
            let ended = self.attempt(url, referer, tries);
            match ended {
                Ended::Saved(saved) => {
                    self.saved.push((*saved).clone());
                    return Some(*saved);
                }
                Ended::Done(code) => {
                    self.note(code);
                    return None;
                }
                Ended::Again if tries >= options.tries => {
                    self.log.verbose("Giving up.\n\n");
                    self.note(code::NETWORK);
                    return None;
                }
                Ended::Again => {
                    self.log.verbose("Retrying.\n\n");
                    std::thread::sleep(Duration::from_secs(tries.into()).min(options.wait_retry));
                }
            }
        }
    }

    /// The file for a URL: nothing where it is there and stays.
    fn place(&mut self, url: &Url) -> Option<PathBuf> {
        let options = self.options;
        let path = name::path_of(options, url);
        let is_there = path.symlink_metadata().is_ok();
        if !is_there || options.output.is_some() {
            return Some(path);
        }
        if options.no_clobber {
            self.log.verbose(&format!("File ‘{}’ already there; not retrieving.\n\n", path.display()));
            return None;
        }
        let overwrites =
            options.resume || options.timestamping || options.recursive || options.requisites || options.spider;
        Some(if overwrites { path } else { name::unused(&path) })
    }

    fn attempt(&mut self, first: &Url, referer: Option<&str>, tries: u32) -> Ended {
        let options = self.options;
        let Some(mut path) = self.place(first) else { return Ended::Done(0) };
        let begun = Instant::now();
        // A second attempt goes on where the first one was cut off.
        let goes_on = options.output.is_none() && (options.resume || tries > 1 && !options.recursive);
        let there = path.metadata().ok().filter(|found| found.is_file()).map(|found| found.len());
        let kept = there.filter(|_| goes_on && (options.resume || tries > 1)).unwrap_or(0);
        let since = (options.timestamping && there.is_some()).then(|| date::modified(&path)).flatten();
        let mut url = first.clone();
        let mut method =
            options.method.clone().unwrap_or_else(|| if options.spider { "HEAD" } else { "GET" }.to_owned());
        let mut body = match (&options.body, &options.body_file) {
            (Some(bytes), _) => Body::bytes(bytes.clone()),
            (None, Some(file)) => Body::file(Path::new(file)),
            (None, None) => Body::default(),
        };
        let mut redirects = 0;
        let response = loop {
            let again = if tries > 1 { format!("(try:{tries:2})  ") } else { String::new() };
            self.log.verbose(&format!("--{}--  {again}{}\n", log::now(), url.without_login()));
            let headers = self.headers(&url, first, &method, &body, referer, kept, since);
            let request = Request {
                method: &method,
                url: &url,
                headers: &headers,
                body: &body,
                connect_timeout: options.connect_timeout,
                read_timeout: Some(options.read_timeout).filter(|limit| !limit.is_zero()),
                deadline: None,
            };
            self.log.verbose(&format!("Connecting to {}:{}... ", url.host, url.port_or_default()));
            let response = match transport::send(&request) {
                Ok(response) => response,
                Err(failure) => return self.unanswered(&failure, &url),
            };
            let status = response.status;
            let words = format!("{status} {}", transport::reason(status));
            self.log.verbose("connected.\nHTTP request sent, awaiting response... ");
            match options.server_response {
                true => self.show(&response, &words),
                false => self.log.verbose(&format!("{words}\n")),
            }
            if !options.no_cookies {
                let cookies = response.headers.iter().filter(|(name, _)| name == "set-cookie");
                cookies.for_each(|(_, value)| self.jar.set(value, &url));
            }
            let location = response.header("location").filter(|_| matches!(status, 300..=303 | 307 | 308));
            let Some(location) = location else { break response };
            self.log.verbose(&format!("Location: {location} [following]\n"));
            redirects += 1;
            if redirects > options.max_redirects {
                self.log.brief(&format!("{} redirections exceeded.\n", options.max_redirects));
                return Ended::Done(code::SERVER);
            }
            url = match url.join(location) {
                Ok(next) if ["http", "https"].contains(&next.scheme.as_str()) => next,
                _ => {
                    self.log.brief(&format!("{location}: Unsupported scheme.\n"));
                    return Ended::Done(code::SERVER);
                }
            };
            if !matches!(status, 307 | 308) && method != "HEAD" {
                (method, body) = ("GET".to_owned(), Body::default());
            }
        };
        if options.trust_names && url != *first {
            let Some(renamed) = self.place(&url) else { return Ended::Done(0) };
            path = renamed;
        }
        self.accept(response, first, path, kept, begun)
    }

    fn show(&mut self, response: &Response, words: &str) {
        let mut text = format!("\n  HTTP/1.1 {words}\n");
        for (name, value) in &response.headers {
            text.push_str(&format!("  {}: {value}\n", written_name(name)));
        }
        self.log.brief(&text);
    }

    fn unanswered(&mut self, failure: &Failure, url: &Url) -> Ended {
        let host = url.host.trim_matches(['[', ']']);
        let (text, code) = match failure {
            Failure::Denied => ("failed: Not allowed.\n".to_owned(), code::NETWORK),
            Failure::Unresolved => {
                self.log.verbose("\n");
                self.log.brief(&format!("wget: unable to resolve host address ‘{host}’\n"));
                return Ended::Done(code::NETWORK);
            }
            Failure::Refused => {
                self.log.verbose("failed: Connection refused.\n");
                return match self.options.retry_refused {
                    true => Ended::Again,
                    false => Ended::Done(code::NETWORK),
                };
            }
            Failure::ConnectTimeout => {
                self.log.verbose("failed: Connection timed out.\n");
                return Ended::Again;
            }
            Failure::Timeout => {
                self.log.verbose("Read error (Connection timed out) in headers.\n");
                return Ended::Again;
            }
            Failure::Empty | Failure::Broken => {
                self.log.verbose("No data received.\n");
                return Ended::Again;
            }
            Failure::Certificate(why) | Failure::Tls(why) => {
                self.log.brief(&format!("ERROR: cannot verify {host}'s certificate: {why}\n"));
                return Ended::Done(code::TLS);
            }
            Failure::Unreadable(why) => (format!("BODY data file missing: {why}\n"), code::FILE),
            Failure::TooLarge(_) | Failure::Unsendable => {
                ("failed: Malformed status line.\n".to_owned(), code::PROTOCOL)
            }
        };
        self.log.brief(&text);
        Ended::Done(code)
    }

    /// Takes in an answer that does not redirect.
    fn accept(&mut self, mut response: Response, url: &Url, mut path: PathBuf, kept: u64, begun: Instant) -> Ended {
        let options = self.options;
        let status = response.status;
        let shown = path.display().to_string();
        if status == 416 && kept > 0 {
            self.log.verbose("\n    The file is already fully retrieved; nothing to do.\n\n");
            return Ended::Done(0);
        }
        if status == 304 {
            self.log.verbose(&format!("File ‘{shown}’ not modified on server. Omitting download.\n\n"));
            return Ended::Done(0);
        }
        if options.retry_statuses.contains(&status) {
            return Ended::Again;
        }
        let is_good = (200..300).contains(&status);
        if options.spider {
            let is_html = response.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
            self.log.verbose(match (is_good, is_html) {
                (true, true) => "Remote file exists and could contain further links,\nbut recursion is disabled -- not retrieving.\n\n",
                (true, false) => "Remote file exists.\n\n",
                (false, _) => "Remote file does not exist -- broken link!!!\n\n",
            });
            return Ended::Done(if is_good { 0 } else { code::SERVER });
        }
        if !is_good && !options.content_on_error {
            if status == 401 {
                self.log.verbose("\nUsername/Password Authentication Failed.\n");
                return Ended::Done(code::LOGIN);
            }
            if !self.log.is_verbose() {
                self.log.brief(&format!("{}:\n", url.without_login()));
            }
            self.log.brief(&format!("{} ERROR {status}: {}.\n", log::now(), transport::reason(status)));
            self.log.verbose("\n");
            return Ended::Done(code::SERVER);
        }
        let content_type = response
            .header("content-type")
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let length = response.header("content-length").and_then(|length| length.trim().parse::<u64>().ok());
        let is_part = status == 206;
        if kept > 0 && !is_part && length == Some(kept) {
            self.log.verbose("\n    The file is already fully retrieved; nothing to do.\n\n");
            return Ended::Done(0);
        }
        if options.content_disposition
            && options.output.is_none()
            && let Some(given) = response.header("content-disposition").and_then(disposition)
        {
            path = path.with_file_name(given);
            if path.symlink_metadata().is_ok() && !options.recursive && kept == 0 {
                path = name::unused(&path);
            }
        }
        if options.adjust_extension && options.output.is_none() {
            path = name::adjusted(path, &content_type);
        }
        let shown = options.output.clone().unwrap_or_else(|| path.display().to_string());
        let described = if content_type.is_empty() { String::new() } else { format!(" [{content_type}]") };
        let first = if is_part { kept } else { 0 };
        self.log.verbose(&match length {
            None => format!("Length: unspecified{described}\n"),
            Some(length) => {
                let whole = length + first;
                let large = if whole >= 1024 { format!(" ({})", log::human(whole)) } else { String::new() };
                let rest = if first > 0 { format!(", {length} remaining") } else { String::new() };
                format!("Length: {whole}{large}{rest}{described}\n")
            }
        });
        let target = if options.output.as_deref() == Some("-") { "STDOUT" } else { &shown };
        self.log.verbose(&format!("Saving to: ‘{target}’\n\n"));
        let written = self.save(&mut response, &path, kept, is_part);
        let took = begun.elapsed().as_secs_f64();
        self.seconds += took;
        let (received, failure) = match written {
            Ok(received) => (received, None),
            Err(Trouble::File(e)) => {
                self.log.brief(&format!("{shown}: {}\n\nCannot write to ‘{shown}’ ({}).\n", reason(&e), reason(&e)));
                return Ended::Done(code::FILE);
            }
            Err(Trouble::Network(failure, received)) => (received, Some(failure)),
        };
        self.bytes += received;
        let all = received + first;
        let speed = log::rate(received, took);
        let is_short = length.is_some_and(|length| length > received);
        if let Some(Failure::TooLarge(_)) = failure {
            self.log.brief(&format!(
                "{} ({speed}) - the answer exceeds the limit of [network] max_response_mib.\n\n",
                log::now()
            ));
            return Ended::Done(code::NETWORK);
        }
        if failure.is_some() || is_short {
            self.log.verbose(&format!("{} ({speed}) - Connection closed at byte {all}. ", log::now()));
            return Ended::Again;
        }
        let out_of = length.map(|length| format!("/{}", length + first)).unwrap_or_default();
        let whole = if length.is_some() { format!("{all}{out_of}") } else { format!("{all}") };
        match self.log.is_verbose() {
            true if target == "STDOUT" => {
                self.log.verbose(&format!("{} ({speed}) - written to stdout [{whole}]\n\n", log::now()))
            }
            true => self.log.verbose(&format!("{} ({speed}) - ‘{shown}’ saved [{whole}]\n\n", log::now())),
            false => {
                self.log.brief(&format!("{} URL:{} [{whole}] -> \"{shown}\" [1]\n", log::now(), url.without_login()))
            }
        }
        self.files += 1;
        if options.keep_times
            && options.output.as_deref() != Some("-")
            && let Some(at) = response.header("last-modified").and_then(date::parse)
        {
            let file = match &self.whole {
                Some(file) => file.try_clone().ok(),
                None => File::options().append(true).open(&path).ok(),
            };
            let at = u64::try_from(at).ok().map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
            if let (Some(file), Some(at)) = (file, at) {
                let _ = file.set_modified(at);
            }
        }
        if options.delete_after && options.output.is_none() && !options.recursive {
            self.log.verbose(&format!("Removing {shown}.\n"));
            let _ = fs::remove_file(&path);
        }
        match is_good {
            true => Ended::Saved(Box::new(Saved { url: url.clone(), path, content_type })),
            false => Ended::Done(code::SERVER),
        }
    }
}
