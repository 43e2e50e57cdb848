//! A command line of wget.

use super::code;
use super::table::{REFUSED, SHORT, takes_value, whole_name};
use crate::limits::FILE_IN_MEMORY;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Quiet,
    Brief,
    Verbose,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub urls: Vec<String>,
    pub input: Option<String>,
    pub verbosity: Verbosity,
    pub log: Option<(String, bool)>,
    pub server_response: bool,
    pub output: Option<String>,
    pub prefix: Option<String>,
    pub resume: bool,
    pub no_clobber: bool,
    pub timestamping: bool,
    pub no_directories: bool,
    pub force_directories: bool,
    pub no_host_directories: bool,
    pub cut_dirs: usize,
    pub content_disposition: bool,
    pub trust_names: bool,
    pub adjust_extension: bool,
    pub keep_times: bool,
    pub delete_after: bool,
    pub spider: bool,
    pub headers: Vec<String>,
    pub agent: Option<String>,
    pub referer: Option<String>,
    pub method: Option<String>,
    pub body: Option<Vec<u8>>,
    pub body_file: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub load_cookies: Option<String>,
    pub save_cookies: Option<String>,
    pub keep_session: bool,
    pub no_cookies: bool,
    pub max_redirects: u32,
    pub compression: bool,
    pub content_on_error: bool,
    pub connect_timeout: Option<Duration>,
    pub read_timeout: Duration,
    pub tries: u32,
    pub wait: Duration,
    pub wait_retry: Duration,
    pub retry_refused: bool,
    pub retry_statuses: Vec<u16>,
    pub limit_rate: Option<u64>,
    pub quota: Option<u64>,
    pub recursive: bool,
    /// Nothing: without a limit of its own.
    pub level: Option<u32>,
    pub no_parent: bool,
    pub accept: Vec<String>,
    pub reject: Vec<String>,
    pub include_dirs: Vec<String>,
    pub exclude_dirs: Vec<String>,
    pub requisites: bool,
    pub convert: bool,
    pub span_hosts: bool,
    pub domains: Vec<String>,
    pub robots: bool,
    pub force_html: bool,
    pub base: Option<String>,
    pub only: Option<Only>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    Help,
    Version,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            input: None,
            verbosity: Verbosity::Verbose,
            log: None,
            server_response: false,
            output: None,
            prefix: None,
            resume: false,
            no_clobber: false,
            timestamping: false,
            no_directories: false,
            force_directories: false,
            no_host_directories: false,
            cut_dirs: 0,
            content_disposition: false,
            trust_names: false,
            adjust_extension: false,
            keep_times: true,
            delete_after: false,
            spider: false,
            headers: Vec::new(),
            agent: None,
            referer: None,
            method: None,
            body: None,
            body_file: None,
            user: None,
            password: None,
            load_cookies: None,
            save_cookies: None,
            keep_session: false,
            no_cookies: false,
            max_redirects: 20,
            compression: false,
            content_on_error: false,
            connect_timeout: None,
            read_timeout: Duration::from_secs(60),
            tries: 20,
            wait: Duration::ZERO,
            wait_retry: Duration::from_secs(10),
            retry_refused: false,
            retry_statuses: Vec::new(),
            limit_rate: None,
            quota: None,
            recursive: false,
            level: Some(5),
            no_parent: false,
            accept: Vec::new(),
            reject: Vec::new(),
            include_dirs: Vec::new(),
            exclude_dirs: Vec::new(),
            requisites: false,
            convert: false,
            span_hosts: false,
            domains: Vec::new(),
            robots: true,
            force_html: false,
            base: None,
            only: None,
        }
    }
}

impl Options {
    /// Parses the words. The error is a line without the name of the command, with the exit code.
    pub fn parse(words: &[String]) -> Result<Self, (String, u8)> {
        let options = Self::read(words).map_err(|why| (why, code::USAGE))?;
        options.check().map_err(|why| (why, code::GENERAL))?;
        Ok(options)
    }

    fn read(words: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = words.iter();
        let mut only_urls = false;
        while let Some(word) = rest.next() {
            if only_urls || !word.starts_with('-') || word == "-" {
                options.urls.push(word.clone());
            } else if word == "--" {
                only_urls = true;
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let name = whole_name(name)?;
                options.apply(name, &format!("--{name}"), value, &mut rest)?;
            } else {
                options.letters(&word[1..], &mut rest)?;
            }
        }
        Ok(options)
    }

    fn letters(&mut self, word: &str, rest: &mut std::slice::Iter<'_, String>) -> Result<(), String> {
        let mut at = 0;
        while at < word.len() {
            let found = [2, 1].iter().find_map(|length| {
                let letters = word.get(at..at + length)?;
                SHORT.iter().find(|(short, _)| *short == letters)
            });
            let Some((letters, name)) = found else {
                let letter = word[at..].chars().next().unwrap_or_default();
                return Err(format!("invalid option -- '{letter}'"));
            };
            at += letters.len();
            if takes_value(name) && at < word.len() {
                return self.apply(name, &format!("-{letters}"), Some(word[at..].to_owned()), rest);
            }
            self.apply(name, &format!("-{letters}"), None, rest)?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        name: &str,
        shown: &str,
        value: Option<String>,
        rest: &mut std::slice::Iter<'_, String>,
    ) -> Result<(), String> {
        if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
            return Err(format!("option '{shown}' is not supported: {why}"));
        }
        if !takes_value(name) {
            self.flag(name);
            return Ok(());
        }
        let value = value.or_else(|| rest.next().cloned());
        let value = value.ok_or_else(|| match shown.starts_with("--") {
            true => format!("option '{shown}' requires an argument"),
            false => format!("option requires an argument -- '{}'", &shown[1..]),
        })?;
        self.value(name, shown, value)
    }

    fn flag(&mut self, name: &str) {
        match name {
            "quiet" => self.verbosity = Verbosity::Quiet,
            "no-verbose" => self.verbosity = Verbosity::Brief,
            "server-response" => self.server_response = true,
            "continue" => self.resume = true,
            "no-clobber" => self.no_clobber = true,
            "timestamping" => self.timestamping = true,
            "no-directories" => self.no_directories = true,
            "force-directories" => self.force_directories = true,
            "no-host-directories" => self.no_host_directories = true,
            "adjust-extension" => self.adjust_extension = true,
            "force-html" => self.force_html = true,
            "recursive" => self.recursive = true,
            "no-parent" => self.no_parent = true,
            "page-requisites" => self.requisites = true,
            "convert-links" => self.convert = true,
            "mirror" => (self.recursive, self.level, self.timestamping) = (true, None, true),
            "span-hosts" => self.span_hosts = true,
            "help" => self.only = Some(Only::Help),
            "version" => self.only = Some(Only::Version),
            "content-disposition" => self.content_disposition = true,
            "trust-server-names" => self.trust_names = true,
            "no-use-server-timestamps" => self.keep_times = false,
            "delete-after" => self.delete_after = true,
            "spider" => self.spider = true,
            "keep-session-cookies" => self.keep_session = true,
            "no-cookies" => self.no_cookies = true,
            "content-on-error" => self.content_on_error = true,
            "retry-connrefused" => self.retry_refused = true,
            _ => {}
        }
    }

    fn value(&mut self, name: &str, shown: &str, value: String) -> Result<(), String> {
        let bad = || format!("{}: Invalid value '{value}'.", shown.trim_start_matches('-'));
        let seconds = || {
            let number = value.parse::<f64>().ok().filter(|seconds| (0.0..1e6).contains(seconds));
            number.map(Duration::from_secs_f64).ok_or_else(bad)
        };
        let list = || value.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let count = || match value.as_str() {
            "inf" | "0" => Ok(None),
            number => number.parse::<u32>().map(Some).map_err(|_| bad()),
        };
        match name {
            "output-file" => self.log = Some((value, false)),
            "append-output" => self.log = Some((value, true)),
            "output-document" => self.output = Some(value),
            "directory-prefix" => self.prefix = Some(value),
            "input-file" => self.input = Some(value),
            "base" => self.base = Some(value),
            "user-agent" => self.agent = Some(value),
            "timeout" => {
                let limit = seconds()?;
                self.connect_timeout = Some(limit).filter(|limit| !limit.is_zero());
                self.read_timeout = limit;
            }
            "connect-timeout" => self.connect_timeout = Some(seconds()?).filter(|limit| !limit.is_zero()),
            "read-timeout" => self.read_timeout = seconds()?,
            "tries" => self.tries = count()?.unwrap_or(1_000),
            "wait" => self.wait = seconds()?,
            "waitretry" => self.wait_retry = seconds()?,
            "retry-on-http-error" => self.retry_statuses = list().iter().filter_map(|code| code.parse().ok()).collect(),
            "limit-rate" => self.limit_rate = Some(bytes(&value).ok_or_else(bad)?).filter(|rate| *rate > 0),
            "quota" => self.quota = bytes(&value).filter(|most| *most > 0),
            "level" => self.level = count()?,
            "accept" => self.accept.extend(list()),
            "reject" => self.reject.extend(list()),
            "include-directories" => self.include_dirs.extend(list()),
            "exclude-directories" => self.exclude_dirs.extend(list()),
            "domains" => self.domains.extend(list()),
            "execute" => match value.replace(' ', "").as_str() {
                "robots=off" => self.robots = false,
                "robots=on" => self.robots = true,
                _ => return Err(format!("the command '{value}' is not supported here")),
            },
            "header" => {
                if !value.contains(':') {
                    return Err(bad());
                }
                self.headers.push(value);
            }
            "referer" => self.referer = Some(value),
            "post-data" => (self.method, self.body) = (Some("POST".to_owned()), Some(value.into_bytes())),
            "post-file" => (self.method, self.body_file) = (Some("POST".to_owned()), Some(value)),
            "method" => self.method = Some(value.to_uppercase()),
            "body-data" => self.body = Some(value.into_bytes()),
            "body-file" => self.body_file = Some(value),
            "user" | "http-user" => self.user = Some(value),
            "password" | "http-password" => self.password = Some(value),
            "load-cookies" => self.load_cookies = Some(value),
            "save-cookies" => self.save_cookies = Some(value),
            "max-redirect" => self.max_redirects = count()?.unwrap_or(0).min(crate::limits::REDIRECTS),
            "compression" => match value.as_str() {
                "auto" | "gzip" => self.compression = true,
                "none" => self.compression = false,
                _ => return Err(bad()),
            },
            "cut-dirs" => self.cut_dirs = value.parse().map_err(|_| bad())?,
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.only.is_some() {
            return Ok(());
        }
        if (self.body.is_some() || self.body_file.is_some()) && self.method.is_none() {
            return Err(
                "You must specify a method through --method=HTTPMethod to use with --body-data or --body-file."
                    .to_owned(),
            );
        }
        if self.no_clobber && self.timestamping {
            return Err("Can't timestamp and not clobber old files at the same time.".to_owned());
        }
        if self.output.is_some() && self.convert && (self.recursive || self.urls.len() > 1) {
            return Err("-k or -r and -O can be used together only if outputting to a regular file.".to_owned());
        }
        if self.urls.is_empty() && self.input.is_none() {
            return Err("missing URL".to_owned());
        }
        Ok(())
    }
}

/// A number with a unit: `10k`, `2m`; at most what fits.
fn bytes(text: &str) -> Option<u64> {
    if text == "inf" {
        return Some(0);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => FILE_IN_MEMORY << 4,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).map_err(|(why, _)| why)
    }

    #[test]
    fn letters_stand_together() {
        let options = parsed("-qO- -rnp -l2 -nH --cut-dirs=1 -A jpg,png h").unwrap();
        assert_eq!((options.verbosity, options.output.as_deref()), (Verbosity::Quiet, Some("-")));
        assert!(options.recursive && options.no_parent && options.no_host_directories);
        assert_eq!(
            (options.level, options.cut_dirs, options.accept),
            (Some(2), 1, vec!["jpg".to_owned(), "png".to_owned()])
        );
        let options = parsed("-nv -c --header=A:b --post-data a=1 --tries=inf -m h").unwrap();
        assert_eq!((options.verbosity, options.tries, options.level), (Verbosity::Brief, 1_000, None));
        assert_eq!((options.method.as_deref(), options.body.as_deref()), (Some("POST"), Some(&b"a=1"[..])));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("-q", "missing URL"),
            ("--nonsense h", "unrecognized option '--nonsense'"),
            ("--no-c h", "option '--no-c' is ambiguous"),
            ("-O", "option requires an argument -- 'O'"),
            ("--tries=x h", "tries: Invalid value 'x'."),
            ("-y h", "invalid option -- 'y'"),
        ] {
            assert_eq!(parsed(line).unwrap_err(), expected, "{line}");
        }
        assert!(parsed("--no-check-certificate h").unwrap_err().contains("always verified"));
        assert!(parsed("--body-data=x h").is_err() && parsed("-nc -N h").is_err());
    }
}
