//! Files in pieces, each kept once under its digest.
//!
//! ```text
//!  file ─▶ pieces of 256 KiB ─▶ chunk DIGEST, chunk DIGEST, …
//!                    └────────▶ list of their digests ─▶ chunk DIGEST: the blob's name
//! ```

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::FleetError;
use super::bus::Bus;

/// Bytes of a piece at most.
const PIECE: usize = 256 << 10;

/// Digests of a list at most: as many as are one message. A file has 4 GiB at most.
const MAX_PIECES: usize = 16 << 10;

const DIGEST: usize = 32;

/// SHA-256 of a piece, or of the list of a blob's pieces: the blob's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobDigest([u8; DIGEST]);

impl BlobDigest {
    fn of(bytes: &[u8]) -> BlobDigest {
        let digest = digest(&SHA256, bytes);
        BlobDigest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    pub fn as_bytes(&self) -> &[u8; DIGEST] {
        &self.0
    }
}

impl TryFrom<&[u8]> for BlobDigest {
    type Error = std::array::TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<BlobDigest, Self::Error> {
        Ok(BlobDigest(bytes.try_into()?))
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for BlobDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlobDigest, D::Error> {
        let text = String::deserialize(deserializer)?;
        parsed(&text).ok_or_else(|| D::Error::custom("no digest"))
    }
}

fn parsed(text: &str) -> Option<BlobDigest> {
    BlobDigest::try_from(HEXLOWER.decode(text.as_bytes()).ok()?.as_slice()).ok()
}

/// Pieces in the fleet's stream. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs {
    bus: Bus,
    /// Those that are known to be there.
    known: Arc<Mutex<HashSet<BlobDigest>>>,
}

impl Blobs {
    pub fn new(bus: Bus) -> Blobs {
        Blobs { bus, known: Arc::default() }
    }

    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Keeps bytes; the blob's name. Waits on the caller's thread.
    pub fn put(&self, mut bytes: &[u8]) -> Result<BlobDigest, FleetError> {
        self.put_from(&mut bytes, Path::new("memory"))
    }

    /// Keeps a file.
    pub fn put_file(&self, path: &Path) -> Result<BlobDigest, FleetError> {
        let mut file = File::open(path).map_err(|error| FleetError::file(path, error))?;
        self.put_from(&mut file, path)
    }

    /// Keeps what can be read; `path` is for errors.
    pub fn put_from(&self, from: &mut dyn Read, path: &Path) -> Result<BlobDigest, FleetError> {
        let (mut list, mut piece) = (Vec::new(), Vec::with_capacity(PIECE));
        loop {
            piece.clear();
            let read =
                from.take(PIECE as u64).read_to_end(&mut piece).map_err(|error| FleetError::file(path, error))?;
            if read == 0 {
                break;
            }
            if list.len() >= MAX_PIECES * DIGEST {
                return Err(FleetError::TooLarge { path: path.to_path_buf() });
            }
            list.extend(self.put_piece(&piece)?.0);
        }
        self.put_piece(&list)
    }

    fn put_piece(&self, bytes: &[u8]) -> Result<BlobDigest, FleetError> {
        let digest = BlobDigest::of(bytes);
        if self.known().contains(&digest) {
            return Ok(digest);
        }
        self.bus.runtime().block_on(self.bus.put_chunk(&digest.to_string(), bytes))?;
        self.known().insert(digest);
        Ok(digest)
    }

    /// The pieces of a blob, in order.
    pub fn pieces(&self, blob: BlobDigest) -> Result<Vec<BlobDigest>, FleetError> {
        let list = self.piece(blob)?;
        if list.len() % DIGEST != 0 {
            return Err(FleetError::Damaged { digest: blob });
        }
        Ok(list.chunks_exact(DIGEST).map(|digest| BlobDigest::try_from(digest).expect("it has 32 bytes")).collect())
    }

    /// A piece, which is what its digest says.
    fn piece(&self, digest: BlobDigest) -> Result<Vec<u8>, FleetError> {
        let found = self.bus.runtime().block_on(self.bus.chunk(&digest.to_string()))?;
        let bytes = found.ok_or(FleetError::Missing { digest })?;
        if BlobDigest::of(&bytes) != digest {
            return Err(FleetError::Damaged { digest });
        }
        self.known().insert(digest);
        Ok(bytes)
    }

    /// A blob of at most `max` bytes, whole.
    pub fn get(&self, blob: BlobDigest, max: usize) -> Result<Vec<u8>, FleetError> {
        let mut bytes = Vec::new();
        for piece in self.pieces(blob)? {
            bytes.extend(self.piece(piece)?);
            if bytes.len() > max {
                return Err(FleetError::Damaged { digest: blob });
            }
        }
        Ok(bytes)
    }

    /// Writes a blob. Pieces that `old` has at their place, of an earlier state of the file, are taken from there.
    pub fn write(
        &self,
        blob: BlobDigest,
        to: &mut dyn Write,
        old: Option<File>,
        path: &Path,
    ) -> Result<(), FleetError> {
        let failed = |error: io::Error| FleetError::file(path, error);
        let (mut old, mut piece) = (old, Vec::with_capacity(PIECE));
        for digest in self.pieces(blob)? {
            piece.clear();
            if let Some(file) = &mut old {
                file.take(PIECE as u64).read_to_end(&mut piece).map_err(failed)?;
            }
            if BlobDigest::of(&piece) != digest {
                piece = self.piece(digest)?;
            }
            to.write_all(&piece).map_err(failed)?;
        }
        Ok(())
    }

    /// Whether a file is what the blob says.
    pub fn is_same(&self, blob: BlobDigest, from: &mut dyn Read) -> io::Result<bool> {
        let (mut list, mut piece) = (Vec::new(), Vec::with_capacity(PIECE));
        loop {
            piece.clear();
            if from.take(PIECE as u64).read_to_end(&mut piece)? == 0 {
                return Ok(BlobDigest::of(&list) == blob);
            }
            list.extend(BlobDigest::of(&piece).0);
        }
    }

    /// The pieces that none of these blobs needs, with the numbers of their messages. They may be needed by what was not committed
    /// yet, so they are forgotten only when none needs them an hour later; whoever needs one from now on keeps it anew.
    pub fn spare(&self, blobs: &HashSet<BlobDigest>) -> Result<Vec<(BlobDigest, u64)>, FleetError> {
        let needed = self.needed(blobs)?;
        let mut spare = Vec::new();
        for text in self.bus.runtime().block_on(self.bus.chunk_digests())? {
            let Some(digest) = parsed(&text).filter(|digest| !needed.contains(digest)) else { continue };
            self.known().remove(&digest);
            if let Some(number) = self.bus.runtime().block_on(self.bus.chunk_number(&text))? {
                spare.push((digest, number));
            }
        }
        Ok(spare)
    }

    /// Forgets those of the spare pieces that these blobs do not need either; how many.
    pub fn forget(&self, spare: Vec<(BlobDigest, u64)>, blobs: &HashSet<BlobDigest>) -> Result<usize, FleetError> {
        let needed = self.needed(blobs)?;
        let spare: Vec<_> = spare.into_iter().filter(|(digest, _)| !needed.contains(digest)).collect();
        for (_, number) in &spare {
            self.bus.runtime().block_on(self.bus.forget_chunk(*number));
        }
        Ok(spare.len())
    }

    /// These blobs with all their pieces.
    fn needed(&self, blobs: &HashSet<BlobDigest>) -> Result<HashSet<BlobDigest>, FleetError> {
        let mut needed = blobs.clone();
        for blob in blobs {
            needed.extend(self.pieces(*blob)?);
        }
        Ok(needed)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<BlobDigest>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
