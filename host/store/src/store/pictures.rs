//! A session's pictures in the form that models see. If there are too many, the oldest are deleted; a prompt mentions deleted
//! ones.

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum bytes of a picture.
pub const MAX_PICTURE_BYTES: usize = 1 << 20;

/// Maximum pictures of a session: more than any prompt contains.
pub const MAX_KEPT_PICTURES: u32 = 64;

/// Maximum bytes of a description.
const MAX_DESCRIBED: usize = 8_000;

/// A stored picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPicture {
    pub content: Vec<u8>,
    /// Its description.
    pub described: Option<String>,
}

impl View<'_> {
    /// Returns the picture with this digest; `None` if the session does not have it, or no longer.
    pub fn picture(&self, session: &SessionName, digest: &str) -> Result<Option<KeptPicture>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT content, described FROM pictures
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND digest = ?2",
        )?;
        let kept = |row: &rusqlite::Row<'_>| Ok(KeptPicture { content: row.get(0)?, described: row.get(1)? });
        Ok(query.query_row((session.as_str(), digest), kept).optional()?)
    }
}

impl Tx<'_> {
    /// Stores a picture of at most [`MAX_PICTURE_BYTES`]. A known one becomes the newest.
    pub fn keep_picture(
        &self,
        session: &SessionName,
        digest: &str,
        content: &[u8],
        at_ms: i64,
    ) -> Result<(), StoreError> {
        if content.len() > MAX_PICTURE_BYTES {
            let what = "the picture has too many bytes";
            return Err(StoreError::Quota { what, max: MAX_PICTURE_BYTES as u64 });
        }
        let session = self.ensure_session(session, at_ms)?;
        let mut newest = self.conn.prepare_cached(
            "UPDATE pictures SET num = (SELECT max(num) + 1 FROM pictures) WHERE session = ?1 AND digest = ?2",
        )?;
        if newest.execute((session, digest))? == 0 {
            let insert = "INSERT INTO pictures (session, digest, content) VALUES (?1, ?2, ?3)";
            self.conn.prepare_cached(insert)?.execute((session, digest, content))?;
            let make_room = "DELETE FROM pictures WHERE session = ?1
                AND num NOT IN (SELECT num FROM pictures WHERE session = ?1 ORDER BY num DESC LIMIT ?2)";
            self.conn.prepare_cached(make_room)?.execute((session, MAX_KEPT_PICTURES))?;
        }
        Ok(())
    }

    /// Stores a model's description of a picture, for models that do not get pictures.
    pub fn describe_picture(&self, session: &SessionName, digest: &str, words: &str) -> Result<(), StoreError> {
        let words = &words[..words.floor_char_boundary(MAX_DESCRIBED)];
        let mut update = self.conn.prepare_cached(
            "UPDATE pictures SET described = ?3 WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND digest = ?2",
        )?;
        update.execute((session.as_str(), digest, words))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn the_oldest_go_and_one_that_comes_again_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let session = SessionName::parse("a").unwrap();
        let of = session.clone();
        store
            .write_blocking(move |tx| {
                for n in 0..MAX_KEPT_PICTURES {
                    tx.keep_picture(&of, &n.to_string(), &[n as u8], 1)?;
                }
                tx.keep_picture(&of, "0", &[0], 1)?;
                tx.keep_picture(&of, "more", b"more", 1)?;
                tx.describe_picture(&of, "more", "a cat")?;
                assert!(tx.keep_picture(&of, "large", &vec![0; MAX_PICTURE_BYTES + 1], 1).is_err());
                Ok(())
            })
            .unwrap();
        let of = session.clone();
        let kept = store.read_blocking(move |view| {
            Ok(["0", "1", "2", "more"].map(|digest| view.picture(&of, digest).unwrap().map(|kept| kept.described)))
        });
        assert_eq!(kept.unwrap(), [Some(None), None, Some(None), Some(Some("a cat".to_owned()))]);
        store.write_blocking(move |tx| tx.delete_session(&session)).unwrap();
        store.close();
    }
}
