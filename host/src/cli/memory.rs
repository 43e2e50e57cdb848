//! `kiso memory`: memory across conversations.

mod fact;
mod transfer;

use super::listing::{PageArgs, confirm, row, typed};
use super::show::{Show, printable, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on};
use clap::Subcommand;
use kiso_base::clock::{minute, now_ms};
use kiso_plan::limits::Usage;
use kiso_plan::report::counted;
use kiso_sandbox::skill::Quiet;
use kiso_store::memory::{self, CoreError, MAX_HITS};
use kiso_store::store::{Chunk, Fact};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Show core memory and the newest passages, or one complete passage
    Show {
        /// Number of a passage
        #[arg(conflicts_with_all = ["limit", "before"])]
        id: Option<i64>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Search facts and passages, as the agent does
    Search {
        /// Words, or a question
        #[arg(required = true)]
        question: Vec<String>,
        /// How many to show of each kind
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_HITS)))]
        limit: u32,
        /// Match words only, without the embedding model of [memory]
        #[arg(long)]
        words: bool,
    },
    /// Forget passages, or an entry of core memory
    Forget {
        /// Numbers of passages
        #[arg(required_unless_present = "core")]
        ids: Vec<i64>,
        /// The entry of core memory, as `show` prints it, such as user.city
        #[arg(long, value_name = "MEMBER", conflicts_with = "ids")]
        core: Option<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// List, add and remove facts
    #[command(subcommand)]
    Fact(fact::FactCommand),
    /// Write core memory, facts and passages as lines of JSON
    Export {
        /// File to create [default: standard output]
        file: Option<PathBuf>,
    },
    /// Import what `export` wrote; entries that already exist are skipped
    Import {
        /// The file, or `-` for standard input
        file: PathBuf,
    },
}

impl MemoryCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match self {
            MemoryCommand::Fact(command) => command.execute(&opened, shared.json),
            MemoryCommand::Show { id: Some(id), .. } => one(&opened, *id, shared.json),
            MemoryCommand::Show { id: None, page } => all(&opened, page, shared.json),
            MemoryCommand::Search { question, limit, words } => {
                search(&opened, &question.join(" "), *limit, *words, shared.json)
            }
            MemoryCommand::Forget { core: Some(member), yes, .. } => forget_core(&opened, member, *yes, shared.json),
            MemoryCommand::Forget { ids, yes, .. } => forget(&opened, ids, *yes, shared.json),
            MemoryCommand::Export { file } => transfer::export(&opened, file.as_deref()),
            MemoryCommand::Import { file } => transfer::import(&opened, file, shared.json),
        }
    }
}

fn print(chunk: &Chunk, json: bool) {
    if json {
        return outln!("{}", typed("passage", chunk));
    }
    let from = match &chunk.session {
        Some(session) => format!("{}, {session}", printable_line(&chunk.source)),
        None => printable_line(&chunk.source),
    };
    row(&format!("{:6}  {}  {from:16}", chunk.id, minute(chunk.at_ms)), &chunk.text);
}

fn one(opened: &Opened, id: i64, json: bool) -> Result<Exit, Failure> {
    let chunk = opened.store.read_blocking(|view| view.chunk(id))?.ok_or_else(|| no_passage(id))?;
    if json {
        print(&chunk, true);
        return Ok(Exit::Done);
    }
    let session = chunk.session.as_ref().map(|session| format!("  session {session}")).unwrap_or_default();
    let head = format!("passage {id}  {}  {}{session}", minute(chunk.at_ms), printable_line(&chunk.source));
    outln!("{}", Show::stdout().dim(&head));
    outln!("{}", printable(&chunk.text));
    Ok(Exit::Done)
}

fn all(opened: &Opened, page: &PageArgs, json: bool) -> Result<Exit, Failure> {
    let before = page.before_id()?;
    let (core, passages, facts, chunks) = opened.store.read_blocking(|view| {
        let (passages, facts) = (view.count_chunks()?, view.count_facts(u32::MAX)?);
        Ok((view.core_memory()?, passages, facts, view.chunks_before(before, page.limit)?))
    })?;
    let core: Value = core.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| json!({}));
    if before.is_none() {
        if json {
            outln!("{}", json!({ "type": "memory", "core": core, "facts": facts, "passages": passages }));
        } else {
            let show = Show::stdout();
            outln!("{}", show.paint().bold("Core memory"));
            let lines = memory::render_core(&core);
            let total = [counted(facts.into(), "fact", "facts"), counted(passages, "passage", "passages")].join(", ");
            outln!("{}", if lines.is_empty() { "(empty)".to_owned() } else { printable(&lines) });
            outln!("\n{}", show.paint().bold(&total));
        }
    }
    chunks.iter().for_each(|chunk| print(chunk, json));
    page.more(chunks.len(), chunks.last().map(|chunk| chunk.id));
    Ok(Exit::Done)
}

fn search(opened: &Opened, question: &str, limit: u32, words: bool, json: bool) -> Result<Exit, Failure> {
    if question.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "the query is empty; give the words to look for"));
    }
    let facts = opened.store.read_blocking(|view| view.find_facts(question, limit))?;
    let meaning = match opened.config.memory.embedding_model.is_some() && !words {
        true => {
            let drive = opened.drive()?;
            let secrets = drive.keys_alone();
            block_on(drive.meaning(question, &secrets, None, None, Usage::default()))??
        }
        false => None,
    };
    let chunks = block_on(memory::search(&opened.store, question, meaning, limit))??;
    if facts.is_empty() && chunks.is_empty() && !json {
        errln!("no matches");
    }
    facts.iter().for_each(|fact| print_fact(fact, json));
    chunks.iter().for_each(|chunk| print(chunk, json));
    Ok(Exit::Done)
}

/// Prints a fact, for `kiso memory fact` and searches.
pub(super) fn print_fact(fact: &Fact, json: bool) {
    if json {
        return outln!("{}", typed("fact", fact));
    }
    let from = printable_line(&fact.source);
    row(&format!("{:6}  {}  {from:10}  {:3} %", fact.id, minute(fact.at_ms), fact.confidence), &fact.text);
}

fn forget(opened: &Opened, ids: &[i64], yes: bool, json: bool) -> Result<Exit, Failure> {
    // Checks all numbers before anything is deleted: a mistyped number must not leave half of the work done.
    opened
        .store
        .read_blocking(|view| {
            let missing = |id: &i64| Ok(view.chunk(*id)?.is_none().then_some(*id));
            ids.iter().map(missing).collect::<Result<Vec<_>, _>>()
        })?
        .into_iter()
        .flatten()
        .next()
        .map_or(Ok(()), |id| Err(no_passage(id)))?;
    let what = if let [id] = ids { format!("passage {id}") } else { format!("{} passages", ids.len()) };
    confirm(&format!("Permanently forget {what}?"), yes)?;
    let gone = ids.to_vec();
    opened.store.write_blocking(move |tx| gone.iter().try_for_each(|id| tx.delete_chunk(*id).map(drop)))?;
    for id in ids {
        if json {
            outln!("{}", json!({ "type": "forgotten", "id": id }));
        }
    }
    if !json {
        outln!("forgot {what}");
    }
    Ok(Exit::Done)
}

fn forget_core(opened: &Opened, member: &str, yes: bool, json: bool) -> Result<Exit, Failure> {
    let core = block_on(memory::core(&opened.store))??;
    let path = place(&core, member).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("core memory has no entry {member:?}; `kiso memory show` lists them"))
    })?;
    confirm(&format!("Permanently forget {member} in core memory?"), yes)?;
    let patch = path.iter().rev().fold(Value::Null, |inner, name| json!({ *name: inner }));
    block_on(memory::update_core(&opened.store, patch, now_ms()))?.map_err(|error| match error {
        CoreError::Store(error) => error.into(),
        error => Failure::new(Exit::Failed, error.to_string()),
    })?;
    if json {
        outln!("{}", json!({ "type": "forgotten", "member": member }));
    } else {
        outln!("forgot {member}");
    }
    Ok(Exit::Done)
}

/// Returns the names on the path to a member, given with dots. Names may contain dots, too.
fn place<'a>(document: &'a Value, path: &str) -> Option<Vec<&'a str>> {
    let members = document.as_object()?;
    if let Some((name, _)) = members.get_key_value(path) {
        return Some(vec![name]);
    }
    members.iter().find_map(|(name, member)| {
        let rest = path.strip_prefix(name.as_str())?.strip_prefix('.')?;
        let mut names = place(member, rest)?;
        names.insert(0, name);
        Some(names)
    })
}

fn no_passage(id: i64) -> Failure {
    Failure::new(Exit::Usage, format!("there is no passage {id}; `kiso memory show` and `search` give their numbers"))
}
