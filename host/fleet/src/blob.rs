//! Stores files in pieces, each once, under its digest.
//!
//! ```text
//!  file ─▶ pieces of 256 KiB ─▶ chunk DIGEST, chunk DIGEST, …
//!                    └────────▶ list of their digests ─▶ chunk DIGEST: the blob's name
//! ```
//!
//! A list that is too long for one message is itself split into pieces. The list of those pieces ends with a marker byte.

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

/// Maximum size of a piece in bytes.
const PIECE: usize = 256 << 10;

/// Maximum size of a list in bytes; it must fit into one message.
const MAX_LIST: usize = (16 << 10) * DIGEST;

/// Maximum size of a file in bytes: the capacity of a list of lists.
const MAX_FILE: u64 = (MAX_LIST as u64 / DIGEST as u64).pow(2) * PIECE as u64;

const DIGEST: usize = 32;

/// Marker byte after the last digest of a list of lists.
const OF_LISTS: u8 = 1;

/// SHA-256 of a piece, or of the list of a blob's pieces; the latter is the blob's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobDigest([u8; DIGEST]);

impl BlobDigest {
    #[expect(clippy::expect_used, reason = "SHA-256 has 32 bytes")]
    fn from_bytes(bytes: &[u8]) -> BlobDigest {
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

/// Returns the name of the blob with these pieces; `put` stores a list of at most `max` bytes.
fn named(
    list: Vec<u8>,
    max: usize,
    mut put: impl FnMut(&[u8]) -> Result<BlobDigest, FleetError>,
) -> Result<BlobDigest, FleetError> {
    if list.len() <= max {
        return put(&list);
    }
    let mut lists = Vec::new();
    for part in list.chunks(max) {
        lists.extend(put(part)?.0);
    }
    lists.push(OF_LISTS);
    put(&lists)
}

/// Parses a list: returns its digests, and whether they are digests of lists; `None` if it is not a list.
#[expect(clippy::expect_used, reason = "it has 32 bytes")]
fn listed(list: &[u8]) -> Option<(Vec<BlobDigest>, bool)> {
    let (digests, end) = list.split_at(list.len() - list.len() % DIGEST);
    let of_lists = match end {
        [] => false,
        [OF_LISTS] => true,
        _ => return None,
    };
    let digests = digests.chunks_exact(DIGEST).map(|digest| BlobDigest::try_from(digest).expect("it has 32 bytes"));
    Some((digests.collect(), of_lists))
}

fn parsed(text: &str) -> Option<BlobDigest> {
    BlobDigest::try_from(HEXLOWER.decode(text.as_bytes()).ok()?.as_slice()).ok()
}

/// Pieces in the fleet's stream. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Blobs {
    bus: Bus,
    /// Digests of pieces that are known to be stored.
    known: Arc<Mutex<HashSet<BlobDigest>>>,
}

impl Blobs {
    pub fn new(bus: Bus) -> Blobs {
        Blobs { bus, known: Arc::default() }
    }

    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Stores bytes; returns the blob's name. Blocks the calling thread.
    pub fn put(&self, mut bytes: &[u8]) -> Result<BlobDigest, FleetError> {
        self.put_from(&mut bytes, Path::new("memory"))
    }

    /// Stores a file.
    pub fn put_file(&self, path: &Path) -> Result<BlobDigest, FleetError> {
        let mut file = File::open(path).map_err(|error| FleetError::file(path, error))?;
        self.put_from(&mut file, path)
    }

    /// Stores everything from a reader; `path` is for errors.
    pub fn put_from(&self, from: &mut dyn Read, path: &Path) -> Result<BlobDigest, FleetError> {
        let (mut list, mut piece) = (Vec::new(), Vec::with_capacity(PIECE));
        let mut bytes = 0;
        loop {
            piece.clear();
            let read =
                from.take(PIECE as u64).read_to_end(&mut piece).map_err(|error| FleetError::file(path, error))?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            if bytes > MAX_FILE {
                return Err(FleetError::TooLarge { path: path.to_path_buf() });
            }
            list.extend(self.put_piece(&piece)?.0);
        }
        named(list, MAX_LIST, |list| self.put_piece(list))
    }

    fn put_piece(&self, bytes: &[u8]) -> Result<BlobDigest, FleetError> {
        let digest = BlobDigest::from_bytes(bytes);
        if self.known().contains(&digest) {
            return Ok(digest);
        }
        self.bus.runtime().block_on(self.bus.put_chunk(&digest.to_string(), bytes))?;
        self.known().insert(digest);
        Ok(digest)
    }

    /// Returns the digests of a blob's pieces, in order.
    fn pieces(&self, blob: BlobDigest) -> Result<Vec<BlobDigest>, FleetError> {
        let (digests, of_lists) = self.list(blob)?;
        if !of_lists {
            return Ok(digests);
        }
        let mut pieces = Vec::new();
        for list in digests {
            match self.list(list)? {
                (digests, false) => pieces.extend(digests),
                (_, true) => return Err(FleetError::Damaged { digest: blob }),
            }
        }
        Ok(pieces)
    }

    fn list(&self, name: BlobDigest) -> Result<(Vec<BlobDigest>, bool), FleetError> {
        listed(&self.piece(name)?).ok_or(FleetError::Damaged { digest: name })
    }

    /// Returns a piece, after checking its digest.
    fn piece(&self, digest: BlobDigest) -> Result<Vec<u8>, FleetError> {
        let found = self.bus.runtime().block_on(self.bus.chunk(&digest.to_string()))?;
        let bytes = found.ok_or(FleetError::Missing { digest })?;
        if BlobDigest::from_bytes(&bytes) != digest {
            return Err(FleetError::Damaged { digest });
        }
        self.known().insert(digest);
        Ok(bytes)
    }

    /// Returns the content of a blob of at most `max` bytes.
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

    /// Writes a blob to a file. Pieces that `old`, an earlier version of the file, has at the same position are copied from
    /// there.
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
            if BlobDigest::from_bytes(&piece) != digest {
                piece = self.piece(digest)?;
            }
            to.write_all(&piece).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns whether a file has the content of a blob.
    pub fn is_same(&self, blob: BlobDigest, from: &mut dyn Read) -> io::Result<bool> {
        let (mut list, mut piece) = (Vec::new(), Vec::with_capacity(PIECE));
        loop {
            piece.clear();
            if from.take(PIECE as u64).read_to_end(&mut piece)? == 0 {
                return Ok(
                    named(list, MAX_LIST, |list| Ok(BlobDigest::from_bytes(list))).is_ok_and(|name| name == blob)
                );
            }
            list.extend(BlobDigest::from_bytes(&piece).0);
        }
    }

    /// Returns these blobs with all their pieces.
    pub fn needed(&self, blobs: &HashSet<BlobDigest>) -> Result<HashSet<BlobDigest>, FleetError> {
        let mut needed = blobs.clone();
        for blob in blobs {
            let (digests, of_lists) = self.list(*blob)?;
            if of_lists {
                for list in &digests {
                    needed.extend(self.list(*list)?.0);
                }
            }
            needed.extend(digests);
        }
        Ok(needed)
    }

    /// Returns the pieces that are not needed, with the numbers of their messages. A transaction that is not committed yet may
    /// need them, so they are deleted only if they are still not needed an hour later. Whoever needs one of them from now on
    /// stores it again.
    pub fn spare(&self, needed: &HashSet<BlobDigest>) -> Result<Vec<(BlobDigest, u64)>, FleetError> {
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

    /// Deletes those of the spare pieces that are still not needed; returns their number.
    pub fn forget(&self, mut spare: Vec<(BlobDigest, u64)>, needed: &HashSet<BlobDigest>) -> usize {
        spare.retain(|(digest, _)| !needed.contains(digest));
        for (_, number) in &spare {
            self.bus.runtime().block_on(self.bus.forget_chunk(*number));
        }
        spare.len()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<BlobDigest>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_long_list_is_in_pieces_too() {
        let digests: Vec<BlobDigest> = (0..7_u8).map(|byte| BlobDigest([byte; DIGEST])).collect();
        let list: Vec<u8> = digests.iter().flat_map(|digest| digest.0).collect();
        for (max, messages) in [(7 * DIGEST, 1), (3 * DIGEST, 4)] {
            let mut kept = HashMap::new();
            let name = named(list.clone(), max, |bytes| {
                let digest = BlobDigest::from_bytes(bytes);
                kept.insert(digest, bytes.to_vec());
                Ok(digest)
            })
            .unwrap();
            assert_eq!(kept.len(), messages);
            let (found, of_lists) = listed(&kept[&name]).unwrap();
            assert_eq!(of_lists, messages > 1);
            let below = |list: &BlobDigest| {
                let (digests, of_lists) = listed(&kept[list]).unwrap();
                assert!(!of_lists);
                digests
            };
            let found = if of_lists { found.iter().flat_map(below).collect() } else { found };
            assert_eq!(found, digests);
        }
        assert_eq!(listed(&[OF_LISTS + 1]), None);
        assert_eq!(listed(&[OF_LISTS; 3]), None);
        assert_eq!(listed(&[]), Some((Vec::new(), false)), "an empty file");
    }
}
