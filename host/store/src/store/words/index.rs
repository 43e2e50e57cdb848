//! Queries a word index in such a way that the time hardly depends on the size of the store.
//!
//! - A word is searched for unchanged and as the beginning of longer ones. These are looked up in the index's own list of terms;
//!   FTS5 would read every row of all of them before it returns the first.
//! - Rows are counted, up to [`MANY`]. Ranking a row takes some microseconds, so if a query has rare words, only those are
//!   searched for, rarest first; of common words, the newest rows are used.
//! - If all words are common, only the [`NEWEST_ROWS`] are searched for rows with all of them.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use super::{MAX_WORDS, Word, Words, joined};

/// Number of rows from which a word counts as common in its index and has little significance. Also the maximum number of rows
/// that are ranked for a query with any of its words.
const MANY: u32 = 500;

/// Maximum longer words with the same beginning that are searched for.
const EXPANSIONS: usize = 8;

/// Rows that are searched for several common words together.
const NEWEST_ROWS: i64 = 20_000;

/// Maximum length of the prefixes for which the indexes have lists of rows (`prefix = '2 3'`), in characters.
const INDEXED_PREFIX: usize = 3;

/// Letters in the form of the indexes' tokenizer (`remove_diacritics 2`), for finding terms.
const BASES: [(char, &str); 25] = [
    ('a', "àáâãäåāăąǎǟǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ('b', "ḃḅḇ"),
    ('c', "çćĉċčḉ"),
    ('d', "ďḋḍḏḑḓ"),
    ('e', "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ('f', "ḟ"),
    ('g', "ĝğġģǧǵḡ"),
    ('h', "ĥȟḣḥḧḩḫẖ"),
    ('i', "ìíîïĩīĭįǐȉȋḭḯỉị"),
    ('j', "ĵǰ"),
    ('k', "ķǩḱḳḵ"),
    ('l', "ĺļľḷḹḻḽ"),
    ('m', "ḿṁṃ"),
    ('n', "ñńņňǹṅṇṉṋ"),
    ('o', "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"),
    ('p', "ṕṗ"),
    ('r', "ŕŗřȑȓṙṛṝṟ"),
    ('s', "śŝşšșṡṣṥṧṩ"),
    ('t', "ţťțṫṭṯṱẗ"),
    ('u', "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ('v', "ṽṿ"),
    ('w', "ŵẁẃẅẇẉẘ"),
    ('x', "ẋẍ"),
    ('y', "ýÿŷȳẏẙỳỵỷỹ"),
    ('z', "źżžẑẓẕ"),
];

/// A word index and the list of its terms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Index {
    /// The FTS5 table.
    pub words: &'static str,
    /// Its terms, a table of `fts5vocab` (instance).
    pub terms: &'static str,
    /// The table with the texts, each by its `id`.
    pub texts: &'static str,
}

/// A query of an index, which is named `w` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexQuery {
    /// For MATCH.
    pub query: String,
    /// For ORDER BY: best first or, if ranking would take long, newest first.
    pub order: &'static str,
    /// Only rows with larger ids match.
    pub after: i64,
}

/// The best way to query an index for some words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// For rows that contain all of the words, also as the beginning of longer ones; `None` if a word does not occur. Common
    /// words of the index only count if all are common.
    pub all: Option<IndexQuery>,
    /// The same for rows that contain any of them.
    pub any: IndexQuery,
}

const BEST: &str = "w.rank";
const NEWEST: &str = "w.rowid DESC";

impl Words {
    /// Prepares the query for this index.
    pub(crate) fn ask(&self, conn: &Connection, index: Index) -> rusqlite::Result<Question> {
        let mut asking = Asking { conn, index, known: HashMap::new() };
        Ok(Question { all: asking.all(&self.0)?, any: asking.any(self)? })
    }
}

/// A word in the form for searching.
#[derive(Debug, Clone)]
struct Looked {
    query: String,
    /// Counted up to [`MANY`].
    rows: u32,
}

struct Asking<'a> {
    conn: &'a Connection,
    index: Index,
    known: HashMap<Word, Looked>,
}

impl Asking<'_> {
    fn all(&mut self, words: &[Word]) -> rusqlite::Result<Option<IndexQuery>> {
        let looked = words.iter().map(|word| self.look(word)).collect::<rusqlite::Result<Vec<_>>>()?;
        if looked.iter().any(|looked| looked.rows == 0) {
            return Ok(None);
        }
        let queries =
            |rare: bool| looked.iter().filter(move |looked| !rare || looked.rows < MANY).map(|l| l.query.clone());
        if queries(true).next().is_some() {
            return Ok(Some(IndexQuery { query: joined(queries(true), " AND "), order: BEST, after: i64::MIN }));
        }
        // A single common word has its rows at the end of its list; several may be far apart.
        let after = if looked.len() > 1 { self.newest()? } else { i64::MIN };
        Ok(Some(IndexQuery { query: joined(queries(false), " AND "), order: NEWEST, after }))
    }

    fn any(&mut self, words: &Words) -> rusqlite::Result<IndexQuery> {
        let looked = words.telling().iter().map(|word| self.look(word)).collect::<rusqlite::Result<Vec<_>>>()?;
        let mut rare: Vec<_> = looked.iter().filter(|looked| (1..MANY).contains(&looked.rows)).collect();
        if rare.is_empty() {
            let query = joined(looked.into_iter().map(|looked| looked.query), " OR ");
            return Ok(IndexQuery { query, order: NEWEST, after: i64::MIN });
        }
        rare.sort_by_key(|looked| looked.rows);
        let mut rows = 0;
        let fit = rare.iter().take_while(|looked| {
            rows += looked.rows;
            rows <= MANY
        });
        let fit = fit.count().max(1);
        let query = joined(rare.into_iter().take(fit).map(|looked| looked.query.clone()), " OR ");
        Ok(IndexQuery { query, order: BEST, after: i64::MIN })
    }

    fn look(&mut self, word: &Word) -> rusqlite::Result<Looked> {
        if let Some(known) = self.known.get(word) {
            return Ok(known.clone());
        }
        let looked = match word {
            Word::Plain(text) if text.chars().count() <= INDEXED_PREFIX => {
                let query = word.phrase();
                Looked { rows: self.rows(&query)?, query }
            }
            Word::Plain(text) => self.with_longer(text)?,
            Word::Run(run) if run.len() == 1 => self.with_longer(&run[0].to_string())?,
            Word::Run(run) => {
                // A run is as rare as its rarest pair of characters.
                let mut rows = MANY;
                for pair in run.windows(2) {
                    rows = rows.min(self.rows(&format!("\"{}{}\"", pair[0], pair[1]))?);
                }
                Looked { query: word.phrase(), rows }
            }
        };
        self.known.insert(word.clone(), looked.clone());
        Ok(looked)
    }

    /// Looks up the word and those that begin with it.
    fn with_longer(&self, word: &str) -> rusqlite::Result<Looked> {
        let mut terms = vec![format!("\"{word}\"")];
        let mut rows = self.rows(&terms[0])?;
        let stem: String = word.chars().map(base).collect();
        let end = format!("{stem}\u{10ffff}");
        let mut from = next_after(&stem);
        let sql = format!("SELECT term FROM {} WHERE term >= ?1 AND term < ?2 LIMIT 1", self.index.terms);
        let mut query = self.conn.prepare_cached(&sql)?;
        while rows < MANY && terms.len() <= EXPANSIONS {
            let Some(term) = query.query_row((&from, &end), |row| row.get::<_, String>(0)).optional()? else { break };
            from = next_after(&term);
            let term = format!("\"{term}\"");
            rows = (rows + self.rows(&term)?).min(MANY);
            terms.push(term);
        }
        let query = if terms.len() == 1 { terms.remove(0) } else { format!("({})", joined(terms, " OR ")) };
        Ok(Looked { query, rows })
    }

    /// Returns how many rows match.
    fn rows(&self, query: &str) -> rusqlite::Result<u32> {
        let index = self.index.words;
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH ?1 LIMIT {MANY})");
        self.conn.prepare_cached(&sql)?.query_row([query], |row| row.get(0))
    }

    /// Returns the row before the newest ones.
    fn newest(&self) -> rusqlite::Result<i64> {
        let sql = format!("SELECT coalesce(max(id), 0) FROM {}", self.index.texts);
        let last: i64 = self.conn.prepare_cached(&sql)?.query_row((), |row| row.get(0))?;
        Ok(last - NEWEST_ROWS)
    }
}

/// Returns the smallest text that is greater than this term and may be the beginning of another: no term contains such a
/// character, and FTS5 would read the rows of a term that equals the start of the search.
fn next_after(term: &str) -> String {
    format!("{term}\u{1}")
}

/// Returns the letter without its diacritics.
pub(super) fn base(c: char) -> char {
    BASES.iter().find(|(_, with)| with.contains(c)).map_or(c, |(base, _)| *base)
}

impl Words {
    /// Returns the words that may occur alone in a row about the same topic, each with whether it is significant.
    pub(super) fn terms(&self) -> impl Iterator<Item = (Word, bool)> + '_ {
        self.0.iter().flat_map(Word::terms).take(MAX_WORDS.max(self.0.len()))
    }

    /// Returns the significant words, or all if there are none.
    pub(super) fn telling(&self) -> Vec<Word> {
        let telling: Vec<Word> = self.terms().filter_map(|(word, telling)| telling.then_some(word)).collect();
        if telling.is_empty() { self.terms().map(|(word, _)| word).collect() } else { telling }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: Index = Index { words: "w", terms: "t", texts: "w_content" };

    fn index(texts: &[(&str, u32)]) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE VIRTUAL TABLE w USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3');
             CREATE VIRTUAL TABLE t USING fts5vocab ('w', 'instance')",
        )
        .unwrap();
        for (text, times) in texts {
            for _ in 0..*times {
                conn.execute("INSERT INTO w VALUES (?1)", [text]).unwrap();
            }
        }
        conn
    }

    fn ask(conn: &Connection, question: &str) -> Question {
        Words::parse(question).unwrap().ask(conn, INDEX).unwrap()
    }

    #[test]
    fn longer_words_are_looked_up() {
        let conn = index(&[("the stations of Grünwald", 1), ("a stationmaster", 2), ("Grünwalder Weg", 1)]);
        let asked = ask(&conn, "station").all.unwrap();
        assert_eq!(asked.query, r#"("station" OR "stationmaster" OR "stations")"#);
        assert_eq!(asked.order, BEST);
        assert_eq!(ask(&conn, "GRÜNWALD").all.unwrap().query, r#"("grünwald" OR "grunwalder")"#);
        assert_eq!(ask(&conn, "station nowhere").all, None);
        assert_eq!(ask(&conn, "nowhere weg").any.query, r#""weg"*"#);
        assert_eq!(ask(&conn, "who is nowhere").any.query, r#""nowhere""#, "not those that stand everywhere");
    }

    #[test]
    fn words_of_many_rows_rank_nothing() {
        let conn = index(&[("rain and snow", 600), ("hail", 350), ("fog", 300), ("sleet", 3)]);
        let newest = IndexQuery { query: r#""rain" AND "snow""#.to_owned(), order: NEWEST, after: 1_253 - NEWEST_ROWS };
        assert_eq!(ask(&conn, "rain snow").all, Some(newest));
        let one = ask(&conn, "rain").all.unwrap();
        assert_eq!((one.order, one.after), (NEWEST, i64::MIN));
        let rare = IndexQuery { query: r#""sleet""#.to_owned(), order: BEST, after: i64::MIN };
        assert_eq!(ask(&conn, "rain sleet"), Question { all: Some(rare.clone()), any: rare });
        // Rarest first, as many as may be ranked.
        assert_eq!(ask(&conn, "hail fog sleet rain").any.query, r#""sleet" OR "fog"*"#);
    }

    #[test]
    fn letters_are_written_as_the_index_writes_them() {
        let conn = index(&[]);
        for (letter, with) in BASES.iter() {
            for c in with.chars() {
                conn.execute("DELETE FROM w", ()).unwrap();
                conn.execute("INSERT INTO w VALUES (?1)", [c.to_string()]).unwrap();
                let term: String = conn.query_row("SELECT term FROM t", (), |row| row.get(0)).unwrap();
                assert_eq!((term, base(c)), (letter.to_string(), *letter), "{c}");
            }
        }
    }
}
