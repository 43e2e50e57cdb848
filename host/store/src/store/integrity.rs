//! Checks that the file is intact.
//!
//! The checks are:
//!
//! - at every opening: whether it is a database of kiso, in a version that this program knows. Reads a few pages;
//! - before the daemon starts: every page of a small file ([`AT_EACH_START`]), and of a larger one ([`AT_ONCE`]) if the previous
//!   daemon crashed. A log (WAL) that was truncated by a power cut is not damage: SQLite uses it up to the last complete commit;
//! - while the daemon works: every page, and every index compared with its table if the file is not larger than [`THOROUGH`]. Its
//!   log and `/health` report problems, including those that SQLite meets in other reads and writes;
//! - on demand (`kiso doctor`, `kiso backup`, `kiso restore`): every page, and every index compared with its table.

use std::path::Path;

use super::{Store, StoreError, View, connect, leave_log};

/// Maximum size in bytes of a store that is checked before the daemon starts: about two seconds from an SD card. A board that was
/// unplugged should not take minutes to start.
pub const AT_ONCE: u64 = 64 << 20;

/// The same if the previous daemon did not crash: some hundredths of a second.
pub const AT_EACH_START: u64 = 16 << 20;

/// Maximum size in bytes of a store whose indexes are compared with their tables while the daemon works.
pub const THOROUGH: u64 = 256 << 20;

/// Maximum reported problems. One is enough to know that a backup is needed.
const TOLD: usize = 10;

impl View<'_> {
    /// Returns the problems that SQLite finds in the file; empty if it is intact. Reads the whole file.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.problems("integrity_check")
    }

    /// The same without comparing indexes and tables: reads each page once.
    pub fn quick_integrity(&self) -> Result<Vec<String>, StoreError> {
        self.problems("quick_check")
    }

    fn problems(&self, check: &str) -> Result<Vec<String>, StoreError> {
        let mut query = self.conn.prepare(&format!("PRAGMA {check}({TOLD})"))?;
        let found = query.query_map([], |row| row.get::<_, String>(0))?;
        let found = found.collect::<Result<Vec<_>, _>>()?;
        Ok(found
            .into_iter()
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|l| l != "ok")
            .take(TOLD)
            .collect())
    }
}

/// Refuses to create a store, or to fill an empty one, if there are sessions of another store: the loss of that store would
/// otherwise go unnoticed.
pub(super) fn check_not_lost(path: &Path) -> Result<(), StoreError> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(path.with_file_name("sessions")) else { return Ok(()) };
    let is_session = |entry: &std::fs::DirEntry| {
        !entry.file_name().to_string_lossy().starts_with('.') && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    match entries.flatten().filter(is_session).count() {
        0 => Ok(()),
        sessions => Err(StoreError::Lost { path: path.to_path_buf(), sessions }),
    }
}

/// Checks every page of a store that nobody has opened since its process died. Returns false without a check if it is larger than
/// `at_most`. Writes nothing: a damaged file and its log stay unchanged.
pub fn check_unopened(path: &Path, at_most: u64) -> Result<bool, StoreError> {
    let bytes = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        // There is no store yet.
        Err(_) => return Ok(true),
    };
    if bytes > at_most {
        return Ok(false);
    }
    check(path).map_err(|error| error.in_file(path)).map(|()| true)
}

fn check(path: &Path) -> Result<(), StoreError> {
    let conn = connect(path)?;
    conn.pragma_update(None, "query_only", true)?;
    leave_log(&conn, true)?;
    let found = View::new(&conn).quick_integrity()?;
    drop(conn);
    whole(&found)
}

fn whole(found: &[String]) -> Result<(), StoreError> {
    if found.is_empty() { Ok(()) } else { Err(StoreError::corrupt(found.join("; "))) }
}

impl Store {
    /// Checks every page, and also every index and its table if the file is not larger than `thorough`, on a thread where
    /// blocking is allowed; writers do not wait. Problems are remembered ([`Store::damage`]).
    pub async fn check(&self, thorough: u64) -> Result<(), StoreError> {
        let path = self.path().to_path_buf();
        let is_small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= thorough);
        let found = self.read(move |view| if is_small { view.integrity() } else { view.quick_integrity() }).await?;
        whole(&found).map_err(|error| {
            self.0.readers.note_damage(&found.join("; "));
            error.in_file(&path)
        })
    }
}
