//! Files of workspaces that people may open with a link, "/pub/ID". Everybody who knows the id may see the file.

use rusqlite::{OptionalExtension, Row};

use super::id::secret_id;
use super::sessions::session_name;
use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;

/// Maximum published files of a session (`publish` in `wit/since_v0_1/skill.wit`).
pub const MAX_PUBLISHED: u64 = 1_000;

/// A published file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedFile {
    pub id: String,
    pub session: SessionName,
    /// Relative to `/work`, such as "pub/rain.svg".
    pub path: String,
    pub media_type: String,
    pub title: Option<String>,
    /// When it was first published.
    pub at_ms: i64,
    /// Its label when it was last published.
    pub label: Label,
}

/// A file of a session's workspace to publish.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    /// Relative to `/work`, and validated by the caller.
    pub path: &'a str,
    pub media_type: &'a str,
    /// `None` keeps the existing title.
    pub title: Option<&'a str>,
    pub label: &'a Label,
}

const COLUMNS: &str = "p.id, s.name, p.path, p.media_type, p.title, p.at_ms, p.label \
    FROM published p JOIN sessions s ON s.id = p.session";

impl View<'_> {
    /// Returns the published file with this id.
    pub fn published(&self, id: &str) -> Result<Option<PublishedFile>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE p.id = ?1"))?;
        Ok(query.query_row([id], published).optional()?)
    }

    /// Returns the published files of a session, oldest first, at most [`MAX_PUBLISHED`].
    pub fn published_of(&self, session: &SessionName) -> Result<Vec<PublishedFile>, StoreError> {
        let mut query =
            self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE s.name = ?1 ORDER BY p.at_ms, p.path"))?;
        let rows = query.query_map([session.as_str()], published)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Publishes a file and returns its id. The same path of a session keeps its id.
    pub fn publish(&self, session: &SessionName, file: Publication<'_>, at_ms: i64) -> Result<String, StoreError> {
        let Publication { path, media_type, title, label } = file;
        let label = kiso_base::json::text(label);
        let session = self.ensure_session(session, at_ms)?;
        let mut update = self.conn.prepare_cached(
            "UPDATE published SET media_type = ?3, title = coalesce(?4, title), label = ?5
             WHERE session = ?1 AND path = ?2 RETURNING id",
        )?;
        let known = update.query_map((session, path, media_type, title, &label), |row| row.get(0))?;
        if let Some(id) = known.collect::<Result<Vec<String>, _>>()?.pop() {
            return Ok(id);
        }
        let mut query = self.conn.prepare_cached("SELECT count(*) FROM published WHERE session = ?1")?;
        if query.query_row([session], |row| row.get::<_, u32>(0).map(u64::from))? >= MAX_PUBLISHED {
            return Err(StoreError::Quota { what: "the session has too many published files", max: MAX_PUBLISHED });
        }
        let id = secret_id()?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO published (id, session, path, media_type, title, at_ms, label)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        insert.execute((&id, session, path, media_type, title, at_ms, &label))?;
        Ok(id)
    }
}

fn published(row: &Row<'_>) -> rusqlite::Result<PublishedFile> {
    Ok(PublishedFile {
        id: row.get(0)?,
        session: session_name(row, 1)?,
        path: row.get(2)?,
        media_type: row.get(3)?,
        title: row.get(4)?,
        at_ms: row.get(5)?,
        // Older rows have no label: their files count as the user's own.
        label: row.get::<_, Option<String>>(6)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    })
}
