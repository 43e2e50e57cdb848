//! Finds the session for a program's conversation, and sends the new message to it.
//!
//! A program that sends an id of its chat gets one session per chat. Without an id, a session continues only if the same token
//! sends the whole earlier conversation word for word; everything else starts a new session, so that two people who begin with
//! "hi" do not share one. Earlier messages that the session does not know, because they were edited or sent to another model, are
//! quoted after the question.

use axum::http::StatusCode;
use ring::rand::{SecureRandom, SystemRandom};

use super::chore::Chore;
use super::history::{self, Digester, Line};
use super::models::{CHATS, Model};
use super::prompt::{Caller, Prompt, name};
use crate::App;
use crate::attachment::{self, Attachment};
use crate::error::ApiError;
use crate::message::whole_message;
use kiso_agent::session::intake::{Inbound, IntakeOutcome};
use kiso_agent::session::workspace::Incoming;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_sandbox::effect::label::LabelId;
use kiso_store::secret::Vault;
use kiso_store::store::{Chat, ChatRequest, JobPriority, StoreError, View};

/// Maximum number of conversations with the same questions that are compared with the last answer.
const MAX_ALIKE: u32 = 16;

/// The outcome of a request: its message, or the answer to a command, and the stored record.
#[derive(Debug)]
pub(crate) struct Admission {
    pub request: ChatRequest,
    /// The last notice before the message; events about the message come after it.
    pub after: i64,
}

/// The session of a conversation.
struct Destination {
    session: SessionName,
    /// The record of its last question.
    chat: Option<Chat>,
    /// Earlier messages that the session does not know.
    unknown: Vec<Line>,
    /// Whether the session contains messages that the program has removed.
    breaks: bool,
}

/// Admits a request. `id` is the prefix of its new id.
pub(super) async fn admit(app: &App, prompt: Prompt, id: &str) -> Result<Admission, ApiError> {
    let (app, id) = (app.clone(), format!("{id}{}", random()?));
    // Runs in a separate task: if the client disconnects, every message must still be recorded with its conversation.
    let admitting = tokio::spawn(async move {
        let _one = app.0.conversations.lock().await;
        admit_now(&app, prompt, id).await
    });
    admitting.await.map_err(|panic| ApiError::internal(&panic))?
}

async fn admit_now(app: &App, prompt: Prompt, id: String) -> Result<Admission, ApiError> {
    let store = &app.0.drive.store;
    let after = store.read(|view| view.feed_end()).await?;
    let digester = Digester::new(app.0.drive.home.key().as_bytes());
    let asked = request_digest(&prompt, &digester);
    if let Some(request) = earlier(app, &prompt, &asked).await? {
        return Ok(Admission { request, after });
    }
    let Destination { session, chat, unknown, breaks } = find(app, &prompt, &digester).await?;
    let Prompt {
        model,
        model_name,
        caller,
        instructions,
        lines,
        asked: count,
        files,
        key,
        previous,
        metadata,
        stored,
        ..
    } = prompt;
    let question = lines[lines.len() - count..].iter().map(|line| line.text.trim()).filter(|text| !text.is_empty());
    let question = question.collect::<Vec<_>>().join("\n\n");
    let names = attachment::put(
        &app.0.drive.newest(),
        &session,
        files,
        LabelId::from_label(&Label::attached()),
        Incoming::begin,
    )
    .await?;
    let told = Some(digester.text(&instructions)).filter(|_| !instructions.is_empty());
    let is_news =
        told.is_some() && (breaks || chat.as_ref().and_then(|chat| chat.instructions.as_ref()) != told.as_ref());
    let text = compose(
        &model,
        question,
        &names,
        Some(instructions.as_str()).filter(|_| is_news),
        history::quote(&unknown).as_deref(),
    );
    if breaks {
        let of = session.clone();
        store.write(move |tx| tx.break_session(&of, now_ms())).await?;
    }
    let inbound = Inbound {
        session: session.clone(),
        text,
        caller: caller.who.caller(),
        // The client may be a program with its own model.
        by_person: false,
        priority: JobPriority::Interactive,
        client_key: key.as_deref().map(|key| name(&["key", &caller.token, key])),
        flush: false,
    };
    let (message, answer) = match app.intake().take(inbound).await? {
        IntakeOutcome::Queued { message, .. } => (Some(message), None),
        IntakeOutcome::Answered { text } => (None, Some(text)),
    };
    // A session that is named by the model was checked; the names of all others are derived from the token.
    caller.who.adopt_session(app, &session).await?;
    let known = Chat {
        session: session.clone(),
        owner: caller.owner(),
        asked: digester.lines(&lines),
        message,
        answer: answer.as_deref().map(|answer| digester.text(answer)),
        instructions: told.or_else(|| chat.and_then(|chat| chat.instructions)),
    };
    let request = ChatRequest {
        id,
        token: caller.token,
        key,
        asked,
        session: Some(session),
        message,
        answer,
        model: model_name,
        previous,
        metadata: serde_json::Value::Object(metadata).to_string(),
        stored,
        at_ms: now_ms(),
    };
    let remembered = request.clone();
    let is_remembered = stored || request.key.is_some();
    store
        .write(move |tx| {
            tx.put_chat(&known)?;
            if is_remembered { tx.put_chat_request(&remembered) } else { Ok(()) }
        })
        .await?;
    Ok(Admission { request, after })
}

/// Answers an auxiliary request. It does not appear in any session.
pub(super) async fn answer_chore(app: &App, prompt: &Prompt, chore: Chore, id: &str) -> Result<Admission, ApiError> {
    let chat = prompt.chat.as_deref().map(|chat| session_of_chat(&prompt.caller, chat)).transpose()?;
    let title = match chat {
        Some(session) => app.0.drive.store.read(move |view| view.session(&session)).await?.and_then(|line| line.title),
        None => None,
    };
    let request = ChatRequest {
        id: format!("{id}{}", random()?),
        token: prompt.caller.token.clone(),
        key: None,
        asked: Vec::new(),
        session: None,
        message: None,
        answer: Some(chore.answer(&prompt.lines, title)),
        model: prompt.model_name.clone(),
        previous: None,
        metadata: "{}".to_owned(),
        stored: false,
        at_ms: now_ms(),
    };
    Ok(Admission { request, after: 0 })
}

/// Returns the earlier request with the same key, if this one is a repetition.
async fn earlier(app: &App, prompt: &Prompt, asked: &[u8]) -> Result<Option<ChatRequest>, ApiError> {
    let (Some(key), token) = (prompt.key.clone(), prompt.caller.token.clone()) else { return Ok(None) };
    let found = app.0.drive.store.read(move |view| view.chat_request_by_key(&token, &key)).await?;
    if found.as_ref().is_some_and(|found| found.asked != asked) {
        let message = "the Idempotency-Key was used for another request";
        return Err(ApiError::new(StatusCode::CONFLICT, "key_reused", message).hint("use a new key for a new request"));
    }
    Ok(found)
}

/// Finds the session for the conversation of a request.
async fn find(app: &App, prompt: &Prompt, digester: &Digester) -> Result<Destination, ApiError> {
    let before = &prompt.lines[..prompt.lines.len() - prompt.asked];
    if let Model::Session(session) = &prompt.model {
        let of = session.clone();
        let chat = app.0.drive.store.read(move |view| view.chat(&of)).await?;
        return Ok(Destination { session: session.clone(), chat, unknown: Vec::new(), breaks: false });
    }
    let (vault, owner) = (app.0.drive.vault.clone(), prompt.caller.owner());
    if let Some(id) = &prompt.previous {
        return behind(app, &prompt.caller, id, prompt.key.as_deref()).await;
    }
    let (lines, digester) = (before.to_vec(), digester.clone());
    if let Some(id) = &prompt.chat {
        let session = session_of_chat(&prompt.caller, id)?;
        let of = session.clone();
        let read = app.0.drive.store.read(move |view| {
            let chat = view.chat(&of)?;
            let knows = chat.as_ref().map(|chat| knows(view, &vault, &digester, chat, &lines)).transpose()?;
            Ok((chat, knows, view.has_session(&of)?))
        });
        let (chat, knows, is_there) = read.await?;
        let breaks = knows == Some(false) && is_there;
        let unknown = if knows == Some(true) { Vec::new() } else { before.to_vec() };
        return Ok(Destination { session, chat, unknown, breaks });
    }
    let found = app.0.drive.store.read(move |view| {
        let Some((_, said)) = split(&lines) else { return Ok(None) };
        for chat in view.chats_asked(&owner, &digester.lines(said), MAX_ALIKE)? {
            if knows(view, &vault, &digester, &chat, &lines)? {
                return Ok(Some(chat));
            }
        }
        Ok(None)
    });
    Ok(match found.await? {
        Some(chat) => {
            Destination { session: chat.session.clone(), chat: Some(chat), unknown: Vec::new(), breaks: false }
        }
        None => Destination {
            session: new_session(&prompt.caller, prompt.key.as_deref())?,
            chat: None,
            unknown: before.to_vec(),
            breaks: false,
        },
    })
}

/// Returns the session of an earlier response. If that session has continued since, returns a new one, which gets the messages up
/// to the response.
async fn behind(app: &App, caller: &Caller, id: &str, key: Option<&str>) -> Result<Destination, ApiError> {
    let (of, token, vault) = (id.to_owned(), caller.token.clone(), app.0.drive.vault.clone());
    let read = app.0.drive.store.read(move |view| {
        let Some(request) = view.chat_request(&token, &of)?.filter(|request| request.stored) else { return Ok(None) };
        let Some(session) = request.session.clone() else { return Ok(Some((None, request, Vec::new()))) };
        let chat = view.chat(&session)?;
        let reply = request.message.map(|message| view.job(message)).transpose()?.flatten().and_then(|job| job.reply);
        // The session shows another version, so the answer would use the wrong context.
        let is_replaced = request.message.map_or(Ok(false), |message| view.is_replaced(message))?;
        let is_last = !is_replaced && chat.as_ref().is_some_and(|chat| chat.message == request.message);
        let said = match (is_last, reply) {
            (false, Some(reply)) => said_up_to(view, &vault, &session, reply)?,
            _ => Vec::new(),
        };
        Ok(Some((chat.filter(|_| is_last), request, said)))
    });
    let missing = || {
        let id: String = id.chars().take(80).collect();
        ApiError::not_found(format!("there is no response {id:?}"))
            .hint("it was never stored, was deleted, or is another token's")
            .param("previous_response_id")
    };
    let (chat, request, said) = read.await?.ok_or_else(missing)?;
    Ok(match (chat, request.session) {
        (Some(chat), Some(session)) => Destination { session, chat: Some(chat), unknown: Vec::new(), breaks: false },
        _ => Destination { session: new_session(caller, key)?, chat: None, unknown: said, breaks: false },
    })
}

/// Returns the messages of a session up to a reply, as many as a quotation may contain.
fn said_up_to(view: &View<'_>, vault: &Vault, session: &SessionName, reply: i64) -> Result<Vec<Line>, StoreError> {
    const MAX_LINES: usize = 40;
    let messages = view.messages_up_to(reply, MAX_LINES)?;
    let lines = messages.into_iter().map(|message| {
        let message = whole_message(view, vault, session.clone(), message)?;
        Ok(Line { by_user: message.role == kiso_store::store::MessageRole::User, text: message.text })
    });
    lines.collect()
}

/// Returns the last answer, and everything before it.
fn split(lines: &[Line]) -> Option<(&Line, &[Line])> {
    lines.split_last().filter(|(last, _)| !last.by_user)
}

/// Returns whether the messages match a conversation: the same messages up to the last question, and the same answer.
fn knows(view: &View<'_>, vault: &Vault, digester: &Digester, chat: &Chat, lines: &[Line]) -> Result<bool, StoreError> {
    let Some((answer, before)) = split(lines) else { return Ok(false) };
    if digester.lines(before) != chat.asked {
        return Ok(false);
    }
    let Some(message) = chat.message else {
        return Ok(chat.answer.as_deref() == Some(digester.text(&answer.text).as_slice()));
    };
    // A person has replaced the message by another version, and the session continues with that.
    if view.is_replaced(message)? {
        return Ok(false);
    }
    // A message's number can be reused after its session was deleted.
    let Some(job) = view.job(message)?.filter(|job| job.session == chat.session) else { return Ok(false) };
    let Some((session, reply)) = job.reply.map(|reply| view.message(reply)).transpose()?.flatten() else {
        return Ok(false);
    };
    Ok(history::is_same(&whole_message(view, vault, session, reply)?.text, &answer.text))
}

/// Builds the message for a question. The question comes first, because commands and pills must be at the beginning.
fn compose(
    model: &Model,
    question: String,
    files: &[String],
    instructions: Option<&str>,
    quote: Option<&str>,
) -> String {
    let mut text = question;
    // A command needs no context, and added text would change its arguments.
    let is_spelt_out = text.starts_with(['/', '$', '!']);
    if !is_spelt_out && !matches!(model, Model::Pill(_)) {
        for more in [quote.map(str::to_owned), instructions.map(|text| format!("Instructions:\n\n{text}"))] {
            text.extend(more.map(|more| format!("\n\n{more}")));
        }
    }
    if !files.is_empty() {
        text.push_str(&format!("\n\nFiles: {}", files.join(", ")));
    }
    match model {
        Model::Pill(pill) if !text.starts_with('/') => format!("!{pill} {text}"),
        _ => text,
    }
}

/// Returns a digest that distinguishes requests with the same key.
fn request_digest(prompt: &Prompt, digester: &Digester) -> Vec<u8> {
    let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
    let (said, told) = (hex(&digester.lines(&prompt.lines)), hex(&digester.text(&prompt.instructions)));
    let files: Vec<String> = prompt.files.iter().map(Attachment::identity).collect();
    let all = name(&[
        &prompt.model_name,
        prompt.chat.as_deref().unwrap_or_default(),
        prompt.previous.as_deref().unwrap_or_default(),
        &said,
        &told,
        &files.join("/"),
    ]);
    all.into_bytes()
}

/// Returns a session name that is not in use. A repeated request with the same key gets the same name, even if nothing else is
/// known of it.
fn new_session(caller: &Caller, key: Option<&str>) -> Result<SessionName, ApiError> {
    match key {
        Some(key) => session_of(&["key", &caller.token, key]),
        None => session_of(&["new", &random()?]),
    }
}

fn session_of(parts: &[&str]) -> Result<SessionName, ApiError> {
    SessionName::parse(&format!("{CHATS}{}", &name(parts)[..20])).map_err(|error| ApiError::internal(&error))
}

/// Returns 32 random digits.
fn random() -> Result<String, ApiError> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ApiError::internal(&"the system provides no random numbers"))?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}

/// Returns the session for a program's chat, even if it does not exist yet.
fn session_of_chat(caller: &Caller, chat: &str) -> Result<SessionName, ApiError> {
    session_of(&["chat", &caller.token, chat])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_with_the_question() {
        let files = ["a.csv".to_owned(), "b.png".to_owned()];
        assert_eq!(
            compose(&Model::Own, "plot it".to_owned(), &files, Some("Be brief."), Some("Earlier …")),
            "plot it\n\nEarlier …\n\nInstructions:\n\nBe brief.\n\nFiles: a.csv, b.png"
        );
        let spelt_out = compose(&Model::Own, "$ ls".to_owned(), &[], Some("Be brief."), Some("Earlier …"));
        assert_eq!(spelt_out, "$ ls");
        let pill = Model::Pill("sum".to_owned());
        assert_eq!(compose(&pill, "of it".to_owned(), &[], Some("x"), None), "!sum of it");
        assert_eq!(compose(&pill, "/status".to_owned(), &[], None, None), "/status");
    }
}
