//! `subagent_spawn`, `subagent_status`, `subagent_cancel`: work in parallel to this conversation.
//!
//! A subagent has its own session, workspace and scratchpad: two runs never write to one workspace, and knowledge of one
//! conversation, including secrets, is available to the other only if the message contains it.

use serde_json::{Value, json};

use super::{Builtins, CallContext, Tool, ToolFault, text, tool};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_plan::plan::CallerScope;
use kiso_store::secret::vault::SEALED_RUN;
use kiso_store::store::{JobAdmission, JobState, RunStatus, Spawn, SpawnLimits, SpawnRefused, Subagent};

pub(super) const CATEGORY: &str = "subagents";
const SPAWN: &str = "subagent_spawn";
const STATUS: &str = "subagent_status";
const CANCEL: &str = "subagent_cancel";

/// Maximum length of a subagent's name in characters.
const MAX_NAME: usize = 32;

/// Maximum size of its message in bytes: more should be split, or fetched by the subagent.
const MAX_MESSAGE: usize = 64 << 10;

/// Maximum number of subagents in a status.
const SHOWN: u32 = 20;

/// Maximum number of characters of each reply if several are shown.
const BEGINNING: usize = 300;

pub(super) fn tools() -> Vec<Tool> {
    let id = json!({ "type": "string", "minLength": 1, "maxLength": 64, "description": "as subagent_spawn gave it" });
    vec![
        tool(
            SPAWN,
            CATEGORY,
            "Begin work beside this conversation, in a session with an empty workspace that knows nothing but its message. Answers at \
             once with an id.",
            json!({
                "name": { "type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[a-z0-9][a-z0-9_-]*$", "description": "a-z, 0-9, - and _" },
                "message": { "type": "string", "minLength": 1, "maxLength": MAX_MESSAGE },
                "model": { "type": "string", "minLength": 1, "maxLength": 200, "description": "PROVIDER:MODEL" },
                "inject_into": { "type": "string", "minLength": 1, "maxLength": 64, "description": "session that is told the reply; self is this one" },
            }),
            &["name", "message"],
        ),
        tool(
            STATUS,
            CATEGORY,
            "Show how a subagent stands and what it answered, or all of them.",
            json!({ "id": id }),
            &[],
        ),
        tool(CANCEL, CATEGORY, "Stop a subagent.", json!({ "id": id }), &["id"]),
    ]
}

pub(super) async fn call(builtins: &Builtins, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    match name {
        SPAWN => spawn(builtins, args, at).await,
        STATUS => status(builtins, args, at).await,
        _ => cancel(builtins, text(args, "id"), at).await,
    }
}

async fn spawn(builtins: &Builtins, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    let Builtins { store, config, vault, .. } = builtins;
    let run = at.run.as_ref().ok_or_else(|| ToolFault::new("no run is in progress here"))?;
    let (name, message) = (text(args, "name"), text(args, "message"));
    if message.len() > MAX_MESSAGE {
        return Err(ToolFault::new(format!(
            "the message has {} bytes; at most {MAX_MESSAGE} are taken",
            message.len()
        )));
    }
    let inject_into = match args.get("inject_into").and_then(Value::as_str) {
        Some(session) => Some(at.addressed(store, session).await?),
        None => None,
    };
    let model = args.get("model").and_then(Value::as_str).map(str::to_owned);
    if let Some(model) = &model {
        let known = config.model_strings();
        if !known.contains(&model.as_str()) {
            return Err(ToolFault::new(format!("no model {model:?} is configured"))
                .hint(format!("there are {}", known.join(", "))));
        }
    }
    // A repeated call has the same key, so a crash does not spawn a second subagent.
    let (seq, place) = at.call;
    let client_key = format!("{run}:{seq}:{place}");
    let session = format!("sub.{name}.{}", short(&client_key));
    let session = SessionName::parse(&session).map_err(|error| ToolFault::new(error.to_string()))?;
    let sealed = vault.seal_text(SEALED_RUN, message).map_err(|error| ToolFault::new(error.to_string()))?;
    let new = Spawn {
        session: session.clone(),
        name: name.to_owned(),
        text: sealed,
        caller: at.caller,
        parent: at.session.clone(),
        inject_into,
        model: model.or_else(|| config.subagents.model.clone()),
        client_key,
        at_ms: now_ms(),
        label: at.written(),
    };
    let limits = SpawnLimits {
        depth: config.subagents.max_depth,
        of_tree: config.subagents.max_unfinished,
        all: config.subagents.max_unfinished_total,
    };
    let admitted = store.write(move |tx| tx.spawn(&new, &limits)).await?;
    let admitted = admitted.map_err(|refused| {
        let hint = match &refused {
            SpawnRefused::TooDeep { .. } => "do the work here",
            SpawnRefused::TooManyHere { .. } | SpawnRefused::TooMany { .. } => {
                "wait until some are finished, cancel some, or do the work here"
            }
            SpawnRefused::Taken { .. } => "give another name",
        };
        ToolFault::new(refused.to_string()).hint(hint)
    })?;
    store.ring();
    let begun = match admitted {
        JobAdmission::Before(_) => "was begun before",
        JobAdmission::Now(_) if store.is_attended() => "was begun",
        // This process has no queue; another one may have.
        JobAdmission::Now(_) => "waits for `kiso serve`: it begins at once if that runs, and otherwise when it does",
    };
    Ok(format!("The subagent {session} {begun}. {STATUS} shows how it stands."))
}

/// Returns eight characters that identify a text.
fn short(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    data_encoding::HEXLOWER.encode(&digest.as_ref()[..4])
}

async fn status(builtins: &Builtins, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    if args.get("id").is_some() {
        let subagent = known(builtins, text(args, "id"), at).await?;
        join_labels(builtins, std::slice::from_ref(&subagent), at).await?;
        return Ok(line(&subagent, None));
    }
    let session = at.session.clone();
    let all = builtins.store.read(move |view| view.subagents_of(&session, SHOWN)).await?;
    join_labels(builtins, &all, at).await?;
    if all.is_empty() {
        return Ok("This conversation has spawned no subagents.".to_owned());
    }
    Ok(all.iter().map(|subagent| line(subagent, Some(BEGINNING))).collect::<Vec<_>>().join("\n"))
}

/// Joins the labels of the subagents' messages and replies.
async fn join_labels(builtins: &Builtins, all: &[Subagent], at: &CallContext) -> Result<(), ToolFault> {
    let sessions: Vec<_> = all.iter().map(|subagent| subagent.session.clone()).collect();
    let read = builtins.store.read(move |view| sessions.iter().map(|session| view.session_label(session)).collect());
    let labels: Vec<_> = read.await?;
    labels.iter().for_each(|label| at.read.join(label));
    Ok(())
}

async fn cancel(builtins: &Builtins, id: &str, at: &CallContext) -> Result<String, ToolFault> {
    let subagent = known(builtins, id, at).await?;
    let reply = Ending::Cancelled.words().unwrap_or_default();
    let outcome = Outcome::in_words(Ending::Cancelled, reply.clone());
    let body = serde_json::to_string(&outcome).map_err(|error| ToolFault::new(error.to_string()))?;
    let session = subagent.session.clone();
    // Read again in the transaction, because it may have started or ended in the meantime.
    let write = builtins.store.write(move |tx| {
        let now = tx.subagent(&session)?;
        Ok(match now.map(|now| (now.state, now.run)) {
            Some((JobState::Queued, _)) => tx.cancel_queued(&session, &body, &reply, now_ms())?.is_some(),
            Some((state, Some(run))) if state.is_open() => tx.request_cancel(&run).map(|()| true)?,
            _ => false,
        })
    });
    Ok(match write.await? {
        true => format!("The subagent {} is stopped.", subagent.session),
        false => format!("The subagent {} had already ended.", subagent.session),
    })
}

/// Returns the subagent of that id, if it is below this session; any, for an administrator.
async fn known(builtins: &Builtins, id: &str, at: &CallContext) -> Result<Subagent, ToolFault> {
    let unknown = || {
        ToolFault::new(format!("there is no subagent {:?} here", &id[..id.floor_char_boundary(64)]))
            .hint(format!("{STATUS} without an id shows which there are"))
    };
    let session = SessionName::parse(id).map_err(|_| unknown())?;
    let read = builtins.store.read(move |view| Ok((view.subagent(&session)?, view.line_of(&session)?)));
    let (subagent, line) = read.await?;
    let below = at.caller == CallerScope::Admin || line.iter().skip(1).any(|above| *above == at.session);
    subagent.filter(|_| below).ok_or_else(unknown)
}

fn line(subagent: &Subagent, shown: Option<usize>) -> String {
    let state = match (subagent.state, subagent.status) {
        (JobState::Queued, _) => "waiting",
        (_, Some(RunStatus::Running)) | (JobState::Running, None) => "working",
        (_, Some(RunStatus::Waiting)) | (JobState::Waiting, _) => "waiting for the user's approval",
        (_, Some(RunStatus::Held)) | (JobState::Held, _) => "held",
        (_, Some(RunStatus::Done)) => "done",
        (_, Some(RunStatus::Failed)) => "failed",
        (_, Some(RunStatus::Cancelled)) => "cancelled",
        (JobState::Done | JobState::Failed | JobState::Cancelled, None) => "ended",
    };
    let reply = subagent.reply.as_deref().unwrap_or_default();
    let beginning: String = reply.chars().take(shown.unwrap_or(usize::MAX)).collect();
    let more = if beginning.len() < reply.len() { "…" } else { "" };
    let separator = if reply.is_empty() { "" } else { ": " };
    format!("{} [{state}]{separator}{beginning}{more}", subagent.session)
}
