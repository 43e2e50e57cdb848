//! What a store has written, as SQLite lays it down in its log: the pages of each commit, the last one marked.

use std::path::Path;

/// Bytes before a page in the log.
const FRAME: usize = 24;

/// Bytes before the first frame.
const HEADER: usize = 32;

/// What stands in the log since it was last begun anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Each is synced before it is answered.
    pub commits: u64,
    pub pages: u64,
    pub bytes: u64,
}

impl Written {
    /// Of the store of this home, while somebody has it open.
    pub(crate) fn of(home: &Path) -> Written {
        let log = std::fs::read(home.join("store.db-wal")).expect("somebody has the store open");
        let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
        if log.len() < HEADER {
            return Written::default();
        }
        let page = word(8) as usize;
        let mut written = Written { commits: 0, pages: 0, bytes: HEADER as u64 };
        // What stands behind the frames of this log is of the one before.
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

    /// What was written after `before`; nothing in between may have begun the log anew.
    pub(crate) fn since(self, before: Written) -> Written {
        let less = |now: u64, then: u64| now.checked_sub(then).expect("the log goes on");
        Written {
            commits: less(self.commits, before.commits),
            pages: less(self.pages, before.pages),
            bytes: less(self.bytes, before.bytes),
        }
    }
}
