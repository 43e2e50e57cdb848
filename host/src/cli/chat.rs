//! `kiso`, `kiso chat`: a conversation with the daemon of the home, or with one of its own where none runs.

mod client;
mod complete;
mod editor;
mod markdown;
mod plain;
mod screen;
mod talk;
mod terminal;
mod wire;

use self::wire::ServerLine;
use super::show::{Paint, is_dumb};
use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets, session};
use crate::daemon::{Daemon, StartError};
use crate::home::{Home, HomeError, SessionName};
use crate::secret::vault::is_sealed;
use crate::skill::Quiet;
use crate::store::RunId;
use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default, clap::Args)]
#[command(after_help = AFTER)]
pub struct ChatArgs {
    /// The session to join; created if it does not exist
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Read one message per line from standard input and print replies, even on a terminal
    #[arg(long)]
    plain: bool,
}

const AFTER: &str = "\
Examples:
  kiso                              talk in the session `default`
  kiso chat --session holiday       in another one
  echo '/status' | kiso chat        without a terminal: a message for each line; ends as the last one did

Tab completes /commands, !pills, #tags, skills and their arguments. A line that ends in \\ goes on with the next one. Ctrl-C stops what is being done, and a second one leaves; so does Ctrl-D. docs/chat.md tells more.";

/// How often a daemon is looked for that holds the home and has no socket yet.
const LOOKS: u32 = 50;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Where the conversation takes place.
struct ChatSession<'a> {
    opened: &'a Opened,
    session: &'a SessionName,
}

impl ChatSession<'_> {
    /// A line of the daemon with the step that it left out for its size: it stands in the home's store, too. What is sealed
    /// stays so.
    async fn whole(&self, mut heard: ServerLine) -> ServerLine {
        if let ServerLine::Event(happened) = &mut heard
            && happened.event == "event"
            && happened.data["body"].is_null()
            && let Some(body) = self.body(&happened.data).await
        {
            happened.data["body"] = body;
        }
        heard
    }

    async fn body(&self, step: &Value) -> Option<Value> {
        let run: RunId = step["run"].as_str()?.parse().ok()?;
        let seq = u32::try_from(step["seq"].as_u64()?).ok()?;
        let event = self.opened.store.read(move |view| view.event(&run, seq)).await.ok()??;
        if is_sealed(&event.body) { None } else { serde_json::from_str(&event.body).ok() }
    }
}

impl ChatArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        if shared.json {
            let message = "the chat is for people; programs use kiso.sock (docs/socket.md) or `kiso --json run`";
            return Err(Failure::new(Exit::Usage, message));
        }
        let session = session(self.session.as_deref())?;
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        // What a daemon does before it opens the store, as there will be one here.
        if !is_served(&home)? {
            crate::daemon::check_after_crash(&home)?;
        }
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let plain = self.plain || !terminal || is_dumb();
        let paint = Paint::new(!plain);
        let place = ChatSession { opened: &opened, session: &session };
        let secrets = environment_secrets();
        block_on(async {
            let own = begin(&opened, paint).await?;
            if opened.config.model == "reflex" {
                let words = "the model is `reflex`: rules that are built in, not a language model. To connect one, see `kiso config preset` and docs/models.md";
                errln!("{}", paint.dim(words));
            }
            let ended = match plain {
                true => plain::run(&place).await,
                false => terminal::run(&place, secrets).await,
            };
            if let Some(daemon) = own {
                daemon.stop().await;
            }
            ended
        })?
    }
}

/// A daemon of the chat's own, if the home has none.
async fn begin(opened: &Opened, paint: Paint) -> Result<Option<Daemon>, Failure> {
    for _ in 0..LOOKS {
        if is_served(&opened.home)? {
            return Ok(None);
        }
        crate::node::prompt::check_prompts(&opened.home)?;
        match Daemon::start(opened.drive()?, environment_secrets(), Some(0)).await {
            Ok(daemon) => {
                let words = format!(
                    "no daemon is running for {}, so this chat started its own (http://{}); it stops when the chat ends",
                    opened.home.path().display(),
                    daemon.address()
                );
                errln!("{}", paint.dim(&words));
                return Ok(Some(daemon));
            }
            // Another one is just beginning or ending.
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

/// Whether a daemon listens at the home's socket.
fn is_served(home: &Home) -> Result<bool, Failure> {
    let path = home.socket_path();
    match UnixStream::connect(&path) {
        Ok(_) => Ok(true),
        // One that was killed leaves its socket behind.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(false),
        Err(error) => {
            let message = format!("the daemon's socket {} cannot be used: {error}", path.display());
            Err(Failure::new(Exit::Config, message))
        }
    }
}

/// The name of a message, by which it is done once however often it is sent.
fn new_key() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::new(Exit::Failed, "the system provides no random numbers"))?;
    Ok(format!("chat-{}", HEXLOWER.encode(&bytes)))
}
