//! The memory beyond a session's window.
//!
//! - **Core memory**: one JSON document, always in context ([`core()`], [`update_core`], [`render_core`]).
//! - **Archival memory**: passages, found by their words, and also by their meaning if a model computes vectors ([`save`],
//!   [`search`], [`ingest_turn`]).
//! - **Observational memory**: the few facts and passages that are relevant for a goal ([`digest`]).
//!
//! The caller has removed secrets from all texts.

mod chunk;
mod core;
mod record;

pub use self::core::{CoreError, MAX_CORE_BYTES, MAX_CORE_DEPTH, core, render_core, update_core};
pub use chunk::chunks;
pub use record::{MemoryImport, MemoryImportError, Record, export, import};

use crate::store::{Chunk, LabelledRow, Store, StoreError, Tx, USER, Vector, View, shared_words};
use kiso_base::clock::day;
use kiso_base::home::SessionName;
use kiso_plan::estimate::tokens;
use kiso_plan::label::Label;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Maximum size of a text that is saved at once: a long article. A book belongs into the workspace.
pub const MAX_TEXT: usize = 256 << 10;

/// Maximum passages that a search returns.
pub const MAX_HITS: u32 = 50;

/// The k of reciprocal rank fusion, as its authors chose it (Cormack, Clarke and Büttcher, 2009): the first result of one list
/// does not outweigh a good result of both.
pub const RANKS: f64 = 60.0;

/// The minimum likeness of a passage for a digest. Unrelated texts often exceed the minimum for a search.
const UNASKED: f32 = 0.5;

/// Words that a fact or passage must have in common with a goal to be in its digest. One is enough if this number is more than a
/// third of the goal's words.
const SHARED: usize = 2;

/// Maximum size of a digest in tokens.
const DIGEST_TOKENS: usize = 800;

/// Maximum characters of a line of a digest.
const DIGEST_LINE: usize = 280;

/// Maximum characters of a reply that are remembered with the message that it answers: the topic matters, and the whole text is
/// in the log.
const REPLY: usize = 600;

/// The result of saving a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveReport {
    /// Number of passages of the text.
    pub passages: usize,
    /// Number of new ones among them.
    pub new: usize,
}

/// Saves a text as passages; known ones are not stored again. `source` is its origin, such as "turn". A text over [`MAX_TEXT`] is
/// refused with [`StoreError::Quota`].
pub async fn save(
    store: &Store,
    text: &str,
    source: &str,
    session: Option<&SessionName>,
    label: &Label,
    at_ms: i64,
) -> Result<SaveReport, StoreError> {
    if text.len() > MAX_TEXT {
        return Err(StoreError::Quota { what: "the text to remember has too many bytes", max: MAX_TEXT as u64 });
    }
    let (chunks, source, session, label) = (chunks(text), source.to_owned(), session.cloned(), label.clone());
    let write = store.write(move |tx| {
        let mut saved = SaveReport { passages: chunks.len(), new: 0 };
        for chunk in &chunks {
            if tx.add_chunk(chunk, &source, session.as_ref(), at_ms)? {
                saved.new += 1;
                tx.set_chunk_label(chunk, &label)?;
            }
        }
        Ok(saved)
    });
    write.await
}

/// The meaning of a query: its vector, and the model of the vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    pub vector: Vector,
    /// The name of the model's vectors in the store.
    pub embedder: String,
    /// The minimum likeness of a passage that counts as similar.
    pub least: f32,
}

/// Returns the best passages for the query, at most `limit` and [`MAX_HITS`]: by their words and, if `meaning` is given, by their
/// meaning. The query is plain text.
pub async fn search(
    store: &Store,
    question: &str,
    meaning: Option<Meaning>,
    limit: u32,
) -> Result<Vec<Chunk>, StoreError> {
    let question = question.to_owned();
    let read = store.read(move |view| find(view, &question, meaning.as_ref(), limit));
    Ok(read.await?.into_iter().map(|(chunk, _)| chunk).collect())
}

/// [`search`] in a view, with the likeness of each passage; 0 for those found only by words. Passages found by both words and
/// meaning come before those found by one of them (reciprocal rank fusion): each list gives a passage 1 / ([`RANKS`] + its
/// position).
fn find(
    view: &View<'_>,
    question: &str,
    meaning: Option<&Meaning>,
    limit: u32,
) -> Result<Vec<(Chunk, f32)>, StoreError> {
    let limit = limit.min(MAX_HITS);
    let embedder = meaning.map(|meaning| view.embedder(&meaning.embedder)).transpose()?.flatten();
    let (Some(meaning), Some(embedder)) = (meaning, embedder) else {
        return Ok(view.find_chunks(question, limit)?.into_iter().map(|chunk| (chunk, 0.0)).collect());
    };
    let by_words = view.find_chunks(question, MAX_HITS)?;
    let near = view.nearest(embedder, &meaning.vector, MAX_HITS, meaning.least)?;
    let mut score: HashMap<i64, f64> = HashMap::new();
    let lists = [by_words.iter().map(|chunk| chunk.id).collect(), near.iter().map(|(id, _)| *id).collect::<Vec<_>>()];
    for (place, id) in lists.iter().flat_map(|list| list.iter().enumerate()) {
        *score.entry(*id).or_default() += 1.0 / (RANKS + place as f64 + 1.0);
    }
    let mut best: Vec<(i64, f64)> = score.into_iter().collect();
    // The newer one of two equally good ones.
    best.sort_by(|(a, score_a), (b, score_b)| score_b.total_cmp(score_a).then(b.cmp(a)));
    let likeness: HashMap<i64, f32> = near.into_iter().collect();
    let mut known: HashMap<i64, Chunk> = by_words.into_iter().map(|chunk| (chunk.id, chunk)).collect();
    let mut found = Vec::new();
    for (id, _) in best.into_iter().take(limit as usize) {
        let chunk = match known.remove(&id) {
            Some(chunk) => Some(chunk),
            None => view.chunk(id)?,
        };
        // The word search already excludes passages that another version has replaced.
        let chunk = match chunk {
            Some(Chunk { source, session: Some(session), at_ms, .. })
                if source == TURN && view.is_turn_replaced(&session, at_ms)? =>
            {
                None
            }
            chunk => chunk,
        };
        found.extend(chunk.map(|chunk| (chunk, likeness.get(&id).copied().unwrap_or_default())));
    }
    Ok(found)
}

/// The times of messages that a prompt already contains, in its window or its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTimes {
    pub session: SessionName,
    /// Milliseconds since 1970.
    pub times: Vec<RangeInclusive<i64>>,
}

impl ShownTimes {
    fn has(&self, session: Option<&SessionName>, at_ms: i64) -> bool {
        session == Some(&self.session) && self.times.iter().any(|times| times.contains(&at_ms))
    }
}

/// Returns the facts and passages that are relevant for a goal: alternately, each on a line with its date, without duplicates, at
/// most `limit` lines. Leaves out what the prompt already contains (`told`).
pub async fn digest(
    store: &Store,
    goal: &str,
    meaning: Option<Meaning>,
    told: Option<ShownTimes>,
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    let goal = goal.to_owned();
    let found = store.read(move |view| {
        let matters = |text: &str| {
            let (shared, of) = shared_words(&goal, text);
            shared >= SHARED || shared > 0 && of < SHARED * 3
        };
        let told =
            |session: Option<&SessionName>, at_ms: i64| told.as_ref().is_some_and(|told| told.has(session, at_ms));
        let mut passages = find(view, &goal, meaning.as_ref(), MAX_HITS)?;
        // Nobody has asked for them: texts from before `/new` are only found by a search.
        passages.retain(|(chunk, likeness)| {
            chunk.source != SUMMARY
                && !(chunk.source == TURN && told(chunk.session.as_ref(), chunk.at_ms))
                && (*likeness >= UNASKED || matters(&chunk.text))
        });
        let mut facts = view.find_facts(&goal, MAX_HITS)?;
        facts.retain(|fact| !(fact.source == USER && told(fact.session.as_ref(), fact.at_ms)) && matters(&fact.text));
        // Text that somebody else may have written is found by a search, but never added to a prompt automatically.
        if view.has_labels()? {
            let ordinary = |kind, id| view.label(kind, id).map(|label| label.is_ordinary());
            facts = retained(facts, |fact| ordinary(LabelledRow::Fact, fact.id))?;
            passages = retained(passages, |(chunk, _)| ordinary(LabelledRow::Passage, chunk.id))?;
        }
        Ok((facts, passages))
    });
    let (facts, passages) = found.await?;
    let mut facts = facts.into_iter().map(|fact| (fact.text, fact.at_ms));
    let mut passages = passages.into_iter().map(|(chunk, _)| (chunk.text, chunk.at_ms));
    let (mut digest, mut seen, mut used) = (Vec::new(), Vec::<String>::new(), 0);
    // Alternately, so that neither kind displaces the other.
    let turns = std::iter::from_fn(|| {
        let turn = [facts.next(), passages.next()];
        turn.iter().any(Option::is_some).then_some(turn)
    });
    for (text, at_ms) in turns.flatten().flatten() {
        let line = one_line(&text, DIGEST_LINE);
        let plain: String = line.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if plain.is_empty() || seen.iter().any(|other| other.contains(&plain)) {
            continue;
        }
        let line = with_day(&line, at_ms);
        used += tokens(&line);
        if digest.len() == limit as usize || used > DIGEST_TOKENS {
            break;
        }
        seen.push(plain);
        digest.push(line);
    }
    Ok(digest)
}

/// Returns a text with its date for a prompt, so that a model can prefer the later of two contradicting texts.
pub fn with_day(text: &str, at_ms: i64) -> String {
    format!("{text} ({})", day(at_ms))
}

/// Returns the items for which `keep` returns true.
fn retained<T>(all: Vec<T>, keep: impl Fn(&T) -> Result<bool, StoreError>) -> Result<Vec<T>, StoreError> {
    let mut kept = Vec::with_capacity(all.len());
    for one in all {
        if keep(&one)? {
            kept.push(one);
        }
    }
    Ok(kept)
}

/// Saves a turn with lasting information: the user's message, and the beginning of the reply.
pub async fn ingest_turn(
    store: &Store,
    session: &SessionName,
    message: &str,
    reply: &str,
    label: &Label,
    at_ms: i64,
) -> Result<SaveReport, StoreError> {
    // A message may exceed the maximum; its beginning contains its topic.
    let message = message.trim();
    let message = &message[..message.floor_char_boundary(MAX_TEXT - 8 * REPLY)];
    if message.is_empty() {
        return Ok(SaveReport { passages: 0, new: 0 });
    }
    let reply = one_line(reply, REPLY);
    let text = if reply.is_empty() { message.to_owned() } else { format!("{message}\n(answer: {reply})") };
    save(store, &text, TURN, Some(session), label, at_ms).await
}

/// The source of passages from turns.
const TURN: &str = "turn";

/// The source of passages from summaries.
const SUMMARY: &str = "summary";

/// Deletes the passages of a summary that is no longer in use.
pub fn forget_summary(tx: &Tx<'_>, session: &SessionName, summary: &str) -> Result<(), StoreError> {
    chunks(summary).iter().try_for_each(|chunk| tx.delete_chunk_of(chunk, SUMMARY, session))
}

/// Saves the summary of a session as passages, in the transaction that stores it, and deletes those of the previous summary,
/// whose content it includes. Does nothing if the memory is full.
pub fn keep_summary(
    tx: &Tx<'_>,
    session: &SessionName,
    before: Option<&str>,
    summary: &str,
    label: &Label,
    at_ms: i64,
) -> Result<(), StoreError> {
    forget_summary(tx, session, before.unwrap_or_default())?;
    for chunk in chunks(summary) {
        match tx.add_chunk(&chunk, SUMMARY, Some(session), at_ms) {
            Err(StoreError::Quota { .. }) => break,
            added => {
                if added? {
                    tx.set_chunk_label(&chunk, label)?;
                }
            }
        };
    }
    Ok(())
}

/// Returns the text with white space collapsed, at most `max` characters.
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
        let saved = save(&store, &text, "note", Some(&s), &Label::session(), 1).await.unwrap();
        assert_eq!(saved.passages, saved.new);
        assert!(saved.passages > 1);
        assert_eq!(
            save(&store, &text, "note", None, &Label::session(), 2).await.unwrap(),
            SaveReport { new: 0, ..saved }
        );
        let found = search(&store, "what's the STAGING host? (\"grunwald\")", None, 5).await.unwrap();
        assert!(found[0].text.contains("Grünwald"), "{found:?}");
        assert_eq!((found[0].session.as_ref(), found[0].source.as_str()), (Some(&s), "note"));
        assert!(save(&store, &"x".repeat(MAX_TEXT + 1), "note", None, &Label::session(), 3).await.is_err());
    }

    #[tokio::test]
    async fn a_turn_is_remembered_with_the_beginning_of_its_answer() {
        let (_dir, store) = open();
        let s = SessionName::parse("s").unwrap();
        let reply = "Noted:\n\n".to_owned() + &"very ".repeat(1_000);
        assert_eq!(
            ingest_turn(&store, &s, "I prefer metric units", &reply, &Label::session(), 1).await.unwrap().new,
            1
        );
        let found = search(&store, "metric", None, 5).await.unwrap();
        assert!(found[0].text.starts_with("I prefer metric units\n(answer: Noted: very"), "{found:?}");
        assert!(found[0].text.chars().count() < 700);
        assert_eq!(ingest_turn(&store, &s, " ", "x", &Label::session(), 1).await.unwrap().passages, 0);
        assert!(ingest_turn(&store, &s, &"word ".repeat(200_000), "x", &Label::session(), 1).await.unwrap().new > 0);
    }

    #[tokio::test]
    async fn a_summary_takes_the_place_of_the_one_that_it_holds() {
        let (_dir, store) = open();
        let keep = async |before: Option<&'static str>, summary: &'static str| {
            let s = SessionName::parse("s").unwrap();
            store.write(move |tx| keep_summary(tx, &s, before, summary, &Label::session(), 1)).await.unwrap();
        };
        keep(None, "They spoke of ferries.").await;
        keep(Some("They spoke of ferries."), "They spoke of ferries and of trams.").await;
        assert_eq!(digest(&store, "ferries", None, None, 5).await.unwrap(), [""; 0], "it is not told by itself");
        // Of the next segment.
        keep(None, "They spoke of planes.").await;
        let found = search(&store, "ferries", None, 5).await.unwrap();
        assert_eq!(
            found.iter().map(|chunk| chunk.text.as_str()).collect::<Vec<_>>(),
            ["They spoke of ferries and of trams."]
        );
        assert_eq!(found[0].source, "summary");
        assert_eq!(search(&store, "planes", None, 5).await.unwrap().len(), 1);
    }

    /// Rule: "`shared_context_observational_memory`" is what memory holds that bears on the goal, and nothing else.
    #[tokio::test]
    async fn a_digest_has_what_matters_and_nothing_else() {
        let (_dir, store) = open();
        store
            .write(|tx| {
                tx.add_fact(&fact("The user lives in Oslo", 90), 1)?;
                tx.add_fact(&fact("Charts of rain are drawn as bars", 40), 2)?;
                tx.add_chunk("Rain data comes\nfrom weather.csv", "turn", None, 3)?;
                tx.add_chunk("charts of rain are drawn as BARS!", "turn", None, 4)?;
                (0..50).try_for_each(|n| tx.add_fact(&fact(&format!("The table number {n} is round"), 10), 5).map(drop))
            })
            .await
            .unwrap();
        let found = async |goal: &str, limit| digest(&store, goal, None, None, limit).await.unwrap();
        assert_eq!(
            found("plot the rain", 5).await,
            [with_day("Charts of rain are drawn as bars", 2), with_day("Rain data comes from weather.csv", 3)]
        );
        assert_eq!(found("", 5).await, [""; 0], "the surest facts are no filler");
        assert_eq!(found("book a table at a restaurant near the harbour for Friday evening", 5).await, [""; 0]);
        assert_eq!(found("is the table number 7 a round one", 5).await.len(), 5);
        store.write(|tx| tx.add_fact(&fact(&"long ".repeat(390), 100), 6)).await.unwrap();
        let lines = found("long", 50).await;
        assert!(lines[0].chars().count() <= DIGEST_LINE + 13 && lines[0].contains('…'), "{lines:?}");
        assert!(lines.iter().map(|line| tokens(line)).sum::<usize>() <= DIGEST_TOKENS);
    }

    #[tokio::test]
    async fn a_digest_leaves_out_what_the_conversation_has_already() {
        let (_dir, store) = open();
        let here = SessionName::parse("here").unwrap();
        for (session, at_ms) in [("here", 5), ("here", 30), ("here", 60), ("elsewhere", 5)] {
            let session = SessionName::parse(session).unwrap();
            let text = format!("The ferry of {session} leaves at {at_ms}");
            ingest_turn(&store, &session, &text, "", &Label::session(), at_ms).await.unwrap();
            let stated = NewFact { session: Some(session), ..fact(&format!("Quay {at_ms} is for the ferry"), 90) };
            store.write(move |tx| tx.add_fact(&stated, at_ms)).await.unwrap();
        }
        // The summary covers messages until 10, the window those since 50.
        let told = ShownTimes { session: here, times: vec![0..=10, 50..=i64::MAX] };
        let lines = digest(&store, "the ferry", None, Some(told), 9).await.unwrap();
        let mut lines: Vec<_> = lines.iter().map(|line| line.rsplit_once(" (").unwrap().0).collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["Quay 30 is for the ferry", "The ferry of elsewhere leaves at 5", "The ferry of here leaves at 30"]
        );
    }

    /// The first result of one list does not displace results of both.
    #[tokio::test]
    async fn words_and_meaning_are_fused_by_their_ranks() {
        let (_dir, store) = open();
        let vector = |numbers: [f32; 3]| Vector::new(&numbers).unwrap();
        store
            .write(move |tx| {
                tx.add_chunk("the harbour opens at six", "turn", None, 1)?;
                tx.add_chunk("ships come in at dawn", "turn", None, 2)?;
                tx.add_chunk("a harbour of dawn and ships", "turn", None, 3)?;
                tx.add_chunk("lunch is at noon", "turn", None, 4)?;
                let embedder = tx.add_embedder("m")?;
                let of = [[0.0, 1.0, 0.0], [1.0, 0.1, 0.0], [1.0, 0.4, 0.0], [0.0, 0.0, 1.0]];
                (1..).zip(of).try_for_each(|(id, numbers)| tx.set_vector(id, embedder, Some(&vector(numbers))))
            })
            .await
            .unwrap();
        let meaning = Meaning { vector: vector([1.0, 0.0, 0.0]), embedder: "m".to_owned(), least: 0.3 };
        let ask = async |question: &str, meaning: &Meaning, limit| -> Vec<i64> {
            let found = search(&store, question, Some(meaning.clone()), limit).await.unwrap();
            found.into_iter().map(|chunk| chunk.id).collect()
        };
        assert_eq!(ask("harbour", &meaning, 9).await, [3, 2, 1]);
        assert_eq!(ask("harbour", &meaning, 1).await, [3]);
        assert_eq!(ask("arrival of boats", &meaning, 9).await, [2, 3], "it shares no word");
        let other = Meaning { embedder: "other".to_owned(), ..meaning.clone() };
        assert_eq!(ask("harbour", &other, 9).await.len(), 2, "words alone");
        let strict = Meaning { least: 0.999, ..meaning };
        assert_eq!(ask("arrival of boats", &strict, 9).await, [0; 0]);
        let lines = digest(&store, "arrival of boats", Some(Meaning { least: 0.3, ..strict }), None, 3).await.unwrap();
        assert_eq!(lines, [with_day("ships come in at dawn", 2), with_day("a harbour of dawn and ships", 3)]);
    }
}
