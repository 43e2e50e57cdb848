//! Where the body of an answer goes.

use super::failed::Failed;
use crate::reason::reason;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// A file, made when the first byte comes, or standard output.
pub struct Output {
    /// Nothing for standard output.
    pub path: Option<PathBuf>,
    file: Option<File>,
    /// Bytes that the file had, and keeps.
    pub kept: u64,
    create_dirs: bool,
    /// Whether a file that is there is an error.
    pub must_be_new: bool,
    no_clobber: bool,
}

/// Names that a file gets where `--no-clobber` keeps the one that is there.
const NUMBERED: u32 = 100;

impl Output {
    pub fn new(path: Option<PathBuf>, kept: u64, create_dirs: bool, no_clobber: bool) -> Self {
        Self { path, file: None, kept, create_dirs, must_be_new: false, no_clobber }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        let written = match self.path.is_some() {
            true => self.open()?.write_all(bytes),
            false => io::stdout().write_all(bytes),
        };
        written.map_err(|e| Failed::write(&reason(&e)))
    }

    /// Makes the file though nothing came.
    pub fn touch(&mut self) -> Result<(), Failed> {
        match self.path.is_some() {
            true => self.open().map(drop),
            false => Ok(()),
        }
    }

    fn open(&mut self) -> Result<&mut File, Failed> {
        let Some(path) = self.path.clone() else { return Err(Failed::write("it has no name")) };
        if self.file.is_none() {
            let opened =
                self.open_at(&path).map_err(|e| Failed::write(&format!("{}: {}", path.display(), reason(&e))))?;
            self.file = Some(opened);
        }
        self.file.as_mut().ok_or_else(|| Failed::write("it is not open"))
    }

    fn open_at(&mut self, path: &Path) -> io::Result<File> {
        if let Some(parent) = path.parent().filter(|_| self.create_dirs) {
            fs::create_dir_all(parent)?;
        }
        if self.must_be_new {
            return File::options().write(true).create_new(true).open(path);
        }
        if self.kept > 0 {
            return File::options().append(true).create(true).open(path);
        }
        if self.no_clobber {
            for number in 0..=NUMBERED {
                let name =
                    if number == 0 { path.to_owned() } else { PathBuf::from(format!("{}.{number}", path.display())) };
                match File::options().write(true).create_new(true).open(&name) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(e) => return Err(e),
                    Ok(file) => {
                        self.path = Some(name);
                        return Ok(file);
                    }
                }
            }
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        File::create(path)
    }

    /// Takes back what an attempt wrote, before the next one.
    pub fn rewind(&mut self) -> io::Result<()> {
        let is_device = self.path.as_ref().is_some_and(|path| path.starts_with("/dev"));
        if let Some(file) = self.file.as_mut().filter(|_| !is_device) {
            file.set_len(self.kept)?;
            file.seek(io::SeekFrom::End(0))?;
        }
        Ok(())
    }

    /// Removes the file of a transfer that failed.
    pub fn remove(&mut self) {
        if let (Some(_), Some(path)) = (self.file.take(), &self.path) {
            let _ = fs::remove_file(path);
        }
    }

    /// Gives the file the time of the server's.
    pub fn set_time(&self, at: crate::date::Seconds) {
        if let (Some(file), Ok(seconds)) = (&self.file, u64::try_from(at)) {
            let _ = file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds));
        }
    }
}

/// The name that a server gives in `Content-Disposition`, without directories.
pub fn disposition(header: &str) -> Option<String> {
    let mut rest = header;
    let mut found = None;
    while let Some((_, after)) = rest.split_once(';') {
        rest = after.trim_start();
        let lower = rest.to_ascii_lowercase();
        let Some(value) = lower.strip_prefix("filename=").map(|_| &rest["filename=".len()..]) else { continue };
        let name = match value.strip_prefix('"') {
            Some(quoted) => {
                let (mut name, mut escaped) = (String::new(), false);
                for c in quoted.chars() {
                    match c {
                        '\\' if !escaped => escaped = true,
                        '"' if !escaped => break,
                        c => {
                            escaped = false;
                            name.push(c);
                        }
                    }
                }
                name
            }
            None => value.split(';').next().unwrap_or_default().trim().to_owned(),
        };
        found = safe_name(&name);
        break;
    }
    found
}

/// The last part of a name that somebody else has chosen.
pub fn safe_name(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_a_file_and_no_directory() {
        for (header, expected) in [
            ("attachment; filename=a.txt", Some("a.txt")),
            ("attachment; filename=\"a \\\"b\\\".txt\"; size=1", Some("a \"b\".txt")),
            ("attachment; FileName=../../etc/passwd", Some("passwd")),
            ("attachment; filename=\"..\\\\x\"", Some("x")),
            ("attachment; filename=\"..\"", None),
            ("inline", None),
        ] {
            assert_eq!(disposition(header).as_deref(), expected, "{header}");
        }
    }

    #[test]
    fn a_file_is_made_when_something_comes() {
        let dir = std::env::temp_dir().join(format!("curl-output-{}", std::process::id()));
        let path = dir.join("deep/x");
        let mut output = Output::new(Some(path.clone()), 0, true, false);
        assert!(!dir.exists());
        output.write(b"half").unwrap();
        output.rewind().unwrap();
        output.write(b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let mut kept = Output::new(Some(path.clone()), 5, false, false);
        kept.write(b" more").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole more");
        let mut numbered = Output::new(Some(path.clone()), 0, false, true);
        numbered.write(b"2").unwrap();
        assert_eq!(fs::read(dir.join("deep/x.1")).unwrap(), b"2");
        let mut new = Output { must_be_new: true, ..Output::new(Some(path), 0, false, false) };
        assert_eq!(new.write(b"x").unwrap_err().code, 23);
        fs::remove_dir_all(dir).unwrap();
    }
}
