//! Bodies of requests, read from files and standard input while they are sent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// A file without its first bytes.
    File {
        path: PathBuf,
        skip: u64,
    },
    /// Standard input, which can be sent once.
    Input,
}

/// A body. Without pieces, a request has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    pub pieces: Vec<Piece>,
}

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

impl Body {
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self { pieces: vec![Piece::Bytes(bytes)] }
    }

    pub fn file(path: &Path) -> Self {
        Self { pieces: vec![Piece::File { path: path.to_owned(), skip: 0 }] }
    }

    pub fn is_none(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Its bytes, if they are known before it is sent.
    pub fn length(&self) -> io::Result<Option<u64>> {
        let mut all = 0;
        for piece in &self.pieces {
            all += match piece {
                Piece::Bytes(bytes) => bytes.len() as u64,
                Piece::File { path, skip } => path.metadata()?.len().saturating_sub(*skip),
                Piece::Input => return Ok(None),
            };
        }
        Ok(Some(all))
    }

    /// Whether it can be sent a second time.
    pub fn is_repeatable(&self) -> bool {
        !self.pieces.contains(&Piece::Input)
    }

    /// Hands it over part by part until there is no more, or `take` says `false`.
    pub fn read(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        let mut buffer = Vec::new();
        for piece in &self.pieces {
            let mut source: Box<dyn Read> = match piece {
                Piece::Bytes(bytes) => {
                    for part in bytes.chunks(CHUNK) {
                        if !take(part) {
                            return Ok(());
                        }
                    }
                    continue;
                }
                Piece::File { path, skip } => {
                    let mut file = File::open(path)?;
                    if *skip > 0 {
                        file.seek(SeekFrom::Start(*skip))?;
                    }
                    Box::new(file)
                }
                Piece::Input => Box::new(io::stdin().lock()),
            };
            buffer.resize(CHUNK, 0);
            loop {
                let count = source.read(&mut buffer)?;
                if count == 0 {
                    break;
                }
                if !take(&buffer[..count]) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Reads a file, or standard input for `-`, as far as it fits into memory.
pub fn read_whole(path: &str) -> io::Result<Vec<u8>> {
    let max = crate::limits::FILE_IN_MEMORY;
    let source: Box<dyn Read> = match path {
        "-" => Box::new(io::stdin().lock()),
        path => Box::new(File::open(path)?),
    };
    let mut bytes = Vec::new();
    source.take(max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max {
        true => Err(io::Error::other(format!("it has more than {} MiB", max >> 20))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_in_its_order() {
        let file = std::env::temp_dir().join(format!("curl-body-{}", std::process::id()));
        std::fs::write(&file, "0123456789").unwrap();
        let pieces = vec![Piece::Bytes(b"a".to_vec()), Piece::File { path: file.clone(), skip: 7 }];
        let body = Body { pieces };
        let mut all = Vec::new();
        body.read(&mut |part| {
            all.extend_from_slice(part);
            true
        })
        .unwrap();
        assert_eq!((all.as_slice(), body.length().unwrap(), body.is_repeatable()), (&b"a789"[..], Some(4), true));
        std::fs::remove_file(&file).unwrap();
        assert!(body.length().is_err());
        assert_eq!(Body { pieces: vec![Piece::Input] }.length().unwrap(), None);
    }
}
