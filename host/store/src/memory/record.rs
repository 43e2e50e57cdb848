//! Export and import of the memory as lines of JSON, for a backup or another home.
//!
//! ```json
//! {"type":"core","document":{"user":{"city":"Oslo"}}}
//! {"type":"fact","text":"…","source":"user","session":null,"confidence":100,"at_ms":1700000000000}
//! {"type":"passage","text":"…","source":"turn","session":"main","at_ms":1700000000000}
//! ```
//!
//! An import checks the whole file first, so an invalid line changes nothing. It skips known records, so an interrupted import
//! can simply be repeated.

use std::io::{self, BufRead, Read, Seek};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::core::{self, CoreError};
use crate::store::{MAX_CHUNK_BYTES, MAX_CHUNKS, MAX_FACT_BYTES, MAX_FACTS, NewFact, Store, StoreError, Tx};
use kiso_base::home::SessionName;
use kiso_base::json::{self, JsonError};

/// Maximum bytes of a line: the largest core memory with each character escaped.
const MAX_LINE: u64 = 128 << 10;

/// Maximum lines of a file: the capacity of the memory.
const MAX_LINES: u64 = MAX_CHUNKS + MAX_FACTS as u64 + 1;

/// Maximum characters of a source.
const MAX_SOURCE: usize = 64;

/// Lines that are written in one transaction. More would make a daemon on the same home wait.
const BATCH: usize = 200;

/// Lines that are read at once.
const PAGE: u32 = 200;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// Core memory. Its members are set; other members in the home stay.
    Core { document: Value },
    /// A fact; `confidence` in percent.
    Fact {
        text: String,
        source: String,
        #[serde(default)]
        session: Option<String>,
        confidence: u8,
        at_ms: i64,
    },
    /// A passage of the archival memory.
    Passage {
        text: String,
        source: String,
        #[serde(default)]
        session: Option<String>,
        at_ms: i64,
    },
}

/// The result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryImport {
    /// Whether there was a line with core memory.
    pub core: bool,
    /// Numbers of new facts and passages.
    pub facts: u64,
    pub passages: u64,
    /// Number of known ones.
    pub known: u64,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum MemoryImportError {
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
    #[error(
        "there would be {passages} passages and may be {MAX_CHUNKS}: leave some out, or remove some with `kiso memory forget`"
    )]
    TooMany { passages: u64 },
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Exports the whole memory line by line: core memory, facts, passages, each oldest first.
pub fn export<E: From<StoreError>>(store: &Store, mut write: impl FnMut(&Record) -> Result<(), E>) -> Result<(), E> {
    let document = store.read_blocking(|view| Ok(core::parse(view.core_memory()?)))?;
    if document.as_object().is_some_and(|members| !members.is_empty()) {
        write(&Record::Core { document })?;
    }
    let mut facts = store.read_blocking(|view| view.facts(u32::MAX))?;
    facts.sort_by_key(|fact| fact.id);
    for fact in facts {
        let session = fact.session.map(|session| session.to_string());
        let (text, source, confidence, at_ms) = (fact.text, fact.source, fact.confidence, fact.at_ms);
        write(&Record::Fact { text, source, session, confidence, at_ms })?;
    }
    let mut after = i64::MIN;
    loop {
        // In parts, so that a slow reader does not block the store's cleanup.
        let chunks = store.read_blocking(|view| view.chunks_after(after, PAGE))?;
        let Some(last) = chunks.last() else { return Ok(()) };
        after = last.id;
        for chunk in chunks {
            let session = chunk.session.map(|session| session.to_string());
            write(&Record::Passage { text: chunk.text, source: chunk.source, session, at_ms: chunk.at_ms })?;
        }
    }
}

/// Imports an exported file. `clean` removes secrets from a text. If this home does not have the session of a line, the line is
/// stored without a session.
pub fn import(
    store: &Store,
    mut file: impl BufRead + Seek,
    clean: &dyn Fn(&str) -> String,
    at_ms: i64,
) -> Result<MemoryImport, MemoryImportError> {
    check(store, &mut file, clean)?;
    file.rewind()?;
    let mut imported = MemoryImport::default();
    let mut lines = Lines { file: &mut file, clean, number: 0 };
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH
            && let Some(record) = lines.next()?
        {
            batch.push(record);
        }
        if batch.is_empty() {
            return Ok(imported);
        }
        let before = imported;
        imported = store.write_blocking(move |tx| {
            let mut imported = before;
            batch.into_iter().try_for_each(|record| take(tx, record, &mut imported, at_ms))?;
            Ok(imported)
        })?;
    }
}

/// Reads the file to its end without writing anything.
fn check(
    store: &Store,
    file: &mut (impl BufRead + Seek),
    clean: &dyn Fn(&str) -> String,
) -> Result<(), MemoryImportError> {
    let mut lines = Lines { file, clean, number: 0 };
    let (mut cores, mut passages) = (0, store.read_blocking(|view| view.count_chunks())?);
    while let Some(record) = lines.next()? {
        let line = lines.number;
        match record {
            Record::Core { document } => {
                cores += 1;
                if cores > 1 {
                    return Err(MemoryImportError::Line {
                        line,
                        why: "there is a line of core memory before it".to_owned(),
                    });
                }
                let mut merged = store.read_blocking(|view| Ok(core::parse(view.core_memory()?)))?;
                core::merge(&mut merged, document);
                core::check(&merged).map_err(|error| MemoryImportError::Line { line, why: error.to_string() })?;
            }
            Record::Fact { .. } => {}
            Record::Passage { text, .. } => {
                passages += u64::from(!store.read_blocking(|view| view.has_chunk(&text))?);
            }
        }
    }
    if passages > MAX_CHUNKS { Err(MemoryImportError::TooMany { passages }) } else { Ok(()) }
}

fn take(tx: &Tx<'_>, record: Record, imported: &mut MemoryImport, at_ms: i64) -> Result<(), StoreError> {
    let known = |session: Option<String>| -> Result<Option<SessionName>, StoreError> {
        let Some(session) = session.and_then(|name| SessionName::parse(&name).ok()) else { return Ok(None) };
        Ok(tx.has_session(&session)?.then_some(session))
    };
    let new = match record {
        Record::Core { document } => {
            let mut merged = core::parse(tx.core_memory()?);
            core::merge(&mut merged, document);
            imported.core = true;
            return tx.set_core_memory(&merged.to_string(), at_ms);
        }
        Record::Fact { text, .. } if tx.has_fact(&text)? => false,
        Record::Fact { text, source, session, confidence, at_ms } => {
            tx.add_fact(&NewFact { text, source, session: known(session)?, confidence }, at_ms)?;
            imported.facts += 1;
            true
        }
        Record::Passage { text, source, session, at_ms } => {
            let new = tx.add_chunk(&text, &source, known(session)?.as_ref(), at_ms)?;
            imported.passages += u64::from(new);
            new
        }
    };
    imported.known += u64::from(!new);
    Ok(())
}

/// The records of a file, each validated and cleaned.
struct Lines<'a, F> {
    file: &'a mut F,
    clean: &'a dyn Fn(&str) -> String,
    /// Number of the line that was read last, from 1.
    number: u64,
}

impl<F: BufRead> Lines<'_, F> {
    /// Returns the next record. Empty lines are counted and skipped.
    fn next(&mut self) -> Result<Option<Record>, MemoryImportError> {
        loop {
            let mut line = Vec::new();
            // One byte more, to detect a line that is too long.
            let read = self.file.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let wrong = |why: String| MemoryImportError::Line { line: self.number, why };
            if read as u64 > MAX_LINE {
                return Err(wrong(format!("it is longer than {MAX_LINE} bytes")));
            }
            if self.number > MAX_LINES {
                return Err(wrong(format!("there are more than {MAX_LINES} lines, which no memory can hold")));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let record: Record = json::parse(&line).map_err(|error| match error {
                JsonError::Syntax(error) => wrong(plain(&error)),
                JsonError::Depth => wrong(error.to_string()),
            })?;
            return self.record(record).map(Some).map_err(wrong);
        }
    }

    fn record(&self, mut record: Record) -> Result<Record, String> {
        let (text, source, most) = match &mut record {
            Record::Core { document } => {
                *document = cleaned(std::mem::take(document), self.clean);
                return match core::check(document) {
                    _ if !document.is_object() => Err(CoreError::NoObject.to_string()),
                    checked => checked.map(|()| record).map_err(|error| error.to_string()),
                };
            }
            Record::Fact { confidence, .. } if *confidence > 100 => {
                return Err(format!("confidence is {confidence} and is given in percent, 0 to 100"));
            }
            Record::Fact { text, source, .. } => (text, source, MAX_FACT_BYTES),
            Record::Passage { text, source, .. } => (text, source, MAX_CHUNK_BYTES),
        };
        *text = (self.clean)(text.trim());
        if text.is_empty() || text.len() > most {
            return Err(format!("text has {} bytes and must have 1 to {most}", text.len()));
        }
        let count = source.chars().count();
        if !(1..=MAX_SOURCE).contains(&count) || source.chars().any(char::is_control) {
            return Err(format!("source must be a word of 1 to {MAX_SOURCE} characters, such as \"user\""));
        }
        Ok(record)
    }
}

/// Returns the error in a line without the parser's position, whose line is always 1.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Returns the document with every text cleaned, including names.
fn cleaned(value: Value, clean: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(items) => items.into_iter().map(|item| cleaned(item, clean)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (clean(&name), cleaned(member, clean))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn open() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        (dir, store)
    }

    fn lines(store: &Store) -> Vec<Record> {
        let mut records = Vec::new();
        export::<StoreError>(store, |record| {
            records.push(record.clone());
            Ok(())
        })
        .unwrap();
        records
    }

    fn text(records: &[Record]) -> String {
        records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
    }

    fn take_in(store: &Store, text: &str) -> Result<MemoryImport, MemoryImportError> {
        import(store, Cursor::new(text.to_owned()), &|text| text.replace("hunter2", "[secret]"), 9)
    }

    #[test]
    fn what_is_exported_comes_back_once() {
        let (_dir, store) = open();
        store
            .write_blocking(|tx| {
                let s = SessionName::parse("s").unwrap();
                tx.set_core_memory(r#"{"user":{"city":"Oslo"}}"#, 1)?;
                let fact = |n: u8| NewFact {
                    text: format!("fact {n}"),
                    source: "user".to_owned(),
                    session: Some(s.clone()),
                    confidence: n,
                };
                (1..4).try_for_each(|n| tx.add_fact(&fact(n), i64::from(n)).map(drop))?;
                (0..450).try_for_each(|n| tx.add_chunk(&format!("passage {n}"), "turn", Some(&s), n).map(drop))
            })
            .unwrap();
        let records = lines(&store);
        assert_eq!(records.len(), 1 + 3 + 450);
        let known = MemoryImport { core: true, facts: 0, passages: 0, known: 453 };
        assert_eq!(take_in(&store, &text(&records)).unwrap(), known);
        assert_eq!(lines(&store), records);

        let (_dir, other) = open();
        let new = MemoryImport { core: true, facts: 3, passages: 450, known: 0 };
        assert_eq!(take_in(&other, &text(&records)).unwrap(), new);
        assert_eq!(take_in(&other, &text(&records)).unwrap(), known);
        // The other home has no session of that name, and none is created.
        assert!(
            other.read_blocking(|view| view.list_sessions(&crate::store::Placement::ALL, None, 5)).unwrap().is_empty()
        );
        assert!(matches!(&lines(&other)[1], Record::Fact { session: None, text, .. } if text == "fact 1"));
    }

    #[test]
    fn a_bad_line_is_named_and_nothing_is_taken() {
        let (_dir, store) = open();
        let good = r#"{"type":"passage","text":"good","source":"turn","at_ms":1}"#;
        let long = format!(r#"{{"type":"passage","text":"{}","source":"turn","at_ms":1}}"#, "x".repeat(5_000));
        let huge = format!(r#"{{"type":"core","document":{{"a":"{}"}}}}"#, "x".repeat(20_000));
        for (bad, why) in [
            ("{", "EOF"),
            ("[]", ""),
            (r#"{"type":"passage","text":"x","source":"turn"}"#, "missing field `at_ms`"),
            (r#"{"type":"passage","text":" ","source":"turn","at_ms":1}"#, "text has 0 bytes and must have 1 to 4000"),
            (r#"{"type":"passage","text":"x","source":"","at_ms":1}"#, "source must be a word"),
            (r#"{"type":"passage","text":"x","source":"a","at_ms":1,"txet":1}"#, "unknown field `txet`"),
            (r#"{"type":"fact","text":"x","source":"a","at_ms":1,"confidence":101}"#, "confidence is 101"),
            (r#"{"type":"fact","text":"x","source":"a","at_ms":1,"confidence":300}"#, "300"),
            (r#"{"type":"other"}"#, "unknown variant `other`"),
            (r#"{"type":"core","document":[]}"#, "must be an object"),
            (&long, "text has 5000 bytes"),
            (&huge, "core memory would have"),
            (&"x".repeat(200_000), "longer than 131072 bytes"),
        ] {
            let error = take_in(&store, &format!("{good}\n\n{bad}\n{good}\n")).unwrap_err().to_string();
            assert!(error.starts_with("line 3: ") && error.contains(why), "{error}");
            assert!(!error.contains("at line 1"), "{error}");
        }
        let twice = "{\"type\":\"core\",\"document\":{}}\n".repeat(2);
        assert!(take_in(&store, &twice).unwrap_err().to_string().starts_with("line 2: there is a line of core"));
        assert!(lines(&store).is_empty());
    }

    #[test]
    fn secrets_do_not_come_in() {
        let (_dir, store) = open();
        let file = concat!(
            r#"{"type":"core","document":{"wifi":["hunter2"]}}"#,
            "\n",
            r#"{"type":"fact","text":"it is hunter2","source":"user","confidence":1,"at_ms":1}"#,
            "\n",
            r#"{"type":"passage","text":"also hunter2","source":"turn","at_ms":1}"#,
        );
        take_in(&store, file).unwrap();
        let kept = text(&lines(&store));
        assert!(!kept.contains("hunter2") && kept.matches("[secret]").count() == 3, "{kept}");
    }
}
