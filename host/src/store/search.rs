//! Looking through messages, from the newest to the oldest.

use super::sessions::{message, session_name};
use super::{Message, StoreError, View};
use crate::home::SessionName;

impl View<'_> {
    /// Shows the messages before the one with this id (none: the last), newest first, of one session or of all, at most
    /// `most`, until `wants_more` is false. Returns the id of the last one shown if there may be more.
    pub fn look_back(
        &self,
        session: Option<&SessionName>,
        before: Option<i64>,
        most: u32,
        mut wants_more: impl FnMut(SessionName, Message) -> bool,
    ) -> Result<Option<i64>, StoreError> {
        // Two statements: one that fitted both could use the index of neither.
        let of = if session.is_some() { "m.session = (SELECT id FROM sessions WHERE name = ?3) AND" } else { "" };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags, s.name FROM messages m JOIN sessions s ON s.id = m.session
             WHERE {of} m.id < ?1 ORDER BY m.id DESC LIMIT ?2"
        ))?;
        let before = before.unwrap_or(i64::MAX);
        let mut rows = match session {
            Some(session) => query.query((before, most, session.as_str()))?,
            None => query.query((before, most))?,
        };
        let (mut shown, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            let message = message(row)?;
            (shown, last) = (shown + 1, Some(message.id));
            if !wants_more(session_name(row, 6)?, message) {
                return Ok(last);
            }
        }
        Ok(last.filter(|_| shown == most))
    }
}

#[cfg(test)]
mod tests {
    use crate::home::SessionName;
    use crate::store::{MessageRole, Store};

    #[test]
    fn messages_are_shown_from_the_newest_until_there_are_enough() {
        let dir = std::env::temp_dir().join(format!("kiso-search-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        let store = Store::open(&dir.join("store.db")).unwrap();
        let [a, b] = ["a", "b"].map(|name| SessionName::parse(name).unwrap());
        for n in 0..10 {
            let session = if n % 2 == 0 { a.clone() } else { b.clone() };
            let add =
                store.write_blocking(move |tx| tx.add_message(&session, MessageRole::User, &n.to_string(), n, None));
            add.unwrap();
        }
        let look = |session: Option<&SessionName>, before, most, enough: usize| {
            let mut seen = Vec::new();
            let next = store.read_blocking(|view| {
                view.look_back(session, before, most, |_, message| {
                    seen.push(message.text);
                    seen.len() < enough
                })
            });
            (seen.join(""), next.unwrap())
        };
        assert_eq!(look(None, None, 3, 9), ("987".to_owned(), Some(8)), "no more are looked at");
        assert_eq!(look(None, Some(8), 100, 2), ("65".to_owned(), Some(6)), "enough were found");
        assert_eq!(look(Some(&a), Some(8), 100, 9), ("6420".to_owned(), None));
        assert_eq!(look(Some(&SessionName::parse("c").unwrap()), None, 9, 9), (String::new(), None));
        let steps = |sql: &str| -> Vec<String> {
            let plan = |view: &crate::store::View<'_>| {
                let mut plan = view.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let steps = plan.query_map((), |row| row.get("detail"))?;
                Ok(steps.collect::<Result<_, _>>()?)
            };
            store.read_blocking(plan).unwrap()
        };
        let of = "SELECT m.text FROM messages m JOIN sessions s ON s.id = m.session WHERE";
        for rule in ["m.id < 5", "m.session = (SELECT id FROM sessions WHERE name = 'a') AND m.id < 5"] {
            for step in steps(&format!("{of} {rule} ORDER BY m.id DESC LIMIT 3")) {
                assert!(!step.starts_with("SCAN m") && !step.contains("TEMP B-TREE"), "{rule}: {step}");
            }
        }
        store.close();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
