//! `kiso session`: lists and manages conversations.

mod export;
mod import;

use super::listing::{PageArgs, confirm, row, typed};
use super::show::{Show, printable, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets};
use clap::Subcommand;
use kiso_agent::drive::clean_title;
use kiso_agent::session::removal::{NotRemoved, remove};
use kiso_agent::session::search::{FoundMessage, SearchPage, excerpt, find_messages};
use kiso_base::clock::{minute, now_ms};
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_gateway::{Message, open_message, plain_message};
use kiso_sandbox::effect::member::{ANY_MACHINE, MACHINE_LABEL, is_machine_label};
use kiso_sandbox::skill::Quiet;
use kiso_store::secret::Vault;
use kiso_store::store::{MessageRole, ModelChoice, Placement, Search, SessionLine};
use serde_json::json;
use std::sync::Arc;

/// Maximum characters of a title. It is shown on one line of a listing.
const MAX_TITLE: usize = 200;

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// List sessions, most recently active first
    List {
        #[command(flatten)]
        page: PageArgs,
        /// List the archived sessions, which are left out otherwise
        #[arg(long)]
        archived: bool,
    },
    /// Show a session and its last messages
    Show {
        session: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Find messages that contain all of these words and #tags, newest first
    Search {
        #[arg(required = true)]
        words: Vec<String>,
        /// Search only in this session
        #[arg(long)]
        session: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Rename a session
    Rename {
        session: String,
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Pin sessions to the top of the page's list; retention keeps them
    Pin {
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Unpin sessions
    Unpin {
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Archive sessions: they leave the list, and you can still search and continue them
    Archive {
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Move archived sessions back to the list
    Unarchive {
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Permanently delete sessions: their messages, runs, files, secrets, and what was learned in them
    Delete {
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Write a session as JSON lines
    Export(export::ExportArgs),
    /// Restore a session from an exported file
    Import(import::ImportArgs),
    /// Clear the context, as /new does: earlier messages are kept, but no longer sent to the model
    New { session: String },
    /// Show or change a session's model
    Model {
        session: String,
        /// A model from config.toml, or "default"
        model: Option<String>,
    },
    /// Show or change which machines of a fleet a session's runs prefer
    RunsOn {
        session: String,
        /// A label from `fleet.labels` of a machine, or "any"
        label: Option<String>,
    },
}

impl SessionCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        // These commands need neither the skills nor the configuration.
        match self {
            SessionCommand::Export(args) => return args.execute(shared),
            SessionCommand::Import(args) => return args.execute(shared),
            _ => {}
        }
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match self {
            SessionCommand::Export(args) => args.execute(shared),
            SessionCommand::Import(args) => args.execute(shared),
            SessionCommand::List { page, archived } => list(&opened, page, *archived, shared.json),
            SessionCommand::Show { session, page } => show(&opened, &existing(&opened, session)?, page, shared.json),
            SessionCommand::Search { words, session, page } => {
                let session = session.as_ref().map(|name| existing(&opened, name)).transpose()?;
                search(&opened, &words.join(" "), session.as_ref().map(|session| &session.name), page, shared.json)
            }
            SessionCommand::Rename { session, title } => {
                rename(&opened, &existing(&opened, session)?.name, &title.join(" "), shared.json)
            }
            SessionCommand::Pin { sessions } => place(&opened, sessions, None, Placement::Pinned, shared.json),
            SessionCommand::Unpin { sessions } => {
                place(&opened, sessions, Some(Placement::Pinned), Placement::Listed, shared.json)
            }
            SessionCommand::Archive { sessions } => place(&opened, sessions, None, Placement::Archived, shared.json),
            SessionCommand::Unarchive { sessions } => {
                place(&opened, sessions, Some(Placement::Archived), Placement::Listed, shared.json)
            }
            SessionCommand::Delete { sessions, yes } => {
                delete(&opened, &all_existing(&opened, sessions)?, *yes, shared.json)
            }
            SessionCommand::New { session } => new(&opened, &existing(&opened, session)?.name, shared.json),
            SessionCommand::Model { session, model } => {
                let session = existing(&opened, session)?;
                match model {
                    None => tell_model(&opened, &session.name, shared.json),
                    Some(model) => set_model(&opened, &session.name, model, shared.json),
                }
            }
            SessionCommand::RunsOn { session, label } => {
                let session = existing(&opened, session)?;
                match label {
                    None => tell_runs_on(&session.name, session.runs_on.as_deref(), shared.json),
                    Some(label) => set_runs_on(&opened, &session.name, label, shared.json),
                }
            }
        }
    }
}

fn existing(opened: &Opened, name: &str) -> Result<SessionLine, Failure> {
    let session = SessionName::parse(name)?;
    let found = opened.store.read_blocking(|view| view.session(&session))?;
    found.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("there is no session {name:?}; `kiso session list` gives the names"))
    })
}

/// Returns the named sessions, or an error if one does not exist: a mistyped name must not leave the work half done.
fn all_existing(opened: &Opened, names: &[String]) -> Result<Vec<SessionLine>, Failure> {
    let mut found: Vec<SessionLine> = Vec::with_capacity(names.len());
    for name in names {
        let session = existing(opened, name)?;
        if !found.iter().any(|known| known.name == session.name) {
            found.push(session);
        }
    }
    Ok(found)
}

fn list(opened: &Opened, page: &PageArgs, archived: bool, json: bool) -> Result<Exit, Failure> {
    let parse = |text: &String| {
        let place = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
        place.ok_or_else(|| Failure::new(Exit::Usage, format!("--before {text:?} is not a position in this list")))
    };
    let before = page.before.as_ref().map(parse).transpose()?;
    let placements: &[Placement] =
        if archived { &[Placement::Archived] } else { &[Placement::Listed, Placement::Pinned] };
    let sessions = opened.store.read_blocking(|view| view.list_sessions(placements, before, page.limit))?;
    if sessions.is_empty() && before.is_none() && !json {
        errln!(
            "{}",
            match archived {
                true => "there are no archived sessions; `kiso session archive SESSION` archives one",
                false => "there are no sessions yet; a session begins with its first message",
            }
        );
    }
    for session in &sessions {
        print(session, json);
    }
    page.more(sessions.len(), sessions.last().map(place_of));
    Ok(Exit::Done)
}

/// Returns the value for `--before`: sessions are ordered by activity, and by id if that is equal.
fn place_of(session: &SessionLine) -> String {
    format!("{}-{}", session.active_ms, session.id)
}

fn print(session: &SessionLine, json: bool) {
    let SessionLine { name, title, active_ms, placement, .. } = session;
    if json {
        let mut object = typed("session", session);
        (object["session"], object["place"]) = (name.as_str().into(), place_of(session).into());
        outln!("{object}");
    } else {
        let pinned = if *placement == Placement::Pinned { "[pinned] " } else { "" };
        let title = format!("{pinned}{}", title.as_deref().unwrap_or_default());
        row(&format!("{}  {:20}", minute(*active_ms), name.as_str()), &title);
    }
}

fn show(opened: &Opened, session: &SessionLine, page: &PageArgs, json: bool) -> Result<Exit, Failure> {
    let before = page.before_id()?;
    let name = &session.name;
    let (messages, start, summary) = opened.store.read_blocking(|view| {
        let messages = view.messages_before(name, before, page.limit)?;
        Ok((messages, view.segment_start(name)?, view.summary(name)?))
    })?;
    let vault = Vault::open(&opened.home);
    let messages: Vec<_> = messages.into_iter().map(|message| open_message(&vault, name.clone(), message)).collect();
    if before.is_none() {
        if json {
            print(session, true);
        } else {
            let paint = Show::stdout().paint();
            let title = session.title.as_deref().map(printable_line).unwrap_or_default();
            outln!("{}  {title}", paint.bold(name.as_str()));
            let model = session.model.as_deref().unwrap_or("the default");
            let runs_on = session.runs_on.as_ref().map(|label| format!("; runs on: {label}")).unwrap_or_default();
            let about = format!(
                "since {}, active {}; model: {model}{runs_on}; workspace: {}",
                minute(session.created_ms),
                minute(session.active_ms),
                opened.home.work_dir(name).display()
            );
            outln!("{}", paint.dim(&printable_line(&about)));
            if let Some(summary) = summary {
                outln!("{}", paint.dim(&format!("summary of what came before: {}", printable(&summary.text))));
            }
        }
    }
    for (nth, message) in messages.iter().enumerate() {
        let begins = nth > 0 && messages[nth - 1].id <= start && message.id > start;
        if begins && !json {
            outln!("\n{}", Show::stdout().dim("── new segment ──"));
        }
        tell(message, json);
    }
    page.more(messages.len(), messages.first().map(|message| message.id));
    Ok(Exit::Done)
}

fn search(
    opened: &Opened,
    words: &str,
    session: Option<&SessionName>,
    page: &PageArgs,
    json: bool,
) -> Result<Exit, Failure> {
    let Some(search) = Search::parse(words) else {
        return Err(Failure::new(Exit::Usage, "a search needs a word or a #tag"));
    };
    let (before, vault) = (page.before_id()?, Vault::open(&opened.home));
    let (found, next) = opened.store.read_blocking(|view| {
        let part = SearchPage { session, before, limit: page.limit as usize };
        find_messages(view, &vault, &search, &part, |_| Ok(true))
    })?;
    if found.is_empty() && next.is_none() && !json {
        errln!("no message contains all of these words");
    }
    for FoundMessage { session, message } in found {
        if json {
            outln!("{}", typed("message", &plain_message(session, message)));
            continue;
        }
        let who = match message.role {
            MessageRole::User => "you",
            MessageRole::Assistant => "kiso",
        };
        let head = format!("{}  {:20}  {who:4}", minute(message.at_ms), session.as_str());
        row(&head, &excerpt(&search, &message.text));
    }
    // A page can be short and still have a next one, because the bytes that one page reads are limited.
    if let Some(next) = next {
        errln!("for more, add --before {next}");
    }
    Ok(Exit::Done)
}

fn tell(message: &Message, json: bool) {
    if json {
        outln!("{}", typed("message", message));
        return;
    }
    let role = match message.role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    };
    let head = format!("{role}, {}", minute(message.at_ms));
    outln!("\n{}\n{}", Show::stdout().dim(&head), printable(message.text.trim_end()));
}

fn rename(opened: &Opened, session: &SessionName, title: &str, json: bool) -> Result<Exit, Failure> {
    let secrets = block_on(opened.drive()?.with_session(session, environment_secrets()))??;
    let title = clean_title(title, &secrets);
    if title.is_empty() || title.chars().count() > MAX_TITLE || title.chars().any(char::is_control) {
        let message = format!("a title must have 1 to {MAX_TITLE} characters on one line");
        return Err(Failure::new(Exit::Usage, message));
    }
    let (of, kept) = (session.clone(), title.clone());
    opened.store.write_blocking(move |tx| tx.set_title(&of, &kept, true))?;
    if json {
        outln!("{}", json!({ "type": "renamed", "session": session.as_str(), "title": title }));
    } else {
        outln!("{session} is now titled {}", printable_line(&title));
    }
    Ok(Exit::Done)
}

/// Moves sessions to a place in listings; with `from`, only those that are in that place.
fn place(
    opened: &Opened,
    names: &[String],
    from: Option<Placement>,
    to: Placement,
    json: bool,
) -> Result<Exit, Failure> {
    let mut sessions = all_existing(opened, names)?;
    let changed: Vec<SessionName> = sessions
        .iter_mut()
        .filter(|session| from.is_none_or(|from| session.placement == from))
        .map(|session| {
            session.placement = to;
            session.name.clone()
        })
        .collect();
    opened.store.write_blocking(move |tx| changed.iter().try_for_each(|session| tx.set_placement(session, to)))?;
    for SessionLine { name, placement, .. } in &sessions {
        if json {
            outln!("{}", json!({ "type": "placed", "session": name.as_str(), "placement": placement }));
        } else {
            outln!("{name} is {}", placement.as_str());
        }
    }
    Ok(Exit::Done)
}

fn delete(opened: &Opened, sessions: &[SessionLine], yes: bool, json: bool) -> Result<Exit, Failure> {
    let question = match sessions {
        [one] => {
            let work = opened.home.work_dir(&one.name);
            format!("Permanently delete the session {}, with the files in {}?", one.name, work.display())
        }
        several => {
            let lines = several.iter().map(|SessionLine { name, title, .. }| match title {
                Some(title) => format!("  {name}  {}\n", printable_line(title)),
                None => format!("  {name}\n"),
            });
            let lines: String = lines.collect();
            format!("{lines}Permanently delete these {} sessions, with their files?", several.len())
        }
    };
    confirm(&question, yes)?;
    let mut left: Vec<String> = Vec::new();
    let mut at_work = Vec::new();
    for session in sessions {
        let removed = match block_on(remove(&opened.home, &opened.store, &session.name, |_| {}))? {
            // A subagent's session is deleted with the session that spawned it, which may have been named before it.
            Err(NotRemoved::Unknown { .. }) if sessions.len() > 1 => continue,
            Err(error @ NotRemoved::AtWork { .. }) => {
                at_work.push(error.to_string());
                continue;
            }
            removed => removed?,
        };
        left.extend(removed.left.iter().map(ToString::to_string));
        for gone in removed.sessions {
            if json {
                outln!("{}", json!({ "type": "deleted", "session": gone.as_str() }));
            } else {
                outln!("deleted {gone}");
            }
        }
    }
    if !at_work.is_empty() {
        return Err(Failure::new(Exit::Failed, at_work.join("; ")));
    }
    if left.is_empty() {
        return Ok(Exit::Done);
    }
    let message = format!(
        "some files could not be deleted: {}; `kiso serve` retries, and `kiso doctor` lists them",
        left.join("; ")
    );
    Err(Failure::new(Exit::Failed, message))
}

impl From<NotRemoved> for Failure {
    fn from(error: NotRemoved) -> Failure {
        match error {
            NotRemoved::Home(error) => error.into(),
            NotRemoved::Store(error) => error.into(),
            NotRemoved::Unknown { .. } => Failure::new(Exit::Usage, error.to_string()),
            NotRemoved::AtWork { .. } => Failure::new(Exit::Failed, error.to_string()),
        }
    }
}

fn new(opened: &Opened, session: &SessionName, json: bool) -> Result<Exit, Failure> {
    let of = session.clone();
    let after = opened.store.write_blocking(move |tx| tx.break_session(&of, now_ms()))?;
    if json {
        outln!("{}", json!({ "type": "segment", "session": session.as_str(), "after": after }));
    } else {
        outln!("context of {session} cleared; messages, memory and the model are kept");
    }
    Ok(Exit::Done)
}

fn set_model(opened: &Opened, session: &SessionName, model: &str, json: bool) -> Result<Exit, Failure> {
    let chosen = (model != "default").then(|| model.to_owned());
    let choice = ModelChoice { all: chosen.clone(), ..ModelChoice::default() };
    opened.drive()?.models_with(&choice).map_err(|why| Failure::new(Exit::Usage, why))?;
    let (of, kept) = (session.clone(), chosen.clone());
    opened.store.write_blocking(move |tx| tx.set_session_model(&of, kept.as_deref(), now_ms()))?;
    tell_model(opened, session, json)
}

fn set_runs_on(opened: &Opened, session: &SessionName, label: &str, json: bool) -> Result<Exit, Failure> {
    let chosen = (label != ANY_MACHINE).then(|| label.to_owned());
    if chosen.as_deref().is_some_and(|label| !is_machine_label(label)) {
        return Err(Failure::new(Exit::Usage, format!("{label:?} is not a valid machine label: {MACHINE_LABEL}")));
    }
    let (of, kept) = (session.clone(), chosen.clone());
    opened.store.write_blocking(move |tx| tx.set_runs_on(&of, kept.as_deref()))?;
    tell_runs_on(session, chosen.as_deref(), json)
}

fn tell_runs_on(session: &SessionName, label: Option<&str>, json: bool) -> Result<Exit, Failure> {
    match label {
        _ if json => outln!("{}", json!({ "type": "runs_on", "session": session.as_str(), "label": label })),
        Some(label) => outln!("{session} runs on machines with the label {label}, where one is there"),
        None => outln!("{session} runs on any machine"),
    }
    Ok(Exit::Done)
}

fn tell_model(opened: &Opened, session: &SessionName, json: bool) -> Result<Exit, Failure> {
    let choice = opened.store.read_blocking(|view| view.model_choice(session))?;
    let default = choice.is_default();
    let models = block_on(opened.drive()?.for_session(session))??.models;
    if json {
        let model = models.for_role(Role::Planner).name();
        outln!(
            "{}",
            json!({ "type": "model", "session": session.as_str(), "model": model, "default": default, "roles": models.by_role() })
        );
    } else {
        let of = if default { " (the default)" } else { "" };
        outln!("the model of {session} is {}{of}", printable_line(&models.summary()));
    }
    Ok(Exit::Done)
}
