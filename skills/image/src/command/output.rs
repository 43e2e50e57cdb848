//! Where pictures go, and in which format.

use super::{Outcome, identify, write_out};
use crate::encode::{Format, check_copies, encode};
use crate::kind::{KNOWN, Kind};
use crate::picture::Picture;
use crate::source::reason;
use std::path::Path;

/// The settings of a command line for its output.
#[derive(Debug, Clone, Default)]
pub struct Output {
    pub quality: Option<u8>,
    pub density: Option<u16>,
    pub background: Option<[u8; 3]>,
    /// How often an animation is shown: as the first file says, unless the command line does.
    pub repeat: Option<u16>,
    pub most_bytes: Option<usize>,
    pub palette: bool,
    /// Whether several pictures become one file, where the format holds several.
    pub apart: bool,
    /// The format for `info:`.
    pub format: Option<String>,
}

impl Output {
    /// Writes the pictures to a file, or to standard output for `-`. A prefix such as `png:` names the format.
    pub fn write(&self, pictures: &[Picture], target: &str) -> Outcome {
        let (prefix, path) = split_prefix(target);
        if prefix.is_some_and(|prefix| prefix == "null") {
            return Ok(());
        }
        if prefix.is_some_and(|prefix| prefix == "info") {
            return identify::print_pictures(pictures, self.format.as_deref());
        }
        let (kind, ending) = self.kind(prefix, path, pictures)?;
        check_copies(pictures)?;
        let mut format = Format::new(kind);
        format.quality = self.quality;
        format.density = self.density;
        format.background = self.background.unwrap_or([255; 3]);
        format.repeat = self.repeat.unwrap_or(0);
        format.most_bytes = self.most_bytes;
        format.palette = self.palette || ending == "png8";
        format.ending = ending;
        if kind == Kind::Webp && self.quality.is_some_and(|quality| quality < 100) {
            eprintln!("note: WebP is written without loss here, so -quality has no effect");
        }
        if pictures.len() <= 1 || (kind.holds_several() && !self.apart) {
            return write(path, &encode(pictures, &format)?);
        }
        for (number, picture) in pictures.iter().enumerate() {
            write(&numbered(path, number), &encode(std::slice::from_ref(picture), &format)?)?;
        }
        Ok(())
    }

    fn kind(&self, prefix: Option<&str>, path: &str, pictures: &[Picture]) -> Result<(Kind, String), String> {
        let ending = Path::new(path).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let named = prefix.map(str::to_owned).or(ending);
        match named {
            Some(name) => match Kind::from_ending(&name) {
                Some(kind) => Ok((kind, name)),
                None => Err(format!("{path}: {} cannot be written here; {KNOWN} can", name.to_uppercase())),
            },
            None => {
                let first = pictures.first().ok_or_else(|| "there is no picture to write".to_owned())?;
                Ok((first.kind, first.kind.ending().to_owned()))
            }
        }
    }
}

/// Splits `png:-` into the format and the path. A name with a colon and without a known format is a path.
pub fn split_prefix(name: &str) -> (Option<&str>, &str) {
    match name.split_once(':') {
        Some((prefix, rest)) if is_prefix(prefix) => (Some(prefix), rest),
        _ => (None, name),
    }
}

fn is_prefix(prefix: &str) -> bool {
    Kind::from_ending(prefix).is_some()
        || ["info", "null", "xc", "canvas", "pdf", "avif", "heic", "svg", "ico", "txt", "webm", "mp4"].contains(&prefix)
}

/// Returns the name of one of several files: `out-3.png` for `out.png`, or the number in the place of `%d`.
fn numbered(path: &str, number: usize) -> String {
    if let Some(at) = path.find('%') {
        let rest = &path[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let width = rest[..digits].parse::<usize>().unwrap_or(0).min(20);
        if rest[digits..].starts_with('d') {
            return format!("{}{number:0width$}{}", &path[..at], &rest[digits + 1..]);
        }
    }
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name..].rfind('.').filter(|dot| *dot > 0) {
        Some(dot) => format!("{}-{number}{}", &path[..name + dot], &path[name + dot..]),
        None => format!("{path}-{number}"),
    }
}

fn write(path: &str, bytes: &[u8]) -> Outcome {
    if path == "-" { write_out(bytes) } else { write_file(path, bytes) }
}

/// Writes a file in one go: what was there stays if there is no room.
pub(super) fn write_file(path: &str, bytes: &[u8]) -> Outcome {
    let failed = |e: std::io::Error| format!("{path}: {}", reason(&e));
    if Path::new(path).is_dir() {
        return Err(format!("{path}: Is a directory"));
    }
    // A link stays one, and leads to the new content.
    if Path::new(path).is_symlink() {
        return std::fs::write(path, bytes).map_err(failed);
    }
    let temporary = format!("{path}.part");
    let written = std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        failed(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes() {
        assert_eq!(split_prefix("png:-"), (Some("png"), "-"));
        assert_eq!(split_prefix("a:b.png"), (None, "a:b.png"));
        assert_eq!(numbered("a.b/out.png", 3), "a.b/out-3.png");
        assert_eq!(numbered("out%03d.png", 3), "out003.png");
        assert_eq!(numbered("100%.png", 1), "100%-1.png");
        assert_eq!(numbered("out", 0), "out-0");
    }
}
