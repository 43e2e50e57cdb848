//! Drafts: a clause as a call of a skill, with a score for how well it fits.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use kiso_plan::prompt::Column;

use crate::column::{ColumnMatch, Reach, date_column};
use crate::effort;
use crate::fill::{Fill, Prior};
use crate::keyword::{function, is_keyword, leads, time_noun};
use crate::leftover;
use crate::operator::{is_negation, is_operator};
use crate::query::{is_asking, is_row};
use crate::scene::{Scene, Source};
use crate::schema::{self, Arg, Use, choices};
use crate::template::{Alignment, Item, align, without};
use crate::vocabulary::{Vocabulary, contents};
use crate::word::{Word, WordShape, is_reference, key, sentence};

/// A clause as a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallDraft {
    pub skill: usize,
    pub args: Map<String, Value>,
    pub score: i32,
    /// Missing or impossible parts; a draft with problems does not run.
    pub problems: Vec<String>,
    /// Assumptions.
    pub notes: Vec<String>,
    /// Words that were not understood and do no harm.
    pub unused: Vec<String>,
    /// The query that must run first.
    pub prior: Option<Prior>,
    /// The columns of the result, if they can be known.
    pub produces: Option<Vec<Column>>,
    pub groups: usize,
    /// The argument that reads the source.
    pub file_arg: Option<String>,
    /// Whether the source was used although the clause names no file.
    pub took_source: bool,
    pub refers: bool,
    /// The object of the clause, for names and titles: "monthly mean temperature".
    pub phrase: String,
}

impl CallDraft {
    /// Drafts that understood everything come first, then those that understood most.
    fn rank(&self) -> (bool, i32) {
        (self.problems.is_empty() && self.unused.is_empty(), self.score)
    }
}

/// Returns the best draft of `words` over all skills, reading from `source`.
pub(crate) fn best(scene: &Scene, words: &[Word], source: Option<&Source>) -> Option<CallDraft> {
    let query_skill = scene.skills.iter().position(Vocabulary::saves_queries);
    let mut best: Option<CallDraft> = None;
    for index in 0..scene.skills.len() {
        // A text file has no columns to query.
        if source.is_some_and(Source::is_text) && scene.skills[index].reads_tables() {
            continue;
        }
        let prior = query_skill.filter(|q| *q != index).map(|q| (q, scene.skills[q].args.as_slice()));
        for draft in drafts(scene, index, words, source, prior) {
            if best.as_ref().is_none_or(|b| draft.rank() > b.rank()) {
                best = Some(draft);
            }
        }
    }
    best
}

fn drafts(
    scene: &Scene,
    index: usize,
    words: &[Word],
    source: Option<&Source>,
    prior: Option<(usize, &[Arg])>,
) -> Vec<CallDraft> {
    let skill = &scene.skills[index];
    if !effort::spend(8 * (words.len() + skill.templates.len() + 8)) {
        return Vec::new();
    }
    let args = skill.args.as_slice();
    let said: BTreeSet<&str> = words.iter().filter(|w| w.is_content()).map(|w| w.key.as_str()).collect();
    let blank = || Fill {
        scene,
        skill,
        args,
        words,
        lexicon: &skill.words,
        source,
        used: vec![false; words.len()],
        aside: vec![false; words.len()],
        out: Map::new(),
        score: 0,
        problems: Vec::new(),
        notes: Vec::new(),
        prior: None,
        produces: None,
        groups: 0,
        queried: false,
        narrowed: false,
        named: false,
    };
    let mut out = Vec::new();
    let arg = |name: &str| args.iter().find(|a| a.name == name);
    for items in &skill.templates {
        // The clause must contain every literal with content, so most templates are excluded at once.
        if !contents(items).all(|key| said.contains(key)) {
            continue;
        }
        // Queries are read as a whole, in any order; their templates only provide their words.
        let is_query = |item: &Item| matches!(item, Item::Slot(name) if arg(name).is_some_and(|a| matches!(a.used, Use::Aggregate | Use::Group | Use::Condition | Use::Order | Use::Limit)));
        if items.iter().any(is_query) || !items.iter().any(|i| matches!(i, Item::Slot(_) | Item::Fixed(..))) {
            continue;
        }
        let bare = without(items, |name| arg(name).is_some_and(|a| a.used == Use::File));
        for items in [items, &bare] {
            let probe = blank();
            let Some(alignment) = align(items, words, &|name, span| arg(name).and_then(|a| fits(&probe, a, span)))
            else {
                continue;
            };
            if alignment.literals > 0 {
                out.extend(laid(blank(), &alignment, prior).and_then(|fill| finish(fill, index, alignment.literals)));
            }
        }
    }
    let mut fill = blank();
    fill.rest(prior);
    let shared = skill.closeness(&said);
    fill.score += 2 * shared as i32;
    let evidence = shared
        + usize::from(fill.queried)
        + usize::from(args.iter().any(|a| a.used == Use::Choice && fill.out.contains_key(a.name)));
    out.extend(finish(fill, index, evidence));
    out
}

/// Scores how well words fill a slot; `None` if they cannot.
fn fits(fill: &Fill, arg: &Arg, span: &[Word]) -> Option<i32> {
    let content: Vec<&Word> = span.iter().filter(|w| w.is_content()).collect();
    let literal = |w: &&Word| {
        matches!(w.shape, WordShape::File | WordShape::Url | WordShape::Number | WordShape::Compare | WordShape::Call)
    };
    match (arg.used, content.as_slice()) {
        (Use::File, []) => span.iter().any(|w| is_reference(&w.norm)).then_some(1),
        (Use::File, [one]) if one.shape == WordShape::File => Some(2),
        (Use::File, [one]) => fill.scene.file(&one.raw).map(|_| 2),
        (Use::Url, [one]) if one.shape == WordShape::Url => Some(2),
        (Use::Url, [one]) if one.shape == WordShape::File && fill.scene.file(&one.raw).is_none() => Some(1),
        (Use::Choice, [one]) => choices(arg.schema).any(|c| key(&c.to_lowercase()) == one.key).then_some(2),
        (Use::Integer | Use::Number | Use::Limit, [one]) if one.shape == WordShape::Number => Some(2),
        (Use::Save, [one]) if one.shape == WordShape::File => Some(2),
        (Use::Column, _) => {
            let joined = span.iter().any(|w| !w.is_content() && matches!(w.key.as_str(), "by" | "from" | "with"))
                || span.iter().skip(1).any(|w| w.norm == "for" || narrows(w));
            column_fit(fill, span).filter(|_| !joined && !content.iter().any(literal))
        }
        (Use::Columns, []) => span.iter().any(|w| is_reference(&w.norm)).then_some(1),
        (Use::Columns, _) if content.iter().any(literal) => None,
        (Use::Columns, _) if span.iter().skip(1).any(narrows) => None,
        (Use::Columns, _) => span
            .split_inclusive(|w| w.norm == "and" || w.mark == crate::word::Punctuation::Comma)
            .map(|item| column_fit(fill, item))
            .try_fold(2, |least, fit| fit.map(|fit| least.min(fit))),
        (Use::Text | Use::Title, [_, ..]) => Some(1),
        _ => None,
    }
}

/// Whether the words after it select rows and name no column.
fn narrows(word: &Word) -> bool {
    word.shape == WordShape::Plain && (is_negation(&word.norm) || leads(&word.norm))
}

fn column_fit(fill: &Fill, span: &[Word]) -> Option<i32> {
    let own: Vec<&str> = span.iter().filter(|w| w.is_content()).map(|w| w.raw.as_str()).collect();
    let Some(columns) = fill.columns().filter(|_| fill.source.is_some()) else {
        return (!own.is_empty()).then_some(1);
    };
    let phrase = own.join(" ");
    match columns.resolve(&phrase, Reach::Spelling) {
        ColumnMatch::One(_) => Some(2),
        _ if time_noun(&phrase.to_lowercase()).is_some() && date_column(columns).is_some() => Some(2),
        // "total rain" is a query; for other words, an error may still say which column is missing.
        _ if span.iter().any(|w| w.is_content() && is_keyword(w)) => None,
        _ if (1..=3).contains(&own.len()) => Some(-2),
        _ => None,
    }
}

fn laid<'a>(mut fill: Fill<'a>, alignment: &Alignment, prior: Option<(usize, &'a [Arg<'a>])>) -> Option<Fill<'a>> {
    fill.score = alignment.score;
    for (name, range) in &alignment.captures {
        let arg = fill.args.iter().find(|a| a.name == name)?;
        fill.capture(arg, &fill.words[range.clone()]);
        fill.used[range.clone()].fill(true);
        if !matches!(arg.used, Use::Column | Use::Columns | Use::Text) {
            fill.aside[range.clone()].fill(true);
        }
    }
    for (name, text) in &alignment.fixed {
        let arg = fill.args.iter().find(|a| a.name == name)?;
        fill.parsed(arg, text);
    }
    for i in 0..alignment.rest.start {
        // A literal may also be an argument's word ("histogram"), so it stays available for that.
        fill.used[i] |= !fill.words[i].is_content();
    }
    let met: Vec<usize> = alignment.met.clone();
    fill.rest(prior);
    for i in met {
        fill.used[i] = true;
    }
    Some(fill)
}

/// Finishes a draft, unless too little of the clause was understood.
fn finish(mut fill: Fill, skill: usize, evidence: usize) -> Option<CallDraft> {
    let refers = fill.refers();
    let unused = leftover::unused(&fill);
    let content = fill.words.iter().filter(|w| w.is_content()).count();
    let first = fill.words.iter().position(Word::is_content);
    // An unused operator is reported, however little of the rest was understood.
    let says = unused.iter().any(|i| fill.words[*i].shape == WordShape::Plain && is_operator(&fill.words[*i]));
    let lost = first.is_some_and(|i| unused.contains(&i)) || (unused.len() * 3 > content && !says && !fill.queried);
    if evidence == 0 || (lost && content > 0) {
        return None;
    }
    let problem = leftover::problem(&fill, &unused);
    fill.problems.extend(problem);
    let file = schema::first(fill.args, Use::File).copied();
    let mut took_source = false;
    if let Some(file) = file
        && !fill.out.contains_key(file.name)
        && (file.required || refers)
        && let Some(source) = fill.source
    {
        fill.out.insert(file.name.to_owned(), json!(source.path));
        took_source = true;
    }
    for arg in fill.args.iter().filter(|a| a.required && !fill.out.contains_key(a.name)) {
        let what = match arg.used {
            Use::File => format!("no file was named for {}; {}", fill.skill.card.name, fill.scene.holdings()),
            _ => format!("{} needs `{}`{}", fill.skill.card.name, arg.name, about(arg)),
        };
        fill.problems.push(what);
    }
    let phrase = phrase(&fill, &unused);
    if let Some(title) = schema::first(fill.args, Use::Title)
        && !fill.out.contains_key(title.name)
        && !phrase.is_empty()
        && !fill
            .args
            .iter()
            .any(|a| a.used == Use::Column && fill.out.get(a.name).is_some_and(|v| *v == json!(phrase.clone())))
    {
        fill.out.insert(title.name.to_owned(), json!(sentence(&phrase)));
    }
    Some(CallDraft {
        skill,
        score: fill.score - 3 * unused.len() as i32 - 4 * fill.problems.len() as i32,
        args: ordered(fill.args, fill.out),
        problems: fill.problems,
        notes: fill.notes,
        unused: unused.iter().map(|i| fill.words[*i].raw.clone()).collect(),
        prior: fill.prior,
        produces: fill.produces,
        groups: fill.groups,
        file_arg: file.map(|f| f.name.to_owned()),
        took_source,
        refers,
        phrase,
    })
}

fn about(arg: &Arg) -> String {
    arg.schema["description"].as_str().map(|d| format!(" ({d})")).unwrap_or_default()
}

/// Returns the args in the order of the schema.
fn ordered(args: &[Arg], mut out: Map<String, Value>) -> Map<String, Value> {
    args.iter().filter_map(|a| out.remove(a.name).map(|v| (a.name.to_owned(), v))).collect()
}

/// Returns the topic of the clause: its words without the skill's own words at the front, files, values of an `enum`, and fillers
/// at both ends.
fn phrase(fill: &Fill, unused: &[usize]) -> String {
    let choice = |w: &Word| {
        fill.args
            .iter()
            .filter(|a| a.used == Use::Choice)
            .any(|a| choices(a.schema).any(|c| key(&c.to_lowercase()) == w.key))
    };
    let outer = |w: &Word| {
        !w.is_content()
            || ((is_asking(w) || is_row(w)) && !fill.is_column(&w.raw))
            || choice(w)
            || (fill.lexicon.contains(&w.key) && !fill.is_column(&w.raw) && function(w).is_none())
    };
    let mut words: Vec<&Word> = Vec::new();
    for (i, word) in fill.words.iter().enumerate().filter(|(i, _)| !unused.contains(i)) {
        if fill.aside[i] || matches!(word.shape, WordShape::File | WordShape::Url | WordShape::Quoted) {
            // The preposition before a file belongs to it.
            while words.last().is_some_and(|w| !w.is_content()) {
                words.pop();
            }
            if !words.iter().all(|w| outer(w)) {
                break;
            }
            continue;
        }
        words.push(word);
    }
    let start = words.iter().position(|w| !outer(w)).unwrap_or(words.len());
    let end = words.iter().rposition(|w| !outer(w)).map_or(start, |i| i + 1);
    let mut out = String::new();
    for (i, word) in words[start..end].iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(&word.raw);
        if word.mark == crate::word::Punctuation::Comma && start + i + 1 < end {
            out.push(',');
        }
    }
    out
}
