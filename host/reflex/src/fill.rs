//! Fills a skill's arguments from the words of a clause: first from a template's captures, then the rest by type.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use kiso_plan::prompt::{Column, ColumnKind};

use crate::column::{ColumnMatch, Columns, Reach, date_column, missing};
use crate::keyword::time_noun;
use crate::operator::is_operator;
use crate::phrase;
use crate::query::{TableQuery, is_asking};
use crate::scene::{Scene, Source};
use crate::schema::{Arg, Use, choices, value};
use crate::vocabulary::Vocabulary;
use crate::word::{Word, WordShape, is_reference, key, number};

/// A query that must run before a skill that can only name columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prior {
    pub skill: usize,
    pub args: Map<String, Value>,
    pub produces: Option<Vec<Column>>,
}

/// The arguments of one skill while they are being filled.
pub(crate) struct Fill<'a> {
    pub scene: &'a Scene<'a>,
    pub skill: &'a Vocabulary<'a>,
    pub args: &'a [Arg<'a>],
    pub words: &'a [Word],
    /// The keys of the words in this skill's vocabulary.
    pub lexicon: &'a BTreeSet<String>,
    pub source: Option<&'a Source>,
    pub used: Vec<bool>,
    /// Words that set a parameter and are not part of the topic: files, `20 bins`, "as bars".
    pub aside: Vec<bool>,
    pub out: Map<String, Value>,
    pub score: i32,
    pub problems: Vec<String>,
    pub notes: Vec<String>,
    pub prior: Option<Prior>,
    pub produces: Option<Vec<Column>>,
    /// Number of those that are groups.
    pub groups: usize,
    /// Whether something was read as a query.
    pub queried: bool,
    /// Whether a condition was read.
    pub narrowed: bool,
    /// Whether columns to show were named.
    pub named: bool,
}

impl<'a> Fill<'a> {
    pub(crate) fn columns(&self) -> Option<&'a Columns> {
        match self.source {
            Some(source) => source.columns.as_ref(),
            None => Some(&self.scene.none),
        }
    }

    pub(crate) fn set(&mut self, arg: &Arg, value: Value) {
        self.out.insert(arg.name.to_owned(), value);
        self.score += 2;
    }

    pub(crate) fn open(&self, used: Use) -> Option<Arg<'a>> {
        self.args.iter().find(|arg| arg.used == used && !self.out.contains_key(arg.name)).copied()
    }

    /// Sets `arg` to the words that a template captured.
    pub(crate) fn capture(&mut self, arg: &Arg, words: &[Word]) {
        let content: Vec<Word> = words.iter().filter(|w| w.is_content()).cloned().collect();
        match arg.used {
            Use::File => {
                if let Some(word) = content.first() {
                    self.file(arg, word);
                }
            }
            Use::Column => self.column(arg, words),
            Use::Columns => self.column_list(arg, words),
            Use::Choice => {
                let said = content.iter().find_map(|w| choices(arg.schema).find(|c| key(&c.to_lowercase()) == w.key));
                if let Some(choice) = said {
                    self.set(arg, json!(choice));
                }
            }
            Use::Integer | Use::Limit | Use::Number => {
                let text = content.first().and_then(|w| number(&w.raw)).map(|n| n.to_string()).unwrap_or_default();
                self.parsed(arg, &text);
            }
            Use::Url => {
                if let Some(word) = content.first() {
                    self.url(arg, word);
                }
            }
            _ => {
                let text = self.scene.slice(words).to_owned();
                self.parsed(arg, &text);
            }
        }
    }

    pub(crate) fn parsed(&mut self, arg: &Arg, text: &str) {
        match value(arg.schema, text) {
            Ok(value) => self.set(arg, value),
            Err(why) => self.problems.push(format!("{}: {why}", arg.name)),
        }
    }

    pub(crate) fn url(&mut self, arg: &Arg, word: &Word) {
        let text = if word.shape == WordShape::Url { word.raw.clone() } else { format!("https://{}", word.raw) };
        self.set(arg, json!(text));
    }

    pub(crate) fn file(&mut self, arg: &Arg, word: &Word) {
        match self.scene.file(&word.raw) {
            Some(file) => self.set(arg, json!(file.path)),
            None => {
                if self.scene.complete {
                    self.problems.push(self.scene.missing_file(&word.raw));
                }
                self.set(arg, json!(word.raw));
            }
        }
    }

    /// Sets one column; a word for time means the date column.
    fn column(&mut self, arg: &Arg, words: &[Word]) {
        match self.one_column(words) {
            Ok(column) => self.set(arg, json!(column)),
            Err(Some(problem)) => self.problems.push(problem),
            Err(None) => {}
        }
    }

    /// Sets several columns, separated by "and" and commas. "both" and "all" leave the choice to the skill.
    pub(crate) fn column_list(&mut self, arg: &Arg, words: &[Word]) {
        let mut columns = Vec::new();
        for item in words.split_inclusive(|w| w.norm == "and" || w.mark == crate::word::Punctuation::Comma) {
            match self.one_column(item) {
                Ok(column) => columns.push(json!(column)),
                Err(Some(problem)) => self.problems.push(problem),
                Err(None) => {}
            }
        }
        columns.dedup();
        if !columns.is_empty() {
            self.set(arg, Value::Array(columns));
        }
    }

    /// Returns the column that an item of a list means; an error without text if the item is empty.
    pub(crate) fn one_column(&mut self, words: &[Word]) -> Result<String, Option<String>> {
        let rows = self.source.map(Source::own_words).unwrap_or_default();
        let own: Vec<&Word> = words
            .iter()
            .filter(|w| {
                w.is_content() && (!is_asking(w) || w.norm == "only") && w.key != "column" && !rows.contains(&w.key)
            })
            .filter(|w| !self.lexicon.contains(&w.key) || is_operator(w) || self.is_column(&w.raw))
            .collect();
        // "only rain": naming the column already fulfils "only".
        let own = match own.as_slice() {
            [first, rest @ ..] if first.norm == "only" => rest.to_vec(),
            all => all.to_vec(),
        };
        if own.is_empty() {
            return Err(None);
        }
        let phrase = own.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ");
        let Some(columns) = self.columns().filter(|_| self.source.is_some()) else {
            return Ok(phrase);
        };
        if let ColumnMatch::One(name) = columns.resolve(&phrase, Reach::Spelling) {
            return Ok(name);
        }
        if let Some(time) = time_noun(&phrase.to_lowercase())
            .or((phrase.eq_ignore_ascii_case("time") || phrase.eq_ignore_ascii_case("date")).then_some("day"))
            && let Some(date) = date_column(columns)
        {
            if !matches!(time, "day" | "hour") {
                let number = columns.iter().find(|column| column.kind == ColumnKind::Number);
                let number = number.map_or("COLUMN", |column| column.name.as_str());
                self.notes.push(format!(
                    "{time} was read as the column {date}; for one value per {time}, name an aggregate, such as \"mean {number} by {time}\""
                ));
            }
            return Ok(date.to_owned());
        }
        // "wind speed", if only wind is a column.
        if let [head @ .., last] = own.as_slice()
            && matches!(last.norm.as_str(), "speed" | "size" | "rate" | "count" | "sum" | "total")
            && let ColumnMatch::One(name) =
                columns.resolve(&head.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" "), Reach::Words)
        {
            self.notes.push(format!("\"{phrase}\" was read as the column {name}"));
            return Ok(name);
        }
        let file = self.source.map_or("the file", |s| s.path.as_str());
        Err(Some(match columns.resolve(&phrase, Reach::Spelling) {
            ColumnMatch::Many(names) => {
                format!("`{phrase}` could be any of the columns {} in {file}", names.join(", "))
            }
            _ => missing(&phrase, file, columns),
        }))
    }

    pub(crate) fn is_column(&self, raw: &str) -> bool {
        self.columns().is_some_and(|all| all.iter().any(|c| c.name.eq_ignore_ascii_case(raw)))
    }

    /// Reads the unused words as a query over the source's columns.
    pub(crate) fn read_query(&self) -> (TableQuery, Vec<usize>) {
        let free: Vec<usize> = (0..self.words.len()).filter(|i| !self.used[*i]).collect();
        let words: Vec<Word> = free.iter().map(|i| self.words[*i].clone()).collect();
        let columns = self.joined_columns();
        let rows = self.source.map(Source::own_words).unwrap_or_default();
        let mut query = phrase::read(&words, columns.as_deref(), &rows);
        let own = |i: &usize| {
            is_operator(&words[*i]) || (!self.lexicon.contains(&words[*i].key) && words[*i].key != "column")
        };
        query.leftover = query.leftover.iter().filter(|i| own(i)).map(|i| free[*i]).collect();
        (query, free)
    }

    /// Returns the columns of the source and of every other named file (a join).
    pub(crate) fn joined_columns(&self) -> Option<Cow<'a, Columns>> {
        let own = self.columns()?;
        let mut columns = own.to_vec();
        let files = self.args.iter().filter(|a| a.used == Use::File).filter_map(|a| self.out.get(a.name)?.as_str());
        for source in files.filter_map(|path| self.scene.file(path)) {
            for column in source.columns.iter().flat_map(|c| c.iter()) {
                if !columns.iter().any(|c| c.name == column.name) {
                    columns.push(column.clone());
                }
            }
        }
        Some(if columns.len() == own.len() { Cow::Borrowed(own) } else { Cow::Owned(Columns::new(columns)) })
    }

    /// Whether the clause refers to a previous result.
    pub(crate) fn refers(&self) -> bool {
        self.words.iter().any(|w| w.shape == WordShape::Plain && is_reference(&w.norm) && w.norm != "all")
    }
}
