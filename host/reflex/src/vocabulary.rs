//! The vocabulary of a skill: its arguments, its examples as templates, and its words.

use std::collections::BTreeSet;

use kiso_plan::prompt::SkillCard;

use crate::schema::{Arg, Use, args, choices};
use crate::template::{Item, parse};
use crate::word::key;

/// Maximum examples that are read of a skill.
const MAX_EXAMPLES: usize = 50;

/// A skill, parsed once per message.
#[derive(Debug)]
pub(crate) struct Vocabulary<'a> {
    pub card: &'a SkillCard,
    pub args: Vec<Arg<'a>>,
    pub templates: Vec<Vec<Item>>,
    /// The keys of its name, of the words with content in its examples, and of the values of its enums.
    pub words: BTreeSet<String>,
}

impl<'a> Vocabulary<'a> {
    pub(crate) fn new(card: &'a SkillCard) -> Self {
        let args = args(card);
        let templates: Vec<Vec<Item>> = card.examples.iter().take(MAX_EXAMPLES).map(|e| parse(e)).collect();
        let words = templates
            .iter()
            .flat_map(|t| contents(t))
            .map(str::to_owned)
            .chain(args.iter().flat_map(|a| choices(a.schema)).map(|c| key(&c.to_lowercase())))
            .chain([key(&card.name.to_lowercase())])
            .collect();
        Self { card, args, templates, words }
    }

    /// Returns how many words with content the keys share with the closest example; 0 if less than half of that example's.
    pub(crate) fn closeness(&self, said: &BTreeSet<&str>) -> usize {
        self.templates
            .iter()
            .map(|template| {
                let own: BTreeSet<&str> = contents(template).collect();
                let shared = own.intersection(said).count();
                if shared * 2 >= own.len() { shared } else { 0 }
            })
            .max()
            .unwrap_or(0)
    }

    /// Whether its input has columns.
    pub(crate) fn reads_tables(&self) -> bool {
        let columns = [Use::Column, Use::Columns, Use::Aggregate, Use::Group, Use::Condition];
        self.args.iter().any(|arg| columns.contains(&arg.used))
    }

    /// Whether it can run a query and save the result.
    pub(crate) fn saves_queries(&self) -> bool {
        [Use::File, Use::Aggregate, Use::Save].iter().all(|used| self.args.iter().any(|a| a.used == *used))
    }
}

/// Returns the keys of the words with content.
pub(crate) fn contents(template: &[Item]) -> impl Iterator<Item = &str> {
    template.iter().filter_map(|item| match item {
        Item::Literal { key, content: true } => Some(key.as_str()),
        _ => None,
    })
}
