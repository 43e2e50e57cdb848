//! What is remembered beyond a session's window (design §8).
//!
//! - **Core memory**: one JSON document, always in context ([`core()`], [`update_core`], [`render_core`]).
//! - **Archival memory**: passages, found by their words ([`save`], [`search`], [`ingest_turn`]).
//! - **Observational memory**: the few lines of facts and passages that matter for a goal ([`digest`]).
//!
//! Texts that get here were cleaned of secrets by the caller.

mod chunk;
mod core;
mod record;

pub use self::core::{CoreError, MAX_CORE_BYTES, MAX_CORE_DEPTH, core, render_core, update_core};
pub use chunk::chunks;
pub use record::{ImportError, Imported, Record, export, import};

use crate::graph::estimate::tokens;
use crate::home::SessionName;
use crate::store::{Chunk, Store, StoreError};

/// Largest text that is saved at once: a long article. A book belongs into the workspace.
pub const MAX_TEXT: usize = 256 << 10;

/// Most passages that a search gives.
pub const MAX_HITS: u32 = 50;

/// What a digest takes of a prompt at most, in tokens.
const DIGEST_TOKENS: usize = 800;

/// Longest line of a digest, in characters.
const DIGEST_LINE: usize = 280;

/// Of a reply, that much is remembered with the message that it answers, in characters: what was said to whom matters,
/// the whole text stands in the log.
const REPLY: usize = 600;

/// What became of a text that was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// Passages that the text has.
    pub passages: usize,
    /// Those of them that were not known yet.
    pub new: usize,
}

/// Remembers a text, cut up into passages; those that are known already are not kept again. `source` says where it is
/// from, such as "turn". A text over [`MAX_TEXT`] is refused with [`StoreError::Quota`].
pub async fn save(
    store: &Store,
    text: &str,
    source: &str,
    session: Option<&SessionName>,
    at_ms: i64,
) -> Result<Saved, StoreError> {
    if text.len() > MAX_TEXT {
        return Err(StoreError::Quota { what: "the text to remember has too many bytes", max: MAX_TEXT as u64 });
    }
    let (chunks, source, session) = (chunks(text), source.to_owned(), session.cloned());
    let write = store.write(move |tx| {
        let mut saved = Saved { passages: chunks.len(), new: 0 };
        for chunk in &chunks {
            saved.new += usize::from(tx.add_chunk(chunk, &source, session.as_ref(), at_ms)?);
        }
        Ok(saved)
    });
    write.await
}

/// The passages that fit the question best, at most `limit` and [`MAX_HITS`]. The question is plain text.
pub async fn search(store: &Store, question: &str, limit: u32) -> Result<Vec<Chunk>, StoreError> {
    let question = question.to_owned();
    store.read(move |view| view.find_chunks(&question, limit.min(MAX_HITS))).await
}

/// What is known that matters for a goal: facts that speak of it, passages that do, then the surest facts; each a line,
/// none twice, at most `limit` lines.
pub async fn digest(store: &Store, goal: &str, limit: u32) -> Result<Vec<String>, StoreError> {
    let goal = goal.to_owned();
    let found = store.read(move |view| {
        // A third each at least, so that none of the three pushes the others out.
        let part = limit.div_ceil(3).max(1);
        Ok((view.find_facts(&goal, part)?, view.find_chunks(&goal, part)?, view.facts(limit)?))
    });
    let (relevant, passages, surest) = found.await?;
    let lines = relevant.into_iter().map(|fact| fact.text);
    let lines =
        lines.chain(passages.into_iter().map(|chunk| chunk.text)).chain(surest.into_iter().map(|fact| fact.text));
    let (mut digest, mut seen, mut used) = (Vec::new(), Vec::<String>::new(), 0);
    for line in lines {
        let line = one_line(&line, DIGEST_LINE);
        let plain: String = line.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if plain.is_empty() || seen.iter().any(|other| other.contains(&plain)) {
            continue;
        }
        used += tokens(&line);
        if digest.len() == limit as usize || used > DIGEST_TOKENS {
            break;
        }
        seen.push(plain);
        digest.push(line);
    }
    Ok(digest)
}

/// Remembers a turn that says something lasting: what the user wrote, and the beginning of the reply.
pub async fn ingest_turn(
    store: &Store,
    session: &SessionName,
    message: &str,
    reply: &str,
    at_ms: i64,
) -> Result<Saved, StoreError> {
    // A message may be longer than anything that is remembered; its beginning says what it is about.
    let message = message.trim();
    let message = &message[..message.floor_char_boundary(MAX_TEXT - 8 * REPLY)];
    if message.is_empty() {
        return Ok(Saved { passages: 0, new: 0 });
    }
    let reply = one_line(reply, REPLY);
    let text = if reply.is_empty() { message.to_owned() } else { format!("{message}\n(answer: {reply})") };
    save(store, &text, "turn", Some(session), at_ms).await
}

/// The text with all space between its words made one space, at most `max` characters.
fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() > 4 * max {
            break;
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    match line.char_indices().nth(max) {
        Some(_) => line.chars().take(max - 1).chain(['…']).collect(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewFact;

    fn open() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        (dir, store)
    }

    fn fact(text: &str, confidence: u8) -> NewFact {
        NewFact { text: text.to_owned(), source: "user".to_owned(), session: None, confidence }
    }

    #[tokio::test]
    async fn a_text_is_remembered_once_and_found_by_its_words() {
        let (_dir, store) = open();
        let s = SessionName::parse("s").unwrap();
        let text =
            format!("The staging host is called Grünwald.\n\n{}\n\nLunch is at noon.", "filler words ".repeat(150));
        let saved = save(&store, &text, "note", Some(&s), 1).await.unwrap();
        assert_eq!(saved.passages, saved.new);
        assert!(saved.passages > 1);
        assert_eq!(save(&store, &text, "note", None, 2).await.unwrap(), Saved { new: 0, ..saved });
        let found = search(&store, "what's the STAGING host? (\"grunwald\")", 5).await.unwrap();
        assert!(found[0].text.contains("Grünwald"), "{found:?}");
        assert_eq!((found[0].session.as_ref(), found[0].source.as_str()), (Some(&s), "note"));
        assert!(save(&store, &"x".repeat(MAX_TEXT + 1), "note", None, 3).await.is_err());
    }

    #[tokio::test]
    async fn a_turn_is_remembered_with_the_beginning_of_its_answer() {
        let (_dir, store) = open();
        let s = SessionName::parse("s").unwrap();
        let reply = "Noted:\n\n".to_owned() + &"very ".repeat(1_000);
        assert_eq!(ingest_turn(&store, &s, "I prefer metric units", &reply, 1).await.unwrap().new, 1);
        let found = search(&store, "metric", 5).await.unwrap();
        assert!(found[0].text.starts_with("I prefer metric units\n(answer: Noted: very"), "{found:?}");
        assert!(found[0].text.chars().count() < 700);
        assert_eq!(ingest_turn(&store, &s, " ", "x", 1).await.unwrap().passages, 0);
        assert!(ingest_turn(&store, &s, &"word ".repeat(200_000), "x", 1).await.unwrap().new > 0);
    }

    #[tokio::test]
    async fn a_digest_has_what_matters_first_and_nothing_twice() {
        let (_dir, store) = open();
        store
            .write(|tx| {
                tx.add_fact(&fact("The user lives in Oslo", 90), 1)?;
                tx.add_fact(&fact("Charts of rain are drawn as bars", 40), 2)?;
                tx.add_chunk("Rain data comes\nfrom weather.csv", "turn", None, 3)?;
                tx.add_chunk("charts of rain are drawn as BARS!", "turn", None, 4)?;
                (0..50).try_for_each(|n| tx.add_fact(&fact(&format!("Unrelated fact number {n}"), 10), 5).map(drop))
            })
            .await
            .unwrap();
        let lines = digest(&store, "plot the rain", 6).await.unwrap();
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[0], "Charts of rain are drawn as bars");
        assert_eq!(lines[1], "Rain data comes from weather.csv");
        assert_eq!(lines[2], "The user lives in Oslo");
        assert_eq!(
            digest(&store, "", 2).await.unwrap(),
            ["The user lives in Oslo", "Charts of rain are drawn as bars"]
        );
        store.write(|tx| tx.add_fact(&fact(&"long ".repeat(390), 100), 6)).await.unwrap();
        let lines = digest(&store, "long", 50).await.unwrap();
        assert!(lines[0].chars().count() <= DIGEST_LINE && lines[0].ends_with('…'), "{lines:?}");
        assert!(lines.iter().map(|line| tokens(line)).sum::<usize>() <= DIGEST_TOKENS);
    }
}
