//! Listings: pages, times, lines that fit the terminal, and JSON objects.

use super::show::{printable, printable_line};
use super::{Exit, Failure};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{BufRead, IsTerminal};

/// The part of a long listing to show.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PageArgs {
    /// How many to show
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Show entries before this one; the end of each page names it
    #[arg(long, value_name = "PLACE")]
    pub before: Option<String>,
}

impl PageArgs {
    /// Returns the number in `--before`.
    pub(super) fn before_id(&self) -> Result<Option<i64>, Failure> {
        let parse = |text: &String| {
            let wrong = || Failure::new(Exit::Usage, format!("--before {text:?} is not a position in this list"));
            text.parse().map_err(|_| wrong())
        };
        self.before.as_ref().map(parse).transpose()
    }

    /// On a terminal, prints how to see the next page, if this one was full. `last` is the last shown entry.
    pub(super) fn more(&self, shown: usize, last: Option<impl Display>) {
        if shown == self.limit as usize
            && let Some(last) = last
            && std::io::stderr().is_terminal()
        {
            errln!("for more, add --before {last}");
        }
    }
}

/// Returns a JSON object with a type, and the value in the same form as in the gateway.
pub(super) fn typed(kind: &str, shown: &impl Serialize) -> Value {
    let mut object = json!({ "type": kind });
    if let (Some(object), Value::Object(shown)) = (object.as_object_mut(), json!(shown)) {
        object.extend(shown);
    }
    object
}

/// Prints a row of a listing: `head` unchanged, and as much of `text` as fits on the terminal's line. A pipe gets all of it.
pub(super) fn row(head: &str, text: &str) {
    let text = printable_line(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let Some(width) = width() else { return outln!("{head}  {text}") };
    let room = width.saturating_sub(head.chars().count() + 2).max(20);
    match text.char_indices().nth(room) {
        Some(_) => outln!("{head}  {}…", text.chars().take(room - 1).collect::<String>()),
        None => outln!("{head}  {text}"),
    }
}

/// Returns the columns of the terminal; `None` if standard output is not a terminal.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Asks before an action that cannot be undone. If nobody can be asked, `yes` is required.
pub(super) fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, format!("{question} There is no terminal to confirm on; pass --yes")));
    }
    err!("{} [y/N] ", printable(question));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::new(Exit::Failed, "nothing changed")),
    }
}
