//! The daemon that a client talks to: the home's, or the client's own if none is running.

use super::wire::ServerLine;
use crate::channel::Port;
use crate::cli::show::{Paint, wrap_to_terminal};
use crate::cli::{Exit, Failure, Opened, environment_secrets};
use crate::daemon::{Daemon, StartError};
use data_encoding::HEXLOWER;
use kiso_base::home::{Home, HomeError};
use kiso_store::secret::vault::is_sealed;
use kiso_store::store::{RunId, Store};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Number of checks for a daemon that holds the home and has no socket yet.
const LOOKS: u32 = 100;

/// The pause between two checks.
const LOOK: Duration = Duration::from_millis(100);

/// Starts a daemon in the client's process, if the home has none. `what` is the client's name in messages to people.
pub(crate) async fn begin(opened: &Opened, what: &str, paint: Paint) -> Result<Option<Daemon>, Failure> {
    for _ in 0..LOOKS {
        if is_served(&opened.home)? {
            return Ok(None);
        }
        kiso_agent::node::prompt::check_prompts(&opened.home)?;
        match Daemon::start(opened.drive()?, environment_secrets(), Port::Instead(0)).await {
            Ok(daemon) => {
                let words = format!(
                    "no daemon is running for {}, so this {what} started its own (http://{}); it stops when the {what} ends",
                    opened.home.path().display(),
                    daemon.address()
                );
                errln!("{}", paint.dim(&wrap_to_terminal(&words)));
                return Ok(Some(daemon));
            }
            // Another daemon is starting or ending.
            Err(StartError::Home(HomeError::Busy { .. })) => tokio::time::sleep(LOOK).await,
            Err(error) => return Err(error.into()),
        }
    }
    let message = format!(
        "the daemon of {} is not listening on its socket; restart it if it is a different version of kiso",
        opened.home.path().display()
    );
    Err(Failure::new(Exit::Failed, message))
}

/// Returns whether a daemon listens at the home's socket.
pub(crate) fn is_served(home: &Home) -> Result<bool, Failure> {
    let path = home.socket_path();
    match UnixStream::connect(&path) {
        Ok(_) => Ok(true),
        // A killed daemon leaves its socket behind.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(false),
        Err(error) => {
            let message = format!("the daemon's socket {} cannot be used: {error}", path.display());
            Err(Failure::new(Exit::Config, message))
        }
    }
}

/// Returns a new key for a message, by which it is processed once however often it is sent.
pub(crate) fn new_key(prefix: &str) -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::new(Exit::Failed, "the system provides no random numbers"))?;
    Ok(format!("{prefix}-{}", HEXLOWER.encode(&bytes)))
}

/// Adds the step that the daemon left out because of its size: it is in the home's store, too. Sealed steps stay sealed.
pub(crate) async fn whole(store: &Store, mut heard: ServerLine) -> ServerLine {
    if let ServerLine::Event(happened) = &mut heard
        && happened.event == "event"
        && happened.data["body"].is_null()
        && let Some(body) = body(store, &happened.data).await
    {
        happened.data["body"] = body;
    }
    heard
}

async fn body(store: &Store, step: &Value) -> Option<Value> {
    let run: RunId = step["run"].as_str()?.parse().ok()?;
    let seq = u32::try_from(step["seq"].as_u64()?).ok()?;
    let event = store.read(move |view| view.event(&run, seq)).await.ok()??;
    if is_sealed(&event.body) { None } else { serde_json::from_str(&event.body).ok() }
}
