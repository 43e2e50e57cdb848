//! Asks for an approval in the terminal in which a run was started. It can also be answered elsewhere.

use crate::cli::approval::numbers;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure};
use kiso_agent::drive::{AlwaysScope, Cancel, CardReply, RunExecutor};
use kiso_store::store::{ApprovalLine, ApprovalState, RunId};
use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Interval between checks for an answer from elsewhere.
const LOOK: Duration = Duration::from_millis(300);

/// Returns how to answer a card from elsewhere.
pub(super) fn how_to_answer(approval: i64) -> String {
    format!(
        "approval {approval} is waiting: `kiso approval accept {approval}` or `kiso approval refuse {approval}` answers it"
    )
}

/// Returns when the run's card is answered or has expired, or the run is to be stopped.
pub(super) async fn until_answered(
    drive: &RunExecutor,
    show: &Show,
    as_json: bool,
    id: i64,
    cancel: &Cancel,
) -> Result<RunId, Failure> {
    let gone = || Failure::new(Exit::Failed, format!("approval {id} is gone"));
    let asked = drive.store.read(move |view| view.approval(id)).await?.ok_or_else(gone)?;
    show.rest();
    if as_json {
        outln!("{}", json!({ "type": "approval", "approval": asked }));
    }
    show.line(&format!("Approval {id} is needed before this goes on:"));
    asked.card.lines().iter().for_each(|line| show.line(&format!("  {}", printable_line(line))));
    // If no person is at the terminal, the end of its input would be taken for an answer.
    let mut typed = match !as_json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        true => Some(listen()),
        false => {
            show.line(&how_to_answer(id));
            None
        }
    };
    prompt(typed.is_some(), &asked);
    loop {
        let line = async {
            match &mut typed {
                Some(typed) => typed.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = line => match line {
                Some(line) => {
                    if let Some(reply) = reply(&line) {
                        match drive.answer_card(id, None, reply).await {
                            Ok(_) => return Ok(asked.run),
                            Err(error) => show.line(&error.to_string()),
                        }
                    } else {
                        show.line("answer with y (all), n (none), numbers such as 1,3, s (all, always in this session) or m (all, for 30 days; hosts always); v refuses hosts for good");
                    }
                    prompt(true, &asked);
                }
                None => {
                    show.line(&how_to_answer(id));
                    typed = None;
                }
            },
            () = sleep(LOOK) => {
                let run = asked.run.clone();
                let (now, stopped) = drive.store
                    .read(move |view| Ok((view.approval(id)?, view.cancel_requested(&run)?)))
                    .await?;
                let now = now.ok_or_else(gone)?;
                let is_over = now.state != ApprovalState::Pending || now.card.expires_ms <= kiso_base::clock::now_ms();
                if is_over || stopped || cancel.is_cancelled() {
                    return Ok(asked.run);
                }
            }
        }
    }
}

fn prompt(asks: bool, asked: &ApprovalLine) {
    if asks {
        let some = if asked.card.effects.len() > 1 { ", or numbers" } else { "" };
        match asked.card.is_about_hosts() {
            true if !asked.card.can_last() => err!("Allow? [y]es, once; [n]o; ne[v]er{some}: "),
            true => err!("Allow? [y]es, once; in this [s]ession; [a]lways; [n]o; ne[v]er{some}: "),
            false => err!("Accept? [y]es, [n]o, always in this [s]ession, for a [m]onth{some}: "),
        }
    }
}

fn reply(line: &str) -> Option<CardReply> {
    let (accepted, always) = match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => (None, None),
        "n" | "no" => (Some(Vec::new()), None),
        "s" => (None, Some(AlwaysScope::Session)),
        "m" | "a" | "always" => (None, Some(AlwaysScope::ThirtyDays)),
        "v" | "never" => (Some(Vec::new()), Some(AlwaysScope::ThirtyDays)),
        text => (Some(numbers(text)?), None),
    };
    Some(CardReply { accepted, always, by: "terminal".to_owned() })
}

/// Reads lines of standard input in a separate thread that is never joined, because a read may block forever.
fn listen() -> mpsc::Receiver<String> {
    let (told, typed) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            if told.blocking_send(line).is_err() {
                return;
            }
        }
    });
    typed
}
