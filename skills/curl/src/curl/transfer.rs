//! One transfer: its redirects, its attempts, and what is kept of it.

use super::failed::Failed;
use super::glob::{Globbed, fill};
use super::option::Line;
use super::output::{self, Output};
use super::request::{self, Draft};
use super::retry::Retries;
use super::settings::{self, Fail, Options, Resume, Target};
use super::write_out::{Report, Sink};
use super::{data, sentence, verbose};
use crate::cookie::Jar;
use crate::date;
use crate::decode::Decoder;
use crate::reason::reason;
use crate::transport::{self, Failure, Request, Response};
use crate::url::Url;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest wait for the next byte of an answer; the host has its own limit.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The transfers of a command line.
pub struct Session<'a> {
    pub line: &'a Line,
    jar: Jar,
    /// Where messages go instead of standard error.
    messages: Option<File>,
    url_number: usize,
    /// The file that has the heads, and is written to by all transfers.
    heads: Option<(String, File)>,
}

/// How one attempt went.
struct Attempt<'t> {
    options: &'t Options,
    report: Report,
    output: Output,
    began: Instant,
    deadline: Option<Instant>,
    is_denied: bool,
    retry_after: Option<u64>,
    /// The answer's body is not for the output.
    ignores_body: bool,
}

impl<'a> Session<'a> {
    pub fn new(line: &'a Line) -> Self {
        let messages = line.stderr.as_ref().filter(|path| *path != "-").and_then(|path| File::create(path).ok());
        Self { line, jar: Jar::default(), messages, url_number: 0, heads: None }
    }

    /// Writes a message.
    fn say(&mut self, text: &str) {
        match (&mut self.messages, self.line.stderr.as_deref()) {
            (Some(file), _) => drop(file.write_all(text.as_bytes())),
            (None, Some("-")) => drop(std::io::stdout().write_all(text.as_bytes())),
            (None, _) => eprint!("{text}"),
        }
    }

    pub fn tell(&mut self, failed: &Failed) {
        if self.line.shows_errors() || failed.usage {
            self.say(&sentence(failed));
        }
    }

    fn warn(&mut self, text: &str) {
        if !self.line.silent {
            self.say(&format!("Warning: {text}\n"));
        }
    }

    /// Reads the cookies, and checks what can be checked before a request.
    pub fn begin(&mut self, options: &Options) -> Result<(), Failed> {
        for file in options.cookie_files.iter().filter(|file| !file.is_empty()) {
            // As in curl, a jar that is not there is an empty one.
            let text = data::text_of(file).unwrap_or_default();
            self.jar.read(&text, options.junk_session);
        }
        let dropped = request::dropped(options).join(", ");
        if !dropped.is_empty() {
            self.warn(&format!("kiso writes these headers itself: {dropped}"));
        }
        Ok(())
    }

    /// Writes the jar.
    pub fn end(&mut self, options: &Options) {
        let Some(path) = &options.cookie_jar else { return };
        let text = self.jar.write();
        let written = match path.as_str() {
            "-" => std::io::stdout().write_all(text.as_bytes()),
            path => std::fs::write(path, text),
        };
        if let Err(e) = written {
            self.warn(&format!("failed to save cookies in {path}: {}", reason(&e)));
        }
    }

    /// Transfers one URL, with its attempts, and returns the exit code.
    pub fn transfer(&mut self, options: &Options, target: &Target, globbed: &Globbed) -> u8 {
        let mut retries = Retries::new(options);
        let number = self.url_number;
        self.url_number += 1;
        let output = match place(options, target, globbed) {
            Ok(Some(output)) => output,
            // It is there, and `--skip-existing` leaves it.
            Ok(None) => return 0,
            Err(failed) => {
                self.tell(&failed);
                return failed.code;
            }
        };
        let mut attempt = Attempt::new(options, output);
        loop {
            attempt.report = Report { url: globbed.url.clone(), url_number: number, ..Report::default() };
            let result = self.attempt(&mut attempt, target);
            let failed = result.err().unwrap_or_else(|| Failed::new(0, ""));
            let next = retries.next(options, &failed, attempt.report.status, attempt.is_denied, attempt.retry_after);
            if let Some((wait, said)) = next
                && attempt.output.rewind().is_ok()
            {
                if !self.line.silent {
                    self.say(&said);
                }
                std::thread::sleep(wait);
                attempt = Attempt::new(options, attempt.output);
                continue;
            }
            attempt.report.retries = retries.made;
            return self.finish(attempt, failed);
        }
    }

    fn finish(&mut self, mut attempt: Attempt<'_>, failed: Failed) -> u8 {
        let options = attempt.options;
        attempt.report.total = attempt.began.elapsed();
        if failed.code != 0 {
            self.tell(&failed);
            if options.remove_on_error {
                attempt.output.remove();
            }
            attempt.report.error = Some(failed.message.clone());
        }
        attempt.report.exit_code = failed.code;
        attempt.report.file = attempt.output.path.as_ref().map(|path| path.display().to_string());
        if let Some(format) = &options.write_out {
            for (sink, text) in attempt.report.fill(format) {
                let written = match sink {
                    Sink::Stdout => std::io::stdout().write_all(text.as_bytes()),
                    Sink::Stderr => {
                        self.say(&text);
                        Ok(())
                    }
                    Sink::File(path, appends) => {
                        let file =
                            File::options().create(true).write(true).append(appends).truncate(!appends).open(path);
                        file.and_then(|mut file| file.write_all(text.as_bytes()))
                    }
                };
                if let Err(e) = written {
                    self.warn(&format!("--write-out: {}", reason(&e)));
                }
            }
        }
        failed.code
    }

    fn attempt(&mut self, attempt: &mut Attempt<'_>, target: &Target) -> Result<(), Failed> {
        let options = attempt.options;
        let mut resume = attempt.output.kept;
        if let (Some(_), Some(Resume::At(at))) = (&target.upload, options.resume) {
            resume = at;
        }
        let text = match (&options.default_scheme, attempt.report.url.contains("://")) {
            (Some(scheme), false) => format!("{scheme}://{}", attempt.report.url),
            _ => attempt.report.url.clone(),
        };
        let url = Url::parse(&text).map_err(Failed::url)?;
        check_protocol(&url, &options.protocols, "")?;
        let mut draft = Draft::new(options, url, target.upload.as_deref(), resume)?;
        let mut connected: Option<Url> = None;
        loop {
            attempt.report.effective = Some(draft.url.clone());
            attempt.report.method = draft.method();
            attempt.report.referer.clone_from(&draft.referer);
            if connected.as_ref().is_none_or(|last| !last.is_same_origin(&draft.url)) {
                attempt.report.connects += 1;
            }
            connected = Some(draft.url.clone());
            let response = self.send(attempt, &draft)?;
            let leads_to = match (response.status, response.header("location")) {
                (301 | 302 | 303 | 307 | 308, Some(location)) => Some(draft.url.join(location)),
                _ => None,
            };
            attempt.report.redirect_url = leads_to.as_ref().and_then(|url| url.as_ref().ok()).map(Url::to_string);
            let Some(next) = leads_to.filter(|_| options.location) else {
                return self.receive(attempt, &draft, response);
            };
            let next = next.map_err(Failed::url)?;
            if attempt.report.redirects >= options.max_redirects {
                return Err(Failed::new(47, format!("Maximum ({}) redirects followed", options.max_redirects)));
            }
            check_protocol(&next, &options.redirect_protocols, " in redirect")?;
            attempt.report.redirects += 1;
            attempt.report.redirect_url = None;
            attempt.report.redirect_time = attempt.began.elapsed();
            if options.verbose {
                self.say(&format!("* Issue another request to this URL: '{}'\n", next.without_login()));
            }
            draft.redirect(response.status, next);
            if !draft.body.is_none() && !draft.body.is_repeatable() {
                return Err(Failed::new(65, "Send failed since rewinding of the data stream failed"));
            }
        }
    }

    /// Sends a request, and takes in the head of its answer.
    fn send(&mut self, attempt: &mut Attempt<'_>, draft: &Draft<'_>) -> Result<Response, Failed> {
        let options = attempt.options;
        let headers = draft.headers(&self.jar)?;
        let method = draft.method();
        let length = draft.body.length().ok().flatten().filter(|_| !draft.body.is_none());
        let said = verbose::request(&method, &draft.url, &headers, length);
        // Without the two characters before each line.
        attempt.report.request_bytes += said.len() as u64 - 2 * said.lines().count() as u64;
        if options.verbose {
            self.say(&said);
        }
        let request = Request {
            method: &method,
            url: &draft.url,
            headers: &headers,
            body: &draft.body,
            connect_timeout: options.connect_timeout,
            read_timeout: Some(READ_TIMEOUT),
            deadline: attempt.deadline,
        };
        let response = transport::send(&request).map_err(|failure| attempt.failed(&failure, draft, None))?;
        attempt.report.first_byte = attempt.began.elapsed();
        attempt.report.uploaded = response.sent;
        attempt.report.request_bytes += response.sent;
        attempt.report.status = response.status;
        attempt.report.headers.clone_from(&response.headers);
        let head = verbose::head(response.status, &response.headers);
        attempt.report.header_bytes += head.len() as u64;
        attempt.retry_after = response.header("retry-after").and_then(|value| {
            let later = || date::parse(value).map(|at| at.saturating_sub(date::now()).max(0) as u64);
            value.trim().parse().ok().or_else(later)
        });
        if options.verbose {
            self.say(&verbose::response(&head));
        }
        for (_, value) in response.headers.iter().filter(|(name, _)| name == "set-cookie") {
            self.jar.set(value, &draft.url);
        }
        if let Some(path) = &options.dump_header {
            self.dump(path, &head)?;
        }
        if let Some(path) = &options.etag_save
            && let Some(etag) = response.header("etag")
        {
            std::fs::write(path, format!("{etag}\n")).map_err(|e| Failed::write(&reason(&e)))?;
        }
        if options.include || options.head && draft.kind == "HEAD" {
            attempt.output.write(head.as_bytes())?;
        }
        Ok(response)
    }

    /// Writes a head where `-D` says.
    fn dump(&mut self, path: &str, head: &str) -> Result<(), Failed> {
        let failed = |e: std::io::Error| Failed::write(&format!("{path}: {}", reason(&e)));
        match path {
            "-" | "/dev/stdout" => std::io::stdout().write_all(head.as_bytes()).map_err(failed),
            "/dev/stderr" => {
                self.say(head);
                Ok(())
            }
            path => {
                if self.heads.as_ref().is_none_or(|(open, _)| open != path) {
                    self.heads = Some((path.to_owned(), File::create(path).map_err(failed)?));
                }
                match &mut self.heads {
                    Some((_, file)) => file.write_all(head.as_bytes()).map_err(failed),
                    None => Ok(()),
                }
            }
        }
    }

    /// Takes in the body of the last answer.
    fn receive(&mut self, attempt: &mut Attempt<'_>, draft: &Draft<'_>, mut response: Response) -> Result<(), Failed> {
        let options = attempt.options;
        let status = response.status;
        let error = format!("The requested URL returned error: {status}");
        if status >= 400 && options.fail == Fail::WithoutBody && !(status == 416 && draft.resume > 0) {
            return Err(Failed::new(22, error));
        }
        let length = response.header("content-length").and_then(|length| length.trim().parse::<u64>().ok());
        let length = length.filter(|_| !options.ignore_length && draft.kind != "HEAD");
        attempt.ignores_body = attempt.is_old(draft, &response, length)?;
        if attempt.ignores_body {
            return Ok(());
        }
        if let Some(most) = options.max_filesize
            && length.is_some_and(|length| length > most)
        {
            return Err(Failed::new(63, "Maximum file size exceeded"));
        }
        if options.remote_header_name
            && matches!(target_name(options, attempt), Some(()))
            && let Some(name) = response.header("content-disposition").and_then(output::disposition)
        {
            let dir = options.output_dir.as_deref().map(PathBuf::from).unwrap_or_default();
            attempt.output.path = Some(dir.join(name));
            attempt.output.must_be_new = !options.include && !options.no_clobber;
        }
        let mut decoder = match response.header("content-encoding").filter(|_| options.compressed) {
            Some(coding) => Decoder::new(coding)
                .map_err(|coding| Failed::new(61, format!("Unrecognized content encoding type: {coding}")))?,
            None => Decoder::Plain,
        };
        let mut received = 0_u64;
        let mut written = 0_u64;
        let mut trouble = None;
        loop {
            let piece = response.body.read(attempt.deadline);
            let piece = piece.map_err(|failure| attempt.failed(&failure, draft, Some((received, length))));
            let Some(piece) = piece? else { break };
            received += piece.len() as u64;
            attempt.report.downloaded = received;
            if options.max_filesize.is_some_and(|most| received > most) {
                return Err(Failed::new(63, "Maximum file size exceeded"));
            }
            let output = &mut attempt.output;
            let mut out = |part: &[u8]| {
                written += part.len() as u64;
                output.write(part).map_err(|failed| {
                    trouble = Some(failed);
                    std::io::Error::other("")
                })
            };
            if let Err(e) = decoder.write(&piece, &mut out) {
                return Err(trouble.unwrap_or_else(|| undecoded(&e)));
            }
            if options.no_buffer && attempt.output.path.is_none() {
                std::io::stdout().flush().map_err(|e| Failed::write(&reason(&e)))?;
                flush();
            }
            attempt.pace(received);
        }
        let output = &mut attempt.output;
        decoder
            .finish(&mut |part| output.write(part).map_err(|_| std::io::Error::other("")))
            .map_err(|e| undecoded(&e))?;
        if let Some(length) = length.filter(|length| *length > received) {
            return Err(Failed::new(18, format!("transfer closed with {} bytes remaining to read", length - received)));
        }
        // The file that is there is what the server has.
        if status != 304 {
            attempt.output.touch()?;
        }
        if options.remote_time
            && let Some(at) = response.header("last-modified").and_then(date::parse)
        {
            attempt.output.set_time(at);
        }
        match status >= 400 && options.fail == Fail::WithBody {
            true => Err(Failed::new(22, error)),
            false => Ok(()),
        }
    }
}

/// Sends what the standard output of the process holds back.
fn flush() {
    #[cfg(target_os = "wasi")]
    command::flush();
}

fn undecoded(error: &std::io::Error) -> Failed {
    Failed::new(61, format!("Error while processing content unencoding: {error}"))
}

/// Whether a name of the server's may take the place of this output's: that of a file that `-O` names.
fn target_name(options: &Options, attempt: &Attempt<'_>) -> Option<()> {
    let is_remote = options.targets.iter().any(|target| target.output == Some(settings::Output::Remote));
    ((is_remote || options.remote_name_all) && attempt.output.path.is_some()).then_some(())
}

impl<'t> Attempt<'t> {
    fn new(options: &'t Options, output: Output) -> Self {
        let began = Instant::now();
        Self {
            options,
            report: Report::default(),
            output,
            began,
            deadline: options.max_time.map(|limit| began + limit),
            is_denied: false,
            retry_after: None,
            ignores_body: false,
        }
    }

    fn failed(&mut self, failure: &Failure, draft: &Draft<'_>, body: Option<(u64, Option<u64>)>) -> Failed {
        self.is_denied = *failure == Failure::Denied;
        let (received, length) = body.unwrap_or_default();
        Failed::transfer(failure, &draft.url, self.began.elapsed(), received, length)
    }

    /// Whether the answer says that there is nothing new to take in.
    fn is_old(&self, draft: &Draft<'_>, response: &Response, length: Option<u64>) -> Result<bool, Failed> {
        if draft.kind == "GET" && draft.resume > 0 {
            let starts = response.header("content-range").and_then(|range| {
                let range = range.trim().strip_prefix("bytes")?.trim_start();
                range.split('-').next()?.trim().parse::<u64>().ok()
            });
            match response.status {
                416 => return Ok(true),
                _ if starts == Some(draft.resume) => {}
                _ if length == Some(draft.resume) => return Ok(true),
                200..300 => {
                    let said = "HTTP server does not seem to support byte ranges. Cannot resume.";
                    return Err(Failed::new(33, said));
                }
                _ => {}
            }
        }
        if let (Some((newer, at)), 200) = (self.options.since, response.status)
            && let Some(changed) = response.header("last-modified").and_then(date::parse)
        {
            return Ok(if newer { changed <= at } else { changed > at });
        }
        Ok(false)
    }

    /// Waits as long as `--limit-rate` asks for.
    fn pace(&self, received: u64) {
        let Some(rate) = self.options.limit_rate else { return };
        let due = Duration::from_secs_f64(received as f64 / rate as f64);
        let early = due.saturating_sub(self.began.elapsed());
        let left = self.deadline.map_or(early, |deadline| deadline.saturating_duration_since(Instant::now()));
        std::thread::sleep(early.min(left));
    }
}

fn check_protocol(url: &Url, allowed: &[&str], place: &str) -> Result<(), Failed> {
    let known = ["http", "https"].contains(&url.scheme.as_str());
    match known && allowed.contains(&url.scheme.as_str()) {
        true => Ok(()),
        false => {
            let why = if known || !place.is_empty() { "disabled" } else { "not supported" };
            Err(Failed::new(1, format!("Protocol \"{}\" {why}{place}", url.scheme)))
        }
    }
}

/// Where the body of a URL goes; nothing if that is there already and may stay.
fn place(options: &Options, target: &Target, globbed: &Globbed) -> Result<Option<Output>, Failed> {
    let chosen = match (&target.output, options.remote_name_all) {
        (None, true) => Some(settings::Output::Remote),
        (chosen, _) => chosen.clone(),
    };
    let dir = options.output_dir.as_deref().map(Path::new);
    let in_dir = |name: &str| dir.map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
    let path = match chosen {
        None => None,
        Some(settings::Output::Named(name)) if matches!(name.as_str(), "-" | "/dev/stdout") => None,
        Some(settings::Output::Named(name)) => Some(in_dir(&fill(&name, &globbed.parts))),
        Some(settings::Output::Remote) => {
            let url = Url::parse(&globbed.url).map_err(Failed::url)?;
            let name = output::safe_name(url.file_name());
            Some(in_dir(&name.ok_or_else(|| Failed::new(23, "Remote file name has no length"))?))
        }
    };
    if options.skip_existing && path.as_ref().is_some_and(|path| path.exists()) {
        return Ok(None);
    }
    let kept = match (options.resume, &path, &target.upload) {
        (Some(Resume::At(at)), _, None) => at,
        (Some(Resume::Here), Some(path), None) => path.metadata().map_or(0, |found| found.len()),
        _ => 0,
    };
    Ok(Some(Output::new(path, kept, options.create_dirs, options.no_clobber)))
}
