//! Prompts of a run's model calls, stored in shared pieces.
//!
//! Most of a prompt is equal to the prompt before it: the role, the skills, the conversation. So it is split into pieces at
//! certain lines, and a known piece is stored by its number. The fence of text from outside is different in each run and occurs
//! in many lines; it is removed from the pieces and inserted again when the prompt is read.

mod pieces;

use ring::digest::{SHA256, digest};
use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};

use super::{RunId, StoreError, Tx, View};

/// The prompt of a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The number of the event with the answer.
    pub seq: u32,
    /// Its index among the prompts of that event, from 0.
    pub nth: u32,
    pub role: String,
    pub text: String,
}

/// A part of a prompt in the table's list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    /// The number of a piece.
    Piece(i64),
    Text(String),
}

/// Bytes of a digest that are stored.
const DIGEST: usize = 16;

impl View<'_> {
    /// Returns all prompts of a run, in order.
    pub fn prompts(&self, run: &RunId) -> Result<Vec<Prompt>, StoreError> {
        self.prompts_between(run, 0, u32::MAX)
    }

    /// Returns the prompts of the events from `first` to `last`.
    pub fn prompts_between(&self, run: &RunId, first: u32, last: u32) -> Result<Vec<Prompt>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT seq, nth, role, text, pieces FROM prompts
             WHERE run = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq, nth",
        )?;
        let rows = query.query_map((self.num(run)?, first, last), |row| {
            let prompt = Prompt { seq: row.get(0)?, nth: row.get(1)?, role: row.get(2)?, text: row.get(3)? };
            Ok((prompt, row.get::<_, Option<String>>(4)?))
        })?;
        let mut prompts = Vec::new();
        for row in rows {
            let (mut prompt, pieces) = row?;
            if let Some(pieces) = pieces {
                prompt.text = self.joined(&pieces)?;
            }
            prompts.push(prompt);
        }
        Ok(prompts)
    }

    fn joined(&self, pieces: &str) -> Result<String, StoreError> {
        let parts: Vec<Part> = serde_json::from_str(pieces)
            .map_err(|error| StoreError::corrupt(format!("the pieces of a prompt: {error}")))?;
        let mut query = self.conn.prepare_cached("SELECT text FROM prompt_pieces WHERE id = ?1")?;
        let mut parts = parts.into_iter();
        let fence = match parts.next() {
            Some(Part::Text(fence)) => fence,
            _ => return Err(StoreError::corrupt("the pieces of a prompt do not begin with its fence")),
        };
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(part) => text.push_str(&part),
                Part::Piece(id) => text.push_str(&query.query_row([id], |row| row.get::<_, String>(0))?),
            }
        }
        Ok(pieces::fenced(text, &fence))
    }
}

impl Tx<'_> {
    /// Stores a prompt, replacing one at the same place.
    pub fn put_prompt(&self, run: &RunId, prompt: &Prompt) -> Result<(), StoreError> {
        let num = self.make_place(run, prompt)?;
        self.put(num, prompt, &prompt.text, None)
    }

    /// [`Tx::put_prompt`] in pieces, each of which is stored once. Not for sealed prompts, which are never equal.
    pub fn put_prompt_in_pieces(&self, run: &RunId, prompt: &Prompt) -> Result<(), StoreError> {
        let num = self.make_place(run, prompt)?;
        let (text, fence) = pieces::unfenced(&prompt.text);
        let mut parts = Vec::new();
        for piece in pieces::cut(&text) {
            if pieces::is_worth_a_row(piece) {
                parts.push(Part::Piece(self.piece(piece)?));
            } else if let Some(Part::Text(before)) = parts.last_mut() {
                before.push_str(piece);
            } else {
                parts.push(Part::Text(piece.to_owned()));
            }
        }
        parts.insert(0, Part::Text(fence));
        let pieces = kiso_base::json::text(&parts);
        self.put(num, prompt, "", Some(&pieces))
    }

    /// Deletes the prompt at the same place; returns its run's row. Called first: it deletes pieces, and the new prompt may have
    /// the same ones.
    fn make_place(&self, run: &RunId, prompt: &Prompt) -> Result<i64, StoreError> {
        let num = self.num(run)?;
        let mut delete = self.conn.prepare_cached("DELETE FROM prompts WHERE run = ?1 AND seq = ?2 AND nth = ?3")?;
        delete.execute((num, prompt.seq, prompt.nth))?;
        Ok(num)
    }

    fn put(&self, num: i64, prompt: &Prompt, text: &str, pieces: Option<&str>) -> Result<(), StoreError> {
        let Prompt { seq, nth, role, .. } = prompt;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO prompts (run, seq, nth, role, text, pieces) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        insert.execute((num, seq, nth, role, text, pieces))?;
        Ok(())
    }

    /// Returns the number of a piece, which is stored if it is new.
    fn piece(&self, text: &str) -> Result<i64, StoreError> {
        let digest = digest(&SHA256, text.as_bytes());
        let digest = &digest.as_ref()[..DIGEST];
        let mut query = self.conn.prepare_cached("SELECT id FROM prompt_pieces WHERE digest = ?1")?;
        if let Some(id) = query.query_row([digest], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        let mut insert = self.conn.prepare_cached("INSERT INTO prompt_pieces (digest, text) VALUES (?1, ?2)")?;
        Ok(insert.insert((digest, text))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RunStatus, Store};
    use kiso_base::home::SessionName;

    fn session(name: &str) -> SessionName {
        SessionName::parse(name).unwrap()
    }

    /// A prompt like those of two sessions: the role and the skills are equal, the fence and the message are not.
    fn prompt(seq: u32, fence: &str, message: &str) -> Prompt {
        let skills: String =
            (0..60).map(|n| format!("- skill {n}: does what number {n} says, and no more\n")).collect();
        let text = format!(
            "[system]\n{}\n[user]\n## Skills\n<<<{fence}\n{skills}{fence}>>>\n\n## Message\n<<<{fence}\n{message}\n{fence}>>>\n",
            "You plan what is to be done, and nothing else. ".repeat(20)
        );
        Prompt { seq, nth: 0, role: "planner".to_owned(), text }
    }

    #[test]
    fn a_piece_is_kept_once_and_goes_with_the_last_prompt_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let private = "what only the first one said, ".repeat(10);
        let asked = [prompt(1, "0123456789abcdef", &private), prompt(1, "fedcba9876543210", "hello")];
        let (first, second) = (asked[0].clone(), asked[1].clone());
        let runs = store.write_blocking(move |tx| {
            let mut runs = Vec::new();
            for (name, prompt) in [("a", &first), ("b", &second)] {
                let run = tx.create_run(&session(name), "do it", 1)?;
                // In sealed form first, and then replaced.
                tx.put_prompt(&run, &Prompt { text: "sealed".to_owned(), ..prompt.clone() })?;
                tx.put_prompt_in_pieces(&run, prompt)?;
                tx.put_prompt_in_pieces(&run, prompt)?;
                tx.finish_run(&run, RunStatus::Done, 2, "{}")?;
                runs.push(run);
            }
            Ok(runs)
        });
        let runs = runs.unwrap();
        for (run, prompt) in runs.iter().zip(&asked) {
            assert_eq!(
                store.read_blocking(|view| view.prompts(run)).unwrap(),
                std::slice::from_ref(prompt),
                "to the letter"
            );
        }
        let kept = |sql: &str| {
            let sql = format!("SELECT coalesce(sum(length(text)), 0) FROM {sql}");
            store.read_blocking(|view| Ok(view.conn.query_row(&sql, (), |row| row.get::<_, i64>(0))?)).unwrap()
        };
        let whole: usize = asked.iter().map(|prompt| prompt.text.len()).sum();
        assert!((kept("prompt_pieces") as usize) < whole * 6 / 10, "{} of {whole}", kept("prompt_pieces"));
        let says = "prompt_pieces WHERE text LIKE '%only the first one%'";
        assert!(kept(says) > 0);
        store.write_blocking(|tx| tx.delete_session(&session("a"))).unwrap();
        assert_eq!(kept(says), 0, "nothing is left of what was its own");
        assert_eq!(store.read_blocking(|view| view.prompts(&runs[1])).unwrap(), asked[1..]);
        assert_eq!(store.write_blocking(|tx| tx.forget_prompts(3)).unwrap(), 1);
        assert_eq!(kept("prompt_pieces"), 0);
        let counted = |view: &View<'_>| {
            let count: i64 = view.conn.query_row("SELECT count(*) FROM piece_uses", (), |row| row.get(0))?;
            Ok(count)
        };
        assert_eq!(store.read_blocking(counted).unwrap(), 0);
        store.close();
    }
}
