//! Fills arguments that no template captured, by type: files, choices, a query or columns; then finds missing arguments.

use serde_json::json;

use crate::aggregate::{mean_of_columns, values_of_columns};
use crate::asked::{put_query, result_columns};
use crate::fill::Fill;
use crate::schema::{Arg, Use};
use crate::word::{WordShape, number};
use crate::{axes, choice};

impl<'a> Fill<'a> {
    /// Fills everything that no template captured, by type.
    pub(crate) fn rest(&mut self, index_of_query: Option<(usize, &'a [Arg<'a>])>) {
        self.files();
        choice::fill(self);
        if self.args.iter().any(|a| matches!(a.used, Use::Aggregate | Use::Condition)) {
            self.query();
        } else if self.args.iter().any(|a| matches!(a.used, Use::Column | Use::Columns)) {
            axes::fill(self, index_of_query);
        }
        self.literals();
    }

    /// Assigns files and addresses to the next argument of their kind, with the preposition before them.
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
            let placed = word.shape == WordShape::Plain
                && matches!(before, "from" | "in" | "of" | "with" | "using")
                && !self.is_column(&word.raw)
                && self.scene.file(&word.raw).is_some();
            let arg = match word.shape {
                WordShape::File if saving => self.open(Use::Save),
                WordShape::Url => self.open(Use::Url),
                WordShape::File | WordShape::Quoted if self.scene.file(&word.raw).is_some() => self.open(Use::File),
                WordShape::File => self.open(Use::File).or_else(|| self.open(Use::Url)),
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

    fn query(&mut self) {
        let (mut query, free) = self.read_query();
        let columns = self.joined_columns();
        let switched = self.args.iter().any(|a| a.used == Use::Switch && self.out.contains_key(a.name));
        if let (Some(_), Some(columns)) = (self.source, &columns) {
            values_of_columns(&mut query, self.words, columns);
        }
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

    /// Assigns quoted texts, numbers and remaining words to required arguments that are still missing.
    fn literals(&mut self) {
        for i in 0..self.words.len() {
            let word = &self.words[i];
            if self.used[i] {
                continue;
            }
            let wanted = |arg: &&Arg| arg.required && !self.out.contains_key(arg.name);
            let arg = match word.shape {
                WordShape::Quoted => self.args.iter().rev().filter(wanted).find(|a| a.used == Use::Text),
                WordShape::Number => {
                    self.args.iter().filter(wanted).find(|a| matches!(a.used, Use::Integer | Use::Number))
                }
                _ => None,
            };
            if let Some(arg) = arg {
                let text = if word.shape == WordShape::Number {
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

    /// Returns the remaining words, without the skill's own words at the front; if its examples cover them all, the words after
    /// the first preposition.
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
}
