//! Writes of a store, read from SQLite's write-ahead log: the pages of each commit, the last one marked.

use std::path::Path;

/// Size of the header of a frame, before its page.
const FRAME: usize = 24;

/// Size of the header of the log.
const HEADER: usize = 32;

/// The content of the log since its last restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Commits; each is synced before it is reported.
    pub commits: u64,
    pub pages: u64,
    pub bytes: u64,
}

impl Written {
    /// Reads the log of this home's store, which must be open in some process.
    pub(crate) fn read(home: &Path) -> Written {
        let log = std::fs::read(home.join("store.db-wal")).expect("somebody has the store open");
        let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
        if log.len() < HEADER {
            return Written::default();
        }
        let page = word(8) as usize;
        let mut written = Written { commits: 0, pages: 0, bytes: HEADER as u64 };
        // Frames with another salt are left from the previous log.
        for frame in (HEADER..).step_by(FRAME + page) {
            if frame + FRAME + page > log.len() || log[frame + 8..frame + 16] != log[16..24] {
                break;
            }
            written.pages += 1;
            written.bytes += (FRAME + page) as u64;
            written.commits += u64::from(word(frame + 4) > 0);
        }
        written
    }

    /// The writes after `before`; the log must not have restarted in between.
    pub(crate) fn since(self, before: Written) -> Written {
        let less = |now: u64, then: u64| now.checked_sub(then).expect("the log goes on");
        Written {
            commits: less(self.commits, before.commits),
            pages: less(self.pages, before.pages),
            bytes: less(self.bytes, before.bytes),
        }
    }
}
