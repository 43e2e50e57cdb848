//! The conversation without a terminal: a message for each line of standard input, replies on standard output.

use super::asking::Asking;
use super::stream::TextForm;
use super::talk::{ScreenText, Talk};
use super::waiting::WaitingReport;
use super::{ChatSession, LEAVING};
use crate::cli::client::daemon::{new_key, whole};
use crate::cli::client::{Client, News};
use crate::cli::{Exit, Failure};
use kiso_agent::session::intake::MAX_MESSAGE;
use kiso_base::clock::now_ms;
use std::io::{BufRead, Read};
use tokio::sync::mpsc;

/// Reads to the end of standard input. Returns the exit code of the last run.
pub(super) async fn run(place: &ChatSession<'_>) -> Result<Exit, Failure> {
    let mut talk = Talk::new(TextForm::Raw, place.opened.skills.clone(), place.opened.home.work_dir(place.session));
    let mut client = Client::start("chat", place.opened.home.socket_path(), place.session, false);
    let (tell, mut lines) = mpsc::channel(1);
    std::thread::spawn(move || read(&tell));
    let (mut ended, mut asking, mut waiting) = (false, Asking::default(), WaitingReport::default());
    loop {
        if talk.has_changed() {
            asking.look(&place.opened.store, place.session).await?;
        }
        tokio::select! {
            news = client.news() => {
                let shown = match news {
                    News::Connected { again } => talk.connected(again),
                    News::Lost => talk.lost(),
                    News::Heard(heard) => talk.hear(whole(&place.opened.store, heard).await, now_ms()),
                };
                shown.into_iter().for_each(print);
                talk.asks().into_iter().for_each(|say| client.say(say));
            }
            // Messages are sent one after the other: those sent together would be answered together. The next line may
            // answer a question of the run.
            line = lines.recv(), if !ended && (talk.is_idle() || asking.waits()) => match line {
                Some(Ok(line)) if LEAVING.contains(&line.trim()) => ended = true,
                Some(line) => client.say(talk.say(&line?, new_key("chat")?, now_ms())),
                None => ended = true,
            },
            _ = tokio::signal::ctrl_c() => match talk.cancel(false) {
                Some(cancel) => {
                    errln!("stopping the run; press Ctrl-C again to quit");
                    client.say(cancel);
                }
                None => return Ok(Exit::Command(130)),
            },
        }
        if talk.has_ended() {
            waiting.lines(place).await.iter().for_each(|line| print(talk.quiet(line)));
        }
        if ended && talk.is_idle() {
            return Ok(talk.exit());
        }
    }
}

fn print(shown: ScreenText) {
    match shown {
        ScreenText::Text(lines) => out!("{lines}"),
        ScreenText::Note(line) => errln!("{line}"),
    }
}

/// Sends lines that are not empty.
fn read(tell: &mpsc::Sender<Result<String, Failure>>) {
    let mut stdin = std::io::stdin().lock();
    loop {
        let mut bytes = Vec::new();
        let most = MAX_MESSAGE as u64 + 1;
        let line = match stdin.by_ref().take(most).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(read) if read as u64 == most => Err("a line on standard input is larger than 1 MiB".to_owned()),
            Ok(_) => String::from_utf8(bytes).map_err(|_| "a line on standard input is not UTF-8".to_owned()),
            Err(error) => Err(format!("standard input cannot be read: {error}")),
        };
        if line.as_ref().is_ok_and(|line| line.trim().is_empty()) {
            continue;
        }
        let failed = line.is_err();
        if tell.blocking_send(line.map_err(|message| Failure::new(Exit::Usage, message))).is_err() || failed {
            return;
        }
    }
}
