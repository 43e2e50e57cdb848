//! Texts that the owner of the home wrote: prompts, and who kiso is.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Why such a text cannot be used. This is always reported: an owner who wrote a text relies on it.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    #[error("{} is not UTF-8 text (at byte {at}): save it as UTF-8", path.display())]
    NotText { path: PathBuf, at: usize },
    #[error("{} has more than {most} bytes, the most that it may have: shorten it", path.display())]
    TooLarge { path: PathBuf, most: u64 },
    #[error("{} is not a file: it must be a Markdown file", path.display())]
    NotAFile { path: PathBuf },
    #[error("failed to read {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Reads the text at `path`, at most `most` bytes; `None` if it does not exist. Reads one byte more to detect a longer one.
pub fn read_text(path: &Path, most: u64) -> Result<Option<String>, TextError> {
    let path = path.to_owned();
    // Checked before opening: opening a named pipe would block.
    let found = match path.symlink_metadata() {
        // Most homes have none of these texts, and each run reads all of them.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.is_symlink() => fs::metadata(&path),
        found => found,
    };
    match found {
        Err(error) => return Err(TextError::Io { path, error }),
        Ok(found) if !found.is_file() => return Err(TextError::NotAFile { path }),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)) {
        Err(error) => Err(TextError::Io { path, error }),
        Ok(_) if bytes.len() as u64 > most => Err(TextError::TooLarge { path, most }),
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(TextError::NotText { path, at: error.utf8_error().valid_up_to() }),
        },
    }
}
