//! `kiso memory fact`: single sentences that are remembered.

use super::print_fact;
use crate::cli::listing::{PageArgs, confirm};
use crate::cli::show::{Show, printable, printable_line};
use crate::cli::{Exit, Failure, Opened, environment_secrets};
use clap::Subcommand;
use kiso_base::clock::{minute, now_ms};
use kiso_store::memory::MAX_HITS;
use kiso_store::secret::found;
use kiso_store::store::{MAX_FACT_BYTES, NewFact, USER};
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum FactCommand {
    /// List facts, newest first
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Add a fact, unless it is already known
    Add {
        /// A sentence, such as "The user lives in Oslo"
        #[arg(required = true)]
        text: Vec<String>,
        /// Confidence, in percent
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(..=100))]
        confidence: u8,
    },
    /// Show a complete fact
    Show {
        /// Its number
        id: i64,
    },
    /// Remove facts
    Remove {
        /// Their numbers
        #[arg(required = true)]
        ids: Vec<i64>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Search facts
    Search {
        /// Words, or a question
        #[arg(required = true)]
        question: Vec<String>,
        /// How many to show
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_HITS)))]
        limit: u32,
    },
}

impl FactCommand {
    pub(super) fn execute(&self, opened: &Opened, json: bool) -> Result<Exit, Failure> {
        match self {
            FactCommand::List { page } => {
                let before = page.before_id()?;
                let facts = opened.store.read_blocking(|view| view.facts_before(before, page.limit))?;
                if facts.is_empty() && before.is_none() && !json {
                    errln!("there are no facts yet; `kiso memory fact add` adds one");
                }
                facts.iter().for_each(|fact| print_fact(fact, json));
                page.more(facts.len(), facts.last().map(|fact| fact.id));
                Ok(Exit::Done)
            }
            FactCommand::Add { text, confidence } => add(opened, &text.join(" "), *confidence, json),
            FactCommand::Show { id } => show(opened, *id, json),
            FactCommand::Remove { ids, yes } => remove(opened, ids, *yes, json),
            FactCommand::Search { question, limit } => {
                let question = question.join(" ");
                let facts = opened.store.read_blocking(|view| view.find_facts(&question, *limit))?;
                if facts.is_empty() && !json {
                    errln!("no facts match");
                }
                facts.iter().for_each(|fact| print_fact(fact, json));
                Ok(Exit::Done)
            }
        }
    }
}

fn add(opened: &Opened, text: &str, confidence: u8, json: bool) -> Result<Exit, Failure> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_FACT_BYTES {
        let (have, what) = (text.len(), "to remember a longer text, send it as a message");
        let message = format!("a fact may have 1 to {MAX_FACT_BYTES} bytes, but this one has {have}; {what}");
        return Err(Failure::new(Exit::Usage, message));
    }
    let secrets = environment_secrets();
    let (clean, found) = found::extract(text, &secrets);
    // Facts are part of prompts, unencrypted, so they must not contain secrets.
    if !found.is_empty() || secrets.redact(text) != text {
        let clean = printable(&secrets.redact(&clean));
        let message =
            format!("it contains a secret ({clean}); facts are sent to models: use `kiso secret set` for secrets");
        return Err(Failure::new(Exit::Policy, message));
    }
    let new = NewFact { text: text.to_owned(), source: USER.to_owned(), session: None, confidence };
    let (id, known) = opened.store.write_blocking(move |tx| {
        let known = tx.has_fact(&new.text)?;
        Ok((tx.add_fact(&new, now_ms())?, known))
    })?;
    if json {
        outln!("{}", json!({ "type": "added", "id": id, "known": known }));
    } else {
        outln!("{} fact {id}", if known { "confirmed" } else { "added" });
    }
    Ok(Exit::Done)
}

fn show(opened: &Opened, id: i64, json: bool) -> Result<Exit, Failure> {
    let fact = opened.store.read_blocking(|view| view.fact(id))?.ok_or_else(|| no_fact(id))?;
    if json {
        print_fact(&fact, true);
        return Ok(Exit::Done);
    }
    let session = fact.session.as_ref().map(|session| format!("  session {session}")).unwrap_or_default();
    let from = printable_line(&fact.source);
    let head = format!("fact {id}  {}  {from}{session}  {} % sure", minute(fact.at_ms), fact.confidence);
    outln!("{}", Show::stdout().dim(&head));
    outln!("{}", printable(&fact.text));
    Ok(Exit::Done)
}

fn remove(opened: &Opened, ids: &[i64], yes: bool, json: bool) -> Result<Exit, Failure> {
    for id in ids {
        // Checked before any fact is removed.
        opened.store.read_blocking(|view| view.fact(*id))?.ok_or_else(|| no_fact(*id))?;
    }
    let what = if let [id] = ids { format!("fact {id}") } else { format!("{} facts", ids.len()) };
    confirm(&format!("Permanently remove {what}?"), yes)?;
    let gone = ids.to_vec();
    opened.store.write_blocking(move |tx| gone.iter().try_for_each(|id| tx.delete_fact(*id).map(drop)))?;
    if json {
        ids.iter().for_each(|id| outln!("{}", json!({ "type": "removed", "id": id })));
    } else {
        outln!("removed {what}");
    }
    Ok(Exit::Done)
}

fn no_fact(id: i64) -> Failure {
    Failure::new(Exit::Usage, format!("there is no fact {id}; `kiso memory fact list` gives their numbers"))
}
