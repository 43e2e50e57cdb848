//! Chains: the clauses of a message as steps, each reading the file that it names, or what the step before it left.

use serde_json::{Map, Value, json};

use kiso_plan::prompt::{ChatMessage, Column};

use crate::clause::{split, verbs};
use crate::column::Columns;
use crate::draft::{CallDraft, best};
use crate::effort;
use crate::scene::{Scene, Source, is_computed};
use crate::schema::{Use, first};
use crate::word::{Word, WordShape, clip, is_reference, key, words};

/// One call of the plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChainStep {
    pub skill: usize,
    pub args: Map<String, Value>,
    pub detail: String,
    pub produces: Option<Vec<Column>>,
    /// How many columns of the result are groups.
    pub groups: usize,
    pub notes: Vec<String>,
}

/// Bytes of a message that are read, and of each that was said before it.
pub(crate) const MAX_TEXT: usize = 16 << 10;
/// Messages that were said before and that may name the table that is spoken of.
const MAX_MESSAGES: usize = 20;
/// A longer message is a text and not a request, and reading it would take time and find nothing.
const MAX_WORDS: usize = 400;
/// The same for one clause; reading one takes time by the square of its length.
const MAX_CLAUSE: usize = 60;

/// A result that a later clause may read.
struct Left {
    source: Source,
    /// The argument that has to name the file.
    save: String,
    /// Not a table as far as anybody knows ("describe"): it is only read when it is meant.
    doubtful: bool,
}

/// What the clauses so far left behind.
#[derive(Default)]
struct Trail {
    steps: Vec<ChainStep>,
    /// The last result, as the file that it will be once somebody reads it.
    result: Option<Left>,
    /// The last file that was read.
    source: Option<Source>,
    /// This message named that file: it is not from the conversation.
    opened: bool,
    /// The last phrase that said what something is about.
    phrase: String,
}

/// The steps of the scene's message, or what stands in the way.
pub(crate) fn steps(scene: &Scene, messages: &[ChatMessage]) -> Result<Vec<ChainStep>, String> {
    if scene.text.len() > MAX_TEXT {
        return Err(format!(
            "the message has {} bytes, more than the {MAX_TEXT} that the rules read",
            scene.text.len()
        ));
    }
    let said = scene.words(scene.text);
    if said.len() > MAX_WORDS {
        return Err(format!("the message has {} words, more than the {MAX_WORDS} that the rules read", said.len()));
    }
    let clauses = split(&said, &verbs(scene.skills), &scene.files);
    let attached = attached(scene);
    let came_along = attached.is_some();
    let mut trail =
        Trail { source: attached.or_else(|| mentioned(scene, messages)), opened: came_along, ..Trail::default() };
    let mut scene = scene.clone();
    for clause in &clauses {
        if clause.len() > MAX_CLAUSE {
            return Err(format!(
                "a step of {} words is longer than the {MAX_CLAUSE} that the rules read",
                clause.len()
            ));
        }
        if save_as(&scene, &mut trail, clause) {
            continue;
        }
        remember(&mut scene, &trail.steps);
        let chosen = choose(&scene, clause, &trail);
        // What was found by then is not all that there is, so nothing of it may be taken.
        if effort::is_spent() {
            return Err(
                "there are too many ways to read it with these files and skills; name the file, and use fewer \
                        words for each step"
                    .to_owned(),
            );
        }
        match chosen? {
            Some(draft) => push(&scene, &mut trail, clause, draft),
            None => match opened(&scene, clause) {
                Some(source) => {
                    trail.source = Some(source);
                    trail.opened = true;
                    trail.result = None;
                }
                None => return Err(format!("\"{}\" was not understood", scene.slice(clause))),
            },
        }
    }
    match trail.steps.is_empty() {
        true => Err("nothing was asked for that an installed skill does".to_owned()),
        false => Ok(trail.steps),
    }
}

/// The table that came with the message, if it is one.
fn attached(scene: &Scene) -> Option<Source> {
    let mut tables = scene.tables().filter(|table| scene.attached.contains(&table.path));
    tables.next().filter(|_| tables.next().is_none()).cloned()
}

/// The table that the conversation named last, if it is still there.
fn mentioned(scene: &Scene, messages: &[ChatMessage]) -> Option<Source> {
    messages.iter().rev().take(MAX_MESSAGES).find_map(|message| {
        let said = scene.words(clip(&message.text, MAX_TEXT));
        said.iter()
            .rev()
            .filter(|w| w.shape == WordShape::File)
            .find_map(|w| scene.file(&w.raw).filter(|f| f.columns.is_some()).cloned())
    })
}

/// "load weather.csv": nothing to do yet, but what follows is about that file.
fn opened(scene: &Scene, clause: &[Word]) -> Option<Source> {
    let file = clause.iter().find(|w| w.shape == WordShape::File)?;
    let only_opens = clause
        .iter()
        .filter(|w| w.is_content() && w.shape == WordShape::Plain)
        .all(|w| matches!(w.norm.as_str(), "load" | "open" | "read" | "take" | "consider" | "look"));
    only_opens.then(|| scene.file(&file.raw).cloned()).flatten()
}

/// "save it as monthly.csv" after a step whose result can be saved.
fn save_as(scene: &Scene, trail: &mut Trail, clause: &[Word]) -> bool {
    let content: Vec<&Word> = clause.iter().filter(|w| w.is_content() && w.norm != "result").collect();
    let file = match content.as_slice() {
        [verb] if is_saving(verb) => None,
        [verb, file] if is_saving(verb) && file.shape == WordShape::File => Some(file.raw.clone()),
        _ => return false,
    };
    let Some((step, save)) =
        trail.steps.last_mut().and_then(|s| first(&scene.skills[s.skill].args, Use::Save).map(|a| (s, a.name)))
    else {
        // A step that has no say in where it writes leaves its files in the workspace anyway.
        return file.is_none() && !trail.steps.is_empty();
    };
    if let Some(Left { source, .. }) = &mut trail.result {
        source.path = file.unwrap_or(source.path.clone());
        step.args.insert(save.to_owned(), json!(source.path));
    }
    true
}

fn is_saving(word: &Word) -> bool {
    matches!(word.norm.as_str(), "save" | "store" | "write" | "keep")
}

/// The draft of a clause from the first file that it makes sense with; an error says why none does.
fn choose(scene: &Scene, clause: &[Word], trail: &Trail) -> Result<Option<CallDraft>, String> {
    let named = clause.iter().enumerate().find(|(i, w)| {
        // "top 3 cities" is about a column, "in cities" about a file.
        let placed = i.checked_sub(1).is_some_and(|j| matches!(clause[j].norm.as_str(), "from" | "in"));
        // "as rain.csv" says where to write.
        let written = i.checked_sub(1).is_some_and(|j| matches!(clause[j].norm.as_str(), "as" | "to" | "into"));
        (w.shape == WordShape::File && !written)
            || (w.shape == WordShape::Plain
                && w.is_content()
                && scene.file(&w.raw).is_some_and(|f| f.path.contains('.'))
                && (placed || !is_column_of(scene, w)))
    });
    let named = named.map(|(_, word)| word);
    if let Some(word) = named {
        // A file that is not there yet is a file of unknown columns.
        let unknown = || Source { path: word.raw.clone(), columns: None, groups: 0 };
        let source = scene.file(&word.raw).cloned().unwrap_or_else(unknown);
        return settle(best(scene, clause, Some(&source)));
    }
    let refers = clause.iter().any(|w| is_reference(&w.norm));
    let mut candidates: Vec<Source> = Vec::new();
    let result = trail.result.as_ref().filter(|r| refers || !r.doubtful);
    candidates.extend(result.map(|r| r.source.clone()));
    candidates.extend(trail.source.clone());
    let from_before = trail.steps.is_empty() && !trail.opened;
    let mut worst = None;
    let mut fallback = None;
    for source in &candidates {
        match best(scene, clause, Some(source)) {
            // After an earlier message, "average temperature" is about the data and not about means that a run left.
            Some(draft) if fits_well(&draft) && from_before && !refers && is_secondhand(&draft, source) => {
                fallback = fallback.or(Some(draft));
            }
            Some(draft) if fits_well(&draft) && from_before => return Ok(Some(told(scene, draft, source))),
            Some(draft) if fits_well(&draft) => return Ok(Some(draft)),
            other => worst = nearer(worst, other),
        }
    }
    let mut fits: Vec<(CallDraft, &Source)> = Vec::new();
    for table in scene.likely_tables() {
        match best(scene, clause, Some(table)) {
            Some(draft) if fits_well(&draft) && !draft.took_source && draft.prior.is_none() => {
                return Ok(Some(draft));
            }
            Some(draft) if fits_well(&draft) => fits.push((draft, table)),
            other => worst = nearer(worst, other),
        }
    }
    if fits.iter().any(|(draft, table)| !is_secondhand(draft, table)) {
        fits.retain(|(draft, table)| !is_secondhand(draft, table));
    } else if fallback.is_some() {
        return Ok(fallback);
    }
    match fits.len() {
        0 if worst.is_some() => settle(worst),
        0 => settle(best(scene, clause, None)),
        1 => Ok(fits.pop().map(|(draft, table)| told(scene, draft, table))),
        _ => Err(format!(
            "\"{}\" could be about more than one file: {}; name one of them",
            scene.slice(clause),
            fits.iter().map(|(_, table)| table.path.as_str()).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Of two drafts that cannot be run, the one that understood more.
fn nearer(a: Option<CallDraft>, b: Option<CallDraft>) -> Option<CallDraft> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.score > a.score { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn fits_well(draft: &CallDraft) -> bool {
    draft.problems.is_empty()
}

/// Says which table was read where the message named none and there are more.
fn told(scene: &Scene, mut draft: CallDraft, source: &Source) -> CallDraft {
    if (draft.took_source || draft.prior.is_some()) && scene.tables().count() > 1 {
        draft.notes.push(format!("no file was named, and {} was read", source.path));
    }
    draft
}

/// Whether a draft computes with what a run computed, such as a mean of means.
fn is_secondhand(draft: &CallDraft, source: &Source) -> bool {
    let args = draft.args.values().chain(draft.prior.iter().flat_map(|p| p.args.values()));
    let texts = args.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let inner = |text: &str| text.split_once('(').map(|(_, rest)| rest.split(')').next().unwrap_or(rest).to_owned());
    let named: Vec<String> = texts.filter_map(inner).collect();
    source.columns.iter().flat_map(|all| all.iter()).any(|c| is_computed(&c.name) && named.contains(&c.name))
}

fn is_column_of(scene: &Scene, word: &Word) -> bool {
    let mut columns = scene.tables().flat_map(|t| t.columns.iter().flat_map(|c| c.iter()));
    columns.any(|c| c.name.eq_ignore_ascii_case(&word.norm) || key(&c.name.to_lowercase()) == word.key)
}

fn settle(draft: Option<CallDraft>) -> Result<Option<CallDraft>, String> {
    match draft {
        Some(draft) if !draft.problems.is_empty() => Err(draft.problems.join("; ")),
        other => Ok(other),
    }
}

/// Adds a draft's steps, and links them with what came before.
fn push(scene: &Scene, trail: &mut Trail, clause: &[Word], mut draft: CallDraft) {
    let detail = scene.slice(clause).to_owned();
    let mut notes = std::mem::take(&mut draft.notes);
    if !draft.unused.is_empty() {
        notes.push(format!("these words were not understood and left out: {}", draft.unused.join(", ")));
    }
    if draft.phrase.is_empty() {
        // "plot both": what it is about was said before.
        if let Some(title) = first(&scene.skills[draft.skill].args, Use::Title)
            && !draft.args.contains_key(title.name)
            && !trail.phrase.is_empty()
            && draft.refers
        {
            draft.args.insert(title.name.to_owned(), json!(crate::word::sentence(&trail.phrase)));
        }
    } else {
        trail.phrase = draft.phrase.clone();
    }
    let file_name = draft.file_arg.clone();
    let mut path = file_name.as_ref().and_then(|name| draft.args.get(name)?.as_str()).map(str::to_owned);
    if let (Some(Left { source, save, .. }), Some(read)) = (&trail.result, &path)
        && source.path == *read
        && let Some(step) = trail.steps.last_mut()
        && !step.args.contains_key(save)
    {
        step.args.insert(save.clone(), json!(read));
    }
    if let Some(prior) = draft.prior.take() {
        let saved = free_name(scene, trail, &draft.phrase);
        let query_args = &scene.skills[prior.skill].args;
        let mut call = Map::new();
        if let (Some(file), Some(read)) = (first(query_args, Use::File), &path) {
            call.insert(file.name.to_owned(), json!(read));
        }
        call.extend(prior.args);
        if let Some(save) = first(query_args, Use::Save) {
            call.insert(save.name.to_owned(), json!(saved));
        }
        let about = if draft.phrase.is_empty() { detail.clone() } else { format!("compute: {}", draft.phrase) };
        trail.steps.push(ChainStep {
            skill: prior.skill,
            args: call,
            detail: about,
            produces: prior.produces,
            groups: 0,
            notes: Vec::new(),
        });
        if let Some(name) = &file_name {
            draft.args.insert(name.clone(), json!(saved));
        }
        path = path.filter(|p| scene.file(p).is_some());
    }
    if let Some(source) = path.as_deref().and_then(|p| scene.file(p)) {
        trail.source = Some(source.clone());
    }
    let save = first(&scene.skills[draft.skill].args, Use::Save);
    let queries = scene.skills[draft.skill].saves_queries();
    trail.result = save.and_then(|save| {
        let path = match draft.args.get(save.name).and_then(Value::as_str) {
            Some(path) => path.to_owned(),
            None if queries => free_name(scene, trail, &draft.phrase),
            None => fetched_name(&draft.args)?,
        };
        let source = Source { path, columns: draft.produces.clone().map(Columns::new), groups: draft.groups };
        let doubtful = queries && draft.produces.is_none();
        Some(Left { source, save: save.name.to_owned(), doubtful })
    });
    trail.steps.push(ChainStep {
        skill: draft.skill,
        args: draft.args,
        detail,
        produces: draft.produces,
        groups: draft.groups,
        notes,
    });
}

/// The name at the end of an address, if it has an extension that tables have.
fn fetched_name(args: &Map<String, Value>) -> Option<String> {
    let url = args.values().filter_map(Value::as_str).find(|v| v.contains("://"))?;
    let path = url.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    let is_table = [".csv", ".tsv", ".json", ".jsonl"].iter().any(|e| name.to_lowercase().ends_with(e));
    is_table.then(|| name.to_owned())
}

/// The files that the steps leave, so that later clauses can name them.
fn remember(scene: &mut Scene, steps: &[ChainStep]) {
    for step in steps {
        let Some(save) = first(&scene.skills[step.skill].args, Use::Save) else {
            continue;
        };
        let Some(path) = step.args.get(save.name).and_then(Value::as_str) else {
            continue;
        };
        if scene.file(path).is_none() {
            let columns = step.produces.clone().map(Columns::new);
            scene.files.push(Source { path: path.to_owned(), columns, groups: step.groups });
        }
    }
}

/// A name for a result that nothing in the workspace and no step of this plan has: up to three words of the phrase.
fn free_name(scene: &Scene, trail: &Trail, phrase: &str) -> String {
    let parts: Vec<String> = words(phrase)
        .iter()
        .filter(|w| w.is_content() && w.shape == WordShape::Plain)
        .map(|w| w.norm.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>())
        .filter(|part| !part.is_empty())
        .take(3)
        .collect();
    let base = match parts.as_slice() {
        [] => "result".to_owned(),
        [one] => format!("{one}-result"),
        all => all.join("-"),
    };
    let taken = |path: &str| {
        scene.files.iter().any(|f| f.path == path)
            || trail.steps.iter().any(|s| s.args.values().any(|v| v.as_str() == Some(path)))
    };
    let mut path = format!("{base}.csv");
    let mut n = 2;
    while taken(&path) {
        path = format!("{base}-{n}.csv");
        n += 1;
    }
    path
}
