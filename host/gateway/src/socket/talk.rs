//! A connection, from its registration to its end.

use std::io;
use std::time::Duration;

use axum::http::StatusCode;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::file::{PartialFile, StoredFile};
use super::lines::{Lines, NoLine};
use super::wire::{self, Line, PROTOCOL, RequestLine};
use crate::App;
use crate::api::status_of;
use crate::error::ApiError;
use crate::follow::{Following, Subscription};
use kiso_agent::session::command::SlashCommand;
use kiso_agent::session::intake::{Inbound, IntakeOutcome};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::skill::media_type;
use kiso_store::store::JobPriority;

/// Maximum length in characters of a client's name.
const MAX_CLIENT: usize = 64;

/// A registered client.
struct Registered {
    /// Default session for its lines.
    session: Option<SessionName>,
    following: Following,
    /// The file whose pieces are being received.
    file: Option<PartialFile>,
}

/// Serves a client until it leaves, violates the protocol, or the daemon ends. Returns an error if the connection cannot be
/// written to.
pub(super) async fn converse(app: &App, mut lines: Lines) -> io::Result<()> {
    let wait = Duration::from_secs(app.0.drive.newest_config().gateway.request_timeout_s);
    let mut ending = app.0.ending.clone();
    let registered = tokio::select! {
        registered = tokio::time::timeout(wait, register(app, &mut lines)) => Some(registered),
        _ = ending.wait_for(|ending| *ending) => None,
    };
    let Some(registered) = registered else {
        return lines.write(&json!({ "type": "shutdown" })).await;
    };
    let Ok(registered) = registered else {
        let message = format!("no client registered within {} s", wait.as_secs());
        let late = ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message);
        return lines.write(&wire::error(None, &late)).await;
    };
    let Some(mut client) = registered? else { return Ok(()) };
    loop {
        tokio::select! {
            line = lines.next() => {
                let Some(asked) = read(&lines, line).await? else { return Ok(()) };
                lines.write(&client.answer(app, asked).await).await?;
            }
            told = client.following.next() => match told {
                Some(told) => lines.write(&wire::format_event(told)).await?,
                None => return Ok(()),
            },
        }
    }
}

/// Waits for the registration line and refuses others before it. Returns `None` if the client leaves without registering.
async fn register(app: &App, lines: &mut Lines) -> io::Result<Option<Registered>> {
    loop {
        let line = lines.next().await;
        let Some(RequestLine { reference, line }) = read(lines, line).await? else { return Ok(None) };
        let registered = match line {
            Ok(Line::Register { client, protocol, session, after, live }) => {
                begin(app, &client, protocol, Subscription { session, after, live, owner: None }).await
            }
            Ok(_) => Err(ApiError::bad_request("the first line must be of the type register")),
            Err(error) => Err(error),
        };
        match registered {
            Ok(registered) => {
                let (version, last) = (env!("CARGO_PKG_VERSION"), registered.following.newest);
                let url = format!("http://{}", app.0.address);
                let rest = json!({ "protocol": PROTOCOL, "version": version, "last": last, "url": url });
                lines.write(&wire::answer("registered", reference.as_deref(), rest)).await?;
                return Ok(Some(registered));
            }
            Err(error) => lines.write(&wire::error(reference.as_deref(), &error)).await?,
        }
    }
}

/// Starts a client's event stream.
async fn begin(app: &App, client: &str, protocol: u64, wanted: Subscription) -> Result<Registered, ApiError> {
    if protocol != PROTOCOL {
        return Err(ApiError::bad_request(format!("protocol {protocol} is not spoken here; {PROTOCOL} is")));
    }
    if client.is_empty() || client.chars().count() > MAX_CLIENT || client.chars().any(char::is_control) {
        let rule = format!("`client` must have 1 to {MAX_CLIENT} characters, and no control characters");
        return Err(ApiError::bad_request(rule));
    }
    let session = wanted.session.clone();
    let following = Following::new(app.clone(), wanted).await?;
    tracing::debug!(client, "registered at the socket");
    Ok(Registered { session, following, file: None })
}

/// Parses a line; `None` when the connection is over, after the client was told the reason.
async fn read(lines: &Lines, line: Result<String, NoLine>) -> io::Result<Option<RequestLine>> {
    let wrong = match line {
        Ok(line) => return Ok(Some(wire::read(&line))),
        Err(NoLine::Gone) => return Ok(None),
        Err(error @ NoLine::TooLong { .. }) => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.to_string())
                .hint("gateway.max_body_kib in config.toml raises this limit")
        }
        Err(error @ NoLine::NotUtf8) => ApiError::bad_request(error.to_string()),
    };
    lines.write(&wire::error(None, &wrong)).await?;
    Ok(None)
}

impl Registered {
    /// Executes the request of a line.
    async fn answer(&mut self, app: &App, asked: RequestLine) -> Value {
        let RequestLine { reference, line } = asked;
        let done = match line {
            Ok(Line::Register { .. }) => Err(ApiError::bad_request("this connection is already registered")),
            Ok(Line::Inbound { session, text, key }) => self.take(app, session, text, key).await,
            Ok(Line::Command { session, command, args }) => self.command(app, session, &command, &args).await,
            Ok(Line::File { session, name, data, more }) => self.file(app, session, &name, &data, more).await,
            Ok(Line::Status { session }) => self.status(app, session).await,
            Err(error) => Err(error),
        };
        match done {
            Ok((kind, rest)) => wire::answer(kind, reference.as_deref(), rest),
            Err(error) => wire::error(reference.as_deref(), &error),
        }
    }

    /// Returns the session of a line.
    fn session(&self, given: Option<SessionName>) -> SessionName {
        given.or_else(|| self.session.clone()).unwrap_or_default()
    }

    async fn take(
        &self,
        app: &App,
        session: Option<SessionName>,
        text: String,
        key: Option<String>,
    ) -> Result<(&'static str, Value), ApiError> {
        let session = self.session(session);
        let inbound = Inbound {
            session: session.clone(),
            text,
            // Whoever can open the socket can change every file of the home.
            caller: CallerScope::Admin,
            by_person: true,
            priority: JobPriority::Interactive,
            client_key: key,
            flush: false,
        };
        Ok(match app.intake().take(inbound).await? {
            IntakeOutcome::Queued { message, again } => {
                let status = if again { "known" } else { "queued" };
                ("accepted", json!({ "session": session, "message": message, "status": status }))
            }
            IntakeOutcome::Answered { text } => ("outbound", json!({ "session": session, "answer": text })),
        })
    }

    /// Receives a piece of a file. An error discards the file.
    async fn file(
        &mut self,
        app: &App,
        session: Option<SessionName>,
        name: &str,
        data: &str,
        more: bool,
    ) -> Result<(&'static str, Value), ApiError> {
        let session = self.session(session);
        let piece = BASE64.decode(data.as_bytes());
        let piece = piece.map_err(|error| ApiError::bad_request(format!("`data` is not base64: {error}")))?;
        let begun = self.file.take().filter(|file| file.is_of(&session, name));
        let file = match begun {
            Some(file) => file,
            None => PartialFile::begin(app, session.clone(), name).await?,
        };
        let file = file.add(app, piece).await?;
        if more {
            self.file = Some(file);
            return Ok(("file", json!({ "session": session })));
        }
        let StoredFile { path, bytes } = file.finish(app).await?;
        let media_type = media_type(&path);
        Ok(("file", json!({ "session": session, "path": path, "bytes": bytes, "media_type": media_type })))
    }

    async fn command(
        &self,
        app: &App,
        session: Option<SessionName>,
        command: &str,
        args: &str,
    ) -> Result<(&'static str, Value), ApiError> {
        let text = format!("/{command} {args}");
        // An invalid command must not become a message for a model.
        if command.contains(char::is_whitespace) || SlashCommand::parse(&text).is_none() {
            let message = "`command` must be one word of the letters a to z, without the slash";
            return Err(ApiError::bad_request(message).hint("the command `help` lists them"));
        }
        self.take(app, session, text, None).await
    }

    async fn status(&self, app: &App, session: Option<SessionName>) -> Result<(&'static str, Value), ApiError> {
        let status = status_of(app, self.session(session)).await?;
        let running = app.0.drive.store.read(|view| Ok(view.unfinished_runs(None)?.len())).await?;
        let mut rest = serde_json::to_value(status).unwrap_or_default();
        rest["daemon"] = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "up_ms": (now_ms() - app.0.began_ms).max(0),
            "running": running,
            "queued": app.intake().queued(),
        });
        Ok(("status", rest))
    }
}
