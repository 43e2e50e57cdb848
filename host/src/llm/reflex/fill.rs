//! Filling a skill's arguments from the words of a clause: what a template captured, and then the rest by type.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::llm::prompt::{Column, ColumnKind};

use super::aggregate::mean_of_columns;
use super::asked::{put_query, result_columns};
use super::choice;
use super::column::{ColumnMatch, Columns, Reach, date_column, missing};
use super::group::time_noun;
use super::leftover::is_operator;
use super::query::{self, Query, is_asking};
use super::scene::{Scene, Source};
use super::schema::{Arg, Use, choices, value};
use super::vocabulary::Vocabulary;
use super::word::{Shape, Word, is_reference, key, number};

/// A query that has to run before a skill that can only name columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prior {
    pub skill: usize,
    pub args: Map<String, Value>,
    pub produces: Option<Vec<Column>>,
}

/// The arguments of one skill while they are filled.
pub(super) struct Fill<'a> {
    pub scene: &'a Scene<'a>,
    pub skill: &'a Vocabulary<'a>,
    pub args: &'a [Arg<'a>],
    pub words: &'a [Word],
    /// The keys of the words that belong to this skill's own language.
    pub lexicon: &'a BTreeSet<String>,
    pub source: Option<&'a Source>,
    pub used: Vec<bool>,
    /// Words that set something beside the matter: files, `20 bins`, "as bars".
    pub aside: Vec<bool>,
    pub out: Map<String, Value>,
    pub score: i32,
    pub problems: Vec<String>,
    pub notes: Vec<String>,
    pub prior: Option<Prior>,
    pub produces: Option<Vec<Column>>,
    /// How many of them are groups.
    pub groups: usize,
    /// Something was read as a query.
    pub queried: bool,
    /// A condition was read.
    pub narrowed: bool,
    /// Columns to show were named.
    pub named: bool,
}

impl<'a> Fill<'a> {
    pub fn columns(&self) -> Option<&'a Columns> {
        match self.source {
            Some(source) => source.columns.as_ref(),
            None => Some(&self.scene.none),
        }
    }

    pub fn set(&mut self, arg: &Arg, value: Value) {
        self.out.insert(arg.name.to_owned(), value);
        self.score += 2;
    }

    pub fn open(&self, used: Use) -> Option<Arg<'a>> {
        self.args.iter().find(|arg| arg.used == used && !self.out.contains_key(arg.name)).copied()
    }

    /// What a template captured for `arg`.
    pub fn capture(&mut self, arg: &Arg, words: &[Word]) {
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

    pub fn parsed(&mut self, arg: &Arg, text: &str) {
        match value(arg.schema, text) {
            Ok(value) => self.set(arg, value),
            Err(why) => self.problems.push(format!("{}: {why}", arg.name)),
        }
    }

    fn url(&mut self, arg: &Arg, word: &Word) {
        let text = if word.shape == Shape::Url { word.raw.clone() } else { format!("https://{}", word.raw) };
        self.set(arg, json!(text));
    }

    fn file(&mut self, arg: &Arg, word: &Word) {
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

    /// One column; a word for time means the column of dates.
    fn column(&mut self, arg: &Arg, words: &[Word]) {
        match self.one_column(words) {
            Ok(column) => self.set(arg, json!(column)),
            Err(Some(problem)) => self.problems.push(problem),
            Err(None) => {}
        }
    }

    /// Several columns, cut at "and" and commas. "both" and "all" leave the choice to the skill.
    pub fn column_list(&mut self, arg: &Arg, words: &[Word]) {
        let mut columns = Vec::new();
        for item in words.split_inclusive(|w| w.norm == "and" || w.mark == super::word::Mark::Comma) {
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

    /// The column that an item of a list means; nothing where the item says nothing.
    pub fn one_column(&mut self, words: &[Word]) -> Result<String, Option<String>> {
        let rows = self.source.map(Source::own_words).unwrap_or_default();
        let own: Vec<&Word> = words
            .iter()
            .filter(|w| {
                w.is_content() && (!is_asking(w) || w.norm == "only") && w.key != "column" && !rows.contains(&w.key)
            })
            .filter(|w| !self.lexicon.contains(&w.key) || is_operator(w) || self.is_column(&w.raw))
            .collect();
        // "only rain": naming a column is all that "only" asks for.
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
        // "wind speed" where only wind is a column.
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

    pub fn is_column(&self, raw: &str) -> bool {
        self.columns().is_some_and(|all| all.iter().any(|c| c.name.eq_ignore_ascii_case(raw)))
    }

    /// Everything that no template captured, by type.
    pub fn rest(&mut self, index_of_query: Option<(usize, &'a [Arg<'a>])>) {
        self.files();
        choice::fill(self);
        if self.args.iter().any(|a| matches!(a.used, Use::Aggregate | Use::Condition)) {
            self.query();
        } else if self.args.iter().any(|a| matches!(a.used, Use::Column | Use::Columns)) {
            super::axes::fill(self, index_of_query);
        }
        self.literals();
    }

    /// Files and addresses, each for the next argument of its kind, with the preposition before it.
    fn files(&mut self) {
        for i in 0..self.words.len() {
            let word = &self.words[i];
            if self.used[i] {
                continue;
            }
            let lead =
                (0..i).rev().find(|j| !matches!(self.words[*j].norm.as_str(), "the" | "my" | "our" | "this" | "file"));
            let before = lead.map_or("", |j| self.words[j].norm.as_str());
            let saving = matches!(before, "as" | "to" | "into")
                && self.words[..i].iter().any(|w| matches!(w.norm.as_str(), "save" | "write" | "store"));
            let placed = word.shape == Shape::Plain
                && matches!(before, "from" | "in" | "of" | "with" | "using")
                && !self.is_column(&word.raw)
                && self.scene.file(&word.raw).is_some();
            let arg = match word.shape {
                Shape::File if saving => self.open(Use::Save),
                Shape::Url => self.open(Use::Url),
                Shape::File | Shape::Quoted if self.scene.file(&word.raw).is_some() => self.open(Use::File),
                Shape::File => self.open(Use::File).or_else(|| self.open(Use::Url)),
                _ if placed => self.open(Use::File),
                _ => None,
            };
            let Some(arg) = arg else { continue };
            match arg.used {
                Use::File => self.file(&arg, word),
                Use::Url => self.url(&arg, word),
                _ => self.set(&arg, json!(word.raw)),
            }
            let start = lead.filter(|j| !self.words[*j].is_content() && self.words[*j].norm != "and").unwrap_or(i);
            self.used[start..=i].fill(true);
            self.aside[i] = true;
        }
    }

    /// The unused words as a query over the source's columns.
    pub fn read_query(&self) -> (Query, Vec<usize>) {
        let free: Vec<usize> = (0..self.words.len()).filter(|i| !self.used[*i]).collect();
        let words: Vec<Word> = free.iter().map(|i| self.words[*i].clone()).collect();
        let columns = self.joined_columns();
        let rows = self.source.map(Source::own_words).unwrap_or_default();
        let mut query = query::read(&words, columns.as_deref(), &rows);
        let own = |i: &usize| {
            is_operator(&words[*i]) || (!self.lexicon.contains(&words[*i].key) && words[*i].key != "column")
        };
        query.leftover = query.leftover.iter().filter(|i| own(i)).map(|i| free[*i]).collect();
        (query, free)
    }

    /// The source's columns and those of every other file that was named (a join).
    fn joined_columns(&self) -> Option<Cow<'a, Columns>> {
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

    fn query(&mut self) {
        let (mut query, free) = self.read_query();
        let columns = self.joined_columns();
        let switched = self.args.iter().any(|a| a.used == Use::Switch && self.out.contains_key(a.name));
        if let Some(source) = self.source {
            mean_of_columns(&mut query, |name| source.is_number(name));
        }
        self.produces = if switched { None } else { result_columns(&query, columns.as_deref().map(|all| &**all)) };
        self.groups = query.group.len();
        if query.weight() == 0 {
            self.problems.append(&mut query.problems);
            return;
        }
        for i in free {
            self.used[i] = !query.leftover.contains(&i);
        }
        self.score += 2 * query.weight() as i32;
        self.queried = true;
        self.narrowed = !query.conditions.is_empty();
        self.named = !query.columns.is_empty();
        put_query(&query, self.args, &mut self.out, &mut self.problems);
        self.notes.append(&mut query.notes);
        self.problems.append(&mut query.problems);
    }

    /// Quoted texts, numbers and the rest of the words, for what is required and still missing.
    fn literals(&mut self) {
        for i in 0..self.words.len() {
            let word = &self.words[i];
            if self.used[i] {
                continue;
            }
            let wanted = |arg: &&Arg| arg.required && !self.out.contains_key(arg.name);
            let arg = match word.shape {
                Shape::Quoted => self.args.iter().rev().filter(wanted).find(|a| a.used == Use::Text),
                Shape::Number => self.args.iter().filter(wanted).find(|a| matches!(a.used, Use::Integer | Use::Number)),
                _ => None,
            };
            if let Some(arg) = arg {
                let text = if word.shape == Shape::Number {
                    number(&word.raw).unwrap_or_default().to_string()
                } else {
                    word.raw.clone()
                };
                self.parsed(arg, &text);
                self.used[i] = true;
            }
        }
        let last = self.args.iter().rev().find(|a| a.required && a.used == Use::Text && !self.out.contains_key(a.name));
        if let Some(arg) = last
            && let Some(range) = self.free_text()
        {
            let text = self.scene.slice(&self.words[range.clone()]).to_owned();
            self.parsed(arg, &text);
            self.used[range].fill(true);
        }
    }

    /// The words that are left, without the skill's own at the front; if its examples cover them all, what follows the
    /// first preposition.
    fn free_text(&self) -> Option<std::ops::Range<usize>> {
        let own = |i: usize| self.used[i] || !self.words[i].is_content() || self.lexicon.contains(&self.words[i].key);
        let all = 0..self.words.len();
        let start = all.clone().find(|i| !own(*i)).or_else(|| {
            let lead = all
                .clone()
                .position(|i| matches!(self.words[i].norm.as_str(), "for" | "about" | "on" | "to" | "of"))?;
            (lead + 1 < self.words.len()).then_some(lead + 1)
        })?;
        let end = all.rev().find(|i| !self.used[*i])? + 1;
        (start < end && !self.used[start..end].contains(&true)).then_some(start..end)
    }

    /// Whether the clause points at what came before.
    pub fn refers(&self) -> bool {
        self.words.iter().any(|w| w.shape == Shape::Plain && is_reference(&w.norm) && w.norm != "all")
    }
}
