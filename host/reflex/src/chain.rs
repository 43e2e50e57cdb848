//! Chains: the clauses of a message as steps. Each reads the file that it names, or the result of the step before it.

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
    /// Number of columns of the result that are groups.
    pub groups: usize,
    pub notes: Vec<String>,
}

/// Maximum bytes that are read of a message, and of each earlier message.
pub(crate) const MAX_TEXT: usize = 16 << 10;
/// Maximum earlier messages that are searched for the name of a table.
const MAX_MESSAGES: usize = 20;
/// Maximum words of a request: a longer message is a text, which would take time to read without finding anything.
const MAX_WORDS: usize = 400;
/// Maximum words of a clause; the time for reading one grows with the square of its length.
const MAX_CLAUSE: usize = 60;

/// A result that a later clause may read.
struct Left {
    source: Source,
    /// The argument for the file's name.
    save: String,
    /// It may not be a table ("describe"), so it is only read if the user refers to it.
    doubtful: bool,
}

/// The results of the clauses so far.
#[derive(Default)]
struct Trail {
    steps: Vec<ChainStep>,
    /// The last result, as the file that it becomes if a later step reads it.
    result: Option<Left>,
    /// The last file that was read.
    source: Option<Source>,
    /// Whether this message named that file, instead of an earlier one.
    opened: bool,
    /// The last phrase for the topic of a step.
    phrase: String,
}

/// Returns the steps for the scene's message, or the reason why there are none.
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
        // The search was incomplete, so none of its results are used.
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

/// Returns the table attached to the message, if it is the only one.
fn attached(scene: &Scene) -> Option<Source> {
    let mut tables = scene.tables().filter(|table| scene.attached.contains(&table.path));
    tables.next().filter(|_| tables.next().is_none()).cloned()
}

/// Returns the table that the conversation named last, if it still exists.
fn mentioned(scene: &Scene, messages: &[ChatMessage]) -> Option<Source> {
    messages.iter().rev().take(MAX_MESSAGES).find_map(|message| {
        let said = scene.words(clip(&message.text, MAX_TEXT));
        said.iter()
            .rev()
            .filter(|w| w.shape == WordShape::File)
            .find_map(|w| scene.file(&w.raw).filter(|f| f.columns.is_some()).cloned())
    })
}

/// Reads "load weather.csv": nothing to do yet, but the next clauses are about that file.
fn opened(scene: &Scene, clause: &[Word]) -> Option<Source> {
    let file = clause.iter().find(|w| w.shape == WordShape::File)?;
    let only_opens = clause
        .iter()
        .filter(|w| w.is_content() && w.shape == WordShape::Plain)
        .all(|w| matches!(w.norm.as_str(), "load" | "open" | "read" | "take" | "consider" | "look"));
    only_opens.then(|| scene.file(&file.raw).cloned()).flatten()
}

/// Reads "save it as monthly.csv" after a step whose result can be saved.
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
        // A step that cannot choose its output file writes into the workspace anyway.
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

/// Returns the draft of a clause for the first file with which it makes sense; the error says why there is none.
fn choose(scene: &Scene, clause: &[Word], trail: &Trail) -> Result<Option<CallDraft>, String> {
    let named = clause.iter().enumerate().find(|(i, w)| {
        // "top 3 cities" is about a column, "in cities" about a file.
        let placed = i.checked_sub(1).is_some_and(|j| matches!(clause[j].norm.as_str(), "from" | "in"));
        // "as rain.csv" names the output file.
        let written = i.checked_sub(1).is_some_and(|j| matches!(clause[j].norm.as_str(), "as" | "to" | "into"));
        (w.shape == WordShape::File && !written)
            || (w.shape == WordShape::Plain
                && w.is_content()
                && scene.file(&w.raw).is_some_and(|f| f.path.contains('.'))
                && (placed || !is_column_of(scene, w)))
    });
    let named = named.map(|(_, word)| word);
    if let Some(word) = named {
        // A file that does not exist yet has unknown columns.
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
            // After an earlier message, "average temperature" is about the data and not about means that a run computed.
            Some(draft) if fits_well(&draft) && from_before && !refers && is_secondhand(&draft, source) => {
                fallback = fallback.or(Some(draft));
            }
            Some(draft) if fits_well(&draft) && from_before => return Ok(Some(with_note(scene, draft, source))),
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
        1 => Ok(fits.pop().map(|(draft, table)| with_note(scene, draft, table))),
        _ => Err(format!(
            "\"{}\" could be about more than one file: {}; name one of them",
            scene.slice(clause),
            fits.iter().map(|(_, table)| table.path.as_str()).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Returns the better of two drafts that cannot run: the one that understood more.
fn nearer(a: Option<CallDraft>, b: Option<CallDraft>) -> Option<CallDraft> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.score > a.score { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn fits_well(draft: &CallDraft) -> bool {
    draft.problems.is_empty()
}

/// Adds a note about the table, if the message named none and there are several.
fn with_note(scene: &Scene, mut draft: CallDraft, source: &Source) -> CallDraft {
    if (draft.took_source || draft.prior.is_some()) && scene.tables().count() > 1 {
        draft.notes.push(format!("no file was named, and {} was read", source.path));
    }
    draft
}

/// Whether a draft computes with computed values, such as a mean of means.
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

/// Adds a draft's steps and connects them with the previous ones.
fn push(scene: &Scene, trail: &mut Trail, clause: &[Word], mut draft: CallDraft) {
    let detail = scene.slice(clause).to_owned();
    let mut notes = std::mem::take(&mut draft.notes);
    if !draft.unused.is_empty() {
        notes.push(format!("these words were not understood and left out: {}", draft.unused.join(", ")));
    }
    if draft.phrase.is_empty() {
        // "plot both": an earlier clause named the topic.
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

/// Returns the file name at the end of a URL, if it has an extension of tables.
fn fetched_name(args: &Map<String, Value>) -> Option<String> {
    let url = args.values().filter_map(Value::as_str).find(|v| v.contains("://"))?;
    let path = url.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    let is_table = [".csv", ".tsv", ".json", ".jsonl"].iter().any(|e| name.to_lowercase().ends_with(e));
    is_table.then(|| name.to_owned())
}

/// Adds the output files of the steps to the scene, so that later clauses can name them.
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

/// Returns a file name for a result that neither the workspace nor a step of this plan uses: up to three words of the phrase.
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
