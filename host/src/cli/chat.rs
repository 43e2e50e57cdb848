//! `kiso`, `kiso chat`: a conversation with the home's daemon; starts one if none is running.

mod asking;
mod attach;
mod complete;
mod doing;
mod editor;
mod markdown;
mod order;
mod plain;
mod screen;
mod stream;
mod talk;
mod terminal;
mod waiting;

use super::client::daemon::{begin, is_served};
use super::folder::FolderArgs;
use super::show::{Paint, is_dumb, wrap_to_terminal};
use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets, session};
use kiso_base::home::{Home, PROJECT, SessionFolder, SessionName};
use kiso_sandbox::skill::Quiet;
use std::io::IsTerminal;
use std::sync::Arc;

#[derive(Debug, Default, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct ChatArgs {
    /// The session to join; created if it does not exist
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Read one message per line from standard input and print replies, even on a terminal
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    folders: FolderArgs,
}

const AFTER: &str = "\
Examples:
  kiso                              talk in the session `default`
  kiso --dir .                      talk about the files of this folder, and change them when you agree
  kiso chat --session holiday       in another one
  echo '/status' | kiso chat        without a terminal: a message for each line; ends as the last one did

Tab completes /commands, !pills, #tags, skills and their arguments. A line that ends in \\ continues on the next one. Ctrl-C stops the current run; a second Ctrl-C, Ctrl-D or /quit leaves. See docs/chat.md.";

/// Text that `/help` adds at a terminal.
const KEYS: &str = "

In this terminal:

- `/quit` or Ctrl-D: leave the chat
- Ctrl-C: stop the current run; the second time, leave the chat
- `@PATH` in a message: attach a file; a line with nothing but a path attaches it to the next message
- `$ COMMAND`: run a command line in the sandbox
- Tab: complete `/commands`, `!pills`, `#tags`, `@skills` and `@files`
- `\\` at the end of a line: continue on the next one
- Up, Down, Ctrl-R: earlier lines
";

/// Words that leave the chat. The terminal handles these commands, not the daemon.
const LEAVING: [&str; 2] = ["/quit", "/exit"];

/// The place of the conversation.
struct ChatSession<'a> {
    opened: &'a Opened,
    session: &'a SessionName,
}

impl ChatArgs {
    /// Returns the chat of the session `default`.
    pub(super) fn in_folders(folders: FolderArgs) -> Self {
        Self { folders, ..Self::default() }
    }

    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        if shared.json {
            let message = "the chat is for people; programs use kiso.sock (docs/socket.md) or `kiso --json run`";
            return Err(Failure::new(Exit::Usage, message));
        }
        let session = session(self.session.as_deref())?;
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        // The same steps as in a daemon before it opens the store, because one is started here.
        if !is_served(&home)? {
            crate::daemon::check_before_start(&home)?;
        }
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        self.folders.open(&opened, &session)?;
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let plain = self.plain || !terminal || is_dumb();
        let paint = Paint::new(!plain);
        let place = ChatSession { opened: &opened, session: &session };
        let secrets = environment_secrets();
        if terminal && !plain && self.folders.dir.is_empty() && opened.home.folders(&session)?.is_empty() {
            offer_this_folder(&opened.home, paint);
        }
        block_on(async {
            let own = begin(&opened, "chat", paint).await?;
            if opened.config.model == "reflex" {
                let words = "the model is `reflex`: rules that are built in, not a language model. To connect one, run `kiso open`, whose page asks for a provider, or see `kiso config preset`";
                errln!("{}", paint.dim(&wrap_to_terminal(words)));
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

/// Prints how to work in the current directory, if it looks like a project.
fn offer_this_folder(home: &Home, paint: Paint) {
    let Ok(here) = std::env::current_dir() else { return };
    if SessionFolder::new(home, &here, PROJECT, false).is_ok() {
        let words = format!("to work in {}, start with `kiso --dir .`; see docs/folders.md", here.display());
        errln!("{}", paint.dim(&wrap_to_terminal(&words)));
    }
}
