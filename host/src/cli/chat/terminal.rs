//! The conversation at a terminal.

use super::asking::Asking;
use super::attach::{self, LinePaths, PathMention};
use super::complete::Names;
use super::editor::{KeyboardInput, LineReader};
use super::markdown::Looks;
use super::screen::{FRAME_MS, Screen, StatusLine, width};
use super::stream::TextForm;
use super::talk::{ScreenText, Talk};
use super::waiting::WaitingReport;
use super::{ChatSession, LEAVING};
use crate::cli::client::daemon::{new_key, whole};
use crate::cli::client::upload::{UploadReceipt, upload};
use crate::cli::client::{Client, News};
use crate::cli::history::InputHistory;
use crate::cli::show::{Paint, printable_line, wrap_to_terminal};
use crate::cli::{Exit, Failure, Opened};
use kiso_agent::tool::pills::Pills;
use kiso_base::clock::{minute, now_ms};
use kiso_plan::report::size;
use kiso_store::secret::Secrets;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

/// The exit code of a program that a signal ended.
const ENDED_BY_SIGNAL: u8 = 130;

/// Chats until Ctrl-D, a second Ctrl-C, or a signal.
pub(super) async fn run(place: &ChatSession<'_>, secrets: Secrets) -> Result<Exit, Failure> {
    let _restored = Restored::new();
    let paint = Paint::new(true);
    let pills = Pills::new(&place.opened.config, &place.opened.store).list().await?;
    let pills = pills.into_iter().map(|(pill, _)| pill.name).collect();
    let names = Names::new(&place.opened.config, &place.opened.skills, pills);
    let (status, history) = (StatusLine::default(), InputHistory::of_chat(&place.opened.home, secrets));
    greet(place, &history, paint).await?;
    let prompt = format!("{}> ", place.session);
    let mut signals = Signals::new()?;
    let mut client = Client::start("chat", place.opened.home.socket_path(), place.session, true);
    // Once the prompt is shown, the person sees all messages of others.
    client.stands().await;
    let started = LineReader::start(prompt, names, history, status.clone(), paint);
    let (reader, printer) =
        started.map_err(|error| Failure::new(Exit::Failed, format!("the terminal cannot be read: {error}")))?;
    let form = TextForm::Rendered(Looks { paint, width: width() });
    let conversation = Conversation {
        place,
        asking: Asking::default(),
        waiting: WaitingReport::default(),
        talk: Talk::new(form, place.opened.skills.clone(), place.opened.home.work_dir(place.session)),
        client,
        screen: Screen::new(printer, status, paint),
        reader,
        attached: Vec::new(),
        left: false,
    };
    conversation.hold(&mut signals).await
}

/// Prints how to get help, the first time, and the time of the conversation's last message.
async fn greet(place: &ChatSession<'_>, history: &InputHistory, paint: Paint) -> Result<(), Failure> {
    let session = place.session.clone();
    let last = place.opened.store.read(move |view| view.messages_before(&session, None, 1)).await?;
    if let Some(last) = last.last() {
        let words = format!(
            "continuing the conversation {0}, last message {1}; `kiso session show {0}` shows it",
            place.session,
            minute(last.at_ms)
        );
        errln!("{}", paint.dim(&wrap_to_terminal(&words)));
    }
    if history.load().is_empty() {
        errln!(
            "{}",
            paint.dim(&wrap_to_terminal("/help lists the commands and keys, @PATH attaches a file, /quit leaves"))
        );
    }
    Ok(())
}

struct Conversation<'a> {
    place: &'a ChatSession<'a>,
    /// The card that waits for an answer.
    asking: Asking,
    /// The changes to folders that were reported.
    waiting: WaitingReport,
    talk: Talk,
    client: Client,
    screen: Screen,
    reader: LineReader,
    /// Files for the next message, by their paths in the workspace.
    attached: Vec<String>,
    /// Whether the last input was a Ctrl-C with nothing to stop.
    left: bool,
}

impl Conversation<'_> {
    async fn hold(mut self, signals: &mut Signals) -> Result<Exit, Failure> {
        let mut tick = tokio::time::interval(Duration::from_millis(FRAME_MS));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let exit = loop {
            if self.talk.has_changed() {
                self.asking.look(&self.place.opened.store, self.place.session).await?;
            }
            let busy = self.asking.activity().or_else(|| self.talk.busy());
            let columns = width();
            // The width is read each time: while a line is read, the editor's handler takes the signal of a resize.
            self.talk.resize(columns);
            self.screen.busy(busy.as_ref(), now_ms(), columns);
            let mut shown = tokio::select! {
                news = self.client.news() => match news {
                    News::Connected { again } => self.talk.connected(again),
                    News::Lost => self.talk.lost(),
                    News::Heard(heard) => self.talk.hear(whole(&self.place.opened.store, heard).await, now_ms()),
                },
                typed = self.reader.typed() => match self.take(typed).await? {
                    Some(shown) => {
                        self.reader.go_on();
                        shown
                    }
                    None => break Exit::Done,
                },
                _ = tick.tick(), if busy.is_some() => continue,
                signalled = signals.next() => match signalled {
                    Signalled::End => break Exit::Command(ENDED_BY_SIGNAL),
                    Signalled::Interrupt => match self.interrupt() {
                        Some(shown) => shown,
                        None => break Exit::Done,
                    },
                },
            };
            if self.talk.has_ended() {
                let lines = self.waiting.lines(self.place).await;
                shown.extend(lines.iter().map(|line| self.talk.quiet(line)));
            }
            for shown in shown {
                let (ScreenText::Text(lines) | ScreenText::Note(lines)) = shown;
                self.screen.print(&lines);
            }
            self.talk.asks().into_iter().for_each(|say| self.client.say(say));
        };
        self.screen.end();
        Ok(exit)
    }

    /// Handles input; `None` to leave.
    async fn take(&mut self, typed: KeyboardInput) -> Result<Option<Vec<ScreenText>>, Failure> {
        let line = match typed {
            KeyboardInput::End => return Ok(None),
            KeyboardInput::Interrupt => return Ok(self.interrupt()),
            KeyboardInput::Line(line) => line,
        };
        self.left = false;
        if line.trim().is_empty() {
            return Ok(Some(Vec::new()));
        }
        if LEAVING.contains(&line.trim()) {
            return Ok(None);
        }
        let (line, shown) = match self.asking.command(&line) {
            Some(command) => (Some(command), Vec::new()),
            None => {
                let doubts = attach::find_doubts(&line, Path::exists);
                let (line, shown) = self.attach(line).await;
                (line, doubts.iter().map(|doubt| self.talk.quiet(doubt)).chain(shown).collect())
            }
        };
        if let Some(line) = line {
            let say = self.talk.say(&line, new_key("chat")?, now_ms());
            self.client.say(say);
        }
        Ok(Some(shown))
    }

    /// Attaches the files named in a line. Returns the text to send, and the output.
    async fn attach(&mut self, line: String) -> (Option<String>, Vec<ScreenText>) {
        let is_file = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.is_file());
        let (mut text, mut shown, mut names) = (line.clone(), Vec::new(), Vec::new());
        match attach::find(&line, is_file) {
            LinePaths::Whole(paths) => {
                for path in paths {
                    match self.upload(&path).await {
                        Ok((name, note)) => {
                            self.attached.push(name);
                            shown.push(ScreenText::Note(format!("{note}; it goes with your next message")));
                        }
                        Err(why) => shown.push(ScreenText::Note(why)),
                    }
                }
                return (None, shown);
            }
            LinePaths::Within(files) => {
                // In reverse order, so that the positions of the remaining paths stay valid.
                for PathMention { place, path } in files.into_iter().rev() {
                    match self.upload(&path).await {
                        Ok((name, note)) => {
                            text.replace_range(place, &name);
                            names.insert(0, name);
                            shown.insert(0, ScreenText::Note(note));
                        }
                        Err(why) => {
                            shown.push(ScreenText::Note(format!("{why}. The message was not sent.")));
                            return (None, shown);
                        }
                    }
                }
            }
        }
        if !text.trim_start().starts_with(['$', '/']) {
            names.splice(..0, self.attached.drain(..));
        }
        if !names.is_empty() {
            text = format!("{}\n\nFiles: {}", text.trim_end(), names.join(", "));
        }
        (Some(text), shown)
    }

    /// Puts a file into the workspace. Returns its path there, and a note.
    async fn upload(&self, path: &Path) -> Result<(String, String), String> {
        let Opened { home, config, .. } = self.place.opened;
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = home.path().canonicalize().ok().and_then(|home| Some(place.strip_prefix(home).ok()?.to_owned()));
        if own.is_some_and(|own| !own.starts_with("sessions")) {
            return Err(format!("{} was not attached: it belongs to kiso's home", path.display()));
        }
        let max_line = usize::try_from(config.gateway.max_body_kib << 10).unwrap_or(usize::MAX);
        let UploadReceipt { path, bytes, media_type } =
            upload(&home.socket_path(), max_line, self.place.session, path).await?;
        let note = format!("attached {} ({media_type}, {})", printable_line(&path), size(bytes));
        Ok((path, note))
    }

    /// Stops the run; if there is none, the second Ctrl-C leaves.
    fn interrupt(&mut self) -> Option<Vec<ScreenText>> {
        if let Some(cancel) = self.talk.cancel(self.asking.waits() && !self.left) {
            self.client.say(cancel);
            self.left = true;
            return Some(vec![ScreenText::Note("stopping the run; press Ctrl-C again to quit".to_owned())]);
        }
        if self.left {
            return None;
        }
        self.left = true;
        Some(vec![ScreenText::Note("press Ctrl-C again to quit, or Ctrl-D".to_owned())])
    }
}

/// A signal from the system.
enum Signalled {
    End,
    /// Ctrl-C, between two lines.
    Interrupt,
}

/// The handled signals.
struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Signals, Failure> {
        let listen =
            |kind| signal(kind).map_err(|e| Failure::new(Exit::Failed, format!("signals cannot be received: {e}")));
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            // Ctrl-C is a key while a line is typed, and a signal between two lines.
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.terminate.recv() => Signalled::End,
            _ = self.hangup.recv() => Signalled::End,
            _ = self.interrupt.recv() => Signalled::Interrupt,
        }
    }
}

/// Restores the terminal's settings, even if a line is being typed at the end.
struct Restored(Option<Termios>);

impl Restored {
    fn new() -> Restored {
        Restored(tcgetattr(std::io::stdin()).ok())
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        let Some(before) = &self.0 else { return };
        let raw = tcgetattr(std::io::stdin()).is_ok_and(|now| now.local_modes != before.local_modes);
        if raw {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, before);
            // The editor enabled the marks around pasted text, and no longer reads them.
            crate::cli::out::end_of_paste();
        }
    }
}
