//! The log of a fleet: its messages, and how they are appended and read.
//!
//! Each message contains the epoch of its owner, and the number of the commit that it is a part of. A new owner first appends its
//! epoch; from then on, no message of another member can be appended.
//!
//! ```text
//!  … │ commit 7 of epoch 3, part 1/2 │ part 2/2 │ epoch 4 │ commit 1 of epoch 4, part 1/1 │ base │ commit 2 …
//! ```

use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use tokio::time::Instant;

use super::FleetError;
use super::blob::{BlobDigest, Blobs};
use super::bus::{AppendError, Bus};
use super::lease::Lease;
use kiso_store::store::{CommitLog, CommittedPages};

/// Maximum size of a message in bytes; the server's default limit is 1 MiB.
const PART: usize = 512 << 10;

/// Maximum size of a commit in bytes for reading.
const MAX_COMMIT: u64 = 2 << 30;

/// Size in bytes of the log at which a copy of the whole store replaces it.
const BASE_EVERY: u64 = 64 << 20;

const FORM: u8 = 1;
const HEADER: usize = 26;

/// Header of a message in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    pub kind: RecordKind,
    pub epoch: u64,
    /// Number of the commit, counted from 1 in each epoch.
    pub number: u64,
    pub part: u32,
    pub parts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A new owner starts.
    Epoch,
    /// A part of a commit.
    Commit,
    /// A copy of the whole store, under its digest: earlier messages are no longer needed.
    Base,
}

impl RecordHeader {
    fn record(&self, body: &[u8]) -> Vec<u8> {
        let kind = match self.kind {
            RecordKind::Epoch => 0,
            RecordKind::Commit => 1,
            RecordKind::Base => 2,
        };
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend([FORM, kind]);
        bytes.extend(self.epoch.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.part.to_le_bytes());
        bytes.extend(self.parts.to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[expect(clippy::expect_used, reason = "it has eight bytes; it has four bytes")]
    fn parse(bytes: &[u8]) -> Option<(RecordHeader, &[u8])> {
        let (header, body) = bytes.split_at_checked(HEADER)?;
        let kind = match header[..2] {
            [FORM, 0] => RecordKind::Epoch,
            [FORM, 1] => RecordKind::Commit,
            [FORM, 2] => RecordKind::Base,
            _ => return None,
        };
        let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("it has eight bytes"));
        let short = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("it has four bytes"));
        let header = RecordHeader { kind, epoch: long(2), number: long(10), part: short(18), parts: short(22) };
        Some((header, body))
    }
}

/// Encodes a commit.
#[expect(clippy::expect_used, reason = "a vector takes all bytes")]
fn encode(commit: &CommittedPages) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let written: std::io::Result<()> = (|| {
        encoder.write_all(&commit.page_bytes.to_le_bytes())?;
        encoder.write_all(&commit.pages.to_le_bytes())?;
        for (number, page) in &commit.changed {
            encoder.write_all(&number.to_le_bytes())?;
            encoder.write_all(page)?;
        }
        Ok(())
    })();
    written.and_then(|()| encoder.finish()).expect("a vector takes all bytes")
}

fn decode(bytes: &[u8]) -> Option<CommittedPages> {
    let mut plain = Vec::new();
    DeflateDecoder::new(bytes).take(MAX_COMMIT).read_to_end(&mut plain).ok()?;
    let short = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?));
    let (page_bytes, pages) = (short(&plain)?, short(plain.get(4..)?)?);
    if !page_bytes.is_power_of_two() || !(512..=64 << 10).contains(&page_bytes) {
        return None;
    }
    let frames = plain.get(8..)?.chunks_exact(4 + page_bytes as usize);
    if !frames.remainder().is_empty() {
        return None;
    }
    let changed = frames.map(|frame| {
        let number = short(frame).filter(|number| (1..=pages).contains(number))?;
        Some((number, frame[4..].to_vec()))
    });
    Some(CommittedPages { page_bytes, pages, changed: changed.collect::<Option<_>>()? })
}

/// A change that was read from the log.
#[derive(Debug, PartialEq, Eq)]
pub enum LogChange {
    Commit(CommittedPages),
    Base(BlobDigest),
}

/// Reads the log, message by message.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    pub epoch: u64,
    /// Number of the last complete commit.
    pub number: u64,
    /// The received parts of the next commit.
    begun: Vec<u8>,
    parts: u32,
}

impl Replay {
    /// Starts after a base with this epoch and commit.
    pub fn after(epoch: u64, number: u64) -> Replay {
        Replay { epoch, number, ..Replay::default() }
    }

    /// Processes the next message; returns `None` if it completes nothing.
    pub fn take(&mut self, plain: &[u8]) -> Result<Option<LogChange>, FleetError> {
        let broken = || FleetError::Log("a message does not follow the one before it");
        let (header, body) = RecordHeader::parse(plain).ok_or(FleetError::Log("a message is of another form"))?;
        match header.kind {
            RecordKind::Epoch if header.epoch > self.epoch => {
                // The incomplete commit of the previous owner was never confirmed.
                *self = Replay::after(header.epoch, 0);
                Ok(None)
            }
            RecordKind::Base if header.epoch == self.epoch && header.number == self.number && self.parts == 0 => {
                Ok(Some(LogChange::Base(BlobDigest::try_from(body).map_err(|_| broken())?)))
            }
            RecordKind::Commit if header.epoch == self.epoch => {
                let follows = (header.number, header.part) == (self.number + 1, self.parts);
                if !follows || header.part >= header.parts {
                    return Err(broken());
                }
                self.begun.extend(body);
                self.parts += 1;
                if self.parts < header.parts {
                    return Ok(None);
                }
                self.number += 1;
                self.parts = 0;
                let commit = decode(&std::mem::take(&mut self.begun)).ok_or(FleetError::Log("a commit is damaged"))?;
                Ok(Some(LogChange::Commit(commit)))
            }
            _ => Err(broken()),
        }
    }
}

/// Position of the log and of its base, as recorded in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Base {
    /// The log continues after the message with this number.
    pub sequence: u64,
    pub store: BlobDigest,
    pub epoch: u64,
    pub number: u64,
}

impl Base {
    const KEY: &'static str = "base";

    /// Returns the value with the revision that a change must name; 0 if the fleet has not started.
    pub async fn read(bus: &Bus) -> Result<(Option<Base>, u64), FleetError> {
        let Some(found) = bus.value(Base::KEY).await? else { return Ok((None, 0)) };
        let base = serde_json::from_slice(&found.value);
        Ok((Some(base.map_err(|_| FleetError::Log("its base is of another form"))?), found.revision))
    }
}

/// The log, as its owner writes it.
pub struct OwnedLog {
    bus: Bus,
    blobs: Blobs,
    lease: Lease,
    epoch: u64,
    number: u64,
    /// Number of the log's last message.
    end: u64,
    /// Revision that a change of [`Base::KEY`] must name, so that a former owner cannot replace a newer base by an older one.
    base: u64,
    since_base: u64,
}

impl std::fmt::Debug for OwnedLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedLog").field("epoch", &self.epoch).field("end", &self.end).finish_non_exhaustive()
    }
}

/// Appends the start of an owner's epoch. If another member has appended a message in the meantime, the caller must read it
/// before it retries.
pub async fn begin_epoch(bus: &Bus, epoch: u64, after: u64, deadline: Instant) -> Result<u64, AppendError> {
    let header = RecordHeader { kind: RecordKind::Epoch, epoch, number: 0, part: 0, parts: 1 };
    bus.append(&header.record(&[]), after, &format!("epoch-{epoch}"), deadline).await
}

impl OwnedLog {
    /// Creates the log of an owner whose epoch is the last message, at `end`. `base` is the revision of the value [`Base::KEY`],
    /// 0 if there is none.
    pub fn new(bus: Bus, blobs: Blobs, lease: Lease, end: u64, base: u64) -> OwnedLog {
        let epoch = lease.epoch();
        OwnedLog { bus, blobs, lease, epoch, number: 0, end, base, since_base: 0 }
    }

    /// Replaces the whole log by the copy of the store in this file.
    pub fn rebase(&mut self, copy: &Path) -> Result<(), FleetError> {
        let store = self.blobs.put_file(copy)?;
        let header = RecordHeader { kind: RecordKind::Base, epoch: self.epoch, number: self.number, part: 0, parts: 1 };
        let id = format!("base-{}-{}-{}", self.epoch, self.number, self.end);
        self.publish(&header.record(store.as_bytes()), &id).map_err(FleetError::Append)?;
        let base = Base { sequence: self.end, store, epoch: self.epoch, number: self.number };
        let value = kiso_base::json::bytes(&base);
        let (bus, before) = (self.bus.clone(), self.base);
        // Deletes messages only after their base was published.
        self.base = self.bus.runtime().block_on(async move {
            let revision = bus.swap(Base::KEY, &value, before).await?.ok_or(FleetError::Superseded)?;
            bus.forget_log(base.sequence).await?;
            Ok::<_, FleetError>(revision)
        })?;
        self.since_base = 0;
        Ok(())
    }

    fn publish(&mut self, record: &[u8], id: &str) -> Result<(), AppendError> {
        let deadline = self.lease.deadline();
        self.end = self.bus.runtime().block_on(self.bus.append(record, self.end, id, deadline))?;
        self.since_base += record.len() as u64;
        Ok(())
    }
}

impl CommitLog for OwnedLog {
    fn append(&mut self, commit: &CommittedPages) -> Result<bool, String> {
        let body = encode(commit);
        let parts: Vec<_> = body.chunks(PART).collect();
        let count = u32::try_from(parts.len()).map_err(|_| "the commit is too large".to_owned())?;
        for (part, body) in (0..).zip(parts) {
            let (epoch, number) = (self.epoch, self.number + 1);
            let header = RecordHeader { kind: RecordKind::Commit, epoch, number, part, parts: count };
            let published = self.publish(&header.record(body), &format!("{epoch}-{number}-{part}"));
            published.map_err(|error| self.lease.lose(error.to_string()))?;
        }
        self.number += 1;
        Ok(self.since_base >= BASE_EVERY)
    }

    fn replace(&mut self, copy: &Path) -> Result<(), String> {
        self.rebase(copy).map_err(|error| self.lease.lose(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn commit(pages: u32, changed: &[(u32, u8)]) -> CommittedPages {
        let changed: BTreeMap<_, _> = changed.iter().map(|(number, byte)| (*number, vec![*byte; 1_024])).collect();
        CommittedPages { page_bytes: 1_024, pages, changed }
    }

    fn record(epoch: u64, number: u64, part: u32, parts: u32, body: &[u8]) -> Vec<u8> {
        RecordHeader { kind: RecordKind::Commit, epoch, number, part, parts }.record(body)
    }

    fn epoch(epoch: u64) -> Vec<u8> {
        RecordHeader { kind: RecordKind::Epoch, epoch, number: 0, part: 0, parts: 1 }.record(&[])
    }

    #[test]
    fn a_commit_is_read_as_it_was_written() {
        let written = commit(9, &[(1, 7), (9, 8)]);
        assert_eq!(decode(&encode(&written)), Some(written));
        assert_eq!(decode(&encode(&commit(1, &[(2, 0)]))), None, "a page behind the end");
        assert_eq!(decode(b"damaged"), None);
    }

    #[test]
    fn commits_come_in_order_and_whole_ones_only() {
        let (first, second) = (encode(&commit(2, &[(1, 1)])), encode(&commit(2, &[(2, 2)])));
        let mut replay = Replay::default();
        assert_eq!(replay.take(&epoch(1)).unwrap(), None);
        let (begin, rest) = first.split_at(5);
        assert_eq!(replay.take(&record(1, 1, 0, 2, begin)).unwrap(), None);
        assert_eq!(replay.take(&record(1, 1, 1, 2, rest)).unwrap(), Some(LogChange::Commit(commit(2, &[(1, 1)]))));
        // The next owner found half of a commit.
        assert_eq!(replay.take(&record(1, 2, 0, 2, &second[..3])).unwrap(), None);
        assert_eq!(replay.take(&epoch(2)).unwrap(), None);
        assert_eq!(replay.take(&record(2, 1, 0, 1, &second)).unwrap(), Some(LogChange::Commit(commit(2, &[(2, 2)]))));
        assert_eq!((replay.epoch, replay.number), (2, 1));
    }

    #[test]
    fn what_does_not_follow_is_an_error() {
        let body = encode(&commit(1, &[(1, 1)]));
        let at = Replay::after(3, 4);
        for (what, message) in [
            ("an older epoch", record(2, 5, 0, 1, &body)),
            ("a newer epoch without its beginning", record(4, 1, 0, 1, &body)),
            ("the same epoch again", epoch(3)),
            ("the same commit again", record(3, 4, 0, 1, &body)),
            ("a commit too far", record(3, 6, 0, 1, &body)),
            ("a part too far", record(3, 5, 1, 2, &body)),
            ("a part that there is not", record(3, 5, 0, 0, &body)),
            ("nothing", Vec::new()),
            ("another form", vec![9; 40]),
        ] {
            assert!(at.clone().take(&message).is_err(), "{what}");
        }
        assert!(at.clone().take(&record(3, 5, 0, 1, &body)).unwrap().is_some());
    }
}
