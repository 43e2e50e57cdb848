//! Messages: on standard error, or in the file of `-o`.

use super::option::{Options, Verbosity};
use crate::date;
use std::fs::File;
use std::io::Write;

pub struct Log {
    file: Option<File>,
    verbosity: Verbosity,
}

impl Log {
    pub fn new(options: &Options) -> Result<Self, String> {
        let file = match &options.log {
            None => None,
            Some((path, _)) if path == "-" || path == "/dev/stderr" => None,
            Some((path, appends)) => {
                let opened = File::options().create(true).write(true).append(*appends).truncate(!appends).open(path);
                Some(opened.map_err(|e| format!("{path}: {}", crate::reason::reason(&e)))?)
            }
        };
        Ok(Self { file, verbosity: options.verbosity })
    }

    /// A message that only `-q` leaves out.
    pub fn brief(&mut self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.write(text);
        }
    }

    /// A message that `-nv` leaves out, too.
    pub fn verbose(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.write(text);
        }
    }

    pub fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    fn write(&mut self, text: &str) {
        match &mut self.file {
            Some(file) => drop(file.write_all(text.as_bytes())),
            None => eprint!("{text}"),
        }
    }
}

/// The time as messages have it, in UTC.
pub fn now() -> String {
    date::stamp(date::now())
}

/// A size as people read it: `12K`, `3.4M`.
pub fn human(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["", "K", "M", "G"] {
        if size < 1024.0 {
            return match unit {
                "" => format!("{bytes}"),
                _ if size < 10.0 => format!("{size:.1}{unit}"),
                _ => format!("{size:.0}{unit}"),
            };
        }
        size /= 1024.0;
    }
    format!("{size:.0}T")
}

/// A rate: `1.25 MB/s`.
pub fn rate(bytes: u64, seconds: f64) -> String {
    let mut rate = bytes as f64 / seconds.max(0.000_001);
    for unit in ["B/s", "KB/s", "MB/s"] {
        if rate < 1024.0 {
            return format!(
                "{rate:.*} {unit}",
                if rate >= 99.95 {
                    0
                } else if rate >= 9.995 {
                    1
                } else {
                    2
                }
            );
        }
        rate /= 1024.0;
    }
    format!("{rate:.1} GB/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!((human(9), human(1536), human(200 << 20)), ("9".into(), "1.5K".into(), "200M".into()));
        assert_eq!((rate(100, 1.0), rate(5 << 20, 2.0)), ("100 B/s".into(), "2.50 MB/s".into()));
    }
}
