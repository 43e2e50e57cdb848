//! A command line of curl as requests to be made.

use super::config_file;
use super::data;
use super::failed::Failed;
use super::settings::{Fail, Options, Output, Resume, Target};
use super::table::{self, Entry, Kind};
use crate::date::{self, Seconds};
use std::path::Path;
use std::time::Duration;

/// A whole command line.
#[derive(Debug, Clone, Default)]
pub struct Line {
    pub groups: Vec<Options>,
    pub silent: bool,
    pub show_error: bool,
    pub fail_early: bool,
    /// A file for what would go to standard error.
    pub stderr: Option<String>,
    pub only: Option<Only>,
    /// Configuration files that are being read.
    depth: usize,
}

/// Something to print instead of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    Help,
    Version,
}

impl Line {
    pub fn parse(words: &[String]) -> Result<Self, Failed> {
        let mut line = Self { groups: vec![Options::default()], ..Self::default() };
        line.take(words)?;
        Ok(line)
    }

    pub fn shows_errors(&self) -> bool {
        !self.silent || self.show_error
    }

    fn options(&mut self) -> &mut Options {
        if self.groups.is_empty() {
            self.groups.push(Options::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn take(&mut self, words: &[String]) -> Result<(), Failed> {
        let mut rest = words.iter();
        let mut only_urls = false;
        while let Some(word) = rest.next() {
            if only_urls || !word.starts_with('-') || word == "-" {
                self.options().add_url(word);
            } else if word == "--" {
                only_urls = true;
            } else if let Some(name) = word.strip_prefix("--") {
                self.long(name, &mut || rest.next().cloned())?;
            } else {
                self.letters(&word[1..], &mut || rest.next().cloned())?;
            }
        }
        Ok(())
    }

    /// An option by its name, from the command line or from a configuration file.
    pub fn long(&mut self, name: &str, value: &mut dyn FnMut() -> Option<String>) -> Result<(), Failed> {
        let (name, on) = match name.strip_prefix("no-") {
            Some(positive) if name != "no-buffer" && table::long(positive).is_ok() => (positive, false),
            _ => (name, true),
        };
        let shown = format!("--{}{name}", if on { "" } else { "no-" });
        let entry = table::long(name).map_err(|why| Failed::usage(&format!("option {shown}: {why}")))?;
        self.apply(entry, &shown, on, value)
    }

    /// Options by their letters; the rest of the word is the value of the first that takes one.
    pub fn letters(&mut self, letters: &str, value: &mut dyn FnMut() -> Option<String>) -> Result<(), Failed> {
        for (at, letter) in letters.char_indices() {
            let shown = format!("-{letter}");
            let entry = table::short(letter).ok_or_else(|| Failed::usage(&format!("option {shown}: is unknown")))?;
            let rest = &letters[at + letter.len_utf8()..];
            if !rest.is_empty() && matches!(entry.kind, Kind::Value | Kind::IgnoredValue | Kind::RefusedValue(..)) {
                return self.apply(entry, &shown, true, &mut || Some(rest.to_owned()));
            }
            self.apply(entry, &shown, true, value)?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        entry: &Entry,
        shown: &str,
        on: bool,
        value: &mut dyn FnMut() -> Option<String>,
    ) -> Result<(), Failed> {
        let missing = || Failed::usage(&format!("option {shown}: requires parameter"));
        match entry.kind {
            Kind::Ignored => Ok(()),
            Kind::IgnoredValue => value().map(drop).ok_or_else(missing),
            Kind::Refused(..) if !on => Ok(()),
            Kind::Refused(code, why) => Err(Failed::refused(code, &format!("option {shown}: {why}"))),
            Kind::RefusedValue(code, why) => {
                value().ok_or_else(missing)?;
                Err(Failed::refused(code, &format!("option {shown}: {why}")))
            }
            Kind::Flag => {
                self.flag(entry.long, on);
                Ok(())
            }
            Kind::Value => {
                let value = value().ok_or_else(missing)?;
                self.value(entry.long, shown, value)
            }
        }
    }

    fn flag(&mut self, name: &str, on: bool) {
        match name {
            "silent" => self.silent = on,
            "show-error" => self.show_error = on,
            "fail-early" => self.fail_early = on,
            "help" => self.only = Some(Only::Help),
            "version" => self.only = Some(Only::Version),
            "next" => {
                let has_url = self.options().targets.iter().any(|target| target.url.is_some());
                if has_url {
                    self.groups.push(Options::default());
                }
            }
            _ => self.options().flag(name, on),
        }
    }

    fn value(&mut self, name: &str, shown: &str, value: String) -> Result<(), Failed> {
        match name {
            "stderr" => self.stderr = Some(value),
            "config" => {
                if self.depth >= crate::limits::CONFIG_DEPTH {
                    return Err(Failed::usage("configuration files are nested too deep"));
                }
                self.depth += 1;
                for (name, value) in config_file::read(&value)? {
                    let mut value = value;
                    let mut take = || value.take();
                    match name.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
                        Some(letters) => self.letters(letters, &mut take)?,
                        None => self.long(name.trim_start_matches('-'), &mut take)?,
                    }
                }
                self.depth -= 1;
            }
            _ => return self.options().value(name, shown, value),
        }
        Ok(())
    }
}

impl Options {
    pub fn add_url(&mut self, url: &str) {
        let url = Some(url.to_owned());
        match self.targets.iter_mut().find(|target| target.url.is_none()) {
            Some(target) => target.url = url,
            None => self.targets.push(Target { url, ..Target::default() }),
        }
    }

    fn add_output(&mut self, output: Output) {
        match self.targets.iter_mut().find(|target| target.output.is_none()) {
            Some(target) => target.output = Some(output),
            None => self.targets.push(Target { output: Some(output), ..Target::default() }),
        }
    }

    fn flag(&mut self, name: &str, on: bool) {
        match name {
            "fail" => self.fail = if on { Fail::WithoutBody } else { Fail::Never },
            "fail-with-body" => self.fail = if on { Fail::WithBody } else { Fail::Never },
            "globoff" => self.globoff = on,
            "get" => self.get = on,
            "include" | "show-headers" => self.include = on,
            "head" => self.head = on,
            "junk-session-cookies" => self.junk_session = on,
            "remote-header-name" => self.remote_header_name = on,
            "location" => self.location = on,
            "location-trusted" => (self.location, self.trusted) = (on, on),
            "no-buffer" => self.no_buffer = on,
            "buffer" => self.no_buffer = !on,
            "remote-name" if on => self.add_output(Output::Remote),
            "remote-name-all" => self.remote_name_all = on,
            "remote-time" => self.remote_time = on,
            "verbose" => self.verbose = on,
            "compressed" => self.compressed = on,
            "create-dirs" => self.create_dirs = on,
            "form-escape" => self.form_escape = on,
            "ignore-content-length" => self.ignore_length = on,
            "clobber" => self.no_clobber = !on,
            "post301" => self.keep_post[0] = on,
            "post302" => self.keep_post[1] = on,
            "post303" => self.keep_post[2] = on,
            "remove-on-error" => self.remove_on_error = on,
            "retry-all-errors" => self.retry_all = on,
            "retry-connrefused" => self.retry_refused = on,
            "skip-existing" => self.skip_existing = on,
            _ => {}
        }
    }

    fn value(&mut self, name: &str, shown: &str, value: String) -> Result<(), Failed> {
        let bad = |why: &str| Failed::usage(&format!("option {shown}: {why}"));
        let seconds = |text: &str| {
            let number = text.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
            number.map(Duration::from_secs_f64).ok_or_else(|| bad("expected a proper numerical parameter"))
        };
        let number = |text: &str| text.parse::<i64>().map_err(|_| bad("expected a proper numerical parameter"));
        match name {
            "user-agent" => self.agent = Some(value),
            "cookie" if value.contains('=') => self.cookies.push(value),
            "cookie" => self.cookie_files.push(value),
            "cookie-jar" => self.cookie_jar = Some(value),
            "continue-at" if value == "-" => self.resume = Some(Resume::Here),
            "continue-at" => {
                let at = u64::try_from(number(&value)?).map_err(|_| bad("expected a positive numerical parameter"))?;
                self.resume = Some(Resume::At(at));
            }
            "data" | "data-ascii" | "data-binary" | "data-raw" | "data-urlencode" | "json" => {
                data::add(self, name, &value)?;
            }
            "form" => self.form.push(data::part(&value)?),
            "form-string" => self.form.push(data::string_part(&value)?),
            "dump-header" => self.dump_header = Some(value),
            "referer" => {
                let plain = value.strip_suffix(";auto");
                self.auto_referer = plain.is_some();
                self.referer = Some(plain.unwrap_or(&value).to_owned()).filter(|text| !text.is_empty());
            }
            "header" => match value.strip_prefix('@') {
                Some(file) => {
                    let text = data::text_of(file).map_err(|_| bad(&format!("failed to open {file}")))?;
                    self.headers.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
                }
                None => self.headers.push(value),
            },
            "max-time" => self.max_time = Some(seconds(&value)?).filter(|limit| !limit.is_zero()),
            "connect-timeout" => self.connect_timeout = Some(seconds(&value)?).filter(|limit| !limit.is_zero()),
            "output" => self.add_output(Output::Named(value)),
            "range" if value.parse::<u64>().is_ok() => self.range = Some(format!("{value}-")),
            "range" => self.range = Some(value),
            "upload-file" => match self.targets.iter_mut().find(|target| target.upload.is_none()) {
                Some(target) => target.upload = Some(value),
                None => self.targets.push(Target { upload: Some(value), ..Target::default() }),
            },
            "user" => self.user = Some(value),
            "oauth2-bearer" => self.bearer = Some(value),
            "write-out" => {
                let text = match value.strip_prefix('@') {
                    Some(file) => data::text_of(file).map_err(|_| bad(&format!("failed to open {file}")))?,
                    None => value,
                };
                self.write_out = Some(text);
            }
            "request" => self.method = Some(value),
            "time-cond" => self.since = since(&value),
            "etag-compare" => self.etag_compare = Some(value),
            "etag-save" => self.etag_save = Some(value),
            "limit-rate" => {
                self.limit_rate =
                    Some(bytes(&value).ok_or_else(|| bad("unsupported rate unit"))?).filter(|rate| *rate > 0)
            }
            "max-filesize" => {
                self.max_filesize = Some(bytes(&value).ok_or_else(|| bad("expected a proper numerical parameter"))?);
            }
            "max-redirs" => {
                let most = crate::limits::REDIRECTS;
                self.max_redirects = u32::try_from(number(&value)?).map_or(most, |count| count.min(most));
            }
            "output-dir" => self.output_dir = Some(value),
            "proto" => self.protocols = protocols(&self.protocols, &value),
            "proto-redir" => self.redirect_protocols = protocols(&self.redirect_protocols, &value),
            "proto-default" => self.default_scheme = Some(value.to_ascii_lowercase()),
            "request-target" => return Err(bad("the target of a request is that of its URL")),
            "retry" => self.retries = u32::try_from(number(&value)?.clamp(0, 1_000)).unwrap_or(0),
            "retry-delay" => self.retry_delay = seconds(&value)?,
            "retry-max-time" => self.retry_max_time = Some(seconds(&value)?).filter(|limit| !limit.is_zero()),
            "url" => match value.strip_prefix('@') {
                Some(file) => {
                    let text = data::text_of(file).map_err(|_| bad(&format!("failed to open {file}")))?;
                    text.lines()
                        .map(str::trim)
                        .filter(|line| !line.is_empty() && !line.starts_with('#'))
                        .for_each(|url| self.add_url(url));
                }
                None => self.add_url(&value),
            },
            "url-query" => self.url_query.push(data::query(&value)?),
            _ => return Err(bad("is unknown")),
        }
        Ok(())
    }
}

/// The condition of `-z`: a date, or a file whose date it is; `-` before it asks for what is older.
fn since(value: &str) -> Option<(bool, Seconds)> {
    let (newer, value) = match value.strip_prefix('-') {
        Some(value) => (false, value),
        None => (true, value.strip_prefix('+').unwrap_or(value)),
    };
    date::parse(value).or_else(|| date::modified(Path::new(value))).map(|at| (newer, at))
}

/// A number with a unit: `10k`, `2M`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The protocols that `--proto` leaves, of those that there are.
fn protocols(known: &[&'static str], value: &str) -> Vec<&'static str> {
    let mut allowed: Vec<&'static str> = known.to_vec();
    for word in value.split(',').map(str::trim) {
        let (how, name) = match word.chars().next() {
            Some(how @ ('=' | '-' | '+')) => (how, &word[1..]),
            _ => ('+', word),
        };
        let named: Vec<&'static str> = ["http", "https"]
            .into_iter()
            .filter(|known| name.eq_ignore_ascii_case(known) || name.eq_ignore_ascii_case("all"))
            .collect();
        match how {
            '=' => allowed = named,
            '-' => allowed.retain(|known| !named.contains(known)),
            _ => allowed.extend(named),
        }
    }
    allowed
}

#[cfg(test)]
mod tests;
