//! The state of one wget: options, cookies, and the files that were saved.

use super::code;
use super::log::{self, Log};
use super::option::Options;
use crate::cookie::Jar;
use crate::reason::reason;
use crate::url::Url;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

/// The state of one wget.
pub struct Client<'a> {
    pub options: &'a Options,
    pub log: Log,
    pub jar: Jar,
    /// The file of `-O`, which all URLs go into.
    pub whole: Option<File>,
    worst: u8,
    pub files: usize,
    pub bytes: u64,
    pub seconds: f64,
    pub requests: u32,
    /// The files that were saved, with their URLs and types.
    pub saved: Vec<Saved>,
}

/// A file that was saved.
#[derive(Debug, Clone)]
pub struct Saved {
    pub url: Url,
    pub path: PathBuf,
    pub content_type: String,
}

impl<'a> Client<'a> {
    /// The error is a sentence and the exit code.
    pub fn new(options: &'a Options, log: Log) -> Result<Self, (String, u8)> {
        let mut jar = Jar::default();
        if let Some(path) = &options.load_cookies {
            let text = crate::body::read_whole(path).map_err(|e| (format!("{path}: {}", reason(&e)), code::FILE))?;
            jar.read(&String::from_utf8_lossy(&text), false);
        }
        let whole = match options.output.as_deref() {
            None | Some("-") => None,
            Some(path) => {
                let opened = File::options()
                    .create(true)
                    .write(true)
                    .append(options.resume)
                    .truncate(!options.resume)
                    .open(path);
                Some(opened.map_err(|e| (format!("{path}: {}", reason(&e)), code::FILE))?)
            }
        };
        Ok(Self {
            options,
            log,
            jar,
            whole,
            worst: 0,
            files: 0,
            bytes: 0,
            seconds: 0.0,
            requests: 0,
            saved: Vec::new(),
        })
    }

    /// Keeps the code that takes precedence: a lower one, but for 1.
    pub fn note(&mut self, code: u8) {
        let rank = |code: u8| if code <= 1 { u8::MAX - code } else { code };
        if code != 0 && (self.worst == 0 || rank(code) < rank(self.worst)) {
            self.worst = code;
        }
    }

    /// Writes the cookies and the summary, and returns the exit code.
    pub fn finish(mut self, is_many: bool, begun: Instant) -> u8 {
        if let Some(path) = &self.options.save_cookies
            && let Err(e) = fs::write(path, self.jar.write())
        {
            self.log.brief(&format!("Cannot open cookies file ‘{path}’: {}\n", reason(&e)));
        }
        if is_many && self.files > 0 {
            let (files, bytes, seconds) = (self.files, log::human(self.bytes), self.seconds);
            let rate = log::rate(self.bytes, seconds);
            self.log.brief(&format!(
                "FINISHED --{}--\nTotal wall clock time: {:.2}s\nDownloaded: {files} files, {bytes} in {seconds:.2}s ({rate})\n",
                log::now(),
                begun.elapsed().as_secs_f64()
            ));
        }
        self.worst
    }
}
